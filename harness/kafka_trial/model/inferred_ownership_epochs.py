"""Inferred ownership epochs: when a member held a partition by the request log, for libraries without rebalance
callbacks.

An ownership epoch opens at the answer that gives its member the partition (SyncGroup, ConsumerGroupHeartbeat), and ends
at the answer that gives it an assignment without it, or at its leave. An assignment that lists it again opens the next
one only where the member asked for its position anew: an eager member does, a cooperative one goes on. Of a partition
that a member was never given and works on all the same (`protocol = "none"`; or without a right: `ownership_splits.py`)
its first fetch opens, and a restart: an OffsetFetch whose answer it goes back to, or without a right goes to at all,
for others move that position. Fetches that end say nothing: clients leave partitions out while they are full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.clients import file_of, members_of
from kafka_trial.model.false_assignments import uncorroborated
from kafka_trial.model.instants import at_earliest, at_earliest_in_logs, at_latest_in_logs
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    between,
    joined,
    max_before,
    next_in,
    ordered,
    picked,
    previous_in,
)
from kafka_trial.model.request_logs import position_answers, timed_fetches
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import FILE, Table, is_among, stacked, table
from kafka_trial.model.trial_context import GroupAnswer

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

COLUMNS = ("slice", "source", "member", "open_ns", "ends_ns", "proof_source", "proof_seq")


def witnessed(batch: Batch) -> Table:
    """Returns slice, source (the member's file), member, open_ns, place_ns, ends_ns, proof_source, proof_seq, begun_ns,
    begun_at, records_at, asked_ns, held_on and `taken` (nobody had given it), sorted by slice, source and open_ns.

    `place_ns` is where it opens among the lines of its file, which are read a little late: the answer to its first
    fetch with records, if it held the partition before; else a tolerance before it opened. `begun_*`: its first fetch.
    `held_on`: its file held the partition before, and nobody else since. `records_at`, `asked_ns`: the position of its
    first fetch with records, and from when on these can have been handed out, for a busy broker logs its answer late;
    NONE and NEVER without one.
    """
    given, fetched = _given(batch), fetches(batch)
    taken = _taken_by_hand(batch, fetched)
    found = stacked(
        given.having(taken=np.zeros(len(given), np.bool_)), taken.having(taken=np.ones(len(taken), np.bool_))
    )
    found = found.take(found["source"] >= 0).sorted_by("slice", "source", "open_ns")
    file = joined(found["slice"], found["source"])
    following = picked(found["open_ns"], next_in(file), NEVER)
    first = _first_fetch(fetched, found, following)
    records = fetched.take(fetched["answered_bytes"] > 0)
    with_records = _first_fetch(records, found, following)
    begun_ns = picked(fetched["at_ns"], first, NEVER)
    records_ns = picked(records["at_ns"], with_records, NEVER)
    again = np.where(records_ns == NEVER, found["open_ns"], records_ns)
    before = previous_in(file)
    held_on = (before >= 0) & ~_held_by_others_since(found, before)
    return found.having(
        ends_ns=np.minimum(found["ends_ns"], following),
        place_ns=np.where(before >= 0, again, at_earliest(found["open_ns"])),
        held_on=held_on,
        begun_ns=begun_ns,
        begun_at=picked(fetched["fetch_position"], first, NONE),
        records_at=picked(records["fetch_position"], with_records, NONE),
        asked_ns=np.maximum(picked(at_earliest_in_logs(records["asked_ns"]), with_records, NEVER), found["open_ns"]),
    )


def _held_by_others_since(found: Table, before: Ints) -> Bools:
    """Returns whether another file was given the partition since the ownership epoch before of the same one opened."""
    rank = np.empty(len(found), np.int64)
    rank[ordered(found["slice"], found["open_ns"])] = np.arange(len(found))
    between: Bools = rank - picked(rank, before, NONE) > 1
    return between


# --- by assignments ------------------------------------------------------------------------------------------------


def _given(batch: Batch) -> Table:
    """Returns the ownership epochs that brokers gave."""
    answers = [one for one in batch.trial_context.group_answers if one.member >= 0 and _settles(one)]
    pairs = _pairs(batch, answers)
    before = previous_in(joined(pairs["asker"], pairs["slice"]))
    goes_on = (before >= 0) & (picked(pairs["answer"], before, NONE) == pairs["answer"] - 1)
    fresh = ~goes_on | _asked_anew(batch, pairs)
    chain, opened = np.cumsum(fresh) - 1, pairs.take(fresh)
    last = np.zeros(len(opened), np.int64)
    last[chain] = np.arange(len(pairs))
    return opened.having(ends_ns=pairs["until_ns"][last]).only(*COLUMNS)


def _settles(answer: GroupAnswer) -> bool:
    """Tells whether an answer says what its member holds from then on: an assignment, or that it has left."""
    return answer.error == 0 and (answer.assigned is not None or answer.leaves)


def _answers(batch: Batch, answers: list[GroupAnswer]) -> Table:
    """Returns the answers in the order of each member id on its lane: `asker`, and `until_ns`, when the next came."""
    names = ("member", "lane", "member_id", "source", "seq", "time_ns", "wall_ns")
    columns = {
        name: np.array([NONE if (value := getattr(one, name)) is None else value for one in answers], np.int64)
        for name in names
    }
    told = table(**columns, number=np.arange(len(answers)))
    told = told.having(at_ns=batch.monotonic(told["wall_ns"], told["time_ns"]))
    told = told.take(ordered(told["lane"], told["member_id"], told["at_ns"], told["source"], told["seq"]))
    asker = joined(told["lane"], told["member_id"])
    return told.having(asker=asker, until_ns=picked(told["at_ns"], next_in(asker), NEVER))


def _pairs(batch: Batch, answers: list[GroupAnswer]) -> Table:
    """Returns each (answer, slice of this batch) that was given, sorted by member id, slice and time."""
    told = _answers(batch, answers)
    listed = [answers[number].assigned or () for number in told["number"].tolist()]
    answer, place = batch.listed(listed)
    pairs = table(
        answer=answer,
        slice=place,
        asker=told["asker"][answer],
        member=told["member"][answer],
        open_ns=told["at_ns"][answer],
        until_ns=told["until_ns"][answer],
        proof_source=told["source"][answer],
        proof_seq=told["seq"][answer],
    )
    pairs = pairs.having(source=file_of(batch, pairs["member"], pairs["open_ns"]))
    return pairs.take(ordered(pairs["asker"], pairs["slice"], pairs["answer"]))


def _asked_anew(batch: Batch, pairs: Table) -> Bools:
    """Returns whether the member was answered a position after each assignment, and before its next one."""
    answers = position_answers(batch)
    size = len(batch.trial_context.members) + 1
    row = at_or_after(
        answers["slice"] * size + answers["member"] + 1,
        answers["at_ns"],
        pairs["slice"] * size + pairs["member"] + 1,
        at_earliest_in_logs(pairs["open_ns"]),
    )
    anew: Bools = picked(answers["at_ns"], row, NEVER) < pairs["until_ns"]
    return anew


# --- by fetches ----------------------------------------------------------------------------------------------------


def fetches(batch: Batch) -> Table:
    """Returns slice, member, source, at_ns, asked_ns, fetch_position, answered_bytes of every fetch by a member,
    sorted by the first four."""
    asked = timed_fetches(batch)
    asked = asked.having(
        member=members_of(batch, asked["lane"], otherwise=-1),
        at_ns=asked["answered_ns"],
        proof_source=asked["source"].astype(np.int64),
        proof_seq=asked["seq"],
    )
    asked = asked.having(
        source=file_of(batch, asked["member"], asked["at_ns"]),
        asked_ns=asked["begun_ns"],
    )
    asked = asked.take((asked["source"] >= 0) & (asked["error_code"] == 0))
    return asked.sorted_by("slice", "source", "at_ns", "proof_source", "proof_seq")


def _taken_by_hand(batch: Batch, fetched: Table) -> Table:
    """Returns the ownership epochs of members that were never given the partition, and fetch all the same; not of those
    of a group that say they were given it (`false_assignments.py`)."""
    if batch.trial_context.settings.protocol != "none":
        works = is_among(fetched, batch.of(Kind.DELIVERED, Kind.PROCESSED, Kind.FAILED), *FILE)
        fetched = fetched.take(works & ~is_among(fetched, given_by_answers(batch), *FILE))
    fetched = fetched.take(~is_among(fetched, uncorroborated(batch), *FILE))
    file = joined(fetched["slice"], fetched["source"])
    highest = picked(fetched["fetch_position"], max_before(file, fetched["fetch_position"]), NONE)
    answers = position_answers(batch)
    size = len(batch.trial_context.members) + 1
    row = at_or_before(
        answers["slice"] * size + answers["member"] + 1,
        answers["at_ns"],
        fetched["slice"] * size + fetched["member"] + 1,
        at_latest_in_logs(fetched["at_ns"]),
    )
    before = previous_in(file)
    since = picked(fetched["at_ns"], before, NONE)
    fresh = (row >= 0) & (picked(answers["at_ns"], row, NONE) > since)
    back = fresh & (picked(answers["committed_offset"], row, NONE) == fetched["fetch_position"])
    if batch.trial_context.settings.protocol == "none":
        back &= fetched["fetch_position"] < highest
    opened = fetched.take((before < 0) | back)
    return opened.having(open_ns=opened["at_ns"], ends_ns=np.full(len(opened), NEVER)).only(*COLUMNS)


def given_by_answers(batch: Batch) -> Table:
    """Returns slice and source of the partitions that brokers gave members at any time, by the request log."""
    answers = [one for one in batch.trial_context.group_answers if one.assigned and not one.error and one.member >= 0]
    return _pairs(batch, answers)


def first_fetch_positions(batch: Batch, held: Table) -> Ints:
    """Returns from which position the member of each ownership epoch began to fetch, by its first fetch that was begun
    since; NONE where it is not known to have."""
    fetched = fetches(batch)
    fetched = fetched.having(at_ns=fetched["asked_ns"]).sorted_by(
        "slice", "source", "at_ns", "proof_source", "proof_seq"
    )
    return picked(fetched["fetch_position"], _first_fetch(fetched, held, held["close_ns"]), NONE)


def _first_fetch(fetched: Table, held: Table, following: Ints) -> Ints:
    """Returns the first fetch of each ownership epoch, -1 where there is none."""
    both = joined(*(np.concatenate([fetched[name], held[name]]) for name in ("slice", "source")))
    group, wanted = both[: len(fetched)], both[len(fetched) :]
    first, end = between(group, fetched["at_ns"], wanted, held["open_ns"], following)
    return np.where(first < end, first, -1)
