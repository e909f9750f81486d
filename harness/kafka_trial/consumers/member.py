"""One incarnation of one member as a process: spawned in its lane, its output read, its end recorded.

And when it counts as started, with the sentences about one that never did.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import zip_longest
from pathlib import Path
from signal import SIGCONT
from typing import Any, Protocol
from urllib.error import URLError
from urllib.request import urlopen

from kafka_trial.cluster.cluster import Lane
from kafka_trial.consumers.consumer import MemberFailure
from kafka_trial.consumers.output import BoundedLog, LineCutter, LogMatch, Reader, drain
from kafka_trial.consumers.reading_probe import ReadingProbe
from kafka_trial.consumers.spec import ConsumerSpec, Ready
from kafka_trial.consumers.wire import Wire
from kafka_trial.errors import StartError
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause

PIPE_BYTES = 1 << 20
BUFFERED_EVENTS = 4096


class Program(Protocol):
    """What runs for one incarnation: a child process, or a container."""

    @property
    def pid(self) -> int: ...
    @property
    def container_view(self) -> ContainerView | None: ...
    @property
    def address(self) -> str | None: ...
    @property
    def alive(self) -> bool: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def oom_killed(self) -> bool: ...
    @property
    def lost(self) -> str | None: ...
    def signal(self, number: int) -> None: ...
    def kill(self) -> None: ...


class Launcher(Protocol):
    """What starts them: `ChildProcesses`, or containers of the consumer's image."""

    def spawn(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdout: int, stderr: int
    ) -> Program: ...


