"""What an audit is asked: which group, on which topic, between which times, with which further evidence and limits.

Stands between the words of the command line and the export. All that is wrong with them is told at once, before any
broker is asked.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kafka_trial.audit.sink import Identity, Sink, identity_of, sink_of
from kafka_trial.errors import InputError
from kafka_trial.kafka_protocol.security import UNSECURED, Security

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

    `security` holds passwords: it is in no text that is made of this, and in none of its `facts`.
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
    def facts(self) -> dict[str, Any]:
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
