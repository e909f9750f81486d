"""The part of a certificate that says what differs, as plain data: what certificate.json holds under `comparison`.

All of it follows from the trials, so that `verify` can make it again and find an edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import orjson

from kafka_trial.cluster.versions import oldest_first
from kafka_trial.comparison.client import Cell, judge_client
from kafka_trial.comparison.differences import Sides, compare
from kafka_trial.comparison.explain import ConsumerKind
from kafka_trial.comparison.pairs import ComparedTrial, client_pairs, version_pairs

Table = dict[str, Any]


@dataclass(frozen=True)
class Baseline:
    """The old client: its name, its trials, and `notes` on what else than the client is not the same."""

    name: str
    trials: Sequence[ComparedTrial]
    notes: Sequence[str] = ()


def compare_trials(
    trials: Sequence[ComparedTrial],
    *,
    name: str,
    cells: Sequence[Cell],
    consumer: ConsumerKind,
    baseline: Baseline | None = None,
) -> Table:
    """Returns what differs between the Kafka versions of a consumer's trials, and from those of a baseline.

    `name`: the consumer's. `cells`: all that was to be tried (suite, version, seed). Of three versions or more each is
    compared with the one before it, and the newest with the oldest.
    """
    all_sides = _version_sides(trials, [kafka for _, kafka, _ in cells])
    all_sides += [] if baseline is None else [_client_sides(baseline, trials, name)]
    table = {
        "consumer": asdict(consumer),
        "between": [asdict(one) for one in compare(all_sides, consumer)],
        "figures": [
            *_figure_rows("consumer", trials),
            *_figure_rows("baseline", () if baseline is None else baseline.trials),
        ],
        "client": None if baseline is None else _client(baseline, trials, cells),
    }
    return dict(orjson.loads(orjson.dumps(table)))  # as it is read: tuples are lists


def _version_sides(trials: Sequence[ComparedTrial], versions: Sequence[str]) -> list[Sides]:
    ordered = oldest_first(set(versions))
    steps = list(pairwise(ordered)) + ([(ordered[0], ordered[-1])] if ordered[2:] else [])
    sides = []
    for before, after in steps:
        pairs = version_pairs(trials, before, after)
        tried = sum(one.kafka in (before, after) for one in trials)
        sides.append(Sides(before, after, True, pairs, not_paired=tried - 2 * len(pairs)))
    return sides


def _client_sides(baseline: Baseline, trials: Sequence[ComparedTrial], name: str) -> Sides:
    pairs = client_pairs(baseline.trials, trials)
    not_paired = len(baseline.trials) + len(trials) - 2 * len(pairs)
    return Sides(f"{baseline.name} (baseline)", name, False, pairs, not_paired=not_paired)


def _client(baseline: Baseline, trials: Sequence[ComparedTrial], cells: Sequence[Cell]) -> Table:
    judged = judge_client(baseline.trials, trials, cells)
    about = {"baseline": baseline.name, "notes": list(baseline.notes)}
    return about | asdict(judged) | {"verdict": judged.verdict, "exit": judged.exit}


def _figure_rows(of: str, trials: Sequence[ComparedTrial]) -> list[Mapping[str, Any]]:
    return [
        {"of": of, "scenario": one.scenario, "kafka": one.kafka, "seed": one.seed, "values": dict(one.figures)}
        for one in trials
    ]
