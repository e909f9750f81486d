"""What a stage cost in availability, from literal histories: what was sent, answered and observed, and what was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.upgrade.availability import Availability, GroupAvailability, PartitionAvailability, availability

SECOND = 1_000_000_000
GROUP = "kt-group"
NOT_RECORDED = PartitionAvailability(0)
Line = tuple[float, str, Mapping[str, Any]]  # when, in seconds since the rehearsal began; the kind; the rest


def line(at_s: float, kind: str, **fields: Any) -> Line:
    return at_s, kind, fields


def sent(at_s: float, *, seq: int, until_s: float | None, key: str = "k0", outcome: str = "ok") -> list[Line]:
    """A send and how it ended (None: never); its invoke is the line `seq` of the file."""
    begin = line(at_s, "send", id=f"r{seq}", key=key, outcome="invoke")
    if until_s is None:
        return [begin]
    place = {"partition": 0, "offset": seq} if outcome == "ok" else {}
    return [begin, line(until_s, "send", id=f"r{seq}", key=key, outcome=outcome, op=seq, **place)]


def answered(at_s: float, api: str = "OFFSET_COMMIT", error: int = 0, group: str = GROUP, **fields: Any) -> Line:
    return line(at_s, "request", api=api, group=group, member_id="m1", error=error, **fields)


LOOKS = [line(second, "log_end", topic="t", partition=0, offset=second) for second in range(8, 31)]
LEADER = line(5, "leader", topic="t", partition=0, leader=0)
COORDINATOR = line(5, "coordinator", group=GROUP, leader=0)


@pytest.fixture(name="cost")
def of_stage(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns a function that gives the cost of the stage `mixed-1`, whose load was on from 10 to 20 s."""

    def cost(stage: str = "mixed-1", **files: Sequence[Line]) -> Availability:
        out = tmp_path_factory.mktemp("stage")
        folder = create_run_folder(out / "run", "upgrade", "orders")
        run = [
            line(0, "clock", wall_ns=1_000_000 * SECOND),
            line(1, "group_named", group=GROUP),
            line(2, "phase", phase="prepare"),
            line(10, "phase", phase="faults of mixed-1", stage="mixed-1"),
            line(20, "phase", phase="heal of mixed-1", stage="mixed-1"),
            line(25, "phase", phase="faults of rolled", stage="rolled"),
            line(30, "phase", phase="heal", stage="rolled"),
        ]
        for source, lines in {"run": run, **files}.items():
            write(folder, source.replace("_", "-"), lines)
        return availability("orders", folder, out / "logs", ["mixed-1", "rolled", "later"], base_ns=0)[stage]

    return cost


def write(folder: RunFolder, source: str, lines: Sequence[Line]) -> None:
    with Recorder(folder.history, source) as recorder:
        for at_s, kind, fields in lines:
            recorder.record(kind, time_ns=round(at_s * SECOND), **fields)


def test_what_no_file_tells_is_not_recorded(cost: Any) -> None:
    """A history of phases alone: no figure, and none that is 0."""
    assert cost() == Availability(
        "orders", 10.0, 20.0, GroupAvailability(GROUP, coordinators=[]), partitions=[], controllers=[]
    )


def test_a_stage_that_the_history_has_not_whole_has_no_cost(cost: Any) -> None:
    """It was planned, and never began."""
    with pytest.raises(KeyError):
        cost("later")


def test_a_partition_is_unavailable_while_a_record_waits(cost: Any) -> None:
    """Sends at 9, 11, 12 and 18 s, the third acknowledged at 16 s: from 12 s on one waits."""
    workload = [
        *sent(9, seq=0, until_s=9.5),
        *sent(11, seq=2, until_s=11.5),
        *sent(12, seq=4, until_s=16),
        *sent(18, seq=6, until_s=18.5),
    ]
    (partition,) = cost(workload=workload).partitions
    assert partition == PartitionAvailability(0, 4.5, 6.0, 4.0, None, [(12.0, 16.0)])


def test_a_load_that_sends_seldom_makes_nothing_unavailable(cost: Any) -> None:
    """One record in ten seconds, acknowledged at once: 5.1 s without an acknowledgement, 5 s without a send."""
    (partition,) = cost(workload=sent(15, seq=0, until_s=15.1)).partitions
    assert partition == PartitionAvailability(0, 5.1, 5.0, 0.1, None, [])


