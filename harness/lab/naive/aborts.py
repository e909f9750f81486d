"""Attempts of consumers that work in transactions, for the naive checker: what one that was given up has undone.

A transaction is aborted in all partitions that it has. Which partitions share their transactions is asked of the
requests that hand positions in; where nobody can tell, the attempt may have ended.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

from kafka_trial.history.event import Event
from lab.naive import assignments as naive_assignments
from lab.naive import clients as naive_clients
from lab.naive.responses import TOLERANCE_NS, api, error_of, received_ns

if TYPE_CHECKING:
    from lab.naive.checker import Partition, Trial, Work

SECOND_NS = 1_000_000_000


def in_this_attempt(p: Partition, work: Work, others: list[Work], *, only_committed: bool = False) -> list[Work]:
    """Those before it in its ownership epoch, but for what has been undone since. Where the record itself had been
    committed when its attempt began, all of them; `only_committed`: of the earlier attempts those that had been
    committed too."""
    same = [other for other in others if other.ownership_epoch == work.ownership_epoch]
    before = [other for other in same if other.event.seq < work.event.seq]
    ends = [line for line in p.attempts_ended(work.event.source) if line.seq <= work.event.seq]
    committed = _committed(p, work, ends[-1]) if ends else -1
    last = max((line.seq for line in ends), default=-1)
    inside = [other for other in before if other.event.seq > last]
    if ends and work.offset >= committed:
        return inside
    return [other for other in before if not (ends and only_committed) or other.offset < committed or other in inside]


def may_be_aborted(trial: Trial) -> bool:
    """Some member says that it gave anything up."""
    return any(_gives_up(line) for line in trial.as_given)


def ended(p: Partition, source: str) -> list[Event]:
    """The lines of a file that ended, or may have ended, what its client was doing in the partition."""
    if not p.trial.progress_in_transactions:
        return []
    lines = [line for line in p.trial.as_given if line.source == source.split("|")[0] and _gives_up(line)]
    told = {line.seq: (_is_of(p, source, line), _has(p, source, line)) for line in lines}
    takes = (True,) if p.trial.only_certain_aborts else (True, None)
    return [line for line in lines if all(one in takes for one in told[line.seq])]


def _name(line: Event) -> str | None:
    return line.details.get("client_id") or line.details.get("member_id")


def _gives_up(line: Event) -> bool:
    return line.kind == "commit" and line.outcome == "fail"


def _is_of(p: Partition, source: str, line: Event) -> bool | None:
    """It speaks for the client of that file; None: it may."""
    if "|" not in source:
        if source not in p.trial.nameless or p.anybodys(source):
            return True
        whose = [naive_assignments.the_only_client(type(p)(p.trial, tp), source) for tp in _places(p, line)]
        speakers = {client for clients in whose for client in clients}
        return bool(speakers & naive_assignments.the_only_client(p, source)) if speakers else None
    clients = {name.split("|")[1] for name in {e.source for e in p.trial.events} if name.startswith(f"{line.source}|")}
    own = _name(line)
    return own == source.split("|")[1] if own in clients else None


def _has(p: Partition, source: str, line: Event) -> bool | None:
    """The transaction that it gives up has the partition; None: nobody knows."""
    named = _places(p, line)
    return True if p.tp in named else _shared(p, _producers(p, source), named)


def _shared(p: Partition, producers: dict[Any, list[Event]], named: set[Any]) -> bool | None:
    spans = [(min(e.time_ns for e in asked), max(e.time_ns for e in asked)) for asked in producers.values()]
    by_turns = not any(one[0] <= other[0] < one[1] for one, other in permutations(spans, 2))
    if by_turns and (not named or len(producers) == 1):
        return True
    handed_in = {producer: [_places(p, e) for e in asked] for producer, asked in producers.items()}
    if any(named & _beside(p.tp, requests) for requests in handed_in.values()):
        return True
    own = {producer for producer, requests in handed_in.items() if p.tp in set().union(*requests)}
    theirs = {producer for producer, requests in handed_in.items() if named & set().union(*requests)}
    if by_turns and own & theirs:
        return True
    return False if own and theirs and not own & theirs else None


def _places(p: Partition, line: Event) -> set[Any]:
    """The partitions that it lists."""
    return {(p.trial.topic_of(entry), entry["partition"]) for entry in line.details.get("entries") or []}


def _beside(tp: Any, requests: list[set[Any]]) -> set[Any]:
    """The partition, and all that was in one request with it, or with what was."""
    found = {tp}
    while more := {one for places in requests if places & found for one in places} - found:
        found |= more
    return found


def _producers(p: Partition, source: str) -> dict[Any, list[Event]]:
    """The requests by which the producers of its process handed positions in."""
    process = source.split("|")[0]
    started = [e for e in p.trial.as_given if e.kind == "started" and _member(e.source) == _member(process)]
    lanes = {e.details.get("lane") for e in started}
    found: dict[Any, list[Event]] = {}
    for e in p.trial.as_given:
        about = e.details
        asks = e.kind == "request" and str(about.get("api")).upper().replace("_", "") == "TXNOFFSETCOMMIT"
        ours = about.get("group", p.trial.group) == p.trial.group and about.get("lane") in lanes
        if asks and ours and about.get("producer_id") is not None and about.get("entries"):
            found.setdefault(about["producer_id"], []).append(e)
    return found


def _member(source: str) -> str:
    return source.rpartition("-")[0]


def _committed(p: Partition, work: Work, end: Event) -> float:
    """Up to where its ownership epoch had committed the partition when the attempt before was given up: its own word,
    confirmed by the log, or the answer to its EndTxn. Who was never told cannot know, and what was accepted may have
    been aborted."""
    epoch = work.ownership_epoch
    said = [
        (entry["committed_offset"], event)
        for event in sorted(p.trial.of_kind("commit"), key=lambda e: e.seq)
        if event.outcome == "ok" and event.source == work.event.source and event.seq < end.seq
        for entry in p.trial.entries(event, p.tp)
    ]
    took = [(one.value, one.effect_ns - TOLERANCE_NS) for one in p.commits]
    known = [one for one in said if any(value == one[0] and ns <= one[1].time_ns for value, ns in took)][-1:]
    by_word = [int(value) for value, event in known if epoch and p.ownership_epoch_at(event) == epoch]
    about = work.event.source, end.seq, epoch.number if epoch else -1
    if about not in p.told_before:
        p.told_before[about] = _told(p, work, end)
    return max([-1, *by_word, *p.told_before[about]])


def _told(p: Partition, work: Work, end: Event) -> list[int]:
    """What its member had surely been answered is committed, before it can have given up. In a process of several
    clients any of them may have been answered."""
    epoch, trial = work.ownership_epoch, p.trial
    if epoch is None or naive_clients.holds_several(trial.as_given, work.event.source.split("|")[0]):
        return []
    gave_up_ns = min(trial.written_ns(e) for e in trial.events if (e.source, e.seq) == (work.event.source, end.seq))
    found = []
    for commit in p.commits:
        if commit.value is None or "producer_id" not in commit.event.details:
            continue
        taken_ns = trial.mono_ns(_taken_wall_ns(commit.event), commit.event.time_ns)
        begun = [one for one in p.ownership_epochs if one.source == epoch.source and one.opened.time_ns <= taken_ns]
        if begun[-1:] != [epoch] or commit.effect_ns > gave_up_ns:
            continue
        heard = [received_ns(trial, one) for one in _prompt_answers(p, commit.event, epoch.member)]
        found += [commit.value for ns in heard if ns <= gave_up_ns and _runs(trial, epoch.member, ns) == epoch.source]
    return found


def _prompt_answers(p: Partition, commit: Event, member: str) -> list[Event]:
    """The granted requests of a member to commit the transaction of a commit: begun after it was taken, and answered
    within a second of it, so that nobody had given up."""
    wall_ns, producer = _taken_wall_ns(commit), commit.details["producer_id"]
    ends = [e for e in p.trial.events if e.source == "offsets" and e.kind == "transaction_marker"]
    ends = [e for e in ends if e.details.get("producer_id") == producer]
    marker = min(
        (e for e in ends if e.details["log_offset"] > commit.details["log_offset"]),
        key=lambda e: int(e.details["log_offset"]),
    )
    wanted = {"state": "commit", "producer_id": producer, "producer_epoch": marker.details.get("producer_epoch")}
    asked = [e for e in p.trial.requests if api(e) == "ENDTXN" and not error_of(e) and e.source_wall_ns is not None]
    asked = [e for e in asked if wanted.items() <= e.details.items() and p.trial.lane_member(e) == member]
    return [
        e
        for e in asked
        if wall_ns <= (e.source_wall_ns or 0) - int(e.details.get("duration_ms", 0) * 1_000_000)
        and (e.source_wall_ns or 0) - wall_ns <= SECOND_NS
    ]


def _taken_wall_ns(commit: Event) -> int:
    told_ms = commit.details.get("commit_time_ms")
    return int(commit.source_wall_ns or 0) if told_ms is None else int(told_ms * 1_000_000)


def _runs(trial: Trial, member: str, at_ns: float) -> str | None:
    """The file of the member's process that was started last by then."""
    started = [e for e in trial.of_kind("started") if e.member == member and e.time_ns <= at_ns]
    return max(started, key=lambda e: e.time_ns).source if started else None
