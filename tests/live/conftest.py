"""The sampled trials of this session, run side by side in the background; each item waits for its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sampled import Sampled, asked

from kafka_trial.concurrency import Crew
from kafka_trial.errors import KafkaTrialError
from kafka_trial.session import Asked, Session, Trialed
from kafka_trial.waiting import wait_until

SAMPLE_WITHIN_S = 45 * 60


class Sample:
    """What became of each sampled trial; `of` waits for one."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._done: dict[Sampled, Trialed | KafkaTrialError] = {}

    def run(self, session: Session, questions: Mapping[Asked, Sampled]) -> None:
        """Runs all trials, as many at once as there are cores."""
        for one, outcome in session.try_many(list(questions)):
            self._done[questions[one]] = outcome

    def of(self, sampled: Sampled) -> Trialed:
        """Returns one trial, judged; raises what kept it from being begun."""
        wait_until(
            lambda: sampled in self._done,
            within_s=SAMPLE_WITHIN_S,
            what=f"the trial {sampled}",
            every_s=0.2,
            alive=lambda: f"{self._crew.errors[0]}" if self._crew.errors else None,
        )
        outcome = self._done[sampled]
        if isinstance(outcome, KafkaTrialError):
            raise outcome
        return outcome


@pytest.fixture(scope="session")
def sample(
    request: pytest.FixtureRequest, kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sample]:
    """Runs the sampled trials of the selected items."""
    wanted = [one for item in request.session.items if (one := _sampled_of(item)) is not None]
    folder = tmp_path_factory.mktemp("sample")
    questions = {asked(one, folder / f"{number:02}"): one for number, one in enumerate(wanted)}
    with Crew("sample", join_within_s=900.0) as crew:
        sample = Sample(crew)
        crew.start("trials", sample.run, kafka_trial_session, questions)
        yield sample


def _sampled_of(item: Any) -> Sampled | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("sampled") if callspec else None


@pytest.fixture
def quick() -> Path:
    """Returns the scenario file of a whole trial in little time."""
    return Path(__file__).with_name("quick.toml")
