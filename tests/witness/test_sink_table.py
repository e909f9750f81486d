"""The witness of a sink table on a real PostgreSQL: what it tells of commits, and what keeps it from the end."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from kafka_trial.cluster.postgres import PostgresServer
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.witness.witness import SinkTableRead, Witness, start_witness
from postgres import as_member, booted, table_read

PUT = "insert into effects values (%s, %s, %s, %s) on conflict (id) do update set amount = excluded.amount"
ODD = ["'; drop table effects; --", "\\x00", "a\nb\t\x01", "null", "ö€😀", "x" * 5000, " ", '{"id": 1}', "\u202e"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server whose table `effects` all tests use, each with ids of its own."""
    folder = tmp_path_factory.mktemp("server")
    with booted(folder) as server:
        server.prepare(table_read(folder))
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return create_run_folder(tmp_path / "run", "test", "test")


@contextmanager
def following(server: PostgresServer, folder: RunFolder, **about: Any) -> Iterator[Witness]:
    """A witness of the table from now on."""
    read = SinkTableRead(server.own_address, "effects", **{"id_column": "id", "value_column": "body"} | about)
    with ChildProcesses("witness") as child_processes:
        witness = start_witness(
            child_processes, "sink_table", ["--history", str(folder.history), *read.arguments], folder=folder
        )
        witness.ready(within_s=30)
        yield witness
        witness.stop()


def told(folder: RunFolder) -> list[tuple[str, str | None]]:
    """Returns kind and id of the events but those of the witness itself."""
    return [(event.kind, event.id) for event in folder.events() if event.kind != "witness"]


def test_what_is_committed_is_told_in_the_order_of_commits(server: PostgresServer, folder: RunFolder) -> None:
    """Of transactions side by side the one that ends first; of one that is rolled back nothing."""
    with following(server, folder) as witness:
        slow, quick, undone = (as_member(server, autocommit=False) for _ in range(3))
        slow.execute(PUT, ["slow-1", 1, None, None])
        undone.execute(PUT, ["undone", 1, None, None])
        quick.execute(PUT, ["quick", 1, None, None])
        slow.execute(PUT, ["slow-2", 1, None, None])
        quick.commit()
        undone.rollback()
        slow.commit()
        quick.execute(PUT, ["open", 1, None, None])
        assert witness.snapshot(within_s=30) == "complete"
        for connection in (slow, quick, undone):
            connection.close()
    assert told(folder) == [("effect", "quick"), ("effect", "slow-1"), ("effect", "slow-2")]


def test_upserts_tell_whether_a_row_became_another(server: PostgresServer, folder: RunFolder) -> None:
    """Written as it was, left alone, added to, deleted and put back."""
    with following(server, folder) as witness, as_member(server) as connection:
        connection.execute(PUT, ["u", 5, b"v", None])
        connection.execute(PUT, ["u", 5, b"other", None])
        connection.execute("insert into effects values ('u') on conflict do nothing")
        connection.execute("update effects set amount = amount + 5 where id = 'u'")
        connection.execute("delete from effects where id = 'u'")
        connection.execute(PUT, ["u", 10, b"v", None])
        assert witness.snapshot(within_s=30) == "complete"
    kinds = ["effect", "row_rewritten", "effect", "row_removed", "row_rewritten"]
    assert told(folder) == [(kind, "u") for kind in kinds]


def test_ids_and_values_are_told_to_the_byte(server: PostgresServer, folder: RunFolder) -> None:
    """Whatever they hold; and of a large value that an update leaves as it was."""
    large = bytes(range(256)) * 8000
    with following(server, folder) as witness, as_member(server) as connection:
        for name in ODD:
            connection.execute(PUT, [name, 1, name.encode() + b"\0", name])
        connection.execute(PUT, ["large", 1, large, None])
        connection.execute("update effects set amount = 2 where id = 'large'")
        connection.execute("update effects set amount = 2 where id = 'large'")
        assert witness.snapshot(within_s=30) == "complete"
    effects = [(event.id, event.details["checksum"]) for event in folder.events() if event.kind == "effect"]
    assert effects == [
        *((name, zlib.crc32(name.encode() + b"\0")) for name in ODD),
        *[("large", zlib.crc32(large))] * 2,
    ]
    assert told(folder)[-1] == ("row_rewritten", "large")


