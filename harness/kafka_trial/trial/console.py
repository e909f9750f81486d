"""The console: what a person sees while a trial runs. A live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import rich.console
from rich.markup import escape
from rich.status import Status

PLAIN_EVERY_S = 5.0
SPINNER_WIDTH = 2


class Console:
    """Tells the phases of long work: `phase` begins one, `progress` says how it goes, `say` leaves a line behind."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = rich.console.Console(stderr=True, highlight=False, soft_wrap=True)
        self._quiet = quiet
        self._live = Status("", console=self._console) if self._console.is_terminal and not quiet else None
        self._phase = ""
        self._began_s = self._told_s = time.monotonic()

    def phase(self, name: str, what: str = "") -> None:
        """Begins a phase."""
        self._phase = f"{name}: {what}" if what else name
        self._began_s = self._told_s = time.monotonic()
        self._show(self._phase, always=True)

    def progress(self, text: str, *, left_s: float | None = None) -> None:
        """Says how the phase goes; plain output hears it every five seconds.

        `left_s`: how long it may still take; below 0: by how much it is over that already.
        """
        self._show(self._fitting(f"{self._phase} — {text}", _left(left_s)), always=False)

    def say(self, text: str) -> None:
        """Leaves one line behind."""
        if not self._quiet:
            self._console.print(escape(text))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Takes the live line away while something else is printed: it would take our stdout with it."""
        if self._live:
            self._live.stop()
        try:
            yield
        finally:
            if self._live:
                self._live.start()

    def __enter__(self) -> Console:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
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
            self._live.update(escape(text))
        elif always or time.monotonic() - self._told_s >= PLAIN_EVERY_S:
            self._told_s = time.monotonic()
            self._console.print(escape(f"[{time.monotonic() - self._began_s:5.1f} s] {text}"))


def _left(left_s: float | None) -> str:
    if left_s is None:
        return ""
    return f", at most {left_s:.0f} s left" if left_s >= 0 else f", {-left_s:.0f} s longer than planned"
