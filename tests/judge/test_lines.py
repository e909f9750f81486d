"""History files as columns: whatever is wrong with a line is counted and named, and the rest is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.judge.lines import Census, read_blocks

GOOD = b'{"schema":1,"source":"s","seq":%d,"time_ns":5,"kind":"delivered","topic":"t","partition":0,"offset":%d}\n'


def read(tmp_path: Path, *lines: bytes) -> tuple[list[int | None], list[str]]:
    """Returns the offsets that were read and the defects that were named."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines))
    census = Census()
    offsets = [offset for block in read_blocks(path, census) for offset in block.events["offset"].to_pylist()]
    return offsets, census.defects("s")


def test_a_whole_file(tmp_path: Path) -> None:
    """Every event is read, nothing is said."""
    assert read(tmp_path, GOOD % (0, 7), GOOD % (1, 8)) == ([7, 8], [])


def test_an_empty_file(tmp_path: Path) -> None:
    """Nothing is read, nothing is wrong."""
    assert read(tmp_path) == ([], [])


def test_a_torn_last_line(tmp_path: Path) -> None:
    """Its writer was killed in mid-write: named, and the lines before it are read."""
    assert read(tmp_path, GOOD % (0, 7), b'{"schema":1,"sou') == (
        [7],
        ["s: its last line is torn: its writer was killed in mid-write"],
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"garbage\n", "not JSON"),
        (b"\n", "not JSON"),
        (b"[1]\n", "not an object"),
        (b'{"schema":1,"source":"s","seq":1,"kind":"x"}\n', "time_ns is missing"),
        (b'{"source":"s","seq":1,"time_ns":1,"kind":"x"}\n', "its schema is missing"),
        (b'{"schema":1,"source":"s","seq":"1","time_ns":1,"kind":"x"}\n', "seq is missing or of the wrong type"),
        (b'{"schema":1,"source":"s\xff","seq":1,"time_ns":1,"kind":"x"}\n', "not JSON"),
    ],
)
def test_a_line_that_is_no_event(tmp_path: Path, line: bytes, said: str) -> None:
    """It is counted and quoted by its number; its neighbours are read."""
    offsets, defects = read(tmp_path, GOOD % (0, 7), line, GOOD % (1, 8))
    assert (offsets, defects[0]) == ([7, 8], f"s: 1 line is no event (first: {defects[0].split('(first: ')[1]}")
    assert f"line 2, {said}" in defects[0]


def test_a_field_of_the_wrong_type_is_absent(tmp_path: Path) -> None:
    """The event counts; its offset is nobody's."""
    wrong = b'{"schema":1,"source":"s","seq":1,"time_ns":5,"kind":"delivered","offset":"eight","key":9}\n'
    assert read(tmp_path, GOOD % (0, 7), wrong) == ([7, None], [])


def test_missing_and_repeated_events(tmp_path: Path) -> None:
    """Seq tells what is not there, and what is there twice."""
    assert read(tmp_path, GOOD % (0, 7), GOOD % (2, 8), GOOD % (2, 8)) == (
        [7, 8, 8],
        ["s: events are missing or repeated: #2 stands where #1 is due; #2 stands where #3 is due"],
    )


def test_events_of_another_source(tmp_path: Path) -> None:
    """A file that was renamed, or mixed up."""
    stranger = b'{"schema":1,"source":"other","seq":1,"time_ns":5,"kind":"x"}\n'
    assert read(tmp_path, GOOD % (0, 7), stranger)[1] == ["s: events are missing or repeated: events of source 'other'"]


def test_a_newer_schema(tmp_path: Path) -> None:
    """Refused by name, with what to do."""
    with pytest.raises(InputError, match=r"schema 2.*upgrade kafka-trial"):
        read(tmp_path, b'{"schema":2,"source":"s","seq":0,"time_ns":5,"kind":"x"}\n')


def test_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are never cut, however small the blocks are; numbers of bad lines count over all of them."""
    monkeypatch.setattr("kafka_trial.judge.lines.BLOCK_BYTES", 150)
    lines = [GOOD % (number, number) for number in range(20)]
    offsets, defects = read(tmp_path, *lines[:12], b"garbage\n", *lines[12:])
    assert (offsets, defects) == (list(range(20)), ["s: 1 line is no event (first: line 13, not JSON)"])
