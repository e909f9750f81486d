"""What is planned: the records, the topic, the group, and every setting on the way. All that is wrong is told at once.

Stands between the words of the command line, of a TOML file or of a cluster, which have the same names, and the
arithmetic. Those of the command line come before those of a file, and those before a cluster's.

A client's own properties file has settings that limit no size: they are named, and left out. What is written on the
command line or in a plan's file must be known.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeVar

from kafka_trial.errors import InputError, none_of, reason, shown, unknown_name
from kafka_trial.preflight import size_settings
from kafka_trial.preflight.batches import divided
from kafka_trial.preflight.size_settings import (
    BROKER,
    CODECS,
    CONSUMER,
    FRANZ_GO,
    JAVA,
    LIBRARIES,
    LIBRDKAFKA,
    OF_FETCH,
    OF_RESPONSE,
    PRODUCER,
    SIZE_SETTINGS,
    TOPIC,
    Settings,
    dotted,
    known_names,
)
from kafka_trial.preflight.sizes import DURATIONS, SIZES, parse_duration, parse_size

T = TypeVar("T")
SIZE_WORDS: Final = ("record_max", "key_max", "batch_max", "claim_check", "memory_max")
COUNT_WORDS: Final = (
    *("partitions", "consumers", "partitions_per_consumer", "consumers_per_process", "buffered_per_partition"),
    *("brokers", "backlog", "records_per_fetch"),
)
DURATION_WORDS: Final = ("blocking_timeout", "service_time")
WORDS: Final = (
    *SIZE_WORDS,
    *COUNT_WORDS,
    *DURATION_WORDS,
    *("empty_partitions", "arrivals_per_s", "compression", "compression_ratio"),
    *("producer_library", "consumer_library", "name"),
)
ROLES: Final = (PRODUCER, BROKER, TOPIC, CONSUMER)
COUNT: Final = re.compile(r"\d+")
ADDRESS: Final = re.compile(r"\[?[^\s,\]]+\]?:\d{1,5}")


@dataclass(frozen=True)
class Backlog:
    """A backlog of one partition, and the consumer that works it off by blocking fetches, partition after partition.

    `records_per_fetch` None: as many as the fetch settings let through.
    """

    records: int
    blocking_timeout_s: float
    service_s: float
    empty_partitions: int
    records_per_fetch: int | None
    arrivals_per_s: float


@dataclass(frozen=True)
class Plan:
    """What is planned. Sizes in bytes; a record is its key, value and headers together.

    `batch_bytes_max` is the largest batch on the wire where batches are larger than a record alone, 0 where not.
    `claim_check_bytes` is the size of the reference where the payload lies elsewhere, None where it is in Kafka.
    `leading_brokers` counts the brokers that lead a consumer's partitions.
    """

    name: str
    record_bytes_max: int
    key_bytes_max: int
    batch_bytes_max: int
    claim_check_bytes: int | None
    compression: str | None
    ratio: Fraction
    partitions_per_consumer: int
    consumers_per_process: int
    buffered_per_partition: int | None
    leading_brokers: int
    memory_bytes_max: int | None
    backlog: Backlog | None
    producer: Settings
    broker: Settings
    topic: Settings
    consumer: Settings
    notes: tuple[str, ...] = ()

    @property
    def kafka_bytes_max(self) -> int:
        """The largest record in Kafka: the reference where there is a claim check, else the record."""
        return self.record_bytes_max if self.claim_check_bytes is None else self.claim_check_bytes

    @property
    def partitions_per_fetch(self) -> int:
        """How many partitions one fetch asks of one broker: partitions per consumer ÷ brokers, upwards."""
        return -(-self.partitions_per_consumer // self.leading_brokers)

    @property
    def compressed(self) -> bool:
        """Whether batches are smaller on the wire than in memory: what a topic decompresses stays so."""
        return self.ratio > 1 and self.broker_compression != "uncompressed"

    @property
    def wire_ratio(self) -> Fraction:
        """The compression ratio of what the brokers store and send."""
        return self.ratio if self.compressed else Fraction(1)

    @property
    def sent_ratio(self) -> Fraction:
        """The compression ratio of what the producer sends."""
        return Fraction(1) if self.compression == "none" else self.ratio

    @property
    def stored_codec(self) -> str | None:
        """The codec of what the brokers store and send; None where only a ratio is known."""
        return self.compression if self.broker_compression == "producer" else self.broker_compression

    @property
    def broker_compression(self) -> str:
        """The topic's `compression.type`, else the broker's."""
        return self.topic.word("compression.type") or str(self.broker.word("compression.type"))


def read_plan_toml(path: Path) -> dict[str, Any]:
    """Returns the words of a plan's file: those of the command line with underscores, and tables of settings.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--config {path}", f"cannot be read: {error.strerror}. Check the path") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"--config {path}", f"cannot be read as TOML: {reason(error)}") from error


