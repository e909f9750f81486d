"""The figures of the case, what a process holds, how long a backlog takes, and the answer as JSON and in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS, WRONG_INPUT
from kafka_trial.preflight.answer import Answer, answer, as_json, as_text, changes, exit_status, notes
from kafka_trial.preflight.plan import make_plans
from kafka_trial.registry import PACKAGE

SCHEMA = json.loads((PACKAGE / "preflight" / "answer.schema.json").read_text())
BIG_RESPONSE = {"record_max": "300MB", "partitions": 360, "consumers": 1}
BIG_HEAP = {
    "record_max": "50MB",
    "partitions_per_consumer": 45,
    "consumers_per_process": 8,
    "buffered_per_partition": 1,
}


def answered(**words: Any) -> Answer:
    """Returns the answer of one plan."""
    (plan,) = make_plans(words)
    return answer(plan)


def test_the_response_of_the_case() -> None:
    """300 MB × 360 partitions on one consumer: 108 GB, which no response can be; capped, it is one batch."""
    one = answered(**BIG_RESPONSE)
    assert (one.fetch_response_bytes, one.response_encodable) == (108_000_000_000, False)
    # 61 for the batch, 5 for the record's length, 3 for attributes and deltas, 1 + 5 + 1 for its fields.
    assert (one.fetch_response_capped_bytes, one.capped_encodable) == (300_000_000 + 61 + 5 + 3 + 7, True)


def test_the_heap_of_the_case() -> None:
    """8 consumers × 45 partitions × 1 record × 50 MB: 18 GB."""
    assert answered(**BIG_HEAP).heap_bytes == 18_000_000_000


def test_leaders_share_what_one_consumer_asks() -> None:
    """Each of 3 brokers is asked for 120 partitions."""
    assert answered(**BIG_RESPONSE, brokers=3).fetch_response_bytes == 36_000_000_000


@pytest.mark.parametrize(
    ("words", "capped"),
    [
        ({"record_max": 1000}, 10 * 1_048_576),  # each partition up to its own limit
        ({"record_max": 1000, "partitions": 100}, 52_428_800),  # all up to the response's
        ({"record_max": 1000, "partitions": 100, "broker": {"fetch.max.bytes": 2_000_000}}, 2_000_000),  # the broker's
        ({"record_max": 10_000_000}, 10_000_000 + 74 + 9 * 1_048_576),  # one batch whole, the others by their limit
        ({"record_max": 60_000_000}, 60_000_000 + 74),  # one batch alone
        ({"record_max": 60_000_000, "compression_ratio": 100}, 10 * 1_048_576),  # small on the wire
    ],
    ids=str,
)
def test_a_response_is_capped_by_the_rules_of_kip_74(words: dict[str, Any], capped: int) -> None:
    """The first batch whole, the others within what is left of both limits."""
    assert answered(**{"partitions": 10, "consumers": 1, **words}).fetch_response_capped_bytes == capped


MIB = 1 << 20
HELD: list[tuple[dict[str, Any], dict[str, int]]] = [
    (
        {"consumer_library": "java", "brokers": 2},
        {"fetched": 2 * 5 * MIB, "handed out": 500_000, "previous response": 5 * MIB, "outside of the heap": 5 * MIB},
    ),
    (
        {"consumer_library": "java-3"},
        {"fetched": 10 * MIB, "handed out": 500_000, "previous response": 10 * MIB, "outside of the heap": 10 * MIB},
    ),
    ({"consumer_library": "kafka-python"}, {"fetched": 10 * MIB, "handed out": 500_000}),
    ({"consumer_library": "aiokafka"}, {"fetched": 10 * MIB, "handed out": 10 * MIB}),
    (
        {"consumer_library": "librdkafka"},
        {
            "fetched": 74 * MIB,
            "message overhead": 77_594 * 320,
            "handed out": 1000,
            "handed out in part": 10 * MIB,
        },
    ),
    (
        {"consumer_library": "librdkafka", "consumer": {"queued.max.messages.kbytes": 1024}},
        # the default of fetch.max.bytes follows the queue
        {
            "fetched": MIB + 1_048_576,
            "message overhead": 2097 * 320,
            "handed out": 1000,
            "handed out in part": 1_048_576,
        },
    ),
    (
        {"consumer_library": "librdkafka", "consumer": {"queued.min.messages": 500}},
        {
            "fetched": 500_000 + 10 * MIB,
            "message overhead": 10_985 * 320,
            "handed out": 1000,
            "handed out in part": 10 * MIB,
        },
    ),
    (
        {"consumer_library": "java", "consumer": {"max.poll.records": 3}, "compression_ratio": 4},
        {
            "fetched": 10 * MIB,
            "decompressed": 1000,
            "handed out": 3000,
            "previous response": 10 * MIB,
            "outside of the heap": 10 * MIB,
        },
    ),
    (  # what a poll hands out may be more than all that was fetched: the poll before is held beside it
        {"consumer_library": "java", "consumer": {"max.poll.records": 20_000}, "compression_ratio": 4},
        {
            "fetched": 10 * MIB,
            "decompressed": 1000,
            "handed out": 20_000_000,
            "previous response": 20_000_000,
            "outside of the heap": 10 * MIB,
        },
    ),
    (
        {"consumer_library": "kafka-python", "compression_ratio": 4, "batch_max": 16384},
        {"fetched": 10 * MIB, "decompressed": 2 * 4 * 16384, "handed out": 500_000},
    ),
    (
        {"consumer_library": "librdkafka", "compression_ratio": 4},
        {
            "responses": 10 * MIB,
            "decompressed": 64 * MIB + 40 * MIB,
            "message overhead": 109_051 * 320,
            "handed out": 1000,
        },
    ),
]


@pytest.mark.parametrize(("words", "held"), HELD, ids=[str(words) for words, _ in HELD])
def test_each_library_holds_its_own_way(words: dict[str, Any], held: dict[str, int]) -> None:
    """Ten partitions of records of 1 kB; a process holds that once for each of its consumers."""
    one = answered(record_max=1000, partitions_per_consumer=10, consumers_per_process=3, **words)
    assert {part.part: part.size_bytes for part in one.held} == held
    assert one.process_bytes == 3 * sum(held.values())


@pytest.mark.parametrize(("library", "pieces"), [("java", 1), ("java-3", 45), ("kafka-python", 45), ("aiokafka", 45)])
def test_large_records_are_held_once_a_broker_or_once_a_partition(library: str, pieces: int) -> None:
    """A response is one record of 60 MB; only Java from 4.0 fetches no other of that broker meanwhile."""
    one = answered(record_max=60_000_000, partitions_per_consumer=45, consumer_library=library)
    assert one.held[0].size_bytes == pieces * 60_000_074


def test_a_response_that_fetch_limits_let_grow_too_large_does_not_fit() -> None:
    """Small records, and limits as wide as they can be: with what is beside the records it is more than 32 bits."""
    most = 2**31 - 1
    fetch = {"fetch.max.bytes": most, "max.partition.fetch.bytes": most}
    wide, narrow = (
        answered(record_max=1000, partitions_per_consumer=1, consumer=fetch, broker={"fetch.max.bytes": size})
        for size in (most - 559, most - 560)  # 512 bytes of response, 48 of its partition
    )
    assert (wide.fits, wide.refused_by, narrow.fits) == (False, None, True)
    assert changes(wide)[0].startswith("lower fetch.max.bytes of broker or consumer")


def test_memory_refuses_at_one_byte_less() -> None:
    """What a process holds is compared with what there is, its own buffers included."""
    words = {"record_max": 1000, "partitions_per_consumer": 10, "buffered_per_partition": 5}
    needed = answered(**words).process_bytes
    fitting, short = (answered(**words, memory_max=size) for size in (needed, needed - 1))
    assert (fitting.fits, short.fits, short.refused_by, changes(fitting)) == (True, False, None, [])
    assert changes(short)[0].startswith("hold less: fewer partitions per consumer")


@pytest.mark.parametrize(
    ("words", "drain_s"),
    [
        ({"blocking_timeout": "10s"}, 43_200),  # 12 h, one record a round of 10 s
        ({"blocking_timeout": "1s"}, 4_320),
        ({"blocking_timeout": "1s", "records_per_fetch": 10}, 432),
        ({"blocking_timeout": "10s", "empty_partitions": 3}, 129_600),
        ({"blocking_timeout": "10s", "service_time": "2s"}, 51_840),
        ({"blocking_timeout": "1s", "arrivals_per_s": 0.5}, 8_640),
        ({"blocking_timeout": "1s", "arrivals_per_s": 1}, None),  # never
        ({"blocking_timeout": "10s", "consumer": {"max.partition.fetch.bytes": "10MB"}}, 3_600),  # 12 records a round
    ],
    ids=str,
)
def test_a_backlog_drains_by_its_formula(words: dict[str, Any], drain_s: float | None) -> None:
    """4,320 records of 800 kB, two partitions a consumer of which one is empty, as in case 1."""
    one = answered(record_max="800kB", partitions=12, consumers=6, backlog=4320, **words)
    assert one.drain is not None
    assert (one.drain.drain_s, one.drains) == (None if drain_s is None else pytest.approx(drain_s), drain_s is not None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"record_max": 1000, "producer": {"batch.size": 2_000_000}}, "full ones are refused"),
        ({"record_max": 1000, "producer": {"max.request.size": 200_000_000}}, "brokers hang up on such requests"),
        ({"record_max": 2_000_000}, "of other partitions only smaller ones"),
        ({"record_max": 1000, "compression_ratio": 2, "topic": {"compression.type": "uncompressed"}}, "uncompressed"),
    ],
    ids=str,
)
def test_what_passes_and_is_still_worth_knowing_is_told(words: dict[str, Any], said: str) -> None:
    """Notes do not change the status."""
    assert any(said in note for note in notes(answered(partitions_per_consumer=1, **words)))
    assert notes(answered(partitions_per_consumer=1, record_max=1000)) == []


@pytest.mark.parametrize(
    "words",
    [
        BIG_RESPONSE,
        {**BIG_HEAP, "consumer_library": "librdkafka", "backlog": 10, "blocking_timeout": 1},
        {"consumers": 2, "topics": [{"record_max": 10, "partitions": 3}, {"record_max": "50MB", "partitions": 2}]},
    ],
    ids=["one topic", "with a drain", "several"],
)
def test_json_keeps_its_schema(words: dict[str, Any]) -> None:
    """Of one topic and of several; the schema lets nothing else in."""
    told = as_json([answer(plan) for plan in make_plans(words)])
    assert list(Draft202012Validator(SCHEMA).iter_errors(told)) == []
    assert list(Draft202012Validator(SCHEMA).iter_errors({**told, "more": 1})) != []


def test_several_topics_add_up_in_one_process() -> None:
    """A topic split by size: each is judged alone, and they are held together."""
    words = {"consumers": 2, "topics": [{"record_max": 10, "partitions": 3}, {"record_max": "50MB", "partitions": 2}]}
    told = as_json([answer(plan) for plan in make_plans(words)])
    assert (told["fits"], [topic["fits"] for topic in told["topics"]]) == (False, [True, False])
    assert told["heap_bytes"] == 2 * 10 + 50_000_000


def test_several_topics_must_fit_into_one_memory() -> None:
    """Each alone would."""
    topics = [{"record_max": 1000, "partitions": 2}, {"record_max": 1000, "partitions": 2}]
    alone = answered(consumers=2, **topics[0]).process_bytes
    fitting, short = (
        [answer(plan) for plan in make_plans({"consumers": 2, "memory_max": size, "topics": topics})]
        for size in (2 * alone, 2 * alone - 1)
    )
    assert (exit_status(fitting), exit_status(short), [one.fits for one in short]) == (PASS, FAIL, [True, True])
    assert as_text(short).startswith("NO: 2 of 2 topics fit, but not the memory of one process\n")


def test_the_binding_hop_is_one_of_the_hops() -> None:
    """By the same name."""
    told = as_json([answered(**BIG_RESPONSE)])
    assert [told["binding_hop"], told["refused_by"]] == [told["hops"][0]["hop"]] * 2


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--record-max", "1MB", "--partitions", "6", "--consumers", "3"], PASS),
        (["--record-max", "300MB", "--partitions", "360", "--consumers", "1"], FAIL),
        (["--record-max", "1MB", "--partitions", "6"], WRONG_INPUT),
        (
            ["--record-max", "1MB", "--partitions-per-consumer", "6", "--topic-setting", "max.message.byte=1"],
            WRONG_INPUT,
        ),
        (
            ["--record-max", "1MB", "--partitions-per-consumer", "6", "--topic-setting", "max.message.bytes"],
            WRONG_INPUT,
        ),
        (["--record-max", "1MB", "--partitions-per-consumer", "6", "--consumer-config", "/none"], WRONG_INPUT),
        (["--record-max", "1MB", "--partitions-per-consumer", "6", "--topic", "orders"], WRONG_INPUT),
        (["--record-max", "1MB", "--consumers", "6", "--bootstrap", "nowhere"], WRONG_INPUT),
    ],
    ids=str,
)
def test_the_status_says_whether_it_fits(arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    """0 fits, 1 does not, 2 makes no sense; the first words say so too, or the error names the verb."""
    assert main(["preflight", *arguments]) == status
    told = capsys.readouterr()
    head = {PASS: "YES: ", FAIL: "NO: ", WRONG_INPUT: "kafka-trial preflight:"}[status]
    assert (told.err if status == WRONG_INPUT else told.out).startswith(head)


def test_a_clients_own_file_and_the_options_over_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The options win over the file; what limits no size is named, not refused."""
    (tmp_path / "consumer.properties").write_text("group.id=g\nfetch.max.bytes=7\nmax.poll.records=9\n")
    asked = ["--record-max", "1MB", "--partitions-per-consumer", "1", "--json"]
    file = ["--consumer-config", str(tmp_path / "consumer.properties"), "--consumer-setting", "fetch.max.bytes=8"]
    assert main(["preflight", *asked, *file]) == PASS
    told = capsys.readouterr()
    hops = orjson.loads(told.out)["hops"]
    limits = [hop["limit_bytes"] for hop in hops if hop["hop"] == "consumer: fetch.max.bytes"]
    assert (limits, told.err) == ([8], "--consumer-config: limits no size, not used here: group.id\n")


