"""The stages of an upgrade: what each does to the cluster and to the groups on it, in their order.

A stage plays its steps, as faults are played: the roll of brokers is one that all groups share. Then the load is held,
every group drains within its bound, and what was seen until then is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_trial.nemesis.targets import ROLES
from kafka_trial.scenario import STABLE, Step

BETWEEN_S = 1.0  # before the first fault, and from when a group is stable again to the next one
OUTAGE_S = 4.0


@dataclass(frozen=True)
class Stage:
    """One stage: first, if it `finalises`, the features of its version are, and if it `compacts`, the offsets log is;
    `roll` are the brokers that become that version; `steps` are faults of each group's own, after it."""

    name: str
    summary: str
    version: str
    roll: tuple[int, ...] = ()
    steps: tuple[Step, ...] = ()
    finalises: bool = False
    compacts: bool = False


def stages_in_place(before: str, after: str, *, brokers: Sequence[int], controller: int) -> Iterator[Stage]:
    """Yields the stages of an upgrade in place, from one version to another.

    The active controller comes last in each roll ("upgrade the active controller last", Kafka, Upgrading). After
    features are finalised one broker is restarted: clients ask for features when they connect, and what a level changes
    for them they meet only then (measured with a Java producer and transaction.version).
    """
    in_order = (*(broker for broker in brokers if broker != controller), controller)
    yield Stage("before", f"Kafka {before}, a member killed", before, steps=(KILLED,))
    for number, broker in enumerate(in_order[:-1], 1):
        steps = (KILLED_LATER, STALLED) if number == 1 else ()
        yield Stage(f"mixed-{number}", f"{number} of {len(in_order)} brokers are {after}", after, (broker,), steps)
    yield Stage("rolled", f"all brokers are {after}, nothing is finalised", after, in_order[-1:])
    yield Stage("rolled-back", f"all brokers are {before} again", before, in_order)
    yield Stage("forward-again", f"all brokers are {after} again", after, in_order)
    summary = "features are finalised one by one, a broker restarted, a member killed"
    yield Stage("finalised", summary, after, in_order[:1], (KILLED_LATER,), finalises=True)


def reloaded(version: str, brokers: Sequence[int]) -> Stage:
    """Returns the stage in which the offsets log is compacted, and every coordinator loads its groups again.

    Damage of versions has shown only there (KAFKA-20254 in 4.2.0, KAFKA-21117).
    """
    summary = "the offsets log is compacted, every broker restarted, every group loaded again"
    return Stage("reloaded", summary, version, tuple(brokers), compacts=True)


KILLED = Step("kill", ROLES[0], at_s=BETWEEN_S, for_s=2.0)
KILLED_LATER = Step("kill", ROLES[0], at_s=BETWEEN_S, for_s=2.0, after=STABLE)
STALLED = Step("stall", ROLES[0], at_s=BETWEEN_S, for_s=OUTAGE_S, after=STABLE)
