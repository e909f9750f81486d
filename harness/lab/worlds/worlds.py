"""Worlds: every way in which a small history can have happened.

Evidence leaves two things open: in which order instants of different witnesses happened, where the times at which they
were told overlap; and a few yes-or-no questions (was an answer received, did a killed member still end its record,
whose request made a commit). A world settles all of them: it is one order of instants, and nothing in it is uncertain.
Instants of one witness keep the order in which it told them. Orders are enumerated rather than clock readings, because
three overlapping instants that are each taken at their earliest or their latest time reach none of their six orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Final

WORLDS_MAX: Final = 2000


class TooManyWorldsError(Exception):
    """A history leaves more open than can be enumerated."""


class NoWorldError(Exception):
    """Witnesses contradict each other: either one was read wrongly, or the history is made up."""


@dataclass(frozen=True)
class Instant:
    """Something that happened at one moment.

    `what`, `who`, `value`: as in `story.StoryStep`; a told one is `told`, a process that is gone `exit`. `pair`: of an
    ask, the place in the offsets log of the commit that it led to (None: of none). `rank`: its number in the file of
    its `witness`; of the offsets log its place. `lo_ns`, `hi_ns`: when it can have happened, by the harness's clock;
    `at_ns`: when its witness puts it.
    """

    what: str
    who: str
    value: int = -1
    witness: str = ""
    rank: float = 0
    lo_ns: int = 0
    hi_ns: int = 0
    at_ns: int = 0
    pair: int | None = None


@dataclass(frozen=True)
class World:
    """One order of exact instants, and the key of each record of the partition."""

    instants: tuple[Instant, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Uncertainty:
    """What the event files leave open: instants that are certain, and choices. Each choice is a list of alternatives,
    and each alternative the instants that it adds; the first one is the most ordinary."""

    certain: tuple[Instant, ...]
    choices: tuple[tuple[tuple[Instant, ...], ...], ...]
    keys: tuple[str, ...]


def worlds_of(uncertainty: Uncertainty, *, most: int = WORLDS_MAX) -> list[list[World]]:
    """Returns all worlds that the evidence allows: of each combination of choices that can be every order.

    Raises:
        NoWorldError: it contradicts itself.
        TooManyWorldsError: there are more than `most`.
    """
    found: list[list[World]] = []
    for chosen in product(*uncertainty.choices):
        instants = [*uncertainty.certain, *(one for alternative in chosen for one in alternative)]
        left = most - sum(map(len, found))
        found.append([World(order, uncertainty.keys) for order in islice(orders_of(instants), left + 1)])
        if len(found[-1]) > left:
            raise TooManyWorldsError(f"more than {most} worlds")
    if not any(found):
        raise NoWorldError("no order of the instants fits all that the witnesses tell")
    return [orders for orders in found if orders]


def orders_of(instants: Sequence[Instant]) -> Iterator[tuple[Instant, ...]]:
    """Yields every order that is consistent with times, ranks and causes."""
    listed = sorted(instants, key=lambda one: (one.at_ns, one.witness, one.rank))
    before = [
        {other for other, earlier in enumerate(listed) if other != number and precedes(earlier, one)}
        for number, one in enumerate(listed)
    ]
    yield from _extended(listed, before, [], set())


def _extended(
    listed: Sequence[Instant], before: Sequence[set[int]], order: list[int], placed: set[int]
) -> Iterator[tuple[Instant, ...]]:
    """Yields all orders that begin with `order`."""
    if len(order) == len(listed):
        yield tuple(listed[number] for number in order)
        return
    for number, needed in enumerate(before):
        if number not in placed and needed <= placed:
            order.append(number)
            placed.add(number)
            yield from _extended(listed, before, order, placed)
            placed.discard(order.pop())


def precedes(one: Instant, other: Instant) -> bool:
    """Tells whether one instant surely came before another: its witness told it before, it was over before the other
    can have been, or it is the request that led to the other, a commit."""
    if one.witness == other.witness:
        return one.rank < other.rank
    return one.hi_ns < other.lo_ns or (one.what == "ask" and other.what == "commit" and one.pair == other.rank)
