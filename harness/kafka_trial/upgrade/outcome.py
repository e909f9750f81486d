"""The outcome of an upgrade: go, no-go or unknown, for each consumer and for the cluster in each stage, and who is
accused.

A stage is judged by the history up to its snapshot. It answers for what was proven in it alone: a violation whose last
proof is of an earlier stage stood there. What the cluster lost is no consumer's: the stage is a no-go for the cluster,
and nothing is said of the consumers on it. A stage that is missing is unknown, never a go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import orjson

from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.history.store import RunFolder
from kafka_trial.upgrade.cluster_state import CLUSTER, Loss

GO, NO_GO, NOT_KNOWN = "go", "no-go", "unknown"
CONSUMER = "consumer"
EXITS = {GO: PASS, NO_GO: FAIL, NOT_KNOWN: UNKNOWN}
VIOLATION, GROUND = "violation", "ground"  # weights in anomalies.jsonl


@dataclass(frozen=True)
class StageOutcome:
    """What came of one stage for one consumer, or for the cluster (`subject` empty): why, and by whose fault."""

    stage: str
    subject: str
    outcome: str
    accused: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Judged:
    """A stage's history, judged: pass, fail or unknown, the reasons of unknown, and its anomalies as written down."""

    word: str
    reasons: Sequence[str]
    anomalies: Sequence[Mapping[str, Any]]


def judged_stage(folder: RunFolder, word: str, reasons: Sequence[str]) -> Judged:
    """Returns what the judge wrote into a stage's folder."""
    lines = (folder.path / "anomalies.jsonl").read_bytes().splitlines()
    return Judged(word, reasons, [orjson.loads(line) for line in lines])


def of_consumer(stage: str, consumer: str, judged: Judged, proofs: AbstractSet[str]) -> StageOutcome:
    """Returns what came of a stage for a consumer; `proofs`: the events (`source#seq`) that are of the stage.

    An anomaly that no single event proves, as one of the drain, is of the stage.
    """
    own = [one for one in judged.anomalies if not one["events"] or not proofs.isdisjoint(one["events"])]
    if lost := [one for one in own if one["weight"] == GROUND]:
        return StageOutcome(stage, consumer, NOT_KNOWN, CLUSTER, str(lost[0]["sentence"]))
    if guilty := [one for one in own if one["weight"] == VIOLATION]:
        return StageOutcome(stage, consumer, NO_GO, CONSUMER, str(guilty[0]["sentence"]))
    if judged.word == "unknown" or judged.reasons:
        return StageOutcome(stage, consumer, NOT_KNOWN, "", judged.reasons[0] if judged.reasons else "")
    return StageOutcome(stage, consumer, GO)


def of_cluster(stage: str, losses: Sequence[Loss]) -> StageOutcome:
    """Returns what came of a stage for the cluster."""
    if losses:
        return StageOutcome(stage, "", NO_GO, losses[0].accused, losses[0].sentence)
    return StageOutcome(stage, "", GO)


def missing(stages: Sequence[str], told: Sequence[StageOutcome], subjects: Sequence[str]) -> list[StageOutcome]:
    """Returns an unknown outcome for each stage and subject of which nothing is told."""
    there = {(one.stage, one.subject) for one in told}
    return [
        StageOutcome(stage, subject, NOT_KNOWN, reason="this stage was not played")
        for stage in stages
        for subject in subjects
        if (stage, subject) not in there
    ]


def of_all(told: Sequence[StageOutcome]) -> str:
    """Returns the outcome of the upgrade: a no-go before an unknown, and a go only where all are."""
    words = {one.outcome for one in told}
    return next((word for word in (NO_GO, NOT_KNOWN) if word in words), GO if told else NOT_KNOWN)
