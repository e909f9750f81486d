"""The consumer under test as a frozen value: what its consumer.toml says (read and checked by `spec_toml.py`).

Placeholders are words in braces that the harness fills in for each member ({{ is a brace). The list is closed: what is
not in it is wrong input, found before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from signal import Signals
from string import Formatter

from kafka_trial.claim import Claim
from kafka_trial.errors import unknown_name
from kafka_trial.history.record_ids import ID_HEADER
from kafka_trial.workload.payload import PayloadFiles

CONSUMER_SCHEMA = 1
PROTOCOLS = ("classic", "consumer", "none")
PROGRESS_KINDS = ("kafka", "transaction", "sink", "checkpoint", "none")
EVENT_DIALECTS = ("jsonl", "verifiable", "none")
HANDLERS = ("record", "batch")
SINKS = ("http", "topic", "postgres", "none")
OUTCOMES = ("done", "discarded", "dead-lettered", "failed")  # of a record that was processed; failed: to be tried again
EFFECTS = ("record", "state")
BODIES = ("own", "value")
HOLDS = ("null-values", "null-keys", "unreadable-values")  # by the names of a load's shares
STDOUTS = ("lines", "buffered")
STOP_SIGNALS = ("TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "KILL")


@dataclass(frozen=True)
class KafkaSettings:
    """How the members talk to their group, for the placeholders, and for bounds where no broker was told.

    `request_timeout_s`: how long a client waits for an answer that never comes; None: not counted. `several_topics`: it
    takes the list in {topics} or {topics_json}.
    """

    protocol: str = "classic"
    session_timeout_s: float = 6.0
    poll_interval_s: float = 10.0
    metadata_age_s: float = 300.0  # the default of most clients
    request_timeout_s: float | None = None
    several_topics: bool = False


@dataclass(frozen=True)
class ProgressPlace:
    """Where the committed position lives. `table` and `columns` belong to sink, `path` to checkpoint.

    `through`: topics of the consumer's own that records are handed on through, besides those that its group is seen to
    commit on. They may hold the placeholders that are the same for all members.
    """

    kind: str = "kafka"
    interval_s: float = 1.0
    through: tuple[str, ...] = ()
    table: str | None = None
    columns: tuple[str, ...] = ()
    path: str | None = None


@dataclass(frozen=True)
class EvidenceGiven:
    """What the consumer lets us see: its own lines (flushed one by one, or buffered), and where its output goes.

    `no_effect`: the outcomes of a record that the sink need not hear of. `effects`: "record" (each record has its own),
    "state" (of a table: a later one of its key is enough). `body` of an effect: "value" (the record's), "own".
    `handler`: whether a handler takes one record or a whole batch, which then is one unit. `handler_max_s`: how long
    one record may be in its handler; None: as long as one was before the faults.
    """

    events: str = "jsonl"
    sink: str = "none"
    handler: str = "record"
    dead_letter_topic: str = ""
    no_effect: tuple[str, ...] = ("discarded", "dead-lettered")
    effects: str = "record"
    body: str = "own"
    stdout: str = "lines"
    handler_max_s: float | None = None


@dataclass(frozen=True)
class SinkTopic:
    """The topic that the output goes to (sink = "topic"), made afresh for each trial.

    `name` may hold the placeholders that are the same for all members; `partitions` None: as many as the trial's.
    """

    name: str = "{group}-out"
    partitions: int | None = None


@dataclass(frozen=True)
class SinkPostgres:
    """The table that the output goes to (sink = "postgres"), in a PostgreSQL that is booted for each trial.

    `schema_file`: SQL that creates it, relative to the consumer.toml. `value_column`: the one with the record's value,
    for `body = "value"`. `content`: the columns that make up an effect, whose change is another one; empty: all.
    """

    table: str = "effects"
    schema_file: str = ""
    value_column: str | None = None
    content: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadGiven:
    """Which part of a scenario's load this consumer is tried with; `--load` stands for it."""

    factor: float = 1.0


@dataclass(frozen=True)
class Identity:
    """How a record is recognised at the sink."""

    header: str | None = "kt-id"
    json_path: str | None = None
    column: str | None = None


@dataclass(frozen=True)
class TopicPayload:
    """What the records of one further topic hold; by default JSON with the id inside."""

    template: str | None = None
    samples: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Payload:
    """What the records hold; by default JSON with the id inside. Paths are relative to the file.

    `topics`: what those of a further topic hold instead, by the topic's name in the scenario. `holds`: what its team is
    ready for besides a key and a value that it can read: records without either, or with a value that nobody can
    decode. The id of such a record stands in its header.
    """

    template: str | None = None
    samples: str | None = None
    holds: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, TopicPayload] = field(default_factory=dict)


@dataclass(frozen=True)
class Ready:
    """When a member counts as started: in its group, or a line of its log matches, or a URL answers 2xx."""

    within_s: float = 60.0
    log: str | None = None
    http: str | None = None


