"""Where too little was there to judge: a pass would prove nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_trial.judge.judgement import FaultCoverage

if TYPE_CHECKING:
    from kafka_trial.invariants.trial_context import TrialContext, Window
    from kafka_trial.judge.judge import Coverage, SliceCoverage
    from kafka_trial.verdict.scope import Scope

LETS_PASS = frozenset({"latency", "slow-link"})  # faults under which traffic must go on


def coverage_gaps(coverage: Coverage, scope: Scope, *, silent: bool = False) -> list[str]:
    """Returns where too little was there to judge: nothing found there means nothing.

    What counts are the records that were handled; of a consumer without lines and sink (`silent`), for which nobody
    can say that, those that were there.
    """
    told = list(scope.doubts)
    least, handled = scope.records_judged_min, sum(_handled(part) for part in coverage.partitions)
    if coverage.records < least:
        told.append(f"{coverage.records} records were judged, fewer than the {least} it takes")
    elif handled < least and not silent:
        told.append(f"{handled} of {coverage.records} records were handled, fewer than the {least} it takes")
    seen = {part.partition for part in coverage.partitions if part.records}
    if coverage.records:
        missing = [partition for partition in range(scope.partitions or 0) if partition not in seen]
        told += _named("no record was judged", missing)
    if handled and not silent:
        idle = [part.partition for part in coverage.partitions if part.records and not part.handled]
        told += _named("no record was handled", sorted(idle))
    return told


def _handled(part: SliceCoverage) -> int:
    return min(part.handled, part.records)


def _named(what: str, partitions: Sequence[int]) -> list[str]:
    numbers = ", ".join(map(str, partitions))
    return [f"{what} on partition{'s' * (len(partitions) > 1)} {numbers}"] if partitions else []


def faults_without_traffic(coverage: Coverage, trial_context: TrialContext) -> list[str]:
    """Returns the faults whose target did no work: they hit somebody who had nothing to do."""
    spoken = any(through.delivered or through.processed for through in coverage.members.values())
    if not spoken and not any(through.moved for through in coverage.members.values()):
        return []  # nothing tells who did what
    return [
        f"fault {window.number} ({window.fault}) proves nothing about the consumer: {idle}"
        for window in trial_context.windows
        if (idle := _idle(coverage, window, spoken=spoken)) is not None
    ]


def _idle(coverage: Coverage, window: Window, *, spoken: bool) -> str | None:
    """Returns how a fault hit somebody who had nothing to do; None where something went through or because of it.

    A fault that lets traffic pass must have had some pass through its target. One that stops it leaves nothing inside
    its window: then its target had partitions in hand when it was hit, and the work on them went on, by whomever.
    Work is what members were delivered or processed; where none says anything (not `spoken`), what brokers see move.
    """
    hit = [through for name, through in coverage.members.items() if window.member in (None, name)]
    who = window.member or "the members"
    if not any(_worked((through.delivered, through.processed, 0, through.moved), spoken=spoken) for through in hit):
        return f"{who} did no work in the whole trial"
    if window.fault in LETS_PASS:
        passed = any(_worked(through.inside.get(window.number, ()), spoken=spoken) for through in hit)
        return None if passed else f"{who} did no work while it was in force"
    around = coverage.around.get(window.number, FaultCoverage(0, 0))
    if not around.held:
        return f"{who} had no partition in hand when it was hit"
    after = around.after if spoken else around.moved_after
    return None if after else f"nothing was done any more on the partitions {who} had in hand"


def _worked(numbers: Sequence[int], *, spoken: bool) -> bool:
    """Tells whether there is work among delivered, processed, committed, moved: commits alone are none."""
    return any(numbers[:2]) if spoken else any(numbers[3:])
