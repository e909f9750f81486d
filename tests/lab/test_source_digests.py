"""The two digests: what makes a history, and what judges it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.calibration import source_digests

pytestmark = pytest.mark.lengthy


def inside(files: list[Path]) -> set[str]:
    return {file.relative_to(source_digests.PACKAGE).as_posix() for file in files}


def test_the_judge_is_what_judging_imports() -> None:
    """Invariants, frames and the claim's rules; no producer, no fault, no member."""
    judge = inside(source_digests._part(source_digests.JUDGES, source_digests.JUDGING_FOLDERS))
    assert {
        "judge/history_reader.py",
        "model/commits_ahead.py",
        "verdict/decide.py",
    } <= judge
    assert not judge & {"workload/producer.py", "nemesis/members.py", "consumers/member.py", "trial/run.py"}


def test_the_story_of_a_trial_makes_histories() -> None:
    """The run and its environment are found by their imports."""
    assert {"trial/run.py", "trial/environment.py", "process/waiting.py"} <= inside(
        source_digests._closure(source_digests.MAKES)
    )


def test_no_anomaly_makes_a_history() -> None:
    """Of the judge only the bounds, and who is in the group: a run drains for as long as its group may take."""
    makes = inside(source_digests._part(source_digests.MAKES, source_digests.MAKING_FOLDERS))
    assert {file for file in makes if file.startswith(("anomalies/", "model/", "judge/", "verdict/"))} == {
        f"model/{name}.py"
        for name in (
            *("drain_backlog", "liveness_bounds", "trial_context", "group_timeouts", "kernels"),
            *("rejoining", "group_presence", "wall_clock"),
        )
    }


@pytest.mark.parametrize(
    ("file", "makes", "judges"),
    [
        ("nemesis/members.py", True, False),
        ("verdict/decide.py", False, True),
        ("process/waiting.py", True, True),
        ("trial/runs.py", False, False),
    ],
)
def test_a_change_counts_where_it_matters(
    file: str, makes: bool, judges: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed fault asks for new trials, a changed rule for another judgement, a changed demo for neither."""
    digests = source_digests.making_digest, source_digests.judging_digest
    before = [digest() for digest in digests]
    copy = shutil.copytree(source_digests.PACKAGE, tmp_path / "kafka_trial")
    monkeypatch.setattr(source_digests, "PACKAGE", copy)
    with (copy / file).open("a") as source:
        source.write("changed = True\n")
    assert [digest.__wrapped__() != old for digest, old in zip(digests, before, strict=True)] == [makes, judges]


def plain(code: str, tmp_path: Path) -> set[str]:
    """What is left of a module."""
    (tmp_path / "module.py").write_text(code)
    return source_digests._definitions(tmp_path / "module.py")


WAIT = """
def wait(within_s: float) -> None:
    deadline_s = now() + within_s
    sleep(deadline_s)
"""


@pytest.mark.parametrize(
    ("code", "same"),
    [
        ('"""What it is for."""\nfrom somewhere import now, sleep\n# a word\n' + WAIT, True),
        (WAIT.replace("    deadline", '    """Waits."""\n    import gc\n    deadline', 1), True),
        ("if TYPE_CHECKING:\n    import typing\n__all__ = ['wait']\n" + WAIT, True),
        (WAIT.replace("wait(", "pause(").replace("deadline_s", "until_s"), True),
        (WAIT.replace("sleep(deadline_s)", "sleep(within_s)"), False),
        (WAIT.replace("within_s: float", "within_s: float = 1.0"), False),
        (WAIT + "wait(1.0)\n", False),
        ("from somewhere import pause as sleep\n" + WAIT, False),
    ],
    ids=[
        "imports",
        "docstrings",
        "for types",
        "renamed",
        "another argument",
        "another default",
        "another statement",
        "another function by the name",
    ],
)
def test_what_makes_histories_is_what_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, same: bool
) -> None:
    """Imports, docstrings and comments do not count, nor names whose former ones are known."""
    monkeypatch.setattr(source_digests, "FORMER", {"pause": "wait", "until_s": "deadline_s"})
    assert (plain(code, tmp_path) == plain(WAIT, tmp_path)) == same


def test_a_definition_may_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From one module that makes histories to another."""
    before = source_digests.making_digest()
    copy = shutil.copytree(source_digests.PACKAGE, tmp_path / "kafka_trial")
    monkeypatch.setattr(source_digests, "PACKAGE", copy)
    text = (copy / "process" / "waiting.py").read_text()
    (copy / "process" / "waiting.py").rename(copy / "cluster" / "pausing.py")
    (copy / "process" / "waiting.py").write_text("from kafka_trial.cluster.pausing import *\n")
    assert (text, source_digests.making_digest.__wrapped__()) == ((copy / "cluster" / "pausing.py").read_text(), before)
