"""Batches of several partitions: one poll of a client, handed to its listener at once, and tried again at once."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from group_lines import joined, synced
from histories import (
    Line,
    after,
    assigned,
    committed,
    delivered,
    exited,
    finding,
    history,
    processed,
    with_settings,
)
from kafka_trial.judge.failed_batches import COLUMNS, FailedBatches
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import table
from lab.naive.checker import judge

RULES = ("redelivered", "illegal-redelivery", "nonmonotonic-poll", "reordered-key", "poll-skip")


def given(partition: int, *offsets: int) -> list[Line]:
    return [delivered("m0", offset, partition=partition) for offset in offsets]


def done(partition: int, *offsets: int, outcome: str = "done") -> list[Line]:
    return [processed("m0", offset, partition=partition, outcome=outcome) for offset in offsets]


POLL = [*given(0, 0, 1), *given(1, 0, 1)]
WELL = [*POLL, *done(0, 0, 1), *done(1, 0, 1)]
FAILED = [*POLL, *done(0, 0, 1), *done(1, 0), *done(1, 1, outcome="failed")]
SILENT = [*POLL, *done(0, 0, 1), *done(1, 0)]
GIVEN_UP = [*done(0, 0, 1, outcome="dead-lettered"), *done(1, 0, 1, outcome="dead-lettered")]
IN_PARTS = [*given(0, 0), *done(0, 0), *given(0, 1), *done(0, 1), *given(1, 0, 1), *done(1, 0, 1)]
PARTS_OF_ONE = [*given(0, 0, 1, 2), *done(0, 0, 1, 2), *done(0, 2, outcome="failed"), *given(0, 0, 1), *done(0, 0, 1)]
PARTS_OF_ONE += [*given(0, 2), *done(0, 2)]


def broken(*lines: Line, **settings: str) -> dict[str, list[tuple[int, int]]]:
    """The partitions and offsets that each rule names, where it names any, of three records in each of two."""
    of = with_settings(**{"handler": "batch"} | settings)
    found = {
        name: finding(name, [assigned("m0", 0, 1), *lines], records=3, partitions=2, settings=of) for name in RULES
    }
    return {
        name: sorted((int(one.partition or 0), one.attributes["offset"]) for one in told.instances)
        for name, told in found.items()
        if told.count
    }


@pytest.mark.parametrize(
    "lines",
    [
        [*FAILED, *WELL],
        [*FAILED, *FAILED, *FAILED, *WELL],
        [*POLL, *done(1, 0, outcome="failed"), *FAILED, *WELL],
        [*FAILED, *GIVEN_UP],
        [*FAILED, *FAILED, *GIVEN_UP, *given(0, 2), *done(0, 2)],
        [*FAILED, *IN_PARTS],
        [*FAILED, *given(0, 0), *done(0, 0), exited("m0", signal=9)],
        [*POLL, *done(0, 0, outcome="failed"), *done(0, 0, outcome="dead-lettered"), *FAILED[-1:], *WELL],
        [*given(0, 0, 1), *done(0, 0, outcome="failed"), *done(0, 0, outcome="dead-lettered"), *given(0, 0, 1)],
        [*FAILED, *committed(1), *given(0, 1), *given(1, 0, 1), *done(0, 1), *done(1, 0, 1)],
        PARTS_OF_ONE,
    ],
    ids=[
        "it printed that a record failed",
        "several times",
        "the second partition was worked on first",
        "given up",
        "given up, and it goes on",
        "handed out in parts",
        "killed before the second partition came again",
        "its first record was given up in place, and then another one failed",
        "giving up its first record was as far as it came",
        "from the committed position",
        "one partition in parts",
    ],
)
def test_all_partitions_of_a_batch_are_tried_again_when_a_record_of_one_failed(lines: list[Line]) -> None:
    """A container of batch listeners seeks back all partitions of the batch, or hands the same records out again."""
    assert broken(*lines) == {}


ALL = [(0, 0), (0, 1), (1, 0), (1, 1)]
FIRST = ALL[:2]


@pytest.mark.parametrize(
    ("lines", "again"),
    [
        ([*WELL, *WELL], ALL),
        ([*FAILED, *committed(2), after(2), *WELL], FIRST),
        ([*FAILED, *committed(1), after(2), *WELL], FIRST),
        ([*given(0, 0, 1), *done(0, 0, 1), *given(1, 0), *done(1, 0, outcome="failed"), *POLL[:2]], FIRST),
        ([*POLL, *done(0, 0, 1), *POLL[:2], *done(0, 0, 1), *done(1, 0), *done(1, 1, outcome="failed")], FIRST),
        ([*FAILED, *GIVEN_UP, *WELL], ALL),
        ([*FAILED, *IN_PARTS[:2], *committed(2), after(2), *IN_PARTS[2:]], FIRST[1:]),
        ([*FAILED, *WELL, *WELL], ALL),
        ([*SILENT, *WELL], FIRST),
        ([*given(0, 0), *done(0, 0, outcome="failed"), *given(0, 0), *done(0, 0), *given(0, 1, 0)], FIRST[:1]),
    ],
    ids=[
        "no record failed",
        "its partition was committed past it",
        "from below the committed position",
        "a record failed that was handed out later",
        "the record failed later",
        "it had been given up",
        "the other part was committed past",
        "it ended well the second time",
        "nothing says that a record failed",
        "the next batch steps back",
    ],
)
def test_otherwise_what_was_done_is_redelivered(lines: list[Line], again: list[tuple[int, int]]) -> None:
    """Only a failure of that batch, and until it is committed past, lets its records come again."""
    found = broken(*lines)
    assert (found["redelivered"], found["nonmonotonic-poll"]) == (again, again)


def test_a_batch_comes_again_from_its_beginning() -> None:
    """From before it only where nothing there had been committed: 1 is neither its first record nor at the position."""
    before = [*given(0, 0), *done(0, 0), *given(0, 1), *done(0, 1)]
    lines = [*before, *given(0, 2), *given(1, 0), *done(0, 2), *done(1, 0, outcome="failed")]
    assert broken(*lines, *given(0, 2), *given(1, 0)) == {}
    assert broken(*lines, *given(0, 1, 2))["redelivered"] == [(0, 1), (0, 2)]


def test_whoever_takes_single_records_is_handed_the_failed_one_again() -> None:
    """Nothing was declared: the records that were done are no part of what failed."""
    assert broken(*FAILED, *WELL, handler="record")["redelivered"] == [(0, 0), (0, 1), (1, 0)]


# --- the batches of a file -------------------------------------------------------------------------------------------

KINDS = {"d": Kind.DELIVERED, "p": Kind.PROCESSED, "f": Kind.FAILED}


def failed(*lines: str, block: int = 100) -> list[tuple[int, int, int]]:
    """Slice, seq and seq of the failure of the rows of a file: each line a kind, a slice and an offset, and a client,
    if it names one; read in blocks of so many lines."""
    gathered = FailedBatches()
    read = [
        (int(line[3:] or 0), int(line[1]), int(line[2]), seq, seq, KINDS[line[0]]) for seq, line in enumerate(lines)
    ]
    for begin in range(0, len(read), block):
        columns = np.array(read[begin : begin + block], np.int64).T
        gathered.take(table(**dict(zip(COLUMNS, columns, strict=True))))
    rows = gathered.rows()
    return sorted(zip(rows["slice"].tolist(), rows["seq"].tolist(), rows["failed_seq"].tolist(), strict=True))


@pytest.mark.parametrize("block", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        ("d00 d10 p00 f10 d00 d10 p00 p10", [(0, 0, 3), (1, 1, 3)]),
        ("d00 d10 p00 d00 d10 p00 p10", []),
        ("d00 d10 p00 p10 f00", [(0, 0, 4), (1, 1, 4)]),
        ("d00 d10 p00", []),
        ("d00 d10 p00 p10 d01 d11 p01 p11", []),
        ("d00 f00 d10 p10", []),
        ("p00 f10 d00 p00", []),
        ("d001 d102 p001 f102 d001", []),
        ("d001 d102 d101 p101 f001 p102", [(0, 0, 4), (1, 2, 4)]),
    ],
    ids=[
        "a record failed",
        "a record without an end",
        "all were done, and then it failed",
        "no more lines",
        "all ended well",
        "each alone",
        "without deliveries",
        "of two clients",
        "of one of two clients",
    ],
)
def test_a_file_is_read_in_blocks(lines: str, rows: list[tuple[int, int, int]], block: int) -> None:
    """Wherever one ends."""
    assert failed(*lines.split(), block=block) == rows


def test_no_lines_are_kept_of_what_has_ended() -> None:
    """But the last batch of each client, which may go on."""
    gathered = FailedBatches()
    lines = [(0, slice_, 0, seq, seq, kind) for seq, (slice_, kind) in enumerate([(0, 2), (1, 2), (0, 3), (1, 3)] * 50)]
    gathered.take(table(**dict(zip(COLUMNS, np.array(lines, np.int64).T, strict=True))))
    assert len(gathered._open) <= 4


# --- of several clients in one process --------------------------------------------------------------------------------


def by(client: str, line: Line) -> Line:
    return replace(line, fields=line.fields | {"client_id": client, "member_id": f"id-{client}", "connection": client})


def granted(client: str, *partitions: int, generation: int = 1) -> list[Line]:
    """A client of m0's process joins, and is given these partitions."""
    return [by(client, joined("m0", generation=generation)), by(client, synced("m0", *partitions))]


