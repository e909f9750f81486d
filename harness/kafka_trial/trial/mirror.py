"""The mirror of a trial: a second cluster, the MirrorMaker that fills it, and the way of the group to it.

Witnesses of the mirror write into a run folder of their own (`mirror/joined_history.py` makes one history of both). The
group goes there in one of three ways: by the positions that MirrorMaker has translated, by those of the source copied
as they are, or by a time. From then on the trial is on the mirror: what follows, drain and snapshot included, asks its
brokers; unless the group goes back. Opened by `mirror_setup.py`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster, Lane
from kafka_trial.cluster.mirror_maker import ENDS_WITHIN_S, MirrorSettings, mirror_maker
from kafka_trial.consumers.consumer import Group, TargetCluster
from kafka_trial.errors import KafkaTrialError, UnjudgeableError, WaitTimeout
from kafka_trial.history.event import Slice
from kafka_trial.history.store import RunFolder
from kafka_trial.mirror.fail_over_event import OFFSET_SYNCS
from kafka_trial.mirror.joined_history import MIRROR, SOURCE
from kafka_trial.nemesis.fail_over import BY_TIMESTAMP, RAW, TRANSLATED
from kafka_trial.nemesis.samples import FailOverOutcome
from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.trial.console import Console
from kafka_trial.trial.group_watch import GroupWatch
from kafka_trial.trial.progress import Progress
from kafka_trial.trial.spec import TrialSpec
from kafka_trial.trial.topics import delete_topics_made
from kafka_trial.witness.witness import Witness, start_witnesses

if TYPE_CHECKING:
    from kafka_trial.nemesis.context import FaultContext

SYNCS_READ_WITHIN_S: Final = 40.0
COPIES_WITHIN_S: Final = 60.0
JOINS_WITHIN_S: Final = 30.0
OWN_RECORDS: Final = 500  # of the mirror's own topic
HOME_WITHIN_S: Final = 30.0
HOME: Final = "came-home.json"  # in the run folder of the mirror: what of its records was copied to the source
INTERNAL: Final = "mm2-"  # MirrorMaker's own topics
EMPTY_WITHIN_S: Final = 60.0  # members that were killed on the source are in its group until their sessions expire


@dataclass(frozen=True)
class SourceSide:
    """What a mirror needs of the trial whose topics it has, which begins on the source; `stack` is closed with it."""

    trial_spec: TrialSpec
    cluster: Cluster
    admin: Admin
    topics: tuple[str, ...]
    group_name: str
    group: Group
    lanes: Sequence[Lane]
    folder: RunFolder
    child_processes: ChildProcesses
    console: Console
    stack: ExitStack


@dataclass
class MirrorSide:
    """What is open on the mirror during one trial: its cluster, the lanes of the members, and what topics are called
    there, in the order of the source's.

    `begins`: where each partition's own records begin, by the names of the source. `on_move` is called when the
    members have left one cluster, before they are started on the other; with whether that is the source again.
    """

    source: SourceSide
    cluster: Cluster
    admin: Admin
    lanes: Sequence[Lane]
    settings: MirrorSettings
    topics: tuple[str, ...]
    folder: RunFolder
    begins: Mapping[Slice, int]
    on_move: Callable[[bool], None]
    maker: Child | None = field(default=None)
    has_group: bool = False  # it is here now
    witnesses: Sequence[Witness] = ()

    @property
    def named(self) -> dict[str, str]:
        """What each topic is called on the mirror, by its name on the source."""
        return dict(zip(self.source.topics, self.topics, strict=True))

    @property
    def lost(self) -> str | None:
        """Why nothing can go on: MirrorMaker or one of the clusters has ended; None while it can."""
        if self.maker is not None and not self.maker.alive:
            return f"MirrorMaker exited with {self.maker.exit_code}"
        return self.cluster.lost or self.source.cluster.lost

    def start_mirror_maker(self) -> None:
        """Starts MirrorMaker, which copies from now on.

        Raises:
            InputError: one of its jars is not the committed one.
            StartError: it cannot be started.
        """
        self.maker = self.source.stack.enter_context(
            mirror_maker(
                self.source.child_processes,
                self.settings,
                source=self.source.cluster.observer_bootstrap,
                mirror=self.cluster.observer_bootstrap,
                folder=self.folder.logs,
            )
        )

    def start(self) -> None:
        """Starts MirrorMaker, unless it runs, and the witnesses of the mirror; waits until each follows its log.

        Raises:
            InputError: a jar of MirrorMaker is not the committed one.
            StartError: one of them cannot be started.
        """
        if self.maker is None:
            self.start_mirror_maker()
        self.witnesses = start_witnesses(
            self.source.child_processes,
            self.cluster,
            folder=self.folder,
            topics=self.topics,
            group=self.source.group_name,
            lanes=self.lanes,
        )
        for witness in self.witnesses:
            witness.ready(within_s=30)

    def await_copies(self, *, within_s: float = COPIES_WITHIN_S) -> None:
        """Waits until the mirror has as many records of each partition as the source has now.

        Raises:
            WaitTimeout: it has not in time, or MirrorMaker or a cluster is gone.
        """
        ends = {
            (name, partition): end
            for name in self.source.topics
            for partition, end in self.source.admin.log_ends(name).items()
        }
        missing = [0]

        def copied() -> bool:
            self.source.console.progress(f"until the mirror has all records, {missing[0]} missing", left_s=None)
            there = self._ends()
            missing[0] = sum(max(0, self.begins[place] + end - there.get(place, 0)) for place, end in ends.items())
            return missing[0] == 0

        wait_until(
            copied,
            within_s=within_s,
            what="the mirror to have the records of its source",
            every_s=0.2,
            detail=lambda: f"{missing[0]} are missing",
            alive=lambda: self.lost,
        )

    def _ends(self) -> dict[Slice, int]:
        """Returns where the log of each partition ends on the mirror, by the names of the source."""
        return {
            (name, partition): end
            for name, on_mirror in self.named.items()
            for partition, end in self.admin.log_ends(on_mirror).items()
        }

    # --- the way there, and back ------------------------------------------------------------------------------------

    def fail_over(self, way: str, *, planned: bool, margin_s: float) -> FailOverOutcome:
        """Ends the members, and starts them on the mirror, from positions that `way` gives them.

        Raises:
            UnjudgeableError: positions could not be read or written.
        """
        source = self.source
        since_ms = time.time_ns() // 1_000_000 - round(1000 * margin_s)
        if planned:
            source.group.leave_all()
        else:
            self._lose_source()
        left_ns = time.monotonic_ns()
        with self._started_again_on_error():
            if way != TRANSLATED:
                self._write_positions(way, since_ms=since_ms)
            self.on_move(False)
        return self._gone_on(left_ns, back=False)

    def fail_back(self, way: str, *, margin_s: float) -> FailOverOutcome:
        """Ends the members, and starts them on the source, from the positions that they had left there or, by way of a
        time, from others.

        Raises:
            UnjudgeableError: the group is not on the mirror, or positions could not be read or written.
            WaitTimeout: the group on the source still had members.
        """
        source = self.source
        if not self.has_group:
            raise UnjudgeableError("the group is not on the mirror: it cannot go back")
        since_ms = time.time_ns() // 1_000_000 - round(1000 * margin_s)
        source.group.leave_all()
        left_ns = time.monotonic_ns()
        with self._started_again_on_error():
            self._regain_source()
            if way == BY_TIMESTAMP:
                for name in source.topics:
                    to = source.admin.offsets_since(name, since_ms)
                    source.admin.set_committed_offsets(source.group_name, name, to)
            self.on_move(True)
        return self._gone_on(left_ns, back=True)

    def context_after(self, context: FaultContext, *, back: bool = False) -> FaultContext:
        """Returns what faults may touch and ask since the group is on the mirror, where the load is not, or `back`."""
        side = self.side(back)
        return replace(
            context,
            cluster=side.cluster,
            admin=side.admin,
            topic=side.topics[0],
            history=side.folder.history,
            workload_lane=side.lanes[-1] if back else None,
        )

    def side(self, back: bool) -> SourceSide | MirrorSide:
        """Returns the side that a group comes to that fails over, or goes back."""
        return self.source if back else self

    def _gone_on(self, left_ns: int, *, back: bool) -> FailOverOutcome:
        """Starts the members, which had left then, on the other side."""
        group, name, side = self.source.group, self.source.group_name, self.side(back)
        self.has_group = not back
        group.move_to_cluster(
            TargetCluster(
                SOURCE if back else MIRROR,
                side.lanes,
                side.topics,
                lambda: side.admin.stable_size(name),
                side.cluster.container_network,
            )
        )
        late = group.wait_ready(JOINS_WITHIN_S, alive=lambda: self.lost)
        return FailOverOutcome(left_ns, joined=not late)

    def _lose_source(self) -> None:
        """Takes their cluster from the members, and kills them: whoever starts them elsewhere does not wait."""
        for lane in self.source.lanes[:-1]:
            for proxy in lane.proxies.values():
                self.source.cluster.toxiproxy.disable(proxy)
        for member in self.source.group.members:
            if member.alive:
                self.source.group.kill(member)

    def _regain_source(self) -> None:
        """Gives the members their cluster back, and waits until their group has no member there any more: positions are
        taken from those who are in none, and those who come must not wait for those who had been killed."""
        source = self.source
        for lane in source.lanes[:-1]:
            source.cluster.toxiproxy.reset(lane.proxies.values())
        wait_until(
            lambda: source.admin.group_state(source.group_name) in (None, "Empty", "Dead"),
            within_s=EMPTY_WITHIN_S,
            what="the group to be empty on the source",
            every_s=0.25,
            alive=lambda: self.lost,
        )

    @contextmanager
    def _started_again_on_error(self) -> Iterator[None]:
        """Where the body fails, starts the members again where they were: they are not to blame for having ended."""
        source = self.source
        try:
            yield
        except KafkaTrialError:
            for lane in source.lanes[:-1]:
                source.cluster.toxiproxy.reset(lane.proxies.values())
            for member in source.group.members:
                if not member.alive:
                    source.group.restart(member)
            raise

    def _write_positions(self, way: str, *, since_ms: int) -> None:
        source = self.source
        for name, on_mirror in self.named.items():
            last = source.admin.committed_offsets(source.group_name, name)
            to = last if way == RAW else self.admin.offsets_since(on_mirror, since_ms)
            self.admin.set_committed_offsets(source.group_name, on_mirror, to)

    # --- what is asked there ----------------------------------------------------------------------------------------

    def progress(self, *, back: bool = False) -> Progress:
        """Returns how far the group is on the mirror, or back on the source, of what is its to do there: from where it
        began."""
        source, consumer = self.source, self.source.trial_spec.consumer
        side = self.side(back)
        progress = Progress(
            source.folder,
            side.topics,
            source.group_name,
            by_effects=consumer.evidence.sink != "none",
            no_effect=consumer.evidence.no_effect,
            witnessed=side.folder.history,
        )
        for topic in side.topics:
            starts = side.admin.committed_offsets(source.group_name, topic)
            progress.log_starts += [(0, (topic, partition), offset) for partition, offset in starts.items()]
        return progress

    def watch(self, *, back: bool = False) -> GroupWatch:
        """Returns how the group is doing on the mirror, or back on the source."""
        source, spec = self.source, self.source.trial_spec
        places = source.folder.history, source.group_name, spec.consumer, spec.successors
        return GroupWatch(*places, witnessed=self.side(back).folder.history)

    def came_home(self) -> str | None:
        """Writes down what the source has of the mirror's records, where MirrorMaker copies both ways; returns what is
        wrong with it: the mirror's own must be there once, and none that it had from the source."""
        if not self.settings.own_topics:
            return None
        admin, name = self.source.admin, self.settings.own_topics[0]
        on_source, copies = f"{MIRROR}.{name}", [f"{MIRROR}.{topic}" for topic in self.topics]
        with suppress(WaitTimeout):
            wait_until(
                lambda: on_source in admin.topics() and sum(admin.log_ends(on_source).values()) >= OWN_RECORDS,
                within_s=HOME_WITHIN_S,
                what="the mirror's own records to come to the source",
                every_s=0.2,
            )
        there = admin.topics()
        found = {
            "own_records": OWN_RECORDS,
            "came_home": sum(admin.log_ends(on_source).values()) if on_source in there else 0,
            "copied_back": sum(sum(admin.log_ends(topic).values()) for topic in copies if topic in there),
        }
        self.folder.write_json(HOME, found)
        if found["came_home"] == OWN_RECORDS and not found["copied_back"]:
            return None
        return (
            f"of the mirror's own {OWN_RECORDS:,} records {found['came_home']:,} came to the source, and "
            f"{found['copied_back']:,} of those that it had from there"
        )

    def delete_what_came_home(self) -> None:
        """Deletes what MirrorMaker has made on the source, which other trials may use after this one."""
        if self.maker is not None:
            self.maker.end(within_s=ENDS_WITHIN_S)  # else it would make them again
        source = self.source
        delete_topics_made(source.cluster, source.admin, (INTERNAL, f"{MIRROR}."), frozenset())

    def read_offset_syncs(self) -> None:
        """Writes down the offset syncs from which MirrorMaker translates; where they cannot be read, nobody knows
        from where the group had to begin."""
        argv = [sys.executable, "-m", "kafka_trial.witness.offset_syncs", self.cluster.observer_bootstrap]
        argv.append(str(self.folder.path / OFFSET_SYNCS))
        with suppress(WaitTimeout), (self.folder.logs / "offset-syncs.stderr").open("wb") as said:
            self.source.child_processes.spawn("offset syncs", argv, stderr=said).wait(within_s=SYNCS_READ_WITHIN_S)
