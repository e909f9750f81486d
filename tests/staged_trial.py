"""Trials that ran nowhere, for tests of what pytest and a CI show: a literal run folder, judged, for each verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.pytest_plugin import Judged, Trial
from kafka_trial.report.html import write_reports
from kafka_trial.report.text import text_report
from kafka_trial.scenario import Scenario
from kafka_trial.trial.session import Session, TrialOutcome
from literal_run import NASTY, SECOND, make_folder, verdict

PHASES = ("prepare", "steady", "faults", "heal", "drain", "snapshot", "stop")
WALL_S = 1_790_000_000
HOSTILE = f"{NASTY} ``` | *b* _i_ [l](http://h) <!-- \x00\x0c\u202e &amp; \\\n# h\n\n- l ]]> $x$ ~~s~~ @all"
REASON = "fault 0 (pause on m0) had no measurable effect: it used the processor"
CHANGES: dict[str, dict[str, Any]] = {
    "pass": {"violations": []},
    "fail": {},
    "unknown": {"violations": [], "reasons": [REASON]},
}


def staged_folder(path: Path, word: str) -> RunFolder:
    """Returns a judged run folder with all phases, ten seconds each, and all reports."""
    folder = make_folder(path)
    (folder.history / "run.jsonl").unlink()
    with Recorder(folder.history, "run") as run:
        run.record("clock", time_ns=0, wall_ns=WALL_S * SECOND)
        for number, phase in enumerate(PHASES):
            run.record("phase", time_ns=10 * number * SECOND, phase=phase)
        run.record("end", time_ns=70 * SECOND, outcome="ok")
    told = verdict(word, **CHANGES[word])
    if word == "fail":
        graver = {"anomaly": "skipped", "count": 1, "sentence": f"skipped {HOSTILE}", "events": ["run#1"]}
        told["violations"].append(graver)
    folder.write_json("verdict.json", told)
    libraries = {"kafka_trial": "0.1.0", "python": "3.11.7", "libraries": {"confluent-kafka": "2.16.1"}}
    folder.write_json("run.json", {**folder.read_json("run.json"), **libraries})
    write_reports(folder)
    return folder


class StagedSession(Session):
    """Runs nothing: the name of a scenario says how its trial ends."""

    def __init__(self) -> None: ...

    def try_one(self, scenario: Scenario, consumer: Path, **words: Any) -> TrialOutcome:
        folder = words["out"]
        folder.mkdir()
        made = staged_folder(folder, scenario.name)
        return TrialOutcome(made, SimpleNamespace(verdict=scenario.name), text_report(made))  # type: ignore[arg-type]


def staged(request: pytest.FixtureRequest, out: Path) -> Callable[[str], Judged]:
    """Returns what a test calls with the verdict that its trial shall have."""
    trial = Trial(StagedSession(), out, "4.3.1", 7, out, request.node)
    return lambda word: trial(Scenario(word))


MODULE = """
import pytest
from staged_trial import staged


@pytest.fixture
def try_one(request, tmp_path):
    return staged(request, tmp_path)


@pytest.mark.parametrize("word", ["pass", "fail", "unknown"])
def test_it(word, try_one):
    try_one(word).must_pass()
"""


def run_staged(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *words: str) -> pytest.RunResult:
    """Runs a pytest session of three trials: one passes, one fails, one is unknown."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    pytester.makepyfile(MODULE)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *words)
