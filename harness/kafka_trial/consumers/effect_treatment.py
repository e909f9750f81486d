"""How the HTTP sink treats effects under the nemesis, and what it saw of those that came meanwhile.

A treatment is of some members or all, and of every effect or of the next records only. What is watched is every effect,
treated or not: whoever judges a fault must also see those that it should have hit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum


class SinkBehaviour(Enum):
    """How the sink treats an effect."""

    NORMAL = "normal"
    SLOW = "slow"  # waits `delay_s`, then records and answers
    REFUSING = "refusing"  # 503, declared not done
    HELD = "held"  # neither records nor answers until the treatment is over
    CLOSING = "closing"  # records, then closes the connection without an answer: nobody knows


@dataclass(eq=False)
class Treatment:
    """One way in which effects are treated while it lasts; used in the sink's thread alone.

    `members`: whose; None: everybody's. `records_max`: of the first so many records only; 0: of all. With
    `for_everybody` these are then treated so whoever brings them: a record that cannot be handled.
    """

    behaviour: SinkBehaviour
    delay_s: float = 0.0
    members: Collection[str] | None = None
    records_max: int = 0
    for_everybody: bool = False
    over: bool = False
    chosen: set[str] = field(default_factory=set)

    def takes(self, member: str, record_id: str) -> bool:
        """Tells whether an effect is treated so."""
        theirs = self.members is None or member in self.members
        if record_id in self.chosen:
            return theirs or self.for_everybody
        if not theirs or (self.records_max and len(self.chosen) >= self.records_max):
            return False
        if self.records_max:
            self.chosen.add(record_id)
        return True

    def waits(self, deadline_s: float) -> bool:
        """Tells whether an effect whose delay ends then (CLOCK_MONOTONIC) is still kept waiting."""
        return self.behaviour is SinkBehaviour.HELD or (
            self.behaviour is SinkBehaviour.SLOW and time.monotonic() < deadline_s
        )


@dataclass
class Arrival:
    """An effect that came in: when (CLOCK_MONOTONIC), and when and how it was answered; None: not yet."""

    member: str
    record_id: str
    came_s: float
    answered_s: float | None = None
    done: bool | None = None

    def answered(self, *, done: bool) -> None:
        """Notes that it is answered now. Raises nothing."""
        self.done = done
        self.answered_s = time.monotonic()

    def waited_s(self, now_s: float) -> float:
        """Returns how long it has been without an answer."""
        return (self.answered_s or now_s) - self.came_s


class EffectWatch:
    """The effects that came in since it was made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals: list[Arrival] = []

    def arrived(self, member: str, record_id: str) -> Arrival:
        """Notes an effect that comes in now, and returns it."""
        arrival = Arrival(member, record_id, time.monotonic())
        with self._lock:
            self._arrivals.append(arrival)
        return arrival

    def of(self, member: str) -> list[Arrival]:
        """Returns those of a member, as they came."""
        with self._lock:
            return [arrival for arrival in self._arrivals if arrival.member == member]
