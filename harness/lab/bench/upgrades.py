"""How long a rehearsal of an upgrade takes: of one consumer, and of one more beside it, in turn within one run."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kafka_trial.errors import UnjudgeableError
from kafka_trial.upgrade.outcome import GO
from lab.bench.figures import Figure
from lab.upgrades.campaign import by_command
from lab.upgrades.plays import Play

CONSUMERS = ("python-at-least-once", "kafka-python-at-least-once")
BEFORE, AFTER = "3.9.2", "4.3.1"


def bench_upgrade(runs: int) -> Iterator[Figure]:
    """In place, through every stage: all of it, by stage, and a broker's restart until it is in sync again.

    Raises:
        UnjudgeableError: a rehearsal was no go.
    """
    took: dict[int, list[float]] = {1: [], 2: []}
    stages: dict[str, list[float]] = defaultdict(list)
    restarts: list[float] = []
    with tempfile.TemporaryDirectory(prefix="kafka-trial-bench-") as place:
        for number in range(runs):
            for count in took if number % 2 == 0 else reversed(took):
                play = Play(BEFORE, AFTER, "in-place", CONSUMERS[:count], seed=number + 1)
                record, seconds = by_command(play, Path(place) / "upgrade")
                if record["outcome"] != GO:
                    raise UnjudgeableError(
                        f"only a rehearsal that is a go is measured, not {play}: {record['outcome']}"
                    )
                took[count].append(seconds)
                if count == 1:
                    for stage in record["stages"]:
                        stages[stage["name"]].append(stage["lasted_s"])
                        restarts += [one["in_sync_s"] for one in stage["rolls"] if one["in_sync_s"] is not None]
    yield Figure(f"upgrade {BEFORE} to {AFTER} in place, one consumer", "s", tuple(took[1]), "180, must 300")
    more = tuple(two - one for one, two in zip(took[1], took[2], strict=True))
    yield Figure("one consumer more", "s", more, "must 45")
    yield Figure("a broker's restart, until it is in sync again", "s", tuple(restarts), "2.5, must 4")
    for name, values in stages.items():
        yield Figure(f"of one consumer: {name}", "s", tuple(values))
