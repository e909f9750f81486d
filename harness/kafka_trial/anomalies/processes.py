"""Liveness of processes and of their group: who goes by itself, who does not go when asked, and needless rebalances.

Judged from the last lines of incarnations, which the harness writes (how the process ended, and who had asked it to),
and from the group's membership by the offsets log.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import Rule, always, never
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.history.consequences import Consequence
from kafka_trial.model.kernels import NEVER, NONE, Array, Ints
from kafka_trial.model.liveness_bounds import ENDS_PROCESS, fault_ends_ns, stall_window_s, timing_in
from kafka_trial.model.table import of_group
from kafka_trial.model.trial_context import LOG_TOLERANCE_NS, TOLERANCE_NS, Epoch, Incarnation, Window
from kafka_trial.model.undecided import Undecided
from kafka_trial.model.wall_clock import monotonic

if TYPE_CHECKING:
    from kafka_trial.model.group import Group

SECOND_NS = 1_000_000_000
LOOP_MIN = 2  # once is the plain failure "exited"; again, after it was started again, is a loop
LETS_MEMBERS_CLOSE = (*ENDS_PROCESS, Consequence.HARMLESS)
JOINS = ("JOIN_GROUP", "SYNC_GROUP")
JOIN_GAP_MAX_NS = SECOND_NS  # after an answer to the one before


@invariant(
    "crash-loop",
    family="liveness",
    needs=("processes", "exits"),
    level="none",
    of="group",
    severity=320,
    rule=Rule(always),
    message="member {member} exited by itself {exits} times, at last {ending}",
)
def crash_loop(group: Group) -> Findings:
    """A member's process exited by itself, was started again, and exited by itself again.

    "If a process fails, the partitions assigned to it will be reassigned to other consumers in the same group"
    (KafkaConsumer, Javadoc): every exit costs all of them a rebalance; a loop of exits keeps the group from working.
    What the harness killed or asked to stop is not counted. One exit alone is the plain failure `exited`, which this
    replaces for its member: nothing is told twice.

    Smallest history: `exited` code 1, asked no; the next incarnation's `started` and `exited` code 1, asked no.

    Usual cause: A member exited by itself, again and again: a record it cannot read, or an error nobody catches.

    Remedy: Set a record aside after some attempts; keep the process alive where the client can reconnect by itself.
    """
    incarnations = group.trial_context.incarnations
    gone = {
        number: [
            incarnation for incarnation in incarnations if incarnation.member == number and _by_itself(incarnation)
        ]
        for number in _members(incarnations)
    }
    loops = [
        sorted(exits, key=lambda incarnation: incarnation.number) for exits in gone.values() if len(exits) >= LOOP_MIN
    ]
    rows = of_group(
        len(loops),
        {
            "member": [group.trial_context.members[exits[0].member] for exits in loops],
            "exits": [len(exits) for exits in loops],
            "ending": [_ending(exits[-1]) for exits in loops],
        },
    )
    return Findings(rows, [_proofs([exits[place] for exits in loops]) for place in (0, 1, -1)])


@invariant(
    "unbounded-close",
    family="liveness",
    needs=("processes", "exits"),
    level="none",
    of="group",
    severity=330,
    rule=Rule(always),
    message="member {member} was asked to stop, did not end within {within_s} s, and was killed",
)
def unbounded_close(group: Group) -> Findings:
    """A member that was asked to stop did not end within the time that its [stop] gives, and was killed.

    "Tries to close the consumer cleanly within the specified timeout. If the close does not complete within the
    timeout, force close the consumer" (KIP-102): a close is bounded, brokers or no brokers. It counts at any close,
    also in the middle of a trial, and replaces the plain failure `never-stopped`, which knows only the last close and
    stays for histories whose exits do not say who asked for them. Undecided if a fault other than the stopping itself
    was in force (or one that leaves requests unanswered was, within the declared request time-out), or if the machine
    stood still. Undecided too if `[stop] within_s` is our default and the group held back the answers to the member's
    JoinGroup and SyncGroup all the while, until a lost member's session ended: some clients finish a join before they
    leave (kafkajs).

    Smallest history: `exited` signal 9, asked overdue.

    Usual cause: A member did not stop within its time: work without a limit, or a client that froze in close().

    Remedy: On the stop signal finish what is in hand, commit, leave. With librdkafka: unsubscribe() and poll until
    nothing is assigned before close(); with franz-go where rebalances are blocked: CloseAllowingRebalance(). The first
    process of a container is not ended by a signal that it does not handle: handle it, or set `[image] init = true`.
    """
    overdue = [
        incarnation
        for incarnation in group.trial_context.incarnations
        if incarnation.asked == "overdue" and incarnation.exited_ns is not None
    ]
    excuses = [_excuse(group, incarnation) for incarnation in overdue]
    found = [incarnation for incarnation, excuse in zip(overdue, excuses, strict=True) if excuse is None]
    rows = of_group(
        len(found),
        {
            "member": [group.trial_context.members[incarnation.member] for incarnation in found],
            "incarnation": [incarnation.number for incarnation in found],
            "within_s": [incarnation.within_s for incarnation in found],
        },
    )
    reasons = [
        (reason, np.full(excuses.count(reason), -1))
        for reason in (Undecided.STOP_DELAYED, Undecided.STOP_UNDER_FAULT, Undecided.JOIN_HELD_BACK)
    ]
    return Findings(rows, [_proofs(found)], reasons)


def _excuse(group: Group, incarnation: Incarnation) -> Undecided | None:
    """Returns why nobody can tell whether the member itself was too slow; None where it was."""
    ended_ns = incarnation.exited_ns or 0
    asked_ns = ended_ns if incarnation.asked_ns is None else incarnation.asked_ns
    member, waits_ns = group.trial_context.members[incarnation.member], _request_timeout_ns(group)
    if any(_hinders(window, member, asked_ns, ended_ns, waits_ns=waits_ns) for window in _windows(group)):
        return Undecided.STOP_UNDER_FAULT
    if "stop.within_s" not in group.trial_context.settings.declared and _held_in_a_join(
        group, incarnation, asked_ns, ended_ns
    ):
        return Undecided.JOIN_HELD_BACK
    patience_ns = (incarnation.within_s or 0) / 4 * SECOND_NS
    late = [delay for at, delay in group.trial_context.delays if asked_ns <= at and at - delay <= ended_ns]
    return Undecided.STOP_DELAYED if max(late, default=0) > patience_ns else None


def _held_in_a_join(group: Group, incarnation: Incarnation, asked_ns: int, ended_ns: int) -> bool:
    """Tells whether requests of the member to join were under way all the while: the first since before it was to stop,
    each at once after the one before, and the last was answered only when the member had gone."""
    about = group.trial_context
    asks = [one for one in about.group_answers if one.api in JOINS and one.member == incarnation.member]
    walls = np.array([NONE if one.wall_ns is None else one.wall_ns for one in asks], np.int64)
    ends_ns = monotonic(about, walls, np.array([one.time_ns for one in asks], np.int64)).tolist()
    reached_ns = NONE
    for end_ns, one in sorted(zip(ends_ns, asks, strict=True), key=lambda pair: pair[0] - pair[1].duration_ns):
        begun_ns = end_ns - one.duration_ns
        since_ns = asked_ns if reached_ns == NONE else reached_ns + JOIN_GAP_MAX_NS
        if incarnation.started_ns <= begun_ns <= since_ns and end_ns >= asked_ns:
            reached_ns = max(end_ns, reached_ns)
    return reached_ns >= ended_ns - LOG_TOLERANCE_NS


def _windows(group: Group) -> Sequence[Window]:
    return group.trial_context.windows


def _request_timeout_ns(group: Group) -> int:
    """Returns for how long a client may wait, after a fault, for an answer that never comes: as declared."""
    return int((group.trial_context.settings.request_timeout_s or 0.0) * SECOND_NS)


def _hinders(window: Window, member: str, asked_ns: int, ended_ns: int, *, waits_ns: int) -> bool:
    """Tells whether a fault may have kept the member from closing: one on it, or on brokers, in force meanwhile, or one
    that left a request of it unanswered.
    """
    after_ns = waits_ns if window.does(Consequence.LEAVES_REQUESTS_OPEN) else 0
    over = window.healed_ns is not None and window.healed_ns + after_ns < asked_ns
    if over or window.does(*LETS_MEMBERS_CLOSE):
        return False
    return window.member in (None, member) and window.injected_ns <= ended_ns


def _members(incarnations: Sequence[Incarnation]) -> list[int]:
    return sorted({incarnation.member for incarnation in incarnations})


def _by_itself(incarnation: Incarnation) -> bool:
    return incarnation.asked == "no" and incarnation.exited_ns is not None


def _ending(incarnation: Incarnation) -> str:
    return f"by signal {incarnation.signal}" if incarnation.signal is not None else f"with status {incarnation.code}"


def _proofs(incarnations: Sequence[Incarnation]) -> tuple[Array, Array]:
    sources = np.array([incarnation.source for incarnation in incarnations], np.int64)
    return sources, np.array(
        [-1 if incarnation.exited_seq is None else incarnation.exited_seq for incarnation in incarnations], np.int64
    )


STORM_MIN = 5  # one mishap costs four at most: a member lost and back, each two generations where rebalances cooperate


@invariant(
    "rebalance-storm",
    family="liveness",
    needs=("group log", "processes", "snapshot"),
    level="none",
    of="group",
    severity=380,
    rule=Rule(never),
    message="the group rebalanced {bumps} times, from {from} to {to}, though nothing had happened",
)
def rebalance_storm(group: Group) -> Findings:
    """The group's generation or epoch rose again and again before the snapshot, and nothing explains it.

    "If a process fails, the partitions assigned to it will be reassigned ... if a new consumer joins the group,
    partitions will be moved ... also used when new partitions are added" (KafkaConsumer, Javadoc; KIP-848 bumps the
    group epoch then): left alone a group is stable. A rise is explained while a fault is in force, and for W after a
    member's process started, stopped or went, after a fault's healing, a change of the topic's partitions or a stall of
    the machine. It is no explanation that a member itself changes its subscription again and again.

    Smallest history: `started`; half a minute on, six `group` records, each of a higher epoch.

    Usual cause: The group rebalanced over and over with nothing happening: polls too far apart, members that leave and
    join.

    Remedy: Lower max.poll.records or raise max.poll.interval.ms; use static members or cooperative rebalancing.
    """
    bumps = _unexplained(group)
    storm = [bumps] if len(bumps) >= STORM_MIN else []
    rows = of_group(
        len(storm),
        {
            "bumps": [len(some) for some in storm],
            "from": [some[0][1].value for some in storm],
            "to": [some[-1][2].value for some in storm],
            "lasted_ms": [(some[-1][0] - some[0][0]) // 1_000_000 for some in storm],
        },
    )
    proofs = [[some[place][2] for some in storm] for place in (0, 1, 2, -2, -1)]
    return Findings(rows, [_columns(epochs) for epochs in proofs])


def _unexplained(group: Group) -> list[tuple[int, Epoch, Epoch]]:
    """Returns when each unexplained rise took effect, with the record before it and its own, in log order."""
    epochs = group.trial_context.epochs
    wall_ns = np.array([NONE if epoch.wall_ns is None else epoch.wall_ns for epoch in epochs], np.int64)
    times_ns = monotonic(group.trial_context, wall_ns, np.array([epoch.time_ns for epoch in epochs], np.int64))
    begins_ns, ends_ns = _causes(group)
    rises = [
        (at_ns, before, after)
        for at_ns, (before, after) in zip(times_ns.tolist()[1:], pairwise(epochs), strict=False)
        if after.value > before.value and at_ns <= group.snapshot_ns
    ]
    return [rise for rise in rises if not bool(((begins_ns <= rise[0]) & (rise[0] <= ends_ns)).any())]


def _causes(group: Group) -> tuple[Ints, Ints]:
    """Returns from when to when each thing that happened explains a rise."""
    about, patience_s = group.trial_context, group.trial_context.session_timeout_s / 4
    incarnations = [
        (incarnation.started_ns, incarnation.closed_ns, incarnation.exited_ns) for incarnation in about.incarnations
    ]
    instants = [at_ns for times in incarnations for at_ns in times if at_ns is not None]
    spans = [(at_ns, at_ns) for at_ns in (*instants, *about.topic_changes)]
    spans += [(at - delay, at) for at, delay in about.delays if delay > patience_s * SECOND_NS]
    window_ns = int(stall_window_s(timing_in(group.trial_context)) * SECOND_NS)
    ends = [min(NEVER, end + window_ns) for _, end in spans]
    faults_ns = fault_ends_ns(about, group.timing, window_ns)
    spans += [(one.injected_ns, faults_ns[one.number]) for one in about.windows]
    ends += [faults_ns[one.number] for one in about.windows]
    begins = [max(NONE, begin - TOLERANCE_NS) for begin, _ in spans]
    return np.array(begins, np.int64), np.array(ends, np.int64)


def _columns(epochs: list[Epoch]) -> tuple[Ints, Ints]:
    return np.array([one.source for one in epochs], np.int64), np.array([one.seq for one in epochs], np.int64)
