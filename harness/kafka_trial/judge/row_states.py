"""Row states: which rows of the consumer's table end with the state of an older record than one they had shown.

Stands beside `record_id_joins.py`: rows are known by their numbers in the sink's file, records by their ids. Only
records of one key, or of one entity, are compared: those of one partition by their offsets, those of two by when they
were sent, where the order of the sends and the records' timestamps say the same. What cannot be compared is left out,
and nothing is judged here.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.record_id_index import IdIndex, id_hashes
from kafka_trial.model.kernels import NONE, Array, Bools, Ints, first_of, ordered, starts_of
from kafka_trial.model.table import Table, table

CHANGES = ("effect", "row_rewritten", "row_removed")


class RowStates:
    """The changes of numbered rows in one file."""

    def __init__(self, known: IdIndex) -> None:
        self._known = known
        self._parts: list[Table] = []

    def take(self, columns: Columns) -> bool:
        """Takes the changes of a block; returns whether there were any."""
        rows = np.flatnonzero(columns.is_kind(*CHANGES) & (columns["row"] != NONE))
        if not len(rows):
            return False
        told = {name: columns[name][rows] for name in ("row", "seq", "time_ns")}
        id_hash = id_hashes(columns.text("id", rows))
        self._parts.append(table(**told, id_hash=id_hash, removed=columns.is_kind("row_removed")[rows]))
        return True

    def rolled_back(self) -> dict[str, Array]:
        """Returns the columns of `families.ROLLED_BACK_ROWS`: one row for each that was, in the slice of the newest
        record that it had shown."""
        if not self._parts:
            return {}
        changes = self._changes()
        ended = changes.take(_last_of(changes["row"])[np.cumsum(starts_of(changes["row"])) - 1])
        newer = _of_newer(changes, ended)
        shown, ended = changes.take(newer), ended.take(newer)
        order = ordered(shown["row"], shown["timestamp_ns"], shown["offset"], shown["seq"])
        newest = order[_last_of(shown["row"][order])]
        shown, ended = shown.take(newest), ended.take(newest)
        return {
            **{name: shown[name] for name in ("slice", "seq", "offset", "keyed")},
            **{f"older_{name}": ended[name] for name in ("slice", "seq", "offset")},
            "time_ns": ended["time_ns"],
        }

    def _changes(self) -> Table:
        """Returns all changes by row and place, with what is known of their records (NONE: not known)."""
        changes = Table(
            {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0].columns}
        ).sorted_by("row", "seq")
        records, sends = self._known.records, self._known.sends
        which, found = records.all_of(changes["id_hash"])
        record = np.full(len(changes), -1)
        record[which] = found
        record[np.bincount(which, minlength=len(changes)) > 1] = -1  # of which of them nobody knows
        send = sends.find(changes["id_hash"])
        key, entity = records.get("key_hash", record), sends.get("entity_hash", send)
        return changes.having(
            **{name: records.get(name, record) for name in ("slice", "offset", "timestamp_ns")},
            sent=sends.get("seq", send),
            keyed=(key != NONE).astype(np.int64),
            subject=np.where(key != NONE, key, entity),
        )


def _of_newer(shown: Table, ended: Table) -> Bools:
    """Returns whether each change was of a newer record than that with which its row ended, of the same key or entity;
    not where its row was removed in the end."""
    same_slice = shown["slice"] == ended["slice"]
    known = (shown["slice"] != NONE) & (ended["slice"] != NONE)
    alike = known & (shown["subject"] == ended["subject"]) & (shown["subject"] != NONE)
    alike &= (shown["keyed"] == ended["keyed"]) & ~ended["removed"]
    later = np.ones(len(shown), np.bool_)
    for name in ("timestamp_ns", "sent"):
        later &= (shown[name] > ended[name]) & (ended[name] != NONE)
    newer: Bools = alike & np.where(same_slice, shown["offset"] > ended["offset"], later)
    return newer


def _last_of(group: Array) -> Ints:
    """Returns the last place of each group, sorted."""
    first = first_of(group)
    return np.append(first[1:], len(group))[: len(first)] - 1
