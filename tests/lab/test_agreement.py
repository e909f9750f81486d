"""Both judges on histories of a fresh seed: what a seed draws, that a difference is found, and what the page tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lab.agreement import __main__ as agreement
from lab.agreement import sayings
from lab.agreement.rows import Row, counting, page, read_rows
from lab.agreement.sample import drawn
from lab.agreement.sayings import Said
from lab.history_strategies import History
from lab.naive.checker import ANOMALIES

pytestmark = pytest.mark.lengthy

ROW = Row(
    seed=7,
    clean=1,
    per_sin=1,
    histories=40,
    found={"skipped": 3},
    undecided={"skipped": 2},
    differ={},
    shortest={},
    source_digest="s1",
    checker_digest="c1",
    commit="abc",
)
DIFFERENT = replace(ROW, seed=8, differ={"skipped": 1}, shortest={"skipped": "the plan"})


def test_a_seed_draws_its_own_histories() -> None:
    """The same again with the same seed, others with another, and none of them those of `make test`."""
    plans = [[asdict(history.plan) for history in drawn("skip", 3, seed=seed)] for seed in (1, 1, 2, None)]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]
    assert plans[3] not in plans[:3]


def test_a_difference_is_found_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A judge that is blind to commits ahead differs from the other wherever there is one; nothing else does."""

    says, said = sayings.vectorised_says, dict[str, Mapping[str, Said]]()

    def seeing(history: History) -> Mapping[str, Said]:
        return said.setdefault(str(history.plan), says(history))

    def blind(history: History) -> Mapping[str, Said]:
        seen = said[str(history.plan)]
        return {**seen, "commit-ahead": (Counter(), seen["commit-ahead"][1])}

    monkeypatch.setattr(agreement, "ROWS", tmp_path / "rows.jsonl")
    monkeypatch.setattr(agreement, "PAGE", tmp_path / "page.md")
    few = ["--per-sin", "1", "--clean", "1", "--seed", "1"]
    monkeypatch.setattr(sayings, "vectorised_says", seeing)
    assert agreement.main(few) == 0
    monkeypatch.setattr(sayings, "vectorised_says", blind)
    assert agreement.main(few) == 1
    same, different = read_rows(tmp_path / "rows.jsonl")
    ahead = same.found["commit-ahead"]
    assert (same.differ, different.differ) == ({}, {"commit-ahead": ahead})
    assert f"of seed 1: the judges differ on {ahead}" in capsys.readouterr().out
    assert "- commit-ahead, seed 1: `Plan(" in (tmp_path / "page.md").read_text()


def test_the_page_is_that_of_the_rows() -> None:
    """Made again from the stored rows: the same bytes, and nowhere do the two differ."""
    rows = read_rows(agreement.ROWS)
    assert page(rows, ANOMALIES) == agreement.PAGE.read_text()
    assert [row for row in counting(rows) if row.differ] == []


def test_the_page_counts_what_was_asked_last() -> None:
    """Rows of an earlier harness, or of another checker, are told of in one line."""
    rows = [DIFFERENT, replace(ROW, checker_digest="c0"), replace(ROW, seed=9, source_digest="s2"), ROW]
    assert counting(rows) == [DIFFERENT, ROW]
    told = page(rows, ["skipped"])
    assert "| skipped | 6 | 4 | 1 |" in told
    assert "- skipped, seed 8: `the plan`" in told
    assert "Of earlier judges: 2 seeds, the two differed on 0 of them." in told


def test_the_page_of_no_rows() -> None:
    """Nobody was asked: it does not say that they agree."""
    assert "Nobody was asked." in page([], ["skipped"])
