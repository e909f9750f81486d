"""Kafka's jars by version: of brokers, and of the tools that tests ask (`jars.py` fetches and verifies them)."""

from __future__ import annotations

from pathlib import Path

from kafka_trial.cluster.jars import IvyModule, JarSet, jars_of
from kafka_trial.cluster.versions import KafkaVersion

KAFKA = "org.apache.kafka"
JARS_MB = 45  # of a version


def kafka_jar_set(version: str) -> JarSet:
    """Returns the set of jars of a Kafka version."""
    modules = (
        IvyModule(KAFKA, "kafka_2.13", version),
        IvyModule(KAFKA, "kafka-tools", version, transitive=False),
        IvyModule(*KafkaVersion(version).logging_dependency),
    )
    return JarSet(f"Kafka {version}", f"kafka/{version}", f"{version}.sha256", modules, JARS_MB)


def kafka_jars(version: str) -> list[Path]:
    """Returns the verified jars of a Kafka version, sorted; resolves them the first time.

    Raises:
        InputError: a jar's checksum is not the committed one.
        StartError: they cannot be resolved.
    """
    return jars_of(kafka_jar_set(version))


def class_path(version: str) -> str:
    """Returns the sorted, explicit class path of a Kafka version (the same string in training and use)."""
    return ":".join(map(str, kafka_jars(version)))
