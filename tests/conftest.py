"""What all tests share: warm clusters, one per Kafka version, and one Spark session, for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sampled import Sample, asked

from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.processes import ProcessCluster
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.concurrency import Crew
from kafka_trial.session import Session

pytest_plugins = ["pytester"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders the items so that the sampled trials run in the background of what needs no cluster."""
    items.sort(key=turn)


def turn(item: pytest.Item) -> int:
    """Returns when an item has its turn.

    First what changes the environment or a module of this very process, where no trial may run meanwhile; then the rest
    of what needs no cluster, beside which they do; then the trials' own items, which only wait; then what boots or
    borrows clusters.
    """
    if item.get_closest_marker("cluster"):
        return 2 if is_sampled(item) else 3
    return 0 if "monkeypatch" in item.fixturenames else 1


def is_sampled(item: pytest.Item) -> bool:
    """Tells whether an item waits for one of the sampled trials."""
    return "sampled" in getattr(getattr(item, "callspec", None), "params", ())


@pytest.fixture(scope="session")
def sampled_trials(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample | None]:
    """Holds the sampled trials that items wait for; None if none does."""
    wanted = [item.callspec.params["sampled"] for item in request.session.items if is_sampled(item)]
    if not wanted:
        yield None
        return
    folder = tmp_path_factory.mktemp("sample")
    questions = {asked(one, folder / f"{number:02}"): one for number, one in enumerate(wanted)}
    with Crew("sample", join_within_s=900.0) as crew:
        yield Sample(crew, request.getfixturevalue("kafka_trial_session"), questions)


@pytest.fixture(autouse=True)
def _trials_beside(request: pytest.FixtureRequest, sampled_trials: Sample | None) -> None:
    """Has the sampled trials begin in the background of the first item that leaves this process as it is."""
    if sampled_trials is not None and turn(request.node) > 0:
        sampled_trials.begin()


@pytest.fixture(scope="session")
def cluster_pool(kafka_trial_session: Session) -> ClusterPool:
    """Returns the warm clusters of this session, the same that trials use."""
    return kafka_trial_session.clusters


@pytest.fixture
def cluster(cluster_pool: ClusterPool) -> Iterator[ProcessCluster]:
    """Lends a whole three-broker cluster of the default version."""
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster:
        yield cluster
