"""A sink's table: which records were handled, and when, out of a team's database, by one statement of the team's own.

Its first column is a record's id; its second, if there is one, when it was written. `:from` and `:until` in it are the
times that count, as text in UTC. PostgreSQL is read through psycopg (the extra `sql`), SQLite through Python's own
driver. No library that speaks to all databases stands between: what must hold here (a transaction that cannot write, a
limit of time in the server, rows that come as a stream) every database has in a way of its own.
"""

from __future__ import annotations

import datetime
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlsplit

from kafka_trial.audit.bounded_reading import CLIENT_ID, Budget
from kafka_trial.audit.request import NS_PER_S, stamp
from kafka_trial.audit.sink import SQLITE, Sink, sqlite_file
from kafka_trial.audit.sink_topic import Span
from kafka_trial.errors import InputError, StartError, UnjudgeableError
from kafka_trial.history.recorder import EventWriter

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

    def told(self, name: str) -> list[str]:
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
