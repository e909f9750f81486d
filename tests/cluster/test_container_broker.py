"""A broker in a container that becomes another version: another container on the same data, from its next start on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.cluster.cluster import FIRST_CONTROLLER
from kafka_trial.cluster.containers import ContainerBroker, _settings
from kafka_trial.cluster.versions import KNOWN
from kafka_trial.cluster.wiring import Wiring
from kafka_trial.errors import StartError, UnjudgeableError

OLD, NEW = "3.9.2", "4.3.1"


@dataclass
class Written:
    """A container that notes when it was started; `shares` names the one whose volumes it has."""

    version: str
    shares: str | None
    pid: int = 0
    alive: bool = False
    starts: list[int] = field(default_factory=list)

    def start(self) -> None:
        """Runs from now on, as another process each time."""
        self.pid, self.alive = self.pid + 1 or 1, True
        self.starts.append(self.pid)


def broker_of(made: dict[str, Written], *, images: tuple[str, ...] = (OLD, NEW)) -> ContainerBroker:
    """Returns a broker of the old version whose containers are noted by version."""

    def prepare(version: str, first: Any) -> Any:
        if version not in images:
            raise StartError("no image of it")
        return made.setdefault(version, Written(version, first and first.version))

    return ContainerBroker(1, OLD, Path("/nowhere/b1"), frozenset({20000}), prepare)


def test_each_version_has_one_container_on_the_data_of_the_first() -> None:
    """There, back, and there again: two containers, each started twice; until the start the old one is what is seen."""
    made: dict[str, Written] = {}
    broker = broker_of(made)
    broker.start()
    for version in (NEW, OLD, NEW):
        before = made[broker.version]
        before.alive = False
        broker.become(version)
        assert (broker.version, broker.pid, broker.alive) == (version, before.pid, False)
        broker.start()
        assert (broker.pid, broker.alive) == (made[version].pid, True)
    assert {version: (one.shares, one.starts) for version, one in made.items()} == {
        OLD: (None, [1, 2]),
        NEW: (OLD, [1, 2]),
    }


def test_a_version_without_an_image_is_refused_and_the_broker_stays_what_it_is() -> None:
    """Its next start is one of the version that it was."""
    made: dict[str, Written] = {}
    broker = broker_of(made, images=(OLD,))
    with pytest.raises(UnjudgeableError, match=r"broker 1 cannot become 4\.3\.1: no image of it"):
        broker.become(NEW)
    broker.start()
    assert (broker.version, made[OLD].starts) == (OLD, [1])


def test_a_controller_of_its_own_advertises_nothing() -> None:
    """The official image refuses one that does; a broker tells its clients where it is."""
    wiring = Wiring(range(20000, 20000 + Wiring.size(3, 1, 3)), 3, 1, controllers=3)
    for version in (OLD, NEW):
        assert "advertised.listeners" not in _settings(wiring, KNOWN[version], FIRST_CONTROLLER)
        assert "advertised.listeners" in _settings(wiring, KNOWN[version], 0)
    assert wiring.ports_of(FIRST_CONTROLLER) == {wiring.controller_port(FIRST_CONTROLLER)}
