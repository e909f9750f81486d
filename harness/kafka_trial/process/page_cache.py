"""The kernel's page cache, file by file, and what a process has read from a disk.

cachestat(2) says how many pages of a file are in memory; Linux has it since 6.5. posix_fadvise(2) has the kernel drop
those that are written to the disk and that nobody has mapped, so that whoever reads them next waits for the disk.
`read_bytes` of proc_pid_io(5) is what a process really caused to be fetched from storage: on tmpfs it never grows.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

CACHESTAT: Final = 451  # the number of the system call, on every architecture but Alpha
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class _Range(ctypes.Structure):
    """struct cachestat_range; a length of 0 is the whole file."""

    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    """struct cachestat: pages in memory; of those dirty, being written; dropped, and dropped lately."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cached", "dirty", "written", "evicted", "evicted_lately"))


def cached_bytes(descriptor: int) -> int:
    """Returns how many bytes of an open file are in memory.

    Raises:
        OSError: the kernel does not say: it is older than 6.5 (ENOSYS), or the file is another user's (EPERM).
    """
    pages = _Pages()
    if _LIBC.syscall(CACHESTAT, descriptor, ctypes.byref(_Range()), ctypes.byref(pages), 0):
        number = ctypes.get_errno()
        raise OSError(number, f"cachestat: {os.strerror(number)}")
    return int(pages.cached) * PAGE_BYTES


def make_cold(descriptor: int) -> None:
    """Has the kernel write an open file to its disk, and drop what it has of it in memory.

    Raises:
        OSError: it cannot be written.
    """
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def disk_read_bytes(pid: int) -> int:
    """Returns how many bytes a process has read from a disk since its start.

    Raises:
        OSError: it is another user's, or has ended.
    """
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])
