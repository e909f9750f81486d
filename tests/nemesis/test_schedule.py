"""Plans are seeded, checked and replayable; whatever was injected is healed, the newest first."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kafka_trial.errors import InputError, UnjudgeableError, WaitTimeout
from kafka_trial.history.consequences import Consequence
from kafka_trial.history.recorder import Recorder
from kafka_trial.nemesis import fault as faults
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault, find_fault
from kafka_trial.nemesis.injection import Injection, Planned
from kafka_trial.nemesis.schedule import make_plan, plan_from_table, plan_to_table, run_schedule
from kafka_trial.nemesis.targets import Target
from kafka_trial.scenario import Step

STEPS = (Step("kill", "member", at_s=3, for_s=2), Step("stall", "coordinator", at_s=1, for_s=4))


def test_a_plan_is_replayable_from_its_file() -> None:
    """A plan survives its way through schedule.json unchanged."""
    plan = make_plan(STEPS, seed=7)
    assert plan_from_table(orjson.loads(orjson.dumps(plan_to_table(plan)))) == plan


def test_a_plan_is_drawn_from_its_seed() -> None:
    """The same seed gives the same plan, another seed another; instants come in order."""
    assert make_plan(STEPS, seed=7) == make_plan(STEPS, seed=7) != make_plan(STEPS, seed=8)
    assert [planned.fault for planned in make_plan(STEPS, seed=7).faults] == ["stall", "kill"]


DEPLOYED = (Step("stall", "all"), Step("terminate", "each-member", for_s=1, after="stable"))


@pytest.mark.parametrize("members", [1, 2, 3, 6])
def test_each_member_is_hit_once_one_after_the_other(members: int) -> None:
    """However many there are: each waits for the one before, in an order drawn from the seed."""
    stall, *rolled = make_plan(DEPLOYED, seed=7, members=members).faults
    assert (stall.target, sorted(one.target for one in rolled)) == ("all", [f"member:{n}" for n in range(members)])
    assert [(one.fault, one.for_s, one.after) for one in rolled] == [("terminate", 1, "stable")] * members
    orders = {tuple(one.target for one in make_plan(DEPLOYED, seed=seed, members=6).faults) for seed in range(5)}
    assert len(orders) == 5


def test_each_member_in_turn_waits_for_the_healing_where_the_step_does_not_wait() -> None:
    """The first is hit when the step says, at two seconds; each further one two seconds after the one before."""
    plan = make_plan([Step("pause", "each-member", at_s=2, for_s=1)], seed=7, members=3)
    assert [(one.after, one.at_s) for one in plan.faults] == [("", 2), ("healed", 2), ("healed", 2)]


def test_a_schedule_that_was_played_names_its_members() -> None:
    """It is replayed as it was, with its members by their indices; one that was written by hand must do so too."""
    table = plan_to_table(make_plan(DEPLOYED, seed=7, members=3))
    assert plan_from_table(orjson.loads(orjson.dumps(table))) == make_plan(DEPLOYED, seed=7, members=3)
    table["faults"][1]["target"] = "each-member"
    with pytest.raises(InputError, match="names member:0, member:1"):
        plan_from_table(table)


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (Step("broker-kill", "each-member"), "target of broker-kill 'each-member'"),
        (Step("kill", "each-member:1"), "take a number"),
        (Step("latancy", "member"), "unknown fault 'latancy'. Did you mean 'latency'?"),
        (Step("latency", "brokr"), "unknown target of latency 'brokr'"),
        (Step("kill", "coordinator"), "Valid: each-member, member"),
        (Step("latency", "member", options={"latency": 3}), "Did you mean 'latency_ms'?"),
        (Step("latency", "member", options={"latency_ms": "3"}), "must be a number"),
        (Step("latency", "member:x"), "take a number"),
    ],
)
def test_wrong_steps_name_the_valid_choices(step: Step, problem: str) -> None:
    """What does not exist is refused before anything starts, with the choices there are."""
    with pytest.raises(InputError, match="schedule") as raised:
        make_plan([step], seed=1)
    assert problem in str(raised.value)


def test_a_newer_schema_is_refused() -> None:
    """A schedule of a newer version is not guessed at."""
    with pytest.raises(InputError, match="schema 2"):
        plan_from_table({"schema": 2, "seed": 1, "faults": []})


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Registers the fault `note`, which writes down that it came and went, and hands out what it wrote."""
    faults.list_faults()
    monkeypatch.setattr(faults, "_REGISTRY", dict(faults._REGISTRY))
    written: list[str] = []

    @fault("note", targets=("all",), scope="members", heals=False, consequences=(), recovers_within_s=0.0)
    def note(injection: Injection, *, name: str = "", fails: str = "") -> Iterator[Evidence]:
        """Writes into a list."""
        if fails == "inject":
            raise UnjudgeableError("the injection failed")
        written.append(f"{name} injected")
        try:
            injection.hold(lambda: None)
            yield Evidence(True, "seen")
        finally:
            written.append(f"{name} healed")
        if fails == "heal":
            raise UnjudgeableError("the healing failed")

    return written


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FaultContext]:
    """A context with nothing on it: one member without connections, no brokers."""
    member = SimpleNamespace(
        name="m0",
        index=0,
        alive=True,
        process_group=0,
        address=None,
        container_view=None,
        lane=SimpleNamespace(proxies={}),
    )
    ruined: list[str] = []
    cluster: Any = SimpleNamespace(request_logs={}, brokers={}, ruined=ruined, ruin=ruined.append, socket_dump=None)
    group: Any = SimpleNamespace(members=[member], size=1)
    admin: Any = None
    with Recorder(tmp_path, "nemesis") as recorder:
        yield FaultContext(cluster, group, admin, recorder, topic="t", group_name="g", history=tmp_path)  # type: ignore[arg-type]


