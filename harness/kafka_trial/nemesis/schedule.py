"""The schedule: planned faults, seeded, saved and replayed; and the runner that plays them and always heals.

A plan keeps instants relative to the start of the faults phase and targets by role; which member or broker a role
meant is written beside it (`resolved`) when it was injected. `exact` replays the resolved names instead and refuses
those that do not exist. A step that waits for a condition has the instant written down at which it was met
(`reached_s`); a replay keeps to that instant and waits for nothing.

The runner plays each fault in a thread of its own: it waits for a step's instant or its condition, journals the four
instants (injecting, injected, healing, healed) and the evidence, asks after healing whether traffic came back, and
turns a fault that could not be injected into evidence that it did not bite. Faults may overlap; each heals at its own
time, and whatever is still open when the run is stopped is healed in reverse order.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any

from kafka_trial.errors import InputError, KafkaTrialError, UnjudgeableError, WaitTimeout, unknown_name
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import EACH_MEMBER, find_fault, step_problems
from kafka_trial.nemesis.injection import Injection, Planned
from kafka_trial.nemesis.targets import known_names, resolve
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause
from kafka_trial.scenario import HEALED, Step

PLAN_SCHEMA = 1
TICK_S = 0.1
ANY_MEMBER = "member"  # a target that is drawn


@dataclass(frozen=True)
class Plan:
    """All faults of one trial, in the order of their instants."""

    seed: int
    faults: tuple[Planned, ...] = ()

    @property
    def length_s(self) -> float | None:
        """When the last fault is to be healed, in seconds after the start of the faults phase; None where one waits."""
        if any(planned.after and planned.reached_s is None for planned in self.faults):
            return None
        return max((planned.at_s + planned.for_s + (planned.reached_s or 0.0) for planned in self.faults), default=0.0)

    @property
    def cuts(self) -> bool:
        """Whether the members' requests are followed, for one of them is to be cut."""
        return any(planned.fault == "cut" for planned in self.faults)

    @property
    def breaks_brokers(self) -> bool:
        return any(find_fault(one.fault).scope_of(one.options) == "brokers" for one in self.faults)


def make_plan(steps: Sequence[Step], *, seed: int, members: int = 1, where: str = "schedule") -> Plan:
    """Returns the plan of `steps` under a seed, by their instants; each fault draws from a seed of its own.

    A step that waits comes after all that are listed before it. One on each member becomes one for each of `members`.

    Raises:
        InputError: a fault, target or option does not exist; all problems at once, with the valid choices.
    """
    _refuse(schedule_problems([step for step in steps if step.target == EACH_MEMBER]), where)
    rng = random.Random(f"nemesis {seed}")
    played = list(_one_by_one(steps, seed=seed, members=members))
    waits = accumulate(bool(step.after) for step in played)
    in_turn = sorted(zip(waits, played, strict=True), key=lambda pair: (pair[0], not pair[1].after, pair[1].at_s))
    plan = Plan(
        seed,
        tuple(
            Planned(
                no,
                step.fault,
                step.target,
                step.at_s,
                step.for_s,
                dict(step.options),
                rng.getrandbits(32),
                after=step.after,
            )
            for no, (_, step) in enumerate(in_turn)
        ),
    )
    _require_sound(plan, where)
    return plan


def _one_by_one(steps: Sequence[Step], *, seed: int, members: int) -> Iterator[Step]:
    """Yields the steps; in the place of one on each member, one for each of them in an order drawn from the seed. Every
    further one waits as the step says, or until the one before it is healed."""
    for number, step in enumerate(steps):
        if step.target != EACH_MEMBER:
            yield step
            continue
        indices = random.Random(f"each member {seed} {number}").sample(range(members), members)
        for turn, index in enumerate(indices):
            after = step.after or (HEALED if turn else "")
            yield replace(step, target=f"{ANY_MEMBER}:{index}", after=after)


def schedule_problems(steps: Sequence[Step | Planned]) -> list[str]:
    """Returns what is wrong with the steps of a schedule, as sentences listing the valid choices."""
    return [
        f"schedule[{number}]: {problem}"
        for number, step in enumerate(steps)
        for problem in [*step_problems(step.fault, step.target, step.options), *_cut_problems(steps[:number], step)]
    ]


