"""How a group came to the mirror: from where it began there, and from where it had to, in offsets of the source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka_trial.history.event import SCHEMA, Slice
from kafka_trial.history.store import RunFolder, raw_lines
from kafka_trial.mirror.offset_map import OffsetMap
from kafka_trial.mirror.translation import Pair, Position, least_start

PAIRS: Final = "offset-pairs.jsonl"  # in the run folder of the mirror: what MirrorMaker translates by
FAIL_OVER, TRANSLATED = "fail-over", "translated"
OF_MEMBERS: Final = ("group", "member", "group_epoch", "member_assignment")  # begin when members come to a group

Line = dict[str, Any]


@dataclass(frozen=True)
class MirroredTopic:
    """A topic, what it is called on the mirror, the ids of both, and the map of its offsets."""

    name: str
    on_mirror: str
    id: str | None
    id_on_mirror: str | None
    offsets: OffsetMap


def failed_over(
    source: RunFolder, mirror: RunFolder, topics: Sequence[MirroredTopic], came_ns: int, log_offset: int
) -> Iterator[Line]:
    """Yields the event `failed_over` of a trial whose group went to its mirror; nothing of others.

    Of each partition it says what was committed when the group left, what position it had on the mirror when it came,
    and the least to which MirrorMaker may have translated it (None: nobody knows). Besides, how many records the mirror
    lacks (`missing`), has twice (`surplus`), or has although the source has none such (`strange`).
    """
    journal = list(raw_lines(source.history / "nemesis.jsonl"))
    seen = next((one for one in journal if one["kind"] == "evidence" and one.get("fault") == FAIL_OVER), None)
    if seen is None or not seen.get("details"):
        return
    details = seen["details"]
    yield {
        "schema": SCHEMA,
        "source": "run",
        "seq": -1,
        "time_ns": came_ns,
        "kind": "failed_over",
        "way": details["way"],
        "fault_no": seen["fault_no"],
        "log_offset": log_offset,
        "missing": sum(len(topic.offsets.missing) for topic in topics),
        "surplus": sum(topic.offsets.surplus for topic in topics),
        "strange": sum(len(topic.offsets.strange) for topic in topics),
        "entries": list(_entries(source, mirror, topics, left_ns=details["left_ns"])),
    }


def _entries(source: RunFolder, mirror: RunFolder, topics: Sequence[MirroredTopic], *, left_ns: int) -> Iterator[Line]:
    left_ms = wall_ns(source, left_ns) // 1_000_000
    every_s = source.read_json("scenario.json")["mirror"]["checkpoints_every_s"]
    pairs, positions, begun = _pairs(mirror), _positions(source), positions_before_members(mirror)
    for topic in topics:
        for partition in topic.offsets.partitions:
            place, there = (topic.name, partition), begun.get((topic.on_mirror, partition))
            yield {
                "topic": topic.name,
                "partition": partition,
                "committed_offset": _last(positions[place], left_ms),
                "begun_offset": None if there is None else topic.offsets.position_of(partition, there),
                "bound_offset": least_start(pairs[place], positions[place], left_ms=left_ms, every_s=every_s),
            }


def positions_before_members(mirror: RunFolder) -> dict[Slice, int]:
    """Returns what the offsets log of the mirror held for the group when its first members came, by its own order:
    whoever had written it."""
    found: dict[Slice, int] = {}
    for line in raw_lines(mirror.history / "offsets.jsonl"):
        if line["kind"] in OF_MEMBERS:
            break
        if line["kind"] == "committed":
            found[line["topic"], line["partition"]] = line["committed_offset"]
    return found


def mirror_problems(
    topics: Sequence[MirroredTopic], came: Sequence[Line], came_ns: int, *, strayed: int
) -> Iterator[Line]:
    """Yields an event for each topic that is not on the mirror as it is on the source: what became of the records that
    it concerns is not known; one where lines of work are `strayed`; and one where MirrorMaker had translated positions
    further back than it does in time, which is no doing of the group."""
    about = {"schema": SCHEMA, "source": "run", "seq": -1, "time_ns": came_ns, "kind": "environment"}
    if strayed:
        yield about | {"message": f"members on the mirror told of {strayed:,} records that are not in its topics"}
    late = [
        entry["bound_offset"] - entry["begun_offset"]
        for told in came
        for entry in told["entries"]
        if told["way"] == TRANSLATED and None not in (entry["begun_offset"], entry["bound_offset"])
    ]
    if any(records > 0 for records in late):
        records = sum(max(0, one) for one in late)
        told_late = f"MirrorMaker was late: its positions were {records:,} records further back than they are in time"
        yield about | {"message": told_late}
    for topic in topics:
        offsets = topic.offsets
        found = {"lacks": len(offsets.missing), "holds twice": offsets.surplus, "alone has": len(offsets.strange)}
        told = ", ".join(f"{what} {count:,} records" for what, count in found.items() if count)
        if told:
            yield about | {"message": f"the mirror of {topic.name} is not as its source: it {told}"}


def wall_ns(source: RunFolder, at_ns: int) -> int:
    """Returns when an instant of the monotonic clock was by the wall clock: by the pair of clocks read next to it."""
    clocks = [
        (line["read_ns"], line["wall_ns"]) for line in raw_lines(source.history / "run.jsonl") if "read_ns" in line
    ]
    read_ns, then_ns = min(clocks, key=lambda pair: abs(pair[0] - at_ns))
    return int(then_ns + at_ns - read_ns)


def _last(positions: Sequence[Position], until_ms: int) -> int | None:
    before = [one.offset for one in positions if one.time_ms <= until_ms]
    return before[-1] if before else None


def _pairs(mirror: RunFolder) -> Mapping[Slice, list[Pair]]:
    found: dict[Slice, list[Pair]] = defaultdict(list)
    for line in raw_lines(mirror.path / PAIRS):
        found[line["topic"], line["partition"]].append(Pair(line["time_ms"], line["upstream"], line["downstream"]))
    return found


def _positions(source: RunFolder) -> Mapping[Slice, list[Position]]:
    """Returns the commits on the source, by partition, in the order of the offsets log."""
    found: dict[Slice, list[Position]] = defaultdict(list)
    for line in raw_lines(source.history / "offsets.jsonl"):
        if line["kind"] == "committed":
            at_ms = line["source_wall_ns"] // 1_000_000
            found[line["topic"], line["partition"]].append(Position(at_ms, line["committed_offset"]))
    return found
