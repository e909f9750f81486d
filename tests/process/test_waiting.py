"""The one waiting loop."""

import threading

import pytest

from kafka_trial.errors import WaitTimeout
from kafka_trial.process.waiting import holds_for, pause, wait_until


def test_returns_the_first_truthy_value() -> None:
    """The value itself comes back, not just that there was one."""
    values = iter([0, "", "here"])
    assert wait_until(lambda: next(values), within_s=5, what="a value", every_s=0.001) == "here"


def test_says_what_was_awaited_and_what_was_seen() -> None:
    """A wait in vain names its subject, its bound and the last sight."""
    with pytest.raises(WaitTimeout, match=r"waited 0.01 s for the moon, in vain; seen: clouds"):
        wait_until(lambda: None, within_s=0.01, what="the moon", every_s=0.001, detail=lambda: "clouds")


def test_gives_up_at_once_when_waiting_is_pointless() -> None:
    """A reason from `alive` ends the wait long before its bound."""
    with pytest.raises(WaitTimeout, match="broker 1 has died"):
        wait_until(lambda: None, within_s=3600, what="a broker", alive=lambda: "broker 1 has died")


def test_a_condition_that_breaks_once_did_not_hold() -> None:
    """`holds_for` wants it true every time it is asked."""
    values = iter([True, True, False] + [True] * 1000)
    assert not holds_for(lambda: next(values), for_s=0.05, every_s=0.001)


def test_a_pause_ends_when_stop_is_set() -> None:
    """A pause with a stop signal returns True at once when it is set."""
    stop = threading.Event()
    stop.set()
    assert pause(3600, stop=stop)
