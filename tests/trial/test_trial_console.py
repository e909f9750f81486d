"""The console of one trial: what a phase says of its bound."""

from __future__ import annotations

import pytest

from kafka_trial.scenario import Limits
from kafka_trial.trial.console import Console
from kafka_trial.trial.trial_console import TrialConsole, drain_told


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("converge within 16.4 s", "until all is handled and committed; the group may take 16 s"),
        (
            "converge within 4282.0 s",
            "until all is handled and committed, cut off after 300 s (limits.drain_s); the group might take 4282 s",
        ),
        ("something else", "something else"),
    ],
)
def test_the_drain_says_what_ends_it(what: str, told: str) -> None:
    """That all is done, the time the group may take by its own settings, or the scenario's limit where that is less."""
    assert drain_told(what, Limits(drain_s=300.0)) == told


def test_a_trial_is_shown_on_the_console_of_its_session(capsys: pytest.CaptureFixture[str]) -> None:
    """The phase in these words, a count of records as what it counts, and all else as it was said."""
    heard = _Heard()
    console = TrialConsole(heard, Limits(drain_s=300.0))
    console.phase("drain", "converge within 4282.0 s")
    console.phase("steady", "opening burst of 2000 records")
    console.progress("1200 of 2000 through", left_s=17)
    console.progress("lag 0 committed, 3 unhandled", left_s=295)
    console.say("load: 3000")
    with console.paused():
        pass
    assert heard.told == [
        "drain: until all is handled and committed, cut off after 300 s (limits.drain_s); the group might take 4282 s",
        "steady: opening burst of 2000 records",
        "1200 of 2000 records handled and committed, 17",
        "lag 0 committed, 3 unhandled, 295",
        "load: 3000",
        "paused",
    ]
    assert capsys.readouterr().err == ""


class _Heard(Console):
    """A console that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.told: list[str] = []

    def phase(self, name: str, what: str = "") -> None:
        self.told.append(f"{name}: {what}")

    def progress(self, text: str, *, left_s: float | None = None) -> None:
        self.told.append(f"{text}, {left_s}")

    def say(self, text: str) -> None:
        self.told.append(text)

    def paused(self):  # type: ignore[no-untyped-def]
        self.told.append("paused")
        return super().paused()
