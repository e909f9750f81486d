"""The PostgreSQL of a trial: who may connect, what a schema must create, and that nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest

from kafka_trial.cluster import postgres
from kafka_trial.cluster.postgres import PostgresServer, find_postgres, require_driver
from kafka_trial.errors import InputError, StartError
from kafka_trial.process.waiting import wait_until
from postgres import as_member, booted, table_read


def test_members_have_a_database_with_what_their_schema_creates(tmp_path: Path) -> None:
    """By password over TCP, every commit on the disk; nothing is left of it afterwards."""
    with booted(tmp_path) as server:
        server.prepare(table_read(tmp_path))
        with as_member(server) as connection:
            assert connection.execute("select count(*) from effects").fetchone() == (0,)
            assert connection.execute("show fsync").fetchone() == ("on",)
            assert connection.execute("select current_user, current_database()").fetchone() == ("consumer", "trial")
        wrong = server.words["postgres_url"].replace(server.password, "guessed")
        for url in (wrong, server.words["postgres_url"].replace("consumer:", "kafka_trial:")):
            with pytest.raises(require_driver().OperationalError):
                require_driver().connect(url)
        assert server.password not in repr(server)
        child, folder = server.child, server.folder
    assert child is not None
    assert (child.alive, folder.exists()) == (False, False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server whose trial's database every test makes anew."""
    folder = tmp_path_factory.mktemp("server")
    with booted(folder) as server:
        yield server


@pytest.mark.parametrize(
    ("sql", "fields", "said"),
    [
        ("create tabel effects (id text)", {}, 'PostgreSQL does not take it: syntax error at or near "tabel"'),
        ("create table other (id text)", {}, "creates no table effects, which [sink.postgres] table names"),
        ("create table effects (name text)", {}, "has no column id ([identity] column); it has: name"),
        ("create table effects (id text)", {"value_column": "body"}, "has no column body"),
        ("create table effects (id text)", {"content": ("sum", "id")}, "has no column sum"),
        ("create view effects as select 1 as id", {}, "must be an ordinary table"),
        ("create unlogged table effects (id text)", {}, "must be an ordinary table"),
        ("create table effects (id text) partition by hash (id)", {}, "must be an ordinary table"),
    ],
)
def test_a_schema_that_does_not_make_the_table_is_wrong_input(
    server: PostgresServer, tmp_path: Path, sql: str, fields: dict[str, object], said: str
) -> None:
    """It is told with its file, what is missing, and what there is."""
    with require_driver().connect(server._address("postgres"), autocommit=True) as connection:
        connection.execute("drop database if exists trial")
        connection.execute("drop role if exists consumer")
    with pytest.raises(InputError) as raised:
        server.prepare(table_read(tmp_path, sql, **fields))
    assert raised.value.where == str(tmp_path / "schema.sql")
    assert said in raised.value.problems[0]


def test_a_name_that_must_be_quoted_is_found(server: PostgresServer, tmp_path: Path) -> None:
    """It is written as in SQL, with its schema."""
    with require_driver().connect(server._address("postgres"), autocommit=True) as connection:
        connection.execute("drop database if exists trial")
        connection.execute("drop role if exists consumer")
    sql = 'create schema billing; create table billing."Odd ""Name" ("Id" text)'
    server.prepare(table_read(tmp_path, sql, table='billing."Odd ""Name"', id_column="Id"))
    with require_driver().connect(server.own_address) as connection:
        found = connection.execute("select tablename from pg_publication_tables").fetchall()
    assert found == [('Odd "Name',)]


def test_a_server_that_was_killed_is_told(tmp_path: Path) -> None:
    """With how it ended."""
    with booted(tmp_path) as server:
        assert server.child is not None
        assert server.lost is None
        server.child.signal(SIGKILL)
        wait_until(lambda: server.lost, within_s=10, what="the server to be gone")
        assert "the trial's PostgreSQL has died (exit -9)" in str(server.lost)


def test_without_its_programs_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By Debian's name of the package."""
    monkeypatch.setattr(postgres, "DEBIANS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StartError, match=r"initdb and postgres cannot be found: `apt-get install postgresql`"):
        find_postgres()


def test_without_its_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra by its name."""
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(StartError, match=r"kafka-trial\[sql\]"):
        require_driver()
