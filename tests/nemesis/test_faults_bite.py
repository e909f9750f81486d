"""On a real cluster every fault bites and heals, and every sabotaged one is found out.

One warm cluster, one group of three members under a small load. A sabotaged fault is one whose call succeeds and whose
effect is absent: toxicity 0, the proxy of a bystander, a signal to a bystander, an admin call that changes nothing, a
crash point armed for nobody, or a member that is connected around its proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any

import pytest

from fault_arena import MEMBERS, Arena, Blunt, settle
from kafka_trial.history.store import HistoryTail
from kafka_trial.nemesis import brokers, evidence
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.fault import list_faults
from kafka_trial.nemesis.schedule import Outcome, make_plan, run_schedule
from kafka_trial.scenario import Step

pytestmark = pytest.mark.cluster

FOR_S = 1.2
HEALED_WITHIN_S = 5.0

# Those that close connections come last, so that each fault finds some to bite.
NETWORK = ("latency", "slow-link", "stall", "answers-held", "requests-held", "half-open", "close", "refused")
PROCESS = ("pause", "kill", "terminate", "restart", "crash-point", "cut")
HANDLER = ("handler-slow", "handler-failing", "poison-record")
BROKER = ("broker-pause", "broker-kill", "broker-restart")
LASTING_S = dict.fromkeys((*NETWORK, *HANDLER), 2.0) | {
    "slow-link": 3.0
}  # until every target has asked for something, twice
OPTIONS = {"cut": {"within_s": 3}, "handler-slow": {"delay_s": 0.6}}  # a sabotaged cut is waited for in vain
Case = tuple[str, str]


def cases(kinds: Sequence[str]) -> list[Case]:
    return [(kind, target) for kind in kinds for target in list_faults()[kind].targets]


# What makes another cluster of it is played on one that nobody else uses: tests/upgrade/test_finalise_cluster.py; a
# member is moved where it has a successor: tests/live/test_moved_clients.py. A neighbour wants old segments:
# tests/nemesis/test_cold_reads_live.py; a fail-over has a mirror: tests/live/test_fail_over.py; a topic comes where it
# has a load: tests/nemesis/test_topic_created_live.py; a remote tier is the cluster's: tests/live/test_remote_reads.py.
ELSEWHERE = (
    "broker-replace",
    "cold-reads",
    "fail-back",
    "fail-over",
    "finalise-feature",
    "move-client",
    "remote-reads",
    "topic-created",
    "version-roll",
)
EVERY = cases([name for name in list_faults() if name not in ELSEWHERE])
BY_TURNS = [pytest.param(case, marks=pytest.mark.rotates(every=16)) for case in EVERY]


def named(case: Case) -> str:
    return "-".join(case)


def play(context: FaultContext, wanted: Mapping[Case, str]) -> dict[Case, Outcome]:
    """Plays the cases at once, each on the target it is mapped to, and returns what became of each."""
    steps = [
        Step(fault, target, for_s=LASTING_S.get(fault, FOR_S), options=OPTIONS.get(fault, {}))
        for (fault, _), target in wanted.items()
    ]
    _, outcomes = run_schedule(context, make_plan(steps, seed=5))
    return dict(zip(wanted, outcomes, strict=True))


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
    batches += [side_by_side(PROCESS[:MEMBERS]), side_by_side(PROCESS[MEMBERS:]), side_by_side(HANDLER)]
    batches += [{(kind, "all"): "all"} for kind in HANDLER]
    batches += [
        {case: case[1]}
        for case in cases(
            ("leader-move", "records-deleted", "join", "leave", *BROKER, "rolling-restart", "partitions-added")
        )
    ]
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
    assert outcome.evidence.took_effect, (outcome.evidence.message, outcome.evidence.details)
    if outcome.heals:
        assert outcome.healed_after_s is not None, outcome.evidence.details
        assert outcome.healed_after_s <= HEALED_WITHIN_S, outcome.evidence.details


@pytest.mark.parametrize("case", BY_TURNS, ids=named)
def test_every_sabotaged_fault_is_found_out(sabotaged: dict[Case, Outcome], case: Case) -> None:
    """The call succeeded and nothing happened: the evidence says so."""
    outcome = sabotaged[case]
    assert not outcome.evidence.took_effect, (outcome.evidence.message, outcome.evidence.details)
    assert "could not be injected" not in outcome.evidence.message


@pytest.mark.rotates
@pytest.mark.parametrize("kind", NETWORK)
def test_a_member_around_its_proxy_is_found_out(missed: dict[str, Outcome], kind: str) -> None:
    """A fault on proxies that the member does not use has nothing to bite."""
    assert (missed[kind].evidence.took_effect, missed[kind].evidence.message) == (False, evidence.NO_CONNECTION)


@pytest.mark.rotates
@pytest.mark.parametrize("kind", NETWORK)
def test_the_proxy_of_another_lane_is_found_out(misplaced: dict[str, Outcome], kind: str) -> None:
    """A fault on somebody else's proxies leaves the member's traffic as it was, and says so."""
    assert not misplaced[kind].evidence.took_effect, misplaced[kind].evidence
    assert "could not be injected" not in misplaced[kind].evidence.message


def test_of_two_faults_on_one_link_the_later_is_healed_first(arena: Arena) -> None:
    """The earlier one, over before it, waits for it, and no connection is lost to the healing.

    Whether the earlier one bit is another matter: to put a toxic behind it lets out what it held just then.
    """
    settle(arena.context)
    steps = [Step("stall", "member:0", at_s=0.0, for_s=1.2), Step("stall", "member:0", at_s=0.6, for_s=2.0)]
    _, (earlier, later) = run_schedule(arena.context, make_plan(steps, seed=5))
    assert later.evidence.took_effect
    for one in (earlier, later):
        assert (one.healed_traffic, one.evidence.details["connections_kept"]) == (True, True)
    told = HistoryTail(arena.context.history, "nemesis.jsonl").new_events()
    assert [event.details["fault_no"] for event in told if event.kind == "healed"][-2:] == [1, 0]


@pytest.mark.rotates
def test_a_broker_that_outlives_its_bound_ends_the_roll(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence names it, with how long it had; the brokers after it are left as they are."""
    monkeypatch.setattr(brokers, "EXIT_WITHIN_S", 1.0)
    settle(arena.context)
    deaf = {
        number: Blunt(broker, {"terminate": lambda: None}) for number, broker in arena.context.cluster.brokers.items()
    }
    cluster: Any = Blunt(arena.context.cluster, {"brokers": deaf})
    outcome = play(replace(arena.context, cluster=cluster), {("rolling-restart", "all"): "all"})[
        "rolling-restart", "all"
    ]
    (turn,) = outcome.evidence.details["brokers"]
    assert (outcome.evidence.took_effect, turn["broker"], turn["exit_within_s"]) == (False, min(deaf), 1.0)
    assert outcome.evidence.message.startswith(f"broker {min(deaf)} had not exited 1 s after it was asked to")


