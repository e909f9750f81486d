"""What a trial adds to its Allure result: its phases as steps, its parameters, its reports as attachments.

Only pytest's plug-in uses it, where allure-pytest writes results (`--alluredir`): the result is that plug-in's, kept
in `test` while the test runs. Beside the results lie the versions (`environment.properties`) and what failed or broken
tests are sorted by (`categories.json`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
from allure_commons.model2 import Parameter, Status, StatusDetails, TestResult, TestStepResult
from allure_commons.types import AttachmentType

from kafka_trial.history.event import Event
from kafka_trial.history.store import RunFolder
from kafka_trial.report.event_text import bounded
from kafka_trial.report.trial_result import TrialResult
from kafka_trial.verdict.collect import own_events

NS_PER_MS = 1_000_000
ATTACHED = {
    "verdict.json": AttachmentType.JSON,
    "report.txt": AttachmentType.TEXT,
    "report.html": AttachmentType.HTML,
}
PARAMETERS = ("consumer", "scenario", "kafka", "seed")
# Why a trial is unknown, by its first reason; the first that matches counts, so the last takes what is left.
UNKNOWN_BECAUSE = {
    "a fault without effect, or not healed": r"fault \d+ \(.*(had no measurable effect|traffic did not come)",
    "a claimed property was not judged": r"claimed but not judged: ",
    "a case is undecided": r"[\w-]+: \d+ undecided: ",
    "too little to judge by": r".*(proves nothing about the consumer|fewer than the|no record was (judged|handled))",
    "the environment failed": r"",
}


def add_trial(logger: Any, test: TestResult, result: TrialResult) -> None:
    """Adds a trial to the result of its test; `logger` is the AllureReporter that keeps it."""
    folder = RunFolder(Path(result.run))
    test.steps.extend(_steps(folder))
    told = {name: getattr(result, name) for name in PARAMETERS}
    test.parameters[:] = [one for one in test.parameters if one.name not in (*PARAMETERS, "trial")]
    test.parameters.extend(  # a seed is drawn: tests are told apart across sessions without it
        Parameter(name=name, value=value, excluded=name == "seed" or None) for name, value in told.items()
    )
    for name, kind in ATTACHED.items():
        if (file := folder.path / name).exists():
            logger.attach_file(str(uuid4()), str(file), name=name, attachment_type=kind, parent_uuid=test.uuid)


def tell_verdict(test: TestResult, result: TrialResult, *, told: str) -> None:
    """Makes the verdict the status detail of a test, with the whole report behind it."""
    message = "\n".join([result.headline, *(worst for worst in result.findings[:1] if worst not in result.headline)])
    test.statusDetails = StatusDetails(message=message, trace=told)


def write_directory(directory: Path, results: Iterable[TrialResult]) -> None:
    """Writes environment.properties and categories.json beside the results of a session."""
    versions: dict[str, dict[str, None]] = {}
    for result in results:
        for name, version in result.versions.items():
            versions.setdefault(name, {})[version] = None
    lines = [f"{name}={', '.join(sorted(each))}".replace("\\", "\\\\") for name, each in versions.items()]
    (directory / "environment.properties").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (directory / "categories.json").write_bytes(orjson.dumps(categories(), option=orjson.OPT_INDENT_2))


def categories() -> list[dict[str, Any]]:
    """Returns what failed and broken trials are sorted by: fail, and unknown by its first reason.

    The expressions mean the same in Java (Allure 2) and in JavaScript (Allure 3).
    """
    unknown = {f"unknown: {name}": ("broken", f"UNKNOWN: {regex}") for name, regex in UNKNOWN_BECAUSE.items()}
    return [
        {"name": name, "matchedStatuses": [status], "messageRegex": rf"^{regex}[\s\S]*"}
        for name, (status, regex) in {"fail: the consumer broke its claim": ("failed", "FAIL: "), **unknown}.items()
    ]


def _steps(folder: RunFolder) -> list[TestStepResult]:
    """Returns the phases of a trial, by the wall clock; none where the history does not hold it."""
    events = [event for event in own_events(folder) if event.source == "run"]
    clock = next((event for event in events if event.kind == "clock"), None)
    phases = [event for event in events if event.kind == "phase"]
    if clock is None or not phases:
        return []
    ahead_ns = int(clock.details["wall_ns"]) - clock.time_ns
    last = events[-1]
    return [_step(begin, end, ahead_ns=ahead_ns) for begin, end in pairwise([*phases, last])]


def _step(begin: Event, end: Event, *, ahead_ns: int) -> TestStepResult:
    start, stop = ((event.time_ns + ahead_ns) // NS_PER_MS for event in (begin, end))
    cut_short = end.kind == "end" and end.outcome != "ok"
    status = Status.BROKEN if cut_short else Status.PASSED
    told = StatusDetails(message=bounded(end.details.get("message", ""))) if cut_short else None
    name = str(begin.details.get("phase"))
    return TestStepResult(name=name, status=status, statusDetails=told, start=start, stop=stop)
