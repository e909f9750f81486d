"""The verdict: what the judge found, weighed under the consumer's claim. Pure functions from values to a value.

Stands between the judge (which computes the same anomalies whatever the claim) and the reports. Here are the verdict's
values and the decision. What it rests on is in `verdict_input.py`, what each claim allows is said by the rules of the
anomalies (`@invariant(rule=…)`), how an anomaly is told is in `messages.py`, and `check.py` writes it down. The order
of the decision:

1. The ground failed (harness or cluster broke, a witness died, the cluster lost a write, the history is truncated):
   *unknown*, whatever was seen. Blame only what the environment cannot explain.
2. A violation was seen: *fail*. Its own evidence is complete, or the judge would have left it undecided; so it stands
   even where a fault had no measurable effect or something else could not be judged.
3. Something is missing (a fault without a measurable effect or that did not heal, a claimed property that was not
   judged, or is undecided, or too little to judge by):
   *unknown*. Pass means that every property claimed was judged.
4. *pass*.

A violation may follow from another one, so that one root cause is told once, and first: where every instance of it is
explained by an instance of that one. They share an event that proves both, or a partition, or the record lies in the
range that the other one names. Nothing is left out by it: what follows stands beneath its cause.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from kafka_trial.anomalies.claim_rule import Anomaly, Attributes, Rule, Weight, the_clusters
from kafka_trial.anomalies.invariant import find_invariant, list_invariants
from kafka_trial.claim import ACROSS_PARTITIONS, DELIVERY, Claim
from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.judge.not_judged import NotJudgedReason
from kafka_trial.model.trial_context import PrintedLines
from kafka_trial.model.undecided import is_the_machines
from kafka_trial.verdict.messages import message
from kafka_trial.verdict.verdict_input import NOT_REACHED, AnomalyResult, Fault, VerdictInput, Violation

EVENTS_MAX = 20
EXITS = {"pass": PASS, "fail": FAIL, "unknown": UNKNOWN}


@dataclass(frozen=True)
class Tolerated:
    """Anomalies that this claim allows, and why."""

    anomaly: str
    count: int
    because: str


@dataclass(frozen=True)
class NotJudgedAnomaly:
    """An anomaly nobody could look for, and why."""

    anomaly: str
    because: str


@dataclass(frozen=True)
class GroupVerdict:
    """The verdict on one of several groups of a trial; the first one has no name."""

    name: str
    consumer: str
    verdict: str


@dataclass(frozen=True)
class Verdict:
    """pass, fail or unknown, with everything it rests on; the worst violation and the gravest reason come first.

    `retriable`: it is unknown because of its environment (what failed on the harness's or the cluster's side, a fault
    without a measurable effect, members at work that nobody saw ready, or only cases that a slow, busy or stalled
    machine left undecided): the same trial may be decided another time. One that lacks evidence stays as it is.
    `groups`: where a trial has several, the verdict on each (`group_verdicts.py`); all else is the first one's.
    """

    verdict: str
    exit: int
    claim: Claim
    judged: tuple[str, ...]
    not_judged: tuple[NotJudgedAnomaly, ...]
    violations: tuple[Violation, ...]
    tolerated: tuple[Tolerated, ...]
    counts: Mapping[str, int]
    faults: tuple[Fault, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    printed: tuple[PrintedLines, ...] = ()
    retriable: bool = False
    groups: tuple[GroupVerdict, ...] = ()


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
    gaps = [
        *collected.unready,
        *of_faults,
        *collected.gaps,
        *chain.from_iterable(one.gaps for one in weighed),
        *_ratio_gaps(collected, claim),
        *not_judged,
    ]
    ground = (*collected.ground, *chain.from_iterable(one.ground for one in weighed))
    word = _word(ground=ground, violations=violations, gaps=gaps)
    machines = {*_machines_fault_gaps(collected.faults), *chain.from_iterable(one.machines for one in weighed)}
    # What failed on our side may be why something was not judged; a fault without an effect never is.
    retriable = word == "unknown" and bool(
        {*ground} - {*collected.lasting}
        or collected.unready
        or (machines & {*of_faults} and not not_judged)
        or (not ground and {*gaps} <= machines)
    )
    return Verdict(
        verdict=word,
        exit=EXITS[word],
        claim=claim,
        judged=tuple(sorted(found.anomaly for found in collected.found if found.not_judged is None)),
        not_judged=tuple(
            NotJudgedAnomaly(found.anomaly, because)
            for found in sorted(collected.found, key=lambda found: found.anomaly)
            if (because := found.not_judged or found.partly) is not None
        ),
        violations=tuple(violations),
        tolerated=tuple(sorted(chain.from_iterable(one.tolerated for one in weighed), key=_worst_first)),
        counts=dict(collected.counts) | {found.anomaly: found.count for found in collected.found},
        faults=collected.faults,
        reasons=tuple(dict.fromkeys([*ground, *gaps])),
        notes=(
            *collected.notes,
            *(_what_to_do(collected, retriable=retriable) if word == "unknown" else ()),
            *(collected.untried if word == "pass" and collected.of_trial else ()),
        ),
        printed=collected.printed,
        retriable=retriable,
    )


AGAIN = (
    "what to do: run it again; if it stays unknown, on a machine with less to do. The machine or the cluster made it "
    "unknown, not the consumer. --retry-unknown 1 repeats such a trial by itself"
)
NOT_AGAIN = (
    "what to do: remove the causes named in the reasons. The machine alone did not make it unknown, so "
    "--retry-unknown does not repeat it"
)


def _what_to_do(collected: VerdictInput, *, retriable: bool) -> Sequence[str]:
    """Returns what to do about an unknown verdict of a trial, and what the machine withheld where that is why."""
    if not collected.of_trial:
        return ()
    if not retriable:
        return (NOT_AGAIN,)
    return (AGAIN, *(f"what the machine gave: {told}" for told in collected.withheld))


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
    machines: tuple[str, ...] = ()  # of the gaps, those that only the machine left


def _weigh(found: AnomalyResult, claim: Claim) -> _Weighed:
    rule = rule_of(found.anomaly)
    if rule is None or not rule.claimed(claim):
        return _Weighed(tolerated=_tolerated(found.anomaly, {NOT_EXCLUDED: found.count}))
    weights = [(instance, *rule.excuse(claim, instance.attributes)) for instance in found.instances]
    guilty = [instance for instance, weight, _ in weights if weight == "violation"]
    excused = Counter(because for _, weight, because in weights if weight == "tolerated")
    clusters = [instance for instance, weight, _ in weights if weight == "ground"]
    moot = (*rule.never_for.get(claim.delivery, ()), *rule.never_for.get(claim.state, ()))
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
        machines=_undecided(
            found.anomaly, {reason: undecided[reason] for reason in filter(is_the_machines, undecided)}
        ),
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
    records, allowed = collected.counts.get("records", 0), _allowed_ratio(claim)
    redelivered = _redelivered(collected)
    count = redelivered.count
    if allowed is None or not records or count / records <= allowed:
        return ()
    told = f"{count} of {records} records were delivered again; the claim allows {allowed:g} of them"
    return (Violation("redelivered", count, told, redelivered.instances[0].events[:EVENTS_MAX]),)


def _ratio_gaps(collected: VerdictInput, claim: Claim) -> tuple[str, ...]:
    """Returns the undecided redeliveries, as sentences, if with them there are more than the claimed ratio allows."""
    records, allowed, redelivered = collected.counts.get("records", 0), _allowed_ratio(claim), _redelivered(collected)
    most = redelivered.count + sum(redelivered.undecided.values())
    if allowed is None or not records or most / records <= allowed:
        return ()
    return _undecided("redelivered", redelivered.undecided)


def _allowed_ratio(claim: Claim) -> float | None:
    """Returns the claimed ratio of redelivered records; None: none is claimed, or that nothing is redelivered."""
    return None if claim.delivery == "at-most-once" else claim.redelivered_max_ratio


def _redelivered(collected: VerdictInput) -> AnomalyResult:
    found = (one for one in collected.found if one.anomaly == "redelivered")
    return next(found, AnomalyResult("redelivered"))


def _not_judged_gaps(collected: VerdictInput, claim: Claim) -> list[str]:
    """Returns the claimed properties that were not judged, those of one reason in one sentence."""
    by_reason: dict[str, list[str]] = {}
    for found in collected.found:
        rule = rule_of(found.anomaly)
        claimed = rule is not None and (rule.claimed(claim) or found.anomaly in _limited(claim))
        if found.not_judged is not None and found.applies and claimed:
            by_reason.setdefault(found.not_judged, []).append(found.anomaly)
    if collected.keyless and claim.order in ("key", ACROSS_PARTITIONS):
        by_reason.setdefault("no record has a key", []).append("reordered-key")
    elif collected.keys_unique and claim.order == "key":
        by_reason.setdefault("no two records of a partition have the same key", []).append("reordered-key")
    known = {found.anomaly for found in collected.found}
    never = [name for name in needed(claim) if name not in known]
    reasons = {**by_reason, **({NotJudgedReason.NOT_LOOKED_FOR.value: never} if never else {})}
    return [f"claimed but not judged: {', '.join(names)}: {because}" for because, names in reasons.items()]


def _machines_fault_gaps(faults: Sequence[Fault]) -> list[str]:
    """Returns what is missing of faults, but for cuts that were not reached: the consumer sent no such request."""
    reached = [replace(one, bit=one.bit or one.evidence.startswith(NOT_REACHED)) for one in faults]
    return _fault_gaps(reached)


def _fault_gaps(faults: Sequence[Fault]) -> list[str]:
    numbered = [(f"fault {number} ({fault.kind} on {fault.target})", fault) for number, fault in enumerate(faults)]
    without_effect = [f"{name} had no measurable effect: {fault.evidence}" for name, fault in numbered if not fault.bit]
    return without_effect + [
        f"{name}: traffic did not come back after healing" for name, fault in numbered if fault.bit and not fault.healed
    ]


def _by_severity(violation: Violation) -> tuple[int, str]:
    return severity(violation.anomaly), violation.anomaly


def _worst_first(tolerated: Tolerated) -> tuple[int, str, str]:
    return severity(tolerated.anomaly), tolerated.anomaly, tolerated.because


def by_root_cause(violations: Sequence[Violation], guilty: Mapping[str, Sequence[Anomaly]]) -> list[Violation]:
    """Returns the violations, each followed by those that follow from it; otherwise their order is kept.

    `guilty` are the instances by name. Only the kept examples are looked at: those counted beyond them are like them.
    """
    causes = {one.anomaly: _cause(one.anomaly, guilty) for one in violations}
    beneath: dict[str | None, list[Violation]] = defaultdict(list)
    for one in violations:
        beneath[causes[one.anomaly]].append(replace(one, follows=causes[one.anomaly]))
    return list(_in_turn(beneath[None], beneath))


def _cause(anomaly: str, guilty: Mapping[str, Sequence[Anomaly]]) -> str | None:
    instances = guilty.get(anomaly, ())
    known = find_invariant(anomaly)
    for cause, explains in known.follows.items() if known else ():
        if instances and guilty.get(cause) and all(map(explains(guilty[cause]), instances)):
            return cause
    return None


def _in_turn(ones: Iterable[Violation], beneath: Mapping[str | None, Sequence[Violation]]) -> Iterable[Violation]:
    for one in ones:
        yield one
        yield from _in_turn(beneath.get(one.anomaly, ()), beneath)


NOT_EXCLUDED = "this claim does not exclude it"


def rule_of(anomaly: str) -> Rule | None:
    """Returns the rule of an anomaly; what is no anomaly of the judge's has none."""
    known = find_invariant(anomaly)
    return None if known is None else known.rule


