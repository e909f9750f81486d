"""One injection of one fault, with its target, its samples, and its lines in the history.

A fault asks the injection for samples `before`, calls `hold` for the time it is in force (which journals `injected` and
looks inside), and yields evidence. The injection decides nothing: it takes samples, writes each down, hands them on.

`stay_by_logs` tells how a member stays in its group and leaves it, by what the brokers' own request logs have of its
lane. A member that is later for its next poll than max.poll.interval.ms leaves its group: then "the consumer is
considered failed and the group will rebalance" (Kafka, Consumer Configs, max.poll.interval.ms). The client's own thread
sends LeaveGroup (classic) or a heartbeat with the epoch -1, of a static member -2 (KIP-848), while the process lives
and its heartbeats went on before. One that is late for a rebalance is removed by its coordinator instead, and only the
offsets log tells.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from kafka_trial.cluster.kafka_cut import CutRequest, LaneCuts, LaneSeen
from kafka_trial.errors import WaitTimeout
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence, sampling
from kafka_trial.nemesis.broker_log import when_answered
from kafka_trial.nemesis.context import WORKLOAD, FaultContext
from kafka_trial.nemesis.samples import (
    EffectsSnapshot,
    FeatureSnapshot,
    GroupSnapshot,
    LinkSnapshot,
    LogSnapshot,
    MemberStay,
    PageCacheSnapshot,
    Probe,
    ProcessSnapshot,
    StaysSnapshot,
    TopicSnapshot,
    to_details,
)
from kafka_trial.nemesis.targets import Target, member_named
from kafka_trial.process.control_groups import ContainerView
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause, wait_until
from kafka_trial.witness.request_events import GROUP_READERS
from kafka_trial.witness.request_lines import LineError, parse_line

if TYPE_CHECKING:
    from kafka_trial.consumers.consumer import Member

T = TypeVar("T")
S = TypeVar(
    "S",
    LinkSnapshot,
    Probe,
    ProcessSnapshot,
    TopicSnapshot,
    GroupSnapshot,
    LogSnapshot,
    LaneSeen,
    EffectsSnapshot,
    StaysSnapshot,
    FeatureSnapshot,
    PageCacheSnapshot,
)

SETTLE_S = 0.25  # bytes under way at the instant of injection, and acknowledgements the kernel delays, are over by then
LOOK_EVERY_S = 0.5
LOOKS_MAX = 12
OUTLASTING = 1.25  # sessions and poll intervals: one expires at its end, or at the coordinator's next look
STARTS_WITHIN_S = 20.0  # a member's process, from its start to its first connection
LOG_BEFORE_BYTES = 4 * 1024 * 1024  # of a broker's log before the injection, for what connections there were
WITNESSES = {
    LinkSnapshot: "S",
    Probe: "P",
    ProcessSnapshot: "process",
    TopicSnapshot: "metadata",
    GroupSnapshot: "O",
    LogSnapshot: "log ends",
    LaneSeen: "toxics",
    EffectsSnapshot: "sink",
    StaysSnapshot: "R",
    FeatureSnapshot: "features",
    PageCacheSnapshot: "page cache",
}
LEAVE, CONSUMER_HEARTBEAT = "LEAVE_GROUP", "CONSUMER_GROUP_HEARTBEAT"
REBALANCE_IN_PROGRESS: Final = 27  # as an answer to a heartbeat it keeps a session alive as well as any
_API_NAMES: Final = tuple(f'"requestApiKeyName":"{api}"'.encode() for api in GROUP_READERS)


@dataclass(frozen=True)
class Planned:
    """One fault of a plan: `target` is a role; `resolved` the name it had (m1, b2, all) once injected.

    `after`: the condition from which `at_s` counts; `reached_s` when it was met, in seconds of the faults phase.
    """

    no: int
    fault: str
    target: str
    at_s: float
    for_s: float
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    resolved: str | None = None
    after: str = ""
    reached_s: float | None = None


class Actor(Protocol):
    """What has a process: a member or a broker; `pid` leads its process group, or is the first of its container."""

    @property
    def pid(self) -> int: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def container_view(self) -> ContainerView | None:
        """What this machine sees of its container; None: it has none."""
        ...


class Injection:
    """One injection. `target` is what the role meant just before it; `scope` is what its fault breaks, as the registry
    has it, and `consequences` what it does; `rng` draws from the fault's own seed. `session_s` and `poll_interval_s`:
    the longest that the group's members had told the coordinator just before it; None: nothing."""

    def __init__(
        self,
        context: FaultContext,
        planned: Planned,
        target: Target,
        *,
        scope: str,
        consequences: Collection[Consequence],
        stop: threading.Event,
        rng: random.Random,
    ) -> None:
        self.context = context
        self.planned = planned
        self.no = planned.no
        self.fault = planned.fault
        self.for_s = planned.for_s
        self.scope = scope
        self._consequences = sorted(consequences)
        self.target = target
        self.stop = stop
        self.rng = rng
        self._group = sampling.GroupFold(context.offsets_log())
        self._group_before = self._group.look()
        self.session_s, self.poll_interval_s = self._group.session_s(), self._group.poll_interval_s()
        self._commits_counted = self._group.commits
        self._began_ns = time.monotonic_ns()
        self._inodes_before: set[int] = set()
        self.topic_before = TopicSnapshot(0)
        self.links_before: LinkSnapshot | None = None
        self.links_after: LinkSnapshot | None = None
        self.lane_after: LaneSeen | None = None
        self._log_bytes = {number: _size(log) for number, log in context.cluster.request_logs.items()}
        self._requests = context.request_log()
        self._injected = False
        self._injecting = False

    @property
    def clients(self) -> tuple[str, ...]:
        """The members on each of which the effect must be shown; none in particular for a broker's role."""
        return () if self.target.broker is not None else self.target.members

    def member(self) -> Member:
        """Returns the one member that is the target, in its current incarnation."""
        return member_named(self.context, self.target.name)

    def continue_on(self, context: FaultContext, target: Target) -> None:
        """Goes on with another cluster, where the group is now: what is still to be seen is seen there."""
        self.context, self.target = context, target
        self.__dict__.pop("_routes", None)
        self._log_bytes = dict.fromkeys(context.cluster.request_logs, 0)

    def outlast_session(self) -> None:
        """Makes the step last until the session of its member has expired, as far as the coordinator told it."""
        self.for_s = max(self.for_s, OUTLASTING * (self.session_s or 0.0))

    def outlast_poll_interval(self, least_s: float) -> float:
        """Returns 1.25 times the longest poll interval that the coordinator was told of, `least_s` at least, and makes
        the step last so long."""
        longest_s = max(least_s, OUTLASTING * (self.poll_interval_s or 0.0))
        self.for_s = max(self.for_s, longest_s)
        return longest_s

    def hold(self, look: Callable[[], T], *, once: Callable[[], object] | None = None) -> list[T]:
        """Journals `injected`, lets the step's time pass, and returns what `look` saw inside, at least twice.

        `once` is called after the first look. Returns early when the run is stopped.
        """
        self.injected()
        end = time.monotonic() + self.for_s
        pause(min(SETTLE_S, self.for_s / 4), stop=self.stop)
        looks = [look()]
        if once:
            once()
        every_s = max(LOOK_EVERY_S, self.for_s / LOOKS_MAX)
        while len(looks) < 2 or (time.monotonic() < end and not self.stop.is_set()):
            pause(max(0.0, min(every_s, end - time.monotonic())), stop=self.stop)
            looks.append(look())
        return looks

    def hold_until(self, look: Callable[[], T], done: Callable[[list[T]], bool], *, within_s: float) -> list[T]:
        """Holds, and looks on for `within_s` seconds until `done`: what brokers have to detect may outlast the step."""
        looks = self.hold(look)
        end = time.monotonic() + within_s
        while not done(looks) and time.monotonic() < end and not self.stop.is_set():
            pause(LOOK_EVERY_S, stop=self.stop)
            looks.append(look())
        return looks

    def injecting(self, *, time_ns: int | None = None) -> None:
        """Journals the instant at which the fault begins to be put in force, now or at `time_ns`; once."""
        if not self._injecting:
            self._injecting = True
            self.journal("injecting", **({} if time_ns is None else {"time_ns": time_ns}))

    def injected(self, **fields: Any) -> None:
        """Journals the instant from which the fault is in force; once. `fields` replace those that it has otherwise."""
        self.injecting()
        if not self._injected:
            self._injected = True
            self.journal("injected", **{"consequences": self._consequences} | fields)

    def links(self, phase: str) -> LinkSnapshot:
        """S: the live connections of the target's members through its proxies."""
        look = self.keep(phase, self._links(self._routes))
        if phase == "before":
            self.links_before = look
        return look

    def probes(self, phase: str, known: LinkSnapshot | None = None, *, times: int = 1) -> list[Probe]:
        """P: own round trips, `times` each, side by side on every live route: those of `known`, else those live now."""
        live = (known or self._links(self._routes)).routes()
        limit_s = max(1.0, min(3.0, self.for_s))
        found: list[Probe] = []

        def ask(route: tuple[str, int]) -> None:
            found.extend(sampling.probe(self._routes[route], within_s=limit_s) for _ in range(times))

        with ThreadGroup(f"probes of {self.fault}") as thread_group:
            for route in live:
                thread_group.start(f"{route[0]}-b{route[1]}", ask, route)
        return [self.keep(phase, probe) for probe in sorted(found, key=lambda probe: (probe.client, probe.broker))]

    def requests_that_pass(self) -> set[tuple[str, int]]:
        """Routes on which an own request was seen to reach the broker while the fault is in force."""
        live = self._links(self._routes).routes()
        return sampling.requests_that_pass(
            [self._routes[route] for route in live], dump=self.context.cluster.socket_dump
        )

    def process(self, phase: str) -> ProcessSnapshot:
        """The process group of the target: the broker's, or the member's in its current incarnation."""
        if self.target.broker is not None:
            return self.process_of(phase, self.context.cluster.brokers[self.target.broker])
        return self.process_of(phase, self.member())

    def process_of(self, phase: str, actor: Actor) -> ProcessSnapshot:
        """The process group that a member or broker leads, or its container."""
        pid, container, dump = actor.pid, actor.container_view, self.context.cluster.socket_dump
        if phase == "before":
            self._inodes_before = sampling.inodes_of(pid, container, dump=dump)
        before = self._inodes_before
        return self.keep(phase, sampling.process(pid, actor.exit_code, before, container=container, dump=dump))

    def topic(self, phase: str) -> TopicSnapshot:
        """What the brokers say of leaders, coordinator and controller, over the observer's listener.

        Inside, a target that is a broker is not asked: it is down, paused, or knows less than the others.
        """
        without = self.target.broker if phase == "inside" and self.scope == "brokers" else None
        return self.keep(phase, self.context.topic_snapshot(without=without))

    def log(self, phase: str) -> LogSnapshot:
        """What the leaders say of the log of every partition, over the observer's listener."""
        return self.keep(phase, self.context.log_snapshot())

    def features(self, phase: str, feature: str) -> FeatureSnapshot:
        """What each broker answers for a feature, over the observer's listener."""
        return self.keep(phase, self.context.feature_snapshot(feature))

    def group_snapshot(self, phase: str) -> GroupSnapshot:
        """O: the group as the offsets log has it up to now."""
        return self.keep(phase, self._group.look())

    def group_since(self) -> dict[str, Any]:
        """What the offsets log shows of the group since the injection began, for the evidence."""
        now, before = self._group.look(), self._group_before
        return {
            "epoch_before": before.epoch,
            "epoch_after": now.epoch,
            "rebalanced": now.epoch != before.epoch if now.epoch is not None else None,
            "left": sorted(before.member_ids - now.member_ids),
        }

    def stays(self, phase: str, waiting: Sequence[MemberStay]) -> StaysSnapshot:
        """R and O: how members whose effects wait have stayed in their group since the injection began."""
        self._group.look()
        to_monotonic_ns = time.monotonic_ns() - time.time_ns()
        removed_ns = {member_id: at_ns + to_monotonic_ns for member_id, at_ns in self._group.removed_wall_ns.items()}
        stays = (
            stay_by_logs(
                one,
                self._group_requests(one.member),
                member_ids=self._group_before.member_ids,
                removed_ns=removed_ns,
                since_ns=self._began_ns,
            )
            for one in waiting
        )
        return self.keep(phase, StaysSnapshot(time.monotonic_ns(), tuple(stays)))

    def _group_requests(self, member: str) -> Iterator[GroupRequest]:
        """All that a member has asked about its group since shortly before the injection, of whichever broker."""
        lane = member_named(self.context, member).lane.index
        for number, log in self.context.cluster.request_logs.items():
            from_byte = self._log_bytes.get(number, 0) - LOG_BEFORE_BYTES
            if log.exists():  # a broker that may come has none yet
                yield from group_requests(log, lane=lane, group=self.context.group_name, from_byte=from_byte)

    def commits_since(self) -> int:
        """O: how many commits of the group took effect since the last call (the first: since the injection began)."""
        before = self._commits_counted
        self._group.look()
        self._commits_counted = self._group.commits
        return self._commits_counted - before

    def requests_since(self) -> dict[str, int]:
        """R: how many requests of each API the brokers answered on the target's lanes since the last call."""
        lanes = {member_named(self.context, name).lane.index for name in self.target.members}
        return self._requests.count(lanes)

    def asked_to_join(self, *, since_wall_ns: int) -> list[tuple[str, int]]:
        """R: by which APIs the target's client has asked to be in its group, in requests begun since then, and how each
        was answered; of those since the last call."""
        group, lane = self.context.group_name, self.member().lane.index
        return self._requests.asked_to_join(lane, group, since_wall_ns=since_wall_ns)

    def lane_seen(self, phase: str, arming_id: str) -> LaneSeen:
        """What the toxics on the member's proxies have seen of its requests since they were armed so."""
        return self.keep(phase, LaneCuts(self.context.cluster.toxiproxy, self.member().lane).seen(arming_id))

    def answered_ns(self, cut: CutRequest) -> list[int]:
        """When the request that was cut was answered, by its broker's own log, on CLOCK_MONOTONIC; empty: not yet."""
        return when_answered(
            self.context.cluster.request_logs[cut.broker],
            lane=self.member().lane.index,
            api=cut.api,
            correlation_id=cut.correlation_id,
            seen_ns=cut.seen_ns,
            hit_ns=cut.hit_ns,
            from_byte=self._log_bytes.get(cut.broker, 0) - LOG_BEFORE_BYTES,
        )

    def member_again(self) -> None:
        """Starts the target's next incarnation where none runs, and waits until it has come up: till it connects.

        One that never does is told by the traffic that does not come back.
        """
        if self.member().alive:
            return
        self.context.group.restart(self.member())
        with suppress(WaitTimeout):
            wait_until(
                lambda: self.stop.is_set() or self._recovery_look().routes(),
                within_s=STARTS_WITHIN_S,
                what=f"{self.target.name} to connect again",
                every_s=0.1,
            )

    def traffic_within(self, within_s: float) -> float | None:
        """S: after how many seconds bytes had moved both ways on the target's connections, kept or new; None: too late.

        After a broker fell its clients may talk to others, and a group may wait for a session to expire; the load never
        rests. So there the traffic of any client counts, the load's too.
        """
        base = latest = self._recovery_look()

        def again() -> bool:
            nonlocal latest
            # Asked each time: another fault may have a member down by now.
            each = [name for name in self.clients if member_named(self.context, name).alive]
            latest = self._recovery_look()
            return evidence.traffic_again(base, latest, each=each)

        def given_up() -> str | None:
            return "the run was stopped" if self.stop.is_set() else None

        try:
            wait_until(again, within_s=within_s, what=f"traffic after {self.fault}", every_s=0.1, alive=given_up)
        except WaitTimeout:
            return None
        finally:
            self.links_after = self.keep("after", self._recovery_look())
        return (latest.time_ns - base.time_ns) / 1e9

    def keep(self, phase: str, sample: S) -> S:
        """Writes a sample into the history, and returns it."""
        self.journal("sample", phase=phase, witness=WITNESSES[type(sample)], details=to_details(sample), message=None)
        return sample

    def journal(self, kind: str, **fields: Any) -> None:
        """Writes one line about this injection into the history."""
        about: dict[str, Any] = {
            "fault_no": self.no,
            "fault": self.fault,
            "target": f"{self.target.role}: {self.target.name}",
            "member": self.target.name if self.target.name in self.target.members else None,
            "broker": self.target.broker,
            "message": self.target.message,
        }
        self.context.recorder.record(kind, **(about | fields))

    @cached_property
    def _routes(self) -> sampling.Routes:
        return sampling.routes_of(self.context, self.target.routes)

    @cached_property
    def _recovery_routes(self) -> sampling.Routes:
        if self.scope == "members":
            return self._routes
        clients = [*self.target.members, *([WORKLOAD] if self.context.workload_lane else [])]
        return sampling.routes_of(
            self.context, [(name, broker) for name in clients for broker in self.context.cluster.brokers]
        )

    def _recovery_look(self) -> LinkSnapshot:
        return self._links(self._recovery_routes)

    def _links(self, routes: sampling.Routes) -> LinkSnapshot:
        running = [member for member in self.context.group.members if member.alive]
        clients = {member.name: member.address or member.process_group for member in running}
        return sampling.links(routes, clients, dump=self.context.cluster.socket_dump)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A request by which a member joins, keeps or leaves its group; `at_ns`: when it was answered (CLOCK_MONOTONIC).

    `epoch`: of a KIP-848 heartbeat; -1 in other requests. `error`: of the answer, by Kafka's numbers.
    """

    at_ns: int
    api: str
    member_id: str
    epoch: int
    error: int

    @property
    def leave_confirmed(self) -> bool:
        """Whether the coordinator confirmed that the member has left on its own request."""
        return self.error == 0 and (self.api == LEAVE or (self.api == CONSUMER_HEARTBEAT and self.epoch < 0))

    @property
    def membership_confirmed(self) -> bool:
        """Whether the coordinator confirmed that the member is in the group."""
        return not self.leave_confirmed and self.error in (0, REBALANCE_IN_PROGRESS)


def group_requests(log: Path, *, lane: int, group: str, from_byte: int = 0) -> Iterator[GroupRequest]:
    """Yields what a broker's request log has of a lane and a group, from `from_byte` on or its beginning."""
    own_lane = f'"listener":"LANE{lane}"'.encode()
    to_monotonic_ns = time.monotonic_ns() - time.time_ns()
    with log.open("rb") as file:
        file.seek(max(0, from_byte))
        read = file.read()
    for raw in read.splitlines():
        if own_lane not in raw or not any(name in raw for name in _API_NAMES):
            continue
        try:
            line = parse_line(raw)
        except LineError:  # the first line, cut, or the last one, still being written
            continue
        for told in GROUP_READERS[line.api](line.request, line.response):
            if told["group"] == group and told["member_id"]:
                at_ns, epoch = line.source_wall_ns + to_monotonic_ns, told.get("epoch")
                yield GroupRequest(at_ns, line.api, told["member_id"], -1 if epoch is None else epoch, told["error"])


