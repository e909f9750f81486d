"""The rehearsal of an upgrade: its stages played on one cluster, each judged for each consumer and for the cluster.

A stage is judged before the next one begins, while the members are at work and nothing is broken. What was played when
something of the harness failed stays, and every stage that is missing is unknown, by name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kafka_trial.cluster.doctor import SCRATCH_PREFIX
from kafka_trial.errors import Interrupted, KafkaTrialError, StartError
from kafka_trial.process.children import ChildProcesses
from kafka_trial.trial.console import Console
from kafka_trial.trial.judge_process import JudgeProcess
from kafka_trial.trial.stall_prevention import frozen_heap, preferred
from kafka_trial.upgrade.outcome import StageOutcome, StageVerdicts, of_cluster
from kafka_trial.upgrade.plan import StagePlan
from kafka_trial.upgrade.play import PlayedStage, play_upgrade
from kafka_trial.upgrade.request import UpgradeRequest

NO_ROOM = "free space, or choose another place with --out"


@dataclass
class Rehearsal:
    """What was played of an upgrade, and what came of each stage; `ended_early`: why it ended before the last one."""

    request: UpgradeRequest
    planned: Sequence[str]
    played: list[PlayedStage] = field(default_factory=list)
    outcomes: list[StageOutcome] = field(default_factory=list)
    ended_early: str = ""


def rehearse(rehearsal: Rehearsal, plan: StagePlan, console: Console) -> None:
    """Plays the stages of an upgrade, and judges each; what came of them is in the rehearsal, also where this raises.

    Raises:
        StartError: the cluster or a trial could not be begun.
        Interrupted: by Ctrl-C or SIGTERM, after all was ended.
    """
    request = rehearsal.request
    verdicts = {name: StageVerdicts(name) for name in request.specs}
    with _judge() as judge, closing(play_upgrade(request, plan, console)) as stages:
        try:
            for played in stages:
                rehearsal.played.append(played)
                console.phase("check", f"what {played.stage.name} showed")
                told = [of_cluster(played.stage.name, played.losses, played.not_known)]
                losses = [loss for one in rehearsal.played for loss in one.losses]
                for name, folder in played.folders.items():
                    stranded = played.stranded.get(name, ())
                    told.append(
                        verdicts[name].outcome(played.stage.name, folder, judge.check(folder), losses, stranded)
                    )
                rehearsal.outcomes += told
                console.say(_in_words(played, told))
        except StartError:
            raise
        except KafkaTrialError as error:
            rehearsal.ended_early = f"{error}; {NO_ROOM}" if isinstance(error.__cause__, OSError) else str(error)
            if isinstance(error, Interrupted):
                raise
        except OSError as error:
            rehearsal.ended_early = f"what it shows could not be written any more: {error}; {NO_ROOM}"


@contextmanager
def _judge() -> Iterator[JudgeProcess]:
    """A judge that warms up while the cluster boots; the harness is preferred meanwhile, as in every session."""
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
    with ExitStack() as stack:
        judge = JudgeProcess(stack.enter_context(ChildProcesses("judge", belongings=[scratch])), scratch)
        stack.callback(judge.close)
        stack.enter_context(preferred())
        stack.enter_context(frozen_heap())
        yield judge


def _in_words(played: PlayedStage, told: Sequence[StageOutcome]) -> str:
    words = ", ".join(f"{one.subject or 'cluster'} {one.outcome}" for one in told)
    return f"{played.stage.name}, {played.seconds:.0f} s: {words}"
