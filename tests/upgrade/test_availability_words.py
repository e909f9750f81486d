"""What a stage cost in availability, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_trial.upgrade.availability import Availability, GroupAvailability, PartitionAvailability
from kafka_trial.upgrade.availability_words import group_cells, long_times, partition_cells, partition_in_words
from kafka_trial.upgrade.coordinator_loads import CoordinatorLoad
from kafka_trial.upgrade.record_results import upgrade_text
from upgrade_records import ALL_GO, COST, STAGES, WITH_COST

GROUP = COST.group


def told(*costs: Availability) -> str:
    return long_times(replace(STAGES[1], availability=costs))


def of_group(group: GroupAvailability) -> str:
    return told(replace(COST, group=group, partitions=()))


def test_what_was_unavailable_for_long_is_a_line_on_a_terminal() -> None:
    """With the worst partition of a consumer; a stage in which nothing was has none."""
    lines = upgrade_text(WITH_COST).splitlines()
    begin = lines.index("unavailable for longer than 5 s:")
    assert lines[begin + 1 : begin + 3] == [
        "  mixed-1, orders: the group was not served for 8.6 s; partition 0 took no record for 8.7 s, "
        "1 more for longer than 5 s",
        "",
    ]
    assert "unavailable" not in upgrade_text(ALL_GO)


@pytest.mark.parametrize(
    ("group", "said"),
    [
        (replace(GROUP, unanswered_s=5.0), ""),
        (replace(GROUP, unanswered_s=8.0, answers_apart_s=4.0), ""),
        (replace(GROUP, unanswered_s=None), ""),
        (replace(GROUP, unanswered_s=None, coordinatorless_s=6.0), "orders: it had no coordinator for 6.0 s"),
        (replace(GROUP, unanswered_s=1.0, loads=[CoordinatorLoad(1, 70.0, 7.25)]), "orders: b1 took 7.25 s to load it"),
        (
            replace(GROUP, unanswered_s=1.0, loads=[CoordinatorLoad(1, 70.0, None, "no kt")]),
            "orders: b1 did not load it: no kt",
        ),
    ],
    ids=["not longer", "members ask seldom", "not recorded", "no coordinator", "a long load", "a load that failed"],
)
def test_what_is_short_or_not_recorded_is_no_line(group: GroupAvailability, said: str) -> None:
    """Nor what the members' own pace makes."""
    assert of_group(group) == said


def test_each_consumer_has_its_part_of_the_line() -> None:
    """One without a long time has none."""
    other = replace(COST, consumer="billing", partitions=())
    calm = replace(COST, consumer="calm", group=GroupAvailability("g", 0.1), partitions=())
    leaderless = replace(calm, partitions=[PartitionAvailability(4, leaderless_s=6.0)])
    assert told(calm, other, replace(leaderless, consumer="stock")) == (
        "billing: the group was not served for 8.6 s. stock: partition 4 had no leader for 6.0 s"
    )


def test_the_cells_of_the_table_say_what_is_not_recorded() -> None:
    """Never as 0."""
    assert group_cells(GROUP) == ["8.6 s (answers are 0.3 s apart)", "0.0 s", "b0, then b2", "b2 took 3.28 s"]
    assert group_cells(GroupAvailability("g")) == ["not recorded"] * 4
    assert group_cells(replace(GROUP, loads=[]))[-1] == "none was logged"
    assert partition_cells(COST) == ["8.7 s, partition 0, of 1 not recorded", "0.0 s, of 1 not recorded"]
    assert partition_cells(replace(COST, partitions=())) == ["not recorded"] * 2


def test_a_partition_has_all_its_durations() -> None:
    """With what the load's own spacing makes."""
    assert [partition_in_words(one) for one in COST.partitions[1:]] == [
        "partition 1: a record waited and none was acknowledged for 5.2 s, none was acknowledged for 5.4 s, "
        "none was sent for 0.9 s, it had no leader for 0.0 s",
        "partition 2: not recorded",
    ]
