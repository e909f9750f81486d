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
class SizeLimit:
    """A setting: its name, default and range in its own unit, how many bytes that unit is, and its other names.

    A default of None is "not set": the topic then takes the broker's, a client has no limit. A setting with `choices`
    is a word, not a number. `stands_for` are the names of the settings of Java that it has the place of, where its own
    name is another.
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
    SizeLimit("max.request.size", 1048576),
    SizeLimit("buffer.memory", 33554432, maximum=LONG_MAX),
    SizeLimit("batch.size", 16384),
    SizeLimit("compression.type", "none", choices=CODECS),
)
_JAVA_CONSUMER = (
    SizeLimit("fetch.max.bytes", 52428800),
    SizeLimit("max.partition.fetch.bytes", 1048576),
    SizeLimit("max.poll.records", 500, minimum=1),
)
SIZE_SETTINGS: Final[Mapping[tuple[str, str], Sequence[SizeLimit]]] = {
    (BROKER, ""): (
        SizeLimit("message.max.bytes", 1048588),
        SizeLimit("socket.request.max.bytes", 104857600, minimum=1),
        SizeLimit("log.segment.bytes", 1073741824, minimum=14),
        SizeLimit("replica.fetch.max.bytes", 1048576),
        SizeLimit("replica.fetch.response.max.bytes", 10485760),
        SizeLimit("fetch.max.bytes", 57671680, minimum=1024),
        SizeLimit("compression.type", "producer", choices=BROKER_CODECS),
    ),
    (TOPIC, ""): (
        SizeLimit("max.message.bytes", None),
        SizeLimit("segment.bytes", None, minimum=14),
        SizeLimit("compression.type", None, choices=BROKER_CODECS),
    ),
    (PRODUCER, JAVA): _JAVA_PRODUCER,
    (PRODUCER, JAVA_3): _JAVA_PRODUCER,
    (PRODUCER, LIBRDKAFKA): (
        SizeLimit("message.max.bytes", 1000000, minimum=1000, maximum=1000000000),
        SizeLimit("queue.buffering.max.kbytes", 1048576, minimum=1, unit_bytes=1024),
        SizeLimit("batch.size", 1000000, minimum=1),
        SizeLimit("batch.num.messages", 10000, minimum=1, maximum=1000000),
        SizeLimit("compression.type", "none", aliases=("compression.codec",), choices=CODECS),
    ),
    (PRODUCER, KAFKA_PYTHON): (
        SizeLimit("max_request_size", 1048576),
        SizeLimit("batch_size", 16384),
        SizeLimit("compression_type", "none", choices=CODECS),
    ),
    (PRODUCER, AIOKAFKA): (
        SizeLimit("max_request_size", 1048576),
        SizeLimit("max_batch_size", 16384),
        SizeLimit("compression_type", "none", choices=CODECS),
    ),
    (PRODUCER, FRANZ_GO): (
        SizeLimit("ProducerBatchMaxBytes", 1000012, minimum=512, maximum=1 << 30),
        SizeLimit("MaxBufferedBytes", None, minimum=1, maximum=LONG_MAX),
        SizeLimit("ProducerBatchCompression", "snappy", choices=CODECS, stands_for=(COMPRESSION,)),
    ),
    (PRODUCER, SARAMA): (
        SizeLimit("Producer.MaxMessageBytes", 1048576, minimum=1),
        SizeLimit("Producer.Flush.MaxMessages", None, minimum=1),
        SizeLimit("Producer.Compression", "none", choices=CODECS, stands_for=(COMPRESSION,)),
    ),
    (PRODUCER, KAFKAJS): (SizeLimit("compression", "none", choices=CODECS, stands_for=(COMPRESSION,)),),
    (PRODUCER, KAFKA_GO): (
        SizeLimit("BatchBytes", 1048576, minimum=1, maximum=LONG_MAX),
        SizeLimit("BatchSize", 100, minimum=1),
        SizeLimit("Compression", "none", choices=CODECS, stands_for=(COMPRESSION,)),
    ),
    (PRODUCER, OTHER): (
        SizeLimit("max.request.size", None, minimum=1),
        SizeLimit("batch.size", None, minimum=1),
        SizeLimit("batch.num.messages", None, minimum=1),
        SizeLimit("splits.refused.batches", "no", choices=("yes", "no")),
        SizeLimit("compression.type", "none", choices=CODECS),
    ),
    (CONSUMER, JAVA): _JAVA_CONSUMER,
    (CONSUMER, JAVA_3): _JAVA_CONSUMER,
    (CONSUMER, LIBRDKAFKA): (
        SizeLimit("message.max.bytes", 1000000, minimum=1000, maximum=1000000000),
        SizeLimit("fetch.max.bytes", 52428800, maximum=INT_MAX - 512),
        SizeLimit("max.partition.fetch.bytes", 1048576, 1, 1000000000, aliases=("fetch.message.max.bytes",)),
        SizeLimit("receive.message.max.bytes", 100000000, minimum=1000),
        SizeLimit("queued.max.messages.kbytes", 65536, minimum=1, maximum=INT_MAX // 1024, unit_bytes=1024),
        SizeLimit("queued.min.messages", 100000, minimum=1, maximum=10000000),
    ),
    (CONSUMER, KAFKA_PYTHON): (
        SizeLimit("fetch_max_bytes", 52428800),
        SizeLimit("max_partition_fetch_bytes", 1048576),
        SizeLimit("receive_message_max_bytes", 100000000),
        SizeLimit("max_poll_records", 500, minimum=1),
    ),
    (CONSUMER, AIOKAFKA): (
        SizeLimit("fetch_max_bytes", 52428800),
        SizeLimit("max_partition_fetch_bytes", 1048576),
        SizeLimit("max_poll_records", None, minimum=1),
    ),
    (CONSUMER, FRANZ_GO): (
        SizeLimit("FetchMaxBytes", 52428800, stands_for=(OF_FETCH,)),
        SizeLimit("FetchMaxPartitionBytes", 1048576, stands_for=(OF_PARTITION,)),
        SizeLimit("BrokerMaxReadBytes", 104857600, minimum=1024, maximum=1 << 30, stands_for=(OF_RESPONSE,)),
    ),
    (CONSUMER, SARAMA): (
        SizeLimit("Consumer.Fetch.MaxBytes", 52428800, minimum=1, stands_for=(OF_FETCH,)),
        SizeLimit("Consumer.Fetch.Default", 1048576, minimum=1, stands_for=(OF_PARTITION,)),
        SizeLimit("sarama.MaxResponseSize", 104857600, minimum=1, stands_for=(OF_RESPONSE,)),
        SizeLimit("ChannelBufferSize", 256, stands_for=(QUEUED,)),
    ),
    (CONSUMER, KAFKAJS): (
        SizeLimit("maxBytes", 10485760, stands_for=(OF_FETCH,)),
        SizeLimit("maxBytesPerPartition", 1048576, stands_for=(OF_PARTITION,)),
    ),
    (CONSUMER, KAFKA_GO): (
        SizeLimit("MaxBytes", 1000000, minimum=1, stands_for=(OF_FETCH, OF_PARTITION)),
        SizeLimit("QueueCapacity", 100, minimum=1, stands_for=(QUEUED,)),
    ),
    (CONSUMER, OTHER): (
        SizeLimit("fetch.max.bytes", INT_MAX),
        SizeLimit("max.partition.fetch.bytes", INT_MAX),
        SizeLimit("receive.message.max.bytes", None, minimum=1),
        SizeLimit("max.poll.records", None, minimum=1),
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

    def setting_of(self, name: str) -> SizeLimit | None:
        """Returns the setting of a name, with dots or underscores, or what stands for it; None where there is none."""
        size_settings = SIZE_SETTINGS[self.role, self.library]
        return next(
            (setting for setting in size_settings if dotted(name) in (dotted(setting.name), *setting.stands_for)), None
        )

    def is_given(self, name: str) -> bool:
        """Whether it was given, or its default counts."""
        setting = self.setting_of(name)
        return setting is not None and dotted(setting.name) in self.given

    def size_bytes(self, name: str) -> int | None:
        """Returns a setting in bytes (or as the plain number it is); None where there is no such limit."""
        setting = self.setting_of(name)
        if setting is None:
            return None
        value = self.given.get(dotted(setting.name), setting.default)
        return None if value is None else int(value) * setting.unit_bytes

    def word(self, name: str) -> str | None:
        """Returns a setting that is a word; None where it is not set."""
        setting = self.setting_of(name)
        value = self.given.get(dotted(setting.name), setting.default) if setting else None
        return None if value is None else str(value)


def make_settings(role: str, library: str, given: Mapping[str, object], problems: list[str]) -> Settings:
    """Returns the settings of a role; what is wrong with the given ones is added to `problems`."""
    known = {
        dotted(name): setting for setting in SIZE_SETTINGS[role, library] for name in (setting.name, *setting.aliases)
    }
    values: dict[str, int | str] = {}
    for name, text in given.items():
        setting = known.get(dotted(name))
        if setting is None:
            problems.append(_unknown(role, library, name))
            continue
        try:
            value = _value(setting, text)
        except ValueError as error:
            problems.append(f"{role}: {name} = {error}")
            continue
        before = values.setdefault(dotted(setting.name), value)
        if before != value:
            others = " and ".join((setting.name, *setting.aliases))
            problems.append(f"{role}: {others} are one setting, given as {before} and {value}: leave one of them out")
    return Settings(role, library, values)


def known_names(role: str, library: str) -> set[str]:
    """Returns the names of all size_settings of a role, with dots."""
    return {dotted(name) for setting in SIZE_SETTINGS[role, library] for name in (setting.name, *setting.aliases)}


def dotted(name: str) -> str:
    """Returns a name as Kafka writes it."""
    return name.replace("_", ".")


def _unknown(role: str, library: str, name: str) -> str:
    if name == "library":
        return f"{role}: library is no setting: write {role}_library = NAME, outside of this table"
    of = f"{role} setting of {library}" if library else f"{role} setting"
    text = unknown_name(of, name, [setting.name for setting in SIZE_SETTINGS[role, library]])
    others = [
        other
        for (at, other) in SIZE_SETTINGS
        if at == role and other not in (library, OTHER) and dotted(name) in known_names(at, other)
    ]
    return text + (f". It is one of {', '.join(others)}: say --{role}-library" if others else "")


def _value(setting: SizeLimit, given: object) -> int | str:
    if setting.choices:
        word = str(given).strip()
        if word not in setting.choices:
            raise ValueError(f"{word!r} is none of: {', '.join(setting.choices)}")
        return word
    size = parse_size(given)
    words = isinstance(given, str) and not given.strip().replace(".", "").isdigit()
    if words and size % setting.unit_bytes:
        raise ValueError(f"{given!r} is not a whole number of its unit of {setting.unit_bytes} bytes")
    value = size // setting.unit_bytes if words else size
    if not setting.minimum <= value <= setting.maximum:
        raise ValueError(
            f"{given!r} is out of its range, {setting.minimum} to {setting.maximum}: nothing starts with it"
        )
    return value
