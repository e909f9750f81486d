"""The history of a group that failed over to a mirror: what was seen on both clusters, as one history of the source.

All that is seen of members, load and faults, and what witnesses see of the source, is in one run folder; what they see
of the mirror in another. Members work on one of both clusters at a time: a leg is the group's time on one of them, the
first on the source, the next on the mirror, the third, if it fails back, on the source again. The joined history says
of the mirror's leg what it is on the source, by the map of offsets: topics, their ids, offsets of records, positions.
So it is judged as any other: a record that nobody handled on either side is lost, one that was committed there and is
handled again here was redelivered.

What a cluster counts by itself is continued in the next leg: generations and epochs of the group, places in its offsets
log. Brokers of the mirror are MIRROR_BROKERS and up. Positions that the group finds in a leg, or that somebody else has
written (MirrorMaker, or a tool, before members came, by the order of its log, or after they had left), are no commits
of that leg, and are left out: from where members began, the coordinator's answers to them say. Members of the leg
before (KIP-848) are told as gone when the group comes: whoever coordinates it now never heard of them, and where they
were they expire a session later.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Final

import orjson

from kafka_trial.history.event import SCHEMA
from kafka_trial.history.store import RunFolder, first_raw_line, raw_lines
from kafka_trial.mirror.fail_over_event import (
    MEMBER_LINES,
    Line,
    MirroredTopic,
    environment_events,
    fail_back_event,
    fail_over_event,
    move_without_evidence,
    wall_ns,
)
from kafka_trial.mirror.leg import EPOCH_FIELDS, MIRROR_BROKERS, NEVER, Leg
from kafka_trial.mirror.offset_map import ReadRecord, offset_map

MERGED: Final = ("observer", "offsets")  # sources that both clusters have, each in one file
SOURCE, MIRROR = "source", "mirror"  # both run folders; members that were started on the mirror say so
INPUT_FILES: Final = ("run.json", "scenario.json", "schedule.json", "consumer.toml", "successor-*.toml")
LOG_OFFSET_GAP: Final = 10_000  # offsets left free between two offsets logs that are joined, for tombstones of members
MEMBER_RECORD_TYPES: Final = (8, 7, 5)  # types of records of one member in the offsets log, in which tombstones end it
CLASSIC_GROUP: Final = 2  # the type of the record that has a whole group
KIP_848_KINDS: Final = ("member", "target", "member_assignment")
COMMIT_KINDS: Final = ("committed", "commit_tombstone", "commit_aborted")


def join_run_folders(folder: RunFolder) -> None:
    """Makes a run folder that can be judged of what was seen on the source and on the mirror, which are in it.

    Raises:
        OSError: the disk refuses.
    """
    source, mirror = RunFolder(folder.path / SOURCE), RunFolder(folder.path / MIRROR)
    for asked in (file for name in INPUT_FILES for file in source.path.glob(name)):
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
    for name, copy in ((name, copy) for name in ids[0] for copy in ids[1] if copy in (name, f"{SOURCE}.{name}")):
        own, mirrored = _read_records(seen[0], name), _read_records(seen[1], copy)
        sent = [_read_record(line) for line in written if line["topic"] == name]
        offsets = offset_map(own, mirrored, acknowledged=sent)
        found.append(MirroredTopic(name, copy, ids[0][name], ids[1][copy], offsets))
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
    on_mirror, back = mirror_and_return_legs(source, mirror, topics)
    for file in source.history_files():
        lines: Iterable[Line] = raw_lines(file)
        if file.stem in MERGED:
            lines = sorted(_merged(file, mirror.history / file.name, on_mirror, back), key=itemgetter("time_ns"))
        elif file.stem.startswith("consumer-"):
            leg = {MIRROR: on_mirror, SOURCE: back}.get(_cluster_of(file))
            lines = lines if leg is None else _on_source(lines, leg)
        elif file.stem.startswith("requests-b"):
            lines = (told for line in lines if (told := _in_its_leg(line, back)) is not None)
        elif file.stem == "sink":
            lines = map(on_mirror.effect_to_source, lines)
        elif file.stem == "run":
            lines = sorted((*lines, *_told_of_legs(source, mirror, on_mirror, back)), key=itemgetter("time_ns"))
        _write(place, file.stem, lines)
    for file in mirror.history.glob("requests-b*.jsonl"):
        number = int(file.stem.removeprefix("requests-b")) + MIRROR_BROKERS
        _write(place, f"requests-b{number}", _on_source(raw_lines(file), on_mirror))


def _merged(own: Path, mirrored: Path, on_mirror: Leg, back: Leg) -> Iterator[Line]:
    """Yields what a witness of each cluster wrote in a file of the same name: of all legs, and the ends of members."""
    first = list(_until_left(raw_lines(own), on_mirror.begins_ns, on_mirror.begins_wall_ns))
    second = list(_on_source(_of_the_group(raw_lines(mirrored), on_mirror), on_mirror))
    third = (line for line in _of_the_group(raw_lines(own), back) if "group" in line)  # what is of none is in the first
    yield from first
    yield from second
    yield from _on_source(third, back)
    if own.stem == "offsets":
        yield from _members_gone(first, on_mirror)
        yield from _members_gone(second, back)


def _in_its_leg(line: Line, back: Leg) -> Line | None:
    return back.to_source(line) if back.contains(line["time_ns"]) else line


def _told_of_legs(source: RunFolder, mirror: RunFolder, on_mirror: Leg, back: Leg) -> Iterator[Line]:
    if on_mirror.begins_ns == NEVER:
        return
    topics = on_mirror.topics
    there = fail_over_event(source, mirror, topics, on_mirror.begins_ns, on_mirror.log_offset_shift - 1)
    returned = back.begins_ns != NEVER
    home = fail_back_event(source, mirror, topics, back.begins_ns, back.log_offset_shift - 1) if returned else None
    yield from (event for event in (there, home) if event is not None)
    moves = ((on_mirror, there, "the mirror"), (back, home, "its first cluster again"))
    yield from (
        move_without_evidence(leg.begins_ns, to) for leg, event, to in moves if leg.begins_ns != NEVER and event is None
    )
    strays = sum(on_mirror.count_strays(raw_lines(file)) for file in _files_of(source, MIRROR))
    yield from environment_events(topics, there, on_mirror.begins_ns, strays=strays)


def mirror_and_return_legs(source: RunFolder, mirror: RunFolder, topics: Iterable[MirroredTopic]) -> tuple[Leg, Leg]:
    """Returns the leg on the mirror and the one on the source after it, by both histories; one that never was contains
    no instant."""
    log = list(raw_lines(source.history / "offsets.jsonl"))
    came_ns, came_wall_ns = _came_to(source, MIRROR)
    next_ns, next_wall_ns = (NEVER, NEVER) if came_ns == NEVER else _came_to(source, SOURCE)
    starts = [line for file in source.history.glob("consumer-*.jsonl") if (line := first_raw_line(file)) is not None]
    lanes = {line["member"]: line["lane"] for line in starts if line.get("cluster") != MIRROR}
    came = [line for line in starts if line.get("cluster") == MIRROR]
    on_mirror = Leg(
        topics=tuple(topics),
        epoch_shift=_highest_epoch(log),
        log_partition=next((line["log_partition"] for line in reversed(log) if "log_offset" in line), None),
        log_offset_shift=_last_place(log) + 1 + LOG_OFFSET_GAP,
        begins_ns=came_ns,
        source_lanes={line["lane"]: lanes[line["member"]] for line in came if line["member"] in lanes},
        begins_wall_ns=came_wall_ns,
        ends_ns=next_ns,
        ends_wall_ns=next_wall_ns,
        topic_of_id=_topic_of_id(source),
    )
    log_of_mirror = list(raw_lines(mirror.history / "offsets.jsonl"))
    back = Leg(
        is_mirror=False,
        epoch_shift=on_mirror.epoch_shift + _highest_epoch(log_of_mirror),
        log_offset_shift=on_mirror.log_offset_shift + _last_place(log_of_mirror) + 1 + LOG_OFFSET_GAP,
        begins_ns=next_ns,
        begins_wall_ns=next_wall_ns,
    )
    return on_mirror, back


def _highest_epoch(log: Iterable[Line]) -> int:
    epochs = (
        line[name] for line in log if "log_offset" in line for name in EPOCH_FIELDS if isinstance(line.get(name), int)
    )
    return max(epochs, default=0)


def _last_place(log: Iterable[Line]) -> int:
    return max((line["log_offset"] for line in log if "log_offset" in line), default=-1)


def _came_to(source: RunFolder, cluster: str) -> tuple[int, int]:
    """Returns when members came to a cluster that they were told to go to, by both clocks; NEVER: they were not."""
    starts = (line for file in _files_of(source, cluster) if (line := first_raw_line(file)) is not None)
    came_ns = min((line["time_ns"] for line in starts), default=NEVER)
    return came_ns, NEVER if came_ns == NEVER else wall_ns(source, came_ns)


def _topic_of_id(source: RunFolder) -> dict[str, str]:
    """Returns of which topic of the source each record is, by its id."""
    read = (line for line in raw_lines(source.history / "observer.jsonl") if line["kind"] == "record")
    told = (line for line in (*_acknowledged(source), *read) if line["id"] is not None)
    return {line["id"]: line["topic"] for line in told}


def _files_of(source: RunFolder, cluster: str) -> list[Path]:
    """Returns the files of those incarnations of members that were told to go to a cluster."""
    return [file for file in source.history.glob("consumer-*.jsonl") if _cluster_of(file) == cluster]


def _cluster_of(file: Path) -> str:
    """Returns to which cluster an incarnation of a member was told to go: its first line says so; empty: to none."""
    return str((first_raw_line(file) or {}).get("cluster", ""))


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
    if leg.begins_ns == NEVER:
        return
    members: dict[str, str] = {}
    for line in lines:
        if line["kind"] in KIP_848_KINDS:
            members[line["member_id"]] = line["group"]
        elif line["kind"] == "group_tombstone" and line.get("record_type") in MEMBER_RECORD_TYPES:
            members.pop(str(line.get("member_id")), "")
    log_partition = next((line["log_partition"] for line in reversed(lines) if "log_offset" in line), None)
    records = [(group, member, record) for member, group in members.items() for record in MEMBER_RECORD_TYPES]
    for place, (group, member, record) in enumerate(records, leg.log_offset_shift - LOG_OFFSET_GAP):
        told = {"schema": SCHEMA, "source": "offsets", "seq": -1, "time_ns": leg.begins_ns, "kind": "group_tombstone"}
        told |= {"group": group, "record_type": record, "member_id": member, "source_wall_ns": leg.begins_wall_ns}
        yield told | {"log_partition": log_partition, "log_offset": place}


def _of_the_group(lines: Iterable[Line], leg: Leg) -> Iterator[Line]:
    """Yields what a cluster says of the group in a leg; commits, only while it has members there: MirrorMaker writes
    positions of a group as soon as it has none; and what could not be read of its log."""
    came, present = False, set[str]()
    for line in _until_left(lines, leg.ends_ns, leg.ends_wall_ns):
        of_log, since = "log_offset" in line, line["time_ns"] >= leg.begins_ns
        since = since and line.get("source_wall_ns", NEVER) >= leg.begins_wall_ns  # it may be read late
        came = came or (line["kind"] in MEMBER_LINES and since)
        present = _members_after(line, present)
        of_others = line["kind"] in COMMIT_KINDS and not present
        of_group = "group" in line and (came if of_log else line["time_ns"] >= leg.begins_ns)
        if (of_group or line["kind"] == "undecodable") and not of_others:
            yield line


def _members_after(line: Line, members: set[str]) -> set[str]:
    """Returns the members of a group after a line of its log, by those before."""
    kind = line["kind"]
    if kind == "group":
        return {member["member_id"] for member in line["members"]}
    if kind in KIP_848_KINDS:
        return members | {line["member_id"]}
    if kind == "group_tombstone" and line.get("record_type") in MEMBER_RECORD_TYPES:
        return members - {line.get("member_id")}
    return set() if kind == "group_tombstone" and line.get("record_type") == CLASSIC_GROUP else members


def _on_source(lines: Iterable[Line], leg: Leg) -> Iterator[Line]:
    return (told for line in lines if (told := leg.to_source(line)) is not None)


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