@pytest.mark.parametrize(
    ("last", "unavailable_s"),
    [
        (sent(13, seq=2, until_s=None), 7.0),
        (sent(13, seq=2, until_s=40), 7.0),
        (sent(13, seq=2, until_s=40, outcome="info"), 7.0),
        (sent(13, seq=2, until_s=40, outcome="fail"), 0.1),
        (sent(13, seq=2, until_s=None, key="another"), 0.1),
    ],
    ids=["never", "after the stage", "nobody knows", "refused, or taken back", "nobody knows of which partition"],
)
def test_a_record_that_is_never_acknowledged_waits_to_the_end(
    cost: Any, last: Sequence[Line], unavailable_s: float
) -> None:
    """It lies where others with its key do."""
    (partition,) = cost(workload=[*sent(12, seq=0, until_s=12.1), *last]).partitions
    assert partition.unavailable_s == unavailable_s


def test_a_partition_that_had_no_send_is_not_known(cost: Any) -> None:
    """It had one before the stage: what it would have taken in it, nobody knows."""
    (partition,) = cost(workload=sent(9, seq=0, until_s=9.5)).partitions
    assert partition == NOT_RECORDED


@pytest.mark.parametrize(
    ("lines", "leaderless_s"),
    [
        ([LEADER], 0.0),
        ([LEADER, line(12, "leader", topic="t", partition=0, leader=-1)], 8.0),
        (
            [
                LEADER,
                line(9, "leader", topic="t", partition=0, leader=-1),
                line(13, "leader", topic="t", partition=0, leader=1),
            ],
            3.0,
        ),
        ([LEADER, line(22, "leader", topic="t", partition=0, leader=-1)], 0.0),
        ([LEADER, line(12, "unanswered", name="metadata", message="timed out")], None),
        ([line(21, "leader", topic="t", partition=0, leader=1)], None),
    ],
    ids=["led", "to the end", "from before", "later", "no broker told of the topic", "not told by then"],
)
def test_a_partition_is_without_a_leader_as_the_observer_saw_it(
    cost: Any, lines: Sequence[Line], leaderless_s: float | None
) -> None:
    """Within the stage alone; where it could not see, it is not 0."""
    (partition,) = cost(observer=[*LOOKS, *lines]).partitions
    assert partition.leaderless_s == leaderless_s


def test_an_observer_that_did_not_look_saw_nothing(cost: Any) -> None:
    """Neither a leader nor a coordinator: its last look was before the stage."""
    seen = cost(observer=[LOOKS[0], LEADER, COORDINATOR])
    assert (seen.observed_every_s, seen.partitions[0].leaderless_s, seen.group.coordinatorless_s) == (None,) * 3
    every = [one for one in LOOKS if one[0] not in (14, 15, 16)]
    assert cost(observer=every).observed_every_s == 4.0


def test_a_group_is_unanswered_between_two_answers_that_show_it_served(cost: Any) -> None:
    """Answers to it alone count, without an error of one partition either; those of all its coordinators."""
    of_b0 = [answered(second / 10) for second in range(90, 126)]
    moved, unknown = (
        answered(at_s, entries=[{"topic": "t", "partition": 0, "committed_offset": 1, "error": error}])
        for at_s, error in ((13, 16), (14, 25))
    )
    of_b1 = [
        moved,
        unknown,
        answered(15, group="another"),
        answered(16, "FIND_COORDINATOR"),
        answered(17.5),
        answered(19.5),
    ]
    group = cost(requests_b0=of_b0, requests_b1=of_b1).group
    assert (group.unanswered_s, group.answers_apart_s, group.stretches) == (5.0, 0.1, [(12.5, 17.5), (17.5, 19.5)])


def test_answers_count_when_they_were_sent(cost: Any) -> None:
    """Not when the log was read: by the broker's own clock."""
    late = [answered(20, source_wall_ns=(1_000_000 + second) * SECOND) for second in range(10, 20)]
    assert cost(requests_b0=late).group.unanswered_s == 1.0


