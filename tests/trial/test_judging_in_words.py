"""How long judging is said to take: at least so long, never a guess."""

from __future__ import annotations

from pathlib import Path

from kafka_trial.history.store import create_run_folder
from kafka_trial.trial.judge_process import judging_in_words


def test_judging_says_how_long_it_takes_at_least(tmp_path: Path) -> None:
    """By the size of the history, on a machine that has nothing else to do; how long at most nobody knows."""
    folder = create_run_folder(tmp_path / "run", "control", "somebody")
    (folder.history / "run.jsonl").write_bytes(b"x" * 48_000_000)
    assert judging_in_words(folder) == (
        "judging 48 MB of history: at least 3 s, longer on a busy machine or the first time"
    )
