"""What became of the brokers in a history: rolls and replacements, by the evidence of the faults that did them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka_trial.cluster.cluster import node_name
from kafka_trial.history.event import Event, from_line

ROLL: Final = "version-roll"
REPLACE: Final = "broker-replace"


@dataclass
class BrokerChanges:
    """What became of the nodes, by their ids; times by the monotonic clock."""

    versions: dict[str, str] = field(default_factory=dict)  # by name: the version of a node since its last change
    changed_ns: dict[int, int] = field(default_factory=dict)  # when the fault that changed a node last was at its end
    last_ns: int = 0  # when the last of these faults was; 0: there was none
    gone: set[int] = field(default_factory=set)  # brokers that others took the place of


def broker_changes(history: Path) -> BrokerChanges:
    """Returns what became of the brokers in the history of a trial.

    Raises:
        ValueError: a line of the history is no event.
    """
    found = BrokerChanges()
    for raw in _lines(history / "nemesis.jsonl"):
        if b'"kind":"evidence"' not in raw:
            continue
        event = from_line(raw)
        if event.details.get("fault") in (ROLL, REPLACE):
            found.last_ns = max(found.last_ns, event.time_ns)
            for turn in _turns(event):
                _note(turn, event.time_ns, found)
    return found


def _note(turn: Mapping[str, Any], done_ns: int, found: BrokerChanges) -> None:
    broker = turn.get("by", turn.get("broker"))  # `by`: the broker that took the place of `broker`
    if "by" in turn and isinstance(turn.get("broker"), int):
        found.gone.add(turn["broker"])
    if isinstance(broker, int):
        found.changed_ns[broker] = done_ns
        if isinstance(turn.get("version"), str):
            found.versions[node_name(broker)] = turn["version"]


def _turns(event: Event) -> Iterator[Mapping[str, Any]]:
    """Yields what the evidence of a fault says of each node, in the order in which they were changed."""
    details = event.details.get("details")
    turns = details.get("brokers") if isinstance(details, Mapping) else None
    yield from (turn for turn in turns or () if isinstance(turn, Mapping))


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().split(b"\n")[:-1] if file.exists() else []  # one still being written is none
