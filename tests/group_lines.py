"""What brokers answer to members of the group, as lines of a literal history (`histories.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from histories import GROUP, TOPIC, Line


def joined(member: str, *, generation: int = 1, error: int = 0, took_ms: float = 5.0, **timeouts_ms: int) -> Line:
    """A JoinGroup is answered: the member is in that generation; `session_timeout_ms`, `rebalance_timeout_ms`."""
    return _answered("JOIN_GROUP", member, epoch=generation, error=error, duration_ms=took_ms, **timeouts_ms)


def synced(member: str, *partitions: int, generation: int = 1, error: int = 0, took_ms: float = 5.0) -> Line:
    """A SyncGroup is answered: the member is given these partitions (none: nothing)."""
    listed = _places(partitions)
    return _answered("SYNC_GROUP", member, epoch=generation, error=error, entries=listed, duration_ms=took_ms)


def beat(
    member: str,
    assigned: Sequence[int] | None = None,
    *,
    epoch: int = 1,
    error: int = 0,
    owned: Sequence[int] | None = None,
) -> Line:
    """A ConsumerGroupHeartbeat (KIP-848) is answered; `assigned`, `owned` None: as before."""
    fields: dict[str, Any] = {} if assigned is None else {"assigned": _places(assigned)}
    fields |= {} if owned is None else {"entries": _places(owned)}
    return _answered("CONSUMER_GROUP_HEARTBEAT", member, epoch=epoch, answered_epoch=epoch, error=error, **fields)


def heartbeat(member: str, *, generation: int = 1, error: int = 0) -> Line:
    """A classic Heartbeat is answered."""
    return _answered("HEARTBEAT", member, epoch=generation, error=error)


def left(member: str, *, error: int = 0) -> Line:
    """A LeaveGroup is answered."""
    return _answered("LEAVE_GROUP", member, error=error)


def _answered(api: str, member: str, **fields: Any) -> Line:
    lane = {"lane": int(member[1:]), "member_id": f"id-{member}", "connection": member, "client_id": member}
    return Line("requests-b0", "request", {"api": api, "group": GROUP, "duration_ms": 5.0} | lane | fields)


def _places(partitions: Sequence[int]) -> list[dict[str, Any]]:
    return [{"topic": TOPIC, "partition": partition} for partition in partitions]
