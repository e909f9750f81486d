"""A real PostgreSQL for tests, booted as trials boot theirs; where it is missing they are skipped, or fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from kafka_trial.cluster.postgres import PostgresServer, TableRead, find_postgres, postgres_server, require_driver
from kafka_trial.errors import StartError
from kafka_trial.history.store import HistoryTail
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
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


@contextmanager
def killed_in_steady(run: Path) -> Iterator[Callable[[], list[str]]]:
    """Kills the server of the trial whose run folder is to be `run`, once it has had effects; yields what tells what is
    left of it: its folder, and processes that name that."""
    folders: list[Path] = []
    with ThreadGroup("killer") as thread_group:
        thread_group.start("kill", _kill_in_steady, run, folders)
        yield lambda: [
            *(str(folder) for folder in folders if folder.exists()),
            *(line for one in _running() if str(folders[0]) in (line := " ".join(one.info["cmdline"] or ()))),
        ]


def _kill_in_steady(run: Path, folders: list[Path]) -> None:
    follower = HistoryTail(run / "history", "sink.jsonl")
    wait_until(
        lambda: sum(event.kind == "effect" for event in follower.new_events()),
        within_s=180,
        what=f"the first effects of {run}",
    )
    serving = {process.pid: process for process in _running() if _serves(process, run)}
    (server,) = [one for one in serving.values() if one.ppid() not in serving]  # not a child that it has just forked
    folders.append(Path(server.info["cmdline"][2]).parent)
    server.kill()


def _running() -> list[psutil.Process]:
    return list(psutil.process_iter(["cmdline"]))


def _serves(process: psutil.Process, run: Path) -> bool:
    given = process.info["cmdline"] or []
    if len(given) < 3 or given[1] != "-D":
        return False
    return any(file.path == str(run / "logs" / "postgres.log") for file in process.open_files())
