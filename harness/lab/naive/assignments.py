"""Assignments that brokers gave, for the naive checker: what a line that says `assigned` rests on.

A member's own line opens an ownership epoch only of what somebody gave it; and a further one begins anew only where a
broker gave reason. Both are asked only where the request log can tell: read to its end, no broker stopped before, the
member known on its lane and answered assignments there, and not one that assigns partitions to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event
from lab.naive.responses import COMMITS, FENCING, TOLERANCE_NS, api, does, error_of, sent_ns

if TYPE_CHECKING:
    from lab.naive.checker import OwnershipEpoch, Partition, Trial, Work

LAST_LINES_NS = 1_000_000_000  # of a broker that ends: what it did just before may not be in its log
FOREVER = float("inf")
LISTED_IN = {"SYNCGROUP": "entries", "CONSUMERGROUPHEARTBEAT": "assigned"}


def request_log_can_tell(trial: Trial, line: Event) -> bool:
    """All that the member of a line was answered by then is known."""
    stops = [e.time_ns for e in trial.of_kind("injected") if does(e, "stops-broker")]
    stopped = any(line.time_ns >= at_ns - LAST_LINES_NS for at_ns in stops)
    on_a_lane = any(trial.lane_member(request) == line.member for request in trial.requests)
    by_hand = trial.settings.get("protocol") == "none"
    return trial.request_logs_complete and not stopped and on_a_lane and not by_hand


def unfounded(p: Partition, source: str) -> Iterator[tuple[Event, bool]]:
    """The `assigned` lines of a file that nobody stands behind, and whether the member had the partition already.

    Each line takes a word of its own, in the request log or in the offsets log: one that is later than the word behind
    the line before it.
    """
    used, since_opened, holds = [0, 0], [0, 0], False
    for line in p.callbacks_of(source):
        opens = line.kind == "assigned"
        by_then, before, void = zip(_answers(p, line), _records(p, line), strict=True)
        for log in (0, 1):
            if not opens:  # what came after it was given up stands behind the next line
                used[log] = max(since_opened[log], min(used[log], before[log]))
            used[log] = max(used[log], void[log])
        believed = opens and (any(by_then[log] > used[log] for log in (0, 1)) or not are_known(p.trial, line))
        if believed:
            used = [max(used[log], before[log], min(used[log] + 1, by_then[log])) for log in (0, 1)]
            since_opened = since_opened if holds else list(used)
        elif opens:
            yield line, holds
        holds = opens and (holds or believed)


def given_after_a_false_line(p: Partition) -> bool:
    """A broker gave a member the partition after it had said so falsely, and it never said so again: only the answer
    opens its ownership epoch then, at a place among its lines that nobody here looks for."""
    files = {line.source for line in p.never_given} - {held.source for held in p.ownership_epochs}
    return any(
        _lists(p, answer) for line in p.never_given if line.source in files for _, answer in _settled(p.trial, line)
    )


def only_client(p: Partition, source: str) -> bool:
    """One client alone of a file's process was ever given the partition, and the request log knows of all that were."""
    return len(the_only_client(p, source)) == 1


def the_only_client(p: Partition, source: str) -> set[str]:
    """That client; nothing where there is no such one."""
    trial, member = p.trial, source.split("-")[1]
    stopped = any(does(e, "stops-broker") for e in trial.of_kind("injected"))
    clients = set()
    for answer in trial.requests:
        begun_ns = answer.time_ns - int(answer.details.get("duration_ms", 0) * 1_000_000)
        ours = trial.lane_member(answer) == member and file_at(trial, member, begun_ns) == source
        if ours and assigns(answer) and _lists(p, answer):
            clients.add(str(answer.details.get("client_id")))
    return clients if trial.request_logs_complete and not stopped and len(clients) == 1 else set()


# --- the words behind a line: how many there are by then, how many surely were before it, how many no longer count ---


