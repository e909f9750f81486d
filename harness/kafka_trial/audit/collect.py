"""Collects what a verdict on an audit rests on: its own events and its offsets log, beside the judge's findings.

Called where the history of a run folder is an audit's. Files are read again only for what findings
name, line by line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from kafka_trial.audit.rules import apply_audit_rules, rises_of
from kafka_trial.audit.scope import scope_of
from kafka_trial.audit.sink_rules import Commit, SinkEvidence
from kafka_trial.claim import Claim
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judgement import Judgement
from kafka_trial.verdict.verdict_input import VerdictInput

OF_SCOPE = (b'"topic"', b'"log_start"', b'"log_end"')
OF_GROUP = (b'"group"', b'"group_epoch"', b'"member"', b'"group_tombstone"', b'"compacted"')
NAMING = ("commit-regression", "skipped", "commit-ahead", "duplicate-effect")


def collect_audit(
    folder: RunFolder, collected: VerdictInput, judgement: Judgement, own: Sequence[Event], claim: Claim
) -> VerdictInput:
    """Returns the case of an audit; `own` are the events of its source `run`."""
    group_events = list(_events(folder, "offsets", OF_GROUP))
    ends = _events(folder, "observer", OF_SCOPE)
    sink = judgement.trial_context.settings.sink
    scope = scope_of(
        [*own, *ends, *group_events],
        requests=any(source.startswith("requests-") for source in judgement.trial_context.counts),
        sink=None if sink == "none" else sink,
        claimed=claim.delivery != "unclaimed",
    )
    group = next((str(event.details.get("group")) for event in own if event.kind == "group_named"), "")
    rises = rises_of(group_events, group=group, from_ns=scope.from_ns, until_ns=scope.until_ns)
    return apply_audit_rules(collected, judgement, scope, rises, _told(folder, collected, judgement))


def _told(folder: RunFolder, collected: VerdictInput, judgement: Judgement) -> SinkEvidence:
    """Returns what the events say that findings name."""
    named = {one.anomaly: {name for each in one.instances for name in each.events} for one in collected.found}
    names = frozenset[str]().union(*(named.get(anomaly, ()) for anomaly in NAMING))
    effects = dict(_effects(folder, names))
    twice = {name: effects[name].id or "" for name in named.get("duplicate-effect", ()) if name in effects}
    shared = _shared(folder, set(twice.values()))
    witness = 1  # its last line
    return SinkEvidence(
        commits=dict(_commits(folder, names)),
        effects_ns={name: event.time_ns for name, event in effects.items()},
        shared=frozenset(name for name, found in twice.items() if found in shared),
        ids=max(0, judgement.trial_context.counts.get("sink", 0) - witness),
    )


def _commits(folder: RunFolder, names: Collection[str]) -> Iterator[tuple[str, Commit]]:
    """Yields the commits of these names."""
    if not any(name.startswith("offsets#") for name in names):
        return
    begun: set[int | None] = set()
    for event in _events(folder, "offsets", (b'"committed"',)):
        place = event.details.get("log_offset")
        if event.name in names and event.source_wall_ns and isinstance(place, int):
            yield event.name, Commit(event.source_wall_ns, place, event.partition not in begun)
        begun.add(event.partition)


def _effects(folder: RunFolder, names: Collection[str]) -> Iterator[tuple[str, Event]]:
    if any(name.startswith("sink#") for name in names):
        yield from ((event.name, event) for event in _events(folder, "sink", (b'"effect"',)) if event.name in names)


def _shared(folder: RunFolder, ids: Collection[str]) -> set[str]:
    """Returns which of some ids several records of the topic have."""
    records = _events(folder, "observer", (b'"record"',)) if ids else ()
    counts = Counter(event.id for event in records if event.id in ids)
    return {name for name, count in counts.items() if name is not None and count > 1}


def _events(folder: RunFolder, source: str, kinds: Iterable[bytes]) -> Iterator[Event]:
    """Yields the readable events of some kinds; damaged lines are the judge's to name."""
    path, wanted = folder.history / f"{source}.jsonl", [b'"kind":' + kind for kind in kinds]
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            if any(kind in line for kind in wanted):
                try:
                    yield from_line(line)
                except (ValueError, TypeError):
                    continue
