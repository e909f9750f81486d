"""The offsets log of an audit: one group's partition of `__consumer_offsets`, read as far as limits allow.

What compaction has taken cannot be read any more, but that it has can be seen: offsets are missing between the batches
or inside them. Where the first whole stretch begins is written down (`compacted`); what may have been there before it
is not known, and the verdict says so.

A filter says what of it belongs into the history: events in, events out. *Before* the window only what stands at its
beginning counts: the last record of every key, as compaction would leave it (who owned what, what was committed).
*Inside* the window everything. *After* it only how a fall of the committed position that stood at its end went on: a
window must not end a sound client's wobble.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_trial.audit.bounded_reading import Budget, Log
from kafka_trial.audit.request import NS_PER_MS, AuditRequest
from kafka_trial.history.recorder import EventWriter, Recorder
from kafka_trial.kafka_protocol.batches import Batch, records
from kafka_trial.kafka_protocol.offsets_decoder import decode_key, decode_value
from kafka_trial.kafka_protocol.offsets_records import ClassicGroup, CurrentAssignment, Member
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.witness.offsets_log import LogReader

BEFORE_SHARE = 2  # at most 1/2 of the limits is spent on what lies before the window


@dataclass
class Gaps:
    """Where offsets are missing in a log that is read in order."""

    from_ns: int
    position: int
    count: int = 0
    whole_offset: int = -1
    whole_ns: int = -1

    def take(self, batch: Batch) -> None:
        """Looks before and into one batch; holes that ended before the window are of no interest."""
        missing = max(0, batch.base_offset - self.position) + self._inside(batch)
        self.position = max(self.position, batch.next_offset)
        last_ns = batch.base_time_ms * NS_PER_MS
        if missing and last_ns >= self.from_ns:
            self.count += missing
            self.whole_offset, self.whole_ns = batch.next_offset if self._inside(batch) else batch.base_offset, last_ns

    def _inside(self, batch: Batch) -> int:
        return 0 if batch.control else max(0, batch.next_offset - batch.base_offset - batch.count)


@dataclass
class GroupSettings:
    """What the group's records say of its settings; the greatest that was told counts."""

    group: str
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    protocol: str = "classic"

    def take(self, batch: Batch) -> None:
        """Looks at the group records of one batch."""
        if batch.control or not batch.may_hold(self.group.encode()):
            return
        try:
            for record in records(batch):
                about = decode_key(record.key)
                if about.group == self.group and record.value is not None:
                    self._value(decode_value(about, record.value))
        except DecodeError:
            return  # the reader of the log counts it

    def _value(self, value: Any) -> None:
        if isinstance(value, ClassicGroup):
            for member in value.members:
                self.session_timeout_ms = max(self.session_timeout_ms, member.session_timeout_ms)
                self.rebalance_timeout_ms = max(self.rebalance_timeout_ms, member.rebalance_timeout_ms)
        elif isinstance(value, Member):
            self.rebalance_timeout_ms = max(self.rebalance_timeout_ms, value.rebalance_timeout_ms)
        elif isinstance(value, CurrentAssignment):
            self.protocol = "consumer"


@dataclass(frozen=True)
class OffsetsRead:
    """What the reading of the offsets log came to.

    `committed` stands at the end of the window, by partition; `advanced` is how far it came in all; `inside` counts
    commits; `read_to_ns` is up to when the log is known; `unread` are sentences on what was left out, and why.
    `earlier` commits were of another topic of that name, the last of them at `earlier_until_ns`.
    """

    committed: Mapping[int, int]
    advanced: int
    told: GroupSettings
    inside: int
    read_to_ns: int
    unread: tuple[str, ...] = ()
    earlier: int = 0
    earlier_until_ns: int = 0


