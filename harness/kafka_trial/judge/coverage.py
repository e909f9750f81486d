"""Coverage: how much there was to judge in each slice, through whom, and around which faults.

Nothing found means nothing where nothing was there; `verdict/unknown_reasons.py` makes sentences of what is missing. A
fault on somebody without any partition in hand hits nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kafka_trial.model.batch import Batch
from kafka_trial.model.clients import members_of
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.contradicted_lines import is_refuted
from kafka_trial.model.false_assignments import uncorroborated
from kafka_trial.model.handlers import effects_of_deleted, first_handlings
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import (
    NEVER,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    counts,
    exactly,
    first_of,
    joined,
    picked,
)
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.ownership_log import logged_assignments
from kafka_trial.model.rows import Kind, Outcome
from kafka_trial.model.table import FILE, Table, is_among, stacked, table
from kafka_trial.model.trial_context import Window

WORK = ("delivered", "processed", "committed", "moved", "never_begun", "unowned")
DELIVERED, PROCESSED, COMMITTED, PROGRESSED, NEVER_BEGUN, UNOWNED = range(len(WORK))


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
    totals["refused"] = counts(asked["slice"][asked["error_code"] != 0], size)  # by the brokers' request logs
    totals["keyed"] = counts(batch.records["slice"][batch.records["key"] >= 0], size)
    totals["repeated_keys"] = counts(_with_a_repeated_key(batch), size)
    said = batch.of(Kind.PROCESSED)
    done = (said.take(said["outcome"] == Outcome.DONE), batch.of(Kind.EFFECT), batch.of(Kind.HANDED_ON))
    totals["done"] = counts(np.concatenate([rows["slice"] for rows in done]), size)
    handled = counts(first_handlings(batch)["slice"], size)
    work = _work(batch)
    members = _member_coverage(batch, work)
    faults = _fault_coverage(batch, work)
    for number, name in enumerate(batch.slices.tolist()):
        body: dict[str, Any] = {key: int(values[number]) for key, values in totals.items()}
        body |= {"handled": int(handled[number]), "members": members.get(number, {})}
        body |= {name: values[:, number].tolist() for name, values in faults.items()}
        yield name, body


def _with_a_repeated_key(batch: Batch) -> Ints:
    """Returns the slice of each record whose key another record of the slice has too, or had before it was compacted
    away: that nobody knows."""
    keyed = batch.records["key"] >= 0
    slices = batch.records["slice"][keyed]
    _, which, many = np.unique(joined(slices, batch.records["key"][keyed]), return_inverse=True, return_counts=True)
    return slices[(many[which] > 1) | batch.is_compacted(slices)]


def _work(batch: Batch) -> Table:
    """Returns all work of known members: slice, member, time_ns, what (a place in WORK).

    A line that a witness refutes is no work. "moved" is what brokers see of somebody who says nothing: a commit above
    all before it, and records answered to a fetch; a position that is only committed again moves nothing.
    """
    own, incarnations, commits = member_lines(batch), batch.incarnations, commits_in_effect(batch)
    member_of = np.full(len(batch.trial_context.sources) + 1, -1, np.int64)
    member_of[incarnations["source"]] = incarnations["member"]
    own = own.take(np.isin(own["kind"], (Kind.DELIVERED, Kind.PROCESSED)))
    own = own.take(~is_refuted(batch, own))
    rising = commits.take(commits["committed_offset"] > np.maximum(commits["peak"], batch.log_starts[commits["slice"]]))
    asks = batch.of(Kind.FETCH_ASKED)
    asks = asks.take(asks["answered_bytes"] > 0)
    work = stacked(
        table(
            slice=own["slice"],
            member=member_of[own["source"]],
            time_ns=own["time_ns"],
            what=np.where(own["kind"] == Kind.DELIVERED, DELIVERED, PROCESSED),
        ),
        _done(commits["slice"], commits["committer"], commits["effect_ns"], COMMITTED),
        _done(rising["slice"], rising["committer"], rising["effect_ns"], PROGRESSED),
        _done(
            asks["slice"],
            members_of(batch, asks["lane"], otherwise=-1),
            batch.monotonic(asks["answered_wall_ns"], asks["time_ns"]),
            PROGRESSED,
        ),
    )
    never_begun = own.take(_is_never_begun(batch, own))
    never_begun = _done(never_begun["slice"], member_of[never_begun["source"]], never_begun["time_ns"], NEVER_BEGUN)
    unowned = own.take((own["ownership_epoch"] < 0) & ~own["revoked"])
    unowned = unowned.take(~is_among(unowned, uncorroborated(batch), *FILE))
    unowned = _done(unowned["slice"], member_of[unowned["source"]], unowned["time_ns"], UNOWNED)
    work = stacked(work, never_begun, unowned, *([_effects(batch)] if batch.trial_context.prints_no_work else []))
    return work.take(work["member"] >= 0)


def _is_never_begun(batch: Batch, lines: Table) -> Bools:
    """Whether a line ends what no line began: a completion in a file without any delivery (if the group reads several
    topics: without any of that partition), of a record that nobody had been given before. (Whoever finds its position
    in a table says that what lies before it is done: another did it.)"""
    given = batch.of(Kind.DELIVERED).sorted_by("slice", "offset", "time_ns")
    given = given.take(first_of(given["slice"], given["offset"]))
    begun = exactly(given["slice"], given["offset"], lines["slice"], lines["offset"])
    begins = np.zeros(len(batch.trial_context.sources), np.bool_)
    begins[batch.incarnations["source"]] = batch.incarnations["delivers"]
    tells_begins = begins[lines["source"]]
    if len(batch.trial_context.topics) > 1:  # each may have a listener of its own
        tells_begins &= is_among(lines, batch.of(Kind.DELIVERED), "source", "slice")
    never: Bools = picked(given["time_ns"], begun, NEVER) >= batch.written_ns(lines["source"], lines["time_ns"])
    return never & (lines["kind"] == Kind.PROCESSED) & ~tells_begins


def _done(slices: Ints, members: Ints, time_ns: Ints, what: int) -> Table:
    return table(slice=slices, member=members, time_ns=time_ns, what=np.full(len(slices), what))


def _effects(batch: Batch) -> Table:
    """Returns the effects of members that print nothing as their work: of the member that posted them, else of the one
    that had got the partition last. Effects of records that were deleted since are work all the same."""
    parts = batch.of(Kind.EFFECT), effects_of_deleted(batch)
    effects = stacked(*(rows.only("slice", "time_ns").having(member=rows["member"]) for rows in parts))
    held = ownership_epochs(batch).sorted_by("slice", "open_ns")
    row = at_or_before(held["slice"], held["open_ns"], effects["slice"], effects["time_ns"])
    member = np.where(effects["member"] >= 0, effects["member"], picked(held["member"], row, -1))
    return _done(effects["slice"], member, effects["time_ns"], PROCESSED)


def _member_coverage(batch: Batch, work: Table) -> Mapping[int, dict[str, list[int]]]:
    """Returns for each slice and member how much there was of each sort of WORK; then that in each fault's window."""
    names, windows, sorts = batch.trial_context.members, batch.trial_context.windows, len(WORK)
    found: dict[int, dict[str, list[int]]] = {}
    spans = [np.ones(len(work), np.bool_), *(_inside(work["time_ns"], window) for window in windows)]
    for part, inside in enumerate(spans):
        code = (work["slice"] * (len(names) + 1) + work["member"]) * sorts + work["what"]
        for value, count in zip(*(side.tolist() for side in np.unique(code[inside], return_counts=True)), strict=True):
            pair, what = divmod(value, sorts)
            number, member = divmod(pair, len(names) + 1)
            row = found.setdefault(number, {}).setdefault(names[member], [0] * (sorts + sorts * len(windows)))
            row[part * sorts + what] += count
    return found


