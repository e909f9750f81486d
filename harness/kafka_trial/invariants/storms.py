"""Storms: the group's membership by the offsets log, and whether anything explains that it changes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.claim_rule import Rule, never
from kafka_trial.invariants.clocks import monotonic
from kafka_trial.invariants.expiries import over_ns
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import NEVER, NONE, Ints
from kafka_trial.invariants.table import of_group
from kafka_trial.invariants.trial_context import TOLERANCE_NS, Epoch

if TYPE_CHECKING:
    from kafka_trial.invariants.liveness import Group

SECOND_NS = 1_000_000_000
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
    group epoch then): left alone a group is stable. A rise is explained for the length of the window W (`bounds.py`:
    detection, rebalance, commit) after a member's process started, stopped or went, after a fault's healing, a change
    of the topic's partitions or a standstill of the machine, and while a fault is in force. A subscription that a
    member itself changes again and again is its own doing, and no explanation.

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
    lives = [(life.started_ns, life.closed_ns, life.exited_ns) for life in about.lives]
    instants = [at_ns for times in lives for at_ns in times if at_ns is not None]
    spans = [(at_ns, at_ns) for at_ns in (*instants, *about.topic_changes)]
    spans += [(at - delay, at) for at, delay in about.delays if delay > patience_s * SECOND_NS]
    window_ns = int(group.window_s * SECOND_NS)
    ends = [min(NEVER, end + window_ns) for _, end in spans]
    faults_ns = over_ns(about, group.timing, window_ns)
    spans += [(one.injected_ns, faults_ns[one.number]) for one in about.windows]
    ends += [faults_ns[one.number] for one in about.windows]
    begins = [max(NONE, begin - TOLERANCE_NS) for begin, _ in spans]
    return np.array(begins, np.int64), np.array(ends, np.int64)


def _columns(epochs: list[Epoch]) -> tuple[Ints, Ints]:
    return np.array([one.source for one in epochs], np.int64), np.array([one.seq for one in epochs], np.int64)
