"""The process that holds a private dockerd, and leaves the machine as it was when that ends.

Started by `private_engine.py`, it stays until SIGTERM, or until the process that it was told to live with is gone. Then
it removes what still runs in the engine, ends dockerd by SIGTERM, and clears up. Killed with -9 it takes dockerd, its
shims and all containers with it; bridges, empty control groups and a firewall rule are left then, and the next start in
the same folder removes them.

What dockerd usually does to a machine it does not do here. Its iptables chains, docker0, ip_forward and the policy of
FORWARD belong to the machine: a second engine would overwrite the first one's. So it is told to leave them alone, and
has a default bridge of its own (without one it would remove docker0). That costs published ports and the way to other
networks: containers reach each other, the machine reaches them at their addresses, and they reach it at the gateway of
their network. Only where the machine's own rules would see the traffic *inside* a bridge, one rule that lets that pass
is added, and removed at the end. Mounts are in a namespace of their own; there the folders that dockerd and
containerd share with others of their kind, and cannot be told to leave, are empty ones.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_trial.containers.engine import client_of
from kafka_trial.containers.engine_folder import Holder, forget_holder, host_of, key_of, log_of, write_holder
from kafka_trial.errors import KafkaTrialError, StartError, WaitTimeout
from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from docker import DockerClient

CLEARED_WITHIN_S = 60.0
READY_WITHIN_S = 60.0
ENDED_WITHIN_S = 30.0
STARTER_ASKED_EVERY_S = 0.2
OF_THE_MACHINE = (Path("/run/docker"), Path("/run/containerd"), Path("/etc/docker"), Path("/opt/containerd"))
HIDE = 'for place in $OF_THE_MACHINE; do mount -t tmpfs -o mode=711 tmpfs "$place" || exit; done; exec "$@"'
MADE_HERE = ".made-by-kafka-trial"
BRIDGES_ARE_FILTERED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
CGROUPS = Path("/sys/fs/cgroup")
OF_DOCKER = ("bridge", "host", "none")  # the networks that every engine has


def main(arguments: list[str]) -> int:
    """Holds the engine in a folder: FOLDER, or FOLDER PID STARTED_S keep|remove to live as long as that process."""
    folder, *starter = arguments
    try:
        if starter:
            hold(Path(folder), Holder(int(starter[0]), float(starter[1])), remove=starter[2] == "remove")
        else:
            hold(Path(folder), None, remove=False)
    except KafkaTrialError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def hold(folder: Path, starter: Holder | None, *, remove: bool) -> None:
    """Starts dockerd, keeps it until this process is told to end or `starter` is gone, and clears up.

    With `remove` the folder goes too, however this ends; without it that stays, with the images.

    Raises:
        StartError: dockerd did not become ready; with its last words.
        WaitTimeout: the engine before in this folder is still clearing up.
    """
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    key = key_of(folder)
    with ExitStack() as stack:
        stack.enter_context(_exclusive(folder))
        stack.enter_context(_places_of_the_machine())
        stack.callback(_remove_cgroups, key)
        stack.enter_context(_default_bridge(key))
        stack.enter_context(_bridged_traffic_passes(key))
        belongings = [folder] if remove else []
        (folder / "dockerd.pid").unlink(missing_ok=True)  # of one that was killed; the number may be another's by now
        child_processes = stack.enter_context(ChildProcesses("private engine", belongings=belongings))
        dockerd = child_processes.spawn("dockerd", _command(folder, key), env=_environment(), stdout=1, stderr=2)
        stack.callback(dockerd.end, within_s=ENDED_WITHIN_S)
        client = _ready(folder, dockerd)
        _remove_everything(client)  # what a holder that was killed could not remove
        stack.callback(_remove_everything, client)
        stack.callback(forget_holder, folder)
        write_holder(folder)
        while dockerd.alive and not ended.wait(STARTER_ASKED_EVERY_S):
            if starter and starter.process() is None:
                if remove:
                    log_of(folder).unlink(missing_ok=True)
                return
        if not ended.is_set():
            raise StartError(f"dockerd has exited with {dockerd.exit_code}; see {log_of(folder)}")


def _command(folder: Path, key: str) -> list[str | Path]:
    private_mounts: list[str | Path] = ["unshare", "--mount", "--propagation", "slave", "--", "sh", "-c", HIDE, "sh"]
    return [
        *private_mounts,
        *("dockerd", "--host", host_of(folder), "--data-root", folder / "data", "--exec-root", folder / "exec"),
        *("--pidfile", folder / "dockerd.pid", "--exec-opt", "native.cgroupdriver=cgroupfs"),
        *("--cgroup-parent", f"/{key}", "--bridge", key, "--iptables=false", "--ip-forward=false"),
        *("--userland-proxy=false", "--log-level", "warn"),
    ]


def _environment() -> dict[str, str]:
    return {**os.environ, "OF_THE_MACHINE": " ".join(map(str, OF_THE_MACHINE))}


def _ready(folder: Path, dockerd: Child) -> DockerClient:
    def client() -> DockerClient | None:
        with contextlib.suppress(StartError):
            return client_of(host_of(folder))
        return None

    def death() -> str | None:
        return None if dockerd.alive else f"it has exited with {dockerd.exit_code}"

    try:
        return wait_until(client, within_s=READY_WITHIN_S, what="dockerd to answer", every_s=0.1, alive=death)
    except WaitTimeout as error:
        raise StartError(str(error)) from error


def _remove_everything(client: DockerClient) -> None:
    """Removes containers, then networks, whose bridges go with them; tells what does not go, and goes on."""
    from docker.errors import DockerException, NotFound

    networks = [network for network in client.networks.list() if network.name not in OF_DOCKER]
    for thing in [*client.containers.list(all=True), *networks]:
        try:
            thing.remove(**({} if thing in networks else {"force": True, "v": True}))
        except NotFound:
            continue
        except (DockerException, OSError) as error:
            print(f"{thing.name} could not be removed: {error}", file=sys.stderr)


@contextlib.contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Holds the lock of the folder, and first waits until the engine that was there before has cleaned up: both use the
    same names of bridge and control groups.

    That engine has removed its entry (`forget_holder`) by then: only the lock shows that its holder still runs. The
    kernel releases it when that process ends, however that happens.
    """
    lock = os.open(folder, os.O_RDONLY)
    try:
        wait_until(lambda: _locks(lock), within_s=CLEARED_WITHIN_S, what=f"the engine before in {folder} to clear up")
        yield
    finally:
        os.close(lock)


