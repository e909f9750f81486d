"""Case 1 in figures: what the formula predicts of a trial, and what its history says.

Predicted is what `kafka-trial preflight --blocking-timeout` computes (`preflight/answer.py`). Measured is how fast the
hot partition was worked off while it had a backlog: by the records handled, and by the brokers' offsets log.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.event import Event
from kafka_trial.history.store import HistoryTail, RunFolder
from kafka_trial.preflight.answer import drain
from kafka_trial.preflight.plan import make_plans

HOT_RECORDS_MIN: Final = 100  # of a key, to be called hot
FETCHES_MIN: Final = 3  # fewer are no rate
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True)
class Knobs:
    """What the formula needs: how many records a fetch holds, how long an empty partition is waited for, how many empty
    ones the hot partition's member has, how long a record takes, and how many more arrive."""

    records_per_fetch: int
    timeout_s: float
    empty_partitions: int
    service_s: float
    arrivals_per_s: float = 0.0


@dataclass(frozen=True)
class Figures:
    """What was measured of the hot partition.

    `rate_per_s`: records handled a second, over so many whole `fetches` before each of which the log held a whole fetch
    more; None where there were too few. `committed_per_s`: the same of committed offsets, in the same time. `drain_s`:
    from when the burst began until nothing that had been sent was undone; None where that was never. `waited_s`:
    for each hot key, the median time from when its record was acknowledged until it was handled. `empty_partitions`:
    how many others its member was assigned while the rate was counted; None where that changed meanwhile.
    """

    rate_per_s: float | None = None
    fetches: int = 0
    committed_per_s: float | None = None
    drain_s: float | None = None
    waited_s: Mapping[str, float] = field(default_factory=dict)
    empty_partitions: int | None = None
    handled: int = 0


def predicted_rate_per_s(knobs: Knobs) -> float:
    """Returns records per fetch ÷ (empty partitions × timeout + records per fetch × service time)."""
    backlog = 1_000_000
    return backlog / _preflight_s(knobs, backlog, arrivals_per_s=0.0)


def predicted_drain_s(knobs: Knobs, backlog: int) -> float:
    """Returns how long a backlog takes while records arrive: backlog ÷ (rate - arrivals)."""
    return _preflight_s(knobs, backlog, arrivals_per_s=knobs.arrivals_per_s)


def _preflight_s(knobs: Knobs, backlog: int, *, arrivals_per_s: float) -> float:
    (plan,) = make_plans(
        {
            "record_max": "800kB",
            "partitions_per_consumer": knobs.empty_partitions + 1,
            "backlog": backlog,
            "blocking_timeout": f"{knobs.timeout_s}s",
            "service_time": f"{knobs.service_s}s",
            "records_per_fetch": knobs.records_per_fetch,
            "empty_partitions": knobs.empty_partitions,
            "arrivals_per_s": arrivals_per_s,
        }
    )
    found = drain(plan)
    if found is None or found.drain_s is None:
        raise ValueError(f"{knobs} has no drain: {found}")
    return found.drain_s


def figures_of(folder: RunFolder, records_per_fetch: int) -> Figures:
    """Returns the figures of a run.

    Raises:
        UnjudgeableError: its history cannot be read, or holds no record.
    """
    sent = list(HistoryTail(folder.history, "workload.jsonl").new_events())
    records = {(one.partition, one.offset): one for one in sent if one.kind == "send" and one.outcome == "ok"}
    if not records:
        raise UnjudgeableError(f"{folder.path}: no record was acknowledged")
    ((hot, _),) = Counter(partition for partition, _ in records).most_common(1)
    written = {offset: one for (partition, offset), one in records.items() if partition == hot and offset is not None}
    told = list(HistoryTail(folder.history, "consumer-*.jsonl").new_events())
    begun, ended = (_first(told, hot, kind) for kind in ("delivered", "processed"))
    burst_ns = [one.time_ns for one in sent if one.kind == "load" and one.details.get("name") == "burst"]
    offsets = _whole_fetches(written, begun, records_per_fetch)
    commits = _commits(HistoryTail(folder.history, "offsets.jsonl").new_events(), hot)
    return Figures(
        rate_per_s=_rate(offsets, begun),
        fetches=max(0, len(offsets) - 1) // records_per_fetch,
        committed_per_s=_committed_rate(commits, begun[offsets[0]], begun[offsets[-1]]) if offsets else None,
        drain_s=_drain_s(_sent_ns(sent, written), ended, burst_ns),
        waited_s=_waited_s(written, ended),
        empty_partitions=_beside(told, hot, [begun[offset] for offset in offsets or begun]),
        handled=len(ended),
    )


