"""Readiness: members that the harness did not see ready, and what the brokers' request log says of each.

`never-assigned` says of a member that it got no partition. The harness waits for the member's own word, or for its
coordinator to know it; on a busy machine it may see neither of a member that works. Where the brokers saw it work the
failure is refuted: then nobody knows why it was not ready, and nothing of it was tried, so that the verdict is unknown.
A member that its group has lost, and that has not come back in the time this may take, has had its partitions; so has
an earlier process of it. What brokers did counts from when they did it: on a busy machine it is read late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafka_trial.history.event import Event
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.wall_clock import done_ns

EXPELLED = (25, 82, 110)  # UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH
Given = Mapping[
    tuple[int, int], tuple[int, ...] | None
]  # (member, member id) → its slices; None: nobody can read which


def working(failed: Iterable[Event], trial_context: TrialContext, *, partitions: int | None) -> dict[str, str]:
    """Returns the members said to be never assigned that the brokers saw at work, or idle for want of partitions, each
    with what they saw as the end of a sentence."""
    named = {event.member: event.time_ns for event in failed if event.details.get("name") == "never-assigned"}
    partitions = partitions or len({partition for _, partition in trial_context.slices if partition >= 0})
    seen = {
        name: _seen(member, trial_context, until_ns=named[name], partitions=partitions)
        for member, name in enumerate(trial_context.members)
        if name in named
    }
    return {name: told for name, told in seen.items() if told is not None}


def _seen(member: int, trial_context: TrialContext, *, until_ns: int, partitions: int) -> str | None:
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
        had = sorted(trial_context.slices[number][1] for number in numbers)
        return f"had {_named(had)} and fetched" if fetches else None
    taken = {number for slices in given.values() for number in slices or ()}
    if own and len(given) > partitions and len(taken) >= partitions:
        return f"was left without one, {len(given)} members having {_named(range(partitions))}"
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


def _named(partitions: Sequence[int]) -> str:
    """Returns partitions in words; of an assignment that nobody can read there are none to name."""
    numbers = ", ".join(map(str, partitions)) or "of a protocol of its own"
    return f"partition{'s' * (len(partitions) != 1)} {numbers}"
