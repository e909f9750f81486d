"""Places: the number of the slice that a topic's name (or id) and a partition mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.invariants.kernels import Array
from kafka_trial.judge.history_names import HistoryNames

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
    if names.topic is not None and topic != names.topic:
        return ELSEWHERE
    return names.slice_of(topic, partition)
