"""What a verdict rests on, as values: `collect.py` puts it together, `decide.py` decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_trial.invariants.causal_links import Anomaly


@dataclass(frozen=True)
class AnomalyResult:
    """All the judge says of one anomaly's name.

    `undecided` counts the cases that could not be decided, by reason. `not_judged` says why it was not judged at all;
    `applies` is False where the rule is not about this consumer (its progress is not in Kafka): not judged, not missed.
    The judge keeps examples of every combination of deciding attributes; `more` is how many it counted beyond them.
    `partly` says which part of it was not judged, and why.
    """

    anomaly: str
    instances: tuple[Anomaly, ...] = ()
    more: int = 0
    undecided: Mapping[str, int] = field(default_factory=dict)
    not_judged: str | None = None
    applies: bool = True
    partly: str | None = None

    @property
    def count(self) -> int:
        return len(self.instances) + self.more


@dataclass(frozen=True)
class Fault:
    """One planned fault, and what the samples say: whether it bit, and whether traffic came back where it must."""

    kind: str
    target: str
    role: str
    bit: bool
    evidence: str
    healed: bool = True


@dataclass(frozen=True)
class Violation:
    """One anomaly that breaks the claim: how often, the worst of them in a sentence, and the events that prove it.

    `follows`: the violation that explains every instance of it (`root_causes.py`).
    """

    anomaly: str
    count: int
    sentence: str
    events: tuple[str, ...]
    follows: str | None = None


@dataclass(frozen=True)
class VerdictInput:
    """Everything a verdict rests on.

    `ground` are sentences about what failed on the harness's or the cluster's side; `gaps` those about evidence that is
    vacuous (too few records judged, none on a partition, none through a fault's target). `failures` are the consumer's
    plain failures on a sound cluster (never assigned, exits, never stops), as anomaly and sentence with proofs. `notes`
    are worth knowing, and decide nothing.
    """

    found: tuple[AnomalyResult, ...]
    faults: tuple[Fault, ...] = ()
    ground: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    failures: tuple[Violation, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
