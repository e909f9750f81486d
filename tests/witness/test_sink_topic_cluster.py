"""The witness of a sink topic on a real cluster: its effects against what was committed, taken back and left open."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.witness.witness import Witness, start_witness

pytestmark = pytest.mark.cluster


@contextmanager
def reading(cluster: BootedCluster, folder: RunFolder, topic: str, *, times: str = "CreateTime") -> Iterator[Witness]:
    """A witness of a fresh topic of two partitions; ids are in the header `order`, or in $.order.id."""
    configs = {"message.timestamp.type": times, "retention.ms": "-1"}  # else a record of 1970 is gone in a second
    with Admin(cluster.observer_bootstrap) as admin, ChildProcesses("witness") as child_processes:
        admin.create_topic(topic, partitions=2, replication_factor=3, configs=configs)
        arguments = ["--bootstrap", cluster.observer_bootstrap, "--history", str(folder.history), "--topic", topic]
        arguments += ["--partitions", "2", "--header", "order", "--field", "order.id"]
        witness = start_witness(child_processes, "sink_topic", arguments, folder=folder)
        witness.ready(within_s=30)
        yield witness
        assert witness.stop() == 0


def told(folder: RunFolder, kind: str) -> set[tuple[str | None, int | None, int | None]]:
    """Returns id, partition and offset of the events of a kind."""
    return {(event.id, event.partition, event.offset) for event in folder.events() if event.kind == kind}


def transactional(cluster: BootedCluster, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": cluster.observer_bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    return producer


def test_what_is_committed_is_an_effect_and_nothing_else(cluster: BootedCluster, tmp_path: Path) -> None:
    """By header and by JSON; what was taken back is none, and markers keep nobody from the end."""
    folder, topic = create_run_folder(tmp_path / "run", "test", "test"), f"sink-{os.getpid()}"
    with reading(cluster, folder, topic) as witness:
        producer = transactional(cluster, topic)
        for name, end in (("r0", producer.commit_transaction), ("r1", producer.abort_transaction)):
            producer.begin_transaction()
            producer.produce(topic, b"x", partition=0, headers={"order": name})
            producer.produce(topic, b'{"order": {"id": 7}}', partition=1, key="k")
            assert producer.flush(30) == 0
            end(30)
        assert witness.snapshot(within_s=30) == "complete"
    assert told(folder, "effect") == {("r0", 0, 0), ("7", 1, 0)}
    keys = {event.id: event.key for event in folder.events() if event.kind == "effect"}
    assert keys == {"r0": None, "7": "k"}


@pytest.mark.parametrize(("times", "by_its_broker"), [("LogAppendTime", True), ("CreateTime", False)])
def test_when_it_was_written_is_its_brokers_word(
    cluster: BootedCluster, tmp_path: Path, times: str, by_its_broker: bool
) -> None:
    """What its producer says of the time is nobody's evidence."""
    folder, topic = create_run_folder(tmp_path / "run", "test", "test"), f"sink-{times}-{os.getpid()}"
    with reading(cluster, folder, topic, times=times) as witness:
        producer = Producer({"bootstrap.servers": cluster.observer_bootstrap, "log_level": 0})
        begun_ns = time.time_ns() // 1_000_000 * 1_000_000
        producer.produce(topic, b"x", partition=0, headers={"order": "r0"}, timestamp=1)
        assert producer.flush(30) == 0
        ended_ns = time.time_ns()
        assert witness.snapshot(within_s=30) == "complete"
    (written_ns,) = (event.source_wall_ns for event in folder.events() if event.kind == "effect")
    assert (written_ns is not None and begun_ns <= written_ns <= ended_ns) if by_its_broker else written_ns is None


def test_an_open_transaction_keeps_it_from_the_end(cluster: BootedCluster, tmp_path: Path) -> None:
    """Committed readers do not see past it: nobody may say that all has been read."""
    folder, topic = create_run_folder(tmp_path / "run", "test", "test"), f"sink-open-{os.getpid()}"
    with reading(cluster, folder, topic) as witness:
        producer = transactional(cluster, topic)
        producer.begin_transaction()
        producer.produce(topic, b"x", partition=1, headers={"order": "r0"})
        assert producer.flush(30) == 0
        assert witness.snapshot(within_s=3) == "behind"
        assert "open transactions hide records" in str(witness.message)
        producer.abort_transaction(30)
    assert told(folder, "effect") == set()


def test_a_record_without_an_id_is_named(cluster: BootedCluster, tmp_path: Path) -> None:
    """Nobody knows whose output it is: it is told with its place, and what was read is not all that was there."""
    folder, topic = create_run_folder(tmp_path / "run", "test", "test"), f"sink-nameless-{os.getpid()}"
    with reading(cluster, folder, topic) as witness:
        producer = Producer({"bootstrap.servers": cluster.observer_bootstrap, "log_level": 0})
        producer.produce(topic, b'{"id": 7}', partition=1)
        assert producer.flush(30) == 0
        assert witness.snapshot(within_s=30) == "undecodable"
        assert "neither the header order nor $.order.id" in str(witness.message)
    assert told(folder, "undecodable") == {(None, 1, 0)}
