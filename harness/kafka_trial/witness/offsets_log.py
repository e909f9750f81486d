"""The witness of the offsets log: every commit that took effect and every change of the group, in the log's own order.

A process of its own. It fetches the trial's partitions of `__consumer_offsets` from the first record on, control
records included, decodes them, and writes what concerns the trial's groups to `history/offsets.jsonl`. The place in the
log is the order of effect within a group; `source_wall_ns` is when the coordinator wrote the record. A commit in a
transaction is written when it is read (with its producer), and once more as `commit_aborted` when the transaction's
marker says so; the open transaction of another group hides nothing, because the reading is uncommitted. What is open
when the witness is asked to read to the end is told then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kafka_trial.history.record_ids import ID_FIELD, ID_HEADER
from kafka_trial.history.recorder import EventWriter, Recorder
from kafka_trial.kafka_protocol import offsets_records
from kafka_trial.kafka_protocol.batches import ABORT, Batch, ended, records
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.kafka_protocol.offsets_decoder import decode_assignment, decode_key, decode_value
from kafka_trial.kafka_protocol.offsets_records import (
    OFFSETS_TOPIC,
    ClassicGroup,
    CurrentAssignment,
    GroupEpoch,
    Key,
    Member,
    OffsetCommit,
    Target,
    TargetEpoch,
    TopicPartitions,
    Value,
    group_partition,
)
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.handed_on import FollowingIntermediateTopics, IdPlace, IntermediateTopics
from kafka_trial.witness.rpc_server import serve
from kafka_trial.witness.tail import open_tails

SOURCE: Final = "offsets"


class LogReader:
    """Turns the batches of one partition into events of the groups it follows; no cluster.

    `through`: topics of which every group's commits count. `on_event` is told each event too.
    """

    def __init__(
        self,
        partition: int,
        groups: Sequence[str],
        recorder: EventWriter,
        *,
        through: Sequence[str] = (),
        on_event: Callable[[str, Fields], None] = lambda kind, fields: None,
    ) -> None:
        self.partition = partition
        self.undecodable = 0
        self._groups = frozenset(groups)
        self._through = frozenset(through)
        self._on_event = on_event
        self._texts = [name.encode() for name in (*groups, *through)]
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

    def record_open(self) -> None:
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
            if about.group is not None and about.group not in self._groups and about.topic not in self._through:
                return
            told = event_of(about, value, place)
        except DecodeError as error:
            self.not_decoded(offset, error)
            return
        if told is not None:
            kind, fields = told
            self._recorder.record(kind, **fields)
            self._on_event(kind, fields)
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


def readers(
    groups: Sequence[str], recorder: Recorder, intermediate: IntermediateTopics, *, partitions: int
) -> list[LogReader]:
    """Returns a reader for each partition of the offsets log that holds one of the groups; for all of them where topics
    are declared through which records are handed on: other groups may commit on those."""
    by_partition: dict[int, list[str]] = {number: [] for number in range(partitions) if intermediate.declared}
    for group in groups:
        by_partition.setdefault(group_partition(group, partitions=partitions), []).append(group)
    return [
        LogReader(number, names, recorder, through=intermediate.declared, on_event=intermediate.see)
        for number, names in by_partition.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """The process: follows the groups' partitions until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m kafka_trial.witness.offsets_log", description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="the OBSERVER listeners, host:port,…")
    parser.add_argument("--history", type=Path, required=True, help="the run folder's history")
    parser.add_argument("--group", action="append", required=True, help="a group of the trial (repeatable)")
    parser.add_argument("--topic", action="append", required=True, help="the trial's, or of its output (repeatable)")
    parser.add_argument("--through", action="append", default=[], help="a topic that records are handed on through")
    parser.add_argument("--header", default=ID_HEADER, help="the header with a record's id")
    parser.add_argument("--field", default=ID_FIELD, help="the JSON path to it in a value, as in $.a[0].b")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        recorders = [stack.enter_context(Recorder(options.history, SOURCE))]
        brokers = stack.enter_context(Brokers(options.bootstrap))
        identity = IdPlace(options.header, options.field)
        intermediate = IntermediateTopics(
            brokers, options.history, recorders, known=options.topic, declared=options.through, identity=identity
        )
        stack.callback(intermediate.close)
        tails = open_tails(
            brokers,
            OFFSETS_TOPIC,
            lambda partitions: readers(options.group, recorders[0], intermediate, partitions=partitions),
        )
        with suppress(NoAnswerError):  # asked again when a topic is found
            intermediate.look()
        return serve(FollowingIntermediateTopics(tails, intermediate), recorders)


Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record lies in the offsets log, when it was written, and the producer if it is part of a transaction."""

    log_partition: int
    log_offset: int
    time_ms: int
    producer_id: int | None = None

    def fields(self) -> Fields:
        return {
            "log_partition": self.log_partition,
            "log_offset": self.log_offset,
            "source_wall_ns": self.time_ms * 1_000_000,
        }


def event_of(key: Key, raw: bytes | None, place: Place) -> tuple[str, Fields] | None:
    """Returns kind and fields of the event a record is; None for details of a group that say nothing of ownership.

    Raises:
        DecodeError: the value is not one of its type.
    """
    if raw is None:
        return _tombstone(key, place)
    value = decode_value(key, raw)
    if value is None:
        return "unreadable", {"group": key.group, "record_type": key.record_type, "name": key.name} | place.fields()
    told = _told(key, value)
    if told is None:
        return None
    kind, fields = told
    if isinstance(value, OffsetCommit):
        fields["producer_id"] = place.producer_id
    return kind, {"group": key.group, **fields} | place.fields()


def _tombstone(key: Key, place: Place) -> tuple[str, Fields]:
    if key.record_type in (offsets_records.LEGACY_OFFSET_COMMIT, offsets_records.OFFSET_COMMIT):
        return "commit_tombstone", {"group": key.group, "topic": key.topic, "partition": key.partition} | place.fields()
    fields = {"group": key.group, "record_type": key.record_type, "member_id": key.member_id}
    return "group_tombstone", fields | place.fields()


def _told(key: Key, value: Value) -> tuple[str, Fields] | None:
    match value:
        case OffsetCommit():
            return "committed", _committed(key, value)
        case ClassicGroup():
            return "group", _classic_group(value)
        case GroupEpoch(epoch=epoch):
            return "group_epoch", {"epoch": epoch}
        case TargetEpoch(epoch=epoch):
            return "target_epoch", {"epoch": epoch}
        case Member():
            return "member", _member(key, value)
        case Target(partitions=partitions):
            return "target", {"member_id": key.member_id, "entries": list(_partitions(partitions))}
        case CurrentAssignment():
            return "member_assignment", _member_assignment(key, value)
        case _:  # partition metadata and regular expressions: how the coordinator got to its assignment
            return None


def _committed(key: Key, value: OffsetCommit) -> Fields:
    return {
        "topic": key.topic,
        "topic_id": value.topic_id,
        "partition": key.partition,
        "committed_offset": value.committed_offset,
        "leader_epoch": value.leader_epoch,
        "commit_time_ms": value.commit_time_ms,
    }


def _classic_group(value: ClassicGroup) -> Fields:
    return {
        "protocol": "classic",
        "epoch": value.generation,
        "state": "stable" if value.members else "empty",
        "members": [
            _without_none(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
            )
            for member in value.members
        ],
        "entries": list(_assigned(value)) if value.protocol_type in ("", "consumer") else None,
    }


def _assigned(value: ClassicGroup) -> Iterator[Fields]:
    """The assignment of all members; other protocol types (Kafka Connect) assign something else."""
    for member in value.members:
        for owned in decode_assignment(member.assignment).partitions:
            for partition in owned.partitions:
                yield {"topic": owned.topic, "partition": partition, "member_id": member.member_id}


def _member(key: Key, value: Member) -> Fields:
    return {
        "member_id": key.member_id,
        "instance_id": value.instance_id,
        "client_id": value.client_id,
        "host": value.host,
        "rebalance_timeout_ms": value.rebalance_timeout_ms,
        "session_timeout_ms": value.classic.session_timeout_ms if value.classic else None,
    }


def _member_assignment(key: Key, value: CurrentAssignment) -> Fields:
    return {
        "member_id": key.member_id,
        "epoch": value.epoch,
        "previous_epoch": value.previous_epoch,
        "state": value.state_name,
        "entries": list(_partitions(value.assigned)),
        "pending": list(_partitions(value.pending_revocation)),
    }


def _partitions(topics: Sequence[TopicPartitions]) -> Iterator[Fields]:
    for topic in topics:
        epochs: Sequence[int | None] = topic.assignment_epochs or [None] * len(topic.partitions)
        for partition, epoch in zip(topic.partitions, epochs, strict=True):
            yield _without_none(topic_id=topic.topic_id, partition=partition, assignment_epoch=epoch)


def _without_none(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


if __name__ == "__main__":
    sys.exit(main())
