"""Records: what the log holds, against what was sent; and what retention took away before it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.claim import Claim
from kafka_trial.invariants.absences import expired_while_away
from kafka_trial.invariants.claim_rule import (
    VIOLATION,
    Attributes,
    Rule,
    Weight,
    always,
    not_an_operators,
    the_clusters,
    under,
)
from kafka_trial.invariants.commits_log import (
    OPERATOR,
    STRANGER,
    UNKNOWN,
    commits_in_effect,
    final_committed_offsets,
    first_covering,
    from_outside,
)
from kafka_trial.invariants.contradicted_lines import is_refuted
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    exactly,
    joined,
    per_group,
    picked,
    starts_of,
    value_at,
)
from kafka_trial.invariants.ownership_epochs import deliveries, ownership_epochs
from kafka_trial.invariants.rows import Kind, Known
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.undecided import Undecided
from kafka_trial.model.commits import untold

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


@invariant(
    "lost-write",
    family="delivery",
    needs=("records", "sends", "log ends", "snapshot"),
    level="none",
    severity=90,
    rule=Rule(always, the_clusters),
    message="the cluster lost record {offset} of {place}, which it had acknowledged",
)
def lost_write(batch: Batch) -> Findings:
    """A send was acknowledged, and the complete control read does not hold its record: the cluster lost it.

    "A committed message will not be lost, as long as there is at least one in sync replica alive, at all times" (Kafka,
    Design, Replication); acks=all waits for all of them. Never the consumer's fault: the verdict is unknown. Legal
    below the log start at the end (retention, deleted records: see `overtaken`), and under compaction if a later record
    has the same key.

    Smallest history: send `ok` at offset 1; the control read is complete, log start 0, and holds record 0 only.

    Usual cause: The cluster lost a record that it had acknowledged. The consumer has no part in it.

    Remedy: Look at the broker logs of the run folder: unclean leader election, min.insync.replicas, disks.
    """
    sent = _sent(batch)
    known = sent["offset"] != NONE
    starts = _log_starts(batch)[sent["slice"]]
    gone = known & ((sent["offset"] < starts) | _superseded(batch, sent))
    snapshot_ns = batch.trial_context.snapshot_ns
    late = sent["time_ns"] >= (NONE if snapshot_ns is None else snapshot_ns)
    placeless = ~known & ((starts > 0) | batch.trial_context.compacted)
    record = exactly(batch.records["slice"], batch.records["offset"], sent["slice"], sent["offset"])
    nameless = picked(batch.records["id_hash"], record, 0) == NONE
    lost = sent.take(~gone & ~late & ~placeless & ~nameless)
    rows = table(slice=lost["slice"], order=lost["offset"], offset=lost["offset"])
    return Findings(
        rows,
        [(lost["source"], lost["seq"])],
        [
            (Undecided.AFTER_SNAPSHOT, sent["slice"][~gone & late]),
            (Undecided.PLACE_UNKNOWN, sent["slice"][~gone & ~late & placeless]),
            (Undecided.NO_ID_THERE, sent["slice"][~gone & ~late & ~placeless & nameless]),
        ],
    )


def _nobodys_doing(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    """Excuses what expired while no member could run, and what was committed from outside the members."""
    if attributes.get("while_away"):
        return "tolerated", "expired while no member ran: the trial had stopped all of them"
    return not_an_operators(claim, attributes)


@invariant(
    "overtaken",
    family="delivery",
    needs=("records ever", "sends", "handled", "log ends"),
    level="sink",
    severity=20,
    rule=Rule(under("at-least-once", "exactly-once"), _nobodys_doing),
    message="records {offset} to {last_offset} of {place} expired before they were read ({records} of them)",
    deciding=("by_operator", "by_stranger", "while_away"),
)
def overtaken(batch: Batch) -> Findings:
    """Records expired before they were read: the log start passed the consumer. One finding a range.

    "The Kafka cluster durably persists all published records, whether or not they have been consumed, using a
    configurable retention period" (Kafka, Introduction): a consumer that falls behind it loses what it had not read,
    and `auto.offset.reset` hides that. Only acknowledged sends are known to have been in the log. A record is lost the
    same way if it was delivered, never processed and committed past, as the log cannot show it any more; or if its
    ownership epoch ended by the end of the drain, as nobody can be given it again. Legal if an operator moved the
    position past the records, or if they expired while the trial had stopped all members and nobody had committed past
    them before. A member killed with -9 never reports its last act: without a sink, what it may have read is undecided.
    So are records that may have expired just before or after such a stop. Committed past or not, these records are
    neither `skipped` nor `unseen`.

    Smallest history: sends `ok` at 0 and 1, `processed` 1, log start 1.

    Usual cause: The consumer was slower than the topic's retention: records were deleted before it read them.

    Remedy: Raise the topic's retention, or give the group more members; alert on the age of the oldest unread record.
    """
    expired = _sent(batch)
    expired = expired.take((expired["offset"] != NONE) & (expired["offset"] < _log_starts(batch)[expired["slice"]]))
    past = expired["offset"] < final_committed_offsets(batch)[expired["slice"]]
    unread = ~_read(batch, expired, past)
    covered_by = np.where(past, first_covering(batch, expired["slice"], expired["offset"]), -1)
    uncertain = value_at(untold(batch), covered_by, False)
    near = ~past & bool(batch.incarnations["killed"].any()) & (not batch.trial_context.has_sink)
    committer = picked(commits_in_effect(batch)["committer"], covered_by, UNKNOWN)
    covered_ns = picked(commits_in_effect(batch)["effect_ns"], covered_by, NEVER)
    away, maybe_away = expired_while_away(batch, expired, covered_ns)
    uncertain, near = uncertain & ~away, near & ~away
    edge = maybe_away & ~uncertain & ~near & (committer != OPERATOR)
    told = unread & ~uncertain & ~near & ~edge
    ranges = _ranges(expired.having(committed=past, committer=committer, while_away=away), told)
    ranges = ranges.having(**from_outside(ranges["committer"]))
    attributes = ("offset", "last_offset", "records", "committed", "by_operator", "by_stranger", "while_away")
    rows = ranges.only("slice", "order", *attributes)
    proofs = [(ranges["source"], ranges["seq"]), (ranges["last_source"], ranges["last_seq"])]
    undecided = [
        (Undecided.UNCERTAIN_AFTER_KILL, unread & uncertain),
        (Undecided.EXPIRED_MAYBE_READ, unread & near & ~uncertain),
        (Undecided.EXPIRED_MAYBE_AWAY, unread & edge),
    ]
    return Findings(rows, proofs, [(reason, expired["slice"][cases]) for reason, cases in undecided])


def _corrupt(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    return the_clusters(claim, attributes) if attributes.get("found_in") == "control read" else VIOLATION


@invariant(
    "corrupt",
    family="delivery",
    needs=("records", "sends"),
    level="none",
    severity=100,
    rule=Rule(always, _corrupt),
    message="record {offset} of {place} had another content {found} than was sent",
    deciding=("found_in",),
)
def corrupt(batch: Batch) -> Findings:
    """A record has another content than was sent: in the log (the cluster's fault), or as an effect (the consumer's).

    "This ensures no on-the-wire or on-disk corruption to the messages occurred" (Kafka, Consumer Configs, check.crcs).
    Content is compared by the CRC-32 of the value. If the control read itself found other content, the cluster is to
    blame: the verdict is unknown, and no effect of that record counts against the consumer. An effect's body is
    compared if consumer.toml declares that it is the record's value. JSON that was written differently and says the
    same is not corrupt.

    Smallest history: send `invoke` with checksum 1, the control read finds it with checksum 2.

    Usual cause: What came out is not what was sent: the wrong decoder, a shared buffer that was overwritten, a cut
    string.

    Remedy: Compare the two records named; hand each record its own buffer; decode by the record's own schema.
    """
    altered = batch.of(Kind.ALTERED).sorted_by("slice", "offset")
    effects = batch.arrived
    by_cluster = exactly(altered["slice"], altered["offset"], effects["slice"], effects["offset"]) >= 0
    declared = batch.trial_context.settings.body == "value"
    wrong = effects.take((effects["known"] & Known.OTHER > 0) & ~by_cluster & np.full(len(effects), declared))
    found_in = np.array(["control read"] * len(altered) + ["effect"] * len(wrong), dtype=object)
    offset = np.concatenate([altered["offset"], wrong["offset"]])
    rows = table(
        slice=np.concatenate([altered["slice"], wrong["slice"]]), order=offset, offset=offset, found_in=found_in
    )
    own = tuple(np.concatenate([altered[name], wrong[name]]) for name in ("source", "seq"))
    none = np.full(len(wrong), -1)
    send = tuple(np.concatenate([altered[name], none]) for name in ("send_source", "send_seq"))
    return Findings(rows, [(own[0], own[1]), (send[0], send[1])])


@invariant(
    "misplaced",
    family="delivery",
    needs=("records", "ids"),
    level="sink",
    severity=120,
    rule=Rule(always),
    message="the record that was {what} as record {offset} of {place} is not the one that the log holds there",
)
def misplaced(batch: Batch) -> Findings:
    """A record was delivered, or had its effect, under a partition and offset where the log holds another record.

    "The records in the partitions are each assigned a sequential id number called the offset that uniquely identifies
    each record within the partition" (Kafka, Introduction). Judged where the id's own record lies elsewhere in the log,
    or was never sent; an id that was sent and is not in the log leaves it undecided. Never legal.

    Smallest history: records r0 and r1; `delivered` offset 0 with id r1.

    Usual cause: The consumer names another partition or offset than the record has.

    Remedy: Take topic, partition and offset from the record itself, never from a counter of your own.
    """
    told = batch.of(Kind.DELIVERED, Kind.CLAIMED)
    told = told.take(told["id_hash"] != NONE).sorted_by("slice", "offset")
    record = exactly(batch.records["slice"], batch.records["offset"], told["slice"], told["offset"])
    there = picked(batch.records["id_hash"], record, NONE)
    other = (there != NONE) & (there != told["id_hash"])
    sure = told["known"] & (Known.READ | Known.UNSENT) > 0
    wrong, record = told.take(other & sure), record[other & sure]
    what = np.where(wrong["kind"] == Kind.CLAIMED, "effected", "delivered").astype(object)
    rows = table(slice=wrong["slice"], order=wrong["offset"], offset=wrong["offset"], what=what)
    proofs = [(wrong[name], picked(batch.records[name], record, -1)) for name in ("source", "seq")]
    return Findings(
        rows,
        [(proofs[0][0], proofs[1][0]), (proofs[0][1], proofs[1][1])],
        [(Undecided.REPLACED, told["slice"][other & ~sure])],
    )


def _sent(batch: Batch) -> Table:
    """Returns the acknowledged sends that the control read does not hold, sorted by (slice, offset)."""
    return batch.of(Kind.SENT).sorted_by("slice", "offset", "seq")


def _log_starts(batch: Batch) -> Ints:
    """Returns the log start of each slice at the end, 0 where none was read: log starts only rise."""
    read = batch.of(Kind.LOG_START)
    return per_group(read["slice"], read["position"], batch.size, how="max", start=0)


def _superseded(batch: Batch, sent: Table) -> Bools:
    """Returns which sends compaction may have taken: a later record of the partition has their key."""
    if not batch.trial_context.compacted:
        return np.zeros(len(sent), np.bool_)
    group = joined(np.concatenate([sent["slice"], batch.records["slice"]]), _keys(sent, batch.records))
    offsets = np.concatenate([sent["offset"], batch.records["offset"]])
    number = np.unique(group, return_inverse=True)[1]
    last = per_group(number, offsets, len(group), how="max", start=NONE)
    superseded: Bools = (last[number[: len(sent)]] > sent["offset"]) & (sent["key"] >= 0)
    return superseded


def _keys(*parts: Table) -> Array:
    return np.concatenate([part["key"] for part in parts])


def _read(batch: Batch, sent: Table, past: Bools) -> Bools:
    """Returns whether the record of each send was processed or had its effect, or, where nobody committed `past` it, is
    still in hand: who has it may still do it. A line that a witness refutes tells of neither."""
    lines = [_in_hand_at_snapshot(batch), batch.of(Kind.PROCESSED)]
    delivered, processed = (own.take(~is_refuted(batch, own)).sorted_by("slice", "offset") for own in lines)
    effects = batch.arrived
    begun, told = (
        exactly(own["slice"], own["offset"], sent["slice"], sent["offset"]) >= 0 for own in (delivered, processed)
    )
    seen = exactly(effects["slice"], effects["id_hash"], sent["slice"], sent["id_hash"]) >= 0
    read: Bools = told | seen | (begun & ~past)
    return read


def _in_hand_at_snapshot(batch: Batch) -> Table:
    """Returns the deliveries whose ownership epoch, as far as anybody knows, was open at the end of the drain."""
    own, snapshot_ns = deliveries(batch), batch.trial_context.snapshot_ns
    closed_ns = picked(ownership_epochs(batch)["close_ns"], own["ownership_epoch"], NEVER)
    return own.take(closed_ns >= (NONE if snapshot_ns is None else snapshot_ns))


def _ranges(expired: Table, told: Bools) -> Table:
    """Returns one row a range of expired records that were not read: the first and the last of it, and how many."""
    outside = np.isin(expired["committer"], (OPERATOR, STRANGER))
    alike = joined(
        expired["slice"],
        expired["committed"].astype(np.int64),
        np.where(outside, expired["committer"], UNKNOWN),
        expired["while_away"].astype(np.int64),
        np.cumsum(~told),
    )
    rows, alike = expired.take(told), alike[told]
    first = np.flatnonzero(starts_of(alike))
    last = np.append(first[1:], len(rows)) - 1 if len(rows) else first
    begin, end = rows.take(first), rows.take(last)
    return begin.having(
        order=begin["offset"],
        last_offset=end["offset"],
        records=last - first + 1,
        last_source=end["source"],
        last_seq=end["seq"],
    )
