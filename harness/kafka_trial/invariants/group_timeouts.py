"""Group timeouts: what brokers were told of the group's times, and what they and the harness saw of it before
the faults.

Collected while the history is read (`judge/requested_timeouts.py`). Where it says something it stands before
consumer.toml, which declares only what nobody can see.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeclaredTimeouts:
    """What was seen of one group; None where nobody saw it.

    `session_timeout_s` and `rebalance_timeout_s`: the longest that a member joined with, or that the cluster gives to
    members of KIP-848. `heartbeat_s` and `poll_cycle_s`: the longest time between two heartbeats, and two deliveries
    (of a consumer that prints none: two fetches), of one member before the faults. `leaves`: lane and time of each
    request to leave the group that was answered without an error.
    """

    protocol: str | None = None
    session_timeout_s: float | None = None
    rebalance_timeout_s: float | None = None
    heartbeat_s: float | None = None
    poll_cycle_s: float | None = None
    leaves: tuple[tuple[int, int], ...] = ()
