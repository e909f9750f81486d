"""The harness's session is preferred while it is at work, and not a moment longer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_trial import session
from kafka_trial.autogroup import NICE, OWN, preferred
from kafka_trial.session import Session

NOBODY = 65534


def nice() -> str:
    return OWN.read_text().split()[-1]


@pytest.fixture
def not_preferred() -> Iterator[None]:
    """Skips where the kernel knows no autogroups, or does not let this user prefer his own."""
    if not OWN.exists():
        pytest.skip("the kernel has no autogroups (CONFIG_SCHED_AUTOGROUP)")
    before = nice()
    try:
        OWN.write_text("-1")
        OWN.write_text("0")
    except OSError as error:
        pytest.skip(f"this user must not prefer a session (CAP_SYS_NICE): {error}")
    yield
    OWN.write_text(before)


@pytest.mark.usefixtures("not_preferred")
def test_a_session_is_preferred_while_it_lasts() -> None:
    """The kernel says so; afterwards it is as it was."""
    with Session(judging=False):
        assert nice() == str(NICE)
    assert nice() == "0"


@pytest.mark.usefixtures("not_preferred")
def test_what_somebody_has_set_is_left_alone() -> None:
    """A second harness of the same session neither raises nor lowers it."""
    OWN.write_text("-5")
    with preferred():
        assert nice() == "-5"
    assert nice() == "-5"


@pytest.mark.parametrize("said", [None, "", "/autogroup-25 nice", "nonsense"])
def test_a_kernel_that_says_nothing_changes_nothing(said: str | None, tmp_path: Path) -> None:
    """No autogroups, or none that can be read: nothing is written."""
    autogroup = tmp_path / "autogroup"
    if said is not None:
        autogroup.write_text(said)
    with preferred(autogroup):
        assert (autogroup.read_text() if autogroup.exists() else None) == said


@pytest.mark.usefixtures("not_preferred")
def test_a_session_that_cannot_begin_leaves_nothing_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gets to close it."""

    def fails() -> None:
        raise OSError("no room")

    monkeypatch.setattr(session, "ClusterPool", fails)
    with pytest.raises(OSError, match="no room") as failure:
        Session(judging=False)
    assert (nice(), str(failure.value)) == ("0", "no room")  # while the failure still holds what was begun


def test_a_share_that_is_not_granted_is_done_without() -> None:
    """A user without the right to it works on, in a session as any other."""
    if not OWN.exists():
        pytest.skip("the kernel has no autogroups (CONFIG_SCHED_AUTOGROUP)")
    child = os.fork()
    if child == 0:
        worked = False
        try:
            os.setsid()
            if os.getuid() == 0:
                os.setuid(NOBODY)
            with preferred():
                worked = nice() == "0"
        finally:
            os._exit(not worked)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
