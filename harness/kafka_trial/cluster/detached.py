"""Clusters that stay up between commands: `cluster up | down | status | list`, and the files by which they are found.

Each has a holder: a process that owns the cluster's processes and ends with it at SIGTERM or Ctrl-C. With `--detach`
the holder runs in the background. Its state file says who it is and where the cluster is reached: by pid *and* start
time, so that a number the kernel has given to somebody else is never signalled.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

import psutil

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.cluster.versions import DEFAULT_VERSION, find_version
from kafka_trial.errors import (
    INTERRUPTED,
    NOT_BEGUN,
    PASS,
    InputError,
    KafkaTrialError,
    StartError,
    UnjudgeableError,
    WaitTimeout,
    unknown_name,
)
from kafka_trial.process.children import start_detached
from kafka_trial.process.steps import step
from kafka_trial.process.waiting import wait_until

UP_WITHIN_S = 900.0  # the first time provisions: jars, archive, Toxiproxy
DOWN_WITHIN_S = 60.0
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
BROKERS_MAX = 9


def up(version: str | None, *, brokers: int = 3, name: str | None = None, detach: bool = False) -> int:
    """Boots a cluster and prints where it is reached; in the foreground it stays until Ctrl-C or `down`.

    Raises:
        InputError: the version, the name or the number of brokers makes no sense, or the name is taken.
        StartError: it did not come up.
    """
    given = name or f"c{secrets.token_hex(2)}"
    known = find_version(version or DEFAULT_VERSION)
    _check(given, brokers)
    if not detach:
        return hold(given, known, brokers)
    log = state_folder() / f"{given}.log"
    command = [sys.executable, "-m", "kafka_trial.cluster.detached", given, known, str(brokers)]
    holder = start_detached(command, log=log)
    try:
        with step(f"booting cluster {given} in the background", about=f"what it fetches and builds first: {log}"):
            state = _come_up(given, holder, log)
        print(state_lines(state))
    except KeyboardInterrupt:
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder, signal.SIGTERM)
        raise
    return PASS


def down(name: str | None = None) -> int:
    """Ends a cluster and returns when its processes are gone.

    Raises:
        InputError: there is no such cluster, or several and no name.
        StartError: it is still there after a minute.
    """
    state = find(name)
    holder = holder_of(state)
    if holder is not None:
        holder.terminate()
        try:
            holder.wait(DOWN_WITHIN_S)
        except psutil.TimeoutExpired as error:
            raise StartError(
                f"cluster {state.name} (pid {state.pid}) still runs {DOWN_WITHIN_S:g} s after SIGTERM; "
                f"kill -9 {state.pid} ends it and everything it started"
            ) from error
    state_file(state.name).unlink(missing_ok=True)
    print(f"cluster {state.name} is down")
    return PASS


def status(name: str | None = None) -> int:
    """Prints where a cluster is reached and what is wrong with it; 3 when something is.

    Raises:
        InputError: there is no such cluster, or several and no name.
    """
    state = find(name)
    problems = state_problems(state)
    print(state_lines(state))
    print("\n".join(f"  problem    {problem}" for problem in problems) or "  health     all brokers in sync, no toxics")
    return NOT_BEGUN if problems else PASS


def list_clusters() -> int:
    """Prints one line for each cluster that a holder keeps up, or whose holder is gone."""
    for state in states():
        alive = f"pid {state.pid}" if holder_of(state) else "its holder is gone: `kafka-trial cluster down` clears it"
        print(f"{state.name}  Kafka {state.kafka_version}  {state.brokers} brokers  {alive}")
    return PASS


def hold(name: str, version: str, brokers: int) -> int:
    """Boots a cluster, writes its state file, and keeps it up until SIGTERM or Ctrl-C."""
    booted, ended = threading.Event(), threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()
        if not booted.is_set():
            raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        with process_cluster(version, brokers=brokers) as cluster, written(state_of(name, cluster)) as state:
            booted.set()
            print(state_lines(state), flush=True)
            ended.wait()
    except KeyboardInterrupt:
        return INTERRUPTED
    return PASS


def state_of(name: str, cluster: BootedCluster) -> State:
    """Returns what others need to know of a cluster that this process holds."""
    wiring = cluster.wiring
    return State(
        schema=SCHEMA,
        name=name,
        pid=os.getpid(),
        started_s=psutil.Process().create_time(),
        kafka_version=cluster.kafka_version,
        brokers=len(cluster.brokers),
        lanes=tuple(wiring.lane(index, cluster.name).bootstrap for index in range(wiring.lanes)),
        observer_bootstrap=cluster.observer_bootstrap,
        toxiproxy_port=wiring.toxiproxy_port,
        folder=str(cluster.folder),
        cluster=cluster.name,
    )


def state_problems(state: State) -> list[str]:
    """Returns what is wrong with a cluster, asked from outside; empty when all is well."""
    if holder_of(state) is None:
        return [
            f"its holder (pid {state.pid}) is gone, and the brokers with it: `kafka-trial cluster down {state.name}`"
        ]
    try:
        with Admin(state.observer_bootstrap) as admin:
            missing = set(range(state.brokers)) - admin.broker_ids()
            problems = [f"broker {broker} is not registered" for broker in sorted(missing)] or admin.under_replicated()
        proxies = Toxiproxy(state.toxiproxy_port).proxies().values()
    except UnjudgeableError as error:
        return [str(error)]
    return problems + [
        f"proxy {one.name} is {'toxic' if one.toxics else 'disabled'}"
        for one in proxies
        if one.toxics or not one.enabled
    ]


def state_lines(state: State) -> str:
    """Returns the lines that say where a cluster is reached."""
    return "\n".join(
        [
            f"cluster {state.name}: Kafka {state.kafka_version}, {state.brokers} brokers, {len(state.lanes)} lanes",
            f"  bootstrap  {state.lanes[0]}  (lane 0, through Toxiproxy)",
            f"  observer   {state.observer_bootstrap}  (passes no proxy)",
            f"  toxiproxy  http://127.0.0.1:{state.toxiproxy_port}",
            f"  logs       {state.folder}",
            f"  end it     kafka-trial cluster down {state.name}",
        ]
    )


def _check(name: str, brokers: int) -> None:
    problems = []
    if not NAME.fullmatch(name):
        problems.append(f"--name {name!r}: lower-case letters, digits and hyphens, at most 40, no hyphen first")
    if not 1 <= brokers <= BROKERS_MAX:
        problems.append(f"--brokers {brokers}: from 1 to {BROKERS_MAX}")
    if any(state.name == name and holder_of(state) for state in states()):
        problems.append(f"--name {name}: is up already; `kafka-trial cluster down {name}` ends it")
    if problems:
        raise InputError("up", problems)


def _come_up(name: str, holder: int, log: Path) -> State:
    def up_now() -> State | None:
        return next((state for state in states() if state.name == name and state.pid == holder), None)

    def dead() -> str | None:
        return None if _runs(holder) else "its holder has ended"

    try:
        return wait_until(up_now, within_s=UP_WITHIN_S, what=f"cluster {name} to come up", every_s=0.1, alive=dead)
    except WaitTimeout as error:
        said = log.read_text(errors="replace").strip().splitlines()[-6:]
        raise StartError(f"{error}. It said: {' | '.join(said)}  (all of it: {log})") from error


def _runs(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


def main(arguments: list[str]) -> int:
    """Holds one cluster, as `up --detach` asks: name, version, number of brokers."""
    name, version, brokers = arguments
    try:
        return hold(name, version, int(brokers))
    except KafkaTrialError as error:
        print(error, file=sys.stderr)
        return error.exit_status


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
        raise InputError("cluster", "no detached cluster is running; `kafka-trial cluster up --detach` boots one")
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
