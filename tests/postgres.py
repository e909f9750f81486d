"""A real PostgreSQL for tests, booted as trials boot theirs; where it is missing they are skipped, or fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka_trial.cluster.postgres import PostgresServer, TableRead, find_postgres, postgres_server, require_driver
from kafka_trial.errors import StartError
from requirements import missing

SCHEMA = """
create table effects (id text primary key, amount bigint, body bytea, note text, written_at timestamptz);
create table plain (id bigint, amount bigint);
"""


@contextmanager
def booted(folder: Path) -> Iterator[PostgresServer]:
    """Yields a server without a database of the trial; its log is in `folder`."""
    try:
        find_postgres()
    except StartError as error:
        missing("postgres", str(error))
    with postgres_server(log=folder / "postgres.log") as server:
        yield server


def table_read(folder: Path, sql: str = SCHEMA, **fields: Any) -> TableRead:
    """Returns the table `effects`, whose schema is written into `folder`."""
    file = folder / "schema.sql"
    file.write_text(sql)
    return TableRead(**{"table": "effects", "id_column": "id", "schema_file": file} | fields)


def as_member(server: PostgresServer, *, autocommit: bool = True) -> Any:
    """Returns a connection as a member's, by the address that it is told."""
    return require_driver().connect(server.words["postgres_url"], autocommit=autocommit)
