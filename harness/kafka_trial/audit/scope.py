"""The scope of an audit: from when to when, how far its evidence was read, and what was not, by its own events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_trial.history.event import Event


@dataclass(frozen=True)
class Scope:
    """What an audit's own events say of it."""

    from_ns: int
    until_ns: int
    drain_ns: int
    settle_ns: int
    read_to_ns: int
    commits: int
    unread: Mapping[str, tuple[str, ...]]
    log_ends: Mapping[int, int]
    first_ns: Mapping[int, int]
    whole_ns: int | None
    requests: bool
    sink: str | None
    claimed: bool


def scope_of(events: Iterable[Event], *, requests: bool, sink: str | None, claimed: bool) -> Scope:
    """Returns the scope that an audit's events tell, one of the kind `audit` among them.

    `sink` is the kind of the sink that was read; None: there is none.
    """
    said: dict[str, list[Event]] = {}
    for event in events:
        said.setdefault(event.kind, []).append(event)
    told = said["audit"][0].details
    unread: dict[str, tuple[str, ...]] = {}
    for event in said.get("unread", ()):
        name = str(event.details.get("name"))
        unread[name] = (*unread.get(name, ()), str(event.details.get("message")))
    compacted = said.get("compacted", [])
    return Scope(
        **{name: int(told[name]) for name in ("from_ns", "until_ns", "drain_ns", "settle_ns", "read_to_ns", "commits")},
        unread=unread,
        log_ends={event.partition or 0: event.offset or 0 for event in said.get("log_end", ())},
        first_ns={
            event.partition or 0: event.source_wall_ns
            for event in said.get("log_start", ())
            if event.source_wall_ns is not None and not event.offset
        },
        whole_ns=compacted[0].source_wall_ns if compacted else None,
        requests=requests,
        sink=sink,
        claimed=claimed,
    )
