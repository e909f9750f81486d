"""Consumers that are built first, by the shell lines that a user is told, and then tried."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kafka_trial import registry
from kafka_trial.trial.session import Session
from requirements import TOOLS, missing

BUILT_WITHIN_S = 600


def build(lines: Sequence[str], folder: Path) -> None:
    """Runs the lines in a folder; skips, or fails where the machine must have it, if a tool is missing that begins one
    of them."""
    for tool in [words[0] for words in map(str.split, lines) if words[0] in TOOLS and shutil.which(words[0]) is None]:
        missing(tool, f"{tool} is not on PATH: {folder.name} cannot be built")
    for line in lines:
        built = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, timeout=BUILT_WITHIN_S)
        assert built.returncode == 0, f"{line}\n{built.stdout}\n{built.stderr}"


def must_survive_kills(folder: Path, session: Session) -> None:
    """Tries what was built in a folder on member-killed; the run folder stands beside it."""
    trial_outcome = session.try_one(
        registry.scenarios()["member-killed"], folder / "consumer.toml", out=folder.parent / "run", retry_unknown=1
    )
    assert trial_outcome.verdict.verdict == "pass", trial_outcome.text
