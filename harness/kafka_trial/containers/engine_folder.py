"""The folder of a private engine: its socket, and who holds it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from kafka_trial.cluster.user_cache import cache_folder

SOCKET_PATH_MAX_BYTES = 100  # the kernel takes 107, and dockerd and containerd make longer ones below it


def engine_folder() -> Path:
    """Returns where this user's private engine belongs, which `make dockerd` starts."""
    return cache_folder() / "engine"


def host_of(folder: Path) -> str:
    """Returns the DOCKER_HOST of the private engine in a folder."""
    return f"unix://{folder / 'docker.sock'}"


def log_of(folder: Path) -> Path:
    """Returns the file that dockerd and its holder write to; beside the folder, so that it outlives it."""
    return folder.with_name(f"{folder.name}.log")


def key_of(folder: Path) -> str:
    """Returns what a private engine's bridge, control groups and firewall rule are called: at most 15 characters."""
    return f"ktrial-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Holder:
    """The process that holds a private engine, by pid and start time: a number may be somebody else's by now."""

    pid: int
    started_s: float

    @classmethod
    def this_process(cls) -> Holder:
        return cls(os.getpid(), psutil.Process().create_time())

    def process(self) -> psutil.Process | None:
        """Returns the process; None when it is gone."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.started_s) < 1 and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


def write_holder(folder: Path) -> None:
    """Says that this process holds the engine in a folder, which serves from now on."""
    place = _state(folder)
    temporary = place.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(asdict(Holder.this_process())))
    temporary.rename(place)


def holder_of(folder: Path) -> psutil.Process | None:
    """Returns the process that holds the engine in a folder; None when none does."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Holder(**json.loads(_state(folder).read_text())).process()
    return None


def forget_holder(folder: Path) -> None:
    """Removes what says who holds the engine in a folder."""
    _state(folder).unlink(missing_ok=True)


def _state(folder: Path) -> Path:
    return folder / "holder.json"