def make_plans(words: Mapping[str, Any], *, where: str = "preflight") -> list[Plan]:
    """Returns the plan that the words make; one for each of `topics`, over the words that all have in common.

    Raises:
        InputError: some of them make no sense, or contradict each other; all of these are told.
    """
    topics = words.get("topics")
    if topics is None:
        return [_make_plan(words, where)]
    if not isinstance(topics, list) or not topics or not all(isinstance(topic, Mapping) for topic in topics):
        raise InputError(where, "topics must be tables: write [[topics]] for each of them")
    common = {name: value for name, value in words.items() if name != "topics"}
    plans = []
    for number, topic in enumerate(topics, 1):
        own = {"name": f"topic {number}", **topic}
        settings = {role: {**common.get(role, {}), **own.get(role, {})} for role in ROLES}
        plans.append(_make_plan({**common, **own, **settings}, f"{where}: [[topics]] {own['name']}"))
    return plans


def _make_plan(words: Mapping[str, Any], where: str) -> Plan:
    problems = [unknown_name("word", name, (*WORDS, *ROLES)) for name in words if name not in (*WORDS, *ROLES)]
    sizes = {name: _read(words, name, parse_size, problems) for name in SIZE_WORDS}
    counts = {name: _read(words, name, _count, problems) for name in COUNT_WORDS}
    ratio = _read(words, "compression_ratio", _ratio, problems)
    settings = _settings(words, problems)
    backlog = _backlog(words, counts, problems)
    if problems:
        raise InputError(where, problems)
    compression = _compression(words, settings, ratio, problems)
    notes: list[str] = []
    per_consumer = _partitions_per_consumer(counts, problems, notes)
    problems += _size_problems(sizes, ratio or Fraction(1)) + _client_problems(settings)
    if problems:
        raise InputError(where, problems)
    brokers = min(counts["brokers"] or 1, per_consumer)
    if backlog is not None and words.get("empty_partitions") is None:
        backlog = replace(backlog, empty_partitions=per_consumer - 1)
    return Plan(
        name=str(words.get("name") or "the topic"),
        record_bytes_max=sizes["record_max"] or 0,
        key_bytes_max=sizes["key_max"] or 0,
        batch_bytes_max=sizes["batch_max"] or 0,
        claim_check_bytes=sizes["claim_check"],
        compression=compression,
        ratio=ratio or Fraction(1),
        partitions_per_consumer=per_consumer,
        consumers_per_process=counts["consumers_per_process"] or 1,
        buffered_per_partition=counts["buffered_per_partition"],
        leading_brokers=brokers,
        memory_bytes_max=sizes["memory_max"],
        backlog=backlog,
        producer=settings[PRODUCER],
        broker=settings[BROKER],
        topic=settings[TOPIC],
        consumer=settings[CONSUMER],
        notes=tuple(notes),
    )


def _read(words: Mapping[str, Any], name: str, read: Callable[[object], T], problems: list[str]) -> T | None:
    if words.get(name) is None:
        return None
    try:
        return read(words[name])
    except ValueError as error:
        problems.append(f"{name} = {error}")
        return None


