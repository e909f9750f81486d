"""What became of some partitions: the tables that anomalies ask, and all that they ask.

A table has a row for each thing that happened, or lasted. It is made when it is first asked for, and so is each of its
columns, by the modules beside this one (`makers.py`). What witnesses saw, how far they are believed, and what a fault
may explain is settled there.

`slice` is the number of the partition among these. Instants (`…_ns`) are nanoseconds on the harness's monotonic clock.
NONE, NEVER, and -1 for members and rows of other tables, say that there is none. `…_source` and `…_seq` name the event
that proves something. `why`: the reason for which a row is not certain (`Undecided`); None where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from kafka_trial.model.batch import Batch
from kafka_trial.model.table import Table

if TYPE_CHECKING:
    from kafka_trial.model.kernels import Array, Bools, Ints
    from kafka_trial.model.trial_context import TrialContext


class LostWrites(Table):
    """Sends that were acknowledged, and whose record the complete control read does not hold, though nothing removed
    it.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    why: Array


class ExpiredUnread(Table):
    """Records that expired before anybody had read them: a row a range; of those that are not certain a row each.

    From `offset` to `last_offset`: `records`. `committed`: the committed position passed them; `by_operator`,
    `by_stranger`: who committed that, as in `Commits`. `while_away`: they expired while the trial had stopped all
    members, and nobody had committed past them before. `source`, `seq`, `last_…`: the sends of the first and the last.
    """

    slice: Ints
    offset: Ints
    last_offset: Ints
    records: Ints
    committed: Bools
    by_operator: Bools
    by_stranger: Array
    while_away: Bools
    source: Ints
    seq: Ints
    last_source: Ints
    last_seq: Ints
    why: Array


class Altered(Table):
    """Records whose content is another one than was sent.

    `found_in` "control read": in the log, with the send (`send_…`); "effect": in what the consumer did of it.
    """

    slice: Ints
    offset: Ints
    found_in: Array
    source: Ints
    seq: Ints
    send_source: Ints
    send_seq: Ints


class Misplaced(Table):
    """Records that were "delivered" or "effected" (`what`) under a place where the log holds another (`record_…`)."""

    slice: Ints
    offset: Ints
    what: Array
    source: Ints
    seq: Ints
    record_source: Ints
    record_seq: Ints
    why: Array


class Unsent(Table):
    """What was "delivered" or "effected" (`what`) with an `id` that nobody sent; not certain where the log holds it."""

    slice: Ints
    time_ns: Ints
    offset: Ints
    id: Array
    what: Array
    source: Ints
    seq: Ints
    why: Array


class Unhandled(Table):
    """The readable records that nobody had handled by the snapshot.

    `handled_ns`: when one was handled after that; NEVER where it was not. `overwritten`: the log was cut off, and
    another record written in its place. `committed`: it lies behind the last committed position; `commit`: the first
    commit that covered it, a row of `Commits`. `in_flight_at_crash`: who made that commit crashed before it could
    handle it, or never knew that the commit stood.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    handled_ns: Ints
    overwritten: Bools
    committed: Bools
    commit: Ints
    in_flight_at_crash: Bools
    why: Array


class Redeliveries(Table):
    """What was delivered before, and again: by another ownership epoch, or by one that had done it or a later one; and
    with a sink each further effect, beyond the handlings that lines report. What was tried again is none.

    `floor`: the position that its ownership epoch had to start from. `below_floor`: it lies below that, and nothing
    excuses it. `opened_…`: what proves that the ownership epoch began.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    floor: Ints
    below_floor: Bools
    opened_source: Ints
    opened_seq: Ints


class Retries(Table):
    """Deliveries of a record that its ownership epoch had begun before, and nothing from there on was completed."""

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints


class EffectsAgain(Table):
    """Every effect of a record after its first one (`first_…`), by the record's id: the second has `number` 2."""

    slice: Ints
    offset: Ints
    number: Ints
    source: Ints
    seq: Ints
    first_source: Ints
    first_seq: Ints


