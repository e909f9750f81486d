"""Summaries: every slice as one row, for what must be judged of all slices at once (`liveness.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model import commits_log
from kafka_trial.model.commits import commit_regressions
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.handlers import finished_handlers, first_handled_of_records
from kafka_trial.model.inferred_ownership_epochs import fetches as member_fetches
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    between,
    counts,
    covering,
    joined,
    next_in,
    ordered,
    per_group,
    picked,
)
from kafka_trial.model.movements import fetched_ns, in_hand_since_ns, last_ns, longest_gap_ns, movements, progress
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.rebalances import ended_by_rebalances
from kafka_trial.model.rights import surely_without_right
from kafka_trial.model.rows import Kind
from kafka_trial.model.start_positions import starts_outside_kafka
from kafka_trial.model.stuck_classes import last_fetches, stuck_class
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import TrialContext

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

COMMITS_MIN = 20  # so many commits tell how long one takes

# The columns of a summary; see `summaries`.
SUMMARY = (
    "slice",
    "records",
    "end",
    "committed",
    "open",
    "lag",
    "all_handled_ns",
    "converged_ns",
    "moved_ns",
    "gap_ns",
    "fetched_ns",
    "progressed_ns",
    "in_hand_since_ns",
    "stuck_class",
    "last_fetch_error",
    "last_fetch_ns",
    "backlog",
    "longest_ns",
    "open_offset",
    "open_source",
    "open_seq",
    "commit_source",
    "commit_seq",
    "regression_source",
    "regression_seq",
    "fresh",
    "revocations",
    "revocations_met",
    "commit_took_before_ns",
    "commit_took_in_drain_ns",
)


def summaries(batch: Batch) -> Table:
    """Returns one row a slice (numbered as in the trial context), in the light of the snapshot.

    records, end, committed (NONE: none), open (records at or above the committed offset not handled, nor given up, see
    `_is_given_up`), lag (records at or above it), all_handled_ns, converged_ns (since when all was handled and
    committed; NEVER: not), stuck_class (a place in CLASSES), last_fetch_error and last_fetch_ns (of the owner's last
    fetch; NONE: there is none), backlog (at the beginning of the drain), longest_ns (handler, before the faults),
    regression_seq and regression_source (of the backward commit that stands, -1: none), fresh (records that were
    appended since a member last got the partition), revocations and revocations_met (ownership epochs that a rebalance
    ended, and those that may have had a record in hand then, see `rebalances.py`),
    commit_took_before_ns and commit_took_in_drain_ns (the median that brokers took for a commit, before the faults and
    in the drain; NONE: there were too few).

    By `movements.py`, NONE where there is none: moved_ns (the last movement), gap_ns (the longest time between two that
    followed one another), fetched_ns (the last fetch that came further), progressed_ns, in_hand_since_ns.
    """
    at_ns = snapshot_ns(batch.trial_context)
    committed = _progress(batch, at_ns)
    records = batch.records
    rest = (records["offset"] >= committed[records["slice"]]) & ~_is_given_up(batch, at_ns)
    undone = rest & (first_handled_of_records(batch).time_ns > at_ns)
    done_ns = per_group(
        records["slice"][rest], first_handled_of_records(batch).time_ns[rest], batch.size, how="max", start=NONE
    )
    moved = movements(batch, at_ns)
    regression, commit = _standing_regression(batch, at_ns), _last_commit(batch, at_ns)
    last_fetch = last_fetches(batch, at_ns)
    revocations, revocations_met = ended_by_rebalances(batch, at_ns)
    return table(
        slice=batch.slices,
        records=counts(records["slice"], batch.size),
        end=batch.ends,
        committed=committed,
        open=counts(records["slice"][undone], batch.size),
        lag=counts(records["slice"][rest], batch.size),
        all_handled_ns=done_ns,
        converged_ns=_converged_ns(batch, committed, np.where(done_ns > at_ns, NEVER, _last_handled_ns(batch, at_ns))),
        moved_ns=last_ns(batch, moved),
        gap_ns=longest_gap_ns(batch, moved),
        fetched_ns=fetched_ns(batch, at_ns),
        progressed_ns=last_ns(batch, progress(batch, at_ns)),
        in_hand_since_ns=in_hand_since_ns(batch, at_ns),
        stuck_class=stuck_class(batch, records.take(undone), at_ns),
        last_fetch_error=last_fetch["error"],
        last_fetch_ns=last_fetch["answered_ns"],
        backlog=_backlog(batch),
        longest_ns=_longest_ns(batch),
        open_offset=per_group(records["slice"][undone], records["offset"][undone], batch.size, how="min", start=NEVER),
        open_source=_first_undone(batch, records.take(undone), "source"),
        open_seq=_first_undone(batch, records.take(undone), "seq"),
        commit_source=picked(commits_in_effect(batch)["source"], commit, -1),
        commit_seq=picked(commits_in_effect(batch)["seq"], commit, -1),
        regression_source=picked(commits_in_effect(batch)["source"], regression, -1),
        regression_seq=picked(commits_in_effect(batch)["seq"], regression, -1),
        fresh=_fresh(batch),
        revocations=revocations,
        revocations_met=revocations_met,
        **_commit_durations(batch, at_ns),
    )


def snapshot_ns(trial_context: TrialContext) -> int:
    return NEVER - 1 if trial_context.snapshot_ns is None else trial_context.snapshot_ns


def _progress(batch: Batch, at_ns: int) -> Ints:
    """Returns the committed offset of each slice at that time; NONE for all where progress is not in Kafka."""
    if not batch.trial_context.settings.in_offsets_log:
        return np.full(batch.size, NONE, np.int64)
    return commits_log.committed_at(batch, at_ns)


def _is_given_up(batch: Batch, at_ns: int) -> Bools:
    """Returns which of `batch.records` are given up at that time.

    Under at-most-once "messages may be lost but are never redelivered" (Kafka, Message Delivery Semantics). Where
    progress is not in Kafka, nobody sees up to where a member stored its position before the work. But it stores none
    that lies beyond what it was brought; and whoever has the partition, or last had, asks for none that lie below where
    it began to work: in this process, since it had given it back before. Whoever only looks at the log, and never has
    the partition, gives nothing up; nor does who only says that it has it, or took it, while the group gave it to
    others.
    """
    settings, records = batch.trial_context.settings, batch.records
    if settings.in_offsets_log or settings.delivery != "at-most-once":
        return np.zeros(len(records), np.bool_)
    held = ownership_epochs(batch)
    own = held.having(began=starts_outside_kafka(batch), since_ns=picked(held["close_ns"], held["before"], NONE))
    own = own.take((own["open_ns"] <= at_ns) & (own["began"] != NONE) & ~surely_without_right(batch))
    own = own.sorted_by("slice", "open_ns")
    newest = np.full(batch.size, -1, np.int64)
    newest[own["slice"]] = np.arange(len(own))  # sorted: the last one is written last
    below = records["offset"] < picked(own["began"], newest, NONE)[records["slice"]]
    asks = member_fetches(batch)
    following = next_in(joined(asks["slice"], asks["source"]))
    asks = asks.having(next_position=picked(asks["fetch_position"], following, NEVER))
    mine = asks["source"] == picked(own["source"], newest, -1)[asks["slice"]]
    mine &= asks["asked_ns"] >= picked(own["since_ns"], newest, NEVER)[asks["slice"]]
    got = asks.take((asks["answered_bytes"] > 0) & ~mine)
    until = np.where(got["next_position"] > got["fetch_position"], got["next_position"], NEVER)
    brought = covering(got["slice"], got["fetch_position"], until, records["slice"], records["offset"]) > 0
    return below & brought


def _converged_ns(batch: Batch, committed: Ints, done_ns: Ints) -> Ints:
    """Returns since when each slice was done and, where progress is in Kafka, committed to its end; NEVER if not."""
    at_ns = snapshot_ns(batch.trial_context)
    settings = batch.trial_context.settings
    handled_ns = np.full(batch.size, NONE) if settings.delivery == "at-most-once" else done_ns
    if not settings.in_offsets_log:
        return np.where(handled_ns > at_ns, NEVER, handled_ns)
    reached_ns = _reached_end_ns(batch, at_ns)
    whole = (committed >= batch.ends) & (handled_ns <= at_ns)
    return np.where(whole, np.maximum(handled_ns, reached_ns), NEVER)


def _last_handled_ns(batch: Batch, at_ns: int) -> Ints:
    """Returns when the last record that was handled at all was so; a record that was skipped does not make it late."""
    done_ns = first_handled_of_records(batch).time_ns
    seen = done_ns <= at_ns
    return per_group(batch.records["slice"][seen], done_ns[seen], batch.size, how="max", start=NONE)


def _reached_end_ns(batch: Batch, at_ns: int) -> Ints:
    """Returns when the committed offset of each slice came to its end, to stay there until the snapshot."""
    log = commits_in_effect(batch).take(commits_in_effect(batch)["effect_ns"] <= at_ns)
    short = log["committed_offset"] < batch.ends[log["slice"]]
    last_short = per_group(log["slice"][short], log["log_offset"][short], batch.size, how="max", start=NONE)
    stays = log.take(~short & (log["log_offset"] > last_short[log["slice"]]))
    return per_group(stays["slice"], stays["effect_ns"], batch.size, how="min", start=NEVER)


def _fresh(batch: Batch) -> Ints:
    """Returns how many records came to each slice since a member last got it: by its own word, else by the group's."""
    held = ownership_epochs(batch)
    early = held["open_ns"] <= snapshot_ns(batch.trial_context)
    since_ns = per_group(held["slice"][early], held["open_ns"][early], batch.size, how="max", start=NONE)
    records = batch.records
    return counts(records["slice"][records["appended_ns"] >= since_ns[records["slice"]]], batch.size)


