"""Where too little was there to judge: a pass would prove nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_trial.judge.judgement import Around

if TYPE_CHECKING:
    from kafka_trial.hearing.asked import Scope
    from kafka_trial.invariants.circumstances import Circumstances, Window
    from kafka_trial.judge.judge import Coverage

LETS_PASS = frozenset({"latency", "slow-link"})  # faults under which traffic must go on


def vacuous(coverage: Coverage, scope: Scope) -> list[str]:
    """Returns where too little was there to judge: nothing found there means nothing."""
    told = []
    if coverage.records < scope.records_judged_min:
        told.append(f"{coverage.records} records were judged, fewer than the {scope.records_judged_min} it takes")
    seen = {part.partition for part in coverage.partitions if part.records}
    missing = [str(partition) for partition in range(scope.partitions or 0) if partition not in seen]
    if coverage.records and missing:
        told.append(f"no record was judged on partition{'s' * (len(missing) > 1)} {', '.join(missing)}")
    return told


def untouched(coverage: Coverage, circumstances: Circumstances) -> list[str]:
    """Returns the faults through whose target nothing went: they hit somebody who had nothing to do."""
    if not any(_worked(through) for through in coverage.members.values()):
        return []  # nothing tells who did what
    return [
        f"{idle}: fault {window.number} ({window.fault}) is vacuous"
        for window in circumstances.windows
        if (idle := _idle(coverage, window)) is not None
    ]


def _idle(coverage: Coverage, window: Window) -> str | None:
    """Returns how a fault hit somebody who had nothing to do; None where something went through or because of it.

    A fault that lets traffic pass must have had some pass through its target. One that stops it leaves nothing inside
    its window: then its target had partitions in hand when it was hit, and the work on them went on, by whomever.
    """
    hit = [through for name, through in coverage.members.items() if window.member in (None, name)]
    who = window.member or "any member"
    if not any(_worked(through) for through in hit):
        return f"nothing went through {who} in the whole trial"
    if window.fault in LETS_PASS:
        passed = any(any(through.inside.get(window.number, ())) for through in hit)
        return None if passed else f"nothing went through {who} while it was in force"
    around = coverage.around.get(window.number, Around(0, 0))
    if not around.held:
        return f"{who} had no partition in hand when it was hit"
    return None if around.after else f"nothing was done any more on the partitions {who} had in hand"


def _worked(through: Any) -> bool:
    return bool(through.delivered or through.processed or through.committed)
