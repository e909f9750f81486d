"""A sink's table, really read: SQLite always, PostgreSQL where it is installed; what it must not do, and its limits."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.audit.bounded_reading import Budget
from kafka_trial.audit.request import NS_PER_S, Limits, Sink
from kafka_trial.audit.sink import Rows, Span, check_table, read_sink_table
from kafka_trial.cluster.postgres import SUPERUSER
from kafka_trial.errors import InputError, StartError
from postgres import booted

FROM_S = 1_767_225_600  # 2026-01-01T00:00:00Z
SPAN = Span(FROM_S * NS_PER_S, (FROM_S + 3600) * NS_PER_S)
IN_SPAN = " where written_at between :from and :until"
TABLE = "create table done (id {integer}, written_at {time})"
ROWS = [
    (1, "2025-12-31T23:59:00Z"),
    (2, "2026-01-01T00:10:00Z"),
    (2, "2026-01-01T00:20:00Z"),
    (3, "2026-01-01T02:00:00Z"),
    (None, "2026-01-01T00:30:00Z"),
    (4, None),
]
EVERYTHING = Limits()
NO_DRIVER = "psycopg, the driver for PostgreSQL, or its libpq is not installed"


class Kept:
    """An event writer that keeps ids and times instead of writing them."""

    def __init__(self) -> None:
        self.effects: list[tuple[str, int]] = []

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Takes one event."""
        assert (kind, fields["outcome"]) == ("effect", "ok")
        self.effects.append((fields["id"], (time_ns or 0) // NS_PER_S - FROM_S))
        return len(self.effects)


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Boots a PostgreSQL server on a socket in a folder of its own, and yields the URL of its database."""
    with booted(tmp_path_factory.mktemp("postgresql")) as server:
        yield f"postgresql://{SUPERUSER}@/postgres?host={server.folder}&port={server.port}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yields the URL of a database that holds the rows in a table `done`."""
    if request.param == "sqlite":
        file = tmp_path / "done.db"
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(TABLE.format(integer="integer", time="text"))
            connection.executemany("insert into done values (?, ?)", ROWS)
        yield f"sqlite:///{file}"
        return
    url = request.getfixturevalue("postgresql")
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(TABLE.format(integer="bigint", time="timestamptz"))
        connection.cursor().executemany("insert into done values (%s, %s)", ROWS)
    yield url
    with psycopg.connect(url) as connection:
        connection.execute("drop table done")


def _count(url: str) -> int:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return int(connection.execute("select count(*) from done").fetchone()[0])
    import psycopg

    with psycopg.connect(url) as connection:
        return int(connection.execute("select count(*) from done").fetchone()[0])


def _read(url: str, query: str, limits: Limits = EVERYTHING, *, within_s: float = 30.0) -> tuple[Kept, Rows]:
    kept = Kept()
    budget = Budget(limits, until_s=time.monotonic() + within_s)
    return kept, read_sink_table(Sink(url=url, query=query), SPAN, budget, kept)


def test_rows_of_the_span_are_effects_with_their_times(database: str) -> None:
    """Those before and after it do not count; one without an id, and one without a time, are told."""
    kept, rows = _read(database, "select id, written_at from done")
    assert (kept.effects, rows) == ([("2", 600), ("2", 1200)], Rows(timed=True, nameless=1, timeless=1))
    assert [told.partition(" rows of")[0] for told in rows.gaps_in_words("db")] == ["the ids of 1", "1"]


def test_the_statement_may_ask_for_the_span_itself(database: str) -> None:
    """Both times are filled in; a sign that means something to the driver is left alone."""
    kept, rows = _read(database, "select id, written_at from done" + IN_SPAN + " and 'a%s' like '%s'")
    assert (kept.effects, rows.timeless) == ([("2", 600), ("2", 1200)], 0)


def test_ids_without_times_are_all_taken(database: str) -> None:
    """They count from the beginning, and it is known that nobody knows when."""
    kept, rows = _read(database, "select id from done where id is not null order by id")
    assert ([name for name, _ in kept.effects], rows.timed) == (["1", "2", "2", "3", "4"], False)


@pytest.mark.parametrize("limits", [Limits(records_max=2), Limits(bytes_max=2)], ids=["records", "bytes"])
def test_no_row_beyond_a_limit_is_taken(limits: Limits, database: str) -> None:
    """What was left is told, with the option that raises the limit."""
    kept, rows = _read(database, "select id from done where id is not null", limits)
    assert (len(kept.effects), ["raise --max-" in told for told in rows.unread]) == (2, [True])


def test_a_statement_that_takes_too_long_is_ended(database: str) -> None:
    """In the database itself, soon after its time is up, and told."""
    forever = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n where i < 0"
    began_s = time.monotonic()
    kept, rows = _read(database, forever, within_s=0.3)
    told = ["raise --max-minutes" in one for one in rows.unread]
    assert (kept.effects, told, time.monotonic() - began_s < 10) == ([], [True], True)


@pytest.mark.parametrize(
    "statement",
    [
        "delete from done",
        "delete from done returning id",
        "with gone as (delete from done returning id) select id from gone",
        "select id from done; delete from done",
        "drop table done",
        "create table other (id integer)",
    ],
)
def test_a_statement_that_writes_is_refused(statement: str, database: str) -> None:
    """As wrong input, and nothing is written."""
    with pytest.raises(InputError, match="--sink-query"):
        _read(database, statement)
    assert _count(database) == len(ROWS)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("select id from nowhere", "nowhere"),
        ("select id, written_at, 1 from done", "gives 3 columns"),
        ("select", "the database does not take it|gives 0 columns"),
        ("select id, 'yesterday' from done", "'yesterday' is neither"),
        ("select id, '2026-01-01 00:10:00' from done", "with its zone"),
    ],
)
def test_a_statement_that_gives_no_ids_is_wrong_input(statement: str, said: str, database: str) -> None:
    """It says what is expected."""
    with pytest.raises(InputError, match=said):
        _read(database, statement)


def test_a_look_beforehand_finds_a_wrong_statement_and_takes_no_rows(database: str) -> None:
    """A right one is let pass, even one that would take for ever to end."""
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n"
    for statement in ("select id from done", endless):
        check_table(Sink(url=database, query=statement), SPAN)
    with pytest.raises(InputError, match="nowhere"):
        check_table(Sink(url=database, query="select id from nowhere"), SPAN)


def test_times_are_seconds_too(tmp_path: Path) -> None:
    """As many tables have them."""
    file = tmp_path / "n.db"
    sqlite3.connect(file).close()
    rows = " union all ".join(
        f"select '{name}', {at}" for name, at in zip("ab", (FROM_S + 5, FROM_S + 6.5), strict=True)
    )
    kept, _ = _read(f"sqlite:///{file}", rows)
    assert kept.effects == [("a", 5), ("b", 6)]


def test_a_server_that_is_not_there_is_told() -> None:
    """As one that could not be begun with."""
    pytest.importorskip("psycopg", reason=NO_DRIVER, exc_type=ImportError)
    nowhere = f"postgresql://kt@/postgres?host=/tmp/kt-no-such-{secrets.token_hex(4)}"
    with pytest.raises(StartError, match="Is it up"):
        check_table(Sink(url=nowhere, query="select 1"), SPAN)


def test_without_its_driver_postgresql_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra by its name."""
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(InputError, match=r"kafka-trial\[sql\]"):
        check_table(Sink(url="postgresql://kt@/postgres", query="select 1"), SPAN)
