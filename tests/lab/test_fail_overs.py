"""Case 3: what is read of a fail-over, and what its table says of several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.history.store import RunFolder
from kafka_trial.scenario import scenario_problems
from lab.cases.fail_overs import SITUATIONS, WAYS, FailOverRow, cells, moves_of, newest, scenario_of
from lab.cases.fail_overs_page import part

FIGURES = {"lost": 0, "again": 200, "back": 190, "bound": 700, "ahead": 0}
ROW = FailOverRow("translated", "default", 1, "pass", figures=FIGURES, kafka="4.3.1", digest="d", commit="c0ffee")


def _folder(place: Path, *entries: dict[str, Any]) -> RunFolder:
    folder = RunFolder(place)
    folder.history.mkdir(parents=True)
    told = {"schema": 1, "source": "run", "seq": 0, "time_ns": 1, "kind": "failed_over", "entries": entries}
    (folder.history / "run.jsonl").write_bytes(orjson.dumps(told) + b"\n")
    return folder


def _entry(committed: int | None, begun: int | None, bound: int | None) -> dict[str, Any]:
    return {"committed_offset": committed, "started_offset": begun, "earliest_offset": bound}


def test_moves_are_summed_up_over_partitions(tmp_path: Path) -> None:
    """Back and ahead apart; a partition without a commit counts for nothing; a bound that nobody knows is none."""
    entries = _entry(100, 90, 50), _entry(100, 107, 80), _entry(None, 5, 5)
    assert moves_of(_folder(tmp_path / "known", *entries)) == {"back": 10, "ahead": 7, "bound": 70}
    assert moves_of(_folder(tmp_path / "not", *entries, _entry(9, None, None)))["bound"] is None


def test_a_trial_that_never_came_to_the_mirror_has_no_moves(tmp_path: Path) -> None:
    """Its row has no such figures."""
    folder = RunFolder(tmp_path)
    folder.history.mkdir()
    assert moves_of(folder) == {}


def test_each_way_is_the_suite_by_that_way() -> None:
    """And can be played."""
    asked = [scenario_of(way, "identity") for way in WAYS]
    assert [scenario_problems(one) for one in asked] == [[], [], []]
    assert [one.schedule[0].options["way"] for one in asked] == list(WAYS)


def test_each_situation_can_be_played_and_is_of_translated_positions() -> None:
    """The other ways are convicted in the usual one."""
    kinds = dict.fromkeys((way, situation) for way, _, situation, _ in cells())
    assert list(kinds) == [*((way, "") for way in WAYS), *(("translated", one) for one in SITUATIONS[1:])]
    asked = [scenario_of("translated", "default", one) for one in SITUATIONS]
    assert [scenario_problems(one) for one in asked] == [[]] * len(SITUATIONS)
    assert len({repr(one) for one in asked}) == len(SITUATIONS)


def test_the_table_has_medians_and_verdicts() -> None:
    """Of the last row of each trial that the newest harness made."""
    again = replace(ROW, figures=FIGURES | {"again": 300})
    wrong = replace(ROW, way="raw", verdict="fail", violations=("illegal-redelivery",), figures={"lost": 0})
    rows = [replace(ROW, digest="old", seed=9), ROW, again, replace(ROW, seed=2), wrong]
    assert len(list(newest(rows))) == 3
    text = part(rows)
    assert "| translated | default | - | 2 | 2 × pass | 0 | 250 | 190 | 700 | 0 |" in text
    assert "| raw | default | - | 1 | 1 × fail, illegal-redelivery | 0 | - | - | - | - |" in text
    assert "| by-timestamp | identity | - | 0 | - | - | - | - | - | - |" in text
    assert "3 trials on Kafka 4.3.1, measured at c0ffee" in text
    assert "| translated | default | the group is far behind | 0 | - | - |" in text
    assert "no commit yet" in part([])
