"""The decoder on known bytes: published vectors, Kafka's own printing of stored logs, and bytes that are damaged."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_protocol.kafka_json import key_json, value_json
from kafka_trial.kafka_protocol import offsets_records as records
from kafka_trial.kafka_protocol.offsets_decoder import decode_assignment, decode_key, decode_subscription, decode_value
from kafka_trial.kafka_protocol.offsets_records import Assignment, ConsumerPartitions, Key, OffsetCommit, Subscription
from kafka_trial.kafka_protocol.primitives import DecodeError

DATA = Path(__file__).parent / "data"
STORED = [
    json.loads(line) for path in sorted(DATA.glob("offsets-log-*.jsonl")) for line in path.read_text().splitlines()
]
KEY = bytes.fromhex("00010002673100066f726465727300000003")
COMMIT = Key(records.OFFSET_COMMIT, "g1", topic="orders", partition=3)
TIME_MS = 0x18BCFE56800
TIME = TIME_MS.to_bytes(8)


def _decoded(key: bytes, value: bytes | None) -> tuple[dict[str, Any], dict[str, Any] | None]:
    about = decode_key(key)
    printed = {"type": about.record_type, "data": key_json(about)}
    if value is None:
        return printed, None
    decoded = decode_value(about, value)
    assert decoded is not None
    return printed, {"version": int.from_bytes(value[:2]), "data": value_json(decoded, unfold=True)}


def test_a_key_says_what_its_record_is_about() -> None:
    """The published vector: a commit of group g1 on orders-3."""
    assert decode_key(KEY) == COMMIT


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (bytes(2) + (42).to_bytes(8) + b"\0\1m" + TIME, OffsetCommit(0, 42, "m", TIME_MS)),
        (
            b"\0\1" + (42).to_bytes(8) + b"\0\0" + TIME + TIME,
            OffsetCommit(1, 42, "", TIME_MS, expire_time_ms=TIME_MS),
        ),
        (b"\0\2" + (42).to_bytes(8) + b"\0\0" + TIME, OffsetCommit(2, 42, "", TIME_MS)),
        (bytes.fromhex("0003000000000000002affffffff00000000018bcfe56800"), OffsetCommit(3, 42, "", TIME_MS)),
        (
            bytes.fromhex("0004000000000000002a00000005010000018bcfe5680000"),
            OffsetCommit(4, 42, "", TIME_MS, leader_epoch=5),
        ),
        (
            b"\0\4" + (42).to_bytes(8) + b"\0\0\0\5" + b"\2m" + TIME + b"\2\0\x10" + bytes(range(16)) + b"\7\2hi",
            OffsetCommit(4, 42, "m", TIME_MS, leader_epoch=5, topic_id="AAECAwQFBgcICQoLDA0ODw"),
        ),
    ],
    ids=["v0", "v1 with expiry", "v2", "v3", "v4", "v4 with topic id and an unknown tag"],
)
def test_a_commit_is_read_in_every_version(value: bytes, expected: OffsetCommit) -> None:
    """Plain up to version 3, flexible from 4 on; unknown tagged fields are skipped."""
    assert decode_value(COMMIT, value) == expected


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: f"type {stored['printed_key']['type']}")
def test_stored_records_mean_what_kafka_printed(stored: dict[str, Any]) -> None:
    """Records written for real clients by 3.9.2 and 4.3.1, as Kafka's own log dumper printed them."""
    value = None if stored["value"] is None else bytes.fromhex(stored["value"])
    assert _decoded(bytes.fromhex(stored["key"]), value) == (stored["printed_key"], stored["printed_value"])


def test_the_stored_records_cover_every_type_and_tombstones() -> None:
    """Without this, the test above could pass on less than it claims."""
    kinds = {(entry["printed_key"]["type"], entry["value"] is None) for entry in STORED}
    assert kinds == {
        *((kind, False) for kind in (1, 2, 3, 5, 6, 7, 8, 16)),
        *((kind, True) for kind in (1, 2, 5, 7, 8, 16)),
    }


def test_partition_metadata_is_read() -> None:
    """Type 4, which only 3.9 and 4.0 write: one topic with one rack."""
    raw = b"\0\0" + b"\2" + bytes(16) + b"\2t" + b"\0\0\0\1" + b"\2" + b"\0\0\0\0" + b"\2\2r" + b"\0" + b"\0" + b"\0"
    value = decode_value(Key(records.PARTITION_METADATA, "g"), raw)
    assert value == records.PartitionMetadata((records.TopicMetadata("A" * 22, "t", 1, ((0, ("r",)),)),))


def test_classic_groups_of_old_and_flexible_versions_are_read() -> None:
    """Version 0 has no times and no instance ids; version 4 is flexible."""
    key = Key(records.CLASSIC_GROUP, "g")
    old = b"\0\0" + b"\0\1p" + b"\0\0\0\7" + b"\xff\xff" * 2 + b"\0\0\0\0"
    flexible = b"\0\4" + b"\2p" + b"\0\0\0\7" + b"\0\0" + TIME + b"\1" + b"\0"
    assert decode_value(key, old) == records.ClassicGroup(0, "p", 7, None, None, -1, ())
    assert decode_value(key, flexible) == records.ClassicGroup(4, "p", 7, None, None, TIME_MS, ())


