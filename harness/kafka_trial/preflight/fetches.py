"""What one fetch may bring, and what a process of consumers holds of it at its worst.

Of a fetch: without a cap, with it, and how many records of a partition at once. The rules are KIP-74's, in force since
Kafka 0.10.1 (Fetch version 3), as `ReplicaManager.readFromLog` has them: partitions are read one after the other until
the limit of the response is used up; the first that has anything gives its first batch whole, however large, and every
other one only what fits into both limits.

Held, in bytes, are raw batches, decompressed ones, and records handed out. Derived from each library's source code; for
Java and librdkafka also measured (`reports/large_records.jsonl`). What a JVM, an interpreter or the application needs
for itself is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_trial.preflight.batches import batch_bytes, divided
from kafka_trial.preflight.plan import Plan, librdkafka_fetch_bytes
from kafka_trial.preflight.size_settings import (
    AIOKAFKA,
    FRANZ_GO,
    INT_MAX,
    JAVA,
    KAFKA_PYTHON,
    LIBRDKAFKA,
    QUEUED,
    SARAMA,
)
from kafka_trial.preflight.sizes import counted

RESPONSE_OVERHEAD_BYTES: Final = 512  # what librdkafka allows for it: header, topic, and the like
PARTITION_OVERHEAD_BYTES: Final = 48  # FetchResponse.json: index, error, three offsets, replica, lengths: 35 to 48
# librdkafka's rd_kafka_op_t of a fetched message, its rd_kafka_msg_t within (`rd_kafka_op_new0`): 112 + 192 bytes on 64
# bits, of which malloc makes 320.
OPERATION_BYTES: Final = 320


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


@dataclass(frozen=True)
class Held:
    """One part of what a consumer holds, and how it was counted."""

    part: str
    size_bytes: int
    formula: str


def buffered_bytes(plan: Plan) -> int:
    """Returns what buffers of whole records need, such as an application has between its polls and its workers:

    consumers per process × partitions per consumer × buffered records per partition × the largest record. A buffer of
    one record is the least that any consumer has. With the claim-check
    pattern (the payload is stored elsewhere) a record is its reference.
    """
    records = plan.consumers_per_process * plan.partitions_per_consumer * (plan.buffered_per_partition or 1)
    return records * plan.kafka_bytes_max


def memory_parts(plan: Plan) -> list[Held]:
    """Returns what one consumer holds at its worst, part by part: its client, and a payload that it gets elsewhere."""
    fetched = _fetched(plan)
    handed_out = _handed_out(plan, int(fetched.size_bytes * plan.wire_ratio))
    decompressed = _decompressed(plan)
    operations = _librdkafka_operations(plan, decompressed or [fetched])
    kept = [*_kept_by_librdkafka(plan), *_kept_by_java(plan, handed_out)]
    parts = [fetched, *decompressed, *operations, *_queued(plan), handed_out, *kept]
    if plan.claim_check_bytes is not None:
        parts.append(Held("payload from elsewhere", plan.record_bytes_max, "one record in hand"))
    return [part for part in parts if part.size_bytes]


def process_bytes(plan: Plan) -> int:
    """Returns what a process holds at its worst: its consumers' clients, and its own buffers where it has some."""
    clients = plan.consumers_per_process * sum(part.size_bytes for part in memory_parts(plan))
    return clients + (buffered_bytes(plan) if plan.buffered_per_partition else 0)


def _fetched(plan: Plan) -> Held:
    """Returns the raw bytes of responses.

    Java from 4.0 asks a broker for nothing while it holds data of it (`AbstractFetch.bufferedNodes`): a response per
    broker. Before, and in kafka-python and aiokafka, only partitions with data are left out
    (`fetchablePartitions`, `_fetchable_partitions`, `_get_actions_per_node`): in the end each partition has its own.
    librdkafka's messages point into the response; its queue takes more until it holds
    `queued.max.messages.kbytes` or `queued.min.messages`, and a response of each broker on top
    (`rd_kafka_toppar_fetch_decide`). franz-go has one fetch of each broker under way or buffered (`FetchMaxBytes` in
    config.go). Of sarama, kafkajs, kafka-go and others a piece of each partition is counted.
    """
    brokers, capped = plan.leading_brokers, capped_bytes(plan)
    library = plan.consumer.library
    if library in (JAVA, FRANZ_GO):
        return Held("fetched", brokers * capped, f"a response of each of {counted(brokers, 'broker')} × {capped}")
    if library == LIBRDKAFKA:
        if plan.compressed:
            return Held("responses", brokers * capped, f"a response of each of {counted(brokers, 'broker')} × {capped}")
        queued, setting = _queued_bytes(plan)
        formula = f"{setting} + a response of each of {counted(brokers, 'broker')} × {capped}"
        return Held("fetched", queued + brokers * capped, formula)
    limits = fetch_limits(plan)
    chunk = max(min(limits.of_partition, limits.of_response), largest_batch_bytes(plan))
    partitions = plan.partitions_per_consumer
    return Held(
        "fetched",
        partitions * chunk,
        f"{counted(partitions, 'partition')} × {chunk} (the larger of max.partition.fetch.bytes and one batch)",
    )


