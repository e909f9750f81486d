"""The sink of an audit, read: which records were handled, from topics, or out of a team's database.

A topic is read as the audited one is, by bounded readers side by side. What is committed there counts, from when the
earliest audited record may have been handled to when the last one may. A record's time is its producer's: brokers of
Kafka 4 let it be an hour ahead of their clock and no more, so reading goes on for so long, lest a wrong clock hide what
was handled. Whatever may be missing there is told, for a record without its id is held against the group.

A database is asked by one statement of the team's own, which records were handled, and when. Its first column is a
record's id; its second, if there is one, when it was written. `:from` and `:until` in it are the times that count, as
text in UTC. PostgreSQL is read through psycopg (the extra `sql`), SQLite through Python's own driver. No library that
speaks to all databases stands between: what must hold here (a transaction that cannot write, a limit of time in the
server, rows that come as a stream) every database has in a way of its own.
"""

from __future__ import annotations

import datetime
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlsplit

from kafka_trial.audit.bounded_reading import CLIENT_ID, Budget, Log
from kafka_trial.audit.readers import Ranges, ReadRecord, read_records
from kafka_trial.audit.request import NS_PER_S, SQLITE, AuditRequest, Identity, Sink, sqlite_file, stamp
from kafka_trial.errors import InputError, StartError, UnjudgeableError
from kafka_trial.history.recorder import EventWriter

AHEAD_NS = 3600 * NS_PER_S  # message.timestamp.after.max.ms, an hour by default
CLEANUP = "cleanup.policy"


@dataclass(frozen=True)
class Span:
    """When the audited records may have been handled, in nanoseconds since 1970."""

    since_ns: int
    until_ns: int

    def holds(self, time_ns: int) -> bool:
        return self.since_ns <= time_ns <= self.until_ns


@dataclass(frozen=True)
class IdColumns:
    """Where each partition of the sink begins, where what a committed reader sees ends, and where its log does;
    `first` and `late` are the first records of the span, and beyond it (-1: none)."""

    starts: Mapping[int, int]
    stable: Mapping[int, int]
    ends: Mapping[int, int]
    first: Mapping[int, int]
    late: Mapping[int, int]

    @classmethod
    def of(cls, log: Log, span: Span) -> IdColumns:
        """Returns the places as they are now."""
        first, late = log.at(span.since_ns), log.at(span.until_ns + AHEAD_NS)
        offsets = ({partition: at for partition, (at, _) in found.items()} for found in (first, late))
        return cls(log.starts(), log.ends(), log.log_ends(), *offsets)

    def ranges(self) -> dict[int, tuple[int, int]]:
        """Returns which offsets of each partition are to be read."""
        return {partition: (self._begin(partition), self._end(partition)) for partition in self.starts}

    def missing(self, topic: str) -> Iterator[str]:
        """Yields what of the span is not there (any more), as sentences."""
        for partition, start in self.starts.items():
            if start and self.first[partition] in (-1, start):
                yield f"{topic}-{partition} before offset {start}: retention has taken it"
            wanted = self.ends[partition] if self.late[partition] < 0 else self.late[partition]
            if self.stable[partition] < wanted:
                yield f"{topic}-{partition} from {self.stable[partition]} on: an open transaction hides it"

    def _begin(self, partition: int) -> int:
        first = self.first[partition]
        return self._end(partition) if first < 0 else max(first, self.starts[partition])

    def _end(self, partition: int) -> int:
        late = self.late[partition]
        return self.stable[partition] if late < 0 else min(late, self.stable[partition])


class Ids:
    """Writes an `effect` for each id of the span; `nameless` and `timeless` count the records that cannot count."""

    def __init__(self, topic: str, span: Span, event_writer: EventWriter) -> None:
        self.nameless = 0
        self.timeless = 0
        self._topic = topic
        self._span = span
        self._event_writer = event_writer
        self._lock = threading.Lock()

    def take(self, found: ReadRecord) -> None:
        """Takes one record of the sink; called by several readers at once."""
        inside = self._span.holds(found.time_ns)
        if not found.time_ns or (inside and found.id is None):
            with self._lock:
                self.timeless += not found.time_ns
                self.nameless += found.id is None
        elif inside:
            self._write(found)

    def missing(self, identity: Identity) -> Iterator[str]:
        """Yields what keeps records of the sink from telling anything, as sentences."""
        if self.nameless:
            yield f"the ids of {self.nameless} records of {self._topic}: they have {identity}"
        if self.timeless:
            yield f"{self.timeless} records of {self._topic}: they do not say when they were written"

    def _write(self, found: ReadRecord) -> None:
        place = {"topic": self._topic, "partition": found.partition, "offset": found.offset}
        self._event_writer.record("effect", time_ns=found.time_ns, **place, id=found.id, outcome="ok")