def _fault_coverage(batch: Batch, work: Table) -> dict[str, Any]:
    """Returns the fields of `judgement.FaultCoverage`, arrays of shape (windows, slices).

    `held`: whether the fault's target had the partition in hand when it was hit; `after` and `moved_after`, where it
    had: the work of anybody from the injection on. `traffic_after_heal`: what brokers saw of the target from the
    healing on; what it printed then may have come out of a buffer.
    """
    windows, size = batch.trial_context.windows, batch.size
    names = {name: at for at, name in enumerate(batch.trial_context.members)}
    held, after, moved, traffic = (np.zeros((len(windows), size), np.int64) for _ in range(4))
    for at, window in enumerate(windows):
        held[at] = in_hand(batch, window, work)
        later = work.take(work["time_ns"] > window.injected_ns)
        told = np.isin(later["what"], (DELIVERED, PROCESSED))
        after[at] = np.where(held[at] > 0, counts(later["slice"][told], size), 0)
        moved[at] = np.where(held[at] > 0, counts(later["slice"][later["what"] == PROGRESSED], size), 0)
        own = work["member"] == names.get(window.member or "", -1)
        back = (own | (window.member is None)) & (work["time_ns"] > (window.healed_ns or NEVER))
        traffic[at] = counts(work["slice"][back & (work["what"] == PROGRESSED)], size)
    return {"held": held, "after": after, "moved_after": moved, "traffic_after_heal": traffic}


