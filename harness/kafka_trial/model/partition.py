"""What became of some partitions: the tables that anomalies ask, and all that they ask.

A table has a row for each thing that happened, or lasted. It is made when it is first asked for, and so is each of its
columns, by the modules beside this one (`makers.py`). What witnesses saw, how far they are believed, and what a fault
may explain is settled there.

`slice` is the number of the partition among these. An `offset` is a record's, a `committed_offset` is one more than
that of the last record that is done; NONE: it is not known. Instants and lengths (`…_ns`) are nanoseconds, instants on
the harness's monotonic clock; NEVER: it never was. A member or a row of another table that is absent is -1, and so is
the source of an absent event: `source` and `seq` name the event that proves the row, `…_source` and `…_seq` others.
`why`: the reason for which a row is not certain (`undecided.py`); None where it is. Words such as W, control read and
snapshot stand in docs/glossary.md.
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
    it. `offset` is NONE where no answer named it.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    why: Array


class ExpiredUnread(Table):
    """Records that expired before anybody had read them: a row for a range; one for each record that is not certain.

    From `offset` to `last_offset`: `records` of them. `committed`: the committed offset passed them; `by_operator`,
    `maybe_operator`: who committed that, as in `Commits`. `while_away`: they expired while the trial had stopped all
    members, and the committed offset had not passed them before. The events are the sends of the first and of the last.
    """

    slice: Ints
    offset: Ints
    last_offset: Ints
    records: Ints
    committed: Bools
    by_operator: Bools
    maybe_operator: Array
    while_away: Bools
    source: Ints
    seq: Ints
    last_source: Ints
    last_seq: Ints
    why: Array


class CorruptRecords(Table):
    """Records whose content is another one than was sent.

    `found_in` "control read": in the log, with the send (`send_…`); "effect": in what the consumer did with it.
    """

    slice: Ints
    offset: Ints
    found_in: Array
    source: Ints
    seq: Ints
    send_source: Ints
    send_seq: Ints


class MisplacedRecords(Table):
    """Deliveries and effects that name an offset and an id, where the log has another record at that offset
    (`record_…`). `what`: "delivered" or "effected".
    """

    slice: Ints
    offset: Ints
    what: Array
    source: Ints
    seq: Ints
    record_source: Ints
    record_seq: Ints
    why: Array


class Phantoms(Table):
    """Deliveries and effects with an `id` that nobody sent. `what`: "delivered" or "effected"."""

    slice: Ints
    time_ns: Ints
    offset: Ints
    id: Array
    what: Array
    source: Ints
    seq: Ints
    why: Array


class Unhandled(Table):
    """The readable records that no member had handled by the snapshot.

    `handled_ns`: when one was handled after that. `after_truncation`: it was written where the log had been cut off; a
    commit may have passed the record before it. `committed`: its offset is below the last committed one; `commit`: the
    first commit that passed it, a row of `Commits`. `in_flight_at_crash`: the member that made this commit crashed
    before it could handle the record, or never learned that the commit was stored.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    handled_ns: Ints
    after_truncation: Bools
    committed: Bools
    commit: Ints
    in_flight_at_crash: Bools
    why: Array


class Redeliveries(Table):
    """Repeated deliveries of a record. A delivery counts if another ownership epoch had the record before; inside one
    ownership epoch it counts if this record or a higher one had been completed there. Retries do not count. With a
    sink, each further effect that lines do not explain is a row too.

    `floor`: the committed offset from which its ownership epoch had to start; NONE: not known, or progress is not in
    Kafka. `below_floor`: it lies below that, another ownership epoch had the record, and no log that was cut off
    explains it. `opened_…`: the proof that the ownership epoch began. Uncertain if one of the two was left before its
    member sought to its start (`seeks.py`), and no sink shows whether it had been begun; or if it is none where an
    effect is of a member without a right (`rights.py`), and not of the owner.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    floor: Ints
    below_floor: Bools
    opened_source: Ints
    opened_seq: Ints
    why: Array


class Retries(Table):
    """Handlings that an ownership epoch began again, where neither this record nor a higher one had been completed; and
    those of a batch that was handed out again because it did not end well.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints


class DuplicateEffects(Table):
    """Every acknowledged effect of a record after its first one (`first_…`), by the record's id: the second is
    `number` 2.
    """

    slice: Ints
    offset: Ints
    number: Ints
    source: Ints
    seq: Ints
    first_source: Ints
    first_seq: Ints


class StaleStates(Table):
    """Rows of the consumer's table, or keys at its sink, that ended with the state of an older record than one before.

    `offset`: the newer record; `older_partition` (Kafka's number) and `older_offset`: the older one. `same_key`: both
    have the same key. `older_seq`: the change back, in the file of `source`.
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


class FalseReports(Table):
    """Lines of members that a witness contradicts. `what` they say: "delivered", "processed", or "assigned", which is
    of the partition and has no offset. `by`: the witness, "workload", "observer" or "request log".
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    what: Array
    by: Array


class NonmonotonicPolls(Table):
    """Deliveries, inside one ownership epoch, of a record that had been delivered there, or of a lower one.

    Retries are none, nor what follows from a log that was cut off. `highest_…`: the delivery of the highest offset
    before it.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    highest_offset: Ints
    highest_source: Ints
    highest_seq: Ints
    why: Array


class PollSkips(Table):
    """Readable records that the deliveries of an ownership epoch jumped over, and that it never took afterwards.

    `previous_…`: the delivery of the highest offset below them; `next_…`: the one that jumped; `record_…`: the record.
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


class HandledOutOfOrder(Table):
    """Completions, and first effects, of a record after those of a higher one.

    Inside one ownership epoch every completion is compared, across them the first completion of each record.
    `higher_…`: the completion or effect of the higher record. It has the same key where there is such a one; `same_key`
    says so. `key`: the record's key as text.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    higher_offset: Ints
    higher_source: Ints
    higher_seq: Ints
    same_key: Bools
    key: Array
    why: Array


class OverlappingHandlers(Table):
    """Handlers that began while a handler of another batch of their partition was at work.

    The handler lasted from line `start_seq` to line `end_seq` of its file `source`, the other one from
    `other_start_seq` to `other_end_seq` of `other_source`. `same_key`: their records have the same key.
    """

    slice: Ints
    offset: Ints
    source: Ints
    start_seq: Ints
    end_seq: Ints
    other_offset: Ints
    other_source: Ints
    other_start_seq: Ints
    other_end_seq: Ints
    same_key: Bools
    why: Array


class Commits(Table):
    """The commits that took effect, in the order of the offsets log.

    `effect_ns`: when it took effect. `commit_wall_ns`: its time by the broker's wall clock. `peak`, `peak_row`: the
    greatest committed offset that stood before it since the last tombstone, and the row of that commit.
    `committer`: the member that made it; -1: not known, -2: an operator, -3: several members fit, -4: a member or an
    operator. `member_name`: the name of the member. `by_operator`: it came from outside of the members.
    `maybe_operator`: True where the evidence does not show whether it did, else None.
    `owned`: 1 where the committer had the partition at that place of the log, 0 where others had, -1 where it is not
    known; `own` is the same as True, False and None, and False for an operator. `owner_…`: the assignment that stood
    there. `partition_was_owned`: somebody had the partition at some time.
    `request_…`: the request that asked for the commit. `reporter_killed`: the committer was killed, or may have been,
    before it could report its work; False if the trial has a sink. `passes_unhandled`: between the peak and its
    committed offset lies a record that was never handled.
    `log_end`, `end_…`: the first log end that was read after it (NEVER: none). `longest_end`: the greatest log end that
    was read at all, or that records show. `cut_off`: True where the log had been as long as it says, and was cut off
    later; else None.
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
    partition_was_owned: Bools
    owner_source: Ints
    owner_seq: Ints
    request_source: Ints
    request_seq: Ints
    by_operator: Bools
    maybe_operator: Array
    reporter_killed: Bools
    passes_unhandled: Bools
    log_end: Ints
    end_source: Ints
    end_seq: Ints
    longest_end: Ints
    cut_off: Array


