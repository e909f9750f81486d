"""A team's own Avro bytes: forwarded as they came they pass, changed on the way they are found; the run keeps them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.report.report_data import read_report
from kafka_trial.scenario import Limits
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from kafka_trial.workload.payload import kept_payload

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

CONSUMER = registry.find_consumer("forwards-avro-bytes").parent
READS = "    read_order(value)\n"
AS_TEXT = READS + '    value = value.decode(errors="replace").encode()\n'  # the sin: bytes are no text


@pytest.fixture(scope="module")
def tried(kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    """Tries the fixture, and a copy of it that takes values for text."""
    place = tmp_path_factory.mktemp("forwarders")
    quick = replace(
        registry.find_scenario(str(Path(__file__).with_name("quick.toml"))), limits=Limits(drain_s=30, ready_s=60)
    )
    asked = {}
    for name, line in (("sound", READS), ("as-text", AS_TEXT)):
        folder = place / name
        shutil.copytree(CONSUMER, folder)
        program = folder / "main.py"
        assert READS in program.read_text()
        program.write_text(program.read_text().replace(READS, line))
        trial_spec = make_trial_spec(quick, folder / "consumer.toml", seed=7)
        asked[TrialRequest(trial_spec, folder / "run")] = name
    outcomes = {asked[one]: outcome for one, outcome in kafka_trial_session.try_many(list(asked))}
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, TrialOutcome)}


def test_bytes_that_are_forwarded_as_they_came_pass(tried: dict[str, TrialOutcome]) -> None:
    """Recognised by the header, compared by the checksum of what was sent: nothing lost, nothing corrupt."""
    verdict = tried["sound"].verdict
    assert (verdict.verdict, verdict.reasons) == ("pass", ()), tried["sound"].text
    assert {"corrupt", "skipped", "unseen"} <= set(verdict.judged)


def test_bytes_that_are_taken_for_text_are_corrupt(tried: dict[str, TrialOutcome]) -> None:
    """Whoever decodes them and encodes them again forwards something else; nothing else is wrong."""
    verdict = tried["as-text"].verdict
    found = {violation.anomaly for violation in verdict.violations}
    assert (verdict.verdict, found) == ("fail", {"corrupt"}), tried["as-text"].text


def test_a_run_keeps_what_it_sent_and_its_replay_sends_that(tried: dict[str, TrialOutcome]) -> None:
    """The samples lie in the run folder, byte for byte; the command of the report names them."""
    folder = tried["sound"].folder
    kept = kept_payload(folder.payload)
    assert kept.samples is not None
    originals = {file.name: file.read_bytes() for file in (CONSUMER / "orders").iterdir()}
    assert {file.name: file.read_bytes() for file in kept.samples.iterdir()} == originals
    replay = read_report(folder, with_history=False).replay
    assert replay.endswith(f"--payload {folder.payload}")
    control, toml = registry.find_scenario("control"), CONSUMER / "consumer.toml"
    assert make_trial_spec(control, toml).payload.headers == kept.headers
    assert make_trial_spec(control, toml, payload=folder.payload).payload == kept