def read_offsets(
    log: Log,
    partition: int,
    request: AuditRequest,
    recorder: Recorder,
    budget: Budget,
    *,
    topic_id: str | None,
    settle_ns: int,
    now_ns: int,
) -> OffsetsRead:
    """Reads the group's partition and records what counts; `topic_id` is what the topic has now.

    Raises:
        UnjudgeableError: its leader could not be reached.
    """
    window_filter = WindowFilter(
        recorder, topic=request.topic, topic_id=topic_id, from_ns=request.from_ns, until_ns=request.until_ns
    )
    reader, told = LogReader(partition, [request.group], window_filter), GroupSettings(request.group)
    spans = _spans(log, partition, request, settle_ns=settle_ns)
    gaps, unread = Gaps(request.from_ns, spans.start), []
    latest_ns = request.from_ns
    for batch, skipped in _batches(log, partition, spans, budget):
        if skipped:
            unread.append(f"the offsets log before {spans.window} (who owned what at the beginning): {skipped}")
            gaps = Gaps(request.from_ns, batch.base_offset)
        gaps.take(batch)
        told.take(batch)
        reader.take(batch, spans.start)
        latest_ns = max(latest_ns, batch.base_time_ms * NS_PER_MS)
    window_filter.begin()
    if gaps.count:
        recorder.record(
            "compacted",
            time_ns=gaps.whole_ns,
            log_partition=partition,
            log_offset=gaps.whole_offset,
            count=gaps.count,
            source_wall_ns=gaps.whole_ns,
        )
    whole = gaps.position >= spans.end or spans.start >= spans.end
    if not whole:
        unread.append(f"the offsets log from offset {gaps.position} to {spans.end}: {budget.spent or 'it ended early'}")
    read_to_ns = (request.until_ns + settle_ns if spans.settled else now_ns) if whole else latest_ns
    advanced = sum(
        max(0, value - window_filter.began.get(part, value)) for part, value in window_filter.committed.items()
    )
    return OffsetsRead(
        dict(window_filter.committed),
        advanced,
        told,
        window_filter.inside,
        read_to_ns,
        tuple(unread),
        window_filter.earlier,
        window_filter.earlier_until_ns,
    )


@dataclass(frozen=True)
class Spans:
    """Offsets of the log: where it starts, where the window does, and up to where it is read.

    `settled`: it is read up to records that are later than the time a fall is followed for.
    """

    start: int
    window: int
    end: int
    settled: bool


def _spans(log: Log, partition: int, request: AuditRequest, *, settle_ns: int) -> Spans:
    end = log.log_ends()[partition]
    window, _ = log.at(request.from_ns)[partition]
    after, _ = log.at(request.until_ns + settle_ns)[partition]
    return Spans(
        start=log.starts()[partition],
        window=end if window < 0 else window,
        end=end if after < 0 else after,
        settled=after >= 0,
    )


def _batches(log: Log, partition: int, spans: Spans, budget: Budget) -> Iterator[tuple[Batch, str]]:
    """Yields the batches, and beside the first one after a jump why it was made: what lies before had to be left."""
    allowed = budget.bytes_left // BEFORE_SHARE
    position, skipped = spans.start, ""
    for batch in log.batches(partition, spans.start, min(spans.window, spans.end), budget):
        if budget.bytes_left < allowed:
            skipped = "half of the limit of bytes was spent on it; raise --max-mib"
            break
        position = batch.next_offset
        yield batch, ""
    for batch in log.batches(partition, max(position, spans.window) if skipped else position, spans.end, budget):
        yield batch, skipped
        skipped = ""


Fields = dict[str, Any]
COMMITS = ("committed", "commit_tombstone", "commit_aborted")


