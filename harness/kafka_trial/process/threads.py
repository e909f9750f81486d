"""Threads: named, bounded, joined; nothing else in the harness starts any.

A `ThreadGroup` holds threads and hands their errors to whoever joins them.

Threads that hear what others say are real-time threads, and go before all that merely computes. A share of the
processor (`trial/stall_prevention.py`) is handed out for each processor apart, by what of the session runs there: a
thread that mostly sleeps, alone on a processor beside thirty busy sessions, gets a small part of it, and was seen to
wait for over a half second while the other threads of its process ran. A real-time thread (sched(7)) waits for nobody
but its like.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from kafka_trial.errors import UnjudgeableError

BEGUN_WITHIN_S = 1.0  # of a thread whose start was interrupted
PRIORITY = os.sched_param(1)  # the least: above every thread that is not real-time


class ThreadGroup:
    """Joins threads with one stop signal; leaving the `with` sets it, joins all, and re-raises the first error.

    `real_time`: they listen or keep time, and hardly compute; where allowed, the kernel runs them before all others.
    """

    def __init__(self, name: str, *, join_within_s: float = 30.0, real_time: bool = False) -> None:
        self.name = name
        self.stop = threading.Event()
        self.errors: list[tuple[str, BaseException]] = []
        self._join_within_s = join_within_s
        self._real_time = real_time
        self._threads: list[tuple[threading.Thread, threading.Event]] = []  # and whether it has begun

    def start(self, name: str, work: Callable[..., object], *args: object) -> threading.Thread:
        """Starts `work(*args)` in a thread called `<group>/<name>`."""

        begun = threading.Event()

        def guarded() -> None:
            begun.set()
            if self._real_time:
                make_thread_real_time()
            try:
                work(*args)
            except BaseException as error:  # noqa: BLE001 - kept, and re-raised by whoever joins
                self.errors.append((name, error))

        thread = threading.Thread(target=guarded, name=f"{self.name}/{name}", daemon=True)
        self._threads.append((thread, begun))
        thread.start()
        return thread

    def join(self) -> None:
        """Stops and joins every thread; not one whose start was interrupted (Ctrl-C) before it began.

        Raises:
            UnjudgeableError: a thread raised (chained), or did not end within the bound.
        """
        self.stop.set()
        threads = [thread for thread, begun in self._threads if begun.wait(BEGUN_WITHIN_S)]
        for thread in threads:
            thread.join(self._join_within_s)
        stuck = [thread.name for thread in threads if thread.is_alive()]
        if stuck:
            raise UnjudgeableError(f"threads did not end within {self._join_within_s:g} s: {', '.join(stuck)}")
        if self.errors:
            name, error = self.errors[0]
            raise UnjudgeableError(f"{self.name}/{name} failed: {error!r}") from error

    def __enter__(self) -> ThreadGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.join()
            return
        self.stop.set()
        with suppress(UnjudgeableError):  # the error that is already on its way says more
            self.join()


def make_thread_real_time() -> None:
    """Makes the calling thread real-time (SCHED_RR), and no process or thread that it starts.

    Without the right to (CAP_SYS_NICE, RLIMIT_RTPRIO, a control group without a budget for it) all stays as it is.
    """
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, PRIORITY)
