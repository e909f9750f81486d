"""Collects everything a verdict rests on: the judge's findings, and what the run itself says.

Stands between the judge and the verdict. The judge looks for anomalies; from the small files of the harness's own
actors (`run`, `nemesis`) come the faults with their evidence and the consumer's plain failures; from the scenario, how
much had to be judged. Nothing is concluded here that an event does not say.

Notes are what whoever reads a verdict should know, and what decides nothing: where consumer.toml says another time-out
than the brokers were told, the brokers' word was taken; partitions that got few records after they were last assigned
have shown little of that assignment. Of a member that exited by itself it is said how long after its start that was,
and before, during or after which fault.

`never-assigned` says of a member that it got no partition. The harness waits for the member's own word, or for its
coordinator to know it; on a busy machine it may see neither of a member that works. Where the brokers saw it work the
failure is refuted: then nobody knows why it was not ready, and nothing of it was tried, so that the verdict is unknown.
A member that its group has lost, and that has not come back in the time this may take, has had its partitions; so has
an earlier process of it. What brokers did counts from when they did it: on a busy machine it is read late.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafka_trial.anomalies.claim_rule import ON_TOPIC
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.bad_lines import lost_events_in_words
from kafka_trial.model.absences import hits_nobody
from kafka_trial.model.liveness_bounds import FRESH_MIN
from kafka_trial.model.rows import NOWHERE
from kafka_trial.model.trial_context import FailOver, TrialContext
from kafka_trial.model.wall_clock import done_ns
from kafka_trial.verdict.messages import plain
from kafka_trial.verdict.unknown_reasons import (
    coverage_gaps,
    disturbances_counted,
    environment_failures,
    faults_without_traffic,
    judge_failures,
    readings_counted,
    withheld_in_words,
)
from kafka_trial.verdict.verdict_input import AnomalyResult, Fault, Scope, VerdictInput, Violation

if TYPE_CHECKING:
    from kafka_trial.judge.judge import Coverage, Finding, Judgement
    from kafka_trial.model.trial_context import Incarnation, Window

SOURCES = ("run", "nemesis")
BOUND_DIFFERS_S = 1.0  # a line that was read a moment later makes the backlog another
FORWARDED = (
    "{} effects are of records that lie in several topics of the trial, and do not say which of these were done: who "
    'forwards records between its topics must show its work in lines ([evidence] events = "jsonl", and no sink)'
)
EXPELLED = (25, 82, 110)  # UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH
Given = Mapping[
    tuple[int, int], tuple[int, ...] | None
]  # (member, member id) → its slices; None: nobody can read which


def collect(
    judgement: Judgement, events: Iterable[Event], scope: Scope, *, unknowns: Sequence[str] = ()
) -> VerdictInput:
    """Returns everything a verdict rests on; `events` are those of the sources `run` and `nemesis`."""
    said = by_kind(events)
    coverage, trial_context = judgement.coverage, judgement.trial_context
    returned = [number for number, one in coverage.faults.items() if one.traffic_after_heal]
    unasked = [window.number for window in trial_context.windows if hits_nobody(trial_context, window)]
    faults = faults_of(said, scope.planned, [*returned, *unasked])
    failed, broken = said.get("consumer_failure", []), judge_failures(judgement)
    at_work = working(failed, trial_context, topics=_partitions_at_first(scope))
    told_elsewhere = failures_with_proof(judgement) | {("never-assigned", name) for name in at_work}
    failures, no_control = failures_of(said, told_elsewhere, trial_context, planned=bool(faults))
    ambiguous = [FORWARDED.format(trial_context.forwarded_effects)] if trial_context.forwarded_effects else []
    return VerdictInput(
        found=tuple(_found(finding) for _, finding in sorted(judgement.findings.items())),
        faults=faults,
        ground=(*unknowns, *environment_failures(judgement), *broken, *no_control, *ambiguous),
        unready=tuple(_unready(failed, at_work)),
        gaps=tuple(
            coverage_gaps(
                coverage,
                _with_added(scope, trial_context.partitions),
                silent=trial_context.settings.silent,
                sink=trial_context.settings.sink,
                last_words=next(map(_message, said.get("few_handled", ())), None),
                found_idle=_partitions_of(judgement, "stuck-partition"),
                topics=trial_context.topics,
            )
            + faults_without_traffic(coverage, trial_context)
            + [plain(lost_events_in_words(one)) for one in trial_context.lost_events]
        ),
        failures=failures,
        counts=_counts(coverage)
        | _unread(judgement)
        | disturbances_counted(trial_context)
        | readings_counted(trial_context),
        notes=(*([scope.load] if scope.load else []), *notes_of(judgement)),
        lasting=(*unknowns, *broken, *ambiguous),
        withheld=withheld_in_words(said.get("resources", ()), trial_context),
        printed=tuple(replace(one, first=plain(one.first)) for one in trial_context.printed),
        untried=tuple(_untried(judgement)),
        keyless=coverage.records > 0 and not any(part.keyed for part in coverage.partitions),
        keys_unique=coverage.records > 0 and not any(part.repeated_keys for part in coverage.partitions),
    )


def _partitions_of(judgement: Judgement, anomaly: str) -> frozenset[tuple[str | None, int]]:
    """Returns the partitions on which an anomaly was found, with their topics."""
    found = judgement.findings[anomaly].instances if anomaly in judgement.findings else ()
    return frozenset((one.topic, one.partition) for one in found if one.partition is not None)


def _partitions_at_first(scope: Scope) -> list[int]:
    """Returns how many partitions each topic had that was there when members started."""
    if scope.partitions is None:
        return []
    there = len(scope.further_topic_partitions) - scope.later_topics
    return [scope.partitions, *scope.further_topic_partitions[:there]]


def _with_added(scope: Scope, seen: int) -> Scope:
    """Returns the scope with the partitions that were added in the trial: `seen` is how many the first topic had at
    most."""
    return scope if scope.partitions is None else replace(scope, partitions=max(scope.partitions, seen))


def own_events(folder: RunFolder) -> Iterator[Event]:
    """Yields the events of the harness's own actors; damaged lines are the judge's to name."""
    for source in SOURCES:
        path = folder.history / f"{source}.jsonl"
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                yield from_line(line)
            except (ValueError, TypeError):
                continue


def _found(finding: Finding) -> AnomalyResult:
    return AnomalyResult(
        anomaly=finding.anomaly,
        instances=finding.instances,
        more=max(0, finding.count - len(finding.instances)),
        undecided=finding.undecided,
        not_judged=plain(finding.not_judged.because) if finding.not_judged else None,
        applies=finding.not_judged is None or finding.not_judged.applies,
        not_judged_reason=finding.not_judged.reason if finding.not_judged else None,
        partly=finding.partly.value if finding.partly else None,
    )


def _unread(judgement: Judgement) -> dict[str, int]:
    count = sum(one.count for one in judgement.trial_context.lost_events)
    return {"lines not read": count} if count else {}


def _counts(coverage: Coverage) -> dict[str, int]:
    names = {"records": "records", "handled": "handled", "deliveries": "delivered", "completions": "processed"}
    names |= {"effects": "effects", "commits": "committed", "commits refused": "refused"}
    return {name: sum(getattr(part, field) for part in coverage.partitions) for name, field in names.items()}


def notes_of(judgement: Judgement) -> list[str]:
    """Returns what is worth knowing about a judgement, as sentences."""
    return [
        *_contradictions(judgement.trial_context),
        *_handed_on(judgement.trial_context),
        *_failed_over(judgement.trial_context),
        *_drained(judgement),
        *_fresh(judgement),
        *_expired_while_away(judgement),
    ]


def _contradictions(trial_context: TrialContext) -> Iterator[str]:
    """Yields where the brokers were told something else than consumer.toml declares."""
    settings, told = trial_context.settings, trial_context.declared_timeouts
    as_declared = told.protocol in {one.protocol for one in trial_context.incarnations}
    pairs = {
        "protocol": (settings.protocol, None if as_declared else told.protocol),
        "session_timeout_s": (settings.session_timeout_s, told.session_timeout_s),
        "poll_interval_s": (settings.poll_interval_s, told.rebalance_timeout_s),
    }
    for name, (declared, requested) in pairs.items():
        if name in settings.declared and requested is not None and requested != declared:
            told_s = f"the brokers were told {_shown(requested)}, which counts"
            yield f"consumer.toml declares [kafka] {name} = {_shown(declared)}; {told_s}"


def _handed_on(trial_context: TrialContext) -> Iterator[str]:
    """Yields how many records were handed on, through which topic, and how many there bear no id."""
    for one in trial_context.through:
        nameless = f"; {one.nameless:,} there have no id of the trial's records" if one.nameless else ""
        yield f"the group handed on {one.records:,} records through its topic {plain(one.topic)}{nameless}"


def _failed_over(trial_context: TrialContext) -> Iterator[str]:
    """Yields how far from its last positions a group began on another cluster, and how far back its way explains."""
    for told in trial_context.fail_overs:
        yield _begun_anew(told)


def _begun_anew(told: FailOver) -> str:
    known = [(one.committed, one.started, one.earliest) for one in told.starts if one.committed is not None]
    moves = [started - committed for committed, started, _ in known if started is not None]
    back, ahead = -sum(move for move in moves if move < 0), sum(move for move in moves if move > 0)
    bounds = [committed - earliest for committed, _, earliest in known if earliest is not None]
    explained = f"{sum(max(0, one) for one in bounds):,} records in {len(bounds)} of {len(told.starts)} partitions"
    where = "back on the source" if told.back else "on the mirror"
    why = "by the positions that it had left there" if told.back else "as the mirror translates positions"
    return (
        f"{where} (by the way {told.way}) the group began {back:,} records before what it had committed, and "
        f"{ahead:,} after it; {why}, it may begin as early as {explained} before"
    )


def _drained(judgement: Judgement) -> Iterator[str]:
    """Yields by what the run bounded its drain, where it says so, and by what else the judge would have."""
    about, bounds_s = judgement.trial_context, judgement.bounds_s
    if about.drain_bound_s is None or about.drain_ns is None or about.snapshot_ns is None:
        return
    told = dict(zip("BW", about.drain_bound_s, strict=True))
    reckoned = {"B": bounds_s["converge"], "W": bounds_s["stuck"]}
    yield f"the drain took {(about.snapshot_ns - about.drain_ns) / 1e9:.1f} s: {judgement.bounds_in_words}"
    others = [name for name in told if abs(told[name] - reckoned[name]) > BOUND_DIFFERS_S]
    if others:
        words = (f"{name} = {told[name]:.1f} s (the judge: {reckoned[name]:.1f} s)" for name in others)
        yield f"the run ended its drain by other bounds than the judge's: {', '.join(words)}"


def _expired_while_away(judgement: Judgement) -> Iterator[str]:
    """Yields what nobody could have read any more, as the trial had stopped all members: no claim forbids it."""
    found = judgement.findings.get("overtaken")
    gone = [one for one in (found.instances if found else ()) if one.attributes.get("while_away")]
    ranges = (
        f"{one.attributes['offset']} to {one.attributes['last_offset']} of partition {one.partition}"
        + (f" of {plain(one.topic)}" if ON_TOPIC in one.attributes else "")
        for one in gone
    )
    if gone:
        yield f"expired while the trial had stopped all members: offsets {', '.join(ranges)}"


def _fresh(judgement: Judgement) -> Iterator[str]:
    """Yields how many partitions got fewer records than it takes since a member last got them."""
    trial_context, slices = judgement.trial_context, judgement.slices
    if slices is None or trial_context.drain_ns is None or not trial_context.windows:
        return
    pairs = zip(slices["slice"].tolist(), slices["fresh"].tolist(), strict=True)
    own = ((slice_, count) for slice_, count in pairs if not trial_context.is_intermediate(slice_))
    few = {trial_context.slices[slice_]: count for slice_, count in own if count < FRESH_MIN}
    few = {place: count for place, count in few.items() if place[1] != NOWHERE}
    if few:
        several = len(trial_context.topics) > 1
        names = {place: f"{place[1]} of {plain(place[0])}" if several else f"{place[1]}" for place in few}
        named = ", ".join(f"{names[place]} ({count})" for place, count in sorted(few.items()))
        partitions = f"partition{'s' * (len(few) > 1)}"
        yield f"fewer than {FRESH_MIN} records came after the last assignment of {partitions} {named}"


def _untried(judgement: Judgement) -> Iterator[str]:
    """Yields that rebalances met no record in hand, where the request log was read to its end and shows so."""
    slices, states = judgement.slices, judgement.trial_context.witnesses
    read = [state == "complete" for name, state in states.items() if name.startswith("requests")]
    if slices is None or not read or not all(read):
        return
    if slices["revocations"].sum() and not slices["revocations_met"].sum():
        yield "no rebalance met a record in hand: what this consumer does then was not tried"


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


FAILURES = {
    "never-assigned": "never got a partition",
    "exited": "exited by itself",
    "never-stopped": "did not stop when asked",
}
# What explains each: what it is, what usually causes it, what to change.
FAILURE_HELP = {
    "never-assigned": (
        "A member did not get a partition in the time it had to become ready, where a control member of ours got one. "
        "One that the brokers' request log shows at work, or idle because there are fewer partitions than members, has "
        "not failed: it is unclear why it was not seen to be ready, and the verdict is unknown. The report says how "
        "many connections it opened to its brokers.",
        "it uses another broker address, group or topic than it was given, or a session longer than the wait.",
        "read its last words in `logs/`, and see that it uses `{bootstrap}`, `{group}` and `{topics}`. Without a "
        "connection it has another address, or never tried to connect.",
    ),
    "exited": (
        "A member's process ended although nobody had asked it to. The report says how long after its start that was, "
        "and before, during or after which fault.",
        "an error that is not handled: a record it cannot take, or a client that gives up when its group expels it.",
        "read its last words in `logs/`, handle what was thrown, and have it join again instead of ending.",
    ),
    "never-stopped": (
        "A member that was asked to stop went on beyond `[stop] within_s`, and was killed.",
        "a signal that is not handled, or a close that waits for records, locks or a broker.",
        "handle the signal named in `[stop]`, and bound everything that its close waits for.",
    ),
}
PROVED_BY = {"exited": "crash-loop", "never-stopped": "unbounded-close"}  # of the same member: nothing is told twice
Said = Mapping[str, Sequence[Event]]


def by_kind(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Returns events by kind, each kind in order."""
    said: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda event: (event.source, event.seq)):
        said.setdefault(event.kind, []).append(event)
    return said


