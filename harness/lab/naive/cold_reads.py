"""Cold reads, for the naive checker: one answer after the other, each by the first record that it held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.naive.head_of_line import waited_ns
from lab.naive.late_records import counted_ns, excuse_in_words, explained_spans, stood_ns, there_ns, too_fast
from lab.naive.responses import does, timed_fetches

if TYPE_CHECKING:
    from kafka_trial.history.event import Event
    from lab.naive.checker import Found, Partition, Trial

FOREVER = float("inf")
SECOND_NS = 1_000_000_000
TOLERANCE_NS = 500_000_000


@dataclass(frozen=True)
class ColdAnswer:
    """What a client was sent of a partition, and what is known of how cold it was."""

    tp: tuple[str, int]
    member: str
    client: str | None
    size_bytes: int
    at_ns: float
    excused_by: str | None
    unsure: str | None


def cold_read(trial: Trial, partitions: list[Partition], window_ns: int) -> Iterator[Found | None]:
    """More than is claimed was read of what had lain there for longer than the brokers keep it in memory."""
    limit, calibrated = trial.settings.get("reads_cold_bytes_max"), trial.of_kind("calibrated")
    if limit is None or not calibrated:
        return
    answers = [one for p in partitions for one in _cold(p, window_ns, calibrated[-1])]
    blamed = [one for one in answers if one.excused_by is None]
    sure = [one for one in blamed if one.unsure is None]
    if _bytes(sure) > limit:
        yield from _readers(sure)
    elif _bytes(blamed) > limit:
        yield from [None] * len({one.unsure for one in blamed if one.unsure})
    elif _at_a_stop(trial, blamed):
        yield None
    if _bytes(answers) > limit:
        yield from _readers([one for one in answers if one.excused_by is not None])


def _bytes(answers: list[ColdAnswer]) -> int:
    return sum(one.size_bytes for one in answers)


def _readers(answers: list[ColdAnswer]) -> Iterator[Found]:
    """Yields each client of a member, with what it was sent, and the fault that explains it."""
    sent: dict[tuple[str, str | None, str | None], int] = defaultdict(int)
    for one in answers:
        sent[one.member, one.client, one.excused_by] += one.size_bytes
    for (member, client, fault), size_bytes in sent.items():
        told = {"client": client, "excused_by": fault, "read_bytes": size_bytes}
        yield None, None, member, tuple(sorted((name, value) for name, value in told.items() if value is not None))


def _at_a_stop(trial: Trial, answers: list[ColdAnswer]) -> bool:
    """A broker was stopped, or a second later, while a client read what is cold, alike before and after."""
    alike: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for one in answers:
        alike[one.tp, one.member, one.client, one.unsure].append(one.at_ns)
    stops = [fault.time_ns for fault in trial.of_kind("injected") if does(fault, "stops-broker")]
    return any(min(at) <= stop and max(at) >= stop - SECOND_NS for at in alike.values() for stop in stops)


def _cold(p: Partition, window_ns: int, burst: Event) -> Iterator[ColdAnswer]:
    """Yields what was sent until the snapshot and was cold, or may have been."""
    settings, spans = p.trial.settings, explained_spans(p.trial, window_ns)
    cold_s = float(settings.get("cold_after_s", 30.0)) + float(settings.get("commit_interval_s", 1.0))
    limit_ns, overloaded = int(cold_s * SECOND_NS), too_fast(p, burst)
    for request, entry, begun_ns, since_ns, held_ns, held in _answers(p, burst):
        if begun_ns + TOLERANCE_NS - since_ns <= limit_ns:
            continue
        from_ns = min(held_ns, begun_ns)
        age_ns = counted_ns(spans, begun_ns) - TOLERANCE_NS - counted_ns(spans, from_ns)
        stalled_ns = stood_ns(p.trial, from_ns, begun_ns)
        unsure = None
        if age_ns <= limit_ns:
            unsure = "when"
        elif _passed_ns(p, held) + TOLERANCE_NS < begun_ns:
            pass  # what is committed past nobody is late with
        elif overloaded:
            unsure = "too fast"
        elif age_ns - stalled_ns <= limit_ns:
            unsure = "stood still"
        elif age_ns - stalled_ns - waited_ns(p, int(from_ns), int(begun_ns)) <= limit_ns:
            unsure = "no processor"
        excused = counted_ns(spans, begun_ns) + TOLERANCE_NS - counted_ns(spans, since_ns) <= limit_ns
        why = excuse_in_words(p.trial, since_ns, begun_ns, window_ns) if excused else None
        named = request.details.get("connection") is not None
        client = request.details.get("client_id") if named else None
        member = p.trial.lane_member(request) or ""
        yield ColdAnswer(p.tp, member, client, entry["size_bytes"], begun_ns, why, unsure)


def _answers(p: Partition, burst: Event) -> Iterator[tuple[Event, Mapping[str, Any], float, float, float, int]]:
    """Yields request, entry, when it was begun, since when its first record counts, by when it was there, and which it
    is."""
    snapshot_ns = FOREVER if p.trial.snapshot_ns is None else p.trial.snapshot_ns
    for request, entry, begun_ns, answered_ns in timed_fetches(p.trial, p.tp):
        held = [offset for offset in sorted(p.records) if offset >= entry["offset"]]
        got = entry.get("size_bytes", 0) > 0 and not entry.get("error") and answered_ns <= snapshot_ns
        if got and held and p.trial.lane_member(request) is not None:
            since_ns = p.trial.mono_ns(p.records[held[0]].source_wall_ns, p.records[held[0]].time_ns)
            in_log_by_ns = max(there_ns(p, held[0]), burst.time_ns)
            yield request, entry, begun_ns, max(since_ns, burst.time_ns), in_log_by_ns, held[0]


def _passed_ns(p: Partition, offset: int) -> float:
    """When a record was first committed past."""
    return min((commit.effect_ns for commit in p.commits if (commit.value or 0) > offset), default=FOREVER)
