"""A sink's topic: what of it counts, and what of it is missing, by literal offsets and times."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.audit.readers import ReadRecord
from kafka_trial.audit.request import Identity
from kafka_trial.audit.sink import CLEANUP, IdColumns, Ids, Span, compacted

SPAN = Span(100, 200)


class Kept:
    """An event writer that keeps what it is given."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int | None, dict[str, Any]]] = []

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Takes one event."""
        self.events.append((kind, time_ns, fields))
        return len(self.events)


def _places(*, start: int = 0, stable: int = 50, end: int = 50, first: int = 10, late: int = -1) -> IdColumns:
    return IdColumns(*({0: offset} for offset in (start, stable, end, first, late)))


def test_only_what_was_written_in_the_span_counts() -> None:
    """With the place of each; those without an id or a time are counted, and told."""
    event_writer, identity = Kept(), Identity()
    ids = Ids("done", SPAN, event_writer)
    for offset, (time_ns, name) in enumerate([(99, "a"), (100, "b"), (200, "c"), (201, "d"), (150, None), (0, "e")]):
        ids.take(ReadRecord(1, offset, time_ns, None, name, 0))
    places = [(kind, time_ns, fields["offset"], fields["id"]) for kind, time_ns, fields in event_writer.events]
    assert places == [("effect", 100, 1, "b"), ("effect", 200, 2, "c")]
    assert list(ids.missing(identity)) == [
        "the ids of 1 records of done: they have neither the header kt-id nor $.id of a JSON value",
        "1 records of done: they do not say when they were written",
    ]


@pytest.mark.parametrize(
    ("places", "span"),
    [
        (_places(), (10, 50)),
        (_places(late=40), (10, 40)),
        (_places(first=-1), (50, 50)),
        (_places(start=20, first=20), (20, 50)),
        (_places(stable=30, late=40), (10, 30)),
    ],
    ids=["to the end", "to what is too late", "nothing", "from the start", "to an open transaction"],
)
def test_the_span_is_a_range_of_offsets(places: IdColumns, span: tuple[int, int]) -> None:
    """From its first record to what a committed reader sees of it."""
    assert places.ranges() == {0: span}


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (_places(), []),
        (_places(start=5), []),
        (_places(start=10), ["done-0 before offset 10: retention has taken it"]),
        (_places(start=50, first=-1), ["done-0 before offset 50: retention has taken it"]),
        (_places(stable=30), ["done-0 from 30 on: an open transaction hides it"]),
        (_places(stable=30, late=20), []),
    ],
    ids=["whole", "older is there", "begins in the span", "all gone", "open", "open, too late"],
)
def test_what_is_not_there_is_told(places: IdColumns, said: list[str]) -> None:
    """Whatever it held is not known: nobody may be blamed for its absence."""
    assert list(places.missing("done")) == said


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("delete", ""),
        ("compact", "what"),
        ("delete,compact", "what"),
        (None, "whether"),
    ],
)
def test_a_compacted_sink_does_not_show_what_is_missing(policy: str | None, said: str) -> None:
    """Neither does one of which nobody may say whether it is."""
    told = " ".join(compacted("done", {CLEANUP: policy}))
    assert (bool(told), told.startswith(said)) == (bool(said), True)
