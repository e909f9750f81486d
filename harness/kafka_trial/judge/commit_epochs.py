"""Commit epochs: with which epoch (or generation) each accepted commit was asked for, as rows COMMIT_EPOCHS."""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants.kernels import NONE, Array
from kafka_trial.judge.assignment_records import numbers_of
from kafka_trial.judge.columns import Columns
from kafka_trial.judge.connections import NUMBER as CONNECTION_NO
from kafka_trial.judge.history_names import HistoryNames
from kafka_trial.judge.slice_index import slices_of


def commit_epochs(names: HistoryNames, columns: Columns) -> dict[str, Array]:
    """Returns the columns of one row for each position that a member committed with an epoch and was not refused."""
    asked = columns.codes("api", {"OFFSETCOMMIT": 1}, fold=True) == 1
    ours = columns.is_kind("request") & names.of_group(columns)
    rows, entries = columns.entries("entries", ours & asked & (columns["epoch"] >= 0))
    slices = slices_of(names, entries.text("topic"), entries["partition"], topic_ids=entries.text("topic_id"))
    who = numbers_of(names, columns.text("member_id", rows))
    accepted = (entries["error"] == NONE) | (entries["error"] == 0)
    kept = (slices >= 0) & (entries["committed_offset"] != NONE) & (who >= 0) & accepted
    rows = rows[kept]
    return {
        "slice": slices[kept],
        "seq": columns["seq"][rows],
        "time_ns": columns["time_ns"][rows],
        "committed_offset": entries["committed_offset"][kept],
        "member_epoch": columns["epoch"][rows],
        "answered_wall_ns": columns["source_wall_ns"][rows],
        "duration_ns": np.nan_to_num(columns.reals("duration_ms")[rows] * 1_000_000).astype(np.int64),
        "member_id": who[kept],
        "connection": columns[CONNECTION_NO][rows],
    }
