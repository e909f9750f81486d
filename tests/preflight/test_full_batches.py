"""Batches of several records: which libraries lose one that brokers refuse, and what has to be lowered to what.

The topic takes 32768 bytes, the records have up to 20 kB: each passes alone, two of them do not. Measured (200 records
at a time, on Kafka 4.3.1): docs/preflight.md.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS
from kafka_trial.preflight.answer import Answer, answer, changes, name_of, notes
from kafka_trial.preflight.full_batches import BATCHING, FullBatch, full_batch
from kafka_trial.preflight.plan import make_plans
from kafka_trial.preflight.size_settings import LIBRARIES

LIMIT = 32768
SMALL_TOPIC = {"topic": {"max.message.bytes": LIMIT}}
WHOLE = "broker, full batch: max.message.bytes"
FULL: list[tuple[str, dict[str, Any], str, dict[str, int]]] = [
    ("librdkafka", {}, "batch.size", {"batch.size": 32768, "batch.num.messages": 1}),
    ("librdkafka", {"batch.size": "2MB", "message.max.bytes": 40000}, "message.max.bytes", {"batch.size": 32768}),
    ("franz-go", {}, "ProducerBatchMaxBytes", {"ProducerBatchMaxBytes": 32768}),
    ("sarama", {}, "Producer.MaxMessageBytes", {"Producer.MaxMessageBytes": 32768, "Producer.Flush.MaxMessages": 1}),
    ("kafka-go", {}, "BatchBytes", {"BatchBytes": 32707, "BatchSize": 1}),
    ("aiokafka", {"max_batch_size": 65536}, "max_batch_size", {"max_batch_size": 32768}),
    ("java-3", {"batch.size": 65536}, "batch.size", {"batch.size": 32768}),
    ("other", {"batch.size": 65536}, "batch.size", {"batch.size": 32768, "batch.num.messages": 1}),
]
ROW = ("library", "producer", "setting", "lowered")


def planned(library: str, record: int | str = "20kB", **words: Any) -> Answer:
    """Returns the answer for a producer of this library."""
    (plan,) = make_plans({"record_max": record, "partitions_per_consumer": 1, "producer_library": library, **words})
    return answer(plan)


def test_every_library_says_how_it_fills_a_batch() -> None:
    """None is forgotten."""
    assert set(BATCHING) == set(LIBRARIES)


@pytest.mark.parametrize(ROW, FULL, ids=[f"{row[0]}-{row[2]}" for row in FULL])
def test_a_full_batch_that_is_lost_is_a_no(
    library: str, producer: dict[str, Any], setting: str, lowered: dict[str, int]
) -> None:
    """The hop says which setting lets it grow; what is to be done names each setting with its value."""
    one = planned(library, producer=producer, **SMALL_TOPIC)
    (told,) = changes(one)
    assert one.refused_by is not None
    assert (one.fits, name_of(one.refused_by), f"by {setting}" in one.refused_by.counts) == (False, WHOLE, True)
    found = {name: int(value) for name, value in re.findall(r"([\w.]+)(?: of the producer)? to (\d+)", told)}
    assert {name: found.get(name) for name in lowered} == lowered


@pytest.mark.parametrize(ROW, FULL, ids=[f"{row[0]}-{row[2]}" for row in FULL])
def test_what_it_says_to_lower_is_enough_and_not_too_much(
    library: str, producer: dict[str, Any], setting: str, lowered: dict[str, int]
) -> None:
    """Each way alone, at its value; the setting of bytes at a hundred more is still too much."""
    for name, value in lowered.items():
        assert planned(library, producer={**producer, name: value}, **SMALL_TOPIC).fits, name
    size = next(iter(lowered))
    assert not planned(library, producer={**producer, size: lowered[size] + 100}, **SMALL_TOPIC).fits


@pytest.mark.parametrize("library", LIBRARIES)
def test_default_settings_fit_a_topic_of_default_settings(library: str) -> None:
    """No library's own batches are above Kafka's own limit."""
    assert planned(library).fits


@pytest.mark.parametrize(
    ("library", "producer"),
    [("java", {"batch.size": 65536}), ("kafka-python", {"batch_size": 65536})],
    ids=["java", "kafka-python"],
)
def test_a_batch_that_is_split_and_sent_again_is_a_note(library: str, producer: dict[str, Any]) -> None:
    """Its parts pass; each refusal costs a request, and Java before 4.2 does not come to an end."""
    one = planned(library, producer=producer, **SMALL_TOPIC)
    told = " ".join(notes(one))
    assert (one.fits, "sent again in parts" in told, "KAFKA-8350" in told) == (True, True, library == "java")


def test_another_client_that_splits_says_so() -> None:
    """By a setting of its own."""
    splits = {"batch.size": 65536, "splits.refused.batches": "yes"}
    assert planned("other", producer=splits, **SMALL_TOPIC).fits


@pytest.mark.parametrize("library", ["kafkajs", "other"])
def test_where_nothing_limits_a_batch_it_is_said_how_many_records_pass_together(library: str) -> None:
    """What is sent at once is the application's: one record of 20 kB."""
    one = planned(library, **SMALL_TOPIC)
    assert (one.fits, "one of more than 1 of the largest record is refused whole" in " ".join(notes(one))) == (
        True,
        True,
    )


