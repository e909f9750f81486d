"""What each of the two judges says of a history, in one form that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.trial_context import Settings
from lab.history_strategies import History
from lab.naive.checker import Found, judge

PLACES = {
    "commit-regression": "log_offset",
    "zombie-commit": "log_offset",
    "commit-past-end": "log_offset",
    "commit-lost": "committed_offset",
    "commit-ahead": "committed_offset",
    "split-ownership": "log_offset",
    "stale-generation": "log_offset",
    "orphan-partition": "log_offset",
    "rebalance-storm": "bumps",
    "crash-loop": "member",
    "unbounded-close": "member",
    "never-rejoined": "member",
    "memory-over-limit": "incarnation",
    "oom-killed": "incarnation",
    "rogue-reader": "member",
    "cold-read": "member",
    "offset-outside-transaction": "log_offset",
    "torn-transaction": "producer_id",
    "hanging-transaction": "producer_id",
}
WITHOUT_PLACE = {"false-lag", "late-convergence"}  # at most one a partition
DECIDING = (
    "recovered",
    "own",
    "restart_inside",
    "asked_earlier",
    "fell",
    "skipped_record",
    "in_flight_at_crash",
    "same_key",
    "class",
    "found_in",
    "last_offset",
    "committed",
    "while_away",
    "over_limit",
    "repeats",
    "producer_epoch",
    "log",
)
DECIDING_OF = {
    "false-report": ("what", "by"),
    "late-record": ("excused_by",),
    "cold-read": ("client", "excused_by", "read_bytes"),
    "aborted-read": ("what",),
    "rogue-reader": ("client",),
    "offset-outside-transaction": ("by_operator",),
}

Said = tuple[Counter[tuple[Any, ...]], int]  # instances, undecided cases


@dataclass(frozen=True)
class Sayings:
    """A history, and what the naive and the vectorised judge say of each anomaly in it."""

    history: History
    naive: Mapping[str, Said]
    vectorised: Mapping[str, Said]

    @property
    def different(self) -> list[str]:
        """The anomalies on which they do not agree, of those that the naive one judges."""
        return [name for name in self.naive if self.naive[name] != self.vectorised[name]]

    def difference(self, name: str) -> str:
        """Says how they differ, and on which history."""
        naive, vectorised = self.naive[name], self.vectorised[name]
        return (
            f"{self.history.plan}\n    naive only {naive[0] - vectorised[0]}, vectorised only "
            f"{vectorised[0] - naive[0]}, undecided {naive[1]} and {vectorised[1]}"
        )


def both_say(histories: Sequence[History]) -> list[Sayings]:
    """Asks both of every history."""
    return [Sayings(history, naive_says(history), vectorised_says(history)) for history in histories]


def naive_says(history: History) -> dict[str, Said]:
    findings = judge(history.events, history.settings)
    return {
        name: (Counter(_naive_instance(name, found) for found in instances), findings.undecided[name])
        for name, instances in findings.anomalies.items()
        if name not in findings.not_judged
    }


def _naive_instance(name: str, found: Found) -> tuple[Any, ...]:
    topic, partition, place, attributes = found
    return topic, partition, None if name in WITHOUT_PLACE or place == -1 else place, _deciding(name, dict(attributes))


def vectorised_says(history: History) -> dict[str, Said]:
    judgement = judge_events(history.events, Settings(**history.settings), gated=False)
    assert judgement.crashed == {}
    assert judgement.defects == ()
    return {
        name: (Counter(instance_of(anomaly) for anomaly in finding.instances), sum(finding.undecided.values()))
        for name, finding in judgement.findings.items()
    }


def instance_of(anomaly: Anomaly) -> tuple[Any, ...]:
    """Returns an instance as a claim sees it: where it is, and what decides."""
    key = PLACES.get(anomaly.name, "offset")
    incarnation = {"incarnation": f"{anomaly.attributes.get('member')}-{anomaly.attributes.get('incarnation')}"}
    place = (dict(anomaly.attributes) | incarnation).get(key, anomaly.attributes.get("offset"))
    return (
        anomaly.topic,
        anomaly.partition,
        None if anomaly.name in WITHOUT_PLACE else place,
        _deciding(anomaly.name, anomaly.attributes),
    )


def _deciding(name: str, attributes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    deciding = (*DECIDING, *DECIDING_OF.get(name, ()))
    return tuple((key, attributes[key]) for key in deciding if attributes.get(key) is not None)
