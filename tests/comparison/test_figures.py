"""The figures of a trial, from a literal run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.comparison.figures import read_figures
from kafka_trial.history.store import RunFolder

SECOND_NS = 1_000_000_000
WALL_NS = 1_790_000_000 * SECOND_NS  # the wall clock when the monotonic one is 0
Row = Mapping[str, Any]


def at(at_s: float, kind: str, **fields: Any) -> Row:
    """An event, by the monotonic clock."""
    return {"kind": kind, "time_ns": round(at_s * SECOND_NS), **fields}


def wall(seconds: float) -> int:
    """When a broker did something, by its own clock."""
    return WALL_NS + round(seconds * SECOND_NS)


PHASES = [at(10, "phase", phase="faults"), at(30, "phase", phase="drain"), at(33.5, "phase", phase="snapshot")]
RUN = [
    at(0, "clock", read_ns=0, wall_ns=WALL_NS),
    at(0, "group_named", group="g"),
    at(5, "calibrated", rate=250.0, seconds=8.0),
    at(6, "resources", member="m0", rss_bytes=10_000),
    at(7, "resources", member="m1", rss_bytes=30_000),
    *PHASES,
]
NEMESIS = [
    at(12, "injected", fault_no=0, fault="kill", member="m1"),
    at(20, "healing", fault_no=0, fault="kill", member="m1"),
]


def join(generation: int, ends_s: float, lasts_s: float, **fields: Any) -> Row:
    row = {"api": "JOIN_GROUP", "group": "g", "error": 0, "epoch": generation, "duration_ms": lasts_s * 1000}
    return at(ends_s, "request", source_wall_ns=wall(ends_s), **row | fields)


def sync(generation: int, ends_s: float) -> Row:
    return join(generation, ends_s, 0.001, api="SYNC_GROUP")


def figures_of(folder: Path, files: Mapping[str, Sequence[Row]], **verdict: Any) -> dict[str, float]:
    run = RunFolder(folder)
    run.history.mkdir(parents=True)
    for name, rows in files.items():
        (run.history / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    run.write_json("verdict.json", {"counts": {"redelivered": 4}, "judged": ["redelivered"], **verdict})
    return read_figures(run)


def test_a_classic_group_tells_all_figures(tmp_path: Path) -> None:
    """A member is killed at 12 s; the others join from 18 s on, and the last has its part at 18.7 s."""
    requests = [
        join(1, 8, 0.5),  # before the first fault: not counted
        sync(1, 8.1),
        join(-1, 18.05, 0.1, error=79),
        join(2, 18.5, 0.5),
        join(2, 18.5, 0.2),
        sync(2, 18.6),
        sync(2, 18.7),
    ]
    assert figures_of(tmp_path / "run", {"run": RUN, "nemesis": NEMESIS, "requests-b0": requests}) == {
        "rebalance": 0.7,
        "detection": 6.0,
        "convergence": 3.5,
        "redelivered": 4.0,
        "throughput": 250.0,
        "memory": 30_000.0,
    }


def epoch(number: int, seconds: float) -> Row:
    return at(seconds, "group_epoch", group="g", epoch=number, source_wall_ns=wall(seconds))


def assigned(number: int, seconds: float, state: str = "stable") -> Row:
    row = {"group": "g", "member_id": "a", "epoch": number, "state": state}
    return at(seconds, "member_assignment", source_wall_ns=wall(seconds), **row)


def test_a_group_of_the_consumer_protocol_rebalances_until_its_last_member_is_stable(tmp_path: Path) -> None:
    """An epoch that nobody reached begins the next one; what is given back in the next round ends no earlier one."""
    offsets = [
        epoch(2, 14),
        epoch(3, 14.2),
        assigned(3, 14.5, "unreleased"),
        assigned(3, 15),
        assigned(3, 15.5),
        epoch(4, 21),
        assigned(3, 21.5, "unrevoked"),
        assigned(4, 22),
    ]
    figures = figures_of(tmp_path / "run", {"run": RUN, "nemesis": NEMESIS, "offsets": offsets})
    assert (figures["rebalance"], figures["detection"]) == (1.25, 2.0)


@pytest.mark.parametrize(
    ("files", "verdict"),
    [
        ({"run": []}, {"judged": []}),
        ({"run": RUN[2:3], "nemesis": NEMESIS}, {"judged": [], "counts": {}}),
        ({"run": [at(5, "calibrated", rate=2000.0, seconds=1.0)]}, {"judged": []}),
    ],
)
def test_what_a_trial_cannot_tell_is_missing(files: dict[str, list[Row]], verdict: Row, tmp_path: Path) -> None:
    """Nothing is 0 because nobody saw it, and a burst that was done within a second is not timed."""
    figures = figures_of(tmp_path / "run", files, **verdict)
    assert figures.keys() <= {"throughput"}
    assert ("throughput" in figures) == any(row.get("seconds") == 8.0 for row in files["run"])


def test_a_rebalance_after_the_fault_has_healed_detected_nothing(tmp_path: Path) -> None:
    """The member that comes back joins; its loss was never noticed."""
    requests = [join(2, 20.6, 0.5), sync(2, 20.7)]
    figures = figures_of(tmp_path / "run", {"run": RUN, "nemesis": NEMESIS, "requests-b0": requests})
    assert ("detection" in figures, figures["rebalance"]) == (False, 0.6)


def test_a_damaged_line_and_another_group_are_no_rebalance(tmp_path: Path) -> None:
    """The figures of the rest stand."""
    requests = [join(2, 18.5, 0.5), sync(2, 18.7), join(7, 16, 0.5, group="other"), {"cut": "JOIN_GROUP"}]
    files = {"run": RUN, "nemesis": NEMESIS, "requests-b0": requests}
    assert figures_of(tmp_path / "run", files)["rebalance"] == 0.7
