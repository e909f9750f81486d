"""Slice rows: what an invariant sees of a history. One row is one event as far as it concerns one slice.

The judge makes them from the history (`judge/history_reader.py`), events with several entries becoming a row for each
entry; Spark shuffles them by `slice`. All columns are numbers, but for the key of a record; names stand in
`TrialContext`. Times are nanoseconds of the harness's monotonic clock, wall times those of whoever stamped them. A
number that is not there is `kernels.NONE`.

| kind | offset | place | wall_ns | until | who | flag |
| --- | --- | --- | --- | --- | --- | --- |
| RECORD (control read; `key`) | of the record | id hash of its id | appended | | | |
| ABORTED_RECORD (its transaction was) | of the record | id hash of its id | | | | |
| DELIVERED (`key`: its id, where UNSENT) | of the record | id hash of its id | | | | UNSENT, READ |
| PROCESSED | of the record | | | | | its Outcome |
| FAILED (will be tried again) | of the record | | | | | |
| EFFECT (outcome ok, info) | of the record of its id | in an output topic | appended there | | its partition | 1: ok |
| ASSIGNED, REVOKED, LOST | | | | | | |
| COMMIT_INVOKE, _OK, _FAIL | committed offset | | | | | |
| COMMITTED | committed offset | log offset | commit time | | | 1: in a transaction |
| COMMIT_ABORTED, _TOMBSTONE | | log offset | | | | |
| COMMIT_TAKEN (its transaction was) | | log offset | of the marker | place of the marker | | |
| GRANT | assignment epoch (4.3+) | log offset | of the record | log offset | member id | protocol |
| COMMIT_REQUEST, FETCH_ANSWER | committed offset | 1: in a transaction | answer sent | duration_ns | lane | error |
| COMMIT_EPOCH (accepted) | committed offset | epoch asked with | answer sent | duration_ns | member id | |
| LOG_START, LOG_END | position | | | | | |
| FETCH_ASKED | position asked | duration_ns | answer sent | bytes answered | lane | error |
| FETCH_DROPPED (asked no longer) | position 0 | | answer sent | | lane | |
| SENT (ack; not in the control read; `key`) | acknowledged | id hash of its id | | | | |
| ALTERED (record not as it was sent) | of the record | seq of its send | | | source of its send | |
| ARRIVED (effect, ok; `key`: its id, where UNSENT) | of the record | id hash of its id | | | | all of them |
| CLAIMED (place an effect claims) | claimed | id hash of its id | | | | UNSENT, READ |
| SENT_LATER (its record was sent after that line) | of the record | | | when it was sent | | |
| UNREADABLE (a bad line that names it) | of the record | | | | | |
| ENDED_COMMITTED, ENDED_ABORTED | producer id | of the marker | of the marker | | a log's number | producer epoch |
| ASKED_COMMIT, ASKED_ABORT | producer id | 1: an own epoch | answer sent | duration_ns | lane | producer epoch |

Rows of a member's own word have in `who` the number of the client that the line names (a place in the trial context'
own_clients), else -1. Rows of requests have the number of their `connection` (a place in the trial context'
connections), all others -1.

Of what a member said itself `wall_ns` is the line's own time, on the harness's clock and as far as it can be believed,
and `until` is when the lines had been read that were read before it (`judge/own_times.py`).

An EFFECT at the HTTP sink has in `who` the member that it came from, -1 unknown; of an output topic the wall time is
its broker's, where the topic says so.

A GRANT says that the offsets log gives the partition to a member id from `place` on: until the next record of the
same member (`until`; protocol CONSUMER, or CONSUMER_PENDING for a revocation that is pending), or until the next record
that lists the partition (protocol CLASSIC).

A commit in a transaction takes effect where and when the marker ends it (COMMIT_TAKEN): one without is pending.

An id is known by its id hash, a number (`judge/id_index.py`); the flags tell what no slice can: UNSENT (the workload
never invoked a send of it), READ (the control read has it, here or elsewhere), and of an effect whose body must be
the record's value, SAME or OTHER than was sent. An effect lies in the slice of its record: by the control read, else
by the acknowledgement, else NOWHERE (a slice of no partition), with no offset.

Transactions are of no partition either. A row ENDED_… is the marker that ended what a producer had written into one
log (a partition of a topic, or of the offsets log), a row ASKED_… an EndTxn request that was granted. `place` 1 of
these: the answer carried a new epoch, so that producer id and epoch name one transaction (KIP-890).
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np


class Kind(IntEnum):
    """The kind of a row."""

    RECORD = 1
    DELIVERED = 2
    PROCESSED = 3
    EFFECT = 4
    ASSIGNED = 5
    REVOKED = 6
    LOST = 7
    COMMIT_INVOKE = 8
    COMMIT_OK = 9
    COMMIT_FAIL = 10
    COMMITTED = 11
    COMMIT_ABORTED = 12
    COMMIT_TOMBSTONE = 13
    GRANT = 14
    COMMIT_REQUEST = 15
    FETCH_ANSWER = 16
    LOG_START = 17
    LOG_END = 18
    FETCH_ASKED = 19
    FETCH_DROPPED = 20
    SENT = 21
    ALTERED = 22
    ARRIVED = 23
    CLAIMED = 24
    COMMIT_EPOCH = 25
    ABORTED_RECORD = 26
    ENDED_COMMITTED = 27
    ENDED_ABORTED = 28
    ASKED_COMMIT = 29
    ASKED_ABORT = 30
    COMMIT_TAKEN = 31
    SENT_LATER = 32
    UNREADABLE = 33
    FAILED = 55


class Known(IntFlag):
    """What is known of the id of a row, and of the body of an effect."""

    UNSENT = 1
    READ = 2
    SAME = 4
    OTHER = 8


NOWHERE = -1  # the partition of the slice of effects and transactions, which belong to no partition
IN_TRANSACTION = 1  # the flag of a commit that was part of a transaction


class Outcome(IntEnum):
    """What became of a record that was completed: the flag of a completion."""

    DONE = 0
    DISCARDED = 1
    DEAD_LETTERED = 2


OUTCOMES = {"done": Outcome.DONE, "discarded": Outcome.DISCARDED, "dead-lettered": Outcome.DEAD_LETTERED}


class Protocol(IntEnum):
    """Which record of the offsets log a assignment record stands in."""

    CLASSIC = 0
    CONSUMER = 1
    CONSUMER_PENDING = 2


CALLBACKS = (Kind.ASSIGNED, Kind.REVOKED, Kind.LOST)
OWN_WORD = (
    *CALLBACKS,
    Kind.DELIVERED,
    Kind.PROCESSED,
    Kind.FAILED,
    Kind.COMMIT_INVOKE,
    Kind.COMMIT_OK,
    Kind.COMMIT_FAIL,
)

NUMBERS = {
    "slice": np.int32,
    "kind": np.int8,
    "source": np.int32,
    "seq": np.int64,
    "time_ns": np.int64,
    "offset": np.int64,
    "place": np.int64,
    "wall_ns": np.int64,
    "until": np.int64,
    "who": np.int32,
    "flag": np.int32,
    "connection": np.int32,
}
COLUMNS = (*NUMBERS, "key")
