"""Which function makes which table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_trial.model.commit_epochs import stale_commits
from kafka_trial.model.commits import commits, falls
from kafka_trial.model.commits_ahead import commits_ahead
from kafka_trial.model.effects import effects_again, unsent
from kafka_trial.model.late_work import work_after_revoke, zombie_work
from kafka_trial.model.lost_commits import lost_commits
from kafka_trial.model.order import handled_late, side_by_side, steps_back
from kafka_trial.model.partition import (
    AbortedReads,
    Altered,
    Commits,
    CommitsAhead,
    CommitsOutsideTransactions,
    CommittedLate,
    EffectsAgain,
    ExpiredUnread,
    Falls,
    HandledLate,
    LostCommits,
    LostWrites,
    Misplaced,
    PassedOver,
    Redeliveries,
    RefutedLines,
    Retries,
    SideBySide,
    Splits,
    StaleCommits,
    StaleRows,
    StepsBack,
    TornTransactions,
    UncommittedReads,
    Unhandled,
    Unsent,
    WorkAfterRevoke,
    ZombieWork,
)
from kafka_trial.model.passed_over import passed_over
from kafka_trial.model.progress import committed_late, uncommitted_reads
from kafka_trial.model.redeliveries import redeliveries, retries
from kafka_trial.model.refuted_lines import refuted_lines
from kafka_trial.model.row_states import stale_rows
from kafka_trial.model.splits import splits
from kafka_trial.model.torn import torn_transactions
from kafka_trial.model.transactions import aborted_reads, commits_outside_transactions
from kafka_trial.model.unhandled import unhandled
from kafka_trial.model.written import altered, expired_unread, lost_writes, misplaced

if TYPE_CHECKING:
    from kafka_trial.model.partition import Makers

MAKERS: Final[Makers] = {
    CommitsOutsideTransactions: commits_outside_transactions,
    AbortedReads: aborted_reads,
    TornTransactions: torn_transactions,
    StaleRows: stale_rows,
    StaleCommits: stale_commits,
    EffectsAgain: effects_again,
    Unsent: unsent,
    RefutedLines: refuted_lines,
    LostCommits: lost_commits,
    UncommittedReads: uncommitted_reads,
    CommittedLate: committed_late,
    Retries: retries,
    Misplaced: misplaced,
    Altered: altered,
    ExpiredUnread: expired_unread,
    LostWrites: lost_writes,
    Commits: commits,
    CommitsAhead: commits_ahead,
    Falls: falls,
    HandledLate: handled_late,
    PassedOver: passed_over,
    Redeliveries: redeliveries,
    SideBySide: side_by_side,
    Splits: splits,
    StepsBack: steps_back,
    Unhandled: unhandled,
    WorkAfterRevoke: work_after_revoke,
    ZombieWork: zombie_work,
}