def faults_of(said: Said, planned: Sequence[Mapping[str, Any]], returned: Collection[int] = ()) -> tuple[Fault, ...]:
    """Returns the faults that were planned or shown, by number, each with its evidence.

    The run itself waits some seconds for traffic, and a member may have to wait for longer sessions to expire: those of
    `returned` had traffic after they had been healed, whenever that was, or hit nobody whose traffic could return.
    """
    evidence = {number: event for event in said.get("evidence", ()) if (number := _number(event)) is not None}
    shown = [_fault(event, number, returned=number in returned) for number, event in sorted(evidence.items())]
    missing = [_unshown(plan, number) for number, plan in enumerate(planned) if plan.get("no", number) not in evidence]
    return tuple(fault for _, fault in sorted([*shown, *missing], key=lambda pair: pair[0]))


def _number(event: Event) -> int | None:
    """Returns which fault an event is about; evidence that does not say so shows nothing."""
    number = event.details.get("fault_no")
    return number if isinstance(number, int) else None


def _fault(event: Event, number: int, *, returned: bool) -> tuple[int, Fault]:
    details = event.details
    role, _, name = str(details.get("target", "")).partition(": ")
    return number, Fault(
        kind=str(details.get("fault", "?")),
        target=name or role,
        role=role,
        bit=details.get("bit") is True,
        evidence=plain(details.get("message") or "no evidence was given"),
        healed=returned or not (details.get("heals") is True and details.get("healed_traffic") is False),
    )


