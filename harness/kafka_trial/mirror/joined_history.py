"""The history of a group that failed over to a mirror: what was seen on both clusters, as one history of the source.

All that is seen of members, load and faults, and what witnesses see of the source, is in one run folder; what they see
of the mirror in another. Members work on one of both clusters at a time: a leg is the group's time on one of them, the
first on the source, the next on the mirror, the third, if it fails back, on the source again. The joined history says
of the mirror's leg what it is on the source, by the map of offsets: topics, their ids, offsets of records, positions.
So it is judged as any other: a record that nobody handled on either side is lost, one that was committed there and is
handled again here was redelivered.

What a cluster counts by itself is continued in the next leg: generations and epochs of the group, places in its offsets
log. Brokers of the mirror are FIRST_BROKER and up. Positions that the group finds in a leg, or that somebody else has
written (MirrorMaker, or a tool, before members came, by the order of its log, or after they had left), are no commits
of that leg, and are left out: from where members began, the coordinator's answers to them say. Members of the leg
before (KIP-848) are told as gone when the group comes: whoever coordinates it now never heard of them, and where they
were they expire a session later.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Final

import orjson

from kafka_trial.history.event import SCHEMA
from kafka_trial.history.store import RunFolder, raw_lines
from kafka_trial.mirror.fail_over_event import (
    MEMBER_LINES,
    Line,
    MirroredTopic,
    environment_events,
    fail_back_event,
    fail_over_event,
    wall_ns,
)
from kafka_trial.mirror.offset_map import ReadRecord, offset_map

FIRST_BROKER: Final = 100
MERGED: Final = ("observer", "offsets")  # sources that both clusters have, each in one file
SOURCE, MIRROR = "source", "mirror"  # both run folders; members that were started on the mirror say so
ASKED: Final = ("run.json", "scenario.json", "schedule.json", "consumer.toml", "successor-*.toml")
ROOM: Final = 10_000  # places between both offsets logs, for the tombstones of the source's members
MEMBER_RECORD_TYPES: Final = (8, 7, 5)  # types of records of one member in the offsets log, in which tombstones end it
CLASSIC_GROUP: Final = 2  # the type of the record that has a whole group
MEMBERS_OF_KIP_848: Final = ("member", "target", "member_assignment")
EPOCHS: Final = ("epoch", "answered_epoch", "previous_epoch", "assignment_epoch")
LISTS: Final = ("entries", "assigned", "pending")
COMMITS: Final = ("committed", "commit_tombstone", "commit_aborted")
POSITIONS_IN: Final = ("FETCH", "LIST_OFFSETS")  # requests whose `offset` is a position, not a record's place

OF_WORK: Final = ("delivered", "processed")
NEVER: Final = 2**63 - 1


@dataclass(frozen=True)
class Leg:
    """What a leg after the first continues. Where it is on the mirror: what its `topics` are on the source.

    `epoch`, `log_offset`: the highest of the group, and the last place in the offsets log, of the leg before. When
    members came, and when they came to the next leg (`next_ns`): `…_wall_ns` by the wall clock, the others by the
    monotonic one. `lanes`: which lane of a member on the source its lane on the mirror is; `homes`:
    of which topic of the source each id is.
    """

    on_mirror: bool = True
    topics: tuple[MirroredTopic, ...] = ()
    epoch: int = 0
    log_partition: int | None = None
    log_offset: int = -1
    came_ns: int = NEVER
    lanes: Mapping[int, int] = field(default_factory=dict)
    came_wall_ns: int = NEVER
    next_ns: int = NEVER
    next_wall_ns: int = NEVER
    homes: Mapping[str, str] = field(default_factory=dict)

    def has(self, at_ns: int) -> bool:
        """Whether an instant is in this leg."""
        return self.came_ns <= at_ns < self.next_ns

    @cached_property
    def _by_name(self) -> Mapping[str, MirroredTopic]:
        return {one.on_mirror: one for one in self.topics}

    @cached_property
    def _by_id(self) -> Mapping[str, MirroredTopic]:
        return {one.id_on_mirror: one for one in self.topics if one.id_on_mirror}

    def strays(self, lines: Iterable[Line]) -> int:
        """Returns how many of a member's lines of work on the mirror are of no record that it has."""
        work = (line for line in lines if line["kind"] in OF_WORK)
        return sum(self._with_place(line, "") is None for line in work)

    def effect(self, line: Line) -> Line:
        """Returns an effect of a member on the mirror; one that names a place there, by its record's id, names that on
        the source. Where the record at that place is of no topic here, nothing is known of its place."""
        if not self.has(line["time_ns"]) or line.get("partition") is None or line.get("offset") is None:
            return line
        home = self.homes.get(str(line.get("id")))
        topic = next((one for one in self.topics if one.name == home), None)
        offset = None if topic is None else topic.offsets.offset_of(line["partition"], line["offset"])
        told = {name: value for name, value in line.items() if name not in ("topic", "partition", "offset")}
        if topic is None or offset is None:
            return told
        return told | {"topic": topic.name, "partition": line["partition"], "offset": offset}

    def on_source(self, line: Line) -> Line | None:
        """Returns a line of this leg as one of the whole history, which is the source's; None: it has no meaning
        there."""
        api = str(line.get("api", ""))
        told = self._with_place(line, api)
        if told is None and line["kind"] == "bad_line":
            told = {name: value for name, value in line.items() if name not in ("topic", "partition", "offset")}
        if told is None:
            return None
        for name in LISTS:
            if name in told:
                entries = (self._with_place(entry, api) for entry in told[name])
                told[name] = [self._with_epochs(entry) for entry in entries if entry is not None]
        told = self._with_epochs(told)
        if "log_offset" in told:
            told["log_offset"] += self.log_offset + 1
            told["log_partition"] = told["log_partition"] if self.log_partition is None else self.log_partition
        if told.get("lane") in self.lanes:
            told["lane"] = self.lanes[told["lane"]]
        return self._with_brokers(told) if self.on_mirror else told

    @staticmethod
    def _with_brokers(told: Line) -> Line:
        if told["kind"] == "coordinator" and told.get("leader", -1) >= 0:
            told["leader"] += FIRST_BROKER
        if told.get("api") == "FIND_COORDINATOR" and told.get("coordinator", -1) >= 0:
            told["coordinator"] += FIRST_BROKER
        if "started_with" in told:
            told["started_with"] = [broker + FIRST_BROKER for broker in told["started_with"]]
        return told

    def _with_place(self, line: Line, api: str) -> Line | None:
        """Returns a line, or an entry in one, with its place on the source; None: of a topic or record that is not
        there."""
        name, id_ = line.get("topic"), line.get("topic_id")
        if not self.on_mirror or (name is None and id_ is None):
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
        for name in EPOCHS:
            if isinstance(line.get(name), int) and line[name] > 0:
                line[name] += self.epoch
        return line


