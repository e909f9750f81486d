"""The event writer of one source, and reading back what it wrote."""

from pathlib import Path

import pytest

from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.history.event import Event, from_line, to_line
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import HistoryTail, create_run_folder, open_run_folder


def test_events_are_numbered_and_whole(tmp_path: Path) -> None:
    """Numbers follow each other from 0, absent fields are absent, each line is an event again."""
    with Recorder(tmp_path, "sink") as recorder:
        recorder.record("effect", time_ns=5, id="r1", partition=None)
        recorder.record("effect", time_ns=6, id="r2", extra=[1])
    events = [from_line(line) for line in (tmp_path / "sink.jsonl").read_bytes().splitlines()]
    assert events == [
        Event("sink", 0, 5, "effect", id="r1"),
        Event("sink", 1, 6, "effect", id="r2", details={"extra": [1]}),
    ]


def test_a_source_has_one_life(tmp_path: Path) -> None:
    """A second recorder for the same source is refused: a history is never rewritten."""
    Recorder(tmp_path, "sink").close()
    with pytest.raises(FileExistsError):
        Recorder(tmp_path, "sink")


def test_a_line_survives_both_ways() -> None:
    """to_line and from_line are inverse."""
    event = Event("run", 3, 9, "phase", details={"phase": "drain"})
    assert from_line(to_line(event)) == event


def test_a_newer_schema_is_not_half_read() -> None:
    """An event of another schema is an error that names both."""
    with pytest.raises(ValueError, match="schema 2, this reader knows 1"):
        from_line(b'{"schema": 2, "source": "run", "seq": 0, "time_ns": 0, "kind": "end"}')


def test_a_follower_yields_each_whole_line_once(tmp_path: Path) -> None:
    """A line still being written waits for the next look."""
    path = tmp_path / "offsets.jsonl"
    first, second = (to_line(Event("offsets", number, number, "committed")) for number in (0, 1))
    follower = HistoryTail(tmp_path, "offsets.jsonl")
    path.write_bytes(first + second[:10])
    seen = [event.seq for event in follower.new_events()]
    path.write_bytes(first + second)
    assert (seen, [event.seq for event in follower.new_events()]) == ([0], [1])


def test_a_follower_of_several_patterns_begins_with_the_first(tmp_path: Path) -> None:
    """And takes the files of one by their names; a file may come later."""
    tail = HistoryTail(tmp_path, "sink.jsonl", "consumer-*.jsonl")
    for source in ("consumer-m1-0", "consumer-m0-0", "sink", "run"):
        (tmp_path / f"{source}.jsonl").write_bytes(to_line(Event(source, 0, 0, "event")))
    assert [event.source for event in tail.new_events()] == ["sink", "consumer-m0-0", "consumer-m1-0"]
    (tmp_path / "consumer-m2-0.jsonl").write_bytes(to_line(Event("consumer-m2-0", 0, 0, "event")))
    assert [event.source for event in tail.new_events()] == ["consumer-m2-0"]


def test_a_torn_last_line_is_left_out_and_a_torn_middle_is_not(tmp_path: Path) -> None:
    """The writer of a last line may have been killed; garbage in the middle is somebody else's doing."""
    folder = create_run_folder(tmp_path / "run", "control", "x")
    line = to_line(Event("run", 0, 0, "phase"))
    (folder.history / "run.jsonl").write_bytes(line + b'{"schema"')
    assert len(list(folder.events())) == 1
    (folder.history / "run.jsonl").write_bytes(line + b"garbage\n" + line)
    with pytest.raises(UnjudgeableError, match=r"run.jsonl, line 2"):
        list(folder.events())


def test_a_history_is_never_overwritten(tmp_path: Path) -> None:
    """A run folder that holds something is refused; so is a folder that is none."""
    (tmp_path / "something").write_text("")
    with pytest.raises(InputError, match="never overwritten"):
        create_run_folder(tmp_path, "control", "x")
    with pytest.raises(InputError, match="not a run folder"):
        open_run_folder(tmp_path)


def test_a_newer_run_folder_is_refused_by_name(tmp_path: Path) -> None:
    """run.json of a newer schema: exit status 2, and what to do."""
    folder = create_run_folder(tmp_path / "run", "control", "x")
    folder.write_json("run.json", {"schema": 99})
    with pytest.raises(InputError, match=r"schema 99.*upgrade"):
        folder.read_json("run.json")
    with pytest.raises(InputError, match=r"schema 99.*upgrade"):
        open_run_folder(folder.path)


def test_facts_that_are_not_whole_do_not_keep_a_history_from_being_judged(tmp_path: Path) -> None:
    """run.json cut off or missing: the folder opens; a schema that is no number was edited."""
    folder = create_run_folder(tmp_path / "run", "control", "x")
    assert open_run_folder(folder.path).path == folder.path
    (folder.path / "run.json").write_text('{"schema": 1, "se')
    assert open_run_folder(folder.path).path == folder.path
    folder.write_json("run.json", {"schema": "x"})
    with pytest.raises(InputError, match="no number"):
        open_run_folder(folder.path)
