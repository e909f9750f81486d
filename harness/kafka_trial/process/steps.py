"""Steps: work that is done once and takes long (fetching, building, training, booting) says what it does meanwhile.

It is told to whoever shows it: the console of a command, or pytest's terminal. Where nobody does, nothing is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from kafka_trial.errors import reason


@dataclass(frozen=True)
class Step:
    """One step: what is done, how much it is and how long it may take, and how to ask how much of it is done."""

    what: str
    about: str = ""
    done: Callable[[], str] | None = None
    began_s: float = field(default_factory=time.monotonic)

    def so_far(self, now_s: float) -> str:
        """Returns how far it has come, at an instant of the monotonic clock."""
        return f"{self._part()}{now_s - self.began_s:.0f} s so far"

    def _part(self) -> str:
        if self.done is None:
            return ""
        try:
            return f"{self.done()}, "
        except OSError as error:  # what is counted comes and goes while it is made
            return f"({reason(error)}) "


Teller = Callable[[Step], AbstractContextManager[object]]
_TELLERS: list[Teller] = []


@contextmanager
def told_to(teller: Teller) -> Iterator[None]:
    """Has every step of this process told to `teller` while this lasts; of several, to the last one that came."""
    _TELLERS.append(teller)
    try:
        yield
    finally:
        _TELLERS.remove(teller)


@contextmanager
def step(what: str, *, about: str = "", done: Callable[[], str] | None = None) -> Iterator[None]:
    """Tells of a step for as long as it lasts."""
    with ExitStack() as stack:
        if _TELLERS:
            stack.enter_context(_TELLERS[-1](Step(what, about, done)))
        yield
