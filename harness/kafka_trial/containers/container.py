"""One container of ours: started, signalled, frozen, ended; its output where it is wanted, its end as it was.

To whoever holds it, it is much like a child process (`process/children.py`): `pid` is its first process as this machine
numbers it, an exit code is negative for a signal's number. Labels say whose it is: `network.py` removes those whose
harness is gone.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from signal import SIGCONT, SIGKILL, SIGSTOP, Signals, valid_signals
from typing import TYPE_CHECKING, Any

from kafka_trial.containers.engine import innermost
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.process.control_groups import NO_LONGER, ContainerView, control_group_of
from kafka_trial.process.oom_kills import read_oom_kills
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    import docker

RUNS_AT_MOST_S = 24 * 3600
ENDS_WITHIN_S = 5.0  # from when the engine knows that it has ended, until we do
FROZEN_WITHIN_S = 10.0
NOT_FROZEN = "unable to freeze"  # runc looks a while whether the kernel has done it, and takes it back: a busy machine
COPIED_WITHIN_S = 5.0  # what it wrote before its end; the engine holds back a megabyte of it at most
LOG_LIMITS = {"max-size": "5m", "max-file": "2"}  # or one that writes without end would fill the engine's disk
# Of a stream that carries both: one byte of which, three of nothing, four of the length (Docker Engine API, attach).
FRAME = struct.Struct(">BxxxI")
STDOUT, STDERR = 1, 2
SIGNALLED = 128  # a shell's exit status of a program that a signal ended is this and the signal's number


@dataclass(frozen=True)
class ContainerSpec:
    """What to run. `network`: the name of one, or `container:<id>` to share that container's.

    `mounts`: folders of this machine, each with the place inside. `volumes_of`: the id of a container whose volumes it
    has too, instead of new ones. `cpus` and `memory_bytes` are limits; None: none.
    `logged`: whether the engine keeps the last of what it writes, for `last_words` and `copy_log`.
    """

    name: str
    image: str
    network: str
    labels: Mapping[str, str]
    command: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)
    volumes_of: str | None = None
    memory_bytes: int | None = None
    cpus: float | None = None
    init: bool = False
    working_dir: str | None = None
    logged: bool = True


class Container:
    """A container that was made of a spec. Not started yet; `start` may be called again after it ended."""

    def __init__(self, client: docker.DockerClient, spec: ContainerSpec, threads: ThreadGroup) -> None:
        """Makes it.

        Raises:
            StartError: the engine refuses; the image is missing.
        """
        self.spec = spec
        self._client = client
        self._threads = threads
        self._ended = threading.Event()
        self._ended.set()
        self._copied = threading.Event()
        self._signalling = threading.RLock()
        self._exit_code: int | None = None
        self._pid = 0
        self._paused = False
        self._killed = False
        self._oom_kills_before: int | None = None
        self.container_view: ContainerView | None = None
        self.address: str | None = None
        self.oom_killed = False
        self.lost: str | None = None
        with engine_errors(f"container {spec.name} of image {spec.image} cannot be made", kind=StartError):
            self._container = self._client.containers.create(
                spec.image,
                list(spec.command) if spec.command is not None else None,
                name=spec.name,
                labels=dict(spec.labels),
                environment=dict(spec.env),
                volumes={place: {"bind": inside, "mode": "rw"} for place, inside in spec.mounts.items()},
                volumes_from=None if spec.volumes_of is None else [spec.volumes_of],
                mem_limit=spec.memory_bytes,
                memswap_limit=spec.memory_bytes,
                nano_cpus=None if spec.cpus is None else round(spec.cpus * 1e9),
                init=spec.init or None,
                working_dir=spec.working_dir,
                log_config={"Type": "json-file", "Config": LOG_LIMITS} if spec.logged else {"Type": "none"},
                **_network(spec.network),
            )

    @property
    def id(self) -> str:
        return str(self._container.id)

    @property
    def pid(self) -> int:
        """Its first process, as this machine numbers it; 0 where that had ended before we looked."""
        return self._pid

    @property
    def alive(self) -> bool:
        return not self._ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """Exit status; negative for a signal's number; None while it runs, and where it is `lost`.

        Engines tell a program that a signal 9 ended and one that exits with status 137 alike: the signal it is.
        """
        return self._exit_code

    def start(self, *, stdout: int | None = None, stderr: int | None = None) -> None:
        """Starts it; what it writes goes to the two descriptors, which are copied, or to the engine's log only.

        Raises:
            StartError: the engine refuses: the command is not in the image, say.
        """
        cannot = f"container {self.spec.name} of image {self.spec.image} cannot be started"
        with engine_errors(cannot, kind=StartError):
            stream = None if stdout is None else self._attached()
            self._ended.clear()
            self._copied.clear()
            self._exit_code, self.oom_killed, self.lost = None, False, None
            self._paused = self._killed = False
            self._oom_kills_before = read_oom_kills()
            try:
                self._container.start()
            except BaseException:
                self._ended.set()
                if stream is not None:
                    _hang_up(stream)
                raise
            if stream is not None and stdout is not None:
                copies = {STDOUT: os.dup(stdout), STDERR: os.dup(stdout if stderr is None else stderr)}
                self._threads.start(f"{self.spec.name} output", _copy, stream, copies, self._copied)
            else:
                self._copied.set()
            self._threads.start(f"{self.spec.name} end", self._await_end)
            self._look()

    def signal(self, number: int) -> None:
        """Sends a signal to its first process, SIGKILL to all; SIGSTOP and SIGCONT freeze and thaw the whole of it.

        Silently nothing once it has ended, and no SIGSTOP once it is being killed: frozen it would not die.
        """
        cannot = f"container {self.spec.name} cannot be signalled"
        with self._signalling, engine_errors(cannot, after_the_end=lambda: self._ended.wait(ENDS_WITHIN_S)):
            if not self.alive:
                return
            if number == SIGSTOP:
                if not self._killed:
                    self._freeze(frozen=True)
            elif number == SIGCONT:
                if self._paused:
                    self._freeze(frozen=False)
            else:
                self._killed |= number == SIGKILL
                self._container.kill(signal=Signals(number).name)

    def kill(self) -> None:
        """Kills all of it with -9; a frozen one too."""
        with self._signalling:
            self.signal(SIGKILL)
            self.signal(SIGCONT)

    def wait(self, *, within_s: float) -> int:
        """Returns the exit code.

        Raises:
            WaitTimeout: it still runs after `within_s` seconds.
            UnjudgeableError: it is `lost`.
        """
        wait_until(lambda: not self.alive, within_s=within_s, what=f"container {self.spec.name} to end", every_s=0.01)
        if self._exit_code is None:
            raise UnjudgeableError(self.lost or f"container {self.spec.name} was never started")
        return self._exit_code

    def last_words(self, *, lines: int = 5) -> str:
        """Returns the last lines that it wrote, for an error message."""
        with engine_errors(f"the log of container {self.spec.name} cannot be read"):
            said: bytes = self._container.logs(tail=lines)
        return said.decode(errors="replace").strip()

    def copy_log(self, descriptor: int) -> None:
        """Copies what it writes to a descriptor until it ends, and closes that; the body of a thread."""
        try:
            with suppress(UnjudgeableError), engine_errors(f"the log of container {self.spec.name} cannot be read"):
                for part in self._container.logs(stream=True, follow=True):
                    _write(descriptor, part)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Ends it and takes it away; nothing to do where it is gone."""
        with suppress(UnjudgeableError), engine_errors(f"container {self.spec.name} cannot be removed"):
            self._container.remove(force=True, v=True)

    def _attached(self) -> Any:
        wanted = {"stdout": 1, "stderr": 1, "stream": 1}
        return self._client.api.attach_socket(self.id, params=wanted)

    def _look(self) -> None:
        """Takes down what it is on this machine: its first process, its address, its control group."""
        state = self._client.api.inspect_container(self.id)
        self._pid = int(state["State"]["Pid"])
        networks = state["NetworkSettings"]["Networks"] or {}
        addresses = [one["IPAddress"] for one in networks.values() if one.get("IPAddress")]
        self.address = addresses[0] if addresses else None
        try:
            self.container_view = ContainerView(control_group_of(self._pid, container=self.id), self.address)
        except UnjudgeableError:  # it has ended already
            self.container_view = NO_LONGER

    def _freeze(self, *, frozen: bool) -> None:
        """Freezes or thaws it, unless it is so already: a frozen one that is signalled is thawed by the engine.

        Raises:
            WaitTimeout: the kernel had not frozen it in time, however often it was asked to.
        """
        what = f"container {self.spec.name} to be {'frozen' if frozen else 'thawed'}"
        wait_until(lambda: self._is_made(frozen=frozen), within_s=FROZEN_WITHIN_S, what=what, detail=lambda: NOT_FROZEN)
        self._paused = frozen

    def _is_made(self, *, frozen: bool) -> bool:
        """Asks the engine to freeze or thaw it; False where it is to be asked again."""
        from docker.errors import APIError

        try:
            (self._container.pause if frozen else self._container.unpause)()
        except APIError as error:
            if bool(self._client.api.inspect_container(self.id)["State"]["Paused"]) is frozen:
                return True
            if NOT_FROZEN not in (error.explanation or ""):
                raise
            return False
        return True

    def _await_end(self) -> None:
        """Waits for its end, then for the last of its output: who sees that it has ended has all of it to read."""
        try:
            with engine_errors(f"what became of container {self.spec.name} is not known"):
                status = int(self._client.api.wait(self.id, timeout=RUNS_AT_MOST_S)["StatusCode"])
                with suppress(UnjudgeableError), engine_errors(""):
                    state = self._client.api.inspect_container(self.id)["State"]
                    self.oom_killed = bool(state.get("OOMKilled"))
            self._exit_code = _exit_code(status)
            self.oom_killed |= self._fell_to_the_kernel()
        except UnjudgeableError as error:
            self.lost = str(error)
        self._copied.wait(COPIED_WITHIN_S)
        self._paused = False
        self._ended.set()

    def _fell_to_the_kernel(self) -> bool:
        """Whether it ended by a signal 9 that we had not sent, and the kernel killed for want of memory as it ran.

        The engine does not always say so: what watches a control group for it drops the news where the group is gone
        by then (containerd, pkg/oom/v1; 3 of 200 on a busy machine). The kernel's counter is the whole machine's, so it
        may have killed another process. Reports quote this, and no verdict rests on it.
        """
        if self.spec.memory_bytes is None or self._killed or self._exit_code != -SIGKILL:
            return False
        before, after = self._oom_kills_before, read_oom_kills()
        return before is not None and after is not None and after > before


