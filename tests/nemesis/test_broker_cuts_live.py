"""On a real cluster a broker dies exactly at a request of a transaction, and is back; one that lives on is found out.

The broker that ends a transaction is its coordinator. It is killed before it has the request, and when its answer has
been sent, so that the transaction is to be committed and its markers may not be written yet. So is the one that took
the positions, the group's coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from signal import SIGKILL
from typing import Any

import pytest

from fault_arena import CONSUMER, SPARE, Arena, Blunt, group_at_work, settle
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.kafka_cut import cuts_on
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.history.store import HistoryTail
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.schedule import Outcome, make_plan, run_schedule
from kafka_trial.process.children import ChildProcesses
from kafka_trial.scenario import Step

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

MEMBERS, FOR_S, WITHIN_S = 2, 1.2, 8
CELLS: Mapping[str, Mapping[str, Any]] = {
    "offsets-answered": {"api": "TxnOffsetCommit", "where": "after"},
    "end-leaves": {"api": "EndTxn", "where": "before", "nth": 2},
    "end-answered": {"api": "EndTxn", "where": "after"},
}


@pytest.fixture(scope="module")
def work(cluster_pool: ClusterPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Starts a group that commits in transactions."""
    with ExitStack() as stack:
        cluster = stack.enter_context(cluster_pool.cluster_for(DEFAULT_VERSION))
        *own, load_lane = lanes = stack.enter_context(cluster.lease_lanes(MEMBERS + SPARE + 1))
        stack.enter_context(cuts_on(cluster.toxiproxy, lanes))
        child_processes = stack.enter_context(ChildProcesses("broker-cuts"))
        admin = stack.enter_context(Admin(cluster.observer_bootstrap))
        place = tmp_path_factory.mktemp("broker-cuts") / "transactional"
        admin.create_topic(f"{cluster.name}-{place.name}", partitions=6, replication_factor=3)
        consumer = CONSUMER.with_name("transactional.toml")
        context = stack.enter_context(
            group_at_work(cluster, admin, child_processes, place, own, load_lane, consumer=consumer)
        )
        yield Arena(context, context, child_processes, load_lane)


def play(context: FaultContext, options: Mapping[str, Any]) -> Outcome:
    """Plays one cut that kills a broker."""
    settle(context)
    step = Step("cut", "member:0", for_s=FOR_S, options={"within_s": WITHIN_S, "then": "kill-broker", **options})
    _, (outcome,) = run_schedule(context, make_plan([step], seed=5))
    return outcome


def bystander_killed(arena: Arena) -> FaultContext:
    """Kills somebody else in the broker's place."""

    def kill(*_: object) -> None:
        arena.child_processes.spawn("bystander", ["sleep", "60"]).signal(SIGKILL)

    brokers = {number: Blunt(broker, {"kill": kill}) for number, broker in arena.context.cluster.brokers.items()}
    cluster: Any = Blunt(arena.context.cluster, {"brokers": brokers})
    return replace(arena.context, cluster=cluster)


def nobody_killed(arena: Arena) -> FaultContext:
    """Arms a request that never comes."""
    toxiproxy = arena.context.cluster.toxiproxy

    def update(proxy: str, name: str, attributes: Mapping[str, Any]) -> None:
        armed = {"arm": {**attributes["arm"], "nth": 10_000}} if "arm" in attributes else attributes
        toxiproxy.update_toxic(proxy, name, armed)

    cluster: Any = Blunt(arena.context.cluster, {"toxiproxy": Blunt(toxiproxy, {"update_toxic": update})})
    return replace(arena.context, cluster=cluster)


@pytest.mark.parametrize(
    ("blunt", "said"), [(bystander_killed, "was not killed: it still runs"), (nobody_killed, "not reached: ")]
)
def test_a_broker_that_lives_on_is_found_out(work: Arena, blunt: Callable[[Arena], FaultContext], said: str) -> None:
    """Each call succeeded; the evidence says what did not happen."""
    within_s = 3 if blunt is nobody_killed else WITHIN_S
    outcome = play(blunt(work), {**CELLS["end-leaves"], "within_s": within_s})
    assert (outcome.evidence.took_effect, said in outcome.evidence.message) == (False, True), outcome.evidence.message


def begin_anew(context: FaultContext) -> None:
    """Starts new processes of all members: a producer of librdkafka may wait for a dead broker for good
    (docs/findings.md)."""
    for member in context.members():
        context.group.restart(member)


@pytest.fixture(scope="module")
def cut(work: Arena) -> dict[str, Outcome]:
    """Plays every cell, each with members that have not lost a broker yet."""
    outcomes = {}
    for name, options in CELLS.items():
        outcomes[name] = play(work.context, options)
        begin_anew(work.context)
    return outcomes


@pytest.mark.parametrize("name", CELLS)
def test_a_broker_dies_at_the_request_and_is_back(cut: dict[str, Outcome], work: Arena, name: str) -> None:
    """Proxies and process say so; afterwards it runs, is in sync again, and the members' traffic has come back."""
    outcome, api = cut[name], CELLS[name]["api"]
    details = outcome.evidence.details
    assert outcome.evidence.took_effect, (outcome.evidence.message, details)
    assert (
        f"of {api} (correlation id {details['correlation_id']}, broker {details['broker']})" in outcome.evidence.message
    )
    assert f"broker {details['broker']}: process {details['pid']} ended by signal 9" in outcome.evidence.message
    assert (details["exit_code"], details["isr_whole_again"], outcome.healed_traffic) == (-SIGKILL, True, True)
    handle = work.context.cluster.brokers[details["broker"]]
    assert (handle.alive, handle.pid == details["pid"]) == (True, False)


@pytest.mark.parametrize("name", CELLS)
def test_the_history_tells_which_broker_it_was(cut: dict[str, Outcome], work: Arena, name: str) -> None:
    """All members are hit, so that the lines name no member: a broker, what that does, and the evidence."""
    no = list(CELLS).index(name)
    events = list(HistoryTail(work.context.history, "nemesis.jsonl").new_events())
    injected = [event for event in events if event.kind == "injected"][no - len(CELLS)]
    judged = [event for event in events if event.kind == "evidence"][no - len(CELLS)]
    assert (injected.member, injected.details["broker"]) == (None, cut[name].evidence.details["broker"])
    assert injected.details["consequences"] == ["leaves-requests-open", "stops-broker"]
    assert judged.details["bit"] is True
