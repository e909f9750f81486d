"""Plays an upgrade: one cluster, a trial of each consumer on it, and all of them taken through the stages together.

Each consumer has a topic, a group, a load and a run folder of its own. What is done to the brokers is played once, and
stands in the history of each; faults of members and of their network are each group's own. A stage ends with the load
held, every group drained, and every witness read to the end; then the same members go on. While it is judged no load is
sent, for judges, brokers and members share one processor; our own writers go on.

The cluster is of processes, or of containers where the consumers are images. What both versions start from, archives or
images, is made before anything starts: nobody waits for it in a stage. Features are finalised by name, one after the
other, each until all brokers answer its level. A transaction is open across the change of transaction.version: it was
begun by the old rules, and is committed by the new ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.containers import container_cluster
from kafka_trial.cluster.processes import class_data_archive, process_cluster
from kafka_trial.cluster.versions import Release, parse_release
from kafka_trial.compatibility.feature_levels import TRANSACTIONS, Raise, levels_to_raise
from kafka_trial.errors import Interrupted, UnjudgeableError, WaitTimeout
from kafka_trial.history.recorder import EventWriter
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.kafka_protocol.broker_features import BrokerFeatures
from kafka_trial.nemesis.injection import Planned
from kafka_trial.nemesis.schedule import Plan, make_plan, plan_to_table, run_schedule
from kafka_trial.process.waiting import wait_until
from kafka_trial.scenario import Step
from kafka_trial.trial.all_groups import INTERRUPTED, for_all_groups
from kafka_trial.trial.console import Console
from kafka_trial.trial.environment import IN_KAFKA, LOAD_STOPS_WITHIN_S, TrialEnvironment
from kafka_trial.trial.run import drain, opening_burst, snapshot, start_witnesses, steady_load, stop
from kafka_trial.trial.setup import open_trial_environment
from kafka_trial.upgrade.cluster_state import ClusterState, Loss, cluster_state_of, ended_by_tombstones, losses
from kafka_trial.upgrade.plan import StagePlan
from kafka_trial.upgrade.reload import CompactedGroups
from kafka_trial.upgrade.replaced import stranded_members
from kafka_trial.upgrade.request import SCENARIO, UpgradeRequest
from kafka_trial.upgrade.stage_history import stage_end, write_stage
from kafka_trial.upgrade.stages import Stage, reconnect
from kafka_trial.upgrade.successors import own_steps
from kafka_trial.upgrade.unfetched_brokers import followers_that_serve, unfetched_brokers
from kafka_trial.upgrade.writers import WritersHandle, writers_beside

LED_WITHIN_S = 60.0
FETCHED_WITHIN_S = 5.0  # from when a broker leads again: clients that learn of it by a refused fetch take a second
TRIALS, STAGES, WRITERS = "trials", "stages", "writers"  # folders: of whole trials, of their stages, of our writers
FAULT: Final = "finalise-feature"
HOLDS_S: Final = 2.0  # time for members and writers to meet the new level before the next one comes


@dataclass(frozen=True)
class PlayedStage:
    """A stage that was played to its snapshot.

    `folders`: the run folder of its history, by consumer. `state`, `losses`: of the cluster at its end. `not_known`:
    why it is not known whether what the writers beside it wrote is there; empty: it is known. `stranded`: by consumer,
    the members that have no connection to the cluster, and no address of it.
    """

    stage: Stage
    folders: Mapping[str, RunFolder]
    state: ClusterState
    losses: tuple[Loss, ...]
    seconds: float
    not_known: str = ""
    stranded: Mapping[str, Sequence[Loss]] = field(default_factory=dict)


class Tee:
    """Writes each event down in the histories of several trials."""

    def __init__(self, writers: Sequence[EventWriter]) -> None:
        self._writers = writers

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Takes one event; returns the number that the first of them gave it."""
        numbers = [writer.record(kind, time_ns=time_ns, **fields) for writer in self._writers]
        return numbers[0]


