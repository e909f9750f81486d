"""Compares the judge with the worlds of a history.

An anomaly *must* be there if it is in all worlds, and *may* be there if it is in some. The judge is right if what it
finds must be there, and if what may be there it finds or leaves undecided. What it leaves undecided although the worlds
agree is a gap: no error, but less than could be said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.claim import Claim
from kafka_trial.history.event import Event
from kafka_trial.judge.judge import Finding, judge_events
from kafka_trial.model.trial_context import Settings
from kafka_trial.verdict.decide import weigh
from lab.worlds.story import Story, events_of, true_world
from lab.worlds.textbook import TEXTBOOK, keys_in
from lab.worlds.uncertainty import uncertainty_of
from lab.worlds.worlds import Uncertainty, worlds_of

Keys = frozenset[Hashable]
CLAIM: Final = Claim("at-least-once")
WEIGHED: Final = (
    "commit-regression",
    "zombie-commit",
)  # their definition asks for harm, which the rule of a claim sees
BY_CHOICE, BY_ORDER = "passed, by a choice", "passed, by an order"
KINDS: Final = {
    "convicted": "the judge finds it, and it is in no world",
    "convicted too soon": "the judge finds it, and it is in some worlds only",
    "passed": "it is in all worlds, and the judge neither finds it nor leaves anything undecided",
    BY_CHOICE: "it is in every order of one combination of choices, and the judge says nothing",
    BY_ORDER: "it is in some orders of instants only, and the judge says nothing",
}


@dataclass(frozen=True)
class MustAndMay:
    """What the worlds of a history say of one anomaly: which keys are in all worlds, in some, and in every order of
    some combination of choices."""

    must: Keys
    may: Keys
    by_choice: Keys


@dataclass(frozen=True)
class Disagreement:
    """One disagreement: an anomaly, where it is, and its kind, a key of KINDS."""

    name: str
    key: Hashable
    kind: str


@dataclass
class Comparison:
    """What both say of one history: how many worlds it has, the differences, and by anomaly how many keys both find,
    whether the worlds agree where the judge leaves a case undecided, and whether it is in all worlds, in some, in none.
    """

    worlds: int
    differences: list[Disagreement] = field(default_factory=list)
    agreed: Counter[str] = field(default_factory=Counter)
    gap: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)


def compare(story: Story) -> Comparison:
    """Returns what the judge and the worlds of a story say of each other.

    Raises:
        TooManyWorldsError: the story leaves more open than can be enumerated.
    """
    events = events_of(story)
    count, answers = must_and_may_of(story, events)
    said = judge_events(events, Settings(**story.settings()))
    assert said.crashed == {}, said.crashed
    assert said.defects == (), said.defects
    comparison = Comparison(count)
    for name, answer in answers.items():
        comparison.outcomes[name, "must" if answer.must else "may" if answer.may else "not"] += 1
        _add(comparison, name, answer, said.findings[name])
    return comparison


def must_and_may_of(story: Story, events: Sequence[Event]) -> tuple[int, Mapping[str, MustAndMay]]:
    """Returns how many worlds a story's files allow, and what these say of each anomaly.

    Raises:
        TooManyWorldsError: the files leave more open than can be enumerated.
    """
    combinations = [[keys_in(world) for world in orders] for orders in worlds_of(_uncertainty_of(story, events))]
    answers = {name: _answer([[keys[name] for keys in orders] for orders in combinations]) for name in TEXTBOOK}
    return sum(map(len, combinations)), answers


def _uncertainty_of(story: Story, events: Sequence[Event]) -> Uncertainty:
    return uncertainty_of(events, buffered=story.buffered)


def _answer(combinations: Sequence[Sequence[Keys]]) -> MustAndMay:
    """Returns the answer of worlds, by combinations of choices: every one has an order at least."""
    always = [frozenset.intersection(*orders) for orders in combinations]
    ever = [frozenset[Hashable]().union(*orders) for orders in combinations]
    return MustAndMay(frozenset.intersection(*always), frozenset().union(*ever), frozenset().union(*always))


def misses_truth(story: Story) -> list[str]:
    """Returns for which anomalies what truly happened is not between must and may: none, unless evidence is misread.

    Raises:
        TooManyWorldsError: as `must_and_may_of`.
    """
    _, answers = must_and_may_of(story, events_of(story))
    truth = keys_in(true_world(story))
    return [name for name, answer in answers.items() if not answer.must <= truth[name] <= answer.may]


def _add(comparison: Comparison, name: str, answer: MustAndMay, finding: Finding) -> None:
    """Adds what is said of one anomaly."""
    convicted, undecided = _said(name, finding)
    for key in sorted(convicted - answer.must, key=str):
        kind = "convicted too soon" if key in answer.may else "convicted"
        comparison.differences.append(Disagreement(name, key, kind))
    comparison.agreed[name] += len(convicted & answer.must)
    silent = answer.may - convicted
    if undecided or finding.not_judged:
        comparison.gap[name] += undecided and (not silent or bool(answer.must - convicted))
        return
    for key in sorted(silent, key=str):
        how = BY_CHOICE if key in answer.by_choice else BY_ORDER
        comparison.differences.append(Disagreement(name, key, "passed" if key in answer.must else how))


def _said(name: str, finding: Finding) -> tuple[Keys, bool]:
    """Returns the keys of what the judge finds of an anomaly, and whether it leaves a case of it undecided."""
    weights = [(weigh(CLAIM, name, one.attributes)[0], one) for one in finding.instances]
    counts = [one for weight, one in weights if name not in WEIGHED or weight == "violation"]
    unsure = any(weight == "undecided" for weight, _ in weights if name in WEIGHED)
    keys = frozenset(key for one in counts for key in _keys_of(name, one))
    return keys, unsure or any(finding.undecided.values())


def _keys_of(name: str, one: Anomaly) -> list[Hashable]:
    """Returns an instance as the textbook names it."""
    about = one.attributes
    match name:
        case "commit-ahead" | "commit-lost":
            return [about["committed_offset"]]
        case "commit-regression" | "zombie-commit" | "commit-past-end":
            return [about["log_offset"]]
        case "overlapping-handlers":
            return [about["offset"], about["other_offset"]]
        case "reordered-key":
            return [(about["offset"], about["same_key"])]
        case "work-after-revoke" | "zombie-work":
            return [(about["offset"], about["what"])]
        case "split-ownership":
            return [("log", about["log_offset"]) if about["by"] == "log" else ("told", about["offset"])]
    return [about["offset"]]
