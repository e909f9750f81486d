"""Quiet consumers of the zoo: what a sin must show, and how a sound one ends, where it says nothing of what it does.

A fixture's `quiet.toml` is its consumer.toml with `events = "none"`. Each anomaly can be seen from one level of
cooperation on (`none`: by the brokers' logs alone; `sink`: by effects too; `events`: by the consumer's own word).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.consumers.spec import EvidenceGiven
from kafka_trial.judge.not_judged import NotJudgedReason
from lab.calibration.fixture_header import FixtureHeader

LEVELS = ("none", "sink", "events")  # each has what those before it have
# Ends of reasons; the first two were said before effects told of the order, and before the sink was named.
SILENCE = (
    f": {NotJudgedReason.NO_EVENTS}",
    f": {NotJudgedReason.NOTHING_TELLS}: {NotJudgedReason.NO_EVENTS} and has no sink",
    f": {NotJudgedReason.NO_SINK}",
)


def levels_of(evidence: EvidenceGiven) -> tuple[str, ...]:
    """Returns the levels of cooperation that a consumer's evidence offers."""
    if evidence.events != "none":
        return LEVELS
    return LEVELS[:1] if evidence.sink == "none" else LEVELS[:2]


def shown_at(levels: Collection[str], header: FixtureHeader) -> tuple[str, ...]:
    """Returns what a sin must show at these levels: all of its header at all of them, what can be seen at fewer.

    A header's own line for the quiet consumer is preferred. What is no invariant's is a plain failure, told by the run
    itself at any level.
    """
    promised = header.anomalies if "events" in levels or header.quiet is None else header.quiet
    level_of = {one.name: one.level for one in list_invariants()}
    return tuple(name for name in promised if level_of.get(name, LEVELS[0]) in levels)


def for_silence_alone(reasons: Sequence[str]) -> bool:
    """Tells whether these reasons of an *unknown* are all that the silence of a consumer without a sink left open."""
    return bool(reasons) and all(
        reason.startswith("claimed but not judged: ") and reason.endswith(SILENCE) for reason in reasons
    )
