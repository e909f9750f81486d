"""What a fault does to the members and brokers that it hits.

Each fault declares it where it is registered (`nemesis/fault.py`), and the history stores it with the fault. From these
words alone the judge decides what to excuse, what to expect, and how long bounds are: never from the name of a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class Consequence(StrEnum):
    """One thing that a fault does. A fault has one or more; none means that no word here fits it: it may hinder members
    all the same. One that hinders no member says `HARMLESS`.
    """

    KILLS = "kills"  # a member's process ends, and says no goodbye to its group
    STOPS = "stops"  # a member is asked to end, and may say goodbye
    FREEZES = "freezes"  # a member's process does not run; what came meanwhile it reads when it continues
    CUTS_OFF = "cuts-off"  # a member's requests or its answers do not pass: if that lasts, it costs the session
    LOSES_ANSWERS = "loses-answers"  # what a broker has answered may never arrive
    DELAYS_ANSWERS = "delays-answers"  # what a broker has answered arrives late; traffic goes on
    LEAVES_REQUESTS_OPEN = "leaves-requests-open"  # a request may never be answered, although its connection stays
    STOPS_BROKER = "stops-broker"  # a broker does not run for a while; the last lines of its log may be missing
    FREEZES_BROKER = "freezes-broker"  # its process does not run; what came meanwhile it answers when it continues
    CHANGES_TOPIC = "changes-topic"  # partitions or records come or go; it works even if no member runs
    LOADS_BROKERS = "loads-brokers"  # others use the same brokers: a member that is late has no excuse in that
    HARMLESS = "harmless"  # no member is stopped, cut off or slowed; at most there is a rebalance


_LOST = Consequence.LOSES_ANSWERS
_AWAY = frozenset({Consequence.STOPS_BROKER, Consequence.LEAVES_REQUESTS_OPEN})
_HELD = frozenset({Consequence.CUTS_OFF, Consequence.LEAVES_REQUESTS_OPEN, _LOST})
_FROZEN = frozenset({Consequence.FREEZES_BROKER})
_STEADY = frozenset({Consequence.HARMLESS})
# For old histories, which only name the fault: the consequences of each name. A test keeps this equal to what faults
# declare.
BY_FAULT_NAME: Final[Mapping[str, frozenset[Consequence]]] = {
    **dict.fromkeys(("kill", "crash-point", "fail-over"), frozenset({Consequence.KILLS, _LOST})),
    **dict.fromkeys(("terminate", "restart", "leave", "move-client"), frozenset({Consequence.STOPS})),
    **dict.fromkeys(("remote-reads", "fail-back"), frozenset({Consequence.STOPS})),
    "pause": frozenset({Consequence.FREEZES}),
    **dict.fromkeys(("stall", "answers-held", "half-open"), _HELD),
    "requests-held": _HELD - {_LOST},
    **dict.fromkeys(("close", "refused"), frozenset({Consequence.CUTS_OFF, _LOST})),
    **dict.fromkeys(("latency", "slow-link"), frozenset({Consequence.DELAYS_ANSWERS})),
    **dict.fromkeys(("broker-kill", "broker-restart", "rolling-restart"), _AWAY),
    "broker-pause": _AWAY | _FROZEN,
    **dict.fromkeys(("version-roll", "broker-replace"), _AWAY),
    **dict.fromkeys(("records-deleted", "partitions-added", "topic-created"), _STEADY | {Consequence.CHANGES_TOPIC}),
    **dict.fromkeys(("join", "leader-move"), _STEADY),
    "cold-reads": _STEADY | {Consequence.LOADS_BROKERS},
    **dict.fromkeys(("finalise-feature", "handler-slow", "handler-failing", "poison-record"), frozenset[Consequence]()),
}


def consequences_in(injected: Mapping[str, Any]) -> tuple[Consequence, ...]:
    """Returns the consequences that an `injected` event lists, in the order of the enum. An old event lists none, or
    lacks the newest word: its name decides. An unknown name or word counts as `LOSES_ANSWERS`, the cautious choice.
    """
    said = injected.get("consequences")
    by_name = BY_FAULT_NAME.get(str(injected.get("acts_as") or injected.get("fault")), frozenset({_LOST}))
    if isinstance(said, list):
        told = {*said, *(by_name & _FROZEN)} if {*said} <= {*Consequence} else {*said, _LOST}
    else:
        told = {*by_name}
    return tuple(one for one in Consequence if one in told)
