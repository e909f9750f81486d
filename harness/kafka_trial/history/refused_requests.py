"""Requests that brokers refused to read, by a history: whose, of which API and version, how often, in whose words.

A broker that cannot take a request closes its connection without an answer, and its request log has no line of it: what
its server.log said is in `request_refused` events. A client that is too old for its brokers shows in nothing else. No
verdict rests on these: they are told beside one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_trial.history.event import Event, from_line

UNSUPPORTED: Final = "unsupported"  # as its witness says of a version that brokers do not serve
TELLING: Final = (b'"kind":"request_refused"', b'"kind":"started"')
NAMED_MAX: Final = 3  # kinds of requests in a sentence
SOURCE: Final = "requests-"  # of a broker's events, before its name


@dataclass(frozen=True)
class Refused:
    """Requests of a member that were refused alike: `api` as its message definition calls it ("" where the broker does
    not say it), `version` too, `reason` (unsupported, unparsable, oversized), by which brokers, how often, when the
    first and the last were seen (monotonic clock), and a broker's words."""

    member: str
    api: str
    version: int | None
    reason: str
    brokers: tuple[str, ...]
    count: int
    first_ns: int
    last_ns: int
    message: str

    @property
    def request(self) -> str:
        """What was refused: "OffsetCommit v1"."""
        version = "" if self.version is None else f" v{self.version}"
        return f"{self.api}{version}" if self.api else "requests"


def refused_of_run(history: Path) -> list[Refused]:
    """Returns what brokers refused of the members of a run, by its folder `history`; none where nothing says so."""
    logs = [file for file in sorted(history.glob(f"{SOURCE}*.jsonl")) if TELLING[0] in file.read_bytes()]
    files = [*sorted(history.glob("consumer-*.jsonl")), *logs] if logs else []
    return refused_requests(event for file in files for event in _events_of(file))


def refused_requests(events: Iterable[Event]) -> list[Refused]:
    """Returns what `request_refused` events say, in any order among the `started` ones that name the members of lanes;
    what is alike is one."""
    members: dict[object, str] = {}
    seen: list[Event] = []
    for event in events:
        if event.kind == "request_refused":
            seen.append(event)
        elif event.kind == "started" and event.member:
            members[event.details.get("lane")] = event.member
    alike: dict[tuple[str, str, int | None, str], list[Event]] = {}
    for event in seen:
        told = event.details
        if member := members.get(told.get("lane")):
            of = member, _named(told.get("api") or ""), told.get("version"), str(told.get("reason", ""))
            alike.setdefault(of, []).append(event)
    return [_together(*of, told) for of, told in sorted(alike.items(), key=lambda pair: (pair[0][:2], pair[1][0].seq))]


def refusals_in_words(found: Iterable[Refused]) -> tuple[str, ...]:
    """Returns a sentence for each member: who refused what, how often, and how a broker put it."""
    by_member: dict[str, list[Refused]] = {}
    for one in found:
        by_member.setdefault(one.member, []).append(one)
    return tuple(f"{member}: {refusal_in_words(own)}" for member, own in by_member.items())


def refusal_in_words(own: Iterable[Refused]) -> str:
    """Returns a clause about what was refused of one member, the most frequent first."""
    often = sorted(own, key=lambda one: -one.count)
    brokers = ", ".join(sorted({broker for one in often for broker in one.brokers}))
    named = [f"{one.request} {_times(one.count)}" for one in often[:NAMED_MAX]]
    more = [f"{len(often) - NAMED_MAX} other kinds"] if len(often) > NAMED_MAX else []
    what = ", ".join([*named, *more])
    return f"{brokers} refused {what}, and closed the connection without an answer ({often[0].message})"


def _together(member: str, api: str, version: int | None, reason: str, told: list[Event]) -> Refused:
    return Refused(
        *(member, api, version, reason),
        brokers=tuple(sorted({event.source.removeprefix(SOURCE) for event in told})),
        count=sum(_count(event) for event in told),
        first_ns=min(event.details.get("first_ns", event.time_ns) for event in told),
        last_ns=max(event.details.get("last_ns", event.time_ns) for event in told),
        message=str(told[0].details.get("message", "")),
    )


def _count(event: Event) -> int:
    count = event.details.get("count")
    return count if isinstance(count, int) else 1


def _named(api: str) -> str:
    """Returns OffsetCommit for OFFSET_COMMIT, as brokers before 4.0 call it."""
    return "".join(word.capitalize() for word in api.split("_")) if api.isupper() else api


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _events_of(file: Path) -> Iterator[Event]:
    with file.open("rb") as lines:
        for raw in lines:
            if any(kind in raw for kind in TELLING) and raw.endswith(b"\n"):  # else it is being written
                try:
                    yield from_line(raw)
                except ValueError:  # damaged: the judge names it
                    continue
