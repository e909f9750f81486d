"""While a session lasts, and no longer, the harness is preferred, and no collection goes through the old heap."""

from __future__ import annotations

import gc
import os
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_trial.trial import session
from kafka_trial.trial.session import Session
from kafka_trial.trial.stall_prevention import NICE, OWN, frozen_heap, preferred

NOBODY = 65534


WORKED, FAILED, NOT_ALLOWED = range(3)


class NotAllowedError(Exception):
    """This user must not prefer a session."""


def nice() -> str:
    return OWN.read_text().split()[-1]


def demand_the_right() -> None:
    """Raises NotAllowedError for a user without CAP_SYS_NICE."""
    try:
        OWN.write_text("-1")
    except PermissionError as error:
        raise NotAllowedError from error
    OWN.write_text("0")


def in_a_session_of_its_own(work: Callable[[], None]) -> None:
    """Does it in a child that leads a session: what this one runs in may have no autogroup, as whatever init starts.

    Fails as the work does; skips where the kernel knows no autogroups.
    """
    if not OWN.exists():
        pytest.skip("the kernel has no autogroups (CONFIG_SCHED_AUTOGROUP)")
    child = os.fork()
    if child == 0:
        status = FAILED
        try:
            os.setsid()
            work()
            status = WORKED
        except NotAllowedError:
            status = NOT_ALLOWED
        except Exception:  # noqa: BLE001  # whatever it was: the parent fails with it
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == NOT_ALLOWED:
        pytest.skip("this user must not prefer a session (CAP_SYS_NICE)")
    assert status == WORKED, "the child says above what failed"


def test_a_session_is_preferred_while_it_lasts() -> None:
    """The kernel says so; afterwards it is as it was."""

    def work() -> None:
        demand_the_right()
        with Session(judging=False):
            assert nice() == str(NICE) != "0"
        assert nice() == "0"

    in_a_session_of_its_own(work)


def test_what_somebody_has_set_is_left_alone() -> None:
    """A second harness of the same session neither raises nor lowers it."""

    def work() -> None:
        demand_the_right()
        OWN.write_text("-5")
        with preferred():
            assert nice() == "-5"
        assert nice() == "-5"

    in_a_session_of_its_own(work)


@pytest.mark.parametrize("said", [None, "", "/autogroup-25 nice", "nonsense"])
def test_a_kernel_that_says_nothing_changes_nothing(said: str | None, tmp_path: Path) -> None:
    """No autogroups, or none that can be read: nothing is written."""
    autogroup = tmp_path / "autogroup"
    if said is not None:
        autogroup.write_text(said)
    with preferred(autogroup):
        assert (autogroup.read_text() if autogroup.exists() else None) == said


def test_a_session_that_cannot_begin_leaves_nothing_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gets to close it."""

    def fails(**_: object) -> None:
        raise OSError("no room")

    def work() -> None:
        demand_the_right()
        with pytest.raises(OSError, match="no room") as failure:
            Session(judging=False)
        assert (nice(), str(failure.value)) == ("0", "no room")  # while the failure still holds what was begun

    monkeypatch.setattr(session, "ClusterPool", fails)
    in_a_session_of_its_own(work)


def test_a_share_that_is_not_granted_is_done_without() -> None:
    """A user without the right to it works on, in a session as any other."""

    def work() -> None:
        if os.getuid() == 0:
            os.setuid(NOBODY)
        with preferred():
            assert nice() == "0"

    in_a_session_of_its_own(work)


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


class Held:
    """Something that can hold itself."""

    itself: Held


def test_garbage_is_not_frozen() -> None:
    """Given a cycle that nobody holds, when the heap is frozen, then it has been collected."""
    gc.collect()
    gc.disable()
    try:
        cycle = Held()
        cycle.itself = cycle
        seen = weakref.ref(cycle)  # not its address: another object may stand there by now
        del cycle
        assert seen() is not None
        with frozen_heap():
            pass
        assert seen() is None
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
