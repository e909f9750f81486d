"""The remote tier: its jar is asked for by its classifier, and its segments can be out of sight for a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.tiered_storage import hidden_segments, tiered_jar_set
from kafka_trial.errors import InputError
from kafka_trial.trial.certify import CertifyRequest, begin_certificate
from kafka_trial.trial.session import Session
from kafka_trial.trial.spec import make_trial_spec

ID = "w66PH5eHTFOcfCRBzjgysg"
CONSUMER = registry.find_consumer("python-at-least-once")


def test_its_jar_is_that_of_the_tests_alone() -> None:
    """And none that it needs: brokers have them."""
    (module,) = map(str, tiered_jar_set().modules)
    assert ('transitive="false"' in module, 'm:classifier="test"' in module) == (True, True)


def test_segments_of_one_topic_are_hidden_and_come_back(tmp_path: Path) -> None:
    """Indexes stay, and what another topic has; what is taken meanwhile is not missed."""
    place = tmp_path / "tier" / "kafka-tiered-storage"
    ours = [place / f"t-{partition}-{ID}" / f"0{partition}-A.log" for partition in (0, 1)]
    others = [place / f"t-0-{ID}" / "00-A.index", place / f"u-0-{ID}" / "00-A.log", place / f"t-7-0-{ID}" / "00-A.log"]
    for file in (*ours, *others):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    with hidden_segments(tmp_path, "t") as count:
        assert (count, [one.exists() for one in (*ours, *others)]) == (2, [False, False, True, True, True])
        ours[1].with_suffix(".hidden").unlink()
    assert [one.exists() for one in (*ours, *others)] == [True, False, True, True, True]


def test_containers_have_none() -> None:
    """The jar is beside the brokers' own, in processes."""
    with ClusterPool() as pool, pytest.raises(InputError, match="a remote tier"):
        pool.cluster_for("4.3.1", containers=True, tiered=True).__enter__()


def test_another_version_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """By `run`; and a certificate of it leaves the suite out, and says why."""
    scenario, told = registry.find_scenario("remote-reads"), "a remote tier, which is there on Kafka 4.3.1 only, not on"
    with pytest.raises(InputError, match=told):
        make_trial_spec(scenario, CONSUMER, kafka_version="4.4.0")
    begun = begin_certificate(CertifyRequest(CONSUMER, tmp_path, kafka_versions=["4.3.1", "4.4.0"]))
    assert begun.left_out["remote-reads"].endswith(f"{told} 4.4.0")
    assert "remote-reads" in begin_certificate(CertifyRequest(CONSUMER, tmp_path)).suites


def test_a_cluster_that_runs_already_has_none(tmp_path: Path) -> None:
    """It says what to do."""
    spec = make_trial_spec(registry.find_scenario("remote-reads"), CONSUMER, seed=1)
    with (
        Session(judging=False, cluster=object()) as session,  # type: ignore[arg-type]
        pytest.raises(InputError, match="leave --cluster out"),
    ):
        session.run_one(spec, out=tmp_path / "run")
