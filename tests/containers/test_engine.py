"""Which engine is taken, and what is said where none is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from testcontainers.core.config import testcontainers_config

from kafka_trial.containers import engine as engine_module
from kafka_trial.containers.engine import client_of, connect
from kafka_trial.containers.engine_folder import engine_folder
from kafka_trial.containers.private_engine import private_engine
from kafka_trial.errors import StartError


@pytest.fixture
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leaves no engine to be had: none is named, the machine's own has another place, and the cache is empty."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(testcontainers_config, "tc_properties", {})
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


def make_context(folder: Path, host: str) -> None:
    """Makes a context of Docker's command line, and makes it the current one, as `docker context use` does."""
    (folder / "config.json").write_text(json.dumps({"currentContext": "theirs"}))
    meta = folder / "contexts" / "meta" / hashlib.sha256(b"theirs").hexdigest()
    meta.mkdir(parents=True)
    endpoints = {"docker": {"Host": host, "SkipTLSVerify": False}}
    (meta / "meta.json").write_text(json.dumps({"Name": "theirs", "Metadata": {}, "Endpoints": endpoints}))


@pytest.mark.usefixtures("_nowhere")
@pytest.mark.parametrize("by", ["context", "properties"])
def test_an_engine_that_is_named_for_testcontainers_is_the_only_one_tried(
    by: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A team's consumer is tried where its own tests run; what DOCKER_HOST says comes before."""
    host = "unix:///nowhere/theirs.sock"
    if by == "context":
        make_context(tmp_path, host)
    else:
        monkeypatch.setattr(testcontainers_config, "tc_properties", {"tc.host": host})
    with pytest.raises(StartError, match=f"or the current docker context says: {host}") as caught:
        connect()
    assert "default.sock" not in str(caught.value)
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(StartError, match="where DOCKER_HOST says"):
        connect()


@pytest.mark.usefixtures("_nowhere", "can_start_engines")
def test_the_engine_that_docker_host_names_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same engine answers: it has an identity of its own."""
    with private_engine() as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        assert connect().info()["ID"] == client_of(host).info()["ID"]


@pytest.mark.usefixtures("_nowhere", "can_start_engines")
def test_the_engine_of_the_current_context_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where no DOCKER_HOST is set: that of `docker context use`."""
    with private_engine() as host:
        make_context(tmp_path, host)
        assert connect().info()["ID"] == client_of(host).info()["ID"]
