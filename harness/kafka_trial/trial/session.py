"""One sitting: warm clusters and one Spark session, for as many trials as follow. CLI and pytest plugin share it."""

from __future__ import annotations

import math
import os
import queue
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kafka_trial.cluster.attached import AttachedCluster
from kafka_trial.cluster.cluster import Cluster
from kafka_trial.cluster.doctor import SCRATCH_PREFIX
from kafka_trial.cluster.jars import jars_of
from kafka_trial.cluster.mirror_maker import mirror_maker_jar_set
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.tiered_storage import tiered_jar_set
from kafka_trial.cluster.wiring import LANES
from kafka_trial.containers.engine import connect
from kafka_trial.containers.network import require_image
from kafka_trial.errors import InputError, KafkaTrialError
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
from kafka_trial.report.text import last_lines, text_report
from kafka_trial.scenario import Scenario
from kafka_trial.trial.console import Console
from kafka_trial.trial.judge_process import JudgeProcess, judging_in_words
from kafka_trial.trial.run import run_trial
from kafka_trial.trial.spec import TrialSpec, make_trial_spec
from kafka_trial.trial.stall_prevention import frozen_heap, preferred
from kafka_trial.verdict.decide import Verdict

TRIAL_WITHIN_S = 900.0
CLUSTER_NOT_TIERED = "its topic has a remote tier, and a cluster that runs already has none: leave --cluster out"


@dataclass(frozen=True)
class TrialOutcome:
    """One trial, run and judged; `earlier` are the tries of it that were unknown because of their environment."""

    folder: RunFolder
    verdict: Verdict
    text: str
    earlier: tuple[TrialOutcome, ...] = ()
    ending: str = ""  # of what a terminal shows of it: the verdict once more, and where its page is

    @property
    def tries(self) -> str:
        """Says how it came to its verdict where it took several tries; else empty."""
        if not self.earlier:
            return ""
        word, count = self.verdict.verdict, len(self.earlier) + 1
        places = ", ".join(str(one.folder.path) for one in self.earlier)
        return f"unknown, tried again: {word} ({count} tries); unknown is {places}"


@dataclass(frozen=True, eq=False)
class TrialRequest:
    """One of many trials, told apart by identity: its spec, where its run folder goes (None: the default), and when it
    must have been begun at the latest (monotonic clock), a further try too."""

    trial_spec: TrialSpec
    out: Path | None = None
    begin_by_s: float = math.inf


_Waiting = queue.SimpleQueue[TrialRequest]
_Done = queue.SimpleQueue[
    tuple[TrialRequest, TrialOutcome | KafkaTrialError] | None
]  # None: a bench has nothing left to do


