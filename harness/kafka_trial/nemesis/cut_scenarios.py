"""Cuts as scenarios: one for each API, place and action, known by its name, as `cut-OffsetCommit-answered-kill`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from kafka_trial.cluster.kafka_cut import AFTER, ANSWERED, API_KEYS, BEFORE, CLOSE, DELAY, HOLD, WHERE
from kafka_trial.errors import unknown_name
from kafka_trial.scenario import Scenario, Step

PREFIX = "cut"
KILL, PAUSE = "kill", "pause"
MATRIX_ACTIONS: Final = (HOLD, CLOSE, DELAY, KILL)
CUT_ACTIONS: Final = (*MATRIX_ACTIONS, PAUSE)
MEMBER = "member:1"
# What a client sends only as it leaves or starts: there the member is ended and started again.
STARTING: Final = frozenset({"FindCoordinator", "Metadata", "InitProducerId", "LeaveGroup"})
# What it sends when the group changes: there another member joins, so that this one has work in hand when it is cut.
REBALANCING: Final = frozenset({"JoinGroup", "SyncGroup", "OffsetFetch"})
RECORDS_BYTES_MIN = 1000  # an answer to a Fetch with a record in it, of the kilobyte each that the load sends
HOLD_S = 7.5  # longer than a session of 6 s: a member whose heartbeats are held is expelled
DELAY_MS = 1000
KILLED_S = 2.0
JOINS_AT_S, JOINED_S = 0.5, 2.0  # the other one: when the cut is armed; it stays for so much longer than the cut
PAUSED_S = 12.0  # others have its partitions, and have worked on them, before it goes on


@dataclass(frozen=True, order=True)
class Cell:
    """One cut: the first request of `api` from when it is armed, `where`, and what is done there."""

    api: str
    where: str
    action: str

    @property
    def name(self) -> str:
        """As a scenario: `cut-OffsetCommit-before-kill`."""
        return "-".join((PREFIX, self.api, self.where, self.action))


def cells_of(
    apis: Collection[str], *, places: Collection[str] = WHERE, actions: Collection[str] = MATRIX_ACTIONS
) -> list[Cell]:
    """Returns every cell of the APIs, in the order of the page; only of these places and actions."""
    return [
        Cell(api, where, action)
        for api in API_KEYS
        for where in WHERE
        for action in CUT_ACTIONS
        if api in apis and where in places and action in actions
    ]


def cut_scenario(name: str) -> Scenario | None:
    """Returns the scenario of a cut by its name; None where no cut has this name."""
    parts = name.split("-")
    if len(parts) != 4 or parts[0] != PREFIX or cut_name_problems(name):
        return None
    return scenario_of(Cell(*parts[1:]))


def cut_name_problems(name: str) -> list[str]:
    """Returns what is wrong with a name of the form `cut-API-WHERE-ACTION`; empty where it has not that form."""
    parts = name.split("-")
    if len(parts) != 4 or parts[0] != PREFIX:
        return []
    given = zip(("API", "place", "action"), parts[1:], (API_KEYS, WHERE, CUT_ACTIONS), strict=True)
    return [unknown_name(kind, word, known) for kind, word, known in given if word not in known]


def scenario_of(cell: Cell) -> Scenario:
    """Returns the scenario of a cell: a steady load, the cut, and what comes of it."""
    options: dict[str, Any] = {"api": cell.api, "where": cell.where, "action": cell.action}
    options["fresh"] = cell.api in STARTING
    if cell.action in (KILL, PAUSE):
        options |= {"action": HOLD, "then": cell.action}
    if cell.action == DELAY:
        options["delay_ms"] = DELAY_MS
    if cell.api == "Fetch" and cell.where != BEFORE:
        options["answer_bytes_min"] = RECORDS_BYTES_MIN
    place = {
        BEFORE: "before the broker has it",
        ANSWERED: "when the broker has answered it",
        AFTER: "after its answer has arrived",
    }[cell.where]
    for_s, action = {
        HOLD: (HOLD_S, f"its connection is held for {HOLD_S:g} s"),
        CLOSE: (1.0, "its connection is closed"),
        DELAY: (DELAY_MS / 1000 + 1.0, f"its connection is held for {DELAY_MS} ms"),
        KILL: (KILLED_S, "the member is killed with -9"),
        PAUSE: (PAUSED_S, f"the member is paused for {PAUSED_S:g} s"),
    }[cell.action]
    schedule = [Step("cut", MEMBER, for_s=for_s, options=options)]
    if cell.api in REBALANCING:
        schedule.append(Step("join", "all", at_s=JOINS_AT_S, for_s=for_s + JOINED_S))
    return Scenario(cell.name, f"{cell.api} of a member: {place}, {action}", schedule=tuple(schedule))