def _locks(lock: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextlib.contextmanager
def _places_of_the_machine() -> Iterator[None]:
    """Sees to it that the folders over which dockerd gets its own are there; the last engine removes those made here.

    Not before: to remove a folder would take what other engines have mounted over it in their namespaces. Each engine
    holds a shared lock, on the folder that is there on every machine.
    """
    lock = os.open("/run", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        for place in OF_THE_MACHINE:
            if not place.exists():
                place.mkdir(parents=True)
                (place / MADE_HERE).touch()
        try:
            yield
        finally:
            _remove_places(lock)
    finally:
        os.close(lock)


def _remove_places(lock: int) -> None:
    if _locks(lock):  # else another one of ours is there
        for place in OF_THE_MACHINE:
            _remove_place(place)


def _remove_place(place: Path) -> None:
    if (place / MADE_HERE).exists():
        (place / MADE_HERE).unlink()
        with contextlib.suppress(OSError):  # another engine has moved in
            place.rmdir()


@contextlib.contextmanager
def _default_bridge(name: str) -> Iterator[None]:
    """Makes the bridge of containers that ask for no network."""
    _remove_bridge(name)
    _run("ip", "link", "add", "name", name, "type", "bridge")
    try:
        yield
    finally:
        _remove_bridge(name)


def _remove_bridge(name: str) -> None:
    if subprocess.run(["ip", "link", "show", name], capture_output=True).returncode == 0:
        _run("ip", "link", "delete", name)


@contextlib.contextmanager
def _bridged_traffic_passes(key: str) -> Iterator[None]:
    """Lets containers of one network talk where the machine's rules would see it, by one rule that carries `key`."""
    if not (BRIDGES_ARE_FILTERED.exists() and BRIDGES_ARE_FILTERED.read_text().strip() == "1"):
        yield
        return
    rule = ["FORWARD", "-m", "physdev", "--physdev-is-bridged", "-m", "comment", "--comment", key, "-j", "ACCEPT"]
    _remove_rule(rule)
    _run("iptables", "-w", "-I", *rule)
    try:
        yield
    finally:
        _remove_rule(rule)


def _remove_rule(rule: list[str]) -> None:
    """Removes a rule, as often as it is there: a holder that was killed could not."""
    while subprocess.run(["iptables", "-w", "-C", *rule], capture_output=True).returncode == 0:
        _run("iptables", "-w", "-D", *rule)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise StartError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.strip()}")


def _remove_cgroups(key: str) -> None:
    """Removes the empty control groups that containers had: one a controller, or (version 2) one in all."""
    for top in (CGROUPS / key, *CGROUPS.glob(f"*/{key}")):
        for group in sorted((place for place in top.rglob("*") if place.is_dir()), reverse=True):
            with contextlib.suppress(OSError):
                group.rmdir()
        with contextlib.suppress(OSError):
            top.rmdir()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
