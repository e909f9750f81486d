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
from kafka_trial.model.commits_log import commits_in_effect
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import NONE, Bools, Ints, at_or_before, picked
from kafka_trial.model.ownership_epochs import member_lines
from kafka_trial.model.partition import UncertainAborts
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

    That is what its member had said, and the offsets log confirms. What the log alone shows is no proof: if the answer
    to a commit is lost, the member gives up an attempt that stands, and cannot know it. Nor is what the member alone
    says: positions are accepted in a transaction (`sendOffsetsToTransaction`) before it is aborted.
    """
    said = member_lines(batch).take(member_lines(batch)["kind"] == Kind.COMMIT_OK)
    by_then = at_latest(said["time_ns"])
    in_effect = last_until(commits_in_effect(batch), said, "slice", "committed_offset", by="effect_ns", until=by_then)
    said = said.take(in_effect >= 0)
    last = at_or_before(said["file"], said["seq"], rows["file"], rows["aborted_seq"])
    inside = picked(said["ownership_epoch"], last, -1) == rows["ownership_epoch"]
    later = rows["aborted_seq"] != NONE
    return np.where(later & inside, picked(said["committed_offset"], last, NONE), NONE)
