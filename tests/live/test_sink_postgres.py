"""The PostgreSQL of a trial dies in the middle of it: nobody is blamed, what there was is kept, and nothing stays."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from kafka_trial import registry
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.errors import UNKNOWN, StartError
from kafka_trial.history.store import Follower
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
from kafka_trial.trial.session import Session, Trialed, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from requirements import missing

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]


def test_a_trial_whose_postgres_was_killed_is_unknown(kafka_trial_session: Session, tmp_path: Path) -> None:
    """Its members exit, for their database is gone; the reason named is the database, and the status 4."""
    try:
        find_postgres()
    except StartError as error:
        missing("postgres", str(error))
    scenario = registry.find_scenario(str(Path(__file__).with_name("quick.toml")))
    trial_spec = make_trial_spec(scenario, registry.find_consumer("python-postgres-upserts"), seed=5)
    run, folders = tmp_path / "run", list[Path]()
    with ThreadGroup("killer") as thread_group:
        thread_group.start("kill", _kill_in_steady, run, folders)
        (outcome,) = (outcome for _, outcome in kafka_trial_session.try_many([TrialRequest(trial_spec, run)]))
    assert isinstance(outcome, Trialed), outcome
    verdict = outcome.verdict
    assert (verdict.verdict, verdict.exit) == ("unknown", UNKNOWN), outcome.text
    assert "the trial's PostgreSQL has died (exit -9)" in verdict.reasons[0], outcome.text
    assert [event for event in outcome.folder.events() if event.kind == "effect"], "what was read before is kept"
    assert (outcome.folder.logs / "postgres.log").stat().st_size > 0
    assert [folder for folder in folders if folder.exists()] == []
    assert not any(str(folders[0]) in " ".join(process.info["cmdline"] or ()) for process in _running())


def _kill_in_steady(run: Path, folders: list[Path]) -> None:
    follower = Follower(run / "history", "sink.jsonl")
    wait_until(
        lambda: sum(event.kind == "effect" for event in follower.new_events()),
        within_s=180,
        what=f"the first effects of {run}",
    )
    (server,) = [process for process in _running() if _serves(process, run)]
    folders.append(Path(server.info["cmdline"][2]).parent)
    server.kill()


def _running() -> list[psutil.Process]:
    return list(psutil.process_iter(["cmdline"]))


def _serves(process: psutil.Process, run: Path) -> bool:
    given = process.info["cmdline"] or []
    if len(given) < 3 or given[1] != "-D":
        return False
    return any(file.path == str(run / "logs" / "postgres.log") for file in process.open_files())
