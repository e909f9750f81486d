"""Torn transactions: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import Line, after, end_asked, ended, finding, judged, lasting, not_judged, undecided
from histories import with_settings as settings_with

IN_TRANSACTION = settings_with(progress="transaction", delivery="exactly-once")


def test_torn_transaction_holds() -> None:
    """One transaction committed in both logs, the next one aborted in both."""
    first = [end_asked("commit"), ended("commit", 0), ended("commit", None)]
    second = [end_asked("abort", epoch=2), ended("abort", 0, epoch=2), ended("abort", None, epoch=2)]
    assert judged("torn-transaction", [*first, *second], settings=IN_TRANSACTION) == []


def test_torn_transaction_is_broken() -> None:
    """Its output was committed, its offsets were aborted."""
    lines = [end_asked("commit"), ended("commit", 0), ended("abort", None)]
    found = finding("torn-transaction", lines, settings=IN_TRANSACTION)
    assert [(dict(one.attributes), one.partition, one.events) for one in found.instances] == [
        (
            {
                "producer_id": 7,
                "producer_epoch": 1,
                "committed_in": "out-0",
                "aborted_in": "__consumer_offsets-0",
            },
            None,
            ("transactions#0", "offsets#0", "requests-b0#2"),
        )
    ]


def test_torn_transaction_is_found_once_whatever_the_number_of_logs() -> None:
    """Three logs took it, two did not."""
    ends = [ended("commit", log) for log in (0, 1, 2)] + [ended("abort", log) for log in (3, None)]
    lines = [end_asked("commit"), *ends]
    assert [one["committed_in"] for one in judged("torn-transaction", lines, settings=IN_TRANSACTION)] == ["out-0"]


def test_torn_transaction_only_looks_broken_by_two_producers() -> None:
    """One committed, another aborted, under the same epoch."""
    lines = [end_asked("commit"), ended("commit", 0), end_asked("abort", producer=8), ended("abort", None, producer=8)]
    assert judged("torn-transaction", lines, settings=IN_TRANSACTION) == []


def test_torn_transaction_only_looks_broken_under_one_epoch_for_many() -> None:
    """A client without epochs of their own committed one transaction, and aborted the next, in other logs."""
    first = [end_asked("commit", own=False), ended("commit", 0), after(1)]
    second = [end_asked("abort", own=False), ended("abort", None)]
    assert judged("torn-transaction", [*first, *second], settings=IN_TRANSACTION) == []


def test_torn_transaction_only_looks_undecided_where_an_end_is_followed_at_once_by_the_next_request() -> None:
    """The commit was asked for 10 ms before it was written, and an abort 10 ms after that."""
    first = [end_asked("abort", own=False), ended("abort", 0), after(1)]
    second = [end_asked("commit", own=False), ended("commit", 0), end_asked("abort", own=False), ended("abort", None)]
    assert judged("torn-transaction", [*first, *second], settings=IN_TRANSACTION) == []


def test_torn_transaction_only_looks_broken_by_what_its_coordinator_aborted() -> None:
    """Timed out, or fenced: nobody asked for it, and its epoch is another."""
    lines = [end_asked("commit"), ended("commit", 0), ended("commit", None), ended("abort", 0, epoch=2)]
    assert judged("torn-transaction", lines, settings=IN_TRANSACTION) == []


def test_torn_transaction_only_looks_broken_where_a_marker_was_written_twice() -> None:
    """A new coordinator ends what the one before it had ended already."""
    lines = [end_asked("commit"), ended("commit", 0), ended("commit", None), ended("commit", 0)]
    assert judged("torn-transaction", lines, settings=IN_TRANSACTION) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], []),
        ([end_asked("commit", own=False)], []),
        ([end_asked("commit", own=False)], [end_asked("abort", own=False, error=51)]),
    ],
    ids=["nobody saw a request", "one request only", "the other was refused"],
)
def test_torn_transaction_is_undecided_where_an_epoch_does_not_name_one(first: list[Line], second: list[Line]) -> None:
    """Ends of both sorts under one epoch, and no granted request for one of them."""
    lines = [*first, ended("commit", 0), after(1), *second, ended("abort", None)]
    assert undecided("torn-transaction", lines, settings=IN_TRANSACTION) == 1


def test_torn_transaction_only_looks_broken_where_a_coordinator_died_before_it_answered() -> None:
    """The one after it commits what it finds decided, and the client asks again a second later."""
    first = [end_asked("abort", own=False), ended("abort", 0), ended("abort", None), after(5)]
    second = [ended("commit", 0), ended("commit", None), after(1), end_asked("commit", own=False)]
    assert judged("torn-transaction", [*first, *second], settings=IN_TRANSACTION) == []


def test_torn_transaction_is_undecided_where_the_request_after_an_end_made_ends_of_its_own() -> None:
    """That commit was not the one of out-0: nobody had asked for it when it was written."""
    first = [end_asked("abort", own=False), ended("abort", 0), ended("abort", None), after(5)]
    second = [ended("commit", 0), after(1), end_asked("commit", own=False), ended("commit", None)]
    assert undecided("torn-transaction", [*first, *second], settings=IN_TRANSACTION) == 1


def test_torn_transaction_is_missed_where_nobody_followed_the_outputs() -> None:
    """The offsets log alone cannot show a tear."""
    because = not_judged("torn-transaction", [ended("commit", None)], settings=IN_TRANSACTION)
    assert because == "no transaction was seen to end in a topic that the consumer writes to"


def test_torn_transaction_is_not_about_other_consumers() -> None:
    """A consumer without transactions is not judged, and nothing is missed."""
    missing = finding("torn-transaction", [], settings=settings_with(delivery="exactly-once")).not_judged
    assert missing is not None
    assert not missing.applies


def test_torn_transactions_are_told_of_each_producer() -> None:
    """7's output was committed and its offsets aborted, 8's the other way round, both under the same epoch."""
    asks = [end_asked("commit"), end_asked("abort", by="m1", producer=8)]
    first = [ended("commit", 0), ended("abort", 1, producer=8), ended("abort", None), ended("commit", None, producer=8)]
    found = finding("torn-transaction", [*asks, *first], settings=IN_TRANSACTION)
    assert [(one.attributes["committed_in"], one.attributes["aborted_in"], one.events) for one in found.instances] == [
        ("__consumer_offsets-0", "out-1", ("offsets#1", "transactions#1", "requests-b0#3")),
        ("out-0", "__consumer_offsets-0", ("transactions#0", "offsets#0", "requests-b0#2")),
    ]


def test_torn_transaction_is_told_of_each_epoch() -> None:
    """The first and the third were torn, the second was not."""
    lines = [
        line
        for epoch, state in ((1, "abort"), (2, "commit"), (3, "abort"))
        for line in (end_asked("commit", epoch=epoch), ended("commit", 0, epoch=epoch), ended(state, None, epoch=epoch))
    ]
    found = judged("torn-transaction", lines, settings=IN_TRANSACTION)
    assert [one["producer_epoch"] for one in found] == [1, 3]


COMMITTED = [end_asked("commit", own=False), ended("commit", 0), after(2)]
ABORTED, ASKED = ended("abort", None), end_asked("abort", own=False)


@pytest.mark.parametrize(
    ("lines", "cases"),
    [
        ([ABORTED, after(0.045), ASKED, ended("abort", 0)], 0),
        ([ABORTED, after(0.046), ASKED, ended("abort", 0)], 1),
        ([ASKED, after(9), ABORTED], 0),
        ([ASKED, after(1), end_asked("commit", own=False), after(0.034), ABORTED], 0),
        ([ASKED, after(1), end_asked("commit", own=False), after(0.035), ABORTED], 1),
        ([ABORTED, after(1), lasting(ASKED, 1.01), ended("abort", 0)], 0),
        ([ABORTED, after(1), lasting(ASKED, 0.9), ended("abort", 0)], 1),
        ([ABORTED, ended("abort", 0), after(0.046), ASKED], 0),
        ([ABORTED, ended("abort", 0), after(0.045), ASKED], 1),
        ([ABORTED, after(1), ASKED, after(1), ended("abort", 0), after(0.045), ASKED], 0),
        ([ABORTED, after(1), ASKED, after(1), ended("abort", 0), after(0.046), ASKED], 1),
        ([ABORTED, after(1), end_asked("commit", own=False)], 1),
        ([ABORTED, after(1), end_asked("abort", own=False, producer=8)], 1),
        ([ABORTED, after(1), end_asked("abort", own=False, epoch=2)], 1),
    ],
    ids=[
        "begun as long after it as the logs differ",
        "begun longer after it",
        "the last request for long",
        "the request before the last, which had not surely begun",
        "the request before the last, which had surely begun",
        "a request that took long",
        "a request that took not quite so long",
        "asked again",
        "asked again for an end of the same moment",
        "asked again before the next end",
        "asked again, and the next end may be its own",
        "the other was asked for afterwards",
        "another producer asked afterwards",
        "another epoch was asked for afterwards",
    ],
)
def test_an_end_was_asked_for_around_its_time_or_asked_again(lines: list[Line], cases: int) -> None:
    """Under one epoch a commit that was asked for, and an abort that may have been."""
    found = finding("torn-transaction", [*COMMITTED, *lines], settings=IN_TRANSACTION)
    assert (found.instances, sum(found.undecided.values())) == ((), cases)


def test_a_slow_answer_was_asked_for_before_what_it_ended() -> None:
    """Two seconds until each of them was answered, and the ends lie in the midst of it."""
    first = [ended("commit", 0), after(1), lasting(end_asked("commit", own=False), 2)]
    second = [after(2), ABORTED, after(0.5), lasting(ASKED, 1)]
    assert judged("torn-transaction", [*first, *second], settings=IN_TRANSACTION) == []


def test_torn_transaction_is_undecided_once_an_epoch() -> None:
    """However many of its ends nobody asked for; and once for each producer."""
    ends = [
        ended(state, log, producer=producer) for producer in (7, 8) for log, state in enumerate(("commit", "abort"))
    ]
    lines = [*ends, ended("abort", 2), ended("commit", 3)]
    assert undecided("torn-transaction", lines, settings=IN_TRANSACTION) == 2
