"""The rules of an audit: what its history proves, what it leaves undecided, and what nobody could have seen in it.

Stands between the judge and the verdict, in place of a trial's own rules. A trial sets its ground itself; here it was
found as it was, so everything is asked that could speak for the consumer:

- Compaction takes commits out of the offsets log: a fall may have been there that is not seen (undecided, not absent).
- Topics are made anew, groups are reset while nobody is in them, windows end in the middle of things: a fall that one
  of these explains, or that was not followed for long enough, is undecided.
- Without a sink (`sink_rules.py`) nobody tells what was handled. A lag that stands still is a *false* one where the
  group had once committed past all that lags (its own word that it was done); else it is stuck or false, nobody knows
  which.

Storms are told by the offsets log alone: how often the group's generation or epoch rose, and who was in it before and
after. In a trial the harness knows which processes were started and stopped; here nobody does. A rise that leaves the
very same members in the group, none new and none gone, is no process's start or end: five such in a row are a storm.
Clients that come back as new members again and again may have been restarted: that is counted, and left undecided.

Without a claim the audit's own questions are what must be judged for a pass (`ALWAYS`, and what was given evidence
for); with one, everything it claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kafka_trial.audit.not_judged import IN_OTHER_WORDS, NEVER_JUDGED, NotJudgedByAudit
from kafka_trial.audit.request import NS_PER_S, stamp
from kafka_trial.audit.scope import Scope, all_undecided, some_undecided, with_reasons
from kafka_trial.audit.sink_rules import RESET, WHO, SinkEvidence, apply_sink_rules
from kafka_trial.audit.standing_lag import Standing, members_at, standing_at, standing_lag
from kafka_trial.history.event import Event
from kafka_trial.invariants.claim_rule import Anomaly
from kafka_trial.invariants.processes import STORM_MIN
from kafka_trial.judge.judgement import Judgement
from kafka_trial.verdict.verdict_input import AnomalyResult, VerdictInput

ALWAYS = ("commit-regression", "commit-past-end", "false-lag", "stuck-partition", "rebalance-storm")
WITH_REQUESTS = ("zombie-commit", "rogue-reader", "stale-generation")
WITH_SINK = ("skipped", "duplicate-effect", "late-convergence")
FROM_OFFSETS_LOG = (
    "commit-regression",
    "zombie-commit",
    "stale-generation",
    "split-ownership",
    "orphan-partition",
    "rebalance-storm",
)


def apply_audit_rules(
    collected: VerdictInput, judgement: Judgement, scope: Scope, rises: Sequence[Rise], told: SinkEvidence
) -> VerdictInput:
    """Returns what an audit found: what the judge did, less what the evidence cannot bear, which is undecided.

    `rises` are those of the group's generation or epoch; `told` is what the events say that findings name.
    """
    found = {one.anomaly: one for one in collected.found}
    found["commit-regression"] = some_undecided(
        found["commit-regression"], lambda one: _undecided_fall(one, judgement, scope, told)
    )
    found["commit-past-end"] = all_undecided(
        found["commit-past-end"], "the log ends below it now; whether it did then nobody knows"
    )
    found["orphan-partition"] = _orphans(found["orphan-partition"], scope)
    found["rebalance-storm"] = _storm(found["rebalance-storm"], scope, rises)
    if scope.sink:
        found |= apply_sink_rules(found, judgement, scope, told, collected.counts)
    else:
        lag = standing_lag(judgement, found["commit-regression"].instances)
        found |= {name: _standing(found[name], lag, scope) for name in ("false-lag", "stuck-partition")}
    if scope.requests:
        found["zombie-commit"] = _unattributed(found["zombie-commit"], judgement, scope)
    found = {name: _bounded(one, scope) for name, one in found.items()}
    return replace(
        collected,
        found=tuple(_in_scope(one, scope) for _, one in sorted(found.items())),
        gaps=tuple(_gaps(scope, collected)),
        of_trial=False,
        counts=dict(collected.counts)
        | {"commits in the window": scope.commits, "rebalances in the window": len(rises)},
    )


def _undecided_fall(one: Anomaly, judgement: Judgement, scope: Scope, told: SinkEvidence) -> str | None:
    """Returns why nobody can be blamed for a fall; None where nothing speaks for it."""
    partition, before = one.partition or 0, int(one.attributes.get("from", 0))
    if before > scope.log_ends.get(partition, before):
        return "the position before it lies beyond the log's end now: the topic was made anew, or cut"
    walls = {name: commit.wall_ns for name, commit in told.commits.items()}
    peak_ns, fell_ns = (walls.get(name) for name in one.events[:2])  # the commit before the fall, and the fall
    if peak_ns is not None and peak_ns < scope.first_ns.get(partition, 0):
        return "the position before it is older than the first record of the topic, which was made anew, or emptied"
    members = members_at(judgement, int(one.attributes.get("log_offset", -1)))
    if members is None:
        return WHO
    if members == 0:
        return RESET
    if one.attributes.get("recovered"):
        return None
    if standing_at(judgement, partition) > int(one.attributes.get("to", 0)):
        return "it has moved on since, and may yet come to where it was: a replay, perhaps"
    if fell_ns is not None and scope.read_to_ns - fell_ns < scope.settle_ns:
        return "it fell so shortly before the end of what could be read that it may yet have recovered"
    return None


def _orphans(found: AnomalyResult, scope: Scope) -> AnomalyResult:
    """A group that nobody of the topic belongs to does not subscribe to it, as far as anybody knows."""
    alone = {one.partition for one in found.instances}
    if alone and len(alone) == len(scope.log_ends):
        return all_undecided(found, "no partition of the topic belonged to anybody: the group may not subscribe to it")
    return found


def _storm(found: AnomalyResult, scope: Scope, rises: Sequence[Rise]) -> AnomalyResult:
    """Judges storms by the offsets log alone: rises of the generation while the very same members were there."""
    storm = storm_at_rest(rises, window_ns=scope.settle_ns)
    again = flapping(rises)
    reason = "clients came back into the group again and again; whether they had been restarted nobody tells"
    return AnomalyResult(found.anomaly, instances=storm, undecided={reason: again} if again else {})


def _standing(found: AnomalyResult, lag: Standing, scope: Scope) -> AnomalyResult:
    """Judges a lag that stands by commits and log ends alone."""
    for evidence in ("offsets log", "records"):
        if evidence in scope.unread:
            return AnomalyResult(found.anomaly, undecided={f"not read: {scope.unread[evidence][0]}": 1})
    if scope.drain_ns <= scope.from_ns:
        least_s = 2 * scope.settle_ns / NS_PER_S
        return AnomalyResult(
            found.anomaly, undecided={f"the window is shorter than the {least_s:g} s it takes to tell": 1}
        )
    instances = lag.false if found.anomaly == "false-lag" else ()
    return AnomalyResult(found.anomaly, instances=instances, undecided=dict(lag.undecided))


def _unattributed(found: AnomalyResult, judgement: Judgement, scope: Scope) -> AnomalyResult:
    """A commit that no member's request explains may have been anybody's."""
    known = sum(member.committed for member in judgement.coverage.members.values())
    if found.not_judged is not None or scope.commits <= known:
        return found
    reason = "no request of a member's in the request logs explains the commit"
    return with_reasons(found, {reason: scope.commits - known})


def _bounded(found: AnomalyResult, scope: Scope) -> AnomalyResult:
    """Adds what was not read, or cannot be read any more, to what had to be judged from it."""
    if found.anomaly in NEVER_JUDGED:
        return AnomalyResult(found.anomaly, not_judged=NEVER_JUDGED[found.anomaly].value)
    if found.not_judged is not None:
        return _in_other_words(found, scope)
    reasons: list[str] = []
    if found.anomaly in FROM_OFFSETS_LOG and scope.whole_ns is not None:
        reasons.append(
            f"compaction has taken records out of the offsets log: it is whole only from {stamp(scope.whole_ns)} on"
        )
    if found.anomaly in WITH_REQUESTS:
        reasons += [f"not read: {message}" for message in scope.unread.get("requests", ())]
    return with_reasons(found, dict.fromkeys(reasons, 1))


def _in_other_words(found: AnomalyResult, scope: Scope) -> AnomalyResult:
    """Says why an anomaly is not judged as an audit must say it."""
    reason = IN_OTHER_WORDS.get(found.not_judged_reason) if found.not_judged_reason is not None else None
    if reason is NotJudgedByAudit.NO_SINK and scope.sink:
        reason = NotJudgedByAudit.NO_IDS
    return found if reason is None else replace(found, not_judged=reason.value)


def _in_scope(found: AnomalyResult, scope: Scope) -> AnomalyResult:
    """What no evidence was given for is not missed, unless it is claimed."""
    asked = {*ALWAYS, *(WITH_REQUESTS if scope.requests else ()), *(WITH_SINK if scope.sink else ())}
    if scope.claimed or found.anomaly in asked or found.not_judged is None:
        return found
    return replace(found, applies=False)


def _gaps(scope: Scope, collected: VerdictInput) -> Iterator[str]:
    """Yields what keeps an audit from being a pass, beside what single anomalies leave undecided."""
    unread = scope.unread.get("offsets log", ())
    yield from (f"not read: {message}" for message in unread)
    if not scope.commits and not unread:
        yield "the group committed nothing on the topic in the window: there was nothing to judge"
    if scope.claimed:
        yield from collected.gaps


CAME_BACK_MIN = 3
Client = tuple[str, str, str]


@dataclass(frozen=True)
class Rise:
    """The generation or epoch rose: from which to which, when, and who was in the group then."""

    before: int
    after: int
    at_ns: int
    event: str
    members: frozenset[str]
    members_before: frozenset[str]
    clients: Mapping[str, Client]


def rises_of(events: Iterable[Event], *, group: str, from_ns: int, until_ns: int) -> list[Rise]:
    """Returns the rises inside the window, in the log's order."""
    epoch, members, clients = -1, frozenset[str](), dict[str, Client]()
    found: list[Rise] = []
    before = members
    for event in events:
        if event.details.get("group") != group:
            continue
        members = _members(event, members, clients)
        value = event.details.get("epoch") if event.kind in ("group", "group_epoch") else None
        if not isinstance(value, int):
            continue
        at_ns = event.source_wall_ns or 0
        if 0 <= epoch < value and from_ns <= at_ns <= until_ns:
            found.append(Rise(epoch, value, at_ns, event.name, members, before, dict(clients)))
        epoch, before = value, members
    return found


