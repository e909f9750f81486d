"""What an audit can be judged on: its scope, and what it leaves undecided.

The scope is from when to when, how far the evidence was read, and what was not, by the audit's own events. What the
judge found beyond it becomes a case that nobody can decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.audit.commits import together
from kafka_trial.history.event import Event
from kafka_trial.verdict.messages import MOVED, WHEN_AND_WHO
from kafka_trial.verdict.verdict_input import AnomalyResult


@dataclass(frozen=True)
class Scope:
    """What an audit's own events say of it.

    `resets_read`: the records that resets passed over were read. `earlier` commits, the last of them at
    `earlier_until_ns`, were left out: they were of another topic of that name, which was deleted.
    """

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
    group: str = ""
    topic: str = ""
    topic_id: str | None = None
    starts: Mapping[int, int] = field(default_factory=dict)
    resets_read: bool = False
    earlier: int = 0
    earlier_until_ns: int = 0


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
        group=_named(said, "group"),
        topic=(topic := _named(said, "topic")),
        topic_id=next((event.topic_id for event in said.get("topic", ()) if event.topic == topic), None),
        starts={event.partition or 0: event.offset or 0 for event in said.get("log_start", ())},
        resets_read=told.get("resets") is not None,
        earlier=int(told.get("earlier_commits") or 0),
        earlier_until_ns=int(told.get("earlier_until_ns") or 0),
    )


def _named(said: Mapping[str, Sequence[Event]], what: str) -> str:
    events = said.get(f"{what}_named", ())
    return next((str(event.topic or event.details.get(what)) for event in events), "")


def some_undecided(found: AnomalyResult, why_undecided: Callable[[Anomaly], str | None]) -> AnomalyResult:
    """Returns what was found; the instances of which `why_undecided` says why they prove nothing are undecided."""
    undecided = [(one, why_undecided(one)) for one in found.instances]
    sure = tuple(one for one, reason in undecided if reason is None)
    by_reason: dict[str, list[Anomaly]] = {}
    for one, reason in undecided:
        if reason is not None:
            by_reason.setdefault(reason, []).append(one)
    reasons = Counter({_exactly(reason, ones): len(ones) for reason, ones in by_reason.items()})
    if not sure and found.more:  # what was only counted is like what was kept
        reasons[reasons.most_common(1)[0][0]] += found.more
    return with_reasons(replace(found, instances=sure, more=found.more if sure else 0), reasons)


def _exactly(reason: str, ones: Sequence[Anomaly]) -> str:
    """Returns a reason with what it was about: where, from where to where, when, and by whom."""
    told = [
        (str(one.attributes.get(MOVED, "")), str(one.attributes[WHEN_AND_WHO]))
        for one in ones
        if WHEN_AND_WHO in one.attributes
    ]
    return f"{reason}: {together(told)}" if told else reason


def all_undecided(found: AnomalyResult, reason: str) -> AnomalyResult:
    """Returns what was found with all of it undecided."""
    return some_undecided(found, lambda _: reason)


def with_reasons(found: AnomalyResult, reasons: Mapping[str, int]) -> AnomalyResult:
    """Returns what was found with so many more cases undecided, by reason."""
    return replace(found, undecided=dict(Counter(found.undecided) + Counter(reasons)))
