"""SIGTERM as Ctrl-C: while it lasts, in the main thread, where nobody else has a say in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from kafka_trial.process.signals import sigterm_as_ctrl_c

TWICE = """
import os, signal
from kafka_trial.process.signals import sigterm_as_ctrl_c
with sigterm_as_ctrl_c():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        print("cleaning up", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
"""


def test_sigterm_interrupts_while_it_lasts() -> None:
    """Afterwards the process has it as it was."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_as_ctrl_c():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before == signal.SIG_DFL


def test_a_second_one_ends_the_process_at_once() -> None:
    """Whoever does not want to wait until all is cleaned up."""
    ended = subprocess.run([sys.executable, "-c", TWICE], check=False, capture_output=True, text=True)
    assert (ended.stdout, ended.returncode) == ("cleaning up\n", -signal.SIGTERM)


def test_what_somebody_handles_is_left_alone() -> None:
    """A test runner of its own handler, or who is to ignore it."""
    handled: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: handled.append(number))
    try:
        with sigterm_as_ctrl_c():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert handled == [signal.SIGTERM]


def test_in_another_thread_nothing_changes() -> None:
    """Only the main thread may say who handles a signal."""
    seen: list[object] = []

    def work() -> None:
        with sigterm_as_ctrl_c():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
