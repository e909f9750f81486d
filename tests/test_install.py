"""Setting up says what it does: how many packages, how far it has come, and what pip said where it failed."""

from __future__ import annotations

import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

INSTALL = Path(__file__).parent.parent / "ci" / "install.sh"
SLOW = """#!/bin/sh
case "$*" in
  *requirements.lock*) echo Collecting kafka; echo "  Downloading kafka.whl"; sleep 9 ;;
esac
"""
BROKEN = """#!/bin/sh
echo Collecting kafka
echo "ERROR: no route to the index"
exit 4
"""


def environment(place: Path, python: str) -> Path:
    """Returns a virtual environment whose Python is a script."""
    (place / "bin").mkdir()
    (place / "bin" / "python").write_text(python)
    (place / "bin" / "python").chmod(0o755)
    return place


@pytest.mark.rotates
def test_setting_up_is_never_silent_for_ten_seconds(tmp_path: Path) -> None:
    """Without a terminal; each step begins with how many packages there are."""
    times, lines = [time.monotonic()], []
    with subprocess.Popen([INSTALL, environment(tmp_path, SLOW)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            times.append(time.monotonic())
            lines.append(line.rstrip())
    assert child.returncode == 0
    assert max(after - before for before, after in pairwise(times)) < 10
    assert [line for line in lines if line.startswith("  package 1 of ") and "Downloading kafka.whl" in line]
    assert [line.split()[0] for line in lines if line.startswith("installing")] == ["installing"] * 3


def test_what_pip_said_is_shown_where_it_failed(tmp_path: Path) -> None:
    """With its status; nothing more is installed."""
    done = subprocess.run([INSTALL, environment(tmp_path, BROKEN)], capture_output=True, text=True, check=False)
    assert (done.returncode, "no route to the index" in done.stderr, done.stdout.count("installing")) == (4, True, 1)
