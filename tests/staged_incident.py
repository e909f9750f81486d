"""An incident staged on a real cluster by real clients: the stuck partition that is not stuck (case 0), to be audited.

Two members of one group. The owner of partition 0 commits 12, which is its end; the other one, a live member of the
same generation, then commits 11 there. Both go on polling, the partition stays quiet. Beside them a sound group reads
the same topic and commits only what is its own, forward. All of it in both protocols.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.process.waiting import wait_until

RECORDS = 12
STANDS_S = 21.0  # two windows W, before which records must have been there to count as left behind
PROTOCOLS = ("classic", "consumer")
GROUPS = {f"{kind}-{protocol}": size for protocol in PROTOCOLS for kind, size in (("incident", 2), ("sound", 1))}
CLAIM = """
[claim]
delivery = "unclaimed"
[kafka]
session_timeout_s = 6
poll_interval_s = 3
[progress]
interval_s = 0.5
"""
Members = Mapping[str, Sequence[Consumer]]


@dataclass(frozen=True)
class Staged:
    """What was staged, and how to ask for it, through a listener that nobody else uses.

    `until_s` is the wall clock when it had stood for long enough.
    """

    bootstrap: str
    listener: str
    topic: str
    request_logs: Sequence[Path]
    claim: Path
    until_s: float

    def words(self, group: str, *, out: Path, topic: str | None = None) -> list[str]:
        """Returns the command line of the audit of a group, from an hour before on."""
        ago_s = time.time() - self.until_s
        words = ["audit", "--bootstrap", self.bootstrap, "--topic", topic or self.topic]
        words += ["--group", f"{self.topic}-{group}", "--from", f"{ago_s + 3600:.3f}s", "--until", f"{ago_s:.3f}s"]
        return [*words, "--claim", str(self.claim), "--out", str(out), "--no-check"]


@contextmanager
def staged(cluster: BootedCluster, folder: Path, *, replicas: int) -> Iterator[Staged]:
    """Stages the incident and yields when it has stood for long enough; `<topic>-sink` tells what was handled."""
    topic = f"audited-{folder.name}".replace("_", "-")
    claim = folder / "claim.toml"
    claim.write_text(CLAIM)
    with Admin(cluster.observer_bootstrap) as admin:
        for name in (topic, f"{topic}-sink"):
            admin.create_topic(name, partitions=2, replication_factor=replicas)
    logs = [broker.request_log for broker in cluster.brokers.values()]
    with cluster.lease_lanes(2) as lanes, _members(lanes[1].bootstrap, topic) as members:
        _produce(lanes[1].bootstrap, topic)
        _play(members, topic)
        yield Staged(lanes[0].bootstrap, f"LANE{lanes[0].index}", topic, logs, claim, time.time())


@contextmanager
def _members(bootstrap: str, topic: str) -> Iterator[Members]:
    members = {
        name: [_member(bootstrap, f"{topic}-{name}", f"{name}-{number}") for number in range(size)]
        for name, size in GROUPS.items()
    }
    try:
        yield members
    finally:
        for member in _all(members):
            member.close()


def _member(bootstrap: str, group: str, client_id: str) -> Consumer:
    protocol = group.rpartition("-")[2]
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "client.id": client_id,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    return Consumer(settings | ({"session.timeout.ms": 6000} if protocol == "classic" else {}))


def _produce(bootstrap: str, topic: str) -> None:
    """Sends records whose time is a little ago (they had long been there), and their ids to the sink."""
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    made_ms = int(time.time() * 1000) - 600_000
    for number in range(RECORDS):
        for partition in (0, 1):
            name = f"r{partition}-{number}"
            headers = {"kt-id": name.encode()}
            producer.produce(topic, b"{}", partition=partition, headers=headers, timestamp=made_ms + number)
            producer.produce(f"{topic}-sink", f'{{"id": "{name}"}}', partition=partition)
    assert producer.flush(30) == 0


def _play(members: Members, topic: str) -> None:
    """Plays the incident in the groups of two, and a sound life in the others."""
    for member in _all(members):
        member.subscribe([topic])
    settled = {name: [2 // size] * size for name, size in GROUPS.items()}
    wait_until(
        lambda: _polled(members) and {name: _owned(group) for name, group in members.items()} == settled,
        within_s=60,
        what="every member to have its partitions",
        every_s=0.0,
    )
    for value in (5, RECORDS):
        for member in _all(members):
            _commit(member, topic, {place.partition: value for place in member.assignment()})
    for group in members.values():
        for member in group:
            if len(group) > 1 and member.assignment()[0].partition != 0:
                _commit(member, topic, {0: RECORDS - 1})  # not its own: the sin
    ends_s = time.monotonic() + STANDS_S
    wait_until(lambda: _polled(members) and time.monotonic() > ends_s, within_s=90, what="time to pass", every_s=0.0)


def _all(members: Members) -> list[Consumer]:
    return [member for group in members.values() for member in group]


def _owned(group: Sequence[Consumer]) -> list[int]:
    return [len(member.assignment()) for member in group]


def _polled(members: Members) -> bool:
    for member in _all(members):
        member.poll(0.05)
    return True


def _commit(member: Consumer, topic: str, positions: Mapping[int, int]) -> None:
    places = [TopicPartition(topic, partition, value) for partition, value in positions.items()]
    for place in member.commit(offsets=places, asynchronous=False) or ():
        assert place.error is None