@dataclass(frozen=True)
class Stop:
    """How a member is asked to end, and how long it may take."""

    signal: str = "TERM"
    within_s: float = 15.0

    @property
    def number(self) -> Signals:
        return Signals[f"SIG{self.signal}"]


@dataclass(frozen=True)
class ImageLimits:
    """How a container of the consumer's image is run: its limits, an init process in front, further folders inside.

    `mounts`: folders or files beside consumer.toml, each with its place inside.
    """

    memory_bytes: int | None = None
    cpus: float | None = None
    init: bool = False
    mounts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ConsumerSpec:
    """A consumer.toml. `path` is the file itself, `folder` the working folder of the members.

    Members are processes of `command`, or containers of `image`, whose own command an empty one leaves as it is.
    `writes`: patterns of the files beside consumer.toml that the members write (`is_written`).
    """

    path: Path
    name: str
    command: tuple[str, ...]
    claim: Claim
    image: str | None = None
    image_limits: ImageLimits = ImageLimits()
    members: int = 3
    pass_env: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    kafka: KafkaSettings = KafkaSettings()
    progress: ProgressPlace = ProgressPlace()
    evidence: EvidenceGiven = EvidenceGiven()
    sink_topic: SinkTopic = SinkTopic()
    sink_postgres: SinkPostgres = SinkPostgres()
    identity: Identity = Identity()
    payload: Payload = Payload()
    load: LoadGiven = LoadGiven()
    ready: Ready = Ready()
    stop: Stop = Stop()

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def placeholders(self) -> frozenset[str]:
        """The placeholders of what its members are started with."""
        texts = (*self.command, *self.env.values(), self.ready.http or "")
        return frozenset(name for text in texts for name in used_placeholders(text))

    @property
    def payload_files(self) -> PayloadFiles:
        """What the records of its trials are made of, and where the id stands besides."""
        return payload_files(self.payload, self.identity, self.folder)


def payload_files(payload: Payload, identity: Identity, folder: Path) -> PayloadFiles:
    """Returns the files that a payload names, and the header beside `kt-id` in which the id is looked for."""

    def files(given: Payload | TopicPayload) -> PayloadFiles:
        return PayloadFiles(
            template=None if given.template is None else folder / given.template,
            samples=None if given.samples is None else folder / given.samples,
            headers=given.headers,
            id_header=None if identity.header in (None, ID_HEADER) else identity.header,
        )

    return replace(files(payload), topics={name: files(given) for name, given in payload.topics.items()})


def is_written(place: str, writes: Sequence[str]) -> bool:
    """Tells whether a file or folder is one of those that a consumer writes, by the patterns of its `writes`.

    A pattern with a "/" is a place in its folder, one without is a name anywhere. What lies in a folder goes with it.
    """
    parts = place.rstrip("/").split("/")
    places = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    return any(
        fnmatchcase(one, pattern.rstrip("/"))
        for pattern in writes
        for one in (places if "/" in pattern.rstrip("/") else parts)
    )


PLACEHOLDERS = (
    "bootstrap",
    "bootstrap_json",
    "bootstrap_first",
    "group",
    "topics",
    "topics_json",
    "topic_pattern",
    "member",
    "incarnation",
    "members",
    "client_id",
    "host",
    "sink_url",
    "postgres_url",
    "postgres_host",
    "postgres_port",
    "postgres_user",
    "postgres_password",
    "postgres_database",
    "seed",
    "protocol",
    "session_timeout_ms",
    "poll_interval_ms",
    "kafka_version",
    "kafka_classpath",
    "java",
    "python",
    "run_dir",
)
# Of the harness's own machine, which no container sees.
OF_THIS_MACHINE = ("python", "java", "kafka_classpath", "run_dir")
OF_POSTGRES = tuple(name for name in PLACEHOLDERS if name.startswith("postgres_"))  # filled in where that is the sink
# Those that say the same to every member, and are known before a sink is made.
OF_ALL = ("group", "topics", "members", "seed", "protocol", "session_timeout_ms", "poll_interval_ms", "kafka_version")


def placeholder_problems(text: str, *, place: str, known: Sequence[str] = PLACEHOLDERS) -> list[str]:
    """Returns a sentence for each stray brace in `text`, and each placeholder that is none of those `known`."""
    try:
        names = list(used_placeholders(text))
    except ValueError as error:
        return [f"{place} = {text!r}: {error}; write {{{{ and }}}} for braces that are meant"]
    return [f"{place}: {unknown_name('placeholder', name, known)}" for name in names if name not in known]


def used_placeholders(text: str) -> Iterator[str]:
    """Yields the name of each placeholder in `text`, as written.

    Raises:
        ValueError: a brace stands alone.
    """
    for _, name, spec, conversion in Formatter().parse(text):
        if name is not None:
            yield name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Returns `text` with every placeholder replaced; `text` has been checked by `placeholder_problems`."""
    return "".join(
        literal + (values[name] if name is not None else "") for literal, name, _, _ in Formatter().parse(text)
    )