def _count(given: object) -> int:
    if isinstance(given, bool) or not COUNT.fullmatch(str(given)) or int(str(given)) < 1:
        raise ValueError(f"{shown(given)} must be a whole number, 1 or more")
    return int(str(given))


def _ratio(given: object) -> Fraction:
    text = str(given)
    if isinstance(given, bool) or not re.fullmatch(r"\d+(\.\d+)?", text) or Decimal(text) < 1:
        raise ValueError(f"{shown(given)} must be 1 or more: how many times smaller a batch is on the wire, as in 4.5")
    return Fraction(Decimal(text))


def _non_negative(given: object) -> float:
    if isinstance(given, bool) or not re.fullmatch(r"\d+(\.\d+)?", str(given)):
        raise ValueError(f"{shown(given)} must be a number, 0 or more")
    return float(str(given))


def _empty(given: object) -> int:
    if isinstance(given, bool) or not COUNT.fullmatch(str(given)):
        raise ValueError(f"{shown(given)} must be a whole number, 0 or more")
    return int(str(given))


def _settings(words: Mapping[str, Any], problems: list[str]) -> dict[str, Settings]:
    found = {}
    for role in ROLES:
        given = words.get(role) or {}
        if not isinstance(given, Mapping):
            problems.append(f"{role} must be a table of settings: write [{role}], and below it NAME = VALUE")
            continue
        library = str(words.get(f"{role}_library") or size_settings.JAVA) if role in (PRODUCER, CONSUMER) else ""
        if library and library not in LIBRARIES:
            problems.append(none_of(f"{role}_library", library, LIBRARIES))
            continue
        found[role] = size_settings.make_settings(role, library, given, problems)
    return found


def _compression(
    words: Mapping[str, Any], settings: Mapping[str, Settings], ratio: Fraction | None, problems: list[str]
) -> str | None:
    """Returns the producer's codec; None where only a ratio is known."""
    producer, named = settings[PRODUCER], words.get("compression")
    by_brokers = settings[TOPIC].word("compression.type") or settings[BROKER].word("compression.type")
    if named is not None and named not in CODECS:
        problems.append(none_of("compression", named, CODECS))
        return None
    set_there = producer.word("compression.type") if producer.is_given("compression.type") else None
    if named and set_there and named != set_there:
        problems.append(f"compression = {named}, but the producer's compression.type = {set_there}: leave one out")
    codec = named or set_there
    if codec == "none" and by_brokers not in CODECS[1:] and ratio is not None and ratio > 1:
        problems.append(
            f"compression_ratio = {float(ratio):g}, but compression is none: name the codec, or leave it out"
        )
    return codec or (None if ratio is not None and ratio > 1 else "none")