def read_sink_topic(
    log: Log,
    request: AuditRequest,
    span: Span,
    budget: Budget,
    event_writer: EventWriter,
    *,
    configs: Mapping[str, str | None],
) -> list[str]:
    """Reads the sink's topic and records its ids; returns what could not be read, as sentences.

    Raises:
        UnjudgeableError: a leader could not be reached.
        InputError: one did not let us in, or not read.
    """
    if request.sink is None:
        return []
    places, ids = IdColumns.of(log, span), Ids(log.topic, span, event_writer)
    ranges: Ranges = places.ranges()
    reading = read_records(request, log.topic, ranges, budget, ids.take, identity=request.sink.identity)
    missing = *places.missing(log.topic), *reading.unread, *compacted(log.topic, configs)
    return [*missing, *ids.missing(request.sink.identity)]


def compacted(topic: str, configs: Mapping[str, str | None]) -> Iterator[str]:
    """Yields what is not known of a topic that is compacted, or may be, as a sentence."""
    policy = configs.get(CLEANUP)
    if policy is None:
        yield f"whether {topic} is compacted: nobody told its {CLEANUP}, which takes DESCRIBE_CONFIGS on it"
    elif "compact" in policy:
        yield f"what compaction has taken out of {topic} ({CLEANUP} {policy})"


CONNECT_WITHIN_S = 10
CHECK_WITHIN_S = 30.0
ROWS = 2000  # asked for at once
STEPS = 10_000  # of SQLite's machine between two looks at the clock
PLACE = re.compile(r"(?<![:\w]):(from|until)\b")
CANCELLED = "57014"  # PostgreSQL's query_canceled
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
LIKE = "write it like 'select order_id, written_at from done where written_at between :from and :until'"
MINUTES = "the limit of minutes was reached; raise --max-minutes"


class TimeUpError(Exception):
    """The database ended the statement, for its time was up."""


@dataclass
class Rows:
    """What became of the rows. `timed`: they say when they were written; `unread` are sentences."""

    timed: bool = False
    nameless: int = 0
    timeless: int = 0
    unread: list[str] = field(default_factory=list)

    def gaps_in_words(self, name: str) -> list[str]:
        """Returns what is missing of them, as sentences."""
        nameless = [f"the ids of {self.nameless} rows of {name}: they have none"] if self.nameless else []
        timeless = [f"{self.timeless} rows of {name}: they do not say when they were written"] if self.timeless else []
        return [f"rows of {name}: {because}" for because in self.unread] + nameless + timeless


def check_table(sink: Sink, span: Span) -> None:
    """Looks whether the statement can be put to the database, and what columns it gives; of its rows it wants none.

    Raises:
        StartError: the database does not answer.
        InputError: it does not take the statement, or that gives no ids.
    """
    with suppress(TimeUpError), _asked(sink, span, within_s=CHECK_WITHIN_S) as cursor:
        _columns(cursor)


def read_sink_table(sink: Sink, span: Span, budget: Budget, event_writer: EventWriter) -> Rows:
    """Puts the statement to the database, records its ids, and returns what became of the rows.

    Where the statement gives times, rows count that were written in the span; one without a time does not.

    Raises:
        StartError: the database does not answer.
        InputError: it does not take the statement, or that gives no ids, or times that are none.
        UnjudgeableError: it went away meanwhile.
    """
    found = Rows()
    try:
        with _asked(sink, span, within_s=budget.left_s) as cursor:
            found.timed = _columns(cursor) == 2
            for row in _rows(cursor):
                if not budget.take(size_bytes=len(str(row[0])), records=1):
                    found.unread.append(budget.spent or MINUTES)
                    break
                _take(row, found, span, event_writer)
    except TimeUpError:
        found.unread.append(MINUTES)
    return found