def note_step(name: str, at_s: float, for_s: float, **options: str) -> Step:
    return Step("note", "all", at_s=at_s, for_s=for_s, options={"name": name} | options)


def journal(context: FaultContext) -> list[str]:
    lines = map(orjson.loads, context.recorder.path.read_bytes().splitlines())
    return [f"{line['kind']} {line['fault_no']}" for line in lines if line["kind"] != "sample"]


def test_a_fault_is_journaled_with_four_instants_and_its_evidence(context: FaultContext, notes: list[str]) -> None:
    """Injecting, injected, healing, healed, evidence: in this order, with the resolved target in the plan."""
    played, outcomes = run_schedule(context, make_plan([note_step("a", 0, 0.1)], seed=1))
    assert journal(context) == ["injecting 0", "injected 0", "healing 0", "healed 0", "evidence 0"]
    assert (played.faults[0].resolved, outcomes[0].proven) == ("all", True)


def test_overlapping_faults_each_heal_at_their_own_time(context: FaultContext, notes: list[str]) -> None:
    """A short fault inside a long one is healed first."""
    run_schedule(context, make_plan([note_step("long", 0, 0.8), note_step("short", 0.2, 0.1)], seed=1))
    assert notes == ["long injected", "short injected", "short healed", "long healed"]


def stopping(notes: list[str], count: int, act: Callable[[], None]) -> Callable[..., None]:
    """Returns a `progress` that calls `act` once `count` faults are in force."""
    return lambda text, left_s: act() if len(notes) >= count else None


def test_stopping_heals_in_reverse_order(context: FaultContext, notes: list[str]) -> None:
    """Whatever is open when the run is stopped is healed, the newest first."""
    stop = threading.Event()
    plan = make_plan([note_step("a", 0, 60), note_step("b", 0.3, 60), note_step("never", 50, 1)], seed=1)
    run_schedule(context, plan, stop, progress=stopping(notes, 2, stop.set))
    assert notes == ["a injected", "b injected", "b healed", "a healed"]


def test_what_a_stopped_run_did_not_wait_for_is_not_told(context: FaultContext, notes: list[str]) -> None:
    """Stopped while it waits for traffic, a run knows neither that it came back nor that it did not."""
    stop = threading.Event()

    @fault("stops", targets=("all",), scope="members", heals=True, consequences=(), recovers_within_s=60.0)
    def stops(injection: Injection) -> Iterator[Evidence]:
        """Ends the run a moment after it was healed."""
        yield Evidence(True, "seen")
        threading.Timer(0.3, stop.set).start()

    _, outcomes = run_schedule(context, make_plan([Step("stops", "all", at_s=0, for_s=0.1)], seed=1), stop)
    assert [(outcome.healed_traffic, outcome.healed_after_s) for outcome in outcomes] == [(None, None)]


