"""One judged trial as a CI shows it: what JUnit files, job summaries and Allure results say of it.

Read from a run folder (pytest) or from a certificate; the writers `junit.py`, `markdown.py` and `allure.py` only show
it. What a consumer wrote is bounded here, to one line; each writer escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kafka_trial.history.store import RunFolder
from kafka_trial.report.certificate import Cell, Certificate, versions_of
from kafka_trial.report.event_text import bounded
from kafka_trial.report.report_data import PATH_MAX, headline, read_report
from kafka_trial.verdict.decide import severity

LINE_MAX = 1000
REPLAY_MAX = 4 * PATH_MAX
NOT_HELD = "seen, but not held against the consumer: "


@dataclass(frozen=True)
class TrialResult:
    """One judged trial: what was tried, how it ended and why (`findings`, the gravest first; `severity` of the worst
    violation, the smallest is the worst), `not_judged` as rows of anomaly and reason, where its run folder is, and the
    command that replays it. `earlier`: its tries before, which only the machine made unknown: where, and why."""

    consumer: str
    scenario: str
    kafka: str
    seed: str
    verdict: str
    headline: str
    findings: Sequence[str]
    severity: int
    not_judged: Sequence[Mapping[str, str]]
    versions: Mapping[str, str]
    run: str
    replay: str
    earlier: Sequence[str] = ()

    @property
    def report(self) -> str:
        """Where its page is."""
        return str(Path(self.run) / "report.html")

    @property
    def properties(self) -> list[tuple[str, str]]:
        """What a result of it says in fields of its own."""
        names = ("consumer", "scenario", "kafka", "seed", "verdict", "run", "report", "replay")
        told = [(name, getattr(self, name)) for name in names]
        tries = [("tries", str(len(self.earlier) + 1)), ("unknown before", "; ".join(self.earlier))]
        return told + (tries if self.earlier else [])


def trial_result(folder: RunFolder) -> TrialResult:
    """Returns the result of a judged run folder.

    Raises:
        InputError: it has not been judged yet.
    """
    report = read_report(folder, with_history=False)
    return _result(
        report.verdict,
        consumer=report.consumer,
        scenario=report.scenario,
        kafka=report.kafka_version,
        seed=report.seed,
        versions=versions_of(folder.read_json("run.json")),
        run=folder.path,
        replay=report.replay,
    )


def certificate_results(certificate: Certificate, folder: Path) -> dict[Cell, TrialResult]:
    """Returns the results of a certificate's trials, in the order of its cells; `folder` is where it lies."""
    tried = [certificate.trials[cell] for cell in certificate.cells if cell in certificate.trials]
    return {
        trial.cell: _result(
            asdict(trial),
            consumer=certificate.consumer["name"],
            scenario=trial.scenario,
            kafka=trial.kafka,
            seed=str(trial.seed),
            versions=trial.versions,
            run=folder / trial.run,
            replay=trial.replay,
            earlier=[f"{folder / one['run']}: {'; '.join(one['reasons'])}" for one in trial.earlier],
        )
        for trial in tried
    }


def _result(
    verdict: Mapping[str, Any],
    *,
    consumer: str,
    scenario: str,
    kafka: str,
    seed: str,
    versions: Mapping[str, str],
    run: Path,
    replay: str,
    earlier: Sequence[str] = (),
) -> TrialResult:
    return TrialResult(
        consumer=bounded(consumer),
        scenario=bounded(scenario),
        kafka=bounded(kafka),
        seed=bounded(seed),
        verdict=bounded(verdict["verdict"]),
        headline=bounded(headline(verdict), most=LINE_MAX),
        findings=[bounded(finding, most=LINE_MAX) for finding in _findings(verdict)],
        severity=min((severity(str(one["anomaly"])) for one in verdict["violations"]), default=0),
        not_judged=[{name: bounded(value) for name, value in row.items()} for row in verdict["not_judged"]],
        versions={bounded(name): bounded(version) for name, version in versions.items()},
        run=bounded(run, most=PATH_MAX),
        replay=bounded(replay, most=REPLAY_MAX),
        earlier=[bounded(one, most=PATH_MAX + LINE_MAX) for one in earlier],
    )


def _findings(verdict: Mapping[str, Any]) -> list[str]:
    """Returns why it is no pass: the worst violation first, or for unknown the reasons before what was seen."""
    worst_first = sorted(verdict["violations"], key=lambda violation: severity(str(violation["anomaly"])))
    violations = [f"{violation['anomaly']}: {violation['sentence']}" for violation in worst_first]
    reasons = [str(reason) for reason in verdict["reasons"]]
    if verdict["verdict"] == "unknown":
        notes = [str(note) for note in verdict.get("notes", ())]
        return [*reasons, *notes, *(NOT_HELD + violation for violation in violations)]
    return [*violations, *reasons]
