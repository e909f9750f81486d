"""Never rejoined: members that a fault put out of their group, and that did not get back into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import Rule, always
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.model.kernels import Ints
from kafka_trial.model.rejoining import Awaited, allowance_s, awaited, overdue_s
from kafka_trial.model.table import of_group
from kafka_trial.model.trial_context import GroupAnswer, Membership, TrialContext
from kafka_trial.model.undecided import Undecided
from kafka_trial.model.wall_clock import done_ns

if TYPE_CHECKING:
    from kafka_trial.model.group import Group

SECOND_NS = 1_000_000_000
ASKING = ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "CONSUMER_GROUP_HEARTBEAT", "LEAVE_GROUP")


@invariant(
    "never-rejoined",
    family="liveness",
    needs=("group presence",),
    level="none",
    of="group",
    severity=175,
    rule=Rule(always),
    message="member {member} {how} and was still not back in its group {lasted_s} s later; the limit is {within}; "
    "{answers}",
)
def never_rejoined(group: Group) -> Findings:
    """A member was started again, resumed or cut off and healed, and did not get back into its group.

    "If a process fails, the partitions assigned to it will be reassigned to other consumers in the same group", and "if
    a new consumer joins the group, partitions will be moved from existing consumers to the new one" (KafkaConsumer,
    Javadoc): a process that runs outside its group leaves the group too small, and no lag shows it while the others can
    do its work. A member is in the group when the offsets log lists it and brokers grant its requests, with or without
    a partition. It has a session and a rebalance to get back, or twice the slowest start of the trial if that is
    longer, and never more than `[ready] within_s`. That time ends no earlier than when the sessions of lost members
    have expired, because a join may have to wait for them. Legal if the member comes back later while the trial goes
    on; if it had left the group before it was hit; if its process ended by itself (`crash-loop`); and with protocol =
    "none". Of several group members in one process one is enough. Undecided if the trial ended before that time, or the
    machine was busier or stood still for as long as the member was late.

    Smallest history: `group` record of m0 and m1; m0 `exited`, then `started` again; a JoinGroup of m0 answered 23;
    `group` record of m1 alone; sixteen seconds later phase snapshot.

    Usual cause: Its brokers refuse it: another assignor or protocol than the members that are there (a cooperative
    release beside eager ones), an instance id that somebody else has. Or it stopped polling when its group expelled it.

    Remedy: Roll assignors in two steps, with both named in partition.assignment.strategy in the first; poll on after a
    fencing error, or end the process.
    """
    away = [one for one in awaited(group.trial_context, until_ns=group.snapshot_ns) if not one.listed]
    reasons = [_why_undecided(group, one) for one in away]
    found = [one for one, reason in zip(away, reasons, strict=True) if reason is None]
    asked = [_asked(group.trial_context, one, until_ns=group.snapshot_ns) for one in found]
    rows = of_group(
        len(found),
        {
            "member": [group.trial_context.members[one.back.member] for one in found],
            "incarnation": [one.back.incarnation.number for one in found],
            "how": [one.back.how for one in found],
            "lasted_s": [round((group.snapshot_ns - one.back.at_ns) / SECOND_NS, 1) for one in found],
            "within": [one.within for one in found],
            "answers": [_counted(answers) for answers in asked],
        },
    )
    last = next((one for one in reversed(group.trial_context.memberships) if one.time_ns <= group.snapshot_ns), None)
    proofs = [_columns([answers[place] if answers else None for answers in asked]) for place in (0, -1)]
    return Findings(
        rows,
        [*proofs, _columns([last] * len(found))],
        [(reason, np.array([-1])) for reason in reasons if reason is not None],
    )


def _why_undecided(group: Group, one: Awaited) -> str | None:
    """Returns why nobody can tell that a member never got back; None where it had the time."""
    if group.snapshot_ns < one.due_ns:
        return Undecided.REJOIN_SHORT.format(within=one.within)
    if overdue_s(group.trial_context, one, until_ns=group.snapshot_ns) >= 0:
        return None
    more_s = allowance_s(group.trial_context, one.back, until_ns=group.snapshot_ns)
    return Undecided.REJOIN_BUSY.format(within=one.within, more=more_s)


def _asked(trial_context: TrialContext, one: Awaited, *, until_ns: int) -> list[GroupAnswer]:
    """Returns what its group was asked by a member since it returned, in order."""
    own = [
        answer for answer in trial_context.group_answers if answer.member == one.back.member and answer.api in ASKING
    ]
    times = done_ns(trial_context, [(answer.wall_ns, answer.time_ns) for answer in own])
    since = [(at_ns, answer) for at_ns, answer in zip(times, own, strict=True) if one.back.at_ns <= at_ns <= until_ns]
    return [answer for _, answer in sorted(since, key=lambda pair: pair[0])]


def _counted(answers: list[GroupAnswer]) -> list[list[str | int]]:
    """Returns how often each request was answered with each error code, the most frequent first."""
    counted = Counter((answer.api, answer.error) for answer in answers)
    return [[api, error, count] for (api, error), count in sorted(counted.items(), key=lambda one: (-one[1], one[0]))]


def _columns(events: Sequence[GroupAnswer | Membership | None]) -> tuple[Ints, Ints]:
    sources = [-1 if one is None else one.source for one in events]
    return np.array(sources, np.int64), np.array([-1 if one is None else one.seq for one in events], np.int64)
