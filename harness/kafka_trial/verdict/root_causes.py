"""Root causes: which violation follows from which, so that one root cause is told once, and first.

An anomaly follows from another one where every instance of it is explained by an instance of that one: they share an
event that proves both, or a partition, or the record lies in the range that the other one names. Nothing is left out by
it: what follows stands beneath its cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kafka_trial.invariants.causal_links import Anomaly
from kafka_trial.invariants.invariant import find_invariant
from kafka_trial.verdict.verdict_input import Violation


def by_root_cause(violations: Sequence[Violation], guilty: Mapping[str, Sequence[Anomaly]]) -> list[Violation]:
    """Returns the violations, each followed by those that follow from it; otherwise their order is kept.

    `guilty` are the instances by name. Only the kept examples are looked at: those counted beyond them are like them.
    """
    causes = {one.anomaly: _cause(one.anomaly, guilty) for one in violations}
    beneath: dict[str | None, list[Violation]] = defaultdict(list)
    for one in violations:
        beneath[causes[one.anomaly]].append(replace(one, follows=causes[one.anomaly]))
    return list(_in_turn(beneath[None], beneath))


def _cause(anomaly: str, guilty: Mapping[str, Sequence[Anomaly]]) -> str | None:
    instances = guilty.get(anomaly, ())
    known = find_invariant(anomaly)
    for cause, explains in known.follows.items() if known else ():
        if instances and guilty.get(cause) and all(map(explains(guilty[cause]), instances)):
            return cause
    return None


def _in_turn(ones: Iterable[Violation], beneath: Mapping[str | None, Sequence[Violation]]) -> Iterable[Violation]:
    for one in ones:
        yield one
        yield from _in_turn(beneath.get(one.anomaly, ()), beneath)
