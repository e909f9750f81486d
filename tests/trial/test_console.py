"""The console: what stays visible on a narrow terminal."""

from __future__ import annotations

import io

import pytest
import rich.console

from kafka_trial.trial.console import Console


def test_the_time_left_stays_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long phase is cut, never the time that is left."""
    screen = io.StringIO()
    terminal = rich.console.Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr(rich.console, "Console", lambda **_: terminal)
    with Console() as console:
        console.phase("steady", "opening burst of 2000 records, and a phase that has very much to say of itself")
        console.progress("1200 of 2000 through", left_s=17)
    assert "…, at most 17 s left" in screen.getvalue()


def test_what_takes_longer_than_planned_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause that outlasts the session of its member, and no "0 s left" for half a minute."""
    monkeypatch.setattr("kafka_trial.trial.console.PLAIN_EVERY_S", 0.0)
    with Console() as console:
        console.phase("faults")
        console.progress("pause on m0", left_s=0.2)
        console.progress("pause on m0", left_s=-12.4)
    told = capsys.readouterr().err
    assert ("pause on m0, at most 0 s left" in told, "pause on m0, 12 s longer than planned" in told) == (True, True)
