"""The measured reader of `make bench`: a plain consumer in a process of its own, as fast as its client goes.

`python -m lab.bench.reader BOOTSTRAP TOPIC GROUP RECORDS` joins the group, prints `ready` when it was given
partitions and its first fetch may go, reads RECORDS records, commits every thousand, and prints the seconds of the
monotonic clock at its last record.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_trial.process.children import ChildProcesses, ChildRpc, start_child_rpc

COMMIT_EVERY = 1000
SILENT_FOR_S = 30.0
READ_WITHIN_S = 300.0


class Reader:
    """A running reader; `ready` and `done` wait for its two lines."""

    def __init__(self, rpc: ChildRpc) -> None:
        self._rpc = rpc

    def ready(self) -> None:
        """Waits until it has partitions."""
        self._line()

    def done(self) -> float:
        """Waits until it has read everything; returns the instant (s, monotonic) of its last record.

        Raises:
            WaitTimeout: it gave up.
        """
        return float(self._line())

    def _line(self) -> bytes:
        return self._rpc.answer(within_s=READ_WITHIN_S, what="the measured reader", every_s=0.005)


@contextmanager
def start_reader(
    child_processes: ChildProcesses, *, bootstrap: str, topic: str, group: str, records: int
) -> Iterator[Reader]:
    """Yields a reader that has been started and is about to join."""
    argv = [sys.executable, "-m", "lab.bench.reader", bootstrap, topic, group, str(records)]
    rpc = start_child_rpc(child_processes, f"reader of {topic}", argv, stderr=None)
    try:
        yield Reader(rpc)
    finally:
        rpc.child.end(within_s=10.0)
        rpc.close()


def main() -> int:
    """Reads; 1 when nothing came for long."""
    from confluent_kafka import Consumer  # by this process alone: the one that measures holds no librdkafka

    bootstrap, topic, group, records = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic], on_assign=lambda *_: print("ready", flush=True))
    left, uncommitted, heard_s = int(records), 0, time.monotonic()
    while left > 0:
        messages = [message for message in consumer.consume(COMMIT_EVERY, 0.2) if message.error() is None]
        now_s = time.monotonic()
        if not messages:
            if now_s - heard_s > SILENT_FOR_S:
                return 1
            continue
        heard_s = now_s
        left -= len(messages)
        uncommitted += len(messages)
        if uncommitted >= COMMIT_EVERY or left <= 0:
            uncommitted = 0
            consumer.commit(asynchronous=True)
    print(heard_s, flush=True)
    consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
