"""Case 4: whether a prediction of memory holds, told of literal figures; which hop refused; and what the page says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_trial import registry
from kafka_trial.preflight.answer import name_of
from kafka_trial.preflight.size_settings import JAVA, LIBRDKAFKA
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
from lab.cases.large_records_page import PAGE_NAME, page, stored_rows
from lab.cases.memory_limits import OOM_KILLED, ROOM, SURVIVES, LimitRow
from lab.cases.refusing_hops import CELLS, STORED, HopCell, HopRow, refusing
from lab.cases.refusing_hops import predicted as predicted_hop

MB = 1_000_000
HOP = "broker, batch: message.max.bytes"


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
    """A prediction of less than a process takes by itself; a measurement that was not ended, or saw nothing."""
    unseen = replace(row(100 * MB, 100 * MB), base_bytes=0)
    rows = (row(MB, MB), row(100 * MB, 100 * MB, told="status 1"), unseen)
    assert [one.verdict for one in rows] == [TOO_SMALL, NOT_MEASURED, NOT_MEASURED]


def test_preflight_says_what_is_predicted() -> None:
    """librdkafka: queue, two responses, messages, a record; Java: two, a buffer to read one, and the records."""
    of_queue = predicted(MemoryCell("1MB", LIBRDKAFKA, "default")).process_bytes
    of_response = predicted(MemoryCell("100kB", JAVA, "default")).process_bytes
    assert (of_queue, of_response) == ((64 + 4 + 4) * 1024 * 1024 + 71 * 320 + MB, 4 * 4 * 1024 * 1024)


def test_cells_have_names_of_their_own() -> None:
    """Six sizes, two libraries, three settings each, what is compressed, and what bounds otherwise."""
    names = [cell.name for cell in ladder()]
    assert len(names) == len(set(names)) == 6 * 2 * 3 + 6 + 3


def hop(*, passed: bool = True, refused_by: str = "broker, batch: message.max.bytes") -> HopRow:
    """A row of the broker's limit, which preflight names."""
    return HopRow("broker, batch: message.max.bytes", LIBRDKAFKA, 99, passed, 100, refused_by, HOP, "it said so")


@pytest.mark.parametrize(
    ("row", "agrees"),
    [(hop(), True), (hop(passed=False), False), (hop(refused_by=""), False), (hop(refused_by="another"), False)],
)
def test_a_hop_agrees_where_both_records_went_as_preflight_says(row: HopRow, agrees: bool) -> None:
    """What was to pass did, and the one above was refused there, not elsewhere."""
    assert row.agrees is agrees


@pytest.mark.parametrize(
    ("said", "topic", "refused_by"),
    [
        ("broker refused: MSG_SIZE_TOO_LARGE", {}, HOP),
        ("broker refused: MSG_SIZE_TOO_LARGE", {"max.message.bytes": "9"}, "broker, batch: max.message.bytes"),
        ("RecordTooLargeException: … of the max.request.size configuration.", {}, "producer: max.request.size"),
        ("produce() refused: _QUEUE_FULL", {}, "producer: queue.buffering.max.kbytes"),
        ("broker refused: _MSG_TIMED_OUT", {}, ""),
        (STORED, {}, ""),
    ],
)
def test_who_refuses_is_known_by_its_own_words(said: str, topic: dict[str, str], refused_by: str) -> None:
    """What timed out may have many causes: nobody is named for it."""
    assert refusing(HopCell(HOP, topic=topic), said) == refused_by


def test_a_way_is_as_narrow_as_its_hop() -> None:
    """Each cell binds where it says it does, before anything is sent."""
    named = [(name_of(predicted_hop(cell).binding), cell.hop) for cell in CELLS]
    assert [binding for binding, _ in named] == [hop for _, hop in named]


def limit(*, share: float = ROOM) -> LimitRow:
    """A member that lived, with 50 MB predicted over 30: with half of them it should not have."""
    name = f"limit/1MB/{LIBRDKAFKA}/small/{share:.0%}"
    expected = SURVIVES if share == ROOM else OOM_KILLED
    about = {"library": LIBRDKAFKA, "base_bytes": 30 * MB, "peak_bytes": 60 * MB, "kernel_kills": 0, "status": 0}
    limit_bytes = 30 * MB + int(share * 50 * MB)
    return LimitRow(
        name,
        share=share,
        predicted_bytes=50 * MB,
        limit_bytes=limit_bytes,
        outcome=SURVIVES,
        expected=expected,
        **about,
    )


def test_the_page_is_made_of_the_rows() -> None:
    """Measured over predicted, what is off in bold, and the hops with the bytes around their limits."""
    rows = [row(50 * MB, 55 * MB), replace(row(50 * MB, 90 * MB), cell="5MB/java/default")]
    made = page(rows, [limit(), limit(share=0.5)], [], [hop(), hop(refused_by="another")])
    assert "| 1MB | 55.0 / 50.0 | - | - |" in made
    assert "| 5MB | 90.0 / 50.0 **off** | - | - |" in made
    assert "2 measurements; 1 agree" in made
    assert "| 50.0 | 30.0 | lives (95.0) | lives (55.0) **off**: oom-killed expected |" in made
    assert f"| {HOP} | librdkafka | 99 | 100 | 1 | yes |" in made
    assert f"| {HOP} | librdkafka | 99 | 100 | 1 | **no**: another |" in made


def test_the_page_is_that_of_the_stored_rows() -> None:
    """Nobody has written into it by hand, and no row came after it."""
    assert (registry.CHECKOUT / "docs" / "cases" / PAGE_NAME).read_text() == page(*stored_rows())