class CommitRegressions(Table):
    """The episodes in which the committed offset stood below where it had been.

    `fell_row`: the commit with which it fell, `recovered_row`: the one with which it was back, as rows of `Commits`.
    `deleted`: a tombstone ended the episode. `restart_inside`: meanwhile an ownership epoch opened, or a member started
    from an offset below the peak. `asked_earlier`: whenever it fell, the client had asked for that commit before it
    asked for the one before.
    """

    slice: Ints
    fell_row: Ints
    recovered_row: Ints
    deleted: Bools
    restart_inside: Bools
    asked_earlier: Bools


class CommitsAhead(Table):
    """Committed offsets that took effect before every record below them had been handled, each once.

    `shown_by`: "own word", the lines of its member alone; else "offsets log". `offset`, `record_…`: of the records that
    it passed, the one that was handled last, or never; `done_…`: that handling. `commit_…`: the commit, or the request.
    """

    slice: Ints
    committed_offset: Ints
    offset: Ints
    shown_by: Array
    by_operator: Bools
    maybe_operator: Array
    record_source: Ints
    record_seq: Ints
    commit_source: Ints
    commit_seq: Ints
    done_source: Ints
    done_seq: Ints
    why: Array


class LostCommits(Table):
    """Committed offsets that were acknowledged by the snapshot, and that are not in the offsets log; each once.

    `acknowledged_by` "request log": a broker answered so; "own word": only its member says it. `word_…`: the line of
    the member. `refused_with`, `refusal_…`: the error code with which a broker refused it, where one did.
    """

    slice: Ints
    committed_offset: Ints
    acknowledged_by: Array
    refused_with: Ints
    source: Ints
    seq: Ints
    word_source: Ints
    word_seq: Ints
    refusal_source: Ints
    refusal_seq: Ints
    why: Array


class CommittedLate(Table):
    """One row for each commit that came late. When it took effect, it passed records that had been ready for more than
    W, while their member held the partition and no fault was in force. A record is ready when it and all records below
    it have been handled.

    `offset`: the first of them; `records`: how many. `lasted_ns`: how long that one had been ready; `handled_…`: its
    own handling. `commit_…`: the commit, of `committed_offset`.
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


class LateRecords(Table):
    """Records that waited longer than claimed (`lag_age_max_s`), from their append until they were first handled, or,
    of a silent consumer, committed past; until the snapshot, where they still wait. One row for a stretch of records
    of one partition that are alike.

    `offset`, `last_offset`, `records`: the first and the last of them, and how many. Of the one that waited longest,
    `longest_wait_offset`: from `since_ns` to `until_ns`, of which `counted_ns` counted, and `allowed_ns` were allowed:
    as long as is claimed, and as it stood behind others. `source`, `seq`: the record; `over_…`: what ended its wait.
    `member_name`: who had the partition when it became too old. `excused_by`: what explains the wait, in words:
    the first fault whose time was left out of the count, or the load; None where nothing does.
    """

    slice: Ints
    offset: Ints
    last_offset: Ints
    longest_wait_offset: Ints
    records: Ints
    since_ns: Ints
    until_ns: Ints
    counted_ns: Ints
    allowed_ns: Ints
    member_name: Array
    excused_by: Array
    source: Ints
    seq: Ints
    over_source: Ints
    over_seq: Ints
    why: Array


class RogueReaders(Table):
    """Members that were answered records of a partition for more than W, without a commit there that explains it; not
    what an owner had fetched ahead when it lost the partition, nor near a fault on the member.

    `bytes`: how many they were answered, from `offset` on, over `lasted_ns`. `client_id`: the client outside groups
    that was answered them beside one in a group, in the same member; None where there is no such client. The events are
    the first and the last of these answers.
    """

    slice: Ints
    member: Ints
    member_name: Array
    client_id: Array
    bytes: Ints
    offset: Ints
    lasted_ns: Ints
    source: Ints
    seq: Ints
    last_source: Ints
    last_seq: Ints
    why: Array


class OwnershipSplits(Table):
    """Where two members owned a partition at once.

    `by` "log": two members had it from a place of the offsets log on (`log_offset`). The others are about a record
    (`offset`). "told": a member began it after a broker had informed it of its loss, or under an assignment that no
    broker had made. "taken": a member fetched and began it, and never owned the partition. `order`: by what the rows of
    a partition are sorted. `first_…`, `second_…`: the events of the one and of the other. Rows that are not certain say
    no more than their partition.
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


