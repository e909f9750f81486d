"""What `init` writes is built by the commands that it prints, and passes: every language with every sink, in turn."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.errors import StartError
from kafka_trial.starters.starter import LANGUAGES, SINKS, build_lines, write_starter
from kafka_trial.trial.session import Session
from requirements import missing

BUILT_WITHIN_S = 600
TOOLS = {"java": "mvn", "go": "go", "node": "npm", "rust": "cargo"}
EVERY_ONE = [f"{language}-{sink}" for language in LANGUAGES if language != "image" for sink in SINKS]

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(every=60)]


@pytest.mark.parametrize("starter", EVERY_ONE)
def test_a_starter_passes(starter: str, kafka_trial_session: Session, tmp_path: Path) -> None:
    """Given the smallest honest consumer of a language and a sink, when members are killed, then its claim holds."""
    language, sink = starter.split("-")
    require(language, sink)
    folder = tmp_path / "orders"
    write_starter(folder, name="orders", language=language, sink=sink)
    for line in build_lines("orders", language):
        built = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, timeout=BUILT_WITHIN_S)
        assert built.returncode == 0, f"{line}\n{built.stdout}\n{built.stderr}"
    trialed = kafka_trial_session.try_one(
        registry.scenarios()["member-killed"], folder / "consumer.toml", out=tmp_path / "run", retry_unknown=1
    )
    assert trialed.verdict.verdict == "pass", trialed.text


def require(language: str, sink: str) -> None:
    """Skips, or fails where the machine must have it, if a tool is missing that builds or serves a starter."""
    tool = TOOLS.get(language)
    if tool is not None and shutil.which(tool) is None:
        missing(tool, f"{tool} is not on PATH: a starter in {language} cannot be built")
    if sink == "postgres":
        try:
            find_postgres()
        except StartError as error:
            missing("postgres", str(error))
