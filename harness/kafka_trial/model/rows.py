"""Slice rows: what an invariant sees of a history. One row is one event as far as it concerns one slice.

The judge makes them from the history (`judge/history_reader.py`), events with several entries becoming a row for each
entry; Spark deals them by `slice`. All columns are numbers, but for the text `key`; names stand in `TrialContext`.
Times are nanoseconds. Every kind of event has the same physical columns (NUMBERS, and `key`), and what they carry is
the kind's affair: `families.py` gives each of them its name and its meaning. Nothing but that module, and who writes
or reads whole rows, knows them by their physical names.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np

from kafka_trial.model.kernels import NONE


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
    ASSIGNMENT_RECORD = 14
    COMMIT_REQUEST = 15
    OFFSET_FETCH_ANSWER = 16
    LOG_START = 17
    LOG_END = 18
    FETCH_ASKED = 19
    FETCH_DROPPED = 20
    MISSING_SEND = 21
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
    ROLLED_BACK = 34
    REPARTITIONED = 35
    BLOCKING_REQUEST = 36
    HANDED_ON = 37
    BATCH_FAILED = 38
    COMMIT_ANSWERED = 39
    REFUTED_END = 40
    FAILED = 55


class Known(IntFlag):
    """What is known of the id of a row, and of the body of an effect."""

    UNSENT = 1
    READ = 2
    SAME = 4
    OTHER = 8


NOWHERE = -1  # the partition of the slice of effects and transactions, which belong to no partition
IN_TRANSACTION = 1  # of a commit that was part of a transaction, or of the request for one


class Outcome(IntEnum):
    """What became of a record that was completed."""

    DONE = 0
    DISCARDED = 1
    DEAD_LETTERED = 2


OUTCOMES = {"done": Outcome.DONE, "discarded": Outcome.DISCARDED, "dead-lettered": Outcome.DEAD_LETTERED}


class LastState(IntEnum):
    """Whether it is certain with which state a row ended, and if not, why."""

    CERTAIN = 0
    UNANSWERED = 1  # the sink closed the connection of an effect, which may have been written
    APART = 2  # its states lie in several partitions of the output topic
    KEY_UNORDERED = 3  # where two records of a key lie does not tell which is newer
    UNORDERED = 4  # nor when two of an entity, or of two partitions, were sent


class Protocol(IntEnum):
    """Which record of the offsets log a assignment record stands in."""

    CLASSIC = 0
    CONSUMER = 1
    CONSUMER_PENDING = 2


CALLBACKS = (Kind.ASSIGNED, Kind.REVOKED, Kind.LOST)
LINE_KINDS = (
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
COMMON = ("slice", "kind", "source", "seq", "time_ns")  # these say the same of every kind
# What a physical column holds that a row's family does not use, or of which nothing is known.
ABSENT = {"offset": NONE, "place": NONE, "wall_ns": NONE, "until": 0, "who": -1, "flag": 0, "connection": -1}