class UncertainAborts(Table):
    """Lines with which a member gave an attempt up, where it is not certain that its transaction had the partition."""

    slice: Ints
    source: Ints
    seq: Ints


class OwnerlessStretches(Table):
    """Stretches in which nobody owned the partition, though its group had members and was at rest for longer than the
    bound: no group record was written, and no fault was in force, from `since_ns` to `until_ns`.

    `members`: how many the group had. `log_offset`: the place of the group record before it, which is the event.
    """

    slice: Ints
    since_ns: Ints
    until_ns: Ints
    log_offset: Ints
    members: Ints
    source: Ints
    seq: Ints
    why: Array


class WorkAfterCallback(Table):
    """Work by a member on a partition after its own revoked or lost callback had returned; not a handler that was at
    work when the partition was lost (revoked is no excuse). That it has the partition again is one where nobody else
    had it meanwhile.

    `what` was done: "delivered", "processed", or "effected" where only the sink shows it. `callback_…`: the callback.
    """

    slice: Ints
    offset: Ints
    source: Ints
    seq: Ints
    what: Array
    callback_source: Ints
    callback_seq: Ints
    why: Array


class UninformedWork(Table):
    """Work by a member on a partition that others had been given, before it was informed, or on records that it had
    fetched before that.

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
    """Commits that a broker accepted though they were asked for with an older `epoch` than their member had by then
    (`current_epoch`, `current_…`), unless KIP-1251 lets them pass. `log_offset`, `log_…`: the commit in the offsets
    log.
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
    """Commits that were in no transaction; further columns as in `Commits`.

    `stood`: the committed offset that stood before, or the start of the log; `repeats`: it is the same.
    """

    slice: Ints
    committed_offset: Ints
    log_offset: Ints
    stood: Ints
    repeats: Bools
    by_operator: Bools
    maybe_operator: Array
    member_name: Array
    source: Ints
    seq: Ints
    why: Array


class TornTransactions(Table):
    """Transactions of one producer and epoch that were committed in one log (`committed_in`, "topic-partition") and
    aborted in another (`aborted_in`). Their `slice` is that of no partition.

    `time_ns`: when the first of them ended. The events are the two ends, and the EndTxn that was granted (`asked_…`).
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
    corrupt_records = _Asked(CorruptRecords)
    misplaced_records = _Asked(MisplacedRecords)
    phantoms = _Asked(Phantoms)
    unhandled = _Asked(Unhandled)
    redeliveries = _Asked(Redeliveries)
    retries = _Asked(Retries)
    duplicate_effects = _Asked(DuplicateEffects)
    stale_states = _Asked(StaleStates)
    false_reports = _Asked(FalseReports)
    nonmonotonic_polls = _Asked(NonmonotonicPolls)
    poll_skips = _Asked(PollSkips)
    handled_out_of_order = _Asked(HandledOutOfOrder)
    overlapping = _Asked(OverlappingHandlers)
    commits = _Asked(Commits)
    commit_regressions = _Asked(CommitRegressions)
    commits_ahead = _Asked(CommitsAhead)
    lost_commits = _Asked(LostCommits)
    committed_late = _Asked(CommittedLate)
    late_records = _Asked(LateRecords)
    rogue_readers = _Asked(RogueReaders)
    ownership_splits = _Asked(OwnershipSplits)
    ownerless_stretches = _Asked(OwnerlessStretches)
    work_after_callback = _Asked(WorkAfterCallback)
    uninformed_work = _Asked(UninformedWork)
    stale_commits = _Asked(StaleCommits)
    uncertain_aborts = _Asked(UncertainAborts)
    aborted_reads = _Asked(AbortedReads)
    commits_outside_transactions = _Asked(CommitsOutsideTransactions)
    torn_transactions = _Asked(TornTransactions)

    def __init__(self, rows: Table, trial_context: TrialContext, keys: Sequence[str], makers: Makers) -> None:
        super().__init__(rows, trial_context, keys)
        self.makers = makers

    def under(self, trial_context: TrialContext) -> Self:
        """See `Batch.under`."""
        return type(self)(self._as_read, trial_context, self.keys, self.makers)