APART = [*granted("a", 0), *granted("b", 1), *granted("a", 0, generation=2)]
TOGETHER = [*granted("a", 0, 1), *granted("b"), *granted("a", 0, 1, generation=2)]
OF_BOTH = [*granted("a", 0), *granted("b", 1), *granted("a", 1, generation=2)]


@pytest.mark.parametrize(
    ("log", "again"),
    [(APART, FIRST), (TOGETHER, []), (OF_BOTH, [])],
    ids=["of two clients", "of one", "nobody knows of which"],
)
def test_what_two_unnamed_clients_are_handed_at_once_is_no_batch(log: list[Line], again: list[tuple[int, int]]) -> None:
    """Their lines stand side by side; a record of b's batch fails, and a does all of its own again."""
    lines = [*log, assigned("m0", 0, 1), *FAILED, *WELL]
    settings = with_settings(handler="batch")
    events = history(lines, records=3, partitions=2)
    cases = judge_events(events, settings).findings["redelivered"].instances
    assert sorted((int(one.partition or 0), one.attributes["offset"]) for one in cases) == again
    naive = judge(events, asdict(settings)).anomalies["redelivered"]
    assert sorted((one[1] or 0, one[2]) for one in naive) == again


@pytest.mark.parametrize("block", [1, 3, 100])
def test_each_partition_in_which_a_record_failed_has_a_row(block: int) -> None:
    """It may be another client's."""
    rows = [(slice_, slice_, failed_seq) for slice_ in (0, 1, 2) for failed_seq in (4, 5)]
    assert failed("d00", "d10", "d20", "p00", "f10", "f20", block=block) == rows
