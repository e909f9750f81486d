"""History names: what the events of a history call things by, and the numbers that slice rows have in their place.

The trial context's builder (`trial_context_builder.py`) fills them in; whoever makes rows, or gathers something for the
trial context, looks things up here and knows no more of the builder. Files are read in such an order (`FIRST_FILES`)
that group, topic and the run's phases are known before they are asked for. The number of a slice follows from the
topic's name (or id) and the partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.judge.columns import Columns
from kafka_trial.model.kernels import Array
from kafka_trial.model.rows import NOWHERE
from kafka_trial.model.table import Table


@dataclass
class HistoryNames:
    """What is known by now. Numbers are places in `sources`, `members`, `member_ids` and `slices`."""

    topics: list[str] = field(default_factory=list)  # those that the group is to read, the first one first
    group: str | None = None
    topics_by_id: dict[str, str] = field(default_factory=dict)
    through: dict[str, Counter[str]] = field(default_factory=dict)  # the topics handed on through, and what is there
    copies: Table | None = None  # the records there, by where they came from in the trial's topic
    slices: dict[tuple[str, int], int] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    members: dict[str, int] = field(default_factory=dict)
    member_ids: dict[str, int] = field(default_factory=dict)
    lanes: dict[int, int] = field(default_factory=dict)
    incarnations: dict[int, dict[str, Any]] = field(default_factory=dict)
    phases: dict[str, int] = field(default_factory=dict)

    @property
    def topic(self) -> str | None:
        """The first of the group's topics; faults that act on a topic act on this one."""
        return self.topics[0] if self.topics else None

    def is_trial_topic(self, topic: object) -> bool:
        """Tells whether the trial has this topic for the group to read; True for all where none was named."""
        return topic in self.topics or not self.topics

    def incarnation(self, source: int) -> dict[str, Any] | None:
        """Returns what is known of the incarnation whose file this is."""
        return self.incarnations.get(source)

    def member(self, name: str) -> int:
        """Returns the number of a member."""
        return self.members.setdefault(name, len(self.members))

    def member_id(self, name: str) -> int:
        """Returns the number of a member id."""
        return self.member_ids.setdefault(name, len(self.member_ids))

    def slice_of(self, topic: str, partition: int) -> int:
        """Returns the number of a slice."""
        return self.slices.setdefault((topic, partition), len(self.slices))

    def slice_of_nowhere(self) -> int:
        """Returns the number of the slice for what lies in no partition."""
        return self.slice_of(self.topic or "", NOWHERE)

    def is_of_group(self, body: Mapping[str, Any]) -> bool:
        """Tells whether an event is about the trial's group; every group is, where none was named."""
        return self.group is None or body.get("group") == self.group

    def of_group(self, columns: Columns) -> Array:
        """Returns which rows of a block are about the trial's group, or name none."""
        if self.group is None:
            return np.ones(len(columns), np.bool_)
        ours: Array = columns.codes("group", {self.group: 1}) == 1
        through = columns.codes("topic", dict.fromkeys(self.through, 1)) == 1  # other groups of the consumer may commit
        return ours | through | columns.absent("group")


ELSEWHERE = -2  # a place that is none of this trial's


def slices_of(names: HistoryNames, topics: pa.Array, partitions: Array, *, topic_ids: pa.Array | None = None) -> Array:
    """Returns the number of each (topic, partition), new ones included; -1 unplaced, ELSEWHERE for other topics."""
    if topic_ids is not None and topics.null_count:
        topics = pc.coalesce(topics, _topics_of(names, topic_ids))
    encoded = topics.dictionary_encode()
    different = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    placed = (codes >= 0) & (partitions >= 0) & (partitions < 2**31)
    pairs, inverse = np.unique(np.where(placed, codes * 2**31 + partitions, -1), return_inverse=True)
    numbers = [_number(names, different, int(pair)) for pair in pairs.tolist()]
    return np.array(numbers, np.int64)[inverse] if len(numbers) else np.empty(0, np.int64)


def _topics_of(names: HistoryNames, topic_ids: pa.Array) -> pa.Array:
    encoded = topic_ids.dictionary_encode()
    topics = pa.array([names.topics_by_id.get(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return topics.take(encoded.indices)


def _number(names: HistoryNames, topics: Sequence[str], pair: int) -> int:
    """Returns the number of the slice with this packed (topic, partition)."""
    if pair < 0:
        return -1
    topic, partition = topics[pair >> 31], pair & (2**31 - 1)
    if not names.is_trial_topic(topic) and topic not in names.through:
        return ELSEWHERE
    return names.slice_of(topic, partition)
