"""The one waiting loop: every wait of the harness has a bound and a name."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kafka_trial.errors import WaitTimeout

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    *,
    within_s: float,
    what: str,
    every_s: float = 0.05,
    alive: Callable[[], str | None] | None = None,
    detail: Callable[[], str] | None = None,
) -> T:
    """Returns the first truthy value of `condition`, asked every `every_s` seconds.

    `alive` is asked each round too: a returned sentence (why waiting further is pointless) ends the wait at once.
    `detail` is called when the wait ends badly, to say what was seen instead.

    Raises:
        WaitTimeout: nothing truthy within `within_s` seconds, or `alive` gave a reason.
    """
    deadline = time.monotonic() + within_s
    while True:
        value = condition()
        if value:
            return value
        reason = alive() if alive else None
        if reason:
            raise WaitTimeout(f"waiting for {what}: {reason}{_seen(detail)}")
        if time.monotonic() >= deadline:
            waited_s = float(f"{within_s:.3g}")  # 30.8, not 30.7948; 1200, not 1.2e+03
            raise WaitTimeout(f"waited {waited_s:g} s for {what}, in vain{_seen(detail)}")
        pause(every_s)


def holds_for(condition: Callable[[], object], *, for_s: float, every_s: float = 0.05) -> bool:
    """Tells whether `condition` is truthy each time it is asked for the next `for_s` seconds."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        if not condition():
            return False
        pause(every_s)
    return bool(condition())


def pause(seconds: float, *, stop: threading.Event | None = None) -> bool:
    """Lets time pass, as a schedule asks for; returns True at once when `stop` is set. Never a synchronisation."""
    if stop is not None:
        return stop.wait(max(0.0, seconds))
    time.sleep(max(0.0, seconds))
    return False


def _seen(detail: Callable[[], str] | None) -> str:
    return f"; seen: {detail()}" if detail else ""
