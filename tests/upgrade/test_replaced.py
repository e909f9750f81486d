"""The stages of an upgrade by replacement: who leaves, who comes, and when the controllers are rolled."""

from __future__ import annotations

from kafka_trial.nemesis.fault import step_problems
from kafka_trial.upgrade.cluster_state import SETTING
from kafka_trial.upgrade.replaced import brokers_at_last, stages_replaced, stranded
from kafka_trial.upgrade.stages import KILLED, KILLED_LATER, STALLED, Stage

THERE = {"version": "4.3.1"}
BACK = {"version": "3.9.2"}


def planned() -> list[Stage]:
    """Three brokers and three controllers, of which the first is active."""
    return list(stages_replaced("3.9.2", "4.3.1", controllers=[100, 101, 102], controller=100))


def test_each_broker_is_replaced_by_one_of_its_own() -> None:
    """One at a time on the way there, with ids that no other had; the controllers after them, the active one last."""
    assert [(one.name, [(step.fault, step.options) for step in one.shared]) for one in planned()] == [
        ("before", []),
        ("replaced-1", [("broker-replace", {"brokers": "b0", "by": "b3"} | THERE)]),
        ("replaced-2", [("broker-replace", {"brokers": "b1", "by": "b4"} | THERE)]),
        ("replaced", [("broker-replace", {"brokers": "b2", "by": "b5"} | THERE)]),
        ("rolled", [("version-roll", {"brokers": "c1,c2,c0"} | THERE)]),
        (
            "rolled-back",
            [
                ("version-roll", {"brokers": "c1,c2,c0"} | BACK),
                ("broker-replace", {"brokers": "b3,b4,b5", "by": "b6,b7,b8"} | BACK),
            ],
        ),
        (
            "forward-again",
            [
                ("broker-replace", {"brokers": "b6,b7,b8", "by": "b9,b10,b11"} | THERE),
                ("version-roll", {"brokers": "c1,c2,c0"} | THERE),
            ],
        ),
        ("finalised", [("version-roll", {"brokers": "b9"} | THERE)]),
    ]
    assert [*brokers_at_last()] == [9, 10, 11]


def test_members_fall_before_and_where_most_is_mixed() -> None:
    """A kill before; a kill and a stall with two of three replaced: who starts again finds other addresses then."""
    steps = {one.name: one.steps for one in planned() if one.steps}
    assert steps == {"before": (KILLED,), "replaced-2": (KILLED_LATER, STALLED), "finalised": (KILLED_LATER,)}


def test_every_step_can_be_played() -> None:
    """Its fault is there, with these targets and options."""
    steps = [step for one in planned() for step in (*one.shared, *one.steps)]
    assert [problem for step in steps for problem in step_problems(step.fault, step.target, step.options)] == []


def test_a_member_without_any_way_back_is_named() -> None:
    """All its first brokers are gone, and it is connected to none: m1. Not m0, which is at work through others, nor m2,
    which may try b2 again, nor m3, which was started later."""
    first = {"m0": {0, 1, 2}, "m1": {0, 1, 2}, "m2": {0, 1, 2}, "m3": {3, 4}}
    told = [*stranded(first, {3, 4, 5}, {"m0", "m2"})]
    assert [(one.accused, one.sentence.partition(",")[0]) for one in told] == [
        (SETTING, "every address that m1 was started with is gone")
    ]
    assert [*stranded(first, {2, 3, 4}, {"m0"})] == []
