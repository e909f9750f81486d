"""Case 3: which records its figures are of, and what its page says of pairs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.history.store import RunFolder
from lab.cases import fail_overs
from lab.cases.cold_neighbours import (
    FAULT,
    FIGURES,
    ROWS_NAME,
    ColdNeighbourRow,
    control_pairs,
    figures_of,
    read_rows,
    scenario_of,
)
from lab.cases.cold_neighbours_page import page
from lab.repository import reports_folder

SECOND = 1_000_000_000


def line(source: str, seq: int, at_s: float, kind: str, **fields: Any) -> bytes:
    """One line of a history."""
    head = {"schema": 1, "source": source, "seq": seq, "time_ns": round(at_s * SECOND), "kind": kind}
    return orjson.dumps(head | fields) + b"\n"


def history(place: Path, *, fault: bool) -> RunFolder:
    """Three records, sent at 10.5 s, 12 s and 19.5 s; the faults phase begins at 10 s."""
    folder = RunFolder(place)
    folder.history.mkdir(parents=True)
    work, sends = [], []
    for number, (sent_s, took_s) in enumerate([(10.5, 9.0), (12.0, 0.4), (19.5, 3.0)]):
        spot = {"topic": "t", "partition": 0, "offset": number}
        sends += [
            line("workload", 2 * number, sent_s, "send", outcome="invoke", id=f"r{number}"),
            line("workload", 2 * number + 1, sent_s + 0.1, "send", outcome="ok", op=2 * number, **spot),
        ]
        work.append(line("consumer-m0-0", number, sent_s + took_s, "processed", outcome="done", **spot))
    run = [line("run", 0, 1.0, "phase", phase="prepare"), line("run", 1, 10.0, "phase", phase="faults")]
    (folder.history / "run.jsonl").write_bytes(b"".join(run))
    (folder.history / "workload.jsonl").write_bytes(b"".join(sends))
    (folder.history / "consumer-m0-0.jsonl").write_bytes(b"".join(work))
    if fault:
        told = [
            line("nemesis", n, at, kind, fault_no=0)
            for n, (at, kind) in enumerate([(10.2, "injected"), (13.0, "healing")])
        ]
        (folder.history / "nemesis.jsonl").write_bytes(b"".join(told))
    return folder


def test_figures_are_of_what_was_sent_beside_the_neighbour(tmp_path: Path) -> None:
    """While it was at work; without it, from one to nine seconds into the faults phase."""
    beside, without = (figures_of(history(tmp_path / str(one), fault=one)) for one in (True, False))
    assert (beside["handled_max_ms"], beside["acknowledged_p50_ms"], beside["lag_records"]) == (9000.0, 100.0, 2.0)
    assert (without["handled_max_ms"], without["lag_records"]) == (400.0, 1.0)
    assert [*beside] == [*FIGURES]


def test_the_control_is_the_same_trial_without_the_neighbour() -> None:
    """It lasts as long."""
    asked, control = scenario_of(neighbour=True), scenario_of(neighbour=False)
    assert ([step.fault for step in asked.schedule], control.schedule) == ([FAULT], ())
    assert (control.load, control.topic, control.min_faults_s) == (asked.load, asked.topic, 9.0)


def row(seed: int, *, neighbour: bool, ms: float, **changes: Any) -> ColdNeighbourRow:
    """A trial whose figures are all the same."""
    figures = dict.fromkeys(FIGURES, ms)
    row = ColdNeighbourRow(neighbour, seed, "pass", bit=neighbour, told="read", figures=figures, digest="d", commit="c")
    return replace(row, **changes)


def test_only_whole_pairs_count() -> None:
    """Of one seed, made by the same, and the neighbour was there; of several the last."""
    rows = [
        row(1, neighbour=False, ms=9, digest="old"),
        row(1, neighbour=True, ms=3),
        row(2, neighbour=False, ms=1),
        row(2, neighbour=True, ms=2, bit=False),
        row(3, neighbour=False, ms=1),
        row(3, neighbour=True, ms=2),
        row(3, neighbour=True, ms=4),
    ]
    assert [(without.seed, beside.figures["lag_records"]) for without, beside in control_pairs(rows)] == [(3, 4)]


def test_the_page_says_between_what_the_effect_lies() -> None:
    """By the ratios of pairs; nothing of fewer than five."""
    rows = [row(seed, neighbour=one, ms=10.0 * (1 + one)) for seed in range(1, 6) for one in (False, True)]
    assert "| 10.0 | 20.0 | 2.00 | 2.00 to 2.00 |" in page(rows, [])
    assert "in 5 of 5 trials without the neighbour, and in 5 of 5 with it" in page(rows, [])
    assert "| - | fewer than 5 pairs |" in page(rows[:6], [])
    assert "no commit yet" in page([], [])


def test_the_committed_page_is_made_of_the_committed_rows() -> None:
    """And of nothing else."""
    reports = reports_folder()
    assert (reports.parent / "docs" / "cases" / "3.md").read_text() == page(
        read_rows(reports / ROWS_NAME), fail_overs.read_rows(reports / fail_overs.ROWS_NAME)
    )
