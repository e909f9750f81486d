"""The PostgreSQL of one trial: the server whose table is a consumer's output, booted for the trial and gone with it.

Boots from `initdb` on one address and on a Unix socket, with fsync on and its log readable by logical decoding. It is
supervised: it dies with the harness, however that dies, and its folder goes with it. Only the harness is its superuser,
over the socket; the members have a role of their own, with a password drawn for the trial. PostgreSQL refuses to run as
root, so root runs it as `nobody`.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGQUIT
from typing import IO, Any, Final

from kafka_trial.cluster.wiring import block_of_ports
from kafka_trial.errors import InputError, StartError, WaitTimeout, reason
from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.waiting import wait_until

LOOPBACK: Final = "127.0.0.1"
SUPERUSER: Final = "kafka_trial"
MEMBERS: Final = "consumer"  # the role of the members
DATABASE: Final = "trial"
PUBLICATION: Final = "kafka_trial"
UNPRIVILEGED: Final = "nobody"
BOOT_WITHIN_S: Final = 60.0
END_WITHIN_S: Final = 10.0
INSTALL: Final = "`apt-get install postgresql`, or put its `initdb` and `postgres` on PATH"
DRIVER: Final = "`pip install 'kafka-trial[sql]'`"
DEBIANS: Final = Path("/usr/lib/postgresql")
SETTINGS: Final = {
    "fsync": "on",
    "wal_level": "logical",
    "max_wal_senders": "4",
    "max_replication_slots": "4",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "dynamic_shared_memory_type": "mmap",  # in the folder: what is killed leaves nothing in /dev/shm
    "timezone": "UTC",
}


@dataclass(frozen=True)
class PostgresPrograms:
    """The two programs that a server is made with, and run with."""

    initdb: Path
    postgres: Path

    @property
    def version(self) -> str:
        """The major version where its folder tells it, as Debian's do; else empty."""
        found = re.search(r"/postgresql/([\d.]+)/", str(self.postgres))
        return found[1] if found else ""


def find_postgres() -> PostgresPrograms:
    """Returns PostgreSQL's programs: those on PATH, else the newest of Debian's.

    Raises:
        StartError: they are not installed, or psycopg is not, by which the harness talks to the server.
    """
    newest_first = sorted(DEBIANS.glob("*/bin"), key=_major, reverse=True)
    places = os.pathsep.join([os.environ.get("PATH", ""), *map(str, newest_first)])
    found = {name: shutil.which(name, path=places) for name in ("initdb", "postgres")}
    if missing := [name for name, place in found.items() if place is None]:
        raise StartError(f'sink = "postgres" needs PostgreSQL, and {" and ".join(missing)} cannot be found: {INSTALL}')
    require_driver()
    return PostgresPrograms(*(Path(place).resolve() for place in found.values() if place))


