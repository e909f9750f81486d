"""Roles become members and brokers just before an injection, drawn from the seed."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import targets
from kafka_trial.nemesis.fault import list_faults
from kafka_trial.nemesis.samples import Leader, TopicSnapshot
from kafka_trial.nemesis.targets import resolve

LOOK = TopicSnapshot(
    0,
    tuple(Leader(partition, partition % 3, 0, (0, 1, 2)) for partition in range(6)),
    coordinator=0,
    controller=1,
)


def context(*, look: TopicSnapshot = LOOK, alive: Sequence[bool] = (True, True, True), size: int = 3) -> Any:
    """A context of three brokers and three members, of which nothing but names and roles is asked."""
    members = [SimpleNamespace(name=f"m{n}", index=n, alive=up, lane=lane(n)) for n, up in enumerate(alive)]
    return SimpleNamespace(
        group=SimpleNamespace(members=members, size=size),
        cluster=SimpleNamespace(brokers={0: None, 1: None, 2: None}, controllers={100: None}),
        members=lambda: [member for member in members if member.alive],
        topic_snapshot=lambda: look,
        workload_lane=lane(9),
    )


def lane(index: int) -> Any:
    return SimpleNamespace(index=index, proxies={broker: f"b{broker}-lane{index}" for broker in range(3)})


def test_a_member_has_its_own_proxies() -> None:
    """A fault on one member touches the proxies of its lane, to every broker, and no others."""
    target = resolve(context(), None, role="member:1", rng=random.Random(1))
    assert (target.name, target.members, target.proxies) == ("m1", ("m1",), ("b0-lane1", "b1-lane1", "b2-lane1"))


def test_all_is_every_member_that_runs_and_the_load() -> None:
    """`all` reaches every lane in use; the fault is judged on the members."""
    target = resolve(context(alive=(True, False, True)), None, role="all", rng=random.Random(1))
    assert (target.members, len(target.routes), len(target.proxies)) == (("m0", "m2"), 6, 9)


def test_the_coordinator_is_cut_off_from_every_lane() -> None:
    """A fault on a broker's role touches every leased lane's proxy to that broker."""
    target = resolve(context(), None, role="coordinator", rng=random.Random(1))
    assert (target.name, target.proxies) == ("b0", ("b0-lane0", "b0-lane1", "b0-lane2", "b0-lane9"))


@pytest.mark.parametrize("seed", range(8))
def test_the_leader_is_apart_from_coordinator_and_controller(seed: int) -> None:
    """Where it is possible, the leader to be broken has no other role."""
    target = resolve(context(), None, role="leader", rng=random.Random(seed))
    assert (target.name, target.partition in (2, 5)) == ("b2", True)


def test_a_controller_of_its_own_is_no_target() -> None:
    """No client has a connection to it: that the fault took effect could never be shown."""
    apart = context(look=replace(LOOK, controller=100))
    with pytest.raises(UnjudgeableError, match="the controller is c0, a controller of its own"):
        resolve(apart, None, role="controller", rng=random.Random(1))


def test_a_partition_can_be_named() -> None:
    """`leader:3` is the leader of partition 3, whatever else it is."""
    assert resolve(context(), None, role="leader:3", rng=random.Random(1)).name == "b0"


def test_the_seed_draws_the_member() -> None:
    """The same seed draws the same member; other seeds reach the others."""
    drawn = {resolve(context(), None, role="member", rng=random.Random(seed)).name for seed in range(20)}
    again = {resolve(context(), None, role="member", rng=random.Random(7)).name for _ in range(5)}
    assert (drawn, len(again)) == ({"m0", "m1", "m2"}, 1)


def test_a_guest_is_not_drawn() -> None:
    """Who joined further may not have joined yet, and goes by itself; by its name it is a target as others are."""
    three_and_an_extra = context(alive=(True, False, True, True))
    drawn = {resolve(three_and_an_extra, None, role="member", rng=random.Random(seed)).name for seed in range(20)}
    assert drawn == {"m0", "m2"}
    assert resolve(three_and_an_extra, None, role="member:3", rng=random.Random(1)).name == "m3"
    with pytest.raises(UnjudgeableError, match="no member"):
        resolve(context(alive=(False, False, False, True)), None, role="member", rng=random.Random(1))


def test_a_recorded_name_comes_before_the_role() -> None:
    """An exact replay hits the recorded broker, also where the role has moved since."""
    assert resolve(context(), "b2", role="coordinator", rng=random.Random(1)).broker == 2


def test_a_recorded_name_must_exist() -> None:
    """An exact replay on a smaller cluster is refused."""
    with pytest.raises(InputError, match="unknown recorded target 'b7'"):
        resolve(context(), "b7", role="coordinator", rng=random.Random(1))


@pytest.mark.parametrize("role", ["coordinator", "controller", "leader", "leader:3"])
def test_an_election_is_waited_for(role: str) -> None:
    """Brokers that are electing one, or were slow to answer, know a moment later."""
    looks = iter([TopicSnapshot(0), TopicSnapshot(0), LOOK])
    electing = context()
    electing.topic_snapshot = lambda: next(looks)
    assert resolve(electing, None, role=role, rng=random.Random(1)).broker is not None


@pytest.mark.parametrize("role", ["coordinator", "controller", "leader"])
def test_a_stopped_run_waits_for_no_election(role: str) -> None:
    """It looks once, and heals what is in force."""
    looks = iter([TopicSnapshot(0)])
    electing, stop = context(), threading.Event()
    electing.topic_snapshot = lambda: next(looks)
    stop.set()
    with pytest.raises(UnjudgeableError):
        resolve(electing, None, role=role, rng=random.Random(1), stop=stop)


@pytest.mark.parametrize("role", ["coordinator", "controller", "leader", "member", "all"])
def test_a_role_that_nobody_has_is_said(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No leader, no coordinator, no running member: there is nothing to inject into."""
    monkeypatch.setattr(targets, "ELECTED_WITHIN_S", 0.2)
    nobody = context(look=TopicSnapshot(0), alive=(False, False, False))
    with pytest.raises(UnjudgeableError):
        resolve(nobody, None, role=role, rng=random.Random(1))


def test_a_fault_of_the_topic_needs_no_member() -> None:
    """Retention takes its course while everybody is away; a fault of members finds nobody then."""
    nobody = context(alive=(False, False, False))
    target = resolve(nobody, None, role="all", rng=random.Random(1), idle=True)
    assert (target.name, target.members, target.routes) == ("all", (), ())
    with pytest.raises(UnjudgeableError, match="no member runs"):
        resolve(nobody, None, role="all", rng=random.Random(1))


def test_the_faults_of_the_topic_are_named() -> None:
    """Those that change what lies in the topic, whoever reads it."""
    of_topic = [name for name, spec in list_faults().items() if Consequence.CHANGES_TOPIC in spec.consequences_of({})]
    assert of_topic == ["partitions-added", "records-deleted", "topic-created"]
