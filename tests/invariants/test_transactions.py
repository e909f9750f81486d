"""Reading what was taken back, and progress outside of transactions: literal histories, each of at most eight lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from histories import (
    Line,
    aborted,
    assigned,
    committed,
    delivered,
    effect,
    finding,
    judged,
    log_start,
    not_judged,
    on,
    sent,
    taken_back,
    tombstone,
    undecided,
)
from histories import with_settings as settings_with

IN_TRANSACTION = settings_with(progress="transaction", delivery="exactly-once")
WITH_SINK = settings_with(sink="http")


def test_aborted_read_holds() -> None:
    """What was delivered and effected is committed; record 1 was taken back and left alone."""
    lines = [taken_back(1), assigned("m0"), delivered("m0", 0), effect(0)]
    assert judged("aborted-read", lines, settings=WITH_SINK, control={1: None}) == []


def test_aborted_read_is_broken_by_a_delivery() -> None:
    """Once a record, proved by the log and by the first delivery."""
    lines = [taken_back(1), assigned("m0"), delivered("m0", 0), delivered("m0", 1), delivered("m0", 1)]
    found = finding("aborted-read", lines, control={1: None})
    assert [(dict(one.attributes), one.events) for one in found.instances] == [
        ({"offset": 1, "what": "delivered"}, ("transactions#0", "consumer-m0-0#3"))
    ]


@pytest.mark.parametrize("acknowledged", [True, False])
def test_aborted_read_is_broken_by_an_effect(*, acknowledged: bool) -> None:
    """The sink saw the id, in the partition where it was taken back, whether or not its send was acknowledged."""
    lines = [*([sent(1)] if acknowledged else []), taken_back(1), effect(1)]
    found = finding("aborted-read", lines, settings=WITH_SINK, control={1: None})
    assert [(dict(one.attributes), one.partition) for one in found.instances] == [
        ({"offset": 1, "what": "effected"}, 0)
    ]


def test_aborted_read_only_looks_broken_where_the_id_was_written_again() -> None:
    """r1 was taken back at offset 0 and committed at offset 1: the effect is that one's."""
    again = [taken_back(1), effect(1)]
    assert judged("aborted-read", again, settings=WITH_SINK, records=3, control={0: None}) == []


def test_aborted_read_only_looks_broken_in_another_partition() -> None:
    """Offset 1 of another partition was taken back."""
    lines = [taken_back(1, partition=1), assigned("m0"), delivered("m0", 1)]
    assert judged("aborted-read", lines, partitions=2) == []


def test_aborted_read_is_not_missed_where_nothing_was_taken_back() -> None:
    """An ordinary topic: there is nothing that one could wrongly read, whatever is claimed."""
    missing = finding("aborted-read", [assigned("m0")], settings=settings_with(delivery="exactly-once")).not_judged
    assert missing is not None
    assert (missing.applies, "belonged to an aborted transaction" in missing.because) == (False, True)


def test_aborted_read_is_missed_where_nobody_tells_what_was_read() -> None:
    """Records were taken back, and the consumer says nothing."""
    silent = settings_with(events="none", sink="none", delivery="exactly-once")
    missing = finding("aborted-read", [taken_back(1)], settings=silent).not_judged
    assert missing is not None
    assert missing.applies


def test_a_record_that_was_taken_back_is_no_lost_write() -> None:
    """Its send was acknowledged, and its transaction was aborted: the log is right not to show it."""
    assert judged("lost-write", [sent(0), sent(1), taken_back(1)], control={1: None}) == []


def test_offset_outside_transaction_holds() -> None:
    """Every position was part of a transaction."""
    lines = [committed(1, producer=7), committed(2, producer=7)]
    assert judged("offset-outside-transaction", lines, settings=IN_TRANSACTION) == []


def test_offset_outside_transaction_is_broken() -> None:
    """m0 commits 2 by itself, on from the 1 that a transaction had committed."""
    found = finding(
        "offset-outside-transaction", [committed(1, producer=7), committed(2, by="m0")], settings=IN_TRANSACTION
    )
    assert [(dict(one.attributes), one.events) for one in found.instances] == [
        (
            {
                "committed_offset": 2,
                "log_offset": 3,
                "stood": 1,
                "repeats": False,
                "by_operator": False,
                "member": "m0",
            },
            ("offsets#2",),
        )
    ]


def test_offset_outside_transaction_is_broken_backwards() -> None:
    """A position that falls is as much outside."""
    lines = [committed(2, producer=7), committed(1, by="m1")]
    assert [one["stood"] for one in judged("offset-outside-transaction", lines, settings=IN_TRANSACTION)] == [2]


def test_offset_outside_transaction_counts_from_what_took_effect() -> None:
    """The transaction that had committed 2 was aborted: 2 is new."""
    lines = [committed(1, producer=7), aborted(2), committed(2, by="m0")]
    found = judged("offset-outside-transaction", lines, settings=IN_TRANSACTION)
    assert [(one["stood"], one["repeats"]) for one in found] == [(1, False)]


