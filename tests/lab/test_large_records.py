"""Case 4: whether a prediction of memory holds, told of literal figures; half and double of it do not."""

from __future__ import annotations

import pytest

from kafka_trial.preflight.knobs import JAVA, LIBRDKAFKA
from lab.cases.large_records import (
    AGREES,
    NOT_MEASURED,
    OFF,
    TOLERANCE,
    TOO_SMALL,
    MemoryCell,
    MemoryRow,
    ladder,
    predicted,
    verdict_of,
)

MB = 1_000_000


def row(predicted_bytes: int, held_bytes: int, told: str = "") -> MemoryRow:
    """A row of a process that took 30 MB idle."""
    peak = 30 * MB + held_bytes
    about = {"cell": "1MB/java/default", "library": JAVA, "prefetch": "default", "content": "plain", "ratio": 1.0}
    return MemoryRow(
        **about, size_bytes=MB, predicted_bytes=predicted_bytes, base_bytes=30 * MB, peak_bytes=peak, told=told
    )


@pytest.mark.parametrize(
    ("held", "verdict"),
    [(100 * MB, AGREES), (130 * MB, AGREES), (70 * MB, AGREES), (131 * MB, OFF), (69 * MB, OFF), (-1 * MB, OFF)],
)
def test_what_is_held_over_the_idle_base_is_within_the_tolerance_or_not(held: int, verdict: str) -> None:
    """Either way: a prediction that is far too high is wrong too."""
    assert row(100 * MB, held).verdict == verdict


@pytest.mark.parametrize("held", [70 * MB, 100 * MB, 130 * MB])
def test_half_or_double_a_prediction_that_holds_would_not(held: int) -> None:
    """Whatever is measured, it agrees with one of the three at most: the tolerance is at most 30 %."""
    assert TOLERANCE <= 0.30
    verdicts = [verdict_of(prediction, held) for prediction in (50 * MB, 100 * MB, 200 * MB)]
    assert verdicts == [OFF, AGREES, OFF]


def test_what_cannot_be_told_is_not_told() -> None:
    """A prediction of less than a process takes by itself, and a measurement that did not come to an end."""
    assert (row(MB, MB).verdict, row(100 * MB, 100 * MB, told="status 1").verdict) == (TOO_SMALL, NOT_MEASURED)


def test_preflight_says_what_is_predicted() -> None:
    """librdkafka: its queue, a response, a record; Java: two responses, a buffer to read one, and the records."""
    of_queue = predicted(MemoryCell("1MB", LIBRDKAFKA, "default")).process_bytes
    of_response = predicted(MemoryCell("100kB", JAVA, "default")).process_bytes
    assert (of_queue, of_response) == ((64 + 4) * 1024 * 1024 + MB, 4 * 4 * 1024 * 1024)


def test_cells_have_names_of_their_own() -> None:
    """Six sizes, two libraries, three settings each, and what is compressed."""
    names = [cell.name for cell in ladder()]
    assert len(names) == len(set(names)) == 6 * 2 * 3 + 6