class StaleRows(Table):
    """Rows of the consumer's table that ended with the state of an older record (`older_…`) than one that they had
    shown (`offset`); `same_key`: both records are of one key.
    """

    slice: Ints
    offset: Ints
    older_partition: Ints
    older_offset: Ints
    same_key: Bools
    source: Ints
    seq: Ints
    older_seq: Ints
    why: Array


class RefutedLines(Table):
    """Lines of members that a witness contradicts: that a record was "delivered" or "processed", or the partition
    "assigned" (`what`; `offset` is NONE then). `by` "workload", "observer" or "request log".
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    what: Array
    by: Array


class StepsBack(Table):
    """Deliveries, inside one ownership epoch, of a record that had been delivered there, or of one before it.

    What was tried again is none, nor what follows from a log that was cut off. `previous_…`: the delivery of the
    highest offset before it.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    previous_offset: Ints
    previous_source: Ints
    previous_seq: Ints
    why: Array


class PassedOver(Table):
    """Readable records that the deliveries of an ownership epoch jumped over, and that it never took after all.

    `previous_…`, `next_…`: the deliveries before and after the gap; `record_…`: the record.
    """

    slice: Ints
    offset: Ints
    previous_offset: Ints
    previous_source: Ints
    previous_seq: Ints
    next_offset: Ints
    next_source: Ints
    next_seq: Ints
    record_source: Ints
    record_seq: Ints
    why: Array


