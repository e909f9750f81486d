"""Coverage: how much there was to judge in each slice, through whom, and around which faults.

Nothing found means nothing where nothing was there; the hearing makes sentences of what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kafka_trial.invariants.batch import Batch
from kafka_trial.invariants.circumstances import Window
from kafka_trial.invariants.kernels import at_or_before, counts, picked
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, stacked, table

IN_HAND_NS = 10_000_000_000  # whoever worked in a partition this shortly before a fault had it in hand


def coverage(batch: Batch) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields for each slice how much there was to judge, through whom, and around which faults."""
    size = batch.size
    totals = {
        name: counts(batch.of(*kinds)["slice"], size)
        for name, kinds in {
            "records": (Kind.RECORD,),
            "delivered": (Kind.DELIVERED,),
            "processed": (Kind.PROCESSED,),
            "effects": (Kind.EFFECT,),
            "committed": (Kind.COMMITTED,),
        }.items()
    }
    asked = batch.of(Kind.COMMIT_REQUEST)
    totals["refused"] = counts(asked["slice"][asked["flag"] != 0], size)  # by the brokers' request logs
    handled = counts(batch.handled["slice"], size)
    work = _work(batch)
    members = _through_members(batch, work)
    held, after = _around_windows(batch, work)
    for number, name in enumerate(batch.slices.tolist()):
        body: dict[str, Any] = {key: int(values[number]) for key, values in totals.items()}
        body |= {"handled": int(handled[number]), "members": members.get(number, {})}
        body |= {"held": held[:, number].tolist(), "after": after[:, number].tolist()}
        yield name, body


def _work(batch: Batch) -> Table:
    """Returns all work of known members: slice, member, time_ns, what (0 delivery, 1 completion, 2 commit)."""
    own, life, commits = batch.own, batch.lives, batch.commits
    member_of = np.full(len(batch.circumstances.sources) + 1, -1, np.int64)
    member_of[life["source"]] = life["member"]
    own = own.take(np.isin(own["kind"], (Kind.DELIVERED, Kind.PROCESSED)))
    work = stacked(
        table(
            slice=own["slice"],
            member=member_of[own["source"]],
            time_ns=own["time_ns"],
            what=np.where(own["kind"] == Kind.DELIVERED, 0, 1),
        ),
        table(
            slice=commits["slice"],
            member=commits["committer"],
            time_ns=commits["effect_ns"],
            what=np.full(len(commits), 2),
        ),
    )
    work = stacked(work, _effects(batch)) if batch.circumstances.prints_no_work else work
    return work.take(work["member"] >= 0)


def _effects(batch: Batch) -> Table:
    """Returns the effects of members that print nothing as their work: of whoever had got the partition last."""
    effects = batch.of(Kind.EFFECT)
    held = batch.possessions.sorted_by("slice", "open_ns")
    row = at_or_before(held["slice"], held["open_ns"], effects["slice"], effects["time_ns"])
    return table(
        slice=effects["slice"],
        member=picked(held["member"], row, -1),
        time_ns=effects["time_ns"],
        what=np.full(len(effects), 1),
    )


def _through_members(batch: Batch, work: Table) -> Mapping[int, dict[str, list[int]]]:
    """Returns for each slice and member: deliveries, completions, commits; then those in each fault's window."""
    names, windows = batch.circumstances.members, batch.circumstances.windows
    found: dict[int, dict[str, list[int]]] = {}
    spans = [np.ones(len(work), np.bool_), *(_inside(work["time_ns"], window) for window in windows)]
    for part, inside in enumerate(spans):
        code = (work["slice"] * (len(names) + 1) + work["member"]) * 3 + work["what"]
        for value, count in zip(*(side.tolist() for side in np.unique(code[inside], return_counts=True)), strict=True):
            pair, what = divmod(value, 3)
            number, member = divmod(pair, len(names) + 1)
            row = found.setdefault(number, {}).setdefault(names[member], [0] * (3 + 3 * len(windows)))
            row[part * 3 + what] += count
    return found


def _around_windows(batch: Batch, work: Table) -> tuple[Any, Any]:
    """Returns two arrays of shape (windows, slices): how much work a fault found its target at, and what came after.

    The first counts the target's work in a slice shortly before the injection: it had the partition in hand. The second
    counts, where it had, the work of anybody from the injection on: what the fault could have harmed.
    """
    windows, size = batch.circumstances.windows, batch.size
    held, after = np.zeros((len(windows), size), np.int64), np.zeros((len(windows), size), np.int64)
    for at, window in enumerate(windows):
        since_ns = work["time_ns"] - window.injected_ns
        of_target = np.array([name == window.member for name in batch.circumstances.members] + [False], np.bool_)
        hit = of_target[work["member"]] if window.member is not None else np.ones(len(work), np.bool_)
        held[at] = counts(work["slice"][hit & (since_ns <= 0) & (since_ns >= -IN_HAND_NS)], size)
        after[at] = np.where(held[at] > 0, counts(work["slice"][since_ns > 0], size), 0)
    return held, after


def _inside(times: Any, window: Window) -> Any:
    return (times >= window.injected_ns) & (times <= (window.healed_ns or times.max(initial=0)))
