"""On one broker that becomes 4.3.1 on the data of 3.9.2, under load: features are finalised by name, each is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from fault_arena import Blunt, group_at_work
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.cluster.versions import parse_release
from kafka_trial.compatibility.feature_levels import KRAFT
from kafka_trial.kafka_protocol.broker_features import BrokerFeatures, broker_features
from kafka_trial.kafka_protocol.cluster_queries import broker_configs
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.nemesis import features
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.schedule import Outcome, make_plan, run_schedule
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.scenario import Step
from kafka_trial.upgrade.cluster_state import MIN_INSYNC, SETTING, cluster_state_of, losses
from kafka_trial.upgrade.play import finalise_features
from kafka_trial.upgrade.writers import SENDS, TRANSACTIONS, WritersHandle, writers_beside

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(every=10)]

BEFORE, AFTER = "3.9.2", "4.3.1"
GROUP = Step("finalise-feature", "all", for_s=0.5, options={"feature": "group.version", "level": 1})


@dataclass(frozen=True)
class Rolled:
    """A cluster of one broker that has become the newer version, with a group at work and the writers beside."""

    cluster: BootedCluster
    context: FaultContext
    admin: Admin
    writers: WritersHandle

    def features(self) -> BrokerFeatures:
        with closing(Brokers(self.cluster.observer_bootstrap)) as brokers:
            return brokers.anyone(broker_features)


@pytest.fixture
def rolled(tmp_path: Path) -> Iterator[Rolled]:
    """Boots the old version, starts the group and the writers, and has the broker become the new one."""
    with ExitStack() as stack:
        cluster = stack.enter_context(process_cluster(BEFORE, brokers=1, lanes=4))
        lanes = stack.enter_context(cluster.lease_lanes(4))
        admin = stack.enter_context(Admin(cluster.observer_bootstrap))
        child_processes = stack.enter_context(ChildProcesses("rolled"))
        admin.create_topic(f"{cluster.name}-rolled", partitions=2, replication_factor=1)
        context = stack.enter_context(
            group_at_work(cluster, admin, child_processes, tmp_path / "rolled", lanes[:3], lanes[3])
        )
        writers = stack.enter_context(writers_beside(cluster, tmp_path / "writers"))
        (roll,) = played(context, Step("version-roll", "all", options={"version": AFTER}))
        assert roll.evidence.took_effect, roll.evidence
        yield Rolled(cluster, context, admin, writers)


def played(context: Any, *steps: Step) -> tuple[Outcome, ...]:
    """Plays steps, and returns what became of each."""
    return run_schedule(context, make_plan(steps, seed=5))[1]


def test_features_are_finalised_by_name(rolled: Rolled, monkeypatch: pytest.MonkeyPatch) -> None:
    """All six, shown by the broker; kraft.version stays; the writers lose nothing; a broker's own min.insync does."""
    assert rolled.writers.losses() == ()
    with monkeypatch.context() as impatient:
        impatient.setattr(features, "TAKEN_WITHIN_S", 1.0)
        impatient.setattr(features, "KNOWN_WITHIN_S", 1.0)
        refuse_sabotage(rolled)
    before = rolled.features()
    with_own_min_insync(rolled, "2")
    state = cluster_state_of(rolled.cluster, {})
    shown: list[str] = []

    def play(step: Step) -> None:
        (outcome,) = played(rolled.context, step)
        assert outcome.proven, outcome
        shown.append(outcome.evidence.message)

    raised = finalise_features(parse_release(AFTER), {0: before}, play, rolled.writers)
    after = rolled.features()
    assert shown == [f"all brokers answer {one.feature} {one.level}, which was at {one.before}" for one in raised]
    assert len(raised) == 6
    assert {**before.finalized, **{one.feature: one.level for one in raised}} == after.finalized
    assert after.finalized.get(KRAFT, 0) == 0 < after.supported[KRAFT][1]
    (lost,) = losses(state, cluster_state_of(rolled.cluster, {}))
    assert (lost.accused, "fell from 2 to 1" in lost.sentence) == (SETTING, True)
    assert rolled.writers.losses() == ()
    assert rolled.writers.counts["committed"] > 5
    play(Step(GROUP.fault, "all", options={"feature": "streams.version", "level": 0}))
    assert shown[-1] == "all brokers answer streams.version 0, which was at 1"
    lose_what_was_acknowledged(rolled)


def refuse_sabotage(rolled: Rolled) -> None:
    """A request that never reached a controller, and one that it refuses, have no effect, and say why."""
    nobody: Any = Blunt(rolled.context, {"finalise": lambda _: []})
    (silent,) = played(nobody, GROUP)
    (refused,) = played(rolled.context, Step(GROUP.fault, "all", options={"feature": "group.version", "level": 9}))
    assert (silent.evidence.took_effect, silent.evidence.message) == (
        False,
        "group.version 1 is not what all brokers answer: broker 0 answers 0",
    )
    assert not refused.evidence.took_effect
    assert "group.version 9 was refused, INVALID_UPDATE_VERSION (95)" in refused.evidence.message
    assert rolled.features().finalized.get("group.version", 0) == 0


def with_own_min_insync(rolled: Rolled, value: str) -> None:
    """Sets min.insync.replicas for the one broker alone, as an operator may."""
    with closing(KafkaAdminClient(bootstrap_servers=rolled.cluster.observer_bootstrap)) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.BROKER, "0", {MIN_INSYNC: value})])

    def set_so() -> bool:
        with closing(Brokers(rolled.cluster.observer_bootstrap)) as brokers:
            return brokers.anyone(lambda at: broker_configs(at, 0, [MIN_INSYNC])) == {MIN_INSYNC: value}

    wait_until(set_so, within_s=10, what=f"{MIN_INSYNC} = {value} of the broker")


def lose_what_was_acknowledged(rolled: Rolled) -> None:
    """What is deleted behind the writers' backs is a loss, and told once."""
    for topic in (TRANSACTIONS, SENDS):
        rolled.admin.delete_records(topic, {0: 5})
    (transactions, sends) = [one.sentence for one in rolled.writers.losses()]
    assert transactions == (
        "of committed transactions not every record can be read: "
        "transaction 0 (4 of 6 records), transaction 1 (4 of 6 records)"
    )
    assert sends.startswith("acknowledged records of an idempotent producer are gone: send ")
    assert sends.endswith(" and 2 more")
    assert rolled.writers.losses() == ()
