"""A topic that comes, on a real cluster: it bites once it has a leader and records; where it does not come is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import Producer

from fault_arena import Arena, settle
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.schedule import Outcome, make_plan, run_schedule
from kafka_trial.scenario import Step

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(every=4)]
PARTITIONS = 2


def played(context: FaultContext) -> Outcome:
    (outcome,) = run_schedule(context, make_plan([Step("topic-created", "all", options={"topic": "new"})], seed=5))[1]
    return outcome


def comes(arena: Arena, name: str, *, records: int) -> FaultContext:
    """The group at work, and a topic that comes with so many records in each partition."""
    topic = f"{arena.context.topic}-{name}"

    def created(asked: str) -> None:
        arena.context.admin.create_topic(topic, partitions=PARTITIONS, replication_factor=3)
        producer = Producer({"bootstrap.servers": arena.context.cluster.observer_bootstrap})
        for number in range(records * PARTITIONS):
            producer.produce(topic, b"x", partition=number % PARTITIONS)
        assert producer.flush(10) == 0, asked

    settle(arena.context)
    return replace(arena.context, later_topics={"new": topic}, create_later_topic=created)


def test_it_bites(arena: Arena) -> None:
    """It is there with its records; once more it is no news."""
    context = comes(arena, "comes", records=3)
    outcome = played(context)
    assert outcome.evidence.took_effect, outcome.evidence.message
    assert (outcome.evidence.details["partitions"], outcome.evidence.details["records"]) == (2, 6)
    again = played(replace(context, create_later_topic=lambda name: None))
    assert (again.evidence.took_effect, again.evidence.message) == (False, "the topic was there already")


@pytest.mark.parametrize(
    ("records", "message"),
    [(None, "to exist, in vain"), (0, "no record has come to its partitions 0, 1")],
    ids=["never created", "without load"],
)
def test_what_keeps_it_from_biting_is_found_out(arena: Arena, records: int | None, message: str) -> None:
    """A topic that nobody created, and one without a record."""
    context = comes(arena, f"fails-{records}", records=records or 0)
    outcome = played(replace(context, create_later_topic=lambda name: None) if records is None else context)
    assert (outcome.evidence.took_effect, message in outcome.evidence.message) == (False, True)
