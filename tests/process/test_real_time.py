"""Threads that listen are real-time where that is allowed; what they start is not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_trial.consumers.reading_probe import reading_probe
from kafka_trial.consumers.sink import start_sink
from kafka_trial.history.recorder import Recorder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup, make_thread_real_time
from kafka_trial.process.waiting import wait_until

NOBODY = 65534
POLICY = "import os; print(os.sched_getscheduler(0))"
LIKE_OTHERS = str(os.SCHED_OTHER)


def in_a_thread(work: Callable[[], str], *, real_time: bool) -> str:
    told: list[str] = []
    with ThreadGroup("listeners", real_time=real_time) as thread_group:
        thread_group.start("one", lambda: told.append(work()))
    return told[0]


def policy() -> str:
    return f"{os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK}"


@pytest.fixture(name="allowed")
def _allowed() -> None:
    asked = [sys.executable, "-c", "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"]
    if subprocess.run(asked, check=False, capture_output=True).returncode:
        pytest.skip("this user must not have real-time threads (CAP_SYS_NICE, or its control group's budget)")


@pytest.mark.usefixtures("allowed")
def test_a_thread_that_listens_goes_before_others() -> None:
    """It alone: neither the thread that started it, nor a group that does not ask for it."""
    assert in_a_thread(policy, real_time=True) == str(os.SCHED_RR)
    assert in_a_thread(policy, real_time=False) == policy() == LIKE_OTHERS


@pytest.mark.usefixtures("allowed")
def test_what_it_starts_is_as_others_are() -> None:
    """A member that a listening thread starts again is no real-time process, nor is a further thread."""

    def of_a_child() -> str:
        return subprocess.run([sys.executable, "-c", POLICY], check=True, capture_output=True, text=True).stdout.strip()

    def of_a_member() -> str:
        read_end, write_end = os.pipe()
        with ChildProcesses("members") as children, open(read_end) as output:
            children.spawn("m0", [sys.executable, "-c", POLICY], stdout=write_end)
            os.close(write_end)
            return output.read().strip()

    def of_a_thread() -> str:
        return in_a_thread(policy, real_time=False)

    assert [in_a_thread(work, real_time=True) for work in (of_a_child, of_a_member, of_a_thread)] == [LIKE_OTHERS] * 3


def policies(group: str) -> set[int]:
    """Of the threads that there are of a group."""
    threads = [one.native_id for one in threading.enumerate() if one.name.startswith(f"{group}/")]
    return {os.sched_getscheduler(number) & ~os.SCHED_RESET_ON_FORK for number in threads if number}


@pytest.mark.usefixtures("allowed")
def test_the_sink_and_the_probe_of_readers_are_real_time(tmp_path: Path) -> None:
    """What they would hear or write late, members would seem to have said late."""
    with Recorder(tmp_path, "sink") as recorder, start_sink(recorder):
        assert policies("sink") == {os.SCHED_RR}
    with (
        Recorder(tmp_path, "run") as run,
        ChildProcesses("test") as children,
        reading_probe(children, run),
    ):
        writer = children.children[0].pid
        wait_until(lambda: os.sched_getscheduler(writer) == os.SCHED_RR, within_s=10, what="the writer to be real-time")


def test_whoever_may_not_works_on() -> None:
    """Given a user without the right to it, when it asks, then nothing is raised and nothing changes."""
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setuid(NOBODY)
        make_thread_real_time()
        os._exit(os.sched_getscheduler(0))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == os.SCHED_OTHER
