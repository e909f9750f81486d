"""Tiers: what rotates takes turns, each test within five rotations, and everything else runs each time."""

from __future__ import annotations

from collections import Counter

import pytest

import tiers

MODULE = """
import pytest

@pytest.mark.rotates
@pytest.mark.parametrize("number", range(12))
def test_many(number): pass

@pytest.mark.parametrize("kind, target", [pytest.param(*one, marks=pytest.mark.rotates(one[0])) for one in [
    ("stall", "member"), ("stall", "leader"), ("stall", "all"), ("kill", "member")]])
def test_kinds(kind, target): pass

def test_each_time(): pass
"""
WHOLE = """
import pytest
pytestmark = pytest.mark.rotates(together="dear")
def test_one_of_{0}(): pass
def test_other_of_{0}(): pass
"""


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, rotation: int | str, *more: str) -> set[str]:
    """The tests that ran in a rotation."""
    monkeypatch.setenv("ROTATION", str(rotation))
    pytester.makepyfile(test_turns=MODULE, test_dear=WHOLE.format("dear"), test_dearer=WHOLE.format("dearer"))
    pytester.makeini("[pytest]\nmarkers = rotates")
    result = pytester.inline_run("-p", "tiers", *(more or ("--tier", "everyday")))
    return {
        report.nodeid.rpartition("::")[2] for report in result.getreports() if getattr(report, "when", "") == "call"
    }


def test_every_test_has_its_turn_within_five_rotations(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twelve two or three at a time, of every kind one target each time, of two files that take turns one as a
    whole; what does not rotate runs always."""
    runs = [run(pytester, monkeypatch, rotation) for rotation in range(tiers.TURNS)]
    times = Counter(name for names in runs for name in names)
    assert len(times) == 21
    files = [{name.partition("_of_")[2]: name for name in names if "_of_" in name} for names in runs]
    assert [list(file) for file in files] == [["dear"], ["dearer"], ["dear"], ["dearer"], ["dear"]]
    assert times["test_one_of_dear"] == times["test_other_of_dear"] == 3
    assert {name: count for name, count in times.items() if name.startswith("test_many") and count != 1} == {}
    assert times["test_each_time"] == times["test_kinds[kill-member]"] == tiers.TURNS
    assert [sum(name.startswith("test_kinds[stall") for name in names) for names in runs] == [1] * tiers.TURNS


def test_within_a_file_that_takes_turns_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that the file has its turn, the next of them."""
    names = ["killed", "paused", "stalled"]
    for rotation in (2, 4):
        told = []
        for turn in range(4):
            monkeypatch.setenv("ROTATION", str(rotation + turn * tiers.TURNS))
            told.append(tiers.in_turn(names))
        assert told == [*names, names[0]]


def test_all_is_all(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the rotation."""
    assert len(run(pytester, monkeypatch, 3, "--tier", "all")) == 21


def test_the_rotation_is_told_and_follows_from_the_commit(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next commit has the next turn; a number that is none chooses nothing."""
    monkeypatch.delenv("ROTATION", raising=False)
    assert tiers.rotation() == tiers._commits() % tiers.TURNS
    monkeypatch.setenv("ROTATION", "x")
    assert tiers.rotation() == tiers._commits() % tiers.TURNS
    monkeypatch.setenv("ROTATION", "7")
    pytester.makepyfile("def test_one(): pass")
    told = pytester.runpytest("-p", "tiers", "--tier", "everyday")
    told.stdout.fnmatch_lines(["tier: everyday, rotation 2 of 0 to 4 (ROTATION=2 repeats it, make test-all runs all)"])
