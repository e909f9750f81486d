"""What an audit can be judged on: its scope, and what it leaves undecided.

The scope is from when to when, how far the evidence was read, and what was not, by the audit's own events. What the
judge found beyond it becomes a case that nobody can decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from kafka_trial.history.event import Event
from kafka_trial.invariants.claim_rule import Anomaly
from kafka_trial.verdict.verdict_input import AnomalyResult


@dataclass(frozen=True)
class Scope:
    """What an audit's own events say of it."""

    from_ns: int
    until_ns: int
    drain_ns: int
    settle_ns: int
    read_to_ns: int
    commits: int
    unread: Mapping[str, tuple[str, ...]]
    log_ends: Mapping[int, int]
    first_ns: Mapping[int, int]
    whole_ns: int | None
    requests: bool
    sink: str | None
    claimed: bool


def scope_of(events: Iterable[Event], *, requests: bool, sink: str | None, claimed: bool) -> Scope:
    """Returns the scope that an audit's events tell, one of the kind `audit` among them.

    `sink` is the kind of the sink that was read; None: there is none.
    """
    said: dict[str, list[Event]] = {}
    for event in events:
        said.setdefault(event.kind, []).append(event)
    told = said["audit"][0].details
    unread: dict[str, tuple[str, ...]] = {}
    for event in said.get("unread", ()):
        name = str(event.details.get("name"))
        unread[name] = (*unread.get(name, ()), str(event.details.get("message")))
    compacted = said.get("compacted", [])
    return Scope(
        **{name: int(told[name]) for name in ("from_ns", "until_ns", "drain_ns", "settle_ns", "read_to_ns", "commits")},
        unread=unread,
        log_ends={event.partition or 0: event.offset or 0 for event in said.get("log_end", ())},
        first_ns={
            event.partition or 0: event.source_wall_ns
            for event in said.get("log_start", ())
            if event.source_wall_ns is not None and not event.offset
        },
        whole_ns=compacted[0].source_wall_ns if compacted else None,
        requests=requests,
        sink=sink,
        claimed=claimed,
    )


def some_undecided(found: AnomalyResult, why_undecided: Callable[[Anomaly], str | None]) -> AnomalyResult:
    """Returns what was found; the instances of which `why_undecided` says why they prove nothing are undecided."""
    undecided = [(one, why_undecided(one)) for one in found.instances]
    sure = tuple(one for one, reason in undecided if reason is None)
    reasons = Counter(reason for _, reason in undecided if reason is not None)
    if not sure and found.more:  # what was only counted is like what was kept
        reasons[reasons.most_common(1)[0][0]] += found.more
    return with_reasons(replace(found, instances=sure, more=found.more if sure else 0), reasons)


def all_undecided(found: AnomalyResult, reason: str) -> AnomalyResult:
    """Returns what was found with all of it undecided."""
    return some_undecided(found, lambda _: reason)


def with_reasons(found: AnomalyResult, reasons: Mapping[str, int]) -> AnomalyResult:
    """Returns what was found with so many more cases undecided, by reason."""
    return replace(found, undecided=dict(Counter(found.undecided) + Counter(reasons)))