class ProcessMember:
    """One incarnation. `assigned`: by its own word it has an assignment now, be it an empty one that it was given."""

    def __init__(self, index: int, incarnation: int, lane: Lane, folder: RunFolder, spec: ConsumerSpec) -> None:
        self.name = f"m{index}"
        self.index = index
        self.incarnation = incarnation
        self.lane = lane
        self.spec = spec
        self.started_with = frozenset(lane.ports)
        self.assigned = False
        self.spoke = False  # it has printed a line that says that it is at work
        self.ownership_moved_s = time.monotonic()
        self._owned: set[tuple[str, int]] = set()
        self.asked_to_stop = False
        self.log_match = LogMatch(spec.ready.log) if spec.ready.log else None
        self.recorder = Recorder(folder.history, f"consumer-{self.name}-{incarnation}", buffer_events=BUFFERED_EVENTS)
        self._logs = folder.logs
        self._ended = threading.Event()
        self._end_fields: dict[str, Any] = {}
        self._child: Program | None = None

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def process_group(self) -> int:
        return self.child.pid

    @property
    def container_view(self) -> ContainerView | None:
        """What this machine sees of its container; None: it is a process among ours."""
        return self.child.container_view

    @property
    def address(self) -> str | None:
        """The network address that it alone has; None: it shares ours."""
        return self.child.address

    @property
    def oom_killed(self) -> bool:
        """Whether it was ended because it wanted more memory than its limit."""
        return self.child.oom_killed

    @property
    def lost(self) -> str | None:
        """Why nobody knows what became of it: the container engine is gone; None while somebody does."""
        return self.child.lost

    @property
    def stderr_file(self) -> Path:
        """The log of what it writes to stderr."""
        return self._logs / f"{self.name}-{self.incarnation}.stderr"

    @property
    def alive(self) -> bool:
        return self.child.alive

    @property
    def exit_code(self) -> int | None:
        return self.child.exit_code

    @property
    def ended(self) -> bool:
        """Gone, and its last line written."""
        return self._ended.is_set()

    @property
    def child(self) -> Program:
        if self._child is None:
            raise StartError(f"member {self.name} was never started")
        return self._child

    def signal(self, number: int) -> None:
        """Sends a signal to its process group."""
        self.child.signal(number)

    def kill(self) -> None:
        """Kills its process group with -9."""
        self.asked_to_stop = True
        self.note_end(asked="kill")
        self.child.kill()

    def ask_to_stop(self, number: int, *, within_s: float) -> None:
        """Sends its stop signal (a paused one is continued first) and notes when, and how long it may take."""
        self.asked_to_stop = True
        self.note_end(asked="stop", asked_ns=time.monotonic_ns(), within_s=within_s)
        self.signal(SIGCONT)
        self.signal(number)

    def note_end(self, **fields: Any) -> None:
        """Adds fields to its last event, `exited`."""
        self._end_fields |= fields

    def start(
        self,
        launcher: Launcher,
        thread_group: ThreadGroup,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        dialect: str,
        probe: ReadingProbe | None = None,
        cluster: str = "",
    ) -> None:
        """Spawns the process and the thread that reads it; `cluster`: the name of its cluster, where it is another one.

        Raises:
            StartError: the command cannot be executed.
        """
        out_read, out_write = _pipe()
        err_read, err_write = _pipe()
        try:
            self._child = launcher.spawn(self.name, argv, env=env, cwd=cwd, stdout=out_write, stderr=err_write)
        except StartError:
            os.close(out_read)
            os.close(err_read)
            self.recorder.close()
            raise
        finally:
            os.close(out_write)
            os.close(err_write)
        told = {"consumer": self.spec.name, "protocol": self.spec.kafka.protocol}
        told |= {"cluster": cluster} if cluster else {}
        self._record("started", pid=self.pid, lane=self.lane.index, **told, started_with=sorted(self.started_with))
        self.recorder.flush()
        thread_group.start(
            f"{self.name}-{self.incarnation}", self._follow, out_read, err_read, dialect, thread_group.stop, probe
        )

    def _follow(
        self, out_read: int, err_read: int, dialect: str, stop: threading.Event, probe: ReadingProbe | None
    ) -> None:
        """Reads both streams to their end, waits for the process to go, and writes the last line."""
        with ExitStack() as whole:
            whole.callback(self._ended.set)
            whole.callback(self.recorder.close)
            with ExitStack() as streams:
                errors = self._log("stderr", streams)
                lines = self._log("stdout", streams) if dialect == "none" else self._history(dialect, streams)
                own_probe = probe.of(self.recorder.source) if probe else None
                drain({out_read: lines, err_read: errors}, alive=lambda: self.alive, stop=stop, probe=own_probe)
            while self.alive:  # it may have closed its streams and live on; the process is gone all the same
                pause(0.05)
            if self.lost:
                self._record("exited", message=self.lost)
                return
            memory = {"oom_killed": True} if self.oom_killed else {}
            self._record("exited", **_exit_fields(self.exit_code), **memory, **({"asked": "no"} | self._end_fields))

    def _history(self, dialect: str, streams: ExitStack) -> Reader:
        wire, cutter = Wire(self._record, dialect=dialect), LineCutter()

        def read(chunk: bytes) -> None:
            now_ns = time.monotonic_ns()
            for line in cutter.feed(chunk):
                wire.read(line, time_ns=now_ns)
            self.recorder.flush()

        def close() -> None:
            for line in cutter.rest():
                wire.read(line, time_ns=time.monotonic_ns())
            wire.close(time_ns=time.monotonic_ns())

        streams.callback(close)
        return self._watched(read)

    def _log(self, stream: str, streams: ExitStack) -> Reader:
        log = BoundedLog(self._logs / f"{self.name}-{self.incarnation}.{stream}")
        streams.callback(log.close)
        return self._watched(log.write)

    def _watched(self, reader: Reader) -> Reader:
        return self.log_match.watching(reader) if self.log_match else reader

    def _follow_ownership(self, kind: str, entries: Sequence[Mapping[str, Any]]) -> None:
        if kind not in ("assigned", "revoked", "lost"):
            return
        places = {(entry["topic"], entry["partition"]) for entry in entries}
        self._owned = self._owned | places if kind == "assigned" else self._owned - places
        self.assigned = kind == "assigned" or bool(self._owned)
        self.ownership_moved_s = time.monotonic()

    def _record(self, kind: str, **fields: Any) -> int:
        self._follow_ownership(kind, fields.get("entries", ()))
        self.spoke |= kind in ("ready", "delivered", "processed", "commit")
        return self.recorder.record(kind, member=self.name, incarnation=self.incarnation, **fields)


