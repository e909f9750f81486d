"""History files as columns: whatever is wrong with a line is counted and named, and the rest is read."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from kafka_trial.errors import InputError
from kafka_trial.judge import lines
from kafka_trial.judge.lines import EVENTS, LineStats, read_blocks

pytestmark = pytest.mark.lengthy

read_json = lines._read
GOOD = b'{"schema":1,"source":"s","seq":%d,"time_ns":5,"kind":"delivered","topic":"t","partition":0,"offset":%d}\n'


def read(tmp_path: Path, *lines: bytes) -> tuple[list[int | None], list[str]]:
    """Returns the offsets that were read and the defects that were named."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines))
    line_stats = LineStats()
    offsets = [offset for block in read_blocks(path, line_stats) for offset in block.events["offset"].to_pylist()]
    return offsets, line_stats.defects("s")


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
        (b'{"schema":1,"source":"s","seq":1,"time_ns":-1,"kind":"x"}\n', "time_ns is no number of a clock"),
        (b'{"schema":1,"source":"s","seq":1,"time_ns":9223372036854775807,"kind":"x"}\n', "time_ns is no number"),
        (b'{"schema":true,"source":"s","seq":1,"time_ns":1,"kind":"x"}\n', "its schema is missing"),
        (b'{"schema":1,"source":"s","seq":1,"time_ns":1,"kind":"x","key":"\\ud800"}\n', "not JSON"),
        (b'{"schema":1,"source":"s","seq":1,"time_ns":1,"kind":"x","duration_ms":NaN}\n', "not JSON"),
        (b'{"schema":1,"source":"s","seq":1,"time_ns":1,"kind":"x\x00"}\n', "not JSON"),
        (b'\xef\xbb\xbf{"schema":1,"source":"s","seq":1,"time_ns":1,"kind":"x"}\n', "not JSON"),
    ],
)
def test_a_line_that_is_no_event(tmp_path: Path, line: bytes, said: str) -> None:
    """It is counted and quoted by its number; its neighbours are read."""
    offsets, defects = read(tmp_path, GOOD % (0, 7), line, GOOD % (1, 8))
    assert (offsets, defects[0]) == ([7, 8], f"s: 1 line is no event (first: {defects[0].split('(first: ')[1]}")
    assert f"line 2, {said}" in defects[0]


def test_a_field_of_the_wrong_type_is_absent_and_named(tmp_path: Path) -> None:
    """The event counts; its offset is nobody's. A number is as good as its text."""
    wrong = b'{"schema":1,"source":"s","seq":1,"time_ns":5,"kind":"delivered","offset":"eight","key":9}\n'
    assert read(tmp_path, GOOD % (0, 7), wrong) == (
        [7, None],
        ["s: 1 field is of the wrong type (first: line 2, offset)"],
    )


@pytest.mark.parametrize("entries", [b"[5]", b'[{"partition":"x"}]', b'{"partition":1}', b'"none"'])
def test_entries_of_the_wrong_type_are_named(tmp_path: Path, entries: bytes) -> None:
    """One that is no object, has a field of another type, or no list at all."""
    wrong = b'{"schema":1,"source":"s","seq":0,"time_ns":5,"kind":"assigned","entries":%s}\n' % entries
    assert read(tmp_path, wrong)[1] == ["s: 1 field is of the wrong type (first: line 1, entries)"]


def test_a_line_that_is_too_long_is_no_event(tmp_path: Path) -> None:
    """A hundred megabytes are not held in memory twenty times over; what stands around them is read."""
    longest = b'{"schema":1,"source":"s","seq":1,"time_ns":5,"kind":"x","key":"%s"}\n' % (b"x" * 100_000_000)
    assert read(tmp_path, GOOD % (0, 7), longest, GOOD % (1, 8)) == (
        [7, 8],
        ["s: 1 line is no event (first: line 2, longer than 16 MiB)"],
    )


def test_two_events_on_one_line_are_none(tmp_path: Path) -> None:
    """Even where a blank line makes up for the count."""
    offsets, defects = read(tmp_path, (GOOD % (0, 7)).rstrip() + GOOD % (1, 8), b" \n")
    assert (offsets, defects) == ([], ["s: 2 lines are no events (first: line 1, not JSON; line 2, not JSON)"])


def test_missing_and_repeated_events(tmp_path: Path) -> None:
    """Seq tells what is not there, and what is there twice."""
    assert read(tmp_path, GOOD % (0, 7), GOOD % (2, 8), GOOD % (2, 8)) == (
        [7, 8, 8],
        ["s: 2 places have events missing or repeated (first: #2 stands where #1 is due; #2 stands where #3 is due)"],
    )


def test_events_of_another_source(tmp_path: Path) -> None:
    """A file that was renamed, or mixed up."""
    stranger = b'{"schema":1,"source":"other","seq":1,"time_ns":5,"kind":"x"}\n'
    assert read(tmp_path, GOOD % (0, 7), stranger)[1] == ["s: it holds events of another source: 'other'"]


def test_a_newer_schema(tmp_path: Path) -> None:
    """Refused by name, with what to do."""
    with pytest.raises(InputError, match=r"schema 2.*upgrade kafka-trial"):
        read(tmp_path, b'{"schema":2,"source":"s","seq":0,"time_ns":5,"kind":"x"}\n')


