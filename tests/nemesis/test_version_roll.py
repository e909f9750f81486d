"""A node that was restarted as another version: it has to be of that version by its own log."""

from __future__ import annotations

import pytest

from kafka_trial.nemesis.brokers import as_version
from kafka_trial.nemesis.evidence import Evidence

SEEN = Evidence(True, "process 7 was replaced by 8", {"broker": 1})


@pytest.mark.parametrize(
    ("said", "bit", "message"),
    [
        ("4.3.1", True, SEEN.message),
        ("4.3.1-hardened", True, SEEN.message),
        (None, True, SEEN.message),
        ("3.9.2", False, "broker 1 says that it is Kafka 3.9.2, not 4.3.1"),
        ("4.3.10", False, "broker 1 says that it is Kafka 4.3.10, not 4.3.1"),
    ],
)
def test_a_node_that_says_another_version_did_not_become_it(said: str | None, bit: bool, message: str) -> None:
    """An image may be another than its name says; a log that says nothing is no contradiction, and stands there so."""
    seen = as_version(SEEN, 1, "4.3.1", said=said)
    assert (seen.took_effect, seen.message) == (bit, message)
    assert dict(seen.details) == {"broker": 1, "version": "4.3.1", "said_version": said}
