"""The kernel's out-of-memory killer: how many processes it has killed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

VMSTAT = Path("/proc/vmstat")


def read_oom_kills(vmstat: Path = VMSTAT) -> int | None:
    """Returns how many processes the kernel has killed for want of memory since boot; None where it does not say.

    Those that a control group's limit cost count too (`oom_kill`: proc(5), since Linux 4.13).
    """
    with suppress(OSError, ValueError):
        for line in vmstat.read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return None
