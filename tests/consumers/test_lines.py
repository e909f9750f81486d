"""Cutting a stream into lines, whatever the chunks and however long a line."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kafka_trial.consumers.lines import QUOTE_BYTES_MAX, Line, LineCutter


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
