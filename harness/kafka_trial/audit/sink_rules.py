"""What a sink proves of an audited group, and what it leaves undecided.

That a record was not handled is told by its absence from the sink. So all of the sink must have been read, its ids must
be those of the topic, and something else than the group must not explain it: a reset while nobody was there, a
beginning that is not the topic's, a group that was stopped. That a record was handled, or handled twice, is told by
what is there, and stands whatever else was not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.audit.commits import Commit, Owners
from kafka_trial.audit.not_judged import NotJudgedByAudit
from kafka_trial.audit.request import NS_PER_S
from kafka_trial.audit.resets import RESET, PassedOver
from kafka_trial.audit.scope import Scope, all_undecided, some_undecided, with_reasons
from kafka_trial.audit.standing_lag import EMPTY, NEVER_COMMITTED, has_members, members_at, standing_at
from kafka_trial.history.event import Event
from kafka_trial.judge.judgement import Judgement
from kafka_trial.model.kernels import NONE
from kafka_trial.verdict.verdict_input import AnomalyResult

BY_ABSENCE = ("skipped", "unseen", "commit-ahead", "stuck-partition", "late-convergence")
BY_PRESENCE = ("false-lag", "duplicate-effect")
AT_THE_END = ("unseen", "stuck-partition", "late-convergence")
CLOCKS_NS = 5 * NS_PER_S  # two machines that keep time are not further apart
OTHER_IDS = "none of the ids in the sink is one of the topic's records': are they ids of the same thing?"
BEGAN = "it is the first commit on the partition that is known: where the group began to read it is not"
WHO = "whether the group had members then is not known, and without them it was no member's doing"
CLOCKS = f"it came within {CLOCKS_NS // NS_PER_S} s of the commit, by the clocks of two machines"
NOT_READ = "its record is none of those that were read"
OTHER_TOPIC = "the commit is of another topic of that name, which was deleted"
SHARED = "several records have its id"


@dataclass(frozen=True)
class SinkEvidence:
    """What the events say that findings name: commits, effects by their times, and effects whose id several records
    have. `ids` is how many the sink holds. `events` are those that findings name; `passed_over` the resets forward;
    `of_other_topics` the last commit of each other topic of that name; `owners` say who owned which partition."""

    commits: Mapping[str, Commit] = field(default_factory=dict)
    effects_ns: Mapping[str, int] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    ids: int = 0
    events: Mapping[str, Event] = field(default_factory=dict)
    passed_over: Sequence[PassedOver] = ()
    of_other_topics: Sequence[Commit] = ()
    owners: Owners = field(default_factory=lambda: Owners(""))


def apply_sink_rules(
    found: Mapping[str, AnomalyResult],
    judgement: Judgement,
    scope: Scope,
    told: SinkEvidence,
    counts: Mapping[str, int],
) -> dict[str, AnomalyResult]:
    """Returns what was found by the sink, less what it cannot bear; `counts` says how many records have an effect."""
    undecided: dict[str, Callable[[Anomaly], str | None]] = {
        "skipped": lambda one: _undecided_commit(one, judgement, told),
        "commit-ahead": lambda one: _undecided_commit(one, judgement, told) or _undecided_time(one, told),
        "duplicate-effect": lambda one: _undecided_repeat(one, told),
        **dict.fromkeys(AT_THE_END, lambda one: _undecided_end(one, judgement)),
    }
    results = {name: some_undecided(found[name], why_undecided) for name, why_undecided in undecided.items()}
    results["false-lag"] = found["false-lag"]
    timeless = scope.unread.get("times", ())
    for name in BY_ABSENCE:
        reasons = [*_unread(scope), *_strangers(counts, told), *(timeless if name != "skipped" else ())]
        results[name] = _undecided_for(results[name], reasons)
    for name in BY_PRESENCE:
        results[name] = with_reasons(results[name], dict.fromkeys(_unread(scope), 1))
        results[name] = _undecided_for(results[name], timeless)
    twice = results["duplicate-effect"]
    if scope.sink == "table" and not twice.count and twice.not_judged is None:
        results["duplicate-effect"] = replace(twice, not_judged=NotJudgedByAudit.ONE_ROW.value)
    return {name: one if found[name].not_judged is None else found[name] for name, one in results.items()}


def _undecided_for(found: AnomalyResult, reasons: Sequence[str]) -> AnomalyResult:
    """Leaves everything undecided for these reasons, the first of them above all; as it was where there are none."""
    if not reasons:
        return found
    opened = all_undecided(found, reasons[0]) if found.count else with_reasons(found, {reasons[0]: 1})
    return with_reasons(opened, dict.fromkeys(reasons[1:], 1))


def _unread(scope: Scope) -> list[str]:
    missing = [messages for name in ("handled", "records") if (messages := scope.unread.get(name))]
    return [f"not read: {first}" + (f" (and {len(more)} more)" if more else "") for first, *more in missing]


def _strangers(counts: Mapping[str, int], told: SinkEvidence) -> Iterator[str]:
    """A sink of which no id is one of the topic's tells nothing of its records."""
    if counts.get("records") and not counts.get("effects"):
        yield OTHER_IDS if told.ids else NotJudgedByAudit.NO_IDS.value


def _undecided_commit(one: Anomaly, judgement: Judgement, told: SinkEvidence) -> str | None:
    """Returns why nobody can be blamed for a commit that passed the record."""
    commit = next((told.commits[name] for name in one.events if name in told.commits), None)
    if commit is None:
        return None
    if any(commit.topic_id == other.topic_id for other in told.of_other_topics):
        return OTHER_TOPIC
    if commit.first:
        return BEGAN
    members = members_at(judgement, commit.log_offset)
    return (WHO if members is None else RESET) if not members else None


def _undecided_time(one: Anomaly, told: SinkEvidence) -> str | None:
    commit_ns = next((told.commits[name].wall_ns for name in one.events if name in told.commits), None)
    effect_ns = next((told.effects_ns[name] for name in one.events if name in told.effects_ns), None)
    if commit_ns is None or effect_ns is None:
        return None
    return CLOCKS if effect_ns - commit_ns < CLOCKS_NS else None


def _undecided_repeat(one: Anomaly, told: SinkEvidence) -> str | None:
    if one.partition is None:
        return NOT_READ
    return SHARED if told.shared.intersection(one.events) else None


def _undecided_end(one: Anomaly, judgement: Judgement) -> str | None:
    """Returns why nobody can be blamed for what was still to do at the end."""
    if not has_members(judgement):
        return EMPTY
    return NEVER_COMMITTED if standing_at(judgement, one.partition or 0) == NONE else None
