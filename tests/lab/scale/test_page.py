"""Samples to page: medians, slopes and ratios of rounds, beside what they ought to be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.report.row_files import append_row
from lab.scale import page
from lab.scale.cases import CHECK, DUCKDB, OF_MESSAGES, PLAIN, SIZES, WARM
from lab.scale.page import scale_lines
from lab.scale.samples import Sample, read_samples

SMALL, MIDDLE, LARGE = (case.name for case in SIZES)
EVENTS = {SMALL: 100_000, MIDDLE: 1_000_000, LARGE: 10_000_000, OF_MESSAGES.name: 5_100_000}


def sample(case: str, of: str, run: int, *, digest: str = "now", **values: float) -> Sample:
    """Returns a sample as the campaign takes it."""
    events = EVENTS.get(case, 1_000_000)
    return Sample(case, of, run, events, events * 200, values, f"2 cores, load {run}.5", "abc", digest)


def cost(case: str, of: str, run: int, wall_s: float, cpu_s: float, peak_mb: float = 1000.0) -> Sample:
    """Returns what a process cost."""
    return sample(case, of, run, wall_s=wall_s, cpu_s=cpu_s, peak_bytes=peak_mb * 1e6)


def linear() -> Iterator[Sample]:
    """Yields three rounds of a judge that takes 5 s and 2 s more a million events, and twice of that in CPU."""
    for run in range(3):
        for case in (SMALL, MIDDLE, LARGE):
            millions = EVENTS[case] / 1e6
            yield cost(case, CHECK, run, 5 + 2 * millions + run / 100, 10 + 4 * millions)
            yield cost(case, DUCKDB, run, 1 + millions, 1 + 1.6 * millions)


def test_samples_come_back_as_they_were_written(tmp_path: Path) -> None:
    """A damaged line is named."""
    file = tmp_path / "samples.jsonl"
    samples = list(linear())
    for one in samples:
        append_row(file, one)
    assert read_samples(file) == samples
    file.write_bytes(b'{"case":1}\n')
    with pytest.raises(InputError, match="expected one of the rows"):
        read_samples(file)


def test_the_page_shows_medians_slopes_and_aims() -> None:
    """The slopes are those of the rounds; 4 to 1.6 CPU seconds is 2.5 times, which is too much."""
    lines = scale_lines([*linear(), cost(OF_MESSAGES.name, CHECK, 0, 19.0, 30.0, 3500.0)])
    own, other = "5.21 s | 10.40 s | 1000 MB | – | –", "1.10 s | 1.16 s | 1000 MB | 8.97 ×"
    assert f"| {SMALL} | 100000 | 20 | {own} | {other} | 3 |" in lines
    assert f"| from {MIDDLE} to {LARGE} | 2.00 s | 4.00 s | 1.00 s | 1.60 s | 2.50 × |" in lines
    assert f"| {OF_MESSAGES.name}, cold | ≤ 20 s | 19.00 s | yes |" in lines
    assert f"| {OF_MESSAGES.name}, memory | ≤ 3 GB | 3.50 GB | **no** |" in lines
    assert "| processor time ÷ DuckDB's, from 10^6 to 10^7 | ≤ 2 × | 2.50 × | **no** |" in lines
    assert "| linear: seconds per event from 10^6 on ÷ before | ≤ 1.25 × | 1.00 × | yes |" in lines
    assert f"| {SMALL}, warm | ≤ 0.3 s | not measured | – |" in lines


def test_what_was_measured_since_is_told_until_the_campaign_has_been_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a page that has a commit of that campaign, and of no other."""
    monkeypatch.setattr(page, "SINCE", {"abc": ("see elsewhere",), "abd": ("nowhere",)})
    lines = scale_lines(list(linear()))
    assert ("see elsewhere" in lines, "nowhere" in lines) == (True, False)


def test_shapes_are_compared_with_what_was_measured_in_the_same_round() -> None:
    """A round that lacks one of both does not count; either direction may be too much."""
    plain = [cost(PLAIN, CHECK, run, wall_s, 10.0) for run, wall_s in enumerate([10.0, 20.0, 90.0])]
    hot = [cost("one hot partition", CHECK, run, wall_s, 14.0) for run, wall_s in enumerate([11.0, 18.0])]
    lines = scale_lines([*plain, *hot])
    assert f"| one hot partition | {PLAIN} | 1.00 × | 1.40 × | 1.00 × | **no** |" in lines
    assert "| 10^5 keys | 10 keys | – | – | – | – |" in lines


def test_only_the_newest_source_is_shown_with_where_it_was_measured() -> None:
    """The loads of all its moments; a warm measurement has a column."""
    old = sample(SMALL, WARM, 0, digest="before", anew_s=9.0, anew_cpu_s=9.0, cached_s=9.0)
    new = [sample(SMALL, WARM, run, anew_s=0.25, anew_cpu_s=0.5, cached_s=0.4) for run in range(2)]
    lines = scale_lines([old, *new])
    assert "Measured at abc on 2 cores, load 0.5 to 1.5." in lines
    assert f"| {SMALL}, warm | ≤ 0.3 s | 0.25 s | yes |" in lines
    assert f"| {SMALL}, warm, from the cache | ≤ 0.3 s | 0.40 s | **no** |" in lines
    assert scale_lines([]) == []
