"""From a delivery to its completion, and when a record was first handled: literal histories of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    assigned,
    at_once,
    batch_of,
    delivered,
    effect,
    log_start,
    on,
    processed,
    revoked,
    told,
    with_settings,
)
from kafka_trial.model.handlers import completions, finished_handlers, first_handlings

M0 = assigned("m0")


@pytest.mark.parametrize(
    ("lines", "handlers"),
    [
        ([M0, delivered("m0", 0), processed("m0", 0)], [(0, 0, 2, 20, 3, 30)]),
        ([M0, delivered("m0", 1), delivered("m0", 0), processed("m0", 1)], [(1, 0, 2, 20, 4, 40)]),
        ([M0, delivered("m0", 0), delivered("m0", 0), processed("m0", 0)], [(0, 0, 3, 30, 4, 40)]),
        ([M0, delivered("m0", 0), processed("m0", 0), processed("m0", 0)], [(0, 0, 2, 20, 3, 30)]),
        ([M0, processed("m0", 0), delivered("m0", 0)], []),
        ([M0, delivered("m0", 0), processed("m1", 0)], []),
        ([M0, delivered("m0", 0), on(1, processed("m0", 0))], []),
        ([M0, delivered("m0", 0), revoked("m0"), processed("m0", 0)], [(0, 0, 2, 20, 4, 40)]),
        ([delivered("m0", 0), processed("m0", 0)], [(0, -1, 1, 10, 2, 20)]),
    ],
    ids=[
        "one after the other",
        "of two the one that is done",
        "delivered again",
        "done twice",
        "done before it is delivered",
        "done by another member",
        "done in another partition",
        "done when it had been revoked",
        "without an ownership epoch",
    ],
)
def test_a_handler_lasts_from_the_last_delivery_to_the_next_completion(
    lines: list[Line], handlers: list[tuple[int, ...]]
) -> None:
    """Of the same record in the same file."""
    found = finished_handlers(batch_of(lines, partitions=2))
    assert told(found, "offset", "ownership_epoch", "start_seq", "start_ns", "end_seq", "end_ns") == handlers


def test_a_completion_belongs_to_where_its_handler_began() -> None:
    """In the ownership epoch before, in its own, in its own without a delivery, and in none."""
    back = [M0, delivered("m0", 0), revoked("m0"), M0, processed("m0", 0), processed("m0", 1)]
    lines = [*back, delivered("m0", 2), processed("m0", 2), on(1, processed("m0", 0))]
    done = completions(batch_of(lines, records=[None, "b", "a"], partitions=2))
    assert told(done, "slice", "offset", "begun_in", "ownership_epoch") == [
        (0, 0, 0, 1),
        (0, 1, 1, 1),
        (0, 2, 1, 1),
        (1, 0, -1, -1),
    ]
    assert [one < 0 for one in done["key"].tolist()] == [True, False, False, True]


@pytest.mark.parametrize(
    ("sink", "handled"),
    [
        ("none", [(0, 0, 10), (0, 1, 20), (0, 2, 60), (1, 0, 50)]),
        ("http", [(0, 0, 40), (0, 1, 20)]),
        ("topic", [(0, 0, 40), (0, 1, 20)]),
    ],
)
def test_a_record_is_handled_at_its_first_completion_or_effect(sink: str, handled: list[tuple[int, ...]]) -> None:
    """Where a sink is declared, a completion counts only if it leaves no effect."""
    done = [processed("m0", 0), processed("m0", 1, outcome="discarded"), processed("m0", 1), effect(0)]
    lines = [*done, on(1, processed("m0", 0)), processed("m0", 2), at_once(processed("m1", 2))]
    batch = batch_of(lines, records=3, partitions=2, settings=with_settings(sink=sink))
    assert told(first_handlings(batch), "slice", "offset", "time_ns") == handled


def test_the_records_of_each_partition() -> None:
    """Their end and their beginning: what was read, else the first of them, else 0."""
    lines = [M0, on(1, log_start(1)), on(1, log_start(2)), on(3, log_start(0))]
    batch = batch_of([*lines, on(4, delivered("m0", 0))], records=3, partitions=2, control={0: None})
    assert told(batch.records, "slice", "offset") == [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert (batch.ends.tolist(), batch.log_starts.tolist()) == ([3, 3, -(2**63), -(2**63)], [1, 1, 0, 0])
