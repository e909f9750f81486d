"""Child processes: named, bounded, ended; nothing else in the harness starts any.

`ChildProcesses` holds them through a supervisor (`supervisor.py`), so that all of them die with the harness, however it
dies. A `ChildRpc` is one that is told lines on its stdin and answers with lines on its stdout: workload, witnesses, the
judge and the measured reader. What they write to stderr are complaints.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM
from typing import IO, Any

from kafka_trial.errors import StartError
from kafka_trial.process import supervisor
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.waiting import wait_until


class Child:
    """One supervised process, leader of a session and process group of its own."""

    def __init__(self, name: str, pid: int, child_processes: ChildProcesses) -> None:
        self.name = name
        self.pid = pid
        self.container_view: ContainerView | None = None  # as a container has one
        self.address: str | None = None
        self.oom_killed = False  # nobody tells; the run counts what the kernel killed
        self.lost: str | None = None
        self._child_processes = child_processes
        self._exited = threading.Event()
        self._exit_code: int | None = None

    @property
    def exit_code(self) -> int | None:
        """Exit status; negative for a signal's number; None while it runs."""
        return self._exit_code

    @property
    def alive(self) -> bool:
        return not self._exited.is_set()

    def signal(self, number: int, *, group: bool = True) -> None:
        """Sends a signal to the process group (default) or the process; silently nothing once it has been reaped."""
        self._child_processes._send({"signal": self.pid, "number": int(number), "group": group})

    def kill(self) -> None:
        """Kills the process group with -9."""
        self.signal(SIGKILL)

    def wait(self, *, within_s: float) -> int:
        """Returns the exit code.

        Raises:
            WaitTimeout: still running after `within_s` seconds.
        """
        wait_until(
            lambda: not self.alive, within_s=within_s, what=f"{self.name} (pid {self.pid}) to exit", every_s=0.01
        )
        assert self._exit_code is not None
        return self._exit_code

    def end(self, *, within_s: float = 10.0, number: int = SIGTERM) -> int:
        """Asks it to end with `number`, kills it with -9 after `within_s` seconds, and returns the exit code."""
        self.signal(SIGCONT)
        self.signal(number)
        if not self._exited.wait(within_s):
            self.kill()
        return self.wait(within_s=10.0)

    def _gone(self, status: int) -> None:
        self._exit_code = status
        self._exited.set()


class ChildProcesses:
    """Child processes that cannot outlive the harness: a supervisor kills them when our end of a socket closes.

    `belongings` are folders of theirs that go when they go, and `taken_away_by` commands that take away what is no
    folder: the supervisor does it, however the harness ended.
    """

    def __init__(
        self, name: str, *, belongings: Sequence[Path] = (), taken_away_by: Sequence[Sequence[str]] = ()
    ) -> None:
        self.name = name
        self.children: list[Child] = []
        self._replies: dict[int, dict[str, Any]] = {}
        self._early_exits: dict[int, int] = {}
        self._lock = threading.Lock()
        self._serial = 0
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, supervisor.DATAGRAM_MAX)
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", supervisor.__file__, str(theirs.fileno())),
                    *map(json.dumps, taken_away_by),
                    *(str(folder.absolute()) for folder in belongings),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours
        self._listener = threading.Thread(target=self._listen, name=f"{name}/supervisor", daemon=True)
        self._listener.start()

    def spawn(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: IO[bytes] | int | None = None,
        stdout: IO[bytes] | int | None = None,
        stderr: IO[bytes] | int | None = None,
    ) -> Child:
        """Starts `argv` in a session of its own; a stream left out is /dev/null.

        The caller keeps (and closes) its own copies of the descriptors it passes.

        Raises:
            StartError: the command cannot be executed, or the supervisor has died.
        """
        with open(os.devnull, "r+b") as null:
            descriptors = [_descriptor(stream, null) for stream in (stdin, stdout, stderr)]
            with self._lock:
                self._serial += 1
                serial = self._serial
                order = {
                    "spawn": serial,
                    "argv": [str(part) for part in argv],
                    "env": dict(os.environ if env is None else env),
                    "cwd": str(cwd) if cwd else None,
                }
                self._send(order, descriptors)
            reply = wait_until(
                lambda: self._replies.get(serial),
                within_s=30,
                what=f"the supervisor to start {name}",
                every_s=0.002,
                alive=lambda: None if self._listener.is_alive() else "the supervisor has died",
            )
        if "failed" in reply:
            raise StartError(f"cannot start {name}: {reply['error']}. Check the command and its execute permission.")
        child = Child(name, int(reply["pid"]), self)
        with self._lock:
            self.children.append(child)
            early = self._early_exits.pop(child.pid, None)
        if early is not None:
            child._gone(early)
        return child

    def close(self) -> None:
        """Kills what still runs and waits for the supervisor to have reaped it and removed the belongings."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._process.wait(timeout=30 + supervisor.TAKEN_AWAY_WITHIN_S)
        self._listener.join(10)
        self._socket.close()
        for child in self.children:
            if child.alive:
                child._gone(-SIGKILL)

    def _send(self, order: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(self._socket, [json.dumps(order).encode()], list(descriptors))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise StartError(f"the supervisor of {self.name} has died; its children died with it") from error
        except OSError as error:
            if self._process.poll() is not None or self._socket.fileno() < 0:
                return  # signals after the end go nowhere
            raise StartError(f"the supervisor of {self.name} cannot be reached: {error}") from error

    def _listen(self) -> None:
        while True:
            try:
                message = self._socket.recv(supervisor.DATAGRAM_MAX)
            except OSError:
                return
            if not message:
                return
            self._take_report(json.loads(message))

    def _take_report(self, report: dict[str, Any]) -> None:
        if "exited" not in report:
            self._replies[int(report.get("spawned") or report["failed"])] = report
            return
        with self._lock:
            child = next((c for c in self.children if c.pid == report["exited"] and c.alive), None)
            if child is None:
                self._early_exits[int(report["exited"])] = int(report["status"])
                return
        child._gone(int(report["status"]))

    def __enter__(self) -> ChildProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start_detached(argv: Sequence[str | Path], *, log: Path) -> int:
    """Starts the one kind of process that is meant to outlive the harness, and returns its pid.

    It has a session of its own and its output in `log`. What it starts in turn belongs to `ChildProcesses` of its own.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    process.returncode = 0  # not ours to reap: keeps Popen from warning that it still runs
    return process.pid


