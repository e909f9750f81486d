"""Records that are taken back: what is said of them, whatever becomes of their transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.history.event import from_line
from kafka_trial.workload.producer import ABORTED, ENDED_WITHIN_S, WRITTEN_WITHIN_S, AbortedSends
from kafka_trial.workload.send_log import SendLog
from kafka_trial.workload.workload import Op

OPS = [Op(f"r{n}", n, "k0", None, 100, 0.0, "steady", aborted=True) for n in range(2)]


class RefusalError(Exception):
    """What a client raises: its cause can be asked whether to try again."""


class Cause:
    """Why a client refused."""

    def __init__(self, *, again: bool, name: str = "_FENCED") -> None:
        self._again = again
        self._name = name

    def retriable(self) -> bool:
        return self._again

    def name(self) -> str:
        return self._name

    def __str__(self) -> str:
        return "fenced"


class Client:
    """Notes what it is asked for; reports records when told to; an abort raises what `refusals` holds."""

    def __init__(self, *refusals: RefusalError) -> None:
        self.calls: list[str] = []
        self.refusals = list(refusals)
        self.reporting = True
        self._reports: list[Callable[[None, Any], None]] = []

    def init_transactions(self, within_s: float) -> None:
        self.calls.append("init")

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def produce(self, topic: str, value: bytes, key: bytes, partition: int, **options: Any) -> None:
        self.calls.append(options["headers"][0][1].decode())
        self._reports.append(options["on_delivery"])

    def poll(self, within_s: float) -> None:
        while self.reporting and self._reports:
            self._reports.pop(0)(None, None)

    def abort_transaction(self, within_s: float) -> None:
        self.calls.append("abort")
        if self.refusals:
            raise self.refusals.pop(0)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SendLog]:
    """Returns the log of the sends, in which both records are invoked."""
    log = SendLog(tmp_path, ["t"])
    yield log
    log.close()


def taking(client: Client, log: SendLog, now_s: list[float]) -> AbortedSends:
    """Returns what has both records to take back; `now_s` holds the time."""
    taken_back = AbortedSends(client, log, ["t"], refusal=RefusalError, clock_s=lambda: now_s[0])
    for op in OPS:
        taken_back.take(log.invoke(op, size_bytes=1, checksum=0), op, b"x")
    return taken_back


def said(log: SendLog) -> list[tuple[str | None, str | None]]:
    """Returns outcome and message of every completion."""
    log.write()
    events = [from_line(line) for line in log.path.read_bytes().splitlines()]
    return [(event.outcome, event.details.get("message")) for event in events if event.outcome != "invoke"]


def test_what_the_brokers_have_is_aborted_and_then_failed(log: SendLog) -> None:
    """Not before all of it was reported: an abort of what never left would take nothing back."""
    client = Client()
    client.reporting = False
    taken_back = taking(client, log, [1.0])
    for _ in range(3):
        taken_back.turn()
    assert (client.calls, said(log)) == (["init", "begin", "r0", "r1"], [])
    client.reporting = True
    taken_back.turn()
    assert (client.calls[4:], said(log)) == (["abort"], [("fail", ABORTED)] * 2)


def test_what_the_brokers_do_not_take_is_aborted_all_the_same(log: SendLog) -> None:
    """After a while, or its transaction would keep every committed reader waiting."""
    client, now_s = Client(), [1.0]
    client.reporting = False
    taken_back = taking(client, log, now_s)
    taken_back.turn()
    now_s[0] += WRITTEN_WITHIN_S
    taken_back.turn()
    assert (client.calls[4:], said(log)) == (["abort"], [("fail", ABORTED)] * 2)


def test_an_abort_is_asked_for_until_it_is_answered(log: SendLog) -> None:
    """A time-out says nothing; the transaction is not forgotten."""
    client = Client(RefusalError(Cause(again=True)))
    taken_back = taking(client, log, [1.0])
    for _ in range(4):
        taken_back.turn()
    assert (client.calls[4:], said(log)) == (["abort", "abort"], [("fail", ABORTED)] * 2)


def test_where_an_abort_is_refused_nobody_knows(log: SendLog) -> None:
    """The records may be committed by whoever has fenced us: info, and no further transaction."""
    client = Client(RefusalError(Cause(again=False)))
    taken_back = taking(client, log, [1.0])
    for _ in range(4):
        taken_back.turn()
    assert client.calls[4:] == ["abort"]
    assert said(log) == [("info", "its transaction could not be ended: fenced")] * 2


def test_an_abort_that_was_cut_off_and_then_refused_is_called_again(log: SendLog) -> None:
    """librdkafka may be caught between two states; the next call ends the transaction."""
    client = Client(RefusalError(Cause(again=True)), RefusalError(Cause(again=False, name="_STATE")))
    taken_back = taking(client, log, [1.0])
    for _ in range(5):
        taken_back.turn()
    assert (client.calls[4:], said(log)) == (["abort"] * 3, [("fail", ABORTED)] * 2)


def test_an_abort_that_is_refused_for_its_state_unasked_is_given_up(log: SendLog) -> None:
    """Nothing was cut off before: there is nothing to go on with."""
    client = Client(RefusalError(Cause(again=False, name="_STATE")))
    taken_back = taking(client, log, [1.0])
    for _ in range(4):
        taken_back.turn()
    assert (client.calls[4:], [outcome for outcome, _ in said(log)]) == (["abort"], ["info"] * 2)


def test_an_abort_that_is_refused_for_long_is_given_up(log: SendLog) -> None:
    """It is not asked for for ever."""
    client, now_s = (
        Client(RefusalError(Cause(again=True)), *[RefusalError(Cause(again=False, name="_STATE"))] * 9),
        [1.0],
    )
    taken_back = taking(client, log, now_s)
    for _ in range(3):
        taken_back.turn()
    now_s[0] += ENDED_WITHIN_S
    for _ in range(3):
        taken_back.turn()
    assert (client.calls[4:], [outcome for outcome, _ in said(log)]) == (["abort"] * 3, ["info"] * 2)
