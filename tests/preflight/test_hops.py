"""Every hop at its limit and one byte above it; which of them refuse, and which only limit what comes with a record."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.preflight.answer import Answer, answer, name_of, notes
from kafka_trial.preflight.hops import zstd_buffer_bytes
from kafka_trial.preflight.plan import make_plans

ROOM = 500_000_000
# Every other hop is far away.
WIDE: dict[str, Any] = {
    "partitions": 6,
    "consumers": 2,
    "broker": {"socket.request.max.bytes": ROOM, "message.max.bytes": ROOM, "log.segment.bytes": ROOM},
}
OF_JAVA = {"max.request.size": ROOM, "buffer.memory": ROOM}
OF_LIBRDKAFKA = {"message.max.bytes": ROOM}


def planned(record: int, **words: Any) -> Answer:
    """Returns the answer for a record where every hop but those of `words` is far away."""
    settings = {role: {**WIDE.get(role, {}), **words.pop(role, {})} for role in ("broker", "topic", "consumer")}
    if words.get("producer_library", "java") == "java":
        settings["producer"] = {**OF_JAVA, **words.pop("producer", {})}
    (plan,) = make_plans({**WIDE, "record_max": record, **settings, **words})
    return answer(plan)


REFUSING: list[tuple[str, dict[str, Any], int]] = [
    ("producer: max.request.size", {"producer": {"max.request.size": 1_048_576}}, 1_048_489),
    ("producer: buffer.memory", {"producer": {"buffer.memory": 1_048_576}}, 1_048_489),
    (
        "producer: message.max.bytes",
        {"producer_library": "librdkafka", "producer": {"message.max.bytes": 1_000_000}},
        999_964,
    ),
    (
        "producer: queue.buffering.max.kbytes",
        {
            "producer_library": "librdkafka",
            "producer": {**OF_LIBRDKAFKA, "queue.buffering.max.kbytes": 1024},
            "key_max": 10,
        },
        1_048_586,
    ),
    (
        "producer: max_request_size",
        {"producer_library": "kafka-python", "producer": {"max_request_size": 1_048_576}},
        1_048_489,
    ),
    (
        "producer: max_request_size",
        {"producer_library": "aiokafka", "producer": {"max_request_size": 1_048_576}},
        1_048_489,
    ),
    ("broker, request: socket.request.max.bytes", {"broker": {"socket.request.max.bytes": 1_048_576}}, 1_047_992),
    ("broker, batch: message.max.bytes", {"broker": {"message.max.bytes": 1_048_588}}, 1_048_516),
    ("broker, batch: max.message.bytes", {"topic": {"max.message.bytes": 1_048_588}}, 1_048_516),
    ("broker, batch: segment.bytes", {"topic": {"segment.bytes": 1_048_588}}, 1_048_516),
    ("broker, batch: log.segment.bytes", {"broker": {"log.segment.bytes": 1_048_588}}, 1_048_516),
    (
        "consumer: receive.message.max.bytes",
        {
            "consumer_library": "librdkafka",
            "consumer": {"fetch.max.bytes": 1_000_000, "receive.message.max.bytes": 1_000_512},
        },
        999_784,  # a batch and 656 bytes for a response of 3 partitions
    ),
    (
        "consumer: receive_message_max_bytes",
        {"consumer_library": "kafka-python", "consumer": {"receive_message_max_bytes": 60_000_000}},
        59_999_270,
    ),
    (
        "consumer, zstd: receive.message.max.bytes",
        {
            "consumer_library": "librdkafka",
            "consumer": {"fetch.max.bytes": 1_000_000, "receive.message.max.bytes": 1_000_512},
            "compression": "zstd",
            "compression_ratio": 10,
        },
        555_829,  # 10 times smaller: the buffer is 2, 6 and 18 times what is compressed
    ),
]


@pytest.mark.parametrize(
    ("hop", "words", "limit"), REFUSING, ids=[f"{hop}-{n}" for n, (hop, _, _) in enumerate(REFUSING)]
)
def test_a_record_passes_at_the_limit_and_not_above_it(hop: str, words: dict[str, Any], limit: int) -> None:
    """The hop is named, and the limit is the largest record, whatever record is planned."""
    at, above = planned(limit, **words), planned(limit + 1, **words)
    assert (at.fits, at.refused_by, at.record_limit_bytes) == (True, None, limit)
    assert (above.fits, above.refused_by and name_of(above.refused_by)) == (False, hop)
    assert (name_of(above.binding), above.record_limit_bytes, name_of(at.binding)) == (hop, limit, hop)


@pytest.mark.parametrize(
    "words",
    [
        {"broker": {"replica.fetch.max.bytes": 1000}},
        {"broker": {"replica.fetch.response.max.bytes": 1000}},
        {"broker": {"fetch.max.bytes": 1024}},
        {"consumer": {"fetch.max.bytes": 1000}},
        {"consumer": {"max.partition.fetch.bytes": 1000}},
        {"consumer_library": "aiokafka", "consumer": {"fetch_max_bytes": 1000}},
    ],
    ids=str,
)
def test_a_limit_of_fetches_refuses_nothing(words: dict[str, Any]) -> None:
    """KIP-74: the first batch is returned whole."""
    assert planned(1_000_000, **words).fits


def test_nothing_passes_the_32_bits_of_a_response() -> None:
    """Its limit is the protocol's, where every setting is as wide as it can be: 656 bytes of response, 76 of batch."""
    most = 2**31 - 1
    wide = {"socket.request.max.bytes": most, "message.max.bytes": most, "log.segment.bytes": most}
    producer = {"max.request.size": most, "buffer.memory": 2**33}
    at, above = (planned(size, broker=wide, producer=producer) for size in (most - 732, most - 731))
    assert (at.fits, [name_of(hop) for hop in above.hops if not hop.passes]) == (
        True,
        ["broker, response: 32-bit size of a response"],
    )


