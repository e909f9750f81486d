"""What a group hands on, on a real cluster: the witness's lines against what was written, step by step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.history.store import create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.witness.witness import start_witness

pytestmark = pytest.mark.cluster


def test_a_topic_that_the_group_commits_on_is_read_from_its_beginning(cluster: BootedCluster, tmp_path: Path) -> None:
    """One that is made in the trial; of one that was there before, what came since. What was aborted is no hand-on."""
    name = f"hand-ons-{os.getpid()}"
    topic, way, old = f"{name}-in", f"{name}-way", f"{name}-old"
    folder = create_run_folder(tmp_path / "run", "test", "test")
    with Admin(cluster.observer_bootstrap) as admin, ChildProcesses("witness") as child_processes:
        for each in (topic, old):
            admin.create_topic(each, partitions=1, replication_factor=3)
        _write(cluster.observer_bootstrap, old, "before")
        arguments = ["--bootstrap", cluster.observer_bootstrap, "--history", str(folder.history)]
        arguments += ["--group", name, "--topic", topic]
        witness = start_witness(child_processes, "offsets_log", arguments, folder=folder)
        witness.ready(within_s=30)
        admin.create_topic(way, partitions=1, replication_factor=3)
        wait_until(lambda: {topic, way, old} <= {*admin.topics()}, within_s=10, what="any broker to know the topics")
        _in_a_transaction(cluster.observer_bootstrap, way, name)
        for each in (way, old):
            _write(cluster.observer_bootstrap, each, "since")
        _commit(cluster.observer_bootstrap, name, topic, way, old)
        assert witness.snapshot(within_s=30) == "complete"
        assert witness.stop() == 0
        for each in (topic, way, old):
            admin.delete_topic(each)
    told = [event for event in folder.events() if event.source == "through"]
    assert {event.topic: event.details["made"] for event in told if event.kind == "through"} == {way: True, old: False}
    handed_on = [(event.topic, event.offset, event.id) for event in told if event.kind == "handed_on"]
    # Records and markers take an offset each: r0 was committed, r1 aborted. The answer to an abort comes before its
    # marker is written, so that what is written next may stand before it.
    since = next(offset for topic, offset, name in handed_on if (topic, name) == (way, "since"))
    assert since in (3, 4)
    of_way, of_old = [(way, 0, "r0"), (way, since, "since")], [(old, 1, "since")]
    assert handed_on in (of_way + of_old, of_old + of_way)


def _write(bootstrap: str, topic: str, name: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(topic, b"{}", headers={"kt-id": name})
    assert producer.flush(30) == 0


def _in_a_transaction(bootstrap: str, topic: str, name: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, b"{}", headers={"kt-id": f"r{number}"})
        assert producer.flush(30) == 0
        end(30)


def _commit(bootstrap: str, group: str, *topics: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1) for topic in topics], asynchronous=False)
    consumer.close()
