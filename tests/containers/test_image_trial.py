"""An image that nobody changed, on trial: a team's own, which knows nothing of Kafka Trial, and its faulty twin.

Of the suites every one has its turn: each time that these tests have theirs, another one (`tiers.py`).
"""

from __future__ import annotations

import os
from signal import SIGKILL

import pytest
from docker import DockerClient

from engines import left_of
from image_twins import try_on
from kafka_trial.trial.session import Session, TrialOutcome
from lab.images import FOLDER, image_of_team
from tiers import ALL, in_turn

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]
TEAM = "python-orders"
# Each with how many faults it has.
SUITES = {"member-killed": 2, "member-paused": 1, "rebalance-storm": 3, "coordinator-lost": 1, "stalled-network": 1}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes all tests one of each suite, or of the one whose turn it is."""
    suites = list(SUITES) if metafunc.config.getoption("tier") == ALL else [in_turn(list(SUITES))]
    metafunc.parametrize("tried", suites, indirect=True, scope="module")


@pytest.fixture(scope="module")
def tried(
    request: pytest.FixtureRequest,
    engine: DockerClient,
    engine_host: str,
    kafka_trial_session: Session,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, TrialOutcome]:
    """Tries the image and its twin on a suite, side by side on one cluster of containers, and lets that end."""
    image_of_team(engine, TEAM)
    files = {name: FOLDER / TEAM / f"{name}.toml" for name in ("consumer", "commits-before")}
    place = tmp_path_factory.mktemp("images")
    return try_on(request.param, files, place, session=kafka_trial_session, engine_host=engine_host)


def _suite(tried: dict[str, TrialOutcome]) -> str:
    return str(tried["consumer"].folder.read_json("scenario.json")["name"])


def test_a_sound_image_that_nobody_changed_passes(tried: dict[str, TrialOutcome]) -> None:
    """By its effects at the sink and the brokers' logs alone: that nothing is skipped or lost was judged."""
    verdict = tried["consumer"].verdict
    assert (verdict.verdict, verdict.reasons) == ("pass", ()), tried["consumer"].text
    assert {"skipped", "unseen", "commit-ahead", "reordered-key", "illegal-redelivery"} <= set(verdict.judged)
    assert [fault.bit for fault in verdict.faults] == [True] * SUITES[_suite(tried)]


def test_its_faulty_twin_fails(tried: dict[str, TrialOutcome]) -> None:
    """By one word in its environment it commits before it sends; where a kill falls between, a record is lost too."""
    verdict = tried["commits-before"].verdict
    found = {violation.anomaly for violation in verdict.violations}
    assert verdict.verdict == "fail", tried["commits-before"].text
    assert {"commit-ahead"} <= found <= {"commit-ahead", "skipped"}, tried["commits-before"].text


def test_a_run_says_which_images_it_was_made_of(tried: dict[str, TrialOutcome]) -> None:
    """Each by its digest, the brokers' too; and who was killed, and nobody else, ended by that."""
    folder = tried["consumer"].folder
    metadata = folder.read_json("run.json")
    assert metadata["consumer_image"] == f"kafka-trial/{TEAM}:1"
    assert metadata["images"].keys() >= {f"kafka-trial/{TEAM}:1"}
    assert all(digest.startswith("sha256:") for digest in metadata["images"].values())
    assert len(metadata["images"]) == 3
    killed = [event for event in folder.events() if event.kind == "exited" and event.details.get("signal") == SIGKILL]
    assert len(killed) == (2 if _suite(tried) == "member-killed" else 0)


def test_nothing_of_it_stays(tried: dict[str, TrialOutcome], engine: DockerClient) -> None:
    """No container and no network that carries a run's label, once its cluster has ended."""
    assert len(tried) == 2
    assert left_of(engine, os.getpid()) == []
