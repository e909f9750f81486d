"""The kernel's counter of what it killed for want of memory."""

from __future__ import annotations

from pathlib import Path

from kafka_trial.process.oom_kills import read_oom_kills


def test_the_kernels_counter_is_read(tmp_path: Path) -> None:
    """By its line in vmstat; none where there is no such file, or no such line."""
    vmstat = tmp_path / "vmstat"
    assert read_oom_kills(vmstat) is None
    vmstat.write_text("nr_free_pages 9\n")
    assert read_oom_kills(vmstat) is None
    vmstat.write_text("oom_kill_x 4\noom_kill 3\n")
    assert read_oom_kills(vmstat) == 3
