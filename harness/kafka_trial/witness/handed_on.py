"""What a group hands on: the records of topics of its own, through which the trial's records go on their way.

Part of the witness of the offsets log, which tells of every topic that the group is assigned, or commits on. Each is
read from its beginning (one that was there before the trial: from the trial's beginning), as an undisturbed reader of
committed records finds it, into `history/through.jsonl`: where a record lies, the id that it bears, and between which
instants it was appended; and, once the group commits there, that it does. What an aborted transaction wrote was never
handed on.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka_trial.history.record_ids import ID_FIELD, ID_HEADER, record_id
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol import cluster_queries
from kafka_trial.kafka_protocol.batches import COMMIT, Batch, Record, ended, records
from kafka_trial.kafka_protocol.cluster_queries import LATEST, Metadata
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.rpc_server import Answer, deadline_s
from kafka_trial.witness.tail import Following, Tail, tails_of

SOURCE: Final = "through"
BUFFER_EVENTS: Final = 500
ASK_EVERY_S: Final = 1.0  # for topics that are not there yet
KEY_BYTES_MAX: Final = 200  # a longer key is no id


@dataclass(frozen=True)
class IdPlace:
    """Where a record bears the id of the record of the trial that it stands for."""

    header: str = ID_HEADER
    field: str = ID_FIELD

    def of(self, record: Record) -> str | None:
        """Returns the id in its header or its JSON value; else its key, which may be one."""
        named = record_id(record.headers, record.value, header=self.header, field=self.field)
        if named is not None or record.key is None or len(record.key) > KEY_BYTES_MAX:
            return named
        return record.key.decode(errors="backslashreplace")


class HandedOnReader:
    """Turns the batches of one partition into events; no cluster."""

    def __init__(self, topic: str, partition: int, recorder: Recorder, identity: IdPlace) -> None:
        self.partition = partition
        self.undecodable = 0
        self.tail: Tail | None = None
        self._topic = topic
        self._recorder = recorder
        self._identity = identity
        self._pending: dict[int, list[Batch]] = {}
        self._next: int | None = None

    def take(self, batch: Batch, position: int) -> None:
        """Records what stands there for good: of a transaction, once it is committed."""
        if self._next is not None and position > self._next:  # deleted before it was read
            self._recorder.record("handed_on", **self._place(self._next), count=position - self._next)
        self._next = batch.next_offset
        if batch.control:
            self._marker(batch)
        elif batch.transactional:
            self._pending.setdefault(batch.producer_id, []).append(batch)
        else:
            self._tell(batch, position, self._absent_ns(batch))

    def not_decoded(self, offset: int, error: DecodeError) -> None:
        """Records that something in the log could not be read: from here on nobody may claim to know all."""
        self.undecodable += 1
        self._recorder.record("undecodable", **self._place(offset), message=str(error))

    def record_open(self) -> None:
        """What is open is not handed on, for no committed reader finds it."""

    def _marker(self, batch: Batch) -> None:
        try:
            end, written = ended(batch, self._pending)
        except DecodeError as error:
            self.not_decoded(batch.base_offset, error)
            return
        for one in written if end == COMMIT else ():
            self._tell(one, one.base_offset, self._absent_ns(batch))

    def _tell(self, batch: Batch, position: int, absent_ns: int | None) -> None:
        try:
            found = [record for record in records(batch) if record.offset >= position]
        except DecodeError as error:
            self.not_decoded(batch.base_offset, error)
            return
        for record in found:
            self._recorder.record(
                "handed_on", **self._place(record.offset), id=self._identity.of(record), asked_ns=absent_ns
            )

    def _absent_ns(self, batch: Batch) -> int | None:
        return None if self.tail is None else self.tail.absent_ns(batch.base_offset)

    def _place(self, offset: int) -> dict[str, Any]:
        return {"topic": self._topic, "partition": self.partition, "offset": offset}


@dataclass
class IntermediateTopics:
    """The topics through which the group may hand records on, as they become known: those that it is assigned, for a
    group may delete there what it has committed past. They count once it commits on them, or are `declared`.

    `known` are topics that are none of them. `recorders` gets the file's, once there is anything to tell.
    """

    brokers: Brokers
    history: Path
    recorders: list[Recorder]
    known: Collection[str]
    declared: Sequence[str] = ()
    identity: IdPlace = IdPlace()
    _began_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    _before: frozenset[str] | None = None  # the topics that were there before the trial
    _names: dict[str, str] = field(default_factory=dict)  # of topic ids
    _strange: set[str] = field(default_factory=set)  # topic ids without a name yet
    _waiting: list[str] = field(default_factory=list)
    _read: dict[str, dict[str, Any]] = field(default_factory=dict)  # what is told of each topic that is read
    _committed: set[str] = field(default_factory=set)
    _told: set[str] = field(default_factory=set)
    _next_s: float = 0.0
    _recorder: Recorder | None = None

    def __post_init__(self) -> None:
        self._waiting += self.declared
        self._committed |= {*self.declared}

    def see(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Takes an event of the offsets log: it may name a topic that the group is assigned, or commits on."""
        if kind == "committed" and fields["topic"] not in self.known:
            self._committed.add(fields["topic"])
            self._wait_for(fields["topic"])
        elif kind in ("group", "member_assignment", "target"):
            for entry in fields.get("entries") or ():
                if "topic" in entry:
                    self._wait_for(entry["topic"])
                elif entry["topic_id"] not in self._names:
                    self._strange.add(entry["topic_id"])

    def look(self) -> Metadata:
        """Returns all topics there are, and remembers which there were before the trial.

        Raises:
            NoAnswerError: no broker says so.
        """
        found = self.brokers.anyone(lambda connection: cluster_queries.metadata(connection, None))
        self._before = frozenset(found.topics) if self._before is None else self._before
        return found

    def open_new(self) -> list[Tail]:
        """Returns the tails of the topics that were named since, as far as brokers say where they lie."""
        opened: list[Tail] = []
        if (self._waiting or self._strange) and time.monotonic() >= self._next_s:
            with suppress(NoAnswerError):
                self._name_strange()
            for topic in [*self._waiting]:
                with suppress(NoAnswerError):
                    opened += self._opened(topic)
                    self._waiting.remove(topic)
            self._next_s = time.monotonic() + ASK_EVERY_S * bool(self._waiting or self._strange)
        for topic, about in self._read.items():
            if topic in self._committed and topic not in self._told:
                self._told.add(topic)
                self._recording().record("through", topic=topic, **about)
        return opened

    def missing(self) -> list[str]:
        """Returns the topics that the group commits on, and that nobody reads yet; a declared one may never be."""
        return [topic for topic in self._waiting if topic in self._committed and topic not in self.declared]

    def _wait_for(self, topic: str) -> None:
        if topic not in self.known and topic not in self._read and topic not in self._waiting:
            self._waiting.append(topic)

    def _name_strange(self) -> None:
        if self._strange:
            self._names |= {one.topic_id: name for name, one in self.look().topics.items()}
            for topic_id in self._strange & self._names.keys():
                self._wait_for(self._names[topic_id])
            self._strange -= self._names.keys()

    def _opened(self, topic: str) -> list[Tail]:
        found = self.look().topics.get(topic)
        made = topic not in (self._before or ())
        readers: dict[int, HandedOnReader] = {}

        def recorded(partitions: int) -> list[HandedOnReader]:
            for number in range(partitions):
                readers[number] = HandedOnReader(topic, number, self._recording(), self.identity)
            return [*readers.values()]

        tails = tails_of(self.brokers, topic, recorded, may_expire=True)
        for tail in tails:
            readers[tail.reader.partition].tail = tail
            tail.position = tail.position if made else self._since(tail)
        topic_id = None if found is None else found.topic_id
        self._read[topic] = {"topic_id": topic_id, "partitions": len(tails), "made": made}
        return tails

    def _since(self, tail: Tail) -> int:
        """Returns the first offset of the trial's time in a topic that was there before; its end where none is."""
        number = tail.reader.partition
        told = self.brokers.broker(
            tail.leader,
            lambda at: cluster_queries.offsets_for_time(at, tail.topic, [number], time_ms=self._began_ms),
        )
        ends = self.brokers.broker(
            tail.leader, lambda at: cluster_queries.list_offsets(at, tail.topic, [number], which=LATEST)
        )
        if number not in told or number not in ends:
            raise NoAnswerError(f"broker {tail.leader} does not lead {tail.topic}-{number}")
        first, _ = told[number]
        return first if first >= 0 else ends[number]

    def _recording(self) -> Recorder:
        if self._recorder is None:
            self._recorder = Recorder(self.history, SOURCE, buffer_events=BUFFER_EVENTS)
            self.recorders.append(self._recorder)
        return self._recorder

    def flush(self) -> None:
        """Hands what waits to the kernel."""
        if self._recorder is not None:
            self._recorder.flush()

    def close(self) -> None:
        """Closes the file, if there is one."""
        if self._recorder is not None:
            self._recorder.close()


class FollowingIntermediateTopics(Following):
    """Follows the offsets log, and the topics through which the group hands records on."""

    def __init__(self, tails: Sequence[Tail], intermediate: IntermediateTopics) -> None:
        super().__init__(tails)
        self._intermediate = intermediate

    def step(self) -> None:
        """Fetches once from each partition, those of new topics too."""
        super().step()
        self._tails += self._intermediate.open_new()
        self._intermediate.flush()

    def snapshot(self, *, within_s: float) -> Answer:
        """Reads all to the end; what the offsets log tells of last may be a topic that nobody has read yet."""
        until_s = deadline_s(within_s)
        while True:
            answer = super().snapshot(within_s=max(0.0, until_s - time.monotonic()))
            opened = self._intermediate.open_new()
            self._tails += opened
            self._intermediate.flush()
            if not opened or time.monotonic() >= until_s:
                return answer if not self._intermediate.missing() else self._unread(answer)

    def _unread(self, answer: Answer) -> Answer:
        topics = ", ".join(self._intermediate.missing())
        return Answer("behind", f"the group commits on {topics} too, and no broker says where it lies", answer.position)
