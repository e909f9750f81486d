"""Request logs: until when they tell of every request, what was fetched by whom, and when a late line really was.

A fetch that brought bytes brought records from the position asked for up to, at most, the position that the process
asked for next: whoever asks again lower down did not get further, or let it go. What nobody asked for after may have
brought anything. Requests count from when they began: an answer is in the log when it has been sent, and a broker that
was frozen writes that late.

A broker writes the line of a request after its answer, and stamps it then: on a busy machine half a second later. On
one connection the order of the request log is that of the offsets log, for a broker answers one request after the
other. So an accepted request with no commit of its position around its line is that of the last one before which is
nobody else's, if the commits of the requests before and after it on its connection stand in that order too.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import incarnation_of, members_at, members_of
from kafka_trial.model.instants import at_earliest, at_earliest_in_logs, at_latest, at_latest_in_logs
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_before,
    between,
    covering,
    first_of,
    greatest_in,
    joined,
    least_covering,
    max_before,
    min_after,
    next_in,
    ordered,
    picked,
    previous_in,
    running_max,
    starts_of,
)
from kafka_trial.model.response_delivery import issued_at_earliest_ns
from kafka_trial.model.rows import IN_TRANSACTION, Kind
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import TrialContext

FENCING: Final = (22, 25, 82, 110)  # errors that tell a member that it is out of its group: see `fencing.py`
ILLEGAL_GENERATION: Final = 22
UNKNOWN_MEMBER_ID: Final = 25
COMMITS: Final = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")
LAST_LINES_NS = 1_000_000_000  # of a broker that ends: what it did just before may not be in its log


def read_to_end(trial_context: TrialContext) -> bool:
    """Tells whether every broker's request log was read to its end."""
    logs = [name for name in trial_context.counts if name.startswith("requests-")]
    return bool(logs) and all(trial_context.witnesses.get(name) == "complete" for name in logs)


def complete_until_ns(trial_context: TrialContext) -> int:
    """Returns until when no request can be missing: all logs were read to the end (else NONE), and a broker that is
    stopped may not have written its last lines; NEVER where none was."""
    if not read_to_end(trial_context):
        return NONE
    stops = [window.injected_ns for window in trial_context.windows if window.does(Consequence.STOPS_BROKER)]
    return min(stops) - LAST_LINES_NS if stops else NEVER


@index
def position_answers(batch: Batch) -> Table:
    """Returns the positions brokers answered to members: slice, member, at_ns, committed_offset; sorted by
    the first three.

    `client`: the group member that asked, where several live in the process (-1: not told), else the process itself.
    """
    answers = batch.of(Kind.OFFSET_FETCH_ANSWER)
    answers = answers.having(
        client=members_at(batch, answers["lane"], answers["connection"], np.full(len(answers), -1)),
        member=members_of(batch, answers["lane"], otherwise=-1),
        at_ns=batch.monotonic(answers["answered_wall_ns"], answers["time_ns"]),
    )
    return answers.take((answers["error_code"] == 0) & (answers["member"] >= 0)).sorted_by("slice", "member", "at_ns")


def brought(batch: Batch, lines: Table) -> Bools:
    """Returns which lines name a record that a fetch of that process, begun by then, can have brought."""
    asks = fetches(batch)
    incarnation = incarnation_of(batch, lines["source"])
    wanted = lines["slice"] * (len(batch.incarnations) + 1) + incarnation
    vague = batch.untimed(lines["source"])  # out of a buffer: it may have been said at any time
    read_ns = np.where(vague, NEVER - 1, at_latest(lines["time_ns"]))
    said_ns = np.where(vague, NONE + 1, at_earliest(batch.earliest(lines["time_ns"])))
    got = _brought(asks, wanted, lines["offset"], read_ns)
    return got | _in_hand(asks, wanted, lines["offset"], said_ns, read_ns)