def _unshown(plan: Mapping[str, Any], number: int) -> tuple[int, Fault]:
    role = str(plan.get("target", "?"))
    told = "the history holds no evidence of it: it was never injected, or the run ended first"
    return number, Fault(str(plan.get("fault", "?")), str(plan.get("resolved") or role), role, bit=False, evidence=told)


def failures_with_proof(judgement: Judgement) -> set[tuple[str, str]]:
    """Returns the plain failures (name, member) that an anomaly of the judge's tells with more proof."""
    found = {failure: judgement.findings.get(anomaly) for failure, anomaly in PROVED_BY.items()}
    return {
        (failure, str(one.attributes.get("member")))
        for failure, finding in found.items()
        if finding is not None and finding.not_judged is None
        for one in finding.instances
    }


def failures_of(
    said: Said, told: Collection[tuple[str, str]], trial_context: TrialContext, *, planned: bool
) -> tuple[tuple[Violation, ...], list[str]]:
    """Returns the consumer's plain failures; where not even a control member could join, the ground is at fault.

    `told` are those that something else tells better, or refutes. `planned`: whether the trial has faults at all.
    """
    failed = said.get("consumer_failure", [])
    controls = said.get("control_member", [])
    if failed and any(event.details.get("state") == "failed" for event in controls):
        return (), ["not even a control member of the harness could join a group on the cluster"]
    by_name: dict[str, list[Event]] = {}
    for event in failed:
        name = str(event.details.get("name", "failed"))
        if (name, event.member) not in told:
            by_name.setdefault(name, []).append(event)
    failures = []
    for name, events in sorted(by_name.items()):
        members = sorted({event.member or "?" for event in events})
        when = _exit_times(members, trial_context, planned=planned) if name == "exited" else _connected(events)
        beside = ", where a control member of the harness got its own" if controls else ""
        sentence = f"{', '.join(members)} {FAILURES.get(name, 'failed')}{when}{beside}: {_message(events[0])}"
        failures.append(Violation(name, len(members), sentence, tuple(event.name for event in events)))
    return tuple(failures), []


