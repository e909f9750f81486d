"""The process of the writers beside an upgrade: one writes transactions, one idempotently, each to a topic of its own.

`python -m kafka_trial.workload.writers --bootstrap … --transactions TOPIC --sends TOPIC --history DIR`. Twice a second
a transaction over all partitions is written and ended, each third one by aborting it, and some records are sent
idempotently. A command is a line on stdin, an answer a JSON line on stdout:

```
open    the next transaction stays open until `end`: answers with its number once the brokers have its records
end     commits it; answers with its outcome
brokers HOST:PORT,…  clients that begin anew ask these; answers with them
read    commits one more transaction, and writes nothing while a reader of committed records reads both topics to their
        ends; answers with what is not as Kafka promised (`Ledger`), or why that is not known
```
The end of stdin ends it. One thread. `writers.jsonl` says how each transaction and each send ended. What a client may
do again is done again; a client that can do nothing more (a fatal error) is replaced by another of the same
transactional id, and told: Kafka promised that it goes on.

The id of a record says what it belongs to: `17-3` is a record of transaction 17, `42` is send 42. Of a committed
transaction a reader of committed records finds every record once, of an aborted one none, and of one whose end nobody
knows all or none. An acknowledged send of an idempotent producer is there once; one whose fate nobody knows once at
most (KIP-98). A breach that was told before is not told again: it is of an earlier stage.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kafka_trial.errors import WaitTimeout
from kafka_trial.process.waiting import pause, wait_until
from kafka_trial.scenario import Load
from kafka_trial.workload.producer import client_settings

EVERY_S: Final = 0.5
RECORDS: Final = 6  # of a transaction
SENDS: Final = 3  # each time
ABORTS_EVERY: Final = 3
TRANSACTION_WITHIN_S: Final = 120.0  # the coordinator aborts it then
CALL_WITHIN_S: Final = 10.0
BEGUN_WITHIN_S: Final = 30.0
ENDED_WITHIN_S: Final = 60.0
READ_WITHIN_S: Final = 60.0
AGAIN_S: Final = 0.1
Tell = Callable[..., None]  # takes the fields of one line of writers.jsonl
COMMITTED, ABORTED, OPEN, INFO, OK = "committed", "aborted", "open", "info", "ok"
NOT_WHOLE, TAKEN_BACK, IN_PART, TWICE = "not whole", "taken back", "in part", "twice"
GONE, SENT_TWICE, STRANGE = "gone", "sent twice", "strange"
MESSAGES: Final = {  # by kind of breach: what is said before the first of them are named
    NOT_WHOLE: "of committed transactions not every record can be read",
    TAKEN_BACK: "records of aborted transactions are read as committed",
    IN_PART: "of transactions whose end nobody knows a part is read as committed",
    TWICE: "records of transactions are there more than once",
    GONE: "acknowledged records of an idempotent producer are gone",
    SENT_TWICE: "records of an idempotent producer are there more than once",
    STRANGE: "there are records that nobody wrote",
}
NAMED_MAX: Final = 3


class TransactionalWriter:
    """Writes one transaction after the other; `make` returns a client with a transactional id; it raises `refusal`."""

    def __init__(
        self,
        make: Callable[[], Any],
        topic: str,
        partitions: int,
        ledger: Ledger,
        tell: Tell,
        *,
        refusal: type[Exception] = KafkaException,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.complaints: list[str] = []
        self.current: Transaction | None = None
        self.may_be_open = False  # an end was not acknowledged, and no later client has ended what it left
        self._make, self._topic, self._partitions = make, topic, partitions
        self._ledger, self._told = ledger, tell
        self._refusal, self._clock_s = refusal, clock_s
        self._client: Any = None
        self._opened_s = 0.0
        self._acknowledged = 0  # of its records
        self._failed: list[str] = []

    def is_open(self) -> bool:
        """Tells whether a transaction has begun that has not ended."""
        return self.current is not None

    def begin(self) -> bool:
        """Begins the next transaction and writes its records; True once the brokers have all of them."""
        try:
            if self._client is None:
                self._client = self._make()
                self.may_be_open = False
            self._client.begin_transaction()
        except self._refusal as error:
            self._client = None
            self._told(state="not begun", message=str(error))
            if not error.args[0].retriable():
                self.complaints.append(f"no transaction could be begun: {error}")
            return False
        self.current = Transaction(len(self._ledger.transactions))
        self._ledger.transactions.append(self.current)
        self._opened_s, self._acknowledged, self._failed = self._clock_s(), 0, []
        self._tell(self.current)
        try:
            for index in range(RECORDS):
                self.current.records += 1
                name, place = f"{self.current.number}-{index}".encode(), index % self._partitions
                self._client.produce(self._topic, name, None, place, on_delivery=self._report)
            return not self._client.flush(CALL_WITHIN_S) and not self._failed
        except self._refusal as error:
            self._failed.append(str(error))
            return False

    def end(self, *, commit: bool) -> str:
        """Ends the transaction, by committing it unless one of its records was refused; returns its outcome."""
        one = self.current
        assert one is not None
        committing = commit and not self._failed
        until_s = self._clock_s() + ENDED_WITHIN_S
        while True:
            try:
                (self._client.commit_transaction if committing else self._client.abort_transaction)(CALL_WITHIN_S)
                return self._ended(one, COMMITTED if committing else ABORTED)
            except self._refusal as error:
                if not error.args[0].retriable() or self._clock_s() >= until_s:
                    return self._lost(one, error.args[0], aborting=not committing)
                pause(AGAIN_S)

    def _lost(self, one: Transaction, error: Any, *, aborting: bool) -> str:
        """Gives a client up: a commit that was not acknowledged may have been made, an abort is nobody's loss.

        A coordinator that knows of no transaction refuses to end one (INVALID_TXN_STATE, of Kafka's
        TransactionCoordinator); where none of its records was acknowledged, it may never have heard of this one.
        """
        self._client, self.may_be_open = None, True  # the next one of this id ends what is open
        overdue = self._clock_s() - self._opened_s >= TRANSACTION_WITHIN_S / 2
        unknown_there = aborting and not self._acknowledged
        if error.fatal() and not (overdue or unknown_there):
            self.complaints.append(f"the producer of transaction {one.number} could not go on: {error}")
        return self._ended(one, ABORTED if aborting else INFO, message=str(error))

    def _ended(self, one: Transaction, outcome: str, *, message: str | None = None) -> str:
        one.outcome, self.current = outcome, None
        self._tell(one, message=message)
        return outcome

    def _tell(self, one: Transaction, *, message: str | None = None) -> None:
        told = message or ("; ".join(self._failed) or None)
        self._told(transaction=one.number, state=one.outcome, records=one.records, message=told)

    def _report(self, error: KafkaError | None, _: object) -> None:
        if error is None:
            self._acknowledged += 1
        else:
            self._failed.append(str(error))


class IdempotentWriter:
    """Sends records one after the other; `make` takes what is called on a fatal error, and returns a client."""

    def __init__(
        self,
        make: Callable[[Callable[[Any], None]], Any],
        topic: str,
        ledger: Ledger,
        tell: Tell,
        *,
        refusal: type[Exception] = KafkaException,
    ) -> None:
        self.complaints: list[str] = []
        self._make, self._topic = make, topic
        self._ledger, self._told, self._refusal = ledger, tell, refusal
        self._client: Any = None
        self._broken = False

    def send(self, count: int) -> None:
        """Sends records, and takes what is reported of earlier ones."""
        if self._broken:
            self._client, self._broken = None, False
        if self._client is None:
            self._client = self._make(self._error)
        for _ in range(count):
            number = len(self._ledger.sends)
            self._ledger.sends.append(INFO)
            with suppress(BufferError, self._refusal):  # it stays info
                self._client.produce(self._topic, str(number).encode(), on_delivery=partial(self._report, number))
        self._client.poll(0)

    def settle(self) -> None:
        """Waits for what is under way, for a while."""
        if self._client is not None:
            self._client.flush(ENDED_WITHIN_S)

    def _report(self, number: int, error: KafkaError | None, _: object) -> None:
        self._ledger.sends[number] = INFO if error else OK
        told = str(error) if error else None
        self._told(send=number, state=self._ledger.sends[number], message=told)

    def _error(self, error: Any) -> None:
        if error.fatal():
            self._broken = True
            self.complaints.append(f"the idempotent producer could not go on: {error}")


@dataclass(frozen=True)
class TopicRead:
    """How often each record of a topic was read; where readers are held back before its end, or why nobody knows."""

    times: Mapping[str, int] = field(default_factory=dict)
    held_back: str = ""
    refusal: str = ""


@dataclass
class Addresses:
    """The brokers that clients ask which begin anew, as `HOST:PORT,…`."""

    bootstrap: str


class Writers:
    """Both writers, and what they are told to do."""

    def __init__(
        self,
        transactions: TransactionalWriter,
        sends: IdempotentWriter,
        ledger: Ledger,
        read: Callable[[], tuple[TopicRead, TopicRead]],
        addresses: Addresses,
    ) -> None:
        """`read` reads the topic of the transactions, and that of the sends."""
        self._addresses = addresses
        self._transactions = transactions
        self._sends = sends
        self._ledger = ledger
        self._read = read
        self._turns = 0
        self._proven = (0, 0)  # transactions that were committed, and sends that were acknowledged, at the last reading

    def turn(self) -> None:
        """Sends some records, and writes a transaction unless one is kept open."""
        self._sends.send(SENDS)
        if self._transactions.is_open():
            return
        self._transactions.begin()
        if self._transactions.is_open():
            self._turns += 1
            self._transactions.end(commit=self._turns % ABORTS_EVERY > 0)

    def obey(self, command: str) -> dict[str, Any]:
        """Does what it is told; returns the answer."""
        match command.split(" "):
            case ["brokers", bootstrap]:
                self._addresses.bootstrap = bootstrap
                return {"brokers": bootstrap}
            case ["open"] if not self._transactions.is_open():
                if self._transactions.begin():
                    return {"open": len(self._ledger.transactions) - 1}
                if self._transactions.is_open():
                    self._transactions.end(commit=False)
                return {"error": "the brokers did not take a transaction's records in time"}
            case ["end"] if self._transactions.is_open():
                return {"ended": self._transactions.end(commit=True)}
            case ["read"]:
                return {"read": self._told()}
            case _:
                valid = "Valid: brokers HOST:PORT,…, open, end (of what is open), read"
                return {"error": f"cannot obey {command!r} now. {valid}"}

    def _told(self) -> dict[str, Any]:
        if self._transactions.is_open():
            self._transactions.end(commit=True)
        self._transactions.begin()  # that something can be written now is to be shown
        if self._transactions.is_open():
            self._transactions.end(commit=True)
        self._sends.send(SENDS)
        self._sends.settle()
        transactions, sends = self._read()
        breaches = self._breaches(transactions, sends)
        for writer in (self._transactions, self._sends):
            breaches += dict.fromkeys(writer.complaints)
            writer.complaints.clear()
        not_known = "; ".join(self._not_known(transactions, sends))
        return {"breaches": breaches, "not_known": not_known, "counts": self._ledger.counts()}

    def _breaches(self, transactions: TopicRead, sends: TopicRead) -> list[str]:
        """Returns what is not as promised. Readers that are held back miss all that lies behind: that is not told."""
        if transactions.refusal or sends.refusal:
            return []
        if not transactions.held_back:
            return self._ledger.new_breaches(transactions.times, sends.times)
        if self._transactions.may_be_open:
            return []
        return [f"no transaction is open, and readers of committed records are held back: {transactions.held_back}"]

    def _not_known(self, transactions: TopicRead, sends: TopicRead) -> list[str]:
        """Returns why not everything can be said of what was written since the last reading."""
        done = self._ledger.committed, self._ledger.sends.count(OK)
        before, self._proven = self._proven, done
        reasons = [one.refusal for one in (transactions, sends) if one.refusal]
        if transactions.held_back and self._transactions.may_be_open:
            reasons.append(f"whether a transaction is open while readers are held back: {transactions.held_back}")
        if done[0] <= before[0]:
            reasons.append("no transaction was committed since the topics were last read")
        if done[1] <= before[1]:
            reasons.append("no idempotent send was acknowledged since the topics were last read")
        return reasons


def read_committed(bootstrap: str, topic: str, partitions: int, *, within_s: float = READ_WITHIN_S) -> TopicRead:
    """Reads a topic from its beginning to its end, as a reader of committed records does; again where that fails."""
    tried: list[TopicRead] = []
    until_s = time.monotonic() + within_s

    def read() -> bool:
        try:
            tried.append(_read_once(bootstrap, topic, partitions, within_s=max(1.0, until_s - time.monotonic())))
        except KafkaException as error:
            tried.append(TopicRead(refusal=f"{topic} could not be read: {error}"))
        return not tried[-1].refusal

    with suppress(WaitTimeout):  # the last refusal says more
        wait_until(read, within_s=within_s, what=f"the records of {topic}", every_s=1.0)
    return tried[-1]


def _read_once(bootstrap: str, topic: str, partitions: int, *, within_s: float) -> TopicRead:
    settings = {
        "bootstrap.servers": bootstrap,
        "client.id": "kafka-trial-writers-reader",
        "group.id": "kafka-trial-writers-reader",  # required, and never joined
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",  # where the beginning is gone: what is left is there all the same
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    times: Counter[str] = Counter()
    ends = _ends({**settings, "isolation.level": "read_uncommitted"}, topic, partitions)
    came = dict.fromkeys(ends, 0)
    reader = Consumer(settings)
    try:
        reader.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        until_s = time.monotonic() + within_s
        while any(came[part] < end for part, end in ends.items()) and time.monotonic() < until_s:
            message: Any = reader.poll(0.5)
            if message is not None and message.error() is None:
                times[message.value().decode()] += 1
            elif message is not None and message.error().code() == KafkaError._PARTITION_EOF:
                came[message.partition()] = message.offset()
    finally:
        reader.close()
    late = [part for part, end in ends.items() if came[part] < end]
    if not late:
        return TopicRead(times)
    stable = _ends(settings, topic, partitions)  # the last stable offsets: the ends for readers of committed records
    held = [f"{part} at {stable[part]} of {ends[part]}" for part in late if stable[part] < ends[part]]
    if len(held) < len(late):
        return TopicRead(refusal=f"{topic}: partitions {late} were not read to their ends in {within_s:.0f} s")
    return TopicRead(times, held_back=f"{topic}, partition {', '.join(held)}")


def _ends(settings: dict[str, Any], topic: str, partitions: int) -> dict[int, int]:
    """Returns where the partitions end for readers of such settings."""
    reader = Consumer(settings)
    try:
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        return {one.partition: reader.get_watermark_offsets(one, timeout=CALL_WITHIN_S)[1] for one in places}
    finally:
        reader.close()


def main(arguments: list[str] | None = None) -> int:
    """Writes and obeys until stdin ends."""
    options = _options(arguments)
    ledger, addresses = Ledger(), Addresses(options.bootstrap)
    with (options.history / "writers.jsonl").open("xb") as file:
        tell = partial(_write_line, file)
        make = partial(_transactional, addresses, options.transactions)
        transactions = TransactionalWriter(make, options.transactions, options.partitions, ledger, tell)
        sends = IdempotentWriter(partial(_idempotent, addresses), options.sends, ledger, tell)
        topics = (options.transactions, options.sends)

        def read() -> tuple[TopicRead, TopicRead]:
            one, other = (read_committed(addresses.bootstrap, topic, options.partitions) for topic in topics)
            return one, other

        writers = Writers(transactions, sends, ledger, read, addresses)
        rest: bytes | None = b""
        while rest is not None:
            writers.turn()
            file.flush()
            rest = _obey_new(writers, rest)
    return 0


def _write_line(file: BinaryIO, **fields: Any) -> None:
    told = {name: value for name, value in fields.items() if value is not None}
    file.write(orjson.dumps({"time_ns": time.monotonic_ns(), **told}, option=orjson.OPT_APPEND_NEWLINE))


def _obey_new(writers: Writers, rest: bytes) -> bytes | None:
    """Obeys what comes within a turn; returns what is no whole line yet, None at the end of stdin."""
    if not select.select([sys.stdin], [], [], EVERY_S)[0]:
        return rest
    read = os.read(sys.stdin.fileno(), 4096)
    *lines, rest = (rest + read).split(b"\n")
    for line in lines:
        with suppress(BrokenPipeError):  # the harness is gone
            answer = writers.obey(line.decode(errors="replace").strip())
            os.write(sys.stdout.fileno(), orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE))
    return rest if read else None


def _transactional(addresses: Addresses, topic: str) -> Producer:
    limit_ms = round(TRANSACTION_WITHIN_S * 1000)
    own = {"client.id": "kafka-trial-writers-transactions", "transactional.id": f"kafka-trial-writers-{topic}"}
    limits = {"transaction.timeout.ms": limit_ms, "message.timeout.ms": limit_ms, "linger.ms": 5}
    client = Producer(client_settings(addresses.bootstrap, Load()) | own | limits)
    client.init_transactions(BEGUN_WITHIN_S)
    return client


def _idempotent(addresses: Addresses, error: Callable[[Any], None]) -> Producer:
    own = {"client.id": "kafka-trial-writers-sends", "error_cb": error, "linger.ms": 5}
    return Producer(client_settings(addresses.bootstrap, Load()) | own)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kafka_trial.workload.writers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--transactions", required=True, help="topic of the transactions")
    parser.add_argument("--sends", required=True, help="topic of the idempotent sends")
    parser.add_argument("--partitions", required=True, type=int, help="of either topic")
    parser.add_argument("--history", required=True, type=Path, help="folder that gets writers.jsonl")
    return parser.parse_args(arguments)


@dataclass
class Transaction:
    """One transaction: how many records it had, and how it ended: committed, aborted, or info (nobody knows)."""

    number: int
    records: int = 0
    outcome: str = OPEN

    def ids(self) -> list[str]:
        return [f"{self.number}-{index}" for index in range(self.records)]


@dataclass
class Ledger:
    """All transactions, and what became of each send: ok, or info."""

    transactions: list[Transaction] = field(default_factory=list)
    sends: list[str] = field(default_factory=list)
    _told: set[tuple[str, str]] = field(default_factory=set)

    @property
    def committed(self) -> int:
        return sum(one.outcome == COMMITTED for one in self.transactions)

    def counts(self) -> dict[str, int]:
        """Returns how many transactions ended how, and how many sends were acknowledged."""
        ends = Counter(one.outcome for one in self.transactions)
        return dict(sorted(ends.items())) | {"acknowledged": self.sends.count(OK), "sent": len(self.sends)}

    def new_breaches(self, transactions: Mapping[str, int], sends: Mapping[str, int]) -> list[str]:
        """Returns what is not as promised and was not told before, as messages; how often each record was read, by id.

        Read are the topic of the transactions and that of the sends, to their ends, while nothing was written.
        """
        by_kind: dict[str, list[str]] = {}
        for kind, which, example in [*self._of_transactions(transactions), *self._of_sends(sends)]:
            if (kind, which) not in self._told:
                self._told.add((kind, which))
                by_kind.setdefault(kind, []).append(example)
        return [_message(kind, examples) for kind, examples in by_kind.items()]

    def _of_transactions(self, read: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
        left = Counter(read)
        for one in self.transactions:
            ids = one.ids()
            there = [name for name in ids if left[name]]
            told = f"transaction {one.number} ({len(there)} of {len(ids)} records)"
            if one.outcome == COMMITTED and len(there) < len(ids):
                yield NOT_WHOLE, str(one.number), told
            elif one.outcome == ABORTED and there:
                yield TAKEN_BACK, str(one.number), told
            elif one.outcome == INFO and 0 < len(there) < len(ids):
                yield IN_PART, str(one.number), told
            if any(left[name] > 1 for name in ids):
                yield TWICE, str(one.number), f"transaction {one.number}"
            for name in ids:
                left.pop(name, None)
        yield from ((STRANGE, name, name) for name in sorted(left) if left[name])

    def _of_sends(self, read: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
        for number, outcome in enumerate(self.sends):
            times = read.get(str(number), 0)
            if outcome == OK and not times:
                yield GONE, str(number), f"send {number}"
            elif times > 1:
                yield SENT_TWICE, str(number), f"send {number} ({times} times)"
        known = {str(number) for number in range(len(self.sends))}
        yield from ((STRANGE, name, name) for name in sorted(read.keys() - known))


def _message(kind: str, examples: list[str]) -> str:
    more = len(examples) - NAMED_MAX
    return f"{MESSAGES[kind]}: {', '.join(examples[:NAMED_MAX])}" + (f" and {more} more" if more > 0 else "")


if __name__ == "__main__":
    sys.exit(main())
