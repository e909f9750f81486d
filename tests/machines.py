"""This machine as a command meets it: the command as a child process, what is left of it, and disks that fill up.

Whatever the command starts inherits a mark in its environment, by which leftovers are found.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from harness_process import HEARS_CTRL_C

COMMAND = Path(sys.executable).with_name("kafka-trial")
ENDS_WITHIN_S = 240


@dataclass
class Machine:
    """What the command sees of this machine, and how to run it there."""

    env: dict[str, str]
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs the command to its end."""
        with self.started(*arguments) as harness:
            out, err = harness.communicate(timeout=ENDS_WITHIN_S)
        return subprocess.CompletedProcess(arguments, harness.returncode, out, err)

    @contextmanager
    def started(self, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
        """Starts the command; kills it at the end of the `with` where it still runs."""
        env = self.env | {"KAFKA_TRIAL_TEST_MARK": self.mark, "COLUMNS": "1000"}
        command = [sys.executable, "-c", HEARS_CTRL_C, COMMAND, *arguments]
        piped = subprocess.PIPE
        with subprocess.Popen(command, env=env, stdout=piped, stderr=piped, text=True) as harness:
            try:
                yield harness
            finally:
                harness.kill()

    def left(self) -> list[psutil.Process]:
        """Returns what still runs of all that was started here, after ten seconds to go."""
        marked = [process for process in psutil.process_iter() if self._is_marked(process)]
        return psutil.wait_procs(marked, timeout=10)[1]

    def _is_marked(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return process.environ().get("KAFKA_TRIAL_TEST_MARK") == self.mark
        return False


@contextmanager
def disk_of(size_bytes: int, place: Path) -> Iterator[Path]:
    """Lends a disk of its own, in memory; skips the test where none can be mounted."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "kafka-trial-test", place]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `mount` to make a small disk with")
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> None:
    """Writes until the disk takes no more byte."""
    with (disk / "filler").open("ab", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(4096))
