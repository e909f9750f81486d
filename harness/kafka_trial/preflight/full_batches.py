"""Batches of several records: how large each producer library lets one grow, and what it does when brokers refuse it.

A broker compares the whole batch with `max.message.bytes` (MESSAGE_TOO_LARGE) and with the segment
(RECORD_LIST_TOO_LARGE). Records that would pass alone are then lost together, unless the library splits the batch and
sends its parts. What each does, by its source:

- Java from 4.2 halves it until its parts pass (`RecordAccumulator.splitAndReenqueue`). Up to 4.1 it makes batches of
  `batch.size` of it again, and repeats that until `delivery.timeout.ms` has passed (KAFKA-8350).
- kafka-python 3.0.12 halves it (`split_and_reenqueue` in `kafka/producer/record_accumulator.py`).
- librdkafka 2.16 fills up to the lesser of `batch.size` and `message.max.bytes`, and up to `batch.num.messages`
  (`rd_kafka_msgset_writer_write_msgq` in `rdkafka_msgset_writer.c`); a refused batch fails (`rdkafka_request.c`).
- aiokafka 0.14: `max_batch_size`; a refused batch fails (`_can_retry` in `aiokafka/producer/sender.py`).
- franz-go 1.22.3: `ProducerBatchMaxBytes` (`recBatch.tryBuffer`); it fails (`handleReqRespBatch`; both in
  `pkg/kgo/sink.go`).
- sarama 1.61.1: `Producer.MaxMessageBytes`, which limits records and batches, and `Producer.Flush.MaxMessages`
  (`wouldOverflow` in `produce_set.go`); it fails (`handleSuccess` in `async_producer.go`).
- kafka-go 0.4.51: `BatchBytes` and `BatchSize` (`writeBatch.add` in `writer.go`), where the 61 bytes of the batch do
  not count; it fails, as the error is not temporary (`writer.go`, `error.go`).
- kafkajs 2.2.4 has no limit: all messages of one `send` to a partition are one batch
  (`src/producer/groupMessagesPerPartition.js`); it fails (`retriable: false` in `src/protocol/error.js`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kafka_trial.preflight.batches import BATCH_OVERHEAD_BYTES, batch_bytes, divided
from kafka_trial.preflight.plan import Plan
from kafka_trial.preflight.size_settings import (
    AIOKAFKA,
    FRANZ_GO,
    JAVA,
    JAVA_3,
    KAFKA_GO,
    KAFKA_PYTHON,
    KAFKAJS,
    LIBRDKAFKA,
    OTHER,
    SARAMA,
)

DOES_NOT_SPLIT: Final = "{library} does not split a refused batch"
SPLITS_THE_SAME: Final = (
    "up to 4.1, Java's producer splits a refused batch into batches of batch.size again (KAFKA-8350)"
)


@dataclass(frozen=True)
class Batching:
    """How a library fills a batch: the settings that limit its bytes before compression, and the count of its records.

    `splits`: it sends a refused batch again in parts until these pass. `why` says what it does where it does not.
    `uncounted_bytes`: so much larger than the setting a batch may be.
    """

    by_size: tuple[str, ...]
    by_count: str = ""
    splits: bool = False
    why: str = DOES_NOT_SPLIT
    uncounted_bytes: int = 0


BATCHING: Final[Mapping[str, Batching]] = {
    JAVA: Batching(("batch.size",), splits=True),
    JAVA_3: Batching(("batch.size",), why=SPLITS_THE_SAME),
    KAFKA_PYTHON: Batching(("batch_size",), splits=True),
    LIBRDKAFKA: Batching(("batch.size", "message.max.bytes"), "batch.num.messages"),
    AIOKAFKA: Batching(("max_batch_size",)),
    FRANZ_GO: Batching(("ProducerBatchMaxBytes",)),
    SARAMA: Batching(("Producer.MaxMessageBytes",), "Producer.Flush.MaxMessages"),
    KAFKA_GO: Batching(("BatchBytes",), "BatchSize", uncounted_bytes=BATCH_OVERHEAD_BYTES),
    KAFKAJS: Batching(()),
    OTHER: Batching(("batch.size",), "batch.num.messages"),
}


@dataclass(frozen=True)
class FullBatch:
    """The largest batch of several records that a producer makes: its bytes before compression, and on the wire.

    `setting` is what limits it; `splits` whether it is sent in parts where brokers refuse it.
    """

    setting: str
    plain_bytes: int
    wire_bytes: int
    splits: bool
    why: str

    @property
    def counts(self) -> str:
        """What is counted, as reports say it."""
        return f"a full batch, by {self.setting}" + (" ÷ the ratio" if self.wire_bytes < self.plain_bytes else "")


def full_batch(plan: Plan) -> FullBatch | None:
    """Returns the largest batch of several records; None where no setting limits it, or `batch_max` says it."""
    if plan.batch_bytes_max:
        return None
    producer = plan.producer
    habit = BATCHING[producer.library]
    sizes = {name: size for name in habit.by_size if (size := producer.size_bytes(name)) is not None}
    if habit.by_count and (count := producer.size_bytes(habit.by_count)):
        sizes[habit.by_count] = BATCH_OVERHEAD_BYTES + count * _record_bytes(plan)
    if not sizes:
        return None
    setting = min(sizes, key=lambda name: sizes[name])
    plain = max(sizes[setting], _record_bytes(plan) + BATCH_OVERHEAD_BYTES)
    splits = habit.splits or producer.word("splits.refused.batches") == "yes"
    return FullBatch(
        setting, plain, _wire_bytes(plain, _ratio(plan)), splits, habit.why.format(library=producer.library)
    )


def lowered(plan: Plan, limit_bytes: int) -> str:
    """Returns which settings to lower, and to what, so that a full batch is within the limit of the brokers."""
    habit = BATCHING[plan.producer.library]
    room = int((limit_bytes - BATCH_OVERHEAD_BYTES) * _ratio(plan))
    size = max(1, BATCH_OVERHEAD_BYTES + room - habit.uncounted_bytes)
    ways = [f"{habit.by_size[0]} of the producer to {size} bytes or less"]
    if habit.by_count:
        ways.append(f"{habit.by_count} to {records_within(plan, limit_bytes)}")
    return ", or ".join(ways)


def records_within(plan: Plan, limit_bytes: int) -> int:
    """Returns how many of the largest records a batch within this limit holds, at least 1."""
    return max(1, int((limit_bytes - BATCH_OVERHEAD_BYTES) * _ratio(plan)) // _record_bytes(plan))


def _record_bytes(plan: Plan) -> int:
    return batch_bytes(plan.kafka_bytes_max, plan.key_bytes_max) - BATCH_OVERHEAD_BYTES


def _wire_bytes(plain_bytes: int, ratio: Fraction) -> int:
    return BATCH_OVERHEAD_BYTES + divided(plain_bytes - BATCH_OVERHEAD_BYTES, ratio)


def _ratio(plan: Plan) -> Fraction:
    """Returns the ratio that counts: a batch is compared as it comes, and as it is stored."""
    return min(plan.sent_ratio, plan.wire_ratio)
