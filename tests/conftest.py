"""What all tests share: warm clusters, one per Kafka version, and one Spark session, for the whole session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from sampled import Sample, asked

from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.processes import ProcessCluster
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.concurrency import Crew
from kafka_trial.session import Session

pytest_plugins = ["pytester"]
LIVE = "live"
NICE = 5


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders the items, and says which of them one process of several must have together."""
    items.sort(key=turn)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))


def turn(item: pytest.Item) -> int:
    """Returns when an item has its turn: what takes longest first, so that nothing long is left for the end.

    The sampled trials, then what boots or borrows clusters, then what starts a Spark of its own, then the rest.
    """
    if item.get_closest_marker("cluster"):
        return 0 if is_sampled(item) else 1
    return 2 if item.get_closest_marker("spark") else 3


def group_of(item: pytest.Item) -> str:
    """Returns whose neighbour an item is where several processes share the items.

    One of them has all that needs clusters, which are warm in it and would be too many in two; the others go by module.
    """
    return LIVE if item.get_closest_marker("cluster") else item.nodeid.partition("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Has a process of several that runs what needs no cluster take only what the live trials leave of the machine."""
    if "PYTEST_XDIST_WORKER" in os.environ and group_of(item) != LIVE and os.nice(0) < NICE:
        os.nice(NICE - os.nice(0))


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


@pytest.fixture(scope="session")
def cluster_pool(kafka_trial_session: Session) -> ClusterPool:
    """Returns the warm clusters of this session, the same that trials use."""
    return kafka_trial_session.clusters


@pytest.fixture
def cluster(cluster_pool: ClusterPool) -> Iterator[ProcessCluster]:
    """Lends a whole three-broker cluster of the default version."""
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster:
        yield cluster
