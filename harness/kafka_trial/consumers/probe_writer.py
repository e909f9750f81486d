"""The probe writer: a small process that writes what time it is into every pipe it is handed, forty times a second.

It stands beside the consumers and writes as they do: into a pipe that the harness reads (`reading_probe.py`), from a
process of its own, so that what delays the harness's threads does not delay it too. Standard library only. Its stdin is
a socket: each datagram hands it one pipe; it ends when the other end closes.

Wire: datagrams of one byte with one passed descriptor; in each pipe, one CLOCK_MONOTONIC time in nanoseconds after the
other, eight bytes each, of this machine's byte order.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import time
from contextlib import suppress

EVERY_S = 0.025
STAMP = struct.Struct("=q")


def main() -> None:
    """Writes into every pipe it was handed until stdin is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the harness closes us
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with suppress(OSError):  # as its readers (`process/threads.py`): a stamp that is late makes them seem late
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    harness = socket.socket(fileno=0)
    pipes: list[int] = []
    due_s = time.monotonic()
    while True:
        due_s = max(due_s + EVERY_S, time.monotonic())
        while (left_s := due_s - time.monotonic()) > 0:
            if not select.select([harness], [], [], left_s)[0]:
                break
            message, descriptors, _, _ = socket.recv_fds(harness, 1, 1)
            if not message:
                return
            pipes += descriptors
        pipes = [pipe for pipe in pipes if _written(pipe)]


def _written(pipe: int) -> bool:
    """Writes the time into a pipe; returns whether anybody is left to read it. A full pipe is passed over."""
    try:
        os.write(pipe, STAMP.pack(time.monotonic_ns()))
    except BlockingIOError:
        return True
    except OSError:
        os.close(pipe)
        return False
    return True


if __name__ == "__main__":
    main()
