"""States: which rows of the consumer's table, or keys at its sink, end with an older record's state than one before.

Stands beside `record_id_joins.py`: rows are known by their numbers in the sink's file, records by their ids. Where no
row is numbered, the effects of one key (or entity) are the changes of one state: in the order in which they reached the
HTTP sink, or lie in a partition of the output topic, where the key of the output says too whose state it is. Only
records of one key, or of one entity, are compared: those of one partition by their offsets, those of two by when they
were sent, where the order of the sends and the records' timestamps say the same. What cannot be compared is left out,
and nothing is judged here.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.record_id_index import IdIndex, id_hashes
from kafka_trial.model.kernels import (
    NONE,
    Array,
    Bools,
    Ints,
    first_of,
    in_ranges,
    joined,
    last_true,
    ordered,
    starts_of,
)
from kafka_trial.model.rows import LastState
from kafka_trial.model.table import Table, table

CHANGES = ("effect", "row_rewritten", "row_removed")


class RowStates:
    """The changes of states in one file."""

    def __init__(self, known: IdIndex) -> None:
        self._known = known
        self._parts: list[Table] = []

    def take(self, columns: Columns) -> bool:
        """Takes the changes of a block; returns whether any of them says of which row it is."""
        rows = np.flatnonzero(columns.is_kind(*CHANGES) & (columns.codes("outcome", {"fail": 1}) == 0))
        if not len(rows):
            return False
        in_topic = ~columns.absent("topic")[rows]
        told = {name: columns[name][rows] for name in ("row", "seq", "time_ns")}
        changes = table(
            **told,
            id_hash=id_hashes(columns.text("id", rows)),
            output_key=np.where(in_topic, id_hashes(columns.text("key", rows)), NONE),
            output=np.where(in_topic, columns["partition"][rows], NONE),
            at=np.where(in_topic, columns["offset"][rows], told["seq"]),
            acknowledged=columns.codes("outcome", {"info": 1})[rows] == 0,
            removed=columns.is_kind("row_removed")[rows],
        )
        self._parts.append(changes)
        return bool((told["row"] != NONE).any())

    def rolled_back(self) -> dict[str, Array]:
        """Returns the columns of `families.ROLLED_BACK_ROWS`: one row for each that was or may have been, in the slice
        of the newest record that it had shown."""
        if not self._parts:
            return {}
        changes = self._changes()
        pairs = _with_newer(changes)
        shown, ended = changes.take(pairs["shown"]), changes.take(pairs["ended"])
        order = ordered(
            shown["row"], pairs["ended"], shown["acknowledged"], shown["timestamp_ns"], shown["offset"], shown["seq"]
        )
        newest = order[_last_of(shown["row"][order])]
        shown, ended = shown.take(newest), ended.take(newest)
        return {
            **{name: shown[name] for name in ("slice", "seq", "offset", "keyed")},
            **{f"older_{name}": ended[name] for name in ("slice", "seq", "offset")},
            "time_ns": ended["time_ns"],
            "last_state": pairs["last_state"][newest],
        }

    def _changes(self) -> Table:
        """Returns all changes by row, output partition and place, with what is known of their records (NONE: not
        known); where no row is numbered, those of a key or an entity are one."""
        changes = Table({name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0].columns})
        numbered = changes["row"] != NONE
        changes = self._of_records(changes.take(numbered) if numbered.any() else changes)
        if not numbered.any():
            changes = changes.having(row=joined(changes["subject"], changes["keyed"], changes["output_key"]))
            changes = changes.take(changes["subject"] != NONE)
        return changes.sorted_by("row", "output", "at")

    def _of_records(self, changes: Table) -> Table:
        """Returns changes with slice, offset, timestamp_ns and sent of their records, and whose states these are:
        `subject`, the hash of the key (`keyed`: 1), or of the entity of a record that has none."""
        records, sends = self._known.records, self._known.sends
        which, _ = records.all_of(changes["id_hash"])
        record = records.find(changes["id_hash"])
        key = records.get("key_hash", record)
        record[np.bincount(which, minlength=len(changes)) > 1] = -1  # of which of them nobody knows
        send = sends.find(changes["id_hash"])
        return changes.having(
            **{name: records.get(name, record) for name in ("slice", "offset", "timestamp_ns")},
            sent=sends.get("seq", send),
            keyed=(key != NONE).astype(np.int64),
            subject=np.where(key != NONE, key, sends.get("entity_hash", send)),
        )


def _with_newer(changes: Table) -> Table:
    """Returns `ended` and `shown` (places in the changes): with which change each row may have ended, and every one of
    a newer record that it may have shown before; and `last_state` of the row, a `LastState`.

    Every order of several output partitions is possible, and an effect that nobody acknowledged may be none. It is
    certain that a row ended with an older record if it did whatever of this is so.
    """
    begins = first_of(changes["row"])
    row = np.cumsum(starts_of(changes["row"])) - 1
    ended = np.flatnonzero(_may_be_last(changes))
    which, shown = in_ranges(begins[row[ended]], np.append(begins[1:], len(changes))[row[ended]])
    before = (changes["output"][shown] != changes["output"][ended[which]]) | (shown < ended[which])
    newer = before & _of_newer(changes.take(shown), changes.take(ended[which]))
    which, shown = which[newer], shown[newer]
    never_stale = np.bincount(which[changes["acknowledged"][shown]], minlength=len(ended)) == 0
    certain = np.bincount(row[ended], never_stale, minlength=len(begins)) == 0
    apart = changes["output"][begins] != changes["output"][_last_of(changes["row"])]
    unclear = np.where(apart, int(LastState.APART), int(LastState.UNANSWERED))
    last_state = np.where(certain, int(LastState.CERTAIN), unclear)
    return table(ended=ended[which], shown=shown, last_state=last_state[row[ended[which]]])


def _may_be_last(changes: Table) -> Bools:
    """Returns whether each change may be the last of its row in its output partition: the last one that was
    acknowledged, and those after it."""
    place = joined(changes["row"], changes["output"])
    end = _last_of(place)[np.cumsum(starts_of(place)) - 1]
    may_be: Bools = np.arange(len(changes)) >= last_true(place, changes["acknowledged"])[end]
    return may_be


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
