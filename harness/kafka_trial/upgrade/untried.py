"""Brokers that a stage changed and that gave no member of a consumer a record since: the stage shows nothing of them.

A broker that comes back leads no partition until leaders are balanced, so that nobody asks it for a record. A consumer
that cannot read from its version would be a go.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafka_trial.history.event import Event, from_line
from kafka_trial.history.refused_requests import SOURCE
from kafka_trial.upgrade.broker_changes import broker_changes


def untried_brokers(history: Path, *, begins_ns: float) -> list[str]:
    """Returns the brokers changed since a stage began (monotonic clock), and still there, from which no member got a
    record since.

    Raises:
        ValueError: a line of the history is no event.
    """
    changes = broker_changes(history)
    gone = {f"b{broker}" for broker in changes.gone}
    changed = {name: at_ns for name, at_ns in changes.changed_ns.items() if at_ns > begins_ns and name.startswith("b")}
    lanes = _lanes(history)
    return [
        name
        for name, changed_ns in sorted(changed.items())
        if name not in gone and not _gave_records(history / f"{SOURCE}{name}.jsonl", lanes, since_ns=changed_ns)
    ]


def untried_in_words(history: Path, *, begins_ns: float) -> str:
    """Returns why a stage shows nothing of brokers that it changed; "" where it does."""
    untried = untried_brokers(history, begins_ns=begins_ns)
    if not untried:
        return ""
    versions = broker_changes(history).versions
    told = " and ".join(f"{name} ({versions[name]} now)" if name in versions else name for name in untried)
    return f"no member was seen to get a record from {told}: the stage does not show that it can"


def _lanes(history: Path) -> set[object]:
    """Returns the lanes of members."""
    started = (event for file in history.glob("consumer-*.jsonl") for event in _events(file, b'"kind":"started"'))
    return {event.details.get("lane") for event in started if event.member} - {None}


def _gave_records(file: Path, lanes: set[object], *, since_ns: int) -> bool:
    """Tells whether a broker answered one of the lanes a fetch with bytes, by the witness of its request log."""
    return any(
        event.time_ns > since_ns
        and event.details.get("lane") in lanes
        and any(entry["size_bytes"] > 0 for entry in event.details.get("entries") or ())
        for event in _events(file, b'"api":"FETCH"')
    )


def _events(file: Path, mark: bytes) -> Iterator[Event]:
    if file.exists():
        yield from (from_line(raw) for raw in file.read_bytes().splitlines() if mark in raw)
