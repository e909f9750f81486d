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

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.anomalies.processes import STORM_MIN
from kafka_trial.audit.commits import Client, Commit, some
from kafka_trial.audit.not_judged import IN_OTHER_WORDS, NEVER_JUDGED, NotJudgedByAudit
from kafka_trial.audit.request import NS_PER_S, stamp
from kafka_trial.audit.resets import RESET, in_words
from kafka_trial.audit.scope import Scope, all_undecided, some_undecided, with_reasons
from kafka_trial.audit.sink_rules import WHO, SinkEvidence, apply_sink_rules
from kafka_trial.audit.standing_lag import Standing, members_at, standing_at, standing_lag
from kafka_trial.history.event import Event
from kafka_trial.judge.judgement import Judgement
from kafka_trial.judge.not_judged import NotJudgedReason
from kafka_trial.verdict.messages import WHEN_AND_WHO
from kafka_trial.verdict.verdict_input import AnomalyResult, VerdictInput

ALWAYS = ("commit-regression", "commit-past-end", "false-lag", "stuck-partition", "rebalance-storm")
WITH_REQUESTS = ("zombie-commit", "rogue-reader", "stale-generation")
REMADE = "the position before it lies beyond the log's end now: the topic was created again"
CUT = "the position before it lies beyond the log's end now: the log was cut (by an unclean election, perhaps)"
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
    found["commit-regression"] = _of_one_topic(found["commit-regression"], told)
    found["commit-regression"] = some_undecided(
        found["commit-regression"], lambda one: _undecided_fall(one, judgement, scope, told)
    )
    found["commit-past-end"] = all_undecided(
        found["commit-past-end"], "the log ends below it now; whether it did then is not known"
    )
    found["orphan-partition"] = _orphans(found["orphan-partition"], scope)
    found["rebalance-storm"] = _storm(found["rebalance-storm"], scope, rises)
    if scope.sink:
        found |= apply_sink_rules(found, judgement, scope, told, collected.counts)
    else:
        lag = standing_lag(judgement, found["commit-regression"].instances, told.owners)
        found |= {name: _standing(found[name], lag, scope) for name in ("false-lag", "stuck-partition")}
    if told.passed_over:  # said of each reset, with its partitions
        found["skipped"] = _but_resets(found["skipped"])
    if scope.requests:
        found["zombie-commit"] = _unattributed(found["zombie-commit"], judgement, scope)
    found = {name: _bounded(one, scope) for name, one in found.items()}
    return replace(
        collected,
        found=tuple(_in_scope(one, scope) for _, one in sorted(found.items())),
        gaps=(*in_words(told.passed_over), *_gaps(scope, collected)),
        notes=(*collected.notes, *_earlier_topics(scope, told)),
        of_trial=False,
        counts=dict(collected.counts)
        | {"commits in the window": scope.commits, "rebalances in the window": len(rises)},
    )


def _undecided_fall(one: Anomaly, judgement: Judgement, scope: Scope, told: SinkEvidence) -> str | None:
    """Returns why nobody can be blamed for a fall; None where nothing speaks for it."""
    partition = one.partition or 0
    peak, fell = (told.commits.get(name) for name in (*one.events[:2], *("", "")[len(one.events) :]))
    if because := _other_topic(one, scope, peak, fell):
        return because
    members = members_at(judgement, int(one.attributes.get("log_offset", -1)))
    if members is None:
        return WHO
    if members == 0:
        return RESET
    if one.attributes.get("recovered"):
        return None
    if standing_at(judgement, partition) > int(one.attributes.get("to", 0)):
        return "it has moved on since, and may yet come to where it was: a replay, perhaps"
    if fell is not None and scope.read_to_ns - fell.wall_ns < scope.settle_ns:
        return "it fell so shortly before the end of what could be read that it may yet have recovered"
    return None


def _other_topic(one: Anomaly, scope: Scope, peak: Commit | None, fell: Commit | None) -> str | None:
    """Returns why the two positions of a fall may not be of one log; None where nothing says so.

    A topic that was deleted and made again has another id, which brokers write down with each commit from Kafka 4.1
    on. Where they did not, only offsets and times are left to guess by.
    """
    partition, before = one.partition or 0, int(one.attributes.get("from", 0))
    known = fell is not None and None not in (fell.topic_id, scope.topic_id)
    if known and fell is not None and fell.topic_id != scope.topic_id:
        return "it is of another topic of that name, which was deleted since"
    if before > scope.log_ends.get(partition, before):
        return CUT if known else f"{REMADE}, or cut"
    if not known and peak is not None and peak.wall_ns < scope.first_ns.get(partition, 0):
        return "the position before it is older than the first record of the topic, which was created again, or emptied"
    return None


