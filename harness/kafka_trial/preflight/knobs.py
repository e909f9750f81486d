"""Every setting that limits the size of a record or what a consumer holds, under Kafka's own name, and its default.

Brokers and topics: the defaults of 3.9 to 4.3 are the same (`ServerConfigs`, `ReplicationConfigs`,
`SocketServerConfigs`, `LogConfig`). Clients: Java (`ProducerConfig`, `ConsumerConfig`), librdkafka 2
(`rdkafka_conf.c`), kafka-python 3.0 and aiokafka 0.14 (`DEFAULT_CONFIG` and signatures; their names have underscores,
dots are taken too), franz-go 1.22.3 (`defaultCfg` in `pkg/kgo/config.go`), sarama 1.61.1 (`NewConfig` in `config.go`,
`sarama.go`), kafkajs 2.2.4 (`src/consumer/index.js`) and kafka-go 0.4.51 (`writer.go`, `reader.go`). Any other client
is `other`: it has no limits but those that are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_trial.errors import unknown_name
from kafka_trial.preflight.sizes import parse_size

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
PRODUCER, BROKER, TOPIC, CONSUMER = "producer", "broker", "topic", "consumer"
JAVA, JAVA_3, LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA = "java", "java-3", "librdkafka", "kafka-python", "aiokafka"
FRANZ_GO, SARAMA, KAFKAJS, KAFKA_GO, OTHER = "franz-go", "sarama", "kafkajs", "kafka-go", "other"
LIBRARIES: Final = (JAVA, JAVA_3, LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA, FRANZ_GO, SARAMA, KAFKAJS, KAFKA_GO, OTHER)
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
BROKER_CODECS: Final = ("producer", "uncompressed", *CODECS[1:])
# Java's names (librdkafka's, where Java has no such limit), by which the arithmetic asks for a setting.
OF_FETCH, OF_PARTITION, OF_RESPONSE = "fetch.max.bytes", "max.partition.fetch.bytes", "receive.message.max.bytes"
COMPRESSION, QUEUED = "compression.type", "queue.capacity"


@dataclass(frozen=True)
class Knob:
    """A setting: its name, default and range in its own unit, how many bytes that unit is, and its other names.

    A default of None is "not set": the topic then takes the broker's, a client has no limit. A knob with `choices` is a
    word, not a number. `stands_for` are the names of the settings of Java that it has the place of, where its own name
    is another.
    """

    name: str
    default: int | str | None
    minimum: int = 0
    maximum: int = INT_MAX
    unit_bytes: int = 1
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    stands_for: tuple[str, ...] = ()


_JAVA_PRODUCER = (
    Knob("max.request.size", 1048576),
    Knob("buffer.memory", 33554432, maximum=LONG_MAX),
    Knob("batch.size", 16384),
    Knob("compression.type", "none", choices=CODECS),
)
_JAVA_CONSUMER = (
    Knob("fetch.max.bytes", 52428800),
    Knob("max.partition.fetch.bytes", 1048576),
    Knob("max.poll.records", 500, minimum=1),
)
KNOBS: Final[Mapping[tuple[str, str], Sequence[Knob]]] = {
    (BROKER, ""): (
        Knob("message.max.bytes", 1048588),
        Knob("socket.request.max.bytes", 104857600, minimum=1),
        Knob("log.segment.bytes", 1073741824, minimum=14),
        Knob("replica.fetch.max.bytes", 1048576),
        Knob("replica.fetch.response.max.bytes", 10485760),
        Knob("fetch.max.bytes", 57671680, minimum=1024),
        Knob("compression.type", "producer", choices=BROKER_CODECS),
    ),
    (TOPIC, ""): (
        Knob("max.message.bytes", None),
        Knob("segment.bytes", None, minimum=14),
        Knob("compression.type", None, choices=BROKER_CODECS),
    ),
    (PRODUCER, JAVA): _JAVA_PRODUCER,
    (PRODUCER, JAVA_3): _JAVA_PRODUCER,
    (PRODUCER, LIBRDKAFKA): (
        Knob("message.max.bytes", 1000000, minimum=1000, maximum=1000000000),
        Knob("queue.buffering.max.kbytes", 1048576, minimum=1, unit_bytes=1024),
        Knob("batch.size", 1000000, minimum=1),
        Knob("batch.num.messages", 10000, minimum=1, maximum=1000000),
        Knob("compression.type", "none", aliases=("compression.codec",), choices=CODECS),
    ),
    (PRODUCER, KAFKA_PYTHON): (
        Knob("max_request_size", 1048576),
        Knob("batch_size", 16384),
        Knob("compression_type", "none", choices=CODECS),
    ),
    (PRODUCER, AIOKAFKA): (
        Knob("max_request_size", 1048576),
        Knob("max_batch_size", 16384),
        Knob("compression_type", "none", choices=CODECS),
    ),
    (PRODUCER, FRANZ_GO): (
        Knob("ProducerBatchMaxBytes", 1000012, minimum=512, maximum=1 << 30),
        Knob("MaxBufferedBytes", None, minimum=1, maximum=LONG_MAX),
        Knob("ProducerBatchCompression", "snappy", choices=CODECS, stands_for=(COMPRESSION,)),
    ),
    (PRODUCER, SARAMA): (
        Knob("Producer.MaxMessageBytes", 1048576, minimum=1),
        Knob("Producer.Flush.MaxMessages", None, minimum=1),
        Knob("Producer.Compression", "none", choices=CODECS, stands_for=(COMPRESSION,)),
    ),
    (PRODUCER, KAFKAJS): (Knob("compression", "none", choices=CODECS, stands_for=(COMPRESSION,)),),
    (PRODUCER, KAFKA_GO): (
        Knob("BatchBytes", 1048576, minimum=1, maximum=LONG_MAX),
        Knob("BatchSize", 100, minimum=1),
        Knob("Compression", "none", choices=CODECS, stands_for=(COMPRESSION,)),
    ),
    (PRODUCER, OTHER): (
        Knob("max.request.size", None, minimum=1),
        Knob("batch.size", None, minimum=1),
        Knob("batch.num.messages", None, minimum=1),
        Knob("splits.refused.batches", "no", choices=("yes", "no")),
        Knob("compression.type", "none", choices=CODECS),
    ),
    (CONSUMER, JAVA): _JAVA_CONSUMER,
    (CONSUMER, JAVA_3): _JAVA_CONSUMER,
    (CONSUMER, LIBRDKAFKA): (
        Knob("message.max.bytes", 1000000, minimum=1000, maximum=1000000000),
        Knob("fetch.max.bytes", 52428800, maximum=INT_MAX - 512),
        Knob("max.partition.fetch.bytes", 1048576, 1, 1000000000, aliases=("fetch.message.max.bytes",)),
        Knob("receive.message.max.bytes", 100000000, minimum=1000),
        Knob("queued.max.messages.kbytes", 65536, minimum=1, maximum=INT_MAX // 1024, unit_bytes=1024),
        Knob("queued.min.messages", 100000, minimum=1, maximum=10000000),
    ),
    (CONSUMER, KAFKA_PYTHON): (
        Knob("fetch_max_bytes", 52428800),
        Knob("max_partition_fetch_bytes", 1048576),
        Knob("receive_message_max_bytes", 100000000),
        Knob("max_poll_records", 500, minimum=1),
    ),
    (CONSUMER, AIOKAFKA): (
        Knob("fetch_max_bytes", 52428800),
        Knob("max_partition_fetch_bytes", 1048576),
        Knob("max_poll_records", None, minimum=1),
    ),
    (CONSUMER, FRANZ_GO): (
        Knob("FetchMaxBytes", 52428800, stands_for=(OF_FETCH,)),
        Knob("FetchMaxPartitionBytes", 1048576, stands_for=(OF_PARTITION,)),
        Knob("BrokerMaxReadBytes", 104857600, minimum=1024, maximum=1 << 30, stands_for=(OF_RESPONSE,)),
    ),
    (CONSUMER, SARAMA): (
        Knob("Consumer.Fetch.MaxBytes", 52428800, minimum=1, stands_for=(OF_FETCH,)),
        Knob("Consumer.Fetch.Default", 1048576, minimum=1, stands_for=(OF_PARTITION,)),
        Knob("sarama.MaxResponseSize", 104857600, minimum=1, stands_for=(OF_RESPONSE,)),
        Knob("ChannelBufferSize", 256, stands_for=(QUEUED,)),
    ),
    (CONSUMER, KAFKAJS): (
        Knob("maxBytes", 10485760, stands_for=(OF_FETCH,)),
        Knob("maxBytesPerPartition", 1048576, stands_for=(OF_PARTITION,)),
    ),
    (CONSUMER, KAFKA_GO): (
        Knob("MaxBytes", 1000000, minimum=1, stands_for=(OF_FETCH, OF_PARTITION)),
        Knob("QueueCapacity", 100, minimum=1, stands_for=(QUEUED,)),
    ),
    (CONSUMER, OTHER): (
        Knob("fetch.max.bytes", INT_MAX),
        Knob("max.partition.fetch.bytes", INT_MAX),
        Knob("receive.message.max.bytes", None, minimum=1),
        Knob("max.poll.records", None, minimum=1),
    ),
}


@dataclass(frozen=True)
class Settings:
    """The settings of one role: those that were given, over the defaults of its library."""

    role: str
    library: str
    given: Mapping[str, int | str]

    @property
    def whose(self) -> str:
        """Whose defaults these are, as messages name them."""
        return f"{self.library}'s" if self.library else "Kafka's"

    def knob(self, name: str) -> Knob | None:
        """Returns the knob of a name, with dots or underscores, or what stands for it; None where there is none."""
        knobs = KNOBS[self.role, self.library]
        return next((knob for knob in knobs if dotted(name) in (dotted(knob.name), *knob.stands_for)), None)

    def is_given(self, name: str) -> bool:
        """Whether it was given, or its default counts."""
        knob = self.knob(name)
        return knob is not None and dotted(knob.name) in self.given

    def size_bytes(self, name: str) -> int | None:
        """Returns a setting in bytes (or as the plain number it is); None where there is no such limit."""
        knob = self.knob(name)
        if knob is None:
            return None
        value = self.given.get(dotted(knob.name), knob.default)
        return None if value is None else int(value) * knob.unit_bytes

    def word(self, name: str) -> str | None:
        """Returns a setting that is a word; None where it is not set."""
        knob = self.knob(name)
        value = self.given.get(dotted(knob.name), knob.default) if knob else None
        return None if value is None else str(value)


def make_settings(role: str, library: str, given: Mapping[str, object], problems: list[str]) -> Settings:
    """Returns the settings of a role; what is wrong with the given ones is added to `problems`."""
    known = {dotted(name): knob for knob in KNOBS[role, library] for name in (knob.name, *knob.aliases)}
    values: dict[str, int | str] = {}
    for name, text in given.items():
        knob = known.get(dotted(name))
        if knob is None:
            problems.append(_unknown(role, library, name))
            continue
        try:
            value = _value(knob, text)
        except ValueError as error:
            problems.append(f"{role}: {name} = {error}")
            continue
        before = values.setdefault(dotted(knob.name), value)
        if before != value:
            others = " and ".join((knob.name, *knob.aliases))
            problems.append(f"{role}: {others} are one setting, given as {before} and {value}: leave one of them out")
    return Settings(role, library, values)


def known_names(role: str, library: str) -> set[str]:
    """Returns the names of all knobs of a role, with dots."""
    return {dotted(name) for knob in KNOBS[role, library] for name in (knob.name, *knob.aliases)}


def dotted(name: str) -> str:
    """Returns a name as Kafka writes it."""
    return name.replace("_", ".")


def _unknown(role: str, library: str, name: str) -> str:
    if name == "library":
        return f"{role}: library is no setting: write {role}_library = NAME, outside of this table"
    of = f"{role} setting of {library}" if library else f"{role} setting"
    text = unknown_name(of, name, [knob.name for knob in KNOBS[role, library]])
    others = [
        other
        for (at, other) in KNOBS
        if at == role and other not in (library, OTHER) and dotted(name) in known_names(at, other)
    ]
    return text + (f". It is one of {', '.join(others)}: say --{role}-library" if others else "")


def _value(knob: Knob, given: object) -> int | str:
    if knob.choices:
        word = str(given).strip()
        if word not in knob.choices:
            raise ValueError(f"{word!r} is none of: {', '.join(knob.choices)}")
        return word
    size = parse_size(given)
    words = isinstance(given, str) and not given.strip().replace(".", "").isdigit()
    if words and size % knob.unit_bytes:
        raise ValueError(f"{given!r} is not a whole number of its unit of {knob.unit_bytes} bytes")
    value = size // knob.unit_bytes if words else size
    if not knob.minimum <= value <= knob.maximum:
        raise ValueError(f"{given!r} is out of its range, {knob.minimum} to {knob.maximum}: nothing starts with it")
    return value
