"""A broker that was replaced: what brokers must say of it, which nodes a step names, and who may join or leave."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.wiring import Wiring
from kafka_trial.errors import UnjudgeableError
from kafka_trial.nemesis.brokers import nodes_named
from kafka_trial.nemesis.replacement import gone
from kafka_trial.nemesis.samples import Leader, TopicSnapshot


def look(*leaders: tuple[int, tuple[int, ...]]) -> TopicSnapshot:
    """What brokers say: of each partition its leader, and who is in sync."""
    return TopicSnapshot(0, tuple(Leader(number, leader, 7, isr) for number, (leader, isr) in enumerate(leaders)))


@pytest.mark.parametrize(
    ("there", "bit", "message"),
    [
        (look((3, (1, 2, 3)), (1, (1, 2, 3))), True, "broker 3 stands in the place of 0"),
        (look((3, (1, 2, 3)), (1, (0, 1, 2))), False, "broker 0 is still named for partitions [1]"),
        (look((0, (1, 2, 3))), False, "broker 0 is still named for partitions [0]"),
        (look((1, (1, 2)), (2, (1, 2))), False, "broker 3 is in sync with no partition: nothing was moved there"),
        (look(), False, "no leader could be read"),
    ],
)
def test_a_broker_is_gone_when_nothing_is_on_it(there: TopicSnapshot, bit: bool, message: str) -> None:
    """And the new one holds something: a broker that held nothing proves no move."""
    seen = gone(there, 0, 3)
    assert (seen.took_effect, seen.message) == (bit, message)


def test_nodes_have_names() -> None:
    """Brokers b, controllers of their own c, in the order that is given; a name that nobody has is refused."""
    assert nodes_named("c1,b4", [3, 4, 100, 101]) == [101, 4]
    with pytest.raises(UnjudgeableError, match="there is no b0, c9; there are b3, b4, c0"):
        nodes_named("b0,b3,c9", [3, 4, 100])


def cluster(*, further: bool) -> BootedCluster:
    """Three brokers that run, and places for three more; nothing is behind it."""

    def broker(number: int, version: str = "") -> Any:
        return SimpleNamespace(id=number, alive=True, server_log=Path(f"b{number}"))

    wiring = Wiring(range(20000, 20000 + Wiring.size(6, 1, 3)), 6, 1, controllers=3)
    return BootedCluster(
        *("kt1", "3.9.2", Path("/nowhere"), wiring, {number: broker(number) for number in range(3)}),
        toxiproxy_died=lambda: None,
        make_broker=broker if further else None,
    )


def test_no_broker_joins_where_it_has_no_place() -> None:
    """Its id and ports are laid out when the cluster is booted; an id that was used has another's data."""
    with pytest.raises(UnjudgeableError, match="broker 3 cannot join: kt1 was booted without a place for it"):
        cluster(further=False).join(3, "4.3.1")
    with pytest.raises(UnjudgeableError, match="broker 6 cannot join: kt1 was booted without a place"):
        cluster(further=True).join(6, "4.3.1")
    with pytest.raises(UnjudgeableError, match="broker 2 cannot join kt1: its id and its folder were used before"):
        cluster(further=True).join(2, "4.3.1")


def test_a_broker_that_runs_does_not_leave() -> None:
    """Its address would be gone, and it would go on."""
    with pytest.raises(UnjudgeableError, match="broker 1 cannot leave: it runs"):
        cluster(further=True).leave(1)
    with pytest.raises(UnjudgeableError, match="broker 5 cannot leave: it is not there"):
        cluster(further=True).leave(5)
