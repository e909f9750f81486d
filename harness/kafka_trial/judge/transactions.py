"""Transactions: how they ended in each log, what their producers had asked for, and what was left open.

Stands beside `history_reader.py`. Markers and granted EndTxn requests become rows of the slice of no partition, for a
transaction spans logs; what was open at the snapshot is little and goes into the trial context. A commit in a
transaction takes effect at the marker that ends it, perhaps blocks later: what is not ended yet is kept. Nothing is
judged here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.connections import NUMBER as CONNECTION_NO
from kafka_trial.judge.history_names import HistoryNames
from kafka_trial.model.kernels import NONE, Array, Ints, at_or_after, between, in_ranges, joined, ordered
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table
from kafka_trial.model.trial_context import OpenTransaction

OFFSETS_LOG = "__consumer_offsets"
STATES = {"commit": 1, "abort": 2}
PROMPT_NS = 1_000_000_000  # clients wait longer for an answer (request.timeout.ms, 30 s by default)
Body = Mapping[str, Any]
Made = dict[str, Array] | None


class Transactions:
    """What has been gathered of transactions so far; logs are numbered in the order in which they are met."""

    def __init__(self) -> None:
        self.logs: dict[str, int] = {}
        self.opened: dict[tuple[int, int], dict[str, Any]] = {}  # by log and producer id
        self.timeouts_ms: dict[int, int] = {}
        self.outputs_ended = 0
        self.aborted_records = 0
        self.taken: list[Table] = []  # the commits whose transaction was committed, block by block

    def log(self, topic: str | None, partition: int) -> int:
        """Returns the number of a log; without a topic, of a partition of the offsets log."""
        return self.logs.setdefault(f"{topic or OFFSETS_LOG}-{partition}", len(self.logs))

    def take_open(self, source: int, body: Body) -> None:
        """Takes a transaction that was open when its log was read."""
        topic, inside = body.get("topic"), "log_partition" in body
        numbers = [body.get(name) for name in ("producer_id", "log_partition" if inside else "partition")]
        place = body.get("log_offset" if inside else "offset")
        producer, partition = (number if isinstance(number, int) else None for number in numbers)
        named = inside or isinstance(topic, str)
        if producer is None or partition is None or not isinstance(place, int) or not named:
            return
        log = self.log(None if inside else str(topic), partition)
        epoch, wall_ns = body.get("producer_epoch"), body.get("source_wall_ns")
        self.opened[log, producer] = {
            "producer_id": producer,
            "producer_epoch": epoch if isinstance(epoch, int) else -1,
            "log": log,
            "place": place,
            "began_wall_ns": wall_ns if isinstance(wall_ns, int) else None,
            "read_ns": body["time_ns"],
            "source": source,
            "seq": body["seq"],
        }

    def taken_commits(self) -> Table:
        """Returns producer, producer_epoch, taken_wall_ns, slice and log_offset of the commits in `taken`."""
        self.taken = [stacked(*self.taken)]
        return self.taken[0]

    def trial_context(self) -> dict[str, Any]:
        """Returns the fields of `TrialContext` that these are."""
        timeouts = self.timeouts_ms
        opened = [
            OpenTransaction(**one, timeout_ms=timeouts.get(one["producer_id"]))
            for _, one in sorted(self.opened.items())
        ]
        return {
            "logs": tuple(self.logs),
            "open_transactions": tuple(opened),
            "outputs_ended": self.outputs_ended,
            "aborted_records": self.aborted_records,
        }


def transaction_rows(names: HistoryNames, known: Transactions, columns: Columns) -> tuple[Made, Made]:
    """Returns the columns (TRANSACTION_ENDS, END_TXN_REQUESTS) of the rows of a block; None where it has none."""
    _take_timeouts(known, columns)
    state = columns.codes("state", STATES)
    named = (state > 0) & (columns["producer_id"] != NONE)
    ends = np.flatnonzero(columns.is_kind("transaction_marker") & named)
    asks = _granted(columns)
    return (
        _ends(names, known, columns, ends, state) if len(ends) else None,
        _asks(names, columns, asks, state) if len(asks) else None,
    )


def _granted(columns: Columns) -> Ints:
    """Returns the rows of the granted EndTxn requests that say whose transaction they end, and how."""
    granted = (columns.codes("api", {"ENDTXN": 1}, fold=True) == 1) & (columns["error"] == 0)
    granted &= (columns.codes("state", STATES) > 0) & (columns["producer_id"] != NONE)
    return np.flatnonzero(columns.is_kind("request") & granted)


def _duration_ns(columns: Columns, rows: Array) -> Ints:
    return np.nan_to_num(columns.reals("duration_ms")[rows] * 1_000_000).astype(np.int64)


def _ends(names: HistoryNames, known: Transactions, columns: Columns, rows: Array, state: Array) -> dict[str, Array]:
    log, marker_offset = _where(known, columns, rows)
    ended = {
        "kind": np.where(state[rows] == STATES["commit"], int(Kind.ENDED_COMMITTED), int(Kind.ENDED_ABORTED)),
        "marker_offset": marker_offset,
        "append_wall_ns": columns["source_wall_ns"][rows],
        "log": log,
    }
    return _of_producers(names, columns, rows) | ended


def _asks(names: HistoryNames, columns: Columns, rows: Array, state: Array) -> dict[str, Array]:
    asked = {
        "kind": np.where(state[rows] == STATES["commit"], int(Kind.ASKED_COMMIT), int(Kind.ASKED_ABORT)),
        "own_epoch": columns.codes_of_true("own_epoch")[rows].astype(np.int64),
        "answered_wall_ns": columns["source_wall_ns"][rows],
        "duration_ns": _duration_ns(columns, rows),
        "lane": columns["lane"][rows].clip(-1, 2**31 - 1),
    }
    return _of_producers(names, columns, rows) | asked


def _of_producers(names: HistoryNames, columns: Columns, rows: Array) -> dict[str, Array]:
    return {
        "slice": np.full(len(rows), names.slice_of_nowhere()),
        "seq": columns["seq"][rows],
        "time_ns": columns["time_ns"][rows],
        "producer_id": columns["producer_id"][rows],
        "producer_epoch": columns["producer_epoch"][rows].clip(-1, 2**15),
    }


def _where(known: Transactions, columns: Columns, ends: Array) -> tuple[Array, Array]:
    """Returns log and place of the markers; what a marker ends is open no longer."""
    inside = columns.absent("topic")[ends]
    known.outputs_ended += int((~inside).sum())
    partition = np.where(inside, columns["log_partition"][ends], columns["partition"][ends])
    place = np.where(inside, columns["log_offset"][ends], columns["offset"][ends])
    topics = columns.text("topic", ends).fill_null("").dictionary_encode()
    names, codes = topics.dictionary.to_pylist(), topics.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs, inverse = np.unique(np.stack([codes, partition]), axis=1, return_inverse=True)
    numbers = [known.log(names[code] or None, number) for code, number in pairs.T.tolist()]
    log = np.array(numbers, np.int64)[inverse.reshape(-1)] if len(ends) else np.empty(0, np.int64)
    for key, one in list(known.opened.items()):  # one a producer and log, at most
        if ((log == key[0]) & (columns["producer_id"][ends] == key[1]) & (place > one["place"])).any():
            del known.opened[key]
    return log, place


def _take_timeouts(known: Transactions, columns: Columns) -> None:
    """Notes how long each producer's transactions may stay open; few lines say so: one a start of a producer."""
    asked = columns.codes("api", {"INITPRODUCERID": 1}, fold=True) == 1
    told = asked & (columns["error"] == 0) & (columns["producer_id"] != NONE) & (columns["timeout_ms"] != NONE)
    for row in np.flatnonzero(columns.is_kind("request") & told).tolist():
        producer, timeout_ms = int(columns["producer_id"][row]), int(columns["timeout_ms"][row])
        known.timeouts_ms[producer] = max(timeout_ms, known.timeouts_ms.get(producer, 0))