def never_fetched(batch: Batch, lines: Table) -> Bools:
    """Returns which lines name a record that no fetch of that process, begun by then, can have brought.

    Only where all request logs were read to the end, the member fetched on a lane of its own, where no two clients
    fetched the partition at once, or only spoke to its group there while others fetched, and nobody unknown did; and
    not once a broker was stopped, whose last lines may be missing.
    """
    incarnation = incarnation_of(batch, lines["source"])
    never = ~brought(batch, lines) & _can_tell(batch, lines, incarnation)
    silent = np.isin(picked(batch.incarnations["member"], incarnation, -1), _surely_not_fetching(batch.trial_context))
    return never & ~(silent & _fetched_by_anybody(batch, lines))  # it may have been handed over


@index
def timed_fetches(batch: Batch) -> Table:
    """Returns the rows FETCH_ASKED with begun_ns and answered_ns on the harness's clock: along the lines of a
    connection neither ever falls.

    A broker reads the next request of a connection only after it has logged the one before. But it stamps lines in
    whole milliseconds (Kafka 3.9), durations are more exact, and wall times are placed by the nearest pair of clocks:
    the difference can put a short fetch before the one that it followed.
    """
    asks = batch.of(Kind.FETCH_ASKED).sorted_by("slice", "source", "connection", "seq")
    answered_ns = batch.monotonic(asks["answered_wall_ns"], asks["time_ns"])
    begun_ns = answered_ns - np.maximum(asks["duration_ns"], 0)
    group = _along_connections(asks)
    answered_ns, begun_ns = (instants[running_max(group, instants)] for instants in (answered_ns, begun_ns))
    return asks.having(begun_ns=np.minimum(begun_ns, answered_ns), answered_ns=answered_ns)


@index
def fetches_issued_ns(batch: Batch) -> Ints:
    """Returns when the client of each of `timed_fetches` sent it at the earliest: what a fault held, when that began.
    Whoever asks for a higher position has had the answer to the fetch before it, on the same connection."""
    asks = timed_fetches(batch)
    before = previous_in(_along_connections(asks))
    had = (picked(asks["answered_bytes"], before, 0) > 0) & (picked(asks["error_code"], before, 0) == 0)
    had &= asks["fetch_position"] > picked(asks["fetch_position"], before, NEVER)
    answered_ns = np.where(had, picked(asks["answered_ns"], before, NONE), NONE)
    return np.minimum(asks["begun_ns"], np.maximum(issued_at_earliest_ns(batch.trial_context, asks), answered_ns))


def _along_connections(asks: Table) -> Ints:
    """Returns one number for each partition and connection, sorted; one that is not named is each its own."""
    line = np.where(asks["connection"] < 0, -1 - np.arange(len(asks)), asks["connection"])
    return np.cumsum(starts_of(asks["slice"], asks["source"], line))


def fetches(batch: Batch) -> Table:
    """Returns the fetches of members' processes: slice, group (slice and incarnation as one), begun_ns, answered_ns,
    fetch_position, got (bytes), next_position, next_ns (what the same process asked for next, and when; NEVER:
    nothing).

    Sorted by (group, begun_ns).
    """
    asks = timed_fetches(batch)
    member = members_of(batch, asks["lane"], otherwise=-1)
    incarnation = at_or_before(batch.incarnations["member"], batch.incarnations["started_ns"], member, asks["begun_ns"])
    asks = asks.having(incarnation=incarnation, group=asks["slice"] * (len(batch.incarnations) + 1) + incarnation)
    asks = asks.take(incarnation >= 0).sorted_by("group", "begun_ns", "source", "seq")
    following = next_in(asks["group"])
    return asks.only("slice", "group", "begun_ns", "answered_ns", "fetch_position").having(
        got=(asks["answered_bytes"] > 0) & (asks["error_code"] == 0),
        next_position=picked(asks["fetch_position"], following, NEVER),
        next_ns=picked(asks["begun_ns"], following, NEVER),
    )