def _inside(times: Any, window: Window) -> Any:
    return (times >= window.injected_ns) & (times <= (window.healed_ns or times.max(initial=0)))


JUST_BEFORE_NS = 10_000_000_000  # without anybody's word on who has what, whoever worked there this shortly before


def in_hand(batch: Batch, window: Window, work: Table) -> Ints:
    """Returns 1 for each slice that the fault's target (no member in particular: anybody) had when it was hit, else 0.

    It had what it owned by its lines, or by the offsets log, at some instant between the beginning of the injection
    and its end; what a process owned that was started meanwhile does not count. Where nobody says of a partition who
    has it (manual assignment), work just before tells.
    """
    begun_ns = window.begun_ns
    wanted = np.array([window.member in (None, name) for name in batch.trial_context.members] + [False], np.bool_)
    by_lines, by_log = (owned(batch, window, begun_ns, wanted) for owned in (_owned_by_lines, _owned_by_log))
    told = (counts(ownership_epochs(batch)["slice"], batch.size) > 0) | (
        counts(logged_assignments(batch)["slice"], batch.size) > 0
    )
    before_ns = begun_ns - work["time_ns"]
    recent = wanted[work["member"]] & (work["time_ns"] <= window.injected_ns) & (before_ns <= JUST_BEFORE_NS)
    worked = counts(work["slice"][recent], batch.size) > 0
    return np.where(told, by_lines | by_log, worked).astype(np.int64)


def _owned_by_lines(batch: Batch, window: Window, begun_ns: int, wanted: Array) -> Bools:
    held = ownership_epochs(batch)
    before = picked(batch.incarnations["started_ns"], held["incarnation"], NEVER) <= begun_ns
    there = (held["open_ns"] <= window.injected_ns) & (at_latest(held["close_ns"]) >= begun_ns)
    owned: Bools = counts(held["slice"][wanted[held["member"]] & before & there], batch.size) > 0
    return owned


def _owned_by_log(batch: Batch, window: Window, begun_ns: int, wanted: Array) -> Bools:
    assignment_records = logged_assignments(batch)  # by (slice, log offset)
    following = at_or_after(
        assignment_records["slice"],
        assignment_records["log_offset"],
        assignment_records["slice"],
        np.minimum(assignment_records["until_log_offset"], NEVER - 1),
    )
    ended_ns = picked(assignment_records["time_ns"], following, NEVER)
    there = (assignment_records["time_ns"] <= window.injected_ns) & (at_latest(ended_ns) >= begun_ns)
    owned: Bools = counts(assignment_records["slice"][wanted[assignment_records["member"]] & there], batch.size) > 0
    return owned