def test_members_that_ask_seldom_make_no_group_unavailable(cost: Any) -> None:
    """Every four seconds: four seconds without an answer are not drawn."""
    group = cost(requests_b0=[answered(second, "HEARTBEAT") for second in (10, 14, 18)]).group
    assert (group.unanswered_s, group.answers_apart_s, group.stretches) == (4.0, 4.0, [])


@pytest.mark.parametrize(
    ("lines", "unanswered_s"),
    [
        ([answered(5)], 10.0),
        ([answered(12, "JOIN_GROUP", 14)], 10.0),
        ([answered(21)], None),
        ([answered(12), line(15, "witness", state="dead")], None),
        ([answered(12), line(24, "witness", state="behind")], None),
        ([answered(12), line(26, "witness", state="behind"), line(15, "witness", state="complete")], 8.0),
    ],
    ids=["before", "refused", "not yet", "the witness died", "it had not read all", "of another stage"],
)
def test_a_group_that_nobody_answered_is_not_one_that_nobody_saw(
    cost: Any, lines: Sequence[Line], unanswered_s: float | None
) -> None:
    """It had asked by then: the whole time. Where it had not, or not all is read: not recorded."""
    ordered = sorted(lines, key=lambda one: one[0])
    assert cost(requests_b0=ordered).group.unanswered_s == unanswered_s


@pytest.mark.parametrize(
    ("after", "coordinatorless_s"),
    [
        ([], 8.0),
        ([line(15, "coordinator", group=GROUP, leader=1)], 3.0),
        ([line(14, "unanswered", name="group", broker=0, message="loading")], 2.0),
        ([line(14.5, "group_state", group=GROUP, state="Stable")], 2.5),
    ],
    ids=["never again", "another one", "one that does not answer", "it answers"],
)
def test_no_coordinator_until_one_is_named(cost: Any, after: Sequence[Line], coordinatorless_s: float) -> None:
    """That the same one is named again has no line: what it then answers shows it."""
    unnamed = line(12, "unanswered", name="coordinator", message="COORDINATOR_NOT_AVAILABLE")
    seen = cost(observer=[*LOOKS, COORDINATOR, unnamed, *after])
    assert seen.group.coordinatorless_s == coordinatorless_s
    served = cost(observer=[*LOOKS, COORDINATOR, unnamed], requests_b0=[answered(13)])
    assert served.group.coordinatorless_s == 1.0


def test_who_was_coordinator_and_controller_is_told_in_order(cost: Any) -> None:
    """From who it was when the stage began to the beginning of the next one; an epoch alone is no change."""
    observer = [
        *LOOKS,
        *(COORDINATOR, line(6, "coordinator", group=GROUP, leader=1), line(12, "coordinator", group=GROUP, leader=2)),
        *(line(22, "coordinator", group=GROUP, leader=0), line(26, "coordinator", group=GROUP, leader=1)),
        *(line(3, "controller", leader=2, epoch=1), line(11, "controller", leader=2, epoch=2)),
        line(14, "controller", leader=0, epoch=3),
    ]
    seen = cost(observer=observer)
    assert (seen.group.coordinators, seen.controllers) == ([1, 2, 0], [2, 0])
    assert cost("rolled", observer=observer).group.coordinators == [0, 1]


def test_only_stretches_of_a_second_are_told(cost: Any) -> None:
    """In the order of time; the figures are of all."""
    workload: list[Line] = []
    for second in range(10, 19):
        workload += sent(second, seq=len(workload), until_s=second + (0.4 if second % 2 else 1.0))
    (partition,) = cost(workload=workload).partitions
    stretches = [(10.0, 11.0), (12.0, 13.0), (14.0, 15.0), (16.0, 17.0), (18.0, 19.0)]
    assert partition == PartitionAvailability(0, 1.6, 2.0, 1.0, None, stretches)


def test_of_many_stretches_the_longest_are_told(cost: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a record stays small; in the order of time."""
    monkeypatch.setattr("kafka_trial.upgrade.availability.STRETCHES_MAX", 2)
    workload = [*sent(10, seq=0, until_s=12), *sent(13, seq=2, until_s=14), *sent(15, seq=4, until_s=18)]
    assert cost(workload=workload).partitions[0].stretches == [(10.0, 12.0), (15.0, 18.0)]
