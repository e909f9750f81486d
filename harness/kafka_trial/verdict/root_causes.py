"""Cascades: which violation follows from which, so that one root cause is told once, and first.

An anomaly follows from another one where every instance of it is explained by an instance of that one: they share an
event that proves both, or a partition, or the record lies in the range that the other one names. Nothing is left out by
it: what follows stands beneath its cause.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kafka_trial.invariants.invariant import Anomaly
from kafka_trial.verdict.check_results import Violation

Explains = Callable[[Sequence[Anomaly]], Callable[[Anomaly], bool]]
Place = tuple[str | None, int | None]
CONTROL_READ = "observer#"  # what it saw proves that there is a record, not who did what


def _sharing_an_event(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    told = {event for cause in causes for event in cause.events if not event.startswith(CONTROL_READ)}
    return lambda one: not told.isdisjoint(one.events)


def _on_the_partition(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    places = {(cause.topic, cause.partition) for cause in causes}
    return lambda one: (one.topic, one.partition) in places


def _in_the_range(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    """Explains records from the first one a commit left out (`offset`) up to what was committed."""
    ranges: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    for cause in sorted(causes, key=lambda one: one.attributes.get("offset", 0)):
        low, high = cause.attributes.get("offset"), cause.attributes.get("committed_offset")
        if low is not None and high is not None:
            of_place = ranges[cause.topic, cause.partition]
            highest = max(high, of_place[-1][1]) if of_place else high
            of_place.append((low, highest))

    def explained(one: Anomaly) -> bool:
        of_place, offset = ranges.get((one.topic, one.partition), []), one.attributes.get("offset", -1)
        before = bisect_right(of_place, offset, key=lambda pair: pair[0])
        return before > 0 and offset < of_place[before - 1][1]

    return explained


# What may follow from what, the nearest cause first.
FOLLOWS: Mapping[str, Mapping[str, Explains]] = {
    "skipped": {"commit-ahead": _in_the_range},
    "unseen": {"stuck-partition": _on_the_partition},
    "stuck-partition": {"orphan-partition": _on_the_partition},
    "commit-regression": {"zombie-commit": _sharing_an_event},
    "false-lag": {"commit-regression": _sharing_an_event, "commit-lost": _on_the_partition},
    "reordered-key": {"overlapping-handlers": _sharing_an_event, "nonmonotonic-poll": _sharing_an_event},
    "overlapping-handlers": {"work-after-revoke": _sharing_an_event},
}


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
    for cause, explains in FOLLOWS.get(anomaly, {}).items():
        if instances and guilty.get(cause) and all(map(explains(guilty[cause]), instances)):
            return cause
    return None


def _in_turn(ones: Iterable[Violation], beneath: Mapping[str | None, Sequence[Violation]]) -> Iterable[Violation]:
    for one in ones:
        yield one
        yield from _in_turn(beneath.get(one.anomaly, ()), beneath)
