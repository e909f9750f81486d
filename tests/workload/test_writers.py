"""The writers beside an upgrade: how each transaction ends, whatever its client says, and what they tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_trial.workload.writers import (
    ENDED_WITHIN_S,
    RECORDS,
    TRANSACTION_WITHIN_S,
    Addresses,
    IdempotentWriter,
    Ledger,
    TopicRead,
    TransactionalWriter,
    Writers,
)


class RefusalError(Exception):
    """What a client raises."""


class Cause:
    """Why a client refused."""

    def __init__(self, *, again: bool = False, fatal: bool = False) -> None:
        self._again, self._fatal = again, fatal

    def retriable(self) -> bool:
        return self._again

    def fatal(self) -> bool:
        return self._fatal

    def __str__(self) -> str:
        return "fenced"


AGAIN, ABORTABLE, FATAL = Cause(again=True), Cause(), Cause(fatal=True)


class Client:
    """Notes what it is called for; ends refuse as `refusals` says, and records are reported with `error`."""

    def __init__(self, *refusals: Cause, error: str | None = None) -> None:
        self.calls: list[str] = []
        self.refusals = list(refusals)
        self.error = error
        self.unsent = 0
        self._reports: list[Callable[[Any, Any], None]] = []

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def produce(self, topic: str, value: bytes, *_: object, on_delivery: Callable[[Any, Any], None]) -> None:
        self._reports.append(on_delivery)

    def flush(self, within_s: float) -> int:
        for report in self._reports:
            report(self.error, None)
        self._reports.clear()
        return self.unsent

    def poll(self, within_s: float) -> None:
        self.flush(within_s)

    def commit_transaction(self, within_s: float) -> None:
        self._end("commit")

    def abort_transaction(self, within_s: float) -> None:
        self._end("abort")

    def _end(self, how: str) -> None:
        self.calls.append(how)
        if self.refusals:
            raise RefusalError(self.refusals.pop(0))


def tell(**_: object) -> None:
    """Writes nothing down."""


def writing(client: Client, now_s: list[float] | None = None) -> tuple[TransactionalWriter, Ledger]:
    """Returns a writer of transactions on a literal client, and its ledger."""
    ledger, clock = Ledger(), now_s or [0.0]
    writer = TransactionalWriter(lambda: client, "t", 3, ledger, tell, refusal=RefusalError, clock_s=lambda: clock[0])
    return writer, ledger


@pytest.mark.parametrize(
    ("client", "commit", "outcome", "calls"),
    [
        (Client(), True, "committed", ["commit"]),
        (Client(), False, "aborted", ["abort"]),
        (Client(AGAIN, AGAIN), True, "committed", ["commit", "commit", "commit"]),
        (Client(ABORTABLE), True, "info", ["commit"]),
        (Client(AGAIN, FATAL), True, "info", ["commit", "commit"]),
        (Client(ABORTABLE), False, "aborted", ["abort"]),
        (Client(error="timed out"), True, "aborted", ["abort"]),
        (Client(ABORTABLE, error="timed out"), True, "aborted", ["abort"]),
    ],
    ids=["committed", "aborted", "again", "refused", "fatal", "abort refused", "not written", "and not aborted"],
)
def test_a_transaction_ends_as_its_client_says(client: Client, commit: bool, outcome: str, calls: list[str]) -> None:
    """A commit that is refused may have been made: nobody knows. What was not committed was aborted."""
    writer, ledger = writing(client)
    assert writer.begin() is (client.error is None)
    assert writer.end(commit=commit) == outcome
    assert (client.calls[1:], ledger.transactions[0].outcome, ledger.transactions[0].records) == (
        calls,
        outcome,
        RECORDS,
    )
    assert not writer.is_open()


@pytest.mark.parametrize(("after_s", "told"), [(1.0, 1), (TRANSACTION_WITHIN_S, 0)])
def test_a_producer_that_can_do_nothing_more_is_told(after_s: float, told: int) -> None:
    """Unless the transaction was open for so long that its coordinator may have ended it: that was our doing."""
    now_s = [0.0]
    writer, _ = writing(Client(FATAL), now_s)
    writer.begin()
    now_s[0] = after_s
    writer.end(commit=True)
    assert len(writer.complaints) == told
    assert writer.begin()  # with another client


@pytest.mark.parametrize(("error", "told"), [(None, 1), ("timed out", 0)])
def test_an_abort_that_cannot_be_is_told_where_brokers_knew_the_transaction(error: str | None, told: int) -> None:
    """They had acknowledged its records; else their coordinator may never have heard of it."""
    writer, _ = writing(Client(FATAL, error=error))
    writer.begin()
    assert writer.end(commit=False) == "aborted"
    assert len(writer.complaints) == told


def test_a_commit_that_is_never_answered_is_given_up() -> None:
    """It is called again for a minute; then nobody knows."""
    now_s = [0.0]

    class Silent(Client):
        """Never answers in time."""

        def commit_transaction(self, within_s: float) -> None:
            now_s[0] += ENDED_WITHIN_S / 2
            self.refusals = [AGAIN]
            super().commit_transaction(within_s)

    client = Silent()
    writer, _ = writing(client, now_s)
    writer.begin()
    assert (writer.end(commit=True), client.calls) == ("info", ["begin", "commit", "commit"])


READ = TopicRead()


def told(read: tuple[TopicRead, TopicRead], *, refusals: tuple[Cause, ...] = ()) -> dict[str, Any]:
    """Returns what is told after a transaction and three sends, and as much again; that one's commit is refused so."""
    client = Client()
    writer, ledger = writing(client)
    sends = IdempotentWriter(lambda _: Client(), "s", ledger, tell, refusal=RefusalError)
    writers = Writers(writer, sends, ledger, lambda: read, Addresses("b0:9092"))
    writers.turn()
    client.refusals = list(refusals)
    answer: dict[str, Any] = writers.obey("read")["read"]
    return answer


