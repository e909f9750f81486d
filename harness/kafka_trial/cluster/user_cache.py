"""The per-user cache: what is fetched or made once lies here, whole or not at all; and the tools that make it.

Safe for two processes at once (file locks) and after a kill (made in a temporary place, moved when whole).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from kafka_trial.errors import StartError, WaitTimeout
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.steps import step


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
    """Holds the lock of one part of the cache, and waits for whoever holds it.

    Raises:
        StartError: the cache cannot be written.
    """
    folder = cache_folder() / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError as error:
        remedy = "set KAFKA_TRIAL_CACHE to a folder that can be written"
        raise StartError(f"the cache {cache_folder()} cannot be written: {error.strerror}; {remedy}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step(f"waiting for another trial that makes {name} in {cache_folder()}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


MADE_WITHIN_S = 900
PRINTED_MAX_BYTES = 1_000_000


def run_tool(
    name: str,
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    what: str = "",
    about: str = "",
    done: Callable[[str], str] | None = None,
) -> tuple[int, str]:
    """Runs one tool, which dies with the harness (a second one must not write where it still writes).

    `what` it does and `about` how long that takes are told, and `done`, how much of it, which is asked with all that
    the tool has printed.

    Raises:
        StartError: it did not end in time.
    """
    with tempfile.TemporaryFile() as output:

        def printed() -> str:
            return os.pread(output.fileno(), PRINTED_MAX_BYTES, 0).decode(errors="replace")

        counted = None if done is None else lambda: done(printed())
        with step(what or f"running {name}", about=about, done=counted), ChildProcesses(name) as child_processes:
            child = child_processes.spawn(name, command, cwd=cwd, env=env, stdout=output, stderr=output)
            try:
                status = child.wait(within_s=MADE_WITHIN_S)
            except WaitTimeout as error:
                raise StartError(f"{error}. Check the network, then run again: what has arrived is kept.") from error
        output.seek(0)
        return status, output.read().decode(errors="replace")


def megabytes(files: Iterable[Path]) -> int:
    """Returns how many MB (10^6 bytes) files hold; those that have gone meanwhile hold none."""
    size_bytes = 0
    for file in files:
        with suppress(OSError):
            size_bytes += file.stat().st_size
    return size_bytes // 1_000_000


def tail(text: str, *, lines: int = 6) -> str:
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])[-1200:]
