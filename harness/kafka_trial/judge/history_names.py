"""History names: what the events of a history call things by, and the numbers that slice rows have in their place.

The trial context's builder (`trial_context_builder.py`) fills them in; whoever makes rows, or gathers something for the
trial context, looks things up here and knows no more of the builder. Files are read in such an order (`FIRST_FILES`)
that group, topic and the run's phases are known before they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kafka_trial.invariants.kernels import Array
from kafka_trial.invariants.rows import NOWHERE
from kafka_trial.judge.columns import Columns


@dataclass
class HistoryNames:
    """What is known by now. Numbers are places in `sources`, `members`, `member_ids` and `slices`."""

    topic: str | None = None
    group: str | None = None
    topics_by_id: dict[str, str] = field(default_factory=dict)
    slices: dict[tuple[str, int], int] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    members: dict[str, int] = field(default_factory=dict)
    member_ids: dict[str, int] = field(default_factory=dict)
    lanes: dict[int, int] = field(default_factory=dict)
    lives: dict[int, dict[str, Any]] = field(default_factory=dict)
    phases: dict[str, int] = field(default_factory=dict)

    def life(self, source: int) -> dict[str, Any] | None:
        """Returns what is known of the incarnation whose file this is."""
        return self.lives.get(source)

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
        return ours | columns.absent("group")