def _take(row: Sequence[Any], found: Rows, span: Span, event_writer: EventWriter) -> None:
    time_ns = _time_ns(row[1]) if found.timed else span.since_ns
    if time_ns is None:
        found.timeless += 1
    elif not span.holds(time_ns):
        return
    elif row[0] is None:
        found.nameless += 1
    else:
        event_writer.record("effect", time_ns=time_ns, id=_text(row[0]), outcome="ok")


def _rows(cursor: Any) -> Iterator[Sequence[Any]]:
    while rows := cursor.fetchmany(ROWS):
        yield from rows


def _text(value: Any) -> str:
    """Returns an id as text: as a JSON field or a header of the record would give it."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode(errors="backslashreplace")
    return str(value)


def _time_ns(value: Any) -> int | None:
    """Returns a time as nanoseconds since 1970; numbers are seconds since then.

    Raises:
        InputError: it is no time, or one of no known zone.
    """
    if value is None:
        return None
    with suppress(ValueError, OverflowError):
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return int(value * NS_PER_S)
        moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime.datetime) and moment.tzinfo is not None:
            return int(moment.timestamp() * NS_PER_S)
    raise InputError(
        "--sink-query",
        f"its second column must be a time with its zone, or seconds since 1970; {str(value)[:60]!r} is neither. "
        "Say which zone is meant: written_at at time zone 'UTC' (PostgreSQL), written_at || 'Z' (SQLite)",
    )


def _columns(cursor: Any) -> int:
    """Returns how many columns there are: an id, perhaps a time.

    Raises:
        InputError: none, or more than these.
    """
    count = len(cursor.description or ())
    if count not in (1, 2):
        raise InputError("--sink-query", f"gives {count} columns, not an id and the time it was written: {LIKE}")
    return count


@contextmanager
def _asked(sink: Sink, span: Span, *, within_s: float) -> Iterator[Any]:
    """Yields a cursor over the statement's rows, in a transaction that can only read, and ends both."""
    words = {"from": stamp(span.since_ns), "until": stamp(span.until_ns + NS_PER_S)}
    opened = _sqlite if urlsplit(sink.url).scheme in SQLITE else _postgresql
    with opened(sink, words, time.monotonic() + within_s) as cursor:
        yield cursor


@contextmanager
def _sqlite(sink: Sink, words: Mapping[str, str], until_s: float) -> Iterator[Any]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(sqlite_file(sink.url)))}?mode=ro", uri=True)) as database:
            database.set_authorizer(_only_reading)
            database.set_progress_handler(lambda: time.monotonic() > until_s, STEPS)
            yield database.execute(sink.query, words)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise TimeUpError from error
        raise _refused(error) from error


def _only_reading(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


@contextmanager
def _postgresql(sink: Sink, words: Mapping[str, str], until_s: float) -> Iterator[Any]:
    psycopg = _psycopg()
    try:
        database = psycopg.connect(sink.url, connect_timeout=CONNECT_WITHIN_S, application_name=CLIENT_ID)
    except psycopg.OperationalError as error:
        raise StartError(
            f"--sink-db: {_first_line(error)}. Is it up, reachable from here, and does it know us?"
        ) from error
    statement = PLACE.sub(r"%(\1)s", sink.query.replace("%", "%%"))
    try:
        with database:
            database.read_only = True
            left_ms = max(1, int((until_s - time.monotonic()) * 1000))
            database.execute("select set_config('statement_timeout', %s, true)", [str(left_ms)])
            with database.cursor(name=CLIENT_ID) as cursor:  # in the server: rows come as they are asked for
                cursor.execute(statement, words)
                yield cursor
    except psycopg.Error as error:
        if error.sqlstate == CANCELLED:
            raise TimeUpError from error
        if isinstance(error, psycopg.OperationalError):
            raise UnjudgeableError(f"--sink-db went away while it was read: {_first_line(error)}") from error
        raise _refused(error) from error


def _psycopg() -> Any:
    """Returns the driver for PostgreSQL.

    Raises:
        InputError: it is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise InputError(
            "--sink-db", f"PostgreSQL needs its driver ({error}): pip install 'kafka-trial[sql]'"
        ) from error
    return psycopg


def _refused(error: Exception) -> InputError:
    return InputError("--sink-query", f"the database does not take it: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
