"""The event writer of the workload: two lines for each send, written by hand because there may be 100,000 a second.

The invoke of a record is with the kernel before the record is handed to the client: whatever kills the process, no
record is in Kafka whose invoke is not in the history. Lines are byte for byte what `history.event.to_line` would
write, five times cheaper. One thread; times never step back within the file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from kafka_trial.history.event import SCHEMA, Event, to_line
from kafka_trial.workload.workload import Op, json_text

SOURCE = "workload"


class SendLog:
    """Writes `<history>/workload.jsonl`; keeps which sends are still undecided, and counts outcomes.

    `topics`: their names; `Op.topic` is an index into them. `monotonic_ns` is the clock, for tests.
    """

    def __init__(
        self, history: Path, topics: Sequence[str], *, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.path = history / f"{SOURCE}.jsonl"
        self._file = open(self.path, "xb", buffering=0)  # noqa: SIM115 - closed by close(); "x": a source has one life
        self._topics = topics
        self._head = f'{{"schema":{SCHEMA},"source":"{SOURCE}","seq":'
        self._middles = [f',"kind":"send","topic":{json_text(topic)},' for topic in topics]
        self._now = monotonic_ns
        self._seq = 0
        self._lines: list[str] = []
        self.undecided: dict[int, tuple[int, str]] = {}  # seq of the invoke → its topic, the fields of its record
        self.counts = {"sent": 0, "ok": 0, "fail": 0, "info": 0}

    def invoke(self, op: Op, *, size_bytes: int, checksum: int) -> int:
        """Notes that `op` is about to be sent; returns the number its completion repeats as `op`."""
        record = f'"id":"{op.id}",' if op.key is None else f'"id":"{op.id}","key":{json_text(op.key)},'
        entity = "" if op.entity is None else f',"entity":{json_text(op.entity)}'
        body = f'{record}"outcome":"invoke","size_bytes":{size_bytes},"checksum":{checksum}{entity}'
        seq = self._send(op.topic, body)
        self.undecided[seq] = op.topic, record
        self.counts["sent"] += 1
        return seq

    def acknowledged(self, send: int, partition: int, offset: int | None) -> None:
        """Notes that Kafka has acknowledged a send: its record is at `offset`.

        Without an offset where the client was not told: it sent the batch again, and the broker answered that it has it
        already (DUPLICATE_SEQUENCE_NUMBER).
        """
        topic, record = self.undecided.pop(send)
        place = f'"partition":{partition},' if offset is None else f'"partition":{partition},"offset":{offset},'
        self._send(topic, f'{place}{record}"outcome":"ok","op":{send}')
        self.counts["ok"] += 1

    def not_acknowledged(self, send: int, outcome: str, message: str) -> None:
        """Notes that a send failed (`fail`: the record is definitely not in Kafka) or that nobody knows (`info`)."""
        topic, record = self.undecided.pop(send)
        said = orjson.dumps(message).decode()
        self._send(topic, f'{record}"outcome":"{outcome}","op":{send},"message":{said}')
        self.counts[outcome] += 1

    def load(self, name: str, state: str, count: int | None = None) -> None:
        """Notes that a part of the load begins or ends."""
        details = {"name": name, "state": state} | ({} if count is None else {"count": count})
        event = Event(SOURCE, self._seq, self._now(), "load", topic=self._topics[0], details=details)
        self._seq += 1
        self._lines.append(to_line(event).decode())

    def write(self) -> None:
        """Hands every waiting line to the kernel, in one block."""
        if not self._lines:
            return
        view = memoryview("".join(self._lines).encode())
        self._lines.clear()
        while view:
            view = view[self._file.write(view) :]

    def close(self) -> None:
        """Writes what is still undecided as `info`, and closes the file."""
        for send in list(self.undecided):
            self.not_acknowledged(send, "info", "undecided when the workload was stopped")
        self.write()
        self._file.close()

    def _send(self, topic: int, body: str) -> int:
        seq = self._seq
        self._seq = seq + 1
        self._lines.append(f'{self._head}{seq},"time_ns":{self._now()}{self._middles[topic]}{body}}}\n')
        return seq


class NoLog(SendLog):
    """Counts, and writes no sends: what recording costs is measured against it (`lab/bench/producer.py`), never used in
    a trial."""

    def invoke(self, op: Op, *, size_bytes: int, checksum: int) -> int:
        """Counts."""
        seq = self._seq
        self._seq = seq + 1
        self.undecided[seq] = op.topic, op.id
        self.counts["sent"] += 1
        return seq

    def acknowledged(self, send: int, partition: int, offset: int | None) -> None:
        """Counts."""
        del self.undecided[send]
        self.counts["ok"] += 1
