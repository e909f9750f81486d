"""The harness killed with -9 in any phase, or stopped by a signal: no process and no port is left."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psutil
import pytest

from harness_process import harness_running, wait_for_phase, wait_until_stopped
from kafka_trial.cli import main
from kafka_trial.cluster.doctor import MARKER
from kafka_trial.errors import INTERRUPTED, PASS, UNKNOWN
from kafka_trial.history.store import HistoryTail
from kafka_trial.process.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.rotates]

PHASES = ("prepare", "steady", "faults", "heal", "drain", "snapshot", "stop")


@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_any_phase_leaves_nothing_running(phase: str, tmp_path: Path) -> None:
    """Its processes and its cluster's folder are gone, its ports free; the half-written run is judged unknown (4)."""
    with harness_running(tmp_path / "run", stops_in=phase) as harness:
        wait_until_stopped(harness, tmp_path / "said")
        started = psutil.Process(harness.pid).children(recursive=True)
        listening = {connection.laddr.port for child in started for connection in _listening(child)}
        assert len(listening) > 50  # brokers and Toxiproxy were indeed up
        (cluster,) = {folder for child in started for folder in _cluster_folders(child)}
        killed_s = time.time()
        harness.kill()
        harness.wait(10)
    _, alive = psutil.wait_procs(started, timeout=10)
    assert alive == []
    wait_until(lambda: not cluster.exists(), within_s=10, what=f"{cluster} to be removed")
    assert _still_held(listening, killed_s) == set()
    assert main(["check", str(tmp_path / "run")]) == UNKNOWN


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_ctrl_c_heals_and_cleans_up(sent: str, tmp_path: Path) -> None:
    """SIGINT or SIGTERM in mid-fault ends in 130, said so, the fault healed in the journal and nothing left running."""
    with harness_running(tmp_path / "run") as harness:
        wait_for_phase(tmp_path / "run", "faults", harness)
        follower = HistoryTail(tmp_path / "run" / "history", "nemesis.jsonl")
        wait_until(
            lambda: any(event.kind == "injected" for event in follower.new_events()),
            within_s=30,
            what="an injected fault",
        )
        started = psutil.Process(harness.pid).children(recursive=True)
        harness.send_signal(signal.Signals[sent])
        assert harness.wait(60) == INTERRUPTED
    assert "healed and cleaned up" in (tmp_path / "said").read_text()
    _, alive = psutil.wait_procs(started, timeout=10)
    assert alive == []
    kinds = [event.kind for event in HistoryTail(tmp_path / "run" / "history", "nemesis.jsonl").new_events()]
    assert kinds.count("healed") == kinds.count("injected") >= 1


def test_two_harnesses_at_once_do_not_meet(tmp_path: Path) -> None:
    """Two commands started together both pass, each on ports of its own."""
    with harness_running(tmp_path / "one") as one, harness_running(tmp_path / "two") as two:
        statuses = one.wait(300), two.wait(300)
    assert statuses == (PASS, PASS)
    assert main(["check", str(tmp_path / "one"), str(tmp_path / "two")]) == PASS


def _listening(process: psutil.Process) -> list[psutil._common.pconn]:
    try:
        return [one for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    except psutil.Error:
        return []


def _cluster_folders(process: psutil.Process) -> list[Path]:
    try:
        return [Path(word.removeprefix(MARKER)) for word in process.cmdline() if word.startswith(MARKER)]
    except psutil.Error:
        return []


def _still_held(ports: set[int], killed_s: float) -> set[int]:
    """Returns the ports that a process from before the kill listens on; a later harness may have them by now."""
    held = {one.laddr.port: one.pid for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    return {port for port in ports & held.keys() if held[port] is None or _began_s(held[port]) < killed_s}


def _began_s(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return float("inf")
