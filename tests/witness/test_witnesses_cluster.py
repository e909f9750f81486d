"""The three witnesses on a real cluster: all that clients did is in the history, also when brokers die."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.cluster import Lane
from kafka_trial.history.event import Event
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.witness.witness import Witness, snapshot_all, start_witnesses

pytestmark = pytest.mark.cluster
PARTITIONS, RECORDS = 3, 300


@dataclass
class Watched:
    """One topic and group on a warm cluster, with witnesses that follow them."""

    cluster: BootedCluster
    folder: RunFolder
    topic: str
    group: str
    lanes: Sequence[Lane]
    witnesses: Sequence[Witness]

    def snapshot(self) -> dict[str, str]:
        return snapshot_all(self.witnesses, within_s=30)

    def events(self, *kinds: str) -> list[Event]:
        return [event for event in self.folder.events() if event.kind in kinds]

    def requests(self, api: str) -> list[Event]:
        return [event for event in self.events("request") if event.details["api"] == api]

    def consumer(self, settings: Mapping[str, Any] = MappingProxyType({})) -> Consumer:
        """A member in the trial's first lane."""
        base = {"bootstrap.servers": self.lanes[0].bootstrap, "group.id": self.group, "log_level": 0}
        return Consumer(base | {"enable.auto.commit": False, "auto.offset.reset": "earliest"} | dict(settings))


@contextmanager
def _watched(cluster: BootedCluster, path: Path) -> Iterator[Watched]:
    name = f"{path.name}-{os.getpid()}".replace("_", "-")
    folder = create_run_folder(path / "run", "test", "test")
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic(name, partitions=PARTITIONS, replication_factor=3)
    with cluster.lease_lanes(2) as lanes, ChildProcesses("witnesses") as child_processes:
        started = start_witnesses(child_processes, cluster, folder=folder, topics=[name], group=name, lanes=lanes)
        for witness in started:
            witness.ready(within_s=30)
        yield Watched(cluster, folder, name, name, lanes, started)
        assert {witness.stop() for witness in started if witness.alive} <= {0}


@pytest.fixture
def watched(cluster: BootedCluster, tmp_path: Path) -> Iterator[Watched]:
    """A watched trial with records in its topic: record `r<n>` has key `k<n mod 7>` and a JSON value."""
    with _watched(cluster, tmp_path) as watched:
        yield watched


def _produce(watched: Watched, records: range) -> dict[str, tuple[int, int]]:
    """Sends records `r<n>` with key `k<n mod 7>`; returns where each is."""
    places: dict[str, tuple[int, int]] = {}
    producer = Producer({"bootstrap.servers": watched.cluster.observer_bootstrap, "enable.idempotence": True})
    for n in records:

        def placed(error: object, message: Any, name: str = f"r{n}") -> None:
            assert error is None
            places[name] = message.partition(), message.offset()

        headers: dict[str, str | bytes | None] = {"kt-id": f"r{n}"} if n % 2 else {}
        producer.produce(watched.topic, _value(n), key=f"k{n % 7}", headers=headers, on_delivery=placed)
    assert producer.flush(30) == 0
    return places


def _value(n: int) -> bytes:
    return json.dumps({"id": f"r{n}", "n": n}).encode()


def _handle(consumer: Consumer, count: int) -> None:
    handled: list[int] = []

    def done() -> bool:
        handled.extend(1 for message in consumer.consume(100, 0.2) if message.error() is None)
        return len(handled) >= count

    wait_until(done, within_s=40, what=f"{count} records to be handled", every_s=0.0)


def test_what_a_classic_group_did_is_witnessed(watched: Watched) -> None:
    """Commits, the group and its end, requests by lane, log ends, and every record with id, key and checksum."""
    places = _produce(watched, range(RECORDS))
    consumer = watched.consumer({"client.id": "me"})
    consumer.subscribe([watched.topic])
    _handle(consumer, RECORDS)
    committed = {part.partition: part.offset for part in consumer.commit(asynchronous=False)}
    consumer.close()
    assert watched.snapshot() == {"offsets_log": "complete", "request_log": "complete", "observe": "complete"}

    commits = {event.partition: event.committed_offset for event in watched.events("committed")}
    groups = [event.details for event in watched.events("group")]
    assert commits == committed
    assert [group["state"] for group in groups][-2:] == ["stable", "empty"]
    assert {entry["partition"] for group in groups for entry in group["entries"]} == set(range(PARTITIONS))

    asked = watched.requests("OFFSET_COMMIT")
    answered = {entry["partition"]: entry for event in asked for entry in event.details["entries"]}
    assert {place: entry["committed_offset"] for place, entry in answered.items()} == committed
    assert {(event.details["lane"], event.details["client_id"], event.details["error"]) for event in asked} == {
        (watched.lanes[0].index, "me", 0)
    }
    for api in ("JOIN_GROUP", "SYNC_GROUP", "OFFSET_FETCH", "LEAVE_GROUP", "FETCH", "METADATA"):
        assert watched.requests(api), api

    ends = {event.partition: event.offset for event in watched.events("log_end")}
    assert ends == {part: sum(place[0] == part for place in places.values()) for part in range(PARTITIONS)}
    read = {event.id: event for event in watched.events("record")}
    assert {name: (event.partition, event.offset) for name, event in read.items()} == places
    assert {
        name: (event.key, event.details["checksum"], event.details["size_bytes"]) for name, event in read.items()
    } == {f"r{n}": (f"k{n % 7}", zlib.crc32(_value(n)), len(_value(n))) for n in range(RECORDS)}


