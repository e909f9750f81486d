"""The events around an anomaly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from kafka_trial.history.event import Event, to_line
from kafka_trial.judge import line_index
from kafka_trial.judge.line_index import index_of
from kafka_trial.report.excerpts import Wanted, excerpts


def delivered(seq: int, partition: int = 0, source: str = "consumer-m0-0") -> Event:
    """Returns a delivery at second `seq`."""
    return Event(source, seq, seq * 10**9, "delivered", topic="t", partition=partition, offset=seq)


def written(history: Sequence[Event], folder: Path) -> list[Path]:
    """Writes a file for each source, its events in the order in which they come; returns the files by name."""
    lines: dict[str, list[bytes]] = {}
    for event in history:
        lines.setdefault(event.source, []).append(to_line(event))
    for source, of_source in lines.items():
        (folder / f"{source}.jsonl").write_bytes(b"".join(of_source))
    return sorted(folder.glob("*.jsonl"))


def names(history: Sequence[Event], wanted: Wanted, *, around: int = 2, stretch_lines: int = 3) -> list[str]:
    """Returns the names of an excerpt's rows, marked ones with a star."""
    with TemporaryDirectory() as folder:
        files = written(history, Path(folder))
        (rows,) = excerpts(index_of(files, stretch_lines=stretch_lines), [wanted], start_ns=0, around=around)
    return [row.name.partition("#")[2] + "*" * row.marked for row in rows]


def test_the_nearest_events_of_the_partition_on_both_sides() -> None:
    """Two events before and two after the marked one; another partition's are left out."""
    history = [delivered(seq, partition=seq % 2) for seq in range(20)]
    assert names(history, Wanted(("t", 0), ("consumer-m0-0#10",))) == ["6", "8", "10*", "12", "14"]


def test_an_excerpt_does_not_depend_on_the_order_of_files() -> None:
    """The history read backwards gives the same rows."""
    history = [delivered(seq) for seq in range(20)]
    wanted = Wanted(("t", 0), ("consumer-m0-0#3", "consumer-m0-0#9"))
    assert (
        names(history, wanted) == names(history[::-1], wanted) == ["1", "2", "3*", "4", "5", "7", "8", "9*", "10", "11"]
    )


def test_events_with_many_partitions_and_topic_ids_are_found() -> None:
    """A commit of several partitions and an assignment by topic id belong to the partition too."""
    history = [
        Event("observer", 0, 0, "topic", topic="t", topic_id="T"),
        delivered(1),
        Event("consumer-m0-0", 2, 2, "commit", details={"entries": [{"topic": "t", "partition": 0}]}),
        Event("offsets", 3, 3, "member_assignment", details={"pending": [{"topic_id": "T", "partition": 0}]}),
        Event("offsets", 4, 4, "member_assignment", details={"entries": [{"topic_id": "T", "partition": 1}]}),
        Event("requests-b1", 5, 5, "request", details={"api": "FETCH", "entries": [{"topic": "t", "partition": 0}]}),
    ]
    assert names(history, Wanted(("t", 0), ("consumer-m0-0#1",)), around=9) == ["2", "3", "1*"]


def test_proofs_that_are_not_in_the_history_show_nothing() -> None:
    """An anomaly whose events are gone has an empty excerpt."""
    assert names([delivered(1)], Wanted(("t", 0), ("consumer-m0-0#99",))) == []


def test_lines_that_are_no_events_are_counted_by_file(tmp_path: Path) -> None:
    """Whole stretches of them too; what stands after them is found."""
    (file,) = written([delivered(seq) for seq in range(9)], tmp_path)
    lines = file.read_bytes().splitlines(keepends=True)
    torn = [b'{"schema":2}\n', b"\xff\xfe\n", b"[]\n", b'{"schema":1,"source":"consumer-m0-0","seq":true}\n', b"\r\n"]
    file.write_bytes(b"".join(lines[:4] + torn + lines[4:]) + b'{"schema":1,"sour')
    lines = index_of([file], stretch_lines=2)
    (rows,) = excerpts(lines, [Wanted(("t", 0), ("consumer-m0-0#6",))], start_ns=0, around=4)
    assert [row.name for row in rows] == [f"consumer-m0-0#{seq}" for seq in range(2, 9)]
    assert lines.damaged == {file.name: 6}


def test_a_topic_id_that_is_none_names_no_topic() -> None:
    """A line whose topic id is no text is an event of no topic by that id."""
    odd = Event("observer", 0, 0, "topic", topic="t", topic_id=["T"])  # type: ignore[arg-type]
    assert names([odd, delivered(1), delivered(2)], Wanted(("t", 0), ("consumer-m0-0#1",))) == ["1*", "2"]


def test_only_stretches_that_may_hold_a_nearer_event_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten thousand events in two files, those of the few stretches around the proof."""
    read: list[bytes] = []

    def fields_of(line: bytes) -> dict[str, Any]:
        read.append(line)
        return given(line)

    given = line_index.fields_of
    monkeypatch.setattr(line_index, "fields_of", fields_of)
    history = [delivered(seq, source=f"consumer-m{seq % 2}-0") for seq in range(10_000)]
    wanted = Wanted(("t", 0), ("consumer-m1-0#4001",))
    (rows,) = excerpts(index_of(written(history, tmp_path), stretch_lines=100), [wanted], start_ns=0, around=6)
    assert [int(row.name.partition("#")[2]) for row in rows] == list(range(3995, 4008))
    assert len(read) <= 500  # the proof's stretch when it is found, then one of each file, or two where one ends


@hypothesis.settings(max_examples=400)
@hypothesis.given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=60), st.data()
)
def test_the_rows_are_those_of_a_search_through_all(drawn: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Times in any order, equal ones among them, files and stretches of any length: nothing nearer is missed."""
    history = [
        Event(f"consumer-m{member}-0", seq, time_ns, "delivered", topic="t", partition=partition, offset=seq)
        for seq, (time_ns, member, partition) in enumerate(drawn)
    ]
    marks = data.draw(st.lists(st.sampled_from(history), min_size=1, max_size=3, unique_by=lambda event: event.seq))
    around, stretch_lines = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 7))
    wanted = Wanted(("t", 0), tuple(mark.name for mark in marks))
    assert names(history, wanted, around=around, stretch_lines=stretch_lines) == _searched(history, marks, around)


def _searched(history: Sequence[Event], marks: Sequence[Event], around: int) -> list[str]:
    """The same by sorting all events of the partition."""
    of_partition = sorted((event for event in history if event.partition == 0), key=_order)
    shown = {mark.seq: mark for mark in marks}
    for mark in marks:
        before = [event for event in of_partition if _order(event) < _order(mark)]
        after = [event for event in of_partition if _order(event) > _order(mark)]
        shown.update({event.seq: event for event in before[-around:] + after[:around]})
    return [f"{event.seq}{'*' * (event in marks)}" for event in sorted(shown.values(), key=_order)]


def _order(event: Event) -> tuple[int, str, int]:
    return event.time_ns, event.source, event.seq
