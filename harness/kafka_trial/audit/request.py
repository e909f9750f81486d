"""What an audit is asked: which group, on which topic, between which times, with which further evidence and limits.

Stands between the words of the command line and the export. All that is wrong with them is told at once, before any
broker is asked. The sink tells, by record id, which records were handled: topics, or a statement to a database;
`sink.py` reads it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from kafka_trial.errors import InputError
from kafka_trial.history.json_paths import json_path, json_path_problem
from kafka_trial.kafka_protocol.security import UNSECURED, Security

TOPIC, TABLE = "topic", "table"
POSTGRESQL, SQLITE = ("postgresql", "postgres"), ("sqlite",)
URLS = "postgresql://USER@HOST/DATABASE, or sqlite:///FILE"
NO_PASSWORD = (
    "--sink-db: a password stands in the URL, where every user of this machine can read it: "
    "leave it to PGPASSWORD or ~/.pgpass"
)


@dataclass(frozen=True)
class Identity:
    """Where a record's id is: in a header, else at a path of its JSON value (`a.b`, `$.a[0].b`)."""

    header: str = "kt-id"  # as in consumer.toml
    field: str = "id"

    def __str__(self) -> str:
        return f"neither the header {self.header} nor {json_path(self.field)} of a JSON value"


@dataclass(frozen=True)
class Sink:
    """Topics with ids of what was handled, or a database and the statement that asks it for them."""

    topics: tuple[str, ...] = ()
    identity: Identity = Identity()
    url: str = ""
    query: str = ""

    @property
    def kind(self) -> str:
        return TOPIC if self.topics else TABLE

    @property
    def name(self) -> str:
        """What it is called in messages: no path of this machine, no name of a user."""
        return ", ".join(self.topics) or Path(urlsplit(self.url).path).name or "the database"


def identity_of(words: Mapping[str, Any], prefix: str = "", otherwise: Identity | None = None) -> Identity:
    """Returns where ids are, by `--<prefix>id-header` and `--<prefix>id-field`, a JSON path with or without `$.`."""
    header, field = (words.get(f"{prefix}id_{name}") for name in ("header", "field"))
    found = otherwise or Identity()
    found = replace(found, header=header) if header else found
    return replace(found, field=field.removeprefix("$.")) if field else found


def sink_of(words: Mapping[str, Any], problems: list[str]) -> Sink | None:
    """Returns the sink that the words of the command line name, None for none; what is wrong with them is added."""
    topics, url, query = (words.get(name) for name in ("sink_topic", "sink_db", "sink_query"))
    if topics and (url or query):
        problems.append("--sink-topic and --sink-db: name one of them, where every record must arrive")
    if words["topic"] in (topics or ()):
        problems.append(f"--sink-topic {words['topic']} is the audited topic itself")
    if bool(url) != bool(query):
        problems.append(
            "--sink-db and --sink-query belong together, as in --sink-query 'select order_id, written_at from done'"
        )
    if url:
        problems += _url_problems(url)
    elsewhere = [name for name in ("sink_id_header", "sink_id_field") if words.get(name) and not topics]
    problems += [
        f"--{name.replace('_', '-')} says where ids are in a --sink-topic: there is none" for name in elsewhere
    ]
    if not topics and not url:
        return None
    identity = identity_of(words, "sink_", identity_of(words))
    return Sink(tuple(dict.fromkeys(topics or ())), identity, url or "", query or "")


def sqlite_file(url: str) -> Path:
    """Returns the file of a `sqlite:///relative` or `sqlite:////absolute` URL."""
    return Path(urlsplit(url).path.removeprefix("/"))