def _unready(failed: Sequence[Event], at_work: Mapping[str, str]) -> Iterator[str]:
    """Yields that members were waited for in vain, for what and how long, and what the brokers saw of them."""
    ours = [event for event in failed if event.details.get("name") == "never-assigned" and event.member in at_work]
    if not ours:
        return
    names, seen = ", ".join(at_work), "; ".join(f"{name} {told}" for name, told in at_work.items())
    were = "was" if len(at_work) == 1 else "were"
    yield (
        f"{names} {were} not seen to be ready, though by the brokers' request log {seen}. "
        f"What was waited for: {ours[0].member} {_message(ours[0])}"
    )


def _exit_times(members: Sequence[str], trial_context: TrialContext, *, planned: bool) -> str:
    """Returns when each of these members exited, as the end of a clause; "" where nothing says it."""
    times = {member: when for member in members if (when := exit_time(member, trial_context, planned=planned))}
    if list(times) == list(members) and len(members) == 1:
        return f" {times[members[0]]}"
    return f" ({'; '.join(f'{member} {when}' for member, when in times.items())})" if times else ""


def _connected(events: Sequence[Event]) -> str:
    """Returns how many connections members opened to the brokers that they were given, as the end of a clause."""
    told = {event.member: event.details.get("connections") for event in events}
    counts = {member: count for member, count in sorted(told.items(), key=str) if isinstance(count, int)}
    opened = [f"{name} opened {count or 'no'} connection{'s' * (count != 1)}" for name, count in counts.items()]
    return f" ({', '.join(opened)} to the brokers of {{bootstrap}})" if opened else ""


