"""Ports in blocks between 20000 and 31999, each held by a file lock, so that two harnesses never meet.

Below 32768 because the kernel's ephemeral range begins there: a broker on such a port once died in bind().
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_trial.errors import StartError

FIRST, LAST, BLOCK = 20000, 31999, 200


@contextmanager
def block_of_ports(size: int) -> Iterator[range]:
    """Holds a block of `size` free ports for as long as the `with` lasts.

    Raises:
        StartError: every block is taken.
    """
    blocks = -(-size // BLOCK)
    for first in range(FIRST, LAST + 2 - blocks * BLOCK, blocks * BLOCK):
        locks = _locked(first, blocks)
        if locks is None:
            continue
        try:
            if all(map(_free, range(first, first + size))):
                yield range(first, first + size)
                return
        finally:
            for lock in locks:
                os.close(lock)
    raise StartError(
        f"no {size} free ports together between {FIRST} and {LAST}: other harnesses or programs hold them; "
        "`kafka-trial doctor` names leftovers, `kafka-trial cluster list` shows running clusters"
    )


def _locked(first: int, blocks: int) -> list[int] | None:
    locks: list[int] = []
    for start in range(first, first + blocks * BLOCK, BLOCK):
        lock = os.open(lock_folder() / f"{start}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        locks.append(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            for taken in locks:
                os.close(taken)
            return None
    return locks


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def lock_folder() -> Path:
    """Returns the folder of this user's port locks (the kernel frees a lock when its holder dies)."""
    folder = Path(tempfile.gettempdir()) / f"kafka-trial-{os.getuid()}" / "ports"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
