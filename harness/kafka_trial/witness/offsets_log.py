"""The witness of the offsets log: every commit that took effect and every change of the group, in the log's own order.

A process of its own. It fetches the trial's partitions of `__consumer_offsets` from the first record on, control
records included, decodes them, and writes what concerns the trial's groups to `history/offsets.jsonl`. A commit in a
transaction is written when it is read (with its producer), and once more as `commit_aborted` when the transaction's
marker says so; the open transaction of another group hides nothing, because the reading is uncommitted. What is open
when the witness is asked to read to the end is told then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from kafka_trial.history.recorder import EventWriter, Recorder
from kafka_trial.kafka_protocol.batches import ABORT, Batch, ended, records
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.kafka_protocol.offsets_decoder import decode_key
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.offsets_events import Place, event_of
from kafka_trial.witness.rpc_server import serve
from kafka_trial.witness.tail import Following, open_tails

SOURCE: Final = "offsets"


class LogReader:
    """Turns the batches of one partition into events of the groups it follows; no cluster."""

    def __init__(self, partition: int, groups: Sequence[str], recorder: EventWriter) -> None:
        self.partition = partition
        self.undecodable = 0
        self._groups = frozenset(groups)
        self._texts = [group.encode() for group in groups]
        self._recorder = recorder
        self._pending: dict[int, list[dict[str, Any]]] = {}
        self._epochs: dict[int, int] = {}  # of the producers whose transactions are pending

    def take(self, batch: Batch, position: int) -> None:
        """Records what one batch says from `position` on (a batch may begin before it)."""
        if batch.control:
            self._marker(batch)
            return
        if not any(batch.may_hold(text) for text in self._texts):
            return
        try:
            for record in records(batch):
                if record.offset >= position:
                    self._record(batch, record.offset, record.time_ms, record.key, record.value)
        except DecodeError as error:
            self.not_decoded(batch.base_offset, error)

    def not_decoded(self, offset: int, error: DecodeError) -> None:
        """Records that something in the log could not be read: from here on nobody may claim to know all."""
        self.undecodable += 1
        self._recorder.record("undecodable", log_partition=self.partition, log_offset=offset, message=str(error))

    def left_open(self) -> None:
        """Records each transaction with commits of the groups that no marker has ended."""
        for producer_id, commits in sorted(self._pending.items()):
            first = {name: commits[0].get(name) for name in PLACE_FIELDS}
            epoch = self._epochs[producer_id]
            self._recorder.record("transaction_open", producer_id=producer_id, producer_epoch=epoch, **first)

    def _record(self, batch: Batch, offset: int, time_ms: int, key: bytes | None, value: bytes | None) -> None:
        producer_id = batch.producer_id if batch.transactional else None
        place = Place(self.partition, offset, time_ms, producer_id)
        try:
            about = decode_key(key)
            if about.group is not None and about.group not in self._groups:
                return
            told = event_of(about, value, place)
        except DecodeError as error:
            self.not_decoded(offset, error)
            return
        if told is not None:
            kind, fields = told
            self._recorder.record(kind, **fields)
            if kind == "committed" and producer_id is not None:
                self._pending.setdefault(producer_id, []).append(fields)
                self._epochs[producer_id] = batch.producer_epoch

    def _marker(self, batch: Batch) -> None:
        try:
            end, commits = ended(batch, self._pending)
        except DecodeError as error:
            self.not_decoded(batch.base_offset, error)
            return
        if not commits:
            return  # another group's transaction, or one that committed nothing here
        place = Place(self.partition, batch.base_offset, batch.base_time_ms)
        self._recorder.record(
            "transaction_marker",
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            state=end,
            **place.fields(),
        )
        for commit in commits if end == ABORT else ():
            self._recorder.record("commit_aborted", **{name: commit.get(name) for name in ABORTED_FIELDS})


PLACE_FIELDS = ("log_partition", "log_offset", "source_wall_ns")
ABORTED_FIELDS = ("group", "topic", "partition", "committed_offset", "log_partition", "log_offset")


def readers(groups: Sequence[str], recorder: Recorder, *, partitions: int) -> list[LogReader]:
    """Returns a reader for each partition of the offsets log that holds one of the groups."""
    by_partition: dict[int, list[str]] = {}
    for group in groups:
        by_partition.setdefault(group_partition(group, partitions=partitions), []).append(group)
    return [LogReader(number, names, recorder) for number, names in by_partition.items()]


def main(arguments: Sequence[str] | None = None) -> int:
    """The process: follows the groups' partitions until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m kafka_trial.witness.offsets_log", description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="the OBSERVER listeners, host:port,…")
    parser.add_argument("--history", type=Path, required=True, help="the run folder's history")
    parser.add_argument("--group", action="append", required=True, help="a group of the trial (repeatable)")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder(options.history, SOURCE))
        brokers = stack.enter_context(Brokers(options.bootstrap))
        tails = open_tails(
            brokers, OFFSETS_TOPIC, lambda partitions: readers(options.group, recorder, partitions=partitions)
        )
        return serve(Following(tails), [recorder])


if __name__ == "__main__":
    sys.exit(main())
