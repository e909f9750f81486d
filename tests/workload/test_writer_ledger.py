"""Which promises to producers a reader of committed records finds broken, from literal ledgers and readings."""

from __future__ import annotations

import pytest

from kafka_trial.workload.writers import Ledger, Transaction


def ledger(*outcomes: str, sends: tuple[str, ...] = ()) -> Ledger:
    """Transactions of two records each, by their outcomes, and sends by theirs."""
    return Ledger([Transaction(number, 2, outcome) for number, outcome in enumerate(outcomes)], list(sends))


@pytest.mark.parametrize(
    ("outcome", "read", "wanted"),
    [
        ("committed", ["0-0", "0-1"], []),
        (
            "committed",
            ["0-1"],
            ["of committed transactions not every record can be read: transaction 0 (1 of 2 records)"],
        ),
        ("committed", [], ["of committed transactions not every record can be read: transaction 0 (0 of 2 records)"]),
        ("aborted", [], []),
        ("aborted", ["0-0"], ["records of aborted transactions are read as committed: transaction 0 (1 of 2 records)"]),
        ("info", [], []),
        ("info", ["0-0", "0-1"], []),
        (
            "info",
            ["0-0"],
            ["of transactions whose end nobody knows a part is read as committed: transaction 0 (1 of 2 records)"],
        ),
        ("committed", ["0-0", "0-1", "0-1"], ["records of transactions are there more than once: transaction 0"]),
        ("committed", ["0-0", "0-1", "7-0"], ["there are records that nobody wrote: 7-0"]),
    ],
)
def test_a_transaction_is_read_whole_or_not_at_all(outcome: str, read: list[str], wanted: list[str]) -> None:
    """Committed: whole; aborted: nothing; where nobody knows: either; and each record once."""
    assert ledger(outcome).new_breaches({one: read.count(one) for one in read}, {}) == wanted


@pytest.mark.parametrize(
    ("outcome", "times", "wanted"),
    [
        ("ok", 1, []),
        ("ok", 0, ["acknowledged records of an idempotent producer are gone: send 0"]),
        ("ok", 2, ["records of an idempotent producer are there more than once: send 0 (2 times)"]),
        ("info", 0, []),
        ("info", 1, []),
        ("info", 2, ["records of an idempotent producer are there more than once: send 0 (2 times)"]),
    ],
)
def test_an_acknowledged_send_is_there_once(outcome: str, times: int, wanted: list[str]) -> None:
    """One whose fate nobody knows is there once at most."""
    assert ledger(sends=(outcome,)).new_breaches({}, {"0": times} if times else {}) == wanted


def test_a_breach_is_told_once() -> None:
    """It is of the stage in which it was first read; what breaks later is told then."""
    kept = ledger(*["committed"] * 5)
    whole = {name: 1 for one in kept.transactions for name in one.ids()}
    first = {name: 1 for name in whole if name != "0-0"}
    assert len(kept.new_breaches(first, {})) == 1
    assert kept.new_breaches(first, {}) == []
    assert kept.new_breaches({}, {}) == [
        "of committed transactions not every record can be read: transaction 1 (0 of 2 records), "
        "transaction 2 (0 of 2 records), transaction 3 (0 of 2 records) and 1 more"
    ]


def test_what_was_done_is_counted() -> None:
    """Transactions by how they ended, sends by what is known of them."""
    told = ledger("committed", "aborted", "info", "committed", sends=("ok", "info")).counts()
    assert told == {"aborted": 1, "committed": 2, "info": 1, "acknowledged": 1, "sent": 2}
