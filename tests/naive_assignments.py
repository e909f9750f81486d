"""Assignments that brokers gave, for the naive checker: what a line that says `assigned` rests on.

A member's own line opens a possession only of what somebody gave it; and a further one begins anew only where a broker
gave reason. Both are asked only where the request log can tell: read to its end, no broker stopped before, the member
known on its lane and answered assignments there, and not one that assigns partitions to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event
from naive_told import TOLERANCE_NS, api, error_of, sent_ns

if TYPE_CHECKING:
    from naive_checker import Partition, Trial, Work

STOPS_A_BROKER = ("broker-kill", "broker-restart", "broker-pause", "rolling-restart")
LAST_LINES_NS = 1_000_000_000  # of a broker that ends: what it did just before may not be in its log
LISTED_IN = {"SYNCGROUP": "entries", "CONSUMERGROUPHEARTBEAT": "assigned"}


def request_log_can_tell(trial: Trial, line: Event) -> bool:
    """All that the member of a line was answered by then is known."""
    stops = [e.time_ns for e in trial.of_kind("injected") if e.details.get("fault") in STOPS_A_BROKER]
    stopped = any(line.time_ns >= at_ns - LAST_LINES_NS for at_ns in stops)
    on_a_lane = any(trial.lane_member(request) == line.member for request in trial.requests)
    by_hand = trial.facts.get("protocol") == "none"
    return trial.request_logs_complete and not stopped and on_a_lane and not by_hand


def was_never_given(p: Partition, line: Event, given_up: Event | None) -> bool:
    """No answered assignment and no record of the offsets log gave the member the partition by the time of its line,
    since it had given it up itself."""
    if not _assignments_are_known(p.trial, line):
        return False
    until_ns = line.time_ns + TOLERANCE_NS
    since_ns = float("-inf") if given_up is None else p.trial.written_ns(given_up)
    given = [*_answered_ns(p, str(line.member)), *_recorded_ns(p, str(line.member))]
    return not any(since_ns <= at_ns <= until_ns for at_ns in given)


def goes_on(p: Partition, opened: Event, line: Event) -> bool:
    """A further line for what its member has, and no broker gave it the partition again since the possession opened."""
    if not _assignments_are_known(p.trial, line):
        return False
    times = _answered_ns(p, str(line.member)), _recorded_ns(p, str(line.member))
    return not any(_again(p, opened, line, list(given)) for given in times)


def _again(p: Partition, opened: Event, line: Event, given: list[float]) -> bool:
    """It was given once more: after the first line was read, or twice since that may have been written."""
    by_then = [at_ns for at_ns in given if at_ns <= line.time_ns + TOLERANCE_NS]
    later = [at_ns for at_ns in by_then if at_ns > opened.time_ns]
    around = [at_ns for at_ns in by_then if at_ns >= p.trial.written_ns(opened)]
    return bool(later) or len(around) > 1


def _assignments_are_known(trial: Trial, line: Event) -> bool:
    return request_log_can_tell(trial, line) and bool(list(_assignments(trial, str(line.member))))


def _assignments(trial: Trial, member: str) -> Iterator[Event]:
    """The answers in a member's lane that tell it what it has from then on."""
    for request in trial.requests:
        listed = LISTED_IN.get(api(request))
        told = listed is not None and request.details.get(listed) is not None
        if told and not error_of(request) and trial.lane_member(request) == member:
            yield request


def _answered_ns(p: Partition, member: str) -> Iterator[float]:
    """When assignments that list the partition were answered."""
    for request in _assignments(p.trial, member):
        if p.trial.entries(request, p.tp, LISTED_IN[api(request)]):
            yield sent_ns(p.trial, request)


def _recorded_ns(p: Partition, member: str) -> Iterator[float]:
    """When the offsets log gave it to a member id of the member: in a record of the group, or of one member."""
    for record in p.trial.offsets_log:
        listed = p.trial.entries(record, p.tp) if record.kind in ("group", "member_assignment") else []
        ids = [entry.get("member_id", record.details.get("member_id")) for entry in listed]
        if any(p.trial.member_of_id.get(str(member_id)) == member for member_id in ids):
            yield p.trial.mono_ns(record.source_wall_ns, record.time_ns)


def work_that_nobody_gave(p: Partition) -> Iterator[Work]:
    """What was begun under a line that opened nothing, while the offsets log gave the partition to others."""
    for work in p.begun:
        said = [e for e in p.callbacks_of(work.event.source) if e.seq < work.event.seq]
        under_it = bool(said) and said[-1] in p.never_given
        if under_it and p.of_others(str(work.event.member), work.event.time_ns - TOLERANCE_NS):
            yield work
