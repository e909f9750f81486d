"""How long a backlog of one partition takes where each fetch blocks on the partitions that have nothing (case 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kafka_trial.preflight.fetches import records_per_fetch
from kafka_trial.preflight.plan import Plan
from kafka_trial.preflight.sizes import counted, duration_text

OTHER_TIMEOUTS_S = (10.0, 1.0, 0.1)


@dataclass(frozen=True)
class Drain:
    """A drain in seconds; None where arrivals keep up with it, and it never ends."""

    timeout_s: float
    drain_s: float | None
    formula: str


def drain(plan: Plan) -> Drain | None:
    """Returns how long the backlog takes; None where none is planned.

    rate = records per fetch ÷ (empty partitions × blocking timeout + records per fetch × service time);
    time = backlog ÷ (rate - arrivals).
    """
    backlog = plan.backlog
    if backlog is None:
        return None
    records = backlog.records_per_fetch or records_per_fetch(plan)
    round_s = backlog.empty_partitions * backlog.blocking_timeout_s + records * backlog.service_s
    told = (
        f"{counted(records, 'record')} a round of {duration_text(round_s)} "
        f"({counted(backlog.empty_partitions, 'empty partition')} × {duration_text(backlog.blocking_timeout_s)} + "
        f"{records} × {duration_text(backlog.service_s)})"
    )
    if not round_s:
        return Drain(backlog.blocking_timeout_s, 0.0, told)
    rate = records / round_s
    if rate <= backlog.arrivals_per_s:
        return Drain(
            backlog.blocking_timeout_s, None, f"{told}: no more than the {backlog.arrivals_per_s:g}/s that arrive"
        )
    return Drain(backlog.blocking_timeout_s, backlog.records / (rate - backlog.arrivals_per_s), told)


def drains_at_other_timeouts(plan: Plan) -> list[Drain]:
    """Returns the same backlog at the planned timeout, and at 10, 1 and 0.1 seconds."""
    if plan.backlog is None:
        return []
    timeouts = sorted({plan.backlog.blocking_timeout_s, *OTHER_TIMEOUTS_S}, reverse=True)
    others = [replace(plan, backlog=replace(plan.backlog, blocking_timeout_s=timeout)) for timeout in timeouts]
    return [found for other in others if (found := drain(other))]