def _exit_code(status: int) -> int:
    """Returns the exit code of a status: 137 is signal 9, and 255 is what a program that exits with -1 has."""
    return SIGNALLED - status if status - SIGNALLED in valid_signals() else status


class engine_errors:  # noqa: N801 - used like a function
    """Turns the engine's errors inside the `with` into ours: what cannot be done, and what the engine said of it.

    Those after the container's end are dropped, where `after_the_end` says that it has ended.
    """

    def __init__(
        self,
        what: str,
        *,
        kind: type[StartError | UnjudgeableError] = UnjudgeableError,
        after_the_end: Callable[[], bool] = lambda: False,
    ) -> None:
        self._what = what
        self._kind = kind
        self._after_the_end = after_the_end

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        from docker.errors import APIError, DockerException, ImageNotFound
        from requests.exceptions import ChunkedEncodingError, RequestException
        from urllib3.exceptions import HTTPError

        if isinstance(error, ImageNotFound):
            message = f"{self._what}: the engine has no such image; pull or build it first (docker image ls)"
            raise StartError(message) from error
        if isinstance(error, DockerException | RequestException | HTTPError | ConnectionError):
            if self._after_the_end():
                return True
            said = error.explanation if isinstance(error, APIError) else None
            why = "it hung up" if isinstance(error, ChunkedEncodingError) else innermost(error)
            silent = f"the container engine does not answer ({why}); see whether it runs: docker info"
            raise self._kind(f"{self._what}: {said or silent}") from error
        return False


