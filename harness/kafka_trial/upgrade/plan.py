"""The plan of an upgrade: which nodes it needs, and which stages it has, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.cluster import FIRST_CONTROLLER
from kafka_trial.cluster.versions import parse_release
from kafka_trial.compatibility.avoid import must_register_again
from kafka_trial.upgrade.replaced import CONTROLLERS, FURTHER, brokers_at_last, stages_replaced
from kafka_trial.upgrade.request import IN_PLACE, UpgradeRequest
from kafka_trial.upgrade.stages import Stage, partitions_more, registered_again, reloaded, stages_in_place
from kafka_trial.upgrade.successors import moved_stages

BROKERS = (0, 1, 2)  # of a plain cluster


@dataclass(frozen=True)
class StagePlan:
    """The names of all stages, and the stages themselves, on a cluster with an active controller; how many nodes are
    controllers and nothing else, and how many further brokers may join."""

    names: Sequence[str]
    stages: Callable[[BootedCluster, int], Iterable[Stage]]
    controllers: int = 0
    further: int = 0


def make_plan(request: UpgradeRequest) -> StagePlan:
    """Returns the stages of an upgrade, in place or by new brokers; after it, where consumers have successors, their
    clients are moved; then partitions are added where that was asked; last the offsets log is compacted and loaded
    again."""
    if request.shape == IN_PLACE:
        names = [stage.name for stage in _in_place(request, BROKERS, BROKERS[-1])]
        return StagePlan(names, lambda cluster, controller: _in_place(request, sorted(cluster.brokers), controller))
    controllers = [FIRST_CONTROLLER + number for number in range(CONTROLLERS)]
    names = [stage.name for stage in _replaced(request, controllers, controllers[-1])]
    return StagePlan(
        names,
        lambda cluster, controller: _replaced(request, sorted(cluster.controllers), controller),
        controllers=CONTROLLERS,
        further=FURTHER,
    )


def _in_place(request: UpgradeRequest, brokers: Sequence[int], controller: int) -> Iterator[Stage]:
    stages = stages_in_place(request.before, request.after, brokers=brokers, controller=controller)
    yield from _registered(request, stages, brokers)
    yield from _afterwards(request, brokers)


def _replaced(request: UpgradeRequest, controllers: Sequence[int], controller: int) -> Iterator[Stage]:
    stages = stages_replaced(request.before, request.after, controllers=controllers, controller=controller)
    yield from _registered(request, stages, brokers_at_last())
    yield from _afterwards(request, brokers_at_last())


def _registered(request: UpgradeRequest, stages: Iterable[Stage], brokers: Sequence[int]) -> Iterator[Stage]:
    """Yields stages; before features are finalised, the one in which brokers register again, where they must."""
    again = must_register_again(parse_release(request.before), parse_release(request.after))
    for stage in stages:
        if stage.finalises and again:
            yield registered_again(request.after, brokers)
        yield stage


def _afterwards(request: UpgradeRequest, brokers: Sequence[int]) -> Iterator[Stage]:
    yield from moved_stages(request.after, request.links)
    if request.added:
        yield partitions_more(request.after, request.added)
    yield reloaded(request.after, brokers)
