"""How a group came to the mirror, and back: from where it began there, and from where it had to, in offsets of the
source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka_trial.history.event import SCHEMA, Slice
from kafka_trial.history.store import RunFolder, raw_lines
from kafka_trial.mirror.offset_map import OffsetMap
from kafka_trial.mirror.offset_translation import CommittedPosition, OffsetSync, earliest_start

OFFSET_SYNCS: Final = "offset-syncs.jsonl"  # in the run folder of the mirror: what MirrorMaker translates by
FAIL_OVER, FAIL_BACK, TRANSLATED, RAW = "fail-over", "fail-back", "translated", "raw"
MEMBER_LINES: Final = ("group", "member", "group_epoch", "member_assignment")  # begin when members come to a group

Line = dict[str, Any]


@dataclass(frozen=True)
class MirroredTopic:
    """A topic, what it is called on the mirror, the ids of both, and the map of its offsets."""

    name: str
    on_mirror: str
    id: str | None
    id_on_mirror: str | None
    offsets: OffsetMap


def fail_over_event(
    source: RunFolder, mirror: RunFolder, topics: Sequence[MirroredTopic], came_ns: int, log_offset: int
) -> Line | None:
    """Returns the event `failed_over` of a trial whose group went to its mirror; None of others.

    Of each partition it says what was committed when the group left, what position it had on the mirror when it came,
    the least to which MirrorMaker may have translated it, and from where the group had to go on at least (None: nobody
    knows). Besides, how many records the mirror lacks (`missing`), has twice (`duplicates`), or has although the source
    has none such (`unexpected`).
    """
    seen = _evidence(source, FAIL_OVER)
    if seen is None:
        return None
    details = seen["details"]
    return {
        **_failed_over(seen, came_ns, log_offset),
        "missing": sum(len(topic.offsets.missing) for topic in topics),
        "duplicates": sum(topic.offsets.duplicates for topic in topics),
        "unexpected": sum(len(topic.offsets.unexpected) for topic in topics),
        "entries": list(_entries(source, mirror, topics, way=details["way"], left_ns=details["left_ns"])),
    }


def fail_back_event(
    source: RunFolder, mirror: RunFolder, topics: Sequence[MirroredTopic], came_ns: int, log_offset: int
) -> Line | None:
    """Returns the event `failed_over` of a trial whose group went back to its source; None of others.

    As above, but what was committed is of the mirror, and the least that its way explains is the position that the
    group had left on the source.
    """
    seen, went = _evidence(source, FAIL_BACK), _evidence(source, FAIL_OVER)
    if seen is None or went is None:
        return None
    instants_ns = went["details"]["left_ns"], seen["details"]["left_ns"], came_ns
    went_ms, left_ms, came_ms = (wall_ns(source, at_ns) // 1_000_000 for at_ns in instants_ns)
    here, there = _positions(source), _positions(mirror)
    entries = []
    for topic in topics:
        for partition in topic.offsets.partitions:
            place, reached = (topic.name, partition), _last(there[topic.on_mirror, partition], left_ms)
            started = _last(here[place], came_ms)
            entries.append(
                {
                    "topic": topic.name,
                    "partition": partition,
                    "committed_offset": None if reached is None else topic.offsets.position_of(partition, reached),
                    "started_offset": started,
                    "earliest_offset": _last(here[place], went_ms),
                    "least_offset": started,
                }
            )
    return _failed_over(seen, came_ns, log_offset) | {"back": True, "entries": entries}


def _evidence(source: RunFolder, fault: str) -> Line | None:
    """Returns what the journal has of a move, with its details; None where it was not made."""
    journal = raw_lines(source.history / "nemesis.jsonl")
    told = (one for one in journal if one["kind"] == "evidence" and one.get("fault") == fault)
    return next((one for one in told if one.get("details")), None)


def _failed_over(seen: Line, came_ns: int, log_offset: int) -> Line:
    about = {"schema": SCHEMA, "source": "run", "seq": -1, "time_ns": came_ns, "kind": "failed_over"}
    return about | {"way": seen["details"]["way"], "fault_no": seen["fault_no"], "log_offset": log_offset}


def _entries(
    source: RunFolder, mirror: RunFolder, topics: Sequence[MirroredTopic], *, way: str, left_ns: int
) -> Iterator[Line]:
    left_ms = wall_ns(source, left_ns) // 1_000_000
    every_s = source.read_json("scenario.json")["mirror"]["checkpoints_every_s"]
    syncs, positions, starts = _offset_syncs(mirror), _positions(source), positions_before_members(mirror)
    for topic in topics:
        for partition in topic.offsets.partitions:
            place, there = (topic.name, partition), starts.get((topic.on_mirror, partition))
            started = None if there is None else topic.offsets.position_of(partition, there)
            earliest = earliest_start(syncs[place], positions[place], left_ms=left_ms, every_s=every_s)
            yield {
                "topic": topic.name,
                "partition": partition,
                "committed_offset": _last(positions[place], left_ms),
                "started_offset": started,
                "earliest_offset": earliest,
                "least_offset": earliest if way == RAW else started,  # nobody may copy positions as they are
            }


def positions_before_members(mirror: RunFolder) -> dict[Slice, int]:
    """Returns what the offsets log of the mirror held for the group when its first members came, by its own order:
    whoever had written it."""
    found: dict[Slice, int] = {}
    for line in raw_lines(mirror.history / "offsets.jsonl"):
        if line["kind"] in MEMBER_LINES:
            break
        if line["kind"] == "committed":
            found[line["topic"], line["partition"]] = line["committed_offset"]
    return found


def environment_events(
    topics: Sequence[MirroredTopic], event: Line | None, came_ns: int, *, strays: int
) -> Iterator[Line]:
    """Yields what nobody can judge of a trial on a mirror, an event for each.

    A topic that is not on the mirror as it is on the source: what became of its records is not known. Lines of work on
    records that the mirror has not (`strays`). Positions that lagged, by `event`, because MirrorMaker was late: that is
    no doing of the group.
    """
    about = {"schema": SCHEMA, "source": "run", "seq": -1, "time_ns": came_ns, "kind": "environment"}
    if strays:
        yield about | {"message": f"members on the mirror told of {strays:,} records that are not in its topics"}
    translated = event["entries"] if event is not None and event["way"] == TRANSLATED else []
    known = [(entry["earliest_offset"], entry["started_offset"]) for entry in translated]
    late = sum(max(0, earliest - started) for earliest, started in known if None not in (earliest, started))
    if late:
        told_late = f"MirrorMaker was late: its positions were {late:,} records further back than they are in time"
        yield about | {"message": told_late}
    for topic in topics:
        offsets = topic.offsets
        found = {"lacks": len(offsets.missing), "holds twice": offsets.duplicates, "alone has": len(offsets.unexpected)}
        told = ", ".join(f"{what} {count:,} records" for what, count in found.items() if count)
        if told:
            yield about | {"message": f"the mirror of {topic.name} is not as its source: it {told}"}


def move_without_evidence(came_ns: int, to: str) -> Line:
    """Returns the event of members that came to a cluster by a step that did not get as far as to tell of it."""
    about = {"schema": SCHEMA, "source": "run", "seq": -1, "time_ns": came_ns, "kind": "environment"}
    return about | {"message": f"the group came to {to}, and nothing says from where it had to go on: the step failed"}


def wall_ns(source: RunFolder, at_ns: int) -> int:
    """Returns when an instant of the monotonic clock was by the wall clock: by the pair of clocks read next to it."""
    clocks = [
        (line["read_ns"], line["wall_ns"]) for line in raw_lines(source.history / "run.jsonl") if "read_ns" in line
    ]
    read_ns, then_ns = min(clocks, key=lambda pair: abs(pair[0] - at_ns))
    return int(then_ns + at_ns - read_ns)


def _last(positions: Sequence[CommittedPosition], until_ms: int) -> int | None:
    before = [one.offset for one in positions if one.time_ms <= until_ms]
    return before[-1] if before else None


def _offset_syncs(mirror: RunFolder) -> Mapping[Slice, list[OffsetSync]]:
    found: dict[Slice, list[OffsetSync]] = defaultdict(list)
    for line in raw_lines(mirror.path / OFFSET_SYNCS):
        found[line["topic"], line["partition"]].append(
            OffsetSync(line["time_ms"], line["upstream"], line["downstream"])
        )
    return found


def _positions(cluster: RunFolder) -> Mapping[Slice, list[CommittedPosition]]:
    """Returns the commits on a cluster, by partition, in the order of its offsets log."""
    found: dict[Slice, list[CommittedPosition]] = defaultdict(list)
    for line in raw_lines(cluster.history / "offsets.jsonl"):
        if line["kind"] == "committed":
            at_ms = line["source_wall_ns"] // 1_000_000
            found[line["topic"], line["partition"]].append(CommittedPosition(at_ms, line["committed_offset"]))
    return found
