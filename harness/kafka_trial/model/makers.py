"""Which function makes which table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_trial.model.attempt_starts import uncertain_aborts
from kafka_trial.model.commit_epochs import stale_commits
from kafka_trial.model.commits import commit_regressions, commits
from kafka_trial.model.commits_ahead import commits_ahead
from kafka_trial.model.contradicted_lines import false_reports
from kafka_trial.model.effects import duplicate_effects, phantoms, stale_states
from kafka_trial.model.late_records import late_records
from kafka_trial.model.lost_commits import lost_commits
from kafka_trial.model.order import handled_out_of_order, nonmonotonic_polls, overlapping
from kafka_trial.model.ownerless import ownerless_stretches
from kafka_trial.model.ownership_splits import ownership_splits
from kafka_trial.model.partition import (
    AbortedReads,
    CommitRegressions,
    Commits,
    CommitsAhead,
    CommitsOutsideTransactions,
    CommittedLate,
    CorruptRecords,
    DuplicateEffects,
    ExpiredUnread,
    FalseReports,
    HandledOutOfOrder,
    LateRecords,
    LostCommits,
    LostWrites,
    MisplacedRecords,
    NonmonotonicPolls,
    OverlappingHandlers,
    OwnerlessStretches,
    OwnershipSplits,
    Phantoms,
    PollSkips,
    Redeliveries,
    Retries,
    RogueReaders,
    StaleCommits,
    StaleStates,
    TornTransactions,
    UncertainAborts,
    Unhandled,
    UninformedWork,
    WorkAfterCallback,
)
from kafka_trial.model.poll_skips import poll_skips
from kafka_trial.model.progress import committed_late, rogue_readers
from kafka_trial.model.redeliveries import redeliveries, retries
from kafka_trial.model.transactions import aborted_reads, commits_outside_transactions, torn_transactions
from kafka_trial.model.unhandled import unhandled
from kafka_trial.model.work_after_loss import uninformed_work, work_after_callback
from kafka_trial.model.written import corrupt_records, expired_unread, lost_writes, misplaced_records

if TYPE_CHECKING:
    from kafka_trial.model.partition import Makers

MAKERS: Final[Makers] = {
    AbortedReads: aborted_reads,
    CommitRegressions: commit_regressions,
    Commits: commits,
    CommitsAhead: commits_ahead,
    CommitsOutsideTransactions: commits_outside_transactions,
    CommittedLate: committed_late,
    CorruptRecords: corrupt_records,
    DuplicateEffects: duplicate_effects,
    ExpiredUnread: expired_unread,
    FalseReports: false_reports,
    HandledOutOfOrder: handled_out_of_order,
    LateRecords: late_records,
    LostCommits: lost_commits,
    LostWrites: lost_writes,
    MisplacedRecords: misplaced_records,
    NonmonotonicPolls: nonmonotonic_polls,
    OverlappingHandlers: overlapping,
    OwnerlessStretches: ownerless_stretches,
    OwnershipSplits: ownership_splits,
    Phantoms: phantoms,
    PollSkips: poll_skips,
    Redeliveries: redeliveries,
    Retries: retries,
    RogueReaders: rogue_readers,
    StaleCommits: stale_commits,
    StaleStates: stale_states,
    TornTransactions: torn_transactions,
    UncertainAborts: uncertain_aborts,
    Unhandled: unhandled,
    UninformedWork: uninformed_work,
    WorkAfterCallback: work_after_callback,
}
