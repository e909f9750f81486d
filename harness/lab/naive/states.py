"""What the rows of a table show in the end, for the naive checker: the state of an older record than one before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka_trial.history.event import Event

if TYPE_CHECKING:
    from lab.naive.checker import Found, Partition, Trial

OF_ROWS = ("effect", "row_rewritten", "row_removed")


def stale_state(p: Partition) -> Iterator[Found | None]:
    """Every row that ended with another record than the newest it had shown, where that one is of this partition."""
    for changes in _by_row(p.trial).values():
        ended = changes[-1]
        newer = [shown for shown in changes if _is_newer(p.trial, shown, ended)]
        if ended.kind == "row_removed" or not newer:
            continue
        newest = max(newer, key=lambda shown: (_age(p.trial, shown), shown.seq))
        record = _record(p.trial, newest)
        if (record.topic, record.partition) == p.tp:
            may_come_again = p.trial.progress_in_kafka and (record.offset or 0) >= (p.final_committed or 0)
            yield None if may_come_again else p.found(record.offset, same_key=record.key is not None)


def _by_row(trial: Trial) -> dict[tuple[str, int], list[Event]]:
    rows: dict[tuple[str, int], list[Event]] = {}
    for change in sorted(trial.of_kind(*OF_ROWS), key=lambda event: event.seq):
        if "row" in change.details:
            rows.setdefault((change.source, change.details["row"]), []).append(change)
    return rows


def _record(trial: Trial, change: Event) -> Event:
    return trial.reads_of(change.id)[0]


def _age(trial: Trial, change: Event) -> tuple[int, int]:
    record = _record(trial, change)
    return -1 if record.source_wall_ns is None else record.source_wall_ns, record.offset or 0


def _is_newer(trial: Trial, shown: Event, ended: Event) -> bool:
    """Of the same key or entity, and later in the partition, or sent later by every word there is."""
    both = [trial.reads_of(change.id) for change in (shown, ended)]
    if any(len(records) != 1 for records in both):
        return False
    (new,), (old,) = both
    subject = _subject(trial, new)
    if subject is None or subject != _subject(trial, old):
        return False
    if (new.topic, new.partition) == (old.topic, old.partition):
        return (new.offset or 0) > (old.offset or 0)
    sent = [trial.invoked.get(record.id or "") for record in (new, old)]
    times = [record.source_wall_ns for record in (new, old)]
    if None in sent or None in times:
        return False
    return bool(times[0] > times[1] and sent[0].seq > sent[1].seq)  # type: ignore[operator, union-attr]


def _subject(trial: Trial, record: Event) -> tuple[str, Any] | None:
    send = trial.invoked.get(record.id or "")
    entity = None if send is None else send.details.get("entity")
    if record.key is not None:
        return "key", record.key
    return None if entity is None else ("entity", entity)