def _commit_durations(batch: Batch, at_ns: int) -> dict[str, Ints]:
    """Returns how long brokers took for the members' commits of each slice, before the faults and in the drain."""
    calm_until_ns, drain_ns = batch.trial_context.undisturbed_until_ns, batch.trial_context.drain_ns
    asked = batch.of(Kind.COMMIT_REQUEST)
    asked = asked.take((asked["error_code"] == 0) & (asked["lane"] >= 0))
    answered_ns = batch.monotonic(asked["answered_wall_ns"], asked["time_ns"])
    calm = answered_ns < (NEVER if calm_until_ns is None else calm_until_ns)
    drain = (answered_ns >= (NEVER if drain_ns is None else drain_ns)) & (answered_ns <= at_ns)
    return {
        "commit_took_before_ns": _median(asked["slice"][calm], asked["duration_ns"][calm], batch.size),
        "commit_took_in_drain_ns": _median(asked["slice"][drain], asked["duration_ns"][drain], batch.size),
    }


def _median(group: Array, values: Array, size: int) -> Ints:
    """Returns the lower median of each group's values; NONE where there are fewer than `COMMITS_MIN`."""
    order = ordered(group, values)
    number = counts(group, size)
    middle = np.cumsum(number) - number + np.maximum(number - 1, 0) // 2
    return np.where(
        number >= COMMITS_MIN, picked(values[order], np.where(number >= COMMITS_MIN, middle, -1), NONE), NONE
    )


