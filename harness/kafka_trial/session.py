"""One sitting: warm clusters and one Spark session, for as many trials as follow. CLI and pytest plugin share it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.judge.session import warm_session
from kafka_trial.judging import check_run
from kafka_trial.narrator import Narrator
from kafka_trial.question import Question, make_question
from kafka_trial.report.text import text_report
from kafka_trial.run import run_trial
from kafka_trial.scenario import Scenario
from kafka_trial.verdict import Verdict


@dataclass(frozen=True)
class Trialed:
    """One trial, run and judged."""

    folder: RunFolder
    verdict: Verdict
    text: str


class Session:
    """Runs trials one after the other; clusters stay warm between them unless a fault ruined them."""

    def __init__(self, *, narrator: Narrator | None = None, judging: bool = True) -> None:
        self.narrator = narrator or Narrator(quiet=True)
        if judging:
            warm_session()  # Spark starts in the background while the cluster boots
        self._stack = ExitStack()
        self._clusters = self._stack.enter_context(ClusterPool())

    def try_one(
        self,
        scenario: Scenario,
        consumer: Path,
        *,
        kafka_version: str | None = None,
        seed: int | None = None,
        out: Path | None = None,
    ) -> Trialed:
        """Runs one trial and judges it.

        Raises:
            InputError: the consumer, scenario or version is wrong; found before anything starts.
            StartError: no history could be begun.
        """
        folder = self.run_one(make_question(scenario, consumer, kafka_version=kafka_version, seed=seed), out=out)
        verdict = check_run(folder)
        return Trialed(folder, verdict, text_report(folder))

    def run_one(self, asked: Question, *, out: Path | None = None) -> RunFolder:
        """Runs one trial without judging it; returns its run folder."""
        folder = create_run_folder(out, asked.scenario.name, asked.consumer.name)
        self.narrator.say(f"run folder {folder.path}, seed {asked.seed}")
        with self._clusters.cluster_for(asked.kafka_version, brokers=asked.scenario.brokers) as cluster:
            run_trial(asked, cluster, folder, narrator=self.narrator)
        return folder

    def close(self) -> None:
        """Stops every cluster."""
        self._stack.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
