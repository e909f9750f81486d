"""How one anomaly explains another: they share an event that proves both, or a partition, or a range of records.

Each invariant names what it may follow from (`@invariant(follows=…)`); `verdict/decide.py` puts an anomaly beneath
another where every instance of it is explained so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CONTROL_READ = "observer#"  # what it saw proves that there is a record, not who did what


@dataclass(frozen=True)
class Anomaly:
    """One instance of an anomaly, with the events that prove it by name (`source#seq`)."""

    name: str
    topic: str | None
    partition: int | None
    attributes: Mapping[str, Any]
    events: tuple[str, ...]


Explains = Callable[[Sequence[Anomaly]], Callable[[Anomaly], bool]]


def sharing_an_event(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    """Explains what is proven by an event that proves a cause too."""
    told = {event for cause in causes for event in cause.events if not event.startswith(CONTROL_READ)}
    return lambda one: not told.isdisjoint(one.events)


def on_the_partition(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    """Explains what is on the partition of a cause."""
    places = {(cause.topic, cause.partition) for cause in causes}
    return lambda one: (one.topic, one.partition) in places


def in_the_range(causes: Sequence[Anomaly]) -> Callable[[Anomaly], bool]:
    """Explains records from the first one a commit left out (`offset`) up to what was committed."""
    ranges: dict[tuple[str | None, int | None], list[tuple[int, int]]] = defaultdict(list)
    for cause in sorted(causes, key=lambda one: one.attributes.get("offset", 0)):
        low, high = cause.attributes.get("offset"), cause.attributes.get("committed_offset")
        if low is not None and high is not None:
            of_partition = ranges[cause.topic, cause.partition]
            highest = max(high, of_partition[-1][1]) if of_partition else high
            of_partition.append((low, highest))

    def explained(one: Anomaly) -> bool:
        of_partition, offset = ranges.get((one.topic, one.partition), []), one.attributes.get("offset", -1)
        before = bisect_right(of_partition, offset, key=lambda pair: pair[0])
        return before > 0 and offset < of_partition[before - 1][1]

    return explained
