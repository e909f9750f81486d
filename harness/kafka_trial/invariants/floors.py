"""Floors: where an ownership epoch had to start.

The floor is what the broker answered to that assignment's OffsetFetch, which is the one that it starts from (see
`start_positions.py`): who only asks where the group stands moves no floor. Else it is the last durable commit before it
(one may be durable although the member never saw the answer; where several are possible, the lowest); else the log
start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants import commits_log, start_positions
from kafka_trial.invariants.clients import members_at
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Ints,
    at_or_before,
    between,
    greatest_in,
    in_ranges,
    per_group,
    picked,
)
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, stacked
from kafka_trial.invariants.trial_context import LOG_TOLERANCE_NS, TOLERANCE_NS

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

ASKED_BEFORE_NS_MAX = 2_000_000_000  # how long before the callback returned a member may have asked for its position


def floors(batch: Batch) -> Ints:
    """Returns the floor of each ownership epoch: a position, the log start where nothing was committed.

    NONE for a consumer whose progress is not in Kafka: wherever it starts is right.
    """
    if not batch.trial_context.settings.in_offsets_log:
        return np.full(len(batch.ownership_epochs), NONE, np.int64)
    answered = _answered(batch)
    durable = _durable(batch)
    starts = batch.log_starts[batch.ownership_epochs["slice"]]
    floor = np.where(answered != NONE, answered, durable)
    floor = np.where(batch.vague(batch.ownership_epochs["source"]), NONE, floor)  # nobody knows when these began
    return np.where(floor < 0, starts, floor)  # -1 is the broker's word for "no commit"


def fetch_answers(batch: Batch) -> Table:
    """Returns `position_answers`, and whether somebody starts from each (`starts`), see
    `start_positions.with_starts`."""
    return start_positions.with_starts(batch, batch.position_answers)


def position_answers(batch: Batch) -> Table:
    """Returns the positions brokers answered to members: slice, member, at_ns, committed_offset; sorted by
    the first three.

    `client`: the group member that asked, where several live in the process (-1: not told), else the process itself.
    """
    answers = batch.of(Kind.FETCH_ANSWER)
    answers = answers.having(
        client=members_at(batch, answers["lane"], answers["connection"], np.full(len(answers), -1)),
        member=commits_log.members_of(batch, answers["lane"], otherwise=-1),
        at_ns=batch.monotonic(answers["answered_wall_ns"], answers["time_ns"]),
    )
    return answers.take((answers["error_code"] == 0) & (answers["member"] >= 0)).sorted_by("slice", "member", "at_ns")


def _answered(batch: Batch) -> Ints:
    """Returns the answer from which each ownership epoch starts, of those to its member between its assignment and its
    first delivery; NONE where there is none.

    Where it starts from none of them, it is held to the last one before it began to fetch. Of several clients in a
    process it is held to what it was answered itself, where its lines name it.
    """
    held, answers = batch.ownership_epochs, _by_asker(batch)
    size = batch.clients.size + 1
    asker = answers["slice"] * size + answers["member"] + 1
    wanted = held["slice"] * size + np.where(batch.holders >= 0, batch.holders, held["member"]) + 1
    ended = picked(held["close_ns"], held["before"], NONE)
    gap = np.where(held["before"] >= 0, held["open_ns"] - ended, ASKED_BEFORE_NS_MAX)
    earliest = batch.earliest(held["open_ns"]) - LOG_TOLERANCE_NS - np.clip(gap, 0, ASKED_BEFORE_NS_MAX)
    first_delivery = _first_deliveries(batch)
    latest = np.where(first_delivery == NEVER, NEVER - 1, first_delivery + LOG_TOLERANCE_NS)
    first, end = between(asker, answers["at_ns"], wanted, earliest, latest + 1)
    fetched_ns = picked(answers["fetched_ns"], np.where(first < end, first, -1), NEVER)
    unfetched = at_or_before(asker, answers["at_ns"], wanted, np.minimum(latest, fetched_ns))
    started = greatest_in(np.where(answers["starts"], np.arange(len(answers)), -1), first, end)
    starts = picked(answers["starts"].astype(np.int64), started, 0) == 1
    chosen = np.where(starts, started, np.where(first < end, unfetched, -1))
    return picked(answers["committed_offset"], chosen, NONE)


def _by_asker(batch: Batch) -> Table:
    """Returns the answers to each process and, once more, to each of several clients in one, as those of a member."""
    answers = batch.fetch_answers
    told_apart = answers.take((answers["client"] >= 0) & (answers["client"] != answers["member"]))
    both = stacked(answers, told_apart.having(member=told_apart["client"]))
    return both.sorted_by("slice", "member", "at_ns")


def _first_deliveries(batch: Batch) -> Ints:
    """Returns when each ownership epoch's work began: at its first delivery or, where a broker tells of it, first
    fetch."""
    deliveries = batch.deliveries.take(batch.deliveries["ownership_epoch"] >= 0)
    size = len(batch.ownership_epochs)
    first = per_group(deliveries["ownership_epoch"], deliveries["time_ns"], size, how="min", start=NEVER)
    return np.minimum(first, batch.ownership_epochs["begun_ns"])


def _durable(batch: Batch) -> Ints:
    """Returns the committed offset that stood when each ownership epoch opened, the lowest of those possible; else
    NONE."""
    held, log = batch.ownership_epochs, batch.commits
    by_time = log.sorted_by("slice", "effect_ns")
    sure_ns = batch.earliest(held["open_ns"]) - TOLERANCE_NS
    surely = at_or_before(by_time["slice"], by_time["effect_ns"], held["slice"], sure_ns)
    low, high = between(
        by_time["slice"],
        by_time["effect_ns"],
        held["slice"],
        sure_ns + 1,
        held["open_ns"] + TOLERANCE_NS + 1,
    )
    which, rows = in_ranges(low, high)
    lowest = per_group(which, by_time["committed_offset"][rows], len(held), how="min", start=NEVER)
    before = picked(by_time["committed_offset"], surely, NONE)
    known = np.where(before == NONE, -1, before)  # before the first commit the log start was the floor
    return np.where(lowest == NEVER, before, np.minimum(np.where(lowest == NEVER, known, lowest), known))
