"""The witness of transactions in topics: how each ended in each partition, what was taken back, and what is open.

A process of its own, for consumers whose progress is in their transactions. It fetches the trial's topics, and those
that the consumer writes to, from the first record on, uncommitted and with control records: a committed reader sees
neither an aborted record nor why it must wait. Writes `history/transactions.jsonl`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kafka_trial.history.record_ids import record_id
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol.batches import ABORT, Batch, ended, records
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.rpc_server import serve
from kafka_trial.witness.tail import Following, open_tails

SOURCE: Final = "transactions"
NS_PER_MS: Final = 1_000_000


class TopicReader:
    """Turns the batches of one partition into events; no cluster.

    `tells_records`: of an aborted transaction every record is told; its batches are kept until it ends.
    """

    def __init__(self, topic: str, partition: int, recorder: Recorder, *, tells_records: bool) -> None:
        self.partition = partition
        self.undecodable = 0
        self._topic = topic
        self._recorder = recorder
        self._tells_records = tells_records
        self._pending: dict[int, list[Batch]] = {}

    def take(self, batch: Batch, position: int) -> None:
        """Records what one batch ends; what it begins is kept."""
        if batch.control:
            self._marker(batch)
        elif batch.transactional:
            kept = batch if self._tells_records else replace(batch, payload=b"")
            pending = self._pending.setdefault(batch.producer_id, [])
            if self._tells_records or not pending:
                pending.append(kept)

    def not_decoded(self, offset: int, error: DecodeError) -> None:
        """Records that something in the log could not be read: from here on nobody may claim to know all."""
        self.undecodable += 1
        self._recorder.record("undecodable", **self._place(offset), message=str(error))

    def record_open(self) -> None:
        """Records each transaction that no marker has ended."""
        for producer_id, pending in sorted(self._pending.items()):
            self._tell("transaction_open", pending[0], producer_id=producer_id)

    def _marker(self, batch: Batch) -> None:
        try:
            end, pending = ended(batch, self._pending)
        except DecodeError as error:
            self.not_decoded(batch.base_offset, error)
            return
        if not pending:
            return  # it ends nothing here: a coordinator ends again what the one before it had ended
        self._tell("transaction_marker", batch, producer_id=batch.producer_id, state=end)
        if end == ABORT and self._tells_records:
            for written in pending:
                for offset, name in _records(written):
                    self._recorder.record(
                        "record_aborted", **self._place(offset), id=name, producer_id=batch.producer_id
                    )

    def _tell(self, kind: str, batch: Batch, **fields: Any) -> None:
        about = {"producer_epoch": batch.producer_epoch, "source_wall_ns": batch.base_time_ms * NS_PER_MS}
        self._recorder.record(kind, **self._place(batch.base_offset), **about, **fields)

    def _place(self, offset: int) -> dict[str, Any]:
        return {"topic": self._topic, "partition": self.partition, "offset": offset}


def _records(batch: Batch) -> Iterator[tuple[int, str | None]]:
    """Yields offset and id of the records of a batch; ids are not told where its compression cannot be opened."""
    try:
        found = [(record.offset, record_id(record.headers, record.value)) for record in records(batch)]
    except DecodeError:
        found = [(offset, None) for offset in range(batch.base_offset, batch.next_offset)]
    yield from found


def readers(topic: str, recorder: Recorder, *, partitions: int, tells_records: bool) -> list[TopicReader]:
    """Returns a reader for each partition of a topic."""
    return [TopicReader(topic, number, recorder, tells_records=tells_records) for number in range(partitions)]


def follow(brokers: Brokers, recorder: Recorder, *, topics: Sequence[str], outputs: Sequence[str]) -> Following:
    """Follows every partition that there is now of the trial's topics and of the topics written to.

    Raises:
        WaitTimeout: nobody could say in time who leads them.
    """
    tails = [
        tail
        for name in dict.fromkeys((*topics, *outputs))
        for tail in open_tails(
            brokers,
            name,
            lambda partitions, name=name: readers(  # type: ignore[misc]
                name, recorder, partitions=partitions, tells_records=name in topics
            ),
            may_expire=True,
        )
    ]
    return Following(tails)


def main(arguments: Sequence[str] | None = None) -> int:
    """The process: follows the topics until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m kafka_trial.witness.transactions", description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="the OBSERVER listeners, host:port,…")
    parser.add_argument("--history", type=Path, required=True, help="the run folder's history")
    parser.add_argument("--topic", action="append", required=True, help="a topic of the trial (repeatable)")
    parser.add_argument(
        "--output", action="append", default=[], help="a topic that the consumer writes to (repeatable)"
    )
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder(options.history, SOURCE))
        brokers = stack.enter_context(Brokers(options.bootstrap))
        return serve(follow(brokers, recorder, topics=options.topic, outputs=options.output), [recorder])


if __name__ == "__main__":
    sys.exit(main())