def blunt(arena: Arena) -> FaultContext:
    """Returns the context with tools that do something, successfully, and to nobody who matters."""
    context = arena.context
    toxiproxy, group, unused = context.cluster.toxiproxy, context.group, arena.unused_lane.proxies[0]

    def toxicity_0(proxy: str, name: str, kind: str, stream: str, attributes: Mapping[str, Any]) -> None:
        toxiproxy.add_toxic(proxy, name, kind, stream, attributes, toxicity=0.0)

    def of_bystander(_: str, name: str, attributes: Mapping[str, Any]) -> None:
        toxiproxy.update_toxic(unused, name, attributes)

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
    nodes = {number: Blunt(broker, signals) for number, broker in context.cluster.brokers.items()}
    cluster: Any = Blunt(
        context.cluster,
        {
            "toxiproxy": Blunt(toxiproxy, {"add_toxic": toxicity_0, "update_toxic": of_bystander, **proxies}),
            "brokers": nodes,
        },
    )
    blunt_group: Any = Blunt(group, signals)
    blunt_admin: Any = Blunt(
        context.admin, dict.fromkeys(("move_leader", "delete_records", "add_partitions"), lambda *_, **__: None)
    )
    sink = context.sink
    assert sink is not None
    for_nobody = {
        "arm": lambda point, **_: sink.arm(point, member="nobody"),
        "treated": lambda treatment: sink.treated(replace(treatment, members=("nobody",))),
    }
    blunt_sink: Any = Blunt(sink, for_nobody)
    return replace(context, cluster=cluster, group=blunt_group, admin=blunt_admin, sink=blunt_sink)
