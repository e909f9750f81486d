"""Which function makes which table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_trial.model.commit_epochs import stale_commits
from kafka_trial.model.commits import commits, falls
from kafka_trial.model.commits_ahead import commits_ahead
from kafka_trial.model.effects import effects_again, phantoms
from kafka_trial.model.false_reports import false_reports
from kafka_trial.model.lost_commits import lost_commits
from kafka_trial.model.order import handled_out_of_order, overlapping, steps_back
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
    FalseReports,
    HandledOutOfOrder,
    LostCommits,
    LostWrites,
    Misplaced,
    OverlappingHandlers,
    PassedOver,
    Phantoms,
    Redeliveries,
    Retries,
    RogueReaders,
    Splits,
    StaleCommits,
    StaleStates,
    StepsBack,
    TornTransactions,
    Unhandled,
    WorkAfterRevoke,
    ZombieWork,
)
from kafka_trial.model.passed_over import passed_over
from kafka_trial.model.progress import committed_late, rogue_readers
from kafka_trial.model.redeliveries import redeliveries, retries
from kafka_trial.model.row_states import stale_states
from kafka_trial.model.splits import splits
from kafka_trial.model.torn import torn_transactions
from kafka_trial.model.transactions import aborted_reads, commits_outside_transactions
from kafka_trial.model.unhandled import unhandled
from kafka_trial.model.work_after_loss import work_after_revoke, zombie_work
from kafka_trial.model.written import altered, expired_unread, lost_writes, misplaced

if TYPE_CHECKING:
    from kafka_trial.model.partition import Makers

MAKERS: Final[Makers] = {
    CommitsOutsideTransactions: commits_outside_transactions,
    AbortedReads: aborted_reads,
    TornTransactions: torn_transactions,
    StaleStates: stale_states,
    StaleCommits: stale_commits,
    EffectsAgain: effects_again,
    Phantoms: phantoms,
    FalseReports: false_reports,
    LostCommits: lost_commits,
    RogueReaders: rogue_readers,
    CommittedLate: committed_late,
    Retries: retries,
    Misplaced: misplaced,
    Altered: altered,
    ExpiredUnread: expired_unread,
    LostWrites: lost_writes,
    Commits: commits,
    CommitsAhead: commits_ahead,
    Falls: falls,
    HandledOutOfOrder: handled_out_of_order,
    PassedOver: passed_over,
    Redeliveries: redeliveries,
    OverlappingHandlers: overlapping,
    Splits: splits,
    StepsBack: steps_back,
    Unhandled: unhandled,
    WorkAfterRevoke: work_after_revoke,
    ZombieWork: zombie_work,
}
