"""How long threads waited for a processor: what a folder like /proc says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.process import cpu_waits
from kafka_trial.process.cpu_waits import FRESH_NS, SharedCpuWaits, cpu_waits_ns


def test_the_wait_of_what_is_gone_is_not_told(tmp_path: Path) -> None:
    """No process, or one of another kernel, without the counter."""
    (tmp_path / "7" / "task" / "8").mkdir(parents=True)
    assert cpu_waits_ns([7, 9], tmp_path) == {}
    (tmp_path / "7" / "task" / "8" / "schedstat").write_text("500 70 3\n")
    assert cpu_waits_ns([7, 9], tmp_path) == {(7, 8): 70}


def test_who_asks_within_a_second_is_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """And later anew, of those that run then."""
    now_ns, pids, asked = [0], [7], list[list[int]]()
    monkeypatch.setattr(cpu_waits.time, "monotonic_ns", lambda: now_ns[0])
    monkeypatch.setattr(cpu_waits, "cpu_waits_ns", lambda pids: asked.append(pids) or {(pids[0], 1): len(asked)})
    waits = SharedCpuWaits(lambda: [*pids])
    assert [waits.read(), waits.read()] == [{(7, 1): 1}] * 2
    pids[0], now_ns[0] = 8, FRESH_NS - 1
    assert waits.read() == {(7, 1): 1}
    now_ns[0] = FRESH_NS
    assert waits.read() == {(8, 1): 2}
    assert asked == [[7], [8]]