def join_run_folders(folder: RunFolder) -> None:
    """Makes a run folder that can be judged of what was seen on the source and on the mirror, which are in it.

    Raises:
        OSError: the disk refuses.
    """
    source, mirror = RunFolder(folder.path / SOURCE), RunFolder(folder.path / MIRROR)
    for asked in (file for name in ASKED for file in source.path.glob(name)):
        shutil.copy(asked, folder.path / asked.name)
    for kept in (source.payload, source.consumer):
        if kept.exists():
            shutil.copytree(kept, folder.path / kept.name)
    join_histories(source, mirror, folder, mirrored_topics(source, mirror))


def mirrored_topics(source: RunFolder, mirror: RunFolder) -> list[MirroredTopic]:
    """Returns the topics that both sides have, in the order in which the observers named them, and their maps."""
    seen = [list(raw_lines(folder.history / "observer.jsonl")) for folder in (source, mirror)]
    written = list(_acknowledged(source))
    ids = [{line["topic"]: line.get("topic_id") for line in lines if line["kind"] == "topic"} for lines in seen]
    found = []
    for name, there in ((name, there) for name in ids[0] for there in ids[1] if there in (name, f"{SOURCE}.{name}")):
        own, mirrored = _read_records(seen[0], name), _read_records(seen[1], there)
        sent = [_read_record(line) for line in written if line["topic"] == name]
        offsets = offset_map(own, mirrored, acknowledged=sent)
        found.append(MirroredTopic(name, there, ids[0][name], ids[1][there], offsets))
    return found


def _read_records(lines: Iterable[Line], topic: str) -> list[ReadRecord]:
    read = (line for line in lines if line["kind"] == "record" and line["topic"] == topic)
    return [_read_record(line) for line in read if line["id"] is not None]


def _read_record(line: Line) -> ReadRecord:
    return ReadRecord(line["partition"], line["offset"], line["id"])


def _acknowledged(source: RunFolder) -> Iterator[Line]:
    """Yields where the source has acknowledged a record: its topic, partition, offset and id."""
    for line in raw_lines(source.history / "workload.jsonl"):
        if line.get("outcome") == "ok" and line.get("offset") is not None and line.get("id") is not None:
            yield line


