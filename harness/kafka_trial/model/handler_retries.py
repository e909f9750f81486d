"""Retries: a record that an ownership epoch took in hand again, where nothing from there on had been completed.

A member whose handler failed seeks back to the record, or its client hands it out again. That is neither a step back
nor a redelivery: nobody's work is done twice. Completed means by the member's own word, or by the sink's. Of a handler
that takes batches the whole of one that did not end well is tried again (`listener_batches.py`), whatever of it had
been completed.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.attempt_starts import committed_before
from kafka_trial.model.batch import Batch, index
from kafka_trial.model.handlers import unbegun_ends
from kafka_trial.model.instants import at_earliest
from kafka_trial.model.kernels import (
    NONE,
    Bools,
    Ints,
    at_or_before,
    joined,
    max_before,
    number_in,
    ordered,
    picked,
)
from kafka_trial.model.listener_batches import is_of_replay
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.rights import mere_claims, surely_without_right
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, stacked, table


@index
def handler_starts(batch: Batch) -> Table:
    """Returns every time that a record was taken in hand: the deliveries, and the completions that no delivery began.

    With the columns of `member_lines`, sorted as it; `repeated`: the same ownership epoch had begun it before (in this
    attempt, unless an earlier one had committed it); `retry`: and nothing at its place or behind it was completed by
    then; `doubtful`: unless an effect behind it was the owner's, and not of a member without a right (`rights.py`).
    """
    begins = _begins(member_lines(batch))
    found = member_lines(batch).take(begins)
    kept = committed_before(batch, found)
    whole, part = (
        (_repeated(found, "ownership_epoch", *of), _completed(batch, "ownership_epoch", *of)[begins] < found["offset"])
        for of in ((), ("attempt",))
    )
    repeated, undone = (np.where(kept, *pair) for pair in zip(whole, part, strict=True))
    replay, claims = is_of_replay(batch, found), surely_without_right(batch)
    behind = of_owner = _effect_behind(batch, found, mere_claims(batch))
    if (claims & ~mere_claims(batch)).any():
        of_owner = _effect_behind(batch, found, claims)
    retry = repeated & ((undone & ~behind) | replay)
    return found.having(repeated=repeated, retry=retry, doubtful=retry & of_owner & ~replay)


def _begins(own: Table) -> Bools:
    begins: Bools = (own["kind"] == Kind.DELIVERED) | ((own["kind"] == Kind.PROCESSED) & unbegun_ends(own))
    return begins


def _repeated(begun: Table, *of: str) -> Bools:
    """Returns which rows were not the first of their record in what the columns `of` name."""
    same = joined(*(begun[name] for name in (*of, "offset")))
    order = ordered(same)
    same = same[order]
    repeated = np.zeros(len(begun), np.bool_)
    repeated[order] = number_in(same) > 0
    return repeated & (begun["ownership_epoch"] >= 0)


def _completed(batch: Batch, *of: str) -> Ints:
    """Returns for each row of `member_lines` the highest offset that had been completed before in what the columns `of`
    name, its ownership epoch or its attempt there."""
    own = member_lines(batch)
    held = np.flatnonzero(own["ownership_epoch"] >= 0)
    offsets = np.where(own["kind"][held] == Kind.PROCESSED, own["offset"][held], NONE)
    highest = np.full(len(own), NONE, np.int64)
    group = joined(*(own[name][held] for name in of))
    highest[held] = picked(offsets, max_before(group, offsets), NONE)
    return highest


def _effect_behind(batch: Batch, begun: Table, claims: Bools) -> Bools:
    """Returns whether the sink had heard, since the ownership epoch began, of a record behind the one that was begun.

    Of the record itself it may have heard: the member had no answer, and must try again. The ownership epochs `claims`
    are nobody's.
    """
    effects, epochs = batch.of(Kind.EFFECT), ownership_epochs(batch)
    number = np.lexsort((epochs["open_ns"], epochs["slice"]))
    number = number[~claims[number]]
    held = epochs.take(number)
    row = at_or_before(held["slice"], held["open_ns"], effects["slice"], effects["time_ns"])
    heard = table(ownership_epoch=picked(number, row, -1), time_ns=effects["time_ns"], offset=effects["offset"])
    heard = heard.take(heard["ownership_epoch"] >= 0).having(number=np.full(int((row >= 0).sum()), -1))
    asked = table(
        ownership_epoch=begun["ownership_epoch"],
        time_ns=at_earliest(batch.earliest(begun["time_ns"])),
        offset=np.full(len(begun), NONE),
        number=np.arange(len(begun)),
    )
    both = stacked(asked, heard).sorted_by("ownership_epoch", "time_ns")
    highest = picked(both["offset"], max_before(both["ownership_epoch"], both["offset"]), NONE)
    behind = np.zeros(len(begun), np.bool_)
    mine = both["number"] >= 0
    behind[both["number"][mine]] = highest[mine] > begun["offset"][both["number"][mine]]
    return behind & (begun["ownership_epoch"] >= 0)
