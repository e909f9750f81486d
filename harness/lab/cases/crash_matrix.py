"""Case 2 as a grid: ways to keep position and effect, the places where each is killed, and what stands there then.

A *place* is where a member is killed: at its nth request of an API (a cut), or where it asks (a crash point). A *point*
is what must be true there of the records at stake: is their effect there, is their commit there. A place that the trial
does not prove to be at a point fills no cell of the matrix (`crash_proof.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kafka_trial.nemesis.cut_scenarios import KILLED_S, PAUSED_S, RECORDS_BYTES_MIN
from kafka_trial.scenario import Load, Scenario, Step

BEFORE_PROCESSING = "before processing"
BEFORE_COMMIT = "before the commit"
AFTER_COMMIT = "after the commit, before the effect"
AFTER_EFFECT = "after the effect, before the commit"
POINTS: Final = (BEFORE_COMMIT, AFTER_COMMIT, BEFORE_PROCESSING, AFTER_EFFECT)
FROZEN = "frozen with records in hand"  # no crash: what the condition beside a position is for
CLASSIC, CONSUMER = "classic", "consumer"
PROTOCOLS: Final = (CLASSIC, CONSUMER)
MEMBER = "member:1"
NTH_MIN, NTH_MAX = 2, 4
LOGS_TELL: Final = 2  # the rule of proof since the logs tell what a transaction had left, and keys are compared


@dataclass(frozen=True)
class Place:
    """Where a member is killed: the fault, its options but for `nth`, and the points that it can be at.

    `inside`: it is inside a transaction that holds effect and commit: outside neither may be seen. Of a transaction of
    Kafka the logs tell which of them it has; of one of a database the place does. `of_one_key`: two records of one key
    must be at stake. `load`: where it is not its pattern's. `rule`: proofs of an older one prove nothing of it.
    """

    name: str
    fault: str
    options: Mapping[str, Any]
    points: tuple[str, ...]
    inside: bool = False
    of_one_key: bool = False
    load: Load | None = None
    rule: int = 1

    @property
    def for_s(self) -> float:
        """How long the member is away, in seconds."""
        return PAUSED_S if self.options.get("then") == "pause" else KILLED_S


def _cut(name: str, api: str, where: str, *points: str, inside: bool = False, then: str = "kill") -> Place:
    options: dict[str, Any] = {"api": api, "where": where, "action": "hold", "then": then}
    if api == "Fetch":
        options["answer_bytes_min"] = RECORDS_BYTES_MIN
    return Place(name, "cut", options, points, inside)


def _asked(point: str, named: str) -> Place:
    return Place(f"asks-{point}", "crash-point", {"point": point}, (named,), inside=True)


# One or two records at a time: nothing else is at stake when a member is killed.
SLOW = Load(opening_burst=120, rate_per_s=6.0)
QUICK = Load(opening_burst=300, rate_per_s=30.0)
MUCH = Load()  # so that a member that is frozen has work in hand
FEW_CUSTOMERS = Load(
    opening_burst=120, rate_per_s=24.0, key_count=9
)  # every partition has one; at stake are several of one

IN_HAND = _cut("records-in-hand", "Fetch", "after", BEFORE_PROCESSING)
COMMIT_LEAVES = _cut("commit-leaves", "OffsetCommit", "before", BEFORE_COMMIT, AFTER_EFFECT)
COMMIT_TAKEN = _cut("commit-taken", "OffsetCommit", "answered", AFTER_COMMIT)
OFFSETS_LEAVE = replace(_cut("offsets-leave", "TxnOffsetCommit", "before", AFTER_EFFECT, inside=True), rule=LOGS_TELL)
END_LEAVES = replace(_cut("end-leaves", "EndTxn", "before", BEFORE_COMMIT, inside=True), rule=LOGS_TELL)
END_TAKEN = _cut("end-taken", "EndTxn", "answered", AFTER_COMMIT)
PAUSED = replace(_cut("frozen-in-hand", "Fetch", "after", FROZEN, then="pause"), load=MUCH)
OF_COMMITS = (IN_HAND, COMMIT_LEAVES, COMMIT_TAKEN)
OF_KEYS = (IN_HAND, replace(COMMIT_LEAVES, of_one_key=True, load=FEW_CUSTOMERS, rule=LOGS_TELL), COMMIT_TAKEN)
OF_TRANSACTIONS = (replace(IN_HAND, rule=LOGS_TELL), OFFSETS_LEAVE, END_LEAVES, END_TAKEN)
OF_TABLES = (
    _asked("before-processing", BEFORE_PROCESSING),
    _asked("before-commit", BEFORE_COMMIT),
    _asked("after-commit", AFTER_COMMIT),
    _asked("after-effect", AFTER_EFFECT),
    PAUSED,
)


@dataclass(frozen=True)
class Pattern:
    """One way to keep position and effect: the consumer that does it by each protocol, and where it is killed.

    `never`: points that its program cannot be at, and why; the places are tried all the same.
    """

    name: str
    title: str
    consumers: Mapping[str, str]
    places: tuple[Place, ...]
    load: Load
    never: Mapping[str, str] = field(default_factory=dict)


FIRST_EFFECT = "its effect comes before its commit"


def _ours(name: str) -> dict[str, str]:
    folder = "fixtures/crash-matrix"
    return {CLASSIC: f"{folder}/{name}.toml", CONSUMER: f"{folder}/{name}-consumer-protocol.toml"}


def _pair(folder: str) -> dict[str, str]:
    return {CLASSIC: f"fixtures/{folder}/consumer.toml", CONSUMER: f"fixtures/{folder}/consumer-protocol.toml"}


LATE: Final = {BEFORE_COMMIT: FIRST_EFFECT, AFTER_COMMIT: FIRST_EFFECT}
PATTERNS: Final = (
    Pattern(
        "early",
        "early: commit, then process",
        _ours("commits-early"),
        OF_COMMITS,
        SLOW,
        {AFTER_EFFECT: "its commit comes before its effect"},
    ),
    Pattern("late", "late: process, then commit", _ours("commits-late"), OF_COMMITS, SLOW, LATE),
    Pattern("auto-commit", "auto-commit of what is done", _ours("commits-by-itself"), OF_COMMITS, SLOW, LATE),
    Pattern(
        "position-in-database",
        "offset in the database, with the condition",
        _ours("moves-with-the-condition"),
        OF_TABLES,
        QUICK,
    ),
    Pattern(
        "without-the-condition",
        "offset in the database, without the condition",
        _pair("faulty/moves-without-the-condition"),
        OF_TABLES,
        QUICK,
    ),
    Pattern("upsert-by-id", "late, with an upsert by id", _ours("upserts-by-id"), OF_COMMITS, SLOW, LATE),
    Pattern("upsert-by-key", "late, with an upsert by business key", _ours("upserts-by-key"), OF_KEYS, SLOW, LATE),
    Pattern(
        "transactional",
        "one Kafka transaction",
        {
            CLASSIC: "fixtures/crash-matrix/transactional.toml",
            CONSUMER: "fixtures/crash-matrix/transactional-consumer-protocol/consumer.toml",
        },
        OF_TRANSACTIONS,
        SLOW,
        {AFTER_COMMIT: "effect and commit are taken by one request"},
    ),
)


@dataclass(frozen=True)
class Cell:
    """One place of one pattern by one protocol: a trial. `name` is how the command line calls it."""

    pattern: Pattern
    protocol: str
    place: Place

    @property
    def name(self) -> str:
        return f"{self.pattern.name}/{self.protocol}/{self.place.name}"

    @property
    def consumer(self) -> str:
        return self.pattern.consumers[self.protocol]

    @property
    def may_be_reached(self) -> bool:
        """Whether its program can be at one of the points of its place."""
        return any(point not in self.pattern.never for point in self.place.points)

    def nth(self, seed: int) -> int:
        """Returns the how-manieth time it is killed there: drawn from the seed, never the first."""
        return random.Random(f"{seed} {self.name}").randint(NTH_MIN, NTH_MAX)

    def scenario(self, seed: int) -> Scenario:
        """Returns the scenario: a small steady load, one crash, and what comes of it."""
        options = {**self.place.options, "nth": self.nth(seed)}
        step = Step(self.place.fault, MEMBER, for_s=self.place.for_s, options=options)
        load = self.place.load or self.pattern.load
        return Scenario(f"crash-{self.place.name}", f"hit there: {self.place.name}", load=load, schedule=(step,))


def cells(only: Sequence[str] = ()) -> Iterator[Cell]:
    """Yields every cell, or those whose name begins with one of `only`: first those that can be reached."""
    every = [Cell(pattern, way, place) for pattern in PATTERNS for way in PROTOCOLS for place in pattern.places]
    for cell in sorted(every, key=lambda cell: not cell.may_be_reached):
        if not only or any(cell.name.startswith(name) for name in only):
            yield cell