def _network(name: str) -> dict[str, str]:
    return {"network_mode": name} if name.startswith("container:") else {"network": name}


def _copy(stream: Any, copies: Mapping[int, int], copied: threading.Event) -> None:
    """Copies what comes on an attached stream to the descriptors, until its end; the body of a thread."""
    raw = getattr(stream, "_sock", stream)
    try:
        raw.settimeout(None)
        with suppress(OSError):  # whoever read the other end of a descriptor has gone
            while head := _whole(raw, FRAME.size):
                which, size = FRAME.unpack(head)
                left = size
                while left:
                    part = raw.recv(min(left, 1 << 16))
                    if not part:
                        return
                    left -= len(part)
                    _write(copies.get(which, copies[STDERR]), part)
    finally:
        for descriptor in copies.values():
            os.close(descriptor)
        copied.set()
        _hang_up(stream)


def _hang_up(stream: Any) -> None:
    """Closes an attached stream and the connection below it, which docker's library keeps open."""
    raw = getattr(stream, "_sock", None)
    stream.close()
    if raw is not None:
        raw.close()


def _whole(raw: Any, size: int) -> bytes:
    """Returns the next `size` bytes; nothing at the end of the stream."""
    taken = b""
    while len(taken) < size:
        part = raw.recv(size - len(taken))
        if not part:
            return b""
        taken += part
    return taken


def _write(descriptor: int, part: bytes) -> None:
    while part:
        part = part[os.write(descriptor, part) :]