def _partitions_per_consumer(counts: Mapping[str, int | None], problems: list[str], notes: list[str]) -> int:
    """Returns the most partitions that one consumer is assigned: partitions ÷ consumers, upwards."""
    partitions, consumers, per_consumer = (
        counts[name] for name in ("partitions", "consumers", "partitions_per_consumer")
    )
    in_process = counts["consumers_per_process"]
    if consumers is not None and in_process is not None and in_process > consumers:
        problems.append(f"consumers_per_process = {in_process}, but consumers = {consumers} in all")
    if partitions is None and per_consumer is None:
        problems.append("how many partitions? Say --partitions and --consumers, or --partitions-per-consumer")
        return 1
    if partitions is not None and consumers is None and per_consumer is None:
        problems.append("how many consumers share these partitions? Say --consumers, or --partitions-per-consumer")
        return 1
    if partitions is None or consumers is None:
        if partitions is not None and per_consumer is not None and per_consumer > partitions:
            problems.append(f"partitions_per_consumer = {per_consumer}, but partitions = {partitions} in all")
        return per_consumer or 1
    shared = -(-partitions // consumers)
    if per_consumer is not None and per_consumer != shared:
        problems.append(
            f"partitions_per_consumer = {per_consumer}, but partitions = {partitions} over consumers = {consumers} "
            f"make {shared} each: leave one of the three out"
        )
    if consumers > partitions:
        notes.append(f"{consumers - partitions} of {consumers} consumers have no partition: they stand idle")
    return shared


def _size_problems(sizes: Mapping[str, int | None], ratio: Fraction) -> list[str]:
    record, key, batch, claim = (sizes[name] for name in ("record_max", "key_max", "batch_max", "claim_check"))
    problems = [f"{name} = 0: it must be above 0, or be left out" for name in SIZE_WORDS if sizes[name] == 0]
    if record is None:
        return [*problems, f"how large is a record? Say --record-max: {SIZES}"]
    in_kafka = record if claim is None else claim
    if claim is not None and claim > record:
        problems.append(f"claim_check = {claim} bytes is larger than the record it stands for, of {record} bytes")
    if key is not None and key > in_kafka:
        problems.append(f"key_max = {key} bytes, but a record, its key included, has {in_kafka}")
    if batch is not None and divided(in_kafka, ratio) > batch:
        problems.append(
            f"a record of {in_kafka} bytes, ÷ {float(ratio):g} by compression, is larger than its own batch of "
            f"batch_max = {batch} bytes"
        )
    return problems


def _client_problems(settings: Mapping[str, Settings]) -> list[str]:
    """Returns what a client refuses to start with: librdkafka (`rd_kafka_conf_finalize` in rdkafka_conf.c), franz-go
    (`cfg.validate` in config.go)."""
    consumer = settings[CONSUMER]
    if consumer.library == FRANZ_GO:
        fetch, read = (consumer.size_bytes(name) or 0 for name in (OF_FETCH, OF_RESPONSE))
        told = f"franz-go does not start with BrokerMaxReadBytes = {read} below FetchMaxBytes = {fetch}"
        return [f"consumer: {told}: raise the one or lower the other"] if read < fetch else []
    if consumer.library != LIBRDKAFKA:
        return []
    problems = []
    fetch, message, receive = (
        consumer.size_bytes(name) or 0 for name in ("fetch.max.bytes", "message.max.bytes", "receive.message.max.bytes")
    )
    if consumer.is_given("fetch.max.bytes") and fetch < message:
        problems.append(
            f"consumer: librdkafka does not start with fetch.max.bytes = {fetch} below message.max.bytes = {message} "
            "(of the consumer): raise the one or lower the other"
        )
    needed = librdkafka_fetch_bytes(consumer) + 512
    if consumer.is_given("receive.message.max.bytes") and receive < needed:
        problems.append(
            f"consumer: librdkafka does not start with receive.message.max.bytes = {receive} below fetch.max.bytes + "
            f"512 = {needed}: raise the one or lower the other"
        )
    return problems


def librdkafka_fetch_bytes(consumer: Settings) -> int:
    """Returns the `fetch.max.bytes` that librdkafka uses: that which is given, else a default that follows others.

    max(min(50 MiB, `queued.max.messages.kbytes` × 1024), `message.max.bytes`), by `rd_kafka_conf_finalize`.
    """
    fetch, queued, message = (
        consumer.size_bytes(name) or 0
        for name in ("fetch.max.bytes", "queued.max.messages.kbytes", "message.max.bytes")
    )
    return fetch if consumer.is_given("fetch.max.bytes") else max(min(fetch, queued), message)


def _backlog(words: Mapping[str, Any], counts: Mapping[str, int | None], problems: list[str]) -> Backlog | None:
    timeout, service = (_read(words, name, parse_duration, problems) for name in DURATION_WORDS)
    empty = _read(words, "empty_partitions", _empty, problems)
    arrivals = _read(words, "arrivals_per_s", _non_negative, problems)
    without = [
        name
        for name in ("records_per_fetch", *DURATION_WORDS, "empty_partitions", "arrivals_per_s")
        if words.get(name) is not None
    ]
    if counts["backlog"] is None:
        if without and words.get("backlog") is None:
            problems.append(f"{', '.join(without)}: of which backlog? Say --backlog, a number of records")
        return None
    if timeout is None and service is None and not problems:
        problems.append(f"how long does a round take? Say --blocking-timeout, --service-time, or both: {DURATIONS}")
    return Backlog(
        records=counts["backlog"],
        blocking_timeout_s=timeout or 0.0,
        service_s=service or 0.0,
        empty_partitions=empty or 0,
        records_per_fetch=counts["records_per_fetch"],
        arrivals_per_s=arrivals or 0.0,
    )


def words_of(
    options: Mapping[str, Any], *, plan: Mapping[str, Any], client_configs: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Returns the words of the options over those of a plan's file; `client_configs` are properties files by role.

    Raises:
        InputError: a setting is not written as NAME=VALUE, or is misspelt in a client's file.
    """
    words = {**plan, **{name: options[name] for name in WORDS if options.get(name) is not None}}
    for role in ROLES:
        own = _assignments(f"--{role}-setting", options.get(f"{role}_setting") or ())
        library = str(words.get(f"{role}_library") or JAVA)
        given = client_configs.get(role, {})
        known = known_names(role, library) if library in LIBRARIES and (role, library) in SIZE_SETTINGS else set()
        if problems := [told for name in given if (told := _misspelt(name, known))]:
            raise InputError(f"--{role}-config", problems)
        of_file = {name: value for name, value in given.items() if dotted(name) in known}
        in_plan = words.get(role) or {}
        if isinstance(in_plan, Mapping):
            words[role] = {**of_file, **in_plan, **own}
    return words


def unused_settings(words: Mapping[str, Any], client_configs: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Returns the names in each client's properties file that limit no size, by role."""
    unused = {}
    for role in (PRODUCER, CONSUMER):
        library = str(words.get(f"{role}_library") or JAVA)
        if library in LIBRARIES and role in client_configs:
            known = known_names(role, library)
            unused[role] = sorted(name for name in client_configs[role] if dotted(name) not in known)
    return unused


def over_cluster(words: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the words over those that a cluster told: what is given beside it asks what would be."""
    together = {**found, **words}
    for role in ROLES:
        if isinstance(words.get(role), Mapping):
            together[role] = {**found.get(role, {}), **words[role]}
    return together


def bootstrap_problems(options: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong with the words that name a cluster."""
    bootstrap = options.get("bootstrap")
    beside = [name for name in ("topic", "group", "command_config") if options.get(name)]
    if not bootstrap:
        return [f"--{name.replace('_', '-')} asks a cluster: which one? Say --bootstrap" for name in beside]
    problems = [
        f"--bootstrap: {part!r} is no host:port" for part in bootstrap.split(",") if not ADDRESS.fullmatch(part)
    ]
    if not options.get("topic"):
        problems.append("--bootstrap: which topic there? Say --topic")
    if options.get("group") and (options.get("consumers") or options.get("partitions_per_consumer")):
        problems.append("--group counts the consumers: leave --consumers and --partitions-per-consumer out, or --group")
    return problems


def _misspelt(name: str, known: Collection[str]) -> str | None:
    """Returns the sentence for a name that is nearly a known one; Kafka's other names are not that near."""
    near = get_close_matches(dotted(name), known, n=1, cutoff=0.93)
    return f"unknown setting {name!r}. Did you mean {near[0]!r}?" if near and near[0] != dotted(name) else None


def _assignments(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    problems = [f"{''.join(pair)!r} is not written as NAME=VALUE" for pair in pairs if not pair[0] or not pair[1]]
    found: dict[str, str] = {}
    for name, _, value in pairs:
        if found.setdefault(name.strip(), value.strip()) != value.strip():
            problems.append(f"{name.strip()} is given as {found[name.strip()]} and as {value.strip()}: leave one out")
    if problems:
        raise InputError(option, problems)
    return found
