"""Diffs of sins and twins are carried over to a reference that has changed, or are left alone and named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kafka_trial.consumers.patched_consumer import apply_diff, program_source
from lab.remake_diffs import main, make_diff

REFERENCE = "".join(f"line {number}\n" for number in range(1, 31))
SINFUL = REFERENCE.replace("line 15\n", "line 15, sinfully\n")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed reference of thirty lines; a sin on it, whose diff has one line of context, and a twin of another."""
    package = tmp_path / "harness" / "kafka_trial"
    package.mkdir(parents=True)
    (package / "faulty").symlink_to("../../fixtures/faulty")
    monkeypatch.setattr("kafka_trial.registry.CHECKOUT", tmp_path)
    monkeypatch.setattr("kafka_trial.registry.PACKAGE", package)
    for name in ("orders", "invoices"):
        _program(tmp_path, name).parent.mkdir(parents=True)
        _program(tmp_path, name).write_text(REFERENCE)
    for patch, on in ((_sin(tmp_path), "orders"), (_twin(tmp_path), "invoices")):
        patch.parent.mkdir(parents=True)
        head = f"--- ../../reference/{on}/main.py\n+++ main.py\n"
        patch.write_text(f"{head}@@ -14,3 +14,3 @@\n line 14\n-line 15\n+line 15, sinfully\n line 16\n")
    _git(tmp_path, "init")
    _commit(tmp_path)
    return tmp_path


def test_a_diff_is_carried_over_a_change_elsewhere(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has both changes then, and applies exactly; the other is not touched. `--check` only tells. Once is enough."""
    changed = REFERENCE.replace("line 3\n", "line 3\nline 3 and a half\n")
    _program(checkout, "orders").write_text(changed)
    before = _sin(checkout).read_text(), _twin(checkout).read_text()
    assert main(["--check"]) == 1
    assert (_sin(checkout).read_text(), _twin(checkout).read_text()) == before
    assert "to be made again: faulty/sheds/sin.diff" in capsys.readouterr().out.replace("fixtures/", "")
    assert main([]) == 0
    assert program_source(_sin(checkout).parent) == changed.replace("line 15\n", "line 15, sinfully\n")
    assert _twin(checkout).read_text() == before[1]
    assert "2 diffs: 1 made again, 0 left to you" in capsys.readouterr().out
    assert main(["--check"]) == 0


def test_a_diff_that_applies_as_it_stands_stays_to_the_byte(checkout: Path) -> None:
    """Whatever its context is: a change that moves no line of it asks for nothing."""
    _program(checkout, "orders").write_text(REFERENCE.replace("line 30", "the end"))
    before = _sin(checkout).read_bytes()
    assert main([]) == 0
    assert _sin(checkout).read_bytes() == before


def test_a_diff_that_applies_to_other_lines_by_now_is_made_again(checkout: Path) -> None:
    """The reference has got the same three lines a second time, just where the first were."""
    above = "new\n" * 13 + "line 14\nline 15\nline 16\n"
    _program(checkout, "orders").write_text(above + REFERENCE)
    assert program_source(_sin(checkout).parent) != above + SINFUL
    assert main([]) == 0
    assert program_source(_sin(checkout).parent) == above + SINFUL
    assert main(["--check"]) == 0


def test_a_conflict_is_named_and_left(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both changed one line; the other diff is made again all the same. A reference with the sin in it leaves none."""
    _program(checkout, "orders").write_text(REFERENCE.replace("line 15\n", "line 15, better\n"))
    _program(checkout, "invoices").write_text(f"line 0\n{REFERENCE}")
    before = _sin(checkout).read_bytes()
    assert main([]) == 1
    assert _sin(checkout).read_bytes() == before
    said = capsys.readouterr()
    assert (
        "sheds/sin.diff: conflicts with its reference in 1 place, the first where that has 'line 15, bett" in said.err
    )
    assert "2 diffs: 1 made again, 1 left to you" in said.out
    _program(checkout, "orders").write_text(f"line 0\n{SINFUL}")
    assert main([]) == 1
    assert "says by itself now what it was to change" in capsys.readouterr().err


def test_a_reference_that_was_committed_without_its_diffs_is_no_obstacle(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The version where a diff applied last is looked for in what came before; what never applied is named."""
    for new in (f"line 0\n{REFERENCE}", f"line -1\nline 0\n{REFERENCE}"):
        _program(checkout, "orders").write_text(new)
        _commit(checkout)
    assert main([]) == 0
    assert program_source(_sin(checkout).parent) == f"line -1\nline 0\n{SINFUL}"
    _sin(checkout).write_text(_sin(checkout).read_text().replace("-line 15", "-line XV"))
    assert main([]) == 1
    assert "sin.diff: applies to no version of orders up to HEAD" in capsys.readouterr().err


def test_a_base_that_is_no_commit_is_wrong_input(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is made."""
    assert main(["--base", "no-such-commit"]) == 2
    assert "--base: 'no-such-commit' is no commit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new"), [("one\ntwo", "one\nthree"), ("one", "one\n"), ("", "one"), ("a\r\n\x0cb\n", "a\n\x0cb\n")]
)
def test_what_is_made_applies(old: str, new: str) -> None:
    """Exactly; ends of files without a newline and other ends of lines too."""
    assert apply_diff(make_diff(old, new, on="main.py"), old, where="a.diff") == new


def test_the_committed_diffs_need_no_remaking() -> None:
    """The command finds nothing to do in this checkout."""
    assert main(["--check"]) == 0


def _program(checkout: Path, name: str) -> Path:
    return checkout / "fixtures" / "reference" / name / "main.py"


def _sin(checkout: Path) -> Path:
    return checkout / "fixtures" / "faulty" / "sheds" / "sin.diff"


def _twin(checkout: Path) -> Path:
    return checkout / "fixtures" / "twins" / "discards" / "twin.diff"


def _commit(checkout: Path) -> None:
    _git(checkout, "add", ".")
    _git(checkout, "commit", "-m", "a version")


def _git(checkout: Path, *words: str) -> None:
    name = ["-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run(["git", "-C", str(checkout), *name, *words], check=True, capture_output=True)
