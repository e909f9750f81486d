"""Bad lines: the events of members that could not be read, as facts: how many, and the first of each incarnation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_trial.invariants.trial_context import LostEvents


@dataclass
class BadLines:
    """What has been gathered so far, by source: the bad lines that were events."""

    _lines: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)

    def take(self, source: int, body: Mapping[str, Any]) -> None:
        """Takes a bad line into account, if it was an event."""
        if isinstance(body.get("events"), int) and body["events"] > 0:
            self._lines.setdefault(source, []).append(body)

    def take_exit(self, source: int, body: Mapping[str, Any]) -> None:
        """A member that is killed may be so in the middle of its last line: what that was nobody expects to know."""
        lines = self._lines.get(source, [])
        if body.get("signal") == 9 and lines and lines[-1]["seq"] == body["seq"] - 1 and "offset" not in lines[-1]:
            lines.pop()

    def lost_events(self) -> tuple[LostEvents, ...]:
        """Returns what was lost of each incarnation, in the order of sources."""
        return tuple(_lost(source, lines) for source, lines in sorted(self._lines.items()) if lines)


def _lost(source: int, lines: list[Mapping[str, Any]]) -> LostEvents:
    first = lines[0]
    return LostEvents(
        source=source,
        member=str(first.get("member")),
        count=sum(line["events"] for line in lines),
        nameless=sum(line["events"] for line in lines if line.get("offset") is None),
        first=str(first.get("message")),
        reason=str(first.get("reason", "")),
    )