def _answers(p: Partition, line: Event) -> tuple[int, int, int]:
    """Answers that list the partition. Where it was given up, those before the last answer without it do not count."""
    settled = _settled(p.trial, line)
    listing = [place for place, (_, answer) in enumerate(settled) if _lists(p, answer)]
    by_then = [place for place in listing if settled[place][0] <= p.trial.earliest_ns(line.time_ns)]
    void = 0
    if line.kind != "assigned" and line.source not in p.trial.untimed and not _of_several(p.trial, line) and by_then:
        newest = max(at for at, (at_ns, _) in enumerate(settled) if at_ns <= p.trial.earliest_ns(line.time_ns))
        run = 0
        while newest - run in by_then:
            run += 1
        void = len(by_then) - run
    return *_counted(p.trial, [settled[place][0] for place in listing], line), void


def _records(p: Partition, line: Event) -> tuple[int, int, int]:
    """Records that give the partition to the member. Those before the last one that gave it to others do not count."""
    gifts = sorted(_gifts(p), key=lambda gift: gift[0])
    by_then, before = _counted(p.trial, [at_ns for at_ns, file in gifts if file == line.source], line)
    earlier = [file for at_ns, file in gifts if at_ns <= p.trial.written_ns(line)]
    return by_then, before, before if earlier and earlier[-1] != line.source else 0


def _counted(trial: Trial, times: list[float], line: Event) -> tuple[int, int]:
    by_then = [at_ns for at_ns in times if at_ns <= line.time_ns + TOLERANCE_NS]
    return len(by_then), len([at_ns for at_ns in times if at_ns <= trial.written_ns(line)])


def are_known(trial: Trial, line: Event) -> bool:
    """The request log knows all that the incarnation of a line was given by then: at some time it was given something,
    be it nothing."""
    given = [answer for _, answer in _settled(trial, line) if assigns(answer)]
    return request_log_can_tell(trial, line) and line.source not in _side_by_side(trial, line) and bool(given)


def _side_by_side(trial: Trial, line: Event) -> set[str]:
    """The files of incarnations of one member that lived at once."""
    files = sorted((e for e in trial.of_kind("started") if e.member == line.member), key=lambda e: e.time_ns)
    ends = {e.source: e.time_ns for e in trial.of_kind("exited")}
    pairs = pairwise(files)
    return {
        e.source for one, next_one in pairs if ends.get(one.source, FOREVER) > next_one.time_ns for e in (one, next_one)
    }


def _of_several(trial: Trial, line: Event) -> bool:
    return "|" in line.source or line.source in trial.nameless


def _settled(trial: Trial, line: Event) -> list[tuple[float, Event]]:
    """When the incarnation of a line was told what it has from then on, or that it has nothing any more."""
    mine = [one for one in trial.requests if trial.lane_member(one) == line.member and (assigns(one) or _expels(one))]
    told = [(sent_ns(trial, one), one) for one in mine]
    told = [(at_ns, one) for at_ns, one in told if file_at(trial, str(line.member), at_ns) == line.source]
    return sorted(told, key=lambda one: (one[0], one[1].source, one[1].seq))


def file_at(trial: Trial, member: str, at_ns: float) -> str | None:
    """The file of the incarnation that a member was then."""
    begun = [e for e in trial.of_kind("started") if e.member == member and e.time_ns <= at_ns]
    return max(begun, key=lambda e: e.time_ns).source if begun else None


def assigns(answer: Event) -> bool:
    listed = LISTED_IN.get(api(answer))
    return listed is not None and answer.details.get(listed) is not None and not error_of(answer)


def _lists(p: Partition, answer: Event) -> bool:
    return assigns(answer) and bool(p.trial.entries(answer, p.tp, LISTED_IN[api(answer)]))


def _expels(answer: Event) -> bool:
    """It left, or a request of its group was fenced; a commit that was says nothing of what it has."""
    left = api(answer) == "LEAVEGROUP" or (answer.details.get("epoch") or 0) < 0
    return left or (error_of(answer) in FENCING and api(answer) not in COMMITS)