def _url_problems(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        password = _password(parts)
    except ValueError as error:
        return [f"--sink-db is no URL ({error}): write {URLS}"]
    if password:
        return [NO_PASSWORD]
    if parts.scheme in POSTGRESQL:
        return []
    if parts.scheme not in SQLITE:
        return [f"--sink-db: {parts.scheme or 'it'!r} is no database that this version reads: write {URLS}"]
    return [] if sqlite_file(url).is_file() else [f"--sink-db: there is no file {sqlite_file(url)}"]


def _password(parts: SplitResult) -> bool:
    return parts.password is not None or any("password" in name for name, _ in parse_qsl(parts.query))


NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
AGO = re.compile(r"(\d+(?:\.\d+)?)(s|min|h|d)")
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
TIMES = "a time like 2026-01-31T02:00:00Z, or how long ago: 90s, 30min, 12h, 2d"
ADDRESS = re.compile(r"\[?[^\s,\]]+\]?:\d{1,5}")


@dataclass(frozen=True)
class Limits:
    """How much an audit reads at most: of each log (of offsets, the topic, the sink), and in all.

    What was left unread for it is said in the verdict, which then is no pass.
    """

    bytes_max: int = 1 << 30
    records_max: int = 5_000_000
    minutes_max: float = 10.0
    readers: int = 4


@dataclass(frozen=True)
class AuditRequest:
    """What is asked. Times in nanoseconds since 1970, by the clocks of brokers and producers.

    `security` holds passwords: it is in no text that is made of this, and in none of its `metadata`.
    """

    bootstrap: str
    topic: str
    group: str
    from_ns: int
    until_ns: int
    request_logs: tuple[Path, ...] = ()
    identity: Identity = field(default_factory=Identity)
    sink: Sink | None = None
    claim: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()
    security: Security = field(default=UNSECURED, repr=False, compare=False)

    @property
    def metadata(self) -> dict[str, Any]:
        """What may be written down of it: the security by its protocol and the path of its file only."""
        return asdict(replace(self, security=UNSECURED)) | {
            "request_logs": [path.name for path in self.request_logs],
            "claim": dict(self.claim),
            "security": {"protocol": self.security.protocol, "command_config": self.security.config or None},
        }

    @property
    def window(self) -> str:
        return f"{stamp(self.from_ns)} to {stamp(self.until_ns)}"


def make_audit_request(words: Mapping[str, Any], *, now_ns: int) -> AuditRequest:
    """Returns what the words of the command line ask.

    Raises:
        InputError: some of them make no sense; all of these are told.
    """
    problems: list[str] = []
    from_ns, until_ns = (_time_ns(f"--{name}", words[name], now_ns, problems) for name in ("from", "until"))
    problems += _window_problems(from_ns, until_ns, now_ns)
    problems += _bootstrap_problems(words["bootstrap"])
    problems += [
        f"--{name.replace('_', '-')} {words[name]!r}: {wrong}"
        for name in ("id_field", "sink_id_field")
        if words.get(name) and (wrong := json_path_problem(words[name]))
    ]
    logs = tuple(Path(name) for name in words.get("request_logs") or ())
    problems += [f"--request-log {path}: there is no such file" for path in logs if not path.is_file()]
    sink = sink_of(words, problems)
    limits = _limits(words, problems)
    if problems:
        raise InputError("audit", problems)
    return AuditRequest(
        bootstrap=words["bootstrap"],
        topic=words["topic"],
        group=words["group"],
        from_ns=from_ns,
        until_ns=until_ns,
        request_logs=logs,
        identity=identity_of(words),
        sink=sink,
        claim=words.get("claim") or {},
        limits=limits,
        security=words.get("security") or UNSECURED,
    )


def stamp(time_ns: int) -> str:
    """Returns a time as people write it, in UTC."""
    moment = datetime.datetime.fromtimestamp(time_ns / NS_PER_S, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _time_ns(option: str, text: str, now_ns: int, problems: list[str]) -> int:
    if text == "now":
        return now_ns
    if ago := AGO.fullmatch(text):
        return now_ns - int(float(ago[1]) * SECONDS[ago[2]] * NS_PER_S)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        problems.append(f"{option} {text!r} is no time: write {TIMES}")
        return 0
    if moment.tzinfo is None:
        problems.append(f"{option} {text!r} names no time zone: add Z for UTC, or an offset like +02:00")
    return int(moment.timestamp() * NS_PER_S)


def _window_problems(from_ns: int, until_ns: int, now_ns: int) -> list[str]:
    if not from_ns or not until_ns:
        return []  # told already
    if from_ns >= until_ns:
        return [f"--from {stamp(from_ns)} is not before --until {stamp(until_ns)}: are they reversed?"]
    if until_ns > now_ns:
        return [f"--until {stamp(until_ns)} lies in the future; it is {stamp(now_ns)} on this machine"]
    return []


def _bootstrap_problems(text: str) -> list[str]:
    wrong = [part for part in text.split(",") if not ADDRESS.fullmatch(part)]
    return [f"--bootstrap: {part!r} is no host:port" for part in wrong]


def _limits(words: Mapping[str, Any], problems: list[str]) -> Limits:
    default = Limits()
    given = {
        "--max-mib": (words.get("max_mib"), default.bytes_max / (1 << 20)),
        "--max-records": (words.get("max_records"), default.records_max),
        "--max-minutes": (words.get("max_minutes"), default.minutes_max),
        "--readers": (words.get("readers"), default.readers),
    }
    problems += [f"{name} {value} must be above 0" for name, (value, _) in given.items() if not _positive(value)]
    mib, records, minutes, readers = (otherwise if value is None else value for value, otherwise in given.values())
    return Limits(int(mib * (1 << 20)), int(records), float(minutes), int(readers))


def _positive(value: float | None) -> bool:
    return value is None or value > 0
