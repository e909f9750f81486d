"""A load that goes quiet: held at its instant, or when the faults are over, and never otherwise."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import Mock

from kafka_trial.process.waiting import wait_until
from kafka_trial.trial.environment import TrialEnvironment


def environment() -> Any:
    """An environment of which only the load is there."""
    bare = TrialEnvironment.__new__(TrialEnvironment)
    bare._producer = Mock()
    return bare


def test_a_load_is_held_at_its_instant() -> None:
    """While the faults go on."""
    quiet = environment()
    with quiet.quiet_after(0.1):
        assert not quiet.producer.hold.called
        wait_until(lambda: quiet.producer.hold.called, within_s=5, what="the load to be held")


def test_a_load_is_held_at_the_latest_when_the_faults_are_over() -> None:
    """An instant that is not reached is not waited for."""
    quiet, began_s = environment(), time.monotonic()
    with quiet.quiet_after(3600.0):
        assert not quiet.producer.hold.called
    assert quiet.producer.hold.called
    assert time.monotonic() - began_s < 60


def test_a_load_that_is_not_to_go_quiet_goes_on() -> None:
    """Nobody holds it."""
    quiet = environment()
    with quiet.quiet_after(None):
        pass
    assert not quiet.producer.hold.called
