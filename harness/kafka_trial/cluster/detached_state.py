"""The state files of clusters that stay up between commands: who holds each, and where it is reached.

The holder is named by pid *and* start time, so that a number the kernel has given to somebody else is never signalled.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from kafka_trial.errors import InputError, StartError, unknown_name

SCHEMA = 1


@dataclass(frozen=True)
class State:
    """What the state file of one cluster says."""

    schema: int
    name: str
    pid: int
    started_s: float
    kafka_version: str
    brokers: int
    lanes: tuple[str, ...]
    observer_bootstrap: str
    toxiproxy_port: int
    folder: str
    cluster: str = ""  # what the cluster itself is called: its proxies' names begin with it


def find(name: str | None) -> State:
    """Returns the state of the named cluster, or of the only one there is.

    Raises:
        InputError: no such cluster; none at all; or several and no name.
    """
    there = {state.name: state for state in states()}
    if not there:
        raise InputError("cluster", "none is up; `kafka-trial cluster up --detach` boots one")
    if name is None and len(there) == 1:
        return next(iter(there.values()))
    if name is None:
        raise InputError("cluster", f"several are up, say which: {', '.join(sorted(there))}")
    if name not in there:
        raise InputError("cluster", unknown_name("cluster", name, there))
    return there[name]


def states() -> list[State]:
    """Returns the state of every cluster, sorted by name; files of a newer schema or half written are left out."""
    found = []
    for file in sorted(state_folder().glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            body = json.loads(file.read_text())
            if body.get("schema") == SCHEMA:
                found.append(State(**body | {"lanes": tuple(body["lanes"])}))
    return found


def state_folder() -> Path:
    """Returns the folder of this user's state files: $XDG_STATE_HOME, else ~/.local/state, and in it kafka-trial."""
    root = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = root / "kafka-trial" / "clusters"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StartError(
            f"{folder} cannot be made: {error.strerror}; set XDG_STATE_HOME to a writable folder"
        ) from error
    return folder


def holder_of(state: State) -> psutil.Process | None:
    """Returns the process that holds a cluster; None when it is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(state.pid)
        if abs(process.create_time() - state.started_s) < 1 and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


@contextlib.contextmanager
def written(state: State) -> Iterator[State]:
    """Keeps the state file there for as long as the `with` lasts; whole from the first moment it is seen.

    Raises:
        StartError: another cluster of this name came up meanwhile.
    """
    place = state_file(state.name)
    for other in states():
        if other.name == state.name and holder_of(other) is None:
            place.unlink(missing_ok=True)
    temporary = place.with_suffix(f".{state.pid}")
    temporary.write_text(json.dumps(asdict(state), indent=1))
    try:
        os.link(temporary, place)  # unlike a rename, refuses to replace
    except FileExistsError as error:
        raise StartError(f"a cluster called {state.name} came up meanwhile: choose another --name") from error
    finally:
        temporary.unlink()
    try:
        yield state
    finally:
        place.unlink(missing_ok=True)
        place.with_suffix(".log").unlink(missing_ok=True)


def state_file(name: str) -> Path:
    """Returns where the state of a cluster stands."""
    return state_folder() / f"{name}.json"
