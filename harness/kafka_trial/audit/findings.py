"""When each finding of an audit was, and who was there: put beside what the judge found, before the rules weigh it.

A trial's reader has the timeline and knows the members; whoever reads an audit knows neither. So each finding says its
date and time with the zone, client id and host, and of a commit from where to where it moved which partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.audit.commits import Client, Commit, Owners, client_of, some
from kafka_trial.audit.request import stamp
from kafka_trial.claim import Claim
from kafka_trial.history.event import Event
from kafka_trial.verdict.decide import weigh
from kafka_trial.verdict.messages import MOVED, WHEN_AND_WHO, message
from kafka_trial.verdict.verdict_input import VerdictInput


def with_times(
    collected: VerdictInput, commits: Mapping[str, Commit], events: Mapping[str, Event], owners: Owners
) -> VerdictInput:
    """Returns what was collected; each instance says when it was, and who was there. `events` are those it names."""
    found = tuple(
        replace(one, instances=tuple(_with_times(instance, commits, events, owners) for instance in one.instances))
        for one in collected.found
    )
    return replace(collected, found=found)


def tolerated_in_words(collected: VerdictInput, claim: Claim) -> Iterator[str]:
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
    when = _events(one, events, owners)
    return replace(one, attributes={**one.attributes, WHEN_AND_WHO: when}) if when else one


def _commit(one: Anomaly, commits: Mapping[str, Commit]) -> Commit | None:
    """Returns the commit that it is about: the one at its place in the log, else the first that it names."""
    named = [commits[name] for name in one.events if name in commits]
    at = [commit for commit in named if commit.log_offset == one.attributes.get("log_offset")]
    return next(iter(at or named), None)


def _events(one: Anomaly, events: Mapping[str, Event], owners: Owners) -> str:
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
