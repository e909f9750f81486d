"""What a history may hold: its sources by file name, the kinds of each, and what an event of a kind must say.

The same catalogue as `event.py` tells in words, for whoever reads histories that others may have damaged: what does not
stand here is named by the judge, and keeps a verdict from being given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORDS = {
    "workload": "send load",
    "consumer": "started ready assigned revoked lost delivered processed commit stopped error bad_line exited",
    "sink": "effect crash_point undecodable",
    "offsets": "committed commit_tombstone commit_aborted group member group_epoch target_epoch target "
    "member_assignment group_tombstone transaction_marker transaction_open compacted undecodable unreadable",
    "transactions": "transaction_marker transaction_open record_aborted undecodable",
    "requests": "request client_named undecodable unreadable",
    "observer": "topic log_start log_end last_stable leader coordinator controller group_state record control_read "
    "unanswered",
    "nemesis": "injecting injected healing healed sample evidence",
    "run": "phase clock wall_jump scheduling_delay reading_delay resources oom_kills group_named topic_named "
    "calibrated window consumer_failure control_member environment audit unread end",
}
KINDS: Mapping[str, frozenset[str]] = {source: frozenset(words.split()) for source, words in _WORDS.items()}
OF_EVERY_WITNESS = frozenset({"witness"})
_SOURCE = re.compile(r"(workload|sink|offsets|transactions|observer|nemesis|run)|(requests)-b\d+|(consumer)-.+-\d+")

# What a judgement rests on and no event of the kind lacks. Positions are looked for where they are used.
REQUIRED: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "send": {"id": str, "outcome": str},
    "started": {"member": str, "incarnation": int},
    "assigned": {"entries": list},
    "revoked": {"entries": list},
    "lost": {"entries": list},
    "processed": {"outcome": str},
    "commit": {"outcome": str},  # a refusal may name no partition
    "effect": {"id": str, "outcome": str},
    "group": {"group": str},
    "group_epoch": {"group": str, "epoch": int},
    "member_assignment": {"group": str, "member_id": str},
    "request": {"api": str},
    "topic": {"topic": str, "partitions": int},
    "control_read": {"state": str},
    "witness": {"state": str},
    "injected": {"fault_no": int},
    "healed": {"fault_no": int},
    "phase": {"phase": str},
    "clock": {"wall_ns": int},
    "scheduling_delay": {"delay_ns": int},
    "reading_delay": {"reader": str, "delay_ns": int},
    "resources": {"member": str, "rss_bytes": int},
    "oom_kills": {"count": int},
    "group_named": {"group": str},
    "topic_named": {"topic": str},
    "calibrated": {"rate": (int, float)},
    "audit": dict.fromkeys(("from_ns", "until_ns", "drain_ns", "settle_ns", "read_to_ns", "commits"), int),
    "unread": {"name": str, "message": str},
    "end": {"outcome": str},
}

# What else one rests on, where it is told.
OPTIONAL: Mapping[str, Mapping[str, type]] = {"clock": {"read_ns": int}, "scheduling_delay": {"every_ns": int}}


def kinds_of(source: str) -> frozenset[str] | None:
    """Returns the kinds that a source may tell; None where there is no such source."""
    found = _SOURCE.fullmatch(source)
    return None if found is None else KINDS[next(name for name in found.groups() if name)] | OF_EVERY_WITNESS


def lacking(kind: str, body: Mapping[str, object]) -> list[str]:
    """Returns which fields an event lacks that one of its kind must have, or has of another type."""
    told = {name: of for name, of in OPTIONAL.get(kind, {}).items() if name in body}
    return [name for name, of in ({**REQUIRED.get(kind, {}), **told}).items() if not _is_a(body.get(name), of)]


def _is_a(value: object, of: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool) or not isinstance(value, of):
        return False
    return not isinstance(value, int) or -(2**63) <= value < 2**63
