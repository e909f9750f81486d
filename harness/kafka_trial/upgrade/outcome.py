"""The outcome of an upgrade: go, no-go or unknown, for each consumer and for the cluster in each stage, and who is
accused.

A stage is judged by the history up to its snapshot. It answers for what was proven in it alone: a violation whose last
proof is of an earlier stage stood there. What the cluster lost is no consumer's: the stage is a no-go for the cluster,
and from then on no consumer is accused, because what it breaks may follow from that. A stage that is missing is
unknown, never a go; and so is one that changed a broker from which no member got a record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.history.store import RunFolder
from kafka_trial.upgrade.cluster_state import CLUSTER, Loss
from kafka_trial.upgrade.cut_off import cut_off_in_words
from kafka_trial.upgrade.stage_history import OF_A_CONTROL_READ
from kafka_trial.upgrade.unfetched_brokers import unfetched_in_words
from kafka_trial.verdict.decide import Verdict

GO, NO_GO, NOT_KNOWN = "go", "no-go", "unknown"
CONSUMER = "consumer"
EXITS = {GO: PASS, NO_GO: FAIL, NOT_KNOWN: UNKNOWN}
VIOLATION, GROUND = "violation", "ground"  # weights in anomalies.jsonl
ANOMALIES: Final = "anomalies.jsonl"
LEFT: Final = frozenset(("unseen", "overtaken"))  # what is left undone by a group that does not get on
PLACES: Final = ("offset", "committed_offset", "log_offset", "member", "incarnation", "producer_id")


@dataclass(frozen=True)
class StageOutcome:
    """What came of one stage for one consumer, or for the cluster (`subject` empty): why, and by whose fault."""

    stage: str
    subject: str
    outcome: str
    accused: str = ""
    reason: str = ""


class StageVerdicts:
    """The verdicts on the stages of one consumer, in their order: each history begins where the first one did, so what
    was found in an earlier stage is found again."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer
        self._known: set[bytes] = set()
        self._counts: dict[str, int] = {}
        self._reasons: set[str] = set()
        self._begins_ns = -math.inf

    def outcome(
        self, stage: str, folder: RunFolder, verdict: Verdict, losses: Iterable[Loss], stranded: Sequence[Loss] = ()
    ) -> StageOutcome:
        """Returns what came of the next stage, whose history is in the folder and judged; `losses`: all up to its end.
        If no more is broken than that the group stands still, and members are `stranded`, it is by these.

        An anomaly is of the stage if one of the events that prove it is, if none proves it (what is left at the end of
        a drain), or if no earlier stage had it. So is a reason why something is unknown that no earlier stage had.
        """
        anomalies = [orjson.loads(line) for line in (folder.path / ANOMALIES).read_bytes().splitlines()]
        proofs, ends_ns = _events_since(folder, self._begins_ns)
        own = [one for one in anomalies if self._is_of_the_stage(one, proofs)]
        said = [(str(one["anomaly"]), str(one["sentence"])) for one in own if one["weight"] == VIOLATION]
        said += [  # a list of anomalies has an end
            (one.anomaly, one.sentence) for one in verdict.violations if one.count > self._counts.get(one.anomaly, 0)
        ]
        lost = [str(one["sentence"]) for one in own if one["weight"] == GROUND]
        reasons = [reason for reason in verdict.reasons if reason not in self._reasons]
        self._known |= {_identity(one) for one in anomalies}
        self._counts |= {one.anomaly: one.count for one in verdict.violations}
        self._reasons |= set(verdict.reasons)
        begins_ns, self._begins_ns = self._begins_ns, ends_ns
        if lost:
            return StageOutcome(stage, self._consumer, NOT_KNOWN, CLUSTER, lost[0])
        if not (said or reasons):
            unfetched = unfetched_in_words(folder, begins_ns=begins_ns)
            return StageOutcome(stage, self._consumer, NOT_KNOWN if unfetched else GO, reason=unfetched)
        cause = cut_off_in_words(folder.history, begins_ns=begins_ns)
        if said and verdict.exit == FAIL and stranded and {anomaly for anomaly, _ in said} <= _of_standing_still():
            return StageOutcome(stage, self._consumer, NO_GO, stranded[0].accused, stranded[0].sentence)
        if said and verdict.exit == FAIL:
            broken = _with(": ".join(said[0]), cause)
            if before := next((loss.sentence for loss in losses if loss.accused == CLUSTER), None):
                reason = f"the cluster had lost something: {before}. What was broken may follow from it: {broken}"
                return StageOutcome(stage, self._consumer, NOT_KNOWN, CLUSTER, reason)
            return StageOutcome(stage, self._consumer, NO_GO, CONSUMER, broken)
        return StageOutcome(stage, self._consumer, NOT_KNOWN, "", _with((reasons or verdict.reasons)[0], cause))

    def _is_of_the_stage(self, anomaly: Mapping[str, Any], proofs: AbstractSet[str]) -> bool:
        proved = anomaly["events"]
        return not proved or not proofs.isdisjoint(proved) or _identity(anomaly) not in self._known


def _of_standing_still() -> set[str]:
    """Returns the anomalies of a group that does not get on: with its work, or with its members."""
    return {one.name for one in list_invariants() if one.family == "liveness"} | LEFT


def _with(reason: str, told: str) -> str:
    """Returns a reason with what was told of members that were cut off: the cause, where it is that nothing went on."""
    word = "Cause" if reason.partition(": ")[0] in _of_standing_still() else "Besides"
    return f"{reason}. {word}: {told}" if told else reason


def _identity(anomaly: Mapping[str, Any]) -> bytes:
    """Returns what an anomaly is known by in the stages after its own: its place, not how long it has lasted."""
    attributes = {name: anomaly["attributes"].get(name) for name in PLACES}
    place = [anomaly["anomaly"], anomaly["topic"], anomaly["partition"], attributes]
    return orjson.dumps(place, option=orjson.OPT_SORT_KEYS)


def _events_since(folder: RunFolder, begins_ns: float) -> tuple[set[str], float]:
    """Returns the events (`source#seq`) that came after an instant, and when the last of the run came.

    What the topic held is read anew at the end of each stage, and tells of no stage.
    """
    found: set[str] = set()
    ends_ns = begins_ns
    for file in folder.history_files():
        for line in file.read_bytes().splitlines():
            event = orjson.loads(line)
            if event["time_ns"] > begins_ns and event["kind"] not in OF_A_CONTROL_READ:
                found.add(f"{event['source']}#{event['seq']}")
            if event["kind"] == "end":
                ends_ns = event["time_ns"]
    return found, ends_ns


def of_cluster(stage: str, losses: Sequence[Loss], not_known: str = "") -> StageOutcome:
    """Returns what came of a stage for the cluster; `not_known`: why something of it could not be looked at."""
    if losses:
        return StageOutcome(stage, "", NO_GO, losses[0].accused, losses[0].sentence)
    if not_known:
        return StageOutcome(stage, "", NOT_KNOWN, reason=not_known)
    return StageOutcome(stage, "", GO)
