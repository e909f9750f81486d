"""The harness killed beside containers, and an engine that is killed or full under a trial: nothing is left."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import pytest
from docker import DockerClient

from engines import kill_engine, left_of, small_disk
from harness_process import harness_running, wait_for_phase
from kafka_trial.cli import main
from kafka_trial.cluster.images import image_for_kafka, image_for_toxiproxy
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.containers.engine import client_of
from kafka_trial.containers.private_engine import private_engine
from kafka_trial.errors import UNKNOWN
from kafka_trial.process.waiting import wait_until
from lab.images import FOLDER, image_of_team
from tiers import ALL, in_turn

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

TEAM = str(FOLDER / "python-orders")
ENDS = {  # of an engine: what becomes of it, and what the trial says then
    "killed": "toxiproxy is not known: the container engine does not answer (it hung up)",
    "full": "No space left on device",
}
FILLS = ["/usr/local/bin/python3", "-c", "file = open('/tmp/full', 'wb')\nwhile True: file.write(bytes(2**20))"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test of each end of an engine, or of the one whose turn it is (`tiers.py`)."""
    if "end" in metafunc.fixturenames:
        metafunc.parametrize("end", list(ENDS) if metafunc.config.getoption("tier") == ALL else [in_turn(list(ENDS))])


def test_killed_beside_containers_leaves_none(engine: DockerClient, tmp_path: Path) -> None:
    """Members, brokers, Toxiproxy, network and folder are gone within seconds; the run is judged unknown."""
    image_of_team(engine, "python-orders")
    with harness_running(tmp_path / "run", consumer=TEAM) as harness:
        wait_for_phase(tmp_path / "run", "faults", harness)
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
        with harness_running(tmp_path / "run", consumer=TEAM, host=host, check=True) as harness:
            wait_for_phase(tmp_path / "run", "steady" if end == "full" else "faults", harness)
            left = left_of(own, harness.pid)
            (network,) = {name.split("-")[0] for name in left}
            if end == "full":
                member = next(name for name in left if "-m1-" in name)  # m0 is killed, and takes its files along
                filled = own.containers.get(member).exec_run(FILLS)
                said_so = b"No space left on device" in filled.output
                assert said_so or filled.exit_code == 128 + signal.SIGKILL  # brokers ended of it, and the trial, before
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
