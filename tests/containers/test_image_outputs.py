"""An image whose effects are a topic, with transactions or without, or a table: each on trial, beside its faulty twin.

Of the three every one has its turn: each time that these tests have theirs, another one (`tiers.py`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest
from docker import DockerClient

from engines import left_of
from image_twins import try_on
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.errors import StartError
from kafka_trial.trial.session import Session, TrialOutcome
from lab.images import FOLDER, image_of_team
from requirements import missing
from tiers import ALL, in_turn

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]
TEAM = "go-invoices"


@dataclass(frozen=True)
class Output:
    """Where invoices go: the files of the sound image and of its twin, what must be found in that, and what may be:
    where a kill or an abort falls between commit and effect."""

    sound: str
    faulty: str
    must: frozenset[str]
    may: frozenset[str] = frozenset({"skipped"})


AHEAD = frozenset({"commit-ahead"})
OUTSIDE = frozenset({"offset-outside-transaction"})
# A transaction's outputs are read when it ends, soon after its positions: seldom are these seen to be ahead.
OUTPUTS = {
    "transactions": Output("consumer", "commits-before", OUTSIDE, AHEAD | {"skipped"}),
    "topic": Output("plain", "plain-commits-before", AHEAD),
    "table": Output("table", "table-commits-before", AHEAD),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes all tests one of each output, or of the one whose turn it is."""
    outputs = list(OUTPUTS) if metafunc.config.getoption("tier") == ALL else [in_turn(list(OUTPUTS))]
    metafunc.parametrize("output", outputs, scope="module")


@pytest.fixture(scope="module")
def tried(
    output: str,
    engine: DockerClient,
    engine_host: str,
    kafka_trial_session: Session,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, TrialOutcome]:
    """Tries the image and its twin on member-killed, by the names `sound` and `faulty`."""
    if output == "table":
        try:
            find_postgres()
        except StartError as error:
            missing("postgres", str(error))
    image_of_team(engine, TEAM)
    files = {name: FOLDER / TEAM / f"{getattr(OUTPUTS[output], name)}.toml" for name in ("sound", "faulty")}
    place = tmp_path_factory.mktemp("images")
    return try_on("member-killed", files, place, session=kafka_trial_session, engine_host=engine_host)


def test_a_sound_image_passes(tried: dict[str, TrialOutcome]) -> None:
    """By what it has committed to its output and the brokers' logs alone; both kills took effect."""
    verdict = tried["sound"].verdict
    assert (verdict.verdict, verdict.reasons) == ("pass", ()), tried["sound"].text
    assert {"skipped", "unseen", "commit-ahead", "reordered-key"} <= set(verdict.judged)
    assert [fault.bit for fault in verdict.faults] == [True, True]


def test_its_faulty_twin_fails(output: str, tried: dict[str, TrialOutcome]) -> None:
    """By one word in its environment it commits before it writes."""
    verdict, one = tried["faulty"].verdict, OUTPUTS[output]
    found = {violation.anomaly for violation in verdict.violations}
    assert verdict.verdict == "fail", tried["faulty"].text
    assert one.must <= found <= one.must | one.may, tried["faulty"].text


def test_nothing_of_it_stays(tried: dict[str, TrialOutcome], engine: DockerClient) -> None:
    """No container and no network that carries a run's label, once its cluster has ended."""
    assert len(tried) == 2
    assert left_of(engine, os.getpid()) == []
