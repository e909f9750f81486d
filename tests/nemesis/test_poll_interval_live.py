"""On a real cluster a poll interval expires where one thread polls and works, and not where another one polls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from fault_arena import CONSUMER, Blunt, group_at_work, settle
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.schedule import Outcome, make_plan, run_schedule
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.scenario import Step

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

EXPIRES = ("polls-and-works", "polls-and-works-consumer-protocol")
APART = "works-apart"
INTERVAL_S = 6.0
STEP = Step("handler-slow", "member:0", for_s=1.2, options={"delay_s": 0.6, "expire_poll_interval": True})


@pytest.fixture(scope="module")
def groups(cluster_pool: ClusterPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FaultContext]]:
    """Starts a group of each kind, of one member."""
    names = (*EXPIRES, APART)
    with ExitStack() as stack:
        cluster = stack.enter_context(cluster_pool.cluster_for(DEFAULT_VERSION))
        load_lane, *lanes = stack.enter_context(cluster.lease_lanes(1 + len(names)))
        child_processes = stack.enter_context(ChildProcesses("poll-intervals"))
        admin = stack.enter_context(Admin(cluster.observer_bootstrap))
        work = tmp_path_factory.mktemp("poll-intervals")
        contexts = {}
        for name, lane in zip(names, lanes, strict=True):
            admin.create_topic(f"{cluster.name}-{name}", partitions=6, replication_factor=3)
            own = group_at_work(
                *(cluster, admin, child_processes, work / name, [lane], load_lane),
                consumer=CONSUMER.with_name(f"{name}.toml"),
            )
            contexts[name] = stack.enter_context(own)
        yield contexts


def play(contexts: Mapping[str, FaultContext]) -> dict[str, Outcome]:
    """Plays the fault on each, all at once, and waits until every group is at work again."""
    outcomes: dict[str, Outcome] = {}

    def play_on(name: str, context: FaultContext) -> None:
        settle(context)
        _, (outcomes[name],) = run_schedule(context, make_plan([STEP], seed=5))
        settle(context)

    with ThreadGroup("poll intervals", join_within_s=120.0) as thread_group:
        for name, context in contexts.items():
            thread_group.start(name, play_on, name, context)
    return outcomes


@pytest.fixture(scope="module")
def played(groups: dict[str, FaultContext]) -> dict[str, Outcome]:
    """Plays it on every kind."""
    return play(groups)


@pytest.mark.parametrize("name", EXPIRES)
def test_who_works_in_its_poll_leaves_its_group_and_comes_back(played: dict[str, Outcome], name: str) -> None:
    """It has left by itself after its interval, its heartbeats had gone on; afterwards it is at work again."""
    outcome = played[name]
    assert outcome.evidence.took_effect, (outcome.evidence.message, outcome.evidence.details)
    assert "the poll interval of 6 s expired: m0 left" in outcome.evidence.message
    (stay,) = outcome.evidence.details["stays"]
    waited_s = (stay["left_ns"] - stay["waits_since_ns"]) / 1e9
    assert INTERVAL_S / 2 <= waited_s <= INTERVAL_S + 2, stay
    assert outcome.healed_traffic


def test_where_another_thread_polls_none_expires(played: dict[str, Outcome]) -> None:
    """Its effects waited as long, and it stayed: a fault that has done nothing of what was asked."""
    outcome = played[APART]
    assert not outcome.evidence.took_effect, outcome.evidence.details
    assert "m0 stayed in its group: it polls while its handler waits" in outcome.evidence.message
    assert max(one["waited_s_max"] for one in outcome.evidence.details["effects"]) >= INTERVAL_S


def test_effects_that_do_not_wait_expire_nothing(groups: dict[str, FaultContext], played: dict[str, Outcome]) -> None:
    """The sink slows those of nobody: the call succeeded, and the evidence says that nothing happened."""
    assert played

    def blunt(context: FaultContext) -> FaultContext:
        sink = context.sink
        assert sink is not None
        for_nobody: Any = Blunt(
            sink, {"treated": lambda treatment: sink.treated(replace(treatment, members=("nobody",)))}
        )
        return replace(context, sink=for_nobody)

    outcomes = play({name: blunt(groups[name]) for name in EXPIRES})
    assert {name: outcome.evidence.took_effect for name, outcome in outcomes.items()} == dict.fromkeys(EXPIRES, False)
