"""Brokers that a stage changed and that gave no member of a consumer a record since: the stage shows nothing of them.

A broker that comes back leads no partition until leaders are balanced, so members, which read from leaders, ask it for
nothing. Without this check a consumer that cannot read from the new version would be a go.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kafka_trial.cluster.cluster import FIRST_CONTROLLER, node_name
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.refused_requests import SOURCE
from kafka_trial.history.store import RunFolder
from kafka_trial.model.kernels import NONE
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.wall_clock import monotonic
from kafka_trial.upgrade.availability_events import clocks_of
from kafka_trial.upgrade.broker_changes import BrokerChanges, broker_changes


def unfetched_brokers(folder: RunFolder, *, begins_ns: float) -> list[str]:
    """Returns the brokers that were changed after `begins_ns` (monotonic clock) and not removed, and from which no
    member has got a record since. `folder` holds the history up to the end of the stage that begins then.

    Raises:
        ValueError: a line of the history is no event.
    """
    return _unfetched(folder, broker_changes(folder.history), begins_ns=begins_ns)


def unfetched_in_words(folder: RunFolder, *, begins_ns: float) -> str:
    """Returns why a stage shows nothing of brokers that it changed; "" where it does."""
    changes = broker_changes(folder.history)
    unfetched = _unfetched(folder, changes, begins_ns=begins_ns)
    if not unfetched:
        return ""
    versions = changes.versions
    told = " and ".join(f"{name} ({versions[name]} now)" if name in versions else name for name in unfetched)
    return f"no member was seen to get a record from {told}: the stage does not show that it can"


def _unfetched(folder: RunFolder, changes: BrokerChanges, *, begins_ns: float) -> list[str]:
    lanes, clocks = _lanes_of_members(folder.history), clocks_of(folder)
    return [
        node_name(broker)
        for broker, changed_ns in sorted(changes.changed_ns.items())
        if changed_ns > begins_ns
        and broker < FIRST_CONTROLLER
        and broker not in changes.gone
        and not _gave_records(folder.history / f"{SOURCE}{node_name(broker)}.jsonl", lanes, clocks, since_ns=changed_ns)
    ]


def _lanes_of_members(history: Path) -> set[object]:
    """Returns the lanes that members were started with: the observer has none, and other groups have others."""
    started = (event for file in history.glob("consumer-*.jsonl") for event in _events(file, b'"kind":"started"'))
    return {event.details.get("lane") for event in started if event.member} - {None}


def _gave_records(file: Path, lanes: set[object], clocks: TrialContext, *, since_ns: int) -> bool:
    """Tells whether a broker answered one of the lanes a fetch with bytes, by the witness of its request log."""
    return any(
        event.details.get("lane") in lanes
        and any(entry["size_bytes"] > 0 for entry in event.details.get("entries") or ())
        and _answered_ns(event, clocks) > since_ns
        for event in _events(file, b'"api":"FETCH"')
    )


def _answered_ns(event: Event, clocks: TrialContext) -> int:
    """Returns when a broker wrote a request down, which its witness may read much later."""
    wall_ns = np.array([NONE if event.source_wall_ns is None else event.source_wall_ns])
    return min(event.time_ns, int(monotonic(clocks, wall_ns, np.array([event.time_ns]))[0]))


def _events(file: Path, mark: bytes) -> Iterator[Event]:
    if file.exists():
        yield from (from_line(raw) for raw in file.read_bytes().splitlines() if mark in raw)
