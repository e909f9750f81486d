"""Slowdowns, for the naive checker: how much longer a group may take because brokers answer commits more slowly, or
because it and they wait longer for a processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.naive.checker import Partition, Slice, Trial

FOREVER = float("inf")
SECOND_NS = 1_000_000_000
COMMITS_MIN = 20  # commits


def allowance_ns(p: Partition, at_work: Callable[[Partition], bool]) -> float:
    """Beyond B: as often as it is slower, once less, the time that B leaves for the backlog, and what it waited more
    for a processor; nothing for a group that was not at work any more, or that claims a bound."""
    rates = [e.details["rate"] for e in p.trial.of_kind("calibrated")]
    begins_ns = p.trial.phase_ns("drain")
    partitions = [type(p)(p.trial, tp) for tp in p.trial.all_slices()]
    if not rates or begins_ns is None or p.trial.settings.get("converge_within_s") is not None:
        return 0.0
    if not any(at_work(q) for q in partitions):
        return 0.0
    ratios = sorted(ratio for q in partitions if (ratio := _ratio(q, begins_ns)) is not None)
    times = ratios[(len(ratios) - 1) // 2] if ratios else 1.0
    slower = (times - 1) * backlog_s(partitions, begins_ns) * SECOND_NS if times >= 2 else 0.0
    return slower + waited_more_ns(p.trial, begins_ns)


def waited_more_ns(trial: Trial, begins_ns: float) -> float:
    """What was waited since then, less the share that was waited anyway while the opening burst was worked on."""
    steady_ns, rated = trial.phase_ns("steady"), trial.of_kind("calibrated")
    if steady_ns is None or not rated:
        return 0.0

    def share(begin_ns: float, end_ns: float) -> tuple[float, float]:
        waited = over = 0.0
        for e in trial.of_kind("cpu_wait"):
            span = e.details["over_ns"]
            if e.time_ns > begin_ns and e.time_ns - span < end_ns:
                waited += min(span, e.details["member_ns"] + e.details["broker_ns"])
                over += span
        return waited, over

    before, before_over = share(steady_ns, rated[-1].time_ns)
    drain, drain_over = share(begins_ns, trial.snapshot_ns or FOREVER)
    return max(0.0, drain - drain_over * before / before_over) if before_over else 0.0


def backlog_s(partitions: Sequence[Partition], at_ns: int) -> float:
    """Twice what the backlog takes: all of it at the group's rate, or that of the partition that takes longest at its
    own, which is its share of the burst, or the mean share of those that had any, whichever is more."""
    trial = partitions[0].trial
    told = trial.of_kind("calibrated")[-1].details
    rate = float(told["rate"])
    left = {q.tp: _backlog(q, at_ns) for q in partitions}
    longest = 2 * sum(left.values()) / max(rate, 1.0)
    burst = trial.burst_of(told)
    for tp, records in left.items() if burst and rate else ():
        longest = max(longest, 2 * records / max(rate * share_of(tp, burst), 1.0))
    return longest


def share_of(tp: Slice, burst: Mapping[Slice, int]) -> float:
    """A partition's part of the opening burst, or the mean part in its topic (else of all), whichever is more."""
    beside = [count for (topic, _), count in burst.items() if topic == tp[0]] or list(burst.values())
    return max(burst.get(tp, 0), sum(beside) / len(beside)) / sum(burst.values())


def _backlog(q: Partition, at_ns: int) -> int:
    """Records not handled by then, or not committed past, whichever are more; of a consumer that shows nobody what it
    handles, those it had not committed past."""
    told = q.trial.settings
    unhandled = sum(1 for o in q.records if q.first_handled.get(o, FOREVER) > at_ns)
    if not q.trial.progress_in_kafka:
        return unhandled
    committed = q.committed_at(at_ns) or 0
    uncommitted = sum(1 for o in q.records if o >= committed)
    silent = told.get("events") == "none" and told.get("sink") in (None, "none")
    return uncommitted if silent else max(unhandled, uncommitted)


def _ratio(p: Partition, begins_ns: float) -> float | None:
    """The median of commits in the drain over that of before the faults; the lower one of two in the middle."""
    calm: list[float] = []
    drain: list[float] = []
    for request in p.trial.requests:
        if request.details["api"] not in ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT") or request.details.get("lane") is None:
            continue
        if not any(not entry.get("error") for entry in p.trial.entries(request, p.tp)):
            continue
        at_ns = p.trial.mono_ns(request.source_wall_ns, request.time_ns)
        took = int((request.details.get("duration_ms") or 0.0) * 1_000_000)
        if at_ns < p.trial.faults_begin_ns:
            calm.append(took)
        if begins_ns <= at_ns <= (p.trial.snapshot_ns or FOREVER):
            drain.append(took)
    if min(len(calm), len(drain)) < COMMITS_MIN or not _middle(calm) or not _middle(drain):
        return None
    return _middle(drain) / _middle(calm) if _middle(drain) - _middle(calm) >= 5_000_000 else 1.0


def _middle(values: list[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]
