"""Taken commits: which commits in transactions took effect, where and when: at the marker that ended each of them.

Stands beside `history_reader.py`. A marker comes after what it ends, perhaps blocks later: what is not ended yet is
kept.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants.kernels import Array, at_or_after
from kafka_trial.invariants.table import Table, stacked, table
from kafka_trial.judge.columns import Columns
from kafka_trial.judge.transactions import STATES


class TakenCommits:
    """Gathers the commits of one offsets log, and ends them."""

    def __init__(self) -> None:
        none = np.empty(0, np.int64)
        self._pending = table(log=none, producer=none, log_offset=none, about=none)

    def take(self, columns: Columns, rows: Array, slices: Array) -> None:
        """Takes the commits in transactions of a block."""
        self._pending = stacked(self._pending, _placed(columns, rows, slices))

    def rows(self, columns: Columns) -> dict[str, Array] | None:
        """Returns the columns (TAKEN_COMMITS) of the commits that markers of the block took; None: they took none."""
        ends = columns.is_kind("transaction_marker") & columns.absent("topic")
        at = np.flatnonzero(ends & (columns.codes("state", STATES) > 0))
        if not len(at) or not len(self._pending):
            return None
        markers = _placed(columns, at, at).sorted_by("log", "producer", "log_offset")
        both = stacked(markers, self._pending)
        log = np.unique(np.stack([both["log"], both["producer"]]), axis=1, return_inverse=True)[1].reshape(-1)
        mine, wanted = log[: len(markers)].astype(np.int64), log[len(markers) :].astype(np.int64)
        end = at_or_after(mine, markers["log_offset"], wanted, self._pending["log_offset"])
        ended, self._pending = self._pending.take(end >= 0), self._pending.take(end < 0)
        row = markers["about"][end[end >= 0]]
        took = columns.codes("state", STATES)[row] == STATES["commit"]
        ended, row = ended.take(took), row[took]
        return {
            "slice": ended["about"],
            "seq": columns["seq"][row],
            "time_ns": columns["time_ns"][row],
            "log_offset": ended["log_offset"],
            "marker_wall_ns": columns["source_wall_ns"][row],
            "marker_log_offset": columns["log_offset"][row],
        }


def _placed(columns: Columns, rows: Array, about: Array) -> Table:
    """Returns where rows lie in the offsets log, and whose they are; `about`: a commit's slice, a marker's row."""
    return table(
        log=columns["log_partition"][rows],
        producer=columns["producer_id"][rows],
        log_offset=columns["log_offset"][rows],
        about=about.astype(np.int64),
    )
