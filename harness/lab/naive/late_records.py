"""Records that waited longer than claimed, for the naive checker: one after the other, in the order they came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lab.naive.head_of_line import waited_ns
from lab.naive.responses import does
from lab.naive.slowdown import share_of

if TYPE_CHECKING:
    from kafka_trial.history.event import Event
    from lab.naive.checker import Found, Partition, Trial

FOREVER = float("inf")
SECOND_NS = 1_000_000_000
TOLERANCE_NS = 500_000_000


@dataclass(frozen=True)
class Wait:
    """One record, from when it waited to when that was over, at the earliest and as it was seen."""

    offset: int
    since_ns: int
    there_ns: float
    least_ns: float
    until_ns: float
    over: bool


@dataclass(frozen=True)
class Spell:
    """What is told of one record; records that follow one another and are alike are told as one."""

    wait: Wait
    row: int
    member: str | None
    excused_by: str | None
    undecided: str | None

    def goes_on(self, other: Spell) -> bool:
        """Tells whether the other one is the next record's, and like this one."""
        mine, others = ((one.member, one.excused_by, one.undecided) for one in (self, other))
        return other.row == self.row + 1 and mine == others


def late_record(p: Partition, window_ns: int) -> Iterator[Found | None]:
    """Waited for longer than is claimed, and as long again as it stands behind others, where no fault is in force."""
    limit_s, calibrated = p.trial.settings.get("lag_age_max_s"), p.trial.of_kind("calibrated")
    if limit_s is None or not (calibrated or _is_audit(p.trial)):
        return
    burst = calibrated[-1] if calibrated and not _is_audit(p.trial) else None
    spells = list(_spells(p, window_ns, int(min(limit_s, 10**6) * SECOND_NS), burst))
    for first, last in _runs(spells):
        told = {} if first.excused_by is None else {"excused_by": first.excused_by}
        found = p.found(first.wait.offset, last_offset=last.wait.offset, **told)
        yield None if first.undecided else found


def _runs(spells: list[Spell]) -> Iterator[tuple[Spell, Spell]]:
    """Yields the first and the last of those that go on."""
    run: list[Spell] = []
    for spell in spells:
        if run and not run[-1].goes_on(spell):
            yield run[0], run[-1]
            run = []
        run.append(spell)
    if run:
        yield run[0], run[-1]


def _spells(p: Partition, window_ns: int, limit_ns: int, burst: Event | None) -> Iterator[Spell]:
    """Yields, in the order of their offsets, the records that waited longer than claimed."""
    waits = sorted(_waits(p, burst), key=lambda wait: (wait.since_ns, wait.offset))
    each_ns = 0 if burst is None else _each_ns(p, waits, burst)
    overloaded = _too_fast(p, waits, each_ns)
    spans = explained_spans(p.trial, window_ns)
    rows = {offset: row for row, offset in enumerate(sorted(p.records))}
    ready_ns, all_ready_ns = _ready_ns(p, waits, spans, each_ns)
    spells = []
    for wait in waits:
        began_ns = counted_ns(spans, wait.since_ns)
        if wait.until_ns - TOLERANCE_NS - wait.since_ns <= limit_ns:
            continue
        own_ns, batch_ns = (limit_ns + 2 * (ready[wait.offset] - began_ns) for ready in (ready_ns, all_ready_ns))
        there_ns = min(wait.there_ns, wait.until_ns)
        seen_ns = counted_ns(spans, wait.until_ns) - began_ns
        certain_ns = counted_ns(spans, max(wait.least_ns, there_ns)) - counted_ns(spans, there_ns)
        excused = seen_ns - TOLERANCE_NS <= own_ns
        stalled_ns = stood_ns(p.trial, wait.since_ns, wait.until_ns)
        withheld_ns = stalled_ns + waited_ns(p, wait.since_ns, int(wait.until_ns))
        certain = certain_ns - TOLERANCE_NS > own_ns
        queued = excused and seen_ns - TOLERANCE_NS > limit_ns
        outpaced = queued and overloaded
        beyond_ns = (certain_ns if certain else seen_ns) - (limit_ns if queued else own_ns)
        why = None
        if (outpaced or not excused) and beyond_ns <= withheld_ns:
            why = "stood still" if beyond_ns <= stalled_ns else "no processor"
        elif outpaced:
            why = "too fast"
        elif not excused and not certain:
            why = "when"
        elif not excused and certain_ns - TOLERANCE_NS <= batch_ns:
            why = "in a batch"
        due_ns = min(wait.since_ns + limit_ns, wait.until_ns)
        by = excuse_in_words(p.trial, wait.since_ns, wait.until_ns, window_ns) if excused else None
        spells.append(Spell(wait, rows[wait.offset], _owner(p, due_ns), by, why))
    yield from sorted(spells, key=lambda spell: spell.row)


