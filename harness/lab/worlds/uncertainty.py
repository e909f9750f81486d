"""Uncertainty: the event files of a trial, read as instants with bounds, and as choices between alternatives.

How far a witness may be off is said in `docs/architecture.md` and in the documentation of each event kind
(`history/event.py`): a line of a member may have waited to be read for as long as was measured, and for half a second
where nothing was; a line of the request log was written at most 50 ms after the answer; records of the offsets log bear
the broker's time, in milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from kafka_trial.history.event import Event
from lab.worlds.worlds import Instant, Uncertainty

MS: Final = 1_000_000
UNMEASURED_NS: Final = 500 * MS  # how long a line may wait for its reader, where nobody measured it; and at most
BESIDE_MEASURES_NS: Final = 35 * MS  # a probe writes every 25 ms, and clocks are 10 ms apart at most
STAMPED_LATE_NS: Final = 50 * MS  # a line of the request log, after the answer
STALL_NS: Final = 250 * MS  # a shorter delay of the harness is inside the tolerance
FENCING: Final = (22, 25, 82, 110)  # ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH
MAY_LOSE: Final = frozenset({"loses-answers", "freezes", "delays-answers"})
LINES: Final = {"delivered": "begin", "processed": "end", "assigned": "assigned", "revoked": "revoked", "lost": "lost"}


@dataclass(frozen=True)
class _Clock:
    """What the run tells of time: the wall clock beside its own, delays of reading, stalls; and whether members buffer
    what they print, and since when each one runs."""

    wall_ns: int
    measured_ns: Mapping[str, int]
    stalls: Sequence[tuple[int, int]]
    buffered: bool
    began_ns: Mapping[str, int]

    def of_wall(self, wall_ns: int) -> int:
        return wall_ns - self.wall_ns

    def earliest_ns(self, source: str, read_ns: int) -> int:
        """When a line can have been written at the earliest."""
        if self.buffered:
            return self.began_ns[source]
        measured = self.measured_ns.get(source)
        late_ns = UNMEASURED_NS if measured is None else min(UNMEASURED_NS, measured + BESIDE_MEASURES_NS)
        asleep = [begin for begin, end in self.stalls if begin <= read_ns <= end + UNMEASURED_NS]
        return min([read_ns - late_ns, *(begin - late_ns for begin in asleep)])


def uncertainty_of(events: Sequence[Event], *, buffered: bool = False) -> Uncertainty:
    """Returns what event files of one partition say, and what they leave open."""
    files: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        files[event.source].append(event)
    clock = _clock_of(files, buffered=buffered)
    requests = [event for event in files["requests-b0"] if event.kind == "request"]
    members = {name: file for name, file in files.items() if name.startswith("consumer-")}
    lines = {name: [*_lines_of(name, file, clock)] for name, file in members.items()}
    certain = [one for told in lines.values() for one in told if one.what != "ask"]
    certain += _group_records(files["offsets"], clock)
    certain += _asked_of_brokers(requests, clock)
    certain += _acknowledged(requests, files["offsets"], clock)
    answers = [*_refusals(requests, files["nemesis"], clock)]
    asks = [
        one for name, told in lines.items() for one in told if one.what == "ask" and not _failed(one, members[name])
    ]
    choices = [_commits(files["offsets"], requests, asks, clock), *answers]
    choices += [choice for name, file in members.items() for choice in _unsaid(lines[name], file)]
    keys = tuple(event.key or "" for event in files["observer"] if event.kind == "record")
    return Uncertainty(tuple(certain), tuple(choices), keys)


def _clock_of(files: Mapping[str, Sequence[Event]], *, buffered: bool) -> _Clock:
    run = files["run"]
    tick = next(event for event in run if event.kind == "clock")
    delays = [(event.time_ns, event.details["delay_ns"]) for event in run if event.kind == "scheduling_delay"]
    measured: dict[str, int] = {}
    for event in (one for one in run if one.kind == "reading_delay"):
        reader = event.details["reader"]
        measured[reader] = max(measured.get(reader, 0), event.details["delay_ns"])
    began = {name: file[0].time_ns for name, file in files.items() if name.startswith("consumer-")}
    stalls = [(at_ns - delay_ns, at_ns) for at_ns, delay_ns in delays if delay_ns > STALL_NS]
    return _Clock(tick.details["wall_ns"] - tick.time_ns, measured, stalls, buffered, began)


def _lines_of(source: str, file: Sequence[Event], clock: _Clock) -> Iterator[Instant]:
    """Yields what a member says, in the order in which it says it, and its end."""
    for event in file:
        what = "ask" if event.kind == "commit" and event.outcome == "invoke" else LINES.get(event.kind)
        if event.kind == "exited":
            what = "exit"
        if what is None:
            continue
        value = event.offset if event.offset is not None else _positions_of(event)
        read_ns = event.time_ns
        lo_ns = clock.earliest_ns(source, read_ns)
        lo_ns = read_ns - UNMEASURED_NS if what == "exit" else lo_ns
        yield Instant(what, event.member or "", value, source, event.seq, lo_ns, read_ns, read_ns)


def _failed(ask: Instant, file: Sequence[Event]) -> bool:
    """Whether the member says next of a position that it asked for that its commit was refused."""
    later = (event for event in file if event.kind == "commit" and event.seq > ask.rank)
    answer = next((event for event in later if _positions_of(event) == ask.value), None)
    return answer is not None and answer.outcome == "fail"


def _positions_of(event: Event) -> int:
    """Returns the position that a commit or its answer is about; -1 where the event has none."""
    for entry in event.details.get("entries", ()):
        if "committed_offset" in entry:
            return int(entry["committed_offset"])
    return -1


def _group_records(log: Sequence[Event], clock: _Clock) -> Iterator[Instant]:
    """Yields who was given the partition, by the offsets log: by a record of the group, or of one member (KIP-848)."""
    for event in log:
        if event.kind == "group":
            named = [entry["member_id"] for entry in event.details["entries"]]
            what, value = "give", -1
        elif event.kind == "member_assignment":
            named, what, value = [event.details["member_id"]], "hold", int(bool(event.details["entries"]))
        else:
            continue
        at_ns, place = clock.of_wall(event.source_wall_ns or 0), event.details["log_offset"]
        for name in named:
            yield Instant(what, name.removeprefix("id-"), value, "offsets", place, at_ns, at_ns + MS, at_ns)


@dataclass(frozen=True)
class _Request:
    """A line of the request log: when its request can have arrived, and when its answer was sent."""

    event: Event
    sent_ns: int

    @property
    def arrived_ns(self) -> int:
        return self.sent_ns - int(self.event.details["duration_ms"] * MS)

    @property
    def who(self) -> str:
        return f"m{self.event.details['lane']}"

    @property
    def connection(self) -> str:
        return str(self.event.details["connection"])

    def instant(self, what: str, value: int, at_ns: int) -> Instant:
        """Something that happened when a request arrived, or its answer was sent: by the stamp, or a little earlier."""
        rank = self.event.seq
        return Instant(what, self.who, value, f"{what}-{self.who}", rank, at_ns - STAMPED_LATE_NS, at_ns, at_ns)


def _requests_for(requests: Iterable[Event], clock: _Clock, *apis: str) -> list[_Request]:
    told = [event for event in requests if event.details["api"] in apis]
    return [_Request(event, clock.of_wall(event.source_wall_ns or 0)) for event in told]


def _asked_of_brokers(requests: Sequence[Event], clock: _Clock) -> Iterator[Instant]:
    """Yields where members were told to start, and from where they fetched."""
    for one in _requests_for(requests, clock, "OFFSET_FETCH"):
        yield one.instant("start", _positions_of(one.event), one.sent_ns)
    for one in _requests_for(requests, clock, "FETCH"):
        yield one.instant("fetch", int(one.event.details["entries"][0]["offset"]), one.arrived_ns)


def _acknowledged(requests: Sequence[Event], log: Sequence[Event], clock: _Clock) -> Iterator[Instant]:
    """Yields the commits that were acknowledged, and whose positions are not in the offsets log."""
    stored = {event.committed_offset for event in log if event.kind == "committed"}
    for one in _requests_for(requests, clock, "OFFSET_COMMIT"):
        position = _positions_of(one.event)
        if not one.event.details["error"] and position not in stored:
            yield one.instant("acked", position, one.sent_ns)


def _refusals(
    requests: Sequence[Event], nemesis: Sequence[Event], clock: _Clock
) -> Iterator[tuple[tuple[Instant, ...], ...]]:
    """Yields for each answer that fences its member when it was received: in a fault that may lose answers perhaps
    never, unless the connection went on after it, where it came with the healing. Where no fetch stands in the log,
    its member may have fetched on at once."""
    silent = not _requests_for(requests, clock, "FETCH")
    for one in _requests_for(requests, clock, "HEARTBEAT", "SYNC_GROUP", "JOIN_GROUP"):
        if one.event.details.get("error") not in FENCING:
            continue
        windows = [*_windows(nemesis, one.who)]
        inside = [end for begin, end in windows if begin - STAMPED_LATE_NS <= one.sent_ns and one.arrived_ns <= end]
        healed_ns = max(inside, default=0)
        told = one.instant("told", -1, one.sent_ns)
        told = replace(told, hi_ns=max(one.sent_ns, healed_ns) + UNMEASURED_NS)
        later = [
            other
            for other in _requests_for(requests, clock, "FETCH", "HEARTBEAT", "OFFSET_COMMIT", "OFFSET_FETCH")
            if other.connection == one.connection and other.arrived_ns > healed_ns
        ]
        sure = not inside or bool(later)
        on = replace(told, what="fetch", value=0, rank=told.rank + 0.5)
        yield ((told,), *([(told, on)] if silent else []), *([] if sure else [()]))


def _windows(nemesis: Sequence[Event], member: str) -> Iterator[tuple[int, int]]:
    """Yields from when to when faults were in force that may have lost what this member was answered."""
    healed = {event.details["fault_no"]: event.time_ns for event in nemesis if event.kind == "healed"}
    for event in nemesis:
        ours = event.kind == "injected" and event.member == member
        if ours and MAY_LOSE.intersection(event.details["consequences"]):
            yield event.time_ns, healed.get(event.details["fault_no"], 1 << 62)


def _commits(
    log: Sequence[Event], requests: Sequence[Event], asks: Sequence[Instant], clock: _Clock
) -> tuple[tuple[Instant, ...], ...]:
    """Returns the commits that took effect, with what asked for each: one alternative for every way in which accepted
    requests of the same position, about that time, can have led to them."""
    stored = [event for event in log if event.kind == "committed"]
    accepted = [one for one in _requests_for(requests, clock, "OFFSET_COMMIT") if not one.event.details["error"]]
    fits = [[None, *(one for one in accepted if _led_to(one, event, clock))] for event in stored]
    ways = [way for way in product(*fits) if _is_matching(way)]
    most = max((sum(one is not None for one in way) for way in ways), default=0)
    full = [way for way in ways if sum(one is not None for one in way) == most]
    return tuple(dict.fromkeys(tuple(_asked_and_stored(stored, way, asks, clock)) for way in full))


def _led_to(one: _Request, event: Event, clock: _Clock) -> bool:
    at_ns = _stored_ns(event, clock)
    same = _positions_of(one.event) == event.committed_offset
    return same and one.arrived_ns - STAMPED_LATE_NS <= at_ns <= one.sent_ns + STAMPED_LATE_NS


def _stored_ns(event: Event, clock: _Clock) -> int:
    return clock.of_wall(int(event.details["commit_time_ms"]) * MS)


def _is_matching(way: Sequence[_Request | None]) -> bool:
    used = [id(one) for one in way if one is not None]
    return len(used) == len({*used})


def _asked_and_stored(
    stored: Sequence[Event], way: Sequence[_Request | None], asks: Sequence[Instant], clock: _Clock
) -> Iterator[Instant]:
    """Yields each commit and its ask: the member's own line of it where it prints one, else the request; and the asks
    that led to none."""
    waiting = [*asks]
    for event, request in zip(stored, way, strict=True):
        at_ns, place = _stored_ns(event, clock), int(event.details["log_offset"])
        who = request.who if request else ""
        position = int(event.committed_offset or 0)
        commit = Instant("commit", who, position, "offsets", place, at_ns, at_ns + MS, at_ns)
        said = next((ask for ask in waiting if (ask.who, ask.value) == (who, position)), None)
        if said is not None and said.lo_ns <= commit.hi_ns:
            waiting.remove(said)
            yield replace(said, pair=place)
        elif request is not None:
            asked = request.instant("ask", position, min(request.arrived_ns, commit.hi_ns))
            yield replace(asked, pair=place)
        yield commit
    yield from waiting


def _unsaid(lines: Sequence[Instant], file: Sequence[Event]) -> Iterator[tuple[tuple[Instant, ...], ...]]:
    """Yields for each record that a killed member had in hand whether it still ended it: a member prints `processed`
    after its handler ended. It began no other, for it prints `delivered` before."""
    end = next((event for event in file if event.kind == "exited"), None)
    if end is None or end.details.get("signal") != 9:
        return
    work = [one for one in lines if one.what in ("begin", "end")]
    last = max((one.rank for one in lines if one.what != "exit"), default=0)
    in_hand = [one for one in work if one.what == "begin" and not _ended(one, work)]
    for number, one in enumerate(in_hand):
        hi_ns = end.time_ns
        rank = last + (number + 1) / (len(in_hand) + 1)
        yield ((), (replace(one, what="end", rank=rank, lo_ns=one.lo_ns, hi_ns=hi_ns, at_ns=hi_ns),))


def _ended(begun: Instant, work: Sequence[Instant]) -> bool:
    """Whether a later line of the file is about the same record."""
    return any(one.value == begun.value and one.rank > begun.rank for one in work)
