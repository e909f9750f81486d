"""Several group members in one process, for the naive checker: each client becomes a member of its own.

A member's file in which the lines of several clients interleave is split into one file for each; what the process does
as a whole (started, exited) is in each of them. A request in such a lane is its client's. Names alone do not make
clients: where the request log was read to its end and shows one group member at a time, the lines are one client's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations

from kafka_trial.history.event import Event

OF_PROCESS = ("started", "ready", "stopped", "exited")
OF_GROUP = (
    *("OFFSETCOMMIT", "TXNOFFSETCOMMIT", "HEARTBEAT", "CONSUMERGROUPHEARTBEAT"),
    *("JOINGROUP", "SYNCGROUP"),
)


def split(events: Iterable[Event]) -> list[Event]:
    """The same events, with every client of a process that holds several as a member with a file of its own."""
    listed = list(events)
    files = [source for source in _files(listed) if not _shown_one_at_a_time(listed, source)]
    several = {source: names for source in files if len(names := _at_once(listed, source)) > 1}
    result = []
    for event in listed:
        names = several.get(event.source, [])
        own = _client(event)
        whose = names if own is None and event.kind in OF_PROCESS else [own] if own in names else []
        result += [_of(event, name) for name in whose] if names else [event]
    named = _by_member_id(listed)
    return [_asked_by_client(event, several, named) for event in result]


def nameless(events: Iterable[Event]) -> set[str]:
    """The files of processes in which several group members lived at once, and whose lines name none of them."""
    listed = list(events)
    return {
        source
        for source in _files(listed)
        if not any(_client(e) for e in listed if e.source == source)
        and _lived_at_once(
            [e for e in _asked_on_its_lane(listed, source) if _within_its_incarnation(listed, source, e)]
        )
    }


def holds_several(events: Iterable[Event], source: str) -> bool:
    """Several group members lived at once in the process of a file, or in another one of its member."""
    listed = list(events)
    return len(_at_once(listed, source)) > 1 or _lived_at_once(_asked_on_its_lane(listed, source))


def request_logs_complete(events: Iterable[Event]) -> bool:
    """Every broker's was read to its end."""
    listed = list(events)
    logs = {e.source for e in listed if e.source.startswith("requests-")}
    states = {e.source: e.details.get("state") for e in listed if e.kind == "witness"}
    return bool(logs) and all(states.get(name) == "complete" for name in logs)


def _files(events: list[Event]) -> list[str]:
    return sorted({event.source for event in events if event.source.startswith("consumer-")})


def _shown_one_at_a_time(events: list[Event], source: str) -> bool:
    """The request log knows all group members of its lane: there were some, and never two at once."""
    asked = list(_asked_on_its_lane(events, source))
    return bool(asked) and request_logs_complete(events) and not _lived_at_once(asked)


def _asked_on_its_lane(events: list[Event], source: str) -> Iterator[Event]:
    """What the group members in the lane of a file's process asked their group for, where it was not refused. A goodbye
    is nothing of it: it may be logged when its client has been followed by the next one."""
    lanes = {e.details["lane"] for e in events if e.source == source and e.kind == "started" and "lane" in e.details}
    groups = [e.details["group"] for e in events if e.kind == "group_named"]
    for event in events:
        of_group = str(event.details.get("api", "")).replace("_", "").upper() in OF_GROUP
        ours = not groups or event.details.get("group", groups[-1]) == groups[-1]
        granted = event.kind == "request" and event.details.get("member_id") and not event.details.get("error")
        leaves = (event.details.get("epoch") or 0) < 0
        if granted and of_group and not leaves and ours and event.details.get("lane") in lanes:
            yield event


def _within_its_incarnation(events: list[Event], source: str, request: Event) -> bool:
    begins = [e.time_ns for e in events if e.source == source and e.kind == "started"]
    ends = [e.time_ns for e in events if e.source == source and e.kind == "exited"]
    return bool(begins) and min(begins) <= _begun_ns(request) and (not ends or _begun_ns(request) <= min(ends))


def _lived_at_once(asked: Iterable[Event]) -> bool:
    """One was let in before another one asked for the last time."""
    times: dict[str, list[int]] = {}
    for request in asked:
        times.setdefault(request.details["member_id"], []).append(_stamped_ns(request) - _lasted_ns(request))
    return any(min(one) <= min(other) < max(one) for one, other in permutations(times.values(), 2))


def _begun_ns(request: Event) -> int:
    """A join may be answered when its process has long gone."""
    return request.time_ns - _lasted_ns(request)


def _stamped_ns(request: Event) -> int:
    """By the broker's clock: the lines of two requests may be read at once."""
    return request.time_ns if request.source_wall_ns is None else request.source_wall_ns


def _lasted_ns(request: Event) -> int:
    return int(request.details.get("duration_ms", 0) * 1_000_000)


def _client(event: Event) -> str | None:
    return event.details.get("client_id") or event.details.get("member_id")


def _at_once(events: list[Event], source: str) -> list[str]:
    """The clients of a file; none where each one's lines end before the next one's begin."""
    spans: dict[str, list[int]] = {}
    for event in events:
        if event.source == source and (name := _client(event)):
            spans.setdefault(name, []).append(event.seq)
    for one, seqs in spans.items():
        for other, others in spans.items():
            if one != other and min(seqs) < min(others) < max(seqs):
                return sorted(spans)
    return []


def _of(event: Event, name: str) -> Event:
    return replace(event, source=f"{event.source}|{name}", member=f"{event.member}|{name}")


def _by_member_id(events: list[Event]) -> dict[tuple[object, object], set[str]]:
    """The client ids with which each member id of a lane joined its group; a producer, which has one of its own, only
    commits under the member id of its consumer."""
    found: dict[tuple[object, object], set[str]] = {}
    for event in events:
        about = event.details
        joins = str(about.get("api", "")).replace("_", "").upper() in ("JOINGROUP", "CONSUMERGROUPHEARTBEAT")
        if event.kind == "request" and joins and about.get("member_id") and about.get("client_id"):
            found.setdefault((about.get("lane"), about["member_id"]), set()).add(about["client_id"])
    return found


def _asked_by_client(
    event: Event, several: dict[str, list[str]], named: dict[tuple[object, object], set[str]]
) -> Event:
    """A request on the lane of such a process is in the lane of its client, by client id, else by its member id: as
    lines name it, or as the client's other requests do."""
    lanes = {int(source.split("-")[1][1:]): names for source, names in several.items()}
    if event.kind == "started" and "|" in event.source:
        return replace(event, details={**event.details, "lane": (event.details["lane"], event.source.split("|")[1])})
    if event.kind != "request" or event.details.get("lane") not in lanes:
        return event
    names = lanes[event.details["lane"]]
    said = [event.details.get(name) for name in ("client_id", "member_id")]
    said += sorted(named.get((event.details["lane"], event.details.get("member_id")), ()))
    client = next((one for one in said if one in names), None)
    return replace(event, details={**event.details, "lane": (event.details["lane"], client)})
