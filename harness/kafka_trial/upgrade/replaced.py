"""The stages of an upgrade by replacement: new brokers of the new version join, the old ones leave, controllers stay.

Every address that a client was started with disappears on the way, as with one managed service. Static voters cannot
be exchanged for new nodes (KIP-853), so controllers are nodes of their own and are rolled in place, after the brokers;
on the way back before them. Ids are never used twice: the way back needs brokers of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from kafka_trial.cluster.cluster import node_name
from kafka_trial.nemesis import sampling
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.scenario import Step
from kafka_trial.upgrade.cluster_state import SETTING, Loss
from kafka_trial.upgrade.stages import KILLED, KILLED_LATER, STALLED, Stage

BROKERS: Final = 3
CONTROLLERS: Final = 3
FURTHER: Final = 2 * BROKERS  # there and back
REPLACE, ROLL = "broker-replace", "version-roll"


@dataclass(frozen=True)
class Replacing:
    """A stage, and the steps that are played once for all groups before those of its own."""

    stage: Stage
    shared: tuple[Step, ...] = ()


def stages_replaced(
    before: str, after: str, *, brokers: Sequence[int], controllers: Sequence[int], controller: int
) -> Iterator[Replacing]:
    """Yields the stages from one version to another and back, as far as nothing is finalised.

    `controllers` in any order, the active one, `controller`, last of each roll. New brokers have the ids after those of
    `brokers`: as many as those for the way there, and as many again for the way back.
    """
    count, first = len(brokers), max(brokers) + 1
    new, newer = range(first, first + count), range(first + count, first + 2 * count)
    in_order = [*(node for node in controllers if node != controller), controller]
    yield Replacing(Stage("before", f"Kafka {before}, a member killed", before, steps=(KILLED,)))
    for number, (leaving, coming) in enumerate(zip(brokers, new, strict=True), 1):
        whole = number == count
        yield Replacing(
            Stage(
                "replaced" if whole else f"replaced-{number}",
                f"{'all' if whole else number} of {count} brokers are new ones of {after}, controllers of {before}",
                after,
                steps=(KILLED_LATER, STALLED) if number == count - 1 else (),
            ),
            (_replace([leaving], [coming], after),),
        )
    yield Replacing(
        Stage("controllers-rolled", f"the controllers are {after} too, nothing is finalised", after),
        (_roll(in_order, after),),
    )
    yield Replacing(
        Stage("controllers-back", f"the controllers are {before} again", before), (_roll(in_order, before),)
    )
    yield Replacing(
        Stage("replaced-back", f"all brokers are new ones of {before}", before), (_replace(new, newer, before),)
    )


def stranded_members(context: FaultContext) -> list[Loss]:
    """Returns the members that nothing leads to the cluster any more; asked at the end of a stage, after its drain.

    A client finds new brokers by those that it is connected to. One that makes its connections anew, as after a fatal
    error of its producer, has its first addresses alone.
    """
    members, there = context.members(), context.cluster.brokers.keys()
    routes = sampling.routes_of(context, [(member.name, broker) for member in members for broker in sorted(there)])
    clients = {member.name: member.address or member.process_group for member in members}
    connected = {client for client, _ in sampling.links(routes, clients, dump=context.cluster.socket_dump).routes()}
    return [*stranded({member.name: member.started_with for member in members}, there, connected)]


def stranded(
    started_with: Mapping[str, AbstractSet[int]], there: Collection[int], connected: Collection[str]
) -> Iterator[Loss]:
    """Yields the members all of whose first brokers are gone, and that are connected to no other."""
    for member, first in sorted(started_with.items()):
        if first.isdisjoint(there) and member not in connected:
            yield Loss(
                SETTING,
                f"every address that {member} was started with is gone, and it has no connection to a broker: give "
                "clients an address that lasts, or start them again before the last old broker leaves",
            )


def _replace(leaving: Sequence[int], coming: Sequence[int], version: str) -> Step:
    options = {"brokers": _names(leaving), "by": _names(coming), "version": version}
    return Step(REPLACE, "all", for_s=0.0, options=options)


def _roll(nodes: Sequence[int], version: str) -> Step:
    return Step(ROLL, "all", for_s=0.0, options={"version": version, "brokers": _names(nodes)})


def _names(nodes: Sequence[int]) -> str:
    return ",".join(node_name(node) for node in nodes)
