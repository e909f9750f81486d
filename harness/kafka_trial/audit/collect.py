"""Collects what a verdict on an audit rests on: its own events and its offsets log, beside the judge's findings.

Called where the history of a run folder is an audit's. Files are read again only for what findings name, line by line.

Each finding is told when it was and who was there, before the rules weigh it. A trial's reader has the timeline and
knows the members; whoever reads an audit knows neither. So each finding says its date and time with the zone, client id
and host, and of a commit from where to where it moved which partition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.audit.commits import Client, Commit, Owners, client_of, moved_forward, some, with_requesters
from kafka_trial.audit.history_lines import events_of
from kafka_trial.audit.request import stamp
from kafka_trial.audit.resets import OF_MEMBERS, PassedOver, passed_over, read_commits
from kafka_trial.audit.rules import apply_audit_rules, rises_of
from kafka_trial.audit.scope import Scope, scope_of
from kafka_trial.audit.sink_rules import SinkEvidence
from kafka_trial.claim import Claim
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judgement import Judgement
from kafka_trial.verdict.decide import weigh
from kafka_trial.verdict.messages import MOVED, WHEN_AND_WHO, message
from kafka_trial.verdict.verdict_input import VerdictInput

OF_SCOPE = ("topic", "log_start", "log_end")
OF_GROUP = ("group", "group_epoch", "member", "group_tombstone", "compacted")
SEQ = re.compile(rb'"seq":(\d+)')


def collect_audit(
    folder: RunFolder, collected: VerdictInput, judgement: Judgement, own: Sequence[Event], claim: Claim
) -> VerdictInput:
    """Returns the case of an audit; `own` are the events of its source `run`."""
    group_events = list(events_of(folder.history, "offsets", OF_GROUP))
    ends = list(events_of(folder.history, "observer", OF_SCOPE))
    sink = judgement.trial_context.settings.sink
    scope = scope_of(
        [*own, *ends, *group_events],
        requests=any(source.startswith("requests-") for source in judgement.trial_context.counts),
        sink=None if sink == "none" else sink,
        claimed=claim.delivery != "unclaimed",
    )
    rises = rises_of(group_events, group=scope.group, from_ns=scope.from_ns, until_ns=scope.until_ns)
    told = _told(folder, collected, judgement, scope)
    timed = with_times(collected, told.commits, told.events, told.owners)
    ruled = apply_audit_rules(timed, judgement, scope, rises, told)
    return replace(ruled, notes=(*ruled.notes, *_tolerated_in_words(ruled, claim)))


def _owners(folder: RunFolder, scope: Scope) -> Owners:
    events = events_of(folder.history, "offsets", OF_MEMBERS)
    return Owners.of(events, topic=scope.topic, topic_id=scope.topic_id, partitions=sorted(scope.log_ends))


def _told(folder: RunFolder, collected: VerdictInput, judgement: Judgement, scope: Scope) -> SinkEvidence:
    """Returns what the events say that findings name."""
    named = {one.anomaly: {name for each in one.instances for name in each.events} for one in collected.found}
    names = frozenset[str]().union(*named.values())
    events = dict(_named_events(folder, names))
    effects = {name: event for name, event in events.items() if event.kind == "effect"}
    twice = {name: effects[name].id or "" for name in named.get("duplicate-effect", ()) if name in effects}
    shared = _shared(folder, set(twice.values()))
    commits, resets, others = _commits(folder, names, scope)
    witness = 1  # its last line
    return SinkEvidence(
        commits=commits,
        effects_ns={name: event.time_ns for name, event in effects.items()},
        shared=frozenset(name for name, found in twice.items() if found in shared),
        ids=max(0, judgement.trial_context.counts.get("sink", 0) - witness),
        events=events,
        passed_over=_passed_over(folder, resets, scope),
        of_other_topics=others,
        owners=_owners(folder, scope),
    )


def _commits(
    folder: RunFolder, names: Collection[str], scope: Scope
) -> tuple[dict[str, Commit], list[Commit], tuple[Commit, ...]]:
    """Returns the commits of these names, the resets forward, and the last one of another topic of that name."""
    kept, last = dict[str, Commit](), dict[str, Commit]()
    for name, one in read_commits(folder.history, topic=scope.topic, topic_id=scope.topic_id):
        if name in names or one.outside:
            kept[name] = one
        if None not in (one.topic_id, scope.topic_id) and one.topic_id != scope.topic_id:
            last[str(one.topic_id)] = one
    kept = with_requesters(kept, _commit_requests(folder, scope.group)) if kept else kept
    inside = (one for one in kept.values() if scope.from_ns <= one.wall_ns <= scope.until_ns)
    return kept, moved_forward(one for one in inside if one.outside), tuple(last.values())


def _commit_requests(folder: RunFolder, group: str) -> Iterator[Event]:
    """Yields the requests of commits of the group, by the request logs."""
    for path in sorted(folder.history.glob("requests-*.jsonl")):
        for event in events_of(folder.history, path.stem, ("request",)):
            if (
                event.details.get("api") in ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")
                and event.details.get("group") == group
            ):
                yield event


def _passed_over(folder: RunFolder, resets: Sequence[Commit], scope: Scope) -> tuple[PassedOver, ...]:
    if not resets:
        return ()
    records = events_of(folder.history, "observer", ("record",))
    effects = events_of(folder.history, "sink", ("effect",)) if scope.sink else None
    return tuple(passed_over(resets, records, effects, scope.starts, read=scope.resets_read))


def _named_events(folder: RunFolder, names: Collection[str]) -> Iterator[tuple[str, Event]]:
    """Yields the events of these names."""
    by_source: dict[str, set[int]] = {}
    for name in names:
        source, _, seq = name.rpartition("#")
        by_source.setdefault(source, set()).add(int(seq))
    for source, wanted in sorted(by_source.items()):
        yield from ((event.name, event) for event in _events(folder, source, wanted))


def _events(folder: RunFolder, source: str, wanted: Collection[int]) -> Iterator[Event]:
    path = folder.history / f"{source}.jsonl"
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            seq = SEQ.search(line)
            if seq is not None and int(seq[1]) in wanted:
                try:
                    event = from_line(line)
                except (ValueError, TypeError):
                    continue
                yield event


def _shared(folder: RunFolder, ids: Collection[str]) -> set[str]:
    """Returns which of some ids several records of the topic have."""
    records = events_of(folder.history, "observer", ("record",)) if ids else ()
    counts = Counter(event.id for event in records if event.id in ids)
    return {name for name, count in counts.items() if name is not None and count > 1}


def with_times(
    collected: VerdictInput, commits: Mapping[str, Commit], events: Mapping[str, Event], owners: Owners
) -> VerdictInput:
    """Returns what was collected; each instance says when it was, and who was there. `events` are those it names."""
    found = tuple(
        replace(one, instances=tuple(_with_times(instance, commits, events, owners) for instance in one.instances))
        for one in collected.found
    )
    return replace(collected, found=found)


def _tolerated_in_words(collected: VerdictInput, claim: Claim) -> Iterator[str]:
    """Yields the first of each kind of anomaly that was seen and that the claim allows, in its sentence."""
    for found in collected.found:
        allowed = [one for one in found.instances if weigh(claim, found.anomaly, one.attributes)[0] == "tolerated"]
        if allowed:
            count = found.count - (len(found.instances) - len(allowed))
            more = f" (and {count - 1} more like it)" if count > 1 else ""
            yield f"{found.anomaly}, which no claim excludes here: {message(found.anomaly, allowed[0])}{more}"


def _with_times(one: Anomaly, commits: Mapping[str, Commit], events: Mapping[str, Event], owners: Owners) -> Anomaly:
    commit = _commit(one, commits)
    if commit is not None:
        said = {MOVED: commit.moved, WHEN_AND_WHO: commit.when_and_who}
        return replace(one, attributes={**one.attributes, **said})
    when = _when_and_who(one, events, owners)
    return replace(one, attributes={**one.attributes, WHEN_AND_WHO: when}) if when else one


def _commit(one: Anomaly, commits: Mapping[str, Commit]) -> Commit | None:
    """Returns the commit that it is about: the one at its place in the log, else the first that it names."""
    named = [commits[name] for name in one.events if name in commits]
    at = [commit for commit in named if commit.log_offset == one.attributes.get("log_offset")]
    return next(iter(at or named), None)


def _when_and_who(one: Anomaly, events: Mapping[str, Event], owners: Owners) -> str:
    """Returns when its events were, and which clients they name, else who owned its partition at the last of them."""
    named = [events[name] for name in one.events if name in events]
    if not named:
        return ""
    times_ns = sorted(event.source_wall_ns or event.time_ns for event in named)
    when = list(dict.fromkeys(stamp(time_ns) for time_ns in (times_ns[0], times_ns[-1])))
    clients = list(dict.fromkeys(client for event in named for client in _clients(event)))
    owner = owners.at(one.partition, times_ns[-1])
    who = some(clients) if clients else f"while {owner} owned it" if owner else ""
    return f"at {' and '.join(when)}" + (f", {who}" if who else "")


def _clients(event: Event) -> list[Client]:
    """Returns the clients that an event names: the members of a group record, the sender of a request."""
    if event.kind == "group":
        return [client_of(one) for one in event.details.get("members") or ()]
    return [client_of(event.details)] if event.details.get("client_id") else []
