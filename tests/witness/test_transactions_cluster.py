"""The witness of transactions on a real cluster: its lines against what one producer did, step by step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.history.store import create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.witness.witness import start_witness

pytestmark = pytest.mark.cluster


def test_ends_and_what_was_taken_back_and_what_is_open(cluster: BootedCluster, tmp_path: Path) -> None:
    """One transaction commits, one aborts, one stays open; in the trial's topic and in an output."""
    name = f"transactions-{os.getpid()}"
    topic, output = f"{name}-in", f"{name}-out"
    folder = create_run_folder(tmp_path / "run", "test", "test")
    with Admin(cluster.observer_bootstrap) as admin:
        for each in (topic, output):
            admin.create_topic(each, partitions=1, replication_factor=3)
    arguments = ["--bootstrap", cluster.observer_bootstrap, "--history", str(folder.history)]
    with ChildProcesses("witness") as child_processes:
        arguments += ["--topic", topic, "--output", output]
        witness = start_witness(child_processes, "transactions", arguments, folder=folder)
        witness.ready(within_s=30)
        _three_transactions(cluster.observer_bootstrap, name, (topic, output))
        assert witness.snapshot(within_s=30) == "complete"
        assert witness.stop() == 0
    told = [
        (event.kind, event.topic, event.offset, event.details.get("state", event.id))
        for event in folder.events()
        if event.source == "transactions" and event.topic is not None
    ]
    # A record and its marker take an offset each: 0 and 1 were committed, 2 and 3 aborted, 4 is open.
    assert [line for line in told if line[1] == topic] == [
        ("transaction_marker", topic, 1, "commit"),
        ("transaction_marker", topic, 3, "abort"),
        ("record_aborted", topic, 2, "r1"),
        ("transaction_open", topic, 4, None),
    ]
    assert [line for line in told if line[1] == output] == [
        ("transaction_marker", output, 1, "commit"),
        ("transaction_marker", output, 3, "abort"),
        ("transaction_open", output, 4, None),
    ]


def _three_transactions(bootstrap: str, name: str, topics: tuple[str, str]) -> None:
    """The last one is left open: a new start of the same transactional id ends it."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction, None)):
        producer.begin_transaction()
        for topic in topics:
            producer.produce(topic, b"{}", headers={"kt-id": f"r{number}"})
        assert producer.flush(30) == 0
        if end is not None:
            end(30)
