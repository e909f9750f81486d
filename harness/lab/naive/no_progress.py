"""No progress, for the naive checker: what moved when, how long a pause may last, and whether all has come to rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab.naive.checker import Partition, Trial

FOREVER = float("inf")
SECOND_NS = 1_000_000_000
TIMES_FURTHER = 2  # of one record


def moves(p: Partition) -> list[float]:
    """When each movement was, up to the snapshot: deliveries, but no third one of a record in one ownership epoch,
    completions, effects, and commits above all before."""
    seen = Counter[Any]()
    found = list(_rises(p))
    for work in sorted(p.deliveries, key=lambda w: (w.event.source, w.event.seq)):
        if work.event.time_ns > (p.trial.snapshot_ns or 0):
            continue
        epoch = None if work.ownership_epoch is None else work.ownership_epoch.number
        seen[work.event.source, epoch, work.offset] += 1
        if seen[work.event.source, epoch, work.offset] <= TIMES_FURTHER:
            found.append(work.event.time_ns)
    found += [work.event.time_ns for work in p.completions] + [at for at, _ in p.effect_times] + effects_of_deleted(p)
    return sorted(at for at in found if at <= (p.trial.snapshot_ns or 0))


def progress(p: Partition) -> list[float]:
    """When it got further: work on a record for the first or second time, and commits above all before."""
    until_ns = p.trial.snapshot_ns or 0
    told = [
        [(work.event.time_ns, work.offset) for work in p.deliveries],
        [(work.event.time_ns, work.offset) for work in p.completions],
        p.effect_times,
    ]
    found = [at for one in told for at in _few(sorted(pair for pair in one if pair[0] <= until_ns))]
    return [*found, *_rises(p), *(at for at in effects_of_deleted(p) if at <= until_ns)]


def effects_of_deleted(p: Partition) -> list[float]:
    """When the sink acknowledged effects of records that were deleted before the log was read."""
    deleted = {ack.id for ack in p.not_held if 0 <= (-1 if ack.offset is None else ack.offset) < p.last_log_start}
    heard = [e for e in p.trial.of_kind("effect") if e.outcome == "ok" and e.id is not None]
    return [e.time_ns for e in heard if e.id in deleted]


def _rises(p: Partition) -> Iterator[float]:
    highest = -1
    for commit in p.commits:
        if commit.value is not None and commit.value > highest and commit.effect_ns <= (p.trial.snapshot_ns or 0):
            yield commit.effect_ns
        highest = -1 if commit.value is None else max(highest, commit.value)


def _few(told: Iterable[tuple[float, int]]) -> Iterator[float]:
    seen = Counter[int]()
    for at_ns, offset in told:
        seen[offset] += 1
        if seen[offset] <= TIMES_FURTHER:
            yield at_ns


def fetched_further(p: Partition) -> list[float]:
    """When members asked for records from a position above all asked for before."""
    asked: list[tuple[float, int]] = []
    for request in p.trial.requests:
        if request.details["api"] != "FETCH" or p.trial.lane_member(request) is None:
            continue
        at_ns = p.trial.mono_ns(request.source_wall_ns, request.time_ns)
        asked += [(at_ns, entry["offset"]) for entry in p.trial.entries(request, p.tp)]
    found: list[float] = []
    highest = -1
    for asked_ns, position in sorted(one for one in asked if one[0] <= (p.trial.snapshot_ns or 0)):
        if position > highest:
            found.append(asked_ns)
        highest = max(highest, position)
    return found


def in_hand(p: Partition) -> list[float]:
    """Since when records have been in the hands of members that live and have the partition, at the snapshot."""
    until_ns = p.trial.snapshot_ns or 0
    work = [w for w in (*p.deliveries, *p.completions, *p.failures) if w.event.time_ns <= until_ns]
    times = Counter(w.offset for w in work if w.event.kind == "delivered")
    last: dict[Any, Any] = {}
    for one in sorted(work, key=lambda w: (w.event.source, w.event.seq)):
        last[one.event.source, one.offset] = one
    gone = {e.source for e in p.trial.of_kind("stopped", "exited") if e.time_ns <= until_ns}
    found: list[float] = []
    for (source, offset), one in last.items():
        epoch = one.ownership_epoch
        lost = epoch is not None and epoch.closed is not None and epoch.closed.time_ns <= until_ns
        shown = any(o == offset and one.event.time_ns <= at <= until_ns for at, o in p.effect_times)
        few = times[offset] <= TIMES_FURTHER
        if one.event.kind == "delivered" and few and source not in gone and not lost and not shown:
            found.append(one.event.time_ns)
    return found


def window_ns(trial: Trial, partitions: list[Partition]) -> int:
    """W: a session, a pause, a commit interval."""
    commit_s = float(trial.settings.get("commit_interval_s", 0))
    return int(max(10.0, trial.session_s + pause_s(trial, partitions) + commit_s) * SECOND_NS)


def pause_s(trial: Trial, partitions: list[Partition]) -> float:
    """The longest time between two movements of one partition, or the longest handler; at most what a poll may take."""
    told = trial.told_ms("rebalance_timeout_ms")
    limit_s = max(told) / 1000 if told else float(trial.settings.get("poll_interval_s", 0))
    moved = [moves(p) for p in partitions]
    if not any(moved):
        return min(limit_s, 3 * trial.heartbeat_s)
    gaps = [(later - before) / SECOND_NS for times in moved for before, later in pairwise(times)]
    ended = [(h.begun.event.time_ns, h.ended.event.time_ns) for p in partitions for h in p.handlers if h.ended]
    longest = [(end - begun) / SECOND_NS for begun, end in ended if end <= trial.faults_begin_ns]
    return min(limit_s, max([0.0, float(trial.settings.get("handler_max_s") or 0), *gaps, *longest]))


def makes_no_progress(trial: Trial, partitions: list[Partition]) -> bool:
    """Nothing gets further, and nothing is in hand that may still be finished before its member must poll."""
    told = trial.told_ms("rebalance_timeout_ms")
    limit_s = max(told) / 1000 if told else float(trial.settings.get("poll_interval_s", 0))
    since_ns = (trial.snapshot_ns or 0) - window_ns(trial, partitions)
    begun_ns = (trial.snapshot_ns or 0) - int(limit_s * SECOND_NS)
    going_on = any(at >= since_ns for p in partitions for at in (*progress(p), *fetched_further(p)))
    return not going_on and not any(at >= begun_ns for p in partitions for at in in_hand(p))


def bound_ns(trial: Trial, partitions: list[Partition]) -> float:
    """How long the drain of a group without progress must have lasted."""
    window = window_ns(trial, partitions)
    if trial.settings.get("converge_within_s") is not None:
        return max(window, float(trial.settings["converge_within_s"]) * SECOND_NS)
    last_ns = max((end_ns for end_ns, _ in trial.lost_sessions.values()), default=0.0)
    detection_ns = max(0.0, last_ns - (trial.phase_ns("drain") or FOREVER))
    commit_s = float(trial.settings.get("commit_interval_s", 0))
    return max(window, detection_ns + (pause_s(trial, partitions) + commit_s) * SECOND_NS)
