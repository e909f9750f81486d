"""What the run's own actors say: the faults with their evidence, and the consumer's plain failures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafka_trial.history.event import Event
from kafka_trial.verdict.exit_times import exit_time
from kafka_trial.verdict.sanitize import plain
from kafka_trial.verdict.verdict_input import Fault, Violation

if TYPE_CHECKING:
    from kafka_trial.invariants.trial_context import TrialContext
    from kafka_trial.judge.judge import Judgement

FAILURES = {
    "never-assigned": "never got a partition",
    "exited": "exited by itself",
    "never-stopped": "did not stop when asked",
}
# What explains each: what it is, what usually causes it, what to change.
FAILURE_HELP = {
    "never-assigned": (
        "A member did not get a partition in the time it had to become ready, where a control member of ours got one.",
        "a broker's address, group or topic that is not the one it was given, or a session longer than the wait.",
        "read its last words in `logs/`, and see that it uses `{bootstrap}`, `{group}` and `{topics}`.",
    ),
    "exited": (
        "A member's process ended although nobody had asked it to. The sentence of the report says how long after its "
        "start that was, and before, during or after which fault.",
        "an error that nobody handles: a record it cannot take, or a client that gives up when its group expels it.",
        "read its last words in `logs/`, handle what was thrown, and have it join again instead of ending.",
    ),
    "never-stopped": (
        "A member that was asked to stop went on beyond `[stop] within_s`, and was killed.",
        "a signal that is not handled, or a close that waits for records, locks or a broker.",
        "handle the signal named in `[stop]`, and bound everything that its close waits for.",
    ),
}
TOLD_BY = {"exited": "crash-loop", "never-stopped": "unbounded-close"}  # of the same member: nothing is told twice
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
    `returned` had traffic after they had been healed, whenever that was.
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


def told_with_proof(judgement: Judgement) -> set[tuple[str, str]]:
    """Returns the plain failures (name, member) that an anomaly of the judge's tells with more proof, or the brokers'
    logs refute."""
    found = {failure: judgement.findings.get(anomaly) for failure, anomaly in TOLD_BY.items()}
    told = {
        (failure, str(one.attributes.get("member")))
        for failure, finding in found.items()
        if finding is not None and finding.not_judged is None
        for one in finding.instances
    }
    return told | {("never-assigned", name) for name in _fetching_by_hand(judgement)}


def _fetching_by_hand(judgement: Judgement) -> list[str]:
    """Returns the members that assign partitions to themselves and were seen to fetch: they had some, said or not."""
    trial_context = judgement.trial_context
    if trial_context.settings.protocol != "none":
        return []
    lanes = [lane for lane in trial_context.fetching if lane in trial_context.lanes]
    return [trial_context.members[trial_context.lanes[lane]] for lane in lanes]


def failures_of(
    said: Said, told: Collection[tuple[str, str]], trial_context: TrialContext, *, planned: bool
) -> tuple[tuple[Violation, ...], list[str]]:
    """Returns the consumer's plain failures; where not even a control member could join, the ground is at fault.

    `told` are those that something else tells better. `planned`: whether the trial has faults at all.
    """
    failed = said.get("consumer_failure", [])
    controls = said.get("control_member", [])
    if failed and any(event.details.get("state") == "failed" for event in controls):
        return (), ["the cluster let not even a control member of the harness join"]
    by_name: dict[str, list[Event]] = {}
    for event in failed:
        name = str(event.details.get("name", "failed"))
        if (name, event.member) not in told:
            by_name.setdefault(name, []).append(event)
    failures = []
    for name, events in sorted(by_name.items()):
        members = sorted({event.member or "?" for event in events})
        when = _exit_times(members, trial_context, planned=planned) if name == "exited" else ""
        beside = ", where a control member of the harness got its own" if controls else ""
        sentence = f"{', '.join(members)} {FAILURES.get(name, 'failed')}{when}{beside}: {_message(events[0])}"
        failures.append(Violation(name, len(members), sentence, tuple(event.name for event in events)))
    return tuple(failures), []


def _exit_times(members: Sequence[str], trial_context: TrialContext, *, planned: bool) -> str:
    """Returns when each of these members exited, as the end of a clause; "" where nothing says it."""
    times = {member: when for member in members if (when := exit_time(member, trial_context, planned=planned))}
    if list(times) == list(members) and len(members) == 1:
        return f" {times[members[0]]}"
    return f" ({'; '.join(f'{member} {when}' for member, when in times.items())})" if times else ""


def _message(event: Event) -> str:
    return plain(event.details.get("message") or "no message")
