"""The console: what stays visible on a narrow terminal."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
import rich.console

from kafka_trial.process.steps import Step, step
from kafka_trial.process.waiting import wait_until
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


class Hour:
    """A clock that a test moves, and the console under it, with the seconds at which it said something."""

    def __init__(self, *, terse: bool = False) -> None:
        self.now_s = 1000.0
        self.lines: list[tuple[float, str]] = []
        self.console = Console(
            terse=terse, write=lambda line: self.lines.append((self.now_s, line)), clock=lambda: self.now_s
        )

    def passes(self, seconds: int) -> None:
        """Lets seconds pass; the console's thread looks once in each."""
        for _ in range(seconds):
            self.now_s += 1
            self.console.tick()

    @property
    def silent_s(self) -> float:
        """For how long it was silent at most."""
        times = [1000.0, *(at_s for at_s, _ in self.lines), self.now_s]
        return max(after - before for before, after in pairwise(times))


def test_nothing_is_silent_for_ten_seconds() -> None:
    """Neither a phase that nobody tells of, nor a step in it, nor what comes after the step."""
    hour = Hour()
    hour.console.phase("prepare", "3 members")
    hour.passes(40)
    with hour.console.step(Step("fetching the jars", "47 jars", lambda: "3 of 47 jars", began_s=hour.now_s)):
        hour.passes(60)
    hour.passes(30)
    hour.console.phase("end", shown=False)
    hour.passes(30)
    assert hour.silent_s < 10
    told = [line for _, line in hour.lines]
    assert [line for line in told if "47" in line][:2] == [
        "[ 40.0 s] fetching the jars (47 jars)",
        "[ 47.0 s] fetching the jars: 3 of 47 jars, 7 s so far",
    ]
    assert "[100.0 s] fetching the jars: done in 60 s" in told


def test_before_anything_has_begun_and_where_much_is_said_the_thread_says_nothing() -> None:
    """It fills silence alone."""
    hour = Hour()
    hour.passes(30)
    hour.console.phase("steady")
    for _ in range(10):
        hour.passes(3)
        hour.console.say("a line")
    assert [line for _, line in hour.lines] == ["[ 30.0 s] steady", *["a line"] * 10]


def test_a_terse_console_tells_of_steps_and_of_a_phase_that_is_long() -> None:
    """A trial among the lines of pytest: nothing of it but what keeps a reader waiting."""
    hour = Hour(terse=True)
    hour.console.phase("steady", "opening burst")
    hour.console.say("run folder here")
    hour.passes(3)
    hour.console.progress("2 of 3 through")
    hour.console.phase("drain", "until all is handled")
    hour.passes(4)
    hour.console.progress("lag 4 committed", left_s=31)
    hour.passes(8)
    with hour.console.step(Step("fetching the jars", began_s=hour.now_s)):
        hour.passes(1)
    assert [line for _, line in hour.lines] == [
        "[  7.0 s] drain: until all is handled — 4 s so far",
        "[ 14.0 s] drain: until all is handled — lag 4 committed, at most 31 s left — 11 s so far",
        "[ 15.0 s] fetching the jars",
        "[ 16.0 s] fetching the jars: done in 1 s",
    ]


def test_between_two_trials_nothing_goes_on() -> None:
    """What a test does there is its own."""
    hour = Hour()
    hour.console.phase("check", "judging 7 MB")
    hour.console.rest()
    hour.passes(60)
    assert [line for _, line in hour.lines] == ["[  0.0 s] check: judging 7 MB"]


def test_instants_count_from_the_beginning_of_the_trial() -> None:
    """One clock for all of its phases; before the first trial, that of the command."""
    hour = Hour()
    hour.console.phase("boot")
    hour.passes(5)
    hour.console.trial_begins()
    hour.console.phase("prepare")
    hour.passes(6)
    hour.console.phase("steady")
    hour.console.progress("more")
    hour.passes(5)
    hour.console.progress("more", left_s=3)
    assert [line for _, line in hour.lines] == [
        "[  0.0 s] boot",
        "[  0.0 s] prepare",
        "[  6.0 s] steady",
        "[ 11.0 s] steady — more, at most 3 s left",
    ]


def test_a_console_that_is_entered_is_told_of_steps_and_keeps_talking() -> None:
    """By a thread of its own, without a terminal."""
    lines: list[str] = []
    with Console(write=lines.append, clock=lambda: 50.0 * len(lines)), step("building"):
        wait_until(lambda: len(lines) >= 3, within_s=20, what="a line of the thread")
    with step("nobody hears this"):
        pass
    assert [line.partition("] ")[2].partition(":")[0] for line in lines] == ["building"] * len(lines)


def test_a_quiet_console_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Not even of steps."""
    with Console(quiet=True) as console, step("building"):
        console.phase("prepare")
        console.tick()
    assert capsys.readouterr() == ("", "")
