"""The campaign: what is still to be measured, in which order, and what it refuses; nothing is measured here."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.report.row_files import append_row
from lab.calibration.campaign import source_digest
from lab.scale import campaign
from lab.scale.campaign import expect_ready, run_campaign, turns
from lab.scale.cases import CHECK, DUCKDB, HUGE, SIZES, Case, cases
from lab.scale.cost import Cost
from lab.scale.samples import Sample, read_samples
from lab.scale.shapes import Shape

ONE = Case("one", Shape(2000), (CHECK, DUCKDB))
OTHER = Case("other", Shape(2000, first_offset=10**9), against="one")
COST = {"wall_s": 1.0, "cpu_s": 2.0, "peak_bytes": 3.0}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Returns the list of what is measured, each at once and at the same cost."""
    taken: list[tuple[str, str]] = []

    def measure(history: campaign.History, of: str, case: Case) -> dict[str, float]:
        taken.append((case.name, of))
        return COST

    monkeypatch.setattr(campaign, "_measured", measure)
    monkeypatch.setattr(campaign, "expect_ready", lambda *_: None)
    return taken


def of(samples: list[Sample]) -> list[tuple[int, str, str]]:
    """Returns which measurements these are."""
    return [(sample.run, sample.case, sample.of) for sample in samples]


def test_rounds_are_interleaved_in_changing_order() -> None:
    """Everything once a round."""
    told = [(turn.run, turn.case.name, turn.of) for turn in turns([ONE, OTHER], 2)]
    first = [(0, "one", CHECK), (0, "one", DUCKDB), (0, "other", CHECK)]
    assert told == [*first, *((1, case, what) for _, case, what in first[::-1])]


def test_10_to_the_8_is_measured_only_where_it_is_asked_for() -> None:
    """And nothing greater than what was asked for."""
    assert HUGE not in cases()
    assert HUGE in cases(huge=True)
    assert cases(events_max=100_000) == (SIZES[0],)


def test_a_stopped_campaign_goes_on_where_it_stopped(tmp_path: Path, measured: list[tuple[str, str]]) -> None:
    """Every measurement is a row at once; the histories are made again, and removed, also where one fails."""
    rows, place = tmp_path / "rows.jsonl", tmp_path / "place"
    place.mkdir()
    run_campaign(rows, [ONE, OTHER], runs=1, place=place)
    assert of(read_samples(rows)) == [(0, "one", CHECK), (0, "one", DUCKDB), (0, "other", CHECK)]
    measured.clear()
    run_campaign(rows, [ONE, OTHER], runs=2, place=place)
    assert measured[1:] == [("other", CHECK), ("one", DUCKDB), ("one", CHECK)]  # the first of all is not counted
    measured.clear()
    run_campaign(rows, [ONE, OTHER], runs=2, place=place)
    assert (measured, list(place.iterdir())) == ([], [])


def test_what_was_measured_of_another_source_is_measured_again(tmp_path: Path, measured: list[tuple[str, str]]) -> None:
    """The digest is that of the harness as it stands."""
    rows = tmp_path / "rows.jsonl"
    run_campaign(rows, [OTHER], runs=1, place=tmp_path)
    (sample,) = read_samples(rows)
    assert sample.digest == source_digest()
    rows.unlink()
    append_row(rows, replace(sample, digest="another"))
    run_campaign(rows, [OTHER], runs=1, place=tmp_path)
    assert [one.digest for one in read_samples(rows)] == ["another", sample.digest]


def test_a_failed_measurement_keeps_those_before_it_and_leaves_no_history(
    tmp_path: Path, measured: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error goes on; its row is missing."""
    rows, place = tmp_path / "rows.jsonl", tmp_path / "place"
    place.mkdir()
    measure: Callable[..., dict[str, float]] = campaign._measured

    def failing(history: Any, of: str, case: Case) -> dict[str, float]:
        if of == DUCKDB:
            raise UnjudgeableError("duckdb ended with status 1")
        return measure(history, of, case)

    monkeypatch.setattr(campaign, "_measured", failing)
    with pytest.raises(UnjudgeableError, match="status 1"):
        run_campaign(rows, [ONE], runs=1, place=place)
    assert (of(read_samples(rows)), list(place.iterdir())) == ([(0, "one", CHECK)], [])


def test_a_computation_that_finds_something_else_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The groups of the campaign are sound: only redeliveries are there to be found."""
    said = iter(['{"redelivered": 9}\n', 'a warning\n{"redelivered": 9, "skipped": 1}\n'])
    monkeypatch.setattr(campaign, "cost_of", lambda *_, **__: Cost(1.0, 2.0, 3, next(said)))
    history = campaign.History(RunFolder(tmp_path), 2000)
    assert campaign._measured(history, DUCKDB, ONE) == COST
    with pytest.raises(UnjudgeableError, match="found skipped in one"):
        campaign._measured(history, DUCKDB, ONE)


def test_a_disk_without_room_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is needed, and what is there."""
    pytest.importorskip("duckdb")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10_000_000_000))
    with pytest.raises(StartError, match=r"10\^8 events need 43\.5 GB in .*, which has 10\.0 GB free"):
        run_campaign(tmp_path / "rows.jsonl", [HUGE], runs=1, place=tmp_path)
    expect_ready([ONE], tmp_path)
    assert list(tmp_path.iterdir()) == []
