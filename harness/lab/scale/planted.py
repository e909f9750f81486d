"""Planted anomalies: where the consumers of a generated history go wrong, and what must be found of it.

Each lies in a batch of its own, away from handovers, so that none changes another's count. A record's place is
(partition, index) as one number.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from kafka_trial.errors import InputError
from lab.scale.shapes import BATCH, Ints, World

APART = 4  # batches: one anomaly in so many
TAIL = 5  # records at the end of a partition that are never handled
MIDST = 20  # of a batch
FELL_BY = 10
BEYOND = 7  # how far past the end a position is committed


def places(partition: Ints, index: Ints) -> Ints:
    """Returns each record's place as one number."""
    return (partition << 40) | index


class Planted:
    """What goes wrong where; all empty for a sound group.

    `skipped`: places never handled, though committed past. `lost`: acknowledged, and not in the log. `swapped`: places
    delivered after the next one. `early`: places whose commit is asked for before they are handled. `fallen`: places
    after which a position is committed that had been passed.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        count, partitions = world.shape.planted, world.shape.partitions
        chosen = self._batches(5 * count)
        self.skipped, self.lost, self.swapped = np.sort(chosen[: 3 * count].reshape(3, count) + MIDST)
        self.early = np.sort(chosen[3 * count : 4 * count] + BATCH - 1)
        self.fallen = np.sort(chosen[4 * count :] + BATCH + MIDST)
        self.unseen_on = np.arange(min(count, partitions // 3))
        self.past_end_on = np.arange(partitions)[::-1][: min(count, partitions // 3)]

    @cached_property
    def handled(self) -> Ints:
        """How many records of each partition are handled."""
        handled = self._world.counts.copy()
        handled[self.unseen_on] -= TAIL
        return handled

    def last_value(self, partition: Ints) -> Ints:
        """Returns the last position that is committed of each partition."""
        beyond = np.isin(partition, self.past_end_on)
        return np.where(beyond, self._world.counts[partition] + BEYOND, self.handled[partition])

    def delivered(self, partition: Ints, index: Ints) -> tuple[Any, Ints]:
        """Returns for each turn of the partition whether a record is delivered then, and the index of which one."""
        place = places(partition, index)
        gone = np.isin(place, self.skipped) | np.isin(place, self.lost) | (index >= self.handled[partition])
        swapped = index + np.isin(place, self.swapped) - np.isin(place - 1, self.swapped)
        return ~gone, swapped

    def expected(self) -> Mapping[str, int]:
        """Returns how often each anomaly must be found; a skipped record is also committed ahead of."""
        count = len(self.skipped)
        return {
            "skipped": count,
            "unseen": TAIL * len(self.unseen_on),
            "nonmonotonic-poll": count,
            "reordered-key": count,
            "commit-regression": count,
            "commit-ahead": 2 * count,
            "commit-past-end": len(self.past_end_on),
            "lost-write": count,
        }

    def _batches(self, count: int) -> Ints:
        """Returns the places of so many batches, each inside one generation, far from the others.

        Raises:
            InputError: there are not so many.
        """
        found = []
        for low, high in zip(self._world.taken_over[:-1], self._world.taken_over[1:], strict=True):
            first, end = -(-low // (BATCH * APART)), high // (BATCH * APART)  # whole groups of batches
            sizes = np.maximum(end - first, 0)
            partition = np.repeat(np.arange(len(sizes)), sizes)
            group = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[partition]
            found.append(places(partition, (group * APART + 1) * BATCH))
        every = np.concatenate(found)
        if len(every) < count:
            raise InputError("planted", f"there is room for {len(every) // 5} of each kind in {self._world.shape}")
        return np.random.default_rng([self._world.shape.seed, 2]).permutation(every)[:count]