def _brought(asks: Table, wanted: Ints, offsets: Ints, read_ns: Ints) -> Bools:
    """Returns which records lie between a position that was asked for and the next one, begun by then."""
    got = asks.take(asks["got"] & (asks["next_position"] > asks["fetch_position"]))
    begun_ns = least_covering(
        got["group"], got["fetch_position"], got["next_position"], got["begun_ns"], wanted, offsets, missing=NEVER
    )
    brought: Bools = begun_ns <= read_ns
    return brought


def _fetched_by_anybody(batch: Batch, lines: Table) -> Bools:
    """Returns which lines name a record that some fetch, begun by then, can have brought to anybody."""
    asks = timed_fetches(batch)
    asks = asks.take((asks["answered_bytes"] > 0) & (asks["error_code"] == 0)).sorted_by("slice", "begun_ns")
    lowest = -picked(-asks["fetch_position"], running_max(asks["slice"], -asks["fetch_position"]), NEVER)
    read_ns = np.where(batch.untimed(lines["source"]), NEVER - 1, at_latest(lines["time_ns"]))
    row = at_or_before(asks["slice"], asks["begun_ns"], lines["slice"], read_ns)
    fetched: Bools = picked(lowest, row, NEVER) <= lines["offset"]
    return fetched


def _in_hand(asks: Table, wanted: Ints, offsets: Ints, said_ns: Ints, read_ns: Ints) -> Bools:
    """Returns which records may have been in the answer in hand: the next position had not been asked for yet.

    Whoever seeks back may ask lower down next than the records that it had been given before.
    """
    first, end = between(asks["group"], asks["begun_ns"], wanted, said_ns, read_ns + 1)
    before = (first - 1).clip(0)
    first = np.where((first > 0) & (picked(asks["group"], before, -1) == wanted), before, first)
    lowest = greatest_in(np.where(asks["got"], -asks["fetch_position"], NONE), first, end)
    in_hand: Bools = (lowest >= 0) & (picked(asks["got"], lowest, 0) == 1)
    return in_hand & (picked(asks["fetch_position"], lowest, NEVER) <= offsets)


def _can_tell(batch: Batch, lines: Table, incarnation: Ints) -> Bools:
    """Returns of which lines the request log knows all that their process fetched."""
    trial_context = batch.trial_context
    fetching = np.concatenate([_fetching(trial_context), _surely_not_fetching(trial_context)])
    alone = np.append(~overlapping(batch) & np.isin(batch.incarnations["member"], fetching), False)
    asks = batch.of(Kind.FETCH_ASKED)
    strange = np.zeros(batch.size, np.bool_)
    strange[asks["slice"][members_of(batch, asks["lane"], otherwise=-1) < 0]] = True
    seen: Bools = alone[incarnation] & ~strange[lines["slice"]] & (lines["time_ns"] < complete_until_ns(trial_context))
    return seen


def overlapping(batch: Batch) -> Bools:
    """Returns the incarnations that another one of the same member overlaps: their fetches cannot be told apart."""
    incarnations = batch.incarnations  # by (member, started_ns)
    before = previous_in(incarnations["member"])
    ended_ns = picked(np.where(incarnations["exited_ns"] == NONE, NEVER, incarnations["exited_ns"]), before, NONE)
    late = ended_ns > incarnations["started_ns"]
    return late | np.append(late[1:], False)[: len(late)]


def _fetching(trial_context: TrialContext) -> Ints:
    """Returns the members with a lane on which something was fetched, and never by two clients at once."""
    lanes = [lane for lane in trial_context.fetching if lane in trial_context.lanes]
    shared = {trial_context.lanes.get(lane) for lane in trial_context.shared_lanes}
    return np.array(sorted({trial_context.lanes[lane] for lane in lanes} - shared), np.int64)


