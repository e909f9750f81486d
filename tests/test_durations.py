"""Durations: what a test took is written down, and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import durations


def test_every_test_leaves_its_line(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """With its outcome, the worst of its phases, and without the option nothing."""
    pytester.makepyfile(
        test_three="""
        import pytest

        @pytest.fixture
        def broken():
            yield
            raise RuntimeError

        def test_good(): pass
        def test_bad(): assert False
        def test_left_broken(broken): pass
        @pytest.mark.skip(reason="no tool")
        def test_skipped(): pass
        """
    )
    file = tmp_path / "durations.jsonl"
    pytester.runpytest("-p", "durations", f"--durations-file={file}")
    rows = durations.read(file)
    (collected,) = (row["collected"] for row in rows if "collected" in row)
    rows = [row for row in rows if "test" in row]
    assert collected == [row["test"] for row in rows]
    assert {row["test"].rpartition("::")[2]: row["outcome"] for row in rows} == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_left_broken": "failed",
        "test_skipped": "skipped",
    }
    assert [row["reason"] for row in rows if "reason" in row] == ["no tool"]
    assert all(0 <= row["setup_s"] <= row["seconds"] < 60 for row in rows)


def test_tests_of_workers_leave_one_line_each(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker says what was collected; who started them, how each test ended, unless it took its worker along."""
    monkeypatch.setenv("PYTHONPATH", str(Path(durations.__file__).parent))
    pytester.makepyfile(
        test_a="def test_good(): pass\ndef test_bad(): assert False", test_b="import os\ndef test_gone(): os._exit(1)"
    )
    file = tmp_path / "durations.jsonl"
    pytester.runpytest_subprocess("-n2", "--dist=loadfile", "-p", "durations", f"--durations-file={file}")
    rows = durations.read(file)
    ended = sorted((row["test"], row["outcome"]) for row in rows if "test" in row)
    assert ended == [("test_a.py::test_bad", "failed"), ("test_a.py::test_good", "passed")]
    (lost,) = durations.problems(rows, wall_s=1.0, budget_s=None)
    assert "test_b.py::test_gone" in lost


def test_the_slowest_are_told_first() -> None:
    """And how long all took, by the clock and one after the other."""
    rows = [{"test": f"t{number}", "outcome": "passed", "seconds": float(number)} for number in range(1, 13)]
    head, *slowest = durations.summary(rows, wall_s=61.0)
    assert head == "12 tests (12 passed) in 1:01 of wall clock, 1:18 one after the other; slowest:"
    assert [line.split()[-1] for line in slowest] == [f"t{number}" for number in range(12, 2, -1)]


def test_why_tests_were_skipped_is_told_last() -> None:
    """Each reason once, with how many it were."""
    skipped = {"outcome": "skipped", "seconds": 0.1}
    rows = [
        {"test": "a", "outcome": "passed", "seconds": 1.0},
        {"test": "b", "reason": "no tool", **skipped},
        {"test": "c", "reason": "no tool", **skipped},
        {"test": "d", "reason": "no kernel", **skipped},
        {"test": "e", **skipped},
    ]
    assert durations.summary(rows, wall_s=2.0)[-3:] == [
        "skipped: 1 × no kernel",
        "skipped: 1 × no reason was given",
        "skipped: 2 × no tool",
    ]


def test_a_test_that_left_no_line_and_a_budget_overrun_fail_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are told, with what to do; inside the budget and complete, nothing is. CI only tells an overrun: how fast
    its machine is, others on that host decide.
    """
    rows = [
        {"collected": ["a", "b"]},
        {"collected": ["c"]},
        *({"test": name, "outcome": "passed", "seconds": 1.0} for name in "ac"),
    ]
    assert durations.problems(rows, wall_s=961.0, budget_s=900.0) == [
        "1 tests were collected and never ended: b",
        "took 16:01, 1:01 more than its budget of 15:00: make the slowest faster, or let them rotate (tests/tiers.py)",
    ]
    whole = [*rows, {"test": "b", "outcome": "skipped", "seconds": 0.0}]
    assert durations.problems(whole, wall_s=900.0, budget_s=900.0) == []
    assert durations.problems(whole, wall_s=9000.0, budget_s=None) == []
    file = tmp_path / "durations.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in whole))
    for strictness, overrun in (("", 1), (durations.TOLD, 0)):
        monkeypatch.setenv(durations.STRICTNESS, strictness)
        told = [durations.main("summarise", file, "901", *budget) for budget in (["900"], ["902"], [])]
        assert told == [overrun, 0, 0]
        assert "took 15:01, 0:01 more than its budget of 15:00" in capsys.readouterr().out


def test_a_stopped_run_goes_on_with_what_has_not_passed(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """What failed is run again, and its last outcome counts."""
    pytester.makepyfile(test_two="def test_good(): pass\ndef test_bad(): assert False")
    file = tmp_path / "durations.jsonl"
    options = ("-p", "durations", f"--durations-file={file}", "--skip-passed")
    pytester.runpytest(*options).assert_outcomes(passed=1, failed=1)
    pytester.makepyfile(test_two="def test_good(): pass\ndef test_bad(): pass")
    pytester.runpytest(*options).assert_outcomes(passed=1, deselected=1)
    pytester.runpytest(*options).assert_outcomes(deselected=2)
    assert {row["outcome"] for row in durations.last_of_each(durations.read(file))} == {"passed"}


def test_without_a_file_nobody_knows_what_has_passed(pytester: pytest.Pytester) -> None:
    """A usage error, before anything runs."""
    pytester.makepyfile("def test_one(): pass")
    result = pytester.runpytest("-p", "durations", "--skip-passed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--skip-passed needs --durations-file*"])


def test_a_whole_run_is_kept_as_one_row() -> None:
    """With the wall clock of all its parts."""
    rows = [
        {"test": "a", "outcome": "failed", "seconds": 1.0},
        {"wall_s": 5.0},
        {"test": "a", "outcome": "passed", "seconds": 2.0},
        {"test": "b", "outcome": "skipped", "seconds": 0.0},
        {"wall_s": 6.2},
    ]
    told = durations.run_row(rows, commit="abc", date="2026-01-02")
    about = {"commit": "abc", "date": "2026-01-02", "wall_s": 11}
    assert told == about | {"tests": 2, "failed_once": 1, "passed": 1, "skipped": 1}