@pytest.mark.parametrize(("alive", "healed_traffic"), [(True, False), (False, None)])
def test_where_nobody_runs_no_traffic_is_waited_for(
    context: FaultContext, notes: list[str], monkeypatch: pytest.MonkeyPatch, *, alive: bool, healed_traffic: bool
) -> None:
    """A fault of the topic was played while every member was away: whose connections should move bytes again?"""
    monkeypatch.setitem(faults._REGISTRY, "note", replace(find_fault("note"), consequences=[Consequence.CHANGES_TOPIC]))
    monkeypatch.setattr(context.group.members[0], "alive", alive)
    _, (outcome,) = run_schedule(context, make_plan([note_step("a", 0, 0.1)], seed=1))
    assert (notes, outcome.healed_traffic) == (["a injected", "a healed"], healed_traffic)


def test_ctrl_c_heals_in_reverse_order(context: FaultContext, notes: list[str]) -> None:
    """Ctrl-C leaves the runner only after healing."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    plan = make_plan([note_step("a", 0, 60), note_step("b", 0.3, 60)], seed=1)
    with pytest.raises(KeyboardInterrupt):
        run_schedule(context, plan, progress=stopping(notes, 2, interrupt))
    assert notes == ["a injected", "b injected", "b healed", "a healed"]


def test_an_injection_that_fails_did_not_bite(context: FaultContext, notes: list[str]) -> None:
    """A fault that could not be injected is evidence of nothing, and the others go on."""
    plan = make_plan([note_step("a", 0, 0.1, fails="inject"), note_step("b", 0, 0.1)], seed=1)
    _, outcomes = run_schedule(context, plan)
    assert [(o.evidence.took_effect, o.evidence.message) for o in outcomes] == [
        (False, "could not be injected: the injection failed"),
        (True, "seen"),
    ]
    assert context.cluster.ruined == ["note on all failed half-way: the injection failed"]


def test_a_healing_that_fails_is_never_silent(context: FaultContext, notes: list[str]) -> None:
    """A fault that could not be healed ends the run as not judgeable, after the others were healed."""
    plan = make_plan([note_step("a", 0, 0.1, fails="heal"), note_step("b", 0, 0.3)], seed=1)
    with pytest.raises(UnjudgeableError, match="could not be healed"):
        run_schedule(context, plan)
    assert sorted(note for note in notes if "healed" in note) == ["a healed", "b healed"]


def test_a_step_that_waits_comes_after_all_that_are_listed_before_it(notes: list[str]) -> None:
    """Instants order only steps between two that wait."""
    steps = [
        note_step("second", 3, 0),
        note_step("first", 1, 0),
        replace(note_step("third", 4, 0), after="stable"),
        note_step("fourth", 2, 0),
    ]
    names = [planned.options["name"] for planned in make_plan(steps, seed=1).faults]
    assert names == ["first", "second", "third", "fourth"]


def test_a_step_waits_until_those_before_it_are_over_and_the_group_is_stable(
    context: FaultContext, notes: list[str]
) -> None:
    """It counts from there; the instant stands in the schedule, rounded to milliseconds."""
    plan = make_plan([note_step("a", 0, 0.1), replace(note_step("b", 0.05, 0), after="stable")], seed=1)

    def stable(given_up: Callable[[], str | None]) -> None:
        assert given_up() is None
        notes.append("stable")

    played, outcomes = run_schedule(context, plan, await_stable=stable)
    assert notes == ["a injected", "a healed", "stable", "b injected", "b healed"]
    assert [outcome.proven for outcome in outcomes] == [True, True]
    reached_s = played.faults[1].reached_s
    assert reached_s is not None
    assert 0.1 < reached_s == round(reached_s, 3)
    assert "reached_s" not in plan_to_table(played)["faults"][0]
    assert plan_from_table(orjson.loads(orjson.dumps(plan_to_table(played)))) == played


def test_a_step_after_the_healing_does_not_wait_for_traffic(
    context: FaultContext, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins when the one before it is healed, while that one still waits for bytes to move again."""
    monkeypatch.setitem(faults._REGISTRY, "note", replace(find_fault("note"), recovers_within_s=1.0))
    plan = make_plan([note_step("a", 0, 0.1), replace(note_step("b", 0, 0), after="healed")], seed=1)
    played, _ = run_schedule(context, plan)
    assert notes == ["a injected", "a healed", "b injected", "b healed"]
    reached_s = played.faults[1].reached_s
    assert reached_s is not None
    assert 0.1 < reached_s < 0.9


