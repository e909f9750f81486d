"""A cluster of containers is no cluster for trials where nobody sees what becomes of it."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.cluster import containers
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.cluster.wiring import block_of_ports
from kafka_trial.errors import StartError


def test_processes_that_cannot_be_seen_are_a_start_error() -> None:
    """The number is another process's here, as in a container beside the others: it says what to do."""
    ours: Any = SimpleNamespace(pid=os.getpid(), id="f" * 64)
    with pytest.raises(StartError, match=r"processes of containers cannot be seen .*ffffffffffff.* not in a container"):
        containers._require_sight(ours)


def test_connections_that_nobody_tells_of_are_a_start_error() -> None:
    """A Toxiproxy that is not ours, or none."""
    with block_of_ports(1) as ports:
        cluster: Any = SimpleNamespace(toxiproxy=Toxiproxy(ports[0]))
        with pytest.raises(StartError, match=r"connections of containers .*unset KAFKA_TRIAL_TOXIPROXY"):
            containers._require_sockets(cluster)
