"""Threads and children: they end with their owner, and their errors are not lost."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from kafka_trial.errors import StartError, UnjudgeableError, WaitTimeout
from kafka_trial.process import supervisor
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until

FD_SETSIZE = 1024  # of select(2)
ORPHAN_MAKER = "setsid sleep 3600 & echo $!; exec sleep 3600"


def test_an_error_in_a_thread_reaches_whoever_joins() -> None:
    """A thread group that leaves its `with` raises the first error of its threads, chained and named."""

    def fail() -> None:
        raise OSError("disk full")

    with (
        pytest.raises(UnjudgeableError, match=r"thread_group/writer failed.*disk full"),
        ThreadGroup("thread_group") as thread_group,
    ):
        thread_group.start("writer", fail)


@pytest.mark.parametrize("begins", [True, False])
def test_a_start_that_is_interrupted_is_what_is_raised(monkeypatch: pytest.MonkeyPatch, *, begins: bool) -> None:
    """Ctrl-C while a thread is being started, which has begun by then or never does."""
    start, ended = threading.Thread.start, threading.Event()

    def interrupted(thread: threading.Thread) -> None:
        if begins:
            start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), ThreadGroup("group") as group:
        group.start("waits", lambda: (group.stop.wait(10), ended.set()))
    assert ended.is_set() is begins


def test_a_thread_that_does_not_end_is_named() -> None:
    """Joining is bounded; the stuck thread stands in the error."""
    with ThreadGroup("thread_group") as outer:
        thread_group = ThreadGroup("stuck", join_within_s=0.01)
        thread_group.start("sleeper", lambda: outer.stop.wait(10))
        with pytest.raises(UnjudgeableError, match="stuck/sleeper"):
            thread_group.join()
        outer.stop.set()


def test_exit_codes_and_signals_are_told_apart() -> None:
    """A child's exit code is its own; a signal's is negative."""
    with ChildProcesses("test") as child_processes:
        plain = child_processes.spawn("plain", ["sh", "-c", "exit 3"])
        killed = child_processes.spawn("killed", ["sleep", "3600"])
        killed.kill()
        assert (plain.wait(within_s=10), killed.wait(within_s=10)) == (3, -signal.SIGKILL)


def test_a_harness_with_a_thousand_open_files_still_starts_children() -> None:
    """A supervisor's end of the socket then has a number that `select` does not take."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2 * FD_SETSIZE), limits[1]))
        opened = [stack.enter_context(open(os.devnull)) for _ in range(FD_SETSIZE)]
        assert opened[-1].fileno() >= FD_SETSIZE
        child = stack.enter_context(ChildProcesses("test")).spawn("plain", ["sh", "-c", "exit 3"])
        assert child.wait(within_s=10) == 3


def test_a_command_that_cannot_run_is_a_start_error() -> None:
    """The message names the command and the system's reason."""
    with ChildProcesses("test") as child_processes, pytest.raises(StartError, match=r"/no/such/thing: No such file"):
        child_processes.spawn("nothing", ["/no/such/thing"])


def test_ending_a_child_that_ignores_sigterm_kills_it() -> None:
    """`end` asks first and kills after its bound."""
    with ChildProcesses("test") as child_processes:
        read_end, write_end = os.pipe()
        deaf = child_processes.spawn(
            "deaf", ["sh", "-c", "trap '' TERM; echo deaf; sleep 3600 & wait; wait"], stdout=write_end
        )
        os.close(write_end)
        os.read(read_end, 4)
        os.close(read_end)
        assert deaf.end(within_s=0.1) == -signal.SIGKILL


def test_waiting_for_a_child_is_bounded() -> None:
    """A child that goes on is a WaitTimeout that names it."""
    with ChildProcesses("test") as child_processes:
        child = child_processes.spawn("sleeper", ["sleep", "3600"])
        with pytest.raises(WaitTimeout, match="sleeper"):
            child.wait(within_s=0.05)


def test_closing_kills_grandchildren_that_left_the_session() -> None:
    """A process that made a session of its own dies with its parent all the same."""
    with ChildProcesses("test") as child_processes:
        grandchild = _spawn_orphan_maker(child_processes)
        assert psutil.pid_exists(grandchild)
    assert _gone(grandchild)


def test_everything_dies_when_the_harness_is_killed(tmp_path: Path) -> None:
    """kill -9 of the process that owns child processes leaves none of its children and belongings behind."""
    belongings = tmp_path / "belongings"
    belongings.mkdir()
    script = (
        "import time; from pathlib import Path; from concurrency_helper import spawn; "
        "from kafka_trial.process.children import ChildProcesses; "
        f"child_processes = ChildProcesses('victim', belongings=[Path({str(belongings)!r})]); "
        f"print(spawn(child_processes, {ORPHAN_MAKER!r}), flush=True); time.sleep(3600)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    harness = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
    assert harness.stdout is not None
    child, grandchild = map(int, harness.stdout.readline().split())
    assert (psutil.pid_exists(child), belongings.exists()) == (True, True)
    harness.kill()
    harness.wait(10)
    assert _gone(child)
    assert _gone(grandchild)
    wait_until(lambda: not belongings.exists(), within_s=10, what="the belongings to be removed")


def test_a_supervisor_that_told_a_killed_harness_of_an_exit_ends_without_a_word() -> None:
    """What lies unread when the harness dies makes its next look at the socket an error."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-I", "-S", supervisor.__file__, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True)
    order = {"spawn": 1, "argv": ["true"], "env": {}, "cwd": "/"}
    with ours, open(os.devnull, "r+b") as nothing:
        socket.send_fds(ours, [json.dumps(order).encode()], [nothing.fileno()] * 3)
        while "exited" not in json.loads(ours.recv(supervisor.DATAGRAM_MAX, socket.MSG_PEEK)):
            ours.recv(supervisor.DATAGRAM_MAX)
    assert (process.communicate(timeout=10)[1], process.returncode) == ("", 0)


def test_children_die_when_the_supervisor_is_killed() -> None:
    """The parent-death signal covers the case that the supervisor itself is killed with -9."""
    with ChildProcesses("test") as child_processes:
        child = child_processes.spawn("sleeper", ["sleep", "3600"])
        psutil.Process(child.pid).parent().kill()
        assert _gone(child.pid)


def _spawn_orphan_maker(child_processes: ChildProcesses) -> int:
    from concurrency_helper import spawn

    return spawn(child_processes, ORPHAN_MAKER)[1]


def _gone(pid: int) -> bool:
    return wait_until(lambda: not psutil.pid_exists(pid), within_s=10, what=f"process {pid} to be gone")
