"""Assignment records: which member ids the offsets log gives each partition to, from which record to which.

Classic group records list the assignment of all members. KIP-848 has a record for each member: what it lists holds
until that member's next one, or its tombstone. With them the member id that each accepted commit was asked for
with, and its epoch (or generation), as rows COMMIT_EPOCHS.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.connections import NUMBER as CONNECTION_NO
from kafka_trial.judge.history_names import HistoryNames, slices_of
from kafka_trial.model.kernels import NEVER, NONE, Array, at_or_after, ordered, picked
from kafka_trial.model.rows import Protocol

MEMBER_ASSIGNMENT = 8  # the record type whose tombstone says that a member is gone
FIELDS = ("slice", "seq", "time_ns", "protocol", "log_offset", "assignment_epoch", "append_wall_ns", "member_id")


class AssignmentRecords:
    """Gathers the group records of an offsets log."""

    def __init__(self, names: HistoryNames, source: int) -> None:
        self._names = names
        self._source = source
        self._found: list[dict[str, Array]] = []
        self._marks: list[tuple[Array, Array]] = []  # (member id, place) of every record about one member

    def take(self, columns: Columns) -> None:
        """Takes the group records of a block."""
        group = self._names.group
        ours = np.ones(len(columns), np.bool_) if group is None else columns.codes("group", {group: 1}) == 1
        classic, member = columns.is_kind("group") & ours, columns.is_kind("member_assignment") & ours
        gone = columns.is_kind("group_tombstone") & ours & (columns["record_type"] == MEMBER_ASSIGNMENT)
        if not (classic | member | gone).any():
            return
        self._mark(columns, member | gone)
        self._list(columns, "entries", classic, Protocol.CLASSIC)
        self._list(columns, "entries", member, Protocol.CONSUMER)
        self._list(columns, "pending", member, Protocol.CONSUMER_PENDING)

    def rows(self) -> dict[str, Array]:
        """Returns the columns (ASSIGNMENT_RECORDS) of all of them."""
        found = {name: self._joined(name) for name in FIELDS}
        ids, places = (
            np.concatenate([np.empty(0, np.int64), *(id_hash[side] for id_hash in self._marks)]) for side in (0, 1)
        )
        until = np.full(len(found["slice"]), NEVER)
        if len(ids):
            until = _next_place(ids, places, found["member_id"], found["log_offset"])
        until[found["protocol"] == Protocol.CLASSIC] = NEVER
        return found | {"until_log_offset": until}

    def _mark(self, columns: Columns, mask: Array) -> None:
        rows = np.flatnonzero(mask)
        self._marks.append((self._ids(columns.text("member_id", rows)), columns["log_offset"][rows]))

    def _list(self, columns: Columns, name: str, mask: Array, protocol: Protocol) -> None:
        rows, entries = columns.entries(name, mask)
        ids = entries.text("member_id") if protocol == Protocol.CLASSIC else columns.text("member_id", rows)
        slices = slices_of(self._names, entries.text("topic"), entries["partition"], topic_ids=entries.text("topic_id"))
        who = self._ids(ids)
        known = (slices >= 0) & (who >= 0)
        rows = rows[known]
        self._found.append(
            {
                "slice": slices[known],
                "seq": columns["seq"][rows],
                "time_ns": columns["time_ns"][rows],
                "protocol": np.full(len(rows), protocol),
                "log_offset": columns["log_offset"][rows],
                "assignment_epoch": entries["assignment_epoch"][known],
                "append_wall_ns": columns["source_wall_ns"][rows],
                "member_id": who[known],
            }
        )

    def _ids(self, member_ids: pa.Array) -> Array:
        return numbers_of(self._names, member_ids)

    def _joined(self, name: str) -> Array:
        return np.concatenate([np.empty(0, np.int64), *(part[name] for part in self._found)])


def numbers_of(names: HistoryNames, member_ids: pa.Array) -> Array:
    """Returns the number of each member id; -1 where there is none, or it is empty."""
    encoded = member_ids.dictionary_encode()
    numbers = [names.member_id(name) if name else -1 for name in encoded.dictionary.to_pylist()]
    table = np.array([*numbers, -1], np.int64)
    found: Array = table[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return found


def _next_place(ids: Array, places: Array, of_id: Array, at: Array) -> Array:
    """Returns the place of the member's next record after each one; NEVER where there is none."""
    order = ordered(ids, places)
    return picked(places[order], at_or_after(ids[order], places[order], of_id, at + 1), NEVER)


def commit_epochs(names: HistoryNames, columns: Columns) -> dict[str, Array]:
    """Returns the columns of one row for each position that was committed by a request with a member id, and was not
    refused; none where nothing was."""
    asked = columns.codes("api", {"OFFSETCOMMIT": 1, "TXNOFFSETCOMMIT": 2}, fold=True)
    told = asked > 0
    told &= columns.is_kind("request") & names.of_group(columns)
    if not told.any():
        return {}
    rows, entries = columns.entries("entries", told)
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
        "member_epoch": np.where((asked[rows] == 1) & (columns["epoch"][rows] >= 0), columns["epoch"][rows], NONE),
        "answered_wall_ns": columns["source_wall_ns"][rows],
        "duration_ns": np.nan_to_num(columns.reals("duration_ms")[rows] * 1_000_000).astype(np.int64),
        "member_id": who[kept],
        "connection": columns[CONNECTION_NO][rows],
    }
