"""Skips: records that a member passed over while it held their partition, and which of them at-most-once excuses.

The excuse is that of one member, one attempt, one time. Either the member crashed soon after it had committed, before
it could begin with the record, which one of its fetches can have brought to it by then. Or it cannot have known that
the commit stood (`indeterminate_commits.py`): then it must not act on it, and nobody else will.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants import indeterminate_commits
from kafka_trial.invariants.claim_rule import Rule, partition_order_claimed
from kafka_trial.invariants.client_attribution import unattributed
from kafka_trial.invariants.commits_log import commits_in_effect
from kafka_trial.invariants.handler_retries import handler_starts
from kafka_trial.invariants.handlers import first_handled_of_records
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    between,
    exactly,
    in_ranges,
    joined,
    max_before,
    next_in,
    ordered,
    per_group,
    picked,
)
from kafka_trial.invariants.ownership_epochs import BY_EXIT, deliveries, member_lines, ownership_epochs
from kafka_trial.invariants.request_logs import LATE_NS_MAX, never_fetched
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.start_positions import answers_with_starts
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import LOG_TOLERANCE_NS, TOLERANCE_NS
from kafka_trial.invariants.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


@invariant(
    "poll-skip",
    family="ordering",
    needs=("own word", "ownership epochs", "records"),
    level="events",
    severity=280,
    share_of=("records",),
    rule=Rule(partition_order_claimed),
    message="within one ownership epoch, deliveries of {place} went from record {previous_offset} to {next_offset} and "
    "left out record {offset}",
)
def poll_skip(batch: Batch) -> Findings:
    """Inside one ownership epoch the deliveries jumped over a readable record, and no later delivery there made it
    good.

    "The position … will be one larger than the highest offset the consumer has seen in that partition. It automatically
    advances every time the consumer receives messages" (KafkaConsumer, Offsets and Consumer Position). Offsets are not
    dense: only records that the control read found can be skipped, not markers, nor aborted, compacted or deleted
    records. Legal if the consumer says that it took the record (`processed`, whatever the outcome), or if its sink saw
    an effect of it meanwhile. Legal if order is claimed per key or not at all, because handlers may then begin in
    another order. Legal too if its progress is not in Kafka and the record had been handled by then: it looked up how
    far others had come, and continued there (`seek`). Undecided if a killed member may have taken the record in its
    last act, the log start overtook the position, or the lines may belong to several clients of one process. If a later
    delivery fills the gap, it is a reordering (`nonmonotonic-poll`).

    Smallest history: records 0 to 2, `assigned`, `delivered` 0, `delivered` 2.

    Usual cause: The consumer sought ahead, or dropped what its client had handed it, often on a rebalance or a resume.

    Remedy: Keep every polled record until it is done or its partition is revoked; never seek beyond the next record.
    """
    skipped = _passed_over(batch)
    killed, expired = _in_last_act(batch, skipped), _overtaken(batch, skipped)
    unsure = unattributed(batch, skipped) & ~killed & ~expired
    found = skipped.take(~killed & ~expired & ~unsure)
    rows = table(
        slice=found["slice"],
        order=found["offset"],
        offset=found["offset"],
        previous_offset=found["previous_offset"],
        next_offset=found["next_offset"],
    )
    proofs = [("before_source", "before_seq"), ("after_source", "after_seq"), ("record_source", "record_seq")]
    undecided = [
        (Undecided.EXPIRED, skipped["slice"][expired]),
        (Undecided.IN_FLIGHT_AT_KILL, skipped["slice"][killed & ~expired]),
    ]
    undecided.append((Undecided.UNATTRIBUTED, skipped["slice"][unsure]))
    return Findings(rows, [(found[source], found[seq]) for source, seq in proofs], undecided)


def _passed_over(batch: Batch) -> Table:
    """Returns one row for each record that an ownership epoch's deliveries jumped over and never came back to."""
    held = deliveries(batch).take(deliveries(batch)["ownership_epoch"] >= 0)  # sorted by ownership epoch, then seq
    highest = max_before(held["ownership_epoch"], held["offset"])
    jump = (highest >= 0) & (held["offset"] > picked(held["offset"], highest, NEVER))
    before, after = held.take(highest[jump]), held.take(jump)
    records = batch.records
    which, row = in_ranges(
        *between(records["slice"], records["offset"], after["slice"], before["offset"], after["offset"])
    )
    over = records["offset"][row] > before["offset"][which]
    which, row = which[over], row[over]
    skipped = table(
        slice=after["slice"][which],
        offset=records["offset"][row],
        source=after["source"][which],
        client=after["client"][which],
        ownership_epoch=after["ownership_epoch"][which],
        previous_offset=before["offset"][which],
        next_offset=after["offset"][which],
        jumped_ns=after["time_ns"][which],
        handled_ns=first_handled_of_records(batch).time_ns[row],
        before_source=before["source"][which],
        before_seq=before["seq"][which],
        after_source=after["source"][which],
        after_seq=after["seq"][which],
        record_source=records["source"][row],
        record_seq=records["seq"][row],
    )
    legal = _taken(batch, skipped) | _had_its_effect(batch, skipped) | _done_before(batch, skipped)
    return skipped.take(~legal & (skipped["offset"] >= _log_starts_max(batch, skipped)))


