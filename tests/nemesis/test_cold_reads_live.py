"""A neighbour that reads rolled segments, on a real cluster: it bites, and what keeps it from biting is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fault_arena import Arena, Blunt, settle
from kafka_trial.nemesis import cold_reader, rolled_segments
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.schedule import Outcome, make_plan, run_schedule
from kafka_trial.process.waiting import wait_until
from kafka_trial.scenario import Step

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(every=4)]


@pytest.fixture
def context(arena: Arena) -> FaultContext:
    """The group at work, once its topic has rolled segments."""

    def written() -> int:
        with arena.context.rolled_segments() as segments:
            return segments.sample().size_bytes

    wait_until(lambda: written() > 12_000_000, within_s=60, what="some segments to be full", every_s=0.5)
    settle(arena.context)
    return arena.context


def played(context: FaultContext, **options: float) -> Outcome:
    (outcome,) = run_schedule(context, make_plan([Step("cold-reads", "all", for_s=3, options=options)], seed=5))[1]
    return outcome


def test_it_bites(context: FaultContext) -> None:
    """Brokers read rolled segments from their disks; nobody is left of the neighbour's group."""
    outcome = played(context)
    assert outcome.evidence.took_effect, (outcome.evidence.message, outcome.evidence.details)
    assert outcome.evidence.details["in_memory_bytes"] < outcome.evidence.details["rolled_bytes"] / 10
    group = context.admin.describe_group(f"{context.topic}-neighbour-0")
    assert (group["members"], outcome.healed_traffic) == ([], True)


def not_there(descriptor: int) -> int:
    raise OSError(38, "cachestat: Function not implemented")


@pytest.mark.parametrize(
    ("name", "instead", "message"),
    [
        ("make_cold", lambda descriptor: None, "rolled segments stayed in memory"),
        ("disk_read_bytes", lambda pid: 7, "next to nothing from a disk"),
        ("_rolled_segment_links", lambda pid, topic: [], "no partition has a rolled segment"),
        ("cached_bytes", not_there, "cachestat: Function not implemented"),
    ],
    ids=["not cold", "no disk", "no rolled segment", "no cachestat"],
)
def test_what_shows_nothing_is_found_out(
    context: FaultContext, name: str, instead: Callable[..., Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The neighbour reads, and what that does to brokers is not seen."""
    monkeypatch.setattr(rolled_segments, name, instead)
    outcome = played(context)
    assert (outcome.evidence.took_effect, message in outcome.evidence.message) == (False, True), outcome.evidence


def test_a_neighbour_that_reads_nothing_is_found_out(context: FaultContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers it."""
    monkeypatch.setattr(cold_reader, "READS_WITHIN_S", 3.0)
    cluster: Any = Blunt(context.cluster, {"observer_bootstrap": "127.0.0.1:1"})
    outcome = played(replace(context, cluster=cluster))
    assert (outcome.evidence.took_effect, "the neighbour to read" in outcome.evidence.message) == (False, True)
