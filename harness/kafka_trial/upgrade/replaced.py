"""The stages of an upgrade by replacement: new brokers of the new version join, the old ones leave, controllers stay.

Every address that a client was started with disappears on the way, as with one managed service. Static voters cannot
be exchanged for new nodes (KIP-853), so controllers are nodes of their own and are rolled in place, after the brokers;
on the way back before them. No id is used twice: the way back needs brokers of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from kafka_trial.nemesis import sampling
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.scenario import Step
from kafka_trial.upgrade.broker_changes import REPLACE
from kafka_trial.upgrade.cluster_state import SETTING, Loss
from kafka_trial.upgrade.stages import KILLED, KILLED_LATER, STALLED, Stage, finalised, named, roll

BROKERS: Final = 3
CONTROLLERS: Final = 3
FURTHER: Final = 3 * BROKERS  # there, back, and there again


def stages_replaced(before: str, after: str, *, controllers: Sequence[int], controller: int) -> Iterator[Stage]:
    """Yields the stages from one version to another, back and there again, and that in which features are finalised.

    `controllers` in any order, the active one, `controller`, last of each roll.
    """
    old, new, newer, newest = (range(first, first + BROKERS) for first in range(0, 4 * BROKERS, BROKERS))
    in_order = [*(node for node in controllers if node != controller), controller]
    yield Stage("before", f"Kafka {before}, a member killed", before, steps=(KILLED,))
    for number, (leaving, coming) in enumerate(zip(old, new, strict=True), 1):
        whole = number == BROKERS
        yield Stage(
            "replaced" if whole else f"replaced-{number}",
            f"{'all' if whole else number} of {BROKERS} brokers are new ones of {after}, controllers of {before}",
            after,
            (_replace([leaving], [coming], after),),
            (KILLED_LATER, STALLED) if number == BROKERS - 1 else (),
        )
    summary = f"the controllers are {after} too, nothing is finalised"
    yield Stage("rolled", summary, after, (roll(in_order, after),))
    back = (roll(in_order, before), _replace(new, newer, before))
    yield Stage("rolled-back", f"the controllers are {before} again, all brokers new ones of it", before, back)
    again = (_replace(newer, newest, after), roll(in_order, after))
    yield Stage("forward-again", f"all brokers are new ones of {after}, the controllers {after} again", after, again)
    yield finalised(after, newest[0])


def brokers_at_last() -> range:
    """Returns the ids of the brokers that are left after all stages."""
    return range(FURTHER, FURTHER + BROKERS)


def stranded_members(context: FaultContext) -> list[Loss]:
    """Returns the members that nothing leads to the cluster any more; asked at the end of a stage, after its drain.

    A client finds new brokers by those that it is connected to. One that makes its connections anew, as after a fatal
    error of its producer, has its first addresses alone.
    """
    members, there = context.members(), context.cluster.brokers.keys()
    if not any(member.started_with.isdisjoint(there) for member in members):
        return []
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
                f"every address that {member} was started with is gone, and it has no connection to a broker",
            )


def _replace(leaving: Sequence[int], coming: Sequence[int], version: str) -> Step:
    options = {"brokers": named(leaving), "by": named(coming), "version": version}
    return Step(REPLACE, "all", for_s=0.0, options=options)
