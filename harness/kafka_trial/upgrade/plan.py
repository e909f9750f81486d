"""The plan of an upgrade: which stages it has, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.upgrade.request import UpgradeRequest
from kafka_trial.upgrade.stages import Stage, reloaded, stages_in_place
from kafka_trial.upgrade.successors import moved_stages

BROKERS = (0, 1, 2)  # of a plain cluster


@dataclass(frozen=True)
class StagePlan:
    """The names of all stages, and the stages themselves, on a cluster with an active controller."""

    names: Sequence[str]
    stages: Callable[[BootedCluster, int], Iterable[Stage]]


def in_place(request: UpgradeRequest) -> StagePlan:
    """Returns the stages of an upgrade in place; after it, where consumers have successors, their clients are
    moved; last the offsets log is compacted and loaded again."""

    def stages(brokers: Sequence[int], controller: int) -> Iterator[Stage]:
        yield from stages_in_place(request.before, request.after, brokers=brokers, controller=controller)
        yield from moved_stages(request.after, request.links)
        yield reloaded(request.after, brokers)

    names = [stage.name for stage in stages(BROKERS, BROKERS[-1])]
    return StagePlan(names, lambda cluster, controller: stages(sorted(cluster.brokers), controller))