def require_driver() -> Any:
    """Returns psycopg.

    Raises:
        StartError: it is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise StartError(f'sink = "postgres" needs the driver psycopg ({error}): {DRIVER}') from error
    return psycopg


def _major(folder: Path) -> float:
    number = re.match(r"\d+(\.\d+)?", folder.parent.name)
    return float(number[0]) if number else 0.0


@dataclass(frozen=True)
class TableRead:
    """The table that the consumer's output goes to, as its consumer.toml names it.

    `value_column`: the one with the record's value; None: there is none. `content`: the columns that make up an effect;
    empty: all. `schema_file` is the SQL that creates the table.
    """

    table: str
    id_column: str
    schema_file: Path
    value_column: str | None = None
    content: tuple[str, ...] = ()


@dataclass
class PostgresServer:
    """A running server; made by `postgres_server`, which also ends it."""

    host: str
    port: int
    folder: Path
    log: Path
    password: str = field(repr=False)
    child: Child | None = None

    @property
    def words(self) -> dict[str, str]:
        """What the members are told: the values of their placeholders."""
        return {
            "postgres_url": f"postgresql://{MEMBERS}:{self.password}@{self.host}:{self.port}/{DATABASE}",
            "postgres_host": self.host,
            "postgres_port": str(self.port),
            "postgres_user": MEMBERS,
            "postgres_password": self.password,
            "postgres_database": DATABASE,
        }

    @property
    def own_address(self) -> str:
        """How the harness and its witness reach the trial's database: over the socket, without a password."""
        return self._address(DATABASE)

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.alive

    @property
    def lost(self) -> str | None:
        """Says that the server is gone, with its last words; None while it runs."""
        if self.alive or self.child is None:
            return None
        return f"the trial's PostgreSQL has died (exit {self.child.exit_code}): {self.last_words()}"

    def last_words(self, *, lines: int = 5) -> str:
        """Returns the last lines of its log, for an error message."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return " | ".join(text.strip().splitlines()[-lines:])[-1000:]

    def answers(self) -> bool:
        """Tells whether it takes connections."""
        psycopg = require_driver()
        try:
            with psycopg.connect(self._address("postgres"), connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def prepare(self, read: TableRead) -> None:
        """Runs the team's schema as the members' role, and has every change of the table's rows logged whole.

        Raises:
            InputError: PostgreSQL does not take the schema, or that creates no such table or column.
            StartError: the server cannot be talked to.
        """
        psycopg = require_driver()
        try:
            with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
                create_role = "create role {} login password {}"
                names = psycopg.sql.Identifier(MEMBERS), psycopg.sql.Literal(self.password)
                connection.execute(psycopg.sql.SQL(create_role).format(*names))
                connection.execute(f"create database {DATABASE} owner {MEMBERS}")
            self._run_schema(read.schema_file)
            with psycopg.connect(self.own_address, autocommit=True) as connection:
                name = _table_name(connection, read)
                connection.execute(f"alter table {name} replica identity full")
                connection.execute(f"create publication {PUBLICATION} for table {name}")
        except psycopg.Error as error:
            raise StartError(f"the trial's PostgreSQL could not be prepared: {first_line(error)}") from error

    def _run_schema(self, file: Path) -> None:
        psycopg = require_driver()
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                str(file), f"the schema_file cannot be read: {reason(error)}; it must be SQL in UTF-8"
            ) from error
        url = self.words["postgres_url"]
        with psycopg.connect(url, autocommit=True) as connection:
            try:
                connection.execute(text)
            except psycopg.Error as error:
                raise InputError(str(file), f"PostgreSQL does not take it: {first_line(error)}") from error

    def _address(self, database: str) -> str:
        return f"host={self.folder} port={self.port} user={SUPERUSER} dbname={database} client_encoding=UTF8"


def _table_name(connection: Any, read: TableRead) -> str:
    """Returns the table's name in SQL, quoted where it must be, once it and its columns are known to be there."""
    where, file = "[sink.postgres]", read.schema_file
    connection.execute(f"set search_path to {MEMBERS}, public")
    found = connection.execute(
        "select c.oid::regclass::text, c.relkind, c.relpersistence, "
        "array(select attname::text from pg_attribute a where a.attrelid = c.oid and attnum > 0 "
        "and not attisdropped and attgenerated = '') "
        "from pg_class c where c.oid = to_regclass(%s)",
        [read.table],
    ).fetchone()
    if found is None:
        raise InputError(str(file), f"creates no table {read.table}, which {where} table names")
    name, kind, persistence, columns = found
    if (kind, persistence) != ("r", "p"):
        raise InputError(
            str(file), f"{read.table} must be an ordinary table, neither partitioned nor a view, unlogged or temporary"
        )
    asked = {"[identity] column": read.id_column, **{f"{where} content": column for column in read.content}}
    if read.value_column is not None:
        asked[f"{where} value_column"] = read.value_column
    wanted = {*asked.values(), *read.content}
    if missing := sorted(wanted - set(columns)):
        listed = ", ".join(columns)
        raise InputError(
            str(file), f"{read.table} has no column {', '.join(missing)} ({', '.join(asked)}); it has: {listed}"
        )
    return str(name)


