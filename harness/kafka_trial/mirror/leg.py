"""A leg: the time that a group was on one of both clusters, and what is seen of it there, told as of the source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from kafka_trial.mirror.fail_over_event import Line, MirroredTopic

MIRROR_BROKERS: Final = 100  # is added to the id of a broker of the mirror
EPOCH_FIELDS: Final = ("epoch", "answered_epoch", "previous_epoch", "assignment_epoch")
ENTRY_LISTS: Final = ("entries", "assigned", "pending")
POSITIONS_IN: Final = ("FETCH", "LIST_OFFSETS")  # requests whose `offset` is a position, not a record's place
WORK_KINDS: Final = ("delivered", "processed")
NEVER: Final = 2**63 - 1


@dataclass(frozen=True)
class Leg:
    """A leg after the first: when it was, and what its lines are in the joined history.

    It lasts from `begins_ns`, when its first member was started, to `ends_ns`, when the first of the next leg was;
    `…_wall_ns` by the wall clock, the others by the monotonic one. `is_mirror`: it is on the mirror, which has `topics`
    in place of the source's, and whose lanes are `source_lanes` there. `epoch_shift` and `log_offset_shift` are added
    to its epochs and to its places in the offsets log, whose partition is `log_partition` in the joined history.
    `topic_of_id`: the source's topic of each record, by the record's id.
    """

    is_mirror: bool = True
    topics: tuple[MirroredTopic, ...] = ()
    epoch_shift: int = 0
    log_partition: int | None = None
    log_offset_shift: int = 0
    begins_ns: int = NEVER
    source_lanes: Mapping[int, int] = field(default_factory=dict)
    begins_wall_ns: int = NEVER
    ends_ns: int = NEVER
    ends_wall_ns: int = NEVER
    topic_of_id: Mapping[str, str] = field(default_factory=dict)

    def contains(self, at_ns: int) -> bool:
        """Whether an instant is in this leg."""
        return self.begins_ns <= at_ns < self.ends_ns

    @cached_property
    def _by_name(self) -> Mapping[str, MirroredTopic]:
        return {one.on_mirror: one for one in self.topics}

    @cached_property
    def _by_id(self) -> Mapping[str, MirroredTopic]:
        return {one.id_on_mirror: one for one in self.topics if one.id_on_mirror}

    def count_strays(self, lines: Iterable[Line]) -> int:
        """Returns how many of a member's lines of work on the mirror are of no record that it has."""
        work = (line for line in lines if line["kind"] in WORK_KINDS)
        return sum(self._with_place(line, "") is None for line in work)

    def effect_to_source(self, line: Line) -> Line:
        """Returns an effect of a member on the mirror; one that names a place there, by its record's id, names that on
        the source. Where the record at that place is of no topic here, nothing is known of its place."""
        if not self.contains(line["time_ns"]) or line.get("partition") is None or line.get("offset") is None:
            return line
        name = self.topic_of_id.get(str(line.get("id")))
        topic = next((one for one in self.topics if one.name == name), None)
        offset = None if topic is None else topic.offsets.offset_of(line["partition"], line["offset"])
        told = {name: value for name, value in line.items() if name not in ("topic", "partition", "offset")}
        if topic is None or offset is None:
            return told
        return told | {"topic": topic.name, "partition": line["partition"], "offset": offset}

    def to_source(self, line: Line) -> Line | None:
        """Returns a line of this leg as one of the whole history, which is the source's; None: it has no meaning
        there."""
        api = str(line.get("api", ""))
        told = self._with_place(line, api)
        if told is None and line["kind"] == "bad_line":
            told = {name: value for name, value in line.items() if name not in ("topic", "partition", "offset")}
        if told is None:
            return None
        for name in ENTRY_LISTS:
            if name in told:
                entries = (self._with_place(entry, api) for entry in told[name])
                told[name] = [self._with_epochs(entry) for entry in entries if entry is not None]
        told = self._with_epochs(told)
        if "log_offset" in told:
            told["log_offset"] += self.log_offset_shift
            told["log_partition"] = told["log_partition"] if self.log_partition is None else self.log_partition
        if told.get("lane") in self.source_lanes:
            told["lane"] = self.source_lanes[told["lane"]]
        return self._with_brokers(told) if self.is_mirror else told

    @staticmethod
    def _with_brokers(told: Line) -> Line:
        if told["kind"] == "coordinator" and told.get("leader", -1) >= 0:
            told["leader"] += MIRROR_BROKERS
        if told.get("api") == "FIND_COORDINATOR" and told.get("coordinator", -1) >= 0:
            told["coordinator"] += MIRROR_BROKERS
        if "started_with" in told:
            told["started_with"] = [broker + MIRROR_BROKERS for broker in told["started_with"]]
        return told

    def _with_place(self, line: Line, api: str) -> Line | None:
        """Returns a line, or an entry in one, with its place on the source; None: of a topic or record that is not
        there."""
        name, id_ = line.get("topic"), line.get("topic_id")
        if not self.is_mirror or (name is None and id_ is None):
            return dict(line)
        topic = self._by_name.get(str(name)) if name is not None else self._by_id.get(str(id_))
        if topic is None:
            return None
        told = dict(line)
        told |= {"topic": topic.name} if name is not None else {}
        told |= {"topic_id": topic.id} if id_ is not None else {}
        partition = line.get("partition")
        if partition is None:
            return told
        if line.get("committed_offset") is not None:
            told["committed_offset"] = topic.offsets.position_of(partition, line["committed_offset"])
        if line.get("offset") is not None:
            is_position = api in POSITIONS_IN
            read = topic.offsets.position_of if is_position else topic.offsets.offset_of
            told["offset"] = read(partition, line["offset"])
            if told["offset"] is None:
                return None
        return told

    def _with_epochs(self, line: Line) -> Line:
        for name in EPOCH_FIELDS:
            if isinstance(line.get(name), int) and line[name] > 0:
                line[name] += self.epoch_shift
        return line