class WindowFilter:
    """Takes the events of one group in log order and hands on those that count; times are the coordinators'.

    A commit that bears another id than `topic_id` is of another topic of that name, which was deleted: it is counted
    (`earlier`), and left out.
    """

    def __init__(
        self, event_writer: EventWriter, *, topic: str, from_ns: int, until_ns: int, topic_id: str | None = None
    ) -> None:
        self.inside = 0
        self.earlier = 0
        self.earlier_until_ns = 0
        self.committed: dict[int, int] = {}  # what stands at the end of the window
        self.began: dict[int, int] = {}  # what stood first, as far as the window tells
        self.seen = 0
        self._event_writer = event_writer
        self._topic, self._topic_id = topic, topic_id
        self._from_ns, self._until_ns = from_ns, until_ns
        self._before: dict[tuple[Any, ...], tuple[str, Fields]] = {}
        self._peaks: dict[int, int] = {}
        self._undo: dict[int, tuple[int | None, int | None]] = {}  # by place: what a pending commit stepped over

    @property
    def fallen(self) -> set[int]:
        """The partitions whose committed position stands below where it had been."""
        return {part for part, peak in self._peaks.items() if self.committed.get(part, peak) < peak}

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Takes one event, as a `Recorder` would; its time is the coordinator's."""
        if kind in COMMITS and fields.get("topic") != self._topic:
            self.seen += 1
            return -1
        self.seen += kind != "undecodable"
        wall_ns = int(fields.get("source_wall_ns", self._from_ns))
        if kind == "committed" and self._topic_id and fields.get("topic_id") not in (None, self._topic_id):
            self.earlier, self.earlier_until_ns = self.earlier + 1, wall_ns
            return -1
        if wall_ns < self._from_ns:
            self._keep(kind, fields)
        elif wall_ns <= self._until_ns:
            self.begin()
            self._take(kind, fields)
            self.inside += kind == "committed"
            self._write(kind, fields)
        elif kind in COMMITS and fields["partition"] in self.fallen:
            self.begin()
            self._take_after(kind, fields)
        return -1

    def begin(self) -> None:
        """Writes down what stood at the beginning of the window, once it is known."""
        standing = sorted(self._before.values(), key=lambda one: int(one[1]["log_offset"]))
        self._before.clear()
        for kind, fields in standing:
            self._take(kind, fields)
            self._write(kind, fields)

    def _keep(self, kind: str, fields: Fields) -> None:
        if kind == "transaction_marker":
            return  # what it ended has been taken, or is taken back by `commit_aborted`
        key = _key(kind, fields)
        if kind == "commit_aborted":
            if self._before.get(key, ("", {}))[1].get("log_offset") == fields["log_offset"]:
                del self._before[key]  # what stood before it is not known any more: nothing is claimed of it
            return
        self._before.pop(key, None)
        self._before[key] = kind, fields

    def _take_after(self, kind: str, fields: Fields) -> None:
        """After the window a fall is followed; what stands at the window's end is not touched by it."""
        peak = self._peaks[fields["partition"]]
        if kind == "committed" and fields["committed_offset"] >= peak:
            del self._peaks[fields["partition"]]
        self._write(kind, fields)

    def _take(self, kind: str, fields: Fields) -> None:
        if kind == "committed":
            self.began.setdefault(fields["partition"], fields["committed_offset"])
            self._committed(fields["partition"], fields["committed_offset"], fields)
        elif kind == "commit_tombstone":
            self._stand(fields["partition"], None, None)
        elif kind == "commit_aborted" and fields["log_offset"] in self._undo:
            self._stand(fields["partition"], *self._undo.pop(fields["log_offset"]))

    def _committed(self, partition: int, value: int, fields: Fields) -> None:
        if fields.get("producer_id") is not None:
            self._undo[fields["log_offset"]] = self.committed.get(partition), self._peaks.get(partition)
        self._stand(partition, value, max(self._peaks.get(partition, value), value))

    def _stand(self, partition: int, committed: int | None, peak: int | None) -> None:
        for table, value in ((self.committed, committed), (self._peaks, peak)):
            if value is None:
                table.pop(partition, None)
            else:
                table[partition] = value

    def _write(self, kind: str, fields: Fields) -> None:
        self._event_writer.record(kind, time_ns=fields.get("source_wall_ns"), **fields)


def _key(kind: str, fields: Fields) -> tuple[Any, ...]:
    """Returns what a record is about: the key under which compaction would keep the last one."""
    if kind in COMMITS:
        return "commit", fields["partition"]
    if kind == "group_tombstone":
        return _kind_of_record(fields.get("record_type")), fields.get("member_id")
    return kind, fields.get("member_id")


def _kind_of_record(record_type: int | None) -> str:
    names = {2: "group", 3: "group_epoch", 5: "member", 6: "target_epoch", 7: "target", 8: "member_assignment"}
    return names.get(record_type or 0, f"type {record_type}")
