"""A batch: the rows of some whole slices, and the indexes derived from them once for all invariants.

The indexes stand in modules of their own (`ownership_epochs.py`, `handlers.py`, `commits_log.py`, `late_log_lines.py`,
`ownership_log.py`, `floors.py`, `zombies.py`); this one only holds and caches them. Every index is a table sorted by
slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np

from kafka_trial.invariants import (
    clocks,
    commits_log,
    contradicted_lines,
    corroborated_callbacks,
    false_assignments,
    false_losses,
    floors,
    handler_retries,
    handlers,
    late_log_lines,
    ownership_epochs,
    ownership_log,
    work_after_failed_commit,
    zombies,
)
from kafka_trial.invariants.client_attribution import group_members
from kafka_trial.invariants.clients import Clients, clients
from kafka_trial.invariants.families import Family, FamilyTable, families_of, in_common
from kafka_trial.invariants.kernels import NEVER, NONE, Array, Bools, Ints, first_of, ordered
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table
from kafka_trial.invariants.trial_context import TrialContext


class Batch:
    """Whole slices with their indexes: `rows` has the columns of `rows.NUMBERS`, and `key`, a place in `keys`.

    Nobody sees these but `of`, which gives them the names of their family (`families.py`).
    """

    def __init__(self, rows: Table, trial_context: TrialContext, keys: Sequence[str] = ()) -> None:
        self.trial_context = trial_context
        self.keys = keys
        self._heard = rows
        self._rows = clocks.own_times(trial_context, rows)
        self._by_kind = _runs(rows["kind"])
        codes = np.unique(rows["slice"])
        self.slices: Ints = codes.astype(np.int64)
        self.size = len(codes)
        self.lives = _lives(trial_context)

    def of(self, *kinds: Kind) -> Table:
        """Returns the rows of some kinds, in no particular order, with the columns of their family (`families.py`).

        Of several families: with those columns that they have in common. `slice` is numbered from 0 inside this batch.
        """
        parts = [self._of(family, [kind for kind in kinds if kind in family.kinds]) for family in families_of(kinds)]
        return parts[0] if len(parts) == 1 else in_common(parts)

    def _of(self, family: Family, kinds: Sequence[Kind]) -> FamilyTable:
        order, spans = self._by_kind
        parts = [order[slice(*spans[kind])] for kind in kinds if kind in spans]
        chosen = np.concatenate(parts) if parts else np.empty(0, np.int64)
        rows = family.read(self._rows.only(*family.carriers).take(chosen))
        return rows.having(slice=np.searchsorted(self.slices, rows["slice"]).astype(np.int64))

    @cached_property
    def records(self) -> Table:
        """The control read: slice, offset, id hash (of its id), key (-1: none), appended_ns, source, seq; sorted.

        One row an offset.
        """
        records = self.of(Kind.RECORD).sorted_by("slice", "offset")
        distinct = records.take(_firsts(records["slice"], records["offset"]))
        return distinct.only("slice", "offset", "id_hash", "key", "source", "seq").having(
            appended_ns=self.monotonic(distinct["append_wall_ns"], distinct["time_ns"])
        )

    @cached_property
    def ends(self) -> Ints:
        """The position after the last readable record of each slice; NONE where it has no record."""
        ends = np.full(self.size, NONE, np.int64)
        ends[self.records["slice"]] = self.records["offset"] + 1  # sorted: the last one stays
        return ends

    @cached_property
    def log_starts(self) -> Ints:
        """The lowest position of each slice: what the observer read, else its first record, else 0."""
        starts = np.zeros(self.size, np.int64)
        first = first_of(self.records["slice"])
        starts[self.records["slice"][first]] = self.records["offset"][first]
        read = self.of(Kind.LOG_START)
        starts[read["slice"]] = read["position"]
        np.minimum.at(starts, read["slice"], read["position"])
        return starts

    @cached_property
    def arrived(self) -> Table:
        """The effects, sorted by (slice, id hash of their id, time)."""
        return self.of(Kind.ARRIVED).sorted_by("slice", "id_hash", "time_ns", "source", "seq")

    @cached_property
    def own(self) -> Table:
        """See `ownership_epochs.own_words`."""
        return ownership_epochs.own_words(self)

    @cached_property
    def uncorroborated(self) -> Table:
        """See `false_assignments.uncorroborated`."""
        return false_assignments.uncorroborated(self)

    @cached_property
    def false_losses(self) -> Table:
        """See `false_losses.false_losses`."""
        return false_losses.false_losses(self)

    def corroborated(self, own: Table) -> Table:
        """See `corroborated_callbacks.corroborated`."""
        return corroborated_callbacks.corroborated(self, own)

    @cached_property
    def ownership_epochs(self) -> Table:
        """See `ownership_epochs.ownership_epochs`."""
        return ownership_epochs.ownership_epochs(self)

    @cached_property
    def deliveries(self) -> Table:
        """The `delivered` rows of `own`."""
        return self.own.take(self.own["kind"] == Kind.DELIVERED)

    @cached_property
    def completions(self) -> Table:
        """The `processed` rows of `own`, with `begun_in` (see `handlers.completions`)."""
        return handlers.completions(self)

    @cached_property
    def begun(self) -> Table:
        """See `handler_retries.begun`."""
        return handler_retries.begun(self)

    @cached_property
    def handlers(self) -> Table:
        """See `handlers.handlers`."""
        return handlers.handlers(self)

    @cached_property
    def refuted(self) -> Table:
        """See `contradicted_lines.refuted`."""
        return contradicted_lines.refuted(self)

    @cached_property
    def handled(self) -> Table:
        """See `handlers.handled`."""
        return handlers.handled(self)

    @cached_property
    def first_handled(self) -> SimpleNamespace:
        """See `handlers.first_handled_of_records`."""
        return handlers.first_handled_of_records(self)

    @cached_property
    def assignment_records(self) -> Table:
        """See `ownership_log.assignment_records`."""
        return ownership_log.assignment_records(self)

    @cached_property
    def clients(self) -> Clients:
        """See `clients.clients`."""
        return clients(self.trial_context)

    @cached_property
    def holders(self) -> Ints:
        """The group member of each ownership epoch, see `client_attribution.group_members`."""
        return group_members(self, self.ownership_epochs)

    @cached_property
    def commits(self) -> Table:
        """See `commits_log.commits`."""
        return commits_log.commits(self)

    @cached_property
    def final(self) -> Ints:
        """The committed offset that stands at the end of the log, for each slice; NONE where none does.

        None at all for a consumer whose progress is not in Kafka: what it commits there means nothing.
        """
        if not self.trial_context.settings.in_offsets_log:
            return np.full(self.size, NONE, np.int64)
        return commits_log.standing(self, None)

    @cached_property
    def commit_requests(self) -> Table:
        """See `late_log_lines.commit_requests`."""
        return late_log_lines.commit_requests(self)

    @cached_property
    def position_answers(self) -> Table:
        """See `floors.position_answers`."""
        return floors.position_answers(self)

    @cached_property
    def fetch_answers(self) -> Table:
        """See `floors.fetch_answers`."""
        return floors.fetch_answers(self)

    @cached_property
    def floors(self) -> Ints:
        """See `floors.floors`."""
        return floors.floors(self)

    @cached_property
    def zombies(self) -> Table:
        """See `zombies.windows`."""
        return zombies.windows(self)

    @cached_property
    def refusals(self) -> Table:
        """See `work_after_failed_commit.refusals`."""
        return work_after_failed_commit.refusals(self)

    @cached_property
    def had_it_not_stood_still(self) -> Batch:
        """The same rows, as if the harness had heard everything when it was said."""
        return Batch(self._heard, replace(self.trial_context, harness_stalls=()), self.keys)

    def earliest(self, heard_ns: Ints) -> Ints:
        """See `clocks.earliest`."""
        return clocks.earliest(self.trial_context, heard_ns)

    def written_ns(self, sources: Array, read_ns: Ints) -> Ints:
        """Returns the earliest time at which each line can have been written; NEVER and NONE stay as they are."""
        known = (read_ns != NEVER) & (read_ns != NONE)
        return np.where(known, self.earliest(read_ns) - self.uncertainty(sources, read_ns), read_ns)

    def uncertainty(self, sources: Array, time_ns: Ints) -> Ints:
        """See `clocks.uncertainty`."""
        return clocks.uncertainty(self.trial_context, sources, time_ns)

    def vague(self, sources: Array) -> Bools:
        """See `clocks.vague`."""
        return clocks.vague(self.trial_context, sources)

    def monotonic(self, wall_ns: Array, otherwise_ns: Array) -> Ints:
        """See `clocks.monotonic`."""
        return clocks.monotonic(self.trial_context, wall_ns, otherwise_ns)


def _runs(kinds: Array) -> tuple[Ints, dict[int, tuple[int, int]]]:
    order = ordered(kinds)
    firsts = first_of(kinds[order])
    ends = np.append(firsts[1:], len(kinds))
    return order, {int(kinds[order[first]]): (int(first), int(end)) for first, end in zip(firsts, ends, strict=True)}


def _firsts(group: Array, value: Array) -> Ints:
    fresh = np.ones(len(group), np.bool_)
    fresh[1:] = (group[1:] != group[:-1]) | (value[1:] != value[:-1])
    return np.flatnonzero(fresh)


def _lives(trial_context: TrialContext) -> Table:
    """Returns the lives as columns, sorted by (member, start), and `of_source`: the place of each source's life."""
    lives = sorted(trial_context.lives, key=lambda life: (life.member, life.started_ns, life.source))
    names = ("source", "member", "started_ns", "closed_seq", "closed_ns", "exited_seq", "exited_ns", "worked_ns")
    columns = {
        name: np.array([NONE if (value := getattr(life, name)) is None else value for life in lives], np.int64)
        for name in names
    }
    columns["killed"] = np.array([life.killed for life in lives], np.bool_)
    columns["crashed"] = np.array([life.crashed for life in lives], np.bool_)
    for name in ("invokes", "assigns", "delivers", "completes"):
        columns[name] = np.array([getattr(life, name) for life in lives], np.bool_)
    return Table(columns)
