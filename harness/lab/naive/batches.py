"""Batches of a handler that takes several records at once, for the naive checker: which were handed out once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.naive import attempts as naive_attempts

if TYPE_CHECKING:
    from lab.naive.checker import Partition, Work


def replays(p: Partition, work: Work) -> list[int]:
    """Of each batch of its ownership epoch that had begun by then: with which line, where it came again; else -1."""
    if p.trial.settings.get("handler") != "batch":
        return []
    lines = sorted(p.deliveries + p.completions + p.failures, key=lambda one: one.event.seq)
    batches: list[list[Work]] = []
    for one in [one for one in lines if one.ownership_epoch == work.ownership_epoch and _same_file(one, work)]:
        if one.event.kind == "delivered" and not (batches and batches[-1][-1].event.kind == "delivered"):
            batches.append([])
        if batches:
            batches[-1].append(one)
    found = []
    for number, batch in enumerate(batches):
        if batch[0].event.seq > work.event.seq:
            break
        ill = number > 0 and (_went_ill(batches[number - 1]) or naive_attempts.failed_in(p, batches[number - 1][0]))
        again = ill and _comes_again(p, batches[number - 1], batch)
        found.append(batch[0].event.seq if again else -1)
    return found


def is_of_a_replay(p: Partition, work: Work) -> bool:
    """Its batch was handed out once more; but at most once takes nothing in hand again that was done."""
    return p.trial.settings.get("delivery") != "at-most-once" and max(replays(p, work)[-1:], default=-1) >= 0


def since_replay(p: Partition, work: Work) -> int:
    """The line with which the last batch before it began that was handed out once more; -1: none."""
    return max(replays(p, work), default=-1)


def _same_file(one: Work, other: Work) -> bool:
    return one.event.source == other.event.source


def _went_ill(batch: list[Work]) -> bool:
    """An attempt in it failed, or a record of it has no end."""
    ended = {one.offset for one in batch if one.event.kind == "processed" and one.event.outcome != "failed"}
    failed = any(one.event.outcome == "failed" for one in batch if one.event.kind == "processed")
    return failed or len(ended) < len({one.offset for one in batch if one.event.kind == "delivered"})


def _comes_again(p: Partition, before: list[Work], batch: list[Work]) -> bool:
    """It begins with the first record that was not committed past by then, or again with that of the batch before."""
    first = batch[0]
    for at_ns in (p.trial.earliest_ns(first.event.time_ns), first.event.time_ns):
        stood = max((c for c in p.commits if c.effect_ns <= at_ns), key=lambda c: c.effect_ns, default=None)
        committed = p.log_start if stood is None or stood.value is None else stood.value
        following = min((offset for offset in p.records if offset >= committed), default=None)
        if first.offset == following or (first.offset == before[0].offset and first.offset >= committed):
            return True
    return False