def _message(event: Event) -> str:
    return plain(event.details.get("message") or "no message")


NS_PER_S = 1e9


def exit_time(member: str, trial_context: TrialContext, *, planned: bool) -> str:
    """Returns when a member's last exit that nobody had asked for was, in words; "" where its file does not say.

    `planned`: whether the trial has faults at all; one that ended early has played none of them.
    """
    incarnations = [
        incarnation for incarnation in trial_context.incarnations if trial_context.members[incarnation.member] == member
    ]
    ended = [
        (incarnation.exited_ns, incarnation)
        for incarnation in incarnations
        if incarnation.asked == "no" and incarnation.exited_ns is not None
    ]
    if not ended:
        return ""
    exited_ns, incarnation = max(ended, key=lambda pair: pair[0])
    place = _place(exited_ns, trial_context.windows, planned=planned)
    return f"{_age_s(incarnation, exited_ns):.1f} s after its start, {place}"


def _age_s(incarnation: Incarnation, exited_ns: int) -> float:
    return (exited_ns - incarnation.started_ns) / NS_PER_S


def _place(at_ns: int, windows: Sequence[Window], *, planned: bool) -> str:
    """Returns where an instant lies among the faults."""
    inside = [window for window in windows if _began_ns(window) <= at_ns and (window.healed_ns or at_ns) >= at_ns]
    if inside:
        return f"during {' and '.join(map(_named, inside))}"
    before = [window for window in windows if _began_ns(window) < at_ns]
    if before:
        return f"after {_named(max(before, key=_began_ns))} was healed"
    return "before the first fault" if planned or windows else "in a trial without faults"


