"""The trial environment: everything one trial opens, in one place, closed in reverse order whatever happens.

Opened by `open_trial_environment` (`setup.py`): child processes, the `run` recorder with its clock, leased lanes, a
fresh topic and group, the sink and the members. `run.py` tells the story on it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.broker_exits import ended_by_themselves
from kafka_trial.cluster.cluster import BrokerHandle, Cluster, Lane
from kafka_trial.cluster.postgres import PostgresServer
from kafka_trial.cluster.toxiproxy import ProxyLog
from kafka_trial.consumers.consumer import NEVER_ASSIGNED, Group, MemberFailure
from kafka_trial.errors import KafkaTrialError, UnjudgeableError, WaitTimeout
from kafka_trial.history.event import Slice
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.model.drain_backlog import DrainBacklog, slowest_backlog
from kafka_trial.model.liveness_bounds import FRESH_MIN, NO_BACKLOG, Timing, convergence_bound_s
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.schedule import Plan, plan_to_table, run_schedule
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause, wait_until
from kafka_trial.scenario import Burst
from kafka_trial.trial.console import Console
from kafka_trial.trial.control_member import control_member_joins
from kafka_trial.trial.drain import DrainBounds
from kafka_trial.trial.group_watch import GroupWatch
from kafka_trial.trial.mirror import MirrorSide
from kafka_trial.trial.progress import DrainWatch, FreshRecords, Progress
from kafka_trial.trial.spec import TrialSpec
from kafka_trial.trial.topics import create_topic
from kafka_trial.witness.witness import IntermediateTopicsRead, SinkRead, Witness, snapshot_all, start_witnesses
from kafka_trial.workload.handle import BorrowedLoad, ProducerHandle, counts_in_words, start_producer
from kafka_trial.workload.payload import OURS, PayloadFiles
from kafka_trial.workload.workload import TopicLoad

WORKLOAD_FILE = "workload.jsonl"
IN_KAFKA = ("kafka", "transaction")  # kinds of progress whose positions are in the offsets log
SNAPSHOT_WITHIN_S = 60.0
LOAD_STOPS_WITHIN_S = 30.0
CALIBRATION_WITHIN_S = 30.0
CONTROL_WITHIN_S = 20.0
SETTLED_S = 1.0
SETTLED_INTERVALS = 1.1  # of its commits: whoever commits by a clock has committed once more
FED_WITHIN_S = 15.0
REJOIN_MARGIN_S = 2.0  # the judge counts until the snapshot, and with a sample more of who waited for a processor
LOST_WITHIN_S = 1.0  # a connection breaks before the end of what held it is told
ROOM_MIN_BYTES = 16 * 1024 * 1024  # what the last events and the brokers' logs of a trial need


@dataclass
class TrialEnvironment:
    """What is open during one trial."""

    trial_spec: TrialSpec
    cluster: Cluster
    folder: RunFolder
    console: Console
    run: Recorder
    child_processes: ChildProcesses
    admin: Admin
    topics: tuple[str, ...]  # those that the group reads, the first one first; also those that come later
    group_name: str
    lanes: Sequence[Lane]
    group: Group
    context: FaultContext
    progress: Progress
    watch: GroupWatch
    stack: ExitStack
    payload: PayloadFiles = OURS
    output: SinkRead | None = None
    through: IntermediateTopicsRead | None = None
    postgres: PostgresServer | None = None
    witnesses: Sequence[Witness] = ()
    rate_per_s: float | None = None
    calibrated_within_s: float = 0.0  # how long the opening burst and its drain took
    opening_burst: Mapping[Slice, int] = field(default_factory=dict)  # its records, by partition
    stage: str | None = None  # of an upgrade: whose phases begin now
    staged: bool = False  # it has several stages: each snapshot reads the whole topic
    abandoned: str | None = None  # why every wait of it is to end: it is played in a thread, which hears no Ctrl-C
    beside: TrialEnvironment | None = None  # of a further group: the trial whose topics and load these are
    mirror: MirrorSide | None = None  # the cluster to which the group may fail over
    absent: set[str] = field(default_factory=set)  # the topics that are not there yet
    played: Plan | None = None  # what it played itself, and what its roles were
    _producer: ProducerHandle | BorrowedLoad | None = field(default=None)
    _failures_noted: list[MemberFailure] = field(default_factory=list)

    @property
    def producer(self) -> ProducerHandle | BorrowedLoad:
        assert self._producer is not None, "started by `start_workload`"
        return self._producer

    def timing(self, *, backlog: DrainBacklog = NO_BACKLOG) -> Timing:
        """Returns what the bounds of convergence follow from."""
        return self.watch.update().timing(backlog=backlog, movements=self.progress.moves.movements)

    def drain_bounds(self, ends: Mapping[Slice, int]) -> DrainBounds:
        """Returns the bounds of a drain that begins now, with all below `ends` to be done.

        As the judge does, it counts what is neither handled nor committed past, as far as either can be seen.
        """
        in_kafka, began_ns = self.trial_spec.consumer.progress.kind in IN_KAFKA, time.monotonic_ns()
        by_handled = not (in_kafka and self._is_silent)

        def timing() -> Timing:
            left = self.progress.update().backlog(ends, at_ns=began_ns, by_commits=in_kafka, by_handled=by_handled)
            return self.timing(backlog=self._backlog(left))

        return DrainBounds(self.run, ends, self.progress, self.watch, timing, began_ns)

    def due_s(self, ends: Mapping[int, int]) -> float:
        """Returns how long the group may take, by its claim, until it has done all below `ends` of its first topic.

        The history is read anew, from its beginning: a fault asks, in a thread of its own.
        """
        left = (
            self.progress.anew().update().undone({(self.topics[0], partition): end for partition, end in ends.items()})
        )
        return convergence_bound_s(self._watched_anew().timing(backlog=self._backlog(left)))

    def busier_s(self, since_ns: int) -> float:
        """Returns how much longer members and brokers have waited for a processor since then than they did before.

        Of the history, as above.
        """
        return self._watched_anew().busier_s(since_ns=since_ns, now_ns=time.monotonic_ns())

    def _backlog(self, left: Mapping[Slice, int]) -> DrainBacklog:
        return slowest_backlog(left.items(), self.rate_per_s, self.opening_burst, topic_of=itemgetter(0))

    def _watched_anew(self) -> GroupWatch:
        spec = self.trial_spec
        return GroupWatch(self.folder.history, self.group_name, spec.consumer, spec.successors).update()

    @property
    def _is_silent(self) -> bool:
        """Whether nothing tells what the consumer handles: it prints no events, and has no sink."""
        evidence = self.trial_spec.consumer.evidence
        return evidence.sink == "none" and evidence.events == "none"

    @property
    def _transactions(self) -> bool:
        """Whether transactions must be followed: the consumer's progress is in its own, or ours are aborted."""
        trial_spec = self.trial_spec
        return trial_spec.consumer.progress.kind == "transaction" or trial_spec.scenario.load.aborted_ratio > 0

    def ends(self) -> Mapping[Slice, int]:
        """Returns the position after the last record of each partition that there is to read now."""
        return self.progress.update().ends(self._log_ends())

    def _log_ends(self) -> dict[Slice, int]:
        ends = ((topic, self.admin.log_ends(topic)) for topic in self.topics if topic not in self.absent)
        return {(topic, partition): end for topic, of_topic in ends for partition, end in of_topic.items()}

    def move(self, back: bool) -> None:
        """Goes on with the mirror in the place of the cluster, or with that again: what is asked, awaited and healed is
        there now."""
        mirror = self.mirror
        assert mirror is not None, "opened by `open_mirror`"
        side, progress, watch = mirror.side(back), mirror.progress(back=back), mirror.watch(back=back)  # it may fail
        named = dict(zip(self.topics, side.topics, strict=True))
        self.opening_burst = {
            (named[topic], partition): count for (topic, partition), count in self.opening_burst.items()
        }
        self.cluster, self.admin, self.topics, self.lanes = side.cluster, side.admin, side.topics, side.lanes
        self.progress, self.watch = progress, watch

    def create_later_topic(self, name: str) -> None:
        """Creates a topic that comes later, by its name in the scenario, and begins its load; any thread may ask it."""
        topics = zip(self.topics, self.trial_spec.scenario.topics, strict=True)
        topic, asked = next((topic, asked) for topic, asked in topics if topic == f"{self.topics[0]}-{name}")
        with Admin(self.cluster.observer_bootstrap) as admin:
            create_topic(asked, self.cluster, admin, topic)
        self.record("topic_named", topic=topic, later=True)
        self.producer.begin_topic(topic)
        self.absent.discard(topic)

    def record(self, kind: str, **fields: Any) -> None:
        """Writes an event of the source `run`."""
        self.run.record(kind, **fields)

    def phase(self, name: str, what: str) -> None:
        """Begins a phase: in the history and on the screen."""
        self.record("phase", phase=name, stage=self.stage)
        self.console.phase(name, what)

    def clock_s(self) -> float:
        """Returns the monotonic clock in seconds."""
        return time.monotonic()

    def let_pass(self, seconds: float, what: str) -> None:
        """Lets scheduled time pass, telling how the lag goes."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self._expect_witnesses()
            handled = self.progress.update().handled_total()
            self.console.progress(f"{what}, {handled} records handled", left_s=left_s)
            pause(min(0.25, left_s))

    def start_witnesses(self) -> None:
        """Starts the witnesses and waits until each follows its log from the first record."""
        self.witnesses = start_witnesses(
            self.child_processes,
            self.cluster,
            folder=self.folder,
            topics=self.topics,
            later=self.absent,
            group=self.group_name,
            lanes=self.lanes,
            transactions=self._transactions,
            sink=self.output,
            through=self.through,
            reads_anew=self.staged,
        )
        for witness in self.witnesses:
            witness.ready(within_s=30)
        if self.mirror is not None:
            self.mirror.start()
            self.witnesses = (*self.witnesses, *self.mirror.witnesses)

    def start_members(self) -> bool:
        """Starts the members; False, and their failures in the history, when they never got to work.

        Then a control member of ours tries to join the same cluster: only if it can, the failure is the consumer's.

        Raises:
            UnjudgeableError: a witness has died meanwhile, or the disk is full.
        """
        proxies = ProxyLog.from_now(self.cluster.folder / "toxiproxy.log")
        self.group.start()
        failures = self.group.wait_ready(self.trial_spec.scenario.limits.ready_s, alive=self._witnesses_lost)
        self._expect_witnesses()
        if failures:
            self.record("control_member", state="joined" if self._control_member_joins() else "failed")
        lanes = {member.name: self.lanes[member.index] for member in self.group.members}
        for failure in failures:
            opened = (
                proxies.accepted(lanes[failure.member].proxies.values()) if failure.what == NEVER_ASSIGNED else None
            )
            told = {"member": failure.member, "name": failure.what, "message": failure.message}
            self.record("consumer_failure", **told, connections=opened)
        return not failures

    def start_workload(self) -> None:
        """Starts the workload's process, which sends nothing yet; a further group has that of the first, and in its
        history the same file."""
        if self.beside is not None:
            records = sum(load.opening_burst for load in self.trial_spec.scenario.loads)
            self._producer = BorrowedLoad(records)
            (self.folder.history / WORKLOAD_FILE).hardlink_to(self.beside.folder.history / WORKLOAD_FILE)
            return
        self._producer = self.stack.enter_context(
            start_producer(
                self.child_processes,
                bootstrap=self.lanes[-1].bootstrap,
                topic_loads=self._topic_loads(),
                folder=self.folder,
                seed=self.trial_spec.seed,
                payload=self.payload,
            )
        )

    def _topic_loads(self) -> list[TopicLoad]:
        scenario = self.trial_spec.scenario
        prefixes = ["", *(further.name for further in scenario.further_topics)]
        later = [
            topic.partitions if comes_later else None
            for topic, comes_later in zip(scenario.topics, scenario.later, strict=True)
        ]
        return [TopicLoad(*one) for one in zip(self.topics, scenario.loads, prefixes, later, strict=True)]

    def calibrate(self) -> None:
        """Sends the opening burst and measures how fast it drains (a time under 1 s counts as 1 s)."""
        began_s = time.monotonic()
        count = self.producer.opening_burst(within_s=CALIBRATION_WITHIN_S)
        drained = self._drained(count, until_s=began_s + CALIBRATION_WITHIN_S)
        self.calibrated_within_s = time.monotonic() - began_s
        took_s = max(1.0, self.calibrated_within_s)
        self.rate_per_s, self.opening_burst = drained / took_s, dict(self.ends())
        self.record(
            "calibrated",
            count=drained,
            seconds=took_s,
            rate=self.rate_per_s,
            all_drained=drained >= count,
            entries=[
                {"topic": topic, "partition": partition, "count": end}
                for (topic, partition), end in sorted(self.opening_burst.items())
            ],
        )
        self.console.say(
            f"calibrated: {drained} of {count} records of the opening burst in {took_s:.1f} s, {self.rate_per_s:.0f}/s"
        )
        if not drained:
            self.console.say(f"nothing was handled yet; {self.group.last_words}")
        self._tell_of_sink()

    @contextmanager
    def bursts(self, planned: Sequence[Burst]) -> Iterator[None]:
        """Sends each burst at its instant of the faults phase, beside what the body does."""
        began_s = time.monotonic()
        with ThreadGroup("bursts") as thread_group:
            for burst in planned:
                thread_group.start(f"at {burst.at_s:g} s", self._burst_at, burst, began_s, thread_group)
            yield

    @contextmanager
    def quiet_after(self, seconds: float | None) -> Iterator[None]:
        """Has the load end so many seconds from now, beside what the body does, or when that ends; None: not at all."""
        if seconds is None:
            yield
            return
        began_s = time.monotonic()
        with ThreadGroup("quiet") as thread_group:
            thread_group.start("load ends", self._hold_at, began_s + seconds, thread_group)
            yield
        self.producer.hold()

    def play_schedule(self) -> None:
        """Plays the plan; schedule.json then holds which targets the roles were."""
        trial_spec = self.trial_spec
        self.played, _ = run_schedule(
            self.context,
            trial_spec.plan_to_play,
            exact=trial_spec.exact,
            progress=self.show_progress,
            await_stable=self.await_stable,
        )
        self.write_schedule()

    def write_schedule(self) -> None:
        """Writes which targets the roles were: of a further group's plan, also of what the first one has played."""
        done = {one.no: one for of in (self, self.beside) if of and of.played for one in of.played.faults}
        plan = self.trial_spec.plan
        known = replace(plan, faults=tuple(done.get(one.no, one) for one in plan.faults))
        self.folder.write_json("schedule.json", plan_to_table(known))

    def heal_everything(self) -> None:
        """Makes sure that no toxic, no closed proxy and no dead broker or member is left."""
        names = [name for lane in self.lanes for name in lane.proxies.values()]
        self.cluster.toxiproxy.reset(names)
        for node in self._nodes():
            if not node.alive:
                node.start()
        wait_until(
            lambda: not self._replicas_missing(),
            within_s=60,
            what="every replica back in sync after healing",
            every_s=0.25,
            detail=lambda: "; ".join(self._replicas_missing()),
        )

    def feed_all(self) -> None:
        """Lets the load go on until every partition got some records more since the group last changed.

        What was done before says nothing of the last assignment; the judge says what came too short.
        """
        with suppress(WaitTimeout):
            self.await_stable(self._tell_feeding)

    def stop_load(self) -> None:
        """Stops the load; what is not acknowledged in time has an unknown fate."""
        counts = self.producer.stop(within_s=LOAD_STOPS_WITHIN_S)
        self.console.say(f"load: {counts_in_words(counts)}")
        if self.mirror is not None:
            self.mirror.await_copies()  # else the group would seem to be done there, or the mirror to lack records
        self._tell_of_sink()

    def _tell_of_sink(self) -> None:
        """Says where members were refused by the sink for their own number of connections, and not by a fault."""
        if self.context.sink is not None and (words := self.context.sink.refusals_in_words):
            self.console.say(words)

    def wait_converged(
        self,
        ends: Mapping[Slice, int],
        *,
        within_s: float,
        at_most_s: float,
        stalled_s: float,
        bounds: DrainBounds | None = None,
    ) -> None:
        """Waits until all is handled and committed and stays so, or the time is up (the judge says which): longer, but
        at most so long, where members and brokers wait longer for a processor than they did before.

        What was committed past and not handled is waited for only as long as a partition may stand still, `stalled_s`;
        and where records are left and the group makes no progress, by its `bounds`, nothing is waited for any more.
        Those are reckoned once more before the time is up: the judge will know what is known then.
        A group that did nothing in the whole trial, and whose `within_s` is cut off by `at_most_s`, so that nobody can
        say that it is late, has as much time for a first record as members have to become ready.
        """
        began_s = time.monotonic()
        until_s = began_s + min(within_s, at_most_s)
        idle_at_most_s = max(stalled_s, self.trial_spec.scenario.limits.ready_s)
        idle_until_s = began_s + (idle_at_most_s if within_s > at_most_s else at_most_s)
        progress = self.trial_spec.consumer.progress
        settle_s = max(SETTLED_S, SETTLED_INTERVALS * progress.interval_s)
        drain_watch = DrainWatch(settle_s, stalled_s if progress.kind in IN_KAFKA else None)
        while True:
            if (now_s := time.monotonic()) >= until_s:
                within_s = max(within_s, bounds.within_s()) if bounds else within_s
                until_s = began_s + min(within_s + self._busier_s(), at_most_s)
                if now_s >= until_s:
                    return
            self._expect_witnesses()
            lag, unhandled = self._behind(ends)
            self.console.progress(f"lag {lag} committed, {unhandled} unhandled", left_s=until_s - now_s)
            idle = now_s >= idle_until_s and not (self.progress.handled_total() or self.progress.committed)
            makes_no_progress = bounds is not None and bounds.makes_no_progress()
            if idle or makes_no_progress:
                return
            if drain_watch.over(lag, unhandled, now_s=now_s):
                if (grown := self.ends()) == ends:
                    return
                ends, drain_watch = grown, DrainWatch(drain_watch.settle_s, drain_watch.stalled_s)
                if bounds:
                    bounds.ends = ends
            pause(0.1)

    def wait_rejoined(self, *, at_most_s: float) -> None:
        """Waits until every member that a fault put out of its group is back in it, or its time for that is up: of the
        whole drain at most so long. Nobody is waited for where all are back."""

        def away() -> list[str]:
            self._expect_witnesses()
            return self.watch.update().awaited_members(now_ns=time.monotonic_ns(), margin_s=REJOIN_MARGIN_S)

        def back() -> bool:
            if names := away():
                self.console.progress(f"until {', '.join(names)} is back in the group", left_s=None)
            return not names

        drained_s = time.monotonic() - self.watch.update().phases["drain"] / 1e9
        with suppress(WaitTimeout):  # the judge says that it was too short
            if away():
                wait_until(
                    back, within_s=max(0.0, at_most_s - drained_s), what="all members back in their group", every_s=0.1
                )
                pause(SETTLED_S)

    def note_few_handled(self) -> None:
        """Writes down what a member wrote last, where too little was handled for a verdict: it may say why."""
        handled = self.progress.update().handled_total()
        if handled < self.trial_spec.scenario.limits.records_judged_min:
            self.record("few_handled", count=handled, message=self.group.last_words)

    def snapshot_witnesses(self) -> None:
        """Has every witness read up to the end of now; one that cannot makes the verdict unknown."""
        states = snapshot_all(self.witnesses, within_s=SNAPSHOT_WITHIN_S)
        if self.mirror is not None:
            self.mirror.read_offset_syncs()
            if wrong := self.mirror.came_home():
                self.record("environment", message=wrong)
        for witness in self.witnesses:
            if (state := states[witness.name]) != "complete":
                why = f": {witness.message}" if witness.message else ""
                self.record("environment", message=f"the witness {witness.name} is {state} at the snapshot{why}")

    def note_exits(self) -> None:
        """Writes down who has exited by itself since this was last asked."""
        self._note_failures(self.group.exits())

    def stop_members(self) -> None:
        """Stops the members as their spec says."""
        self._note_failures(self.group.stop())

    def _note_failures(self, failures: Sequence[MemberFailure]) -> None:
        for failure in failures:
            if failure not in self._failures_noted:
                self._failures_noted.append(failure)
                self.record("consumer_failure", member=failure.member, name=failure.what, message=failure.message)

    def stop_witnesses(self) -> None:
        """Stops the witnesses."""
        for witness in self.witnesses:
            witness.stop()

    def cause_of(self, error: KafkaTrialError) -> str:
        """Says what ended the trial: that the cluster is gone, or brokers are, rather than what it did not answer."""
        with suppress(WaitTimeout):
            lost = wait_until(
                lambda: self.cluster.lost or ended_by_themselves(self._nodes()),
                within_s=LOST_WITHIN_S,
                what="the end of the cluster",
            )
            return str(error) if lost in str(error) else f"{lost}: {error}"
        return str(error)

    def end(self, outcome: str, message: str | None = None) -> None:
        """Writes the last line: a history without it is truncated."""
        self.record("end", outcome=outcome, message=message)

    def expect_room(self) -> None:
        """Ends a trial whose history can hardly be written down any more.

        Raises:
            UnjudgeableError: the disk of the run folder is full, or nearly.
        """
        short = shortage(self.folder.path)
        if short:
            raise UnjudgeableError(short)

    def show_progress(self, text: str, *, left_s: float | None) -> None:
        self.expect_room()
        if lost := self.abandoned or self.cluster.lost or self._postgres_lost():
            raise UnjudgeableError(lost)
        self.console.progress(text, left_s=left_s)

    def _expect_witnesses(self) -> None:
        """Ends a trial that nothing can be concluded from any more.

        Raises:
            UnjudgeableError: a witness or the cluster has died, or the disk is full (of which witnesses die).
        """
        lost = self._witnesses_lost()
        if lost:
            raise UnjudgeableError(lost)

    def _witnesses_lost(self) -> str | None:
        if self.abandoned is not None:
            return self.abandoned
        dead = (witness for witness in self.witnesses if not witness.alive)
        died = (f"the witness {witness.name} died (exit {witness.child.exit_code})" for witness in dead)
        gone = self.mirror.lost if self.mirror else None
        return shortage(self.folder.path) or self.cluster.lost or gone or self._postgres_lost() or next(died, None)

    def _postgres_lost(self) -> str | None:
        return self.postgres.lost if self.postgres else None

    def await_stable(self, each_round: Callable[[], str | None]) -> None:
        """Waits until the group is stable and as large as when the faults began, and every partition got some records.

        While a group waits for a long session to expire, the load is held after a while: a backlog of minutes would
        tell no more. Bounded by the time in which the group must have noticed whom it lost.

        Raises:
            WaitTimeout: it took longer, or `each_round`, which is called each round, returned why to wait no longer.
        """
        timing = self.timing()
        lost_s = max(0.0, self.watch.lost_until_ns() / 1e9 - time.monotonic())
        fed = FreshRecords()
        wait_until(
            lambda: self._fed(fed),
            within_s=lost_s + timing.session_timeout_s + timing.poll_interval_s + FED_WITHIN_S,
            what=f"{FRESH_MIN} records more on every partition since the group last changed",
            every_s=0.1,
            alive=lambda: each_round() or fed.given_up() or self._deserted(),
        )

    def _tell_feeding(self) -> None:
        handled = self.progress.update().handled_total()
        awaited = f"until the group is at rest and every partition has got {FRESH_MIN} records more"
        self.console.progress(f"{awaited}; {handled} records handled", left_s=None)

    def _fed(self, fed: FreshRecords) -> bool:
        self._expect_witnesses()
        watch = self.watch.update()
        resting = watch.rests(now_ns=time.monotonic_ns()) and self._group_is_stable()
        if resting:
            self.producer.resume()
        elif fed.waits_long():
            self.producer.hold()
        return fed.look(self._log_ends(), watch.changes if resting else None)

    def _deserted(self) -> str | None:
        return "all members have ended by themselves" if self.group.deserted else None

    def _group_is_stable(self) -> bool:
        """Whether a classic group is in no rebalance; of others the coordinator does not say it in this way."""
        if not self.watch.classic:
            return True
        try:
            return str(self.admin.describe_group(self.group_name).get("group_state")) == "Stable"
        except UnjudgeableError:
            return False

    def _busier_s(self) -> float:
        return self.watch.update().busier_s(now_ns=time.monotonic_ns())

    def _behind(self, ends: Mapping[Slice, int]) -> tuple[int, int]:
        """Returns (committed lag, unhandled records), each 0 where it cannot be seen or is not declared."""
        progress = self.progress.update()
        spec = self.trial_spec.consumer
        lag = progress.lag(ends) if spec.progress.kind in IN_KAFKA else 0
        by_lines = spec.evidence.sink == "none"
        unseen = by_lines and (spec.evidence.events == "none" or spec.evidence.stdout == "buffered")
        if spec.claim.delivery == "at-most-once" or unseen:  # what stands in a buffer comes when the member ends
            return lag, 0
        return lag, max(0, progress.records(ends) - progress.handled_total())

    def _drained(self, count: int, *, until_s: float) -> int:
        """Waits until `count` records are handled and committed, or until the time is up; returns how many are."""
        while True:
            self._expect_witnesses()
            lag, unhandled = self._behind(self.ends())
            done = count - max(lag, unhandled)
            if done >= count or time.monotonic() >= until_s:
                return max(0, done)
            self.console.progress(f"{done} of {count} records handled and committed", left_s=until_s - time.monotonic())
            pause(0.1)

    def _burst_at(self, burst: Burst, began_s: float, thread_group: ThreadGroup) -> None:
        if not pause(began_s + burst.at_s - time.monotonic(), stop=thread_group.stop):
            self.producer.burst(burst.records)

    def _hold_at(self, due_s: float, thread_group: ThreadGroup) -> None:
        if not pause(due_s - time.monotonic(), stop=thread_group.stop):
            self.producer.hold()

    def _nodes(self) -> list[BrokerHandle]:
        """Returns the brokers that are there, and the controllers of their own."""
        return [*self.cluster.brokers.values(), *self.cluster.controllers.values()]

    def _replicas_missing(self) -> list[str]:
        try:
            return self.admin.under_replicated()
        except UnjudgeableError as error:
            return [str(error)]

    def _control_member_joins(self) -> bool:
        """A member of ours, in a group of its own on the same cluster: can anybody join at all?"""
        return control_member_joins(
            self.child_processes, self.lanes[-1].bootstrap, topic=self.topics[0], within_s=CONTROL_WITHIN_S
        )


def shortage(folder: Path) -> str | None:
    """Returns what to say when the disk of a run folder has too little room left; None where it has enough."""
    disk = shutil.disk_usage(folder)
    if disk.total == 0 or disk.free >= ROOM_MIN_BYTES:  # 0: a file system that does not count
        return None
    return (
        f"the disk of the run folder {folder} is full: {disk.free / 1e6:.1f} MB free, a history needs at least "
        f"{ROOM_MIN_BYTES / 1e6:.0f} MB at any time; free space, or choose another place with --out"
    )
