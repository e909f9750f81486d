"""The history of a run folder as slice rows, named by their families (`model/families.py`), and its trial context.

Stands between the JSON lines and Spark. Each file is read block by block; one event becomes one row for each slice it
concerns. Effects are joined to offsets by record id, assignments of KIP-848 get the place where they end. Nothing
is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.judge.aborts import abort_lines
from kafka_trial.judge.arrow_rows import ROWS, made_rows, mixed_rows
from kafka_trial.judge.assignment_records import AssignmentRecords, commit_epochs
from kafka_trial.judge.blocking_requests import blocking_requests
from kafka_trial.judge.columns import Columns
from kafka_trial.judge.connections import NUMBER as CONNECTION_NO
from kafka_trial.judge.connections import slow_answers
from kafka_trial.judge.failed_batches import WORK, FailedBatches
from kafka_trial.judge.fetches import Fetches
from kafka_trial.judge.group_answers import take_group_answers
from kafka_trial.judge.handed_on import HandedOn
from kafka_trial.judge.history_defects import HistoryDefects
from kafka_trial.judge.history_names import ELSEWHERE, slices_of
from kafka_trial.judge.line_index import LineIndexBuilder
from kafka_trial.judge.line_times import OwnTimes
from kafka_trial.judge.lines import Block, LineStats, read_ahead, read_blocks
from kafka_trial.judge.own_clients import NUMBER as OWN_CLIENT
from kafka_trial.judge.record_id_index import IdIndex, RecordIds, id_hashes
from kafka_trial.judge.record_id_joins import IdJoins, effected_ns
from kafka_trial.judge.row_states import RowStates
from kafka_trial.judge.transactions import TakenCommits, answered_commits, transaction_rows
from kafka_trial.judge.trial_context_builder import TAKERS, TrialContextBuilder
from kafka_trial.model.families import (
    ABORTED_RECORDS,
    ANSWERED_COMMITS,
    ASSIGNMENT_RECORDS,
    BLOCKING_REQUESTS,
    CLIENT_COMMITS,
    COMMIT_EPOCHS,
    COMMIT_REQUESTS,
    COMMITTED_IN_TRANSACTION,
    COMPLETIONS,
    DELIVERIES,
    EARLY_LINES,
    EFFECTS,
    END_TXN_REQUESTS,
    FAILED_BATCHES,
    FETCHES,
    LOG_BOUNDS,
    OFFSETS_LOG_COMMITS,
    POSITION_ANSWERS,
    REBALANCE_CALLBACKS,
    RECORDS,
    ROLLED_BACK_ROWS,
    TRANSACTION_ENDS,
    UNREADABLE_LINES,
)
from kafka_trial.model.kernels import NONE, Array
from kafka_trial.model.rows import IN_TRANSACTION, OUTCOMES, Kind, Known
from kafka_trial.model.table import Table

Emit = Callable[[pa.Table], object]
ReadFile = Callable[[Path, LineStats], Iterator[Block]]

PLAIN_KINDS = {
    "record": Kind.RECORD,
    "record_aborted": Kind.ABORTED_RECORD,
    "delivered": Kind.DELIVERED,
    "processed": Kind.PROCESSED,
    "committed": Kind.COMMITTED,
    "commit_aborted": Kind.COMMIT_ABORTED,
    "commit_tombstone": Kind.COMMIT_TOMBSTONE,
    "log_start": Kind.LOG_START,
    "log_end": Kind.LOG_END,
}
ENTRY_KINDS = {"assigned": Kind.ASSIGNED, "revoked": Kind.REVOKED, "lost": Kind.LOST}
COMMIT_KINDS = {"invoke": Kind.COMMIT_INVOKE, "ok": Kind.COMMIT_OK, "fail": Kind.COMMIT_FAIL}
REQUEST_KINDS = {
    "OFFSETCOMMIT": Kind.COMMIT_REQUEST,
    "TXNOFFSETCOMMIT": Kind.COMMIT_REQUEST,
    "OFFSETFETCH": Kind.OFFSET_FETCH_ANSWER,
}
LINES_THAT_TELL = {"assigns": tuple(ENTRY_KINDS), "delivers": ("delivered",), "completes": ("processed",)}
IDENTIFIED = (Kind.RECORD, Kind.DELIVERED, Kind.ABORTED_RECORD)
OF_GROUP = (Kind.COMMITTED, Kind.COMMIT_ABORTED, Kind.COMMIT_TOMBSTONE)
POSITIONED = (
    Kind.RECORD,
    Kind.ABORTED_RECORD,
    Kind.DELIVERED,
    Kind.PROCESSED,
    Kind.FAILED,
    Kind.LOG_START,
    Kind.LOG_END,
)
# The run and the observer name the group, the topic and its id; what was sent, or aborted, is known before what was
# made of it. The others are read by name: what members say, the offsets log, what was asked.
FIRST_FILES = ("run", "observer", "transactions", "workload", "through")


def read_history(
    files: Sequence[Path], emit: Emit, index: LineIndexBuilder | None = None, *, read: ReadFile = read_blocks
) -> TrialContextBuilder:
    """Reads history files, hands their slice rows to `emit` table by table, and returns the context's builder.

    `index` takes where their lines lie; `read` is what reads one file.

    Raises:
        InputError: an event is of a newer schema.
    """
    builder, ids, known = TrialContextBuilder(), RecordIds(wanted=any(path.stem == "sink" for path in files)), IdIndex()
    reader = None
    for path, line_stats, block in read_ahead(_blocks(sorted(files, key=_turn), read)):
        if reader is None:
            builder.sources.append(path.stem)
            reader = FileReader(builder, len(builder.sources) - 1, ids, known)
        if block is not None:
            emit(reader.rows(block))
            if index is not None:
                index.take(path, block)
            continue
        emit(reader.rest())
        builder.defects += line_stats.defects(path.stem) + reader.defects()
        builder.counts[path.stem] = line_stats.events
        if index is not None:
            index.end(path, line_stats)
        reader = None
    return builder


def _blocks(files: Sequence[Path], read: ReadFile) -> Iterator[tuple[Path, LineStats, Block | None]]:
    """Yields the blocks of all files, and None after the last one of each."""
    for path in files:
        line_stats = LineStats()
        for block in read(path, line_stats):
            yield path, line_stats, block
        yield path, line_stats, None


def _turn(path: Path) -> tuple[int, str]:
    return FIRST_FILES.index(path.stem) if path.stem in FIRST_FILES else len(FIRST_FILES), path.stem


class FileReader:
    """Makes the rows of one file; holds what a file's blocks share."""

    def __init__(self, builder: TrialContextBuilder, source: int, ids: RecordIds, known: IdIndex) -> None:
        self.builder = builder
        self.source = source
        self.ids = ids
        self.known = known
        self._named = IdJoins(builder, source, known)
        self._latest_ns = NONE
        self._own_times = OwnTimes(builder, source)
        self._placeless: list[int] = []
        self._whole = HistoryDefects(builder.sources[source])
        self._assignment_records = AssignmentRecords(builder, source)
        self._fetches = Fetches(builder)
        self._taken = TakenCommits(builder.transactions, wanted=bool(builder.aborts))
        self._row_states = RowStates(known)
        self._handed_on = HandedOn(builder, known, ids)
        self._failed_batches = FailedBatches()

    def rows(self, block: Block) -> pa.Table:
        """Returns the rows of a block."""
        columns = Columns(block.events)
        self._whole.take(columns)
        self._take_trial_context(block, columns)
        self.builder.connections.take(self.source, columns)
        self.builder.slow_answers += slow_answers(self.source, columns)
        self.builder.own_clients.take(self.source, columns, own=self.source in self.builder.incarnations)
        self._assignment_records.take(columns)
        self._handed_on.take(columns)
        self.builder.rows_told |= self._row_states.take(columns)
        time_ns = self._times(columns)
        own_ns, since_ns = self._own_times.take(columns, time_ns)
        parts = [*self._plain(columns, time_ns, own_ns, since_ns), *self._listed(columns, time_ns, own_ns, since_ns)]
        parts += self._effects(columns)
        ended, end_requests = transaction_rows(self.builder, self.builder.transactions, columns)
        made = (
            (COMMIT_EPOCHS, commit_epochs(self.builder, columns)),
            (FETCHES, self._fetches.rows(columns, time_ns)),
            (TRANSACTION_ENDS, ended),
            (END_TXN_REQUESTS, end_requests),
            (BLOCKING_REQUESTS, blocking_requests(self.builder, columns)),
            (COMMITTED_IN_TRANSACTION, self._taken.rows(columns)),
            (ANSWERED_COMMITS, answered_commits(self.builder.transactions, columns)),
        )
        parts += [made_rows(family, self.source, **found) for family, found in made if found]
        if self.source in self.builder.incarnations:
            aborts = abort_lines(self.builder, self.source, columns, time_ns=time_ns, own_ns=own_ns)
            self.builder.aborts += aborts
        self.builder.position_producers.take(self.builder, columns)
        return pa.concat_tables(
            [ROWS.empty_table(), *parts, *self._named.rows(columns), *self._by_lines(columns, time_ns)]
        )

    def rest(self) -> pa.Table:
        """Returns the rows that needed the whole file."""
        self._own_times.tell()
        assignments = made_rows(ASSIGNMENT_RECORDS, self.source, **self._assignment_records.rows())
        rolled_back = self._row_states.rolled_back()
        self.builder.states_compared |= self._row_states.compared
        states = [made_rows(ROLLED_BACK_ROWS, self.source, **rolled_back)] if rolled_back else []
        failed = made_rows(FAILED_BATCHES, self.source, **self._failed_batches.rows())
        return pa.concat_tables([assignments, *states, failed, self._named.moved(), *self._handed_on.rows(self.source)])

    def defects(self) -> list[str]:
        """Returns what is wrong with the file's events, as sentences."""
        self._placeless += self._named.placeless
        whole = self._whole.defects(one_clock=not self.builder.audited)
        if not self._placeless:
            return whole
        name, first = self.builder.sources[self.source], self._placeless[0]
        told = f"{name}: {len(self._placeless)} events lack topic, partition or position (first: #{first})"
        return [told, *whole]

    def _take_trial_context(self, block: Block, columns: Columns) -> None:
        for body in block.bodies(columns.rows_of(*TAKERS)):
            if self._whole.take_body(body):
                self.builder.take(self.source, body)
        _take_lanes(self.builder, columns)
        take_group_answers(self.builder, self.builder.group_answers, self.source, block, columns)
        self.builder.timeouts.take(self.builder, self.source, block, columns, columns["time_ns"])
        session_ms = self.builder.timeouts.longest_session_ms()
        self.builder.heartbeat_runs.take(self.builder, self.source, columns, longest_session_ms=session_ms)
        self.builder.member_spans.take(self.builder, columns)
        self._take_lines(columns)

    def _take_lines(self, columns: Columns) -> None:
        """Notes when the member last worked, whether it tells of its commit requests, and its refusals of nothing."""
        incarnation = self.builder.incarnation(self.source)
        commits = columns.rows_of("commit")
        outcomes = columns.codes("outcome", {"invoke": 1, "fail": 2})[commits]
        refused = commits[(outcomes == 2) & (columns.entry_counts()[commits] == 0)]
        for row in refused.tolist():
            self.builder.refusals.append((self.source, int(columns["seq"][row]), int(columns["time_ns"][row])))
        if incarnation is None:
            return
        incarnation["invokes"] = incarnation.get("invokes", False) or bool((outcomes == 1).any())
        for name, kinds in LINES_THAT_TELL.items():
            incarnation[name] = incarnation.get(name, False) or bool(len(columns.rows_of(*kinds)))
        begun, ended = (len(columns.rows_of(kind)) for kind in ("delivered", "processed"))
        incarnation["in_hand"] = incarnation.get("in_hand", 0) + begun - ended
        worked = columns.rows_of("delivered", "processed")
        if len(worked):
            incarnation["worked_ns"] = max(incarnation.get("worked_ns") or NONE, int(columns["time_ns"][worked].max()))

    def _plain(self, columns: Columns, time_ns: Array, own_ns: Array, since_ns: Array) -> list[pa.Table]:
        """Returns the rows of events that concern one slice, if there are any."""
        kinds = columns.codes("kind", PLAIN_KINDS)
        failed = columns.codes("outcome", {"failed": 1}) == 1
        kinds = np.where((kinds == Kind.PROCESSED) & failed, int(Kind.FAILED), kinds)
        rows = np.flatnonzero(self._wanted(columns, kinds))
        if not len(rows):
            return []
        kinds = kinds[rows]
        slices = self._slices(columns.text("topic", rows), columns["partition"][rows])
        position = np.where(np.isin(kinds, POSITIONED), columns["offset"][rows], columns["committed_offset"][rows])
        placed = (slices >= 0) & ((position != NONE) | (kinds == Kind.COMMIT_TOMBSTONE))
        self._placeless += columns["seq"][rows[~placed & (slices != ELSEWHERE)]].tolist()
        rows, kinds, slices, position = rows[placed], kinds[placed], slices[placed], position[placed]
        records = kinds == Kind.RECORD
        self.ids.take(columns.text("id", rows[records]), slices[records], position[records])
        id_hash, known, text = self._identified(columns, rows, kinds)
        self._take_records(columns, rows[records], id_hash[records], slices[records], position[records])
        self._take_aborted(kinds == Kind.ABORTED_RECORD, id_hash, slices, position)
        inside = (kinds == Kind.COMMITTED) & (columns["producer_id"][rows] != NONE)
        self._taken.take(columns, rows[inside], slices[inside])
        self._take_work(columns, rows, {"slice": slices, "offset": position, "kind": kinds, "time_ns": time_ns[rows]})
        ends, asked_ns = kinds == Kind.LOG_END, _asked(columns, time_ns)[rows]
        self.builder.answered_ends.take(
            slices=slices[ends], seq=columns["seq"][rows[ends]], asked_ns=asked_ns[ends], position=position[ends]
        )
        took_ns = columns["commit_time_ms"][rows]
        record = {"offset": position, "id_hash": id_hash}
        appended = record | {"append_wall_ns": own_ns[rows]}
        own_line = _own_line(columns, rows, own_ns, since_ns)
        made = mixed_rows(
            self.source,
            {"slice": slices, "kind": kinds, "seq": columns["seq"][rows], "time_ns": asked_ns},
            {
                RECORDS: appended | {"key": text},
                ABORTED_RECORDS: appended,
                DELIVERIES: record | {"known": known, "unsent_id": text} | own_line,
                COMPLETIONS: {
                    "offset": position,
                    "outcome": np.where(kinds == Kind.PROCESSED, columns.codes("outcome", OUTCOMES)[rows], 0),
                    **own_line,
                },
                OFFSETS_LOG_COMMITS: {
                    "committed_offset": position,
                    "log_offset": columns["log_offset"][rows],
                    "commit_wall_ns": np.where(took_ns == NONE, own_ns[rows], took_ns * 1_000_000),
                    "in_transaction": np.where(inside, IN_TRANSACTION, 0),
                },
                LOG_BOUNDS: {"position": position},
            },
        )
        return [made]

    def _take_work(self, columns: Columns, rows: Array, work: dict[str, Array]) -> None:
        """Hands on what a member was delivered and ended."""
        self._take_slices("held", np.unique(work["slice"][np.isin(work["kind"], WORK)]))
        lines = Table(work | {"client": columns[OWN_CLIENT][rows], "seq": columns["seq"][rows]})
        self._failed_batches.take(lines.take(np.isin(work["kind"], WORK)))

    def _by_lines(self, columns: Columns, time_ns: Array) -> list[pa.Table]:
        """Returns the rows that a member's lines make beside their own."""
        handed_on = self._handed_on.completed(columns, self.source, time_ns)
        return [*self._sent_later(columns, time_ns), *self._unreadable(columns, time_ns), *handed_on]

    def _unreadable(self, columns: Columns, time_ns: Array) -> list[pa.Table]:
        """Returns a row for each bad line that names its record."""
        rows = columns.rows_of("bad_line")
        rows = rows[columns["offset"][rows] != NONE]
        if not len(rows):
            return []
        slices = self._slices(columns.text("topic", rows), columns["partition"][rows])
        rows, slices = rows[slices >= 0], slices[slices >= 0]
        about = {"seq": columns["seq"], "time_ns": time_ns, "offset": columns["offset"]}
        about = {name: column[rows] for name, column in about.items()}
        return [made_rows(UNREADABLE_LINES, self.source, slice=slices, **about)]

    def _sent_later(self, columns: Columns, time_ns: Array) -> list[pa.Table]:
        """Returns a row for each line of a member about a record that was sent only after the line had been read."""
        rows = columns.rows_of("delivered", "processed")
        if not len(rows):
            return []
        slices = self._slices(columns.text("topic", rows), columns["partition"][rows])
        sent_ns = self.known.sent_ns(slices, columns["offset"][rows])
        later = sent_ns > time_ns[rows]
        about = {"seq": columns["seq"], "time_ns": time_ns, "offset": columns["offset"]}
        about = {name: column[rows[later]] for name, column in about.items()}
        return [made_rows(EARLY_LINES, self.source, slice=slices[later], sent_ns=sent_ns[later], **about)]

    def _identified(self, columns: Columns, rows: Array, kinds: Array) -> tuple[Array, Array, pa.Array]:
        """Returns the rows' id hash, what is known of the id, and their text: the key of a record, and the id of a
        delivery, where that was never sent."""
        id_hash, known = np.full(len(rows), NONE, np.int64), np.zeros(len(rows), np.int64)
        named = np.flatnonzero(np.isin(kinds, IDENTIFIED) & ~columns.absent("id")[rows])
        id_hash[named] = id_hashes(columns.text("id", rows[named]))
        told = named[kinds[named] == Kind.DELIVERED]
        known[told] = self._named.known_of(id_hash[told])
        self.builder.ids_told.update(pc.unique(columns.text("topic", rows[told])).to_pylist())
        text = pc.if_else(pa.array(kinds == Kind.RECORD), columns.text("key", rows), pa.scalar(None, pa.string()))
        unsent = known & Known.UNSENT > 0
        return id_hash, known, pc.if_else(pa.array(unsent), columns.text("id", rows), text) if unsent.any() else text

    def _take_records(self, columns: Columns, rows: Array, id_hash: Array, slices: Array, offsets: Array) -> None:
        sources, sums, seqs = np.full(len(rows), self.source), columns["checksum"][rows], columns["seq"][rows]
        said = {"checksum": sums, "json_checksum": columns["json_checksum"][rows]}
        said |= {"timestamp_ns": columns["source_wall_ns"][rows], "key_hash": id_hashes(columns.text("key", rows))}
        self.known.records.take(id_hash=id_hash, slice=slices, offset=offsets, **said, source=sources, seq=seqs)

    def _take_aborted(self, aborted: Array, id_hash: Array, slices: Array, offsets: Array) -> None:
        self.builder.transactions.aborted_records += int(aborted.sum())
        self.known.aborted.take(id_hash=id_hash[aborted], slice=slices[aborted], offset=offsets[aborted])

    def _listed(self, columns: Columns, time_ns: Array, own_ns: Array, since_ns: Array) -> list[pa.Table]:
        """Returns a row for each entry of the events that list several partitions, if there are any."""
        kinds = columns.codes("kind", ENTRY_KINDS)
        said = columns.codes("outcome", COMMIT_KINDS)
        asked = columns.codes("api", REQUEST_KINDS, fold=True)
        kinds = np.where(columns.is_kind("commit"), said, np.where(columns.is_kind("request"), asked, kinds))
        kinds = np.where(self.builder.of_group(columns) | ~columns.is_kind("request"), kinds, 0)
        if not kinds.any():
            return []
        rows, entries = columns.entries("entries", kinds > 0)
        if not len(rows):
            return []
        slices = self._slices(entries.text("topic"), entries["partition"], topic_ids=entries.text("topic_id"))
        kinds = kinds[rows]
        positioned = (entries["committed_offset"] != NONE) | np.isin(kinds, list(ENTRY_KINDS.values()))
        placed = (slices >= 0) & positioned
        self._placeless += columns["seq"][rows[~placed & (slices != ELSEWHERE)]].tolist()
        rows, kinds, slices = rows[placed], kinds[placed], slices[placed]
        self._take_slices("given_back", slices[np.isin(kinds, (Kind.REVOKED, Kind.LOST))])
        self._take_slices("held", slices[kinds == Kind.ASSIGNED])
        error = entries["error"][placed]
        committed = {
            "committed_offset": entries["committed_offset"][placed],
            "error_code": np.where(error == NONE, 0, error).clip(-(2**31), 2**31 - 1),
        }
        answered = {
            "answered_wall_ns": own_ns[rows],
            "duration_ns": np.nan_to_num(columns.reals("duration_ms")[rows] * 1_000_000).astype(np.int64),
            "lane": columns["lane"][rows].clip(-1, 2**31 - 1),
            "connection": columns[CONNECTION_NO][rows],
        }
        inside = columns.codes("api", {"TXNOFFSETCOMMIT": 1}, fold=True)[rows] == 1
        own_line = _own_line(columns, rows, own_ns, since_ns)
        made = mixed_rows(
            self.source,
            {"slice": slices, "kind": kinds, "seq": columns["seq"][rows], "time_ns": time_ns[rows]},
            {
                REBALANCE_CALLBACKS: own_line,
                CLIENT_COMMITS: committed | own_line,
                COMMIT_REQUESTS: committed | answered | {"in_transaction": np.where(inside, IN_TRANSACTION, NONE)},
                POSITION_ANSWERS: committed | answered,
            },
        )
        return [made]

    def _take_slices(self, name: str, slices: Array) -> None:
        """Adds to the slices that lines of a member tell of."""
        incarnation = self.builder.incarnation(self.source)
        if incarnation is not None:
            incarnation[name] = tuple(sorted({*incarnation.get(name, ()), *slices.tolist()}))

    def _effects(self, columns: Columns) -> list[pa.Table]:
        """Returns a row for each record whose effect reached the outside world, or may have: nobody was told."""
        outcome = columns.codes("outcome", {"ok": 1, "info": 2})
        rows = np.flatnonzero(columns.is_kind("effect") & (outcome > 0))
        if not len(rows):
            return []
        self.builder.sink_seen |= bool((outcome[rows] == 1).any())
        which, slices, offsets = self.ids.places(columns.text("id", rows))
        rows = rows[which]
        in_topic = ~columns.absent("topic")[rows]
        member = columns.codes("member", {name: number + 1 for name, number in self.builder.members.items()})[rows] - 1
        made = made_rows(
            EFFECTS,
            self.source,
            slice=slices,
            seq=columns["seq"][rows],
            time_ns=effected_ns(self.builder, columns, rows),
            offset=offsets,
            acknowledged=np.where(outcome[rows] == 1, 1, 0),
            output_offset=np.where(in_topic, columns["offset"][rows], NONE),
            output_partition=columns["partition"][rows].clip(-1, 2**31 - 1),
            member=member,
            append_wall_ns=columns["source_wall_ns"][rows],
        )
        return [made]

    def _wanted(self, columns: Columns, kinds: Array) -> Array:
        """Returns which rows belong to this trial's group and have a kind."""
        return (kinds > 0) & (self.builder.of_group(columns) | ~np.isin(kinds, OF_GROUP))

    def _times(self, columns: Columns) -> Array:
        """Returns the times of the block's events; inside a member's file they never run backwards, for its order is
        exact. Called once for each block."""
        if self.source not in self.builder.incarnations:
            return columns["time_ns"]
        times = np.maximum.accumulate(np.maximum(columns["time_ns"], self._latest_ns))
        self._latest_ns = max(self._latest_ns, int(times[-1]))
        return times

    def _slices(self, topics: pa.Array, partitions: Array, *, topic_ids: pa.Array | None = None) -> Array:
        return slices_of(self.builder, topics, partitions, topic_ids=topic_ids)