WHOLE = TopicRead({f"{number}-{index}": 1 for number in range(2) for index in range(RECORDS)})
SENT = TopicRead({str(number): 1 for number in range(6)})


@pytest.mark.parametrize(
    ("read", "refusals", "breaches", "not_known"),
    [
        ((WHOLE, SENT), (), 0, ""),
        ((WHOLE, READ), (), 1, ""),
        ((TopicRead(refusal="no answer"), SENT), (), 0, "no answer"),
        ((TopicRead(held_back="t, partition 0 at 3 of 9"), SENT), (), 1, ""),
        (
            (TopicRead(held_back="t, partition 0 at 3 of 9"), SENT),
            (ABORTABLE,),
            0,
            "whether a transaction is open while readers are held back: t, partition 0 at 3 of 9",
        ),
    ],
    ids=["as promised", "gone", "not read", "held back", "held back by what nobody knows"],
)
def test_what_is_told(
    read: tuple[TopicRead, TopicRead],
    refusals: tuple[Cause, ...],
    breaches: int,
    not_known: str,
) -> None:
    """Held back, readers miss all that lies behind: the one thing told is that, and that only if all have ended."""
    answer = told(read, refusals=refusals)
    assert (len(answer["breaches"]), answer["not_known"]) == (breaches, not_known)


def test_without_anything_new_nothing_is_known() -> None:
    """Earlier transactions are whole, and no further one can be committed: no empty pass."""
    client, mute = Client(), Client()
    writer, ledger = writing(client)
    sends = IdempotentWriter(lambda _: mute, "s", ledger, tell, refusal=RefusalError)
    writers = Writers(writer, sends, ledger, lambda: (WHOLE, SENT), Addresses("b0:9092"))
    writers.turn()
    assert writers.obey("read")["read"]["not_known"] == ""
    client.refusals, mute.error = [ABORTABLE], "timed out"
    answer = writers.obey("read")["read"]
    assert (answer["breaches"], answer["not_known"]) == (
        [],
        "no transaction was committed since the topics were last read; "
        "no idempotent send was acknowledged since the topics were last read",
    )


def test_clients_that_begin_anew_ask_the_brokers_that_are_there() -> None:
    """The first ones may be gone."""
    addresses = Addresses("b0:9092")
    writer, ledger = writing(Client())
    sends = IdempotentWriter(lambda _: Client(), "s", ledger, tell, refusal=RefusalError)
    writers = Writers(writer, sends, ledger, lambda: (WHOLE, SENT), addresses)
    assert writers.obey("brokers b3:9092,b4:9092") == {"brokers": "b3:9092,b4:9092"}
    assert addresses.bootstrap == "b3:9092,b4:9092"


def test_a_transaction_is_kept_open() -> None:
    """Meanwhile only records are sent idempotently; it is the one that `end` commits."""
    client = Client()
    writer, ledger = writing(client)
    sends = IdempotentWriter(lambda _: Client(), "s", ledger, tell, refusal=RefusalError)
    writers = Writers(writer, sends, ledger, lambda: (WHOLE, SENT), Addresses("b0:9092"))
    assert writers.obey("end").keys() == {"error"}
    assert writers.obey("open") == {"open": 0}
    writers.turn()
    assert (client.calls, len(ledger.sends)) == (["begin"], 3)
    assert writers.obey("open").keys() == {"error"}
    assert writers.obey("end") == {"ended": "committed"}
    assert client.calls == ["begin", "commit"]
