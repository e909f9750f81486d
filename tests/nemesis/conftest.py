"""The group that faults are played on, and what stands beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from fault_arena import MEMBERS, SPARE, Arena, group_at_work
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Lane
from kafka_trial.cluster.kafka_cut import cuts_on
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.process.children import ChildProcesses


class AroundProxies(Lane):
    """A lane whose client is told other addresses than those of its proxies: here the first field."""

    @property
    def bootstrap(self) -> str:
        return self.host


@pytest.fixture(scope="module")
def arena(cluster_pool: ClusterPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Starts the groups, their load and the witness of the offsets log."""
    with ExitStack() as stack:
        cluster = stack.enter_context(cluster_pool.cluster_for(DEFAULT_VERSION))
        lanes = stack.enter_context(cluster.lease_lanes(MEMBERS + SPARE + 3))
        stack.enter_context(cuts_on(cluster.toxiproxy, lanes))
        child_processes = stack.enter_context(ChildProcesses("arena"))
        admin = stack.enter_context(Admin(cluster.observer_bootstrap))
        for topic in ("bites", "around"):
            small = {"segment.bytes": "1048576"}  # so that some are written no more before long
            admin.create_topic(f"{cluster.name}-{topic}", partitions=6, replication_factor=3, configs=small)
        *own, load_lane, around_lane, unused_lane = lanes
        direct = AroundProxies(around_lane.index, cluster.observer_bootstrap, around_lane.proxies, around_lane.ports)
        work = tmp_path_factory.mktemp("arena")
        context = stack.enter_context(group_at_work(cluster, admin, child_processes, work / "bites", own, load_lane))
        around = stack.enter_context(
            group_at_work(cluster, admin, child_processes, work / "around", [direct], load_lane)
        )
        yield Arena(context, around, child_processes, unused_lane)
