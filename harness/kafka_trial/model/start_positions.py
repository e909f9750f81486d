"""Start positions: which answers to OffsetFetch somebody starts from, and where an ownership epoch had to start.

A member may ask where its group stands and go on where it is: a gauge does, every few seconds. So an answer is a start
only where the request log shows that the asker's next fetch of the partition begins there, and that it was not fetching
it already (the last to fetch it was another member, or a process before, or it had dropped it), or that it rewinds to
there; and never while the group has given the partition to another member. A fetch that is on its way when the answer
comes may still be told of first. Where nobody was seen fetching the partition, an answer inside an ownership epoch that
has been delivered something is none.

The floor is what the broker answered to that assignment's OffsetFetch, which is the one that it starts from: who only
asks where the group stands moves no floor. Else it is the last durable commit before it (one may be durable although
the member never saw the answer; where several are possible, the lowest); else the log start.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import incarnation_at, known_clients, members_of
from kafka_trial.model.commits_log import commits_in_effect, legs_in_log
from kafka_trial.model.handlers import completions
from kafka_trial.model.inferred_ownership_epochs import fetches
from kafka_trial.model.instants import at_earliest, at_earliest_in_logs, at_latest, at_latest_in_logs
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    between,
    first_of,
    greatest_in,
    in_ranges,
    joined,
    next_in,
    ordered,
    per_group,
    picked,
)
from kafka_trial.model.ownership_epochs import deliveries, epoch_owners, ownership_epochs
from kafka_trial.model.ownership_log import others_hold
from kafka_trial.model.request_logs import position_answers, timed_fetches
from kafka_trial.model.rights import without_right
from kafka_trial.model.rows import Kind, Outcome
from kafka_trial.model.table import Table, is_among, stacked


@index
def answers_with_starts(batch: Batch) -> Table:
    """Returns the answers (`request_logs.position_answers`) with `starts`, whether somebody starts from each, `looks`,
    whether its asker did not even have the partition, and `fetched_ns`, when it was next seen to fetch it (NEVER: never
    again)."""
    answers, asked = position_answers(batch), timed_fetches(batch)
    fetches = _of_members(batch, asked, asked["answered_ns"])
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
    starts = np.where(seen, begins | rewinds | late, ~_inside_by_lines(batch, answers))
    looks = _of_no_owner(batch, answers)
    return answers.having(
        looks=looks,
        starts=starts & ~looks,
        fetched_ns=picked(own["at_ns"], following, NEVER),
    )


def _of_no_owner(batch: Batch, answers: Table) -> Bools:
    """Returns which answers went to a member that surely did not have the partition: it only looked."""
    of_no_owner = np.ones(len(answers), np.bool_)
    for at_ns in (answers["at_ns"], at_latest_in_logs(answers["at_ns"])):
        of_no_owner &= others_hold(batch, answers["slice"], answers["member"], at_ns)
    return of_no_owner


def _is_answer(answers: Table, position: Ints) -> Bools:
    """Returns whether a fetch begins where it was answered; where nothing was committed, wherever its policy says."""
    found: Bools = (position == answers["committed_offset"]) | (answers["committed_offset"] < 0)
    return found


def _ongoing(batch: Batch, answers: Table, fetches: Table, fetched_ns: Ints) -> Bools:
    """Returns whether its asker was fetching the partition when each answer came; `fetched_ns`: when it last had."""
    by_time = fetches.sorted_by("slice", "at_ns")
    last = at_or_before(by_time["slice"], by_time["at_ns"], answers["slice"], answers["at_ns"] - 1)
    dropped = _dropped(batch).sorted_by("slice", "member", "at_ns")
    group, wanted = _askers(dropped, answers)
    drop = at_or_before(group, dropped["at_ns"], wanted, answers["at_ns"] - 1)
    incarnation = incarnation_at(batch, answers["member"], answers["at_ns"])
    since_ns = np.maximum(
        picked(batch.incarnations["started_ns"], incarnation, NONE), picked(dropped["at_ns"], drop, NONE)
    )
    return (fetched_ns != NONE) & (fetched_ns >= since_ns) & (fetched_ns >= picked(by_time["at_ns"], last, NONE))


def _dropped(batch: Batch) -> Table:
    rows = batch.of(Kind.FETCH_DROPPED)
    return _of_members(batch, rows, batch.monotonic(rows["answered_wall_ns"], rows["time_ns"]))


def _of_members(batch: Batch, rows: Table, at_ns: Ints) -> Table:
    """Returns slice, member, at_ns, fetch_position, source, seq of what members fetched, or no longer do."""
    member = members_of(batch, rows["lane"], otherwise=-1)
    return rows.only("slice", "fetch_position", "source", "seq").having(member=member, at_ns=at_ns).take(member >= 0)


def _askers(rows: Table, answers: Table) -> tuple[Array, Array]:
    """Returns (slice, member) of rows and of answers as numbers that are equal where both are."""
    both = joined(*(np.concatenate([rows[name], answers[name]]) for name in ("slice", "member")))
    return both[: len(rows)], both[len(rows) :]


def _inside_by_lines(batch: Batch, answers: Table) -> Bools:
    """Returns whether each answer came inside an ownership epoch of its asker that had been delivered something."""
    given = deliveries(batch).take(deliveries(batch)["ownership_epoch"] >= 0)
    size = len(ownership_epochs(batch))
    begun_ns = per_group(given["ownership_epoch"], given["time_ns"], size, how="min", start=NEVER)
    held = ownership_epochs(batch).having(begun_ns=begun_ns).sorted_by("slice", "member", "open_ns")
    group, wanted = _askers(held, answers)
    last = at_or_before(group, held["open_ns"], wanted, answers["at_ns"])
    begun = picked(held["begun_ns"], last, NEVER) < answers["at_ns"]
    return begun & (picked(held["close_ns"], last, NONE) >= answers["at_ns"])


ASKED_BEFORE_NS_MAX = 2_000_000_000  # how long before the callback returned a member may have asked for its position


@index
def floors(batch: Batch) -> Ints:
    """Returns the floor of each ownership epoch: a position, the log start where nothing was committed.

    NONE for a consumer whose progress is not in Kafka: wherever it starts is right.
    """
    if not batch.trial_context.settings.in_offsets_log:
        return np.full(len(ownership_epochs(batch)), NONE, np.int64)
    answered = _answered(batch)
    durable = _durable(batch)
    starts = batch.log_starts[ownership_epochs(batch)["slice"]]
    floor = np.where(answered != NONE, answered, durable)
    floor = np.maximum(floor, least_after_fail_over(batch))
    floor = np.where(batch.untimed(ownership_epochs(batch)["source"]), NONE, floor)  # nobody knows when these began
    floor = np.where(without_right(batch), NONE, floor)  # and nobody told these where to start
    return np.where(floor < 0, starts, floor)  # -1 is the broker's word for "no commit"


def _legs(batch: Batch) -> Ints:
    """Returns in which leg each ownership epoch began: how often the group had failed over by then."""
    came_ns = np.array([one.at_ns for one in batch.trial_context.fail_overs], np.int64)
    legs: Ints = np.searchsorted(came_ns, ownership_epochs(batch)["open_ns"], side="right").astype(np.int64)
    return legs


def least_after_fail_over(batch: Batch) -> Ints:
    """Returns from where each ownership epoch had to begin at least if it is the first since the group failed over;
    NONE: nobody knows, or it had not failed over."""
    least = np.full((len(batch.trial_context.fail_overs) + 1, batch.size), NONE, np.int64)
    for leg, fail_over in enumerate(batch.trial_context.fail_overs, 1):
        told = [fail_over.least.get(number) for number in batch.slices.tolist()]
        least[leg] = [NONE if one is None else one for one in told]
    return least[_legs(batch), ownership_epochs(batch)["slice"]]


def begun_anywhere(batch: Batch) -> Bools:
    """Returns which ownership epochs began on another cluster before the group had committed there, where nobody knows
    from where they had to begin."""
    unknown: Bools = (_legs(batch) > 0) & (_durable(batch) < 0) & (least_after_fail_over(batch) == NONE)
    return unknown


def _answered(batch: Batch) -> Ints:
    """Returns the answer from which each ownership epoch starts, of those to its member between its assignment and its
    first delivery; NONE where there is none.

    Where it starts from none of them, it is held to the last one before it began to fetch. Of several clients in a
    process it is held to what it was answered itself, where its lines name it.
    """
    held, answers = ownership_epochs(batch), _by_asker(batch)
    size = known_clients(batch).size + 1
    asker = answers["slice"] * size + answers["member"] + 1
    wanted = held["slice"] * size + np.where(epoch_owners(batch) >= 0, epoch_owners(batch), held["member"]) + 1
    ended = picked(held["close_ns"], held["before"], NONE)
    gap = np.where(held["before"] >= 0, held["open_ns"] - ended, ASKED_BEFORE_NS_MAX)
    earliest = at_earliest_in_logs(batch.earliest(held["open_ns"])) - np.clip(gap, 0, ASKED_BEFORE_NS_MAX)
    first_delivery = _first_deliveries(batch)
    latest = np.where(first_delivery == NEVER, NEVER - 1, at_latest_in_logs(first_delivery))
    first, end = between(asker, answers["at_ns"], wanted, earliest, latest + 1)
    fetched_ns = picked(answers["fetched_ns"], np.where(first < end, first, -1), NEVER)
    unfetched = at_or_before(asker, answers["at_ns"], wanted, np.minimum(latest, fetched_ns))
    started = greatest_in(np.where(answers["starts"], np.arange(len(answers)), -1), first, end)
    starts = picked(answers["starts"].astype(np.int64), started, 0) == 1
    chosen = np.where(starts, started, np.where(first < end, unfetched, -1))
    return picked(answers["committed_offset"], chosen, NONE)


def _by_asker(batch: Batch) -> Table:
    """Returns the answers to each process and, once more, to each of several clients in one, as those of a member."""
    answers = answers_with_starts(batch).take(~answers_with_starts(batch)["looks"])
    told_apart = answers.take((answers["client"] >= 0) & (answers["client"] != answers["member"]))
    both = stacked(answers, told_apart.having(member=told_apart["client"]))
    return both.sorted_by("slice", "member", "at_ns")


def _first_deliveries(batch: Batch) -> Ints:
    """Returns when each ownership epoch's work began: at its first delivery or, where a broker tells of it, first
    fetch."""
    given = deliveries(batch).take(deliveries(batch)["ownership_epoch"] >= 0)
    size = len(ownership_epochs(batch))
    first = per_group(given["ownership_epoch"], given["time_ns"], size, how="min", start=NEVER)
    return np.minimum(first, ownership_epochs(batch)["begun_ns"])


def _durable(batch: Batch) -> Ints:
    """Returns the committed offset that stood when each ownership epoch opened, the lowest of those possible; else
    NONE."""
    held, log = ownership_epochs(batch), commits_in_effect(batch)
    committed_in, began_in = legs_in_log(batch, log), _legs(batch)
    durable = _lowest_durable(held, log.take(committed_in == 0), batch)
    for leg in range(1, len(batch.trial_context.fail_overs) + 1):  # the commits of a leg count for who began in it
        durable = np.where(began_in == leg, _lowest_durable(held, log.take(committed_in == leg), batch), durable)
    return durable


def _lowest_durable(held: Table, log: Table, batch: Batch) -> Ints:
    by_time = log.sorted_by("slice", "effect_ns")
    sure_ns = at_earliest(batch.earliest(held["open_ns"]))
    surely = at_or_before(by_time["slice"], by_time["effect_ns"], held["slice"], sure_ns)
    low, high = between(
        by_time["slice"],
        by_time["effect_ns"],
        held["slice"],
        sure_ns + 1,
        at_latest(held["open_ns"]) + 1,
    )
    which, rows = in_ranges(low, high)
    lowest = per_group(which, by_time["committed_offset"][rows], len(held), how="min", start=NEVER)
    before = picked(by_time["committed_offset"], surely, NONE)
    known = np.where(before == NONE, -1, before)  # before the first commit the log start was the floor
    return np.where(lowest == NEVER, before, np.minimum(np.where(lowest == NEVER, known, lowest), known))


# --- progress outside of Kafka -------------------------------------------------------------------------------------


@index
def starts_outside_kafka(batch: Batch) -> Ints:
    """Returns from where each ownership epoch began to work, of a consumer whose progress is not in Kafka; NONE where
    its member is not known to have fetched.

    A client may fetch before it is told to seek: from its group's committed offset, or as its reset policy says. So it
    began with the last fetch that can have brought the first record that it worked on. Where it worked on none, the
    lowest fetch since it had given the partition back counts; one from where Kafka says, only if there was no other.
    """
    held, asks = ownership_epochs(batch), fetches(batch)
    asks = asks.having(given=_given_by_kafka(batch, asks)).take(ordered(*(asks[name] for name in _BY_ASKED)))
    both = joined(*(np.concatenate([asks[name], held[name]]) for name in ("slice", "source")))
    group, wanted = both[: len(asks)], both[len(asks) :]
    since_ns = picked(held["close_ns"], held["before"], NONE)
    which, row = in_ranges(*between(group, asks["asked_ns"], wanted, since_ns, held["close_ns"]))
    asks, size = asks.take(row), len(held)
    offset, time_ns = _first_work(batch)
    brings = (asks["asked_ns"] <= time_ns[which]) & (asks["fetch_position"] <= offset[which])
    last = per_group(which[brings], np.flatnonzero(brings), size, how="max", start=-1)
    lowest, own = (
        per_group(which[these], asks["fetch_position"][these], size, how="min", start=NEVER)
        for these in (np.ones(len(asks), np.bool_), ~asks["given"])
    )
    without_work = np.where(own != NEVER, own, lowest)
    return np.where(
        last >= 0, picked(asks["fetch_position"], last, NONE), np.where(lowest == NEVER, NONE, without_work)
    )


_BY_ASKED = ("slice", "source", "asked_ns", "at_ns", "proof_source", "proof_seq")


def _given_by_kafka(batch: Batch, asks: Table) -> Bools:
    """Returns which fetches begin at the log start, or at an offset that the group's coordinator had answered."""
    answers = position_answers(batch)
    answered = answers.only("slice").having(fetch_position=answers["committed_offset"])
    at_start = asks["fetch_position"] == batch.log_starts[asks["slice"]]
    given: Bools = at_start | is_among(asks, answered, "slice", "fetch_position")
    return given


def _first_work(batch: Batch) -> tuple[Ints, Ints]:
    """Returns offset and time of the first record that each ownership epoch completed and did not discard, else of its
    first delivery; NONE without any."""
    done, said = completions(batch), batch.of(Kind.PROCESSED)
    discarded = said.take(said["outcome"] == Outcome.DISCARDED)
    done = done.take(~is_among(done, discarded, "slice", "source", "seq", "offset") & (done["begun_in"] >= 0))
    done = done.having(ownership_epoch=done["begun_in"]).sorted_by("ownership_epoch", "seq")
    given = deliveries(batch).take(deliveries(batch)["ownership_epoch"] >= 0)
    found = np.full((2, len(ownership_epochs(batch))), NONE, np.int64)
    for work in (given, done):
        first = work.take(first_of(work["ownership_epoch"]))
        found[:, first["ownership_epoch"]] = first["offset"], first["time_ns"]
    return found[0], found[1]
