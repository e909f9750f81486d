"""On a real cluster every fault bites and heals, and every sabotaged one is found out.

One warm cluster, one group of three members under a small load. A sabotaged fault is one whose call succeeds and whose
effect is absent: toxicity 0, the proxy of a bystander, a signal to a bystander, an admin call that changes nothing, a
crash point armed for nobody, or a member that is connected around its proxy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any

import pytest
from confluent_kafka import Producer

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster, Lane
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.process import LaunchContext, process_group
from kafka_trial.consumers.sink import start_sink
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import Follower, RunFolder, create_run_folder
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.kafka_protocol.group_requests import group_state
from kafka_trial.nemesis import evidence, sampling
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.fault import list_faults
from kafka_trial.nemesis.samples import ANSWERS, LinkSnapshot, flows
from kafka_trial.nemesis.schedule import Outcome, make_plan, run_schedule
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause, wait_until
from kafka_trial.scenario import Step
from kafka_trial.witness.witness import start_witness

pytestmark = pytest.mark.cluster

CONSUMER = Path(__file__).parent / "consumer" / "consumer.toml"
MEMBERS, SPARE = 3, 1
FOR_S = 1.2
HEALED_WITHIN_S = 5.0
RECORDS_PER_S, RECORD_BYTES = 400, 2500  # so much that a link which nobody slows is seen to carry more than a slow one

# Those that close connections come last, so that each fault finds some to bite.
NETWORK = ("latency", "slow-link", "stall", "answers-held", "requests-held", "half-open", "close", "refused")
PROCESS = ("pause", "kill", "terminate", "restart", "crash-point")
BROKER = ("broker-pause", "broker-kill", "broker-restart")
LASTING_S = dict.fromkeys(NETWORK, 2.0) | {"slow-link": 3.0}  # until every target has asked for something, twice
Case = tuple[str, str]


def cases(kinds: Sequence[str]) -> list[Case]:
    return [(kind, target) for kind in kinds for target in list_faults()[kind].targets]


EVERY = cases(list(list_faults()))
BY_TURNS = [pytest.param(case, marks=pytest.mark.rotates(case[0])) for case in EVERY]  # one target of every fault


def named(case: Case) -> str:
    return "-".join(case)


@dataclass(frozen=True)
class Arena:
    """A group at work on a cluster, a second member that is connected around its proxies, and bystanders."""

    context: FaultContext
    around: FaultContext
    child_processes: ChildProcesses
    unused_lane: Lane


@pytest.fixture(scope="module")
def arena(cluster_pool: ClusterPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Starts the groups, their load and the witness of the offsets log."""
    with ExitStack() as stack:
        cluster = stack.enter_context(cluster_pool.cluster_for(DEFAULT_VERSION))
        lanes = stack.enter_context(cluster.lease_lanes(MEMBERS + SPARE + 3))
        child_processes = stack.enter_context(ChildProcesses("arena"))
        admin = stack.enter_context(Admin(cluster.observer_bootstrap))
        for topic in ("bites", "around"):
            admin.create_topic(f"{cluster.name}-{topic}", partitions=6, replication_factor=3)
        *own, load_lane, around_lane, unused_lane = lanes
        direct = replace(around_lane, bootstrap=cluster.observer_bootstrap)
        work = tmp_path_factory.mktemp("arena")
        context = stack.enter_context(group_at_work(cluster, admin, child_processes, work / "bites", own, load_lane))
        around = stack.enter_context(
            group_at_work(cluster, admin, child_processes, work / "around", [direct], load_lane)
        )
        yield Arena(context, around, child_processes, unused_lane)


