"""What a member that ended by itself said last."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.consumers.member import exited, is_ready
from kafka_trial.consumers.spec import Ready


def member(file: Path) -> Any:
    return SimpleNamespace(name="m0", incarnation=0, exit_code=1, stderr_file=file, oom_killed=False)


def test_the_last_words_are_quoted(tmp_path: Path) -> None:
    """The last three lines of stderr, and where the rest is."""
    file = tmp_path / "m0-0.stderr"
    file.write_text("Traceback\n  one\n  two\n\nModuleNotFoundError: No module named 'orders'\n")
    assert exited(member(file)).message == (
        "with status 1; its last words in logs/m0-0.stderr: one / two / ModuleNotFoundError: No module named 'orders'"
    )


def test_one_that_said_nothing(tmp_path: Path) -> None:
    """Neither a file nor a word is needed."""
    assert exited(member(tmp_path / "m0-0.stderr")).message.endswith("it wrote nothing to logs/m0-0.stderr")


@pytest.mark.parametrize(
    ("by_hand", "assigned", "spoke", "ready"),
    [(False, True, True, True), (False, False, True, False), (True, False, True, True), (True, False, False, False)],
)
def test_who_assigns_itself_is_ready_by_any_word(by_hand: bool, assigned: bool, spoke: bool, ready: bool) -> None:
    """It has no callback that could say that it was assigned; members of a group have."""
    one: Any = SimpleNamespace(alive=True, log_match=None, assigned=assigned, spoke=spoke)
    assert is_ready(one, Ready(), url="", by_hand=by_hand) is ready
