"""Where attempts began: what had been committed in a partition when its member gave the attempt before up.

An aborted transaction takes back what was done in it, and nothing of what an earlier one had committed. After the abort
a consumer resets its positions to the last committed ones (`resetToLastCommittedPositions` in Kafka's example
ExactlyOnceMessageProcessor). Who begins below that steps back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.aborts import aborts_by_file
from kafka_trial.model.batch import index
from kafka_trial.model.client_attribution import alone
from kafka_trial.model.clients import file_of, members_of
from kafka_trial.model.clocks import line_times
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import NEVER, NONE, Bools, Ints, at_or_before, exactly, picked, running_max
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.partition import UncertainAborts
from kafka_trial.model.response_delivery import answers_of, received_ns
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import last_until, table

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.table import Table


@index
def uncertain_aborts(batch: Batch) -> UncertainAborts:
    """Returns the lines that may have ended an attempt, and may not, in each slice."""
    own = member_lines(batch)
    found = [
        (int(own["slice"][file.start]), line.source, line.seq)
        for file, told in aborts_by_file(batch, own)
        for line, certain in told
        if not certain
    ]
    slices, sources, seqs = np.array(found, np.int64).reshape(-1, 3).T
    return UncertainAborts(table(slice=slices, source=sources, seq=seqs).columns)


def committed_before(batch: Batch, rows: Table) -> Bools:
    """Returns which rows of `member_lines` are about a record that their ownership epoch had certainly committed before
    their attempt began."""
    committed: Bools = rows["offset"] < began_at(batch, rows)
    return committed


def began_at(batch: Batch, rows: Table) -> Ints:
    """Returns up to where the ownership epoch of each row of `member_lines` had committed its partition when its
    attempt began; NONE: it had not, or no attempt came before.

    That is what its member had said, and the offsets log confirms; and what the log shows, where the answer to EndTxn
    had surely told the member, whatever it says afterwards: a handler may fail when its transaction is committed. What
    the log alone shows is no proof: if the answer to a commit is lost, the member gives up an attempt that stands, and
    cannot know it. Nor is what the member alone says: positions are accepted in a transaction
    (`sendOffsetsToTransaction`) before it is aborted.
    """
    later = rows["aborted_seq"] != NONE
    return np.where(later, np.maximum(_said_before(batch, rows), _told_before(batch, rows)), NONE)


def _said_before(batch: Batch, rows: Table) -> Ints:
    """Returns the position in the last line before each attempt with which its member said that it had committed one,
    and the log confirms it."""
    said = member_lines(batch).take(member_lines(batch)["kind"] == Kind.COMMIT_OK)
    by_then = at_latest(said["time_ns"])
    in_effect = last_until(commits_in_effect(batch), said, "slice", "committed_offset", by="effect_ns", until=by_then)
    said = said.take(in_effect >= 0)
    last = at_or_before(said["file"], said["seq"], rows["file"], rows["aborted_seq"])
    inside = picked(said["ownership_epoch"], last, -1) == rows["ownership_epoch"]
    return np.where(inside, picked(said["committed_offset"], last, NONE), NONE)


def _told_before(batch: Batch, rows: Table) -> Ints:
    """Returns the greatest position that its member surely knew to be committed before each attempt began."""
    told = _told(batch)
    last = at_or_before(told["ownership_epoch"], told["known_ns"], rows["ownership_epoch"], _gave_up_ns(batch, rows))
    greatest = picked(running_max(told["ownership_epoch"], told["committed_offset"]), last, -1)
    return picked(told["committed_offset"], greatest, NONE)


def _gave_up_ns(batch: Batch, rows: Table) -> Ints:
    """Returns when the attempt before that of each row can have been given up at the earliest; NONE: none was."""
    lines = batch.trial_context.aborts
    source, seq, time_ns, own_ns = (
        np.array([(one.source, one.seq, one.time_ns, one.own_ns) for one in lines], np.int64).reshape(-1, 4).T
    )
    said_ns = batch.written_ns(source, line_times(batch.trial_context, source, own_ns, time_ns))
    return picked(said_ns, exactly(source, seq, rows["source"], rows["aborted_seq"]), NONE)


@index
def _told(batch: Batch) -> Table:
    """Returns the commits of which members surely knew that they stand, for EndTxn was answered: ownership_epoch,
    committed_offset and known_ns, sorted by the first and the last. Only of members that are alone in their process, in
    which no other client can have asked, and of ownership epochs that had begun when the position was taken.
    """
    answers, log = batch.of(Kind.COMMIT_ANSWERED), commits_in_effect(batch)
    heard_ns = received_ns(batch.trial_context, answers_of(batch, answers))
    commit = exactly(log["slice"], log["log_offset"], answers["slice"], answers["log_offset"])
    told = table(
        slice=answers["slice"],
        source=file_of(batch, members_of(batch, answers["lane"], otherwise=-1), heard_ns),
        committed_offset=picked(log["committed_offset"], commit, NONE),
        taken_ns=batch.monotonic(picked(log["commit_wall_ns"], commit, NONE), picked(log["time_ns"], commit, NONE)),
        known_ns=np.maximum(heard_ns, picked(log["effect_ns"], commit, NEVER)),
    )
    told = told.take(told["known_ns"] != NEVER)
    epochs = ownership_epochs(batch)
    epochs = epochs.having(number=np.arange(len(epochs))).take(alone(batch, epochs))
    begun = last_until(epochs, told, "slice", "source", by="open_ns", until=told["taken_ns"])
    told = told.having(ownership_epoch=picked(epochs["number"], begun, -1)).take(begun >= 0)
    return told.sorted_by("ownership_epoch", "known_ns")
