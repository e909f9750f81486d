"""What a process costs: real processes, their children and orphans counted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kafka_trial.errors import UnjudgeableError, WaitTimeout
from lab.scale.cost import Cost, cost_of

BUSY = "import time; began = time.process_time()\nwhile time.process_time() < began + 0.5: pass"
WITH_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
WITH_AN_ORPHAN = f"""
import os, sys
heard, done = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.set_inheritable(done, True)
    os.execv(sys.executable, [sys.executable, '-c', {BUSY!r} + f'''
import os
os.write({{done}}, b'.')
time.sleep(60)'''])
os.close(done)
sys.exit(os.read(heard, 1) != b'.')  # nothing is read of one that died
"""
FAT = "import time; held = bytearray(b'x') * (96 * 1024 * 1024); time.sleep(1.5)"
FAT_TWICE = f"import os; {FAT.replace('time.sleep', 'os.fork(); time.sleep')}"


@pytest.mark.parametrize("program", [BUSY, WITH_A_CHILD])
def test_the_processor_time_of_the_whole_tree_counts(program: str, tmp_path: Path) -> None:
    """Half a second of it, by the process or by a child that it waited for."""
    cost = cost_of("test", [sys.executable, "-c", program], scratch=tmp_path, within_s=60)
    assert 0.5 <= cost.cpu_s < most_of(cost), cost


def test_the_processor_time_of_an_orphan_counts(tmp_path: Path) -> None:
    """Of a process whose parent is gone before it, as Spark's JVM: it was killed, and reaped."""
    cost = cost_of("test", [sys.executable, "-c", WITH_AN_ORPHAN], scratch=tmp_path, within_s=60)
    assert 0.5 <= cost.cpu_s < most_of(cost), cost


def most_of(cost: Cost) -> float:
    """2.5 s of a run that takes 0.6 s as it should; of a machine that stood still, what two busy processes can take."""
    return 2 * cost.wall_s + 1.3


@pytest.mark.parametrize("program", [FAT, FAT_TWICE])
def test_the_peak_counts_shared_pages_once(program: str, tmp_path: Path) -> None:
    """96 MB, also where a second process shares them."""
    cost = cost_of("test", [sys.executable, "-c", program], scratch=tmp_path, within_s=60)
    assert 96 * 2**20 < cost.peak_bytes < 150 * 2**20


def test_a_process_that_fails_is_no_measurement(tmp_path: Path) -> None:
    """Its output is quoted; nothing is left in the scratch folder."""
    with pytest.raises(UnjudgeableError, match=r"ended with status 3: .*broken"):
        cost_of("test", [sys.executable, "-c", "print('broken'); exit(3)"], scratch=tmp_path, within_s=60)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(WaitTimeout, match="slow one"):
        cost_of("slow one", [sys.executable, "-c", "import time; time.sleep(60)"], scratch=tmp_path, within_s=0.5)
