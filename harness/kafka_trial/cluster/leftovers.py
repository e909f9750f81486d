"""What earlier runs left behind: processes whose harness is gone, folders nobody uses, state of clusters that died.

Only named, never removed: `doctor` shows each with what to do.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from kafka_trial.cluster.detached_state import holder_of, states
from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.process import supervisor

MARKER = "-Dkafka.trial.cluster="
FOLDER_PREFIX = "kafka-trial-kt"
SCRATCH_PREFIX = "kafka-trial-judge-"
# By the place of its file in an installation; other ones on this machine may be of the version before.
SUPERVISORS = ("/".join(Path(supervisor.__file__).parts[-3:]), "kafka_trial/supervisor.py")
INIT = 1


@dataclass(frozen=True)
class Leftover:
    """One thing left behind, where it is, and what to do about it."""

    what: str
    where: str
    remedy: str


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    user: int
    command: tuple[str, ...]


def leftovers() -> list[Leftover]:
    """Returns everything of this user that an earlier run left behind."""
    processes = {process.pid: process for process in _processes()}
    return [*_orphans(processes), *_folders(processes), *_parts(), *_states()]


def _orphans(processes: dict[int, _Process]) -> Iterator[Leftover]:
    """Names supervisors without a harness and brokers without a supervisor."""
    for process in processes.values():
        if process.user != os.getuid():
            continue
        if _is_supervisor(process) and _harness_is_gone(process.parent):
            remedy = f"kill -9 {process.pid} ends it and everything it started"
            yield Leftover("leftover supervisor", f"pid {process.pid}, its harness is gone", remedy)
        place = _cluster_folder(process)
        if place and not _is_supervised(process, processes):
            where = f"pid {process.pid}, a broker of {place} without a supervisor"
            yield Leftover("leftover broker", where, f"kill -9 {process.pid}")


def _folders(processes: dict[int, _Process]) -> Iterator[Leftover]:
    """Names folders of clusters and judges that no running process was started for."""
    used = {_cluster_folder(process) for process in processes.values()}
    used |= {word for process in processes.values() for word in process.command if SCRATCH_PREFIX in word}
    for prefix, whose in {FOLDER_PREFIX: "cluster", SCRATCH_PREFIX: "judge"}.items():
        for folder in sorted(Path(tempfile.gettempdir()).glob(f"{prefix}*")):
            mine = folder.stat().st_uid == os.getuid()
            if mine and str(folder) not in used and not _is_young(folder):
                yield Leftover("leftover folder", f"{folder}, of a {whose} that was killed", f"rm -r {folder}")


def _parts() -> Iterator[Leftover]:
    """Names what was being made in the cache by a process that is gone (`.<name>.<pid>`)."""
    for place in sorted(cache_folder().glob("*/.*")):
        pid = place.name.rpartition(".")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            yield Leftover("half-made part", str(place), f"rm -r {place}; the next run makes it anew")


def _states() -> Iterator[Leftover]:
    for state in states():
        if holder_of(state) is None:
            where = f"cluster {state.name}, whose holder (pid {state.pid}) is gone"
            yield Leftover("stale state", where, f"kafka-trial cluster down {state.name}")


def _processes() -> Iterator[_Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied), process.oneshot():
            yield _Process(process.pid, process.ppid(), process.uids().real, tuple(process.cmdline()))


def _cluster_folder(process: _Process) -> str | None:
    return next((word.removeprefix(MARKER) for word in process.command if word.startswith(MARKER)), None)


def _is_supervised(process: _Process, processes: dict[int, _Process]) -> bool:
    """Tells whether a supervisor is above a process, or somebody is who cannot be looked at and may be one."""
    while process.parent > INIT:
        above = processes.get(process.parent)
        if above is None or _is_supervisor(above):
            return True
        process = above
    return False


def _is_supervisor(process: _Process) -> bool:
    """Tells whether a process is a supervisor, of this installation or of any other on this machine."""
    return any(word.endswith(SUPERVISORS) for word in process.command)


def _harness_is_gone(parent: int) -> bool:
    """Tells whether a supervisor's parent can be no harness: an orphan's is init, or another reaper.

    A parent that cannot be looked at may be one.
    """
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return "python" not in Path(psutil.Process(parent).exe()).name
    return parent == INIT


def _is_young(folder: Path) -> bool:
    """Tells whether a process may be about to start in `folder`: none carries its name yet."""
    return time.time() - folder.stat().st_mtime < 60
