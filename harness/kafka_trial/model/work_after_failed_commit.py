"""Commits that were refused, and the records that their member began although such a commit covers them.

By its own line: it may come from a callback of a background commit, and whoever handles first and commits afterwards
may finish what it had fetched, as if the line were not there. A record that the refused commit itself covers is another
matter: who commits first, and is refused, must not begin it, once others have the partition. What another commit of its
own covers, that was granted before, is its own, whatever became of this one.

By the request log, where at most once is claimed: that claim begins nothing before the commit that covers it was
granted, so its member waits for the answer, whatever it prints of its commits. Under any other claim the answer may
reach a background thread alone.

A record that it discards, or an attempt that fails, is no work on it. Where progress is not in Kafka a refused commit
means nothing.

Smallest histories: m0 `assigned`, group record gives the partition to m1, m0's `commit` invoke 1 is answered 22,
`commit` fail 1, `delivered` 0; the same without m0's lines of the commit, where it claims at most once.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.client_attribution import alone
from kafka_trial.model.clients import members_at
from kafka_trial.model.commits_log import NOT_TOLD, UNKNOWN, commits_in_effect
from kafka_trial.model.fencing import commit_refused_ns
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.handlers import finished_handlers, joined_with
from kafka_trial.model.instants import at_earliest, at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    between,
    exactly,
    first_of,
    greatest_in,
    in_ranges,
    joined,
    last_true,
    max_before,
    ordered,
    picked,
)
from kafka_trial.model.ownership_epochs import (
    SAID,
    epoch_owners,
    member_lines,
    owned_by_other_member,
    ownership_epochs,
)
from kafka_trial.model.request_logs import FENCING, commit_requests
from kafka_trial.model.response_delivery import answers_of, received_ns
from kafka_trial.model.rows import Kind, Outcome
from kafka_trial.model.table import Table, stacked, table
from kafka_trial.model.zombies import zombie_windows

COMMITS = (Kind.COMMIT_INVOKE, Kind.COMMIT_OK, Kind.COMMIT_FAIL)


@index
def rejected_commit_evidence(batch: Batch) -> Table:
    """Returns for each row of `handler_starts` the event (source, seq) that told its member before that a commit was
    refused which covers the record: its own line, else a broker's answer; source -1 where there is none.

    Only of records that it began while others had the partition, and had no leave to begin.
    """
    begun = handler_starts(batch)
    if not batch.trial_context.settings.in_offsets_log:
        return table(source=np.full(len(begun), -1), seq=np.full(len(begun), -1))
    line, answer = _client_reported_rejection_before(batch), _broker_rejection_before(batch)
    lost = picked(zombie_windows(batch)["loss"], begun["ownership_epoch"], -1) >= 0
    uncovered = _committed_offset_before(batch) <= begun["offset"]
    guilty = lost & owned_by_other_member(batch, begun) & uncovered & ~_discarded_or_failed(batch)
    by_line, by_answer = (line["source"] >= 0) & guilty, (answer["source"] >= 0) & guilty
    return table(
        source=np.where(by_line, line["source"], np.where(by_answer, answer["source"], -1)),
        seq=np.where(by_line, line["seq"], np.where(by_answer, answer["seq"], -1)),
    )


def first_start_after_rejected_commit(batch: Batch, epochs: Array, offsets: Array) -> tuple[Ints, Ints]:
    """Returns the seq and the time from which on each ownership epoch worked on the record although a commit that
    covers it had been refused; NEVER where it did not."""
    begun = handler_starts(batch).take(rejected_commit_evidence(batch)["source"] >= 0)
    begun = begun.sorted_by("ownership_epoch", "offset", "seq")
    begun = begun.take(first_of(begun["ownership_epoch"], begun["offset"]))
    row = exactly(begun["ownership_epoch"], begun["offset"], epochs, offsets)
    return picked(begun["seq"], row, NEVER), picked(begun["time_ns"], row, NEVER)


def _client_reported_rejection_before(batch: Batch) -> Table:
    """Returns for each row of `handler_starts` its member's own line before it of the highest commit that was refused,
    if that covers the record."""
    begun, lines = handler_starts(batch), _client_reported_rejections(batch)
    row = _covering_rejection_before(lines, begun, lines["seq"], begun["seq"])
    return table(source=np.where(row >= 0, begun["source"], -1), seq=picked(lines["seq"], row, -1))


def _broker_rejection_before(batch: Batch) -> Table:
    """Returns for each row of `handler_starts` the broker's answer that its member had received before, that of the
    highest commit which was refused, if that covers the record and at most once is claimed.

    The effect of a record says nothing of when it was begun.
    """
    begun, answers = handler_starts(batch), _fenced_commit_responses(batch)
    row = _covering_rejection_before(
        answers, begun, answers["received_ns"], batch.written_ns(begun["source"], begun["time_ns"])
    )
    row = np.where(begun["told_by"] == SAID, row, -1)  # else it tells of its end only
    return table(source=picked(answers["source"], row, -1), seq=picked(answers["seq"], row, -1))


def _covering_rejection_before(refused: Table, begun: Table, refused_at: Ints, begun_at: Ints) -> Ints:
    """Returns for each row of `begun` the one of `refused` (ownership_epoch, position) with the highest position of
    those before it, -1 where that does not cover the record."""
    count = len(refused)
    epochs = np.concatenate([refused["ownership_epoch"], begun["ownership_epoch"]])
    is_begun = np.arange(len(epochs)) >= count
    order = ordered(epochs, np.concatenate([refused_at, begun_at]), ~is_begun)  # in one instant: it was not told yet
    positions = np.concatenate([refused["position"], np.full(len(begun), NONE)])[order]
    highest = picked(order, max_before(epochs[order], positions), -1)
    found = np.full(len(begun), -1, np.int64)
    found[order[is_begun[order]] - count] = highest[is_begun[order]]
    covers = (begun["ownership_epoch"] >= 0) & (found < count)
    covers &= picked(refused["position"], np.where(found < count, found, -1), NONE) > begun["offset"]
    return np.where(covers, found, -1)


def _fenced_commit_responses(batch: Batch) -> Table:
    """Returns ownership_epoch, position, received_ns, source and seq of the commits that brokers refused a member while
    the ownership epoch was open, as far as it was told; none where another claim than at most once is made.

    Whoever is expelled is refused before others are given the partition.
    """
    held, asked = ownership_epochs(batch), commit_requests(batch)
    if batch.trial_context.settings.delivery != "at-most-once":
        asked = asked.take(np.zeros(len(asked), np.bool_))
    asked = asked.take(np.isin(asked["error_code"], FENCING))
    answers = answers_of(batch, asked)
    asked = asked.having(
        member=members_at(batch, asked["lane"], asked["connection"], np.full(len(asked), -1)),
        sent_ns=answers["sent_ns"],
        received_ns=received_ns(batch.trial_context, answers),
    )
    asked = asked.take((asked["member"] >= 0) & (asked["received_ns"] != NEVER))
    both = joined(
        *(np.concatenate(pair) for pair in ((asked["slice"], held["slice"]), (asked["member"], epoch_owners(batch))))
    )
    order = ordered(both[: len(asked)], asked["sent_ns"])
    asked, group = asked.take(order), both[: len(asked)][order]
    open_ns, close_ns = held["open_ns"], held["close_ns"]
    which, row = in_ranges(*between(group, asked["sent_ns"], both[len(asked) :], open_ns, close_ns))
    told = asked.take(row)
    return told.only("received_ns", "source", "seq").having(ownership_epoch=which, position=told["committed_offset"])


def _client_reported_rejections(batch: Batch) -> Table:
    """Returns ownership epoch, seq and position (NONE: not told) of the lines that tell of a refusal which a broker
    had answered."""
    lines = _answers_said(batch)
    since_ns = at_earliest(commit_refused_ns(batch, ownership_epochs(batch)["open_ns"]))  # NEVER: was not refused
    told = (lines["kind"] == Kind.COMMIT_FAIL) & (lines["time_ns"] > since_ns[lines["ownership_epoch"]])
    return lines.take(told)


def _answers_said(batch: Batch) -> Table:
    """Returns ownership epoch, seq, kind, time_ns and position of what members said of their commits; sorted by the
    first two.

    A failure that names no position is of the last one that its member asked for before, unless that was granted.
    """
    own = member_lines(batch)
    named = own.take(np.isin(own["kind"], COMMITS) & (own["ownership_epoch"] >= 0))
    named = named.only("ownership_epoch", "seq", "kind", "time_ns").having(position=named["committed_offset"])
    said = stacked(named, _commit_failures_without_offsets(batch)).sorted_by("ownership_epoch", "seq")
    last = last_true(said["ownership_epoch"], np.isin(said["kind"], (Kind.COMMIT_INVOKE, Kind.COMMIT_OK)))
    last = np.where(picked(said["kind"], last, 0) == Kind.COMMIT_INVOKE, last, -1)
    unnamed = (said["kind"] == Kind.COMMIT_FAIL) & (said["position"] == NONE)
    return said.having(position=np.where(unnamed, picked(said["position"], last, NONE), said["position"]))


def _commit_failures_without_offsets(batch: Batch) -> Table:
    """Returns the failed commits without entries, in every ownership epoch of their file that was open then. Of several
    clients in a process nobody knows whose they were."""
    held = ownership_epochs(batch)
    whole = np.flatnonzero(alone(batch, held))
    failed = np.array(batch.trial_context.refusals, np.int64).reshape(-1, 3)  # (source, seq, time), sorted
    first, end = between(
        failed[:, 0], failed[:, 1], held["source"][whole], held["open_seq"][whole], held["close_seq"][whole]
    )
    which, row = in_ranges(first, end)
    return table(
        ownership_epoch=whole[which],
        seq=failed[row, 1],
        kind=np.full(len(row), Kind.COMMIT_FAIL, np.int64),
        time_ns=failed[row, 2],
        position=np.full(len(row), NONE),
    )


def _committed_offset_before(batch: Batch) -> Ints:
    """Returns for each row of `handler_starts` the highest position that its member, or nobody knows who, had committed
    by then: the records below are its own."""
    begun, log = handler_starts(batch), commits_in_effect(batch)
    unknown = np.isin(log["committer"], NOT_TOLD)
    committer = np.where(unknown, UNKNOWN, log["committer"])
    member = picked(ownership_epochs(batch)["member"], begun["ownership_epoch"], -1)
    until_ns = at_latest(begun["time_ns"])
    granted = np.full(len(begun), NONE, np.int64)
    for wanted in (member, np.full(len(begun), UNKNOWN)):
        both = joined(
            np.concatenate([log["slice"], begun["slice"]]), np.concatenate([committer, wanted]).astype(np.int64)
        )
        group, mine = both[: len(log)], both[len(log) :]
        order = ordered(group, log["effect_ns"])
        effect_ns, value = log["effect_ns"][order], log["committed_offset"][order]
        rows = between(group[order], effect_ns, mine, np.zeros_like(until_ns), until_ns)
        granted = np.maximum(granted, picked(value, greatest_in(value, *rows), NONE))
    return granted


def _discarded_or_failed(batch: Batch) -> Bools:
    """Returns which rows of `handler_starts` ended in the word that the record was not handled: it was discarded, or
    the attempt failed."""
    begun, size = handler_starts(batch), len(batch.trial_context.sources)
    said = batch.of(Kind.FAILED, Kind.PROCESSED)
    said = said.take((said["kind"] == Kind.FAILED) | (said["outcome"] == Outcome.DISCARDED))
    said = said.sorted_by("slice", "source", "seq")
    files = joined_with(said["slice"], said["source"], size)
    handlers = finished_handlers(batch)
    handler = exactly(
        joined_with(handlers["slice"], handlers["source"], size),
        handlers["start_seq"],
        joined_with(begun["slice"], begun["source"], size),
        begun["seq"],
    )
    end_seq = np.where(begun["kind"] == Kind.DELIVERED, picked(handlers["end_seq"], handler, NONE), begun["seq"])
    given_up: Bools = exactly(files, said["seq"], joined_with(begun["slice"], begun["source"], size), end_seq) >= 0
    return given_up
