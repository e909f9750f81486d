"""Which engine is taken, and what is said where none is."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.containers import engine as engine_module
from kafka_trial.containers.engine import client_of, connect
from kafka_trial.containers.engine_folder import engine_folder
from kafka_trial.containers.private_engine import private_engine
from kafka_trial.errors import StartError


@pytest.fixture
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leaves no engine to be had: none is named, the machine's own has another place, and the cache is empty."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path))
    monkeypatch.setattr(engine_module, "DEFAULT_SOCKET", f"unix://{tmp_path}/default.sock")


@pytest.mark.usefixtures("_nowhere")
def test_without_an_engine_each_place_is_named_and_what_to_do(tmp_path: Path) -> None:
    """The machine's own socket, then the private one's; and the command that starts a private one."""
    with pytest.raises(StartError) as caught:
        connect()
    said = str(caught.value)
    assert "DOCKER_HOST is not set" in said
    assert said.index(f"{tmp_path}/default.sock (No such file") < said.index(f"{engine_folder()}/docker.sock (No such")
    assert "`make dockerd`" in said


@pytest.mark.parametrize(
    ("host", "because"),
    [
        ("unix:///nowhere/docker.sock", "No such file or directory"),
        ("tcp://127.0.0.1:1", "Connection refused"),
        ("nonsense", "port is required"),
    ],
)
@pytest.mark.usefixtures("_nowhere")
def test_a_docker_host_that_is_set_is_the_only_one_tried(
    host: str, because: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another engine than the one that was named would be a surprise."""
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(StartError, match=because) as caught:
        connect()
    assert f"where DOCKER_HOST says: {host}" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.usefixtures("_nowhere", "can_start_engines")
def test_the_engine_that_docker_host_names_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same engine answers: it has an identity of its own."""
    with private_engine() as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        assert connect().info()["ID"] == client_of(host).info()["ID"]