def _cut_problems(before: Sequence[Step | Planned], step: Step | Planned) -> list[str]:
    """Two cuts of one member at once: its requests are counted for one of them at a time."""
    if step.fault != "cut" or step.after:
        return []
    others = {other.target for other in before if other.fault == "cut"}
    drawn = others and ANY_MEMBER in (step.target, *others)
    if not (drawn or step.target in others):
        return []
    return [
        f'a second cut of {step.target} may come while the first is armed: give it after = "{HEALED}", or give '
        f"each a member of its own ({ANY_MEMBER}:<index>)"
    ]


def plan_to_table(plan: Plan) -> dict[str, Any]:
    """Returns the plan as plain data, for schedule.json."""
    faults = [asdict(planned) for planned in plan.faults]
    for fault in faults:
        if not fault["after"]:  # a plan without conditions stays readable for those who know none
            del fault["after"], fault["reached_s"]
    return {"schema": PLAN_SCHEMA, "seed": plan.seed, "faults": faults}


def plan_from_table(table: Mapping[str, Any], *, where: str = "schedule.json") -> Plan:
    """Returns the plan of a parsed schedule.json.

    Raises:
        InputError: newer schema, keys missing or unknown, or faults, targets and options that do not exist.
    """
    if table.get("schema") != PLAN_SCHEMA:
        raise InputError(
            where, f"schema {table.get('schema', 'missing')}, this version reads {PLAN_SCHEMA}; upgrade kafka-trial"
        )
    rows, seed = table.get("faults", []), table.get("seed", 0)
    if not isinstance(rows, list) or not isinstance(seed, int):
        raise InputError(where, "faults must be a list and seed a whole number: it was edited")
    faults, problems = [], []
    for number, row in enumerate(rows):
        try:
            faults.append(Planned(**row))
        except TypeError as error:
            valid = ", ".join(Planned.__dataclass_fields__)
            problems.append(f"faults[{number}]: {error}. Valid keys: {valid}")
    if problems:
        raise InputError(where, problems)
    plan = Plan(seed, tuple(faults))
    _require_sound(plan, where)
    return plan


def require_resolved(plan: Plan, names: Sequence[str], *, where: str = "schedule.json") -> None:
    """Checks that an exact replay is possible: each fault has a recorded name, and it exists.

    Raises:
        InputError: names that were never recorded or do not exist here, with the valid ones.
    """
    problems = [
        f"faults[{planned.no}] ({planned.fault}): "
        + ("no target was recorded; replay by role" if planned.resolved is None else _unknown(planned.resolved, names))
        for planned in plan.faults
        if planned.resolved not in names
    ]
    if problems:
        raise InputError(where, problems)


def run_schedule(
    context: FaultContext,
    plan: Plan,
    stop: threading.Event | None = None,
    *,
    exact: bool = False,
    progress: Callable[..., object] | None = None,
    await_stable: AwaitStable | None = None,
) -> tuple[Plan, tuple[Outcome, ...]]:
    """Plays the plan from now; returns it with the resolved names, and what became of each fault.

    Ends early when `stop` is set or Ctrl-C comes; whatever is open then is healed in reverse order before it returns
    or raises. A fault that could not be injected is evidence that it did not bite, never an exception. `progress` is
    told, about twice a second, what is in force. `await_stable` waits until the group is stable.

    Raises:
        InputError: `exact`, and a recorded name does not exist.
        UnjudgeableError: a fault or its healing failed in a way nobody planned.
    """
    if exact:
        require_resolved(plan, known_names(context))
    first = min((planned.no for planned in plan.faults), default=0)
    runner = FaultRunner(context, exact=exact, await_stable=await_stable, first=first)
    try:
        with ThreadGroup("nemesis", join_within_s=60.0) as thread_group:
            runner.stop = thread_group.stop
            runs = [thread_group.start(f"{p.no}-{p.fault}", runner.play, p) for p in plan.faults]
            ends_s = None if plan.length_s is None else time.monotonic() + plan.length_s
            while any(run.is_alive() for run in runs) and not thread_group.errors and not pause(TICK_S, stop=stop):
                if progress:
                    progress(runner.in_force(), left_s=None if ends_s is None else ends_s - time.monotonic())
    finally:
        runner.heal_rest()
    done = {outcome.planned.no: outcome for outcome in runner.outcomes}
    played = replace(plan, faults=tuple(done[p.no].planned if p.no in done else p for p in plan.faults))
    return played, tuple(done[no] for no in sorted(done))