def weigh(claim: Claim, anomaly: str, attributes: Attributes) -> tuple[Weight, str]:
    """Returns what one instance of an anomaly weighs under the claim, and why where it is no violation."""
    rule = rule_of(anomaly)
    if rule is None or not rule.claimed(claim):
        return "tolerated", NOT_EXCLUDED
    return rule.excuse(claim, attributes)


def breaks(rule: Rule) -> list[str]:
    """Returns which claims a rule can break: "any", those of delivery, or a further key; none: it is only counted.

    What the cluster did breaks no claim, and makes every verdict unknown.
    """
    if rule.excuse is the_clusters:
        return ["none, the cluster's fault"]
    deliveries = [delivery for delivery in DELIVERY if rule.claimed(Claim(delivery, order="none"))]
    if deliveries:
        return ["any"] if len(deliveries) == len(DELIVERY) else deliveries
    keys = {
        "order": Claim("unclaimed", order="key"),
        'order = "partition"': Claim("unclaimed", order="partition"),
        f'order = "{ACROSS_PARTITIONS}"': Claim("unclaimed", order=ACROSS_PARTITIONS),
        "fenced": Claim("unclaimed", order="none", fenced=True),
        "no_rogue_reader": Claim("unclaimed", order="none", no_rogue_reader=True),
        "converge_within_s": Claim("unclaimed", order="none", converge_within_s=1.0),
        "memory_max_bytes": Claim("unclaimed", order="none", memory_max_bytes=1),
        "lag_age_max_s": Claim("unclaimed", order="none", lag_age_max_s=1.0),
        "reads_cold_bytes_max": Claim("unclaimed", order="none", reads_cold_bytes_max=1),
    }
    return [key for key, claim in keys.items() if rule.claimed(claim)][:1]


def needed(claim: Claim) -> list[str]:
    """Returns the anomalies that must be looked for before the claim can be acquitted."""
    by_severity = sorted(list_invariants(), key=lambda one: one.severity)
    core = [one.name for one in by_severity if claim.delivery in one.rule.always_for]
    return [*core, *_limited(claim)]


def _limited(claim: Claim) -> list[str]:
    """Returns the anomalies that a limit of the claim is about."""
    limits = {
        "memory-over-limit": claim.memory_max_bytes is not None,
        "late-record": claim.lag_age_max_s is not None,
        "cold-read": claim.reads_cold_bytes_max is not None,
        "rogue-reader": claim.no_rogue_reader,
        "redelivered": _allowed_ratio(claim) is not None,
    }
    return [name for name, claimed in limits.items() if claimed]


def severity(anomaly: str) -> int:
    """Returns what is told first by the smallest number; what is no anomaly of the judge's comes before all."""
    known = find_invariant(anomaly)
    return -1 if known is None else known.severity
