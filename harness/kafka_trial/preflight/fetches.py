"""What one fetch may bring: without a cap, with it, and how many records of a partition at once.

The rules are KIP-74's, in force since Kafka 0.10.1 (Fetch version 3), as `ReplicaManager.readFromLog` has them:
partitions are read one after the other until the limit of the response is used up; the first that has anything gives
its first batch whole, however large, and every other one only what fits into both limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_trial.preflight.batches import batch_bytes, divided
from kafka_trial.preflight.knobs import AIOKAFKA, INT_MAX, KAFKA_PYTHON, LIBRDKAFKA
from kafka_trial.preflight.plan import Plan, librdkafka_fetch_bytes

RESPONSE_OVERHEAD_BYTES: Final = 512  # what librdkafka allows for it: header, topic, and the like
PARTITION_OVERHEAD_BYTES: Final = 48  # FetchResponse.json: index, error, three offsets, replica, lengths: 35 to 48


@dataclass(frozen=True)
class FetchLimits:
    """The limits that a fetch of this consumer has, in bytes."""

    of_response: int
    of_partition: int


def fetch_limits(plan: Plan) -> FetchLimits:
    """Returns the limits: that of a response is the least of consumer's and broker's `fetch.max.bytes` (KIP-541)."""
    consumer = plan.consumer
    if consumer.library == LIBRDKAFKA:
        of_client = librdkafka_fetch_bytes(consumer)
    else:
        of_client = consumer.size_bytes("fetch.max.bytes") or 0
    of_broker = plan.broker.size_bytes("fetch.max.bytes") or 0
    return FetchLimits(min(of_client, of_broker), consumer.size_bytes("max.partition.fetch.bytes") or 0)


def wire_batch_bytes(plan: Plan, record_bytes: int) -> int:
    """Returns the size of a batch with this one record, as brokers store and send it."""
    return batch_bytes(record_bytes, plan.key_bytes_max, ratio=plan.wire_ratio)


def largest_batch_bytes(plan: Plan) -> int:
    """Returns the size of the largest batch on the wire: of the largest record alone, or what `batch_max` says."""
    alone = wire_batch_bytes(plan, plan.kafka_bytes_max)
    several = plan.batch_bytes_max if plan.compressed else int(plan.batch_bytes_max * plan.ratio)
    return max(alone, several)


def largest_decompressed_bytes(plan: Plan) -> int:
    """Returns the size of the largest batch once it is decompressed: `batch_max` × the ratio, or the record alone."""
    return max(batch_bytes(plan.kafka_bytes_max, plan.key_bytes_max), int(plan.batch_bytes_max * plan.ratio))


def demand_bytes(plan: Plan) -> int:
    """Returns what one fetch asks for without a cap: the largest record of every partition of it, at once.

    record ÷ compression ratio × partitions per consumer ÷ brokers: the formula of KAFKA-1196's reporters.
    """
    return divided(plan.kafka_bytes_max, plan.wire_ratio) * plan.partitions_per_fetch


def capped_bytes(plan: Plan) -> int:
    """Returns the most record data that one response brings, by the rules of KIP-74.

    First partition: max(least limit, first batch). The others: at most `max.partition.fetch.bytes` each, together what
    the first one left of the response's limit.
    """
    limits, batch = fetch_limits(plan), largest_batch_bytes(plan)
    first = max(min(limits.of_partition, limits.of_response), batch)
    others = min((plan.partitions_per_fetch - 1) * limits.of_partition, max(0, limits.of_response - first))
    return first + others


def response_overhead_bytes(plan: Plan) -> int:
    """Returns what a response has beside record data, upwards: 512 bytes, and 48 for each of its partitions."""
    return RESPONSE_OVERHEAD_BYTES + PARTITION_OVERHEAD_BYTES * plan.partitions_per_fetch


def encodable(record_data_bytes: int) -> bool:
    """Tells whether a response of this size can be sent: its size is a signed 32-bit number (KAFKA-1196)."""
    return record_data_bytes <= INT_MAX


def receive_bytes_max(plan: Plan) -> int | None:
    """Returns the largest response that the client takes; None for a client without such a limit.

    librdkafka raises a default to `fetch.max.bytes` + 512 (`rd_kafka_conf_finalize`); kafka-python 3 raises even a
    given value to `fetch_max_bytes` + `max_partition_fetch_bytes` (`KafkaConsumer.__init__`).
    """
    consumer = plan.consumer
    limit = consumer.size_bytes("receive.message.max.bytes")
    if limit is None or consumer.library == AIOKAFKA:
        return None
    if consumer.library == KAFKA_PYTHON:
        of_fetch, of_partition = (consumer.size_bytes(n) or 0 for n in ("fetch.max.bytes", "max.partition.fetch.bytes"))
        return max(limit, of_fetch + of_partition)
    given = consumer.is_given("receive.message.max.bytes") or consumer.library != LIBRDKAFKA
    return limit if given else max(limit, librdkafka_fetch_bytes(consumer) + 512)


def records_per_fetch(plan: Plan) -> int:
    """Returns how many of the largest records a fetch brings of one partition: what fits into both limits, or 1."""
    limits = fetch_limits(plan)
    return max(1, min(limits.of_partition, limits.of_response) // wire_batch_bytes(plan, plan.kafka_bytes_max))
