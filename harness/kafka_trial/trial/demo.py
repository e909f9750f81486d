"""The demonstration: one scenario, one seed, a sound consumer that must be acquitted and a faulty one convicted."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_trial import registry
from kafka_trial.errors import FAIL, PASS
from kafka_trial.trial.runs import find_scenario
from kafka_trial.trial.session import Session, Trialed


@dataclass(frozen=True)
class Demonstration:
    """Both trials, and whether the verdicts are as they must be."""

    sound: Trialed
    faulty: Trialed

    @property
    def as_it_must_be(self) -> bool:
        return self.sound.verdict.verdict == "pass" and self.faulty.verdict.verdict == "fail"

    @property
    def exit_status(self) -> int:
        return PASS if self.as_it_must_be else FAIL


def demonstrate(
    session: Session, *, scenario: str, sound: str, faulty: str, kafka_version: str | None, seed: int
) -> Demonstration:
    """Puts both consumers through `scenario` under `seed`, in fresh run folders, and returns both trials judged."""
    asked = find_scenario(scenario)
    trials = []
    for role, name in (("sound", sound), ("faulty", faulty)):
        session.console.say(f"\n== the consumer that must be {'acquitted' if role == 'sound' else 'convicted'}: {name}")
        trials.append(session.try_one(asked, registry.find_consumer(name), kafka_version=kafka_version, seed=seed))
    return Demonstration(*trials)


def told(demonstration: Demonstration) -> str:
    """Returns both reports and one closing sentence."""
    parts = [demonstration.sound.text, "", demonstration.faulty.text, ""]
    verdicts = f"sound: {demonstration.sound.verdict.verdict}, faulty: {demonstration.faulty.verdict.verdict}"
    ending = "as it must be" if demonstration.as_it_must_be else "NOT as it must be (sound: pass, faulty: fail)"
    return "\n".join([*parts, f"demo: {verdicts} — {ending}"])
