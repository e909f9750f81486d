"""What keeps the harness from standing still during a trial: its share of the processor, and its garbage collector.

Every process of a trial, the judge's too, leads a session of its own, so that it can be ended with all that it has
started. Where the kernel shares the processor out among sessions (autogroups, sched(7)), it gives each of them as much
as the harness: one that waits its turn among thirty hears late what was said in time, and has to call undecided what it
would have seen. So it asks for the share of about ten.

What thousands of collected tests are made of takes Python's collector half a second and more to go through, again and
again, and no reader of a member's lines, nor the clock, can run meanwhile: the harness would be deaf for longer than
its judge tolerates. So what was there before a trial is kept from it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OWN = Path("/proc/self/autogroup")
NICE = -10


@contextmanager
def preferred(autogroup: Path = OWN) -> Iterator[None]:
    """Prefers this process's session to others while it lasts, unless somebody has set its nice value already.

    Without the right to (CAP_SYS_NICE), or without autogroups, all stays as it is.
    """
    asked = _nice(autogroup) == 0 and _set(autogroup, NICE)
    try:
        yield
    finally:
        if asked:
            _set(autogroup, 0)


def _nice(autogroup: Path) -> int | None:
    """Returns what `/autogroup-25 nice 0` ends with; None where the kernel says nothing."""
    with suppress(OSError, ValueError, IndexError):
        return int(autogroup.read_text(encoding="ascii").split()[-1])
    return None


def _set(autogroup: Path, nice: int) -> bool:
    with suppress(OSError):
        autogroup.write_text(str(nice), encoding="ascii")
        return True
    return False


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Freezes all objects that there are now (`gc.freeze`), so that no collection goes through them while this lasts.

    Where somebody has frozen objects before, they stay frozen, and what is added to them too.
    """
    frozen_before = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()
