"""Reading the output of a member: lines, bounded logs, matches, and streams that outlive their process."""

from __future__ import annotations

import os
import threading
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kafka_trial.consumers.output import QUOTE_BYTES_MAX, BoundedLog, Line, LineCutter, LogMatch, drain


@given(text=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=8))
def test_chunks_do_not_matter(text: bytes, cuts: list[int]) -> None:
    """The same bytes give the same lines, wherever the chunks are cut."""
    edges = [0, *sorted(cuts), len(text)]
    cutter = LineCutter()
    lines = [line for start, end in pairwise(edges) for line in cutter.feed(text[start:end])]
    lines += cutter.rest()
    expected = text.split(b"\n")
    assert [line.text for line in lines] == expected[: -1 if not expected[-1] else None]


def test_an_overlong_line_is_counted_quoted_and_skipped() -> None:
    """Of a line beyond the bound the head is kept and every byte counted; the next line is whole again."""
    cutter = LineCutter(bytes_max=10_000)
    lines = [line for _ in range(30) for line in cutter.feed(b"x" * 1000)]
    lines += cutter.feed(b"\nnext\n")
    assert lines == [Line(b"x" * QUOTE_BYTES_MAX, 30_000), Line(b"next", 4)]
    assert [line.whole for line in lines] == [False, True]


def test_one_overlong_line_after_another() -> None:
    """The second is quoted from its own beginning, as the first was."""
    cutter, size = LineCutter(bytes_max=5000), 9000
    chunks = [b"a" * 4500, b"a" * 4500 + b"\n" + b"b" * 4500, b"b" * 4500 + b"\n"]
    lines = [line for chunk in chunks for line in cutter.feed(chunk)]
    assert lines == [Line(b"a" * QUOTE_BYTES_MAX, size), Line(b"b" * QUOTE_BYTES_MAX, size)]


def test_an_overlong_line_keeps_little_memory() -> None:
    """While such a line goes on, nothing but its quote is held."""
    cutter = LineCutter(bytes_max=10_000)
    for _ in range(1000):
        list(cutter.feed(b"x" * 1000))
    assert sum(map(len, cutter._parts)) == QUOTE_BYTES_MAX


def test_a_log_stops_at_its_bound_and_says_so(tmp_path: Path) -> None:
    """What fits is kept, then one line says that it was cut, however much more comes."""
    log = BoundedLog(tmp_path / "log", bytes_max=10)
    for _ in range(5):
        log.write(b"123456")
    log.close()
    first, note = (tmp_path / "log").read_bytes().splitlines()
    assert (first, note.startswith(b"[kafka-trial: cut here")) == (b"1234561234", True)


def test_a_match_is_found_across_chunks_but_not_across_streams() -> None:
    """A line in two chunks matches; two halves on two streams do not."""
    match, passed = LogMatch("now ready$"), []
    out, err = match.watching(passed.append), match.watching(passed.append)
    out(b"I am now ")
    err(b"ready\n")
    assert not match.seen
    out(b"ready\n")
    assert (match.seen, passed) == (True, [b"I am now ", b"ready\n", b"ready\n"])


def test_streams_are_read_to_their_end(tmp_path: Path) -> None:
    """Everything written before the close arrives, although the process has long gone."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"last words")
    os.close(write_end)
    heard: list[bytes] = []
    drain({read_end: heard.append}, alive=lambda: False, stop=threading.Event())
    assert heard == [b"last words"]


def test_a_stream_held_open_by_somebody_else_is_left(tmp_path: Path) -> None:
    """A grandchild that keeps the stream open does not keep the reader: once the process is gone, silence ends it."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"last words")
    heard: list[bytes] = []
    drain({read_end: heard.append}, alive=lambda: False, stop=threading.Event())
    os.close(write_end)
    assert heard == [b"last words"]