def test_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are never cut, however small the blocks are; numbers of bad lines count over all of them."""
    monkeypatch.setattr("kafka_trial.judge.lines.SPLIT_BYTES", 150)
    lines = [GOOD % (number, number) for number in range(20)]
    offsets, defects = read(tmp_path, *lines[:12], b"garbage\n", *lines[12:])
    assert (offsets, defects) == (list(range(20)), ["s: 1 line is no event (first: line 13, not JSON)"])


@pytest.mark.parametrize(
    "more",
    [
        ['"details":{"a":"2026-01-01"}', '"details":{"a":"x"}'],
        ['"details":1', '"details":"x"'],
        ['"details":{}', '"details":[]'],
        ['"id":"2026-01-01","key":null', '"id":"2026-01-02"'],
        ['"id":"2026-01-01"', '"id":"o-1"'],
        ['"duration_ms":3', '"duration_ms":2.5'],
        ['"duration_ms":3', '"duration_ms":4'],
        ['"entries":[{"topic":"t","partition":1,"odd":[1]}]', '"entries":[]'],
        ['"topic_id":"AA","complete":true', '"epoch":null'],
        ['"when":"2026-01-01T00:00:00Z"', '"when":"never"'],
    ],
)
def test_what_arrow_takes_fields_for_makes_no_difference(tmp_path: Path, more: list[str]) -> None:
    """Dates in texts, whole numbers among real ones, fields of ours that are all null, others of any type: the columns
    are those that each line says, and nothing is wrong with any of them."""
    texts = [(GOOD % (seq, seq)).decode().rstrip("}\n") + f",{fields}}}\n" for seq, fields in enumerate(more)]
    path, line_stats = tmp_path / "s.jsonl", LineStats()
    path.write_text("".join(texts))
    (block,) = read_blocks(path, line_stats)
    bodies = [json.loads(text) for text in texts]
    for item in EVENTS:
        known = block.events[item.name].to_pylist() if item.name in block.events.column_names else [None, None]
        said = [body.get(item.name) for body in bodies]
        if item.name == "entries":
            known = [[{k: v for k, v in one.items() if v is not None} for one in row or ()] for row in known]
            said = [[{k: v for k, v in one.items() if k != "odd"} for one in row or ()] for row in said]
        assert known == said, item.name
    assert (block.bodies(np.arange(2)), line_stats.defects("s")) == (bodies, [])


def test_a_number_that_is_none_is_found_in_any_field(tmp_path: Path) -> None:
    """JSON has no NaN; neither has a field that is nothing to us, however deep it stands in there."""
    line = (GOOD % (0, 7)).rstrip(b"}\n") + b',"odd":[{"deep":NaN}]}\n'
    offsets, (said, *_) = read(tmp_path, line, GOOD % (1, 8))
    assert (offsets, said) == ([8], "s: 1 line is no event (first: line 1, not JSON)")


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    st.lists(
        st.sampled_from([GOOD % (0, 7), b"garbage\n", b"\n", b'{"key":"' + 90 * b"x" + b'"}\n', b"x" * 400 + b"\n"])
    ),
    st.sampled_from([b"", b'{"schema"', b"x" * 333]),
    st.integers(1, 300),
)
def test_a_file_is_the_same_in_splits_of_any_size(lines: list[bytes], torn: bytes, split_bytes: int) -> None:
    """Events, where their lines lie, and what is wrong with the others, by the numbers of their lines; a line longer
    than a split, or than a line may be, belongs to the split it begins in."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "s.jsonl"
        path.write_bytes(b"".join(lines) + torn)
        patch.setattr("kafka_trial.judge.lines.LINE_BYTES_MAX", 200)
        whole, (events, line_stats) = path.read_bytes(), _all_of(path)
        patch.setattr("kafka_trial.judge.lines.SPLIT_BYTES", split_bytes)
        in_splits, of_splits = _all_of(path)
    assert [whole[first:last] for _, first, last in events] == [GOOD.strip() % (0, 7)] * lines.count(GOOD % (0, 7))
    assert (in_splits, of_splits.defects("s")) == (events, line_stats.defects("s"))
    assert (of_splits.size, of_splits.torn) == (len(whole), 0 < len(torn) <= 200)
    assert of_splits.checksums == [zlib.crc32(whole[at : at + split_bytes]) for at in range(0, len(whole), split_bytes)]


def _all_of(path: Path) -> tuple[list[tuple[bytes, int, int]], LineStats]:
    """Returns the line of each event with the place that it is said to have in the file, and what was found."""
    line_stats = LineStats()
    blocks = list(read_blocks(path, line_stats))
    return [
        (block.line(row), int(block.begins[row]), int(block.finishes[row]))
        for block in blocks
        for row in range(block.events.num_rows)
    ], line_stats


def test_a_file_with_entries_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Arrow would take for lists of another type is known before it reads."""
    parsed = []
    monkeypatch.setattr(lines, "_read", lambda *given: parsed.append(read_json(*given)) or parsed[-1])
    entries = (
        b'{"schema":1,"source":"s","seq":1,"time_ns":5,"kind":"assigned","entries":[{"topic":"t","partition":0}]}\n'
    )
    assert read(tmp_path, GOOD % (0, 7), entries) == ([7, None], [])
    assert [events["entries"].type for events in parsed] == [lines.ENTRIES]


def test_whole_numbers_become_the_texts_they_must_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of an API is one, in every log of requests: no file of them is read line by line."""
    monkeypatch.setattr(lines, "_line_by_line", lambda *given: pytest.fail("read line by line"))
    events = [
        b'{"schema":1,"source":"s","seq":0,"time_ns":5,"kind":"request","entries":[{"topic":"t","partition":0}]}\n',
        b'{"schema":1,"source":"s","seq":1,"time_ns":5,"kind":"api_version","key":18,"api":"API_VERSIONS"}\n',
    ]
    path, line_stats = tmp_path / "s.jsonl", LineStats()
    path.write_bytes(b"".join(events))
    (block,) = read_blocks(path, line_stats)
    assert (block.events["key"].to_pylist(), line_stats.defects("s")) == ([None, "18"], [])