def join_histories(source: RunFolder, mirror: RunFolder, place: RunFolder, topics: Iterable[MirroredTopic]) -> None:
    """Writes what is in both run folders as one history of the source, into an empty run folder.

    Raises:
        OSError: the disk refuses.
    """
    there, again = legs_after_the_first(source, mirror, topics)
    for file in source.history_files():
        lines: Iterable[Line] = raw_lines(file)
        if file.stem in MERGED:
            lines = sorted(_merged(file, mirror.history / file.name, there, again), key=itemgetter("time_ns"))
        elif file.stem.startswith("consumer-"):
            leg = {MIRROR: there, SOURCE: again}.get(_cluster_of(file))
            lines = lines if leg is None else _on_source(lines, leg)
        elif file.stem.startswith("requests-b"):
            lines = (told for line in lines if (told := _in_its_leg(line, again)) is not None)
        elif file.stem == "sink":
            lines = map(there.effect, lines)
        elif file.stem == "run":
            lines = sorted((*lines, *_told_of_legs(source, mirror, there, again)), key=itemgetter("time_ns"))
        _write(place, file.stem, lines)
    for file in mirror.history.glob("requests-b*.jsonl"):
        number = int(file.stem.removeprefix("requests-b")) + FIRST_BROKER
        _write(place, f"requests-b{number}", _on_source(raw_lines(file), there))


def _merged(own: Path, mirrored: Path, there: Leg, again: Leg) -> Iterator[Line]:
    """Yields what a witness of each cluster wrote in a file of the same name: of all legs, and the ends of members."""
    first = list(_until_left(raw_lines(own), there.came_ns, there.came_wall_ns))
    on_mirror = list(_on_source(_of_the_group(raw_lines(mirrored), there), there))
    back = (line for line in _of_the_group(raw_lines(own), again) if "group" in line)  # what is of none is in the first
    yield from first
    yield from on_mirror
    yield from _on_source(back, again)
    if own.stem == "offsets":
        yield from _members_gone(first, there)
        yield from _members_gone(on_mirror, again)


def _in_its_leg(line: Line, again: Leg) -> Line | None:
    return again.on_source(line) if again.has(line["time_ns"]) else line


def _told_of_legs(source: RunFolder, mirror: RunFolder, there: Leg, again: Leg) -> Iterator[Line]:
    if there.came_ns == NEVER:
        return
    event = fail_over_event(source, mirror, there.topics, there.came_ns, there.log_offset)
    if event is not None:
        yield event
    back = (
        None
        if again.came_ns == NEVER
        else fail_back_event(source, mirror, there.topics, again.came_ns, again.log_offset)
    )
    if back is not None:
        yield back
    strays = sum(there.strays(raw_lines(file)) for file in _files_of(source, MIRROR))
    yield from environment_events(there.topics, event, there.came_ns, strays=strays)


def legs_after_the_first(source: RunFolder, mirror: RunFolder, topics: Iterable[MirroredTopic]) -> tuple[Leg, Leg]:
    """Returns what the leg on the mirror continues, and the one on the source after it, by both histories."""
    log = list(raw_lines(source.history / "offsets.jsonl"))
    came_ns, came_wall_ns = _came_to(source, MIRROR)
    next_ns, next_wall_ns = (NEVER, NEVER) if came_ns == NEVER else _came_to(source, SOURCE)
    starts = [(line.get("cluster"), line) for file in source.history.glob("consumer-*.jsonl") for line in _first(file)]
    lanes = {line["member"]: line["lane"] for cluster, line in starts if cluster != MIRROR}
    came = [line for cluster, line in starts if cluster == MIRROR]
    there = Leg(
        topics=tuple(topics),
        epoch=_highest_epoch(log),
        log_partition=next((line["log_partition"] for line in reversed(log) if "log_offset" in line), None),
        log_offset=_last_place(log) + ROOM,
        came_ns=came_ns,
        lanes={line["lane"]: lanes[line["member"]] for line in came if line["member"] in lanes},
        came_wall_ns=came_wall_ns,
        next_ns=next_ns,
        next_wall_ns=next_wall_ns,
        homes=_homes(source),
    )
    on_mirror = list(raw_lines(mirror.history / "offsets.jsonl"))
    again = Leg(
        on_mirror=False,
        epoch=there.epoch + _highest_epoch(on_mirror),
        log_offset=there.log_offset + 1 + _last_place(on_mirror) + ROOM,
        came_ns=next_ns,
        came_wall_ns=next_wall_ns,
    )
    return there, again


def _highest_epoch(log: Iterable[Line]) -> int:
    epochs = (line[name] for line in log if "log_offset" in line for name in EPOCHS if isinstance(line.get(name), int))
    return max(epochs, default=0)


def _last_place(log: Iterable[Line]) -> int:
    return max((line["log_offset"] for line in log if "log_offset" in line), default=-1)


def _came_to(source: RunFolder, cluster: str) -> tuple[int, int]:
    """Returns when members came to a cluster that they were told to go to, by both clocks; NEVER: they were not."""
    starts = (line["time_ns"] for file in _files_of(source, cluster) for line in _first(file))
    came_ns = min(starts, default=NEVER)
    return came_ns, NEVER if came_ns == NEVER else wall_ns(source, came_ns)