def _queued_bytes(plan: Plan) -> tuple[int, str]:
    """Returns what librdkafka's queue takes before it asks for no more, and by which of its two limits."""
    by_size = plan.consumer.size_bytes("queued.max.messages.kbytes") or 0
    most = plan.consumer.size_bytes("queued.min.messages") or 0
    if most * plan.kafka_bytes_max < by_size:
        return most * plan.kafka_bytes_max, f"queued.min.messages {most} × {plan.kafka_bytes_max}"
    return by_size, f"queued.max.messages.kbytes {by_size}"


def _librdkafka_operations(plan: Plan, holding: list[Held]) -> list[Held]:
    """Returns what librdkafka keeps beside each message of its queue (`rd_kafka_op_new_fetch_msg`).

    Counted for as many of the largest records as there is room for: of smaller ones there may be more, up to
    `queued.min.messages` and those of a response.
    """
    if plan.consumer.library != LIBRDKAFKA:
        return []
    messages = sum(held.size_bytes for held in holding) // plan.kafka_bytes_max
    formula = f"{counted(messages, 'message')} of {plan.kafka_bytes_max} × {OPERATION_BYTES}"
    return [Held("message overhead", messages * OPERATION_BYTES, formula)]


def _decompressed(plan: Plan) -> list[Held]:
    """Returns what is decompressed beside the raw bytes.

    librdkafka decompresses whole responses into its queue, kafka-python a batch at a time, and copies it once more
    (`DefaultRecordBatch._maybe_uncompress`), the others a batch at a time; Java as a stream, record by record.
    """
    if not plan.compressed:
        return []
    library, batch = plan.consumer.library, largest_decompressed_bytes(plan)
    if library == LIBRDKAFKA:
        queued, setting = _queued_bytes(plan)
        several = plan.leading_brokers * max(batch, int(capped_bytes(plan) * plan.wire_ratio))
        formula = f"{setting} + decompressed responses {several}"
        return [Held("decompressed", queued + several, formula)]
    if library == KAFKA_PYTHON:
        return [Held("decompressed", 2 * batch, f"a batch of {batch}, and its copy")]
    if library.startswith(JAVA):
        return [Held("decompressed", plan.kafka_bytes_max, "a record at a time")]
    return [Held("decompressed", batch, f"a batch of {batch}")]


def _queued(plan: Plan) -> list[Held]:
    """Returns the records that wait between the client and the application: those of sarama of each partition
    (`ChannelBufferSize`), those of kafka-go of a reader (`QueueCapacity`)."""
    setting, most = plan.consumer.setting_of(QUEUED), plan.consumer.size_bytes(QUEUED) or 0
    if setting is None:
        return []
    each = plan.partitions_per_consumer if plan.consumer.library == SARAMA else 1
    of_each = f" of each of {counted(each, 'partition')}" if each > 1 else ""
    return [
        Held("queued", each * most * plan.kafka_bytes_max, f"{setting.name} {most} × {plan.kafka_bytes_max}{of_each}")
    ]


def _handed_out(plan: Plan, fetched_bytes: int) -> Held:
    """Returns the records that a poll hands out, copies beside what was fetched: at most all that was.

    Java and kafka-python: `max.poll.records`; aiokafka: all, unless `max_poll_records` is set; librdkafka: one, its
    own message or the copy that bindings of other languages make of it (confluent-kafka's `Message`).
    """
    if plan.consumer.library == LIBRDKAFKA or plan.consumer.setting_of("max.poll.records") is None:
        return Held("handed out", plan.kafka_bytes_max, "a record at a time")
    most = plan.consumer.size_bytes("max.poll.records")
    if most is None:
        return Held("handed out", fetched_bytes, "all that was fetched: max_poll_records is not set")
    records = most * plan.kafka_bytes_max
    if records < fetched_bytes:
        return Held("handed out", records, f"max.poll.records {most} × {plan.kafka_bytes_max}")
    return Held("handed out", fetched_bytes, f"all that was fetched: less than max.poll.records {most} records")


def _kept_by_librdkafka(plan: Plan) -> list[Held]:
    """Returns what librdkafka keeps of responses whose messages have left its queue in part.

    Each message refers to the response that it came with (`rd_kafka_buf_keep` in `rd_kafka_op_new_fetch_msg`), so a
    response is kept until its last message is handed out, while the queue asks for the next one: one of each broker.
    Of compressed batches the messages refer to what was decompressed, a batch at a time, and not to the response.
    """
    if plan.consumer.library != LIBRDKAFKA or plan.compressed:
        return []
    brokers, capped = plan.leading_brokers, capped_bytes(plan)
    formula = f"a response of each of {counted(brokers, 'broker')} × {capped}, until its last message is handed out"
    return [Held("handed out in part", brokers * capped, formula)]


def _kept_by_java(plan: Plan, handed_out: Held) -> list[Held]:
    """Returns what Java's consumer keeps while the next response comes in.

    The part of a response that was read last stays referred to, and with it all of that response, until the next one
    is begun (`FetchBuffer.nextInLineFetch`). The application still holds the records of its previous poll while those
    of the next are made. A socket is read through a buffer outside of the heap, as large as the
    response, which its thread keeps (`sun.nio.ch.Util`).
    """
    if not plan.consumer.library.startswith(JAVA):
        return []
    capped = capped_bytes(plan)
    return [
        Held("previous response", max(capped, handed_out.size_bytes), "or the records of the previous poll"),
        Held("outside of the heap", capped, f"a response, as it is read from the socket: {capped}"),
    ]
