"""What the group hands on, on literal batches: which records of its own topic are told, with which id, and since when
they can have been there; and which topics are read at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.history.event import from_line
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol.batches import Fetched, batches
from kafka_trial.kafka_protocol.cluster_queries import Metadata, Partition, Topic
from kafka_trial.witness.handed_on import FollowingIntermediateTopics, HandedOnReader, IdPlace, IntermediateTopics
from kafka_trial.witness.offsets_log import LogReader
from witness.literal_batches import ABORT, COMMIT, TRANSACTIONAL, batch_of, marker_of
from witness.test_offsets_log import _committed

VALUE = [(b"k", b'{"id": "r1"}')]
KEYED = [(b"r2", b"7")]
NAMELESS = [(None, b"7")]


def _told(folder: Path, *raw: bytes) -> list[tuple[Any, ...]]:
    """Returns offset, id and count of what is told of some batches, one fetched after the other."""
    with Recorder(folder, "through") as recorder:
        reader, position = HandedOnReader("g-way", 0, recorder, IdPlace()), 0
        for batch in batches(b"".join(raw)):
            reader.take(batch, max(position, batch.base_offset))
            position = batch.next_offset
        recorder.flush()
        events = [from_line(line) for line in recorder.path.read_bytes().splitlines()]
    return [(e.offset, e.id, e.details.get("count")) for e in events if e.kind == "handed_on"]


WRITTEN = batch_of(0, VALUE, attributes=TRANSACTIONAL, producer_id=7)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ([batch_of(0, VALUE)], [(0, "r1", None)]),
        ([batch_of(0, [(None, b"x")], name="r")], [(0, "r0", None)]),
        ([batch_of(0, KEYED)], [(0, "r2", None)]),
        ([batch_of(0, NAMELESS)], [(0, None, None)]),
        ([WRITTEN], []),
        ([WRITTEN, marker_of(1, 7, ABORT)], []),
        ([WRITTEN, marker_of(1, 8, COMMIT)], []),
        ([WRITTEN, marker_of(1, 7, COMMIT)], [(0, "r1", None)]),
        ([batch_of(0, VALUE), batch_of(4, VALUE)], [(0, "r1", None), (1, None, 3), (4, "r1", None)]),
    ],
    ids=[
        "an id in the value",
        "in the header",
        "the key may be one",
        "none",
        "in a transaction that is open",
        "aborted",
        "that another's marker ends",
        "committed",
        "three were deleted before they were read",
    ],
)
def test_what_is_committed_there_is_handed_on(tmp_path: Path, raw: list[bytes], told: list[tuple[Any, ...]]) -> None:
    """In the order of the log; what a transaction took back never was."""
    assert _told(tmp_path, *raw) == told


@dataclass
class Cluster:
    """In place of the brokers: the topics there are, and what is fetched of a partition."""

    topics: dict[str, list[Fetched]]

    def anyone(self, question: Any) -> Metadata:
        there = Partition(0, 1, 0, (1,), (1,))
        return Metadata({1: ("b", 9)}, {name: Topic(name, f"id of {name}", (there,)) for name in self.topics}, {})

    def broker(self, node: int, question: Any) -> Any:
        return question(self)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with the trial's topic only."""
    found = Cluster({"t": []})

    def fetched(at: Cluster, topic: str, partition: int, position: int, *, wait_ms: int) -> Fetched:
        return at.topics[topic].pop(0) if at.topics[topic] else Fetched(position, position, b"")

    monkeypatch.setattr("kafka_trial.witness.tail.fetch", fetched)
    monkeypatch.setattr("kafka_trial.witness.tail.cluster_queries.list_offsets", lambda *_, **__: {0: 0})
    return found


def _answer(base: int, end: int) -> Fetched:
    return Fetched(end, end, batch_of(base, VALUE))


def _events(folder: Path) -> list[Any]:
    return [from_line(line) for line in (folder / "through.jsonl").read_bytes().splitlines()]


BY_NAME = ("group", {"entries": [{"topic": "t"}, {"topic": "g-way"}]})
BY_ID = ("member_assignment", {"entries": [{"topic_id": "id of t"}, {"topic_id": "id of g-way"}]})
COMMITTED = ("committed", {"topic": "g-way"})


@pytest.mark.parametrize("assigned", [BY_NAME, BY_ID, COMMITTED], ids=["by name", "by id", "found by its commit"])
def test_a_topic_is_read_once_the_group_has_it_and_counts_once_it_commits_there(
    tmp_path: Path, cluster: Cluster, assigned: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the trial's own, and none before; what was there when it was found may have been there for long, what came
    since not before it was asked for last."""
    recorders: list[Recorder] = []
    intermediate = IntermediateTopics(cluster, tmp_path, recorders, known=["t"], declared=["never-there"])  # type: ignore[arg-type]
    following = FollowingIntermediateTopics([], intermediate)
    monkeypatch.setattr("kafka_trial.witness.handed_on.ASK_EVERY_S", 0.0)
    intermediate.look()
    intermediate.see("committed", {"topic": "t"})
    following.step()
    assert not (tmp_path / "through.jsonl").exists()
    cluster.topics["g-way"] = [_answer(0, 1), Fetched(1, 1, b""), _answer(1, 2)]
    intermediate.see(*assigned)
    for _ in range(4):
        following.step()
    records = [event for event in _events(tmp_path) if event.kind == "handed_on"]
    assert [(e.offset, "asked_ns" in e.details) for e in records] == [(0, False), (1, True)]
    assert [event.kind for event in _events(tmp_path)].count("through") == (assigned == COMMITTED)
    intermediate.see(*COMMITTED)
    following.step()
    (found,) = (event for event in _events(tmp_path) if event.kind == "through")
    assert (found.topic, found.topic_id, found.details) == ("g-way", "id of g-way", {"partitions": 1, "made": True})
    assert [one.source for one in recorders] == ["through"]
    intermediate.close()


def test_a_topic_that_nobody_finds_is_named_at_the_snapshot(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is only declared, or assigned, may never be there."""
    monkeypatch.setattr("kafka_trial.witness.handed_on.ASK_EVERY_S", 0.0)
    intermediate = IntermediateTopics(cluster, tmp_path, [], known=["t"], declared=["g-retry"])  # type: ignore[arg-type]
    following = FollowingIntermediateTopics([], intermediate)
    intermediate.see(*BY_NAME)
    assert following.snapshot(within_s=0).state == "complete"
    intermediate.see(*COMMITTED)
    answer = following.snapshot(within_s=0)
    assert (answer.state, answer.message) == (
        "behind",
        "the group commits on g-way too, and no broker says where it lies",
    )


def test_every_groups_commits_on_a_declared_topic_count(tmp_path: Path) -> None:
    """Of other topics those of the trial's group."""
    found: list[str] = []
    raw = [batch_of(0, _committed("g", 1)), batch_of(1, _committed("other", 2))]
    for number, (declared, told) in enumerate([([], [1]), (["t"], [1, 2])]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Recorder(folder, "offsets") as recorder:
            reader = LogReader(0, ["g"], recorder, through=declared, on_event=lambda kind, about: found.append(kind))
            for batch in batches(b"".join(raw)):
                reader.take(batch, 0)
            events = [from_line(line) for line in recorder.path.read_bytes().splitlines()]
        assert [e.committed_offset for e in events] == told
    assert found == ["committed"] * 3
