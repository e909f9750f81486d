"""`show`: one event of a history, with its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.report.excerpts import show

SECOND = 10**9
DELIVERED = [("t", 0, 0), ("t", 1, 0), ("t", 0, 1), ("t", 1, 1), ("t", 0, 2), ("retry", 0, 7), ("retry", 0, 1)]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = create_run_folder(tmp_path / "run", "test", "test")
    with Recorder(folder.history, "offsets") as recorder:
        for value in range(4):
            place = {"topic": "t", "partition": 0, "log_offset": value}
            recorder.record("committed", time_ns=(20 + value) * SECOND, group="g", committed_offset=value, **place)
    with Recorder(folder.history, "run") as recorder:
        recorder.record("topic_named", time_ns=1 * SECOND, topic="t")
        recorder.record("phase", time_ns=2 * SECOND, phase="prepare")
    with Recorder(folder.history, "workload") as recorder:
        op = recorder.record("send", time_ns=4 * SECOND, outcome="invoke", id="r1", topic="t")
        recorder.record("send", time_ns=5 * SECOND, outcome="ok", op=op, id="r1", topic="t", partition=0, offset=1)
    with Recorder(folder.history, "consumer-m1-0") as recorder:
        who = {"member": "m1", "incarnation": 0}
        for second, (topic, partition, offset) in enumerate(DELIVERED):
            place = {"topic": topic, "partition": partition, "offset": offset}
            recorder.record("delivered", time_ns=(10 + second) * SECOND, **place, **who)
    with Recorder(folder.history, "sink") as recorder:
        recorder.record("effect", time_ns=15 * SECOND, id="r1", outcome="ok", member="m1")
    return folder


def test_an_event_is_shown_whole_among_its_neighbours(run: RunFolder) -> None:
    """The event is marked, the lines around it are there, and its fields follow."""
    lines = show(run, ["offsets#2"], around=1).splitlines()
    assert lines[0] == "offsets#2 and its neighbours in history/offsets.jsonl; seconds since the start of the trial"
    assert [line[:11] for line in lines[1:4]] == ["  offsets#1", "▶ offsets#2", "  offsets#3"]
    assert "  committed_offset: 2" in lines


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("offsets", "'offsets' is no selector; valid are: SOURCE#NUMBER .*; partition N record OFFSET; topic NAME"),
        ("offsets#x", "is no event; valid are: SOURCE#NUMBER"),
        ("offset#1", "Did you mean 'offsets'"),
        ("offsets#4", "ends before line 4"),
        ("member m1 record 4", "'member' is no selector; valid are: SOURCE#NUMBER"),
        ("partition 0", "lacks record; valid are"),
        ("partition 0 record", "each selector is given once, with its value"),
        ("partition 0 partition 1", "each selector is given once"),
        ("partition 0 record x1", "record x1: must be a whole number"),
        ("partition 7 record 0", "no event of the history is about it"),
        ("topic u partition 0 record 0", "no event of the history is about it in u"),
    ],
)
def test_what_is_not_there_is_wrong_input(run: RunFolder, name: str, problem: str) -> None:
    """No number, no such file, no such line, no such record; what is valid is listed."""
    with pytest.raises(InputError, match=problem):
        show(run, name.split(), around=1)


def test_a_line_that_is_no_event_is_shown_as_it_stands(run: RunFolder) -> None:
    """Made printable: a stranger cannot write to the terminal."""
    with (run.history / "offsets.jsonl").open("ab") as file:
        file.write(b"\x1b[2J torn\n")
    assert show(run, ["offsets#4"], around=0).splitlines()[1:] == [
        "▶ offsets#4  no event: ·[2J torn·",
        "",
        "·[2J torn·",
    ]


def test_a_record_is_shown_with_all_that_is_about_it(run: RunFolder) -> None:
    """Both lines of its send, its delivery, its effect, and the first commit that passed it: seconds since the first
    phase; around them the nearest events of its partition, and of no other."""
    head, *lines = show(run, ["partition", "0", "record", "1"], around=1).splitlines()
    assert head == (
        "record 1 of partition 0 of t, and its neighbours of the same partition, phases and faults among them; "
        "seconds since the start of the trial"
    )
    assert [line.rpartition(" s  ")[0] for line in lines] == [
        "  run#1  0.000",
        "▶ workload#0  2.000",
        "▶ workload#1  3.000",
        "  consumer-m1-0#0  8.000",
        "▶ consumer-m1-0#2  10.000",
        "  consumer-m1-0#4  12.000",
        "▶ sink#0  13.000",
        "  offsets#0  18.000",
        "  offsets#1  19.000",
        "▶ offsets#2  20.000",
        "  offsets#3  21.000",
    ]


def test_a_record_of_several_topics_is_that_of_the_trial(run: RunFolder) -> None:
    """Unless the topic is said; where the history does not say which is the trial's, it must be."""
    asked = ["partition", "0", "record", "1"]
    assert "record 1 of partition 0 of retry" in show(run, ["topic", "retry", *asked], around=0)
    (run.history / "run.jsonl").unlink()
    with pytest.raises(InputError, match=r"is in several topics \(retry, t\): say which"):
        show(run, asked, around=0)
