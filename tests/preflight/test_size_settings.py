"""The table of settings: the defaults are the clients' own, and a value out of its range is refused."""

from __future__ import annotations

import inspect
import re

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from kafka_trial.preflight.size_settings import (
    AIOKAFKA,
    BROKER,
    CONSUMER,
    KAFKA_PYTHON,
    LIBRDKAFKA,
    PRODUCER,
    SIZE_SETTINGS,
    TOPIC,
    SizeLimit,
    make_settings,
)


@pytest.mark.parametrize(
    ("role", "client"), [(PRODUCER, kafka.KafkaProducer), (CONSUMER, kafka.KafkaConsumer)], ids=[PRODUCER, CONSUMER]
)
def test_kafka_pythons_defaults_are_those_of_the_table(role: str, client: type) -> None:
    """As the installed version has them; its "none" is None."""
    theirs = {
        setting.name: client.DEFAULT_CONFIG[setting.name] or "none" for setting in SIZE_SETTINGS[role, KAFKA_PYTHON]
    }  # type: ignore[attr-defined]
    assert theirs == {setting.name: setting.default for setting in SIZE_SETTINGS[role, KAFKA_PYTHON]}


@pytest.mark.parametrize(
    ("role", "client"),
    [(PRODUCER, aiokafka.AIOKafkaProducer), (CONSUMER, aiokafka.AIOKafkaConsumer)],
    ids=[PRODUCER, CONSUMER],
)
def test_aiokafkas_defaults_are_those_of_the_table(role: str, client: type) -> None:
    """As the installed version's signature has them."""
    parameters = inspect.signature(client).parameters
    theirs = {setting.name: parameters[setting.name].default for setting in SIZE_SETTINGS[role, AIOKAFKA]}
    assert theirs == {k.name: None if k.default == "none" else k.default for k in SIZE_SETTINGS[role, AIOKAFKA]}


@pytest.mark.parametrize(
    ("client", "setting"),
    [
        (client, setting)
        for client, role in ((Producer, PRODUCER), (Consumer, CONSUMER))
        for setting in SIZE_SETTINGS[role, LIBRDKAFKA]
    ],
    ids=lambda part: getattr(part, "name", part.__name__ if isinstance(part, type) else None),
)
def test_librdkafka_has_the_names_and_ranges_of_the_table(client: type, setting: SizeLimit) -> None:
    """It says itself which range a value is out of, or that a word is none; each alias too."""
    wrong = "none-such" if setting.choices else setting.maximum + 1
    said = "Invalid value" if setting.choices else f"outside allowed range {setting.minimum}..{setting.maximum}"
    for name in (setting.name, *setting.aliases):
        with pytest.raises(KafkaException, match=re.escape(said)):
            client({"group.id": "g", "bootstrap.servers": "127.0.0.1:1", name: wrong})


@pytest.mark.parametrize(
    ("role", "library", "given", "said"),
    [
        (CONSUMER, "java", {"library": "aiokafka"}, "write consumer_library = NAME, outside of this table"),
        (TOPIC, "", {"max.mesage.bytes": 1}, "Did you mean 'max.message.bytes'?"),
        (
            CONSUMER,
            "java",
            {"receive.message.max.bytes": 1},
            "It is one of librdkafka, kafka-python: say --consumer-library",
        ),
        (PRODUCER, "java", {"max.request.size": "many"}, "max.request.size = 'many' is not valid: write a size"),
        (PRODUCER, LIBRDKAFKA, {"message.max.bytes": "2GB"}, "out of its range, 1000 to 1000000000"),
        (BROKER, "", {"compression.type": "rar"}, "'rar' is none of: producer, uncompressed"),
        (
            CONSUMER,
            LIBRDKAFKA,
            {"fetch.message.max.bytes": "1MB", "max.partition.fetch.bytes": "2MB"},
            "are one setting, given as 1000000 and 2000000",
        ),
        (CONSUMER, LIBRDKAFKA, {"queued.max.messages.kbytes": "100MB"}, "not a whole number of its unit of 1024 bytes"),
    ],
)
def test_an_unknown_or_impossible_setting_is_told(role: str, library: str, given: dict[str, object], said: str) -> None:
    """Which role, which name, what is valid."""
    problems: list[str] = []
    make_settings(role, library, given, problems)
    assert (len(problems), said in problems[0]) == (1, True), problems


def test_a_number_is_in_the_settings_own_unit_and_words_are_bytes() -> None:
    """65536 of queued.max.messages.kbytes is 64 MiB; underscores and dots are the same."""
    problems: list[str] = []
    sizes = [
        make_settings(CONSUMER, LIBRDKAFKA, {"queued.max.messages.kbytes": value}, problems).size_bytes(
            "queued.max.messages.kbytes"
        )
        for value in (65536, "65536", "64MiB")
    ]
    python = make_settings(CONSUMER, KAFKA_PYTHON, {"fetch_max_bytes": 7}, problems)
    assert (sizes, python.size_bytes("fetch.max.bytes"), problems) == ([67108864] * 3, 7, [])
