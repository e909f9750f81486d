"""Twelve cells of the crash matrix on real brokers, chosen by pairs (`chosen_crashes.py`).

Those that have their turn are tried side by side on one warm cluster; one whose crash did not land at its point is
tried with the next seed, and so with another n, as `make cases` does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chosen_crashes import CHOSEN
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.errors import StartError
from kafka_trial.registry import CHECKOUT
from kafka_trial.trial.session import Session, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from lab.cases.crash_campaign import row_in_words, row_of
from lab.cases.crash_matrix import cells
from lab.cases.crash_rows import CrashRow
from requirements import missing

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates]

SEEDS = (11, 12, 13)
CELLS = {cell.name: cell for cell in cells() if cell.name in CHOSEN}


@pytest.fixture(scope="module")
def tried(
    request: pytest.FixtureRequest, kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, CrashRow]:
    """Tries those whose tests are to be run, until each has landed."""
    place, rows = tmp_path_factory.mktemp("crashes"), dict[str, CrashRow]()
    own = [item for item in request.session.items if item.path == request.path and isinstance(item, pytest.Function)]
    names = [item.callspec.params["name"] for item in own]
    for seed in SEEDS:
        asked = {_request(name, seed, place): name for name in names if name not in rows or not rows[name].reached}
        for one, outcome in kafka_trial_session.try_many(list(asked), side_by_side=2):
            rows[asked[one]] = row_of(CELLS[asked[one]], seed, outcome, keep=True)
    return rows


def _request(name: str, seed: int, place: Path) -> TrialRequest:
    cell = CELLS[name]
    spec = make_trial_spec(cell.scenario(seed), CHECKOUT / cell.consumer, seed=seed)
    return TrialRequest(spec, place / f"{name.replace('/', '-')}-{seed}")


def needs_postgres(name: str) -> bool:
    """Tells whether the effects of a cell go to PostgreSQL."""
    return spec_from_toml(CHECKOUT / CELLS[name].consumer).evidence.sink == "postgres"


@pytest.mark.parametrize("name", CHOSEN)
def test_a_crash_exactly_there_costs_what_the_case_says(name: str, request: pytest.FixtureRequest) -> None:
    """Killed the n-th time at the point, which is proven: what is delivered, and the verdict under its claim."""
    try:
        find_postgres()
    except StartError as error:
        if needs_postgres(name):
            missing("postgres", str(error))
    row = request.getfixturevalue("tried")[name]
    assert (row.proof.point, row.delivered, row.verdict, row.contradictions) == (*CHOSEN[name], ()), row_in_words(row)
    assert row.nth > 1
