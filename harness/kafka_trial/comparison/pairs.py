"""Trials of two sides in pairs: the same suite with the same seed, so the same load and the same faults.

What a suite or a seed makes of a figure is the same on both sides of a pair and drops out of its ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class ComparedTrial:
    """A trial as far as it is compared: its verdict (pass, fail, unknown), the kinds of its violations, the anomalies
    that were not judged with the reason, and its figures."""

    scenario: str
    kafka: str
    seed: int
    verdict: str
    violations: frozenset[str] = frozenset()
    not_judged: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def decided(self) -> bool:
        """Whether it passed or failed."""
        return self.verdict != UNKNOWN

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its violations; "fail" stands for a failed trial that names none."""
        return self.violations or frozenset({"fail"} if self.verdict == "fail" else ())


@dataclass(frozen=True)
class Pair:
    """Two trials of one suite and seed, both decided."""

    before: ComparedTrial
    after: ComparedTrial


def version_pairs(trials: Sequence[ComparedTrial], before: str, after: str) -> list[Pair]:
    """Returns the pairs of two Kafka versions, in the order of the trials."""
    sides = [{(one.scenario, one.seed): one for one in trials if one.kafka == kafka} for kafka in (before, after)]
    return _decided([(sides[0][key], sides[1][key]) for key in sides[0] if key in sides[1]])


def client_pairs(before: Sequence[ComparedTrial], after: Sequence[ComparedTrial]) -> list[Pair]:
    """Returns the pairs of two clients, on each Kafka version, in the order of the trials of the first."""
    others = {(one.scenario, one.kafka, one.seed): one for one in after}
    keyed = [((one.scenario, one.kafka, one.seed), one) for one in before]
    return _decided([(one, others[key]) for key, one in keyed if key in others])


def _decided(pairs: Sequence[tuple[ComparedTrial, ComparedTrial]]) -> list[Pair]:
    return [Pair(before, after) for before, after in pairs if before.decided and after.decided]