def test_a_batch_is_what_batch_max_says() -> None:
    """A producer that waits for every answer fills none."""
    fits = [planned("librdkafka", batch_max=size, **SMALL_TOPIC).fits for size in ("21kB", "33kB")]
    assert fits == [True, False]


def test_a_limit_that_is_raised_for_the_record_counts_as_raised() -> None:
    """A record of 2 MB needs a larger topic anyway: its full batches are no further question."""
    one = planned("franz-go", "2MB", producer={"ProducerBatchMaxBytes": "3MB"}, topic={"max.message.bytes": "3MB"})
    small = planned("librdkafka", "900kB", **SMALL_TOPIC)
    assert (one.fits, [hop.hop for hop in small.hops if not hop.passes]) == (
        True,
        ["broker, batch", "broker, full batch"],
    )
    assert "batch.size of the producer to 900072 bytes" in changes(small)[1]


def test_compression_makes_a_full_batch_smaller_and_leaves_more_room() -> None:
    """Ten times smaller it is 100 kB of a million: 61 + (1000000 - 61) ÷ 10."""
    (plan,) = make_plans(
        {"record_max": "20kB", "partitions_per_consumer": 1, "producer_library": "librdkafka", "compression_ratio": 10}
    )
    expected = FullBatch(
        "batch.size", 1_000_000, 100_055, splits=False, why="librdkafka does not split a refused batch"
    )
    assert full_batch(plan) == expected
    told = changes(planned("librdkafka", compression_ratio=10, **SMALL_TOPIC))[0]
    assert "batch.size of the producer to 327131 bytes" in told


def test_a_segment_smaller_than_a_full_batch_refuses_it_too() -> None:
    """RECORD_LIST_TOO_LARGE."""
    refused = planned("librdkafka", topic={"segment.bytes": 500_000}).refused_by
    assert refused is not None
    assert name_of(refused) == "broker, full batch: segment.bytes"


def test_franz_go_does_not_start_with_less_to_read_than_to_fetch() -> None:
    """As its own validation says."""
    with pytest.raises(Exception, match="BrokerMaxReadBytes = 1024 below FetchMaxBytes = 52428800"):
        planned("java", consumer_library="franz-go", consumer={"BrokerMaxReadBytes": 1024})


@pytest.mark.parametrize(("setting", "status"), [("batch.size=1000000", FAIL), ("batch.size=30000", PASS)])
def test_the_command_says_no_and_yes(setting: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line, with the status."""
    words = "--record-max 20kB --partitions 1 --consumers 1 --producer-library librdkafka"
    found = main(
        ["preflight", *words.split(), "--topic-setting", "max.message.bytes=32768", "--producer-setting", setting]
    )
    assert (found, capsys.readouterr().out.partition(":")[0]) == (status, "NO" if status == FAIL else "YES")
