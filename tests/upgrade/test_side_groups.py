"""Which quiet groups there are, and as what each is left."""

from __future__ import annotations

import pytest

from kafka_trial.kafka_protocol.group_requests import GroupState
from kafka_trial.kafka_protocol.offsets_records import group_partition
from kafka_trial.upgrade.side_groups import KINDS, SideGroup, side_groups

ALL = {"classic", "consumer", "streams"}


def test_a_group_of_each_kind_lies_in_each_partition() -> None:
    """By name; the same seed draws the same names."""
    groups = side_groups([5, 2], of=8, seed=1, spoken=ALL)
    assert [(group.kind, group.partition) for group in groups] == [(kind, place) for place in (5, 2) for kind in KINDS]
    assert [group_partition(group.name, partitions=8) for group in groups] == [group.partition for group in groups]
    assert groups == side_groups([5, 2], of=8, seed=1, spoken=ALL)


@pytest.mark.parametrize(
    ("spoken", "converted"),
    [
        ({"classic"}, ["classic", "classic"]),  # 3.9
        ({"classic", "consumer"}, ["consumer", "classic"]),  # 4.0
        (ALL, ["consumer", "streams"]),
    ],
)
def test_none_is_converted_to_what_the_cluster_does_not_have(spoken: set[str], converted: list[str]) -> None:
    """One that came back is a classic group either way, and a deleted one has no protocol and no position."""
    groups = {group.kind: group for group in side_groups([0], of=8, seed=1, spoken=spoken)}
    assert [groups[kind].protocol for kind in KINDS] == [*converted, "classic", "classic", None]
    assert [len(groups[kind].committed) for kind in KINDS] == [1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("state", "protocol", "as_left"),
    [
        ("Empty", "consumer", "converted"),
        ("Empty", "classic", "emptied"),
        ("Dead", "classic", "deleted"),
        ("Empty", "streams", None),
        ("Stable", "consumer", None),
    ],
)
def test_a_group_rests_in_its_own_state_alone(state: str, protocol: str, as_left: str | None) -> None:
    """Empty in its protocol, or dead where it is deleted."""
    groups = [SideGroup("g", "converted", 7, "consumer"), SideGroup("g", "emptied", 7, "classic")]
    groups.append(SideGroup("g", "deleted", 7, None))
    found = [group.kind for group in groups if group.is_in(GroupState(state, protocol, ()))]
    assert found == ([as_left] if as_left else [])
