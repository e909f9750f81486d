"""The per-user cache: what is fetched or made once lies here, whole or not at all; and the tools that make it.

Safe for two processes at once (file locks) and after a kill (made in a temporary place, moved when whole).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafka_trial.errors import StartError, WaitTimeout
from kafka_trial.process.children import ChildProcesses


def cache_folder() -> Path:
    """Returns the per-user cache: $KAFKA_TRIAL_CACHE, else $XDG_CACHE_HOME/kafka-trial, else ~/.cache/kafka-trial."""
    given = os.environ.get("KAFKA_TRIAL_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-trial"


@contextmanager
def made_once(place: Path, lock: str) -> Iterator[Path | None]:
    """Yields a temporary path to make `place` at, under a lock, or None when it is there; then moves it."""
    with locked(lock):
        if place.exists():
            yield None
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.{os.getpid()}")
        remove(temporary)
        try:
            yield temporary
            temporary.rename(place)
        finally:
            remove(temporary)


@contextmanager
def locked(name: str) -> Iterator[None]:
    folder = cache_folder() / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError as error:
        remedy = "set KAFKA_TRIAL_CACHE to a folder that can be written"
        raise StartError(f"the cache {cache_folder()} cannot be written: {error.strerror}; {remedy}") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


MADE_WITHIN_S = 900


def run_tool(
    name: str, command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Runs one tool, which dies with the harness (a second one must not write where it still writes)."""
    with tempfile.TemporaryFile() as output:
        with ChildProcesses(name) as child_processes:
            child = child_processes.spawn(name, command, cwd=cwd, env=env, stdout=output, stderr=output)
            try:
                status = child.wait(within_s=MADE_WITHIN_S)
            except WaitTimeout as error:
                raise StartError(f"{error}. Check the network, then run again: what has arrived is kept.") from error
        output.seek(0)
        return status, output.read().decode(errors="replace")


def tail(text: str, *, lines: int = 6) -> str:
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])[-1200:]
