"""Brokers replaced by new ones: how a managed service upgrades, and what takes away every address that a client knows.

A broker of another id, version, address and data folder joins. Everything that the old one holds moves there, records,
offsets and transactions alike, while the group is at work. Then the old one is shut down and unregistered. The
controllers are nodes of their own, and stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

from kafka_trial.cluster.cluster import node_name
from kafka_trial.cluster.versions import DEFAULT_VERSION, find_version
from kafka_trial.errors import UnjudgeableError
from kafka_trial.kafka_protocol.cluster_changes import unregister_broker
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.nemesis.brokers import AWAY, ended_in_order, nodes_named
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import TopicSnapshot
from kafka_trial.process.waiting import wait_until

UNREGISTERED_WITHIN_S = 15.0


@fault("broker-replace", targets=("all",), scope="brokers", heals=True, consequences=AWAY)
def broker_replace(
    injection: Injection, *, brokers: str = "b0", by: str = "b3", version: str = DEFAULT_VERSION
) -> Iterator[Evidence]:
    """Replaces brokers by new ones of another version, one after the other: data moves, and the old addresses end."""
    find_version(version)
    cluster = injection.context.cluster
    pairs = list(zip(nodes_named(brokers, cluster.brokers), nodes_named(by, cluster.request_logs), strict=True))
    injection.injected()
    cluster.ruin(f"its brokers were replaced by such of {version}")
    turns = []
    for old, new in pairs:
        turns.append(_replaced(injection, old, new, version))
        if not turns[-1].took_effect or injection.stop.is_set():
            break
    details = {"brokers": [dict(turn.details) for turn in turns]}
    if not turns[-1].took_effect:
        yield Evidence(False, turns[-1].message, details)
    else:
        told = ", ".join(f"{node_name(old)} by {node_name(new)}" for old, new in pairs[: len(turns)])
        yield Evidence(True, f"brokers were replaced by such of Kafka {version}: {told}", details)


def _replaced(injection: Injection, old: int, new: int, version: str) -> Evidence:
    """Replaces one broker; whoever fails on the way says so, and leaves the cluster as it is then."""
    cluster, leaving = injection.context.cluster, injection.context.cluster.brokers[old]
    was = injection.process_of("before", leaving)
    began_s = time.monotonic()
    cluster.join(new, version)
    moved = injection.context.move_replicas(old, new)
    moved_s = time.monotonic() - began_s
    injection.topic("inside")
    ended = ended_in_order(injection, leaving, was)
    if not ended.took_effect:
        return ended
    _unregister(injection, old)
    cluster.leave(old)
    gone_s = time.monotonic() - began_s
    there = injection.topic("after")
    details = {"broker": old, "by": new, "version": version, "partitions": moved}
    return gone(there, old, new).with_details(**details, moved_s=round(moved_s, 3), gone_s=round(gone_s, 3))


def gone(there: TopicSnapshot, old: int, new: int) -> Evidence:
    """No partition of the topic is led by the old broker, or in sync there; the new one is among those in sync."""
    left = [one.partition for one in there.leaders if old in (one.broker, *one.isr)]
    if left or not there.leaders:
        named = f"broker {old} is still named for partitions {left}"
        return Evidence(False, named if left else "no leader could be read")
    if not any(new in one.isr for one in there.leaders):
        return Evidence(False, f"broker {new} is in sync with no partition: nothing was moved there")
    return Evidence(True, f"broker {new} stands in the place of {old}")


def _unregister(injection: Injection, broker: int) -> None:
    """Takes a broker out of the cluster, and makes sure that it is: a second order finds nobody."""
    refusals = [""]

    def unregistered() -> bool:
        with closing(Brokers(",".join(f"{host}:{port}" for host, port in others))) as asked:
            try:
                return not asked.anyone(lambda at: unregister_broker(at, broker))
            except NoAnswerError as error:
                refusals[:] = [str(error)]
                return False

    cluster = injection.context.cluster
    others = [cluster.observer_address(other) for other in sorted(cluster.brokers) if other != broker]
    if not others:
        raise UnjudgeableError(f"broker {broker} is the last one: nobody is left to take it out")
    wait_until(
        unregistered,
        within_s=UNREGISTERED_WITHIN_S,
        what=f"broker {broker} to be unregistered",
        every_s=0.2,
        detail=lambda: refusals[0],
    )
