"""The stages of either shape, in their order, and the nodes that they need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.nemesis.fault import step_problems
from kafka_trial.registry import find_consumer
from kafka_trial.upgrade.plan import make_plan
from kafka_trial.upgrade.request import IN_PLACE, REPLACED, make_upgrade_request
from kafka_trial.upgrade.stages import partitions_more, registered_again
from kafka_trial.upgrade.successors import Chain

LAST = ["rolled", "rolled-back", "forward-again", "finalised"]
MOVED = ["clients-mixed", "clients-moved-1", "clients-back-1"]


@pytest.mark.parametrize(
    ("shape", "first", "nodes"),
    [
        (IN_PLACE, ["before", "mixed-1", "mixed-2"], (0, 0)),
        (REPLACED, ["before", "replaced-1", "replaced-2", "replaced"], (3, 9)),
    ],
)
def test_both_shapes_end_alike(shape: str, first: list[str], nodes: tuple[int, int], tmp_path: Path) -> None:
    """Clients are moved where a consumer names a successor; the offsets log is loaded again last of all."""
    sound = find_consumer("python-at-least-once")
    for successors, moved in (((), []), ((find_consumer("python-at-least-once/cooperative"),), MOVED)):
        request = make_upgrade_request("3.9.2", "4.3.1", [Chain(sound, successors)], seed=1, out=tmp_path, shape=shape)
        plan = make_plan(request)
        assert list(plan.names) == [*first, *LAST, *moved, "reloaded"]
        assert (plan.controllers, plan.further) == nodes
        more = make_plan(replace(request, added=4))
        assert list(more.names) == [*first, *LAST, *moved, "partitions-added", "reloaded"]


@pytest.mark.parametrize("shape", [IN_PLACE, REPLACED])
def test_brokers_that_came_to_old_controllers_register_again(shape: str, tmp_path: Path) -> None:
    """All of them, when everything is new and before any feature is finalised; from 3.9 on nobody has to."""
    consumer = [Chain(find_consumer("python-at-least-once"))]
    names = [
        list(make_plan(make_upgrade_request(before, after, consumer, seed=1, out=tmp_path, shape=shape)).names)
        for before, after in (("3.7.2", "4.0.2"), ("3.7.2", "3.9.2"), ("3.9.2", "4.0.2"))
    ]
    assert names[0][-4:] == ["forward-again", "registered-again", "finalised", "reloaded"]
    assert ["registered-again" in one for one in names] == [True, False, False]
    (step,) = registered_again("4.0.2", [0, 1, 2]).shared
    assert (step.fault, dict(step.options)) == ("version-roll", {"version": "4.0.2", "brokers": "b0,b1,b2"})


def test_partitions_are_added_by_the_fault_of_that_name() -> None:
    """As many as were asked for, once the group of each consumer is stable."""
    (step,) = partitions_more("4.3.1", 4).steps
    assert (step.fault, dict(step.options), step.after) == ("partitions-added", {"added": 4}, "stable")
    assert step_problems(step.fault, step.target, step.options) == []
