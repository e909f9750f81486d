"""The cold reader: a neighbour of the group on trial, which reads its topic from the beginning, over and over.

A process of its own (`python -m kafka_trial.nemesis.cold_reader`), in a group of its own, with a client library as any
reader has: slow, a little at a time, and it never commits. It reads until its standard input ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from select import select

import orjson

from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.process.children import ChildProcesses, ChildRpc, start_child_rpc
from kafka_trial.process.waiting import pause

READS_WITHIN_S = 20.0
ENDS_WITHIN_S = 10.0
POLL_S = 0.1


@dataclass
class ColdReader:
    """How many bytes of records the neighbour has consumed, once it has ended."""

    consumed_bytes: int = 0


@contextmanager
def cold_reader(bootstrap: str, topic: str, group: str, *, bytes_per_s: int, stderr: Path) -> Iterator[ColdReader]:
    """Starts the neighbour and waits for its first record; it reads for as long as the body runs.

    Raises:
        UnjudgeableError: it died, or read nothing in time.
    """
    reader = ColdReader()
    argv = [sys.executable, "-m", __name__, bootstrap, topic, group, str(bytes_per_s)]
    with ChildProcesses("neighbour") as child_processes:
        rpc = start_child_rpc(child_processes, "cold reader", argv, stderr=stderr)
        try:
            _await_consumed_bytes(rpc, within_s=READS_WITHIN_S)
            yield reader
            rpc.hang_up()
            reader.consumed_bytes = _await_consumed_bytes(rpc, within_s=ENDS_WITHIN_S)
        finally:
            rpc.close()


def _await_consumed_bytes(rpc: ChildRpc, *, within_s: float) -> int:
    """Returns how many bytes it says it has consumed; it says it at its first record, and at its end."""
    try:
        return int(orjson.loads(rpc.answer(within_s=within_s, what="the neighbour to read"))["consumed_bytes"])
    except WaitTimeout as error:
        raise UnjudgeableError(f"{error}; {rpc.complaint()}") from error


def main() -> int:
    """Reads, and says at its first record and at its end how many bytes of records it has consumed."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition  # by this process alone

    bootstrap, topic, group, bytes_per_s = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.message.max.bytes": 262_144,  # it reads a little at a time, and fetches little ahead
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": 1024,
        }
    )
    consumer.subscribe([topic])
    consumed_bytes, began_s = 0, time.monotonic()
    while not select([sys.stdin], [], [], 0)[0]:
        if (ahead_s := began_s + consumed_bytes / bytes_per_s - time.monotonic()) > 0:
            pause(min(POLL_S, ahead_s))
            continue
        message = consumer.poll(POLL_S)
        if message is None:
            continue
        if (error := message.error()) is None:
            size_bytes = len(message.value() or b"") + len(message.key() or b"")
            if not consumed_bytes and size_bytes:
                _say(size_bytes)
            consumed_bytes += size_bytes
        elif error.code() == KafkaError._PARTITION_EOF:
            consumer.seek(TopicPartition(topic, message.partition() or 0, OFFSET_BEGINNING))
        else:
            print(f"cold reader: {error}", file=sys.stderr)
    consumer.close()  # it leaves its group before it says that it has ended
    _say(consumed_bytes)
    return 0


def _say(consumed_bytes: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it any more
        sys.stdout.buffer.write(orjson.dumps({"consumed_bytes": consumed_bytes}, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
