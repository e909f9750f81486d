"""A certificate as it is filled in: which trials are asked for, what came of each, and the files it is written to.

`certify` keeps one for the consumer, and with a baseline another one for that.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka_trial import registry
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.store import RunFolder
from kafka_trial.report.certificate import BASELINE, Cell, Certificate, CertifiedTrial, certified, write_certificate
from kafka_trial.report.junit import write_junit
from kafka_trial.report.report_data import read_report
from kafka_trial.trial.consumer_files import ChangeWatch
from kafka_trial.trial.session import TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec

RUNS = "runs"


@dataclass(frozen=True)
class CertifyRequest:
    """What is asked: which consumer, on which suites (empty: all) and Kafka versions (empty: the newest known), each
    once for each of `seeds`; `out` is where certificate, page and run folders go. No trial is begun after `minutes`.
    What only the machine made unknown is tried up to `retry_unknown` times more.

    With `budget_s` only those of the suites that find most in this time (`suite_budget.py`), and no trial is begun that
    by the calibration cannot end within it. `load`: which part of the suites' load; None: as consumer.toml says.

    `baseline`: another consumer, tried on the same, which the verdict is against."""

    consumer: Path
    out: Path
    suites: Sequence[str] = ()
    kafka_versions: Sequence[str] = ()
    seeds: Sequence[int] = (1,)
    minutes: float | None = None
    budget_s: float | None = None
    side_by_side: int | None = None
    retry_unknown: int = 1
    image: str | None = None
    load: float | None = None
    baseline: Path | None = None

    def of_baseline(self, begun: Certificate) -> CertifyRequest:
        """Returns what is asked of the baseline: what the certificate that was begun asks of the consumer."""
        assert self.baseline is not None
        return replace(
            self,
            consumer=self.baseline,
            out=self.out / BASELINE,
            suites=begun.suites,
            kafka_versions=begun.kafka,
            budget_s=None,
            image=None,
            load=begun.load,
            baseline=None,
        )


class CertificateLedger:
    """The certificate of one consumer while its trials end one after the other."""

    def __init__(self, certify_request: CertifyRequest, begun: Certificate, *, label: str = "") -> None:
        """`label` stands before the trials of this consumer in what is said of them."""
        self.certify_request = certify_request
        self.label = label
        self._trials = dict(begun.trials)
        self._not_begun: dict[Cell, str] = {}
        self._watch = _watch(certify_request, begun)
        self.certificate = replace(begun, trials=self._trials)

    def request(self, cell: Cell, begin_by_s: float) -> TrialRequest:
        """Returns the request for one trial, after what an earlier sitting left of it is gone."""
        return _request(self.certify_request, cell, begin_by_s)

    def take(self, cell: Cell, outcome: TrialOutcome | KafkaTrialError) -> str:
        """Writes down how a trial ended, and returns it in words."""
        if isinstance(outcome, TrialOutcome):
            self._trials[cell] = _certified(self.certify_request, cell, outcome)
        else:
            self._not_begun[cell] = str(outcome)
        self.write()
        return f"{self.label}{' '.join(map(str, cell))}: {_told(outcome)}"

    def new_changes(self) -> str:
        """Says which files of the consumer have changed since it was last looked; else nothing."""
        return self._watch.new_changes()

    def compare(self, comparison: dict[str, Any]) -> None:
        """Takes what differs, once all trials have ended."""
        self.certificate = replace(self.certificate, comparison=comparison)

    def write(self) -> None:
        """Writes certificate, page and JUnit file as they are now."""
        self.certify_request.out.mkdir(parents=True, exist_ok=True)
        write_certificate(self.certificate, self.certify_request.out)
        write_junit(self.certificate, self.certify_request.out, self._not_begun)


def _request(certify_request: CertifyRequest, cell: Cell, begin_by_s: float) -> TrialRequest:
    scenario, version, seed = cell
    place = certify_request.out / RUNS / version / scenario / str(seed)
    for left in (place, *place.parent.glob(f"{seed}-try*")):  # of one that was stopped in the midst of this trial
        shutil.rmtree(left, ignore_errors=True)
    spec = make_trial_spec(
        registry.find_scenario(scenario),
        certify_request.consumer,
        kafka_version=version,
        seed=seed,
        image=certify_request.image,
        load=certify_request.load,
    )
    return TrialRequest(spec, place, begin_by_s)


def _watch(certify_request: CertifyRequest, begun: Certificate) -> ChangeWatch:
    payload = spec_from_toml(certify_request.consumer, image=certify_request.image).payload_files
    return ChangeWatch(certify_request.consumer, payload, certify_request.out, begun.consumer["files"])


def _certified(certify_request: CertifyRequest, cell: Cell, outcome: TrialOutcome) -> CertifiedTrial:
    folder, earlier = (
        outcome.folder,
        [
            {"run": _inside(certify_request, one.folder), "reasons": list(one.verdict.reasons)}
            for one in outcome.earlier
        ],
    )
    replay = read_report(folder, with_history=False).replay
    return certified(folder, cell=cell, run=_inside(certify_request, folder), replay=replay, earlier=earlier)


def _inside(certify_request: CertifyRequest, folder: RunFolder) -> str:
    return folder.path.relative_to(certify_request.out.absolute()).as_posix()


def _told(outcome: TrialOutcome | KafkaTrialError) -> str:
    if isinstance(outcome, KafkaTrialError):
        return f"not begun: {outcome}"
    tries = len(outcome.earlier) + 1
    again = [f"tried {tries} times: the machine had made it unknown"] if tries > 1 else []
    return ", ".join([outcome.verdict.verdict, *(one.anomaly for one in outcome.verdict.violations), *again])
