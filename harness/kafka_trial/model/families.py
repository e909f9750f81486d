"""Families: what the rows of each kind of event say, column by column, under names of their own.

Physically all rows are alike (`rows.py`): they travel through Parquet as one table. A family is
some kinds whose rows say the same things. It names the column that carries each of them, so that the judge's readers
build its rows by these names (`judge/arrow_rows.py`), and `Batch.of` hands them out under these names and no others.

Of every row: `slice` (inside a batch its number there, from 0), `kind`, `source` (number of the file), `seq` (of the
event in its file) and `time_ns`, on the harness's monotonic clock. A name ends in `_wall_ns` where the time is by the
wall clock of whoever stamped it. What is absent in a row is what `rows.ABSENT` says for the column that carries it
(NONE for most), unless stated otherwise.

An id is known by its id hash, a number (`judge/record_id_index.py`); `known` tells what no slice can: bits of `Known`.
An arrival lies in the slice of its record: by the control read, else by the acknowledgement, else NOWHERE (a slice of
no partition), without an offset. Transactions are of no partition either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kafka_trial.model.kernels import Array, Bools
from kafka_trial.model.rows import ABSENT, CALLBACKS, COMMON, LINE_KINDS, Kind
from kafka_trial.model.table import Columns, Table, unmade


@dataclass(frozen=True)
class Column:
    """What a column says, and the physical column that `carrier` names. Two may share one: one of them holds for the
    rows that have a column `beside`, the other for those `without` it."""

    carrier: str
    meaning: str
    optional: bool = False
    beside: str | None = None
    without: str | None = None


@dataclass(frozen=True)
class FamilyTable(Table):
    """Rows of one family, or what several have in common."""

    family: str

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            raise KeyError(f"{self.family} have no column {name!r}; they have {', '.join(self.columns)}")
        return self.columns[name]


@dataclass(frozen=True, eq=False)
class Family:
    """Some kinds of rows whose own columns say the same things."""

    name: str
    kinds: tuple[Kind, ...]
    columns: Mapping[str, Column]

    @property
    def carriers(self) -> tuple[str, ...]:
        """The physical columns that its rows use."""
        return (*COMMON, *dict.fromkeys(column.carrier for column in self.columns.values()))

    def read(self, rows: Table) -> FamilyTable:
        """Returns physical rows, all of them of this family, under its names."""
        carried = unmade(rows)
        found = {name: carried[name] for name in COMMON}
        for name, column in self.columns.items():
            shared = column.beside or column.without
            found[name] = self._values(column, rows) if shared else carried[column.carrier]
        return FamilyTable(Columns(found), self.name)

    def carried(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        """Returns columns of this family under the names of the physical columns.

        Raises:
            ValueError: one is not of this family, or one that it must have is missing.
        """
        needed = {name for name, column in self.columns.items() if not column.optional}
        strange, missing = columns.keys() - self.columns.keys(), needed - columns.keys()
        if strange or missing:
            wrong = [f"no column {name!r}" for name in sorted(strange)] + [f"not without {name!r}" for name in missing]
            raise ValueError(f"{self.name} have {', '.join(wrong)}; their own are {', '.join(self.columns)}")
        found: dict[str, Array] = {}
        for name, column in self.columns.items():
            if name in columns and column.beside is not None:
                there = ~_absent(columns[column.beside], self.columns[column.beside])
                found[column.carrier] = np.where(there, columns[name], found[column.carrier])
            elif name in columns:
                found[column.carrier] = columns[name]
        return found

    def _values(self, column: Column, rows: Table) -> Array:
        """Returns a column that shares its carrier with another one."""
        values, other = rows[column.carrier], self.columns[column.beside or column.without or ""]
        absent = _absent(rows[other.carrier], other)
        mine = absent if column.beside is None else ~absent
        return np.where(mine, values, values.dtype.type(ABSENT[column.carrier]))


def _absent(values: Array, column: Column) -> Bools:
    absent: Bools = values == ABSENT[column.carrier]
    return absent


def families_of(kinds: Iterable[Kind]) -> list[Family]:
    """Returns the families to which some kinds belong."""
    return list(dict.fromkeys(_FAMILY_OF[kind] for kind in kinds))


def in_common(parts: Sequence[FamilyTable]) -> FamilyTable:
    """Returns the rows of several families, with those columns that all of them have."""
    names = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return FamilyTable(columns, " and ".join(part.family for part in parts))


OFFSET: Final = Column("offset", "offset of the record")
ID_HASH: Final = Column("place", "id hash of the record's id; NONE: it has none")
KNOWN: Final = Column("flag", "what is known of the id, and of the body of an effect: bits of `Known`")
COMMITTED_OFFSET: Final = Column("offset", "the committed offset: that of the next record")
LOG_OFFSET: Final = Column("place", "offset in the offsets log")
ANSWERED: Final = Column("wall_ns", "when the broker had sent its answer, by its clock")
DURATION: Final = Column("until", "how long the broker took for the request; 0: it does not say")
LANE: Final = Column("who", "the lane (a listener of its own for each member) on which it was asked")
ERROR_CODE: Final = Column("flag", "Kafka's error code of the answer, or of this partition in it; 0: none")
CONNECTION: Final = Column("connection", "a place in the trial context's `connections`")

# Of an answer that the request log tells.
ANSWER: Final[Mapping[str, Column]] = {
    "answered_wall_ns": ANSWERED,
    "duration_ns": DURATION,
    "lane": LANE,
    "error_code": ERROR_CODE,
    "connection": CONNECTION,
}

# Of the lines of a member.
LINE_COLUMNS: Final[Mapping[str, Column]] = {
    "own_ns": Column("wall_ns", "when the line says that it was, on the harness's clock, if that can be believed"),
    "read_before_ns": Column("until", "when the lines had been read that were read before it (`judge/line_times.py`)"),
    "own_client": Column("who", "the client that the line names: a place in the trial context's `own_clients`"),
}

LINES = Family("lines of members", LINE_KINDS, LINE_COLUMNS)  # what the four families of them have in common

RECORDS = Family(
    "records of the control read",
    (Kind.RECORD,),
    {
        "offset": OFFSET,
        "id_hash": ID_HASH,
        "append_wall_ns": Column("wall_ns", "when its broker appended it"),
        "key": Column("key", "its key: a place in the batch's `keys`, -1 for none"),
    },
)
ABORTED_RECORDS = Family(
    "records whose transaction was aborted",
    (Kind.ABORTED_RECORD,),
    {
        "offset": OFFSET,
        "id_hash": ID_HASH,
        "append_wall_ns": Column("wall_ns", "when its broker appended it"),
    },
)
DELIVERIES = Family(
    "deliveries",
    (Kind.DELIVERED,),
    {
        "offset": OFFSET,
        "id_hash": Column("place", "id hash of the id that the line gives the record; NONE: it gives none"),
        "known": KNOWN,
        "unsent_id": Column(
            "key", "the id that the line gives, where `known` has UNSENT: a place in the batch's `keys`"
        ),
        **LINE_COLUMNS,
    },
)
COMPLETIONS = Family(
    "completions",  # FAILED: the attempt failed, and the record will be tried again
    (Kind.PROCESSED, Kind.FAILED),
    {
        "offset": OFFSET,
        "outcome": Column("flag", "of PROCESSED what became of the record: an `Outcome`; of FAILED 0"),
        **LINE_COLUMNS,
    },
)
REBALANCE_CALLBACKS = Family("rebalance callbacks", CALLBACKS, LINE_COLUMNS)
CLIENT_COMMITS = Family(
    "commits by the members' own lines",
    (Kind.COMMIT_INVOKE, Kind.COMMIT_OK, Kind.COMMIT_FAIL),
    {
        "committed_offset": COMMITTED_OFFSET,
        "error_code": Column("flag", "Kafka's error code, where the line gives one for the partition; 0: it does not"),
        **LINE_COLUMNS,
    },
)
EFFECTS = Family(
    "effects",  # of the record of its id
    (Kind.EFFECT,),
    {
        "offset": OFFSET,
        "acknowledged": Column("flag", "1: the sink acknowledged it; 0: it may have been, nobody was told"),
        "output_offset": Column("place", "its offset in an output topic; NONE: it is in none"),
        "member": Column("who", "the member that it came from, at the HTTP sink", without="output_offset"),
        "output_partition": Column("who", "its partition in an output topic", beside="output_offset"),
        "append_wall_ns": Column("wall_ns", "when its broker appended it, or its database committed it, if told"),
    },
)
ARRIVALS = Family(
    "acknowledged effects, by their ids",  # in the slice of the record, wherever it came from
    (Kind.ARRIVED,),
    {
        "offset": Column("offset", "offset of the record; NONE: nobody knows where it lies"),
        "id_hash": ID_HASH,
        "known": KNOWN,
        "member": Column("who", "the member that it came from, at the HTTP sink; -1: not told"),
        "unsent_id": Column("key", "the id, where `known` has UNSENT: a place in the batch's `keys`"),
    },
)
ROLLED_BACK_ROWS = Family(
    "states that ended with an older record's",  # in the slice of the newest record that they had shown
    (Kind.ROLLED_BACK,),
    {
        "offset": Column("offset", "offset of the newest record that the row had shown"),
        "older_offset": Column("place", "offset of the record with which it ended"),
        "older_slice": Column("who", "the slice of that record: a place in the trial context's `slices`"),
        "older_seq": Column("until", "seq of the change with which it ended, in the same file"),
        "keyed": Column("flag", "1: both records have the same key; 0: they are of one entity, and have none"),
        "last_state": Column("wall_ns", "whether it is certain that it ended so: a `LastState`"),
    },
)
HANDED_ON_RECORDS = Family(
    "records that the group handed on",  # in the slice that they were handed on from; time_ns: when that was read
    (Kind.HANDED_ON,),
    {
        "offset": OFFSET,
        "absent_ns": Column("place", "when its new topic was last asked and did not hold it yet; NONE: never"),
        "outcome": Column("flag", "0; of a copy whose record a line completes where it came from, its `Outcome` + 1"),
    },
)
CLAIMS = Family(
    "places that effects claim",
    (Kind.CLAIMED,),
    {
        "offset": Column("offset", "the offset that the effect claims to be of"),
        "id_hash": ID_HASH,
        "known": KNOWN,
    },
)
MISSING_SENDS = Family(
    "acknowledged sends that the control read does not hold",
    (Kind.MISSING_SEND,),
    {
        "offset": Column("offset", "the acknowledged offset; NONE: the acknowledgement gives none"),
        "id_hash": ID_HASH,
        "key": Column("key", "the key: a place in the batch's `keys`, -1 for none"),
    },
)
MOVED_KEYS = Family(
    "acknowledged sends of keys that came to several partitions",  # time_ns: when it was acknowledged
    (Kind.REPARTITIONED,),
    {
        "offset": OFFSET,
        "key_hash": Column("place", "the key as a number that is the same in all slices"),
        "sent_ns": Column("until", "when it was sent"),
        "send_seq": Column("wall_ns", "seq of its send in the file of its acknowledgement"),
    },
)
ALTERED_RECORDS = Family(
    "records that are not as they were sent",
    (Kind.ALTERED,),
    {
        "offset": OFFSET,
        "send_source": Column("who", "number of the file with its send"),
        "send_seq": Column("place", "seq of its send in that file"),
    },
)
EARLY_LINES = Family(
    "lines and effects of records that were sent only afterwards",
    (Kind.SENT_LATER,),
    {"offset": OFFSET, "sent_ns": Column("until", "when the record was sent, on the harness's clock")},
)
FAILED_BATCHES = Family(
    "failed batches of several partitions",  # `seq`: of the first delivery of its records in the slice
    (Kind.BATCH_FAILED,),
    {
        "failed_seq": Column("place", "the first line that tells so; of a record without an end, its delivery"),
        "failed_slice": Column("who", "the slice of that record, as the trial context numbers it; -1: not known"),
    },
)
UNREADABLE_LINES = Family("unreadable lines that name a record", (Kind.UNREADABLE,), {"offset": OFFSET})
OFFSETS_LOG_COMMITS = Family(
    "commits in the offsets log",  # COMMIT_ABORTED: its transaction was
    (Kind.COMMITTED, Kind.COMMIT_ABORTED, Kind.COMMIT_TOMBSTONE),
    {
        "committed_offset": COMMITTED_OFFSET,
        "log_offset": LOG_OFFSET,
        "commit_wall_ns": Column("wall_ns", "when the coordinator took it"),
        "in_transaction": Column("flag", "IN_TRANSACTION: part of a transaction, pending until it ends; 0: of none"),
    },
)
COMMITTED_IN_TRANSACTION = Family(
    "commits whose transaction was committed",  # that is where and when they take effect
    (Kind.COMMIT_TAKEN,),
    {
        "log_offset": Column("place", "offset in the offsets log of the commit"),
        "marker_log_offset": Column("until", "offset there of the marker that ended its transaction"),
        "marker_wall_ns": Column("wall_ns", "when the marker was appended"),
    },
)
ANSWERED_COMMITS = Family(
    "commits whose producer was soon answered that their transaction is committed",  # by EndTxn
    (Kind.COMMIT_ANSWERED,),
    {
        "log_offset": Column("place", "offset in the offsets log of the commit"),
        "answered_wall_ns": ANSWERED,
        "duration_ns": DURATION,
        "lane": LANE,
        "connection": CONNECTION,
    },
)
ASSIGNMENT_RECORDS = Family(
    "assignment records",  # from `log_offset` on the partition is given to a member id
    (Kind.ASSIGNMENT_RECORD,),
    {
        "log_offset": LOG_OFFSET,
        "until_log_offset": Column(
            "until",
            "offset there of the next record of the same member; NEVER: none. Of Protocol.CLASSIC always NEVER: it "
            "holds until the next record that lists the partition",
        ),
        "append_wall_ns": Column("wall_ns", "when it was appended"),
        "member_id": Column("who", "a place in the trial context's `member_ids`"),
        "protocol": Column("flag", "the record's `Protocol`"),
        "assignment_epoch": Column("offset", "epoch at which the partition was assigned; NONE: Kafka before 4.3"),
    },
)
COMMIT_REQUESTS = Family(
    "requests for commits",
    (Kind.COMMIT_REQUEST,),
    {
        "committed_offset": COMMITTED_OFFSET,
        "in_transaction": Column("place", "IN_TRANSACTION: asked by TxnOffsetCommit; NONE: by OffsetCommit"),
        **ANSWER,
    },
)
COMMIT_EPOCHS = Family(
    "member ids and epochs of accepted commits",  # where the request gives a member id
    (Kind.COMMIT_EPOCH,),
    {
        "committed_offset": COMMITTED_OFFSET,
        "member_epoch": Column(
            "place", "epoch (classic: generation) with which it was asked for; NONE: without one, or by TxnOffsetCommit"
        ),
        "answered_wall_ns": ANSWERED,
        "duration_ns": DURATION,
        "member_id": Column("who", "a place in the trial context's `member_ids`"),
        "connection": CONNECTION,
    },
)
POSITION_ANSWERS = Family(
    "answers to OffsetFetch",
    (Kind.OFFSET_FETCH_ANSWER,),
    {
        "committed_offset": Column("offset", "the committed offset that was answered; below 0: nothing is committed"),
        **ANSWER,
    },
)
FETCHES = Family(
    "fetches",  # FETCH_DROPPED: the connection fetches the partition no longer
    (Kind.FETCH_ASKED, Kind.FETCH_DROPPED),
    {
        "fetch_position": Column("offset", "offset from which on records were asked for; of FETCH_DROPPED 0"),
        "duration_ns": Column("place", "how long the broker took; of FETCH_DROPPED NONE"),
        "answered_wall_ns": ANSWERED,
        "answered_bytes": Column("until", "how many bytes of records the answer held"),
        "lane": LANE,
        "error_code": ERROR_CODE,
        "connection": CONNECTION,
    },
)
LOG_BOUNDS = Family(
    "log starts and ends",
    (Kind.LOG_START, Kind.LOG_END),
    {"position": Column("offset", "the log start offset, or the log end offset: that of the next record")},
)
REFUTED_ENDS = Family(
    "log ends that an acknowledged record refutes",  # seq: of the observer's line; time_ns: when it was asked for
    (Kind.REFUTED_END,),
    {"offset": Column("offset", "of a record beyond it, acknowledged before; it lies there still")},
)
TRANSACTION_ENDS = Family(
    "ends of transactions",  # the marker that ended what a producer had written into one log
    (Kind.ENDED_COMMITTED, Kind.ENDED_ABORTED),
    {
        "producer_id": Column("offset", "id of the producer"),
        "producer_epoch": Column("flag", "epoch of the producer"),
        "log": Column("who", "a place in the trial context's `logs`: a partition of a topic, or of the offsets log"),
        "marker_offset": Column("place", "offset of the marker in that log"),
        "append_wall_ns": Column("wall_ns", "when the marker was appended"),
    },
)
END_TXN_REQUESTS = Family(
    "granted EndTxn requests",
    (Kind.ASKED_COMMIT, Kind.ASKED_ABORT),
    {
        "producer_id": Column("offset", "id of the producer"),
        "producer_epoch": Column("flag", "epoch of the producer"),
        "own_epoch": Column("place", "1: the answer carried a new epoch, so that id and epoch name one transaction"),
        "answered_wall_ns": ANSWERED,
        "duration_ns": DURATION,
        "lane": LANE,
    },
)
BLOCKING_REQUESTS = Family(
    "answers that members wait for",  # of any API but a fetch, which may wait for records, and heartbeats
    (Kind.BLOCKING_REQUEST,),
    {"answered_wall_ns": ANSWERED, "duration_ns": DURATION, "lane": LANE, "error_code": ERROR_CODE},
)

FAMILIES: Final = (
    *(RECORDS, ABORTED_RECORDS, MISSING_SENDS, MOVED_KEYS, ALTERED_RECORDS, LOG_BOUNDS, REFUTED_ENDS),
    *(DELIVERIES, COMPLETIONS, REBALANCE_CALLBACKS, CLIENT_COMMITS, EARLY_LINES, UNREADABLE_LINES),
    FAILED_BATCHES,
    *(EFFECTS, ARRIVALS, CLAIMS, ROLLED_BACK_ROWS, HANDED_ON_RECORDS),
    *(OFFSETS_LOG_COMMITS, COMMITTED_IN_TRANSACTION, ANSWERED_COMMITS, ASSIGNMENT_RECORDS),
    *(COMMIT_REQUESTS, COMMIT_EPOCHS, POSITION_ANSWERS, FETCHES),
    *(TRANSACTION_ENDS, END_TXN_REQUESTS, BLOCKING_REQUESTS),
)
_FAMILY_OF = {kind: family for family in FAMILIES for kind in family.kinds}
