"""What the judge finds in a frozen history, and where that differs from what was found before.

Compared are the instances (equal, as a claim sees them), how many cases are left undecided for each reason (no more
than before), and what is not judged, and why (equal). Wording may change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from kafka_trial.judge.judge import judge_events
from kafka_trial.model.trial_context import Settings
from lab.agreement.sayings import instance_of
from lab.frozen.histories import FrozenHistory

INSTANCES, UNDECIDED, NOT_JUDGED, CRASHED = "instances", "undecided", "not judged", "crashed"


@dataclass(frozen=True)
class HistoryFindings:
    """What is said of a history, by anomaly: its instances as text, each with how many there are; how many cases are
    undecided, by reason; why it is not judged. `crashed`: what broke.
    """

    instances: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    undecided: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    not_judged: Mapping[str, str] = field(default_factory=dict)
    crashed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangedFinding:
    """What was said otherwise of an anomaly in a history."""

    history: str
    anomaly: str
    what: str
    before: str
    after: str


def findings_of(history: FrozenHistory) -> HistoryFindings:
    """Returns what the judge says of a history."""
    settings: dict[str, Any] = {}
    for name, value in history.settings.items():
        settings[name] = tuple(value) if isinstance(value, list) else value
    judgement = judge_events(history.events(), Settings(**settings))
    findings = judgement.findings
    return HistoryFindings(
        {
            name: dict(sorted(Counter(_plain(instance_of(one)) for one in found.instances).items()))
            for name, found in sorted(findings.items())
            if found.instances
        },
        {name: _by_reason(found.undecided) for name, found in sorted(findings.items()) if found.undecided},
        {name: str(found.not_judged.because) for name, found in sorted(findings.items()) if found.not_judged},
        dict(judgement.crashed),
    )


def changes(history: str, before: HistoryFindings, after: HistoryFindings) -> Iterator[ChangedFinding]:
    """Yields where the findings of two judges differ; fewer undecided cases are no difference."""
    for what, old, new in (
        (INSTANCES, before.instances, after.instances),
        (NOT_JUDGED, before.not_judged, after.not_judged),
        (CRASHED, before.crashed, after.crashed),
    ):
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                yield ChangedFinding(history, name, what, _plain(old.get(name)), _plain(new.get(name)))
    for name, reasons in sorted(after.undecided.items()):
        allowed = before.undecided.get(name, {})
        if any(count > allowed.get(reason, 0) for reason, count in reasons.items()):
            yield ChangedFinding(history, name, UNDECIDED, _plain(allowed), _plain(reasons))


def _by_reason(undecided: Mapping[str, int]) -> dict[str, int]:
    return {str(reason): count for reason, count in sorted(undecided.items())}


def _plain(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
