"""Which answers of a coordinator show that it serves a group: from literal answers of one broker."""

from __future__ import annotations

import pytest

from kafka_trial.upgrade.coordinator_answers import Answer, Span, showing

LOADING, MOVED, REBALANCE, MEMBER_ID = 14, 16, 27, 79


def beat(at: int, error: int = 0) -> Answer:
    return Answer(at, "HEARTBEAT", "m1", error, not error)


def commit(at: int, error: int = 0) -> Answer:
    return Answer(at, "OFFSET_COMMIT", "m1", error, not error)


def sync(at: int, error: int = 0) -> Answer:
    return Answer(at, "SYNC_GROUP", "m1", error, not error)


@pytest.mark.parametrize(
    ("answers", "loads", "served"),
    [
        ([beat(1), commit(2), beat(3)], [], [1, 2, 3]),
        ([beat(1), beat(2, REBALANCE), sync(3, REBALANCE)], [], [1]),
        ([commit(1, LOADING), beat(2), commit(3, LOADING), beat(4), commit(5), beat(6)], [], [5, 6]),
        ([beat(1, MOVED), beat(2), commit(3, LOADING), commit(4)], [], [4]),
        ([commit(1, LOADING), beat(2), sync(3, REBALANCE), beat(4), beat(5, REBALANCE), beat(6)], [], [6]),
        ([commit(1, LOADING), beat(3), beat(5), commit(9)], [(0, 4)], [5, 9]),
        ([beat(1), beat(3), beat(5)], [(2, 4)], [1, 5]),
        ([commit(1, LOADING), beat(2), beat(3)], [], [2, 3]),
        ([], [], []),
    ],
    ids=[
        *("served", "a rebalance", "loading: blind heartbeats", "a new coordinator that loads", "a sync tells nothing"),
        *("its log tells when it had loaded", "blind by its log alone", "nothing but heartbeats since", "no answer"),
    ],
)
def test_a_heartbeat_is_blind_while_its_coordinator_loads(
    answers: list[Answer], loads: list[Span], served: list[int]
) -> None:
    """It has no error then, and shows nothing; after the load it does."""
    assert [one.at_ns for one in showing(answers, loads)] == served