@pytest.mark.parametrize(
    ("record_type", "member", "name"),
    [(10, True, "share group member"), (17, False, "streams group"), (23, False, "streams group topology")],
)
def test_share_and_streams_records_are_named_and_not_read(record_type: int, member: bool, name: str) -> None:
    """Their groups are known, their values are left alone, whatever is in them."""
    key = decode_key(record_type.to_bytes(2) + b"\0\1g" + (b"\0\1m" if member else b""))
    assert (key.group, key.member_id, key.name) == ("g", "m" if member else None, name)
    assert decode_value(key, b"\x7f\xffwhatever") is None


def test_an_unknown_type_is_named_by_its_number() -> None:
    """A type of a later Kafka is not an error, and not a guess."""
    key = decode_key(b"\0\x63whatever")
    assert (key.group, key.name) == (None, "unknown record type 99")
    assert decode_value(key, b"") is None


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (None, b"", "without a key"),
        (b"\0", b"", "does not fit"),
        (KEY[:-1], b"", "does not fit"),
        (KEY + b"\0", b"", "left over"),
        (b"\0\1\0\2\xff\xfe\0\0\0\0\0\0", b"", "not UTF-8"),
        (b"\0\2\xff\xff", b"", "is null"),
        (KEY, b"", "does not fit"),
        (KEY, b"\0\5", "version 5, known are 0 to 4"),
        (KEY, b"\0\3" + bytes(22) + b"\0", "left over"),
        (b"\0\x08\0\1g\0\1m", b"\0\0" + bytes(9) + b"\xff\xff\xff\xff\x7f", "longer than 5|does not fit"),
        (b"\0\2\0\1g", b"\0\3\0\0\0\0\0\0\xff\xff\xff\xff" + bytes(8) + b"\x7f\xff\xff\xff", "does not fit"),
    ],
)
def test_damaged_bytes_are_an_error_that_says_where(key: bytes | None, value: bytes, problem: str) -> None:
    """Nothing is guessed and nothing crashes: a DecodeError names what does not fit."""
    with pytest.raises(DecodeError, match=problem):
        decode_value(decode_key(key), value)


@given(cut=st.integers(min_value=0, max_value=1 << 16), stored=st.sampled_from(STORED))
def test_a_record_cut_short_is_never_read(cut: int, stored: dict[str, Any]) -> None:
    """Every proper prefix of a real value is refused."""
    if stored["value"] is None:
        return
    value, key = bytes.fromhex(stored["value"]), decode_key(bytes.fromhex(stored["key"]))
    with pytest.raises(DecodeError):
        decode_value(key, value[: cut % len(value)])


@given(key=st.binary(max_size=64), value=st.binary(max_size=256))
def test_garbage_is_refused_or_read_but_never_crashes(key: bytes, value: bytes) -> None:
    """Whatever the bytes, the outcome is a value, None, or a DecodeError."""
    with suppress(DecodeError):
        decode_value(decode_key(key), value)


@given(stored=st.sampled_from(STORED), place=st.integers(0, 1 << 16), byte=st.integers(0, 255))
def test_one_damaged_byte_never_crashes(stored: dict[str, Any], place: int, byte: int) -> None:
    """A real record with one byte changed is a value or a DecodeError."""
    key, value = bytes.fromhex(stored["key"]), bytearray.fromhex(stored["value"] or "00")
    value[place % len(value)] = byte
    with suppress(DecodeError):
        decode_value(decode_key(key), bytes(value))


def test_subscriptions_grow_by_version() -> None:
    """Topics and user data, then owned partitions, generation and rack; a newer version is read as the newest known."""
    body = b"\0\0\0\1\0\1t" + b"\xff\xff\xff\xff"
    owned = b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\5"
    rest = b"\0\0\0\7" + b"\0\1r"
    topics, partitions = ("t",), (ConsumerPartitions("t", (5,)),)
    assert decode_subscription(b"\0\0" + body) == Subscription(0, topics, None)
    assert decode_subscription(b"\0\1" + body + owned) == Subscription(1, topics, None, partitions)
    assert decode_subscription(b"\0\3" + body + owned + rest) == Subscription(3, topics, None, partitions, 7, "r")
    assert decode_subscription(b"\0\x09" + body + owned + rest + b"new").rack == "r"


def test_an_assignment_may_be_empty_or_absent() -> None:
    """A member without partitions has an empty assignment, or no bytes at all."""
    assert decode_assignment(b"") == Assignment(0, (), None)
    assert decode_assignment(b"\0\1" + bytes(4) + b"\0\0\0\1x") == Assignment(1, (), b"x")
