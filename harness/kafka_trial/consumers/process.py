"""Members of processes on this machine, or of containers: the group under trial, each member in a lane of its own.

A lane belongs to one member for the whole trial (the brokers' request logs name members by lane), whatever number of
incarnations the member has. What a member is told when it is started stands in its `LaunchContext`: the words behind
the placeholders, and its environment.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

from kafka_trial.cluster.cluster import Lane
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.cluster.wiring import LOOPBACK
from kafka_trial.consumers.consumer import Group, Member, MemberFailure, TargetCluster
from kafka_trial.consumers.member import (
    WROTE_NOTHING,
    Launcher,
    ProcessMember,
    exited,
    is_ready,
    last_words,
    never_assigned,
)
from kafka_trial.consumers.reading_probe import ENGINE_HOLDS_NS, ReadingProbe, reading_probe
from kafka_trial.consumers.spec import ConsumerSpec, ImageLimits, fill
from kafka_trial.containers.container import Container, ContainerSpec
from kafka_trial.containers.network import ContainerNetwork
from kafka_trial.errors import StartError, UnjudgeableError, WaitTimeout
from kafka_trial.history.recorder import EventWriter
from kafka_trial.history.store import RunFolder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until

__all__ = ["Group", "LaunchContext", "ProcessGroup", "process_group"]

HERE = "127.0.0.1"
KILLED_WITHIN_S = 10.0
SETTLED_S = 0.3  # a start ends in several rebalances: ready is who has been left in peace for so long
KNOWN_S = 4.0  # a coordinator counts members that are still joining


class ProcessGroup:
    """All members under trial; made by `process_group`, which also ends it. `group_size` asks the coordinator.

    `launchers`: what starts members, by the file of their spec. A member that joins is of the one that others moved to.
    """

    def __init__(
        self,
        specs: Sequence[ConsumerSpec],
        launch_context: LaunchContext,
        *,
        launchers: Mapping[Path, Launcher],
        thread_group: ThreadGroup,
        lanes: Sequence[Lane],
        folder: RunFolder,
        group_size: Callable[[], int | None] | None,
        probe: ReadingProbe | None = None,
    ) -> None:
        self.specs = tuple(specs)
        self.spec = self.specs[0]
        self.launch_context = launch_context
        self._joins_as = self.spec
        self._launchers = launchers
        self._thread_group = thread_group
        self._lanes = list(lanes)
        self._folder = folder
        self._group_size = group_size
        self._probe = probe
        self._current: dict[str, ProcessMember] = {}
        self._cluster = ""  # the name of that which members are started on, where it is another one
        self._past: list[ProcessMember] = []
        self._left: list[str] = []
        self._known_since_s: float | None = None
        self._known_for_s = 0.0

    @property
    def members(self) -> Sequence[Member]:
        """The current incarnation of every member, by index; one that ended stays listed, not alive."""
        return sorted(self._current.values(), key=lambda member: member.index)

    @property
    def size(self) -> int:
        """How many members the group was given; one of a higher index is an extra member, who joined later."""
        return self.launch_context.members

    @property
    def events(self) -> Sequence[Path]:
        """The history files of all incarnations so far."""
        return [member.recorder.path for member in (*self._past, *self._current.values())]

    @property
    def deserted(self) -> bool:
        """Whether all members have ended by themselves: nobody starts them again."""
        members = self._current.values()
        return bool(members) and all(member.ended and not member.asked_to_stop for member in members)

    @property
    def last_words(self) -> str:
        """What a member wrote last, as a clause that names it: the first member that wrote anything."""
        told = [(member.name, last_words(member)) for _, member in sorted(self._current.items())]
        name, words = next((one for one in told if not one[1].startswith(WROTE_NOTHING)), told[0])
        return f"{name}: {words}"

    def start(self) -> None:
        """Starts all members at once."""
        for index in range(self.launch_context.members):
            self._start(index, self.spec, incarnation=0)

    def wait_ready(self, within_s: float, *, alive: Callable[[], str | None] | None = None) -> list[MemberFailure]:
        """Waits until every member is ready as the spec says; returns who is not, empty when all are.

        Raises:
            UnjudgeableError: what became of a member is not known: the container engine is gone.
        """
        what = "members to be ready"
        with suppress(WaitTimeout):
            wait_until(self._all_ready_or_gone, within_s=within_s, what=what, every_s=0.1, alive=alive)
        gone = self.exits()
        if gone or self._all_ready():
            return gone
        unready = [member for member in self._current.values() if not self._ready(member)]
        return [never_assigned(member, within_s, awaited=self._awaited()) for member in unready]

    def kill(self, member: Member) -> None:
        """kill -9 of its process group; waits until it is gone."""
        current = self._current[member.name]
        current.kill()
        self._wait_ended(current)

    def kill_now(self, name: str) -> None:
        """kill -9 of a member's process group by name, without waiting: what the sink does at a crash point."""
        self._current[name].asked_to_stop = True
        self._current[name].kill()

    def pause(self, member: Member) -> None:
        """SIGSTOP to its process group."""
        self._current[member.name].signal(SIGSTOP)

    def resume(self, member: Member) -> None:
        """SIGCONT to its process group."""
        self._current[member.name].signal(SIGCONT)

    def restart(self, member: Member) -> Member:
        """Starts its next incarnation (killing what still runs of the last) and returns it."""
        return self.move(member, self._current[member.name].spec)

    def move(self, member: Member, spec: ConsumerSpec) -> Member:
        """Starts its next incarnation as another consumer.toml says (killing what still runs of the last) and returns
        it; later ones are of that too."""
        current = self._current[member.name]
        if spec is not current.spec:
            self._joins_as = spec
        if current.alive:
            self.kill(current)
        self._wait_ended(current)
        self._past.append(current)
        if member.name in self._left:
            self._left.remove(member.name)
        return self._start(current.index, spec, incarnation=current.incarnation + 1)

    def move_to_cluster(self, place: TargetCluster) -> None:
        """Starts the next incarnations of all members, which have ended, on another cluster, and later ones too.

        What the coordinator before had said counts no longer.
        """
        for launcher in self._launchers.values():
            if isinstance(launcher, ContainerLauncher) and place.network is not None:
                launcher.network = place.network
        first, *further = place.topics
        self.launch_context = replace(self.launch_context, topic=first, further_topics=tuple(further))
        self._lanes, self._cluster = list(place.lanes), place.name
        self._group_size, self._known_since_s, self._known_for_s = place.group_size, None, 0.0
        for member in [one for one in self.members if one.index < self.size]:
            self.restart(member)

    def join(self) -> Member:
        """Starts a further member on a lane of its own: a free lane, else the one of a further member that left.

        Raises:
            UnjudgeableError: every lane is taken.
        """
        index = max((member.index for member in self._current.values()), default=-1) + 1
        if index < len(self._lanes):
            return self._start(index, self._joins_as, incarnation=0)
        extra_members = [name for name in self._left if self._current[name].index >= self.size]
        if not extra_members:
            raise UnjudgeableError(f"all {len(self._lanes)} lanes have members: lease more lanes for members that join")
        return self.restart(self._current[extra_members[0]])

    def leave(self, member: Member) -> float:
        """Has it stop as the spec says, kills it when it does not, and returns the seconds it took."""
        current = self._current[member.name]
        self._left.append(current.name)
        began = time.monotonic()
        self._ask_to_stop(current)
        self._end(current, by=began + current.spec.stop.within_s)
        return time.monotonic() - began

    def leave_all(self) -> None:
        """Has all members stop as the spec says, at once, and kills those that do not."""
        self._left += [member.name for member in self._current.values() if member.alive]
        self._stop_running()

    def exits(self) -> list[MemberFailure]:
        """Returns who has exited by itself so far, of all incarnations, quoted once all that it wrote has been read.

        Raises:
            UnjudgeableError: what became of a member is not known: the container engine is gone.
        """
        gone = [member for member in (*self._past, *self._current.values()) if not member.alive]
        if lost := next((member.lost for member in gone if member.lost), None):
            raise UnjudgeableError(lost)
        unasked = [member for member in gone if not member.asked_to_stop]
        for member in unasked:
            self._wait_ended(member)
        return [exited(member) for member in unasked]

    def stop(self) -> list[MemberFailure]:
        """Has all members stop as the spec says; returns who had to be killed, and who had exited before.

        Raises:
            UnjudgeableError: what became of a member is not known: the container engine is gone.
        """
        return [*self.exits(), *self._stop_running()]

    def close(self) -> None:
        """Kills what still runs, and waits until every last line has been written."""
        for member in self._current.values():
            if member.alive:
                member.kill()
        for member in self._current.values():
            self._wait_ended(member)

    def _start(self, index: int, spec: ConsumerSpec, *, incarnation: int) -> ProcessMember:
        member = ProcessMember(index, incarnation, self._lanes[index], self._folder, spec)
        values = self._values(member)
        member.start(
            self._launchers[spec.path],
            self._thread_group,
            [fill(part, values) for part in spec.command],
            env=environment(spec, values),
            cwd=spec.folder,
            dialect=spec.evidence.events,
            probe=self._probe,
            cluster=self._cluster,
        )
        self._current[member.name] = member
        return member

    def _values(self, member: ProcessMember) -> dict[str, str]:
        return words(
            member.spec,
            self.launch_context,
            member=member.name,
            incarnation=member.incarnation,
            lane=member.lane,
            run_dir=self._folder.path,
        )

    def _all_ready_or_gone(self) -> bool:
        return self._all_ready() or any(not member.alive for member in self._current.values())

    def _all_ready(self) -> bool:
        members = self._current.values()
        if all(self._ready(member) for member in members):
            moved_s = max(member.ownership_moved_s for member in members)
            return time.monotonic() - moved_s >= SETTLED_S
        self._look_at_group()
        return self._known_for_s >= KNOWN_S

    def _look_at_group(self) -> None:
        """Notes how long the coordinator has known all members: for those that never say that they are assigned.

        From one look to another: one that was not answered says nothing, and neither begins nor ends that time.
        """
        own_sign = self.spec.ready.log or self.spec.ready.http
        size = None if own_sign or self._group_size is None else self._group_size()
        if size is None:
            return
        now_s = time.monotonic()
        known = size >= len(self._current)
        self._known_since_s = (self._known_since_s or now_s) if known else None
        self._known_for_s = now_s - self._known_since_s if self._known_since_s else 0.0

    def _ready(self, member: ProcessMember) -> bool:
        address = member.address or HERE
        ready = member.spec.ready
        url = fill(ready.http or "", self._values(member) | {"address": address})
        return is_ready(member, ready, url=url, by_hand=member.spec.kafka.protocol == "none")

    def _awaited(self) -> str:
        """Returns what a member that is not ready has not shown, as the end of a sentence."""
        ready = self.spec.ready
        if ready.log or ready.http:
            return f"no line matched {ready.log!r}" if ready.log else "its [ready] http did not answer with success"
        known = f"its coordinator was not seen to have {len(self._current)} members in a stable group for {KNOWN_S:g} s"
        silent = self.spec.evidence.events == "none"
        return known if silent else f"it did not say that it has an assignment, and {known}"

    def _stop_running(self) -> list[MemberFailure]:
        """Has those that run stop, all at once; returns who had to be killed."""
        running = [member for member in self._current.values() if member.alive]
        began = time.monotonic()
        for member in running:
            self._ask_to_stop(member)
        stopped = [self._end(member, by=began + member.spec.stop.within_s) for member in running]
        return [failure for failure in stopped if failure]

    def _ask_to_stop(self, member: ProcessMember) -> None:
        member.ask_to_stop(member.spec.stop.number, within_s=member.spec.stop.within_s)

    def _end(self, member: ProcessMember, *, by: float) -> MemberFailure | None:
        asked = f"SIG{member.spec.stop.signal}"
        left_s = max(0.0, by - time.monotonic())
        try:
            wait_until(lambda: not member.alive, within_s=left_s, what=f"{member.name} to stop", every_s=0.01)
        except WaitTimeout:
            message = f"did not stop within {member.spec.stop.within_s:g} s of {asked}: killed"
            member.note_end(message=message, asked="overdue")
            member.signal(SIGKILL)
            self._wait_ended(member)
            return MemberFailure(member.name, member.incarnation, "never-stopped", message)
        self._wait_ended(member)
        return None

    def _wait_ended(self, member: ProcessMember) -> None:
        wait_until(lambda: member.ended, within_s=KILLED_WITHIN_S, what=f"the last line of {member.name}", every_s=0.01)


