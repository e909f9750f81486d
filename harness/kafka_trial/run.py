"""The story of one trial: prepare → steady → faults → heal → drain → snapshot → stop.

Everything a phase needs stands on the `Stage` (`stage.py`), opened in `prepare` and closed by the `with` in
`run_trial`, whatever happens in between. Nothing is judged here: facts go into the history, the judge reads them later.
"""

from __future__ import annotations

from kafka_trial.cluster.cluster import Cluster
from kafka_trial.errors import Interrupted, KafkaTrialError, UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.invariants.bounds import convergence_bound_s, stall_window_s
from kafka_trial.narrator import Narrator
from kafka_trial.question import Question
from kafka_trial.setting import set_stage
from kafka_trial.stage import Stage

DRAIN_MARGIN_S = 2.0


def run_trial(question: Question, cluster: Cluster, folder: RunFolder, *, narrator: Narrator) -> None:
    """Runs one trial on `cluster` and leaves its history in `folder`.

    Raises:
        StartError: no history could be begun.
        UnjudgeableError: the history cannot be written any more: the disk is full.
        Interrupted: Ctrl-C; faults were healed and everything was stopped before this left.
    """
    try:
        _tell(question, cluster, folder, narrator)
    except OSError as error:
        message = f"the history in {folder.path} was cut, and can only be judged unknown: {error}; free space, or"
        raise UnjudgeableError(f"{message} choose another place with --out") from error


def _tell(question: Question, cluster: Cluster, folder: RunFolder, narrator: Narrator) -> None:
    with set_stage(question, cluster, folder, narrator) as stage:
        try:
            if prepare(stage):
                steady(stage)
                faults(stage)
                heal(stage)
                drain(stage)
            snapshot(stage)
            stop(stage)
            stage.expect_room()  # what ran out may have cut a member's history
            stage.end("ok")
        except KeyboardInterrupt as interrupt:
            stage.end("info", "interrupted by Ctrl-C")
            raise Interrupted(f"interrupted; healed and cleaned up. The history so far: {folder.path}") from interrupt
        except KafkaTrialError as error:
            stage.record("environment", message=str(error))
            stage.end("info", f"{type(error).__name__}: {error}")
            stage.expect_room()  # where it is full, nothing more is tried: no verdict could be written


def prepare(stage: Stage) -> bool:
    """Starts witnesses and members; False when the consumer never got to work where a control member did."""
    stage.phase("prepare", f"{stage.question.members} members of {stage.question.consumer.name}")
    stage.start_witnesses()
    stage.start_workload()
    return stage.start_members()


def steady(stage: Stage) -> None:
    """Sends the opening burst, measures how fast it drains, then lets the steady load flow."""
    load = stage.question.scenario.load
    stage.phase("steady", f"opening burst of {load.opening_burst} records")
    stage.calibrate()
    stage.producer.steady()
    stage.let_pass(load.steady_s, "steady load")


def faults(stage: Stage) -> None:
    """Plays the schedule against the running group; the load goes on."""
    scenario = stage.question.scenario
    stage.phase("faults", f"{len(scenario.schedule)} planned" if scenario.schedule else "none planned")
    began = stage.clock_s()
    with stage.bursts(scenario.load.bursts):
        stage.play_schedule()
        stage.let_pass(scenario.min_faults_s - (stage.clock_s() - began), "load goes on")


def heal(stage: Stage) -> None:
    """Makes the ground whole again (faults heal themselves; this makes sure); the load stops when the group has come to
    rest, and every partition got some records more.
    """
    stage.phase("heal", "network, members and brokers as before")
    stage.heal_everything()
    stage.feed_all()
    stage.stop_load()


def drain(stage: Stage) -> None:
    """Waits until every partition has converged and stays so, or until the deadline by which it had to."""
    ends = stage.ends()
    bound_s = convergence_bound_s(stage.timing(backlog=stage.progress.update().lag(ends)))
    window_s = max(bound_s, stall_window_s(stage.timing(backlog=0))) + DRAIN_MARGIN_S
    window_s = min(window_s, stage.question.scenario.limits.drain_s)  # cut short, lateness is left undecided
    stage.phase("drain", f"converge within {bound_s:.1f} s")
    stage.wait_converged(ends, within_s=window_s)


def snapshot(stage: Stage) -> None:
    """Has every witness read up to the end and say whether it saw all."""
    stage.phase("snapshot", "witnesses read to the end")
    stage.snapshot_witnesses()


def stop(stage: Stage) -> None:
    """Stops the members as their spec says, then the witnesses."""
    stage.phase("stop", "members, then witnesses")
    stage.stop_members()
    stage.stop_witnesses()
