"""Blocks of ports: held by one harness at a time, and given back however it ends."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from far_blocks import HELD_AND_SEARCHED
from kafka_trial.cluster import wiring
from kafka_trial.errors import StartError

HOLDER = """
import sys, threading
from kafka_trial.cluster import wiring
wiring.FIRST_PORT, wiring.LAST_PORT = map(int, sys.argv[1:])
with wiring.block_of_ports(50) as block:
    print(block[0], flush=True)
    threading.Event().wait()
"""


@pytest.fixture(autouse=True)
def far_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets these tests use two blocks only, which nothing that runs beside them takes."""
    monkeypatch.setattr(wiring, "FIRST_PORT", HELD_AND_SEARCHED[0])
    monkeypatch.setattr(wiring, "LAST_PORT", HELD_AND_SEARCHED[-1] + wiring.BLOCK_PORTS - 1)


def test_two_harnesses_get_different_blocks() -> None:
    """The block another process holds is passed over."""
    with _other_harness() as other, wiring.block_of_ports(50) as block:
        assert set(range(other, other + wiring.BLOCK_PORTS)).isdisjoint(block)


def test_a_killed_harness_gives_its_block_back() -> None:
    """The kernel frees the lock with its holder: nothing stale can be left."""
    with _other_harness() as other:
        pass
    with wiring.block_of_ports(50) as block:
        assert block[0] == other


def test_a_block_with_a_busy_port_is_passed_over() -> None:
    """A program that holds no lock of ours but listens there is seen by binding."""
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", wiring.FIRST_PORT + 7))
        stranger.listen()
        with wiring.block_of_ports(50) as block:
            assert block[0] == wiring.FIRST_PORT + wiring.BLOCK_PORTS


def test_a_large_cluster_gets_neighbouring_blocks() -> None:
    """More ports than one block holds come as one range, all of it locked."""
    with wiring.block_of_ports(wiring.BLOCK_PORTS + 1) as block:
        assert list(block) == list(range(wiring.FIRST_PORT, wiring.FIRST_PORT + wiring.BLOCK_PORTS + 1))
        with pytest.raises(StartError), wiring.block_of_ports(1):
            pass


def test_no_block_left_says_what_to_do() -> None:
    """The message names the range and the commands that show who holds it."""
    with ExitStack() as stack:
        stack.enter_context(wiring.block_of_ports(1))
        stack.enter_context(wiring.block_of_ports(1))
        with pytest.raises(StartError, match=rf"{wiring.FIRST_PORT} and {wiring.LAST_PORT}.*kafka-trial doctor"):
            stack.enter_context(wiring.block_of_ports(1))


class _other_harness:  # noqa: N801 - reads like the function it is
    """Another process that holds a block; killed with -9 at the end of the `with`."""

    def __enter__(self) -> int:
        command = [sys.executable, "-c", HOLDER, str(wiring.FIRST_PORT), str(wiring.LAST_PORT)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