def test_a_replay_keeps_to_the_instant_that_was_reached(context: FaultContext, notes: list[str]) -> None:
    """It waits for no condition: who was slower then is no slower now."""
    plan = make_plan([note_step("a", 0.4, 0), replace(note_step("b", 0, 0), after="stable")], seed=1)
    before = replace(plan, faults=(plan.faults[0], replace(plan.faults[1], reached_s=0.1)))
    played, _ = run_schedule(context, before)
    assert notes == ["b injected", "b healed", "a injected", "a healed"]
    assert played.faults[1].reached_s == 0.1


def test_a_condition_that_is_never_met_is_a_fault_that_did_not_bite(context: FaultContext, notes: list[str]) -> None:
    """Not even injected; the others are played."""
    plan = make_plan([note_step("a", 0, 0), replace(note_step("b", 0, 0), after="stable")], seed=1)

    def never(given_up: Callable[[], str | None]) -> None:
        raise WaitTimeout("waited 3 s for the group, in vain")

    played, outcomes = run_schedule(context, plan, await_stable=never)
    assert notes == ["a injected", "a healed"]
    assert outcomes[1].evidence == Evidence(False, "could not be injected: waited 3 s for the group, in vain")
    assert (played.faults[1].resolved, played.faults[1].reached_s) == (None, None)


def test_a_run_that_is_stopped_waits_for_no_condition(context: FaultContext, notes: list[str]) -> None:
    """Neither for the group, nor for the steps before it; and it says nothing of a step it never came to."""
    stop = threading.Event()
    plan = make_plan([note_step("a", 0, 60), replace(note_step("b", 0, 0), after="stable")], seed=1)
    _, outcomes = run_schedule(context, plan, stop, progress=stopping(notes, 1, stop.set))
    assert notes == ["a injected", "a healed"]
    assert [outcome.planned.no for outcome in outcomes] == [0]


def test_an_exact_replay_wants_recorded_names_that_exist(context: FaultContext, notes: list[str]) -> None:
    """`exact` refuses names that were never recorded, or that do not exist here."""
    table = plan_to_table(make_plan([note_step("a", 0, 0), note_step("b", 0, 0)], seed=1))
    table["faults"][1]["resolved"] = "m9"
    with pytest.raises(InputError) as raised:
        run_schedule(context, plan_from_table(table), exact=True)
    assert "no target was recorded" in str(raised.value)
    assert "unknown recorded target 'm9'" in str(raised.value)


def injection_of(context: FaultContext, fault_name: str, *, for_s: float) -> Injection:
    """Returns the injection of one fault on m0."""
    planned = Planned(0, fault_name, "member", 0.0, for_s)
    target = Target("member", "m0", members=("m0",))
    return Injection(
        context, planned, target, scope="members", consequences=(), stop=threading.Event(), rng=random.Random(1)
    )


@pytest.mark.parametrize(("for_s", "session_ms", "lasts_s"), [(10, 45_000, 56.25), (10, 6_000, 10), (10, None, 10)])
def test_a_pause_outlasts_the_session_that_the_brokers_were_told(
    for_s: float, session_ms: int | None, lasts_s: float, context: FaultContext
) -> None:
    """1.25 times that, and never less than its step says."""
    with Recorder(context.history, "offsets") as log:
        member = {"member_id": "a"} | ({"session_timeout_ms": session_ms} if session_ms else {})
        log.record("group", group="g", protocol="classic", epoch=1, members=[member])
    injection = injection_of(context, "pause", for_s=for_s)
    injection.outlast_session()
    assert injection.for_s == lasts_s


def test_a_restart_is_journaled_when_it_hits(context: FaultContext) -> None:
    """Not when the next incarnation is up, which takes a JVM on a busy machine long."""
    injection = injection_of(context, "restart", for_s=0.1)
    events: list[str] = []
    member = context.group.members[0]
    member.pid, member.exit_code, member.container_view = 2**22, None, None
    context.group.leave = lambda _: events.append(f"asked to stop, {journal(context)[-1]}")  # type: ignore[method-assign]
    with suppress(StopIteration):
        next(find_fault("restart").play(injection))
    assert events == ["asked to stop, injected 0"]