def _longest_ns(batch: Batch) -> Ints:
    """Returns how long a record was in its handler, at most, before the faults: a hang in them excuses nobody."""
    until_ns = batch.trial_context.undisturbed_until_ns
    done = finished_handlers(batch).take(
        finished_handlers(batch)["end_ns"] <= (NEVER if until_ns is None else until_ns)
    )
    return per_group(done["slice"], done["end_ns"] - done["start_ns"], batch.size, how="max", start=0)


def _backlog(batch: Batch) -> Ints:
    """Returns how many records were left when the drain began: not handled, or not committed past; the greater.

    Of a consumer whose handling nobody sees, what was not committed past.
    """
    drain_ns = batch.trial_context.drain_ns
    if drain_ns is None:
        return np.zeros(batch.size, np.int64)
    records = batch.records
    settings = batch.trial_context.settings
    unhandled = counts(records["slice"][first_handled_of_records(batch).time_ns > drain_ns], batch.size)
    if not settings.in_offsets_log:
        return unhandled
    committed = _progress(batch, drain_ns)
    first, end = between(
        records["slice"], records["offset"], np.arange(batch.size), committed, np.full(batch.size, NEVER)
    )
    uncommitted: Ints = end - first
    return uncommitted if settings.silent else np.maximum(unhandled, uncommitted)


def _standing_regression(batch: Batch, at_ns: int) -> Ints:
    """Returns the backward commit that none had recovered by then, for each slice; -1 if there is none."""
    episodes = commit_regressions(batch)
    fell_ns = picked(commits_in_effect(batch)["effect_ns"], episodes["fell_row"], NEVER)
    back_ns = picked(commits_in_effect(batch)["effect_ns"], episodes["recovered_row"], NEVER)
    standing = episodes.take((fell_ns <= at_ns) & (back_ns > at_ns))
    found = np.full(batch.size, -1, np.int64)
    found[standing["slice"]] = standing["fell_row"]
    return found


def _last_commit(batch: Batch, at_ns: int) -> Ints:
    """Returns the last commit by then, for each slice; -1 if there is none."""
    rows = np.flatnonzero(commits_in_effect(batch)["effect_ns"] <= at_ns)
    found = np.full(batch.size, -1, np.int64)
    found[commits_in_effect(batch)["slice"][rows]] = rows
    return found


def _first_undone(batch: Batch, undone: Table, column: str) -> Ints:
    found = np.full(batch.size, -1, np.int64)
    found[undone["slice"][::-1]] = undone[column][::-1]  # sorted: the first one is written last
    return found
