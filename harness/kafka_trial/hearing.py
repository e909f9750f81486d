"""The hearing: what the run itself says about faults, ground and plain failures, read from the history.

Stands beside the judge, before the verdict: the judge looks for anomalies, this reads the small files of the harness's
own actors (`run`, `nemesis`, witnesses). Nothing is concluded here that an event does not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_trial.history.event import Event
from kafka_trial.verdict import Fault, Violation

# verdict.json holds no paths: of an absolute one only the last name is kept.
PATH = re.compile(r"(?:(?<=\s)|^|(?<=['\"(=]))/(?:[^\s/'\"()]+/)+([^\s/'\"()]*)")
MESSAGE_MAX = 400
KINDS = frozenset({"environment", "end", "consumer_failure", "control_member", "evidence", "witness", "undecodable"})
FAILURES = {
    "never-assigned": "never got a partition",
    "exited": "exited by itself",
    "never-stopped": "did not stop when asked",
}


@dataclass(frozen=True)
class Hearing:
    """What the run says: faults with their evidence, what failed on its own side, and the consumer's plain failures."""

    faults: tuple[Fault, ...] = ()
    ground: tuple[str, ...] = ()
    failures: tuple[Violation, ...] = ()


def hear(events: Iterable[Event], planned: Sequence[Mapping[str, Any]] = ()) -> Hearing:
    """Returns what the run says; `planned` are the faults of schedule.json, in their order.

    A planned fault of which the history holds no evidence did not bite.
    """
    said = _Said()
    for event in events:
        if event.kind in KINDS:
            said.kinds.setdefault(event.kind, []).append(event)
    failures, doubt = _failures(said)
    return Hearing(_faults(said, planned), (*_ground(said), *doubt), failures)


@dataclass
class _Said:
    """The events that matter here, by kind, in the order they were read."""

    kinds: dict[str, list[Event]] = field(default_factory=dict)

    def of(self, kind: str) -> list[Event]:
        return sorted(self.kinds.get(kind, ()), key=lambda event: (event.source, event.seq))


def _faults(said: _Said, planned: Sequence[Mapping[str, Any]]) -> tuple[Fault, ...]:
    evidence = {event.details.get("fault_no"): event for event in said.of("evidence")}
    shown = [_fault(event, number) for number, event in sorted(evidence.items(), key=lambda item: str(item[0]))]
    missing = [_unshown(plan, number) for number, plan in enumerate(planned) if plan.get("no", number) not in evidence]
    return tuple(fault for _, fault in sorted([*shown, *missing], key=lambda pair: pair[0]))


def _fault(event: Event, number: Any) -> tuple[int, Fault]:
    details = event.details
    role, _, name = str(details.get("target", "")).partition(": ")
    return int(number or 0), Fault(
        kind=str(details.get("fault", "?")),
        target=name or role,
        role=role,
        bit=details.get("bit") is True,
        evidence=plain(details.get("message") or "no evidence was given"),
        healed=not (details.get("heals") is True and details.get("healed_traffic") is False),
    )


def _unshown(plan: Mapping[str, Any], number: int) -> tuple[int, Fault]:
    role = str(plan.get("target", "?"))
    told = "the history holds no evidence of it: it was never injected, or the run ended first"
    return number, Fault(str(plan.get("fault", "?")), str(plan.get("resolved") or role), role, bit=False, evidence=told)


def _ground(said: _Said) -> list[str]:
    ends = [event for event in said.of("end") if event.source == "run"]
    told = [f"the environment failed: {_message(event)}" for event in said.of("environment")]
    if not ends:
        told.append("the history is truncated: it has no end")
    elif ends[-1].outcome != "ok":
        told.append(f"the trial ended early: {_message(ends[-1])}")
    return told + _witnesses(said)


def _witnesses(said: _Said) -> list[str]:
    """A witness must have said, last of all, that it read to the end."""
    states = {event.source: event for event in said.of("witness")}
    told = [
        f"the witness {source} {WITNESS_STATES.get(str(event.details.get('state')), 'did not say that it saw all')}"
        for source, event in sorted(states.items())
        if event.details.get("state") != "complete"
    ]
    blind = sorted({event.source for event in said.of("undecodable")})
    return told + [f"the witness {source} met a record it cannot decode" for source in blind]


WITNESS_STATES = {
    "ready": "never said that it had read to the end",
    "behind": "was behind at the snapshot",
    "dead": "died",
    "undecodable": "met a record it cannot decode",
}


def _failures(said: _Said) -> tuple[tuple[Violation, ...], list[str]]:
    """Returns the consumer's plain failures; where not even a control member could join, the ground is at fault."""
    failed = said.of("consumer_failure")
    controls = said.of("control_member")
    if failed and any(event.details.get("state") == "failed" for event in controls):
        return (), ["the cluster let not even a control member of the harness join"]
    by_name: dict[str, list[Event]] = {}
    for event in failed:
        by_name.setdefault(str(event.details.get("name", "failed")), []).append(event)
    return tuple(_failure(name, events, controls) for name, events in sorted(by_name.items())), []


def _failure(name: str, events: Sequence[Event], controls: Sequence[Event]) -> Violation:
    members = sorted({event.member or "?" for event in events})
    beside = ", where a control member of the harness got its own" if controls else ""
    told = f"{', '.join(members)} {FAILURES.get(name, 'failed')}{beside}: {_message(events[0])}"
    return Violation(name, len(members), told, tuple(event.name for event in events))


def plain(message: object) -> str:
    """Returns a message on one line, bounded, without paths."""
    text = PATH.sub(r"\1", str(message)[: 4 * MESSAGE_MAX])
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MESSAGE_MAX]


def _message(event: Event) -> str:
    return plain(event.details.get("message") or "no message")
