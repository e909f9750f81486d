"""Host and commits, as run.json has them."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from kafka_trial.trial.provenance import git_state, provenance

NOBODY = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")


def git(folder: Path, *words: str) -> str:
    """Returns what git prints in a folder."""
    command = ["git", "-C", str(folder), *NOBODY, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def consumer(tmp_path: Path) -> Path:
    """Returns a consumer's folder in a repository of a team, committed."""
    folder = tmp_path / "team" / "orders"
    folder.mkdir(parents=True)
    (folder / "consumer.toml").write_text("schema = 1\n")
    (tmp_path / "team" / "other.txt").write_text("of somebody else\n")
    git(tmp_path, "init", "-q", "team")
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "-qm", "first")
    return folder


def test_a_folder_that_is_as_committed(consumer: Path, tmp_path: Path) -> None:
    """Its commit; what was changed elsewhere in the repository does not count."""
    (consumer.parent / "other.txt").write_text("changed\n")
    head = git(consumer, "rev-parse", "HEAD")
    assert git_state(consumer, run=tmp_path) == {"commit": head, "changed": 0, "untracked": 0}


def test_what_differs_from_the_commit_is_counted(consumer: Path) -> None:
    """A changed file and a new one; the run folder beside consumer.toml is the trial's own."""
    (consumer / "consumer.toml").write_text("schema = 1\n# changed\n")
    (consumer / "new.py").touch()
    run = consumer / "trial-runs" / "one"
    run.mkdir(parents=True)
    (run / "run.json").touch()
    state = git_state(consumer, run=run)
    assert state is not None
    assert (state["changed"], state["untracked"]) == (1, 1)


def test_a_folder_that_git_does_not_track_has_no_commit(consumer: Path, tmp_path: Path) -> None:
    """Outside of a repository, and inside of one that ignores it: an installed package in a team's `.venv`."""
    ignored = consumer / ".venv"
    ignored.mkdir()
    (ignored / "module.py").touch()
    (consumer / ".gitignore").write_text(".venv\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    assert [git_state(folder, run=tmp_path) for folder in (ignored, outside, tmp_path / "missing")] == [None] * 3


def test_a_hook_of_another_repository_does_not_mislead(
    consumer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git's own variables, as a hook has them, name another repository: they are not heard."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    state = git_state(consumer, run=tmp_path)
    monkeypatch.delenv("GIT_DIR")
    assert state is not None
    assert state["commit"] == git(consumer, "rev-parse", "HEAD")


def test_without_git_the_host_is_told_alone(consumer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not known is not there: run.json has no empty commit."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance(consumer, run=tmp_path) == {"host": platform.node()}