def test_a_misspelt_setting_of_a_clients_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is nearly a known name is no setting that limits no size; fetch.min.bytes is one."""
    (tmp_path / "c.properties").write_text("max.partiton.fetch.bytes=1\nfetch.min.bytes=1\nmax.poll.interval.ms=1\n")
    asked = [
        "--record-max",
        "1MB",
        "--partitions-per-consumer",
        "1",
        "--consumer-config",
        str(tmp_path / "c.properties"),
    ]
    assert main(["preflight", *asked]) == WRONG_INPUT
    told = "unknown setting 'max.partiton.fetch.bytes'. Did you mean 'max.partition.fetch.bytes'?"
    assert capsys.readouterr().err == f"kafka-trial preflight: --consumer-config: {told}\n"


def test_the_words_show_the_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    """Verdict, who refuses first and by how much, the sums of response and heap, and what to change."""
    main(["preflight", "--record-max", "300MB", "--partitions", "360", "--consumers", "1"])
    told = capsys.readouterr().out
    for line in (
        "NO: the topic with records of 300000000 bytes (300 MB) does not fit: a hop refuses it",
        "refused first by producer: max.request.size = 1048576 (java's default): this record needs 300000089",
        "largest record that passes every hop: 1048489 bytes (1.048 MB), bound by producer: max.request.size",
        "without a cap 108000000000 bytes (108 GB) = 300000000 × 360 partitions",
        "raise max.request.size of the producer to 300000089 bytes or more",
        "or make it smaller: split the record, or keep its payload elsewhere (claim check)",
    ):
        assert line in told
