"""Collects everything a verdict rests on: the judge's findings, and what the run itself says.

Stands between the judge and the verdict. The judge looks for anomalies; from the small files of the harness's own
actors (`run`, `nemesis`) come the faults with their evidence and the consumer's plain failures; from the scenario, how
much had to be judged. Nothing is concluded here that an event does not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event, from_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.missing_lines import told
from kafka_trial.verdict.coverage_gaps import coverage_gaps, faults_without_traffic
from kafka_trial.verdict.environment_failures import disturbances_counted, environment_failures, readings_counted
from kafka_trial.verdict.fault_outcomes import by_kind, failures_of, faults_of, told_with_proof
from kafka_trial.verdict.notes import notes_of
from kafka_trial.verdict.sanitize import plain
from kafka_trial.verdict.scope import Scope
from kafka_trial.verdict.verdict_input import AnomalyResult, VerdictInput

if TYPE_CHECKING:
    from kafka_trial.judge.judge import Coverage, Finding, Judgement

SOURCES = ("run", "nemesis")


def collect(judgement: Judgement, events: Iterable[Event], scope: Scope, *, doubts: Sequence[str] = ()) -> VerdictInput:
    """Returns everything a verdict rests on; `events` are those of the sources `run` and `nemesis`."""
    said = by_kind(events)
    coverage = judgement.coverage
    faults = faults_of(
        said, scope.planned, [number for number, one in coverage.around.items() if one.traffic_after_heal]
    )
    failures, no_control = failures_of(said, told_with_proof(judgement), judgement.trial_context, planned=bool(faults))
    return VerdictInput(
        found=tuple(_found(finding) for _, finding in sorted(judgement.findings.items())),
        faults=faults,
        ground=(*doubts, *environment_failures(judgement), *no_control),
        gaps=tuple(
            coverage_gaps(coverage, scope, silent=judgement.trial_context.settings.silent)
            + faults_without_traffic(coverage, judgement.trial_context)
            + [plain(told(one)) for one in judgement.trial_context.lost_events]
        ),
        failures=failures,
        counts=_counts(coverage)
        | _unread(judgement)
        | disturbances_counted(judgement.trial_context)
        | readings_counted(judgement.trial_context),
        notes=tuple(notes_of(judgement)),
    )


def own_events(folder: RunFolder) -> Iterator[Event]:
    """Yields the events of the harness's own actors; damaged lines are the judge's to name."""
    for source in SOURCES:
        path = folder.history / f"{source}.jsonl"
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                yield from_line(line)
            except (ValueError, TypeError):
                continue


def _found(finding: Finding) -> AnomalyResult:
    return AnomalyResult(
        anomaly=finding.anomaly,
        instances=finding.instances,
        more=max(0, finding.count - len(finding.instances)),
        undecided=finding.undecided,
        not_judged=plain(finding.not_judged.because) if finding.not_judged else None,
        applies=finding.not_judged is None or finding.not_judged.applies,
        partly=finding.partly,
    )


def _unread(judgement: Judgement) -> dict[str, int]:
    count = sum(one.count for one in judgement.trial_context.lost_events)
    return {"lines not read": count} if count else {}


def _counts(coverage: Coverage) -> dict[str, int]:
    names = {"records": "records", "handled": "handled", "deliveries": "delivered", "completions": "processed"}
    names |= {"effects": "effects", "commits": "committed", "commits refused": "refused"}
    return {name: sum(getattr(part, field) for part in coverage.partitions) for name, field in names.items()}