class HandledLate(Table):
    """Completions, and first effects, of a record after those of a later one.

    By lines: each completion inside its ownership epoch, the first ones across them. `later_…`: the later record's, of
    the same key where there is one (`same_key`; `key`: its name).
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    later_offset: Ints
    later_source: Ints
    later_seq: Ints
    same_key: Bools
    key: Array
    why: Array


class SideBySide(Table):
    """Handlers that began while another one of their partition was at work, which took another batch.

    From `source`, `start_seq` to `end_seq`; the other one's (of the same key where there is one: `same_key`) from
    `other_source`, `other_start` to `other_end`.
    """

    slice: Ints
    offset: Ints
    source: Ints
    start_seq: Ints
    end_seq: Ints
    other_offset: Ints
    other_source: Ints
    other_start: Ints
    other_end: Ints
    same_key: Bools
    why: Array


class Commits(Table):
    """The commits that took effect, in the order of the offsets log.

    `peak`, `peak_row`: the greatest position that stood before it since the last tombstone, and the row of that commit.
    `committer`: the member whose it is; less than 0: nobody's, or nobody knows. `member_name`: its name.
    `owned`: 1 where the committer had the partition at that place of the log, 0 where others had, -1 where nobody
    knows. `own`: the same as True, False and None; an operator's is False. `ever_owned`: somebody had it at some time.
    `owner_…`: the assignment that stood there. `request_…`: the request that asked for it.
    `by_operator`: it came from outside of the members. `by_stranger`: True where nobody can tell whether it did, else
    None.
    `untold`: it was made, or may have been, by a member that was killed before it could say what it had handled; never
    where a sink saw what was done.
    `passes_unhandled`: between the peak and its position lies a record that was never handled.
    `log_end`, `end_…`: the first log end that was read after it (NEVER: none). `longest_end`: the longest ever read.
    `cut_off`: True where the log had been as long as it says, and was cut off later; else None.
    """

    slice: Ints
    committed_offset: Ints
    log_offset: Ints
    effect_ns: Ints
    commit_wall_ns: Ints
    source: Ints
    seq: Ints
    peak: Ints
    peak_row: Ints
    committer: Ints
    member_name: Array
    owned: Ints
    own: Array
    ever_owned: Bools
    owner_source: Ints
    owner_seq: Ints
    request_source: Ints
    request_seq: Ints
    by_operator: Bools
    by_stranger: Array
    untold: Bools
    passes_unhandled: Bools
    log_end: Ints
    end_source: Ints
    end_seq: Ints
    longest_end: Ints
    cut_off: Array


class Falls(Table):
    """The episodes in which the committed offset stood below where it had been.

    `first`: the commit that fell, `back`: the one that recovered, as rows of `Commits`. `restart_inside`: meanwhile an
    ownership epoch opened, or a member started from a position below the peak.
    """

    slice: Ints
    first: Ints
    back: Ints
    restart_inside: Bools


class CommitsAhead(Table):
    """Positions that were committed before every record below them had been handled, each once.

    `seen_by`: "own word", its member's lines alone; else "offsets log". `offset`, `record_…`: the record, of those
    that it passed, that was handled last or never; `done_…`: that handling. `commit_…`: the commit, or the request.
    """

    slice: Ints
    committed_offset: Ints
    offset: Ints
    seen_by: Array
    by_operator: Bools
    by_stranger: Array
    record_source: Ints
    record_seq: Ints
    commit_source: Ints
    commit_seq: Ints
    done_source: Ints
    done_seq: Ints
    why: Array


class LostCommits(Table):
    """Positions that were acknowledged as committed, by the snapshot, and are not in the offsets log; each once.

    `by` "request log": a broker answered so (`source`, `seq`); "own word": only its member says it. `word_…`: the
    member's line. `refused_with`, `refusal_…`: the error of the broker that refused it; NONE: none did.
    """

    slice: Ints
    committed_offset: Ints
    by: Array
    refused_with: Ints
    source: Ints
    seq: Ints
    word_source: Ints
    word_seq: Ints
    refusal_source: Ints
    refusal_seq: Ints
    why: Array


class CommittedLate(Table):
    """Records that had been handled, they and all before them, for more than W before a commit covered them, while
    their member held the partition and no fault was near: a row for each such commit.

    `offset`: the first of them; `records`: how many. `lasted_ns`: how long that one had been handled (`handled_…`)
    when its commit (`commit_…`, of `committed_offset`) took effect.
    """

    slice: Ints
    offset: Ints
    records: Ints
    committed_offset: Ints
    lasted_ns: Ints
    handled_source: Ints
    handled_seq: Ints
    commit_source: Ints
    commit_seq: Ints
    why: Array


class UncommittedReads(Table):
    """Members that were answered records of a partition for more than W, without a commit there that explains it; not
    what an owner had fetched ahead when it lost the partition, nor near a fault on the member.

    `member`, and its `member_name`; `bytes`: how many it was answered, from `offset` on, over `lasted_ns`. `source`,
    `seq`, `last_…`: the first and the last of these answers.
    """

    slice: Ints
    member: Ints
    member_name: Array
    bytes: Ints
    offset: Ints
    lasted_ns: Ints
    source: Ints
    seq: Ints
    last_source: Ints
    last_seq: Ints
    why: Array


class Splits(Table):
    """Where two members owned a partition at once.

    `by` "log": from a place of the offsets log on (`log_offset`). By a record (`offset`) that was begun: "told", after
    its member was told of its loss, or though nobody had given it the partition; "taken", by a member that never had
    it, and fetched it. `first_…`, `second_…`: what proves the one and the other.
    """

    slice: Ints
    order: Ints
    log_offset: Ints
    offset: Ints
    by: Array
    first_source: Ints
    first_seq: Ints
    second_source: Ints
    second_seq: Ints
    why: Array


class WorkAfterRevoke(Table):
    """Work on records by a member after its own revoked or lost callback had returned; not of a record in hand when it
    lost the partition.

    `what` was done: "delivered", "processed", or "effected", where only the sink tells of it. `callback_…`: the
    callback.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    what: Array
    callback_source: Ints
    callback_seq: Ints
    why: Array


