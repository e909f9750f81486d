"""The verdict: what the judge found, weighed under the consumer's claim. Pure functions from values to a value.

Stands between the judge (which computes the same anomalies whatever the claim) and the reports. `RULES` is the claim's
table of violations as data: one rule an anomaly. The order of the decision:

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, Literal

import orjson

from kafka_trial.claim import Claim
from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.history.store import RunFolder
from kafka_trial.invariants.delivery import KILLED_UNHEARD
from kafka_trial.invariants.invariant import Anomaly

VERDICT_SCHEMA = 1
EVENTS_MAX = 20
VALUE_MAX = 80
LINE = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
EXITS = {"pass": PASS, "fail": FAIL, "unknown": UNKNOWN}

Attributes = Mapping[str, Any]
Weight = Literal["violation", "tolerated", "undecided"]


# ---------------------------------------------------------------------------------------------- what is weighed


@dataclass(frozen=True)
class Found:
    """All the judge says of one anomaly's name.

    `undecided` counts the cases that could not be decided, by reason. `not_judged` says why it was not judged at all;
    `applies` is False where the rule is not about this consumer (its progress is not in Kafka): not judged, not missed.
    The judge keeps examples of every combination of deciding attributes; `more` is how many it counted beyond them.
    """

    anomaly: str
    instances: tuple[Anomaly, ...] = ()
    more: int = 0
    undecided: Mapping[str, int] = field(default_factory=dict)
    not_judged: str | None = None
    applies: bool = True

    @property
    def count(self) -> int:
        return len(self.instances) + self.more


@dataclass(frozen=True)
class Fault:
    """One planned fault, and what the samples say: whether it bit, and whether traffic came back where it must."""

    kind: str
    target: str
    role: str
    bit: bool
    evidence: str
    healed: bool = True


@dataclass(frozen=True)
class Case:
    """Everything a verdict rests on.

    `ground` are sentences about what failed on the harness's or the cluster's side; `gaps` those about evidence that is
    vacuous (too few records judged, none on a partition, none through a fault's target). `failures` are the consumer's
    plain failures on a sound cluster (never assigned, exits, never stops), as anomaly and sentence with proofs.
    """

    found: tuple[Found, ...]
    faults: tuple[Fault, ...] = ()
    ground: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    failures: tuple[Violation, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------- what comes out


@dataclass(frozen=True)
class Violation:
    """One anomaly that breaks the claim: how often, the worst of them in a sentence, and the events that prove it."""

    anomaly: str
    count: int
    sentence: str
    events: tuple[str, ...]


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
    """pass, fail or unknown, with everything it rests on; the worst violation and the gravest reason come first."""

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


# ------------------------------------------------------------------------------------------------------ the rules


@dataclass(frozen=True)
class Rule:
    """`claimed`: can this anomaly break the claim at all? `excuse`: weighs one instance where it can.

    `moot`: reasons for leaving a case undecided that do not matter to a delivery, whichever way the case went.
    """

    claimed: Callable[[Claim], bool]
    excuse: Callable[[Claim, Attributes], tuple[Weight, str]]
    moot: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


VIOLATION: tuple[Weight, str] = ("violation", "")
NOT_EXCLUDED = "this claim does not exclude it"


def _always(_: Claim) -> bool:
    return True


def _no_excuse(_: Claim, __: Attributes) -> tuple[Weight, str]:
    return VIOLATION


def _under(*delivery: str) -> Callable[[Claim], bool]:
    return lambda claim: claim.delivery in delivery


def _skipped(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("by_operator"):
        return "tolerated", "skipped by an operator's commit, from outside the members"
    if claim.delivery == "at-most-once" and attributes.get("in_flight_at_crash"):
        return "tolerated", "in flight at a crash: at-most-once allows it"
    return VIOLATION


def _out_of_order(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if claim.order == "key" and attributes.get("same_key") is False:
        return "tolerated", "of different keys: order is claimed per key"
    return VIOLATION


def _regression(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    own = attributes.get("own")
    if attributes.get("by_operator"):
        return "tolerated", "made by an operator, from outside the members"
    if not attributes.get("recovered") or claim.commits == "monotonic":
        return VIOLATION
    if attributes.get("restart_inside") or own is False:
        return VIOLATION
    if own is None:
        return "undecided", "nobody knows who made the backward commit"
    return "tolerated", "the owner's own, passed by later commits, with no restart inside: it settled"


def _not_an_operators(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("by_operator"):
        return "tolerated", "made by an operator, from outside the members"
    return VIOLATION


def _zombie_commit(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("fell") or attributes.get("skipped_record"):
        return VIOLATION
    return "tolerated", "the committed offset did not fall, and no record was skipped by it"


def _never(_: Claim) -> bool:
    return False


def _oom_killed(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("over_limit"):
        return VIOLATION
    return "undecided", "the machine ran out of memory, and this member was not seen above a limit it claims"


RULES: dict[str, Rule] = {
    # The worst first: violations are told in this order.
    # Committed by a member that was killed: handled, or in flight at its crash; at-most-once allows both.
    "skipped": Rule(
        _under("at-least-once", "at-most-once", "exactly-once"), _skipped, {"at-most-once": (KILLED_UNHEARD,)}
    ),
    "overtaken": Rule(_under("at-least-once", "exactly-once"), _no_excuse),
    "unseen": Rule(_under("at-least-once", "exactly-once"), _no_excuse),
    "stale-state": Rule(_under("exactly-once"), _no_excuse),
    "duplicate-effect": Rule(_under("at-most-once", "exactly-once"), _no_excuse),
    "torn-transaction": Rule(_under("exactly-once"), _no_excuse),
    "aborted-read": Rule(_under("exactly-once"), _no_excuse),
    "corrupt": Rule(_always, _no_excuse),
    "phantom": Rule(_always, _no_excuse),
    "misplaced": Rule(_always, _no_excuse),
    "commit-lost": Rule(_always, _no_excuse),
    "zombie-commit": Rule(_always, _zombie_commit),
    "commit-regression": Rule(_always, _regression),
    "commit-past-end": Rule(_always, _not_an_operators),
    "commit-ahead": Rule(_under("at-least-once"), _not_an_operators),
    "stuck-partition": Rule(_always, _no_excuse),
    "orphan-partition": Rule(_always, _no_excuse),
    "false-lag": Rule(_always, _no_excuse),
    "late-convergence": Rule(_always, _no_excuse),
    "split-ownership": Rule(_always, _no_excuse),
    "work-after-revoke": Rule(_always, _no_excuse),
    "reordered-key": Rule(lambda claim: claim.order != "none", _out_of_order),
    "overlapping-handlers": Rule(lambda claim: claim.order != "none", _out_of_order),
    "nonmonotonic-poll": Rule(lambda claim: claim.order == "partition", _no_excuse),
    # An illegal redelivery is a redelivery: at-most-once excludes both.
    "illegal-redelivery": Rule(_under("at-least-once", "at-most-once"), _no_excuse),
    "redelivered": Rule(_under("at-most-once"), _no_excuse),
    "zombie-work": Rule(lambda claim: claim.fenced, _no_excuse),
    "crash-loop": Rule(_always, _no_excuse),
    "unbounded-close": Rule(_always, _no_excuse),
    "memory-over-limit": Rule(lambda claim: claim.memory_max_bytes is not None, _no_excuse),
    "oom-killed": Rule(lambda claim: claim.memory_max_bytes is not None, _oom_killed),
    # Counted: no key of a claim excludes them.
    "starved-partition": Rule(_never, _no_excuse),
    "rebalance-storm": Rule(_never, _no_excuse),
    "uncommitted-progress": Rule(_never, _no_excuse),
}

# Without these a claim cannot be acquitted: a judge that never looks for them leaves it open.
CORE = {
    "at-least-once": ("skipped", "unseen", "commit-ahead", "illegal-redelivery"),
    "at-most-once": ("skipped", "redelivered"),
    "exactly-once": ("skipped", "unseen", "duplicate-effect"),
    "unclaimed": (),
}

# One sentence an anomaly; names in braces are the judge's attributes.
SENTENCES = {
    "skipped": "record {offset} of {place} was committed past and never processed",
    "unseen": "record {offset} of {place} was never processed, although the drain was over",
    "redelivered": "record {offset} of {place} was delivered again",
    "illegal-redelivery": "record {offset} of {place} was delivered again, below {floor}, where its possession began",
    "nonmonotonic-poll": "{place} stepped back from record {previous_offset} to {offset} inside one possession",
    "reordered-key": "record {offset} of {place} was processed after the later record {later_offset}{of_key}",
    "overlapping-handlers": "records {offset} and {other_offset} of {place} were in two handlers at once",
    "commit-regression": "the committed offset of {place} fell from {from} to {to} and {recovery}",
    "zombie-commit": "member {member} committed {committed_offset} on {place}, which it did not own there{harm}",
    "commit-ahead": "{committed_offset} was committed on {place} before record {offset} was processed",
    "commit-past-end": "{committed_offset} was committed on {place}, past the log end {log_end}",
    "split-ownership": "{place} was owned by two members at once, by {by}",
    "work-after-revoke": "record {offset} of {place} was {what} after the partition had been revoked from its member",
    "zombie-work": "record {offset} of {place} was {what} after its partition was lost untold",
    "false-lag": "{place} ends with a lag of {records} ({committed_offset} of {log_end}), though all was processed",
    "stuck-partition": "{place} stood still at record {offset}, with {records} unprocessed ({class})",
    "late-convergence": "{place} had not converged within {bound_s} s of the healing, {convergence}",
    "crash-loop": "member {member} exited by itself {exits} times, at last {ending}",
    "unbounded-close": "member {member} was asked to stop and had not within {within_s} s: it was killed",
    "starved-partition": "record {offset} of {place} waited {lasted_ms} ms while {member} did those of its others",
    "rebalance-storm": "the group rebalanced {bumps} times, from {from} to {to}, though nothing had happened",
    "uncommitted-progress": "{place} had record {offset} processed {lasted_ms} ms before a commit covered it",
    "memory-over-limit": "member {member} took {rss_bytes} bytes of memory, over the {limit_bytes} claimed",
    "oom-killed": "member {member} was killed by the kernel, which had run out of memory",
}


# ---------------------------------------------------------------------------------------------------- the decision


def decide(case: Case, claim: Claim) -> Verdict:
    """Returns the verdict on a case under a claim; the same case gives the same verdict, byte for byte."""
    weighed = [_weigh(found, claim) for found in case.found]
    violations = sorted(chain(case.failures, *(one.violations for one in weighed), _ratio(case, claim)), key=_severity)
    gaps = [
        *_fault_gaps(case.faults),
        *case.gaps,
        *chain.from_iterable(one.gaps for one in weighed),
        *_not_judged_gaps(case, claim),
    ]
    word = _word(ground=case.ground, violations=violations, gaps=gaps)
    return Verdict(
        verdict=word,
        exit=EXITS[word],
        claim=claim,
        judged=tuple(sorted(found.anomaly for found in case.found if found.not_judged is None)),
        not_judged=tuple(
            NotJudged(found.anomaly, found.not_judged)
            for found in sorted(case.found, key=lambda found: found.anomaly)
            if found.not_judged is not None
        ),
        violations=tuple(violations),
        tolerated=tuple(sorted(chain.from_iterable(one.tolerated for one in weighed), key=_by_name)),
        counts=dict(case.counts) | {found.anomaly: found.count for found in case.found},
        faults=case.faults,
        reasons=tuple(dict.fromkeys([*case.ground, *gaps])),
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
    tolerated: tuple[Tolerated, ...] = ()
    gaps: tuple[str, ...] = ()


def _weigh(found: Found, claim: Claim) -> _Weighed:
    rule = RULES.get(found.anomaly)
    if rule is None or not rule.claimed(claim):
        return _Weighed(tolerated=_tolerated(found.anomaly, {NOT_EXCLUDED: found.count}))
    weights = [(instance, *rule.excuse(claim, instance.attributes)) for instance in found.instances]
    guilty = [instance for instance, weight, _ in weights if weight == "violation"]
    excused = Counter(because for _, weight, because in weights if weight == "tolerated")
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
        tolerated=_tolerated(found.anomaly, excused),
        gaps=_undecided(found.anomaly, undecided),
    )


def _undecided(anomaly: str, reasons: Mapping[str, int]) -> tuple[str, ...]:
    """Returns the cases that keep a claimed anomaly from being ruled out, as sentences."""
    return tuple(f"{anomaly}: {count} undecided: {reason}" for reason, count in sorted(reasons.items()) if count)


def _tolerated(anomaly: str, reasons: Mapping[str, int]) -> tuple[Tolerated, ...]:
    return tuple(Tolerated(anomaly, count, because) for because, count in sorted(reasons.items()) if count)


def _violation(anomaly: str, guilty: Sequence[Anomaly], *, more: int) -> Violation:
    worst, count = min(guilty, key=_mildness), len(guilty) + more
    others = f" (and {count - 1} more like it)" if count > 1 else ""
    return Violation(anomaly, count, sentence(anomaly, worst) + others, worst.events[:EVENTS_MAX])


def sentence(anomaly: str, instance: Anomaly) -> str:
    """Returns one instance in a sentence: record, partition, members, positions; no wall-clock times."""
    attributes = instance.attributes
    place = "the group" if instance.partition is None else f"partition {instance.partition}"
    told = _Told({name: _printable(value) for name, value in attributes.items()}, place=place)
    told |= _phrases(attributes)
    return SENTENCES.get(anomaly, anomaly.replace("-", " ") + " on {place}").format_map(told)


def _phrases(attributes: Attributes) -> dict[str, str]:
    """Returns the parts of sentences that depend on whether something is known, or so."""
    key, after_s = attributes.get("key"), attributes.get("converged_after_s")
    harm = {"and the committed offset fell": "fell", "and a record was skipped by it": "skipped_record"}
    return {
        "of_key": "" if key is None else f" of key {_printable(key)}",
        "recovery": "recovered later" if attributes.get("recovered") else "stood there at the end",
        "harm": "".join(f", {phrase}" for phrase, name in harm.items() if attributes.get(name)),
        "convergence": "and never did" if after_s is None else f"only after {after_s} s",
    }


class _Told(dict[str, Any]):
    """Attributes for a sentence; one that the judge did not give is a question mark, never an error."""

    def __missing__(self, name: str) -> str:
        return "?"


def _printable(value: Any) -> str:
    """Returns a value that a stranger may have written, on one line and bounded."""
    text = str(value)[:VALUE_MAX]
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def _mildness(instance: Anomaly) -> tuple[bool, bool]:
    """Sorts the worst instance first: one that stands at the end, one that skipped a record."""
    return bool(instance.attributes.get("recovered")), not instance.attributes.get("skipped_record")


def _ratio(case: Case, claim: Claim) -> tuple[Violation, ...]:
    """Returns the violation of the claimed ratio of redelivered records, if there is one."""
    records = case.counts.get("records", 0)
    redelivered = next((found for found in case.found if found.anomaly == "redelivered"), Found("redelivered"))
    count = redelivered.count
    if claim.redelivered_max_ratio is None or claim.delivery == "at-most-once" or not count or not records:
        return ()
    if count / records <= claim.redelivered_max_ratio:
        return ()
    told = (
        f"{count} of {records} records were delivered again; the claim allows {claim.redelivered_max_ratio:g} of them"
    )
    return (Violation("redelivered", count, told, redelivered.instances[0].events[:EVENTS_MAX]),)


def _not_judged_gaps(case: Case, claim: Claim) -> list[str]:
    """Returns the claimed properties that were not judged, those of one reason in one sentence."""
    by_reason: dict[str, list[str]] = {}
    for found in case.found:
        rule = RULES.get(found.anomaly)
        if found.not_judged is not None and found.applies and rule is not None and rule.claimed(claim):
            by_reason.setdefault(found.not_judged, []).append(found.anomaly)
    needed = [*CORE[claim.delivery], *(["memory-over-limit"] if claim.memory_max_bytes is not None else [])]
    known = {found.anomaly for found in case.found}
    never = [name for name in needed if name not in known]
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


def _severity(violation: Violation) -> tuple[int, str]:
    order = list(RULES)
    return (order.index(violation.anomaly) if violation.anomaly in RULES else -1), violation.anomaly


def _by_name(tolerated: Tolerated) -> tuple[str, str]:
    return tolerated.anomaly, tolerated.because


# ------------------------------------------------------------------------------------------------------- the files


def verdict_to_table(verdict: Verdict) -> dict[str, Any]:
    """Returns the verdict as plain data, for verdict.json."""
    table = {"schema": VERDICT_SCHEMA} | asdict(verdict)
    table["faults"] = [{name: value for name, value in fault.items() if name != "healed"} for fault in table["faults"]]
    return table


def write_verdict(folder: RunFolder, verdict: Verdict, case: Case) -> None:
    """Writes verdict.json and anomalies.jsonl: keys sorted, no times, no paths, the same bytes for the same case."""
    folder.write_json("verdict.json", verdict_to_table(verdict))
    lines = (orjson.dumps(row, option=LINE) for row in anomaly_rows(case, verdict.claim))
    (folder.path / "anomalies.jsonl").write_bytes(b"".join(lines))


def anomaly_rows(case: Case, claim: Claim) -> Iterator[dict[str, Any]]:
    """Yields every anomaly with its weight under the claim, sorted by name."""
    for found in sorted(case.found, key=lambda found: found.anomaly):
        rule = RULES.get(found.anomaly)
        for instance in found.instances:
            weight, because = (
                rule.excuse(claim, instance.attributes)
                if rule is not None and rule.claimed(claim)
                else ("tolerated", NOT_EXCLUDED)
            )
            row = {
                "anomaly": found.anomaly,
                "topic": instance.topic,
                "partition": instance.partition,
                "attributes": dict(instance.attributes),
                "events": list(instance.events),
                "sentence": sentence(found.anomaly, instance),
                "weight": weight,
            }
            yield row | ({"because": because} if because else {})
