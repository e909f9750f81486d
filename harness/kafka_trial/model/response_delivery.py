"""Which answers a member received: the request log says what a broker sent, never that it arrived.

An answer is surely received where no fault that holds, cuts or delays a member's traffic was in force on its lane from
the request to the answer; or, where one was, if its connection went on after the heal: a later request on the same
connection. What was held arrives with the heal, and a process that was stopped reads when it continues.

A client of KIP-848 that is not answered in time closes its connection: librdkafka, when the next heartbeat is due and
the last one has no answer. Brokers still answer the requests that wait in that connection; nobody reads those answers.
So where its broker was slow, an answer on a connection that another one replaced is surely received only if a request
on the same connection came seconds later.

What a fault holds is answered when that is over, also what a client no longer waits for. So where a broker's process
stood still, or requests were held on their way and another connection has been opened, an answer is surely received
only if a request on the same connection came seconds after the fault.

Whoever convicts for what a member was told asks `surely_received`; whoever acquits because it cannot have been told
asks `maybe_received`. A connection that is not known decides nothing: by itself it makes neither true, and neither
false.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.instants import at_earliest_in_logs, at_latest_in_logs
from kafka_trial.model.kernels import NEVER, NONE, Array, Bools, Ints, at_or_before, ordered, picked, starts_of
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import LOG_TOLERANCE_NS, TrialContext, Window
from kafka_trial.model.wall_clock import done_ns

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

# Under all others a member's answers are left alone until the fault is over (`_may_be_given_up`): a broker that is down
# sends none, and what it had sent arrives.
LATE_OR_LOST: Final = (Consequence.LOSES_ANSWERS, Consequence.DELAYS_ANSWERS, Consequence.FREEZES)


SLOW_ANSWER_NS: Final = 500_000_000  # sooner no client closes its connection: half a heartbeat interval of KIP-848 here
SLOW_BEFORE_NS: Final = 2_000_000_000  # before a request: it may have waited for the answer to one before it
STILL_OPEN_NS: Final = 5_000_000_000  # after an answer or a heal: nothing waits so long in a connection that was closed


def surely_received(trial_context: TrialContext, answers: Table) -> Bools:
    """Returns which answers their members received for certain; `answers` as in `received_ns`."""
    received: Bools = received_ns(trial_context, answers) != NEVER
    return received


def maybe_received(trial_context: TrialContext, answers: Table) -> Bools:
    """Returns which answers their members may have received: all but those held or cut, whose connection is known to
    have ended with the fault; `answers` as in `received_ns`."""
    fault = _faults_of(trial_context, answers)
    known = answers["connection"] >= 0
    went_on = (fault["end_ns"] == NONE) | (_last_request_ns(trial_context, answers) > fault["end_ns"])
    maybe: Bools = went_on | ~known | ~fault["cut"]
    return maybe


def received_ns(trial_context: TrialContext, answers: Table) -> Ints:
    """Returns when each answer was received at the latest, NEVER where that is not certain.

    Columns of `answers`: `source` (of the request log's line), `lane`, `connection` (its number, -1 unknown),
    `begun_ns` (when the broker got the request) and `sent_ns` (when it answered), on the harness's clock.
    """
    fault = _faults_of(trial_context, answers)
    last_request_ns = _last_request_ns(trial_context, answers)
    sent_ns = answers["sent_ns"].astype(np.int64)
    inside = np.where(last_request_ns > fault["end_ns"], np.maximum(sent_ns, fault["end_ns"]), NEVER)
    received = np.where(fault["end_ns"] == NONE, sent_ns, inside)
    closed = _from_slow_brokers(trial_context, answers) & (last_request_ns <= sent_ns + STILL_OPEN_NS)
    closed &= _replaced_ns(trial_context, answers, consumer_protocol=True) != NONE
    return np.where(closed | _may_be_given_up(trial_context, answers, last_request_ns), NEVER, received)


def _may_be_given_up(trial_context: TrialContext, answers: Table, last_request_ns: Ints) -> Bools:
    """Returns which answers may be to requests that a fault held until their client had closed the connection: sent
    since it began, to requests that a broker read until soon after it healed, on a connection that was used no more
    later. Whoever closes one to a broker that runs opens another one."""
    found = np.zeros(len(answers), np.bool_)
    group = _group(trial_context, answers["source"], answers["lane"])
    replaced_ns = _replaced_ns(trial_context, answers)
    for window, since_ns, over_ns in _holding(trial_context):
        until_ns = min(NEVER, over_ns + STILL_OPEN_NS)
        waited = (answers["sent_ns"] >= since_ns) & (answers["begun_ns"] <= until_ns) & (last_request_ns <= until_ns)
        waited &= (replaced_ns >= since_ns) | window.does(Consequence.FREEZES_BROKER)
        found |= waited & np.isin(group, [*_reached(trial_context, window)])
    return found


def issued_at_earliest_ns(trial_context: TrialContext, requests: Table) -> Ints:
    """Returns when the clients of some requests (source, lane, begun_ns) sent them at the earliest: what a fault holds
    is read by the broker, and dated, when that is over; by one that stood still, within seconds."""
    begun_ns = requests["begun_ns"].astype(np.int64)
    earliest_ns, group = begun_ns.copy(), _group(trial_context, requests["source"], requests["lane"])
    for window, since_ns, over_ns in _holding(trial_context):
        until_ns = min(NEVER, over_ns + STILL_OPEN_NS * window.does(Consequence.FREEZES_BROKER))
        held = (begun_ns >= since_ns) & (begun_ns <= until_ns) & np.isin(group, [*_reached(trial_context, window)])
        earliest_ns[held] = np.minimum(earliest_ns[held], since_ns)
    return earliest_ns


def _holding(trial_context: TrialContext) -> Iterator[tuple[Window, int, int]]:
    """Yields the faults that hold requests, since when, and until when: on the way, or in the sockets of a broker whose
    process stands still."""
    for window in trial_context.windows:
        on_the_way = window.does(Consequence.CUTS_OFF) and window.does(Consequence.LEAVES_REQUESTS_OPEN)
        if on_the_way or window.does(Consequence.FREEZES_BROKER):
            over_ns = NEVER if window.healed_ns is None else window.healed_ns + LOG_TOLERANCE_NS
            yield window, window.begun_ns - LOG_TOLERANCE_NS, over_ns


def _replaced_ns(trial_context: TrialContext, answers: Table, *, consumer_protocol: bool = False) -> Ints:
    """Returns when the last connection later than that of each answer, from the same lane to the same broker, was
    opened; NONE where there is none, or the connection is not known. `consumer_protocol`: among those with heartbeats
    of KIP-848 alone."""
    connections = trial_context.connections
    first_ns = done_ns(trial_context, [(one.first_wall_ns, one.first_time_ns) for one in connections])
    counted = [one.consumer_protocol or not consumer_protocol for one in connections]
    latest: dict[tuple[int, int], int] = {}
    for one, at_ns, counts in zip(connections, first_ns, counted, strict=True):
        if counts:
            latest[one.source, one.lane] = max(latest.get((one.source, one.lane), NONE), at_ns)
    last_ns = [
        latest.get((one.source, one.lane), NONE) if counts else NONE
        for one, counts in zip(connections, counted, strict=True)
    ]
    later = [last if last > own else NONE for last, own in zip(last_ns, first_ns, strict=True)]
    found: Ints = np.array([*later, NONE], np.int64)[answers["connection"]]
    return found


def _last_request_ns(trial_context: TrialContext, answers: Table) -> Ints:
    """Returns when the last request on the connection of each answer began; NONE where that is not known."""
    last_ns = done_ns(trial_context, [(one.last_wall_ns, one.last_time_ns) for one in trial_context.connections])
    found: Ints = np.array([*last_ns, NONE], np.int64)[answers["connection"]]
    return found


def _from_slow_brokers(trial_context: TrialContext, answers: Table) -> Bools:
    """Returns which answers are of brokers that were slow then, or just before."""
    slow, found = trial_context.slow_answers, np.zeros(len(answers), np.bool_)
    if not slow:
        return found
    end_ns = np.array(done_ns(trial_context, [(one.wall_ns, one.time_ns) for one in slow]), np.int64)
    begin_ns = end_ns - np.array([one.duration_ns for one in slow], np.int64)
    source = np.array([one.source for one in slow], np.int64)
    for broker in np.unique(answers["source"]).tolist():
        own, rows = np.flatnonzero(source == broker), np.flatnonzero(answers["source"] == broker)
        if len(own):
            own = own[np.argsort(begin_ns[own], kind="stable")]
            reach_ns = np.maximum.accumulate(end_ns[own])
            last = np.searchsorted(begin_ns[own], answers["sent_ns"][rows], side="right") - 1
            found[rows] = (last >= 0) & (reach_ns[last] >= answers["begun_ns"][rows] - SLOW_BEFORE_NS)
    return found


def answers_of(batch: Batch, requests: Table) -> Table:
    """Returns rows of requests (COMMIT_REQUEST, FETCH_ASKED, …) as `answers`, one each."""
    sent_ns = batch.monotonic(requests["answered_wall_ns"], requests["time_ns"])
    return requests.only("source", "lane", "connection").having(
        begun_ns=sent_ns - requests["duration_ns"], sent_ns=sent_ns
    )


def _faults_of(trial_context: TrialContext, answers: Table) -> Table:
    """Returns for each answer the end of the faults in force between request and answer (NONE: there was none).

    `cut`: one of them was cutting, and the answer was sent well inside, by any clock.
    """
    held = _spans(trial_context)
    lanes = np.array([*trial_context.lanes], np.int64)
    group = _group(trial_context, answers["source"], answers["lane"])
    last = at_or_before(held["group"], held["begin_ns"], group, answers["sent_ns"])
    end_ns = picked(held["end_ns"], last, NONE)
    outside = (last < 0) | (end_ns < answers["begun_ns"]) | ~np.isin(answers["lane"], lanes)
    well_inside = (answers["sent_ns"] >= picked(held["begin_ns"], last, NONE) + 2 * LOG_TOLERANCE_NS) & (
        answers["sent_ns"] <= np.maximum(end_ns, 0) - 2 * LOG_TOLERANCE_NS
    )
    cut = ~outside & well_inside & (picked(held["cut"], last, 0) == 1)
    return table(end_ns=np.where(outside, NONE, end_ns), cut=cut)


def _spans(trial_context: TrialContext) -> Table:
    """Returns the stretches of time with faults in force, those that touch as one: by lane and broker, sorted."""
    rows = np.array([*_late_or_lost(trial_context)], np.int64).reshape(-1, 4)
    group, begun_ns, healed_ns, cut = rows[ordered(rows[:, 0], rows[:, 1])].T
    begin_ns, end_ns = at_earliest_in_logs(begun_ns), at_latest_in_logs(healed_ns)
    fresh, reach = starts_of(group), NONE
    for row in range(len(rows)):  # faults, not events: some dozens at most
        fresh[row] |= begin_ns[row] > reach
        reach = end_ns[row] if fresh[row] else max(reach, end_ns[row])
    first = np.flatnonzero(fresh)
    ends, cuts = (np.maximum.reduceat(part, first) if len(first) else part for part in (end_ns, cut))
    return table(group=group[first], begin_ns=begin_ns[first], end_ns=ends, cut=cuts)


def _late_or_lost(trial_context: TrialContext) -> Iterator[tuple[int, int, int, int]]:
    """Yields (group, begin, end, cut) of each fault for every lane and request log that it reaches."""
    for window in trial_context.windows:
        if window.does(*LATE_OR_LOST):
            end_ns = NEVER if window.healed_ns is None else window.healed_ns
            for group in _reached(trial_context, window):
                yield group, window.begun_ns, end_ns, int(window.does(Consequence.LOSES_ANSWERS))


def _reached(trial_context: TrialContext, window: Window) -> Iterator[int]:
    """Yields the lanes and request logs, as groups, between which a fault is on the way."""
    logs = [number for number, name in enumerate(trial_context.sources) if name.startswith("requests-")]
    for lane, member in trial_context.lanes.items():
        for log in logs:
            if _reaches(window, trial_context.members[member], trial_context.sources[log]):
                yield int(_group(trial_context, np.array([log]), np.array([lane]))[0])


def _reaches(window: Window, member: str, log: str) -> bool:
    """Tells whether a fault is on the way between a member and the broker of a request log."""
    if window.member is not None:
        return window.member == member
    name = window.target.rpartition(":")[2].strip()
    broker = name[:1] == "b" and name[1:].isdigit()
    return log == f"requests-{name}" if broker else True


def _group(trial_context: TrialContext, sources: Array, lanes: Array) -> Ints:
    return lanes.astype(np.int64) * (len(trial_context.sources) + 1) + sources
