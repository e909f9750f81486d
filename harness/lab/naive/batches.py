"""Batches of a handler that takes several records at once, for the naive checker: which were tried once more."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from lab.naive import assignments as naive_assignments

if TYPE_CHECKING:
    from kafka_trial.history.event import Event
    from lab.naive.checker import Partition, Work

GIVEN_UP = ("discarded", "dead-lettered")


def _tried(p: Partition, work: Work) -> list[tuple[int, list[Work]]]:
    """Each attempt at a batch of its ownership epoch that had begun by then, and with which line the last one began
    that was one more, if it was that, or goes on with it up to the end of the batch that did not end well; else -1."""
    if p.trial.settings.get("handler") != "batch":
        return []
    lines = sorted(p.deliveries + p.completions + p.failures, key=lambda one: one.event.seq)
    attempts = _attempts(
        [one for one in lines if one.ownership_epoch == work.ownership_epoch and _same_file(one, work)]
    )
    found: list[tuple[int, list[Work]]] = []
    failed_to = -1.0
    for number, attempt in enumerate(attempts):
        if attempt[0].event.seq > work.event.seq:
            break
        begun = -1
        if number > 0 and _is_one_more(p, attempts, number):
            begun, failed_to = attempt[0].event.seq, _end_of(attempts[number - 1])
        elif number > 0 and _goes_on(p, attempts[number - 1], attempt) and attempt[0].offset <= failed_to:
            begun = found[-1][0]
        found.append((begun, attempt))
    return found


def _end_of(attempt: list[Work]) -> float:
    given = [one.offset for one in attempt if one.event.kind == "delivered"]
    return max(given) if attempt[0].event.kind == "delivered" else float("inf")


def is_of_a_replay(p: Partition, work: Work) -> bool:
    """Its batch was tried once more, or that went on behind where the attempt began; but at most once takes nothing in
    hand again that was done."""
    if p.trial.settings.get("delivery") == "at-most-once":
        return False
    for begun, attempt in _tried(p, work)[-1:]:
        return begun >= 0 and (attempt[0].event.seq == begun or work.offset >= attempt[0].offset)
    return False


def since_replay(p: Partition, work: Work) -> int:
    """The line with which the last batch before it began that was tried once more; -1: none."""
    return max((begun for begun, _ in _tried(p, work)), default=-1)


def _attempts(lines: list[Work]) -> list[list[Work]]:
    """Each with its lines: from its first delivery on, or from where a batch that had been tried begins to be given
    up."""
    found: list[list[Work]] = []
    for one in lines:
        handed_out = one.event.kind == "delivered" and not (found and found[-1][-1].event.kind == "delivered")
        if handed_out or (found and _begins_to_give_up(found[-1], one)):
            found.append([])
        if found:
            found[-1].append(one)
    whole: list[list[Work]] = []
    for number, attempt in enumerate(found):
        if attempt[0].event.kind == "delivered" or _gives_all_up(found, number):
            whole.append(attempt)
        else:
            whole[-1] = [*whole[-1], *attempt]
    return whole


def _gives_all_up(attempts: list[list[Work]], number: int) -> bool:
    """It gives up all of the batch before it, unless it is cut off, and does nothing else."""
    before, attempt = attempts[number - 1], attempts[number]
    whole = {one.offset for one in before if one.event.kind == "delivered"} <= {one.offset for one in attempt}
    return all(map(_gives_up, attempt)) and (whole or number == len(attempts) - 1)


def _begins_to_give_up(attempt: list[Work], one: Work) -> bool:
    """It gives up the first record that was handed out, whose end had been told, and is the first to do so."""
    before = [line for number, line in enumerate(attempt) if _ends_again(attempt[:number], line)]
    return (
        attempt[0].event.kind == "delivered"
        and one.offset == attempt[0].offset
        and (_ends_again(attempt, one) and not any(_gives_up(line) for line in before) and _gives_up(one))
    )


def _ends_again(before: list[Work], one: Work) -> bool:
    """The line before it that tells of its record was no delivery."""
    alike = [line for line in before if line.offset == one.offset]
    return one.event.kind == "processed" and bool(alike) and alike[-1].event.kind == "processed"


def _gives_up(one: Work) -> bool:
    return one.event.kind == "processed" and one.event.outcome in GIVEN_UP


def _is_one_more(p: Partition, attempts: list[list[Work]], number: int) -> bool:
    before, attempt = attempts[number - 1], attempts[number]
    if not _went_ill(before) and not _failed_elsewhere(p, before, attempt[0]):
        return False
    return attempt[0].event.kind != "delivered" or _comes_again(p, before, attempt)


def _same_file(one: Work, other: Work) -> bool:
    return one.event.source == other.event.source


def _went_ill(batch: list[Work]) -> bool:
    """An attempt in it failed, or a record of it has no end."""
    ended = {one.offset for one in batch if one.event.kind == "processed" and one.event.outcome != "failed"}
    failed = any(one.event.outcome == "failed" for one in batch if one.event.kind == "processed")
    return failed or len(ended) < len({one.offset for one in batch if one.event.kind == "delivered"})


def _failed_elsewhere(p: Partition, before: list[Work], now: Work) -> bool:
    """By then a record had failed that was handed out at once with some of a batch, and some of several partitions
    were."""
    lines = [e for e in p.trial.of_kind("delivered", "processed") if e.source == now.event.source]
    lines = sorted((e for e in lines if e.offset is not None), key=lambda e: e.seq)
    at_once: list[list[Event]] = []
    for number, line in enumerate(lines):
        if line.kind == "delivered":
            if number == 0 or lines[number - 1].kind != "delivered":
                at_once.append([])
            at_once[-1].append(line)
    delivered = {one.event.seq for one in before if one.event.kind == "delivered"}
    for given in at_once:
        several = len({(e.topic, e.partition) for e in given}) > 1
        ours = [e for e in given if not _is_of_another(p, e)]
        if several and any(e.seq in delivered for e in given) and _failed_seq(lines, ours) < now.event.seq:
            return True
    return False


def _is_of_another(p: Partition, delivery: Event) -> bool:
    """Its partition was only ever given to one client of the process, and this one to another one alone."""
    if delivery.source not in p.trial.nameless:
        return False
    its_own = type(p)(p.trial, (str(delivery.topic), int(delivery.partition or 0)))
    here, there = (naive_assignments.the_only_client(one, delivery.source) for one in (p, its_own))
    return bool(here and there) and here != there


def _failed_seq(lines: list[Event], given: list[Event]) -> float:
    found = []
    for delivery in given:
        alike = [e for e in lines if _record(e) == _record(delivery) and e.seq > delivery.seq]
        ends = list(takewhile(lambda e: e.kind == "processed", alike))
        found += [e.seq for e in ends if e.outcome == "failed"]
    return min(found, default=float("inf"))


def _record(line: Event) -> tuple[str | None, int | None, int | None]:
    return line.topic, line.partition, line.offset


def _goes_on(p: Partition, before: list[Work], batch: list[Work]) -> bool:
    """It begins behind all of the batch before, with what was not committed past."""
    given = [one.offset for one in before if one.event.kind == "delivered"]
    if batch[0].event.kind != "delivered" or not given or batch[0].offset <= max(given):
        return False
    return any(batch[0].offset >= position for position in _committed(p, batch[0]))


def _committed(p: Partition, work: Work) -> list[int]:
    """The position that was committed when it was said, and when it may have been said at the earliest."""
    found = []
    for at_ns in (p.trial.earliest_ns(work.event.time_ns), work.event.time_ns):
        stood = max((c for c in p.commits if c.effect_ns <= at_ns), key=lambda c: c.effect_ns, default=None)
        found.append(p.log_start if stood is None or stood.value is None else stood.value)
    return found


def _comes_again(p: Partition, before: list[Work], batch: list[Work]) -> bool:
    """It begins with the first record that was not committed past by then, or again with that of the batch before."""
    first = batch[0]
    for committed in _committed(p, first):
        following = min((offset for offset in p.records if offset >= committed), default=None)
        if first.offset == following or (first.offset == before[0].offset and first.offset >= committed):
            return True
    return False
