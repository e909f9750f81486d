"""The stages of an upgrade: what each does to the cluster and to the groups on it, in their order.

A stage plays its steps, as faults are played: the roll of brokers is one that all groups share. Then the load is held,
every group drains within its bound, and what was seen until then is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_trial.cluster.cluster import node_name
from kafka_trial.nemesis.targets import ROLES
from kafka_trial.scenario import STABLE, Step
from kafka_trial.upgrade.broker_changes import ROLL

BETWEEN_S = 1.0  # before the first fault, and from when a group is stable again to the next one
LOADED_S = 8.0  # the load knows new partitions within five seconds, and some records are to come there
OUTAGE_S = 3.0  # less than a session of 6 s without a heartbeat: one that may have cost it is waited for by all


@dataclass(frozen=True)
class Stage:
    """One stage: first, if it `finalises`, the features of its version are, and if it `compacts`, the offsets log is;
    then `shared` steps, played once for all groups; then `steps`, faults of each group's own."""

    name: str
    summary: str
    version: str
    shared: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()
    finalises: bool = False
    compacts: bool = False


def stages_in_place(before: str, after: str, *, brokers: Sequence[int], controller: int) -> Iterator[Stage]:
    """Yields the stages of an upgrade in place, from one version to another; `controller` is the active one.

    The active controller comes last in each roll ("upgrade the active controller last", Kafka, Upgrading). After
    features are finalised one broker is restarted: clients ask for features when they connect, and what a level changes
    for them they meet only then (measured with a Java producer and transaction.version).
    """
    in_order = (*(broker for broker in brokers if broker != controller), controller)
    yield Stage("before", f"Kafka {before}, a member killed", before, steps=(KILLED,))
    for number, broker in enumerate(in_order[:-1], 1):
        steps = (KILLED_LATER, STALLED) if number == 1 else ()
        summary = f"{number} of {len(in_order)} brokers are {after}"
        yield Stage(f"mixed-{number}", summary, after, (roll((broker,), after),), steps)
    yield Stage("rolled", f"all brokers are {after}, nothing is finalised", after, (roll(in_order[-1:], after),))
    yield Stage("rolled-back", f"all brokers are {before} again", before, (roll_all(before),))
    yield Stage("forward-again", f"all brokers are {after} again", after, (roll_all(after),))
    yield finalised(after, in_order[0])


def finalised(version: str, broker: int) -> Stage:
    """Returns the stage in which the features of a version are finalised; then a broker is restarted."""
    summary = "features are finalised one by one, a broker restarted, a member killed"
    return Stage("finalised", summary, version, (roll((broker,), version),), (KILLED_LATER,), finalises=True)


def registered_again(version: str, brokers: Sequence[int]) -> Stage:
    """Returns the stage in which every broker is restarted once more, all controllers being of its version: those that
    registered with an older one are known without some of their features (`compatibility/avoid.py`)."""
    summary = "every broker is restarted once more, so that the new controllers know all its features"
    return Stage("registered-again", summary, version, (roll(brokers, version),))


def partitions_more(version: str, added: int) -> Stage:
    """Returns the stage in which the topics of all groups get partitions: where a group has committed nothing yet, its
    reset policy (`auto.offset.reset`) decides what becomes of the first records."""
    return Stage(
        "partitions-added", f"{added} partitions are added to each topic", version, steps=(_more_partitions(added),)
    )


def reloaded(version: str, brokers: Sequence[int]) -> Stage:
    """Returns the stage in which the offsets log is compacted, and every coordinator loads its groups again.

    Damage of versions has shown only there (KAFKA-20254 in 4.2.0, KAFKA-21117).
    """
    summary = "the offsets log is compacted, every broker restarted, every group loaded again"
    return Stage("reloaded", summary, version, (roll(brokers, version),), compacts=True)


def _more_partitions(added: int) -> Step:
    return Step("partitions-added", "all", at_s=BETWEEN_S, for_s=LOADED_S, options={"added": added}, after=STABLE)


def reconnect(partition: int) -> Step:
    """Returns the end of every connection to the leader of a partition: clients ask other brokers who leads what."""
    return Step("close", f"leader:{partition}", for_s=1.0)


def roll(nodes: Sequence[int], version: str) -> Step:
    """Returns the restart of nodes as a version, one after the other."""
    return Step(ROLL, "all", for_s=0.0, options={"version": version, "brokers": named(nodes)})


def roll_all(version: str) -> Step:
    """Returns the restart of all nodes as a version, whichever is the active controller then last."""
    return Step(ROLL, "all", for_s=0.0, options={"version": version})


def named(nodes: Sequence[int]) -> str:
    """Returns the names of nodes, as faults take them."""
    return ",".join(map(node_name, nodes))


KILLED = Step("kill", ROLES[0], at_s=BETWEEN_S, for_s=2.0)
KILLED_LATER = Step("kill", ROLES[0], at_s=BETWEEN_S, for_s=2.0, after=STABLE)
STALLED = Step("stall", ROLES[0], at_s=BETWEEN_S, for_s=OUTAGE_S, after=STABLE)
