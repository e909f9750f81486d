"""The harness killed with -9 in any phase: no process and no port is left, and the folder says *unknown*."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from docker import DockerClient

from engines import kill_engine, left_of, small_disk
from kafka_trial.cli import main
from kafka_trial.cluster.doctor import MARKER
from kafka_trial.cluster.images import image_for_kafka, image_for_toxiproxy
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.containers.engine import client_of
from kafka_trial.containers.private_engine import private_engine
from kafka_trial.errors import INTERRUPTED, PASS, UNKNOWN
from kafka_trial.history.store import Follower
from kafka_trial.process.waiting import wait_until
from lab.images import FOLDER, image_of_team
from tiers import ALL, in_turn

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

TEAM = str(FOLDER / "python-orders")
QUICK = Path(__file__).with_name("quick.toml")
PHASES = ("prepare", "steady", "faults", "heal", "drain", "snapshot", "stop")
BEGINS_WITHIN_S = 120
# Who starts tests in the background has Ctrl-C ignored, and so have its children.
HEARS_CTRL_C = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_any_phase_leaves_nothing_running(phase: str, tmp_path: Path) -> None:
    """Its processes and its cluster's folder are gone, its ports free; the half-written run is judged unknown (4)."""
    with _harness(tmp_path / "run") as harness:
        _wait_for_phase(tmp_path / "run", phase, harness)
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


def test_killed_beside_containers_leaves_none(engine: DockerClient, tmp_path: Path) -> None:
    """Members, brokers, Toxiproxy, network and folder are gone within seconds; the run is judged unknown."""
    image_of_team(engine, "python-orders")
    with _harness(tmp_path / "run", consumer=TEAM) as harness:
        _wait_for_phase(tmp_path / "run", "faults", harness)
        before = left_of(engine, harness.pid)
        harness.kill()
        harness.wait(10)
    assert len(before) >= 8  # three members, three brokers, Toxiproxy, a network; and two folders
    wait_until(
        lambda: not left_of(engine, harness.pid),
        within_s=30,
        what="all containers to be gone",
        detail=lambda: str(left_of(engine, harness.pid)),
    )
    (network,) = {name.split("-")[0] for name in before}
    wait_until(lambda: not _folders_of(network), within_s=10, what="the folder of the cluster to be removed")
    assert main(["check", str(tmp_path / "run")]) == UNKNOWN


ENDS = {  # of an engine: what becomes of it, and what the trial says then
    "killed": "toxiproxy is not known: the container engine does not answer (it hung up)",
    "full": "No space left on device",
}
SIGNALS = ["SIGINT", "SIGTERM"]
FILLS = ["/usr/local/bin/python3", "-c", "file = open('/tmp/full', 'wb')\nwhile True: file.write(bytes(2**20))"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test of each end of an engine, and of each signal, or of the one whose turn it is (`tiers.py`)."""
    for name, values in {"end": list(ENDS), "sent": SIGNALS}.items():
        if name in metafunc.fixturenames:
            chosen = values if metafunc.config.getoption("tier") == ALL else [in_turn(values)]
            metafunc.parametrize(name, chosen)


def test_a_trial_whose_engine_is_gone_or_full_ends_unknown_and_says_so(
    end: str, engine: DockerClient, tmp_path: Path
) -> None:
    """Within minutes, with status 4: no member is said to have exited, nothing is left of the cluster, the evidence is.

    The disk is filled by a member, in its container: brokers, whose data is on the same disk, end of that."""
    images = (
        image_for_kafka(engine, DEFAULT_VERSION),
        image_for_toxiproxy(engine),
        image_of_team(engine, "python-orders"),
    )
    with small_disk("1200m") as disk, private_engine(kept=disk / "engine") as host:
        own = client_of(host)
        for image in images:
            own.images.load(engine.images.get(image).save(named=True))
        with _harness(tmp_path / "run", consumer=TEAM, host=host, check=True) as harness:
            _wait_for_phase(tmp_path / "run", "steady" if end == "full" else "faults", harness)
            left = left_of(own, harness.pid)
            (network,) = {name.split("-")[0] for name in left}
            if end == "full":
                member = next(name for name in left if "-m0-" in name)
                assert b"No space left on device" in own.containers.get(member).exec_run(FILLS).output
            else:
                kill_engine(host)
            assert harness.wait(240) == UNKNOWN
        if end == "full":
            assert left_of(own, harness.pid) == []
        own.close()
    said, report = (tmp_path / "said").read_text(), (tmp_path / "run" / "report.txt").read_text()
    assert "Traceback" not in said
    assert ENDS[end] in report.splitlines()[0]
    assert "exited by itself" not in report
    assert (tmp_path / "run" / "logs" / "b0-server.log").stat().st_size > 0
    wait_until(lambda: not _folders_of(network), within_s=10, what="the folder of the cluster to be removed")


def _folders_of(cluster: str) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"kafka-trial-{cluster}-*"))


def test_ctrl_c_heals_and_cleans_up(sent: str, tmp_path: Path) -> None:
    """SIGINT or SIGTERM in mid-fault ends in 130, said so, the fault healed in the journal and nothing left running."""
    with _harness(tmp_path / "run") as harness:
        _wait_for_phase(tmp_path / "run", "faults", harness)
        follower = Follower(tmp_path / "run" / "history", "nemesis.jsonl")
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
    kinds = [event.kind for event in Follower(tmp_path / "run" / "history", "nemesis.jsonl").new_events()]
    assert kinds.count("healed") == kinds.count("injected") >= 1


def test_two_harnesses_at_once_do_not_meet(tmp_path: Path) -> None:
    """Two commands started together both pass, each on ports of its own."""
    with _harness(tmp_path / "one") as one, _harness(tmp_path / "two") as two:
        statuses = one.wait(300), two.wait(300)
    assert statuses == (PASS, PASS)
    assert main(["check", str(tmp_path / "one"), str(tmp_path / "two")]) == PASS


@contextmanager
def _harness(
    out: Path, *, consumer: str = "python-at-least-once", host: str | None = None, check: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HEARS_CTRL_C, "-m", "kafka_trial", "run", str(QUICK)]
    command += ["--consumer", consumer, *([] if check else ["--no-check"]), "--seed", "7", "--out", str(out)]
    environment = os.environ | ({"DOCKER_HOST": host} if host else {})
    with out.with_name("said").open("wb") as said:
        harness = subprocess.Popen(command, stderr=said, env=environment)
    try:
        yield harness
    finally:
        harness.kill()
        harness.wait(10)


def _wait_for_phase(run: Path, phase: str, harness: subprocess.Popen[bytes]) -> None:
    follower = Follower(run / "history", "run.jsonl")
    wait_until(
        lambda: any(event.details.get("phase") == phase for event in follower.new_events()),
        within_s=BEGINS_WITHIN_S,
        what=f"phase {phase}",
        every_s=0.02,
        alive=lambda: None if harness.poll() is None else f"the harness exited with {harness.returncode}",
        detail=run.with_name("said").read_text,
    )


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