@contextmanager
def group_at_work(
    cluster: Cluster, admin: Admin, child_processes: ChildProcesses, place: Path, lanes: Sequence[Lane], load_lane: Lane
) -> Iterator[FaultContext]:
    topic = group_name = f"{cluster.name}-{place.name}"
    folder: RunFolder = create_run_folder(place, "bites", "nemesis-target")
    members = max(1, len(lanes) - SPARE)
    with ExitStack() as stack:
        told = stack.enter_context(Recorder(folder.history, "sink"))
        sink = stack.enter_context(start_sink(told, kill=lambda name: group.kill_now(name)))  # noqa: PLW0108 - made below
        launch_context = LaunchContext(topic, group_name, 1, DEFAULT_VERSION, members, sink.url)
        arguments = ["--bootstrap", cluster.observer_bootstrap, "--history", str(folder.history), "--group", group_name]
        witness = start_witness(child_processes, "offsets_log", arguments, folder=folder)
        stack.callback(witness.stop)
        witness.ready()
        group = stack.enter_context(
            process_group(
                spec_from_toml(CONSUMER), launch_context, child_processes=child_processes, lanes=lanes, folder=folder
            )
        )
        thread_group = stack.enter_context(ThreadGroup(f"load of {topic}"))
        stack.callback(thread_group.stop.set)
        thread_group.start("load", produce, load_lane.bootstrap, topic, thread_group.stop)
        group.start()
        assert group.wait_ready(30) == []
        recorder = stack.enter_context(Recorder(folder.history, "nemesis"))
        yield FaultContext(cluster, group, admin, recorder, topic, group_name, folder.history, load_lane, sink)


