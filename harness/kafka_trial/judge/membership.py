"""Memberships: the group records of the offsets log, as far as they tell of epochs and of who is in the group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka_trial.invariants.trial_context import Membership

WHAT = {"group": "group", "member_assignment": "member"}
TOMBSTONES = {2: "group gone", 8: "member gone"}  # by the type of the record


def membership_of(body: Mapping[str, Any], *, source: int, member_id: int) -> Membership | None:
    """Returns what a group record tells; None where it tells nothing of it, or has no place."""
    kind, record_type, place = str(body.get("kind")), _number(body, "record_type"), _number(body, "log_offset")
    what = WHAT.get(kind) or TOMBSTONES.get(-1 if record_type is None else record_type)
    of_member = what in ("member", "member gone")
    if what is None or place is None or (of_member and member_id < 0):
        return None
    epoch = _number(body, "epoch")
    return Membership(
        place=place,
        what=what,
        member_id=member_id if of_member else -1,
        epoch=-1 if epoch is None else epoch,
        members=_listed(body) if what == "group" else None,
        wall_ns=_number(body, "source_wall_ns"),
        time_ns=body["time_ns"],
        source=source,
        seq=body["seq"],
    )


def _listed(body: Mapping[str, Any]) -> int | None:
    """Returns how many members a classic record lists; None where it says nothing of them or of what they have."""
    members, entries = body.get("members"), body.get("entries")
    return len(members) if isinstance(members, list) and isinstance(entries, list) else None


def _number(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    fits = isinstance(value, int) and not isinstance(value, bool) and -(2**62) < value < 2**62
    return value if fits else None
