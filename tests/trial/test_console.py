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
