"""What all tests share: warm clusters, one per Kafka version, and one Spark session, for the whole session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# Not in pyproject.toml: pytest reads this file and not that one where the suites are run from the checkout for a
# consumer that lies outside of it.
sys.path.insert(0, str(Path(__file__).with_name("live")))
sys.path.insert(0, str(Path(__file__).parent))

from sampled import Sample, Sampled, asked

from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.cluster.versions import DEFAULT_VERSION, KNOWN
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.trial.session import Session

pytest_plugins = ["pytester", "durations", "requirements", "engines", "tiers", "gathering"]

# `pytester` gives tests another home, where nothing was fetched, built or trained yet.
os.environ.setdefault("KAFKA_TRIAL_CACHE", str(cache_folder()))

# Trials run beside: how long an example takes says nothing about what it shows.
hypothesis.settings.register_profile(
    "beside trials",
    parent=hypothesis.settings(),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("beside trials")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders the items: the sampled trials last, of which several run at once."""
    items.sort(key=turn)


def turn(item: pytest.Item) -> tuple[int, bool]:
    """Returns when an item has its turn: what needs no cluster, what boots or borrows one, the sampled trials.

    Of each, what is on another Kafka than the default comes last: a cluster stays warm until the end, and three idle
    brokers cost up to half a core.
    """
    if item.get_closest_marker("sample"):
        return 2, on_another_kafka(item)
    return int(item.get_closest_marker("cluster") is not None), on_another_kafka(item)


def on_another_kafka(item: pytest.Item) -> bool:
    """Tells whether one of an item's parameters is a version of Kafka other than the default, or a trial on one."""
    params = getattr(getattr(item, "callspec", None), "params", {}).values()
    asked = {getattr(param, "kafka_version", param) for param in params if isinstance(param, str | Sampled)}
    return bool(asked & (KNOWN.keys() - {DEFAULT_VERSION}))


def is_sampled(item: pytest.Item) -> bool:
    """Tells whether an item waits for one of the sampled trials."""
    return "sampled" in getattr(getattr(item, "callspec", None), "params", ())


@pytest.fixture(scope="session", autouse=True)
def folders_outlive_runs_inside(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Gives the runs of pytest that tests start a place of their own: where they find ours, they remove the oldest."""
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def sampled_trials(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample | None]:
    """Holds the sampled trials that items wait for; None if none does."""
    wanted = [item.callspec.params["sampled"] for item in request.session.items if is_sampled(item)]
    if not wanted:
        yield None
        return
    folder = tmp_path_factory.mktemp("sample")
    questions = {asked(one, folder / f"{number:02}"): one for number, one in enumerate(wanted)}
    with ThreadGroup("sample", join_within_s=900.0) as thread_group:
        session, retries = request.getfixturevalue("kafka_trial_session"), request.config.getoption("retry_unknown")
        yield Sample(thread_group, session, questions, retry_unknown=retries)


@pytest.fixture(scope="session")
def cluster_pool(kafka_trial_session: Session) -> ClusterPool:
    """Returns the warm clusters of this session, the same that trials use."""
    return kafka_trial_session.clusters


@pytest.fixture
def cluster(cluster_pool: ClusterPool) -> Iterator[BootedCluster]:
    """Lends a whole three-broker cluster of the default version."""
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster:
        yield cluster
