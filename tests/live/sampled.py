"""The committed sample of live trials: which consumers go through which suites on which Kafka in `make test`.

Pairwise: every reference in at least two suites, every suite with at least two references, three on 3.9.2; every sin in
the suite its header names, and its twin with the sin switched off. The whole grid is `make calibrate`.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from kafka_trial import registry
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.fixture_header import fixture_header
from kafka_trial.question import make_question
from kafka_trial.session import Asked

SEED = 20260101


@dataclass(frozen=True)
class Sampled:
    """One trial of the sample; `sin` is None for a reference, else whether the sin is switched on."""

    consumer: str
    scenario: str
    kafka_version: str = DEFAULT_VERSION
    sin: bool | None = None

    def __str__(self) -> str:
        switch = {None: "", True: "-sinning", False: "-sin-off"}[self.sin]
        return f"{self.consumer}{switch}-on-{self.scenario}-{self.kafka_version}".replace("/", "-")


SOUND = (
    Sampled("python-at-least-once", "member-killed"),
    Sampled("python-at-least-once", "slow-network", "3.9.2"),
    Sampled("python-at-least-once/cooperative", "rebalance-storm"),
    Sampled("python-at-least-once/cooperative", "coordinator-lost"),
    Sampled("python-at-least-once/consumer-protocol", "member-paused"),
    Sampled("python-at-least-once/consumer-protocol", "rolling-restart"),
    Sampled("python-at-most-once", "member-paused", "3.9.2"),
    Sampled("python-at-most-once", "leader-lost"),
    Sampled("python-at-most-once/cooperative", "stalled-network"),
    Sampled("python-at-most-once/cooperative", "control"),
    Sampled("python-at-most-once/consumer-protocol", "rebalance-storm"),
    Sampled("python-at-most-once/consumer-protocol", "large-records"),
    Sampled("kafka-verifiable-consumer", "member-killed"),
    Sampled("kafka-verifiable-consumer", "control", "3.9.2"),
    Sampled("kafka-python-at-least-once", "stalled-network"),
    Sampled("kafka-python-at-least-once", "leader-lost"),
    Sampled("python-poll-and-work", "large-records"),
    Sampled("python-poll-and-work", "slow-network"),
    Sampled("python-poll-and-work/cooperative", "member-paused"),
    Sampled("python-poll-and-work/cooperative", "stalled-network"),
    Sampled("python-poll-and-work/consumer-protocol", "rebalance-storm"),
    Sampled("python-poll-and-work/consumer-protocol", "member-paused"),
    Sampled("python-worker-pool", "coordinator-lost"),
    Sampled("python-worker-pool", "rolling-restart"),
    Sampled("python-retry-later", "control"),
    Sampled("python-retry-later", "member-killed"),
)


def sins() -> list[Sampled]:
    """Returns every sin in the suite its header names: switched on, and off."""
    folder = registry.faulty_folder()
    assert folder is not None, "the faulty consumers are in the checkout"
    return [
        Sampled(main.parent.name, fixture_header(main).suite, sin=sin)
        for main in sorted(folder.glob("*/main.py"))
        for sin in (True, False)
    ]


def asked(sampled: Sampled, folder: Path) -> Asked:
    """Returns the trial to ask for; a sin is switched off in a copy of its folder, the rest is untouched."""
    consumer = registry.find_consumer(sampled.consumer)
    if sampled.sin is False:
        shutil.copytree(consumer.parent, folder / "consumer")
        consumer = folder / "consumer" / "consumer.toml"
        text = consumer.read_text()
        assert 'SIN = "1"' in text
        consumer.write_text(text.replace('SIN = "1"', 'SIN = "0"'))
    question = make_question(
        registry.find_scenario(sampled.scenario), consumer, kafka_version=sampled.kafka_version, seed=SEED
    )
    return Asked(question, folder / "run")
