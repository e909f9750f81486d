"""The Kafka versions this harness knows, and what differs between them."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_trial.errors import InputError, unknown_name

DEFAULT_VERSION = "4.3.1"


@dataclass(frozen=True)
class KafkaVersion:
    """One version: its logging flavour and which group protocols its brokers speak."""

    number: str
    log4j2: bool
    consumer_protocol: bool  # KIP-848, `group.protocol=consumer`

    @property
    def logging_dependency(self) -> tuple[str, str, str]:
        """The one slf4j binding of this version (two bindings on a class path lose all logs silently)."""
        if self.log4j2:
            return ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.1")
        return ("org.slf4j", "slf4j-reload4j", "1.7.36")


KNOWN = {
    version.number: version
    for version in (
        KafkaVersion("3.9.2", log4j2=False, consumer_protocol=False),
        KafkaVersion("4.0.2", log4j2=True, consumer_protocol=True),
        KafkaVersion("4.1.2", log4j2=True, consumer_protocol=True),
        KafkaVersion("4.2.1", log4j2=True, consumer_protocol=True),
        KafkaVersion("4.3.1", log4j2=True, consumer_protocol=True),
    )
}


def find_version(number: str) -> str:
    """Returns `number` when it is a known version.

    Raises:
        InputError: it is not; the message lists those there are.
    """
    if number not in KNOWN:
        raise InputError("--kafka", unknown_name("Kafka version", number, KNOWN))
    return number
