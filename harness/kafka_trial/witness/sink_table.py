"""The witness of the sink table: what of the consumer's output is committed, as PostgreSQL's own log tells it.

A process of its own, for consumers whose output goes to a table in the trial's PostgreSQL. It reads the log by logical
decoding: whole transactions in the order of their commits, and nothing of one that was rolled back; there is no trigger
in the team's table, and nothing that the team's code could see. Each effect is written into `history/sink.jsonl`. At
the snapshot it reads to the log's end; what keeps it from there, or cannot be told from the table, is named.

Which changes of rows are effects (`RowEffects`) is pure: changes go in, transaction by transaction, and events come
out. What counts is what a transaction leaves behind, for nobody else sees what lies in between. A new row is an effect
of the record that it names; so is a row whose content has become another. A row that is written anew as it was (an
upsert of a record that came again), or deleted and put back, is none: what came again was absorbed. What cannot be told
from a table is named: whether an effect still counts whose row is gone, and, where nobody says which columns make up an
effect, whether a row is another in which only dates and times have changed. Each row has a number of its own from its
first change to its last, whatever stands in it.
"""

from __future__ import annotations

import argparse
import hashlib
import select
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final

from kafka_trial.cluster.postgres import PUBLICATION, first_line, require_driver
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.history.record_ids import checksums
from kafka_trial.history.recorder import Recorder
from kafka_trial.witness import pgoutput
from kafka_trial.witness.pgoutput import Change, Commit, Decoder, Operation, Received, Row, Truncated, UndecodableError
from kafka_trial.witness.rpc_server import BEHIND, COMPLETE, UNDECODABLE, Answer, deadline_s, serve

SOURCE: Final = "sink"
SLOT: Final = "kafka_trial"
BATCH_MESSAGES: Final = 2000
POLL_S: Final = 0.1
EFFECTS: Final = ("record", "state")
EFFECT, REWRITTEN, REMOVED = "effect", "row_rewritten", "row_removed"


class LogStream:
    """The stream of PostgreSQL's log, decoded there by `pgoutput`, from a slot that ends with its connection."""

    def __init__(self, address: str) -> None:
        pq = require_driver().pq
        self._connection = pq.PGconn.connect(f"{address} replication=database".encode())
        if self._connection.status != pq.ConnStatus.OK:
            raise StartError(f"the trial's PostgreSQL does not answer: {self._complaint()}")
        slot = f"CREATE_REPLICATION_SLOT {SLOT} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT"
        start = f"START_REPLICATION SLOT {SLOT} LOGICAL 0/0 (proto_version '1', publication_names '{PUBLICATION}')"
        for command, expected in ((slot, pq.ExecStatus.TUPLES_OK), (start, pq.ExecStatus.COPY_BOTH)):
            if self._connection.exec_(command.encode()).status != expected:
                raise StartError(f"the log of the trial's PostgreSQL cannot be followed: {self._complaint()}")

    def receive(self, *, wait_s: float) -> Iterator[Received]:
        """Yields what has come, at most a batch, after having waited for it for up to `wait_s` seconds.

        Raises:
            UnjudgeableError: the server has gone.
        """
        select.select([self._connection.socket], [], [], wait_s)
        try:
            self._connection.consume_input()
            for _ in range(BATCH_MESSAGES):
                size, data = self._connection.get_copy_data(1)
                if size == 0:
                    return
                if size < 0:
                    raise UnjudgeableError(f"the trial's PostgreSQL has ended the log: {self._complaint()}")
                yield pgoutput.received(bytes(data))
        except require_driver().Error as error:
            raise UnjudgeableError(f"the trial's PostgreSQL has gone: {first_line(error)}") from error

    def answer(self, position: int, *, wants_answer: bool = False) -> None:
        """Tells the server up to where its log was taken."""
        try:
            self._connection.put_copy_data(pgoutput.status(position, wants_answer=wants_answer))
            self._connection.flush()
        except require_driver().Error as error:
            raise UnjudgeableError(f"the trial's PostgreSQL has gone: {first_line(error)}") from error

    def close(self) -> None:
        """Closes the connection, and the slot with it."""
        self._connection.finish()

    def _complaint(self) -> str:
        return " ".join(self._connection.error_message.decode(errors="replace").split()) or "it says nothing"