def produce(bootstrap: str, topic: str, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
    while not pause(0.05, stop=stop):
        for _ in range(RECORDS_PER_S // 20):
            producer.produce(topic, bytes(RECORD_BYTES))
        producer.poll(0)


def play(context: FaultContext, wanted: Mapping[Case, str], **more: Any) -> dict[Case, Outcome]:
    """Plays the cases at once, each on the target it is mapped to, and returns what became of each."""
    steps = [Step(fault, target, for_s=LASTING_S.get(fault, FOR_S), **more) for (fault, _), target in wanted.items()]
    _, outcomes = run_schedule(context, make_plan(steps, seed=5))
    return dict(zip(wanted, outcomes, strict=True))


def settle(context: FaultContext) -> None:
    """Waits until every member fetches records, has a link to the coordinator, and no rebalance is under way or near.

    A member that fetches may not have been told of a rebalance yet, and a session may be about to end whose heartbeats
    an earlier fault has cut off: so each member must have committed from now on, which begins its session anew, and
    then the coordinator must call the group stable.
    """
    names = [member.name for member in context.members()]
    told, heard = Follower(context.history, "consumer-*.jsonl"), set[str | None]()
    list(told.new_events())  # what was before is nothing to us
    routes = sampling.routes_of(context, [(name, broker) for name in names for broker in context.cluster.brokers])
    looks: list[LinkSnapshot] = []

    def settled() -> bool:
        looks.append(sampling.links(routes, {member.name: member.process_group for member in context.members()}))
        coordinator = context.topic_snapshot().coordinator
        known = {(name, coordinator) for name in names} <= set(looks[-1].routes())
        at_work = all(fetched_bytes(looks[-2:], name) > 0 for name in names)  # one that rebalances fetches nothing
        much = all(fetched_bytes(looks[-5:], name) > 10_000 for name in names)
        heard.update(event.member for event in told.new_events() if (event.kind, event.outcome) == ("commit", "ok"))
        return known and at_work and much and set(names) <= heard and is_stable(context)

    wait_until(
        settled,
        within_s=30,
        what="every member to be at work again",
        every_s=0.1,
        detail=lambda: (
            f"{context.topic_snapshot()} {looks[-1]}; since then heard of a commit: {sorted(map(str, heard))}"
        ),
    )


def is_stable(context: FaultContext) -> bool:
    """Asks whichever broker answers for the group: its coordinator, for the others refuse."""
    with closing(Brokers(context.cluster.observer_bootstrap)) as brokers:
        try:
            return brokers.anyone(lambda at: group_state(at, context.group_name)).state == "Stable"
        except NoAnswerError:  # it has just been restarted
            return False


def fetched_bytes(looks: Sequence[LinkSnapshot], client: str) -> int:
    return sum(one.passed_bytes for one in flows(looks, ANSWERS) if one.route[0] == client)


def wanted(request: pytest.FixtureRequest, test: Callable[..., None]) -> set[Case]:
    """Returns the cases of a test that this session runs."""
    items = [item for item in request.session.items if getattr(item, "originalname", None) == test.__name__]
    return {item.callspec.params["case"] for item in items if isinstance(item, pytest.Function)}


@pytest.fixture(scope="module")
def bitten(arena: Arena, request: pytest.FixtureRequest) -> dict[Case, Outcome]:
    """Plays what is asked for: side by side where targets are apart (members; coordinator and leader), else alone."""
    asked = wanted(request, test_every_fault_bites_and_heals)
    batches = [side_by_side(NETWORK[:MEMBERS]), side_by_side(NETWORK[MEMBERS:-2]), side_by_side(NETWORK[-2:])]
    for kind in NETWORK:
        batches += [{(kind, role): role for role in ("coordinator", "leader")}, {(kind, "all"): "all"}]
    batches += [side_by_side(PROCESS[:MEMBERS]), side_by_side(PROCESS[MEMBERS:])]
    batches += [{case: case[1]} for case in cases(("leader-move", "join", "leave", *BROKER, "rolling-restart"))]
    outcomes: dict[Case, Outcome] = {}
    for batch in batches:
        if mine := {case: target for case, target in batch.items() if case in asked}:
            settle(arena.context)
            outcomes |= play(arena.context, mine)
    return outcomes


def side_by_side(kinds: Sequence[str]) -> dict[Case, str]:
    return {(kind, "member"): f"member:{number}" for number, kind in enumerate(kinds)}


@pytest.fixture(scope="module")
def sabotaged(arena: Arena, request: pytest.FixtureRequest) -> dict[Case, Outcome]:
    """Plays what is asked for on a context whose tools are blunt; as nothing happens, many at a time.

    But removing a `timeout` toxic closes the connections whatever its toxicity was, so half-open has no company.
    """
    network = [case for case in cases(NETWORK) if case[0] != "half-open"]
    batches = [
        [case for case in EVERY if case[0] not in NETWORK],
        [case for case in network if case[1] in ("member", "all")],
        [case for case in network if case[1] not in ("member", "all")],
        cases(["half-open"]),
    ]
    asked = wanted(request, test_every_sabotaged_fault_is_found_out)
    outcomes: dict[Case, Outcome] = {}
    for batch in batches:
        if mine := {case: case[1] for case in batch if case in asked}:
            settle(arena.context)
            outcomes |= play(blunt(arena), mine)
    return outcomes


@pytest.fixture(scope="module")
def misplaced(arena: Arena) -> dict[str, Outcome]:
    """Plays every network fault on a member, with the proxies of another lane in its place."""
    toxiproxy, unused = arena.context.cluster.toxiproxy, arena.unused_lane.proxies
    instead = {name: unused[b] for member in arena.context.members() for b, name in member.lane.proxies.items()}

    def elsewhere(call: Callable[..., None]) -> Callable[..., None]:
        return lambda proxy, *args: call(instead[proxy], *args)

    calls = {name: elsewhere(getattr(toxiproxy, name)) for name in ("add_toxic", "remove_toxic", "enable", "disable")}
    cluster: Any = Blunt(arena.context.cluster, {"toxiproxy": Blunt(toxiproxy, calls)})
    settle(arena.context)
    outcomes = play(replace(arena.context, cluster=cluster), {(kind, "member"): "member" for kind in NETWORK})
    return {kind: outcome for (kind, _), outcome in outcomes.items()}


@pytest.fixture(scope="module")
def missed(arena: Arena) -> dict[str, Outcome]:
    """Plays every network fault on a member that is connected around its proxies."""
    return {
        kind: outcome for (kind, _), outcome in play(arena.around, {(k, "member"): "member" for k in NETWORK}).items()
    }


@pytest.mark.parametrize("case", BY_TURNS, ids=named)
def test_every_fault_bites_and_heals(bitten: dict[Case, Outcome], case: Case) -> None:
    """The fault is shown to have bitten its target, and traffic comes back within five seconds, or it says it won't."""
    outcome = bitten[case]
    assert outcome.evidence.bit, (outcome.evidence.message, outcome.evidence.details)
    if outcome.heals:
        assert outcome.healed_after_s is not None, outcome.evidence.details
        assert outcome.healed_after_s <= HEALED_WITHIN_S, outcome.evidence.details


@pytest.mark.parametrize("case", BY_TURNS, ids=named)
def test_every_sabotaged_fault_is_found_out(sabotaged: dict[Case, Outcome], case: Case) -> None:
    """The call succeeded and nothing happened: the evidence says so."""
    outcome = sabotaged[case]
    assert not outcome.evidence.bit, (outcome.evidence.message, outcome.evidence.details)
    assert "could not be injected" not in outcome.evidence.message


@pytest.mark.rotates
@pytest.mark.parametrize("kind", NETWORK)
def test_a_member_around_its_proxy_is_found_out(missed: dict[str, Outcome], kind: str) -> None:
    """A fault on proxies that the member does not use has nothing to bite."""
    assert (missed[kind].evidence.bit, missed[kind].evidence.message) == (False, evidence.NO_CONNECTION)


@pytest.mark.rotates
@pytest.mark.parametrize("kind", NETWORK)
def test_the_proxy_of_another_lane_is_found_out(misplaced: dict[str, Outcome], kind: str) -> None:
    """A fault on somebody else's proxies leaves the member's traffic as it was, and says so."""
    assert not misplaced[kind].evidence.bit, misplaced[kind].evidence
    assert "could not be injected" not in misplaced[kind].evidence.message


def test_of_two_faults_on_one_link_the_later_is_healed_first(arena: Arena) -> None:
    """The earlier one, over before it, waits for it, and no connection is lost to the healing.

    Whether the earlier one bit is another matter: to put a toxic behind it lets out what it held just then.
    """
    settle(arena.context)
    steps = [Step("stall", "member:0", at_s=0.0, for_s=1.2), Step("stall", "member:0", at_s=0.6, for_s=2.0)]
    _, (earlier, later) = run_schedule(arena.context, make_plan(steps, seed=5))
    assert later.evidence.bit
    for one in (earlier, later):
        assert (one.healed_traffic, one.evidence.details["connections_kept"]) == (True, True)
    told = Follower(arena.context.history, "nemesis.jsonl").new_events()
    assert [event.details["fault_no"] for event in told if event.kind == "healed"][-2:] == [1, 0]


@dataclass(frozen=True)
class Blunt:
    """Stands before a tool and replaces some of its calls; everything else goes to the tool."""

    tool: Any
    calls: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.calls[name] if name in self.calls else getattr(self.tool, name)


def blunt(arena: Arena) -> FaultContext:
    """Returns the context with tools that do something, successfully, and to nobody who matters."""
    context = arena.context
    toxiproxy, group, unused = context.cluster.toxiproxy, context.group, arena.unused_lane.proxies[0]

    def toxicity_0(proxy: str, name: str, kind: str, stream: str, attributes: Mapping[str, Any]) -> None:
        toxiproxy.add_toxic(proxy, name, kind, stream, attributes, toxicity=0.0)

    def to_bystander(number: int) -> Callable[..., None]:
        return lambda *_: arena.child_processes.spawn("bystander", ["sleep", "60"]).signal(number)

    proxies = {"disable": lambda _: toxiproxy.disable(unused), "enable": lambda _: toxiproxy.enable(unused)}
    signals = {
        "kill": to_bystander(SIGKILL),
        "terminate": to_bystander(SIGTERM),
        "leave": to_bystander(SIGTERM),
        "pause": to_bystander(SIGSTOP),
        "resume": to_bystander(SIGCONT),
        "join": lambda: group.members[0],
    }
    brokers = {number: Blunt(broker, signals) for number, broker in context.cluster.brokers.items()}
    cluster: Any = Blunt(
        context.cluster, {"toxiproxy": Blunt(toxiproxy, {"add_toxic": toxicity_0, **proxies}), "brokers": brokers}
    )
    blunt_group: Any = Blunt(group, signals)
    blunt_admin: Any = Blunt(context.admin, {"move_leader": lambda *_, **__: None})
    sink = context.sink
    assert sink is not None
    blunt_sink: Any = Blunt(sink, {"arm": lambda point, **_: sink.arm(point, member="nobody")})
    return replace(context, cluster=cluster, group=blunt_group, admin=blunt_admin, sink=blunt_sink)
