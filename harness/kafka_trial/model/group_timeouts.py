"""Group timeouts: what brokers were told of the group's times, and what they and the harness saw of it before
the faults.

Collected while the history is read (`judge/requested_timeouts.py`). Where it says something it stands before
consumer.toml, which declares only what nobody can see.

And for how long a partition of a group at work may show no movement, a term of W (`liveness_bounds.py`). Members that
take batches, work slowly, commit rarely or by transactions make long pauses, and show them in the trial: the longest
pause that ended says how long the next may last. What stands still until the end shows nothing of the kind. What a
movement is: `movements.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

TIMES_FURTHER = 2  # of one record: so many deliveries, completions and effects may be of use
BEATS_UNMOVED = 3  # heartbeats that stand for a pause where nothing moved


@dataclass(frozen=True)
class DeclaredTimeouts:
    """What was seen of one group; None where nobody saw it.

    `session_timeout_s` and `rebalance_timeout_s`: the longest that a member joined with, or that the cluster gives to
    members of KIP-848. `heartbeat_s` and `poll_cycle_s`: the longest time between two heartbeats, and two deliveries
    (of a consumer that prints none: two fetches), of one member before the faults. `leaves`: lane and time of each
    request to leave the group that was answered without an error. `protocols`: all that members spoke; `protocol` is
    the one with the longer waits, where there are two. `takeovers`: lane and time of each join with an instance id that
    was answered without an error: the process has the place of the one before it.
    """

    protocol: str | None = None
    session_timeout_s: float | None = None
    rebalance_timeout_s: float | None = None
    heartbeat_s: float | None = None
    poll_cycle_s: float | None = None
    leaves: tuple[tuple[int, int], ...] = ()
    protocols: tuple[str, ...] = ()
    takeovers: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Movements:
    """What was seen of a trial's partitions: the longest time between two movements of one of them that followed one
    another; None where nothing moved at all."""

    longest_gap_s: float | None = None


@dataclass(frozen=True)
class Pause:
    """The longest pause that a partition may make, and what it follows from."""

    name: str
    seconds: float


def pause_of(movements: Movements, *, longest_handler_s: float, heartbeat_s: float, poll_limit_s: float) -> Pause:
    """Returns the longest pause, as far as the group tolerates that of a member: who was never seen to take five
    minutes between two polls has no claim to them (KIP-62: who takes longer than `poll_limit_s` is expelled)."""
    if movements.longest_gap_s is None:
        longest = Pause(f"{BEATS_UNMOVED} heartbeats, for nothing moved", BEATS_UNMOVED * heartbeat_s)
    elif longest_handler_s > movements.longest_gap_s:
        longest = Pause("the longest handler", longest_handler_s)
    else:
        longest = Pause("the longest time between two movements", movements.longest_gap_s)
    return longest if longest.seconds <= poll_limit_s else Pause("the poll interval", poll_limit_s)
