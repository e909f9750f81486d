"""Several group members in one process, for the naive checker: each client becomes a member of its own.

A member's file in which the lines of several clients interleave is split into one file for each; what the process does
as a whole (started, exited) is in each of them. A request in such a lane is its client's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kafka_trial.history.event import Event

OF_PROCESS = ("started", "ready", "stopped", "exited")


def split(events: Iterable[Event]) -> list[Event]:
    """The same events, with every client of a process that holds several as a member with a file of its own."""
    listed = list(events)
    files = sorted({event.source for event in listed if event.source.startswith("consumer-")})
    several = {source: names for source in files if len(names := _at_once(listed, source)) > 1}
    result = []
    for event in listed:
        names = several.get(event.source, [])
        own = _client(event)
        whose = names if own is None and event.kind in OF_PROCESS else [own] if own in names else []
        result += [_of(event, name) for name in whose] if names else [event]
    return [_asked_by_client(event, several) for event in result]


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


def _asked_by_client(event: Event, several: dict[str, list[str]]) -> Event:
    """A request on the lane of such a process is in the lane of its client, by client id, else by its member id."""
    lanes = {int(source.split("-")[1][1:]): names for source, names in several.items()}
    if event.kind == "started" and "|" in event.source:
        return replace(event, details=event.details | {"lane": (event.details["lane"], event.source.split("|")[1])})
    if event.kind != "request" or event.details.get("lane") not in lanes:
        return event
    names = lanes[event.details["lane"]]
    said = [event.details.get(name) for name in ("client_id", "member_id")]
    client = next((one for one in said if one in names), None)
    return replace(event, details=event.details | {"lane": (event.details["lane"], client)})
