"""What differs between the trials of a certificate, by their run folders: for the certificate, and for `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka_trial.comparison.differences import Baseline, compare_trials
from kafka_trial.comparison.explain import ConsumerKind
from kafka_trial.comparison.figures import read_figures
from kafka_trial.comparison.pairs import ComparedTrial
from kafka_trial.consumers.spec import ConsumerSpec
from kafka_trial.history.store import RunFolder
from kafka_trial.report.certificate import BASELINE, Certificate


def consumer_kind(spec: ConsumerSpec) -> ConsumerKind:
    """Returns what of a consumer decides which changes of Kafka concern it."""
    return ConsumerKind(spec.kafka.protocol, transactions=spec.progress.kind == "transaction")


def compare_certificate(
    certificate: Certificate, root: Path, consumer: ConsumerKind, *, baseline: Certificate | None = None
) -> dict[str, Any]:
    """Returns what differs between the versions of a certificate that lies in `root`, and from that of its baseline,
    which lies in `root / BASELINE`.

    Raises:
        InputError: a run folder is missing or damaged.
    """
    old = None
    if baseline is not None:
        trials = _compared(baseline, root / BASELINE)
        old = Baseline(baseline.consumer["name"], trials, notes=_not_the_same(baseline, certificate))
    return compare_trials(
        _compared(certificate, root),
        name=certificate.consumer["name"],
        cells=certificate.cells,
        consumer=consumer,
        baseline=old,
    )


def _compared(certificate: Certificate, root: Path) -> list[ComparedTrial]:
    """Returns the trials of a certificate, in the order of its cells."""
    return [
        ComparedTrial(
            scenario=trial.scenario,
            kafka=trial.kafka,
            seed=trial.seed,
            verdict=trial.verdict,
            violations=frozenset(str(one["anomaly"]) for one in trial.violations),
            not_judged={str(one["anomaly"]): str(one["because"]) for one in trial.not_judged},
            figures=read_figures(RunFolder(root / trial.run)),
        )
        for cell in certificate.cells
        if (trial := certificate.trials.get(cell)) is not None
    ]


def _not_the_same(baseline: Certificate, certificate: Certificate) -> Sequence[str]:
    """Returns what the two clients claim otherwise: each is judged by its own claim."""
    before, after = baseline.consumer["claim"], certificate.consumer["claim"]
    other = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    words = (f"{name} {before.get(name)} → {after.get(name)}" for name in other)
    return [f"each is judged by its own claim, and they differ: {', '.join(words)}"] if other else []
