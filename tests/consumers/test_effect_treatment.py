"""Which effects a treatment takes, and what a watch keeps of them."""

from __future__ import annotations

from kafka_trial.consumers.effect_treatment import EffectWatch, SinkBehaviour, Treatment


def test_a_treatment_takes_the_effects_of_its_members() -> None:
    """Everybody's where none is named."""
    assert Treatment(SinkBehaviour.REFUSING).takes("m1", "r1")
    assert [Treatment(SinkBehaviour.REFUSING, members=("m0",)).takes(name, "r1") for name in ("m0", "m1")] == [
        True,
        False,
    ]


def test_the_next_record_is_chosen_once() -> None:
    """It is taken again from the same member; the next record, and the same one of another member, are not."""
    slow = Treatment(SinkBehaviour.SLOW, 1.0, ("m0",), records_max=1)
    asked = [("m1", "r0"), ("m0", "r1"), ("m0", "r2"), ("m0", "r1"), ("m1", "r1")]
    assert [slow.takes(*one) for one in asked] == [False, True, False, True, False]


def test_poison_is_taken_from_everybody() -> None:
    """Once a member of the treatment has brought it, whoever brings that record is refused."""
    poison = Treatment(SinkBehaviour.REFUSING, members=("m0",), records_max=1, for_everybody=True)
    asked = [("m1", "r1"), ("m0", "r1"), ("m1", "r1"), ("m1", "r2")]
    assert [poison.takes(*one) for one in asked] == [False, True, True, False]


def test_a_watch_tells_done_refused_and_waiting() -> None:
    """Of each member apart, in the order in which they came."""
    watch = EffectWatch()
    arrivals = [watch.arrived("m0", f"r{n}") for n in range(3)]
    watch.arrived("m1", "r9")
    arrivals[0].answered(done=True)
    arrivals[1].answered(done=False)
    assert [(one.record_id, one.done) for one in watch.of("m0")] == [("r0", True), ("r1", False), ("r2", None)]
    assert arrivals[2].waited_s(arrivals[2].came_s + 2) == 2