def test_a_transaction_that_aborts_is_told_from_one_that_commits(watched: Watched) -> None:
    """Both commits are seen; only the aborted one is marked so, and each marker has its place."""
    _produce(watched, range(10))
    consumer = watched.consumer()
    consumer.subscribe([watched.topic])
    _handle(consumer, 10)
    settings = {"bootstrap.servers": watched.lanes[1].bootstrap, "transactional.id": watched.topic, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(30)
    for committed_offset, commits in ((4, True), (9, False)):
        producer.begin_transaction()
        place = TopicPartition(watched.topic, 0, committed_offset)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    consumer.close()
    assert watched.snapshot()["offsets_log"] == "complete"

    seen = {event.committed_offset: event for event in watched.events("committed")}
    aborted = watched.events("commit_aborted")
    markers = watched.events("transaction_marker")
    assert set(seen) == {4, 9}
    assert [(event.committed_offset, event.details["log_offset"]) for event in aborted] == [
        (9, seen[9].details["log_offset"])
    ]
    assert [event.details["state"] for event in markers] == ["commit", "abort"]
    assert {event.details["producer_id"] for event in (*markers, *seen.values())} == {seen[4].details["producer_id"]}


def test_an_open_transaction_of_another_group_hides_nothing(watched: Watched) -> None:
    """While a stranger's transaction hangs in the same partition of the offsets log, our commits are still seen."""
    _produce(watched, range(10))
    consumer = watched.consumer()
    consumer.subscribe([watched.topic])
    _handle(consumer, 10)
    settings = {"bootstrap.servers": watched.lanes[1].bootstrap, "transactional.id": watched.topic, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(watched.topic, 0, 1)], consumer.consumer_group_metadata(), 30)
    consumer.commit(offsets=[TopicPartition(watched.topic, 1, 3)], asynchronous=False)
    assert watched.snapshot()["offsets_log"] == "complete"
    producer.abort_transaction(30)
    consumer.close()
    assert [(event.partition, event.committed_offset) for event in watched.events("committed")] == [(0, 1), (1, 3)]


def test_a_kip848_group_is_witnessed(watched: Watched) -> None:
    """Members, epochs, targets and current assignments, and heartbeats with what was told."""
    _produce(watched, range(10))
    consumer = watched.consumer({"group.protocol": "consumer"})
    consumer.subscribe([watched.topic])
    _handle(consumer, 10)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert watched.snapshot() == {"offsets_log": "complete", "request_log": "complete", "observe": "complete"}

    owned = [event.details["entries"] for event in watched.events("member_assignment") if event.details["entries"]]
    topic_id = watched.events("topic")[0].topic_id
    assert {(entry["topic_id"], entry["partition"]) for entry in owned[-1]} == {
        (topic_id, partition) for partition in range(PARTITIONS)
    }
    assert {event.topic_id for event in watched.events("committed")} == {topic_id}
    assert {event.details["record_type"] for event in watched.events("group_tombstone")} >= {5, 7, 8}
    told = [
        event.details["assigned"]
        for event in watched.requests("CONSUMER_GROUP_HEARTBEAT")
        if "assigned" in event.details
    ]
    assert len(told[0]) == PARTITIONS
    assert watched.events("group_state")[-1].details["protocol"] in ("classic", "consumer")


@pytest.mark.rotates
def test_the_witnesses_outlive_the_brokers_they_ask(watched: Watched) -> None:
    """The coordinator is killed and started again; no acknowledged commit is missing, all witnesses complete."""
    _produce(watched, range(RECORDS))
    consumer = watched.consumer({"session.timeout.ms": 6000})
    consumer.subscribe([watched.topic])
    _handle(consumer, RECORDS)
    with Admin(watched.cluster.observer_bootstrap) as admin:
        victim = watched.cluster.brokers[admin.coordinator_of(watched.group)]
    acknowledged = [_committed(consumer, 1)]
    victim.kill()
    acknowledged += [wait_until(lambda: _committed(consumer, 2), within_s=60, what="a commit after the kill")]
    victim.start()
    with Admin(watched.cluster.observer_bootstrap) as admin:
        wait_until(lambda: not _missing(admin), within_s=60, what="the full ISR", every_s=0.25)
    acknowledged += [wait_until(lambda: _committed(consumer, 3), within_s=60, what="a commit after the restart")]
    consumer.close()
    assert watched.snapshot() == {"offsets_log": "complete", "request_log": "complete", "observe": "complete"}

    seen = [event.committed_offset for event in watched.events("committed")]
    assert [value for value in acknowledged if value not in seen] == []
    assert watched.events("unanswered")
    assert len({event.details["leader"] for event in watched.events("coordinator")}) > 1
    assert max(event.details["epoch"] for event in watched.events("leader")) > 0


def _committed(consumer: Consumer, committed_offset: int) -> int | None:
    consumer.poll(0.1)
    assigned = consumer.assignment()
    if not assigned:
        return None
    try:
        place = TopicPartition(assigned[0].topic, assigned[0].partition, committed_offset)
        return committed_offset if not consumer.commit(offsets=[place], asynchronous=False)[0].error else None
    except KafkaException:
        return None


def _missing(admin: Admin) -> list[str]:
    try:
        return admin.under_replicated() if len(admin.broker_ids()) == 3 else ["a broker is not registered"]
    except Exception as error:  # noqa: BLE001 - the cluster is being restored; asked again
        return [str(error)]


def test_a_witness_that_dies_is_dead_at_the_snapshot(watched: Watched) -> None:
    """Killed with -9, it does not answer `complete`."""
    watched.witnesses[0].child.kill()
    watched.witnesses[0].child.wait(within_s=10)
    states = watched.snapshot()
    assert states["offsets_log"] == "dead"