def _homes(source: RunFolder) -> dict[str, str]:
    """Returns of which topic of the source each record is, by its id."""
    read = (line for line in raw_lines(source.history / "observer.jsonl") if line["kind"] == "record")
    told = (line for line in (*_acknowledged(source), *read) if line["id"] is not None)
    return {line["id"]: line["topic"] for line in told}


def _files_of(source: RunFolder, cluster: str) -> list[Path]:
    """Returns the files of those incarnations of members that were told to go to a cluster."""
    return [file for file in source.history.glob("consumer-*.jsonl") if _cluster_of(file) == cluster]


def _cluster_of(file: Path) -> str:
    """Returns to which cluster an incarnation of a member was told to go: its first line says so; empty: to none."""
    return next((str(line.get("cluster", "")) for line in _first(file)), "")


def _first(file: Path) -> list[Line]:
    return list(islice(raw_lines(file), 1))


def _until_left(lines: Iterable[Line], left_ns: int, left_wall_ns: int) -> Iterator[Line]:
    """Yields the lines of a cluster; what it says of the group is of no interest since that has left it. A line may be
    read after members came elsewhere, and have been written before."""
    for line in lines:
        before = line.get("source_wall_ns", left_wall_ns + 1) <= left_wall_ns
        if "group" not in line or line["time_ns"] < left_ns or before:
            yield line


def _members_gone(lines: Sequence[Line], leg: Leg) -> Iterator[Line]:
    """Yields the tombstones of the members that the log of the leg before still has when the group comes to a leg;
    `lines` are of the whole history."""
    if leg.came_ns == NEVER:
        return
    members: dict[str, str] = {}
    for line in lines:
        if line["kind"] in MEMBERS_OF_KIP_848:
            members[line["member_id"]] = line["group"]
        elif line["kind"] == "group_tombstone" and line.get("record_type") in MEMBER_RECORD_TYPES:
            members.pop(str(line.get("member_id")), "")
    log_partition = next((line["log_partition"] for line in reversed(lines) if "log_offset" in line), None)
    records = [(group, member, record) for member, group in members.items() for record in MEMBER_RECORD_TYPES]
    for place, (group, member, record) in enumerate(records, leg.log_offset + 1 - ROOM):
        told = {"schema": SCHEMA, "source": "offsets", "seq": -1, "time_ns": leg.came_ns, "kind": "group_tombstone"}
        told |= {"group": group, "record_type": record, "member_id": member, "source_wall_ns": leg.came_wall_ns}
        yield told | {"log_partition": log_partition, "log_offset": place}


def _of_the_group(lines: Iterable[Line], leg: Leg) -> Iterator[Line]:
    """Yields what a cluster says of the group in a leg; commits, only while it has members there: MirrorMaker writes
    positions of a group as soon as it has none; and what could not be read of its log."""
    came, present = False, set[str]()
    for line in _until_left(lines, leg.next_ns, leg.next_wall_ns):
        of_log, since = "log_offset" in line, line["time_ns"] >= leg.came_ns
        since = since and line.get("source_wall_ns", NEVER) >= leg.came_wall_ns  # it may be read late
        came = came or (line["kind"] in MEMBER_LINES and since)
        present = _members_after(line, present)
        of_others = line["kind"] in COMMITS and not present
        of_group = "group" in line and (came if of_log else line["time_ns"] >= leg.came_ns)
        if (of_group or line["kind"] == "undecodable") and not of_others:
            yield line


def _members_after(line: Line, members: set[str]) -> set[str]:
    """Returns the members of a group after a line of its log, by those before."""
    kind = line["kind"]
    if kind == "group":
        return {member["member_id"] for member in line["members"]}
    if kind in MEMBERS_OF_KIP_848:
        return members | {line["member_id"]}
    if kind == "group_tombstone" and line.get("record_type") in MEMBER_RECORD_TYPES:
        return members - {line.get("member_id")}
    return set() if kind == "group_tombstone" and line.get("record_type") == CLASSIC_GROUP else members


def _on_source(lines: Iterable[Line], leg: Leg) -> Iterator[Line]:
    return (told for line in lines if (told := leg.on_source(line)) is not None)


def _write(place: RunFolder, source: str, lines: Iterable[Line]) -> None:
    """Writes a file of the history, its lines numbered anew; a completion goes on naming its invoke."""
    numbers: dict[int, int] = {}
    with (place.history / f"{source}.jsonl").open("xb") as file:
        for seq, line in enumerate(lines):
            numbers[line["seq"]] = seq
            told = line | {"source": source, "seq": seq}
            if isinstance(told.get("op"), int):
                told["op"] = numbers.get(told["op"], told["op"])
            file.write(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE))