class ZombieWork(Table):
    """Work on records by a member that had lost their partition to others, and did not know it, or had fetched them
    before.

    `what` was done: "delivered" or "processed". `given_…`: the assignment that gave the partition to others.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    what: Array
    given_source: Ints
    given_seq: Ints


class StaleCommits(Table):
    """Commits that a broker accepted though they were asked for (`source`, `seq`) with an older `epoch` than their
    member had by then (`current_epoch`, `current_…`), unless KIP-1251 lets them pass.

    `log_offset`, `log_…`: the commit in the offsets log.
    """

    slice: Ints
    log_offset: Ints
    committed_offset: Ints
    epoch: Ints
    current_epoch: Ints
    member_name: Array
    source: Ints
    seq: Ints
    log_source: Ints
    log_seq: Ints
    current_source: Ints
    current_seq: Ints
    why: Array


class AbortedReads(Table):
    """Records whose transaction was aborted (`aborted_…`), and that were "delivered" or "effected" all the same
    (`what`): the first time of each.
    """

    slice: Ints
    aborted_offset: Ints
    aborted_source: Ints
    aborted_seq: Ints
    what: Array
    source: Ints
    seq: Ints


class CommitsOutsideTransactions(Table):
    """Commits that were in no transaction, as in `Commits`.

    `stood`: the position that stood before, or the start of the log; `repeats`: it is the same.
    """

    slice: Ints
    committed_offset: Ints
    log_offset: Ints
    stood: Ints
    repeats: Bools
    by_operator: Bools
    by_stranger: Array
    member_name: Array
    source: Ints
    seq: Ints
    why: Array


class TornTransactions(Table):
    """Transactions of one producer and epoch that were committed in one log (`committed_in`, `committed_…`) and aborted
    in another (`aborted_in`, `aborted_…`); `asked_…`: the EndTxn that was granted.
    """

    slice: Ints
    time_ns: Ints
    producer_id: Ints
    producer_epoch: Ints
    committed_in: Array
    committed_source: Ints
    committed_seq: Ints
    aborted_in: Array
    aborted_source: Ints
    aborted_seq: Ints
    asked_source: Ints
    asked_seq: Ints
    why: Array


T = TypeVar("T", bound=Table)
Makers = Mapping[type[Table], Callable[[Any], Table]]


class _Asked(Generic[T]):
    """A table that is made when it is first asked for."""

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind

    def __get__(self, partitions: Partitions, _: type[Partitions]) -> T:
        made = partitions.derived(partitions.makers[self.kind])
        assert isinstance(made, self.kind)
        return made


class Partitions(Batch):
    """Whole partitions of a trial: the rows that were read of them (`Batch`), and what became of them as tables."""

    lost_writes = _Asked(LostWrites)
    expired_unread = _Asked(ExpiredUnread)
    altered = _Asked(Altered)
    misplaced = _Asked(Misplaced)
    unsent = _Asked(Unsent)
    unhandled = _Asked(Unhandled)
    redeliveries = _Asked(Redeliveries)
    retries = _Asked(Retries)
    effects_again = _Asked(EffectsAgain)
    stale_rows = _Asked(StaleRows)
    refuted_lines = _Asked(RefutedLines)
    steps_back = _Asked(StepsBack)
    passed_over = _Asked(PassedOver)
    handled_late = _Asked(HandledLate)
    side_by_side = _Asked(SideBySide)
    commits = _Asked(Commits)
    falls = _Asked(Falls)
    commits_ahead = _Asked(CommitsAhead)
    lost_commits = _Asked(LostCommits)
    committed_late = _Asked(CommittedLate)
    uncommitted_reads = _Asked(UncommittedReads)
    splits = _Asked(Splits)
    work_after_revoke = _Asked(WorkAfterRevoke)
    zombie_work = _Asked(ZombieWork)
    stale_commits = _Asked(StaleCommits)
    aborted_reads = _Asked(AbortedReads)
    commits_outside_transactions = _Asked(CommitsOutsideTransactions)
    torn_transactions = _Asked(TornTransactions)

    def __init__(self, rows: Table, trial_context: TrialContext, keys: Sequence[str], makers: Makers) -> None:
        super().__init__(rows, trial_context, keys)
        self.makers = makers

    def under(self, trial_context: TrialContext) -> Self:
        """See `Batch.under`."""
        return type(self)(self._as_read, trial_context, self.keys, self.makers)