class UpgradePlay:
    """An upgrade that is being played: its open trials, by consumer, and how many faults were played so far."""

    def __init__(
        self,
        cluster: BootedCluster,
        environments: Mapping[str, TrialEnvironment],
        writers: WritersHandle,
        out: Path,
        console: Console,
        *,
        seed: int,
    ) -> None:
        self._cluster = cluster
        self._environments = environments
        self._writers = writers
        self._state = ClusterState()
        self._without_effect: list[str] = []  # what was seen of the shared steps of a stage that had no effect
        self._ended_ns = 0  # when the last stage had ended
        self._out = out
        self._console = console
        self._seed = seed
        self._played: dict[str, list[Any]] = {name: [] for name in environments}

    def begin(self) -> None:
        """Starts witnesses, members and loads of all consumers, and measures their pace.

        Raises:
            UnjudgeableError: a consumer never got to work, or something of the harness failed.
        """
        self._each(self._begin)

    def play(self, stage: Stage) -> PlayedStage:
        """Takes all groups through one stage.

        Raises:
            UnjudgeableError: a broker did not come back, or something of the harness failed.
        """
        first = next(iter(self._environments.values()))
        began_s = first.clock_s()
        self._console.phase(stage.name, stage.summary)
        for environment in self._environments.values():
            environment.stage = stage.name
            environment.phase("faults", stage.summary)
            environment.producer.resume()  # held since the last stage ended: judging it, too, wants processor
        if stage.finalises:
            self._state = self._cluster_state()
            finalise_features(parse_release(stage.version), self._state.features, self._play_for_all, self._writers)
        self._without_effect = []
        compacted = None
        if stage.compacts:
            groups = [one.group_name for one in self._environments.values()]
            compacted = CompactedGroups(self._cluster, groups, seed=self._seed)
        for step in stage.shared:
            self._play_for_all(step)
            self._writers.use_brokers(self._cluster.observer_bootstrap)
        if stage.shared:
            self._restore_leaders(first)
        led_ns = time.monotonic_ns()
        if stage.steps:
            self._each(lambda name, one: self._play_own(name, one, stage.steps))
        if stage.shared:
            self._each(lambda name, one: self._read_from_leaders(name, one, led_ns))
        self._each(self._finish)
        stranded = {name: stranded_members(one.context) for name, one in self._environments.items()}
        ends = {name: stage_end(stage.name, one.folder) for name, one in self._environments.items()}
        before, self._state = self._state, self._cluster_state()
        folders = {}
        for name, one in self._environments.items():
            folders[name] = create_run_folder(self._out / STAGES / stage.name / name, stage.name, name)
            write_stage(one.folder, ends[name], folders[name])
        lost = [] if compacted is None else [*compacted.losses(self._positions())]  # they say more, so come first
        lost += losses(before, self._state)
        for name, one in self._environments.items():
            lost += ended_by_tombstones(folders[name], one.topics[0], self._ended_ns)
        self._ended_ns = max(end.time_ns for end in ends.values())
        not_known = ""
        try:
            lost += self._writers.losses()
        except UnjudgeableError as error:
            not_known = str(error)
        return PlayedStage(stage, folders, self._state, tuple(lost), first.clock_s() - began_s, not_known, stranded)

    def _restore_leaders(self, environment: TrialEnvironment) -> None:
        """Has the preferred replicas lead again: else nobody would ask a new broker for a record.

        Raises:
            UnjudgeableError: they do not in time; with what the last steps did not do, if anything.
        """
        try:
            environment.context.restore_leaders(within_s=LED_WITHIN_S)
        except WaitTimeout as error:
            raise UnjudgeableError("; ".join([str(error), *self._without_effect])) from error

    def _cluster_state(self) -> ClusterState:
        return cluster_state_of(self._cluster, self._positions())

    def _positions(self) -> Mapping[str, tuple[str, Mapping[int, int]]]:
        """Returns by group its topic, and what its offsets log holds; of groups whose progress is in Kafka."""
        return {
            one.group_name: (one.topics[0], one.progress.update().committed_by_partition(one.topics[0]))
            for one in self._environments.values()
            if one.trial_spec.consumer.progress.kind in IN_KAFKA
        }

    def end(self) -> None:
        """Stops all members and witnesses."""
        self._each(self._end)

    def _play_for_all(self, step: Step) -> None:
        """Plays a step on the cluster: by the first trial, and told to all.

        Raises:
            UnjudgeableError: it had no effect.
        """
        names = list(self._environments)
        writers = [one.context.recorder for one in self._environments.values()]
        player = self._environments[names[0]]
        context = replace(player.context, recorder=Tee(writers))
        outcome, without_effect = self._run(context, player, plan := self._plan(names[0], (step,)))
        self._without_effect += without_effect
        for name in names:
            self._played[name] += outcome
            self._write_schedule(name, plan)
        if not all(one.resolved for one in outcome):
            raise UnjudgeableError(f"{step.fault} {dict(step.options)} had no effect")

    def _read_from_leaders(self, name: str, environment: TrialEnvironment, led_ns: int) -> None:
        """Closes the connections to followers from which members still get, after a while, what a broker of the stage
        leads since `led_ns`: a client that asks without a leader epoch may go on so for minutes, and the stage would
        show nothing of that broker. Members that get nothing are left as they are."""
        unfetched: list[str] = []

        def fetched() -> bool:
            unfetched[:] = unfetched_brokers(environment.folder, begins_ns=self._ended_ns)
            return not unfetched

        try:
            wait_until(
                fetched, within_s=FETCHED_WITHIN_S, what=f"{name} to read from every broker of a stage", every_s=0.2
            )
        except WaitTimeout:
            leaders = {one.partition: one.broker for one in environment.context.topic_snapshot().leaders}
            led_by = {broker: partition for partition, broker in leaders.items()}
            serving = followers_that_serve(environment.folder, leaders, unfetched, since_ns=led_ns)
            self._play_own(name, environment, [reconnect(led_by[follower]) for follower in serving])

    def _play_own(self, name: str, environment: TrialEnvironment, steps: Sequence[Step]) -> None:
        """Plays what a group's trial makes of steps: faults of its own members and of their network."""
        if not (steps := own_steps(steps, environment.trial_spec)):
            return
        plan = self._plan(name, steps)
        played, _ = self._run(environment.context, environment, plan)
        self._played[name] += played
        self._write_schedule(name, plan)

    def _plan(self, name: str, steps: Sequence[Step]) -> Plan:
        """Returns the plan of further steps, numbered on from those that the trial has had."""
        so_far = len(self._played[name])
        members = self._environments[name].trial_spec.members
        plan = make_plan(steps, seed=self._seed + so_far, members=members)
        return replace(plan, faults=tuple(replace(one, no=one.no + so_far) for one in plan.faults))

    def _run(self, context: Any, environment: TrialEnvironment, plan: Plan) -> tuple[list[Planned], list[str]]:
        """Plays a plan; returns its faults as they were played, and of each without an effect what was seen of it."""
        played, outcomes = run_schedule(
            context, plan, progress=environment.show_progress, await_stable=environment.await_stable
        )
        without_effect = [
            f"{one.planned.fault} had no effect: {one.evidence.message}"
            for one in outcomes
            if not one.evidence.took_effect
        ]
        return list(played.faults), without_effect

    def _write_schedule(self, name: str, plan: Plan) -> None:
        faults = tuple(self._played[name])
        self._environments[name].folder.write_json("schedule.json", plan_to_table(Plan(plan.seed, faults)))

    def _begin(self, name: str, environment: TrialEnvironment) -> None:
        start_witnesses(environment)
        environment.start_workload()
        if not environment.start_members():
            raise UnjudgeableError(f"{name} never got to work on Kafka {environment.trial_spec.kafka_version}")
        opening_burst(environment)
        steady_load(environment)

    def _finish(self, name: str, environment: TrialEnvironment) -> None:
        environment.phase("heal", "network, members and brokers as before")
        environment.heal_everything()
        environment.feed_all()
        environment.producer.settle(within_s=LOAD_STOPS_WITHIN_S)
        drain(environment)
        snapshot(environment)
        environment.note_exits()  # nobody starts them again: the group goes through the next stages without them

    def _end(self, name: str, environment: TrialEnvironment) -> None:
        environment.stop_load()
        stop(environment)
        environment.end("ok")

    def _each(self, work: Callable[[str, TrialEnvironment], object]) -> None:
        """Does the same for all trials, side by side."""
        names = {id(environment): name for name, environment in self._environments.items()}
        for_all_groups(self._environments, lambda environment: work(names[id(environment)], environment))


