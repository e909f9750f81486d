"""Images that misbehave: each has the verdict that its consumer deserves, with the evidence, and nothing is left."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient

from engines import left_of
from kafka_trial.cli import main
from kafka_trial.errors import FAIL, NOT_BEGUN, PASS
from kafka_trial.registry import find_scenario
from kafka_trial.scenario import Limits
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from lab.images import FOLDER, image_of_team

pytestmark = pytest.mark.cluster

ROTATES = pytest.mark.rotates(together="dear")
TEAM = FOLDER / "python-orders"
QUICK = Path(__file__).with_name("quick.toml")
TOML = """
schema = 1
name = "{name}"
members = 1
[env]
BOOTSTRAP_SERVERS = "{{bootstrap}}"
GROUP_ID = "{{group}}"
CLIENT_ID = "{{client_id}}"
TOPIC = "{{topics}}"
SINK_URL = "{{sink_url}}"
[evidence]
events = "none"
sink = "http"
body = "value"
[stop]
within_s = 2
[claim]
delivery = "at-least-once"
[image]
name = "{image}"
mounts = {{ "main.py" = "/app/main.py", "orders.py" = "/app/orders.py" }}
{limits}
"""
WORKS = "from orders import Orders; Orders().run()"
# What stands in front of a team's sound program, and the limits of its container.
PROGRAMS = {
    "exits": ("raise SystemExit('no such order')", ""),
    "idles": ("import time; time.sleep(600)", ""),
    "deaf": (f"import signal; signal.signal = lambda *_: None\n{WORKS}", ""),
    "greedy": (
        f"""
import threading
kept = []
def more():
    while True: kept.append(b'x' * 2 ** 20)
threading.Timer(6, more).start()
{WORKS}
""",
        "memory_bytes = 120_000_000",
    ),
    "talks": (
        f"""
import sys, threading
def talk():
    while True: sys.stdout.write('order ' * 2000)
threading.Thread(target=talk, daemon=True).start()
{WORKS}
""",
        "cpus = 0.5",
    ),
}


def consumer(folder: Path, name: str, image: str, *, program: str = WORKS, limits: str = "") -> Path:
    """Writes a consumer.toml for an image, in which another program runs than its own."""
    folder.mkdir(exist_ok=True)
    (folder / "main.py").write_text(program)
    (folder / "orders.py").write_text((TEAM / "main.py").read_text())
    file = folder / "consumer.toml"
    file.write_text(TOML.format(name=name, image=image, limits=limits))
    return file


@pytest.fixture(scope="module")
def tried(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    """Tries every one of them on one cluster of containers, side by side; by name."""
    image = image_of_team(engine, "python-orders")
    scenario = replace(find_scenario(str(QUICK)), schedule=(), limits=Limits(ready_s=15, drain_s=5))
    top = tmp_path_factory.mktemp("images")
    asked = {}
    for name, (program, limits) in PROGRAMS.items():
        file = consumer(top / name, name, image, program=program, limits=limits)
        asked[TrialRequest(make_trial_spec(scenario, file, seed=1), top / name / "run")] = name
    with Session(judging=False) as session:
        outcomes = {asked[one]: outcome for one, outcome in session.try_many(list(asked))}
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, TrialOutcome)}


@ROTATES
def test_one_that_exits_at_once_fails_with_its_last_words(tried: dict[str, TrialOutcome]) -> None:
    """Status 1: a control member of ours could join where it had ended."""
    one = tried["exits"]
    assert (one.verdict.exit, "with status 1; its last words in logs/m0-0.stderr: no such order" in one.text) == (
        FAIL,
        True,
    )


@ROTATES
def test_one_that_never_joins_fails_beside_a_control_member(tried: dict[str, TrialOutcome]) -> None:
    """Status 1: its container runs, and never got a partition."""
    one = tried["idles"]
    assert (one.verdict.exit, "never got a partition" in one.text) == (FAIL, True)


@ROTATES
def test_one_that_ignores_its_stop_signal_is_killed_and_fails(tried: dict[str, TrialOutcome]) -> None:
    """The kernel spares the first process of a container what it does not handle: its only violation."""
    one = tried["deaf"]
    assert (one.verdict.exit, [violation.anomaly for violation in one.verdict.violations]) == (
        FAIL,
        ["unbounded-close"],
    )
    assert "init = true" in " ".join(one.text.split())


@ROTATES
def test_one_that_wants_more_memory_than_its_limit_fails_and_is_told_why(tried: dict[str, TrialOutcome]) -> None:
    """Its container's limit, not the machine's memory, is in the sentence; the event says it too."""
    one = tried["greedy"]
    assert (one.verdict.exit, [violation.anomaly for violation in one.verdict.violations]) == (FAIL, ["exited"])
    assert "killed for want of memory: it wanted more than its limit" in one.text
    (exited,) = [event for event in one.folder.events() if event.kind == "exited"]
    assert (exited.details["signal"], exited.details["oom_killed"]) == (9, True)


@ROTATES
def test_one_that_writes_without_end_is_judged_as_any_other(tried: dict[str, TrialOutcome]) -> None:
    """What it writes is bounded in the run folder and in the engine; its effects are all there."""
    one = tried["talks"]
    log = one.folder.logs / "m0-0.stdout"
    assert (one.verdict.exit, log.stat().st_size < 10 * 1024 * 1024 + 200) == (PASS, True)


@ROTATES
def test_nothing_of_them_is_left(tried: dict[str, TrialOutcome], engine: DockerClient) -> None:
    """No container and no network that this process has made."""
    assert len(tried) == len(PROGRAMS)
    assert left_of(engine, os.getpid()) == []


def test_without_an_engine_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 3, one sentence that says where it was looked for and what to do, and no run folder."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    status = _run(tmp_path, "kafka-trial/python-orders:1")
    said = capsys.readouterr().err
    assert (status, (tmp_path / "run").exists(), "Traceback" in said) == (NOT_BEGUN, False, False)
    assert f"no container engine answers where DOCKER_HOST says: unix://{tmp_path}/nowhere.sock (No such file" in said
    assert "unset it to try the machine's own" in said


def test_an_image_that_is_not_there_is_told_before_anything_starts(
    tmp_path: Path, engine: DockerClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 3: nothing is booted for it; the sentence says that it was asked for where it comes from."""
    status = _run(tmp_path, "127.0.0.1:9/team/orders:1")
    said = capsys.readouterr().err
    assert (status, (tmp_path / "run").exists(), "Traceback" in said) == (NOT_BEGUN, False, False)
    assert "image 127.0.0.1:9/team/orders:1 is not there (docker image ls) and cannot be pulled: " in said
    assert left_of(engine, os.getpid()) == []


def _run(folder: Path, image: str) -> int:
    file = consumer(folder / "consumer", "orders", image)
    return main(["run", str(QUICK), "--consumer", str(file), "--seed", "1", "--out", str(folder / "run")])
