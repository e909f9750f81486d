"""The story of one trial: prepare → steady → faults → heal → drain → snapshot → stop.

Everything a phase needs is in the `TrialEnvironment` (`environment.py`), one for each group (`all_groups.py`), opened
and closed by the `with` in `_run_phases`, whatever happens in between. A phase is for all groups; what is done to one
is a fault, and a step of the schedule. Nothing is judged here: facts go into the history, the judge reads them later.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from kafka_trial.cluster.cluster import Cluster
from kafka_trial.errors import Interrupted, KafkaTrialError, UnjudgeableError
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.mirror.joined_history import SOURCE, join_run_folders
from kafka_trial.scenario import Limits, Mirror
from kafka_trial.trial.all_groups import FIRST, INTERRUPTED, OTHERS_END_WITHIN_S, for_all_groups, open_all_groups
from kafka_trial.trial.console import Console
from kafka_trial.trial.drain import MARGIN_S
from kafka_trial.trial.environment import TrialEnvironment
from kafka_trial.trial.mirror_setup import open_mirror
from kafka_trial.trial.spec import TrialSpec

STEADY_MIN_S = 3.25  # a member's cycle of polling is known from three seconds of its work (`requested_timeouts.py`)


def run_trial(
    trial_spec: TrialSpec, cluster: Cluster, folder: RunFolder, *, console: Console, mirror: Cluster | None = None
) -> None:
    """Runs one trial on `cluster` and leaves its history in `folder`; `mirror`: the cluster for its mirror, where its
    scenario has one.

    Raises:
        StartError: no history could be begun.
        UnjudgeableError: the history cannot be written any more: the disk is full.
        Interrupted: Ctrl-C; faults were healed and everything was stopped before this left.
    """
    try:
        if mirror is None:
            _run_phases(trial_spec, cluster, folder, console)
        else:
            _run_beside_mirror(trial_spec, cluster, mirror, folder, console)
    except OSError as error:
        message = f"the history in {folder.path} was cut, and can only be judged unknown: {error}; free space, or"
        raise UnjudgeableError(f"{message} choose another place with --out") from error


def _run_beside_mirror(
    trial_spec: TrialSpec, cluster: Cluster, mirror: Cluster, folder: RunFolder, console: Console
) -> None:
    """Runs a trial that has a mirror: what is seen goes to two run folders, of which one history is made."""
    source = create_run_folder(folder.path / SOURCE, trial_spec.scenario.name, trial_spec.consumer.name)
    try:
        _run_phases(trial_spec, cluster, source, console, mirror)
    finally:
        join_run_folders(folder)


def _run_phases(
    trial_spec: TrialSpec, cluster: Cluster, folder: RunFolder, console: Console, mirror: Cluster | None = None
) -> None:
    with ExitStack() as stack:
        environments = stack.enter_context(open_all_groups(trial_spec, cluster, folder, console))
        if mirror is not None:
            first = environments[FIRST]
            asked = trial_spec.scenario.mirror or Mirror()
            first.mirror = stack.enter_context(open_mirror(first, asked, mirror, RunFolder(folder.path.parent)))
            first.context = replace(first.context, mirror=first.mirror)
        try:
            for_all_groups(environments, start_witnesses)
            for environment in environments.values():  # the first one first: the others have its load
                environment.start_workload()
            if all(for_all_groups(environments, TrialEnvironment.start_members)):
                for phase in (opening_burst, steady_load, faults):
                    for_all_groups(environments, phase)
                for environment in environments.values():  # in turn: they start the same brokers again
                    heal(environment)
                for_all_groups(environments, feed_partitions)
                for environment in environments.values():
                    environment.stop_load()
                for_all_groups(environments, drain, within_s=OTHERS_END_WITHIN_S + trial_spec.scenario.limits.drain_s)
            for phase in (snapshot, stop):
                for_all_groups(environments, phase)
            for environment in environments.values():
                environment.expect_room()  # what ran out may have cut a member's history
            for environment in environments.values():
                environment.end("ok")
        except KeyboardInterrupt as interrupt:
            for environment in environments.values():
                environment.end("info", INTERRUPTED)
            raise Interrupted(f"interrupted; healed and cleaned up. The history so far: {folder.path}") from interrupt
        except KafkaTrialError as error:
            for environment in environments.values():
                environment.record("environment", message=environment.cause_of(error))
                environment.end("info", f"{type(error).__name__}: {error}")
            environment.expect_room()  # where it is full, nothing more is tried: no verdict could be written


def start_witnesses(environment: TrialEnvironment) -> None:
    """Begins the preparations: the witnesses come first."""
    environment.phase("prepare", f"{environment.trial_spec.members} members of {environment.trial_spec.consumer.name}")
    environment.start_witnesses()


def opening_burst(environment: TrialEnvironment) -> None:
    """Sends the opening burst and measures how fast it drains."""
    environment.phase("steady", f"opening burst of {environment.trial_spec.scenario.load.opening_burst} records")
    environment.calibrate()


def steady_load(environment: TrialEnvironment) -> None:
    """Lets the steady load flow."""
    environment.producer.steady()
    least_s = STEADY_MIN_S - environment.calibrated_within_s
    environment.let_pass(max(environment.trial_spec.scenario.load.steady_s, least_s), "steady load")
    if environment.mirror is not None:
        environment.mirror.await_copies()


def faults(environment: TrialEnvironment) -> None:
    """Plays the schedule against the running group; the load goes on, unless it is to go quiet."""
    scenario, planned = environment.trial_spec.scenario, environment.trial_spec.plan.faults
    environment.phase("faults", f"{len(planned)} planned" if planned else "none planned")
    began = environment.clock_s()
    with environment.bursts(scenario.load.bursts), environment.quiet_after(scenario.load.quiet_after_s):
        environment.play_schedule()
        environment.let_pass(scenario.min_faults_s - (environment.clock_s() - began), "load goes on")


def heal(environment: TrialEnvironment) -> None:
    """Makes the ground whole again: faults heal themselves; this makes sure."""
    environment.phase("heal", "network, members and brokers as before")
    environment.heal_everything()
    if environment.beside is not None:
        environment.write_schedule()  # by now it is known what was played for all


def feed_partitions(environment: TrialEnvironment) -> None:
    """Lets the load go on until the group has come to rest and every partition got some records more; one that is to
    be quiet has ended already."""
    if environment.trial_spec.scenario.load.quiet_after_s is None:
        environment.feed_all()


def drain(environment: TrialEnvironment) -> None:
    """Waits until every partition has converged and stays so, or until nothing can change the verdict any more: the
    group makes no progress, or the deadline is over by which it had to converge; then for members that are not back in
    their group."""
    ends = environment.ends()
    bounds = environment.drain_bounds(ends)
    bound = bounds.reckon()
    limits = environment.trial_spec.scenario.limits  # cut short by them, lateness is left undecided
    environment.phase("drain", drain_told(bound.converge_s, limits))
    environment.console.say(bound.words)
    environment.wait_converged(
        ends,
        within_s=bound.longest_s + MARGIN_S,
        at_most_s=limits.drain_s,
        stalled_s=bound.stuck_s,
        bounds=bounds,
    )
    environment.wait_rejoined(at_most_s=limits.drain_s)
    bounds.reckon()
    environment.note_few_handled()


def drain_told(bound_s: float, limits: Limits) -> str:
    """Returns what ends the drain: all is done, or the group's time is up, or the scenario's where that is less."""
    until = "until all is handled and committed"
    if bound_s <= limits.drain_s:
        return f"{until}; the group may take {bound_s:.0f} s"
    return f"{until}, cut off after {limits.drain_s:.0f} s (limits.drain_s); the group might take {bound_s:.0f} s"


def snapshot(environment: TrialEnvironment) -> None:
    """Has every witness read up to the end and say whether it saw all."""
    environment.phase("snapshot", "witnesses read to the end")
    environment.snapshot_witnesses()


def stop(environment: TrialEnvironment) -> None:
    """Stops the members as their spec says, then the witnesses."""
    environment.phase("stop", "members, then witnesses")
    environment.stop_members()
    environment.stop_witnesses()
