"""What a member was told, for the naive checker: the answers it received, and what it fetched before and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kafka_trial.history.consequences import consequences_in
from kafka_trial.history.event import Event

if TYPE_CHECKING:
    from lab.naive.checker import OwnershipEpoch, Partition, Slice, Trial

TOLERANCE_NS = 500_000_000
LOG_TOLERANCE_NS = 50_000_000
FOREVER = float("inf")
FENCING = {22: "ILLEGAL_GENERATION", 25: "UNKNOWN_MEMBER_ID", 82: "FENCED_INSTANCE_ID", 110: "FENCED_MEMBER_EPOCH"}
COMMITS = ("OFFSETCOMMIT", "TXNOFFSETCOMMIT")
OF_GROUP = (*COMMITS, "HEARTBEAT", "CONSUMERGROUPHEARTBEAT", "JOINGROUP", "SYNCGROUP", "LEAVEGROUP")


def does(injected: Event, *any_of: str) -> bool:
    """A fault has one of these consequences, as its history says it."""
    return not {*consequences_in(injected.details)}.isdisjoint(any_of)


def api(request: Event) -> str:
    return str(request.details.get("api", "")).replace("_", "").upper()


def sent_ns(trial: Trial, request: Event) -> float:
    return trial.mono_ns(request.source_wall_ns, request.time_ns)


def begun_ns(trial: Trial, request: Event) -> float:
    return sent_ns(trial, request) - int(request.details.get("duration_ms", 0) * 1_000_000)


PROMPT = (*COMMITS, "HEARTBEAT", "CONSUMERGROUPHEARTBEAT", "OFFSETFETCH", "FINDCOORDINATOR")
SLOW_NS, WAITED_NS, GOES_ON_NS = 500_000_000, 2_000_000_000, 5_000_000_000


def received_ns(trial: Trial, request: Event) -> float:
    """When its member received an answer: as below, and if its client cannot have closed the connection."""
    closed = _connection_may_be_closed(trial, request) or _may_be_given_up(trial, request)
    return FOREVER if closed else received_if_open_ns(trial, request)


def received_if_open_ns(trial: Trial, request: Event) -> float:
    """When its member received an answer: at once outside faults, else after them, if its connection went on."""
    over, _ = _fault_over(trial, request)
    return sent_ns(trial, request) if over is None else _after(trial, request, over)


def surely_received(trial: Trial, request: Event) -> bool:
    """Its member received an answer for certain."""
    return received_ns(trial, request) != FOREVER


def maybe_received(trial: Trial, request: Event) -> bool:
    """All but what was cut off on a connection that is known to have ended with it."""
    over, cut = _fault_over(trial, request)
    known = "connection" in request.details
    return over is None or not cut or not known or _after(trial, request, over) != FOREVER


def _after(trial: Trial, request: Event, over_ns: float) -> float:
    goes_on = any(begun_ns(trial, one) > over_ns for one in _on_its_connection(trial, request))
    return max(sent_ns(trial, request), over_ns) if goes_on else FOREVER


def _fault_over(trial: Trial, request: Event) -> tuple[float | None, bool]:
    """When the faults that lay between a request and its answer were over, with all that touch them; and whether one of
    them cut, and the answer was sent well inside."""
    stretches: list[tuple[float, float, bool]] = []
    for since, until, cuts in sorted(_faults(trial, request)):
        if stretches and since <= stretches[-1][1]:
            first, last, cut = stretches.pop()
            stretches.append((first, max(last, until), cut or cuts))
        else:
            stretches.append((since, until, cuts))
    begin, sent = begun_ns(trial, request), sent_ns(trial, request)
    touching = [one for one in stretches if one[0] <= sent and one[1] >= begin]
    if not touching:
        return None, False
    since, over, cut = touching[-1]
    return over, cut and since + 2 * LOG_TOLERANCE_NS <= sent <= over - 2 * LOG_TOLERANCE_NS


def _may_be_given_up(trial: Trial, request: Event) -> bool:
    """A fault may have held it until its client closed the connection, which was used no more from seconds after the
    fault on; and that opened another one, or the broker stood still."""
    for fault, since, over in _holding(trial, request):
        until = over + GOES_ON_NS
        waited = sent_ns(trial, request) >= since and begun_ns(trial, request) <= until
        anew = does(fault, "freezes-broker") or _replaced_ns(trial, request) >= since
        if waited and anew and not any(begun_ns(trial, one) > until for one in _on_its_connection(trial, request)):
            return True
    return False


def _holding(trial: Trial, request: Event) -> Iterator[tuple[Event, float, float]]:
    """The faults that hold what its member asks of its broker, from when on, and until when."""
    for fault in _on_the_way(trial, request):
        if does(fault, "freezes-broker") or (does(fault, "cuts-off") and does(fault, "leaves-requests-open")):
            begun, healed = _of_fault(trial, fault, "injecting") or [fault], _of_fault(trial, fault, "healed")
            over = healed[-1].time_ns + LOG_TOLERANCE_NS if healed else FOREVER
            yield fault, begun[-1].time_ns - LOG_TOLERANCE_NS, over


def _replaced_ns(trial: Trial, request: Event, *, by_beats: bool = False) -> float:
    """When its member last opened a connection to its broker that is later than the one of the request; `by_beats`:
    one of KIP-848 in place of another."""
    opened: dict[str, float] = {}
    beats = set()
    for one in trial.of_kind("request"):
        name = one.details.get("connection")
        if name and (one.source, one.details.get("lane")) == (request.source, request.details.get("lane")):
            opened[name] = min(opened.get(name, FOREVER), begun_ns(trial, one))
            beats |= {name} if api(one) == "CONSUMERGROUPHEARTBEAT" else set()
    counted = {name: at for name, at in opened.items() if name in beats or not by_beats}
    own = counted.get(str(request.details.get("connection")), FOREVER)
    return max((at for at in counted.values() if at > own), default=-FOREVER)


def _connection_may_be_closed(trial: Trial, request: Event) -> bool:
    """Its broker was slow, and its connection, of KIP-848, did not go on for seconds, but another one in its place."""
    begin, sent = begun_ns(trial, request), sent_ns(trial, request)
    slow = any(
        source == request.source and since <= sent and until >= begin - WAITED_NS
        for source, since, until in trial.slow_answers
    )
    goes_on = any(begun_ns(trial, one) > sent + GOES_ON_NS for one in _on_its_connection(trial, request))
    return slow and not goes_on and _replaced_ns(trial, request, by_beats=True) > -FOREVER


def _on_its_connection(trial: Trial, request: Event) -> Iterator[Event]:
    name = request.details.get("connection")
    for one in trial.of_kind("request"):
        its = (one.source, one.details.get("lane")) == (request.source, request.details.get("lane"))
        if its and name is not None and one.details.get("connection") == name:
            yield one


def _faults(trial: Trial, request: Event) -> Iterator[tuple[float, float, bool]]:
    """From when to when faults held, cut or delayed what goes between the broker of a request and its member, and
    whether each cut."""
    for fault in _on_the_way(trial, request):
        if does(fault, "loses-answers", "delays-answers", "freezes"):
            began, healed = _of_fault(trial, fault, "injecting") or [fault], _of_fault(trial, fault, "healed")
            over = healed[-1].time_ns + LOG_TOLERANCE_NS if healed else FOREVER
            yield began[-1].time_ns - LOG_TOLERANCE_NS, over, does(fault, "loses-answers")


def _on_the_way(trial: Trial, request: Event) -> Iterator[Event]:
    """The faults between its member and its broker."""
    for fault in trial.of_kind("injected"):
        resolved = str(fault.details.get("target", "")).split(":")[-1].strip()
        elsewhere = resolved[:1] == "b" and resolved[1:].isdigit() and request.source != f"requests-{resolved}"
        spared = elsewhere if fault.member is None else fault.member != trial.lane_member(request)
        if not spared and trial.lane_member(request) is not None:
            yield fault


def _of_fault(trial: Trial, fault: Event, kind: str) -> list[Event]:
    number = fault.details.get("fault_no")
    return [e for e in trial.of_kind(kind) if e.details.get("fault_no") == number]


def answer_that_tells(p: Partition, ownership_epoch: OwnershipEpoch, lost_ns: float) -> tuple[Event | None, float]:
    """The first answer, while it held the partition, that told the member of its loss, and when it received it."""
    received = list(_received_answers(p.trial, ownership_epoch.member, lost_ns))
    fenced = [one for one in received if error_of(one[0]) in FENCING][:1]
    rejoined = [one for one in received if _is_given_others(p, one[0])][:1]
    closed_ns = ownership_epoch.closed.time_ns if ownership_epoch.closed else FOREVER
    first = min(fenced + rejoined, key=lambda one: one[1], default=(None, FOREVER))
    return first if first[1] < closed_ns else (None, FOREVER)


def by_its_own_clock(p: Partition, ownership_epoch: OwnershipEpoch, lost_ns: float) -> float:
    """When it had asked its group nothing for a session, fetched, and asked nothing for another one, nor ever after.

    FOREVER: it asked, something may explain its silence, or a request log may lack lines.
    """
    session_ns, trial = p.trial.session_s * 1_000_000_000, p.trial
    logs = {e.source for e in trial.events if e.source.startswith("requests-")}
    read = {e.source for e in trial.of_kind("witness") if e.details.get("state") == "complete"}
    closed_ns = ownership_epoch.closed.time_ns if ownership_epoch.closed else FOREVER
    asked = list(_asking(p, ownership_epoch))
    if not logs or logs - read or not asked:
        return FOREVER
    mine = [begun for begun, _ in fetches(trial, p.tp, ownership_epoch.member)]
    mine = [begun for begun in mine if ownership_epoch.opened.time_ns <= begun < closed_ns and begun >= lost_ns]
    for begun in mine:
        knows_ns = begun + session_ns
        meanwhile = [
            end for begin, end in _disturbed(trial, ownership_epoch.member) if begin <= knows_ns + TOLERANCE_NS
        ]
        if max([*asked, *meanwhile]) + session_ns <= begun and knows_ns < closed_ns:
            return knows_ns
    return FOREVER


def _asking(p: Partition, ownership_epoch: OwnershipEpoch) -> Iterator[float]:
    """When requests to its group were answered, until it was asked to stop; and commits of the partition."""
    exits = [e for e in p.trial.of_kind("exited") if e.source == ownership_epoch.source]
    ends = [e.time_ns for e in exits] + [e.details["asked_ns"] for e in exits if e.details.get("asked_ns") is not None]
    for request in p.trial.requests:
        if api(request) not in OF_GROUP or p.trial.lane_member(request) != ownership_epoch.member:
            continue
        taken = api(request) in COMMITS and not error_of(request)
        at_ns = sent_ns(p.trial, request)
        if (not taken or p.trial.entries(request, p.tp)) and at_ns < min(ends, default=FOREVER):
            yield at_ns


def _disturbed(trial: Trial, member: str) -> Iterator[tuple[float, float]]:
    """From when to when a fault, or a stall of the machine, may have kept it from asking or being answered."""
    waits_s = trial.settings.get("request_timeout_s")
    for fault in trial.of_kind("injected"):
        number = fault.details.get("fault_no")
        if fault.member not in (None, member) or does(fault, "harmless"):
            continue
        began = [e.time_ns for e in trial.of_kind("injecting") if e.details.get("fault_no") == number]
        more_ns = (
            (60 if waits_s is None else waits_s) * 1_000_000_000
            if does(fault, "leaves-requests-open")
            else TOLERANCE_NS
        )
        yield (began[-1] if began else fault.time_ns) - 1_000_000_000, trial.healed_ns(fault) + more_ns
    for e in trial.of_kind("scheduling_delay"):
        if e.details["delay_ns"] > trial.session_s * 1_000_000_000 / 4:
            yield e.time_ns - e.details["delay_ns"], e.time_ns


def commit_refused(p: Partition, ownership_epoch: OwnershipEpoch, lost_ns: float) -> tuple[Event | None, float]:
    """The first commit of the member that was fenced, and when it was told."""
    received = _received_answers(p.trial, ownership_epoch.member, lost_ns)
    fenced = (one for one in received if api(one[0]) in COMMITS and error_of(one[0]) in FENCING)
    return next(fenced, (None, FOREVER))


def refused_commits(p: Partition, ownership_epoch: OwnershipEpoch) -> Iterator[tuple[float, int]]:
    """(when it was received, position) of the commits that brokers refused to a member that claims at most once.

    It waits for the answer before it begins; under another claim a background thread may ask.
    """
    if p.trial.settings.get("delivery") != "at-most-once":
        return
    closed_ns = ownership_epoch.closed.time_ns if ownership_epoch.closed else FOREVER
    for request, received in _received_answers(p.trial, ownership_epoch.member, ownership_epoch.opened.time_ns - 1):
        if api(request) in COMMITS and sent_ns(p.trial, request) < closed_ns:
            for entry in p.trial.entries(request, p.tp):
                if entry.get("error") in FENCING:
                    yield received, entry["committed_offset"]


def _received_answers(trial: Trial, member: str, lost_ns: float) -> Iterable[tuple[Event, float]]:
    ours = [r for r in trial.requests if api(r) in OF_GROUP and trial.lane_member(r) == member]
    late = sorted((r for r in ours if sent_ns(trial, r) > lost_ns), key=lambda r: sent_ns(trial, r))
    received = [(r, received_ns(trial, r)) for r in late]
    return [one for one in received if one[1] != FOREVER]


def error_of(request: Event) -> int:
    return int(request.details.get("error", 0))


def _is_given_others(p: Partition, request: Event) -> bool:
    """An assignment without the partition."""
    listed = {"SYNCGROUP": "entries", "CONSUMERGROUPHEARTBEAT": "assigned"}.get(api(request), "")
    given = request.details.get(listed) is not None and not error_of(request)
    return given and not p.trial.entries(request, p.tp, listed)


def fetches(trial: Trial, tp: Slice, member: str) -> list[tuple[float, int]]:
    """(when it began, from which position) of the member's fetches of a partition."""
    found = [
        (begun, entry["offset"])
        for request, entry, begun, _ in timed_fetches(trial, tp)
        if _is_a_fetch_of(trial, request, member)
    ]
    return sorted(found, key=lambda one: one[0])