def _descriptor(stream: IO[bytes] | int | None, null: IO[bytes]) -> int:
    if stream is None:
        return null.fileno()
    return stream if isinstance(stream, int) else stream.fileno()


STDERR_SHOWN_BYTES = 2000


class ChildRpc:
    """Our end. One asks and waits at a time; whoever has several threads sees to that."""

    def __init__(self, child: Child, commands: int, answers: int, stderr: Path | None) -> None:
        self.child = child
        self._commands = commands
        self._answers = answers
        self._stderr = stderr
        self._read = b""
        os.set_blocking(answers, False)

    def tell(self, line: str) -> None:
        """Writes one line.

        Raises:
            OSError: the child has closed its end, most likely because it died.
        """
        os.write(self._commands, os.fsencode(line) + b"\n")

    def answer(
        self, *, within_s: float, what: str, every_s: float = 0.01, meanwhile: Callable[[], object] = lambda: None
    ) -> bytes:
        """Waits for the next line and returns it, without its end; `what` names it where it does not come.

        `meanwhile` is called again and again, as long as it waits.

        Raises:
            WaitTimeout: it did not come in time, or the child died before it answered; with its last words.
        """

        def death() -> str | None:
            meanwhile()
            return self._death()

        wait_until(self._answered, within_s=within_s, what=what, every_s=every_s, alive=death, detail=self.complaint)
        line, _, self._read = self._read.partition(b"\n")
        return line

    def complaint(self) -> str:
        """Returns the last that the child wrote to stderr, in words."""
        if self._stderr is None:
            return "its stderr is ours"
        said = self._stderr.read_bytes()[-STDERR_SHOWN_BYTES:].decode(errors="replace").strip()
        return f"stderr: {said}" if said else "nothing on its stderr"

    def hang_up(self) -> None:
        """Closes the child's stdin: there will be no further line; idempotent."""
        self._commands = _closed(self._commands)

    def close(self) -> None:
        """Closes both of our ends; idempotent."""
        self.hang_up()
        self._answers = _closed(self._answers)

    def _answered(self) -> bool:
        with suppress(BlockingIOError):
            self._read += os.read(self._answers, 1 << 16)
        return b"\n" in self._read

    def _death(self) -> str | None:
        if self.child.alive or self._answered():  # its last answer may have come between two looks
            return None
        return f"it has exited with {self.child.exit_code}"


def start_child_rpc(
    child_processes: ChildProcesses,
    name: str,
    argv: Sequence[str],
    *,
    stderr: Path | None,
    env: Mapping[str, str] | None = None,
) -> ChildRpc:
    """Starts a child with the other ends; its stderr goes to a file of its own, or to ours (None).

    Raises:
        StartError: it cannot be started.
    """
    their_commands, commands = os.pipe()
    answers, their_answers = os.pipe()
    complaints = 2 if stderr is None else os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        child = child_processes.spawn(
            name, argv, env=env, stdin=their_commands, stdout=their_answers, stderr=complaints
        )
    finally:
        for theirs in (their_commands, their_answers, *(() if stderr is None else (complaints,))):
            os.close(theirs)
    return ChildRpc(child, commands, answers, stderr)


def _closed(descriptor: int) -> int:
    if descriptor >= 0:
        os.close(descriptor)
    return -1
