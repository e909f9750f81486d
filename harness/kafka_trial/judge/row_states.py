"""States: which rows of the consumer's table, or keys at its sink, end with an older record's state than one before.

Stands beside `record_id_joins.py`: rows are known by their numbers in the sink's file, records by their ids. Where no
row is numbered, the effects of one key (or entity) are the changes of one state: in the order in which they reached the
HTTP sink, or lie in a partition of the output topic, where the key of the output says too whose state it is. Only
records of one key, or of one entity, are compared: those of one partition by their offsets, those of two by when they
were sent, where the order of the sends and the records' timestamps say the same. A record lies wherever the log holds
it, or its acknowledgement says that it did, before it was compacted away. Which of two is newer may be unknown: then
the state may be stale, unless it ended with the newest record of its key that the log holds. Nothing is judged here.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.record_id_index import IdIndex, id_hashes
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    first_of,
    in_ranges,
    joined,
    last_true,
    ordered,
    per_group,
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
        self.compared = False  # some state was written with two records of one key or entity, by `rolled_back`

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
        self.compared = _has_two_records(changes) or bool(len(pairs))
        shown, ended = changes.take(pairs["shown"]), changes.take(pairs["ended"])
        order = ordered(
            shown["row"], pairs["ended"], shown["acknowledged"], shown["timestamp_ns"], shown["offset"], shown["seq"]
        )
        newest = order[_last_of(shown["row"][order])]
        shown, ended = shown.take(newest), ended.take(newest)
        slices, older = shown["slice"], ended["slice"]  # one of them may be unknown
        return {
            **{name: shown[name] for name in ("seq", "offset", "keyed")},
            **{f"older_{name}": ended[name] for name in ("seq", "offset")},
            "slice": np.where(slices == NONE, older, slices),
            "older_slice": np.where(older == NONE, slices, older),
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
        """Returns changes with timestamp_ns and sent of their records, where these lie (`_places`), and whose states
        they are: `subject`, the hash of the key (`keyed`: 1), or of the entity of a record that has none. `named`: the
        log or a send has the id. `newest`: the log holds no later record of the key."""
        records, sends = self._known.records, self._known.sends
        record, send = records.find(changes["id_hash"]), sends.find(changes["id_hash"])
        which, _ = sends.all_of(changes["id_hash"])
        again = np.bincount(which, minlength=len(changes)) > 1  # which send of the id it is of is unknown
        key = np.where(record >= 0, records.get("key_hash", record), sends.get("key_hash", send))
        changes = changes.having(
            **self._places(changes["id_hash"]),
            timestamp_ns=records.get("timestamp_ns", record),
            sent=np.where(again, NONE, sends.get("seq", send)),
            keyed=(key != NONE).astype(np.int64),
            subject=np.where(key != NONE, key, sends.get("entity_hash", send)),
            named=(record >= 0) | (send >= 0),
        )
        return changes.having(newest=self._is_newest(changes))

    def _places(self, id_hash: Array) -> dict[str, Ints]:
        """Returns the slice of each id, and the first and last `offset` at which its log holds it, or held it by an
        acknowledgement; NONE where that is unknown, or it lies in several slices."""
        registers = self._known.records, self._known.aborted, self._known.acked
        found = [(register, *register.all_of(id_hash)) for register in registers]
        which = np.concatenate([ids for _, ids, _ in found])
        slices, offsets = (
            np.concatenate([register.get(name, rows) for register, _, rows in found]) for name in ("slice", "offset")
        )
        which, slices, offsets = (column[offsets != NONE] for column in (which, slices, offsets))
        (first_slice, first), (last_slice, last) = (
            [per_group(which, column, len(id_hash), how=how, start=start) for column in (slices, offsets)]
            for how, start in (("min", NEVER), ("max", NONE))
        )
        known = first_slice == last_slice
        place = {"slice": last_slice, "first_offset": first, "offset": last}
        return {name: np.where(known, column, NONE) for name, column in place.items()}

    def _is_newest(self, changes: Table) -> Bools:
        """Returns whether each change is of the last record of its key, all of which lie in one partition of the log.

        What is there no more is older: retention deletes from the beginning of a log, and "log compaction ensures that
        Kafka will always retain at least the last known value for each message key" (Kafka, Log Compaction).
        """
        slices, offsets, keys = self._known.records.all("slice", "offset", "key_hash")
        wanted = np.isin(keys, changes["subject"][changes["keyed"] == 1])
        subjects, which = np.unique(keys[wanted], return_inverse=True)
        size = len(subjects)
        if not size:
            return np.zeros(len(changes), np.bool_)
        last = per_group(which, offsets[wanted], size, how="max", start=NONE)
        first_slice = per_group(which, slices[wanted], size, how="min", start=NEVER)
        together = first_slice == per_group(which, slices[wanted], size, how="max", start=NONE)
        row = np.searchsorted(subjects, changes["subject"]).clip(0, size - 1)
        newest: Bools = (changes["keyed"] == 1) & (subjects[row] == changes["subject"]) & together[row]
        return newest & (changes["slice"] == first_slice[row]) & (changes["offset"] == last[row])


def _has_two_records(changes: Table) -> bool:
    """Tells whether some state was written with two records of one key or entity."""
    known = changes.take(changes["subject"] != NONE)
    whose = joined(known["row"], known["subject"], known["keyed"])
    return len(np.unique(joined(whose, known["id_hash"]))) > len(np.unique(whose))


def _with_newer(changes: Table) -> Table:
    """Returns `ended` and `shown` (places in the changes): with which change each row may have ended, and every one of
    a newer record that it may have shown before; and `last_state` of the row, a `LastState`.

    Every order of several output partitions is possible, an effect that nobody acknowledged may be none, and a record
    may be newer whose order is not known. It is certain that a row ended with an older record if it did whatever of
    this is so; then only newer records are told.
    """
    begins = first_of(changes["row"])
    row = np.cumsum(starts_of(changes["row"])) - 1
    ended = np.flatnonzero(_may_be_last(changes))
    which, shown = in_ranges(begins[row[ended]], np.append(begins[1:], len(changes))[row[ended]])
    before = (changes["output"][shown] != changes["output"][ended[which]]) | (shown < ended[which])
    order = _order(changes.take(shown), changes.take(ended[which]))
    pairs = order.having(which=which, shown=shown, row=row[shown]).take(before & order["may_be_newer"])
    last_state = _last_states(changes, pairs, row[ended], begins)[pairs["row"]]
    told = (last_state != LastState.CERTAIN) | pairs["newer"]
    return table(ended=ended[pairs["which"]], shown=pairs["shown"], last_state=last_state).take(told)


def _last_states(changes: Table, pairs: Table, row_of_end: Ints, begins: Ints) -> Ints:
    """Returns the `LastState` of each row that has pairs (of `_with_newer`): begins where `begins` says, and may have
    ended with some changes, each of `row_of_end`."""
    size, acknowledged = len(begins), changes["acknowledged"][pairs["shown"]]

    def is_stale(newer: Bools) -> Bools:
        """Returns which rows ended with an older record whichever end is theirs, if these are newer."""
        may_be_right = np.bincount(pairs["which"][acknowledged & newer], minlength=len(row_of_end)) == 0
        stale: Bools = np.bincount(row_of_end, may_be_right, minlength=size) == 0
        return stale

    def has(holds: Bools) -> Bools:
        found: Bools = np.bincount(pairs["row"][holds], minlength=size) > 0
        return found

    apart = changes["output"][begins] != changes["output"][_last_of(changes["row"])]
    unordered = np.where(has(~pairs["apart"]), int(LastState.KEY_UNORDERED), int(LastState.UNORDERED))
    unclear = np.where(apart, int(LastState.APART), int(LastState.UNANSWERED))
    unclear = np.where(is_stale(pairs["may_be_newer"]) | ~has(pairs["newer"]), unordered, unclear)
    return np.where(is_stale(pairs["newer"]), int(LastState.CERTAIN), unclear)


def _may_be_last(changes: Table) -> Bools:
    """Returns whether each change may be the last of its row in its output partition: the last one that was
    acknowledged, and those after it."""
    place = joined(changes["row"], changes["output"])
    end = _last_of(place)[np.cumsum(starts_of(place)) - 1]
    may_be: Bools = np.arange(len(changes)) >= last_true(place, changes["acknowledged"])[end]
    return may_be


def _order(shown: Table, ended: Table) -> Table:
    """Returns whether each change was of a newer record than that with which its row ended, of the same key or entity
    (`newer`), or may have been (`may_be_newer`), not where its row was removed in the end; and whether the two are
    `apart`: of an entity, or in two partitions."""
    placed = (shown["slice"] != NONE) & (ended["slice"] != NONE)
    together = placed & (shown["slice"] == ended["slice"])
    apart = placed & ~together
    alike = _are_alike(shown, ended)
    later, not_later = _sent_later(shown, ended)
    newer = alike & ((together & (shown["first_offset"] > ended["offset"])) | (apart & later))
    never = (together & (shown["offset"] <= ended["offset"])) | (apart & not_later) | (~placed & ended["newest"])
    unnamed = ~(shown["named"] & ended["named"]) & ((shown["subject"] != NONE) | (ended["subject"] != NONE))
    one_placed = (shown["slice"] != NONE) | (ended["slice"] != NONE)
    maybe = (alike | unnamed) & one_placed & (shown["id_hash"] != ended["id_hash"]) & ~never & ~ended["removed"]
    of_entity = shown["named"] & ended["named"] & (shown["keyed"] == 0)
    return table(newer=newer & ~ended["removed"], may_be_newer=maybe, apart=apart | of_entity)


def _are_alike(shown: Table, ended: Table) -> Bools:
    alike: Bools = (shown["subject"] == ended["subject"]) & (shown["subject"] != NONE)
    return alike & (shown["keyed"] == ended["keyed"])


def _sent_later(shown: Table, ended: Table) -> tuple[Bools, Bools]:
    """Returns which records were sent later than others by their timestamps and by the order of the sends; and which
    were not: both say so, or the timestamps are the same, which tell nobody which of the two is older."""
    later = not_later = np.ones(len(shown), np.bool_)
    for name in ("timestamp_ns", "sent"):
        known = (shown[name] != NONE) & (ended[name] != NONE)
        later, not_later = later & known & (shown[name] > ended[name]), not_later & known & (shown[name] < ended[name])
    same = (shown["timestamp_ns"] == ended["timestamp_ns"]) & (shown["timestamp_ns"] != NONE)
    return later, not_later | same


def _last_of(group: Array) -> Ints:
    """Returns the last place of each group, sorted."""
    first = first_of(group)
    return np.append(first[1:], len(group))[: len(first)] - 1
