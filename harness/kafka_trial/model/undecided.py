"""Why a case is left undecided: every reason that an invariant may give, as the text that users see.

A case is undecided where the evidence allows both that the anomaly is there and that it is not. Its verdict is never
*pass* where the claim forbids the anomaly; `verdict/decide.py` counts the cases by reason. A rule names reasons that
do not matter to a claim (`claim_rule.Rule.never_for`). Why a whole verdict is unknown: `verdict/unknown_reasons.py`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kafka_trial.model.kernels import Array, Bools


class Undecided(StrEnum):
    """The reasons, by what was not known; a `{…}` is filled in by whoever gives it."""

    # What members were kept from saying.
    UNCERTAIN_AFTER_KILL = "committed by a member that was killed with -9 and could not say what it had handled"
    EXPIRED_MAYBE_READ = (
        "expired, not committed past, and a member was killed with -9 that may have read it and could not say so"
    )
    EXPIRED_MAYBE_AWAY = "expired about when the trial stopped all members or started them again: before or after"
    IN_FLIGHT_AT_KILL = "a member that was killed may have taken the record in its last act"
    UNATTRIBUTED = "several group members live in its process, and the line does not say for which of them it speaks"
    REVOKED_LATE = (
        "its member had shown its group that it had given the partition back, and told so only later: print "
        "partitions_revoked before its callback returns"
    )
    LEFT_BEFORE_SEEK = (
        "its member had it before it sought to where it starts, and says nothing of its end: it is not known whether "
        "it had begun with it (print record_delivered when the handler begins, or record_processed with discarded)"
    )
    BEGUN_ANYWHERE = "nobody knows from where the group had to begin on the mirror"
    WHOSE_EFFECT = (
        "a member that nobody had given the partition says that it has it, and may have had the effect, and not its "
        "owner: effects that name their member tell them apart"
    )
    EFFECT_HELD_BACK = "a fault was in force that may have held its effect back on the way to the sink"
    # What came too late, or while nobody could read it.
    HARNESS_STALLED = "it would have been found, had the harness not stood still around it"
    DELAYED = "the machine stood still for over a quarter of the session timeout"
    STOP_DELAYED = "the machine stood still for over a quarter of the time it had to stop"
    STOP_UNDER_FAULT = "a fault was in force while it stopped"
    JOIN_HELD_BACK = (
        "all the while its group held back the answer to its request to join, and consumer.toml does not declare "
        "how long a stop may take ([stop] within_s)"
    )
    READ_LATE = "its member reports that the work was done before the commit, but that line came too late to confirm it"
    DRAIN_SHORT = "not converged, but the drain was shorter than {what}"
    REJOIN_SHORT = "a member was not back in its group, but the trial ended before it had to be: it had {within}"
    REJOIN_BUSY = (
        "a busy machine may explain that a member was not back in its group: it had {within}, and the machine was "
        "busier than at the start, or stood still, for {more:.1f} s"
    )
    SLOW_MACHINE = (
        "a slow machine may explain it: in the drain brokers took {times:.1f} times as long for a commit as before "
        "the faults, and the group and they waited {waited:.1f} s longer for a processor: {what}, and {more:.1f} s"
    )
    BUSY_MACHINE = (
        "a busy machine may explain it: in the drain the group and brokers waited {waited:.1f} s longer for a "
        "processor than while its rate was measured: {what}, and {waited:.1f} s"
    )
    HANDLED_WHEN = "it became too old about when it was handled, or nobody knows when that was, or when it was appended"
    IN_A_BATCH = "it may have waited for others of its batch or transaction, and nobody knows which they were"
    LOAD_TOO_FAST = (
        "more was sent than the group was seen to do in the same time, and nobody can keep up with that "
        "(--load 0.5 sends half)"
    )
    COLD_WHEN = "it became cold about when it was read, or it is not known when it was appended"
    READS_CUT_OFF = "a member read cold data when a broker was stopped, whose last requests may not be in its log"
    NO_PROCESSOR = "threads of its member, or of a broker, may have waited for a processor all the while"
    # Whose a commit is, and in which order it stands.
    MAYBE_OPERATOR = "it was asked for off the lanes, and its request does not tell whether a member or an operator did"
    COMMITTER_UNKNOWN = "it is not known who made a commit on the partition meanwhile"
    BACKWARD_COMMITTER_UNKNOWN = "it is not known who made the backward commit"
    OUTSIDE_COMMITTER_UNKNOWN = "it is not known who made a commit outside of a transaction"
    LATER_COMMITTER_UNKNOWN = (
        "the member says that it was stored, the request log that it was refused; it is not known who made a later one"
    )
    MAY_COME_AGAIN = "a state shows an older record, and the newer one is not committed past: it may still come again"
    UNANSWERED_STATE = (
        "the sink closed the connection of an effect: it is not known whether its state was written, and so not "
        "whether that of an older record was the last"
    )
    OUTPUTS_APART = (
        "the states of one key lie in several partitions of the output topic, between which Kafka promises no order, "
        "and one of these ends with an older record: it is not known which state is the last (give the output the key)"
    )
    KEY_UNORDERED = (
        "a state ended with another record than one before, and it is not known which of the two is newer: the log "
        "does not hold both, or one of them at several places, or no send named the id"
    )
    UNORDERED = (
        "a state ended with another record of its entity, or of another partition, than one before, and it is not "
        "known which of the two is newer: their timestamps and sends disagree, or one of these is not known"
    )
    ANOTHER_TIME = "the position is in the log, but of another time than its acknowledgement"
    OWNER_UNKNOWN = "it is not known who owned the partition"
    ABORT_UNKNOWN = (
        "its member gave an attempt up, and no evidence shows whether its transaction had this partition in it too: "
        "print offsets_committed with success false for a transaction that was aborted, and all its partitions in it"
    )
    SKIP_UNKNOWN = "no evidence shows whether it skipped a record"
    MEMBER_EPOCH_UNKNOWN = "no group record before the commit holds the member's epoch"
    FETCHES_UNKNOWN = "a member went on after it may have been told of its loss, and no witness saw what it fetched"
    # What the logs do not hold.
    NO_LATER_END = "no log end was read after it"
    AFTER_SNAPSHOT = "acknowledged after the snapshot had begun: the control read may have passed its place before"
    PLACE_UNKNOWN = "acknowledged without an offset, in a log that was compacted or whose beginning expired"
    NO_ID_THERE = "the control read holds a record without an id at its place"
    REPLACED = (
        "what was delivered is not in the log, which holds another record there: the cluster may have replaced it"
    )
    FOREIGN_PRODUCER = "its id was never sent, and yet the log holds it: somebody else writes to the topic"
    EXPIRED = "the log start overtook the position: the reset policy decided where to go on"
    ONE_EPOCH = (
        "a producer's transactions ended in both ways under one epoch (its client is without KIP-890), and its "
        "requests do not tell which ended how"
    )
    UNKNOWN_TIMEOUT = "no witness saw the timeout of an open transaction"
    END_UNDER_FAULT = "a fault was in force when the coordinator had to end a transaction"
    HANDED_ON_MEANWHILE = (
        "the record was handed on before or after its commit: the witness could not read the topic it went to just then"
    )
    HANDED_ON_NAMELESS = (
        "the group commits on {topics} too, and {count} records there bear no id of a record of the trial: these may "
        "have been handed on there before they were committed past (pass the header kt-id on, or say under [identity] "
        "where the id is)"
    )
    # What nobody measured.
    UNSAMPLED = "a member's memory was never sampled"
    SIGKILL_AMBIGUOUS = "more members went by signal 9 than the kernel killed"
    OUT_OF_MEMORY = "the machine ran out of memory, and this member was not seen above a limit it claims"


# What only the machine kept from being known: on one with more to spare, the same trial would be decided.
OF_THE_MACHINE = (
    *(Undecided.HARNESS_STALLED, Undecided.DELAYED, Undecided.STOP_DELAYED),
    *(Undecided.SLOW_MACHINE, Undecided.BUSY_MACHINE, Undecided.NO_PROCESSOR),
)


def is_the_machines(reason: str) -> bool:
    """Tells whether a reason, filled in, is one of `OF_THE_MACHINE`."""
    return reason.startswith(tuple(one.partition("{")[0] for one in OF_THE_MACHINE))


def is_certain(why: Array) -> Bools:
    """Returns which rows are certain, by their column `why`."""
    certain: Bools = why == None  # noqa: E711 - of each row
    return certain


def undecided_because(*reasons: tuple[str, Bools]) -> Array:
    """Returns the column `why`: for each row the first of some reasons that holds for it, each with whether it does;
    None where none does."""
    found = np.full(len(reasons[0][1]), None, dtype=object)
    for reason, holds in reversed(reasons):
        found[holds] = reason
    return found
