"""The harness's share of the processor, where the kernel shares it out among sessions (autogroups, sched(7)).

Every process of a trial, the judge's too, leads a session of its own, so that it can be ended with all that it has
started. The kernel then gives each of them as much as the harness: one that waits its turn among thirty hears late what
was said in time, and has to call undecided what it would have seen. So it asks for the share of about ten.
"""

from __future__ import annotations

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