def too_fast(p: Partition, burst: Event) -> bool:
    """More came to the partition than the group was seen to do in the same time."""
    waits = sorted(_waits(p, burst), key=lambda wait: (wait.since_ns, wait.offset))
    return _too_fast(p, waits, _each_ns(p, waits, burst))


def _too_fast(p: Partition, waits: list[Wait], each_ns: int) -> bool:
    came_ns = max(waits[-1].since_ns - waits[0].since_ns, 1) if waits else 1
    offsets = _came(p)
    return len(waits) > 0 and sum(offsets[wait.offset] for wait in waits[1:]) * each_ns >= came_ns


def _each_ns(p: Partition, waits: list[Wait], burst: Event) -> int:
    """How long one took of the opening burst, or at the best pace since."""
    by_burst_ns = int(min(SECOND_NS / _rate(p, burst), 3600 * SECOND_NS))
    return min([by_burst_ns, *_took_ns(p, waits, burst.time_ns)])


def _took_ns(p: Partition, waits: list[Wait], begun_ns: int) -> Iterator[int]:
    """Yields, for each one that was done in the second half of the load, how long one took until then, on average."""
    offsets, done, load_ns = _came(p), 0, max((wait.since_ns for wait in waits), default=0) - begun_ns
    for wait in sorted((wait for wait in waits if wait.over), key=lambda wait: (wait.until_ns, wait.offset)):
        done += offsets[wait.offset]
        took_ns = int(wait.until_ns) - begun_ns
        if load_ns <= 2 * took_ns <= 2 * load_ns:
            yield took_ns // done


def _ready_ns(
    p: Partition, waits: list[Wait], spans: list[tuple[float, float]], each_ns: int
) -> tuple[dict[int, float], dict[int, float]]:
    """By offset, in counted time: when it would be done, were each done in its turn and all that came before it too;
    and, where several may be done at once, when the last of those that came while others waited would be."""
    ready_ns: dict[int, float] = {}
    periods: list[list[int]] = []
    free_ns, came = -FOREVER, _came(p)
    for wait in waits:
        began_ns = counted_ns(spans, wait.since_ns)
        if not periods or began_ns > free_ns:
            periods.append([])
        free_ns = max(began_ns, free_ns) + came[wait.offset] * each_ns
        ready_ns[wait.offset] = free_ns
        periods[-1].append(wait.offset)
    in_batches = p.trial.settings.get("handler") == "batch" or p.trial.progress_in_transactions
    if not in_batches and not _is_silent(p.trial):
        return ready_ns, ready_ns
    return ready_ns, {offset: max(ready_ns[one] for one in period) for period in periods for offset in period}


def _came(p: Partition) -> dict[int, int]:
    """How many offsets each record lies further than the one before it."""
    offsets = sorted(p.records)
    return dict.fromkeys(offsets[:1], 1) | {after: after - before for before, after in pairwise(offsets)}


def _is_silent(trial: Trial) -> bool:
    return trial.settings.get("events") == "none" and trial.settings.get("sink") in (None, "none")


def stood_ns(trial: Trial, since_ns: float, until_ns: float) -> float:
    """For how long the machine stood still in a stretch of time."""
    delays = [(e.time_ns, e.details["delay_ns"]) for e in trial.of_kind("scheduling_delay")]
    stood: float = sum(max(0, min(until_ns, at) - max(since_ns, at - delay)) for at, delay in delays)
    return stood


def _rate(p: Partition, calibrated: Event) -> float:
    """Records a second of this partition: by its share of the opening burst, or an even one where that is more."""
    burst = p.trial.burst_of(calibrated.details)
    rate = float(calibrated.details["rate"])
    if not burst:
        return rate
    return rate * share_of(p.tp, burst)


def _waits(p: Partition, burst: Event | None) -> Iterator[Wait]:
    """Yields every record that waited and was handled in the end, or still is to be."""
    snapshot_ns = FOREVER if p.trial.snapshot_ns is None else p.trial.snapshot_ns
    over = {offset: _over(p, offset) for offset in p.records}
    done = [offset for offset, (_, until_ns) in over.items() if until_ns <= snapshot_ns]
    passed = (p.final_committed or 0) if p.trial.progress_in_kafka else max((one + 1 for one in done), default=0)
    untold = p.trial.settings.get("stdout") == "buffered" and not p.trial.has_sink
    begun_ns = burst.time_ns if burst else 0
    for offset, (least_ns, until_ns) in over.items():
        record = p.records[offset]
        since_ns = max(begun_ns, p.trial.mono_ns(record.source_wall_ns, record.time_ns))
        is_over = until_ns <= snapshot_ns
        if (is_over or offset >= passed) and min(until_ns, snapshot_ns) > since_ns:
            still_ns = -FOREVER if untold else snapshot_ns - _told_late_ns(p.trial)
            seen_there_ns = max(begun_ns, there_ns(p, offset))
            seen_ns = least_ns if is_over else still_ns
            yield Wait(offset, since_ns, seen_there_ns, seen_ns, min(until_ns, snapshot_ns), is_over)