def timed_fetches(trial: Trial, tp: Slice) -> list[tuple[Event, Mapping[str, Any], float, float]]:
    """Every fetch of a partition, log by log, with when it began and was answered: over one connection a broker takes
    one request after the other, so neither ever comes before that of the request before."""
    found: list[tuple[Event, Mapping[str, Any], float, float]] = []
    latest: dict[tuple[Any, ...], tuple[float, float]] = {}
    for request in trial.requests:
        for entry in trial.entries(request, tp) if api(request) == "FETCH" else ():
            over = (request.source, request.details.get("lane"), request.details.get("connection"))
            own = begun_ns(trial, request), sent_ns(trial, request)
            before = latest.get(over, own) if over[2] else own
            answered = max(own[1], before[1])
            latest[over] = max(own[0], before[0]), answered
            found.append((request, entry, min(latest[over][0], answered), answered))
    return found


def fetches_are_known(trial: Trial, member: str) -> bool:
    return any(_is_a_fetch_of(trial, request, member) for request in trial.requests)


def _is_a_fetch_of(trial: Trial, request: Event, member: str) -> bool:
    """Of several in its process only one that comes over a connection, or under a client id, of their group requests:
    of another nobody knows whose it is."""
    if api(request) != "FETCH" or trial.lane_member(request) != member:
        return False
    if not any(e.source in trial.nameless for e in trial.of_kind("started") if e.member == member):
        return True
    of_group = [r for r in trial.requests if api(r) in OF_GROUP and trial.lane_member(r) == member]
    over = {(r.source, r.details.get("connection")) for r in of_group}
    names = {r.details["client_id"] for r in of_group if r.details.get("client_id")}
    return (request.source, request.details.get("connection")) in over or request.details.get("client_id") in names