def _surely_not_fetching(trial_context: TrialContext) -> Ints:
    """Returns the members that asked something of their group on a lane, and never for a record, while others did; none
    where that cannot be told: a log may have gaps, a lane is shared, or strangers fetched."""
    about = trial_context
    lanes = {lane for lane in about.fetching if lane in about.lanes}
    if complete_until_ns(about) != NEVER or about.shared_lanes or not lanes or len(lanes) < len(about.fetching):
        return np.empty(0, np.int64)
    asked = {one.lane for one in about.member_spans if one.lane in about.lanes}
    return np.array(sorted({about.lanes[lane] for lane in asked - lanes}), np.int64)


LATE_NS_MAX = 5_000_000_000  # a line that is later than this is left as it is


@index
def commit_requests(batch: Batch) -> Table:
    """Returns the rows COMMIT_REQUEST; a late one was answered when its commit was taken, and took no time."""
    asked, log = batch.of(Kind.COMMIT_REQUEST).sorted_by("slice", "source", "seq"), batch.of(Kind.COMMITTED)
    wanted, stored = _targets(asked, log)
    order = ordered(stored, log["commit_wall_ns"])
    log, stored = log.take(order), stored[order]
    known = (asked["error_code"] == 0) & (asked["answered_wall_ns"] != NONE)
    began_ns = np.where(known, at_earliest_in_logs(asked["answered_wall_ns"] - asked["duration_ns"]), 0)
    until_ns = np.where(known, at_latest_in_logs(asked["answered_wall_ns"]) + 1, 1)
    first, end = between(stored, log["commit_wall_ns"], wanted, began_ns, until_ns)
    late = known & (end <= first)
    if not late.any():
        return asked
    own = known & ~late
    free = covering(wanted[own], began_ns[own], until_ns[own], stored, log["commit_wall_ns"]) == 0
    row = at_or_before(stored[free], log["commit_wall_ns"][free], wanted, began_ns)
    row = picked(np.flatnonzero(free), row, -1)
    late &= (row >= 0) & (picked(log["commit_wall_ns"], row, NEVER) >= began_ns - LATE_NS_MAX)
    row_of = np.where(own, end - 1, np.where(late, row, -1))
    place = picked(log["log_offset"], row_of, NONE)
    late &= _in_order(asked, place, own)
    late &= _the_first(row, late)
    return asked.having(
        answered_wall_ns=np.where(late, picked(log["commit_wall_ns"], row, NONE), asked["answered_wall_ns"]),
        duration_ns=np.where(late, 0, asked["duration_ns"]),
    )


def _targets(asked: Table, log: Table) -> tuple[Ints, Ints]:
    """Returns what each request asked for, and what each commit is, as numbers that are equal where these are alike."""
    whole = [rows.having(inside=rows["in_transaction"] == IN_TRANSACTION) for rows in (asked, log)]
    names = ("slice", "committed_offset", "inside")
    target = joined(*(np.concatenate([rows[name] for rows in whole]).astype(np.int64) for name in names))
    return target[: len(asked)], target[len(asked) :]


def _in_order(asked: Table, place: Ints, own: Bools) -> Bools:
    """Returns whether each place lies between those of the requests before and after it on its connection (a member's
    lane to one broker) of which the time told whose they are."""
    order = ordered(asked["slice"], asked["source"], asked["lane"], asked["seq"])
    group = joined(asked["slice"], asked["source"], asked["lane"])[order]
    at = place[order]
    low, high = (np.where(own[order], at, nobody) for nobody in (NONE, NEVER))
    before = picked(low, max_before(group, low), NONE)
    after = picked(high, min_after(group, high), NEVER)
    fits = np.zeros(len(asked), np.bool_)
    fits[order] = (before < at) & (at < after)
    return fits


def _the_first(row: Ints, late: Bools) -> Bools:
    """Returns which of the late requests is the first that fits each commit."""
    chosen = np.flatnonzero(late)
    chosen = chosen[ordered(row[chosen])]
    first = np.zeros(len(row), np.bool_)
    first[chosen[first_of(row[chosen])]] = True
    return first
