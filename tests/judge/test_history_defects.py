"""What is wrong with a history beyond its lines is named, counted, and told with its first case."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from kafka_trial.history.store import RunFolder
from kafka_trial.judge.history_defects import missing_files, sink_missing, strangers
from kafka_trial.judge.history_reader import read_tables
from kafka_trial.model.trial_context import Incarnation, Peak, Settings, TrialContext

SECOND_NS = 1_000_000_000


def defects(tmp_path: Path, source: str, *events: dict[str, object]) -> list[str]:
    """Returns what is said of a file with these events, a second apart where they tell no time."""
    told = [
        {"schema": 1, "source": source, "seq": seq, "time_ns": (100 + seq) * SECOND_NS} | event
        for seq, event in enumerate(events)
    ]
    path = tmp_path / f"{source}.jsonl"
    path.write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in told))
    return read_tables([path])[1].defects


def test_a_whole_file(tmp_path: Path) -> None:
    """Nothing is said."""
    assert defects(tmp_path, "run", {"kind": "phase", "phase": "prepare"}, {"kind": "end", "outcome": "ok"}) == []


def test_unknown_kinds(tmp_path: Path) -> None:
    """All are counted, three are quoted, long ones shortened; a kind of another source is as unknown."""
    kinds = ["send", "x" * 99, "send", "b", "a"]
    assert defects(tmp_path, "run", *({"kind": kind} for kind in kinds)) == [
        "run: 5 events are of an unknown kind: 'a' (first: #4); 'b' (first: #3); 'send' (first: #0); and 1 more"
    ]


@pytest.mark.parametrize(
    ("source", "event", "said"),
    [
        ("workload", {"kind": "send", "outcome": "invoke"}, "send lacks id"),
        ("sink", {"kind": "effect", "id": "r1"}, "effect lacks outcome"),
        ("consumer-m0-0", {"kind": "assigned"}, "assigned lacks entries"),
        ("run", {"kind": "clock", "wall_ns": 2**63}, "clock lacks wall_ns"),
        ("run", {"kind": "end"}, "end lacks outcome"),
    ],
)
def test_missing_fields(tmp_path: Path, source: str, event: dict[str, object], said: str) -> None:
    """What an event of its kind must say, whether it is read as a column or whole."""
    missing = f"{source}: what their kinds must say is missing 1 time: {said} (first: #0)"
    assert defects(tmp_path, source, event) == [missing]


@pytest.mark.parametrize(("back_ms", "said"), [(500, []), (501, ["run: its clock runs backwards 1 time"])])
def test_a_clock_that_runs_backwards(tmp_path: Path, back_ms: int, said: list[str]) -> None:
    """Each step back beyond the tolerance between sources counts once, however long the time lies behind."""
    times = [100 * SECOND_NS, 100 * SECOND_NS - back_ms * 1_000_000, 100 * SECOND_NS - back_ms * 1_000_000 + 1]
    found = defects(tmp_path, "run", *({"kind": "phase", "phase": "prepare", "time_ns": time} for time in times))
    assert [sentence.partition(" (first")[0] for sentence in found] == said


def test_a_second_end(tmp_path: Path) -> None:
    """Two trials in one history, or one that was put together."""
    end = {"kind": "end", "outcome": "ok"}
    assert defects(tmp_path, "run", end, end) == ["run: a second end (#1)"]


def test_missing_files() -> None:
    """A member whose first line is not there, one that was sampled, one that came back, a broker among three."""
    seen = TrialContext(
        sources=("consumer-m0-0", "consumer-m1-1", "requests-b0", "requests-b2"),
        members=("m1",),
        incarnations=(Incarnation(source=1, member=0, number=1, started_ns=5),),
        peaks=(Peak("m2", 0, 9, 0, 0),),
    )
    assert missing_files(seen, {0, 1, 2}) == [
        "consumer-m0-0: does not tell that its process was started",
        "consumer-m1-0: is missing, although that process ran",
        "consumer-m2-0: is missing, although that process ran",
        "requests-b1: is missing, although that broker held partitions",
    ]


def test_no_request_log_at_all_is_no_missing_file() -> None:
    """That is evidence nobody has, and each anomaly that needs it says so."""
    assert missing_files(TrialContext(sources=("run",)), {0, 1, 2}) == []


@pytest.mark.parametrize(
    ("sink", "sources", "said"),
    [("http", ("run",), 1), ("http", ("sink",), 0), ("topic", ("run",), 1), ("postgres", ("run",), 1), ("none", (), 0)],
)
def test_a_sink_that_is_missing(sink: str, sources: tuple[str, ...], said: int) -> None:
    """A sink that nobody called has an empty file; none at all was lost."""
    assert len(sink_missing(TrialContext(sources=sources, settings=Settings(sink=sink)))) == said


def test_strangers_in_the_folder(tmp_path: Path) -> None:
    """Files that are no history are not left out in silence."""
    folder = RunFolder(tmp_path)
    folder.history.mkdir()
    for name in ("run.jsonl", "run.jsonl.bak", "runs.jsonl"):
        (folder.history / name).touch()
    assert list(strangers(folder)) == [
        "history/ holds 'run.jsonl.bak', which is no file of events",
        "history/ holds 'runs.jsonl', and there is no such source",
    ]
