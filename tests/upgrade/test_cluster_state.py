"""What a cluster has lost between two stages, and by whose fault."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from kafka_trial.history.store import create_run_folder
from kafka_trial.upgrade.cluster_state import ClusterState, GroupState, Loss, ended_by_tombstones, losses


def state(
    *, answered: dict[int, int], refusal: str = "", min_insync: int = 2, of_brokers: tuple[int, ...] = (2, 2)
) -> ClusterState:
    """One group on one topic; its offsets log holds 5 of partition 0 and 7 of partition 1."""
    group = GroupState("t", answered, {0: 5, 1: 7}, refusal)
    return ClusterState({}, {"t": min_insync}, {"g": group}, dict(enumerate(of_brokers)))


WELL = state(answered={0: 5, 1: 7})
GONE = "the committed offset of partition 1 of g is gone: the offsets log holds 7, its coordinator answers "


@pytest.mark.parametrize(
    ("now", "lost"),
    [
        (WELL, []),
        (state(answered={0: 6, 1: 7}), []),  # committed since the log was read
        (state(answered={0: 5}), [Loss("cluster", GONE + "none")]),
        (state(answered={0: 5, 1: 6}), [Loss("cluster", GONE + "6")]),
        (state(answered={}, refusal="no answer"), [Loss("cluster", "nobody coordinates the group g: no answer")]),
        (
            state(answered={0: 5, 1: 7}, min_insync=1),
            [Loss("setting", "min.insync.replicas of t fell from 2 to 1")],
        ),
        (state(answered={0: 5, 1: 7}, min_insync=3), []),
        (
            state(answered={0: 5, 1: 7}, of_brokers=(2, 1)),
            [Loss("setting", "min.insync.replicas of broker 1, for topics without their own, fell from 2 to 1")],
        ),
        (state(answered={0: 5, 1: 7}, of_brokers=(2,)), []),  # it is not there any more
    ],
    ids=[
        "well",
        "ahead",
        "gone",
        "back",
        "not loaded",
        "min.insync lost",
        "min.insync raised",
        "a broker's lost",
        "a broker gone",
    ],
)
def test_what_is_lost_is_the_clusters_or_a_settings(now: ClusterState, lost: list[Loss]) -> None:
    """Never the consumer's: it committed, and was told so."""
    assert list(losses(WELL, now)) == lost


def test_a_tombstone_ends_a_position_in_its_stage_alone(tmp_path: Path) -> None:
    """Of the trial's topic, and since the stage before ended."""
    folder = create_run_folder(tmp_path / "stage", "rolled", "orders")
    told = [
        {"kind": "committed", "topic": "t", "time_ns": 1},
        *(
            {"kind": "commit_tombstone", "group": "g", "topic": topic, "partition": 1, "log_partition": 3}
            | {"log_offset": 7, "time_ns": time_ns}
            for topic, time_ns in (("t", 5), ("t", 9), ("other", 9))
        ),
    ]
    (folder.history / "offsets.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in told))
    lost = Loss(
        "cluster", "a tombstone (__consumer_offsets-3, offset 7) ended the committed offset of partition 1 of g"
    )
    assert list(ended_by_tombstones(folder, "t", 5)) == [lost]
