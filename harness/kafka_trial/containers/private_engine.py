"""A private container engine, for machines that have Debian's `docker.io` and no running Docker.

    python -m kafka_trial.containers.private_engine start|stop|status

`start` leaves one running that everybody of this user shares, and keeps its images; a `with private_engine()` has one
of its own, which dies with the process and leaves nothing. What both do to the machine stands in `holder.py`.
"""

from __future__ import annotations

import contextlib
import grp
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from kafka_trial.cluster.user_cache import locked
from kafka_trial.containers.engine import client_of
from kafka_trial.containers.engine_folder import (
    SOCKET_PATH_MAX_BYTES,
    Holder,
    engine_folder,
    forget_holder,
    holder_of,
    host_of,
    log_of,
)
from kafka_trial.errors import NOT_BEGUN, PASS, InputError, KafkaTrialError, StartError, WaitTimeout, none_of
from kafka_trial.process.children import start_detached
from kafka_trial.process.waiting import wait_until

TOOLS = {
    "dockerd": "docker.io",
    "iptables": "iptables",
    "ip": "iproute2",
    "unshare": "util-linux",
}  # each with its package in Debian
GROUP = "docker"  # whose members may use an engine: Docker's own rule
UP_WITHIN_S = 150.0  # more than its holder waits: for the engine before in its folder, then for dockerd
DOWN_WITHIN_S = 90.0
LAST_LINES = 8


@contextlib.contextmanager
def private_engine(*, kept: Path | None = None) -> Iterator[str]:
    """Starts an engine of one's own and yields its DOCKER_HOST; it ends with the `with`, or with this process.

    Its folder is a temporary one and goes with it, or the one given, where its images are kept for the next time.

    Raises:
        StartError: this user or this machine cannot, the folder has an engine already, or it did not start.
    """
    _check(kept or Path(tempfile.gettempdir()))
    folder = kept or Path(tempfile.mkdtemp(prefix="kafka-trial-engine-"))
    starter = Holder.this_process()
    arguments = [str(starter.pid), str(starter.started_s), "keep" if kept else "remove"]
    holder: psutil.Process | None = None
    try:
        with locked(_lock_of(folder)):
            if holder_of(folder) is not None:
                raise StartError(f"the private engine in {folder} is in use: give another folder, or none")
            holder = _start(folder, *arguments)
        yield host_of(folder)
    finally:
        if holder is not None:
            _end(holder)
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)
            log_of(folder).unlink(missing_ok=True)


def start() -> str:
    """Starts this user's private engine, unless it runs, and returns its DOCKER_HOST.

    Raises:
        StartError: this user or this machine cannot, or it did not start.
    """
    folder = engine_folder()
    with locked(_lock_of(folder)):
        if holder_of(folder) is None:
            _check(folder)
            _start(folder)
    return host_of(folder)


def stop() -> bool:
    """Ends this user's private engine with all that runs in it, and tells whether there was one; images are kept.

    Raises:
        StartError: it does not end.
    """
    with locked(_lock_of(engine_folder())):
        holder = holder_of(engine_folder())
        if holder is not None:
            _end(holder)
    return holder is not None


def main(arguments: list[str]) -> int:
    """Does what the one argument says: start, stop or status. The status is 3 where none runs."""
    try:
        command = arguments[0] if len(arguments) == 1 else " ".join(arguments)
        if command == "start":
            print(f"export DOCKER_HOST={start()}\n# {reached_by(engine_folder())}")
        elif command == "stop":
            print("the private engine has ended" if stop() else "there is no private engine")
        elif command == "status":
            return _status()
        else:
            raise InputError("private_engine", none_of("the command", command, ("start", "stop", "status")))
    except KafkaTrialError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return PASS


def _status() -> int:
    folder = engine_folder()
    holder = holder_of(folder)
    if holder is None:
        print("there is no private engine; `make dockerd` starts one")
        return NOT_BEGUN
    client = client_of(host_of(folder))
    running = len(client.containers.list())
    print(f"the private engine runs (pid {holder.pid}, Docker {client.version()['Version']}, {running} containers)")
    print(f"export DOCKER_HOST={host_of(folder)}\n# {reached_by(folder)}")
    return PASS


def _check(below: Path) -> None:
    problems = []
    if os.geteuid() != 0:
        problems.append("only root can start one: use `sudo`, or an engine that runs already (DOCKER_HOST)")
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    if missing:
        problems.append(f"it is not installed: `apt-get install {' '.join(missing)}`")
    if len(os.fsencode(below)) > SOCKET_PATH_MAX_BYTES - len("/kafka-trial-engine-12345678/docker.sock"):
        problems.append(f"{below} is too long for the path of a socket: set KAFKA_TRIAL_CACHE or TMPDIR to a short one")
    if problems:
        raise StartError(f"no private container engine: {'; '.join(problems)}")


def _lock_of(folder: Path) -> str:
    return f"private-{folder.name}"


def _start(folder: Path, *starter: str) -> psutil.Process:
    """Starts the holder of the engine in a folder, and returns it when the engine serves."""
    log = log_of(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    let_group_in(folder)
    forget_holder(folder)
    pid = start_detached([sys.executable, "-m", "kafka_trial.containers.holder", folder, *starter], log=log)

    def serving() -> psutil.Process | None:
        holder = holder_of(folder)
        return holder if holder is not None and holder.pid == pid else None

    def death() -> str | None:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                return None
        return "its holder has ended"

    try:
        return wait_until(serving, within_s=UP_WITHIN_S, what="the private engine to start", alive=death)
    except WaitTimeout as error:
        with contextlib.suppress(psutil.NoSuchProcess):
            _end(psutil.Process(pid))
        said = log.read_text(errors="replace").strip().splitlines()[-LAST_LINES:]
        remedy = "Root in a container needs `--privileged` for it"
        raise StartError(f"{error}. It said: {' | '.join(said)}. {remedy}.") from error


def let_group_in(folder: Path) -> None:
    """Lets Docker's group pass through a folder to the socket in it, which dockerd gives to that group.

    Where there is no such group, the engine is its owner's alone.
    """
    with contextlib.suppress(KeyError):
        os.chown(folder, -1, grp.getgrnam(GROUP).gr_gid)
        folder.chmod(0o710)


def reached_by(folder: Path) -> str:
    """Returns who can reach the engine in a folder, in words: a folder above it may let nobody pass."""
    try:
        group = grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return f"only its owner reaches it: there is no group {GROUP}"
    closed = [above for above in folder.absolute().parents if not _lets_pass(above, group)]
    if closed:
        return f"only its owner reaches it: {closed[-1]} lets nobody pass; set KAFKA_TRIAL_CACHE to an open folder"
    return f"users in the group {GROUP} reach it too"


def _lets_pass(folder: Path, group: int) -> bool:
    status = folder.stat()
    return bool(status.st_mode & (stat.S_IXGRP if status.st_gid == group else stat.S_IXOTH))


def _end(holder: psutil.Process) -> None:
    try:
        holder.terminate()
        holder.wait(DOWN_WITHIN_S)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired as error:
        raise StartError(
            f"the private engine still runs {DOWN_WITHIN_S:g} s after SIGTERM; "
            f"kill -9 {holder.pid} ends it with everything in it"
        ) from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