def _of_one_topic(found: AnomalyResult, told: SinkEvidence) -> AnomalyResult:
    """Leaves out falls that are none: from a position in a topic to one in another of that name, made after it."""
    named = [[told.commits[name] for name in one.events[:2] if name in told.commits] for one in found.instances]
    others = [len({commit.topic_id for commit in commits if commit.topic_id}) > 1 for commits in named]
    kept = tuple(one for one, other in zip(found.instances, others, strict=True) if not other)
    return (
        found if len(kept) == len(found.instances) else replace(found, instances=kept, more=found.more if kept else 0)
    )


def _but_resets(found: AnomalyResult) -> AnomalyResult:
    return replace(found, undecided={why: count for why, count in found.undecided.items() if not why.startswith(RESET)})


def _earlier_topics(scope: Scope, told: SinkEvidence) -> Iterator[str]:
    """Yields that the topic was deleted and made again, and which commits count for nothing."""
    until_ns = max([scope.earlier_until_ns, *(one.wall_ns for one in told.of_other_topics)])
    if until_ns:
        yield (
            f"topic {scope.topic} was deleted and made again after {stamp(until_ns)} (its id is {scope.topic_id} now): "
            "commits on the earlier one count for nothing"
        )


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
        short = f"the window is shorter than the {least_s:g} s it takes to tell: {_too_young(scope)}"
        return AnomalyResult(found.anomaly, undecided={short: 1})
    instances = lag.false if found.anomaly == "false-lag" else ()
    return AnomalyResult(found.anomaly, instances=instances, undecided=dict(lag.undecided))


def _too_young(scope: Scope) -> str:
    """Returns for how long a record must have been there to count, since when that was so, and when to ask again."""
    least_s, again_ns = 2 * scope.settle_ns / NS_PER_S, scope.until_ns + 2 * scope.settle_ns
    return (
        f"a record counts once it was in the topic for {least_s:g} s (twice the time that the group has to settle), so "
        f"those that came after {stamp(max(scope.drain_ns, 0))} are too young. Ask again with --until "
        f"{stamp(again_ns)} or later: then all that came up to {stamp(scope.until_ns)} count"
    )


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
    if found.not_judged_reason is NotJudgedReason.NO_RECORDS:
        return replace(found, not_judged=f"no record of the window counts: {_too_young(scope)}")
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
ClientNames = tuple[str, str, str]  # client id, host, instance id


@dataclass(frozen=True)
class Rise:
    """The generation or epoch rose: from which to which, when, and who was in the group then."""

    before: int
    after: int
    at_ns: int
    event: str
    members: frozenset[str]
    members_before: frozenset[str]
    clients: Mapping[str, ClientNames]


def rises_of(events: Iterable[Event], *, group: str, from_ns: int, until_ns: int) -> list[Rise]:
    """Returns the rises inside the window, in the log's order."""
    epoch, members, clients = -1, frozenset[str](), dict[str, ClientNames]()
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
        WHEN_AND_WHO: f"from {stamp(at_rest[0].at_ns)} to {stamp(at_rest[-1].at_ns)}, {_some(at_rest[0])}",
    }
    proofs = tuple(dict.fromkeys(rise.event for rise in (*at_rest[:3], *at_rest[-2:])))
    return (Anomaly("rebalance-storm", None, None, attributes, proofs),)


def _some(rise: Rise) -> str:
    """Returns who was in the group at a rise, in words."""
    known = ((name, rise.clients[name]) for name in sorted(rise.members) if name in rise.clients)
    return some([Client(name, client_id, host) for name, (client_id, host, _) in known])


def flapping(rises: Sequence[Rise]) -> int:
    """Returns how many clients came into the group as new members more often than a restart each explains."""
    came: Counter[ClientNames] = Counter()
    most: Counter[ClientNames] = Counter()
    for rise in rises:
        now = Counter(rise.clients[one] for one in rise.members if one in rise.clients)
        came.update(rise.clients[one] for one in rise.members - rise.members_before if one in rise.clients)
        most |= now
    return sum(count >= CAME_BACK_MIN * max(1, most[client]) for client, count in came.items())


def _members(event: Event, members: frozenset[str], clients: dict[str, ClientNames]) -> frozenset[str]:
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


def _client(told: Mapping[str, Any]) -> ClientNames:
    return str(told.get("client_id")), str(told.get("host")), str(told.get("instance_id"))
