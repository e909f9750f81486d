"""While a session lasts, no garbage collection goes through what was there before it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kafka_trial.trial.gc_freeze import frozen_heap
from kafka_trial.trial.session import Session


def goes_through(thing: object) -> bool:
    return any(one is thing for one in gc.get_objects())


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_was_there_before_is_left_alone_for_as_long_as_it_lasts() -> None:
    """Given an object, when the heap is frozen, then collections pass it by, and go through it again afterwards."""
    before = [object()]
    assert goes_through(before)
    with frozen_heap():
        after = [object()]
        assert not goes_through(before)
        assert goes_through(after)
    assert goes_through(before)


def test_garbage_is_not_frozen() -> None:
    """Given a cycle that nobody holds, when the heap is frozen, then it has been collected."""
    gc.collect()
    gc.disable()
    try:
        cycle: list[object] = []
        cycle.append(cycle)
        place = id(cycle)
        del cycle
        with frozen_heap():
            pass
        assert not any(id(one) == place for one in gc.get_objects())
    finally:
        gc.enable()


def test_what_somebody_froze_before_stays_frozen() -> None:
    """Given a heap that is frozen already, when a second freezing of it ends, then it is frozen still."""
    before = [object()]
    with frozen_heap():
        with frozen_heap():
            pass
        assert not goes_through(before)


def test_a_session_freezes_the_heap_until_it_is_closed() -> None:
    """Given an object, when a session lasts, then no collection goes through it."""
    before = [object()]
    with Session(judging=False):
        assert not goes_through(before)
    assert goes_through(before)