def _began_ns(window: Window) -> int:
    return window.begun_ns


def _named(window: Window) -> str:
    return f"fault {window.number} ({window.fault})"


def working(failed: Iterable[Event], trial_context: TrialContext, *, topics: Sequence[int]) -> dict[str, str]:
    """Returns the members said to be never assigned that the brokers saw at work, or idle for want of partitions, each
    with what they saw as the end of a sentence. `topics`: how many partitions each has (empty: not known)."""
    named = {event.member: event.time_ns for event in failed if event.details.get("name") == "never-assigned"}
    topics = topics or [len({partition for _, partition in trial_context.slices if partition >= 0})]
    seen = {
        name: _seen(member, trial_context, until_ns=named[name], topics=topics)
        for member, name in enumerate(trial_context.members)
        if name in named
    }
    return {name: told for name, told in seen.items() if told is not None}


def _seen(member: int, trial_context: TrialContext, *, until_ns: int, topics: Sequence[int]) -> str | None:
    """Returns what refutes that a member got no partition; None: nothing does."""
    fetches = member in {trial_context.lanes.get(lane) for lane in trial_context.fetching}
    if trial_context.settings.protocol == "none":
        return "fetched" if fetches else None
    since_ns = until_ns - _away_ns(trial_context)
    if not _heard_of(member, trial_context, since_ns=since_ns, until_ns=until_ns):
        return None
    given = _given(trial_context, since_ns=since_ns, until_ns=until_ns)
    own = [slices for (owner, _), slices in given.items() if owner == member]
    if any(slices != () for slices in own):
        numbers = {number for slices in own for number in slices or () if not trial_context.is_intermediate(number)}
        had = sorted({trial_context.slices[number][1] for number in numbers})
        return f"had {_partitions_in_words(had)} and fetched" if fetches else None
    taken = {number for slices in given.values() for number in slices or ()}
    if own and len(given) > max(topics) and len(taken) >= sum(topics):  # range deals each topic for itself
        all_of_them = _partitions_in_words(range(max(topics))) + " of each topic" * (len(topics) > 1)
        return f"was left without one, {len(given)} members having {all_of_them}"
    return None


