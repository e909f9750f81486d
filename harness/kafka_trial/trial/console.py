"""The console: what a person sees while a command works. A live line on a terminal, plain lines elsewhere.

Nothing is silent for ten seconds: a thread looks once a second, and where nothing was said for `SILENT_MAX_S` it says
how far the step or the phase has come. Instants count from the beginning of the trial; before the first trial, from
that of the command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import rich.console
from rich.markup import escape
from rich.status import Status

from kafka_trial.process.steps import Step, told_to
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause

PLAIN_EVERY_S = 5.0
SILENT_MAX_S = 7.0
LOOKS_EVERY_S = 1.0
SPINNER_WIDTH = 2
FORGET_LINE = "\r\x1b[2K"  # the live line of another process, which draws it again


class Console:
    """Tells the phases and steps of long work: `phase` begins one, `progress` says how it goes, `say` leaves a line.

    `quiet`: nothing is shown. `live`: with a live line where there is a terminal. `who` stands before lines in the
    place of instants: of a process beside that of the command. `terse`: only steps are told, and a phase once nothing
    was said for long: of trials among the lines of pytest. `write`: where plain lines go, in the place of stderr.
    `clock`: monotonic seconds.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        live: bool = True,
        who: str = "",
        terse: bool = False,
        write: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = rich.console.Console(stderr=True, highlight=False, soft_wrap=True)
        self._quiet, self._terse, self._who, self._write, self._clock = quiet, terse, who, write, clock
        shown_live = live and not quiet and write is None and self._console.is_terminal
        self._live = Status("", console=self._console) if shown_live else None
        self._phase = self._went = ""
        self._steps: list[Step] = []
        self._zero_s = self._began_s = self._told_s = clock()
        self._stack = ExitStack()

    def trial_begins(self) -> None:
        """Counts instants from now on: this is the beginning of a trial."""
        self._zero_s = self._clock()

    def phase(self, name: str, what: str = "", *, shown: bool = True) -> None:
        """Begins a phase; one that is not `shown` is told of only where it takes long."""
        self._phase, self._went = f"{name}: {what}" if what else name, ""
        self._began_s = self._clock()
        if shown and not self._terse:
            self._show(self._phase, always=True)

    def rest(self) -> None:
        """Says that nothing goes on until the next phase."""
        self._phase = self._went = ""

    def progress(self, text: str, *, left_s: float | None = None) -> None:
        """Says how the phase goes; plain output hears it every five seconds.

        `left_s`: how long it may still take; below 0: by how much it is over that already.
        """
        self._went = f" — {text}{_left(left_s)}"
        if not self._terse:
            self._show(self._fitting(f"{self._phase} — {text}", _left(left_s)), always=False)

    def say(self, text: str) -> None:
        """Leaves one line behind."""
        if not self._quiet and not self._terse:
            self._told_s = self._clock()
            self._print(text)

    @contextmanager
    def step(self, step: Step) -> Iterator[None]:
        """Tells of a step: when it begins, every few seconds, and that it is done."""
        self._steps.append(step)
        about = f" ({step.about})" if step.about else ""
        self._leave(f"{step.what}{about}")
        try:
            yield
            self._leave(f"{step.what}: done in {self._clock() - step.began_s:.0f} s")
        finally:
            self._steps.remove(step)

    def tick(self) -> None:
        """Says how far the step or the phase has come, where nothing was said for long."""
        if self._live is None and self._clock() - self._told_s < SILENT_MAX_S:
            return
        if self._steps:
            last = self._steps[-1]
            self._show(f"{last.what}: {last.so_far(self._clock())}", always=True)
        elif self._phase and self._live is None:
            went = self._went if self._terse else ""
            self._show(f"{self._phase}{went} — {self._clock() - self._began_s:.0f} s so far", always=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Takes the live line away while something else is printed: it would take our stdout with it."""
        if self._live:
            self._live.stop()
        try:
            yield
        finally:
            self._told_s = self._clock()
            if self._live:
                self._live.start()

    def __enter__(self) -> Console:
        if self._quiet:
            return self
        self._stack.enter_context(told_to(self.step))
        self._stack.enter_context(ticking(self.tick))
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._live:
            self._live.stop()

    def _fitting(self, text: str, left: str) -> str:
        """Returns what fits into the live line; the time that is left stays in it."""
        if not self._live:
            return text + left
        room = self._console.width - SPINNER_WIDTH - len(left)
        return (text if len(text) <= room else text[: max(0, room - 1)] + "…") + left

    def _show(self, text: str, *, always: bool) -> None:
        if self._quiet:
            return
        if self._live:
            self._live.update(escape(self._fitting(text, "")))
        elif always or self._clock() - self._told_s >= PLAIN_EVERY_S:
            self._leave(text)

    def _leave(self, text: str) -> None:
        """Leaves a line with the instant."""
        if not self._quiet:
            self._told_s = self._clock()
            self._print(f"{self._who}: {text}" if self._who else f"[{self._clock() - self._zero_s:5.1f} s] {text}")

    def _print(self, text: str) -> None:
        if self._write:
            self._write(text)
        else:
            if self._who and self._console.is_terminal:
                self._console.file.write(FORGET_LINE)
            self._console.print(escape(text))


@contextmanager
def ticking(tick: Callable[[], None]) -> Iterator[None]:
    """Calls `tick` once a second while this lasts."""

    def work() -> None:
        while not pause(LOOKS_EVERY_S, stop=thread_group.stop):
            with suppress(OSError):  # a terminal that has gone ends no trial
                tick()

    with ThreadGroup("console") as thread_group:
        thread_group.start("ticker", work)
        yield


def _left(left_s: float | None) -> str:
    if left_s is None:
        return ""
    return f", at most {left_s:.0f} s left" if left_s >= 0 else f", {-left_s:.0f} s longer than planned"