def _exit_fields(code: int | None) -> dict[str, Any]:
    if code is None or code >= 0:
        return {"code": code}
    return {"signal": -code}


def _pipe() -> tuple[int, int]:
    """Returns a pipe wide enough that a burst of lines does not block the member while another is read."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    with suppress(OSError):  # beyond the user's quota the default width must do
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return read_end, write_end


TAIL_BYTES = 4096
LAST_LINES = 3
LAST_CHARACTERS = 300
ERROR_CHARACTERS = 200
WROTE_NOTHING = "it wrote nothing"
NAMES_AN_ERROR = re.compile(r"(?!\s).*?\b(?:panic|fatal error|\w*(?:Error|Exception))\b")


def is_ready(member: ProcessMember, ready: Ready, *, url: str, by_hand: bool = False) -> bool:
    """Tells whether a member is ready: by its log, its URL, else by its own word that it was assigned.

    One that assigns partitions to itself (`by_hand`) is told of no assignment: any word of its own will do.
    """
    if not member.alive:
        return False
    if member.log_match is not None:
        return member.log_match.seen
    if ready.http:
        return _answers(url)
    return member.assigned or (by_hand and member.spoke)


def never_assigned(member: ProcessMember, within_s: float, *, awaited: str) -> MemberFailure:
    """Returns the failure of a member that runs and was not ready in time; `awaited` is what it has not shown."""
    message = f"was not ready within {within_s:g} s: {awaited}; {last_words(member)}"
    return MemberFailure(member.name, member.incarnation, "never-assigned", message)


def exited(member: ProcessMember) -> MemberFailure:
    """Returns the failure of a member that ended without being asked to."""
    return MemberFailure(member.name, member.incarnation, "exited", _ending(member))


def _ending(member: ProcessMember) -> str:
    code = member.exit_code
    words = f"by signal {-code}" if code is not None and code < 0 else f"with status {code}"
    words += ", killed for want of memory: it wanted more than its limit" if member.oom_killed else ""
    return f"{words}; {last_words(member)}"


def last_words(member: ProcessMember) -> str:
    """Quotes what a member wrote last, to stderr or, where nothing stands there, to stdout, and says where the rest is.

    Of a member whose lines on stdout are events these are in its history, and are not quoted.
    """
    for file in (member.stderr_file, member.stderr_file.with_suffix(".stdout")):
        if said := _quoted(_tail(file)):
            return f"its last words in logs/{file.name}: {said}"
    return f"{WROTE_NOTHING} to logs/{member.stderr_file.name}"


def _quoted(text: str) -> str:
    """Returns the last lines, and before them the last that names an error, above what it is followed by: a stack."""
    lines = [line.rstrip() for line in text.splitlines() if re.search(r"\w", line)]
    last = [line for line, after in zip_longest(lines, lines[1:]) if after is None or _shape(line) != _shape(after)]
    quoted = " / ".join(line.strip() for line in last[-LAST_LINES:])[-LAST_CHARACTERS:]
    named = next((line for line in reversed(lines) if NAMES_AN_ERROR.match(line)), "")
    return quoted if named in last[-LAST_LINES:] or not named else f"{named[:ERROR_CHARACTERS]} / … / {quoted}"


def _shape(line: str) -> str:
    """Returns a line without its numbers: what is logged again has another time in front."""
    return re.sub(r"\d+", "", line)


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as log:
            begins = max(0, file.stat().st_size - TAIL_BYTES)
            log.seek(begins)
            text = log.read().decode(errors="replace")
    except OSError:
        return ""
    return (text.partition("\n")[2] or text) if begins else text  # without what is left of a line


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1.0):  # raises for every status but 2xx
            return True
    except (URLError, OSError, ValueError):
        return False