def answered_commits(known: Transactions, columns: Columns) -> Made:
    """Returns the columns (ANSWERED_COMMITS) of the commits whose transaction a granted EndTxn of a block committed;
    None where it has none. Called when the offsets log has been read.

    It is a request of the producer, under the epoch of the marker, that was begun after the position was taken, and was
    answered within a second of that. Where it took longer, its client may have given up, and asked again.
    """
    rows = _granted(columns)
    rows = rows[(columns.codes("state", STATES)[rows] == STATES["commit"]) & (columns["source_wall_ns"][rows] != NONE)]
    if not len(rows) or not known.taken:
        return None
    taken = known.taken_commits()
    asks = table(
        producer=columns["producer_id"][rows],
        producer_epoch=columns["producer_epoch"][rows],
        answered_wall_ns=columns["source_wall_ns"][rows],
        duration_ns=_duration_ns(columns, rows),
        seq=columns["seq"][rows],
        time_ns=columns["time_ns"][rows],
        lane=columns["lane"][rows].clip(-1, 2**31 - 1),
        connection=columns[CONNECTION_NO][rows],
    )
    which, row = _handed_in_before(taken, asks)
    told = asks.only("seq", "time_ns", "answered_wall_ns", "duration_ns", "lane", "connection").take(which)
    return {**told.columns, "slice": taken["slice"][row], "log_offset": taken["log_offset"][row]}


def _handed_in_before(taken: Table, asks: Table) -> tuple[Ints, Ints]:
    """Returns (which request, which commit) for each commit of the producer and epoch of a request that was taken
    before it was begun, and not too long before it was answered."""
    both = joined(*(np.concatenate([taken[name], asks[name]]) for name in ("producer", "producer_epoch")))
    order = ordered(both[: len(taken)], taken["taken_wall_ns"])
    begun_ns = asks["answered_wall_ns"] - asks["duration_ns"]
    since_ns = asks["answered_wall_ns"] - PROMPT_NS
    found = between(both[order], taken["taken_wall_ns"][order], both[len(taken) :], since_ns, begun_ns + 1)
    which, row = in_ranges(*found)
    return which, order[row]


class TakenCommits:
    """Gathers the commits of one offsets log, and ends them."""

    def __init__(self, known: Transactions, *, wanted: bool) -> None:
        self._known = known
        self._wanted = wanted  # by `answered_commits`
        none = np.empty(0, np.int64)
        self._pending = table(log=none, producer=none, log_offset=none, taken_wall_ns=none, about=none)

    def take(self, columns: Columns, rows: Array, slices: Array) -> None:
        """Takes the commits in transactions of a block."""
        self._pending = stacked(self._pending, _placed(columns, rows, slices))

    def rows(self, columns: Columns) -> dict[str, Array] | None:
        """Returns the columns (COMMITTED_IN_TRANSACTION) of commits that markers of the block took; None if none."""
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
        if self._wanted:
            taken = ended.only("producer", "taken_wall_ns", "log_offset")
            epoch = columns["producer_epoch"][row]
            self._known.taken.append(taken.having(producer_epoch=epoch, slice=ended["about"]))
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
    taken_ns, read_ns = columns["commit_time_ms"][rows], columns["source_wall_ns"][rows]
    return table(
        log=columns["log_partition"][rows],
        producer=columns["producer_id"][rows],
        log_offset=columns["log_offset"][rows],
        taken_wall_ns=np.where(taken_ns == NONE, read_ns, taken_ns * 1_000_000),
        about=about.astype(np.int64),
    )
