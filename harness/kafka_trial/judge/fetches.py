"""Fetches: from which positions each lane fetches, and what it no longer fetches, by the request log.

The log is thin (`witness/request_events.py`): a fetch that asks as before and gets nothing is left out. So nothing
follows from silence; but an event that is `complete` lists all that its connection fetches from then on, and what stood
in the one before it and is missing is fetched no longer.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.connections import NUMBER as CONNECTION_NO
from kafka_trial.judge.history_names import slices_of
from kafka_trial.judge.trial_context_builder import TrialContextBuilder
from kafka_trial.model.kernels import NONE, Array, first_of, ordered
from kafka_trial.model.rows import Kind


class Fetches:
    """Makes the rows of one broker's fetches; holds what each connection fetched last."""

    def __init__(self, builder: TrialContextBuilder) -> None:
        self._builder = builder
        self._fetched: dict[str, set[int]] = {}
        self._connections: dict[tuple[int, int], list[str]] = {}

    def rows(self, columns: Columns, time_ns: Array) -> dict[str, Array] | None:
        """Returns the columns (FETCHES) of the rows of a block; None where nothing was fetched."""
        ours = (columns.codes("api", {"FETCH": 1}, fold=True) == 1) & columns.is_kind("request")
        ours &= columns["lane"] != NONE
        if not ours.any():
            return None
        self._builder.fetching |= set(np.unique(columns["lane"][ours]).tolist())
        rows, entries = columns.entries("entries", ours)
        slices = slices_of(
            self._builder, entries.text("topic"), entries["partition"], topic_ids=entries.text("topic_id")
        )
        known = (slices >= 0) & (entries["offset"] != NONE)
        rows, slices = rows[known], slices[known]
        dropped_rows, dropped = self._dropped(columns, np.flatnonzero(ours), rows, slices)
        every, size = np.concatenate([rows, dropped_rows]), len(dropped)
        error = entries["error"][known]
        self._take_connections(columns, rows, slices)
        return {
            "slice": np.concatenate([slices, dropped]),
            "kind": np.concatenate([np.full(len(rows), Kind.FETCH_ASKED), np.full(size, Kind.FETCH_DROPPED)]),
            "seq": columns["seq"][every],
            "time_ns": time_ns[every],
            "fetch_position": np.concatenate([entries["offset"][known], np.zeros(size, np.int64)]),
            "duration_ns": np.concatenate([_duration_ns(columns, rows), np.full(size, NONE)]),
            "answered_wall_ns": columns["source_wall_ns"][every],
            "answered_bytes": np.concatenate([entries["size_bytes"][known].clip(0), np.zeros(size, np.int64)]),
            "lane": columns["lane"][every].clip(-1, 2**31 - 1),
            "connection": columns[CONNECTION_NO][every],
            "error_code": np.concatenate(
                [np.where(error == NONE, 0, error).clip(-(2**31), 2**31 - 1), np.zeros(size, np.int64)]
            ),
        }

    def _take_connections(self, columns: Columns, rows: Array, slices: Array) -> None:
        """Notes the lanes on which one partition is fetched by turns: a connection comes back after another was used.

        A client opens a new one and lets the old one go; two clients of one process each keep their own.
        """
        lanes = columns["lane"][rows]
        names = columns.text("connection", rows).dictionary_encode()
        codes = names.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        order = ordered(lanes, slices)
        lanes, slices, codes = lanes[order], slices[order], codes[order]
        for row in first_of(lanes, slices, codes).tolist():
            if codes[row] < 0:
                continue
            name = names.dictionary[int(codes[row])].as_py()
            used = self._connections.setdefault((int(lanes[row]), int(slices[row])), [])
            if name in used[:-1]:
                self._builder.shared_lanes.add(int(lanes[row]))
            elif name not in used:
                used.append(name)

    def _dropped(self, columns: Columns, fetches: Array, rows: Array, slices: Array) -> tuple[Array, Array]:
        """Returns (row, slice) of what each complete event no longer lists; there are few of them."""
        whole = fetches[columns.codes_of_true("complete")[fetches]]
        names = columns.text("connection", whole).to_pylist()
        found: list[tuple[int, int]] = []
        for row, name in zip(whole.tolist(), names, strict=True):
            now = set(slices[np.searchsorted(rows, row) : np.searchsorted(rows, row, side="right")].tolist())
            found += [(row, gone) for gone in sorted(self._fetched.get(name, set()) - now)]
            self._fetched[name] = now
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]


def _duration_ns(columns: Columns, rows: Array) -> Array:
    duration: Array = np.nan_to_num(columns.reals("duration_ms")[rows] * 1_000_000).astype(np.int64)
    return duration
