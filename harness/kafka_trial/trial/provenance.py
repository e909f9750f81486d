"""Where a trial ran and of what: host, and the git commits of this harness and of the consumer under trial.

Written into run.json when the trial begins (`setup.py`), for its pages. Nothing is judged by it. A folder that git does
not track, or a machine without git, gives no commit.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

GIT_WITHIN_S = 10.0  # a large repository on a slow disk
HARNESS = Path(__file__).parent.parent


def provenance(consumer: Path, *, run: Path) -> dict[str, Any]:
    """Returns `host`, and `commit` and `consumer_commit` where they are known, for run.json.

    `consumer` is the folder of the consumer's files as its team keeps them, `run` the run folder, which may lie in it.
    """
    commits = {"commit": git_state(HARNESS, run=run), "consumer_commit": git_state(consumer, run=run)}
    return {"host": platform.node(), **{name: state for name, state in commits.items() if state is not None}}


def git_state(folder: Path, *, run: Path) -> dict[str, Any] | None:
    """Returns {commit, changed, untracked} of a folder; None where git tracks nothing in it.

    `changed` counts the folder's tracked files that differ from the commit, `untracked` what git neither tracks nor
    ignores there, without what holds the run folder (a folder `trial-runs` beside consumer.toml).
    """
    if not _git(folder, "ls-files", "-z", "--", "."):
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    top = _git(folder, "rev-parse", "--show-toplevel")
    status = _git(folder, "status", "--porcelain", "-z", "--no-renames", "--", ".")
    if not commit or not top or status is None:
        return None
    entries = [entry for entry in status.split("\0") if entry]
    untracked = [Path(top.strip()) / entry[3:] for entry in entries if entry.startswith("??")]
    return {
        "commit": commit.strip(),
        "changed": len(entries) - len(untracked),
        "untracked": sum(place not in (run.resolve(), *run.resolve().parents) for place in untracked),
    }


def _git(folder: Path, *words: str) -> str | None:
    """Returns what git prints; None where there is no git, no repository, or no answer in time."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # a hook of another one
    environment = {**ours, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}  # it only looks
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_WITHIN_S,
            check=True,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
