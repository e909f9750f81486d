"""The upgrades that `make upgrade-matrix` plays, and what each has left: a row a play.

Played are neighbouring versions, all versions to the newest, and the oldest to all, in both shapes, as far as the rules
of paths allow; in each four client libraries side by side, and the consumer protocol where both versions speak it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from kafka_trial.cluster.versions import CONSUMER_PROTOCOL, NUMBERS, parse_release
from kafka_trial.compatibility.feature_levels import defaults_of
from kafka_trial.compatibility.paths import ClusterState, Move, refusals
from kafka_trial.report.row_files import rows_in
from kafka_trial.upgrade.outcome import GO, NOT_KNOWN

ROWS_NAME: Final = "upgrades.jsonl"
SHAPES: Final = {"in-place": "nothing", "replace": "brokers"}  # as the option has them → as the rules of paths do
LIBRARIES: Final = {  # a sound consumer of each
    "python-at-least-once": "librdkafka",
    "kafka-python-at-least-once": "kafka-python",
    "aiokafka-long-orders": "aiokafka",
    "kafka-verifiable-consumer": "Kafka's Java client",
}
NEW_PROTOCOL: Final = {"python-at-least-once/consumer-protocol": "librdkafka, consumer protocol"}
OFTEN: Final = ("3.9.2", "4.0.2")  # played five times to the newest, in both shapes
TIMES: Final = 5
BATCH_MAX: Final = 3  # consumers on one cluster, where a play is one more of the same
NO_RECORD, LAST_WORDS_MAX = "no record", 200


@dataclass(frozen=True)
class Play:
    """An upgrade to play: from a version to another, with some consumers; `added` partitions to each topic."""

    before: str
    after: str
    shape: str
    consumers: tuple[str, ...]
    seed: int
    added: int = 0

    def __str__(self) -> str:
        return f"{self.before} to {self.after}, {self.shape}, seed {self.seed}"

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{self.before}-{self.after}-{self.shape}-{self.seed}"

    @property
    def side_by_side(self) -> int:
        """How many of its consumers are on one cluster at most: all, the first time that a pair is played; later, when
        it is the consumers that are tried once more, as many as two slow cores carry."""
        return len(self.consumers) if self.seed == 1 else BATCH_MAX


@dataclass(frozen=True)
class Row:
    """What a play left: the whole outcome, and each that was no go, as (stage, subject, outcome, accused, reason).

    `outcomes` counts them by subject and outcome; `stages_s`: seconds by stage; `restarts_s`: how long each node took
    to be in sync again. `digest` is of the code that plays upgrades, makes and judges histories; `commit`
    the state of the checkout.
    """

    play: Play
    outcome: str
    seconds: float
    outcomes: Mapping[str, Mapping[str, int]]
    not_go: Sequence[Sequence[str]]
    stages_s: Mapping[str, float]
    restarts_s: Sequence[float]
    digest: str
    commit: str


def plays() -> Iterator[Play]:
    """Yields every play, the often ones first."""
    pairs = [(before, NUMBERS[-1]) for before in OFTEN]
    pairs += pairwise(NUMBERS)
    pairs += [(before, NUMBERS[-1]) for before in NUMBERS[:-1]]
    pairs += [(NUMBERS[0], after) for after in NUMBERS[1:]]
    for before, after in dict.fromkeys(pairs):
        times = TIMES if before in OFTEN and after == NUMBERS[-1] else 1
        for shape in SHAPES:
            if not list(refused(before, after, shape)):
                yield from (Play(before, after, shape, consumers_on(before), seed) for seed in range(1, times + 1))


def refused(before: str, after: str, shape: str) -> Iterator[str]:
    """Yields why a pair cannot be played."""
    old, new = parse_release(before), parse_release(after)
    state = ClusterState(defaults_of(old), voters="static", formatted_by=old)
    move = Move(old, new, state, replaced=SHAPES[shape])  # type: ignore[arg-type]
    yield from map(str, refusals(move))


def consumers_on(before: str) -> tuple[str, ...]:
    """Returns the consumers that can be at work on a version."""
    speaks_both = parse_release(before) >= CONSUMER_PROTOCOL
    return (*LIBRARIES, *(NEW_PROTOCOL if speaks_both else ()))


def row_of(play: Play, record: Mapping[str, Any], *, seconds: float, digest: str, commit: str) -> Row:
    """Returns the row of a play by its upgrade.json."""
    outcomes: dict[str, dict[str, int]] = {}
    for one in record["outcomes"]:
        counts = outcomes.setdefault(one["subject"], {})
        counts[one["outcome"]] = counts.get(one["outcome"], 0) + 1
    words = ("stage", "subject", "outcome", "accused", "reason")
    rolls = [roll["in_sync_s"] for stage in record["stages"] for roll in stage["rolls"]]
    return Row(
        play,
        record["outcome"],
        round(seconds, 1),
        outcomes,
        [[one[word] for word in words] for one in record["outcomes"] if one["outcome"] != GO],
        {stage["name"]: stage["lasted_s"] for stage in record["stages"] if stage["lasted_s"] is not None},
        [took for took in rolls if took is not None],
        digest,
        commit,
    )


def row_without_record(play: Play, why: str, *, digest: str, commit: str) -> Row:
    """Returns the row of a play that left no record: everything is unknown."""
    told = ["", "", NOT_KNOWN, "", f"{NO_RECORD}: {why[-LAST_WORDS_MAX:].strip()}"]
    return Row(play, NOT_KNOWN, 0.0, {}, [told], {}, [], digest, commit)


def read_rows(file: Path) -> list[Row]:
    """Returns every row, oldest first; none where there is no file.

    Raises:
        InputError: a line is no row.
    """
    return rows_in(file, _row)


def _row(table: dict[str, Any]) -> Row:
    play = table.pop("play")
    return Row(play=Play(**{**play, "consumers": tuple(play["consumers"])}), **table)