def fetched_by(p: Partition, ownership_epoch: OwnershipEpoch, told_ns: float) -> float:
    """The position from which on whatever it is delivered was fetched after it was told."""
    asked = _asked_while_open(p, ownership_epoch)
    before = [position for _, at_earliest, position in asked if at_earliest <= told_ns + TOLERANCE_NS]
    after = [position for _, at_earliest, position in asked if at_earliest > told_ns + TOLERANCE_NS]
    return max([after[0], *before]) if after else FOREVER


def fetched_again_ns(p: Partition, ownership_epoch: OwnershipEpoch, told_ns: float) -> float:
    """When it began its first fetch that it surely sent after it was told; never: it began none."""
    asked = _asked_while_open(p, ownership_epoch)
    return next((ns for ns, at_earliest, _ in asked if at_earliest > told_ns + TOLERANCE_NS), FOREVER)


def _asked_while_open(p: Partition, ownership_epoch: OwnershipEpoch) -> list[tuple[float, float, int]]:
    """(when it began, when its member sent it at the earliest, from which position) of its fetches."""
    closed_ns = ownership_epoch.closed.time_ns if ownership_epoch.closed else FOREVER
    asked, before = [], dict[tuple[Any, ...], tuple[float, float]]()
    for request, entry, begun, answered in timed_fetches(p.trial, p.tp):
        over = (request.source, request.details.get("lane"), request.details.get("connection"))
        held = [
            since
            for fault, since, healed_ns in _holding(p.trial, request)
            if since <= begun <= healed_ns + GOES_ON_NS * does(fault, "freezes-broker")
        ]
        had_ns, had = before.get(over, (0.0, FOREVER))
        if _is_a_fetch_of(p.trial, request, ownership_epoch.member):
            earliest = max(min([begun, *held]), had_ns if entry["offset"] > had else 0.0)
            asked.append((begun, min(begun, earliest), entry["offset"]))
        told = over[2] and entry.get("size_bytes", 0) > 0 and not entry.get("error")
        before[over] = (answered, entry["offset"]) if told else (0.0, FOREVER)
    asked.sort(key=lambda one: one[0])
    return [one for one in asked if ownership_epoch.opened.time_ns <= one[0] < closed_ns]
