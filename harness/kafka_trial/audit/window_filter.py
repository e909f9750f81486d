"""The window filter: what of the offsets log belongs into the history of an audit. Events in, events out; no cluster.

Three stretches. *Before* the window only what stands at its beginning counts: the last record of every key, as
compaction would leave it (who owned what, what was committed). *Inside* the window everything. *After* it only how a
fall of the committed position that stood at its end went on: a window must not end a sound client's wobble.
"""

from __future__ import annotations

from typing import Any

from kafka_trial.history.recorder import EventWriter

Fields = dict[str, Any]
COMMITS = ("committed", "commit_tombstone", "commit_aborted")


class WindowFilter:
    """Takes the events of one group in log order and hands on those that count; times are the coordinators'."""

    def __init__(self, event_writer: EventWriter, *, topic: str, from_ns: int, until_ns: int) -> None:
        self.inside = 0
        self.committed: dict[int, int] = {}  # what stands at the end of the window
        self.began: dict[int, int] = {}  # what stood first, as far as the window tells
        self.seen = 0
        self._pen = event_writer
        self._topic = topic
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
        self._pen.record(kind, time_ns=fields.get("source_wall_ns"), **fields)


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
