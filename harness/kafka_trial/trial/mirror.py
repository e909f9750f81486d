"""The mirror of a trial: a second cluster, the MirrorMaker that fills it, and the way of a group to it.

Opened beside the trial, closed with it. Witnesses of the mirror write into a run folder of their own, `mirror` beside
the one of all else (`mirror/joined_history.py` makes one history of both). The group goes there in one of three ways:
by the positions that MirrorMaker has translated, by those of the source copied as they are, or by a time. From then on
the trial is on the mirror: what follows, drain and snapshot included, asks its brokers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster, Lane
from kafka_trial.cluster.mirror_maker import MirrorSettings, mirror_maker
from kafka_trial.errors import StartError, WaitTimeout
from kafka_trial.history.event import Slice
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.mirror.failed_over import PAIRS
from kafka_trial.mirror.joined_history import MIRROR
from kafka_trial.nemesis.fail_over import RAW, TRANSLATED, FailedOver
from kafka_trial.process.children import Child
from kafka_trial.process.waiting import wait_until
from kafka_trial.trial.group_watch import GroupWatch
from kafka_trial.trial.progress import Progress
from kafka_trial.trial.setup import create_topic, delete_topic
from kafka_trial.witness.witness import Witness, start_witnesses

if TYPE_CHECKING:
    from kafka_trial.nemesis.context import FaultContext
    from kafka_trial.trial.environment import TrialEnvironment

TAKEN_WITHIN_S: Final = 60.0
PAIRS_WITHIN_S: Final = 40.0
COPIES_WITHIN_S: Final = 60.0
JOINS_WITHIN_S: Final = 30.0


@dataclass
class MirrorSide:
    """What is open on the mirror during one trial: its cluster, the lanes of the members, and what topics are called
    there, in the order of the source's; `begins`: where each partition's own records begin."""

    environment: TrialEnvironment
    cluster: Cluster
    admin: Admin
    lanes: Sequence[Lane]
    settings: MirrorSettings
    topics: tuple[str, ...]
    folder: RunFolder
    begins: Mapping[Slice, int]
    maker: Child | None = None
    witnesses: Sequence[Witness] = ()

    def start(self) -> None:
        """Starts MirrorMaker, and the witnesses of the mirror; waits until each follows its log.

        Raises:
            StartError: one of them cannot be started.
        """
        environment = self.environment
        self.maker = environment.stack.enter_context(
            mirror_maker(
                environment.child_processes,
                self.settings,
                source=environment.cluster.observer_bootstrap,
                mirror=self.cluster.observer_bootstrap,
                folder=self.folder.logs,
            )
        )
        self.witnesses = start_witnesses(
            environment.child_processes,
            self.cluster,
            folder=self.folder,
            topics=self.topics,
            group=environment.group_name,
            lanes=self.lanes,
        )
        for witness in self.witnesses:
            witness.ready(within_s=30)

    @property
    def context(self) -> FaultContext:
        """What faults may touch and ask on the mirror; the load is not there."""
        return replace(
            self.environment.context,
            cluster=self.cluster,
            admin=self.admin,
            topic=self.topics[0],
            history=self.folder.history,
            workload_lane=None,
        )

    @property
    def lost(self) -> str | None:
        """Why nothing can go on here; None while it does."""
        ended = self.maker is not None and not self.maker.alive
        return f"MirrorMaker exited with {self.maker.exit_code}" if ended and self.maker else self.cluster.lost

    def await_copies(self, *, within_s: float = COPIES_WITHIN_S) -> None:
        """Waits until the mirror has as many records of each partition as the source has now.

        Raises:
            UnjudgeableError: MirrorMaker or the mirror is gone.
            WaitTimeout: it has not in time.
        """
        source = self.environment.source_ends()
        missing = [0]

        def copied() -> bool:
            self.environment.console.progress(f"until the mirror has all records, {missing[0]} missing", left_s=None)
            there = self.ends()
            missing[0] = sum(max(0, self.begins[place] + end - there.get(place, 0)) for place, end in source.items())
            return missing[0] == 0

        wait_until(
            copied,
            within_s=within_s,
            what="the mirror to have the records of its source",
            every_s=0.2,
            detail=lambda: f"{missing[0]} are missing",
            alive=lambda: self.lost,
        )

    def ends(self) -> dict[Slice, int]:
        """Returns where the log of each partition ends on the mirror, by the names of the source."""
        names = zip(self.environment.source_topics, self.topics, strict=True)
        return {
            (name, partition): end
            for name, on_mirror in names
            for partition, end in self.admin.log_ends(on_mirror).items()
        }

    def fail_over(self, way: str, *, planned: bool, margin_s: float) -> FailedOver:
        """Ends the members, and starts them on the mirror, from positions that `way` gives them.

        Raises:
            UnjudgeableError: positions could not be read or written.
        """
        environment = self.environment
        group = environment.group
        committed = {name: environment.admin.committed_offsets(environment.group_name, name) for name in self.named}
        left_ms = time.time_ns() // 1_000_000
        if planned:
            group.leave_all()
        else:
            self._lose_source()
        left_ns = time.monotonic_ns()
        if way != TRANSLATED:
            for name, on_mirror in self.named.items():
                last = environment.admin.committed_offsets(environment.group_name, name)
                since_ms = left_ms - round(1000 * margin_s)
                to = last if way == RAW else self.admin.offsets_since(on_mirror, since_ms)
                self.admin.set_committed_offsets(environment.group_name, on_mirror, to)
        starts = {on: self.admin.committed_offsets(environment.group_name, on) for on in self.named.values()}
        environment.move_to(self)
        group.move_to_cluster(MIRROR, self.lanes, self.topics)
        late = group.wait_ready(JOINS_WITHIN_S, alive=lambda: self.lost)
        return FailedOver(left_ns, _plain(committed), _plain(starts), joined=not late)

    def _lose_source(self) -> None:
        """Takes their cluster from the members, and kills them: whoever starts them elsewhere does not wait."""
        environment = self.environment
        for lane in environment.lanes[:-1]:
            for proxy in lane.proxies.values():
                environment.cluster.toxiproxy.disable(proxy)
        for member in environment.context.members():
            environment.group.kill(member)

    def read_offset_pairs(self) -> None:
        """Writes down the pairs of offsets from which MirrorMaker translates; where they cannot be read, the bound of
        what is done again is not known."""
        environment = self.environment
        argv = [sys.executable, "-m", "kafka_trial.mirror.offset_syncs", self.cluster.observer_bootstrap]
        argv.append(str(self.folder.path / PAIRS))
        with suppress(WaitTimeout), (self.folder.logs / "offset-syncs.stderr").open("wb") as said:
            environment.child_processes.spawn("offset pairs", argv, stderr=said).wait(within_s=PAIRS_WITHIN_S)

    @property
    def named(self) -> dict[str, str]:
        """What each topic is called on the mirror, by its name on the source."""
        return dict(zip(self.environment.source_topics, self.topics, strict=True))

    def progress(self) -> Progress:
        """Returns how far the group is on the mirror, of what is its to do there: from where it began."""
        consumer = self.environment.trial_spec.consumer
        progress = Progress(
            self.environment.folder,
            self.topics,
            self.environment.group_name,
            by_effects=consumer.evidence.sink != "none",
            no_effect=consumer.evidence.no_effect,
            witnessed=self.folder.history,
        )
        for on_mirror in self.topics:
            starts = self.admin.committed_offsets(self.environment.group_name, on_mirror)
            progress.log_starts += [(0, (on_mirror, partition), offset) for partition, offset in starts.items()]
        return progress

    def watch(self) -> GroupWatch:
        """Returns how the group is doing there."""
        spec = self.environment.trial_spec
        return GroupWatch(
            self.environment.folder.history,
            self.environment.group_name,
            spec.consumer,
            spec.successors,
            witnessed=self.folder.history,
        )


def _plain(positions: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    return {
        topic: {str(partition): of_topic[partition] for partition in sorted(of_topic)}
        for topic, of_topic in positions.items()
    }


@contextmanager
def open_mirror(environment: TrialEnvironment, cluster: Cluster, folder: RunFolder) -> Iterator[MirrorSide]:
    """Opens the mirror of a trial on a cluster of its own: topics with their first offsets taken, and lanes.

    Raises:
        StartError: lanes or topics are not to be had.
    """
    trial_spec = environment.trial_spec
    asked = trial_spec.scenario.mirror
    assert asked is not None, "asked by the scenario"
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
        admin = stack.enter_context(Admin(cluster.observer_bootstrap))
        lanes = stack.enter_context(cluster.lease_lanes(trial_spec.lanes - 1))
        begins: dict[Slice, int] = {}
        for name, on_mirror, topic in zip(environment.topics, topics, trial_spec.scenario.topics, strict=True):
            create_topic(replace(topic, replication_factor=1, min_insync_replicas=1), cluster, admin, on_mirror)
            stack.callback(delete_topic, cluster, admin, on_mirror)
            _take_offsets(environment, cluster, on_mirror, topic.partitions, asked.shift)
            taken = dict.fromkeys(range(topic.partitions), asked.shift)
            admin.delete_records(on_mirror, taken)
            begins |= {(name, partition): offset for partition, offset in taken.items()}
        yield MirrorSide(environment, cluster, admin, lanes, settings, topics, own, begins)


def _take_offsets(environment: TrialEnvironment, cluster: Cluster, topic: str, partitions: int, count: int) -> None:
    words = [cluster.observer_bootstrap, topic, str(partitions), str(count)]
    argv = [sys.executable, "-m", "kafka_trial.mirror.taken_offsets", *words]
    child = environment.child_processes.spawn("offsets taken", argv, stderr=2)
    if (status := child.wait(within_s=TAKEN_WITHIN_S)) != 0:
        raise StartError(
            f"the first offsets of {topic} could not be taken on the mirror: its writer ended with {status}"
        )