@contextmanager
def process_group(
    spec: ConsumerSpec,
    launch_context: LaunchContext,
    *,
    child_processes: ChildProcesses,
    lanes: Sequence[Lane],
    folder: RunFolder,
    group_size: Callable[[], int | None] | None = None,
    run: EventWriter | None = None,
    network: ContainerNetwork | None = None,
    successors: Sequence[ConsumerSpec] = (),
) -> Iterator[ProcessGroup]:
    """Yields the members of `spec`, not started yet; kills what is left of them at the end. They may be moved to
    `successors`, which are processes or containers as `spec` is.

    Those of an image are containers on `network`. Member i runs in `lanes[i]`; lanes beyond `launch_context.members`
    are for members that join. `group_size` returns how many members the coordinator knows, 0 while the group is not
    stable, None where it did not answer: for consumers that do not say when they were assigned. How long lines wait to
    be read is measured, and told to `run`.

    Raises:
        StartError: an image, and no network for containers.
    """
    with ExitStack() as stack:
        held_ns = 0 if spec.image is None else ENGINE_HOLDS_NS
        probe = None if run is None else stack.enter_context(reading_probe(child_processes, run, least_ns=held_ns))
        thread_group = stack.enter_context(ThreadGroup("consumers", real_time=True))
        launchers = {
            one.path: stack.enter_context(_launcher(one, child_processes, network, thread_group))
            for one in (spec, *successors)
        }
        group = ProcessGroup(
            (spec, *successors),
            launch_context,
            launchers=launchers,
            thread_group=thread_group,
            lanes=lanes,
            folder=folder,
            group_size=group_size,
            probe=probe,
        )
        try:
            yield group
        finally:
            group.close()


