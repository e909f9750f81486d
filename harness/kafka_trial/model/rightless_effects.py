"""Effects are handlings too: what a member did to the world with a record that it had no right to any more.

Only the first effect that a member has with a record counts: a further one may be a retry, because the answer to the
first was lost. Effects at the HTTP sink name their member; whose others are nobody knows for certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.client_attribution import alone
from kafka_trial.model.clients import file_of
from kafka_trial.model.fencing import fetches_by_member, surely_read_ns, told_away_ns
from kafka_trial.model.instants import at_earliest, at_earliest_in_logs
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_before,
    between,
    in_ranges,
    joined,
    last_true,
    number_in,
    ordered,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.model.ownership_epochs import member_lines
from kafka_trial.model.ownership_log import last_given, logged_assignments, others_hold
from kafka_trial.model.request_logs import complete_until_ns
from kafka_trial.model.rows import CALLBACKS, Kind
from kafka_trial.model.sink_effects import effects_in_order
from kafka_trial.model.table import Table, is_among, table
from kafka_trial.model.trial_context import TOLERANCE_NS

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


def effects_without_right(batch: Batch) -> Table:
    """Returns the first effects of members with records that they fetched after brokers had told them that they do not
    have the partition, or without ever having been given it, while others had it; rows of `effects_in_order`."""
    effects = _first_of_members(batch)
    told_ns = told_away_ns(batch, effects["slice"], effects["member"], effects["time_ns"])
    beside = (told_ns < effects["time_ns"]) & others_hold(
        batch, effects["slice"], effects["member"], effects["time_ns"]
    )
    effects, told_ns = effects.take(beside), told_ns[beside]
    since_ns = np.where(told_ns == NONE, NONE + 1, surely_read_ns(batch, told_ns, stalls=True))
    return effects.take(_fetched_itself(batch, effects, since_ns))


def _fetched_itself(batch: Batch, effects: Table, since_ns: Ints) -> Bools:
    """Returns whether each effect's record was fetched by its member since that time, while others had the partition,
    and cannot have been before: the member had not come so far."""
    asked = fetches_by_member(batch)
    both = joined(*(np.concatenate([asked[name], effects[name]]) for name in ("slice", "member")))
    order = ordered(both[: len(asked)], asked["begun_ns"])
    asked, group = asked.take(order), both[: len(asked)][order]
    which, row = in_ranges(
        *between(group, asked["begun_ns"], both[len(asked) :], np.zeros(len(effects), np.int64), effects["time_ns"])
    )
    fetch, late = asked.take(row), asked["issued_ns"][row] > since_ns[which]
    late_here = late & others_hold(batch, fetch["slice"], fetch["member"], fetch["begun_ns"])
    at_or_below = fetch["fetch_position"] <= effects["offset"][which]
    brings = late_here & at_or_below & (fetch["answered_bytes"] > 0)
    brought = np.isin(np.arange(len(effects)), which[brings])
    before = per_group(which[~late], fetch["fetch_position"][~late], len(effects), how="max", start=NONE)
    begins = per_group(which[late], fetch["begun_ns"][late], len(effects), how="min", start=NEVER)
    first = late & (fetch["begun_ns"] == begins[which])
    went_on = per_group(which[first], fetch["fetch_position"][first], len(effects), how="max", start=NONE)
    got = ~late & (fetch["answered_bytes"] > 0)
    had, asked_anew = (
        per_group(which[rows], fetch["fetch_position"][rows], len(effects), how="max", start=NONE)
        for rows in (got, brings)
    )  # who asks for a position again may still have the answer of the first time
    itself: Bools = brought & (effects["offset"] >= before) & (effects["offset"] >= went_on) & (asked_anew > had)
    return itself


def effects_after_revoke(batch: Batch) -> tuple[Table, Table]:
    """Returns the first effects of members that came after their `revoked` callback had returned, and before the next
    callback, or after it where the group had given the partition to others meanwhile, and the member has not fetched
    the record since: those that nothing can have held back, and those that a fault may have; with `file` (its source)
    and `callback` (the seq of the `revoked` line). Not those of records that the group handed on: whoever reads the
    topic where they went may do them."""
    effects = _first_of_members(batch)
    effects = effects.take(~is_among(effects, batch.of(Kind.HANDED_ON), "slice", "offset"))
    effects = effects.having(file=file_of(batch, effects["member"], effects["time_ns"]))
    own = member_lines(batch)
    said = own.take(np.isin(own["kind"], CALLBACKS)).sorted_by("slice", "source", "time_ns", "seq")
    size = len(batch.trial_context.sources) + 1
    group, wanted = said["slice"] * size + said["source"], effects["slice"] * size + effects["file"]
    newest = at_or_before(group, said["time_ns"], wanted, effects["time_ns"])
    last = at_or_before(group, said["time_ns"], wanted, at_earliest(effects["time_ns"]))
    known = (last >= 0) & (last == newest) & (effects["file"] >= 0) & ~batch.untimed(effects["file"])
    known &= alone(batch, _speaker(said, last, effects))
    away = known & (picked(said["kind"], last, 0) == Kind.REVOKED) & ~_given_since(batch, effects, said, group, last)
    before = picked(previous_in(group), last, -1)
    back = known & (picked(said["kind"], last, 0) == Kind.ASSIGNED) & (picked(said["kind"], before, 0) == Kind.REVOKED)
    back &= _of_before(batch, effects, picked(said["time_ns"], before, NEVER), picked(said["time_ns"], last, NONE))
    callback = np.where(back, before, last)
    found = effects.having(callback=picked(said["seq"], callback, -1)).take(away | back)
    held = _held_back(batch, found, picked(said["time_ns"], callback, NONE)[away | back])
    return found.take(~held), found.take(held)


def _given_since(batch: Batch, effects: Table, said: Table, group: Ints, last: Ints) -> Bools:
    """Returns which effects came when the group had given their member the partition again since its last callback
    (`last`: its row): it has it, whatever line is still to be read."""
    written_ns = batch.written_ns(effects["file"], picked(said["time_ns"], last, NEVER))
    given_ns, _ = last_given(batch, effects["slice"], effects["member"], effects["time_ns"])
    assigned = picked(last_true(group, said["kind"] == Kind.ASSIGNED), last, -1)
    since: Bools = given_ns >= np.maximum(picked(said["time_ns"], assigned, NONE), at_earliest_in_logs(written_ns))
    return since


def _of_before(batch: Batch, effects: Table, since_ns: Ints, until_ns: Ints) -> Bools:
    """Returns which effects are of what their member had fetched before it gave the partition back: others surely had
    it in between, by the offsets log, and all that it has fetched since lies behind the record."""
    rows = logged_assignments(batch)
    rows = rows.take(rows["member"] >= 0).sorted_by("slice", "time_ns")
    given_ns = (batch.written_ns(effects["file"], at_ns) for at_ns in (since_ns, until_ns))
    which, row = in_ranges(*between(rows["slice"], rows["time_ns"], effects["slice"], *given_ns))
    others = np.isin(np.arange(len(effects)), which[rows["member"][row] != effects["member"][which]])
    asked = fetches_by_member(batch)
    both = joined(*(np.concatenate([asked[name], effects[name]]) for name in ("slice", "member")))
    order = ordered(both[: len(asked)], asked["begun_ns"])
    asked, group = asked.take(order), both[: len(asked)][order]
    which, row = in_ranges(*between(group, asked["begun_ns"], both[len(asked) :], since_ns, effects["time_ns"]))
    lowest = per_group(which, asked["fetch_position"][row], len(effects), how="min", start=NEVER)
    behind: Bools = (lowest != NEVER) & (lowest > effects["offset"])
    return others & behind & np.bool_(complete_until_ns(batch.trial_context) == NEVER)


def _speaker(said: Table, rows: Ints, effects: Table) -> Table:
    return table(source=effects["file"], client=picked(said["client"], rows, -1))


def _first_of_members(batch: Batch) -> Table:
    effects = effects_in_order(batch)
    effects = effects.take(effects["member"] >= 0)
    effects = effects.take(ordered(effects["slice"], effects["offset"], effects["member"], effects["time_ns"]))
    return effects.take(number_in(joined(effects["slice"], effects["offset"], effects["member"])) == 0)


def _held_back(batch: Batch, effects: Table, since_ns: Ints) -> Bools:
    """Returns which effects a fault on their member may have held on the way since before that time."""
    about, held = batch.trial_context, np.zeros(len(effects), np.bool_)
    for window in about.windows:  # faults, not events: some dozens at most
        meant = np.array([window.member in (None, name) for name in about.members], np.bool_)[effects["member"]]
        begun_ns = window.begun_ns
        until_ns = NEVER if window.healed_ns is None else window.healed_ns + TOLERANCE_NS
        inside = (begun_ns <= effects["time_ns"]) & (until_ns >= since_ns)
        held |= meant & inside & (not window.does(Consequence.HARMLESS))
    return held