def _own_line(columns: Columns, rows: Array, own_ns: Array, since_ns: Array) -> dict[str, Array]:
    return {"own_ns": own_ns[rows], "read_before_ns": since_ns[rows], "own_client": columns[OWN_CLIENT][rows]}


def _asked(columns: Columns, time_ns: Array) -> Array:
    """A log end counts from when it was asked for: the answer may be older than the moment it was received."""
    return np.where(columns["asked_ns"] == NONE, time_ns, columns["asked_ns"])


def read_tables(files: Sequence[Path]) -> tuple[pa.Table, TrialContextBuilder]:
    """Returns all slice rows of some files in memory, and the builder of their context."""
    parts: list[pa.Table] = []
    builder = read_history(files, parts.append)
    return pa.concat_tables([ROWS.empty_table(), *parts]), builder


def _take_lanes(builder: TrialContextBuilder, columns: Columns) -> None:
    """Notes which member ids were seen on which lanes."""
    rows = columns.rows_of("request")
    if not len(rows):
        return
    seen = pa.table({"id": columns.text("member_id", rows), "lane": columns["lane"][rows]})
    for pair in seen.group_by(["id", "lane"]).aggregate([]).to_pylist():
        if pair["id"] and pair["lane"] != NONE:
            builder.lanes_of_ids[pair["id"]].add(pair["lane"])
