"""Each broker is asked for itself; the newest answer counts, and silence stays unknown."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import HistoryTail
from kafka_trial.nemesis.context import RequestLog, _header, _newest, _Reader, _round_trip, _string, ask
from kafka_trial.nemesis.samples import Leader, TopicSnapshot
from kafka_trial.process.waiting import wait_until


def test_the_highest_epoch_wins() -> None:
    """A broker that was cut off tells what was; whoever knows a later epoch is believed."""
    stale = [Leader(0, 1, 3, (0, 1)), Leader(1, 2, 5, (0, 1, 2))]
    fresh = [Leader(0, 2, 4, (0, 2)), Leader(1, 2, 5, (0, 2))]
    expected = (Leader(0, 2, 4, (0, 2)), Leader(1, 2, 5, (0, 2)))
    assert (_newest([stale, fresh]), _newest([fresh, stale])) == (expected, expected)


def test_nobody_answers() -> None:
    """Down and silent brokers leave everything unknown, within a bounded time."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        look = ask([silent.getsockname()], "t", "g")
    assert replace(look, time_ns=0) == TopicSnapshot(0)


@pytest.mark.cluster
def test_brokers_say_what_the_admin_says(cluster: BootedCluster) -> None:
    """The raw answers agree with those of a whole client; a broker that falls behind moves both."""
    addresses = [cluster.observer_address(broker) for broker in sorted(cluster.brokers)]
    topic = f"{cluster.name}-asking"
    views: list[tuple[object, object]] = []
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic(topic, partitions=4, replication_factor=3)

        def agreed() -> bool:
            look = ask(addresses, topic, "some-group")
            seen = [(one.partition, one.broker, one.epoch, one.isr) for one in look.leaders]
            state = admin.describe(topic)
            assert state is not None
            told = [
                (part.partition, part.leader, part.leader_epoch, tuple(sorted(part.isr))) for part in state.partitions
            ]
            views.append(
                (
                    (seen, look.coordinator, look.controller),
                    (told, admin.coordinator_of("some-group"), admin.controller()),
                )
            )
            return len(seen) == 4 and views[-1][0] == views[-1][1]

        wait_until(agreed, within_s=20, what="one answer from both", detail=lambda: str(views[-1]))


@pytest.mark.cluster
@pytest.mark.parametrize("group", ["g1", "orders", "größe", "a-long-name-with-a-hash-beyond-32-bits"])
def test_the_coordinator_is_the_one_that_brokers_name(cluster: BootedCluster, group: str) -> None:
    """FindCoordinator v2 names the same broker, also where the name's hash is negative."""
    addresses = [cluster.observer_address(broker) for broker in sorted(cluster.brokers)]
    answer = _round_trip(addresses[0], _header(10, 2) + _string(group) + b"\x00")
    read = _Reader(answer, at=8)
    error, _, broker = read.i16(), read.string(), read.i32()
    assert (error, ask(addresses, "no-topic", group).coordinator) == (0, broker)


MS = 1_000_000
ASKED = {"lane": 3, "group": "g", "api": "JOIN_GROUP", "error": 0, "duration_ms": 1.0, "source_wall_ns": 60 * MS}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, [("JOIN_GROUP", 0)]),
        ({"error": 23, "epoch": -1}, [("JOIN_GROUP", 23)]),
        ({"api": "CONSUMER_GROUP_HEARTBEAT", "epoch": 0}, [("CONSUMER_GROUP_HEARTBEAT", 0)]),
        ({"api": "CONSUMER_GROUP_HEARTBEAT", "epoch": -1}, []),
        ({"api": "CONSUMER_GROUP_HEARTBEAT", "epoch": -2}, []),
        ({"duration_ms": 20.0}, []),
        ({"lane": 2}, []),
        ({"group": "other"}, []),
        ({"api": "FETCH"}, []),
    ],
    ids=["a join", "refused", "KIP-848", "goodbye", "static goodbye", "its predecessor's", "lane", "group", "API"],
)
def test_who_asks_to_be_in_the_group(changes: dict[str, object], found: list[tuple[str, int]], tmp_path: Path) -> None:
    """By requests that were begun since the process was started: the one before may be answered after its end."""
    log = RequestLog(HistoryTail(tmp_path, "requests-b*.jsonl"))
    with Recorder(tmp_path, "requests-b0") as recorder:
        recorder.record("request", **(ASKED | changes))
    assert log.asked_to_join(3, "g", since_wall_ns=50 * MS) == found
    assert log.asked_to_join(3, "g", since_wall_ns=50 * MS) == []
