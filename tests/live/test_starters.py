"""What `init` writes is built by the commands that it prints, and passes: every language with every sink, in turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker import DockerClient

from builds import build, must_survive_kills
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.errors import StartError
from kafka_trial.starters.starter import LANGUAGES, SINKS, build_lines, write_starter
from kafka_trial.trial.session import Session
from python_image import python_image
from requirements import missing

NAME = "orders"
EVERY_ONE = [f"{language}-{sink}" for language in LANGUAGES if language != "image" for sink in SINKS]

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(every=60)]


@pytest.mark.parametrize("starter", EVERY_ONE)
def test_a_starter_passes(starter: str, kafka_trial_session: Session, tmp_path: Path) -> None:
    """Given the smallest honest consumer of a language and a sink, when members are killed, then its claim holds."""
    language, sink = starter.split("-")
    require_server(sink)
    folder = written(language, sink, tmp_path)
    build(build_lines(NAME, language), folder)
    must_survive_kills(folder, kafka_trial_session)


@pytest.mark.parametrize("sink", SINKS)
def test_an_image_starter_passes(
    sink: str,
    engine: DockerClient,
    engine_host: str,
    kafka_trial_session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given the image of a starter, built on a Python without pip, when members are killed, then its claim holds."""
    require_server(sink)
    monkeypatch.setenv("DOCKER_HOST", engine_host)
    folder = written("image", sink, tmp_path)
    (line,) = build_lines(NAME, "image")
    assert line.startswith("docker build ")
    # For want of a registry the base is made here; pip finds its index on this machine's network.
    build([f"{line} --network host --build-arg BASE={python_image(engine)}"], folder)
    try:
        must_survive_kills(folder, kafka_trial_session)
    finally:
        kafka_trial_session.clusters.end_unused(alone=False)
        engine.images.remove(f"{NAME}:dev", force=True)


def written(language: str, sink: str, place: Path) -> Path:
    """Returns the folder of a starter, just written."""
    write_starter(place / NAME, name=NAME, language=language, sink=sink)
    return place / NAME


def require_server(sink: str) -> None:
    """Skips, or fails where the machine must have it, if what serves the sink is missing."""
    if sink == "postgres":
        try:
            find_postgres()
        except StartError as error:
            missing("postgres", str(error))