def there_ns(p: Partition, offset: int) -> float:
    """When the observer first saw the log end behind a record; its own time where nothing is said of the partition."""
    record, ends = p.records[offset], p.own("log_end")
    if _is_audit(p.trial) or not ends:
        return p.trial.mono_ns(record.source_wall_ns, record.time_ns)
    asked = [(end.offset or 0, float(end.details.get("asked_ns", end.time_ns))) for end in ends]
    return min((one for one in asked if one[0] > offset), default=(0, FOREVER))[1] + SECOND_NS


def _over(p: Partition, offset: int) -> tuple[float, float]:
    """When the wait of a record was over: at the earliest, and as it was seen; of the silent, in transactions, and in
    an audit, by the first commit."""
    if p.trial.progress_in_transactions or _is_silent(p.trial) or _is_audit(p.trial):
        past = [commit.effect_ns for commit in p.commits if (commit.value or 0) > offset]
        until_ns = past[0] if past else FOREVER
        return until_ns - _told_late_ns(p.trial), until_ns
    told = p.handlings.get(offset, [])
    if not told:
        return FOREVER, FOREVER
    first = min(told, key=lambda event: (event.time_ns, event.source))
    return -FOREVER if first.source in p.trial.untimed else p.first_written[offset], first.time_ns


def _told_late_ns(trial: Trial) -> float:
    """How long after its handling a commit may tell of a record."""
    if trial.progress_in_transactions or not (_is_silent(trial) or _is_audit(trial)):
        return 0.0
    return float(trial.settings.get("commit_interval_s", 1.0)) * SECOND_NS


def _is_audit(trial: Trial) -> bool:
    """Nobody was started here."""
    return not trial.of_kind("started")


def explained_spans(trial: Trial, window_ns: int) -> list[tuple[float, float]]:
    """From when to when faults explain that records wait: in order, apart."""
    spans: list[tuple[float, float]] = []
    for fault in _excusing(trial):
        end_ns = _end_ns(trial, fault, window_ns)
        if spans and _began_ns(trial, fault) <= spans[-1][1]:
            spans[-1] = (min(spans[-1][0], _began_ns(trial, fault)), max(spans[-1][1], end_ns))
        else:
            spans.append((_began_ns(trial, fault), end_ns))
    return spans


def _excusing(trial: Trial) -> list[Event]:
    """In their order; that others use the same brokers excuses nobody."""
    faults = [fault for fault in trial.of_kind("injected") if not does(fault, "loads-brokers")]
    return sorted(faults, key=lambda fault: _began_ns(trial, fault))


def _began_ns(trial: Trial, fault: Event) -> int:
    """When it began to be put in force."""
    number = fault.details.get("fault_no")
    began = [event.time_ns for event in trial.of_kind("injecting") if event.details.get("fault_no") == number]
    return began[-1] if began else fault.time_ns


def _end_ns(trial: Trial, fault: Event, window_ns: int) -> float:
    """Until it is lived down; longer where requests stay open, or nobody knows of partitions; then as long again."""
    end_ns = trial.lived_down_ns(fault, window_ns)
    if does(fault, "leaves-requests-open"):
        end_ns += (trial.settings.get("request_timeout_s") or 0.0) * SECOND_NS
    if does(fault, "changes-topic") and trial.partitions_come:
        end_ns += noticing_s(trial) * SECOND_NS
    return 2 * end_ns - _began_ns(trial, fault)


def noticing_s(trial: Trial) -> float:
    """How long until partitions that came are noticed; a pattern is resolved by the coordinator of KIP-848, within two
    heartbeats of 5 s and the ten seconds between two resolutions."""
    age_s = float(trial.settings.get("metadata_age_s", 300.0))
    topics_came = any(event.details.get("later") for event in trial.of_kind("topic_named"))
    by_coordinator = topics_came and trial.settings.get("protocol") == "consumer"
    return max(age_s, 20.0) if by_coordinator else age_s


def counted_ns(spans: list[tuple[float, float]], at_ns: float) -> float:
    return at_ns - sum(min(end_ns, at_ns) - begin_ns for begin_ns, end_ns in spans if begin_ns < at_ns)


def excuse_in_words(trial: Trial, since_ns: float, until_ns: float, window_ns: int) -> str:
    """The first fault that reached into a stretch of time; else it was the load."""
    for fault in _excusing(trial):
        if _began_ns(trial, fault) <= until_ns and since_ns <= _end_ns(trial, fault, window_ns):
            about = fault.details
            return f"fault {about['fault_no']} ({about['fault']} on {fault.member or about['target']})"
    return "what was sent at once"


def _owner(p: Partition, at_ns: float) -> str | None:
    """The member that had got the partition last, if it still had it."""
    before = [epoch for epoch in p.ownership_epochs if epoch.opened.time_ns <= at_ns]
    last = max(before, key=lambda epoch: epoch.opened.time_ns, default=None)
    return last.member if last is not None and last.open_at(at_ns) else None
