"""The command of the page on upgrades, as it stands there: a sound consumer comes through every stage."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from kafka_trial.cli import main
from kafka_trial.errors import PASS
from kafka_trial.registry import find_consumer

STAGES = ["before", "mixed-1", "mixed-2", "rolled", "rolled-back", "forward-again", "finalised", "reloaded"]


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_a_sound_consumer_is_a_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every stage, for itself and for the cluster, with the load on in each of them; the record holds."""
    for file in find_consumer("python-at-least-once").parent.iterdir():
        shutil.copy(file, tmp_path / file.name)
    monkeypatch.chdir(tmp_path)
    words = ["upgrade", "--from", "3.9.2", "--to", "4.3.1", "--consumer", "consumer.toml", "--out", "upgrade"]
    assert main(words) == PASS
    record = orjson.loads((tmp_path / "upgrade" / "upgrade.json").read_bytes())
    told = {(one["stage"], one["subject"]): one["outcome"] for one in record["outcomes"]}
    assert told == {(stage, subject): "go" for stage in STAGES for subject in ("", "python-at-least-once")}
    for stage in record["stages"]:
        waits_s = [one["unavailable_s"] for one in stage["availability"][0]["partitions"]]
        assert waits_s, stage["name"]
        assert None not in waits_s, stage["name"]  # nothing was sent to a partition before the stage's load was held
    assert main(["verify", "upgrade"]) == PASS
