"""Playing the faults of a plan: each in its own thread, each healed, the newest first when the run is stopped.

Stands between the schedule and the scenes: waits for a step's instant or its condition, journals the four instants
(injecting, injected, healing, healed) and the evidence, asks after healing whether traffic came back, and turns a fault
that could not be injected into evidence that it did not bite.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from kafka_trial.errors import KafkaTrialError, UnjudgeableError, WaitTimeout
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import find_fault
from kafka_trial.nemesis.injection import Injection, Planned
from kafka_trial.nemesis.targets import resolve
from kafka_trial.process.waiting import pause

# Waits until the group is stable, and no longer than until `given_up` says why to stop.
AwaitStable = Callable[[Callable[[], str | None]], None]
TURN_S = 0.1


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
        """Whether it bit and, where it is to heal, traffic came back."""
        return self.evidence.bit and (self.healed_traffic is not False or not self.heals)


@dataclass
class _Open:
    """A fault in force."""

    injection: Injection
    play: Iterator[Evidence]
    evidence: Evidence


class FaultRunner:
    """The faults being played; `opened` is in the order of injection. Instants count from when it is made."""

    def __init__(self, context: FaultContext, *, exact: bool, await_stable: AwaitStable | None = None) -> None:
        self.context = context
        self.exact = exact
        self.stop = threading.Event()
        self._await_stable = await_stable
        self._awaited = ""
        self._began_s = time.monotonic()
        self.opened: list[_Open] = []
        self.outcomes: list[Outcome] = []
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
        """Waits until all faults before this one are over and the group is stable; returns when that was.

        Raises:
            WaitTimeout: it was not reached in time, or the run was stopped.
        """
        before = set(range(planned.no))
        while not before <= {outcome.planned.no for outcome in self.outcomes}:  # each of them is bounded by itself
            if pause(TURN_S, stop=self.stop):
                raise WaitTimeout("the run was stopped")
        if self._await_stable is None:
            raise WaitTimeout(f"nobody here can tell whether the group is {planned.after}")
        self._awaited = f"waits until the group is {planned.after}"
        self._await_stable(lambda: "the run was stopped" if self.stop.is_set() else None)
        self._awaited = ""
        return round(time.monotonic() - self._began_s, 3)

    def _inject(self, planned: Planned) -> _Open | None:
        spec = find_fault(planned.fault)
        injection: Injection | None = None
        try:
            rng = random.Random(planned.seed)
            recorded = planned.resolved if self.exact else None
            target = resolve(self.context, recorded, role=planned.target, rng=rng, stop=self.stop)
            planned = replace(planned, resolved=target.name)
            injection = Injection(self.context, planned, target, scope=spec.scope, stop=self.stop, rng=rng)
            injection.journal("injecting")
            play = spec.play(injection, **planned.options)
            act = _Open(injection, play, Evidence(False, "in force, not judged yet"))
            with self._lock:
                self.opened.append(act)
            act.evidence = next(play)
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
        healed_after_s = None if stopping else injection.traffic_within(spec.recovers_within_s)
        unasked = stopping or (healed_after_s is None and injection.stop.is_set())
        healed_traffic = None if unasked else healed_after_s is not None
        evidence = act.evidence if stopping or not spec.complete else spec.complete(injection, act.evidence)
        self._settle(injection, Outcome(injection.planned, evidence, healed_traffic, spec.heals, healed_after_s))

    def _settle(self, injection: Injection, outcome: Outcome) -> None:
        evidence = outcome.evidence
        injection.journal(
            "evidence",
            bit=evidence.bit,
            heals=outcome.heals,
            healed_traffic=outcome.healed_traffic,
            healed_after_s=outcome.healed_after_s,
            message=evidence.message,
            details=dict(evidence.details),
        )
        with self._lock:
            self.outcomes.append(outcome)

    def _failed(self, planned: Planned, injection: Injection | None, error: Exception) -> None:
        """An injection that raised has undone itself (its `with` was left); says so, and that it did not bite.

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
            target=f"{planned.target}: {planned.resolved}",
            bit=False,
            heals=find_fault(planned.fault).heals,
            message=evidence.message,
        )
        with self._lock:
            self.outcomes.append(Outcome(planned, evidence, None, find_fault(planned.fault).heals))

    def _forget(self, act: _Open) -> None:
        with self._lock:
            if act in self.opened:
                self.opened.remove(act)
