"""Blocking requests: how long brokers took to answer those requests of a member for which its work may have waited.

A request is tied to no partition, or to several, so its row stands in the slice of no partition. A fetch is left out,
for a broker keeps it until there is something, and so are heartbeats, metadata and versions: no work waits for these.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.history_names import HistoryNames
from kafka_trial.model.kernels import NONE, Array

NOT_BLOCKING: Final = ("FETCH", "HEARTBEAT", "CONSUMERGROUPHEARTBEAT", "METADATA", "APIVERSIONS")
_CODES: Final = {api: number for number, api in enumerate(NOT_BLOCKING, start=1)}


def blocking_requests(names: HistoryNames, columns: Columns) -> dict[str, Array] | None:
    """Returns the columns (BLOCKING_REQUESTS of `families.py`) of a block of a file; None where it has no row."""
    asked = columns.is_kind("request") & (columns["lane"] != NONE) & (columns.codes("api", _CODES, fold=True) == 0)
    if not asked.any():
        return None
    error, duration_ns = columns["error"], np.nan_to_num(columns.reals("duration_ms") * 1_000_000).astype(np.int64)
    rows = np.flatnonzero(asked & ((duration_ns > 0) | ((error != NONE) & (error != 0))))
    if not len(rows):
        return None
    return {
        "slice": np.full(len(rows), names.slice_of_nowhere()),
        "seq": columns["seq"][rows],
        "time_ns": columns["time_ns"][rows],
        "answered_wall_ns": columns["source_wall_ns"][rows],
        "duration_ns": duration_ns[rows],
        "lane": columns["lane"][rows].clip(-1, 2**31 - 1),
        "error_code": np.where(error[rows] == NONE, 0, error[rows]).clip(-(2**31), 2**31 - 1),
    }
