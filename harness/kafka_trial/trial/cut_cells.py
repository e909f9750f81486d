"""Which cuts a consumer can be put to: a cell for each API that it uses, place and action; and the scenario of each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from kafka_trial.cluster.kafka_cut import AFTER, ANSWERED, API_KEYS, BEFORE, CLOSE, DELAY, HOLD, WHERE
from kafka_trial.consumers.consumer import ConsumerSpec
from kafka_trial.errors import InputError, unknown_name
from kafka_trial.history.store import RunFolder
from kafka_trial.scenario import Scenario, Step

KILL = "kill"
MATRIX_ACTIONS: Final = (HOLD, CLOSE, DELAY, KILL)
MEMBER = "member:1"
# What a client sends only as it leaves or starts: there the member is ended and started again.
STARTING: Final = frozenset(
    {"FindCoordinator", "Metadata", "JoinGroup", "SyncGroup", "OffsetFetch", "InitProducerId", "LeaveGroup"}
)
ALWAYS: Final = ("Fetch", "Metadata")  # every consumer sends them; the history keeps only those that tell something new
RECORDS_BYTES_MIN = 1000  # an answer to a Fetch with a record in it, of the kilobyte each that the load sends
OUTLASTING = 1.25  # a hold lasts so many sessions, so that a member whose heartbeats are held is expelled …
HOLD_S_MAX = 10.0  # … where sessions are no longer than this allows
DELAY_MS = 1000
KILLED_S = 2.0


@dataclass(frozen=True, order=True)
class Cell:
    """One cut: the first request of `api` from when it is armed, `where`, and what is done there."""

    api: str
    where: str
    action: str

    @property
    def name(self) -> str:
        """As a scenario: `cut-OffsetCommit-before-kill`."""
        return f"cut-{self.api}-{self.where}-{self.action}"


def cells_of(
    apis: Collection[str], *, places: Collection[str] = WHERE, actions: Collection[str] = MATRIX_ACTIONS
) -> list[Cell]:
    """Returns every cell of the APIs, in the order of the page; only of these places and actions."""
    return [
        Cell(api, where, action)
        for api in API_KEYS
        for where in WHERE
        for action in MATRIX_ACTIONS
        if api in apis and where in places and action in actions
    ]


def named(option: str, given: Collection[str], known: Collection[str]) -> list[str]:
    """Returns what was given of what is known, in that order.

    Raises:
        InputError: something that was given is not known.
    """
    problems = [unknown_name(option.removeprefix("--"), name, known) for name in given if name not in known]
    if problems:
        raise InputError(option, problems)
    return [name for name in known if name in given]


def apis_used(folder: RunFolder) -> list[str]:
    """Returns the APIs that the members of a trial were seen to use, by the brokers' request logs."""
    lanes, seen = set[int](), set[tuple[str, int]]()
    for event in folder.events():
        if event.kind == "started":
            lanes.add(event.details["lane"])
        elif event.kind == "request" and event.details.get("lane") is not None:
            seen.add((event.details["api"].replace("_", "").lower(), event.details["lane"]))
    names = {api for api, lane in seen if lane in lanes}
    return [api for api in API_KEYS if api in ALWAYS or api.lower() in names]


def scenario_of(cell: Cell, spec: ConsumerSpec) -> Scenario:
    """Returns the scenario of a cell: a steady load, the cut, and what comes of it."""
    hold_s = min(HOLD_S_MAX, OUTLASTING * spec.kafka.session_timeout_s)
    options: dict[str, Any] = {"api": cell.api, "where": cell.where, "action": cell.action}
    options["fresh"] = cell.api in STARTING
    if cell.api == "JoinGroup":
        options["nth"] = 2  # the first is sent without a member id, only to be told one (KIP-394)
    for_s = {HOLD: hold_s, CLOSE: 1.0, DELAY: DELAY_MS / 1000 + 1.0, KILL: KILLED_S}[cell.action]
    if cell.action == KILL:
        options |= {"action": HOLD, "then": KILL}
    if cell.action == DELAY:
        options["delay_ms"] = DELAY_MS
    if cell.api == "Fetch" and cell.where != BEFORE:
        options["answer_bytes_min"] = RECORDS_BYTES_MIN
    place = {
        BEFORE: "before the broker has it",
        ANSWERED: "when the broker has answered it",
        AFTER: "after its answer has arrived",
    }[cell.where]
    action = {
        HOLD: f"its connection is held for {hold_s:g} s",
        CLOSE: "its connection is closed",
        DELAY: f"its connection is held for {DELAY_MS} ms",
        KILL: "the member is killed with -9",
    }[cell.action]
    return Scenario(
        name=cell.name,
        summary=f"{cell.api} of a member: {place}, {action}",
        schedule=(Step("cut", MEMBER, for_s=for_s, options=options),),
    )