@contextmanager
def _launcher(
    spec: ConsumerSpec, child_processes: ChildProcesses, network: ContainerNetwork | None, thread_group: ThreadGroup
) -> Iterator[Launcher]:
    if spec.image is None:
        yield child_processes
        return
    if network is None:
        raise StartError(f"image {spec.image}: this cluster has no network for containers")
    with container_launcher(spec.image, spec.image_limits, network, thread_group) as launcher:
        yield launcher


# What a command needs of the caller's environment to run at all; everything else is [env] and pass_env.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "JAVA_HOME", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class LaunchContext:
    """What the members are told: the words behind the placeholders. `sink_url` is asked per member; `postgres` are
    those of the trial's PostgreSQL, where there is one; `host`: this machine, as they reach it. `further_topics`: those
    that the group reads besides; `later_topics`: those that it reads once they are there."""

    topic: str
    group: str
    seed: int
    kafka_version: str
    members: int
    sink_url: Callable[[str], str] = lambda member: ""
    postgres: Mapping[str, str] = field(default_factory=dict, repr=False)
    host: str = LOOPBACK
    further_topics: tuple[str, ...] = ()
    later_topics: tuple[str, ...] = ()

    @property
    def topic_pattern(self) -> str:
        """A regular expression of all its topics, and of no other: of those that come later, too."""
        names = "|".join(name.replace(".", r"\.") for name in (*self.topics, *self.later_topics))
        return f"^({names})$"

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that the group reads, the first one first."""
        return self.topic, *self.further_topics


def sink_topic(spec: ConsumerSpec, launch_context: LaunchContext) -> str | None:
    """Returns the name of the topic that the consumer's output goes to; None where it goes elsewhere. {topics} is the
    first one."""
    if spec.evidence.sink != "topic":
        return None
    return fill(spec.sink_topic.name, _words_of_all(spec, launch_context, launch_context.topic))


def intermediate_topics(spec: ConsumerSpec, launch_context: LaunchContext) -> tuple[str, ...]:
    """Returns the names of the topics that the consumer says it hands records on through; a name with {topics} gives
    one per topic."""
    return _of_each(spec.progress.through, spec, launch_context)


def dead_letter_topics(spec: ConsumerSpec, launch_context: LaunchContext) -> tuple[str, ...]:
    """Returns the names of the topics with the records that the consumer gives up; a name with {topics}
    gives one per topic."""
    named = (spec.evidence.dead_letter_topic,) if spec.evidence.dead_letter_topic else ()
    return _of_each(named, spec, launch_context)


def _of_each(names: Sequence[str], spec: ConsumerSpec, launch_context: LaunchContext) -> tuple[str, ...]:
    of_topics = [_words_of_all(spec, launch_context, topic) for topic in launch_context.topics]
    return tuple(dict.fromkeys(fill(name, values) for name in names for values in of_topics))


def words(
    spec: ConsumerSpec, launch_context: LaunchContext, *, member: str, incarnation: int, lane: Lane, run_dir: Path
) -> dict[str, str]:
    """Returns the value of every placeholder that `spec` uses or may use, for one incarnation of a member.

    Raises:
        StartError: it uses {java} or {kafka_classpath} and they cannot be provided.
    """
    brokers = lane.bootstrap.split(",")
    values = _words_of_all(spec, launch_context, ",".join(launch_context.topics)) | {
        "topics_json": json.dumps(launch_context.topics),
        "topic_pattern": launch_context.topic_pattern,
        "bootstrap": lane.bootstrap,
        "bootstrap_json": json.dumps(brokers),
        "bootstrap_first": brokers[0],
        "member": member,
        "incarnation": str(incarnation),
        "client_id": f"kt-{member}",
        "host": launch_context.host,
        "sink_url": launch_context.sink_url(member),
        **launch_context.postgres,
        "python": sys.executable,
        "run_dir": str(run_dir),
    }
    if "java" in spec.placeholders:
        values["java"] = str(find_java())
    if "kafka_classpath" in spec.placeholders:
        values["kafka_classpath"] = class_path(launch_context.kafka_version)
    return values


def _words_of_all(spec: ConsumerSpec, launch_context: LaunchContext, topics: str) -> dict[str, str]:
    return {
        "group": launch_context.group,
        "topics": topics,
        "members": str(launch_context.members),
        "seed": str(launch_context.seed),
        "protocol": spec.kafka.protocol,
        "session_timeout_ms": str(round(spec.kafka.session_timeout_s * 1000)),
        "poll_interval_ms": str(round(spec.kafka.poll_interval_s * 1000)),
        "kafka_version": launch_context.kafka_version,
    }


def environment(spec: ConsumerSpec, values: Mapping[str, str]) -> dict[str, str]:
    """Returns a member's environment: the little it inherits (a container nothing), pass_env, then [env]."""
    inherited = INHERITED if spec.image is None else ()
    passed = {name: os.environ[name] for name in (*inherited, *spec.pass_env) if name in os.environ}
    return passed | {name: fill(text, values) for name, text in spec.env.items()}


