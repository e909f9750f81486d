"""An image whose output arrives nowhere: it fails, for no partition moves; the first reason says why, in its client's
words, and nothing is left. Where the database died that the trial lent it, nobody is blamed.

Of these every one has its turn: each time that these tests have theirs, another one (`tiers.py`).
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from docker import DockerClient

from engines import left_of
from kafka_trial import registry
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.errors import FAIL, UNKNOWN, StartError
from kafka_trial.scenario import Limits
from kafka_trial.trial import environment
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from lab.images import FOLDER, image_of_team
from postgres import killed_in_steady
from requirements import missing
from tiers import ALL, in_turn

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]
TEAM = "go-invoices"
QUICK = Path(__file__).parent.parent / "live" / "quick.toml"
NOTHING_CAME = "no effect came to the sink: members are to write to "
TO_TABLE, TO_TOPIC = NOTHING_CAME + "`{postgres_url}`", NOTHING_CAME + "the topic that [sink.topic] names"
QUOTED = "its last words in logs/m0-0.stderr: "


@dataclass(frozen=True)
class Mistake:
    """What is wrong: the file of the sound image, what its environment has instead, and what the first reason says."""

    sound: str
    env: str
    reason: tuple[str, ...]
    verdict: str = "fail"
    kept: str = "logs/m0-0.stderr"


MISTAKES = {
    "database elsewhere": Mistake(
        "table",
        'DATABASE = "postgresql://orders@localhost:5432/trial?sslmode=disable"',
        ("0 of ", TO_TABLE, QUOTED, "connection refused"),
    ),
    "database asked for TLS": Mistake(
        "table", 'DATABASE = "{postgres_url}"', ("0 of ", TO_TABLE, QUOTED, "SSL is not enabled on the server")
    ),
    "no such topic": Mistake(
        "plain", 'OUTPUT_TOPIC = "invoices-of-nobody"', ("0 of ", TO_TOPIC, QUOTED, "UNKNOWN_TOPIC_OR_PARTITION")
    ),
    "a topic of the brokers' own": Mistake(
        "consumer", 'OUTPUT_TOPIC = "__consumer_offsets"', ("0 of ", TO_TOPIC, QUOTED, "INVALID_TOPIC_EXCEPTION")
    ),
    "database killed": Mistake(
        "table", "", ("the trial's PostgreSQL has died (exit -9)",), verdict="unknown", kept="logs/postgres.log"
    ),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes all tests one of each mistake, or of the one whose turn it is."""
    mistakes = list(MISTAKES) if metafunc.config.getoption("tier") == ALL else [in_turn(list(MISTAKES))]
    metafunc.parametrize("mistake", mistakes, scope="module")


@dataclass(frozen=True)
class Tried:
    """A trial, and what a database that was killed in it has left behind."""

    trial_outcome: TrialOutcome
    left: list[str]


@pytest.fixture(scope="module")
def tried(mistake: str, engine: DockerClient, engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """Tries an image with the mistake, with little time for the opening burst and a first record."""
    one, place = MISTAKES[mistake], tmp_path_factory.mktemp("images")
    if one.sound == "table":
        try:
            find_postgres()
        except StartError as error:
            missing("postgres", str(error))
    image_of_team(engine, TEAM)
    (place / "schema.sql").write_text((FOLDER / TEAM / "schema.sql").read_text())
    sound = os.path.relpath(FOLDER / TEAM / f"{one.sound}.toml", place)
    (place / "consumer.toml").write_text(f'extends = "{sound}"\nname = "mistaken"\n[env]\n{one.env}\n')
    scenario = replace(registry.find_scenario(str(QUICK)), schedule=(), limits=Limits(ready_s=20))
    asked = TrialRequest(make_trial_spec(scenario, place / "consumer.toml", seed=1), place / "run")
    with pytest.MonkeyPatch.context() as patch, Session() as session:
        patch.setenv("DOCKER_HOST", engine_host)
        patch.setattr(environment, "CALIBRATION_WITHIN_S", 12.0)
        with nullcontext(list) if one.env else killed_in_steady(place / "run") as left:
            ((_, outcome),) = session.try_many([asked])
    assert isinstance(outcome, TrialOutcome), outcome
    return Tried(outcome, left())


def test_the_first_reason_says_why(mistake: str, tried: Tried) -> None:
    """What came, where it was to go, and what the image's client says of it; or who died."""
    verdict, text = tried.trial_outcome.verdict, tried.trial_outcome.text
    exits = {"fail": FAIL, "unknown": UNKNOWN}
    found = {violation.anomaly for violation in verdict.violations}
    assert (verdict.verdict, verdict.exit) == (MISTAKES[mistake].verdict, exits[MISTAKES[mistake].verdict]), text
    assert ("stuck-partition" in found) == (verdict.verdict == "fail"), text
    assert [part for part in MISTAKES[mistake].reason if part not in verdict.reasons[0]] == [], text


def test_it_is_kept_and_nothing_of_it_stays(mistake: str, tried: Tried, engine: DockerClient) -> None:
    """Logs are in the run folder; no container, no network, and no folder or process of the database has stayed."""
    assert (tried.trial_outcome.folder.path / MISTAKES[mistake].kept).stat().st_size > 0
    assert (left_of(engine, os.getpid()), tried.left) == ([], [])
