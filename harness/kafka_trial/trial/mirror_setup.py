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
from kafka_trial.process.waiting import wait_until
from kafka_trial.scenario import Mirror, Topic
from kafka_trial.trial.environment import TrialEnvironment
from kafka_trial.trial.mirror import OWN_RECORDS, MirrorSide, SourceSide
from kafka_trial.trial.setup import cluster_logs_kept
from kafka_trial.trial.topics import create_topic, delete_topic

USED_WITHIN_S: Final = 60.0
OWN_SUFFIX: Final = "-of-mirror"
ONE_COPY: Final = Topic(partitions=1, replication_factor=1, min_insync_replicas=1)
DELETED_RECORDS: Final = 1000  # of each partition of a topic before it is created anew
GONE_WITHIN_S: Final = 15.0


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
    if asked.both_ways:
        settings = replace(settings, own_topics=(f"{environment.topics[0]}{OWN_SUFFIX}",))
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
        side = MirrorSide(source, cluster, admin, lanes, settings, topics, own, begins, environment.move)
        for own_topic in settings.own_topics:
            create_topic(ONE_COPY, cluster, admin, own_topic)
            stack.callback(delete_topic, cluster, admin, own_topic)
            _use_offsets(environment, cluster, own_topic, ONE_COPY.partitions, OWN_RECORDS)
            stack.callback(side.delete_what_came_home)
        if asked.source_topics_recreated:
            _recreate_source_topics(side, environment)
        yield side


def _recreate_source_topics(side: MirrorSide, environment: TrialEnvironment) -> None:
    """Lets MirrorMaker copy records of topics that are deleted then, and creates these anew: what it has noted of
    their offsets is of no record any more. The copies are deleted too: a reader of the mirror never sees them.

    Raises:
        StartError: records could not be written, or topics not be created.
        UnjudgeableError: MirrorMaker did not copy them, or a topic is not gone in time.
    """
    source, scenario = side.source, side.source.trial_spec.scenario
    side.start_mirror_maker()
    for name, topic in zip(source.topics, scenario.topics, strict=True):
        _use_offsets(environment, source.cluster, name, topic.partitions, DELETED_RECORDS)
    side.await_copies()
    side.begins = {place: begin + DELETED_RECORDS for place, begin in side.begins.items()}
    for name, topic in zip(source.topics, scenario.topics, strict=True):
        _delete_and_await(source.admin, name)
        create_topic(topic, source.cluster, source.admin, name)
        copied = {partition: side.begins[name, partition] for partition in range(topic.partitions)}
        side.admin.delete_records(side.named[name], copied)


def _delete_and_await(admin: Admin, name: str) -> None:
    """Deletes a topic, and waits until it is gone."""
    admin.delete_topic(name)
    wait_until(lambda: admin.describe(name) is None, within_s=GONE_WITHIN_S, what=f"{name} to be gone", every_s=0.1)


def _use_offsets(environment: TrialEnvironment, cluster: Cluster, topic: str, partitions: int, count: int) -> None:
    words = [cluster.observer_bootstrap, topic, str(partitions), str(count)]
    argv = [sys.executable, "-m", "kafka_trial.workload.used_offsets", *words]
    child = environment.child_processes.spawn("used offsets", argv, stderr=2)
    if (status := child.wait(within_s=USED_WITHIN_S)) != 0:
        raise StartError(f"the first offsets of {topic} were not used up: their writer ended with {status}")
