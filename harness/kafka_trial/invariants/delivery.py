"""Delivery: was every record handled, and which were delivered again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.claim import Claim
from kafka_trial.invariants.claim_rule import (
    VIOLATION,
    Attributes,
    Rule,
    Weight,
    in_the_range,
    not_an_operators,
    on_the_partition,
    under,
)
from kafka_trial.invariants.commits_log import (
    AMBIGUOUS,
    OPERATOR,
    UNKNOWN,
    commits_in_effect,
    final_committed_offsets,
    first_covering,
    from_outside,
)
from kafka_trial.invariants.handler_retries import handler_starts
from kafka_trial.invariants.handlers import first_handled_of_records
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    covering,
    first_of,
    joined,
    ordered,
    per_group,
    picked,
)
from kafka_trial.invariants.long_silences import told_of_all
from kafka_trial.invariants.ownership_epochs import ownership_epochs
from kafka_trial.invariants.sink_effects import done_again
from kafka_trial.invariants.skips import in_flight
from kafka_trial.invariants.start_positions import floors
from kafka_trial.invariants.table import Table, stacked, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS
from kafka_trial.invariants.truncations import overwritten, truncated_below
from kafka_trial.invariants.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def _skipped(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    weight, why = not_an_operators(claim, attributes)
    if weight != "violation":
        return weight, why
    if claim.delivery == "at-most-once" and attributes.get("in_flight_at_crash"):
        return "tolerated", "in flight at a crash: at-most-once allows it"
    return VIOLATION


@invariant(
    "skipped",
    family="delivery",
    needs=("records", "handled", "offsets log"),
    level="sink",
    progress_in_kafka=True,
    intermediate_too=True,
    severity=10,
    share_of=("records",),
    rule=Rule(
        under("at-least-once", "at-most-once", "exactly-once"),
        _skipped,
        core=("at-least-once", "at-most-once", "exactly-once"),
        moot={"at-most-once": (Undecided.UNCERTAIN_AFTER_KILL,)},
    ),
    message="record {offset} of {place} was committed past and never processed",
    deciding=(
        "by_operator",
        "by_stranger",
        "in_flight_at_crash",
    ),
    follows={"commit-ahead": in_the_range},
)
def skipped(batch: Batch) -> Findings:
    """A record was committed past, and never handled: it is lost.

    "At least once: messages are never lost" (Kafka, Message Delivery Semantics): a position may be committed only after
    the records before it were processed. Legal under at-most-once for what was in flight at a crash, where an operator
    moved the position, and where the cluster cut the log off and wrote another record there. A member killed with -9
    never reports its last act: without a sink, what it committed after its last line is undecided; but not where it
    lived on for four poll intervals without a word, and fetched and beat all the while.

    Smallest history: records 0 and 1, `processed` 1, committed 2.

    Usual cause: The position was committed before the work: auto-commit of records that were only handed out, a commit
    of the batch before it is done, or a failed record that was logged and passed over.

    Remedy: Commit after the work and only what was done; switch off enable.auto.offset.store or enable.auto.commit;
    give a failed record somewhere to go (a retry, a dead-letter topic) before the position passes it.
    """
    lost = _never_handled(batch, committed=True)
    covered_by = first_covering(batch, lost["slice"], lost["offset"])
    undecided = uncertain_after_kill(batch, covered_by)
    lost, covered_by = lost.take(~undecided), covered_by[~undecided]
    commits = commits_in_effect(batch)
    rows = table(
        slice=lost["slice"],
        order=lost["offset"],
        offset=lost["offset"],
        committed_offset=picked(commits["committed_offset"], covered_by, NONE),
        **from_outside(picked(commits["committer"], covered_by, UNKNOWN)),
        in_flight_at_crash=in_flight(batch, lost, covered_by),
    )
    commit = (picked(commits["source"], covered_by, -1), picked(commits["seq"], covered_by, -1))
    return Findings(
        rows,
        [(lost["source"], lost["seq"]), commit],
        [(Undecided.UNCERTAIN_AFTER_KILL, _never_handled_slices(batch, undecided))],
    )


@invariant(
    "unseen",
    family="delivery",
    needs=("records", "handled", "snapshot"),
    level="sink",
    of_the_end=True,
    intermediate_too=True,
    severity=30,
    share_of=("records",),
    rule=Rule(under("at-least-once", "exactly-once"), core=("at-least-once", "exactly-once")),
    message="record {offset} of {place} was never processed, although the drain was over",
    follows={"stuck-partition": on_the_partition, "head-of-line-blocking": on_the_partition},
)
def unseen(batch: Batch) -> Findings:
    """A record was not committed past, and not handled by the end of the drain.

    "Every record is delivered to one consumer in each subscribing group" (Kafka, Introduction). Legal only as long as
    the drain goes on, which is why it is judged at the snapshot, and undecided where the drain was shorter than B.

    Smallest history: records 0 and 1, `processed` 0, committed 1, phase drain; thirteen seconds later phase snapshot.

    Usual cause: The partition was assigned and not read to its end: it stayed paused, was starved, or its handler hung.

    Remedy: Look at stuck-partition; resume what was paused after every rebalance; bound the handler's time.
    """
    late = _never_handled(batch, committed=False)
    rows = table(slice=late["slice"], order=late["offset"], offset=late["offset"])
    return Findings(rows, [(late["source"], late["seq"])])


@invariant(
    "redelivered",
    family="delivery",
    needs=("ownership epochs", "work"),
    level="sink",
    severity=300,
    share_of=("deliveries", "completions", "effects"),
    rule=Rule(under("at-most-once"), core=("at-most-once",)),
    message="record {offset} of {place} was delivered again",
)
def redelivered(batch: Batch) -> Findings:
    """A record was delivered again, at or above the floor of its ownership epoch: legal, unless at-most-once is
    claimed.

    "In the case of at-least-once, messages may be redelivered" (Kafka, Message Delivery Semantics). It counts in
    another ownership epoch, and inside one where the record or a later one had been completed (else it was `retried`).
    A record that was completed twice was delivered again, whatever the member printed of its deliveries.

    With a sink, each further effect of a record counts too, beyond the handlings that lines report.

    Smallest history: m0 `delivered` 5, `revoked`; m1 `assigned`, `delivered` 5, and its OffsetFetch was answered 5.

    Usual cause: A record was handed out again after a rebalance or restart: normal for at-least-once.

    Remedy: For at-most-once commit before the work, and wait for the answer; else claim at-least-once.
    """
    again, floor = _again(batch)
    effects, floors, below = done_again(batch)
    legal = (again["offset"] >= floor) | ~again["elsewhere"] | truncated_below(batch, again, floor)
    return _redeliveries(batch, (again.take(legal), floor[legal]), (effects.take(~below), floors[~below]))


@invariant(
    "illegal-redelivery",
    family="delivery",
    needs=("ownership epochs", "work", "offsets log", "requests"),
    level="sink",
    progress_in_kafka=True,
    severity=290,
    share_of=("deliveries", "completions", "effects"),
    rule=Rule(under("at-least-once", "at-most-once"), core=("at-least-once",)),
    message="record {offset} of {place} was delivered again, below {floor}, where its ownership epoch began",
)
def illegal_redelivery(batch: Batch) -> Findings:
    """A record was delivered again below the floor of its ownership epoch: the member did not start where it was told
    to.

    "The consumer starts at the committed position" (KafkaConsumer, Offsets and Consumer Position). A commit may be
    durable although the member never saw the answer, so the broker decides the floor. With a sink, a further effect
    counts too, if its member first fetched below the floor after it was assigned, or never had the partition before.

    Smallest history: m0 `delivered` 5; m1's OffsetFetch is answered 6, `assigned`, `delivered` 5.

    Usual cause: A member did not start at the committed position: a seek to the beginning, a stale position kept from
    before the rebalance, or auto.offset.reset where there was a commit.

    Remedy: On assignment start from the committed position, and drop what you remember of a partition when it goes.
    """
    again, floor = _again(batch)
    effects, floors, by_effects = done_again(batch)
    below = (again["offset"] < floor) & again["elsewhere"]
    below &= ~truncated_below(batch, again, floor)
    return _redeliveries(batch, (again.take(below), floor[below]), (effects.take(by_effects), floors[by_effects]))


def uncertain_after_kill(batch: Batch, commits: Array) -> Bools:
    """Returns whether each commit (-1: none) was made, or may have been, by a member that was killed before it could
    say what it had handled; never where a sink saw what was done."""
    if sink_there(batch) or not len(commits_in_effect(batch)):
        return np.zeros(len(commits), np.bool_)
    log, incarnations = commits_in_effect(batch), batch.incarnations
    effect_ns = picked(log["effect_ns"], commits, NONE)
    incarnation = picked(log["incarnation"], commits, -1)
    known = (
        (incarnation >= 0)
        & (picked(incarnations["killed"], incarnation, 0) == 1)
        & (effect_ns > picked(incarnations["worked_ns"], incarnation, NEVER) - _unflushed_ns(batch))
    )
    nobody = np.isin(picked(log["committer"], commits, OPERATOR), (UNKNOWN, AMBIGUOUS))
    uncertain: Bools = (known & ~told_of_all(batch, commits)) | (nobody & _some_killed(batch, effect_ns))
    return uncertain & (commits >= 0)


def _some_killed(batch: Batch, effect_ns: Array) -> Bools:
    """Returns whether a member that was killed lived at each time, or just before, and was not heard of again."""
    killed = batch.incarnations.take(batch.incarnations["killed"])
    worked_ns = np.where(killed["worked_ns"] == NONE, NONE, killed["worked_ns"] + 1 - _unflushed_ns(batch))
    heard = np.maximum(killed["started_ns"], worked_ns)
    ended = np.where(killed["exited_ns"] == NONE, NEVER, killed["exited_ns"] + TOLERANCE_NS)
    lived = heard < ended
    one = np.zeros(len(killed), np.int64)
    return covering(one[lived], heard[lived], ended[lived], np.zeros(len(effect_ns), np.int64), effect_ns) > 0


def _unflushed_ns(batch: Batch) -> int:
    """Returns how long before its last line was read a member may have begun to say what was never heard."""
    return TOLERANCE_NS if batch.trial_context.settings.stdout == "buffered" else 0


def sink_there(batch: Batch) -> bool:
    """Returns whether a sink saw what was done."""
    settings = batch.trial_context.settings
    return batch.trial_context.sink_seen or settings.sink not in (None, "none")


def _never_handled(batch: Batch, *, committed: bool) -> Table:
    """Returns the records that were never handled: those committed past, or those not, as of the snapshot."""
    records = batch.records
    past = records["offset"] < final_committed_offsets(batch)[records["slice"]]
    if committed:
        return records.take(past & (first_handled_of_records(batch).time_ns == NEVER) & ~overwritten(batch))
    snapshot_ns = batch.trial_context.snapshot_ns
    return records.take(
        ~past & (first_handled_of_records(batch).time_ns > (NEVER - 1 if snapshot_ns is None else snapshot_ns))
    )


def _never_handled_slices(batch: Batch, undecided: Bools) -> Array:
    return _never_handled(batch, committed=True)["slice"][undecided]


def _again(batch: Batch) -> tuple[Table, Array]:
    """Returns when records were begun again that another ownership epoch had too, or the same one, but for the first
    time; and the floors of these ownership epochs. `elsewhere`: another ownership epoch had it. What is tried again is
    none of them.
    """
    deliveries = handler_starts(batch)
    record = joined(deliveries["slice"], deliveries["offset"])
    order = ordered(record, deliveries["time_ns"])
    deliveries, record = deliveries.take(order), record[order]
    number = np.cumsum(np.diff(record, prepend=-1) != 0) - 1
    size = int(number.max(initial=-1)) + 1
    held = deliveries["ownership_epoch"] >= 0
    low, high = (
        per_group(number[held], deliveries["ownership_epoch"][held], size, how=how, start=start)
        for how, start in (("min", NEVER), ("max", NONE))
    )
    first = np.zeros(len(deliveries), np.bool_)
    first[first_of(record)] = True
    elsewhere = low[number] != high[number]
    again = held & ~first & (elsewhere | deliveries["repeated"]) & ~deliveries["retry"]
    return deliveries.having(elsewhere=elsewhere).take(again), floors(batch)[deliveries["ownership_epoch"][again]]


def _redeliveries(batch: Batch, *found: tuple[Table, Array]) -> Findings:
    again = stacked(*(rows.only("slice", "offset", "source", "seq", "ownership_epoch") for rows, _ in found))
    floor = np.concatenate([floor for _, floor in found])
    rows = table(slice=again["slice"], order=again["offset"], offset=again["offset"], floor=floor)
    held, ownership_epoch = ownership_epochs(batch), again["ownership_epoch"]
    opened = [picked(held[name], ownership_epoch, -1) for name in ("proof_source", "proof_seq")]
    return Findings(rows, [(again["source"], again["seq"]), (opened[0], opened[1])])
