"""The console of one trial: what its phases say, in the words of whoever waits for them.

The run tells its phases in its own figures (`run.py`, `environment.py`: what makes a history, and is calibrated as it
stands). Two of them need more to be understood: which bound of the drain is shown, and what a count of records means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_trial.scenario import Limits
from kafka_trial.trial.console import Console

BOUND = re.compile(r"converge within ([\d.]+) s")
COUNT = re.compile(r"(-?\d+ of \d+) through")


class TrialConsole(Console):
    """Shows on another console what a trial says, with the words that its limits need."""

    def __init__(self, shown_on: Console, limits: Limits) -> None:
        super().__init__(quiet=True)  # its own line is never shown
        self._shown_on, self._limits = shown_on, limits

    def phase(self, name: str, what: str = "") -> None:
        """Begins a phase."""
        self._shown_on.phase(name, drain_told(what, self._limits) if name == "drain" else what)

    def progress(self, text: str, *, left_s: float | None = None) -> None:
        """Says how the phase goes."""
        self._shown_on.progress(COUNT.sub(r"\1 records handled and committed", text), left_s=left_s)

    def say(self, text: str) -> None:
        """Leaves one line behind."""
        self._shown_on.say(text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Takes the live line away while something else is printed."""
        with self._shown_on.paused():
            yield


def drain_told(what: str, limits: Limits) -> str:
    """Returns what ends the drain: all is done, or the group's time is up, or the scenario's where that is less."""
    found = BOUND.fullmatch(what)
    if found is None:
        return what
    bound_s = float(found[1])
    until = "until all is handled and committed"
    if bound_s <= limits.drain_s:
        return f"{until}; the group may take {bound_s:.0f} s"
    return f"{until}, cut off after {limits.drain_s:.0f} s (limits.drain_s); the group might take {bound_s:.0f} s"
