"""The cluster that an upgrade is played on: of processes, or of containers where the consumers are images.

What both versions start from, archives or images, is made before anything starts: nobody waits for it in a stage.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.containers import container_cluster
from kafka_trial.cluster.processes import class_data_archive, process_cluster
from kafka_trial.upgrade.plan import StagePlan
from kafka_trial.upgrade.request import UpgradeRequest


def booted(request: UpgradeRequest, plan: StagePlan) -> AbstractContextManager[BootedCluster]:
    """Returns the cluster of the first version, to be booted; its nodes can become the other one.

    Raises:
        StartError: an archive cannot be trained; when it is entered, see `process_cluster` and `container_cluster`.
    """
    if not request.in_containers:
        for version in (request.before, request.after):
            class_data_archive(version)
        return process_cluster(request.before, lanes=request.lanes, controllers=plan.controllers, further=plan.further)
    consumers = [one for spec in request.specs.values() for one in (spec.consumer, *spec.successors)]
    return container_cluster(
        request.before,
        lanes=request.lanes,
        later=[request.after],
        consumer_images=[one.image for one in consumers if one.image is not None],
        controllers=plan.controllers,
        further=plan.further,
    )