def storm_at_rest(rises: Sequence[Rise], *, window_ns: int) -> tuple[Anomaly, ...]:
    """Returns a storm: rises in which nobody came or went, and nobody had shortly before."""
    changed_ns = -window_ns
    at_rest: list[Rise] = []
    for rise in rises:
        if rise.members != rise.members_before or not rise.members:
            changed_ns = rise.at_ns
        elif rise.at_ns - changed_ns > window_ns:
            at_rest.append(rise)
    if len(at_rest) < STORM_MIN:
        return ()
    attributes: dict[str, Any] = {
        "bumps": len(at_rest),
        "from": at_rest[0].before,
        "to": at_rest[-1].after,
        "lasted_ms": (at_rest[-1].at_ns - at_rest[0].at_ns) // 1_000_000,
    }
    proofs = tuple(dict.fromkeys(rise.event for rise in (*at_rest[:3], *at_rest[-2:])))
    return (Anomaly("rebalance-storm", None, None, attributes, proofs),)


def flapping(rises: Sequence[Rise]) -> int:
    """Returns how many clients came into the group as new members more often than a restart each explains."""
    came: Counter[Client] = Counter()
    most: Counter[Client] = Counter()
    for rise in rises:
        now = Counter(rise.clients[one] for one in rise.members if one in rise.clients)
        came.update(rise.clients[one] for one in rise.members - rise.members_before if one in rise.clients)
        most |= now
    return sum(count >= CAME_BACK_MIN * max(1, most[client]) for client, count in came.items())


def _members(event: Event, members: frozenset[str], clients: dict[str, Client]) -> frozenset[str]:
    """Returns who is in the group after an event, and learns their clients."""
    member_id = event.details.get("member_id")
    if event.kind == "group":
        listed = event.details.get("members") or ()
        clients.update((str(one["member_id"]), _client(one)) for one in listed)
        return frozenset(str(one["member_id"]) for one in listed)
    if event.kind == "member" and member_id:
        clients[str(member_id)] = _client(event.details)
        return members | {str(member_id)}
    if event.kind == "group_tombstone" and event.details.get("record_type") == 5 and member_id:
        return members - {str(member_id)}
    return members


def _client(told: Mapping[str, Any]) -> Client:
    return str(told.get("client_id")), str(told.get("host")), str(told.get("instance_id"))