@pytest.mark.parametrize("before", [committed(3, producer=7), [log_start(3)], [log_start(3), tombstone()]])
def test_offset_outside_transaction_only_looks_broken_where_it_repeats(before: list) -> None:  # type: ignore[type-arg]
    """The position stood already, or it is where one starts without any: nothing is changed by it."""
    found = judged("offset-outside-transaction", [before, committed(3, by="m0")], settings=IN_TRANSACTION)
    assert [one["repeats"] for one in found] == [True]


def test_offset_outside_transaction_only_looks_broken_by_an_operator() -> None:
    """Somebody outside the lanes resets the group: found, and not the consumer's."""
    lines = [committed(2, producer=7), committed(0, by="operator")]
    found = judged("offset-outside-transaction", lines, settings=IN_TRANSACTION)
    assert [(one["by_operator"], "member" in one) for one in found] == [(True, False)]


def test_offset_outside_transaction_is_undecided_where_nobody_knows_who() -> None:
    """No request explains the commit: it may have been an operator's."""
    assert undecided("offset-outside-transaction", [committed(2)], settings=IN_TRANSACTION) == 1


@pytest.mark.parametrize("progress", ["kafka", "sink", "checkpoint", "none"])
def test_offset_outside_transaction_is_not_about_other_consumers(progress: str) -> None:
    """Who does not say that its progress is in transactions is not judged, and nothing is missed."""
    declared = settings_with(progress=progress, delivery="exactly-once")
    missing = finding("offset-outside-transaction", [committed(2, by="m0")], settings=declared).not_judged
    assert missing is not None
    assert (missing.applies, missing.because) == (
        False,
        f"its progress is not in its transactions (progress: {progress})",
    )


def test_offset_outside_transaction_is_missed_without_the_offsets_log() -> None:
    """Its progress is in transactions, and the witness did not read to the end."""
    because = not_judged("offset-outside-transaction", [committed(2)], settings=IN_TRANSACTION, whole=False)
    assert "the witness offsets" in because


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([taken_back(1), delivered("m0", 1), effect(1)], [(1, "delivered")]),
        ([taken_back(1), effect(1), delivered("m0", 1)], [(1, "effected")]),
        ([taken_back(0), taken_back(1), effect(1), delivered("m0", 0)], [(0, "delivered"), (1, "effected")]),
        ([delivered("m0", 0), taken_back(0)], [(0, "delivered")]),
        ([taken_back(0), delivered("m0", 1), effect(1)], []),
        ([taken_back(0), on(1, delivered("m0", 0))], []),
    ],
    ids=[
        "delivered and effected",
        "effected and delivered",
        "two records",
        "before it was taken back",
        "another record",
        "another partition",
    ],
)
def test_aborted_read_is_one_finding_a_record(lines: list[Line], told: list[tuple[int, str]]) -> None:
    """By its first delivery or effect."""
    found = judged("aborted-read", lines, settings=WITH_SINK, records=3, control={0: None, 1: None}, partitions=2)
    assert [(one["offset"], one["what"]) for one in found] == told


def test_aborted_read_is_told_of_each_partition() -> None:
    """The same offset was taken back in both, and read in both."""
    there = [replace(taken_back(0, partition=1), fields=taken_back(0, partition=1).fields | {"id": "r9"})]
    lines = [taken_back(0), *there, delivered("m0", 0), on(1, delivered("m0", 0))]
    found = finding("aborted-read", lines, control={0: None}, partitions=2)
    assert [(one.partition, one.events) for one in found.instances] == [
        (0, ("transactions#0", "consumer-m0-0#1")),
        (1, ("transactions#1", "consumer-m0-0#2")),
    ]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([committed(0, by="m0")], [(0, True)]),
        ([committed(2, by="m0"), committed(2, by="m0")], [(0, False), (2, True)]),
        ([committed(2, producer=7), committed(1, by="m0"), committed(2, by="m0")], [(2, False), (1, False)]),
        ([committed(2, producer=7), tombstone(), committed(2, by="m0")], [(0, False)]),
        ([[on(1, line) for line in committed(2, producer=7)], committed(2, by="m0")], [(0, False)]),
        ([log_start(2), on(1, log_start(1)), committed(1, by="m0")], [(2, False)]),
        ([committed(2), committed(2)], [(2, True)]),
    ],
    ids=[
        "the beginning",
        "twice",
        "back and forth",
        "deleted before it",
        "of another partition",
        "the beginning of another partition",
        "repeated by nobody knows whom",
    ],
)
def test_offset_outside_transaction_tells_what_stood(
    lines: list[Line | list[Line]], told: list[tuple[int, bool]]
) -> None:
    """Just before it, or where one starts without any."""
    found = finding("offset-outside-transaction", lines, settings=IN_TRANSACTION, partitions=2).instances
    assert [(one.attributes["stood"], one.attributes["repeats"]) for one in found] == told