class Session:
    """Runs trials one after the other; clusters stay warm between them unless a fault ruined them."""

    def __init__(
        self,
        *,
        console: Console | None = None,
        judging: bool = True,
        cluster: AttachedCluster | None = None,
        lanes: int = LANES,
    ) -> None:
        """`cluster`: one that `cluster up` keeps up, for all trials; else the session boots what they need.

        `lanes` of each cluster it boots: a trial takes one for each member, and three more.
        """
        self.console = console or Console(quiet=True)
        self.console.phase("begin", "starting the judge", shown=False)
        self._attached = cluster
        self._stack = ExitStack()
        # It warms up while the cluster boots; later it would slow down members just when a fault hits them.
        self._judge = self._start_judge() if judging else None
        self.clusters = self._stack.enter_context(ClusterPool(lanes=lanes))
        self._stack.enter_context(preferred())  # from here on nothing can fail
        self._stack.enter_context(frozen_heap())

    def try_one(
        self,
        scenario: Scenario,
        consumer: Path,
        *,
        kafka_version: str | None = None,
        seed: int | None = None,
        out: Path | None = None,
        retry_unknown: int = 0,
        image: str | None = None,
        load: float | None = None,
    ) -> TrialOutcome:
        """Runs one trial and judges it; one whose environment made it unknown, up to `retry_unknown` times more.

        Raises:
            InputError: the consumer, scenario or version is wrong; found before anything starts.
            StartError: no history could be begun.
        """
        trial_spec = make_trial_spec(scenario, consumer, kafka_version=kafka_version, seed=seed, image=image, load=load)
        return self.try_spec(trial_spec, out=out, retry_unknown=retry_unknown)

    def try_spec(
        self, trial_spec: TrialSpec, *, out: Path | None = None, retry_unknown: int = 0, begin_by_s: float = math.inf
    ) -> TrialOutcome:
        """Runs one trial and judges it; where its environment made it unknown, tries again with the same seed, but
        begins nothing after `begin_by_s` (monotonic clock).

        Every try has a run folder of its own: `out`, then `out` with -try2, -try3 behind its name.
        """
        earlier: list[TrialOutcome] = []
        while True:
            last = self._trialed(self.run_one(trial_spec, out=_place(out, len(earlier))))
            if len(earlier) >= retry_unknown or not last.verdict.retriable or time.monotonic() > begin_by_s:
                return replace(last, earlier=tuple(earlier)) if earlier else last
            self.console.say(f"unknown because of its environment, is tried again: {last.verdict.reasons[0]}")
            earlier.append(last)

    def run_one(self, trial_spec: TrialSpec, *, out: Path | None = None) -> RunFolder:
        """Runs one trial without judging it; returns its run folder.

        Raises:
            StartError: no history could be begun; for want of the consumer's image, or of further jars, before anything
                starts.
            InputError: the cluster that it is to use has no remote tier, and a topic is to have one.
        """
        if trial_spec.images:
            with closing(connect()) as client:
                for image in trial_spec.images:
                    require_image(client, image)
        if trial_spec.scenario.mirror is not None:
            jars_of(mirror_maker_jar_set())  # fetched before anything starts
        if trial_spec.scenario.tiered:
            if self._attached is not None:
                raise InputError(f"scenario {trial_spec.scenario.name}", CLUSTER_NOT_TIERED)
            jars_of(tiered_jar_set())
        folder = create_run_folder(out, trial_spec.scenario.name, trial_spec.consumer.name)
        self.console.say(f"run folder {folder.path}, seed {trial_spec.seed}")
        if trial_spec.plays_other_steps:
            self.console.say(
                f"plays the schedule it was given; the steps of scenario {trial_spec.scenario.name} are others"
            )
        with self._cluster_for(trial_spec) as cluster, self._mirror_for(trial_spec) as mirror:
            self.console.trial_begins()
            run_trial(trial_spec, cluster, folder, console=self.console, mirror=mirror)
        return folder

    def _cluster_for(self, trial_spec: TrialSpec) -> AbstractContextManager[Cluster]:
        if self._attached is not None:
            return nullcontext(self._attached)
        return self.clusters.cluster_for(
            trial_spec.kafka_version,
            brokers=trial_spec.scenario.brokers,
            lanes=trial_spec.lanes_in_all,
            alone=trial_spec.plan.breaks_brokers,
            containers=trial_spec.in_containers,
            tiered=trial_spec.scenario.tiered,
        )

    def _mirror_for(self, trial_spec: TrialSpec) -> AbstractContextManager[Cluster | None]:
        if trial_spec.scenario.mirror is None:
            return nullcontext()
        return self.clusters.cluster_for(
            trial_spec.kafka_version,
            brokers=1,
            lanes=trial_spec.lanes,
            alone=True,
            containers=trial_spec.in_containers,
        )

    def try_many(
        self,
        requests: Sequence[TrialRequest],
        *,
        side_by_side: int | None = None,
        until_s: float | None = None,
        retry_unknown: int = 0,
    ) -> Iterator[tuple[TrialRequest, TrialOutcome | KafkaTrialError]]:
        """Runs and judges many trials, as many at once as there are cores, and yields each when it is done.

        Those that break brokers run one after the other, beside the rest. A trial that could not be begun yields its
        error. After `until_s` (monotonic clock) none is begun any more, no further try either, and none after its own
        `begin_by_s`; those under way are finished and yielded.
        """
        breaking, others = (
            _queue(one for one in requests if one.trial_spec.plan.breaks_brokers is breaks) for breaks in (True, False)
        )
        done: _Done = queue.SimpleQueue()
        benches = min(len(requests), side_by_side or os.cpu_count() or 1)
        with ThreadGroup("trials", join_within_s=600.0) as thread_group:
            for number in range(benches):
                turns = (breaking, others) if number == 0 else (others, breaking)
                thread_group.start(
                    f"bench {number}", self._work_off, turns, done, thread_group.stop, until_s, retry_unknown
                )
            while benches:
                outcome = _next(done, thread_group)
                if outcome is None:
                    benches -= 1
                else:
                    yield outcome

    def _work_off(
        self,
        turns: Sequence[_Waiting],
        done: _Done,
        stop: threading.Event,
        until_s: float | None,
        retry_unknown: int,
    ) -> None:
        for waiting in turns:
            broke = False
            with suppress(queue.Empty):
                while not stop.is_set() and (until_s is None or time.monotonic() < until_s):
                    one = waiting.get_nowait()
                    if time.monotonic() > one.begin_by_s:
                        continue
                    broke = one.trial_spec.plan.breaks_brokers
                    try:
                        tried = self.try_spec(
                            one.trial_spec,
                            out=one.out,
                            retry_unknown=retry_unknown,
                            begin_by_s=min(one.begin_by_s, math.inf if until_s is None else until_s),
                        )
                        done.put((one, tried))
                    except KafkaTrialError as error:
                        done.put((one, error))
            if broke:  # no other breaks brokers any more
                self.clusters.end_unused(alone=True)
        done.put(None)

    def _trialed(self, folder: RunFolder) -> TrialOutcome:
        verdict = self.check(folder)
        return TrialOutcome(folder, verdict, text_report(folder), ending=last_lines(folder))

    def check(self, folder: RunFolder) -> Verdict:
        """Has a run folder judged by the session's judge, and returns the verdict."""
        if self._judge is None:
            self._judge = self._start_judge()
        began_s = time.monotonic()
        self.console.phase("check", judging_in_words(folder))
        try:
            return self._judge.check(
                folder, meanwhile=lambda: self.console.progress(f"{time.monotonic() - began_s:.0f} s so far")
            )
        finally:
            self.console.rest()

    def _start_judge(self) -> JudgeProcess:
        scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
        judge = JudgeProcess(self._stack.enter_context(ChildProcesses("judge", belongings=[scratch])), scratch)
        self._stack.callback(judge.close)
        return judge

    def close(self) -> None:
        """Stops every cluster."""
        self.console.phase("end", "stopping clusters and the judge", shown=False)
        self._stack.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _place(out: Path | None, tries: int) -> Path | None:
    return out if out is None or tries == 0 else out.with_name(f"{out.name}-try{tries + 1}")


def _queue(requests: Iterable[TrialRequest]) -> _Waiting:
    waiting: _Waiting = queue.SimpleQueue()
    for one in requests:
        waiting.put(one)
    return waiting


def _next(done: _Done, thread_group: ThreadGroup) -> tuple[TrialRequest, TrialOutcome | KafkaTrialError] | None:
    wait_until(
        lambda: not done.empty() or thread_group.errors,
        within_s=TRIAL_WITHIN_S,
        what="the next trial to end",
        every_s=0.2,
    )
    if done.empty():
        raise thread_group.errors[0][1]  # one that is none of ours: the command says what it is
    return done.get()
