"""The narrator: what stays visible on a narrow terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kafka_trial import narrator as module
from kafka_trial.narrator import Narrator


def test_the_time_left_stays_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long phase is cut, never the time that is left."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr(module, "Console", lambda **_: console)
    with Narrator() as narrator:
        narrator.phase("steady", "opening burst of 2000 records, and a phase that has very much to say of itself")
        narrator.progress("1200 of 2000 through", left_s=17)
    assert "…, at most 17 s left" in screen.getvalue()
