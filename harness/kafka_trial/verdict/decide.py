"""The verdict: what the judge found, weighed under the consumer's claim. Pure functions from values to a value.

Stands between the judge (which computes the same anomalies whatever the claim) and the reports. Here are the verdict's
values and the decision. What it rests on is in `verdict_input.py`, what each claim allows is a table in
`rule_evaluation.py`, how an anomaly is told is in `messages.py`, and `files.py` writes it down. The order of the
decision:

1. The ground failed (harness or cluster broke, a witness died, the cluster lost a write, the history is truncated):
   *unknown*, whatever was seen. Blame only what the environment cannot explain.
2. A violation was seen: *fail*. Its own evidence is complete, or the judge would have left it undecided; so it stands
   even where a fault did not bite or something else could not be judged.
3. Something is missing (a fault that did not bite or heal, a claimed property not judged, undecided, or vacuous):
   *unknown*. Pass means that every property claimed was judged.
4. *pass*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from kafka_trial.claim import Claim
from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.invariants.causal_links import Anomaly
from kafka_trial.verdict.messages import message
from kafka_trial.verdict.root_causes import by_root_cause
from kafka_trial.verdict.rule_evaluation import NOT_EXCLUDED, needed, rule_of, severity
from kafka_trial.verdict.verdict_input import AnomalyResult, Fault, VerdictInput, Violation

EVENTS_MAX = 20
EXITS = {"pass": PASS, "fail": FAIL, "unknown": UNKNOWN}


@dataclass(frozen=True)
class Tolerated:
    """Anomalies that this claim allows, and why."""

    anomaly: str
    count: int
    because: str


@dataclass(frozen=True)
class NotJudged:
    """An anomaly nobody could look for, and why."""

    anomaly: str
    because: str


@dataclass(frozen=True)
class Verdict:
    """pass, fail or unknown, with everything it rests on; the worst violation and the gravest reason come first.

    `retriable`: it is unknown because of its ground (what failed on the harness's or the cluster's side, a fault that
    did not bite), so that the same trial may be decided another time. One that lacks evidence stays as it is.
    """

    verdict: str
    exit: int
    claim: Claim
    judged: tuple[str, ...]
    not_judged: tuple[NotJudged, ...]
    violations: tuple[Violation, ...]
    tolerated: tuple[Tolerated, ...]
    counts: Mapping[str, int]
    faults: tuple[Fault, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    retriable: bool = False


def decide(collected: VerdictInput, claim: Claim) -> Verdict:
    """Returns the verdict on what was collected under a claim; the same gives the same verdict, byte for byte."""
    weighed = [_weigh(found, claim) for found in collected.found]
    guilty = {found.anomaly: one.guilty for found, one in zip(collected.found, weighed, strict=True)}
    violations = by_root_cause(
        sorted(
            chain(collected.failures, *(one.violations for one in weighed), _ratio(collected, claim)), key=_by_severity
        ),
        guilty,
    )
    of_faults, not_judged = _fault_gaps(collected.faults), _not_judged_gaps(collected, claim)
    gaps = [*of_faults, *collected.gaps, *chain.from_iterable(one.gaps for one in weighed), *not_judged]
    ground = (*collected.ground, *chain.from_iterable(one.ground for one in weighed))
    word = _word(ground=ground, violations=violations, gaps=gaps)
    return Verdict(
        verdict=word,
        exit=EXITS[word],
        claim=claim,
        judged=tuple(sorted(found.anomaly for found in collected.found if found.not_judged is None)),
        not_judged=tuple(
            NotJudged(found.anomaly, because)
            for found in sorted(collected.found, key=lambda found: found.anomaly)
            if (because := found.not_judged or found.partly) is not None
        ),
        violations=tuple(violations),
        tolerated=tuple(sorted(chain.from_iterable(one.tolerated for one in weighed), key=_worst_first)),
        counts=dict(collected.counts) | {found.anomaly: found.count for found in collected.found},
        faults=collected.faults,
        reasons=tuple(dict.fromkeys([*ground, *gaps])),
        notes=collected.notes,
        # What failed on our side may be why something was not judged; a fault that did not bite never is.
        retriable=word == "unknown" and bool(ground or (of_faults and not not_judged)),
    )


def _word(*, ground: Sequence[str], violations: Sequence[Violation], gaps: Sequence[str]) -> str:
    if ground:
        return "unknown"
    if violations:
        return "fail"
    return "unknown" if gaps else "pass"


@dataclass(frozen=True)
class _Weighed:
    violations: tuple[Violation, ...] = ()
    guilty: tuple[Anomaly, ...] = ()
    tolerated: tuple[Tolerated, ...] = ()
    gaps: tuple[str, ...] = ()
    ground: tuple[str, ...] = ()


def _weigh(found: AnomalyResult, claim: Claim) -> _Weighed:
    rule = rule_of(found.anomaly)
    if rule is None or not rule.claimed(claim):
        return _Weighed(tolerated=_tolerated(found.anomaly, {NOT_EXCLUDED: found.count}))
    weights = [(instance, *rule.excuse(claim, instance.attributes)) for instance in found.instances]
    guilty = [instance for instance, weight, _ in weights if weight == "violation"]
    excused = Counter(because for _, weight, because in weights if weight == "tolerated")
    clusters = [instance for instance, weight, _ in weights if weight == "ground"]
    moot = rule.moot.get(claim.delivery, ())
    undecided = Counter({reason: count for reason, count in found.undecided.items() if reason not in moot})
    undecided += Counter(because for _, weight, because in weights if weight == "undecided")
    # What was only counted is like what was kept: it is added where most of that is.
    if guilty and len(guilty) >= excused.total():
        more = found.more
    else:
        more = 0
        excused += Counter({because: found.more for because, _ in excused.most_common(1)})
    return _Weighed(
        violations=(_violation(found.anomaly, guilty, more=more),) if guilty else (),
        guilty=tuple(guilty),
        tolerated=_tolerated(found.anomaly, excused),
        gaps=_undecided(found.anomaly, undecided),
        ground=_ground(found, clusters, more=0 if guilty else found.more),
    )


def _ground(found: AnomalyResult, clusters: Sequence[Anomaly], *, more: int) -> tuple[str, ...]:
    """Returns what the cluster did wrong, as a sentence: it keeps anybody from being blamed or acquitted."""
    if not clusters:
        return ()
    told, count = message(found.anomaly, clusters[0]), len(clusters) + more
    return (told + (f" (and {count - 1} more like it)" if count > 1 else ""),)


def _undecided(anomaly: str, reasons: Mapping[str, int]) -> tuple[str, ...]:
    """Returns the cases that keep a claimed anomaly from being ruled out, as sentences."""
    return tuple(f"{anomaly}: {count} undecided: {reason}" for reason, count in sorted(reasons.items()) if count)


def _tolerated(anomaly: str, reasons: Mapping[str, int]) -> tuple[Tolerated, ...]:
    return tuple(Tolerated(anomaly, count, because) for because, count in sorted(reasons.items()) if count)


def _violation(anomaly: str, guilty: Sequence[Anomaly], *, more: int) -> Violation:
    worst, count = min(guilty, key=_mildness), len(guilty) + more
    others = f" (and {count - 1} more like it)" if count > 1 else ""
    return Violation(anomaly, count, message(anomaly, worst) + others, worst.events[:EVENTS_MAX])


def _mildness(instance: Anomaly) -> tuple[bool, bool]:
    """Sorts the worst instance first: one that stands at the end, one that skipped a record."""
    return bool(instance.attributes.get("recovered")), not instance.attributes.get("skipped_record")


def _ratio(collected: VerdictInput, claim: Claim) -> tuple[Violation, ...]:
    """Returns the violation of the claimed ratio of redelivered records, if there is one."""
    records = collected.counts.get("records", 0)
    redelivered = next(
        (found for found in collected.found if found.anomaly == "redelivered"), AnomalyResult("redelivered")
    )
    count = redelivered.count
    if claim.redelivered_max_ratio is None or claim.delivery == "at-most-once" or not count or not records:
        return ()
    if count / records <= claim.redelivered_max_ratio:
        return ()
    told = (
        f"{count} of {records} records were delivered again; the claim allows {claim.redelivered_max_ratio:g} of them"
    )
    return (Violation("redelivered", count, told, redelivered.instances[0].events[:EVENTS_MAX]),)


def _not_judged_gaps(collected: VerdictInput, claim: Claim) -> list[str]:
    """Returns the claimed properties that were not judged, those of one reason in one sentence."""
    by_reason: dict[str, list[str]] = {}
    for found in collected.found:
        rule = rule_of(found.anomaly)
        if found.not_judged is not None and found.applies and rule is not None and rule.claimed(claim):
            by_reason.setdefault(found.not_judged, []).append(found.anomaly)
    known = {found.anomaly for found in collected.found}
    never = [name for name in needed(claim) if name not in known]
    reasons = {**by_reason, **({"no invariant looks for it": never} if never else {})}
    return [f"claimed but not judged: {', '.join(names)}: {because}" for because, names in reasons.items()]


def _fault_gaps(faults: Sequence[Fault]) -> list[str]:
    numbered = [(f"fault {number} ({fault.kind} on {fault.target})", fault) for number, fault in enumerate(faults)]
    did_not_bite = [
        f"{name} is not shown to have bitten: {fault.evidence}" for name, fault in numbered if not fault.bit
    ]
    return did_not_bite + [
        f"{name}: traffic did not come back after healing" for name, fault in numbered if fault.bit and not fault.healed
    ]


def _by_severity(violation: Violation) -> tuple[int, str]:
    return severity(violation.anomaly), violation.anomaly


def _worst_first(tolerated: Tolerated) -> tuple[int, str, str]:
    return severity(tolerated.anomaly), tolerated.anomaly, tolerated.because
