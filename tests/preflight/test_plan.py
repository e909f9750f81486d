"""What may be planned: each contradiction and each unknown word is one clear error, all of them at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException

from kafka_trial.errors import InputError
from kafka_trial.preflight.plan import librdkafka_fetch_bytes, make_plans, read_plan_toml

SOUND: dict[str, Any] = {"record_max": "1MB", "partitions": 12, "consumers": 5}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"recrd_max": 1}, "Did you mean 'record_max'?"),
        ({"record_max": None}, "how large is a record? Say --record-max"),
        ({"record_max": 0}, "record_max = 0: it must be above 0"),
        ({"record_max": "5XB"}, "record_max = '5XB' has the unknown unit XB"),
        ({"partitions": None}, "how many partitions? Say --partitions and --consumers"),
        ({"consumers": None}, "how many consumers share these partitions? Say --consumers"),
        ({"consumers": 0}, "consumers = 0 must be a whole number, 1 or more"),
        ({"buffered_per_partition": 0}, "buffered_per_partition = 0 must be a whole number, 1 or more"),
        ({"partitions_per_consumer": 2}, "partitions = 12 over consumers = 5 make 3 each: leave one of the three out"),
        ({"consumers": None, "partitions_per_consumer": 13}, "partitions_per_consumer = 13, but partitions = 12"),
        ({"consumers_per_process": 6}, "consumers_per_process = 6, but consumers = 5 in all"),
        ({"key_max": "2MB"}, "key_max = 2000000 bytes, but a record, its key included, has 1000000"),
        ({"batch_max": "900kB"}, "larger than its own batch of batch_max = 900000 bytes"),
        ({"claim_check": "2MB"}, "claim_check = 2000000 bytes is larger than the record it stands for"),
        ({"compression": "rar"}, "compression = 'rar' is none of: none, gzip"),
        ({"compression": "none", "compression_ratio": 4}, "compression_ratio = 4, but compression is none"),
        ({"compression": "gzip", "producer": {"compression.type": "zstd"}}, "compression = gzip, but the producer's"),
        ({"compression_ratio": 0.5}, "compression_ratio = 0.5 must be 1 or more"),
        ({"producer_library": "pykafka"}, "producer_library = 'pykafka' is none of: java"),
        ({"topic": ["max.message.bytes"]}, "topic must be a table of settings"),
        ({"records_per_fetch": 3}, "records_per_fetch: of which backlog? Say --backlog"),
        ({"backlog": 3}, "how long does a round take? Say --blocking-timeout"),
        ({"backlog": 3, "blocking_timeout": "1 year"}, "blocking_timeout = '1 year' has the unknown unit year"),
        ({"backlog": 3, "service_time": 1, "arrivals_per_s": -1}, "arrivals_per_s = -1 must be a number, 0 or more"),
        ({"topics": {"a": 1}}, "write [[topics]] for each of them"),
    ],
)
def test_what_makes_no_sense_is_told(words: dict[str, Any], said: str) -> None:
    """One problem each: what, where, and what to do."""
    with pytest.raises(InputError) as error:
        make_plans({**SOUND, **words})
    assert (len(error.value.problems), said in str(error.value)) == (1, True), str(error.value)


def test_all_problems_are_told_at_once() -> None:
    """Nobody has to ask three times."""
    with pytest.raises(InputError) as error:
        make_plans({"record_max": "x", "partitions": 0, "nonsense": 1})
    assert len(error.value.problems) == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"fetch.max.bytes": 900000}, "fetch.max.bytes = 900000 below message.max.bytes = 1000000"),
        ({"receive.message.max.bytes": 52429311}, "receive.message.max.bytes = 52429311 below fetch.max.bytes + 512"),
    ],
)
def test_what_librdkafka_does_not_start_with_is_told(settings: dict[str, Any], said: str) -> None:
    """The client itself refuses it."""
    with pytest.raises(InputError, match=said.replace("+", r"\+")):
        make_plans({**SOUND, "consumer_library": "librdkafka", "consumer": settings})
    with pytest.raises(KafkaException, match="must be >="):
        Consumer({"group.id": "g", "bootstrap.servers": "127.0.0.1:1", **settings})


@pytest.mark.parametrize(
    ("settings", "fetch_bytes"),
    [
        ({}, 52428800),
        ({"queued.max.messages.kbytes": 1024}, 1048576),
        ({"queued.max.messages.kbytes": 1}, 1000000),
        ({"message.max.bytes": 300_000_000}, 300_000_000),
        ({"fetch.max.bytes": 2_000_000}, 2_000_000),
    ],
)
def test_librdkafkas_fetch_limit_follows_others(settings: dict[str, int], fetch_bytes: int) -> None:
    """It starts with a receive limit 512 above what it fetches, and not with one byte less."""
    (plan,) = make_plans({**SOUND, "consumer_library": "librdkafka", "consumer": settings})
    assert librdkafka_fetch_bytes(plan.consumer) == fetch_bytes
    whole = {"group.id": "g", "bootstrap.servers": "127.0.0.1:1", "log_level": 0, **settings}
    Consumer({**whole, "receive.message.max.bytes": fetch_bytes + 512}).close()
    with pytest.raises(KafkaException, match="must be >="):
        Consumer({**whole, "receive.message.max.bytes": fetch_bytes + 511})


def test_partitions_are_shared_upwards_and_idle_consumers_are_told() -> None:
    """12 over 5 make 3 for the one who has most; 7 of 5 consumers stand idle nowhere, 2 of 14 do."""
    (plan,), (idle,) = make_plans(SOUND), make_plans({**SOUND, "consumers": 14})
    assert (plan.partitions_per_consumer, plan.notes) == (3, ())
    assert (idle.partitions_per_consumer, idle.notes) == (1, ("2 of 14 consumers have no partition: they stand idle",))


def test_a_file_may_plan_several_topics(tmp_path: Path) -> None:
    """Each has its own words and settings over those in common: a topic split by size."""
    (tmp_path / "plan.toml").write_text(
        "consumers = 4\n[topic]\n'segment.bytes' = '1GiB'\n"
        "[[topics]]\nname = 'small'\nrecord_max = '100kB'\npartitions = 40\n"
        "[[topics]]\nname = 'large'\nrecord_max = '50MB'\npartitions = 4\n"
        "[topics.topic]\n'max.message.bytes' = '60MB'\n"
    )
    small, large = make_plans(read_plan_toml(tmp_path / "plan.toml"))
    assert [(plan.name, plan.record_bytes_max, plan.partitions_per_consumer) for plan in (small, large)] == [
        ("small", 100_000, 10),
        ("large", 50_000_000, 1),
    ]
    assert [dict(plan.topic.given) for plan in (small, large)] == [
        {"segment.bytes": 2**30},
        {"segment.bytes": 2**30, "max.message.bytes": 60_000_000},
    ]


@pytest.mark.parametrize(("text", "said"), [("record_max = ", "cannot be read as TOML"), (None, "Check the path")])
def test_a_file_that_cannot_be_read_is_told(text: str | None, said: str, tmp_path: Path) -> None:
    """By its name."""
    file = tmp_path / "plan.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_plan_toml(file)
