"""Several trials in turn on a cluster that stays up: `cluster up --detach`, `run --seeds --cluster`, `cluster down`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from kafka_trial.cluster.attached import attach
from kafka_trial.errors import PASS, StartError

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

SCENARIO = Path(__file__).with_name("one-broker.toml")
NAME = "warm"


@pytest.fixture
def warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster of one broker that another process holds; returns the folder of the trials."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    _kafka_trial("cluster", "up", "--detach", "--brokers", "1", "--name", NAME)
    try:
        yield tmp_path / "runs"
    finally:
        _kafka_trial("cluster", "down", NAME)


def test_trials_in_turn_on_a_warm_cluster(warm: Path) -> None:
    """Both are whole, on the brokers that were up before and still are; their lanes come back as they were."""
    cluster = attach(NAME)
    brokers = {number: broker.pid for number, broker in cluster.brokers.items()}
    words = [str(SCENARIO), "--consumer", "python-at-least-once", "--seeds", "7..8", "--cluster", NAME, "--no-check"]
    ran = _kafka_trial("run", *words, "--out", str(warm))
    assert ran.stdout.split() == [str(warm / "1"), str(warm / "2")]
    assert [orjson.loads((warm / name / "run.json").read_bytes())["seed"] for name in ("1", "2")] == [7, 8]
    replayed = [orjson.loads((warm / name / "run.json").read_bytes())["scenario_file"] for name in ("1", "2")]
    assert replayed == [str(SCENARIO), str(SCENARIO)]
    assert {number: broker.pid for number, broker in cluster.brokers.items()} == brokers
    assert [proxy.name for proxy in cluster.toxiproxy.proxies().values() if proxy.toxics or not proxy.enabled] == []


def test_lanes_are_leased_among_processes(warm: Path) -> None:
    """What one has, no other gets; given back, they are free again."""
    one, other = attach(NAME), attach(NAME)
    with one.lease_lanes(10) as lanes, other.lease_lanes(6) as others:
        assert {lane.index for lane in lanes} | {lane.index for lane in others} == set(range(16))
        with pytest.raises(StartError, match="1 lanes are needed, 0 of 16 are free"), other.lease_lanes(1):
            pass
    with other.lease_lanes(16):
        pass


def _kafka_trial(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafka_trial", *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ))
    assert ran.returncode == PASS, (ran.stdout + ran.stderr)[-3000:]
    return ran
