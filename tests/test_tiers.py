"""Tiers: what rotates takes turns, each test within twenty rotations, and everything else runs each time."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import tiers

MODULE = """
import pytest

@pytest.mark.rotates
@pytest.mark.parametrize("number", range(12))
def test_many(number): pass

@pytest.mark.rotates(every=2)
@pytest.mark.parametrize("number", range(5))
def test_often(number): pass

@pytest.mark.rotates
def test_alone(): pass

def test_each_time(): pass
"""
WHOLE = """
import pytest
pytestmark = pytest.mark.rotates(together="whole")
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


def test_every_test_has_its_turn_within_twenty_rotations(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twelve one at a time or none, each once; of those that want it every second time half; a lone one once; of two
    files that take turns one as a whole; what does not rotate runs always."""
    runs = [run(pytester, monkeypatch, rotation) for rotation in range(tiers.TURNS)]
    times = Counter(name for names in runs for name in names)
    assert len(times) == 23
    files = [{name.partition("_of_")[2]: name for name in names if "_of_" in name} for names in runs]
    assert [list(file) for file in files] == [["dear"], ["dearer"]] * (tiers.TURNS // 2)
    assert times["test_one_of_dear"] == times["test_other_of_dear"] == tiers.TURNS // 2
    assert {name: count for name, count in times.items() if name.startswith("test_many") and count != 1} == {}
    assert {sum(name.startswith("test_many") for name in names) for names in runs} == {0, 1}
    assert {times[f"test_often[{number}]"] for number in range(5)} == {tiers.TURNS // 2}
    assert {sum(name.startswith("test_often") for name in names) for names in runs} == {2, 3}
    assert (times["test_alone"], times["test_each_time"]) == (1, tiers.TURNS)


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
    assert len(run(pytester, monkeypatch, 3, "--tier", "all")) == 23


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
    told.stdout.fnmatch_lines(["tier: everyday, rotation 7 of 0 to 19 (ROTATION=7 repeats it, make test-all runs all)"])


def test_by_what_they_take_files_have_turns_that_level_the_rotations() -> None:
    """The dearest first, each where there is least; every one once."""
    takes = {"a": 30, "b": 100, "c": 60, "d": 50, "e": 40, "f": 20, "g": 10}
    assert tiers.turns(takes, 5) == {"b": 0, "c": 1, "d": 2, "e": 3, "a": 4, "f": 4, "g": 3}


def test_no_rotation_is_much_longer_than_another() -> None:
    """By what the dear files take: no longer than the dearest of them, or a tenth more than their share of them all."""
    takes, whose = tiers.TAKES["dear"], tiers.turns(tiers.TAKES["dear"])
    whole = [sum(takes[file] for file in takes if whose[file] == turn) for turn in range(tiers.TURNS)]
    assert max(whole) <= max(*takes.values(), 1.1 * sum(whole) / tiers.TURNS), whole


def test_what_is_dear_is_known_to_take() -> None:
    """Each file with such tests, and no other."""
    files = {file for file in (tiers.ROOT / "tests").rglob("test_*.py") if file.name != "test_tiers.py"}
    dear = {file for file in files if 'rotates(together="dear")' in file.read_text()}
    assert sorted(tiers.TAKES["dear"]) == sorted(file.relative_to(tiers.ROOT).as_posix() for file in dear)


def test_files_that_have_turns_by_what_they_take(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of them are collected; one that nobody knows is named."""
    takes = {"test_dear.py": 1, "elsewhere.py": 9, "test_dearer.py": 5}
    monkeypatch.setattr(tiers, "TAKES", {"whole": takes})
    runs = [run(pytester, monkeypatch, rotation) for rotation in range(tiers.TURNS)]
    files = [{name.partition("_of_")[2] for name in names if "_of_" in name} for names in runs]
    assert files == [set(), {"dearer"}, {"dear"}, *[set()] * (tiers.TURNS - 3)]
    monkeypatch.setattr(tiers, "TAKES", {"whole": {"test_dear.py": 1}})
    told = pytester.runpytest("-p", "tiers", "--tier", "everyday")
    assert told.ret == pytest.ExitCode.USAGE_ERROR
    told.stderr.fnmatch_lines(["*test_dearer.py* is not in *rotations.toml: add it"])


@pytest.mark.parametrize(
    ("asked", "reads"),
    [
        ("sample and not cluster", 1),
        ("cluster or sample and not cluster", 1),
        ("not cluster", 2),
        ("(sample)", 2),
        ("sample or not cluster", 2),
        ("", 2),
    ],
)
def test_only_files_that_name_the_marker_are_read(asked: str, reads: int, pytester: pytest.Pytester) -> None:
    """Where one is asked for; else all are."""
    pytester.makeini("[pytest]\nmarkers =\n    sample\n    cluster")
    marked = "import pytest\npytestmark = pytest.mark.sample\n"
    pytester.makepyfile(test_marked=f"{marked}def test_one(): pass", test_plain="def test_one(): pass")
    told = pytester.runpytest("-p", "tiers", "-m", asked, "--collect-only")
    told.stdout.fnmatch_lines([f"*collected {reads} item*"])


def test_a_marker_is_named_where_its_tests_are() -> None:
    """No plug-in or other module gives one to tests of a file that does not name it."""
    modules = [file for file in (tiers.ROOT / "tests").rglob("*.py") if not file.name.startswith("test_")]
    marks = re.compile(r"add_marker|mark\.(?!parametrize|usefixtures)\w+")
    assert {file.name: found for file in modules if (found := marks.findall(file.read_text()))} == {}