def _require_sound(plan: Plan, where: str) -> None:
    by_index = f"a schedule names {ANY_MEMBER}:0, {ANY_MEMBER}:1, … in turn"
    problems = schedule_problems(plan.faults)
    problems += [
        f"faults[{planned.no}]: {EACH_MEMBER} is a target of scenarios; {by_index}"
        for planned in plan.faults
        if planned.target == EACH_MEMBER
    ]
    _refuse(problems, where)


def _refuse(problems: list[str], where: str) -> None:
    if problems:
        raise InputError(where, problems)


def _unknown(given: str, names: Sequence[str]) -> str:
    return unknown_name("recorded target", given, names)


# Waits until the group is stable, and no longer than until `given_up` says why to stop.
AwaitStable = Callable[[Callable[[], str | None]], None]
TURN_S = 0.01


@dataclass(frozen=True)
class Outcome:
    """What became of one planned fault; `healed_traffic` None where it was not asked, else whether it came back, after
    `healed_after_s` seconds."""

    planned: Planned
    evidence: Evidence
    healed_traffic: bool | None
    heals: bool
    healed_after_s: float | None = None

    @property
    def proven(self) -> bool:
        """Whether it took effect and, where it is to heal, traffic came back."""
        return self.evidence.took_effect and (self.healed_traffic is not False or not self.heals)


@dataclass
class _Open:
    """A fault in force."""

    injection: Injection
    play: Iterator[Evidence]
    evidence: Evidence


