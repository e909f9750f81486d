"""Attempts that members gave up, and the producers in whose transactions positions were handed in.

Stands beside `history_reader.py`. An attempt may span partitions, so that the line which ends it is not in the slice of
each: such lines are few, and go into the trial context. Nothing is judged here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.history_names import HistoryNames, slices_of
from kafka_trial.judge.own_clients import NUMBER as OWN_CLIENT
from kafka_trial.model.kernels import NONE, Array
from kafka_trial.model.trial_context import AbortLine, PositionProducer


def abort_lines(
    names: HistoryNames, source: int, columns: Columns, *, time_ns: Array, own_ns: Array
) -> Iterator[AbortLine]:
    """Yields the lines of a block of a member's file with which it gave an attempt up."""
    commits = columns.is_kind("commit") & (columns.codes("outcome", {"fail": 1}) == 1)
    named: dict[int, set[int]] = defaultdict(set)
    for row, place in _listed(names, columns, commits):
        named[row].add(place)
    for row in np.flatnonzero(commits).tolist():
        said = {"seq": "seq", "own_client": OWN_CLIENT}
        about: dict[str, Any] = {name: int(columns[column][row]) for name, column in said.items()}
        about |= {"time_ns": int(time_ns[row]), "own_ns": int(own_ns[row])}
        yield AbortLine(**about, source=source, slices=tuple(sorted(named[row])))


@dataclass
class PositionProducers:
    """Gathers the producers of requests that hand positions in: groups of their slices, and times, by lane and producer
    id."""

    _groups: dict[tuple[int, int], list[set[int]]] = field(default_factory=lambda: defaultdict(list))
    _times: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def take(self, names: HistoryNames, columns: Columns) -> None:
        """Takes the requests of a block into account."""
        asked = columns.codes("api", {"TXNOFFSETCOMMIT": 1}, fold=True) == 1
        asked &= columns.is_kind("request") & names.of_group(columns)
        asked &= (columns["lane"] != NONE) & (columns["producer_id"] != NONE)
        requests: dict[int, set[int]] = defaultdict(set)
        for row, place in _listed(names, columns, asked):
            requests[row].add(place)
        for row, places in requests.items():
            producer = int(columns["lane"][row]), int(columns["producer_id"][row])
            apart = [group for group in self._groups[producer] if not group & places]
            shared = [group for group in self._groups[producer] if group & places]
            self._groups[producer] = [*apart, places.union(*shared)]
            time_ns = int(columns["time_ns"][row])
            first_ns, last_ns = self._times.get(producer, (time_ns, time_ns))
            self._times[producer] = min(first_ns, time_ns), max(last_ns, time_ns)

    def all(self) -> tuple[PositionProducer, ...]:
        """Returns what is known of each producer."""
        groups = {one: tuple(sorted(tuple(sorted(group)) for group in of)) for one, of in sorted(self._groups.items())}
        return tuple(PositionProducer(*one, together, *self._times[one]) for one, together in groups.items())


def _listed(names: HistoryNames, columns: Columns, mask: Array) -> Iterator[tuple[int, int]]:
    """Yields row and slice of each entry of the masked rows."""
    if mask.any():
        rows, entries = columns.entries("entries", mask)
        places = slices_of(names, entries.text("topic"), entries["partition"], topic_ids=entries.text("topic_id"))
        yield from zip(rows.tolist(), places.tolist(), strict=True)