def stay_by_logs(
    stay_so_far: MemberStay,
    requests: Iterable[GroupRequest],
    *,
    member_ids: Collection[str],
    removed_ns: Mapping[str, int],
    since_ns: int,
) -> MemberStay:
    """Returns `stay_so_far` with what brokers' logs tell: when the member left or was removed, from `since_ns` on, and
    when its membership was last confirmed before that, if need be before `since_ns`.

    `requests` are those of its lane, `member_ids` those in the group when the fault began, `removed_ns` the time of the
    last group metadata in the offsets log that left an id out. Of several ids the one that was out first counts.
    """
    by_id: dict[str, list[GroupRequest]] = {}
    for request in requests:
        if request.member_id in member_ids:
            by_id.setdefault(request.member_id, []).append(request)
    stays = [
        _stay(stay_so_far, own, removed_ns.get(member_id), since_ns=since_ns)
        for member_id, own in sorted(by_id.items())
    ]
    return min(stays, key=lambda stay: (stay.out_ns is None, stay.out_ns or 0), default=stay_so_far)


def _stay(
    stay_so_far: MemberStay, requests: Collection[GroupRequest], removed_ns: int | None, *, since_ns: int
) -> MemberStay:
    left_ns = min((one.at_ns for one in requests if one.leave_confirmed and one.at_ns >= since_ns), default=None)
    stay = replace(
        stay_so_far,
        left_ns=left_ns,
        removed_ns=removed_ns if removed_ns is not None and removed_ns >= since_ns else None,
    )
    kept_ns = [
        one.at_ns for one in requests if one.membership_confirmed and (stay.out_ns is None or one.at_ns < stay.out_ns)
    ]
    return replace(stay, kept_ns=max(kept_ns, default=None))
