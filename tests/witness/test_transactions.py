"""The witness of transactions in topics, on literal batches: ends, what was taken back, and what is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka_trial.history.event import from_line
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol.batches import batches
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.transactions import TopicReader
from witness.literal_batches import ABORT, COMMIT, TRANSACTIONAL, ZSTD, batch_of, marker_of

TWO = [(None, b"1"), (None, b"{}")]


@contextmanager
def _reader(folder: Path, *, tells_records: bool = True) -> Iterator[tuple[TopicReader, Any]]:
    with Recorder(folder, "transactions") as recorder:

        def seen() -> list[tuple[Any, ...]]:
            events = map(from_line, recorder.path.read_bytes().splitlines())
            return [(event.kind, event.offset, event.details.get("state", event.id)) for event in events]

        yield TopicReader("t", 3, recorder, tells_records=tells_records), seen


def _take(reader: TopicReader, *raw: bytes) -> None:
    for batch in batches(b"".join(raw)):
        reader.take(batch, 0)


def _written(base: int, producer_id: int, *, name: str = "r", attributes: int = 0) -> bytes:
    return batch_of(base, TWO, attributes=TRANSACTIONAL | attributes, producer_id=producer_id, epoch=4, name=name)


def test_a_commit_is_one_line_and_its_records_none(tmp_path: Path) -> None:
    """The committed reader tells of them."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, _written(0, 7), marker_of(2, 7, COMMIT))
        assert seen() == [("transaction_marker", 2, "commit")]


def test_an_abort_takes_back_each_of_its_records(tmp_path: Path) -> None:
    """Of this producer, in every batch since its last marker; others' transactions go on."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, _written(0, 7), _written(2, 8), _written(4, 7, name="s"), marker_of(6, 7, ABORT))
        assert seen() == [
            ("transaction_marker", 6, "abort"),
            ("record_aborted", 0, "r0"),
            ("record_aborted", 1, "r1"),
            ("record_aborted", 4, "s0"),
            ("record_aborted", 5, "s1"),
        ]


def test_a_line_says_where_who_and_when(tmp_path: Path) -> None:
    """The epoch is the marker's: under KIP-890 the one after that of the records."""
    with _reader(tmp_path) as (reader, _):
        _take(reader, _written(0, 7), marker_of(2, 7, COMMIT, epoch=5))
    (line,) = (tmp_path / "transactions.jsonl").read_bytes().splitlines()
    event = from_line(line)
    about = (event.topic, event.partition, event.source_wall_ns, event.details["producer_id"])
    assert (*about, event.details["producer_epoch"]) == ("t", 3, 1_000_000_000, 7, 5)


def test_a_marker_that_ends_nothing_says_nothing(tmp_path: Path) -> None:
    """A partition that was added and never written to; a coordinator that ends again what has ended."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, marker_of(0, 7, COMMIT), _written(1, 7), marker_of(3, 7, ABORT), marker_of(4, 7, ABORT))
        assert [kind for kind, offset, _ in seen() if kind == "transaction_marker"] == ["transaction_marker"]


def test_records_outside_of_transactions_say_nothing(tmp_path: Path) -> None:
    """An idempotent producer has an id as well."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, batch_of(0, TWO, producer_id=7), marker_of(2, 7, ABORT))
        assert seen() == []


def test_what_is_open_is_told_when_asked(tmp_path: Path) -> None:
    """By the place of its first record; what has ended is not."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, _written(0, 8), _written(2, 7), _written(4, 7), marker_of(6, 8, COMMIT))
        reader.record_open()
        assert seen() == [("transaction_marker", 6, "commit"), ("transaction_open", 2, None)]


def test_of_an_output_only_the_ends_are_told(tmp_path: Path) -> None:
    """Its records are the consumer's, and not kept."""
    with _reader(tmp_path, tells_records=False) as (reader, seen):
        _take(reader, _written(0, 7), _written(2, 7), marker_of(4, 7, ABORT), _written(5, 7))
        reader.record_open()
        assert seen() == [("transaction_marker", 4, "abort"), ("transaction_open", 5, None)]


def test_records_that_cannot_be_opened_are_taken_back_without_their_ids(tmp_path: Path) -> None:
    """Where they lie is known, and what is in them is not needed."""
    with _reader(tmp_path) as (reader, seen):
        _take(reader, _written(0, 7, attributes=ZSTD), marker_of(2, 7, ABORT))
        assert seen()[1:] == [("record_aborted", 0, None), ("record_aborted", 1, None)]
        assert reader.undecodable == 0


def test_what_cannot_be_decoded_is_told(tmp_path: Path) -> None:
    """Nobody may claim to know all then."""
    with _reader(tmp_path) as (reader, seen):
        reader.not_decoded(5, DecodeError("torn"))
        assert (seen(), reader.undecodable) == ([("undecodable", 5, None)], 1)
