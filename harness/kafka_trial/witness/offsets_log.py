"""The witness of the offsets log: every commit that took effect and every change of the group, in the log's own order.

A process of its own. It fetches the trial's partitions of `__consumer_offsets` from the first record on, control
records included, decodes them, and writes what concerns the trial's groups to `history/offsets.jsonl`. A commit in a
transaction is written when it is read (with its producer), and once more as `commit_aborted` when the transaction's
marker says so; the open transaction of another group hides nothing, because the reading is uncommitted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka_trial.cluster.admin import OFFSETS_TOPIC, group_partition
from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.recorder import Pen, Recorder
from kafka_trial.waiting import pause, wait_until
from kafka_trial.witness import questions
from kafka_trial.witness.batches import ABORT, COMMIT, Batch, batches, marker, records
from kafka_trial.witness.connection import Brokers, NoAnswerError
from kafka_trial.witness.fetch import Fetched, fetch
from kafka_trial.witness.offsets_decoder import decode_key
from kafka_trial.witness.offsets_events import Place, event_of
from kafka_trial.witness.post import BEHIND, COMPLETE, UNDECODABLE, Answer, deadline_s, serve
from kafka_trial.witness.primitives import DecodeError

SOURCE: Final = "offsets"
OFFSET_OUT_OF_RANGE: Final = 1
FETCH_WAIT_MS: Final = 100
RETRY_S: Final = 0.1
FOUND_WITHIN_S: Final = 30.0


class LogReader:
    """Turns the batches of one partition into events of the groups it follows; no cluster."""

    def __init__(self, partition: int, groups: Sequence[str], recorder: Pen) -> None:
        self.partition = partition
        self.undecodable = 0
        self._groups = frozenset(groups)
        self._texts = [group.encode() for group in groups]
        self._recorder = recorder
        self._pending: dict[int, list[dict[str, Any]]] = {}

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

    def _marker(self, batch: Batch) -> None:
        try:
            end = marker(batch)
        except DecodeError as error:
            self.not_decoded(batch.base_offset, error)
            return
        commits = self._pending.pop(batch.producer_id, []) if end in (ABORT, COMMIT) else []
        if not commits:
            return  # another group's transaction, or one that committed nothing here
        place = Place(self.partition, batch.base_offset, batch.base_time_ms)
        self._recorder.record(
            "transaction_marker",
            producer_id=batch.producer_id,
            state="abort" if end == ABORT else "commit",
            **place.fields(),
        )
        for commit in commits if end == ABORT else ():
            self._recorder.record("commit_aborted", **{name: commit.get(name) for name in ABORTED_FIELDS})


ABORTED_FIELDS = ("group", "topic", "partition", "committed_offset", "log_partition", "log_offset")


@dataclass
class Tail:
    """Follows one partition: where it is, and how far the log is known to go."""

    brokers: Brokers
    reader: LogReader
    position: int
    leader: int
    high_watermark: int = -1
    failure: str | None = field(default=None)

    def step(self, *, wait_ms: int) -> None:
        """Fetches once; a failure makes it look for the leader again and is told at the snapshot, if it lasts."""
        try:
            self._take(self.brokers.broker(self.leader, self._fetch(wait_ms)))
            self.failure = None
        except NoAnswerError as error:
            if error.code == OFFSET_OUT_OF_RANGE:
                raise UnjudgeableError(self._lost(error)) from error
            self.failure = str(error)
            self._find_leader()
            pause(RETRY_S)

    def _fetch(self, wait_ms: int) -> Any:
        place = self.reader.partition, self.position
        return lambda connection: fetch(connection, OFFSETS_TOPIC, *place, wait_ms=wait_ms)

    def _take(self, fetched: Fetched) -> None:
        try:
            for batch in batches(fetched.data):
                if batch.next_offset > self.position:
                    self.reader.take(batch, self.position)
                    self.position = batch.next_offset
        except DecodeError as error:
            self.reader.not_decoded(self.position, error)
            raise UnjudgeableError(f"the offsets log cannot be followed past {self.position}: {error}") from error
        self.high_watermark = fetched.high_watermark

    def _find_leader(self) -> None:
        try:
            found = self.brokers.anyone(lambda connection: questions.metadata(connection, [OFFSETS_TOPIC]))
        except NoAnswerError as error:
            self.failure = str(error)
            return
        self.brokers.by_id = dict(found.brokers)
        self.brokers.ask_another()
        partitions = found.topics[OFFSETS_TOPIC].partitions if OFFSETS_TOPIC in found.topics else ()
        self.leader = next((part.leader for part in partitions if part.partition == self.reader.partition), -1)

    def _lost(self, error: NoAnswerError) -> str:
        return (
            f"the offsets log was cut under the witness: it had read partition {self.reader.partition} up to "
            f"{self.position}, and the broker has nothing there ({error}). Was the topic deleted, or records in it?"
        )


class OffsetsLog:
    """Follows every partition that holds one of the groups."""

    def __init__(self, tails: Sequence[Tail]) -> None:
        self._tails = tails

    def step(self) -> None:
        """Fetches once from each partition."""
        for tail in self._tails:
            tail.step(wait_ms=max(1, FETCH_WAIT_MS // len(self._tails)))

    def snapshot(self, *, within_s: float) -> Answer:
        """Reads up to the high watermarks that the leaders answer with from now on."""
        until_s = deadline_s(within_s)
        for tail in self._tails:
            tail.high_watermark = -1
        while any(self._behind()) and time.monotonic() < until_s:
            self.step()
        position = sum(tail.position for tail in self._tails)
        end = sum(max(tail.position, tail.high_watermark) for tail in self._tails)
        if any(self._behind()):
            failures = "; ".join(filter(None, (tail.failure for tail in self._tails)))
            message = f"not at the end of the offsets log within {within_s:g} s. {failures}".rstrip()
            return Answer(BEHIND, message, position, end)
        return self._complete(position, end)

    def _behind(self) -> list[bool]:
        return [tail.high_watermark < 0 or tail.position < tail.high_watermark for tail in self._tails]

    def _complete(self, position: int, end: int) -> Answer:
        undecodable = sum(tail.reader.undecodable for tail in self._tails)
        if undecodable:
            message = f"{undecodable} records or batches of the offsets log could not be decoded"
            return Answer(UNDECODABLE, message, position, end)
        return Answer(COMPLETE, None, position, end)


def open_tails(brokers: Brokers, groups: Sequence[str], recorder: Recorder) -> list[Tail]:
    """Finds the partitions of the groups, their leaders and first offsets.

    Raises:
        WaitTimeout: nobody could say in time.
    """
    failures: list[str] = []

    def found() -> list[Tail]:
        try:
            return _tails(brokers, groups, recorder)
        except NoAnswerError as error:
            failures[:] = [str(error)]
            return []

    what = f"the leaders of {OFFSETS_TOPIC}"
    return wait_until(found, within_s=FOUND_WITHIN_S, what=what, every_s=RETRY_S, detail=lambda: " ".join(failures))


def _tails(brokers: Brokers, groups: Sequence[str], recorder: Recorder) -> list[Tail]:
    found = brokers.anyone(lambda connection: questions.metadata(connection, [OFFSETS_TOPIC]))
    brokers.by_id = dict(found.brokers)
    if OFFSETS_TOPIC not in found.topics:
        raise NoAnswerError(f"{OFFSETS_TOPIC} does not exist yet")
    partitions = found.topics[OFFSETS_TOPIC].partitions
    by_partition: dict[int, list[str]] = {}
    for group in groups:
        by_partition.setdefault(group_partition(group, partitions=len(partitions)), []).append(group)
    return [
        Tail(
            brokers, LogReader(number, names, recorder), _first(brokers, partitions[number]), partitions[number].leader
        )
        for number, names in by_partition.items()
    ]


def _first(brokers: Brokers, partition: questions.Partition) -> int:
    number = partition.partition
    offsets = brokers.broker(
        partition.leader,
        lambda connection: questions.list_offsets(connection, OFFSETS_TOPIC, [number], which=questions.EARLIEST),
    )
    if number not in offsets:
        raise NoAnswerError(f"broker {partition.leader} does not lead {OFFSETS_TOPIC}-{number}")
    return offsets[number]


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
        return serve(OffsetsLog(open_tails(brokers, options.group, recorder)), [recorder])


if __name__ == "__main__":
    sys.exit(main())
