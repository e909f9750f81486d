"""One history of what was seen on both clusters: in offsets of the source, and of the group alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.history.store import RunFolder, create_run_folder, raw_lines
from kafka_trial.mirror.joined_history import LOG_OFFSET_GAP, join_run_folders
from kafka_trial.mirror.leg import MIRROR_BROKERS

Line = dict[str, Any]
SECOND_NS = 1_000_000_000
THERE = {"topic": "source.t", "partition": 0}  # the topic on the mirror, whose records are 100 further
HERE = {"topic": "t", "partition": 0}


def _write(folder: RunFolder, source: str, lines: Sequence[Line]) -> None:
    numbered = (
        {"schema": 1, "source": source, "seq": seq, "time_ns": SECOND_NS * line.pop("at"), **line}
        for seq, line in enumerate(lines)
    )
    (folder.history / f"{source}.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in numbered))


def _read(place: Line, ids: str, *, first: int) -> list[Line]:
    """What a control read finds: a record for each letter, after the topic was seen."""
    topic = {"at": 0, "kind": "topic", "topic": place["topic"], "topic_id": f"id of {place['topic']}", "partitions": 1}
    records = ({"at": 90, "kind": "record", **place, "offset": at, "id": id_} for at, id_ in enumerate(ids, first))
    return [topic, *records]


def _commit(at: int, position: int, log_offset: int, place: Line) -> Line:
    told = {"group": "g", **place, "committed_offset": position, "log_partition": 3, "log_offset": log_offset}
    return {"at": at, "kind": "committed", **told, "source_wall_ns": SECOND_NS * at}


def _failed_over(way: str) -> Line:
    details = {"way": way, "left_ns": 19 * SECOND_NS, "starts": {"source.t": {"0": 102}}}
    return {"at": 25, "kind": "evidence", "fault": "fail-over", "fault_no": 0, "bit": True, "details": details}


@pytest.fixture
def both(tmp_path: Path) -> RunFolder:
    """m0 does records 0 to 2 of five on the source; on the mirror it begins at the third again, and does all."""
    whole = create_run_folder(tmp_path / "run", "s", "c")
    source, mirror = (create_run_folder(whole.path / name, "s", "c") for name in ("source", "mirror"))
    source.write_json("run.json", {"schema": 1})
    source.write_json("scenario.json", {"schema": 1, "mirror": {"checkpoints_every_s": 1}})
    clock = {"at": 1, "kind": "clock", "read_ns": SECOND_NS, "wall_ns": SECOND_NS}
    _write(source, "run", [clock, {"at": 2, "kind": "topic_named", "topic": "t"}, {"at": 99, "kind": "end"}])
    _write(source, "nemesis", [_failed_over("translated")])
    state = {"group": "g", "state": "Stable", "members": []}
    _write(source, "observer", [*_read(HERE, "abcde", first=0), {"at": 91, "kind": "group_state", **state}])
    _write(source, "offsets", [_commit(10, 2, 7, HERE), _commit(18, 3, 8, HERE), _commit(70, 1, 9, HERE)])
    first = {"member": "m0", "incarnation": 0}
    own = [
        {"at": 3, "kind": "started", "lane": 4, **first},
        {"at": 9, "kind": "delivered", **HERE, "offset": 0, **first},
    ]
    _write(source, "consumer-m0-0", own)
    again = {"member": "m0", "incarnation": 1}
    position = [{**THERE, "committed_offset": 105}]
    moved = [
        {"at": 20, "kind": "started", "lane": 0, "cluster": "mirror", "started_with": [0], **again},
        {"at": 21, "kind": "assigned", "entries": [THERE], **again},
        {"at": 22, "kind": "delivered", **THERE, "offset": 102, **again},
        {"at": 23, "kind": "commit", "outcome": "invoke", "entries": position, **again},
        {"at": 24, "kind": "commit", "outcome": "ok", "op": 3, "entries": position, **again},
        {"at": 80, "kind": "exited", "code": 0, **again},
    ]
    _write(source, "consumer-m0-1", moved)
    controller = {"at": 1, "kind": "controller", "leader": 0, "epoch": 1}
    coordinator = {"at": 21, "kind": "coordinator", "group": "g", "leader": 0}
    _write(mirror, "observer", [controller, coordinator, *_read(THERE, "abcde", first=100)])
    synced, late = _commit(15, 102, 0, THERE), _commit(80, 101, 4, THERE)
    told = {"kind": "group", "group": "g", "epoch": 1, "log_partition": 1}
    group = {"at": 21, **told, "members": [{"member_id": "id"}], "log_offset": 1}
    empty = {"at": 80, **told, "members": [], "log_offset": 3}
    _write(mirror, "offsets", [synced, group, _commit(24, 105, 2, THERE), empty, late])
    fetch = [{"topic_id": "id of source.t", "partition": 0, "offset": 102}]
    asked = {"at": 22, "kind": "request", "api": "FETCH", "lane": 0, "entries": fetch, "line": 1}
    of_mirror_maker = {"at": 23, "kind": "request", "api": "METADATA", "entries": [{"topic": "mm2-status"}], "line": 2}
    _write(mirror, "requests-b0", [asked, of_mirror_maker])
    return whole


def _joined(both: RunFolder, source: str) -> list[Line]:
    join_run_folders(both)
    return list(raw_lines(both.history / f"{source}.jsonl"))


def test_a_member_on_the_mirror_works_on_the_source(both: RunFolder) -> None:
    """Its topic, its offsets and its positions; in the lane that it had, at brokers that the source has not."""
    started, assigned, delivered, invoked, done, _ = _joined(both, "consumer-m0-1")
    assert (started["lane"], started["started_with"]) == (4, [MIRROR_BROKERS])
    assert assigned["entries"] == [HERE]
    assert (delivered["topic"], delivered["offset"]) == ("t", 2)
    assert invoked["entries"] == [{**HERE, "committed_offset": 5}]
    assert done["op"] == invoked["seq"]


def test_the_offsets_log_goes_on_where_that_of_the_source_ended(both: RunFolder) -> None:
    """Without what MirrorMaker wrote before the group came and after it had left, and without what the source's
    coordinator wrote then."""
    lines = _joined(both, "offsets")
    commits = [line for line in lines if line["kind"] == "committed"]
    assert [(line["topic"], line["committed_offset"], line["log_offset"]) for line in commits] == [
        ("t", 2, 7),
        ("t", 3, 8),
        ("t", 5, 9 + LOG_OFFSET_GAP + 3),
    ]
    assert {line["log_partition"] for line in lines} == {3}
    assert [line["seq"] for line in lines] == list(range(5))


def test_members_of_the_source_are_gone_when_the_group_comes_to_the_mirror(both: RunFolder) -> None:
    """Its coordinator finds that out a session later, and nobody asks it; one that had left is not told again."""
    file = both.path / "source" / "history" / "offsets.jsonl"
    held = {"schema": 1, "source": "offsets", "seq": 3, "time_ns": 9 * SECOND_NS, "kind": "member_assignment"}
    held |= {"group": "g", "epoch": 1, "log_partition": 3, "log_offset": 5, "entries": []}
    left = {**held, "kind": "group_tombstone", "record_type": 8, "member_id": "left", "log_offset": 6}
    lines = [held | {"member_id": "left"}, left, held | {"member_id": "stays"}]
    file.write_bytes(file.read_bytes() + b"".join(orjson.dumps(line) + b"\n" for line in lines))
    gone = [line for line in _joined(both, "offsets") if line["kind"] == "group_tombstone"]
    told = [(line["member_id"], line["record_type"], line["log_offset"], line["time_ns"]) for line in gone[1:]]
    assert told == [("stays", record, 10 + place, 20 * SECOND_NS) for place, record in enumerate((8, 7, 5))]
    assert gone[1]["source_wall_ns"] == 20 * SECOND_NS


def test_who_coordinates_is_a_broker_of_the_mirror(both: RunFolder) -> None:
    """What the source says of the group counts no more; the records are those of the source."""
    lines = _joined(both, "observer")
    assert [line["leader"] for line in lines if line["kind"] == "coordinator"] == [MIRROR_BROKERS]
    assert not [line for line in lines if line["kind"] in ("group_state", "controller")]
    assert [line["offset"] for line in lines if line["kind"] == "record"] == [0, 1, 2, 3, 4]


def test_requests_to_the_mirror_are_those_of_a_further_broker(both: RunFolder) -> None:
    """In the lane of their member, from positions of the source; what is of no topic of the trial names none."""
    fetch, other = _joined(both, f"requests-b{MIRROR_BROKERS}")
    assert (fetch["lane"], fetch["entries"]) == (4, [{"topic_id": "id of t", "partition": 0, "offset": 2}])
    assert other["entries"] == []


@pytest.mark.parametrize(("way", "least"), [("translated", 2), ("by-timestamp", 2), ("raw", None)])
def test_how_the_group_came_is_told(both: RunFolder, way: str, least: int | None) -> None:
    """By what the offsets logs of both clusters say; where positions were copied, from where a translation would have
    led, which nobody knows here."""
    _write(RunFolder(both.path / "source"), "nemesis", [_failed_over(way)])
    (told,) = (line for line in _joined(both, "run") if line["kind"] == "failed_over")
    start = {"committed_offset": 3, "started_offset": 2, "earliest_offset": None, "least_offset": least}
    assert told["entries"] == [{**HERE, **start}]
    assert (told["way"], told["log_offset"], told["time_ns"]) == (way, 9 + LOG_OFFSET_GAP, 20 * SECOND_NS)


def test_a_mirror_that_lacks_a_record_is_no_ground_for_a_verdict(both: RunFolder) -> None:
    """Nor is one that has a record twice, or a stranger's: each by name."""
    lines = [
        dict(line, at=line["time_ns"] // SECOND_NS) for line in raw_lines(both.path / "mirror/history/observer.jsonl")
    ]
    records = [line for line in lines if line["kind"] == "record"]
    records[1]["id"], records[3]["id"] = "stranger", "c"
    _write(RunFolder(both.path / "mirror"), "observer", lines)
    messages = [line["message"] for line in _joined(both, "run") if line["kind"] == "environment"]
    assert messages == [
        "the mirror of t is not as its source: it lacks 2 records, holds twice 1 records, alone has 1 records"
    ]


def _append(folder: Path, source: str, *lines: Line) -> None:
    """Adds lines to a file of a history, numbered on."""
    file = folder / "history" / f"{source}.jsonl"
    seq = len(list(raw_lines(file)))
    numbered = ({"schema": 1, "source": source, "seq": seq + number, **line} for number, line in enumerate(lines))
    file.write_bytes(file.read_bytes() + b"".join(orjson.dumps(line) + b"\n" for line in numbered))


def test_a_commit_that_is_read_late_is_of_the_source_all_the_same(both: RunFolder) -> None:
    """Written before the members came, by the brokers' clock, and read after it."""
    late = _commit(21, 4, 10, HERE) | {"source_wall_ns": 19 * SECOND_NS, "time_ns": 21 * SECOND_NS}
    del late["at"]
    _append(both.path / "source", "offsets", late)
    commits = [line["committed_offset"] for line in _joined(both, "offsets") if line["kind"] == "committed"]
    assert commits == [2, 3, 4, 5]


def test_an_effect_names_the_place_of_its_record_on_the_source(both: RunFolder) -> None:
    """By the topic that its id is of; without one that the mirror has there, it names none."""
    (both.path / "source" / "history" / "sink.jsonl").write_bytes(b"")
    told = {"kind": "effect", "partition": 0, "outcome": "ok"}
    lines = [
        told | {"id": "a", "offset": 0, "time_ns": 9 * SECOND_NS},
        told | {"id": "c", "offset": 102, "time_ns": 22 * SECOND_NS},
        told | {"id": "c", "offset": 103, "time_ns": 23 * SECOND_NS},
        told | {"id": "c", "offset": 999, "time_ns": 24 * SECOND_NS},
        told | {"id": "stranger", "offset": 102, "time_ns": 25 * SECOND_NS},
    ]
    _append(both.path / "source", "sink", *lines)
    assert [line.get("offset") for line in _joined(both, "sink")] == [0, 2, 3, None, None]


def test_a_member_that_was_gone_and_came_back_is_told_as_gone(both: RunFolder) -> None:
    """A client keeps its id when it joins again."""
    told = {"group": "g", "member_id": "again", "log_partition": 3, "time_ns": 9 * SECOND_NS}
    held = told | {"kind": "member_assignment", "epoch": 1, "entries": []}
    left = told | {"kind": "group_tombstone", "record_type": 8}
    _append(both.path / "source", "offsets", *(line | {"log_offset": 8} for line in (held, left, held)))
    gone = [line for line in _joined(both, "offsets") if line["kind"] == "group_tombstone" and line["log_offset"] > 8]
    assert {line["member_id"] for line in gone} == {"again"}


def test_work_on_a_record_that_is_not_there_is_no_work_and_told(both: RunFolder) -> None:
    """The trial is unknown for it; a line that could not be read stays, without its place."""
    stray = {"time_ns": 26 * SECOND_NS, "member": "m0", "incarnation": 1, **THERE, "offset": 7777}
    _append(both.path / "source", "consumer-m0-1", stray | {"kind": "processed"}, stray | {"kind": "bad_line"})
    (bad,) = (line for line in _joined(both, "consumer-m0-1") if line["kind"] == "bad_line")
    assert "offset" not in bad
    told = [line["message"] for line in raw_lines(both.history / "run.jsonl") if line["kind"] == "environment"]
    assert told == ["members on the mirror told of 1 records that are not in its topics"]


def test_a_record_that_the_source_has_no_longer_is_not_alone_on_the_mirror(both: RunFolder) -> None:
    """It was acknowledged there; members on the mirror do it in its place."""
    source = RunFolder(both.path / "source")
    sent = {"kind": "send", "topic": "t", "id": "c"}
    _write(
        source,
        "workload",
        [{"at": 5, "outcome": "invoke", **sent}, {"at": 5, "outcome": "ok", "op": 0, **HERE, "offset": 2, **sent}],
    )
    _write(source, "observer", [line for line in _read(HERE, "abcde", first=0) if line.get("id") != "c"])
    (done,) = (line for line in _joined(both, "consumer-m0-1") if line["kind"] == "delivered")
    assert (done["topic"], done["offset"]) == ("t", 2)
    assert [line for line in raw_lines(both.history / "run.jsonl") if line["kind"] == "environment"] == []


# --- and back ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def back(both: RunFolder) -> RunFolder:
    """m0 leaves the mirror at 50, and is on the source from 60 on, where somebody has put its position to 4."""
    source, mirror = RunFolder(both.path / "source"), RunFolder(both.path / "mirror")
    told = {"kind": "evidence", "fault": "fail-back", "fault_no": 1, "bit": True}
    details = {"way": "by-timestamp", "left_ns": 55 * SECOND_NS}
    _write(source, "nemesis", [_failed_over("translated"), {"at": 65, **told, "details": details}])
    lines = [line | {"at": line["time_ns"] // SECOND_NS} for line in raw_lines(source.history / "consumer-m0-1.jsonl")]
    lines[-1]["at"] = 50
    _write(source, "consumer-m0-1", [{k: v for k, v in line.items() if k != "time_ns"} for line in lines])
    again = {"member": "m0", "incarnation": 2}
    work = [
        {"at": 60, "kind": "started", "lane": 4, "cluster": "source", "started_with": [0], **again},
        {"at": 62, "kind": "delivered", **HERE, "offset": 4, **again},
        {"at": 80, "kind": "exited", "code": 0, **again},
    ]
    _write(source, "consumer-m0-2", work)
    group = {"kind": "group", "group": "g", "log_partition": 3}
    expired = {"at": 30, **group, "members": [], "epoch": 4, "log_offset": 9, "source_wall_ns": 30 * SECOND_NS}
    joined = {"at": 61, **group, "members": [{"member_id": "id"}], "epoch": 5, "log_offset": 11}
    joined |= {"source_wall_ns": 61 * SECOND_NS}
    held = {"at": 22, "kind": "member", "group": "g", "member_id": "there", "log_partition": 1, "log_offset": 1}
    log = [_commit(10, 2, 7, HERE), _commit(18, 3, 8, HERE), expired, _commit(57, 4, 10, HERE), joined]
    _write(source, "offsets", [*log, _commit(70, 5, 12, HERE)])
    _write(
        mirror, "offsets", [_commit(15, 102, 0, THERE), held, _commit(24, 105, 2, THERE), _commit(85, 101, 3, THERE)]
    )
    asked = {"kind": "request", "api": "HEARTBEAT", "lane": 4, "group": "g", "epoch": 5}
    _write(source, "requests-b0", [{"at": 12, "line": 1, **asked}, {"at": 63, "line": 2, **asked}])
    return both


def test_the_offsets_log_of_the_way_back_goes_on_where_the_mirror_s_ended(back: RunFolder) -> None:
    """Without the position that somebody else has written there, and what its coordinator said of members that were
    gone; those that the mirror still has are told as gone."""
    lines = _joined(back, "offsets")
    there = 8 + 4 + LOG_OFFSET_GAP  # the last place of the leg before, and then
    again = there + 1 + 3 + LOG_OFFSET_GAP
    told = [(line["kind"], line["log_offset"]) for line in lines]
    assert told == [
        ("committed", 7),
        ("committed", 8),
        ("member", there + 1 + 1),
        ("committed", there + 1 + 2),
        *(("group_tombstone", again + 1 - LOG_OFFSET_GAP + place) for place in range(3)),
        ("group", again + 1 + 11),
        ("committed", again + 1 + 12),
    ]
    assert [line["committed_offset"] for line in lines if line["kind"] == "committed"] == [2, 3, 5, 5]


def test_what_the_source_counts_by_itself_goes_on_too(back: RunFolder) -> None:
    """Its generations, in its log and in requests; what was asked before the group left is as it was."""
    (group,) = (line for line in _joined(back, "offsets") if line["kind"] == "group")
    before, since = raw_lines(back.history / "requests-b0.jsonl")
    assert (before["epoch"], since["epoch"]) == (5, group["epoch"])
    assert group["epoch"] > 5


def test_a_member_that_is_back_works_where_it_is(back: RunFolder) -> None:
    """At brokers of the source, on its records."""
    started, delivered, _ = _joined(back, "consumer-m0-2")
    assert (started["lane"], started["started_with"]) == (4, [0])
    assert (delivered["topic"], delivered["offset"]) == ("t", 4)


def test_how_the_group_came_back_is_told(back: RunFolder) -> None:
    """By what it had committed on the mirror, what it found on the source, and what it had left there."""
    _, told = (line for line in _joined(back, "run") if line["kind"] == "failed_over")
    start = {"committed_offset": 5, "started_offset": 4, "earliest_offset": 3, "least_offset": 4}
    assert told["entries"] == [{**HERE, **start}]
    assert (told["way"], told["back"], told["time_ns"]) == ("by-timestamp", True, 60 * SECOND_NS)


@pytest.mark.parametrize(
    ("told", "to"),
    [([], ["the mirror", "its first cluster again"]), ([_failed_over("raw")], ["its first cluster again"])],
)
def test_a_move_of_which_nothing_is_told_is_no_ground_for_a_verdict(
    back: RunFolder, told: list[Line], to: list[str]
) -> None:
    """The step failed when the members had come: nobody knows from where they had to go on."""
    _write(RunFolder(back.path / "source"), "nemesis", told)
    messages = [line["message"] for line in _joined(back, "run") if line["kind"] == "environment"]
    assert messages == [
        f"the group came to {one}, and nothing says from where it had to go on: the step failed" for one in to
    ]
