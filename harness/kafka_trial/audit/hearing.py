"""The hearing of an audit: what its own events and its offsets log say beside the judge's findings.

Called by the hearing of all run folders where the history is an audit's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kafka_trial.audit.storms import rises_of
from kafka_trial.audit.weighing import scope_of, weigh
from kafka_trial.case import Case
from kafka_trial.claim import Claim
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judgement import Judgement

OF_SCOPE = (b'"topic"', b'"log_start"', b'"log_end"')
OF_GROUP = (b'"group"', b'"group_epoch"', b'"member"', b'"group_tombstone"', b'"compacted"')


def hear_audit(folder: RunFolder, case: Case, judgement: Judgement, own: Sequence[Event], claim: Claim) -> Case:
    """Returns the case of an audit; `own` are the events of its source `run`."""
    group_events = list(_events(folder, "offsets", OF_GROUP))
    ends = _events(folder, "observer", OF_SCOPE)
    scope = scope_of(
        [*own, *ends, *group_events],
        requests=any(source.startswith("requests-") for source in judgement.circumstances.counts),
        sink=judgement.circumstances.settings.sink not in (None, "none"),
        claimed=claim.delivery != "unclaimed",
    )
    group = next((str(event.details.get("group")) for event in own if event.kind == "group_named"), "")
    rises = rises_of(group_events, group=group, from_ns=scope.from_ns, until_ns=scope.until_ns)
    falls = {
        name
        for one in case.found
        if one.anomaly == "commit-regression"
        for each in one.instances
        for name in each.events
    }
    return weigh(case, judgement, scope, rises, _walls(folder, falls))


def _walls(folder: RunFolder, names: set[str]) -> dict[str, int]:
    """Returns when the coordinator wrote the commits of these names."""
    if not names:
        return {}
    commits = _events(folder, "offsets", (b'"committed"',))
    return {event.name: event.source_wall_ns for event in commits if event.name in names and event.source_wall_ns}


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