class FaultRunner:
    """The faults being played, from the number `first` on; `opened` is in the order of injection. Instants count from
    when it is made."""

    def __init__(
        self, context: FaultContext, *, exact: bool, await_stable: AwaitStable | None = None, first: int = 0
    ) -> None:
        self.context = context
        self.exact = exact
        self.stop = threading.Event()
        self._await_stable = await_stable
        self._first = first
        self._awaited = ""
        self._began_s = time.monotonic()
        self.opened: list[_Open] = []
        self.outcomes: list[Outcome] = []
        self._healed: set[int] = set()
        self._lock = threading.Lock()

    def in_force(self) -> str:
        """Names the faults in force, or says what the next one waits for."""
        with self._lock:
            return (
                ", ".join(f"{act.injection.fault} on {act.injection.target.name}" for act in self.opened)
                or self._awaited
                or "no fault in force"
            )

    def play(self, planned: Planned) -> None:
        """Waits for its instant, injects, holds, and heals unless the run was stopped meanwhile."""
        if planned.after and planned.reached_s is None:
            try:
                planned = replace(planned, reached_s=self._reached_s(planned))
            except WaitTimeout as error:
                if not self.stop.is_set():
                    self._failed(planned, None, error)
                return
        due_s = self._began_s + (planned.reached_s or 0.0) + planned.at_s
        if pause(due_s - time.monotonic(), stop=self.stop):
            return
        act = self._inject(planned)
        if act is not None and not self.stop.is_set():
            self._heal(act)

    def heal_rest(self) -> None:
        """Heals everything still in force, the newest first; one failure does not keep the others from healing."""
        errors = []
        while self.opened:
            try:
                self._heal(self.opened[-1], stopping=True)
            except UnjudgeableError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _reached_s(self, planned: Planned) -> float:
        """Waits until all faults before this one are over, and for its condition; returns when that was.

        Raises:
            WaitTimeout: it was not reached in time, or the run was stopped.
        """
        before = set(range(self._first, planned.no))
        while not before <= self._over(planned.after):  # each of them is bounded by itself
            if pause(TURN_S, stop=self.stop):
                raise WaitTimeout("the run was stopped")
        if planned.after == HEALED:
            return round(time.monotonic() - self._began_s, 3)
        if self._await_stable is None:
            raise WaitTimeout(f"nobody here can tell whether the group is {planned.after}")
        self._awaited = f"waits until the group is {planned.after}"
        self._await_stable(lambda: "the run was stopped" if self.stop.is_set() else None)
        self._awaited = ""
        return round(time.monotonic() - self._began_s, 3)

    def _over(self, condition: str) -> set[int]:
        """Returns the faults that are healed, or, for any other condition, whose traffic has come back too."""
        with self._lock:
            return set(self._healed) if condition == HEALED else {outcome.planned.no for outcome in self.outcomes}

    def _inject(self, planned: Planned) -> _Open | None:
        spec = find_fault(planned.fault)
        injection: Injection | None = None
        try:
            rng = random.Random(planned.seed)
            recorded, does = planned.resolved if self.exact else None, spec.consequences_of(planned.options)
            idle = Consequence.CHANGES_TOPIC in does
            target = resolve(self.context, recorded, role=planned.target, rng=rng, stop=self.stop, idle=idle)
            planned, scope = replace(planned, resolved=target.name), spec.scope_of(planned.options)
            where = self.context
            injection = Injection(where, planned, target, scope=scope, consequences=does, stop=self.stop, rng=rng)
            if spec.waits:
                injection.journal("armed")
            else:
                injection.injecting()
            play = spec.play(injection, **planned.options)
            act = _Open(injection, play, Evidence(False, "in force, not judged yet"))
            with self._lock:
                self.opened.append(act)
            act.evidence = next(play)
            if injection.context is not where:  # the group has moved to another cluster, and with it what follows
                self.context = injection.context
        except (KafkaTrialError, OSError) as error:
            self._failed(planned, injection, error)
            return None
        return act

    def _heal(self, act: _Open, *, stopping: bool = False) -> None:
        injection, spec = act.injection, find_fault(act.injection.fault)
        injection.journal("healing")
        try:
            with suppress(StopIteration):
                next(act.play)
        except (KafkaTrialError, OSError) as error:
            self.context.cluster.ruin(f"{injection.fault} on {injection.target.name} could not be healed: {error}")
            raise UnjudgeableError(
                f"{injection.fault} on {injection.target.name} could not be healed: {error}"
            ) from error
        finally:
            self._forget(act)
            injection.journal("healed")
        of_topic = Consequence.CHANGES_TOPIC in spec.consequences_of(injection.planned.options)
        nobody = of_topic and not injection.target.members  # whose traffic could come back
        healed_after_s = None if stopping or nobody else injection.traffic_within(spec.recovers_within_s)
        unasked = stopping or nobody or (healed_after_s is None and injection.stop.is_set())
        healed_traffic = None if unasked else healed_after_s is not None
        evidence = act.evidence if stopping or not spec.complete else spec.complete(injection, act.evidence)
        self._settle(injection, Outcome(injection.planned, evidence, healed_traffic, spec.heals, healed_after_s))

    def _settle(self, injection: Injection, outcome: Outcome) -> None:
        evidence = outcome.evidence
        injection.journal(
            "evidence",
            bit=evidence.took_effect,
            heals=outcome.heals,
            healed_traffic=outcome.healed_traffic,
            healed_after_s=outcome.healed_after_s,
            message=evidence.message,
            details=dict(evidence.details),
        )
        with self._lock:
            self.outcomes.append(outcome)

    def _failed(self, planned: Planned, injection: Injection | None, error: Exception) -> None:
        """An injection that raised has undone itself (its `with` was left); says so, and that it had no effect.

        Whether undoing worked to the last is not known, so nobody else may use the cluster.
        """
        if injection is not None:
            with self._lock:
                self.opened = [act for act in self.opened if act.injection is not injection]
            injection.journal("healed", message=str(error))
            self.context.cluster.ruin(f"{planned.fault} on {planned.resolved} failed half-way: {error}")
        evidence = Evidence(False, f"could not be injected: {error}")
        self.context.recorder.record(
            "evidence",
            fault_no=planned.no,
            fault=planned.fault,
            target=f"{planned.target}: {planned.resolved or 'nobody'}",
            bit=False,
            heals=find_fault(planned.fault).heals,
            message=evidence.message,
        )
        with self._lock:
            self._healed.add(planned.no)
            self.outcomes.append(Outcome(planned, evidence, None, find_fault(planned.fault).heals))

    def _forget(self, act: _Open) -> None:
        with self._lock:
            if act in self.opened:
                self.opened.remove(act)
            self._healed.add(act.injection.no)