def _away_ns(trial_context: TrialContext) -> int:
    """Returns how long a sound member may be away: a busy machine lets its session expire, and it joins again."""
    told_s = trial_context.declared_timeouts.rebalance_timeout_s
    rebalance_s = trial_context.settings.poll_interval_s if told_s is None else told_s
    return round((trial_context.session_timeout_s + rebalance_s) * 1e9)


def _heard_of(member: int, trial_context: TrialContext, *, since_ns: int, until_ns: int) -> bool:
    """Tells whether its coordinator answered a member in that time, by heartbeats, joins and syncs."""
    runs = [run for run in trial_context.heartbeat_runs if trial_context.lanes.get(run.lane) == member]
    first_ns = done_ns(trial_context, [(run.first_wall_ns, run.first_time_ns) for run in runs])
    last_ns = done_ns(trial_context, [(run.last_wall_ns, run.last_time_ns) for run in runs])
    begun_ns = _processes(trial_context, since_ns=since_ns, until_ns=until_ns).get(member, until_ns)
    return any(
        last >= max(since_ns, begun_ns) and first <= until_ns for first, last in zip(first_ns, last_ns, strict=True)
    )


def _given(trial_context: TrialContext, *, since_ns: int, until_ns: int) -> Given:
    """Returns what the group's members had last been given; those expelled or gone before `since_ns` have no entry."""
    given: dict[tuple[int, int], tuple[int, ...] | None] = {}
    begun_ns = _processes(trial_context, since_ns=since_ns, until_ns=until_ns)
    answers, left_ns = trial_context.group_answers, _left(trial_context, since_ns=since_ns)
    times = done_ns(trial_context, [(answer.wall_ns, answer.time_ns) for answer in answers])
    for at_ns, answer in sorted(zip(times, answers, strict=True), key=lambda one: one[0]):
        who = answer.member, answer.member_id
        if at_ns > until_ns:
            break
        if answer.member >= 0 and at_ns < max(begun_ns.get(answer.member, until_ns), left_ns.get(answer.member, 0)):
            continue
        if answer.error in EXPELLED or answer.api == "LEAVE_GROUP":
            if at_ns < since_ns:
                given.pop(who, None)
        elif not answer.error and (answer.assigned is not None or answer.api == "SYNC_GROUP"):
            given[who] = answer.assigned
    return given


def _processes(trial_context: TrialContext, *, since_ns: int, until_ns: int) -> dict[int, int]:
    """Returns when the process began that each member was at the end; those that had exited before `since_ns` have no
    entry."""
    last = {}
    for one in sorted(trial_context.incarnations, key=lambda one: one.started_ns):
        if one.started_ns <= until_ns:
            last[one.member] = one
    gone = {member for member, one in last.items() if one.exited_ns is not None and one.exited_ns < since_ns}
    return {member: one.started_ns for member, one in last.items() if member not in gone}


def _left(trial_context: TrialContext, *, since_ns: int) -> dict[int, int]:
    """Returns when members last left by a heartbeat (KIP-848) before `since_ns`; it bears no member id, so not of those
    that had several."""
    left: dict[int, int] = {}
    for lane, at_ns in sorted(trial_context.declared_timeouts.leaves, key=lambda one: one[1]):
        member = trial_context.lanes.get(lane, -1)
        earlier = [one for one in trial_context.group_answers if one.member == member and one.time_ns <= at_ns]
        if at_ns < since_ns and len({one.member_id for one in earlier}) <= 1:
            left[member] = at_ns
    return left


def _partitions_in_words(partitions: Sequence[int]) -> str:
    """Returns partitions in words; of an assignment that nobody can read there are none to name."""
    numbers = ", ".join(map(str, partitions)) or "of a protocol of its own"
    return f"partition{'s' * (len(partitions) != 1)} {numbers}"
