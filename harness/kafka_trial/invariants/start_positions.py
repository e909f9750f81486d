"""Restarts: which answers to OffsetFetch somebody starts from.

A member may ask where its group stands and go on where it is: a gauge does, every few seconds. So an answer is a start
only where the request log shows that the asker's next fetch of the partition begins there, and that it was not fetching
it already (the last to fetch it was another member, or a process before, or it had dropped it), or that it rewinds to
there. A fetch that is on its way when the answer comes may still be told of first. Where nobody was seen fetching the
partition, an answer inside an ownership epoch that has been delivered something is none.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants.batch import Batch, index
from kafka_trial.invariants.incarnations import incarnation_at, members_of
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    joined,
    next_in,
    per_group,
    picked,
)
from kafka_trial.invariants.ownership_epochs import deliveries, ownership_epochs
from kafka_trial.invariants.request_logs import position_answers
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table


@index
def answers_with_starts(batch: Batch) -> Table:
    """Returns the answers (`request_logs.position_answers`) with `starts`, whether somebody starts from each,
    and `fetched_ns`, when its asker was next seen to fetch the partition (NEVER: never again)."""
    answers, fetches = position_answers(batch), _fetches(batch, Kind.FETCH_ASKED)
    own = fetches.sorted_by("slice", "member", "at_ns", "source", "seq")
    group, wanted = _askers(own, answers)
    following = at_or_after(group, own["at_ns"], wanted, answers["at_ns"])
    then = picked(next_in(group), following, -1)
    position, next_position = (picked(own["fetch_position"], row, NEVER) for row in (following, then))
    before = at_or_before(group, own["at_ns"], wanted, answers["at_ns"] - 1)
    ongoing = _ongoing(batch, answers, fetches, picked(own["at_ns"], before, NONE))
    begins = ~ongoing & (following >= 0) & _is_answer(answers, position)
    rewinds = ongoing & (following >= 0) & _is_answer(answers, position)
    rewinds &= position < picked(own["fetch_position"], before, NONE)
    late = _is_answer(answers, next_position) & (next_position < position)
    seen = np.isin(answers["slice"], np.unique(fetches["slice"]))
    return answers.having(
        starts=np.where(seen, begins | rewinds | late, ~_inside_by_own_word(batch, answers)),
        fetched_ns=picked(own["at_ns"], following, NEVER),
    )


def _is_answer(answers: Table, position: Ints) -> Bools:
    """Returns whether a fetch begins where it was answered; where nothing was committed, wherever its policy says."""
    found: Bools = (position == answers["committed_offset"]) | (answers["committed_offset"] < 0)
    return found


def _ongoing(batch: Batch, answers: Table, fetches: Table, fetched_ns: Ints) -> Bools:
    """Returns whether its asker was fetching the partition when each answer came; `fetched_ns`: when it last had."""
    by_time = fetches.sorted_by("slice", "at_ns")
    last = at_or_before(by_time["slice"], by_time["at_ns"], answers["slice"], answers["at_ns"] - 1)
    dropped = _fetches(batch, Kind.FETCH_DROPPED).sorted_by("slice", "member", "at_ns")
    group, wanted = _askers(dropped, answers)
    drop = at_or_before(group, dropped["at_ns"], wanted, answers["at_ns"] - 1)
    life = incarnation_at(batch, answers["member"], answers["at_ns"])
    since_ns = np.maximum(picked(batch.lives["started_ns"], life, NONE), picked(dropped["at_ns"], drop, NONE))
    return (fetched_ns != NONE) & (fetched_ns >= since_ns) & (fetched_ns >= picked(by_time["at_ns"], last, NONE))


def _fetches(batch: Batch, kind: Kind) -> Table:
    """Returns slice, member, at_ns, fetch_position, source, seq of what members fetched, or no longer do."""
    rows = batch.of(kind)
    at_ns = batch.monotonic(rows["answered_wall_ns"], rows["time_ns"])
    member = members_of(batch, rows["lane"], otherwise=-1)
    return rows.only("slice", "fetch_position", "source", "seq").having(member=member, at_ns=at_ns).take(member >= 0)


def _askers(rows: Table, answers: Table) -> tuple[Array, Array]:
    """Returns (slice, member) of rows and of answers as numbers that are equal where both are."""
    both = joined(*(np.concatenate([rows[name], answers[name]]) for name in ("slice", "member")))
    return both[: len(rows)], both[len(rows) :]


def _inside_by_own_word(batch: Batch, answers: Table) -> Bools:
    """Returns whether each answer came inside an ownership epoch of its asker that had been delivered something."""
    given = deliveries(batch).take(deliveries(batch)["ownership_epoch"] >= 0)
    size = len(ownership_epochs(batch))
    begun_ns = per_group(given["ownership_epoch"], given["time_ns"], size, how="min", start=NEVER)
    held = ownership_epochs(batch).having(begun_ns=begun_ns).sorted_by("slice", "member", "open_ns")
    group, wanted = _askers(held, answers)
    last = at_or_before(group, held["open_ns"], wanted, answers["at_ns"])
    begun = picked(held["begun_ns"], last, NEVER) < answers["at_ns"]
    return begun & (picked(held["close_ns"], last, NONE) >= answers["at_ns"])
