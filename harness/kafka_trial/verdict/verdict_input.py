"""What a verdict rests on, as values: `collect.py` puts it together, `decide.py` decides.

What was asked stands in the run folder: the consumer's claim, and how much had to be judged under which faults.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.claim import Claim, claim_problems
from kafka_trial.errors import InputError
from kafka_trial.history.store import GROUPS, RunFolder
from kafka_trial.judge.not_judged import NotJudgedReason
from kafka_trial.model.trial_context import PrintedLines
from kafka_trial.scenario import Limits, Topic
from kafka_trial.verdict.messages import plain

NOT_REACHED = "not reached"  # how the evidence of a cut begins whose request never came


@dataclass(frozen=True)
class AnomalyResult:
    """All the judge says of one anomaly's name.

    `undecided` counts the cases that could not be decided, by reason. `not_judged` says why it was not judged at all,
    `not_judged_reason` which of the judge's reasons that is (None: another's). `applies` is False where the rule is
    not about this consumer (its progress is not in Kafka): not judged, not missed. The judge keeps examples of every
    combination of deciding attributes; `more` is how many it counted beyond them. `partly` says which part of it was
    not judged, and why.
    """

    anomaly: str
    instances: tuple[Anomaly, ...] = ()
    more: int = 0
    undecided: Mapping[str, int] = field(default_factory=dict)
    not_judged: str | None = None
    not_judged_reason: NotJudgedReason | None = None
    applies: bool = True
    partly: str | None = None

    @property
    def count(self) -> int:
        return len(self.instances) + self.more


@dataclass(frozen=True)
class Fault:
    """One planned fault, and what the samples say: whether it took effect (`bit`), and whether traffic came back."""

    kind: str
    target: str
    role: str
    bit: bool
    evidence: str
    healed: bool = True


@dataclass(frozen=True)
class Violation:
    """One anomaly that breaks the claim: how often, the worst of them in a sentence, and the events that prove it.

    `follows`: the violation that explains every instance of it (`decide.py`).
    """

    anomaly: str
    count: int
    sentence: str
    events: tuple[str, ...]
    follows: str | None = None


@dataclass(frozen=True)
class VerdictInput:
    """Everything a verdict rests on.

    `ground` are sentences about what failed on the harness's or the cluster's side; `gaps` those about evidence that is
    too thin (few records judged, none on a partition, no work of a fault's target). `unready` say which members were
    not seen to be ready although the brokers saw them at work. `failures` are the consumer's
    plain failures on a sound cluster (never assigned, exits, never stops), as anomaly and sentence with proofs. `notes`
    are worth knowing, and decide nothing; nor does `printed`, what members printed that is no event, or an error.
    `lasting`: those of `ground` that another try would meet again. `withheld`: what the machine kept from the members,
    in words. `of_trial`: it can be tried again, it is no audit. `untried`: what a pass did not try, as sentences.
    `keyless`: there were records, and none of them has a key; `keys_unique`: no two of a partition have the same one.
    """

    found: tuple[AnomalyResult, ...]
    faults: tuple[Fault, ...] = ()
    ground: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    unready: tuple[str, ...] = ()
    failures: tuple[Violation, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lasting: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    of_trial: bool = True
    printed: tuple[PrintedLines, ...] = ()
    untried: tuple[str, ...] = ()
    keyless: bool = False
    keys_unique: bool = False


@dataclass(frozen=True)
class Scope:
    """What the scenario asked for, as far as the verdict needs it; `unknowns`: why some of it cannot be known.

    `load`: in words, how much less was sent than the scenario says by itself; "": all of it.
    `further_topic_partitions`: how many each topic but the first has; `later_topics`: how many of these, the last of
    them, came while the group was at work.
    """

    partitions: int | None = None
    records_judged_min: int = Limits().records_judged_min
    planned: tuple[Mapping[str, Any], ...] = ()
    unknowns: tuple[str, ...] = ()
    load: str = ""
    further_topic_partitions: tuple[int, ...] = ()
    later_topics: int = 0


def claim_of(folder: RunFolder) -> tuple[Claim, list[str]]:
    """Returns the claim of the run folder's consumer.toml, and why it cannot be known, if so."""
    try:
        table = tomllib.loads((folder.path / "consumer.toml").read_text(encoding="utf-8")).get("claim", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Claim("unclaimed"), [
            f"it is not known what was claimed: consumer.toml cannot be read ({type(error).__name__})"
        ]
    problems = claim_problems(table) if isinstance(table, dict) else ["[claim] is not a table"]
    if problems:
        return Claim("unclaimed"), [f"it is not known what was claimed: {plain(problem)}" for problem in problems]
    return Claim(**table), []


def scope_of(folder: RunFolder) -> Scope:
    """Returns what the run folder's scenario and schedule asked for; defaults, and doubts, where they are damaged."""
    scenario, schedule = (_table(folder, name) for name in ("scenario.json", "schedule.json"))
    topic, limits = (_section(scenario, name) for name in ("topic", "limits"))
    faults = schedule.get("faults") if schedule else None
    planned = tuple(fault for fault in faults if isinstance(fault, Mapping)) if isinstance(faults, list) else ()
    unknowns = [] if scenario else [f"it is not known how much was to be judged: {_damaged('scenario.json')}"]
    if not isinstance(faults, list) or len(planned) < len(faults):
        unknowns.append(f"it is not known how many faults were planned: {_damaged('schedule.json')}")
    unknowns += [
        f"nothing is known of group {name}: {GROUPS}/{name} is missing from the run folder"
        for name in _further_groups(scenario)
        if name not in folder.groups
    ]
    return Scope(
        partitions=topic.get("partitions", Topic().partitions) if scenario else None,
        records_judged_min=limits.get("records_judged_min", Limits().records_judged_min),
        planned=planned,
        unknowns=tuple(unknowns),
        load=_load_in_words(_section(scenario, "load")),
        further_topic_partitions=tuple(_further_topic_partitions(scenario)),
        later_topics=sum(one.get("later") is True for one in _further_topics(scenario)),
    )


def _further_topic_partitions(scenario: Mapping[str, Any] | None) -> Iterator[int]:
    for one in _further_topics(scenario):
        yield _section(one, "topic").get("partitions", Topic().partitions)


def _further_topics(scenario: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    further = (scenario or {}).get("further_topics")
    for one in further if isinstance(further, list) else ():
        yield one if isinstance(one, Mapping) else {}


def _further_groups(scenario: Mapping[str, Any] | None) -> Iterator[str]:
    further = (scenario or {}).get("further_groups")
    for one in further if isinstance(further, list) else ():
        yield plain(str(one.get("name"))) if isinstance(one, Mapping) else "of no name"


def _load_in_words(load: Mapping[str, Any]) -> str:
    factor, opening_burst, rate_per_s = (load.get(name) for name in ("factor", "opening_burst", "rate_per_s"))
    if not isinstance(factor, int | float) or factor == 1:
        return ""
    return (
        f"the load was {factor:g} of the scenario's own: {opening_burst} records at once, then {rate_per_s} a second; "
        "the verdict says nothing of a greater one"
    )


def _damaged(name: str) -> str:
    return f"{name} is missing or damaged"


def _section(table: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    section = (table or {}).get(name)
    return section if isinstance(section, Mapping) else {}


def _table(folder: RunFolder, name: str) -> Mapping[str, Any] | None:
    try:
        value = folder.read_json(name)
    except InputError:
        return None
    return value if isinstance(value, Mapping) else None
