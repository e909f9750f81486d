"""What an upgrade is asked for: checked before anything starts."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from kafka_trial.cli import main
from kafka_trial.cluster.images import NAMED
from kafka_trial.errors import NOT_BEGUN, InputError, StartError
from kafka_trial.registry import find_consumer
from kafka_trial.upgrade import batches
from kafka_trial.upgrade.request import LOAD, REPLACED, UpgradeRequest, make_upgrade_request
from kafka_trial.upgrade.successors import Chain
from kafka_trial.workload.workload import LoadWorkload

SOUND = find_consumer("python-at-least-once")
IMAGES = Path(__file__).parents[2] / "fixtures" / "images"
IMAGE = IMAGES / "python-orders" / "consumer.toml"


def test_a_path_that_is_allowed_says_until_when_it_can_be_taken_back(tmp_path: Path) -> None:
    """The features that brokers will have decide it; what no release mends is said."""
    request = make_upgrade_request("3.9.2", "4.3.1", [Chain(SOUND)], seed=1, out=tmp_path)
    assert list(request.specs) == ["python-at-least-once"]
    assert "Reversible until metadata.version 4.0-IV1 or higher is finalised" in str(request.way_back)
    assert "KAFKA-21117" in {flaw.issue for flaw in request.open_flaws}


@pytest.mark.parametrize(
    ("before", "after", "consumers", "sentence"),
    [
        ("3.9.2", "3.9.2", [SOUND], "the brokers are of 3.9.2 already"),
        ("4.3.1", "3.9.2", [SOUND], "3.9.2 is older than 4.3.1: that is a way back, no upgrade"),
        ("3.9.2", "4.2.0", [SOUND], "4.2.0 is to be avoided"),
        ("3.2.3", "4.3.1", [SOUND], "4.3.1 is reached from KRaft clusters of 3.3 and newer, not from 3.2.3"),
        ("3.9.2", "4.3.9", [SOUND], "unknown Kafka version '4.3.9'"),
        ("new", "4.3.1", [SOUND], "expected two or three numbers with dots"),
        ("3.9.2", "4.3.1", [SOUND, SOUND], "two consumers have one name"),
        ("3.9.2", "4.3.1", [find_consumer("python-at-least-once/consumer-protocol")], "3.9.2"),
    ],
)
def test_what_cannot_be_is_refused_by_its_rule(
    before: str, after: str, consumers: list[Path], sentence: str, tmp_path: Path
) -> None:
    """Wrong input, status 2; nothing has begun."""
    with pytest.raises(InputError) as refused:
        make_upgrade_request(before, after, [Chain(one) for one in consumers], seed=1, out=tmp_path)
    assert sentence in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_consumers_that_are_images_want_a_cluster_of_containers(tmp_path: Path) -> None:
    """By their files, or where an image stands for the command of the only one."""
    chains = [Chain(IMAGE), Chain(IMAGES / "go-orders" / "consumer.toml")]
    assert make_upgrade_request("3.9.2", "4.3.1", chains, seed=1, out=tmp_path).in_containers
    assert not make_upgrade_request("3.9.2", "4.3.1", [Chain(SOUND)], seed=1, out=tmp_path).in_containers
    named = make_upgrade_request("3.9.2", "4.3.1", [Chain(IMAGE)], seed=1, out=tmp_path, image="team/orders:7")
    assert [one.consumer.image for one in named.specs.values()] == ["team/orders:7"]


def test_an_image_beside_a_command_is_refused(tmp_path: Path) -> None:
    """They need other clusters: which of the two is what, is said."""
    with pytest.raises(InputError, match="python-orders is an image, python-at-least-once a command: they need other"):
        make_upgrade_request("3.9.2", "4.3.1", [Chain(SOUND), Chain(IMAGE)], seed=1, out=tmp_path)


@pytest.mark.parametrize("chains", [[Chain(IMAGE), Chain(SOUND)], [Chain(IMAGE, (SOUND,))]])
def test_one_image_stands_for_one_consumer(chains: list[Chain], tmp_path: Path) -> None:
    """Of several, or of a chain, nobody knows whose it is."""
    with pytest.raises(InputError, match=r"--consumer-image.*stands for the image of one consumer"):
        make_upgrade_request("3.9.2", "4.3.1", chains, seed=1, out=tmp_path, image="team/orders:7")


def test_one_kafka_image_for_both_versions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where brokers are containers, before anything starts."""
    monkeypatch.setenv(NAMED, "registry.team/kafka:7")
    with pytest.raises(InputError, match="names one image"):
        make_upgrade_request("3.9.2", "4.3.1", [Chain(IMAGE)], seed=1, out=tmp_path)
    make_upgrade_request("3.9.2", "4.3.1", [Chain(SOUND)], seed=1, out=tmp_path)


def test_the_options_of_the_command_are_what_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the first thing that would be started."""
    asked: list[UpgradeRequest] = []

    def no_cluster(request: UpgradeRequest, **_: object) -> None:
        asked.append(request)
        raise StartError("no cluster here")

    monkeypatch.setattr(batches, "rehearse_all", no_cluster)
    words = [
        "upgrade",
        "--from=3.9.2",
        "--to=4.3.1",
        "--consumer=python-at-least-once",
        f"--out={tmp_path / 'upgrade'}",
    ]
    assert main([*words, "--shape=replace", "--add-partitions=4", "--seed=7"]) == NOT_BEGUN
    (one,) = asked
    assert (one.before, one.after, one.shape, one.added, one.seed) == ("3.9.2", "4.3.1", REPLACED, 4, 7)


def test_the_load_outlasts_every_rehearsal() -> None:
    """On a slow machine too: a stage in which nothing is written any more shows nothing."""
    ops = LoadWorkload(LOAD, partitions=6).ops(random.Random(1))
    in_two_hours = next(islice(ops, LOAD.opening_burst + 2 * 3600 * 100, None))
    assert in_two_hours.at_s == pytest.approx(2 * 3600)
