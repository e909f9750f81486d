"""Whether a topic may be read: asked of brokers that answer by a literal list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_trial.audit import export
from kafka_trial.kafka_protocol.cluster_queries import Partition, Topic
from kafka_trial.kafka_protocol.connection import NoAnswerError

ORDERS = Topic("orders", "id", (Partition(0, 1, 4, (1,), (1,)),))


class Answers:
    """Brokers that answer each question for a log start with the next of these; a failure is raised."""

    def __init__(self, *answers: dict[int, int] | NoAnswerError) -> None:
        self.left = list(answers)

    def broker(self, node: int, question: Callable[[Any], bool]) -> bool:
        answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(answer, NoAnswerError):
            raise answer
        return question(answer)


@pytest.fixture(autouse=True)
def literal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is the answer itself; whoever tells where a partition begins can be read from."""
    monkeypatch.setattr(export, "TOLD_WITHIN_S", 0.5)
    monkeypatch.setattr(export.cluster_queries, "list_offsets", lambda answer, *_, **__: answer)
    monkeypatch.setattr(export, "fetch", lambda *_, **__: None)


def refused(*answers: dict[int, int] | NoAnswerError) -> str | None:
    """Returns what is said of a topic whose leader answers with these."""
    return export._refused(Answers(*answers), ORDERS)  # type: ignore[arg-type]


def test_a_leader_that_is_new_is_asked_again() -> None:
    """It answers without offsets until it knows that it leads, or its high watermark."""
    assert refused({}, {0: 7}) is None


def test_a_leader_that_tells_no_offsets_does_not_refuse_us() -> None:
    """What is missing is an answer, not a right of ours."""
    told = refused({})
    assert told is not None
    assert "waited 0.5 s for broker 1 to tell where orders-0 begins, in vain; it may not lead it any more" in told
    assert "READ" not in told


def test_a_leader_that_refuses_us_is_asked_once() -> None:
    """What is missing is named."""
    told = refused(NoAnswerError("TOPIC_AUTHORIZATION_FAILED (29)", code=29), {0: 7})
    assert told is not None
    assert "give our principal DESCRIBE and READ on topic orders" in told
