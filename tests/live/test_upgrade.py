"""An upgrade of real brokers, with a sound and a faulty consumer at work: each is judged for itself, and so is the
cluster."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Producer

from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.wiring import OFFSETS_PARTITIONS
from kafka_trial.errors import PASS
from kafka_trial.history.output_names import UPGRADE
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.registry import find_consumer
from kafka_trial.trial.console import Console
from kafka_trial.upgrade.make_record import make_record
from kafka_trial.upgrade.outcome import GO, NO_GO, NOT_KNOWN
from kafka_trial.upgrade.plan import StagePlan
from kafka_trial.upgrade.record_file import verify
from kafka_trial.upgrade.record_page import write_upgrade
from kafka_trial.upgrade.rehearsal import Rehearsal, rehearse
from kafka_trial.upgrade.request import UpgradeRequest, make_upgrade_request
from kafka_trial.upgrade.stages import KILLED, Stage, roll
from kafka_trial.upgrade.successors import Chain

SOUND, FAULTY = "python-at-least-once", "commits-before-processing"
OLD, NEW = "3.9.2", "4.3.1"


def planted(request: UpgradeRequest) -> StagePlan:
    """Before and rolled; in between a committed offset of the sound consumer is removed from the offsets log."""

    def stages(cluster: BootedCluster, controller: int) -> Iterator[Stage]:
        yield Stage("before", "a member is killed", OLD, steps=(KILLED,))
        remove_a_committed_offset(request.out / "trials" / SOUND, cluster.observer_bootstrap)
        others = tuple(broker for broker in cluster.brokers if broker != controller)
        yield Stage("rolled", "all brokers are new", NEW, (roll((*others, controller), NEW),))

    return StagePlan(["before", "rolled", "never"], stages)


def remove_a_committed_offset(trial: Path, bootstrap: str) -> None:
    """Writes a tombstone for partition 0, as no tool and no client of ours does."""
    told = [orjson.loads(line) for line in (trial / "history" / "run.jsonl").read_bytes().splitlines()]
    group = next(event["group"] for event in told if event["kind"] == "group_named")
    topic = next(event["topic"] for event in told if event["kind"] == "topic_named")
    words = [len(word).to_bytes(2, "big") + word.encode() for word in (group, topic)]
    key = struct.pack(">h", 1) + b"".join(words) + struct.pack(">i", 0)
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "__admin_client"})  # who may write there
    place = group_partition(group, partitions=OFFSETS_PARTITIONS)
    producer.produce(OFFSETS_TOPIC, key=key, value=None, partition=place)
    assert producer.flush(20) == 0


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_each_consumer_and_the_cluster_have_a_verdict_of_their_own(tmp_path: Path) -> None:
    """The faulty one loses at the kill; what the cluster loses is no consumer's; what was not played is unknown."""
    chains = [Chain(find_consumer(SOUND)), Chain(find_consumer(FAULTY))]
    request = make_upgrade_request(OLD, NEW, chains, seed=1, out=tmp_path / "upgrade")
    plan = planted(request)
    rehearsal = Rehearsal(request, plan.names)
    with Console() as console:
        rehearse(rehearsal, plan, console)
    record = make_record(rehearsal)
    write_upgrade(record, request.out)
    told = {(one.stage, one.subject): (one.outcome, one.accused) for one in record.rows}
    assert told["before", SOUND] == (GO, "")
    assert told["before", FAULTY] == (NO_GO, "consumer")
    assert told["before", ""] == (GO, "")
    assert told["rolled", ""] == (NO_GO, "cluster")
    assert told["rolled", SOUND][0] != NO_GO
    assert {told["never", subject][0] for subject in ("", SOUND, FAULTY)} == {NOT_KNOWN}
    assert record.outcome == NO_GO
    assert verify(request.out / UPGRADE, say=print) == PASS


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_a_member_that_ends_by_itself_is_a_no_go(tmp_path: Path) -> None:
    """Nobody starts it again, and the others do its work: no record is late, and the stage is no go all the same."""

    def stages(_: BootedCluster, __: int) -> Iterator[Stage]:
        yield Stage("before", "nothing is done", OLD)
        os.kill(pid_of(request.out / "trials" / SOUND, "m1"), signal.SIGKILL)
        yield Stage("without m1", "nothing is done", OLD)
        yield Stage("later", "nothing is done", OLD)

    request = make_upgrade_request(OLD, NEW, [Chain(find_consumer(SOUND))], seed=1, out=tmp_path / "upgrade")
    plan = StagePlan(["before", "without m1", "later"], stages)
    rehearsal = Rehearsal(request, plan.names)
    with Console() as console:
        rehearse(rehearsal, plan, console)
    told = [one for one in make_record(rehearsal).rows if one.subject == SOUND]
    assert [(one.outcome, one.accused) for one in told] == [(GO, ""), (NO_GO, "consumer"), (GO, "")]
    assert told[1].reason.startswith("exited: m1 exited by itself")


def pid_of(trial: Path, member: str) -> int:
    """Returns the process of a member's first incarnation."""
    first, *_ = (trial / "history" / f"consumer-{member}-0.jsonl").read_bytes().splitlines()
    return int(orjson.loads(first)["pid"])