@pytest.mark.parametrize(
    ("library", "given", "limit", "origin"),
    [
        ("librdkafka", {}, 100_000_000, "librdkafka's default"),
        ("librdkafka", {"fetch.max.bytes": 200_000_000}, 200_000_512, "adjusted by librdkafka"),
        ("kafka-python", {"receive_message_max_bytes": 1}, 53_477_376, "adjusted by kafka-python"),
        ("kafka-python", {"fetch_max_bytes": 150_000_000}, 151_048_576, "adjusted by kafka-python"),
    ],
)
def test_receive_limits_follow_the_fetch_limits(library: str, given: dict[str, int], limit: int, origin: str) -> None:
    """As the clients adjust them: librdkafka its default, kafka-python even what is given."""
    hops = planned(1000, consumer_library=library, consumer=given).hops
    assert [(hop.limit_bytes, hop.origin) for hop in hops if "receive" in hop.setting] == [(limit, origin)]


def test_compression_counts_at_the_brokers_and_not_at_the_producer() -> None:
    """10 MB that become 1 MB pass a topic of 1.1 MB; the producer compares them as they are."""
    squeezed = {"compression": "gzip", "compression_ratio": 10, "topic": {"max.message.bytes": 1_100_000}}
    small = planned(10_000_000, producer={"max.request.size": 9_000_000}, **squeezed)
    assert planned(10_000_000, **squeezed).fits
    assert [name_of(hop) for hop in small.hops if not hop.passes] == ["producer: max.request.size"]
    plain = planned(
        10_000_000, compression_ratio=10, topic={"max.message.bytes": 1_100_000, "compression.type": "uncompressed"}
    )
    assert [name_of(hop) for hop in plain.hops if not hop.passes] == ["broker, batch: max.message.bytes"]


def test_a_bomb_passes_every_hop_but_zstd_in_librdkafka() -> None:
    """A batch of 1 MB that is 1 GB in memory: told as a bomb, and refused where it is decompressed."""
    bomb = {"batch_max": "1MB", "compression_ratio": 1000, "consumer_library": "librdkafka"}
    gzip, zstd = (planned(1_000_000, compression=codec, **bomb) for codec in ("gzip", "zstd"))
    assert (gzip.fits, zstd.refused_by and name_of(zstd.refused_by)) == (
        True,
        "consumer, zstd: receive.message.max.bytes",
    )
    assert any("compressed bomb: a batch of 1000000 bytes" in note for note in notes(gzip))


@pytest.mark.parametrize(
    ("compressed", "decompressed", "buffer"),
    [(500, 1000, 1000), (500, 1001, 5000), (500, 5001, 15000), (30, 100, 4060), (30, 40_000, 109_620)],
)
def test_librdkafkas_zstd_buffer_grows_threefold(compressed: int, decompressed: int, buffer: int) -> None:
    """Twice the compressed size, then twice itself more, at least 4,000 bytes."""
    assert zstd_buffer_bytes(compressed, decompressed) == buffer


def test_a_topic_may_compress_what_its_producer_does_not() -> None:
    """It is compared as it comes; what consumers get is smaller."""
    topic = {"max.message.bytes": 1_100_000, "compression.type": "zstd"}
    one = planned(10_000_000, compression="none", compression_ratio=10, topic=topic, consumer_library="librdkafka")
    assert [name_of(hop) for hop in one.hops if not hop.passes] == ["broker, batch: max.message.bytes"]
    assert (one.fetch_response_bytes, any("zstd" in hop.hop for hop in one.hops)) == (3_000_000, True)


def test_a_claim_check_takes_the_record_out_of_the_way() -> None:
    """300 MB pass as a reference of 200 bytes; the payload is held once for each consumer."""
    (plan,) = make_plans({"record_max": "300MB", "partitions": 360, "consumers": 1, "claim_check": "200B"})
    checked = answer(plan)
    assert (checked.fits, checked.fetch_response_bytes, checked.heap_bytes) == (True, 72_000, 72_000)
    assert ("payload from elsewhere", 300_000_000) in [(part.part, part.size_bytes) for part in checked.held]
