"""On a real cluster a cut meets exactly the request that was asked for, and every sabotaged one is found out.

Nine cells, three members at a time: each place with each action, and the four crash points that need no word of the
consumer's. Sabotage: a cut armed with less than was asked, elsewhere, or whose kill meets a bystander.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from signal import SIGKILL
from typing import Any

import pytest

from fault_arena import MEMBERS, Arena, Blunt, settle
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.schedule import Outcome, make_plan, run_schedule
from kafka_trial.scenario import Step

pytestmark = pytest.mark.cluster

FOR_S = 1.2
RECORDS = {"api": "Fetch", "where": "after", "answer_bytes_min": 2000}
CELLS: Mapping[str, Mapping[str, Any]] = {
    "commit-held-before": {"where": "before", "action": "hold", "nth": 3},
    "commit-answer-held": {"where": "answered", "action": "hold"},
    "heartbeat-closed-before": {"api": "Heartbeat", "where": "before", "action": "close"},
    "commit-answer-lost": {"where": "answered", "action": "close", "nth": 2},
    "commit-delayed": {"where": "before", "action": "delay", "delay_ms": 700},
    "fetch-closed-after": {**RECORDS, "action": "close"},
    "killed-before-commit": {"where": "before", "then": "kill"},
    "killed-when-committed": {"where": "answered", "then": "kill"},
    "killed-with-records": {**RECORDS, "then": "kill"},
}


def play(context: FaultContext, cells: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
    """Plays the cells, as many at a time as there are members, each on a member of its own."""
    outcomes: dict[str, Outcome] = {}
    every = list(cells.items())
    for together in (every[first : first + MEMBERS] for first in range(0, len(every), MEMBERS)):
        settle(context)
        steps = [
            Step("cut", f"member:{number}", for_s=FOR_S, options={"within_s": 8, **options})
            for number, (_, options) in enumerate(together)
        ]
        _, played = run_schedule(context, make_plan(steps, seed=5))
        outcomes |= dict(zip((name for name, _ in together), played, strict=True))
    return outcomes


@pytest.fixture(scope="module")
def cut(arena: Arena) -> dict[str, Outcome]:
    """Plays every cell."""
    return play(arena.context, CELLS)


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_bites_and_heals(cut: dict[str, Outcome], name: str) -> None:
    """Both witnesses say so, and traffic comes back."""
    outcome = cut[name]
    assert outcome.evidence.took_effect, (outcome.evidence.message, outcome.evidence.details)
    assert outcome.healed_traffic, outcome.evidence.details


def less(**instead: Any) -> Callable[[Arena], FaultContext]:
    """Arms something else than what was asked."""

    def context(arena: Arena) -> FaultContext:
        toxiproxy = arena.context.cluster.toxiproxy

        def update(proxy: str, name: str, attributes: Mapping[str, Any]) -> None:
            armed = {"arm": {**attributes["arm"], **instead}} if "arm" in attributes else attributes
            toxiproxy.update_toxic(proxy, name, armed)

        cluster: Any = Blunt(arena.context.cluster, {"toxiproxy": Blunt(toxiproxy, {"update_toxic": update})})
        return replace(arena.context, cluster=cluster)

    return context


def bystander_killed(arena: Arena) -> FaultContext:
    """Kills somebody else."""

    def kill(*_: object) -> None:
        arena.child_processes.spawn("bystander", ["sleep", "60"]).signal(SIGKILL)

    group: Any = Blunt(arena.context.group, {"kill": kill})
    return replace(arena.context, group=group)


SABOTAGED: Mapping[str, tuple[Mapping[str, Any], Callable[[Arena], FaultContext], str]] = {
    "hold": ({"action": "hold"}, less(action="delay", delay_ms=100), "was stopped for"),
    "close": ({"action": "close"}, less(action="delay", delay_ms=100), "was to end by drop"),
    "delay": ({"action": "delay", "delay_ms": 500}, less(delay_ms=20), "was stopped for"),
    "where": ({"action": "hold", "where": "before"}, less(where="answered"), "reached the broker all the same"),
    "nth": ({"action": "hold"}, less(nth=10_000), "not reached: "),
    "kill": ({"then": "kill"}, bystander_killed, "was not killed"),
}


@pytest.fixture(scope="module")
def sabotaged(arena: Arena) -> dict[str, Outcome]:
    """Plays each with its blunt tool."""
    outcomes: dict[str, Outcome] = {}
    for name, (options, blunt, _) in SABOTAGED.items():
        outcomes |= play(blunt(arena), {name: {"within_s": 3, **options}})
    return outcomes


@pytest.mark.parametrize("name", SABOTAGED)
def test_every_sabotaged_cut_is_found_out(sabotaged: dict[str, Outcome], name: str) -> None:
    """Each call succeeded; the evidence says what did not happen."""
    outcome = sabotaged[name]
    assert not outcome.evidence.took_effect, (outcome.evidence.message, outcome.evidence.details)
    assert SABOTAGED[name][2] in outcome.evidence.message