def _taken(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the same ownership epoch was delivered each record after all, or says that it handled it."""
    own = member_lines(batch).take(
        np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, Kind.PROCESSED))
        & (member_lines(batch)["ownership_epoch"] >= 0)
    )
    own = own.sorted_by("ownership_epoch", "offset")
    return exactly(own["ownership_epoch"], own["offset"], skipped["ownership_epoch"], skipped["offset"]) >= 0


def _had_its_effect(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the sink saw each record while the ownership epoch lasted: its line was lost."""
    effects, held = batch.of(Kind.EFFECT), ownership_epochs(batch)
    ownership_epoch = skipped["ownership_epoch"]
    record = joined(*(np.concatenate([effects[name], skipped[name]]) for name in ("slice", "offset")))
    order = ordered(record[: len(effects)], effects["time_ns"])
    times, opened_ns = effects["time_ns"][order], batch.earliest(picked(held["open_ns"], ownership_epoch, NEVER))
    first = at_or_after(record[: len(effects)][order], times, record[len(effects) :], opened_ns - TOLERANCE_NS)
    closed_ns = np.minimum(picked(held["close_ns"], ownership_epoch, NONE), NEVER - TOLERANCE_NS)
    return (first >= 0) & (picked(times, first, NEVER) <= closed_ns + TOLERANCE_NS)


def _done_before(batch: Batch, skipped: Table) -> Bools:
    """Returns whether each record had been handled by the time of the jump, where the consumer's own store can tell it.

    A member that was frozen goes on with what it holds; who has its partition finds that done, and goes on behind it.
    """
    if batch.trial_context.settings.in_offsets_log:
        return np.zeros(len(skipped), np.bool_)
    done: Bools = batch.earliest(skipped["handled_ns"]) <= skipped["jumped_ns"] + TOLERANCE_NS
    return done


def _log_starts_max(batch: Batch, skipped: Table) -> Ints:
    """Returns the highest log start that was read: what lies below it may have been deleted before it was polled."""
    read = batch.of(Kind.LOG_START)
    return per_group(read["slice"], read["position"], batch.size, how="max", start=NONE)[skipped["slice"]]


def _overtaken(batch: Batch, skipped: Table) -> Bools:
    overtaken: Bools = _log_starts_max(batch, skipped) - 1 > skipped["previous_offset"]
    return overtaken & (_log_starts_max(batch, skipped) != NONE)


def _in_last_act(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the jump is among the last words of a member that was killed while it held the partition."""
    held = ownership_epochs(batch)
    incarnation = picked(held["incarnation"], skipped["ownership_epoch"], -1)
    killed = picked(batch.incarnations["killed"], incarnation, 0) == 1
    by_exit = picked(held["closed_by"], skipped["ownership_epoch"], 0) == BY_EXIT
    closed_ns = picked(held["close_ns"], skipped["ownership_epoch"], NEVER)
    last: Bools = killed & by_exit & (skipped["jumped_ns"] >= closed_ns - TOLERANCE_NS)
    return last


SECOND_NS = 1_000_000_000


def in_flight(batch: Batch, lost: Table, commits: Ints) -> Bools:
    """Returns whether each lost record was in flight; `commits` are the first commits that cover them, -1 for none."""
    if not len(commits_in_effect(batch)) or not len(lost):
        return np.zeros(len(lost), np.bool_)
    unknown = indeterminate_commits.unknown_to_member(batch)
    crashed = picked(_crashed_soon(batch, unknown), commits, 0) == 1
    never_told = picked(unknown & ~indeterminate_commits.known_later(batch), commits, 0) == 1
    return never_told | (crashed & ~_delivered_beyond(batch, lost, commits) & ~_never_in_hand(batch, lost, commits))


def _crashed_soon(batch: Batch, unknown: Bools) -> Bools:
    """Returns for each commit whether it was its incarnation's last on the partition, and that crashed soon after.

    Soon is within the poll interval, or as long as a handler may take that declares it: no batch is in hand for
    longer, unless the member had said that it began with a record, and never ended it. A commit that its member did not
    know of counts with the one by which it tried again.
    """
    log, incarnations = commits_in_effect(batch), batch.incarnations
    order = ordered(log["slice"], log["incarnation"])
    following = next_in(joined(log["slice"], log["incarnation"])[order])
    last, latest_ns = np.zeros(len(log), np.bool_), np.full(len(log), NONE)
    is_last = following < 0
    tried_again = unknown[order] & (picked(is_last.astype(np.int64), following, 0) == 1)
    last[order] = is_last | tried_again
    latest_ns[order] = picked(log["effect_ns"][order], np.where(is_last, np.arange(len(log)), following), NONE)
    settings = batch.trial_context.settings
    soon_ns = int(max(settings.poll_interval_s, settings.handler_max_s or 0) * SECOND_NS) + TOLERANCE_NS
    crashed: Bools = picked(incarnations["crashed"], log["incarnation"], 0) == 1
    at_work = picked(incarnations["in_hand"], log["incarnation"], 0) > 0
    soon = picked(incarnations["exited_ns"], log["incarnation"], NEVER) <= latest_ns + soon_ns
    return last & crashed & (soon | at_work)


def _delivered_beyond(batch: Batch, lost: Table, commits: Ints) -> Bools:
    """Returns whether the incarnation had left each record out: by its own word it had begun a later one and never
    this one; or the broker had told it to start behind it."""
    log, begun = commits_in_effect(batch), handler_starts(batch)
    source = picked(batch.incarnations["source"], picked(log["incarnation"], commits, -1), -1)
    file = joined(*(np.concatenate(pair) for pair in ((begun["slice"], lost["slice"]), (begun["source"], source))))
    file = np.unique(file, return_inverse=True)[1]
    mine, wanted = file[: len(begun)], file[len(begun) :]
    highest = per_group(mine, begun["offset"], len(file), how="max", start=NONE)[wanted]
    order = ordered(mine, begun["offset"])
    itself = exactly(mine[order], begun["offset"][order], wanted, lost["offset"]) >= 0
    left_out: Bools = ~itself & (highest > lost["offset"])
    return left_out | _began_behind(batch, lost, commits)


def _never_in_hand(batch: Batch, lost: Table, commits: Ints) -> Bools:
    """Returns whether no fetch of the committer's incarnation can have brought each record by the time of its crash, as
    far as the request log can tell."""
    incarnation = picked(commits_in_effect(batch)["incarnation"], commits, -1)
    source, exited_ns = (picked(batch.incarnations[name], incarnation, -1) for name in ("source", "exited_ns"))
    rows = lost.only("slice", "offset").having(source=source, time_ns=exited_ns)
    # What it had asked for may be logged late; after its end it asked for nothing.
    logged = rows.having(time_ns=exited_ns + LATE_NS_MAX)
    return never_fetched(batch, rows) & never_fetched(batch, logged)


def _began_behind(batch: Batch, lost: Table, commits: Ints) -> Bools:
    """Returns whether the last position that the committer was answered, before its commit, lies behind each record."""
    log, answers, size = commits_in_effect(batch), answers_with_starts(batch), len(batch.trial_context.members) + 1
    told = at_or_before(
        answers["slice"] * size + answers["member"] + 1,
        answers["at_ns"],
        lost["slice"] * size + np.maximum(picked(log["committer"], commits, -1), -1) + 1,
        picked(log["effect_ns"], commits, NONE + LOG_TOLERANCE_NS) - LOG_TOLERANCE_NS,
    )
    behind: Bools = picked(answers["committed_offset"], told, NONE) > lost["offset"]
    return behind
