"""What to change with each client library: chosen by what the brokers saw, and about anomalies that there are."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafka_trial.anomalies.invariant import find_invariant
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.report.explain import explain
from kafka_trial.report.html import html_of
from kafka_trial.report.library_advice import LIBRARY_ADVICE, libraries_of, library_advice
from kafka_trial.report.report_data import read_report
from kafka_trial.report.text import text_of, text_report
from literal_run import verdict


@pytest.mark.parametrize(
    ("clients", "libraries"),
    [
        ({"apache-kafka-java 4.3.1": {"consumer-billing-1"}}, ("Java client", "Spring for Apache Kafka")),
        ({"apache-kafka-java 4.3.1": {"connector-consumer-sink-0", "connect-offsets"}}, ("Kafka Connect",)),
        ({"apache-kafka-java 4.3.1": {"app-StreamThread-1-consumer", "app-admin"}}, ("Kafka Streams",)),
        ({"librdkafka 2.16.0": {"rdkafka"}}, ("librdkafka",)),
        ({"confluent-kafka-python 2.16.1-rdkafka-2.16.0": {"m0"}, "confluent-kafka-go 2.1": {"m1"}}, ("librdkafka",)),
        ({"kgo 1.22.3": {"kgo"}, "sarama 1.47.0": {"sarama"}}, ("franz-go", "sarama")),
        ({"": {"kafkajs"}, "kafka-python 3.0.12": {"m0"}}, ("kafkajs", "kafka-python")),
        ({"": {"aiokafka-0.14.0"}}, ("aiokafka",)),
        ({"": {"billing"}, "kafka-rust 9 kgo": {"kafkajs"}}, ()),
    ],
)
def test_a_library_is_known_by_its_name_or_its_own_client_id(
    clients: Mapping[str, set[str]], libraries: tuple[str, ...]
) -> None:
    """Frameworks by the ids they make up; a client that gives itself another name is not guessed at."""
    assert libraries_of(clients) == libraries


def test_all_advice_is_about_anomalies_that_there_are() -> None:
    """In whole sentences, which fit into a cell of a table."""
    assert [name for name in LIBRARY_ADVICE if find_invariant(name) is None] == []
    told = [text for name in LIBRARY_ADVICE for _, text in library_advice(name)]
    assert [text for text in told if not text.endswith(".") or "|" in text or "\n" in text] == []


def _asked_with(folder: RunFolder, library: str) -> None:
    """Lets the brokers see member m1 of a literal run use a library, and the verdict tell a commit-ahead."""
    with Recorder(folder.history, "consumer-m1-1") as lines:
        lines.record("started", time_ns=1, pid=1, lane=1, member="m1", incarnation=1)
    with Recorder(folder.history, "requests-b1") as requests:
        requests.record("request", api="FETCH", lane=1, connection="c1", client_id="m1", library=library)
    ahead = {"anomaly": "commit-ahead", "count": 1, "sentence": "position 3 was committed", "events": []}
    folder.write_json("verdict.json", verdict(violations=[ahead]))


def test_a_report_gives_the_advice_for_the_library_that_was_seen(folder: RunFolder) -> None:
    """In the text, with and without the history, in the page's table and explanation; of no other library."""
    _asked_with(folder, "kgo 1.22.3")
    report = read_report(folder)
    told = "change, franz-go: auto-commit covers what earlier polls returned."
    assert told in text_of(report)
    assert told in text_report(folder)
    page = html_of(report)
    assert '<span class="soft">change, franz-go:</span> auto-commit covers' in page
    assert "<strong>Change, franz-go</strong> auto-commit covers" in page
    assert [library for library in ("sarama", "Java client") if f"hange, {library}" in page + text_of(report)] == []


def test_an_unknown_library_gets_the_general_advice_alone(folder: RunFolder) -> None:
    """Nobody is advised about a library that was not seen."""
    _asked_with(folder, "home-made 1.0")
    assert "change: " in text_report(folder)
    assert "change, " not in text_report(folder) + html_of(read_report(folder))


def test_explain_has_a_table_of_all_libraries() -> None:
    """Below the general change; none where no library has a way of its own."""
    assert "**Change**" in explain("commit-ahead").partition("\n| sarama | call `MarkMessage` after the work.")[0]
    assert "| with | change |" not in explain("lost-write")
