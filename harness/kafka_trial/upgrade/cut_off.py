"""Members that brokers served no more when a stage ended: what their logs and the history say of the cause.

Told with an outcome that is no go, which rests on other proof. What counts is the time from the last restart or
replacement of a broker in the history, or from where the stage begins, if that is later:

- brokers refused a version of an API, and served the member none of that API since: it is too old, or too new, for
  these brokers, though others that are not changed yet may go on to serve it;
- no broker got any request of it, though they had before: it has given up, or knows no address of a broker. Where every
  broker that it was started with has been replaced, that is said.

A member whose process has ended is the judge's to tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka_trial.compatibility.clients import api_named
from kafka_trial.compatibility.tables import apis, versions
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.refused_requests import SOURCE, UNSUPPORTED, Refused, refusal_in_words, refused_requests
from kafka_trial.upgrade.broker_changes import BrokerChanges, broker_changes

KINDS: Final = ("started", "exited", "request", "api_version", "request_refused")
READ: Final = tuple(f'"kind":"{kind}"'.encode() for kind in KINDS)
NAMED_MAX: Final = 3  # members of which more than the name is told
NS_PER_S: Final = 1e9


@dataclass
class _Seen:
    """What was seen of one lane: the last request before the time that counts (None: none), and since then which
    brokers served which APIs."""

    before_ns: int | None = None
    since: set[tuple[str, str]] = field(default_factory=set)

    def served(self, refused: Refused) -> bool:
        """Tells whether any of the brokers that refused a request served another one of its API since."""
        return any((broker, refused.api) in self.since for broker in refused.brokers)


def cut_off(history: Path, *, begins_ns: float) -> list[str]:
    """Returns a sentence for each member that was cut off in the stage that begins at an instant (monotonic clock)."""
    brokers = broker_changes(history)
    since_ns = int(max(begins_ns, brokers.last_ns))
    events = list(_events(history))
    members = {event.member: event for event in events if event.kind == "started" and event.member}
    ended = {(event.member, event.incarnation) for event in events if event.kind == "exited"}
    lanes = _lanes(events, since_ns)
    refused = _refused_since(events, since_ns)
    told = []
    for name, started in sorted(members.items()):
        if (name, started.incarnation) in ended:
            continue
        seen = lanes.get(started.details.get("lane"), _Seen())
        own = [one for one in refused if one.member == name]
        told += [f"{name} {what}" for what in _of_member(started, seen, own, brokers, since_ns)]
    return told


def cut_off_in_words(history: Path, *, begins_ns: float) -> str:
    """Returns the sentences of `cut_off` as one; "" where no member was."""
    told = cut_off(history, begins_ns=begins_ns)
    more = [f"{len(told) - NAMED_MAX} more members alike"] if len(told) > NAMED_MAX else []
    return "; ".join([*told[:NAMED_MAX], *more])


def _of_member(
    started: Event, seen: _Seen, refused: Sequence[Refused], brokers: BrokerChanges, since_ns: int
) -> Iterator[str]:
    never = [one for one in refused if one.api and one.reason == UNSUPPORTED and not seen.served(one)]
    if never:
        yield f"is {_fit(never, brokers)} for these brokers: {refusal_in_words(never)}"
    elif not seen.since and not refused and seen.before_ns is not None and since_ns > seen.before_ns:
        quiet_s = (since_ns - seen.before_ns) / NS_PER_S
        given = {broker for broker in started.details.get("started_with") or () if isinstance(broker, int)}
        why = ""
        if given and given <= brokers.gone:
            named = ", ".join(f"b{broker}" for broker in sorted(given))
            why = f"; every broker that it was started with ({named}) has been replaced: its addresses are gone"
        yield f"sent no request to these brokers, its last one came {quiet_s:.1f} s before they were as they are{why}"


def _fit(never: Sequence[Refused], brokers: BrokerChanges) -> str:
    """Returns whether versions that brokers refused are too old or too new for them; where the tables do not say, that
    they do not fit."""
    words = {_word(one, brokers.versions.get(broker, "")) for one in never for broker in one.brokers}
    return words.pop() if len(words) == 1 else "not fit"


def _word(one: Refused, version: str) -> str:
    if version not in versions() or one.version is None:
        return "not fit"
    served = apis(version).get(one.api)
    if served is None or one.version < served.lowest:
        return "too old"
    return "too new" if one.version > served.highest else "not fit"


def _refused_since(events: Sequence[Event], since_ns: int) -> list[Refused]:
    told = [one for one in events if one.kind == "started"]
    told += [one for one in events if one.kind == "request_refused" and one.details.get("last_ns", 0) >= since_ns]
    return refused_requests(told)


def _lanes(events: Sequence[Event], since_ns: int) -> dict[object, _Seen]:
    lanes: dict[object, _Seen] = {}
    for event in events:
        if event.kind in ("request", "api_version") and isinstance(lane := event.details.get("lane"), int):
            seen = lanes.setdefault(lane, _Seen())
            if event.time_ns >= since_ns:
                seen.since.add((event.source.removeprefix(SOURCE), api_named(-1, str(event.details.get("api")))))
            else:
                seen.before_ns = max(event.time_ns, seen.before_ns or event.time_ns)
    return lanes


def _events(history: Path) -> Iterator[Event]:
    """Yields the events that tell of clients, in the order of their files."""
    for file in (*sorted(history.glob("consumer-*.jsonl")), *sorted(history.glob("requests-*.jsonl"))):
        yield from (from_line(raw) for raw in _lines(file) if any(kind in raw for kind in READ))


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines() if file.exists() else []
