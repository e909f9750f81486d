"""What a trial starts lies in its run folder, where it is stored as a patch; anybody else's consumer where it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kafka_trial import registry
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.patched_consumer import program_source
from kafka_trial.history.store import create_run_folder
from kafka_trial.trial.consumer_files import folder_digest
from kafka_trial.trial.setup import _with_consumer_built, run_metadata
from kafka_trial.trial.spec import make_trial_spec
from kafka_trial.trial.topics import delete_topics_made
from kafka_trial.workload.payload import PayloadFiles


@pytest.mark.parametrize("name", ["commits-backwards", "commits-backwards/no-commits", "python-at-least-once"])
def test_a_patch_is_made_a_folder_before_the_trial(name: str, tmp_path: Path) -> None:
    """The members' working folder has the program, and the program that starts it; nothing else is asked."""
    asked = make_trial_spec(registry.find_scenario("control"), registry.find_consumer(name), seed=1)
    folder = create_run_folder(tmp_path / "run", "control", "any")
    made = _with_consumer_built(asked, folder)
    if name == "python-at-least-once":
        assert made is asked
        return
    there = made.consumer.folder
    assert (there, there.is_relative_to(folder.path)) == (folder.consumer / "faulty" / "commits-backwards", True)
    assert (there / "main.py").read_text() == program_source(asked.consumer.folder)
    assert [part for part in made.consumer.command[1:] if part.endswith(".py") and not (there / part).is_file()] == []
    assert (made.consumer.env, made.consumer.claim, made.plan) == (asked.consumer.env, asked.consumer.claim, asked.plan)


def test_successors_are_made_folders_too(tmp_path: Path) -> None:
    """A variant lies in the folder of its consumer; one that is no patch stays where it is."""
    names = ("commits-backwards", "commits-backwards/no-commits", "python-at-least-once")
    files = [registry.find_consumer(name) for name in names]
    asked = make_trial_spec(registry.find_scenario("control"), files[0], seed=1)
    asked = replace(asked, successors=tuple(spec_from_toml(file) for file in files[1:]))
    folder = create_run_folder(tmp_path / "run", "control", "any")
    made = _with_consumer_built(asked, folder)
    built = folder.consumer / "faulty" / "commits-backwards"
    assert made.consumer.path == built / "consumer.toml"
    assert [one.path for one in made.successors] == [built / "no-commits.toml", files[2]]
    assert all(one.path.is_file() for one in made.successors)


def test_the_digest_of_a_consumer_is_of_its_payload_too(tmp_path: Path) -> None:
    """Of samples beside its folder, and of those that are too large to be counted as its files."""
    folder, samples = tmp_path / "orders", tmp_path / "values"
    for place in (folder, samples):
        place.mkdir()
    (folder / "consumer.toml").write_text("")
    large = samples / "1.avro"
    large.write_bytes(b"\0" * 1_000_001)
    before, files = folder_digest(folder), PayloadFiles(samples=samples)
    with_samples = run_metadata(seed=1, kafka_version="4.3.1", consumer_file=folder / "consumer.toml", payload=files)
    large.write_bytes(b"\1" * 1_000_001)
    assert len({before, with_samples["consumer_digest"], folder_digest(folder, files)}) == 3


@pytest.mark.parametrize(("ruined", "deleted"), [(False, ["g-1-by-id-repartition", "kt-1-retry-0"]), (True, [])])
def test_the_trial_deletes_what_its_group_made(ruined: bool, deleted: list[str]) -> None:
    """What is named after the group or the trial's topic, and was not there before; not what others made meanwhile."""
    there, gone = ["kt-1-retry-0", "g-1-by-id-repartition", "g-1-kept", "orders"], list[str]()
    admin = SimpleNamespace(topics=lambda: there, delete_topic=gone.append)
    cluster = SimpleNamespace(ruined=ruined)
    delete_topics_made(cast("Cluster", cluster), cast("Admin", admin), ("g-1", "kt-1"), frozenset({"g-1-kept"}))
    assert gone == deleted
