"""The hops that a record passes on its way, in their order: which refuse it, which only limit what comes with it.

Each hop compares a size of its own (an estimate, a batch, a request, a response) with one setting. A limit of the
*fetch* settings refuses nothing since KIP-74: the first batch is returned whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from kafka_trial.preflight.batches import BATCH_OVERHEAD_BYTES, batch_bytes, estimate_bytes, largest, librdkafka_bytes
from kafka_trial.preflight.fetches import (
    largest_batch_bytes,
    largest_decompressed_bytes,
    receive_bytes_max,
    response_overhead_bytes,
    wire_batch_bytes,
)
from kafka_trial.preflight.full_batches import full_batch, lowered
from kafka_trial.preflight.plan import Plan, librdkafka_fetch_bytes
from kafka_trial.preflight.size_settings import FRANZ_GO, INT_MAX, KAFKA_GO, LIBRDKAFKA, OTHER, SARAMA, Settings

REQUEST_OVERHEAD_BYTES: Final = 512  # of a Produce request beside its batch, upwards: header, topic, client id
NOTHING_MOVES_IT: Final = (
    "compress, split the record, or keep its payload elsewhere (claim check): no setting moves this"
)


@dataclass(frozen=True)
class Hop:
    """One hop. Sizes in bytes.

    `needed_bytes` is what the planned record comes to here, which is compared with the limit; `record_limit_bytes` the
    largest record that passes, None at a hop that refuses nothing. `origin` says whose value the limit is, `counts`
    what is counted, `change` what to do where it refuses.
    """

    hop: str
    setting: str
    limit_bytes: int
    refuses: bool
    needed_bytes: int
    record_limit_bytes: int | None
    origin: str
    counts: str
    change: str

    @property
    def passes(self) -> bool:
        """Whether this record gets through here."""
        return not self.refuses or self.needed_bytes <= self.limit_bytes


@dataclass(frozen=True)
class Measure:
    """What a hop counts: the size of a record alone by its bytes, never less than `at_least` for the planned ones."""

    alone: Callable[[int], int]
    counts: str
    at_least: int = 0


def hops_of(plan: Plan) -> list[Hop]:
    """Returns the hops of a plan in the order in which a record meets them."""
    return [*_producer(plan), *_broker(plan), *_followers(plan), *_fetch(plan), *_consumer(plan)]


def refusing_hop(hops: list[Hop]) -> Hop | None:
    """Returns the hop that refuses this record, the first on its way; None where it passes all."""
    return next((hop for hop in hops if not hop.passes), None)


def binding_hop(hops: list[Hop]) -> Hop:
    """Returns the hop that allows the smallest record of all; of several the first on the way."""
    refusing = [hop for hop in hops if hop.record_limit_bytes is not None]
    return min(refusing, key=lambda hop: hop.record_limit_bytes or 0)


def _producer(plan: Plan) -> Iterator[Hop]:
    """Yields the hops before anything is sent.

    Java compares the estimate of the uncompressed record with `max.request.size` and with `buffer.memory`
    (`KafkaProducer.ensureValidRecordSize`), the Python clients with the former. librdkafka compares the record with
    `message.max.bytes` (`rd_kafka_msg_new0`), and its value alone with its queue (`rd_kafka_curr_msgs_add`). franz-go
    compares the batch of the record alone, with the 4 bytes of its length (`tryBuffer`), and the record with what it
    buffers (`Client.produce`), sarama `ProducerMessage.ByteSize`, kafka-go `Message.totalSize`.
    """
    producer, key = plan.producer, plan.key_bytes_max
    plain = Measure(lambda size: batch_bytes(size, key), "61 + the uncompressed record with its lengths")
    estimate = Measure(lambda size: estimate_bytes(size, key), "61 + 21 + the uncompressed record with its lengths")
    measures = {
        LIBRDKAFKA: {
            "message.max.bytes": Measure(librdkafka_bytes, "the uncompressed record + 36"),
            "queue.buffering.max.kbytes": Measure(lambda size: max(0, size - key), "the uncompressed value"),
        },
        FRANZ_GO: {
            "ProducerBatchMaxBytes": Measure(lambda size: 4 + plain.alone(size), f"4 + {plain.counts}"),
            "MaxBufferedBytes": Measure(lambda size: size, "the uncompressed record"),
        },
        # sarama's maximumRecordOverhead is the same 36 bytes as librdkafka's
        SARAMA: {"Producer.MaxMessageBytes": Measure(librdkafka_bytes, "the uncompressed record + 36")},
        KAFKA_GO: {"BatchBytes": Measure(lambda size: 22 + size, "the uncompressed record + 22")},
        OTHER: {"max.request.size": plain},
    }
    others = {"max.request.size": estimate, "buffer.memory": estimate}
    for name, measure in measures.get(producer.library, others).items():
        if producer.size_bytes(name) is not None:
            yield _refusing(plan, PRODUCES, producer, name, measure)


def _broker(plan: Plan) -> Iterator[Hop]:
    """Yields the hops of a Produce request.

    The whole request against `socket.request.max.bytes` (`NetworkReceive`: the connection is closed); the batch, as it
    came and as it is stored, against `max.message.bytes`, and against the segment (both in `UnifiedLog.append`).
    """
    ratio, divided = plan.sent_ratio, " ÷ the ratio" if plan.ratio > 1 else ""
    request = Measure(
        lambda size: batch_bytes(size, plan.key_bytes_max, ratio=ratio) + REQUEST_OVERHEAD_BYTES,
        f"the batch as it is sent + {REQUEST_OVERHEAD_BYTES}",
        plan.batch_bytes_max + REQUEST_OVERHEAD_BYTES,
    )
    yield _refusing(plan, BROKER_RECEIVES, plan.broker, "socket.request.max.bytes", request)
    larger = min(plan.sent_ratio, plan.wire_ratio)  # the batch is compared as it comes, and as it is stored
    batch = Measure(
        lambda size: batch_bytes(size, plan.key_bytes_max, ratio=larger),
        f"the batch: 61 + the record with its lengths{divided if larger > 1 else ''}",
        largest_batch_bytes(plan),
    )
    own, others = ("max.message.bytes", plan.topic), ("message.max.bytes", plan.broker)
    of_batch = _of_topic_or_broker(plan, own, others, batch)
    own, others = ("segment.bytes", plan.topic), ("log.segment.bytes", plan.broker)
    of_segment = _of_topic_or_broker(plan, own, others, batch)
    yield from (of_batch, of_segment)
    yield from (full for hop in (of_batch, of_segment) for full in _full_batches(plan, hop))


def _full_batches(plan: Plan, alone: Hop) -> Iterator[Hop]:
    """Yields the hop of a full batch where the producer does not split it; `alone` is that of the record alone.

    A limit that has to be raised for the record is counted as raised.
    """
    full = full_batch(plan)
    if full is None or full.splits:
        return
    limit = max(alone.limit_bytes, alone.needed_bytes)
    role = (plan.topic if plan.topic.setting_of(alone.setting) else plan.broker).role
    yield replace(
        alone,
        hop=STORES_FULL,
        limit_bytes=limit,
        needed_bytes=full.wire_bytes,
        record_limit_bytes=None,
        origin=alone.origin if alone.passes else "raised, as below",
        counts=full.counts,
        change=f"lower {lowered(plan, limit)} ({full.why}), or raise {alone.setting} of the {role} to "
        f"{full.wire_bytes} bytes or more",
    )


def _followers(plan: Plan) -> Iterator[Hop]:
    """Yields the limits of followers, advisory since KIP-74: they get the first batch whole."""
    for name in ("replica.fetch.max.bytes", "replica.fetch.response.max.bytes"):
        yield _advisory(plan, FOLLOWS, plan.broker, name, plan.broker.size_bytes(name) or 0)


def _fetch(plan: Plan) -> Iterator[Hop]:
    """Yields the limits of a fetch, advisory (KIP-74, KIP-541), and the 32-bit size of its response, which is none."""
    yield _advisory(plan, ANSWERS, plan.broker, "fetch.max.bytes", plan.broker.size_bytes("fetch.max.bytes") or 0)
    response = _stored(plan, response_overhead_bytes(plan), "a response with the first batch alone")
    yield _limited(plan, ANSWERS, "32-bit size of a response", INT_MAX, response, "the protocol", NOTHING_MOVES_IT)
    consumer, name = plan.consumer, "max.partition.fetch.bytes"
    own = consumer.library == LIBRDKAFKA
    of_fetch = librdkafka_fetch_bytes(consumer) if own else consumer.size_bytes("fetch.max.bytes") or 0
    yield _advisory(plan, FETCHES, consumer, "fetch.max.bytes", of_fetch)
    yield _advisory(plan, FETCHES, consumer, name, consumer.size_bytes(name) or 0)


def _consumer(plan: Plan) -> Iterator[Hop]:
    """Yields the hops of what has been fetched.

    librdkafka, kafka-python, franz-go and sarama drop the connection at a larger response, and ask again for ever
    (`rd_kafka_recv`, `KafkaProtocol._validate_frame_size`, `parseReadSize` in franz-go's `broker.go`,
    `responseHeader.decode` in sarama); Java, aiokafka, kafkajs and kafka-go take what comes. librdkafka gives up on
    zstd when its buffer would be larger (`zstd_buffer_bytes`).
    """
    limit, consumer, name = receive_bytes_max(plan), plan.consumer, "receive.message.max.bytes"
    if limit is None:
        return
    response = _stored(plan, response_overhead_bytes(plan), "a response with the first batch alone")
    yield _refusing(plan, FETCHES, consumer, name, response, limit=limit)
    if consumer.library == LIBRDKAFKA and plan.stored_codec == "zstd" and plan.compressed:
        buffer = Measure(
            lambda size: _zstd_bytes(wire_batch_bytes(plan, size), batch_bytes(size, plan.key_bytes_max)),
            "the buffer for the decompressed batch, which grows threefold",
            _zstd_bytes(largest_batch_bytes(plan), largest_decompressed_bytes(plan)),
        )
        yield _refusing(plan, DECOMPRESSES, consumer, name, buffer, limit=limit)


def zstd_buffer_bytes(compressed: int, decompressed: int) -> int:
    """Returns the buffer in which librdkafka decompresses zstd whose size it is not told, as no client tells it.

    It begins with twice the compressed size, and adds twice what it has, at least 4,000 bytes, until all fits; a buffer
    above `receive.message.max.bytes` is an error (`rd_kafka_zstd_decompress`, up to 2.16 at least). So a batch may be
    refused that decompresses to little more than a third of the limit.
    """
    buffer = 2 * compressed
    while buffer < decompressed:
        buffer += max(2 * buffer, 4000)
    return buffer


def _zstd_bytes(stored: int, decompressed: int) -> int:
    return zstd_buffer_bytes(stored - BATCH_OVERHEAD_BYTES, decompressed - BATCH_OVERHEAD_BYTES)


PRODUCES, BROKER_RECEIVES, STORES, FOLLOWS = "producer", "broker, request", "broker, batch", "follower"
STORES_FULL = "broker, full batch"
ANSWERS, FETCHES, DECOMPRESSES = "broker, response", "consumer", "consumer, zstd"


def _stored(plan: Plan, overhead: int, counts: str) -> Measure:
    """Returns the measure of a batch as brokers store and send it, with what else is in the frame."""
    return Measure(
        lambda size: wire_batch_bytes(plan, size) + overhead,
        counts + (f" + {overhead}" if overhead else ""),
        largest_batch_bytes(plan) + overhead,
    )


def _of_topic_or_broker(plan: Plan, own: tuple[str, Settings], others: tuple[str, Settings], batch: Measure) -> Hop:
    """Returns the hop of a topic's setting, which takes the place of the broker's."""
    name, settings = own if own[1].is_given(own[0]) else others
    return _refusing(plan, STORES, settings, name, batch)


def _refusing(
    plan: Plan, hop: str, settings: Settings, name: str, measure: Measure, *, limit: int | None = None
) -> Hop:
    setting, own = settings.setting_of(name), settings.size_bytes(name) or 0
    named = setting.name if setting else name
    value = own if limit is None else limit
    change = f"raise {named} of the {settings.role} to {{needed}} bytes or more"
    return _limited(plan, hop, named, value, measure, _origin(settings, name, value), change)


def _limited(plan: Plan, hop: str, setting: str, limit: int, measure: Measure, origin: str, change: str) -> Hop:
    needed = max(measure.alone(plan.kafka_bytes_max), measure.at_least)
    return Hop(
        hop=hop,
        setting=setting,
        limit_bytes=limit,
        refuses=True,
        needed_bytes=needed,
        record_limit_bytes=largest(lambda size: measure.alone(size) <= limit),
        origin=origin,
        counts=measure.counts,
        change=change.format(needed=needed),
    )


def _advisory(plan: Plan, hop: str, settings: Settings, name: str, limit: int) -> Hop:
    setting = settings.setting_of(name)
    return Hop(
        hop=hop,
        setting=setting.name if setting else name,
        limit_bytes=limit,
        refuses=False,
        needed_bytes=largest_batch_bytes(plan),
        record_limit_bytes=None,
        origin=_origin(settings, name, limit),
        counts="the batch as it is stored",
        change="",
    )


def _origin(settings: Settings, name: str, value: int) -> str:
    if value != (settings.size_bytes(name) or 0):
        return f"adjusted by {settings.library}"
    return "set" if settings.is_given(name) else f"{settings.whose} default"
