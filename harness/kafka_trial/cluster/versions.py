"""The Kafka versions this harness knows, and what differs between them.

A new version is one more of `NUMBERS`. Where brokers of it differ from all before, that is a release among the
constants below, which `KafkaVersion` asks. `python -m lab.kafka_versions NUMBER` does the rest (CONTRIBUTING.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from kafka_trial.errors import InputError, did_you_mean

DEFAULT_VERSION = "4.3.1"
NUMBERS: Final = ("3.7.2", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")


class Release(NamedTuple):
    """The numbers of a version: 4.10.0 comes after 4.9.1. Without a patch it is the first of its line."""

    major: int
    minor: int
    patch: int = 0

    @property
    def line(self) -> str:
        """The major and the minor number, which all patches share."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return f"{self.line}.{self.patch}"


ADVERTISED_CONTROLLERS: Final = Release(3, 9)  # KIP-853: before, a combined node that advertises them does not start
LOG4J2: Final = Release(4, 0)  # KIP-653
CONSUMER_PROTOCOL: Final = Release(4, 0)  # KIP-848: generally available, on by default
KRAFT_ONLY: Final = Release(4, 0)  # KIP-833
ASSIGNMENT_INTERVALS: Final = Release(4, 3)  # KIP-1263: brokers wait a second for more members by default


@dataclass(frozen=True)
class KafkaVersion:
    """One version: its logging flavour, which group protocols its brokers speak, and which settings they know."""

    number: str

    @property
    def release(self) -> Release:
        return parse_release(self.number)

    @property
    def advertised_controllers(self) -> bool:
        """Whether controllers' listeners may stand in `advertised.listeners`."""
        return self.release >= ADVERTISED_CONTROLLERS

    @property
    def log4j2(self) -> bool:
        return self.release >= LOG4J2

    @property
    def consumer_protocol(self) -> bool:
        """KIP-848, `group.protocol=consumer`, without a preview being turned on."""
        return self.release >= CONSUMER_PROTOCOL

    @property
    def kraft_only(self) -> bool:
        """Without ZooKeeper, and what was set for its sake: `controlled.shutdown.retry.backoff.ms` is unknown."""
        return self.release >= KRAFT_ONLY

    @property
    def assignment_intervals(self) -> bool:
        """`group.consumer.assignment.interval.ms` and the like."""
        return self.release >= ASSIGNMENT_INTERVALS

    @property
    def logging_dependency(self) -> tuple[str, str, str]:
        """The one slf4j binding of this version (two bindings on a class path lose all logs silently)."""
        if self.log4j2:
            return ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.1")
        return ("org.slf4j", "slf4j-reload4j", "1.7.36")


KNOWN: Final = {number: KafkaVersion(number) for number in NUMBERS}


def find_version(number: str, *, where: str = "--kafka") -> str:
    """Returns `number` when it is a known version.

    Raises:
        InputError: it is not; the message lists those there are.
    """
    if number not in KNOWN:
        line = number.rpartition(".")[0]
        near = did_you_mean(number, [known for known in KNOWN if known.startswith(f"{line}.")] or KNOWN)
        raise InputError(where, f"unknown Kafka version {number!r}.{near} Valid: {', '.join(KNOWN)}")
    return number


def parse_release(number: str) -> Release:
    """Returns the numbers of a version, be it known or not.

    Raises:
        InputError: it is no version of Kafka.
    """
    found = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?", number, re.ASCII)
    if found is None:
        raise InputError(f"Kafka version {number!r}", "expected two or three numbers with dots, as in 4.3.1")
    return Release(*(int(part) for part in found.groups(default="0")))


def said_version(log: Path, *, from_byte: int = 0) -> str | None:
    """Returns the version that a broker says last in its server.log, from a byte on; None: it says none there."""
    if not log.exists():
        return None
    with log.open("rb") as file:
        file.seek(from_byte)
        said = re.findall(rb"Kafka version: (\S+)", file.read())
    return said[-1].decode(errors="replace") if said else None


def is_of(said: str | None, version: str) -> bool:
    """Tells whether what a broker says of its version agrees with one: `4.3.1-hardened` is 4.3.1; so does silence."""
    return said is None or f"{said}-".startswith(f"{version}-")


def oldest_first(numbers: Iterable[str]) -> list[str]:
    """Returns versions in their order; what is no version (a row that says none) comes first."""
    return sorted(numbers, key=lambda number: [int(part) for part in re.findall(r"\d+", number)])
