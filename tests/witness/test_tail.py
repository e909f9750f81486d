"""A tail on answers as bytes: to the end and not past it, and what becomes of it when the log was cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kafka_trial.errors import UnjudgeableError
from kafka_trial.kafka_protocol.batches import Batch, Fetched
from kafka_trial.kafka_protocol.connection import NoAnswerError
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.tail import OFFSET_OUT_OF_RANGE, Following, Tail
from witness.literal_batches import batch_of

ONE = [(None, b"1")]


@dataclass
class Answers:
    """In place of the brokers: each question gets the next answer, whatever it asks."""

    answers: list[Any]

    def broker(self, node: int, question: Callable[[Any], Any]) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class Noted:
    """A reading that notes what it is given."""

    partition: int = 0
    undecodable: int = 0
    told: list[Any] = field(default_factory=list)

    def take(self, batch: Batch, position: int) -> None:
        self.told.append(batch.base_offset)

    def not_decoded(self, offset: int, error: DecodeError) -> None:
        self.undecodable += 1

    def record_open(self) -> None:
        self.told.append("what is open")


def _tail(*answers: Any, may_expire: bool = False, position: int = 0) -> tuple[Tail, Noted]:
    noted = Noted()
    return Tail(Answers(list(answers)), "t", noted, position, 1, may_expire=may_expire), noted  # type: ignore[arg-type]


def _fetched(*bases: int, end: int) -> Fetched:
    return Fetched(end, end, b"".join(batch_of(base, ONE) for base in bases))


def test_the_snapshot_reads_to_the_end_and_then_tells_what_is_open() -> None:
    """Two fetches; a batch that was read already is not read again."""
    tail, noted = _tail(_fetched(0, 1, end=3), _fetched(1, 2, end=3))
    answer = Following([tail]).snapshot(within_s=5)
    assert (answer.state, answer.position, noted.told) == ("complete", 3, [0, 1, 2, "what is open"])


def test_a_tail_that_is_not_at_the_end_is_behind_and_tells_nothing_more() -> None:
    """What is open at some other place says nothing."""
    tail, noted = _tail(_fetched(0, end=3))
    answer = Following([tail]).snapshot(within_s=0)
    assert (answer.state, noted.told) == ("behind", [])


def test_what_could_not_be_decoded_is_the_answer() -> None:
    """Though it is at the end."""
    tail, noted = _tail(_fetched(0, end=1))
    noted.undecodable = 1
    assert Following([tail]).snapshot(within_s=5).state == "undecodable"


CUT = NoAnswerError("fetch: OFFSET_OUT_OF_RANGE", code=OFFSET_OUT_OF_RANGE)


def test_a_log_that_was_cut_ends_the_watch() -> None:
    """Nobody knows what was there."""
    tail, _ = _tail(CUT, position=2)
    with pytest.raises(UnjudgeableError, match="t-0 was cut under the witness: it had read up to 2"):
        tail.step(wait_ms=1)


def test_a_topic_may_expire_and_is_read_on_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention, or deleted records; what was open before that is ended by what comes."""
    tail, noted = _tail(CUT, {0: 5}, _fetched(5, end=6), may_expire=True, position=2)
    monkeypatch.setattr(tail, "_find_leader", lambda: None)
    tail.step(wait_ms=1)
    tail.step(wait_ms=1)
    assert (tail.position, tail.failure, noted.told) == (6, None, [5])
