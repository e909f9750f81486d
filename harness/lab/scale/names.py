"""What the parts of a generated history call things, and where its clocks stand."""

from __future__ import annotations

from typing import Any

from lab.scale.shapes import SECOND_NS, Ints

TOPIC, TOPIC_ID, GROUP = "scale", "AAAAAAAAAAAAAAAAAAAAAQ", "scale-group"
BROKERS = 3
WALL_NS = 1_795_000_000 * SECOND_NS  # what the wall clock shows at 0 of the monotonic one
DRAIN_NS = 60 * SECOND_NS


def who(member: int) -> dict[str, Any]:
    """Returns the fields that every line of a member carries."""
    return {"member": f"m{member}", "incarnation": 0}


def entries(partitions: Ints, committed_offsets: Ints | None = None) -> list[dict[str, Any]]:
    """Returns partitions as the entries of an event."""
    named = [{"topic": TOPIC, "partition": partition} for partition in partitions.tolist()]
    if committed_offsets is None:
        return named
    return [entry | {"committed_offset": at} for entry, at in zip(named, committed_offsets.tolist(), strict=True)]
