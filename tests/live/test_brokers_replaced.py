"""All brokers are replaced by new ones of another version while a group is at work: no address of the start is left."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_trial import registry
from kafka_trial.check import check_run
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.scenario import HEALED, STABLE, Load, Scenario, Step
from kafka_trial.trial.console import Console
from kafka_trial.trial.run import run_trial
from kafka_trial.trial.spec import make_trial_spec
from tiers import in_turn

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

OLD, NEW = "3.9.2", "4.3.1"
CONSUMERS = ("python-transactional", "python-at-least-once", "kafka-python-at-least-once")


def step(fault: str, *, after: str = STABLE, **options: str) -> Step:
    return Step(fault, "all", at_s=0.5, for_s=0.0, after=after, options=options | {"version": NEW})


KILLED = Step("kill", "member", at_s=0.5, for_s=1.0, after=STABLE)
STARTED_AGAIN = Step("restart", "each-member", at_s=0.5, for_s=0.0, after=HEALED)
SCENARIO = Scenario(
    "brokers-replaced",
    load=Load(opening_burst=400, rate_per_s=100.0),
    schedule=(
        step("broker-replace", after="", brokers="b0,b1", by="b3,b4"),
        STARTED_AGAIN,  # a client that makes its connections anew has its first addresses alone
        step("broker-replace", brokers="b2", by="b5"),
        KILLED,  # its next incarnation is told addresses that the first ones were not
        step("version-roll", brokers="c0,c1,c2"),
    ),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A trial through the replacement of all brokers, and a roll of the controllers; its consumers take turns."""
    name = in_turn(CONSUMERS)
    trial_spec = make_trial_spec(SCENARIO, registry.find_consumer(name), kafka_version=OLD, seed=1)
    folder = create_run_folder(tmp_path_factory.mktemp("replaced") / "run", SCENARIO.name, name)
    with process_cluster(OLD, lanes=trial_spec.lanes, controllers=3, further=3) as cluster:
        run_trial(trial_spec, cluster, folder, console=Console(quiet=True))
        assert sorted(cluster.brokers) == [3, 4, 5]
        assert cluster.health() == []
        assert [broker for broker in range(6) if accepts(cluster.host, cluster.wiring.proxy_port(broker, 0))] == [
            3,
            4,
            5,
        ]
    return folder


def accepts(host: str, port: int) -> bool:
    """Whether somebody listens there; who was started with the address of an old broker finds nobody."""
    with socket.socket() as client:
        return client.connect_ex((host, port)) == 0


def events(run: RunFolder, source: str, kind: str) -> Iterator[dict[str, Any]]:
    lines = (run.history / f"{source}.jsonl").read_text().splitlines()
    return (event for event in map(json.loads, lines) if event["kind"] == kind)


def test_the_group_works_on(run: RunFolder) -> None:
    """Nothing is lost, nothing is done twice beyond the claim, and each fault has shown that it took effect."""
    verdict = check_run(run)
    told = [(fault.bit, fault.evidence) for fault in verdict.faults]
    assert (verdict.verdict, [bit for bit, _ in told]) == ("pass", [True] * 7), (verdict.reasons, told)


def test_everything_moved(run: RunFolder) -> None:
    """Records, offsets and whatever else the old brokers held: in the end only new ones hold and coordinate."""
    places = {event["partition"]: event["replicas"] for event in events(run, "observer", "leader")}
    (*_, coordinator) = events(run, "observer", "coordinator")
    assert {broker for replicas in places.values() for broker in replicas} == {3, 4, 5}
    assert coordinator["leader"] in {3, 4, 5}
    moved = [event["details"]["brokers"] for event in events(run, "nemesis", "evidence") if "replace" in event["fault"]]
    assert all(turn["partitions"]["__consumer_offsets"] > 0 for turns in moved for turn in turns)


def test_the_witnesses_follow(run: RunFolder) -> None:
    """What the group asked of the new brokers is in the history, from their request logs."""
    seen = {broker: [*events(run, f"requests-b{broker}", "request")] for broker in range(3, 6)}
    assert all(seen.values()), {broker: len(found) for broker, found in seen.items()}
