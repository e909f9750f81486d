"""Brokers that a stage changed and that gave no member of a consumer a record since: the stage shows nothing of them.

A broker that comes back leads no partition until leaders are balanced, so members, which read from leaders, ask it for
nothing. Without this check a consumer that cannot read from the new version would be a go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from kafka_trial.cluster.cluster import FIRST_CONTROLLER, node_name
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.refused_requests import SOURCE
from kafka_trial.history.store import RunFolder, lines_newest_first
from kafka_trial.model.kernels import NONE
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.wall_clock import monotonic
from kafka_trial.upgrade.availability_events import clocks_of
from kafka_trial.upgrade.broker_changes import BrokerChanges, broker_changes

FETCH: Final = b'"api":"FETCH"'


def unfetched_brokers(folder: RunFolder, *, begins_ns: float) -> list[str]:
    """Returns the brokers that were changed after `begins_ns` (monotonic clock) and not removed, and from which no
    member has got a record since. `folder` holds the history up to the end of the stage that begins then.

    Raises:
        ValueError: a line of the history is no event.
    """
    return _unfetched(folder, broker_changes(folder.history), begins_ns=begins_ns)


def followers_that_serve(
    folder: RunFolder, leaders: Mapping[int, int], brokers: Collection[str], *, since_ns: int
) -> list[int]:
    """Returns from which other brokers members got records, since an instant (monotonic clock), of a partition that one
    of `brokers` leads; `leaders`: the leader of each partition.

    A follower in sync answers consumers too (KIP-392; Fetch from version 11 on). A client whose requests name no leader
    epoch, as aiokafka's, learns of a new leader only when its metadata are old (metadata.max.age.ms: five minutes).

    Raises:
        ValueError: a line of the history is no event.
    """
    lanes, clocks = folder.member_lanes(), clocks_of(folder)
    led = {partition for partition, leader in leaders.items() if node_name(leader) in brokers}

    def serves(broker: int) -> bool:
        file = folder.history / f"{SOURCE}{node_name(broker)}.jsonl"
        return any(entry["partition"] in led for entry in _given_since(file, lanes, clocks, since_ns=since_ns))

    return [broker for broker in sorted(set(leaders.values())) if node_name(broker) not in brokers and serves(broker)]


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
    lanes, clocks = folder.member_lanes(), clocks_of(folder)
    return [
        node_name(broker)
        for broker, changed_ns in sorted(changes.changed_ns.items())
        if changed_ns > begins_ns
        and broker < FIRST_CONTROLLER
        and broker not in changes.gone
        and not _gave_records(folder.history / f"{SOURCE}{node_name(broker)}.jsonl", lanes, clocks, since_ns=changed_ns)
    ]


def _gave_records(file: Path, lanes: set[int], clocks: TrialContext, *, since_ns: int) -> bool:
    """Tells whether a broker answered one of the lanes a fetch with bytes, by the witness of its request log."""
    return any(_given_since(file, lanes, clocks, since_ns=since_ns))


def _given_since(file: Path, lanes: set[int], clocks: TrialContext, *, since_ns: int) -> Iterator[Mapping[str, Any]]:
    """Yields what a broker gave the lanes of each partition since an instant, the last answer first."""
    for event in (from_line(line) for line in lines_newest_first(file) if FETCH in line):
        if event.time_ns <= since_ns:  # when it was read, which is never before it was answered
            return
        if event.details.get("lane") in lanes and _answered_ns(event, clocks) > since_ns:
            yield from (entry for entry in event.details.get("entries") or () if entry["size_bytes"] > 0)


def _answered_ns(event: Event, clocks: TrialContext) -> int:
    """Returns when a broker wrote a request down, which its witness may read much later."""
    wall_ns = np.array([NONE if event.source_wall_ns is None else event.source_wall_ns])
    return min(event.time_ns, int(monotonic(clocks, wall_ns, np.array([event.time_ns]))[0]))
