"""Opens the mirror of a trial on a cluster of its own: topics whose first offsets are used up, lanes for members."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster
from kafka_trial.cluster.mirror_maker import MirrorSettings
from kafka_trial.errors import StartError
from kafka_trial.history.event import Slice
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.mirror.joined_history import MIRROR
from kafka_trial.nemesis.fail_over import TRANSLATED
from kafka_trial.scenario import Mirror
from kafka_trial.trial.environment import TrialEnvironment
from kafka_trial.trial.mirror import MirrorSide, SourceSide
from kafka_trial.trial.setup import cluster_logs_kept
from kafka_trial.trial.topics import create_topic, delete_topic

USED_WITHIN_S: Final = 60.0


@contextmanager
def open_mirror(
    environment: TrialEnvironment, asked: Mirror, cluster: Cluster, folder: RunFolder
) -> Iterator[MirrorSide]:
    """Opens the mirror of a trial, which then may fail over to it; `folder` is that of the whole trial.

    Raises:
        StartError: lanes or topics are not to be had.
    """
    trial_spec = environment.trial_spec
    settings = MirrorSettings(
        environment.topics,
        [environment.group_name],
        policy=asked.policy,
        checkpoints_every_s=asked.checkpoints_every_s,
        offset_lag_max=asked.offset_lag_max,
        translates=trial_spec.fails_over in (None, TRANSLATED),
    )
    topics = tuple(map(settings.topic_on_mirror, environment.topics))
    with ExitStack() as stack:
        own = create_run_folder(folder.path / MIRROR, trial_spec.scenario.name, trial_spec.consumer.name)
        stack.enter_context(cluster_logs_kept(cluster, own.logs))
        admin = stack.enter_context(Admin(cluster.observer_bootstrap))
        lanes = stack.enter_context(cluster.lease_lanes(trial_spec.lanes - 1))
        begins: dict[Slice, int] = {}
        for name, on_mirror, topic in zip(environment.topics, topics, trial_spec.scenario.topics, strict=True):
            create_topic(replace(topic, replication_factor=1, min_insync_replicas=1), cluster, admin, on_mirror)
            stack.callback(delete_topic, cluster, admin, on_mirror)
            used = dict.fromkeys(range(topic.partitions), asked.shift)
            _use_offsets(environment, cluster, on_mirror, len(used), asked.shift)
            admin.delete_records(on_mirror, used)
            begins |= {(name, partition): offset for partition, offset in used.items()}
        source = SourceSide(
            trial_spec=trial_spec,
            cluster=environment.cluster,
            admin=environment.admin,
            topics=environment.topics,
            group_name=environment.group_name,
            group=environment.group,
            lanes=environment.lanes,
            folder=environment.folder,
            child_processes=environment.child_processes,
            console=environment.console,
            stack=environment.stack,
        )
        yield MirrorSide(source, cluster, admin, lanes, settings, topics, own, begins, environment.move_to_mirror)


def _use_offsets(environment: TrialEnvironment, cluster: Cluster, topic: str, partitions: int, count: int) -> None:
    words = [cluster.observer_bootstrap, topic, str(partitions), str(count)]
    argv = [sys.executable, "-m", "kafka_trial.workload.used_offsets", *words]
    child = environment.child_processes.spawn("used offsets", argv, stderr=2)
    if (status := child.wait(within_s=USED_WITHIN_S)) != 0:
        raise StartError(
            f"the first offsets of {topic} on the mirror were not used up: their writer ended with {status}"
        )