def _gifts(p: Partition) -> Iterator[tuple[float, str | None]]:
    """When the offsets log gave the partition to whom: in a record of the group, or of one member."""
    for record in p.trial.offsets_log:
        listed = p.trial.entries(record, p.tp) if record.kind in ("group", "member_assignment") else []
        for entry in listed:
            owner = p.trial.member_of_id.get(str(entry.get("member_id", record.details.get("member_id"))))
            at_ns = p.trial.mono_ns(record.source_wall_ns, record.time_ns)
            yield at_ns, None if owner is None else file_at(p.trial, owner, at_ns)


def was_taken(p: Partition, offset: int, effect: Event) -> bool:
    """Its member, which the offsets log never gave the partition, had fetched the record while others had that."""
    if effect.member is None or not _never_had(p, effect.member) or not p.of_others(effect.member, effect.time_ns):
        return False
    return any(
        p.trial.lane_member(one) == effect.member and entry["offset"] <= offset and entry.get("size_bytes", 0) > 0
        for one in p.trial.requests
        for entry in (p.trial.entries(one, p.tp) if api(one) == "FETCH" and one.time_ns <= effect.time_ns else ())
        if not entry.get("error") and p.of_others(effect.member, sent_ns(p.trial, one))
    )


def _never_had(p: Partition, member: str) -> bool:
    """The offsets log, read to its end, knows all members that ever had the partition, and this one is not among
    them."""
    states = {e.details.get("state") for e in p.trial.of_kind("witness") if e.source == "offsets"}
    owners = {owner for record in p.trial.offsets_log for owner in _owners(p, record)}
    return states == {"complete"} and bool(owners) and None not in owners and member not in owners


def is_without_right(p: Partition, held: OwnershipEpoch) -> bool:
    """Its member says that it has the partition, which the offsets log never gave it; and brokers gave it to others."""
    trial = p.trial
    answers = [one for one in trial.requests if _lists(p, one) and trial.lane_member(one)]
    given = {file_at(trial, str(trial.lane_member(one)), sent_ns(trial, one)) for one in answers}
    by_hand = trial.settings.get("protocol") == "none"
    return not by_hand and bool(given) and held.source not in given and _never_had(p, held.member)


def merely_claims(p: Partition, held: OwnershipEpoch) -> bool:
    """It says that it has the partition, which it neither was given nor ever fetched, by request logs that know all."""
    trial = p.trial
    stopped = any(does(e, "stops-broker") for e in trial.of_kind("injected"))
    if stopped or not trial.request_logs_complete or not is_without_right(p, held):
        return False
    asked = [one for one in trial.requests if api(one) == "FETCH" and trial.lane_member(one) == held.member]
    times = [sent_ns(trial, one) for one in asked for entry in trial.entries(one, p.tp) if not entry.get("error")]
    return held.source not in {file_at(trial, held.member, at_ns) for at_ns in times}


def _owners(p: Partition, record: Event) -> list[str | None]:
    """To which members a record of the offsets log gives the partition; None: one that was seen on no lane."""
    listed = p.trial.entries(record, p.tp) if record.kind in ("group", "member_assignment") else []
    ids = [str(entry.get("member_id", record.details.get("member_id"))) for entry in listed]
    return [p.trial.member_of_id.get(one) for one in ids]


def work_that_nobody_gave(p: Partition) -> Iterator[Work]:
    """What was begun under a line that opened nothing, while the offsets log gave the partition to others."""
    for work in p.begun:
        said = [e for e in p.callbacks_of(work.event.source) if e.seq < work.event.seq]
        under_it = bool(said) and said[-1] in p.never_given
        latest_ns = work.event.time_ns + TOLERANCE_NS
        times = (p.trial.written_ns(work.event), work.event.time_ns, latest_ns)
        if under_it and all(p.of_others(str(work.event.member), at_ns) for at_ns in times):
            yield work
