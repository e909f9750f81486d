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
    """Later it is read anew, of those that run then: the longest wait as a part of the time since the last reading."""
    now_ns, pids, waits_ns = [0], [7], {7: {(7, 1): 50, (7, 2): 10}, 8: {(8, 1): FRESH_NS // 4}}
    monkeypatch.setattr(cpu_waits.time, "monotonic_ns", lambda: now_ns[0])
    monkeypatch.setattr(cpu_waits, "cpu_waits_ns", lambda pids: dict(waits_ns.get(pids[0], {})))
    waits = SharedCpuWaits(lambda: [*pids])
    assert waits.share() is not None
    waits_ns[7] = {(7, 1): 50 + FRESH_NS, (7, 2): 10}
    now_ns[0] = 2 * FRESH_NS
    assert waits.share() == 0.5
    waits_ns[7] = {(7, 1): 50 + 2 * FRESH_NS}
    now_ns[0] = 3 * FRESH_NS - 1
    assert waits.share() == 0.5
    pids[0], now_ns[0] = 8, 3 * FRESH_NS
    assert waits.share() == 0.25  # it has begun since
    pids[0], now_ns[0] = 9, 4 * FRESH_NS
    assert waits.share() is None
