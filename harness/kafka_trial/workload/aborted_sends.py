"""Records that are taken back: a second producer of the harness writes them in transactions, and aborts each.

Inside the workload process, turn by turn: gather, write, wait until the brokers have them, abort. A reader of committed
records never sees them; another one does. Their fate is `fail`: definitely not in the topic for anybody to handle.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from kafka_trial.workload.send_log import SendLog
from kafka_trial.workload.workload import ID_HEADER, Op

EVERY_S: Final = 0.5  # how long records gather before a transaction; readers of committed records wait for its end
WRITTEN_WITHIN_S: Final = 5.0
ENDED_WITHIN_S: Final = 30.0
TURN_S: Final = 0.05
BEGUN_WITHIN_S: Final = 30.0
ABORTED: Final = "its transaction was aborted"


class AbortedSends:
    """Writes records and takes them back; `client` is a confluent-kafka producer with a transactional id, which raises
    `refusal`."""

    def __init__(
        self,
        client: Any,
        log: SendLog,
        topic: str,
        *,
        refusal: type[Exception],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._refusal = refusal
        self._client = client
        self._log = log
        self._topic = topic
        self._clock_s = clock_s
        self._waiting: list[tuple[int, Op, bytes]] = []
        self._written: list[int] = []  # the sends of the transaction that is open
        self._reported = 0
        self._next_s = 0.0
        self._resuming = False  # an abort was cut off by its time limit, and is called again
        self._broken: str | None = None
        client.init_transactions(BEGUN_WITHIN_S)

    def take(self, send: int, op: Op, value: bytes) -> None:
        """Takes a record for the next transaction; its invoke is in the log."""
        self._waiting.append((send, op, value))

    def turn(self) -> None:
        """Does what is due, and waits for nothing longer than TURN_S."""
        if self._broken is not None:
            self._give_up()
            return
        try:
            if self._written:
                self._end()
            elif self._waiting and self._clock_s() >= self._next_s:
                self._write()
        except self._refusal as error:
            if error.args[0].retriable():
                self._resuming = bool(self._written)
            elif not self._may_pass(error):
                self._broken = str(error)

    def _may_pass(self, error: Exception) -> bool:
        """Tells whether an abort that is refused may be taken when it is called once more.

        After one that its time limit cut off, librdkafka now and then finds the transaction in a state in which it will
        not go on (`_STATE`, BeginAbort or AbortingTransaction: 2 of 5600 calls of at most 5 ms), and ends it when it is
        called again.
        """
        over_s = self._clock_s() - (self._next_s - EVERY_S)
        return self._resuming and error.args[0].name() == "_STATE" and over_s < ENDED_WITHIN_S

    def _write(self) -> None:
        self._client.begin_transaction()
        self._reported, self._next_s = 0, self._clock_s() + EVERY_S
        batch, self._waiting = self._waiting, []
        self._written = [send for send, _, _ in batch]
        for _, op, value in batch:
            key = None if op.key is None else op.key.encode()
            partition = -1 if op.partition is None else op.partition
            headers = [(ID_HEADER, op.id.encode())]
            self._client.produce(self._topic, value, key, partition, on_delivery=self._report, headers=headers)

    def _report(self, error: object, message: Any) -> None:
        self._reported += 1

    def _end(self) -> None:
        """Aborts what the brokers have by now, or have not been able to take for long."""
        self._client.poll(0)
        late = self._clock_s() >= self._next_s - EVERY_S + WRITTEN_WITHIN_S
        if self._reported < len(self._written) and not late:
            return
        self._client.abort_transaction(TURN_S)
        for send in self._written:
            self._log.not_acknowledged(send, "fail", ABORTED)
        self._written, self._resuming = [], False

    def _give_up(self) -> None:
        """Nothing more is written; of what was, nobody knows how it ended."""
        sends = [*self._written, *(send for send, _, _ in self._waiting)]
        self._written, self._waiting = [], []
        for send in sends:
            self._log.not_acknowledged(send, "info", f"its transaction could not be ended: {self._broken}")
