"""The send scheduler: inside the workload process, decides what is sent now, between commands and delivery reports."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from kafka_trial.workload.send_log import SendLog
from kafka_trial.workload.workload import BURST, OPENING_BURST, STEADY, Op

BATCH_RECORDS_MAX = 128
BATCH_BYTES_MAX = 1 << 20  # values of one batch are in memory together
LOOK_EVERY_S = 0.01  # how long a command may wait while nothing is due
DUE_EVERY_S = 0.002  # dues closer together than this are sent together
STOP_WITHIN_S = 10.0

Answer = Callable[[dict[str, Any]], None]


class Sends(Protocol):
    """What the send scheduler needs of the sender."""

    log: SendLog

    @property
    def full(self) -> bool: ...
    @property
    def idle(self) -> bool: ...
    def send(self, ops: list[Op]) -> None: ...
    def push(self) -> None: ...
    def poll(self, within_s: float) -> None: ...
    def drop(self) -> None: ...


class Part:
    """Operations of one part, taken batch by batch as they fall due; `began_s` None: all of them at once. `told`: its
    beginning and its end are lines of the log."""

    def __init__(self, name: str, ops: Iterator[Op], *, began_s: float | None = None, told: bool = True) -> None:
        self.name = name
        self.sent = 0
        self.closed = not told
        self._began_s = began_s
        self._ops = ops
        self._next = next(ops, None)

    @property
    def ended(self) -> bool:
        return self._next is None

    def due_in_s(self, now_s: float) -> float:
        """Seconds until the next operation is due; 0 or less when it is."""
        if self._next is None or self._began_s is None:
            return 0.0
        return self._began_s + self._next.at_s - now_s

    def delay(self, *, since_s: float, until_s: float) -> None:
        """Makes everything due later by the time between, as far as it had begun."""
        if self._began_s is not None:
            self._began_s += until_s - max(since_s, self._began_s)

    def batch(self, now_s: float) -> list[Op]:
        """Takes what is due, at most a batch."""
        taken: list[Op] = []
        room = BATCH_BYTES_MAX
        while self._next is not None and room > 0 and len(taken) < BATCH_RECORDS_MAX and self.due_in_s(now_s) <= 0:
            taken.append(self._next)
            room -= self._next.size_bytes
            self._next = next(self._ops, None)
        self.sent += len(taken)
        return taken


class SendScheduler:
    """Sends the parts of a workload as commands ask for them."""

    def __init__(
        self, sender: Sends, ops: Iterator[Op], *, answer: Answer, later: Mapping[str, Iterator[Op]] | None = None
    ) -> None:
        self._sender = sender
        self._answer = answer
        self._later = dict(later or {})
        self._come: list[Part] = []
        self._opening, self._bursts, self._steady_ops = _split(ops)
        self._at_once: deque[Part] = deque()
        self._steady: Part | None = None
        self._held_since_s: float | None = None
        self._open_asked = False
        self._settled_until_s: float | None = None
        self._stop_within_s: float | None = None

    def run(self, commands: int, *, broken: Callable[[], str | None]) -> None:
        """Obeys the commands read from a descriptor until `stop`, its end, or `broken` gives a reason; then closes."""
        os.set_blocking(commands, False)
        rest = b""
        while self._stop_within_s is None and not broken():
            rest = self._obey_new(commands, rest)
            self._turn()
        self._stop(STOP_WITHIN_S if self._stop_within_s is None else self._stop_within_s, broken)

    def _obey_new(self, commands: int, rest: bytes) -> bytes:
        try:
            read = os.read(commands, 4096)
        except BlockingIOError:
            return rest
        if not read:
            self._stop_within_s = STOP_WITHIN_S
            return b""
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            self._obey(line.decode(errors="replace").split())
        return rest

    def _obey(self, words: list[str]) -> None:
        match words:
            case ["open"] if self._steady is None and self._opening is not None:
                self._begin(Part(OPENING_BURST, iter(self._opening)), len(self._opening))
                self._opening = None
                self._open_asked = True
            case ["steady"] if self._steady is None:
                self._steady = Part(STEADY, self._steady_ops, began_s=time.monotonic())
                self._sender.log.load(STEADY, "begins")
                self._answer({"steady": True})
            case ["topic", topic] if self._steady is not None and topic in self._later:
                self._come.append(Part(STEADY, self._later.pop(topic), began_s=time.monotonic(), told=False))
                self._answer({"topic": topic})
            case ["hold"] if self._steady is not None and self._held_since_s is None:
                self._held_since_s = time.monotonic()
                self._answer({"held": True})
            case ["settle", within] if self._steady is not None and self._settled_until_s is None:
                self._held_since_s = self._held_since_s or time.monotonic()
                self._settled_until_s = time.monotonic() + float(within)
            case ["resume"] if self._steady is not None and self._held_since_s is not None:
                for part in self._steady_parts:
                    part.delay(since_s=self._held_since_s, until_s=time.monotonic())
                self._held_since_s = None
                self._answer({"resumed": True})
            case ["burst", count] if count.isdecimal():
                ops = self._taken(int(count))
                self._begin(Part(BURST, iter(ops)), len(ops))
                self._answer({"burst": len(ops)})
            case ["stop", *within]:
                self._stop_within_s = float(within[0]) if within else STOP_WITHIN_S
            case _:
                known = (
                    "open (once, before steady), steady (once), topic NAME (once each), hold, settle SECONDS, resume, "
                    "burst N, stop [SECONDS]"
                )
                self._answer({"error": f"cannot obey {' '.join(words)!r} now. Valid: {known}"})

    def _taken(self, count: int) -> list[Op]:
        """Takes operations for a burst: the planned ones first, then from the steady load."""
        planned = [self._bursts.popleft() for _ in range(min(count, len(self._bursts)))]
        return planned + list(islice(self._steady_ops, count - len(planned)))

    def _begin(self, part: Part, count: int) -> None:
        self._sender.log.load(part.name, "begins", count)
        self._at_once.append(part)

    def _turn(self) -> None:
        """One turn: hands on what is due, takes reports, and answers `open` when its last send is decided, and
        `settle` too, or when its time is up."""
        if self._sender.full:
            self._sender.push()
        else:
            self._send_due(time.monotonic())
        self._sender.poll(self._wait_s())
        if self._open_asked and not self._at_once and self._sender.idle:
            self._open_asked = False
            self._answer({"opened": self._sender.log.counts})
        if self._settled_until_s is not None and not self._at_once and self._is_settled(self._settled_until_s):
            self._settled_until_s = None
            self._answer({"settled": self._sender.idle})

    def _is_settled(self, until_s: float) -> bool:
        return self._sender.idle or time.monotonic() >= until_s

    def _send_due(self, now_s: float) -> None:
        steady = self._steady_parts if self._held_since_s is None else []
        for part in [self._at_once[0]] if self._at_once else steady:
            batch = part.batch(now_s)
            if batch:
                self._sender.send(batch)
            if part.ended:
                self._close(part)

    @property
    def _steady_parts(self) -> list[Part]:
        """The steady load, and that of topics which have come."""
        return [*([self._steady] if self._steady else []), *self._come]

    def _close(self, part: Part) -> None:
        if not part.closed:
            part.closed = True
            self._sender.log.load(part.name, "ends", part.sent)
        if self._at_once and part is self._at_once[0]:
            self._at_once.popleft()

    def _wait_s(self) -> float:
        if self._sender.full:
            return DUE_EVERY_S
        if self._at_once:
            return 0.0
        going_on = [part for part in self._steady_parts if not part.ended]
        if not going_on or self._held_since_s is not None:
            return LOOK_EVERY_S
        now_s = time.monotonic()
        due_in_s = min(part.due_in_s(now_s) for part in going_on)
        return 0.0 if due_in_s <= 0 else min(LOOK_EVERY_S, max(DUE_EVERY_S, due_in_s))

    def _stop(self, within_s: float, broken: Callable[[], str | None]) -> None:
        for part in [*self._at_once, *self._steady_parts]:
            self._close(part)
        deadline = time.monotonic() + within_s
        while not self._sender.idle and time.monotonic() < deadline and not broken():
            self._sender.push()
            self._sender.poll(LOOK_EVERY_S)
        self._sender.drop()
        self._sender.log.close()
        self._answer({"stopped": self._sender.log.counts})


def _split(ops: Iterator[Op]) -> tuple[list[Op] | None, deque[Op], Iterator[Op]]:
    """Splits a workload into its opening burst, its planned bursts, and the steady rest, still to be drawn."""
    opening: list[Op] = []
    bursts: deque[Op] = deque()
    for op in ops:
        if op.part == STEADY:
            return opening, bursts, _chained(op, ops)
        (opening if op.part == OPENING_BURST else bursts).append(op)
    return opening, bursts, iter(())


def _chained(first: Op, rest: Iterator[Op]) -> Iterator[Op]:
    yield first
    yield from rest
