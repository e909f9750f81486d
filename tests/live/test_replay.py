"""Replaying a recorded schedule: by role, by the recorded names, and refused where a name does not exist."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.errors import PASS, WRONG_INPUT

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

SCENARIO = Path(__file__).with_name("one-broker.toml")
PLANNED = ("no", "fault", "target", "at_s", "for_s", "options", "seed")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The schedule.json of a trial that was run with seed 7."""
    out = tmp_path_factory.mktemp("recorded") / "run"
    ran = _run(out, [])
    assert ran.returncode == PASS, ran.stderr[-3000:]
    return out / "schedule.json"


def test_a_replay_by_role_plays_the_same_faults_on_the_same_roles(recorded: Path, tmp_path: Path) -> None:
    """Instants, faults, roles and seeds are those of the schedule, not what the scenario would draw."""
    later = _edited(recorded, tmp_path, at_s=1.25)
    ran = _run(tmp_path / "run", ["--schedule", str(later)])
    assert ran.returncode == PASS, ran.stderr[-3000:]
    assert _planned(tmp_path / "run" / "schedule.json") == _planned(later) != _planned(recorded)
    assert _injected(tmp_path / "run") == [("kill", f"member: {_resolved(tmp_path / 'run' / 'schedule.json')}")]


def test_an_exact_replay_hits_the_recorded_targets(recorded: Path, tmp_path: Path) -> None:
    """With `--exact` the recorded name counts, also where the role would have drawn another."""
    other = next(name for name in ("m0", "m1", "m2") if name != _resolved(recorded))
    ran = _run(tmp_path / "run", ["--exact", "--schedule", str(_edited(recorded, tmp_path, resolved=other))])
    assert ran.returncode == PASS, ran.stderr[-3000:]
    assert _injected(tmp_path / "run") == [("kill", f"member: {other}")]


@pytest.mark.parametrize(("resolved", "said"), [("m9", "'m9'"), (None, "no target was recorded")])
def test_an_exact_replay_of_what_is_not_there_is_refused(
    resolved: str | None, said: str, recorded: Path, tmp_path: Path
) -> None:
    """Status 2 before anything starts: the schedule, the name and the valid ones; no run folder is made."""
    schedule = _edited(recorded, tmp_path, resolved=resolved)
    ran = _run(tmp_path / "run", ["--exact", "--schedule", str(schedule)])
    assert (ran.returncode, (tmp_path / "run").exists()) == (WRONG_INPUT, False), ran.stderr[-3000:]
    assert (str(schedule) in ran.stderr, said in ran.stderr) == (True, True), ran.stderr


def _run(out: Path, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("kafka-trial"), "run", SCENARIO, "--consumer", "python-at-least-once"]
    command += ["--no-check", "--seed", "7", "--out", out, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _edited(schedule: Path, folder: Path, **changes: Any) -> Path:
    table = orjson.loads(schedule.read_bytes())
    table["faults"][0] |= changes
    place = folder / "edited.json"
    place.write_bytes(orjson.dumps(table))
    return place


def _planned(schedule: Path) -> list[list[Any]]:
    return [[fault[name] for name in PLANNED] for fault in orjson.loads(schedule.read_bytes())["faults"]]


def _resolved(schedule: Path) -> str:
    return str(orjson.loads(schedule.read_bytes())["faults"][0]["resolved"])


def _injected(run: Path) -> list[tuple[str, str]]:
    lines = map(orjson.loads, (run / "history" / "nemesis.jsonl").read_bytes().splitlines())
    return [(line["fault"], line["target"]) for line in lines if line["kind"] == "injected"]