def play_upgrade(request: UpgradeRequest, plan: StagePlan, console: Console) -> Generator[PlayedStage]:
    """Yields the stages as they are played.

    Raises:
        StartError: the cluster or a trial could not be begun.
        UnjudgeableError: a stage could not be played to its end; what was played before has been yielded.
        Interrupted: Ctrl-C; faults were healed and everything was stopped before this left.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(booted(request, plan))
        environments = {}
        for name, spec in request.specs.items():
            folder = create_run_folder(request.out / TRIALS / name, SCENARIO.name, name)
            environments[name] = stack.enter_context(open_trial_environment(spec, cluster, folder, Console(quiet=True)))
            environments[name].staged = True
        writers = stack.enter_context(writers_beside(cluster, request.out / WRITERS))
        play = UpgradePlay(cluster, environments, writers, request.out, console, seed=request.seed)
        try:
            play.begin()
            controller = next(iter(environments.values())).admin.controller()
            for stage in plan.stages(cluster, controller):
                yield play.play(stage)
            play.end()
        except KeyboardInterrupt as interrupt:
            for environment in environments.values():
                environment.end("info", INTERRUPTED)
            raise Interrupted(f"interrupted; healed and cleaned up. What was played: {request.out}") from interrupt


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


def finalise_features(
    after: Release, features: Mapping[int, BrokerFeatures], play: Callable[[Step], None], writers: WritersHandle
) -> tuple[Raise, ...]:
    """Raises what brokers of a release finalise; returns what was raised, in its order.

    `features`: what each broker answers, by its id. `play` plays a step once, for the whole cluster, and raises where
    the step has no effect.

    Raises:
        UnjudgeableError: a broker is still of the version before, a level has no effect, or the writers cannot go on.
    """
    supported = {broker: told.supported for broker, told in features.items()}
    newest = max(features.values(), key=lambda told: told.epoch)
    raised = levels_to_raise(after, newest.finalized, supported)
    for one in raised:
        if one.feature == TRANSACTIONS:
            writers.open_transaction()
        play(Step(FAULT, "all", for_s=HOLDS_S, options={"feature": one.feature, "level": one.level}))
        if one.feature == TRANSACTIONS:
            writers.end_transaction()
    return raised