class SinkTable:
    """Follows the one table of the publication, from the slot's beginning on."""

    def __init__(
        self,
        stream: LogStream,
        recorder: Recorder,
        *,
        address: str,
        table: str,
        effects: RowEffects,
        value_column: str | None = None,
    ) -> None:
        self._stream = stream
        self._recorder = recorder
        self._address = address
        self._table = table
        self._effects = effects
        self._value_column = value_column
        self._decoder = Decoder()
        self._position = 0
        self._nameless = 0
        self._truncated = False
        self._undecodable: str | None = None

    def step(self) -> None:
        """Takes what has been committed since the last look."""
        for one in self._stream.receive(wait_s=POLL_S):
            if one.payload is None:
                self._position = max(self._position, one.position)
            else:
                self._take(one.payload)
        self._recorder.flush()
        self._stream.answer(self._position)

    def snapshot(self, *, within_s: float) -> Answer:
        """Reads to the end of the log as of now."""
        until_s = deadline_s(within_s)
        end, changed = self._end_of_log()
        while monotonic() < until_s and self._position < end:
            self._stream.answer(self._position, wants_answer=True)
            self.step()
        if self._position < end:
            return Answer(BEHIND, "not at the end of PostgreSQL's log: out of time", self._position, end)
        problem = changed or self._problem()
        return Answer(UNDECODABLE if problem else COMPLETE, problem, self._position, end)

    def _take(self, payload: bytes) -> None:
        try:
            message = self._decoder.decode(payload)
        except UndecodableError as error:
            self._undecodable = self._undecodable or str(error)
            self._recorder.record("undecodable", message=str(error))
            return
        if isinstance(message, Change):
            self._effects.take(message)
        elif isinstance(message, Truncated):
            self._truncated = True
        elif isinstance(message, Commit):
            self._position = max(self._position, message.end)
            for event in self._effects.commit():
                self._write(event, message)

    def _write(self, event: RowEvent, commit: Commit) -> None:
        when: dict[str, Any] = {"row": event.number, "commit_lsn": commit.place, "source_wall_ns": commit.wall_ns}
        if event.id is None:
            self._nameless += 1
            self._recorder.record("undecodable", message="a row has no id: its column is NULL", **when)
            return
        if event.kind != EFFECT:
            self._recorder.record(event.kind, id=event.id, change=event.change, **when)
            return
        sums = checksums(event.row.get(self._value_column)) if self._value_column is not None else {}
        self._recorder.record(EFFECT, id=event.id, outcome="ok", change=event.change, **sums, **when)

    def _end_of_log(self) -> tuple[int, str | None]:
        """Returns where the log ends, with all flushed that anybody may have seen; and what was done to the table that
        keeps its rows from being told."""
        psycopg = require_driver()
        try:
            with psycopg.connect(self._address, autocommit=True) as connection:
                connection.execute("select pg_logical_emit_message(true, 'kafka_trial', 'snapshot')")
                (end,) = connection.execute("select pg_current_wal_flush_lsn()").fetchone()
                identities = connection.execute(
                    "select c.relreplident from pg_publication_rel r join pg_class c on c.oid = r.prrelid"
                ).fetchall()
        except psycopg.Error as error:
            raise UnjudgeableError(f"the trial's PostgreSQL has gone: {first_line(error)}") from error
        high, _, low = end.partition("/")
        place = (int(high, 16) << 32) + int(low, 16)
        if identities == [("f",)]:
            return place, None
        what = "its replica identity was changed" if identities else "it was dropped, and perhaps made anew"
        return place, f"what happened to {self._table} cannot be told: {what}; leave it as the schema_file made it"

    def _problem(self) -> str | None:
        """Returns what of the table cannot be told; None where all of it can."""
        name, lost = self._table, self._effects.lost
        if self._undecodable:
            return self._undecodable
        if self._effects.not_whole:
            return f"{self._effects.not_whole} changes of {name} do not say what was there before"
        if self._truncated:
            return f"{name} was truncated: which effects still count cannot be told"
        if self._nameless:
            return f"{self._nameless} rows of {name} have no id: their column is NULL"
        if self._effects.retimed:
            columns = ", ".join(sorted(self._effects.retimed))
            return (
                f"rows of {name} were written again with another time alone ({columns}): whether that is a further "
                "effect cannot be told. Name the columns that make up an effect in content under [sink.postgres]"
            )
        if lost:
            return (
                f"the rows of {len(lost)} records are gone from {name} (the first: {lost[0]}), deleted or taken over "
                "by another record: whether their effects still count cannot be told. Keep the rows; if each is the "
                'state of a key, write effects = "state" under [evidence]'
            )
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """The process: follows the table until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m kafka_trial.witness.sink_table", description=__doc__)
    parser.add_argument("--address", required=True, help="how libpq reaches the database, as its superuser")
    parser.add_argument("--history", type=Path, required=True, help="the run folder's history")
    parser.add_argument("--table", required=True, help="the table that the consumer's output goes to")
    parser.add_argument("--id-column", required=True, help="its column with a record's id")
    parser.add_argument("--value-column", help="its column with the record's value, if there is one")
    parser.add_argument("--content", action="append", default=[], help="a column that makes up an effect; none: all do")
    parser.add_argument("--effects", choices=EFFECTS, default="record", help="whether each record has its own row")
    options = parser.parse_args(arguments)
    effects = RowEffects(id_column=options.id_column, content=options.content, one_row_each=options.effects == "record")
    with (
        closing(LogStream(options.address)) as stream,
        Recorder(options.history, SOURCE, buffer_events=BATCH_MESSAGES) as recorder,
    ):
        reader = SinkTable(
            stream,
            recorder,
            address=options.address,
            table=options.table,
            effects=effects,
            value_column=options.value_column,
        )
        return serve(reader, [recorder])


@dataclass(frozen=True)
class RowEvent:
    """What a committed transaction did to the row of one record. `id` is None where the row names no record.

    `number`: which row of the table it was.
    """

    kind: str
    change: Operation
    id: str | None
    row: Row
    number: int


@dataclass
class _Net:
    """What a transaction made of one row so far."""

    before: Row | None
    after: Row | None
    number: int = -1


class RowEffects:
    """Follows the rows of one table. `content`: the columns that make up an effect; empty: all.

    `one_row_each`: each record has a row of its own, which no other record may take over.
    """

    def __init__(self, *, id_column: str, content: Sequence[str] = (), one_row_each: bool = True) -> None:
        self.not_whole = 0  # changes of which nobody knows what was there before
        self.retimed: Counter[str] = Counter()  # columns of time in which alone rows have changed
        self._id_column = id_column
        self._content = tuple(content)
        self._one_row_each = one_row_each
        self._times: frozenset[str] = frozenset()
        self._open: list[_Net] = []
        self._latest: defaultdict[bytes, list[_Net]] = defaultdict(list)  # by the row that each has made
        self._rows: Counter[str] = Counter()  # how many each record has now
        self._removed: defaultdict[str, list[bytes]] = defaultdict(list)  # contents that may be put back
        self._lost: dict[str, None] = {}
        self._numbers: defaultdict[bytes, list[int]] = defaultdict(list)  # by what stands in the rows now
        self._next_number = 0

    def take(self, change: Change) -> None:
        """Takes a change of the transaction that is being read."""
        if not change.whole:
            self.not_whole += 1
            return
        self._times = change.times
        earlier = None if change.old is None else self._latest[_digest(change.old)]
        if earlier:
            net = earlier.pop()
        else:
            self._open.append(net := _Net(before=change.old, after=None))
        net.after = change.new
        if net.after is not None:
            self._latest[_digest(net.after)].append(net)

    def commit(self) -> list[RowEvent]:
        """Returns what the transaction did, in the order in which it first touched its rows."""
        self._number_rows()
        events = [event for net in self._open for event in self._told(net)]
        self._open.clear()
        self._latest.clear()
        return events

    @property
    def lost(self) -> Sequence[str]:
        """The records that had a row, and have none any more, the first first."""
        return [name for name in self._lost if not self._rows[name]]

    def _number_rows(self) -> None:
        """Knows each changed row again by what stood in it; of rows that are alike in all columns any will do."""
        for net in self._open:
            known = [] if net.before is None else self._numbers.pop(_digest(net.before), [])
            if known:
                net.number = known.pop()
                if known and net.before is not None:
                    self._numbers[_digest(net.before)] = known
            else:
                net.number, self._next_number = self._next_number, self._next_number + 1
        for net in self._open:
            if net.after is not None:
                self._numbers[_digest(net.after)].append(net.number)

    def _told(self, net: _Net) -> Iterator[RowEvent]:
        if net.before is None and net.after is not None:
            yield self._inserted(net.after, net.number)
        elif net.before is not None and net.after is None:
            yield self._deleted(net.before, net.number)
        elif net.before is not None and net.after is not None:
            yield self._updated(net.before, net.after, net.number)

    def _inserted(self, row: Row, number: int) -> RowEvent:
        name = self._name(row)
        if name is None:
            return RowEvent(EFFECT, "insert", None, row, number)
        self._rows[name] += 1
        put_back, content = self._removed.get(name, []), self._content_of(row)
        if content not in put_back:
            return RowEvent(EFFECT, "insert", name, row, number)
        put_back.remove(content)
        return RowEvent(REWRITTEN, "insert", name, row, number)

    def _updated(self, before: Row, after: Row, number: int) -> RowEvent:
        name, old_name = self._name(after), self._name(before)
        if name == old_name:
            same = self._content_of(before) == self._content_of(after) or self._only_times(before, after)
            if name is not None:
                self._rows[name] = max(1, self._rows[name])  # the row may have been there before the trial
            return RowEvent(REWRITTEN if same else EFFECT, "update", name, after, number)
        self._leave(old_name, lost=self._one_row_each)
        if name is not None:
            self._rows[name] += 1
        return RowEvent(EFFECT, "update", name, after, number)

    def _only_times(self, before: Row, after: Row) -> bool:
        """Tells whether rows differ in columns of time alone, which may or may not make up an effect, and counts it."""
        changed = {name for name in after if before.get(name) != after[name]}
        only = not self._content and bool(changed) and changed <= self._times
        if only:
            self.retimed.update(changed)
        return only

    def _deleted(self, row: Row, number: int) -> RowEvent:
        name = self._name(row)
        self._leave(name, lost=True)
        if name is not None:
            self._removed[name].append(self._content_of(row))
        return RowEvent(REMOVED, "delete", name, row, number)

    def _leave(self, name: str | None, *, lost: bool) -> None:
        if name is not None and self._rows[name]:
            self._rows[name] -= 1
            if lost:
                self._lost[name] = None

    def _name(self, row: Row) -> str | None:
        value = row.get(self._id_column)
        return None if value is None else value.decode(errors="backslashreplace")

    def _content_of(self, row: Row) -> bytes:
        return _digest({name: row.get(name) for name in self._content} if self._content else row)


def _digest(row: Row) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, value in row.items():
        size = b"-" if value is None else str(len(value)).encode()
        digest.update(f"{len(name)}:{name}=".encode() + size + b":")
        digest.update(value or b"")
    return digest.digest()


if __name__ == "__main__":
    sys.exit(main())