def _first(events: Iterable[Event], partition: int | None, kind: str) -> dict[int, int]:
    """Returns when each record of a partition was first handed out, or done."""
    found: dict[int, int] = {}
    for event in events:
        if event.kind == kind and event.partition == partition and event.offset is not None:
            found[event.offset] = min(event.time_ns, found.get(event.offset, event.time_ns))
    return found


def _whole_fetches(written: Mapping[int, Event], begun: Mapping[int, int], size: int) -> list[int]:
    """Returns the longest row of offsets from each of which on the log held a whole fetch when the record before was
    handed out: a multiple of a fetch and one more, so from one place in a fetch to the same place in another."""
    best: list[int] = []
    row: list[int] = []
    for offset in sorted(begun):
        last, before_ns = written.get(offset + size - 1), begun.get(offset - 1)
        if last is None or before_ns is None or last.time_ns > before_ns:
            row = []
            continue
        row = [*row, offset] if row and row[-1] == offset - 1 else [offset]
        best = max(best, row, key=len)
    whole = (len(best) - 1) // size
    return best[: whole * size + 1] if whole >= FETCHES_MIN else []


def _rate(offsets: Sequence[int], begun: Mapping[int, int]) -> float | None:
    if not offsets:
        return None
    return (len(offsets) - 1) * SECOND_NS / (begun[offsets[-1]] - begun[offsets[0]])


def _commits(events: Iterable[Event], partition: int | None) -> list[tuple[int, int]]:
    """Returns when the coordinator wrote each commit of a partition, on the harness's clock, and its offset."""
    return [
        (event.time_ns, event.committed_offset)
        for event in events
        if event.kind == "committed" and event.partition == partition and event.committed_offset is not None
    ]


def _committed_rate(commits: Sequence[tuple[int, int]], since_ns: int, until_ns: int) -> float | None:
    inside = [one for one in commits if since_ns <= one[0] <= until_ns]
    if len(inside) < FETCHES_MIN:
        return None
    (first_ns, first), (last_ns, last) = inside[0], inside[-1]
    return (last - first) * SECOND_NS / (last_ns - first_ns)


def _sent_ns(sent: Iterable[Event], written: Mapping[int, Event]) -> list[int]:
    """Returns when each record that was written was handed to the producer."""
    asked_ns = {one.id: one.time_ns for one in sent if one.kind == "send" and one.outcome == "invoke"}
    return [asked_ns[one.id] for one in written.values()]


def _drain_s(sent_ns: Sequence[int], ended: Mapping[int, int], burst_ns: Sequence[int]) -> float | None:
    """Returns how long it took from the beginning of the burst until, after its end, the lag was 0."""
    if not burst_ns:
        return None
    steps = [(at_ns, 1) for at_ns in sent_ns] + [(at_ns, -1) for at_ns in ended.values()]
    began_ns, sent_all_ns, lag = min(burst_ns), max(burst_ns), 0
    for at_ns, step in sorted(steps):
        lag += step
        if at_ns > sent_all_ns and step < 0 and lag <= 0:
            return (at_ns - began_ns) / SECOND_NS
    return None


def _waited_s(written: Mapping[int, Event], ended: Mapping[int, int]) -> dict[str, float]:
    waits = defaultdict[str, list[int]](list)
    for offset, at_ns in ended.items():
        if offset in written:
            waits[str(written[offset].key)].append(at_ns - written[offset].time_ns)
    return {key: round(median(own) / SECOND_NS, 3) for key, own in sorted(waits.items()) if len(own) >= HOT_RECORDS_MIN}


def _beside(events: Iterable[Event], hot: int | None, begun_ns: Sequence[int]) -> int | None:
    """Returns how many other partitions were assigned to whoever had the hot one, from its first record to its last;
    whoever stays longest is given more when a trial ends."""
    if not begun_ns:
        return None
    given = []
    for event in events:
        places = [entry["partition"] for entry in event.details.get("entries", ())] if event.kind == "assigned" else []
        if hot in places:
            given.append((event.time_ns, len(places) - 1))
    before = [one for one in given if one[0] <= min(begun_ns)]
    meanwhile = {others for time_ns, others in given if min(begun_ns) < time_ns <= max(begun_ns)}
    others = max(before, default=(0, None))[1]
    return others if meanwhile <= {others} else None
