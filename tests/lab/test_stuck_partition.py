"""Case 0: what is counted of a trial, and what the page says of its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from kafka_trial import registry
from kafka_trial.history.store import RunFolder
from lab.cases.stuck_partition import (
    CASE,
    CURES,
    DRAWN,
    PROVOCATIONS,
    ROWS_NAME,
    StuckPartitionRow,
    grid,
    read_rows,
    sweep,
)
from lab.cases.stuck_partition_figures import Figures, figures_of
from lab.cases.stuck_partition_page import PAGE_NAME, page
from lab.cases.timelines import newest_timeline
from lab.repository import reports_folder

SECOND = 1_000_000_000


def line(source: str, at_s: float, kind: str, **fields: Any) -> dict[str, Any]:
    return {"schema": 1, "source": source, "seq": 0, "time_ns": round(at_s * SECOND), "kind": kind, **fields}


def group(at_s: float, **owners: list[int]) -> dict[str, Any]:
    """A classic group record that gives each member, by its client id, these partitions, under a new member id."""
    members = [{"member_id": f"{client}-{at_s}", "client_id": client} for client in owners]
    entries = [
        {"topic": "t", "partition": number, "member_id": f"{client}-{at_s}"}
        for client, partitions in owners.items()
        for number in partitions
    ]
    return line("offsets", at_s, "group", protocol="classic", epoch=1, members=members, entries=entries)


def handled(member: str, at_s: float, offset: int, *, took_s: float) -> list[dict[str, Any]]:
    place = {"member": member, "topic": "t", "partition": 0, "offset": offset}
    return [
        line(f"consumer-{member}-0", at_s, "delivered", **place),
        line(f"consumer-{member}-0", at_s + took_s, "processed", outcome="done", **place),
    ]


def run_folder(place: Path, files: dict[str, list[dict[str, Any]]]) -> RunFolder:
    folder = RunFolder(place)
    folder.history.mkdir()
    for name, lines in files.items():
        (folder.history / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in lines))
    return folder


PHASES = [line("run", 10, "phase", phase="faults"), line("run", 50, "phase", phase="stop")]


def test_only_what_changes_hands_is_moved(tmp_path: Path) -> None:
    """A member that joins again has another id and is no other; what nobody had for a while is still its last owner's;
    and what was before the faults, or after the stop, does not count."""
    offsets = [
        group(1, a=[0, 1], b=[2, 3]),
        group(20, a=[0, 1, 2], b=[3]),
        group(25),
        group(30, a=[0, 1], b=[2, 3]),
        group(60, b=[0, 1, 2, 3]),
    ]
    folder = run_folder(tmp_path, {"run": PHASES, "offsets": offsets})
    assert figures_of(folder) == Figures(rebalances=3, moved=2, done_twice=0, wasted_s=0.0, wasted_cpu_s=0.0)


def test_members_of_the_consumer_protocol_have_records_of_their_own(tmp_path: Path) -> None:
    """Each epoch of the group is a rebalance, and a partition moves when another member is assigned it."""
    offsets = [
        line("offsets", 1, "member", member_id="x", client_id="a"),
        line("offsets", 1, "member", member_id="y", client_id="b"),
        line("offsets", 2, "member_assignment", member_id="x", entries=[{"topic_id": "t", "partition": 0}]),
        line("offsets", 20, "group_epoch", epoch=2),
        line("offsets", 21, "member_assignment", member_id="y", entries=[{"topic_id": "t", "partition": 0}]),
    ]
    folder = run_folder(tmp_path, {"run": PHASES, "offsets": offsets})
    assert figures_of(folder) == Figures(rebalances=1, moved=1, done_twice=0, wasted_s=0.0, wasted_cpu_s=0.0)


def test_a_trial_that_ended_before_its_faults_moved_nothing(tmp_path: Path) -> None:
    """A member that never got a partition ends its trial early: it has a row all the same."""
    offsets = [group(1, a=[0, 1]), group(20, a=[0], b=[1])]
    folder = run_folder(tmp_path, {"run": [line("run", 1, "phase", phase="prepare")], "offsets": offsets})
    assert figures_of(folder) == Figures(rebalances=0, moved=0, done_twice=0, wasted_s=0.0, wasted_cpu_s=0.0)


def test_what_was_done_twice_took_its_time(tmp_path: Path) -> None:
    """The later end of two is the one too many, whoever began first; what it took of the processor, the member itself
    wrote to its stderr."""
    late, early = handled("m0", 20, 7, took_s=9.0), handled("m1", 22, 7, took_s=0.5)
    folder = run_folder(tmp_path, {"run": PHASES, "offsets": [], "consumer-m0-0": late, "consumer-m1-0": early})
    folder.logs.mkdir()
    (folder.logs / "m0-0.stderr").write_text("handled 0 6 0.0021\nsome word\nhandled 0 7 0.0032\nhandled 0 8 0.0")
    (folder.logs / "m1-0.stderr").write_text("handled 0 7 0.0045\n")
    assert figures_of(folder) == Figures(rebalances=0, moved=0, done_twice=1, wasted_s=9.0, wasted_cpu_s=0.003)


def test_every_cell_of_the_grid_can_be_asked_for() -> None:
    """There is a consumer for every cure with one worker and with four, and a scenario for every provocation."""
    cells = list(grid([1]))
    assert {(cell.provocation, cell.cure) for cell in cells} == {(one, cure) for one in PROVOCATIONS for cure in CURES}
    for cell in cells:
        assert cell.trial_spec().plan.faults
    assert {cell.trial_spec().scenario.topic.partitions for cell in sweep([1])} == {3, 6, 12, 24}


def row(**fields: Any) -> StuckPartitionRow:
    told = {"provocation": "frozen", "cure": "none", "seed": 1, "partitions": 12, "verdict": "fail", "bit": True}
    return StuckPartitionRow(**(told | {"digest": "d", "commit": "abc1234", "kafka": "4.3.1"} | fields))


def costs(*, moved: int, done_twice: int, s: float, cpu_s: float) -> dict[str, Any]:
    """What a trial with two rebalances came to."""
    return {"rebalances": 2, "moved": moved, "done_twice": done_twice, "wasted_s": s, "wasted_cpu_s": cpu_s}


def test_the_page_counts_what_can_say_something() -> None:
    """A trial whose fault did not take effect, or that is unknown, is no trial without a false lag."""
    rows = [
        row(violations=("false-lag",), false_lag="how far", **costs(moved=9, done_twice=50, s=3.0, cpu_s=0.5)),
        row(seed=2, counts={"commit-regression": 1}, **costs(moved=3, done_twice=10, s=1.0, cpu_s=0.1)),
        row(seed=3, verdict="unknown"),
        row(seed=4, bit=False),
        row(cure="both-guards", verdict="pass", rebalances=1, moved=4),
        row(partitions=3, swept=True, violations=("false-lag",), counts={"false-lag": 2}),
        row(partitions=3, swept=True, seed=2, verdict="pass", counts={"false-lag": 0}),
        row(partitions=3, swept=True, seed=3, bit=False, counts={"false-lag": 9}),
    ]
    said = page(rows)
    assert "`frozen`, none (range), seed 1: *how far*." in said
    assert "| none (range) | 1 of 2 (1) | - | - | - | - |" in said
    assert "| none (range) | 3.0 | 30 | 2.0 | 0.30 | 0 of 2 | 0 of 2 |" in said
    assert "| both guards | 4.0 | 0 | 0.0 | 0.00 | 0 of 1 | 1 of 1 |" in said
    assert "| none (range) | 2, 0 |" in said.partition("## Partitions for each consumer")[2]
    assert "8 trials on Kafka 4.3.1, seeds 1, 2, 3, 4, measured at abc1234; 3 of them say nothing" in said


def test_rows_of_another_harness_are_not_on_the_page(tmp_path: Path) -> None:
    """What was measured last is the page; a torn line is left out."""
    assert "1 trials on" in page([row(digest="old"), row()])
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"torn')
    assert read_rows(file) == []


def test_the_page_is_that_of_the_stored_rows() -> None:
    """Nobody has written into it by hand, and no row came after it."""
    curves = [row for cell in DRAWN if (row := newest_timeline(CASE, cell)) is not None]
    written = registry.CHECKOUT / "docs" / "cases" / PAGE_NAME
    assert written.read_text() == page(read_rows(reports_folder() / ROWS_NAME), curves)