@contextmanager
def postgres_server(*, log: Path, host: str = LOOPBACK) -> Iterator[PostgresServer]:
    """Yields a server that answers on `host`, an address of this machine; its log is appended to `log`.

    Raises:
        StartError: PostgreSQL or its driver is not installed, or the server does not come up.
    """
    programs = find_postgres()
    folder = Path(tempfile.mkdtemp(prefix="kafka-trial-postgres-"))
    with (
        block_of_ports(1) as ports,
        ChildProcesses("postgres", belongings=[folder]) as child_processes,
        log.open("ab") as output,
    ):
        server = PostgresServer(host, ports[0], folder, log, secrets.token_urlsafe(24))
        try:
            _start(server, programs, child_processes, output)
            yield server
        finally:
            if server.child is not None and server.child.alive:
                server.child.end(within_s=END_WITHIN_S, number=SIGQUIT)  # at once: nobody will read its data again


def _start(
    server: PostgresServer, programs: PostgresPrograms, child_processes: ChildProcesses, output: IO[bytes]
) -> None:
    try:
        _boot(server, programs, child_processes, output)
    except WaitTimeout as error:
        raise StartError(f"{error}. Its log: {server.log}") from error


def _boot(
    server: PostgresServer, programs: PostgresPrograms, child_processes: ChildProcesses, output: IO[bytes]
) -> None:
    data = server.folder / "data"
    other = _other_user(server.folder)
    options = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--username={SUPERUSER}"]
    options += ["--encoding=UTF8", "--locale=C", "--no-sync"]
    making = child_processes.spawn(
        "initdb", [*other, programs.initdb, f"--pgdata={data}", *options], cwd=Path("/"), stderr=output
    )
    if making.wait(within_s=BOOT_WITHIN_S) != 0:
        raise StartError(f"initdb, which makes the trial's PostgreSQL, failed: {server.last_words()}")
    (data / "pg_hba.conf").write_text(_who_may_connect(), encoding="utf-8")
    settings = {
        **SETTINGS,
        "listen_addresses": server.host,
        "port": str(server.port),
        "unix_socket_directories": str(server.folder),
    }
    command: list[str | Path] = [*other, programs.postgres, "-D", data, *_options(settings)]
    server.child = child_processes.spawn("postgres", command, cwd=Path("/"), stdout=output, stderr=output)
    wait_until(
        server.answers,
        within_s=BOOT_WITHIN_S,
        what="the trial's PostgreSQL to answer",
        every_s=0.02,
        alive=lambda: server.lost,
        detail=server.last_words,
    )


def _other_user(folder: Path) -> Sequence[str]:
    """Returns the beginning of a command that root must put before PostgreSQL's, whose folder is then that user's."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise StartError("PostgreSQL does not run as root, and setpriv (of util-linux), which changes that, is missing")
    shutil.chown(folder, UNPRIVILEGED)
    return [setpriv, f"--reuid={UNPRIVILEGED}", "--regid=65534", "--clear-groups", "--pdeathsig=SIGKILL"]


def _who_may_connect() -> str:
    """Returns pg_hba.conf: the superuser over the socket alone, whose folder is closed to others; the members' role by
    its password."""
    lines = [
        f"local all {SUPERUSER} trust",
        f"local all {MEMBERS} scram-sha-256",
        f"host {DATABASE} {MEMBERS} all scram-sha-256",
    ]
    return "\n".join(lines) + "\n"


def _options(settings: Mapping[str, str]) -> Iterator[str]:
    for name, value in settings.items():
        yield "-c"
        yield f"{name}={value}"


def first_line(error: BaseException) -> str:
    """Returns the first line of what a driver says, or its kind where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
