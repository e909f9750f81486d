"""Who got back into its group, for the naive checker: by the lists of members in the offsets log, and by what brokers
granted in each member's lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event
from lab.naive import responses, slowdown

if TYPE_CHECKING:
    from lab.naive.checker import Found, Trial

FOREVER = float("inf")
SECOND_NS = 1_000_000_000
MEMBERS_ONLY = ("JOINGROUP", "SYNCGROUP", "HEARTBEAT", "CONSUMERGROUPHEARTBEAT", "OFFSETCOMMIT", "TXNOFFSETCOMMIT")
LOG_TOLERANCE_NS = 50_000_000  # between request log and the times of processes
SOMEBODY = "somebody"  # in a group whose record does not say whom it lists

Span = tuple[float, float]


def never_rejoined(trial: Trial) -> Iterator[Found | None]:
    """A member that was started again, or that a fault on it had let go, and that its group does not have by the
    snapshot; None where it had too little time for it."""
    until_ns = float(trial.snapshot_ns or 0)
    if "none" in (trial.settings.get("protocol"), trial._protocol):
        return
    lists = listed(trial)
    for name in sorted({str(e.member) for e in trial.of_kind("started")}):
        processes = [e for e in trial.of_kind("started") if e.member == name and e.time_ns <= until_ns]
        if not processes:
            continue
        last = max(processes, key=lambda e: e.time_ns)
        at_ns = _returned_ns(trial, processes, last, until_ns)
        if at_ns is None or not _was_in(trial, lists, processes, last):
            continue
        ids = {i: asked for i in _ids_of(trial, name) if (asked := granted_ns(trial, name, i))}
        if any(_asked_since(asked, at_ns) and _listed_in(lists, i, at_ns, until_ns) for i, asked in ids.items()):
            continue
        if any(_asked_since(asked, last.time_ns) and _listed_at(lists, i, until_ns) for i, asked in ids.items()):
            continue
        late_ns = until_ns - max([at_ns + bound_ns(trial, lists), *(end for end, _ in trial.lost_sessions.values())])
        allowed_ns = slowdown.waited_more_ns(trial, at_ns) + _stood_still_ns(trial, at_ns, until_ns)
        yield (None, None, name, ()) if late_ns >= max(0, allowed_ns) else None


def listed(trial: Trial) -> dict[str, list[Span]]:
    """Member id → from when to when the group had it."""
    spans: dict[str, list[Span]] = {}
    classic: set[str] = set()
    consumer: set[str] = set()
    for e in trial.offsets_log:
        kind, about = e.kind, e.details
        if kind == "group":
            members = about.get("members")
            classic = {m["member_id"] for m in members} if isinstance(members, list) else {SOMEBODY}
        elif kind == "group_tombstone" and about.get("record_type") == 2:
            classic = set()
        elif kind == "member_assignment" and about["epoch"] >= 0:
            consumer = consumer | {about["member_id"]}
        elif kind == "member_assignment" or (kind == "group_tombstone" and about.get("record_type") == 8):
            consumer = consumer - {about["member_id"]}
        else:
            continue
        at_ns = min(trial.mono_ns(e.source_wall_ns, e.time_ns), e.time_ns)
        for member_id in {*spans, *classic, *consumer}:
            mine = spans.setdefault(member_id, [])
            inside = bool(mine) and mine[-1][1] == FOREVER
            if member_id in classic | consumer and not inside:
                mine.append((at_ns, FOREVER))
            elif inside and member_id not in classic | consumer:
                mine[-1] = mine[-1][0], at_ns
    return spans


def granted_ns(trial: Trial, member: str, member_id: str) -> list[int]:
    """When the requests of a member id began that only a member is granted, in the lane of a member."""
    return [
        min(trial.mono_ns(e.source_wall_ns, e.time_ns), e.time_ns) - int((e.details.get("duration_ms") or 0) * 1e6)
        for e in trial.requests
        if trial.lane_member(e) == member
        and e.details.get("member_id") == member_id
        and str(e.details["api"]).upper().replace("_", "") in MEMBERS_ONLY
        and not e.details.get("error")
        and (e.details.get("epoch") is None or e.details["epoch"] >= 0)
    ]


def _asked_since(begun_ns: list[int], at_ns: float) -> bool:
    """A request then or later; the first of an id may seem to be a little earlier."""
    return max(begun_ns) >= at_ns or min(begun_ns) >= at_ns - LOG_TOLERANCE_NS


def bound_ns(trial: Trial, lists: dict[str, list[Span]]) -> float:
    """How long a member may take: a session and a rebalance, or twice the slowest start; no longer than to be ready."""
    took_ns = [0.0]
    for e in trial.of_kind("started"):
        if e.incarnation == 0 and e.time_ns < trial.faults_begin_ns:
            begins = [begin for i in _ids_of(trial, str(e.member)) for begin, _ in _spans(lists, i)]
            took_ns += [min(begins) - e.time_ns] if begins else []
    least_s = max(trial.session_s + trial.rebalance_s, 2 * max(took_ns) / SECOND_NS)
    return int(min(least_s, float(trial.settings.get("ready_within_s", 60))) * SECOND_NS)


def _returned_ns(trial: Trial, processes: list[Event], last: Event, until_ns: float) -> float | None:
    """When a member could be in its group again; None: nothing had put it out, something still does, or it ended."""
    if trial.exit_ns(last.source) < until_ns:
        return None
    faults = list(_faults_on(trial, last))
    if any(trial.healed_ns(fault) == FOREVER for fault in faults):
        return None
    moments = [float(last.time_ns)] if any(e.time_ns < last.time_ns for e in processes) else []
    moments += [trial.healed_ns(fault) for fault in faults if not responses.does(fault, "kills", "stops")]
    return max(moments, default=None)


def _faults_on(trial: Trial, process: Event) -> Iterator[Event]:
    for fault in trial.of_kind("injected"):
        mine = fault.member in (None, process.member) and trial.healed_ns(fault) >= process.time_ns
        if mine and not responses.does(fault, "harmless"):
            yield fault


def _was_in(trial: Trial, lists: dict[str, list[Span]], processes: list[Event], last: Event) -> bool:
    """It had been in the group: ever, of a further process; when a fault hit it, of the only one."""
    ids = [i for i in _ids_of(trial, str(last.member)) if granted_ns(trial, str(last.member), i)]
    first_ns = min(e.time_ns for e in trial.of_kind("started") if e.member == last.member)
    if last.time_ns > first_ns and any(_spans(lists, i) for i in ids):
        return True
    return any(_listed_at(lists, i, fault.time_ns) for i in ids for fault in _faults_on(trial, last))


def _ids_of(trial: Trial, member: str) -> set[str]:
    mine = [e.details.get("member_id") for e in trial.requests if trial.lane_member(e) == member]
    return {member_id for member_id in mine if member_id}


def _spans(lists: dict[str, list[Span]], member_id: str) -> list[Span]:
    return [*lists.get(member_id, []), *lists.get(SOMEBODY, [])]


def _listed_at(lists: dict[str, list[Span]], member_id: str, at_ns: float) -> bool:
    return any(begin <= at_ns < end for begin, end in _spans(lists, member_id))


def _listed_in(lists: dict[str, list[Span]], member_id: str, begin_ns: float, end_ns: float) -> bool:
    return any(begin <= end_ns and end > begin_ns for begin, end in _spans(lists, member_id))


def _stood_still_ns(trial: Trial, begin_ns: float, end_ns: float) -> float:
    """How long the machine stood still in that time, in stretches of more than a quarter of a session."""
    delays = [(e.time_ns, e.details["delay_ns"]) for e in trial.of_kind("scheduling_delay")]
    long = [(at, d) for at, d in delays if d > trial.session_s / 4 * SECOND_NS and begin_ns < at <= end_ns]
    return float(sum(min(d, at - begin_ns) for at, d in long))
