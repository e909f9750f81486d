"""An image and its faulty twin, tried side by side on one cluster of containers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec


def try_on(
    suite: str, files: Mapping[str, Path], place: Path, *, session: Session, engine_host: str
) -> dict[str, TrialOutcome]:
    """Tries consumers on a suite, each by its name and file, with their runs in `place`; lets the cluster end."""
    scenario = registry.find_scenario(suite)
    asked = {TrialRequest(make_trial_spec(scenario, file, seed=1), place / name): name for name, file in files.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", engine_host)
        outcomes = {asked[one]: outcome for one, outcome in session.try_many(list(asked), retry_unknown=1)}
        session.clusters.end_unused(alone=False)
    assert all(isinstance(outcome, TrialOutcome) for outcome in outcomes.values()), outcomes
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, TrialOutcome)}