def test_its_time_is_that_of_its_commit(server: PostgresServer, folder: RunFolder) -> None:
    """By the server's clock, which is this machine's; and where in the log it stands."""
    with following(server, folder) as witness, as_member(server) as connection:
        begun_ns = time.time_ns()
        connection.execute(PUT, ["timed", 1, None, None])
        ended_ns = time.time_ns()
        assert witness.snapshot(within_s=30) == "complete"
    (effect,) = (event for event in folder.events() if event.kind == "effect")
    assert effect.source_wall_ns is not None
    assert begun_ns - 1000 <= effect.source_wall_ns <= ended_ns
    assert effect.details["commit_lsn"] > 0


def test_what_is_not_flushed_yet_is_read_all_the_same(server: PostgresServer, folder: RunFolder) -> None:
    """A commit that did not wait for the disk was seen by others: at the snapshot the log is flushed."""
    with following(server, folder) as witness, as_member(server) as connection:
        connection.execute("set synchronous_commit to off")
        for number in range(100):
            connection.execute(PUT, [f"async-{number}", 1, None, None])
        assert witness.snapshot(within_s=30) == "complete"
    assert len(told(folder)) == 100


@pytest.mark.parametrize(
    ("statements", "after", "said"),
    [
        (["insert into effects values ('gone')", "delete from effects where id = 'gone'"], [], "gone from effects"),
        (["insert into effects values ('old')", "update effects set id = 'new' where id = 'old'"], [], "taken over"),
        (["truncate effects"], [], "was truncated"),
        (["update effects set written_at = now() where id = 'kept'"], [], "with another time alone (written_at)"),
        (
            ["alter table effects replica identity default", "update effects set amount = 3 where id = 'kept'"],
            ["alter table effects replica identity full"],
            "its replica identity was changed",
        ),
    ],
    ids=["deleted", "taken-over", "truncated", "retimed", "not-whole"],
)
def test_what_the_table_cannot_tell_is_named(
    server: PostgresServer, folder: RunFolder, statements: list[str], after: list[str], said: str
) -> None:
    """Nobody guesses whether an effect counts."""
    with as_member(server) as connection:
        connection.execute("insert into effects values ('kept') on conflict do nothing")
        try:
            with following(server, folder) as witness:
                for statement in statements:
                    connection.execute(statement)
                assert witness.snapshot(within_s=30) == "undecodable"
                assert said in str(witness.message)
        finally:
            for statement in after:
                connection.execute(statement)


def test_the_state_of_a_key_may_be_taken_over(server: PostgresServer, folder: RunFolder) -> None:
    """Declared as such, it is the next record's effect and nothing is missing."""
    with following(server, folder, effects="state") as witness, as_member(server) as connection:
        connection.execute("insert into effects values ('first', 1)")
        connection.execute("update effects set id = 'second' where id = 'first'")
        assert witness.snapshot(within_s=30) == "complete"
    assert told(folder) == [("effect", "first"), ("effect", "second")]


def test_a_table_that_was_made_anew_and_rows_without_an_id_are_named(tmp_path: Path, folder: RunFolder) -> None:
    """On a server of their own: the table is not what it was."""
    with booted(tmp_path) as server:
        server.prepare(table_read(tmp_path, "create table effects (id bigint, amount bigint)"))
        with following(server, folder, value_column=None) as witness, as_member(server) as connection:
            connection.execute("insert into effects values (7), (7), (null)")
            assert witness.snapshot(within_s=30) == "undecodable"
            assert "1 rows of effects have no id" in str(witness.message)
            connection.execute("drop table effects")
            connection.execute("create table effects (id bigint)")
            assert witness.snapshot(within_s=30) == "undecodable"
            assert "it was dropped" in str(witness.message)
    assert told(folder) == [("effect", "7"), ("effect", "7"), ("undecodable", None)]


def test_without_its_server_it_dies_and_says_so(tmp_path: Path, folder: RunFolder) -> None:
    """It is no witness any more, and its last word says why."""
    with booted(tmp_path) as server:
        server.prepare(table_read(tmp_path))
        with following(server, folder) as witness:
            assert server.child is not None
            server.child.signal(SIGKILL)
            wait_until(lambda: not witness.alive, within_s=10, what="the witness to notice")
            assert witness.snapshot(within_s=1) == "dead"
    assert "the trial's PostgreSQL has" in str(witness.message)