class ContainerLauncher:
    """Starts containers of one image; made by `container_launcher`, which also removes them."""

    def __init__(self, image: str, limits: ImageLimits, network: ContainerNetwork, threads: ThreadGroup) -> None:
        self._image = image
        self._limits = limits
        self.network = network  # on which the next ones are put
        self._threads = threads
        self._drawn = secrets.token_hex(2)  # other trials may have members of the same names on this network
        self._started: list[Container] = []

    def spawn(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdout: int, stderr: int
    ) -> Container:
        """Starts one. `argv` stands for the image's own command, where it is not empty; `cwd` is where mounts are.

        Raises:
            StartError: the image is missing, its command is not in it, a limit is refused.
        """
        spec = ContainerSpec(
            name=f"{self.network.name}-{self._drawn}-{name}-{len(self._started)}",
            image=self._image,
            network=self.network.name,
            labels=self.network.labels,
            command=argv or None,
            env=env,
            mounts={str((cwd / place).resolve()): inside for place, inside in self._limits.mounts.items()},
            memory_bytes=self._limits.memory_bytes,
            cpus=self._limits.cpus,
            init=self._limits.init,
            logged=False,  # the run folder has it
        )
        container = Container(self.network.client, spec, self._threads)
        self._started.append(container)
        container.start(stdout=stdout, stderr=stderr)
        return container

    def close(self) -> None:
        """Removes every container, those that still run too."""
        for container in self._started:
            container.remove()


@contextmanager
def container_launcher(
    image: str, limits: ImageLimits, network: ContainerNetwork, threads: ThreadGroup
) -> Iterator[ContainerLauncher]:
    """Yields what starts containers of an image; removes them at the end."""
    launcher = ContainerLauncher(image, limits, network, threads)
    try:
        yield launcher
    finally:
        launcher.close()
