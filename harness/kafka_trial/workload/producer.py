"""The workload process: sends a load through a lane, records every send's fate, and obeys commands on stdin.

`python -m kafka_trial.workload.producer --bootstrap … --topic-load JSON --history DIR --seed N`, with a load for each
topic. A command is a line, an answer a JSON line on stdout:

```
open      sends the opening burst; answers with the counts once every send of it is decided
steady    begins the steady load; answers at once
topic T   begins the load of a topic that has come, its opening burst first; from then on a part of the steady load
hold      sends nothing more of the steady load until `resume`; both answer at once
settle S  as `hold`; answers once every send is decided, or after S seconds, with whether all are
burst N   sends N records at full speed, between those of the steady load; answers at once
stop S    sends nothing more, waits up to S seconds for acknowledgements, writes the rest as info; answers with counts
```
The end of stdin is `stop`. One thread: sends, delivery reports and lines happen in one order. Idempotent, acks=all.

Some records are taken back: a second producer writes them in transactions, and aborts each, turn by turn: gather,
write, wait until the brokers have them, abort. A reader of committed records never sees them; another one does. Their
fate is `fail`: definitely not in the topic for anybody to handle.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
from confluent_kafka import KafkaError, KafkaException, Producer

from kafka_trial.scenario import Load
from kafka_trial.workload.handle import topic_load_from_json
from kafka_trial.workload.payload import OURS, PayloadFiles, RecordContents
from kafka_trial.workload.send_log import NoLog, SendLog
from kafka_trial.workload.send_scheduler import SendScheduler
from kafka_trial.workload.workload import Headers, Op, TopicLoad, all_ops, own_headers, topic_ops, unreadable

METADATA_WITHIN_S = 30.0
PURGED_WITHIN_S = 1.0  # for the reports of purged records, which say how far they had come
QUEUE_BYTES_MAX = 128 * 1024 * 1024
RECORD_BYTES_MAX = 12 * 1024 * 1024

# Errors that say "definitely not in Kafka" (a whole batch is refused before it is appended); all others may hide a
# record that was appended and whose acknowledgement was lost: those are info.
DEFINITELY_NOT = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)


class Sender:
    """Hands records to the client and delivery reports to the log; `client` is a confluent-kafka producer."""

    def __init__(
        self,
        client: Any,
        log: SendLog,
        payload: Callable[[Op], bytes],
        topics: Sequence[str],
        aborted_sends: AbortedSends | None = None,
        *,
        headers: Callable[[Op], Headers] = own_headers,
    ) -> None:
        self.log = log
        self._client = client
        self._payload = payload
        self._topics = topics
        self._aborted_sends = aborted_sends
        self._headers = headers
        self._waiting: deque[tuple[int, Op, bytes | None]] = deque()

    @property
    def full(self) -> bool:
        """True while the client's queue has no room for records that are already invoked."""
        return bool(self._waiting)

    @property
    def idle(self) -> bool:
        """True when every send is decided."""
        return not self.log.undecided

    def send(self, ops: Iterable[Op]) -> None:
        """Sends `ops`: their invokes are with the kernel before the client has the first of them."""
        for op in ops:
            value = None if op.null_value else self._payload(op)
            if op.unreadable and value is not None:
                value = unreadable(value)
            send = self.log.invoke(op, size_bytes=len(value or b""), checksum=zlib.crc32(value or b""))
            if op.aborted and self._aborted_sends is not None:
                self._aborted_sends.take(send, op, value)
            else:
                self._waiting.append((send, op, value))
        self.log.write()
        self.push()

    def push(self) -> None:
        """Hands waiting records to the client as far as its queue has room."""
        while self._waiting:
            try:
                self._produce(*self._waiting[0])
            except BufferError:
                return
            self._waiting.popleft()

    def poll(self, within_s: float) -> None:
        """Takes delivery reports, waiting up to `within_s` seconds for the first, and writes what they say."""
        self._client.poll(within_s)
        if self._aborted_sends is not None:
            self._aborted_sends.turn()
        self.log.write()

    def drop(self) -> None:
        """Gives up what is not acknowledged: nothing more leaves for the brokers; every undecided send becomes info."""
        self._waiting.clear()
        self._client.purge(in_queue=True, in_flight=True, blocking=True)
        self._client.flush(PURGED_WITHIN_S)
        self.log.write()

    def _produce(self, send: int, op: Op, value: bytes | None) -> None:
        key = None if op.key is None else op.key.encode()
        partition = -1 if op.partition is None else op.partition
        try:
            self._client.produce(
                self._topics[op.topic],
                value,
                key,
                partition,
                on_delivery=partial(self._reported, send),
                headers=self._headers(op),
            )
        except KafkaException as refusal:
            self._failed(send, refusal.args[0])

    def _reported(self, send: int, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.log.acknowledged(send, message.partition(), message.offset())
        else:
            self._failed(send, error)

    def _failed(self, send: int, error: KafkaError) -> None:
        outcome = "fail" if error.code() in DEFINITELY_NOT else "info"
        self.log.not_acknowledged(send, outcome, f"{error.name()}: {error.str()}")


def client_settings(bootstrap: str, load: Load) -> dict[str, Any]:
    """Returns the client's settings: idempotent, acks=all, Java's partitioner, quick to come back after a fault."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "kafka-trial-workload",
        "enable.idempotence": True,
        "acks": "all",
        "partitioner": "murmur2_random",
        "compression.type": load.compression,
        # With five messages of a partition under way its thread asks over and over whether it may send the next
        # (librdkafka, rd_kafka_toppar_producer_serve): where answers took 0.4 s, ten times the processor time of this.
        "max.in.flight.requests.per.connection": 1,
        "linger.ms": 100,  # at a trial's rates a batch for several records: 25 costs the brokers half as much again
        "message.max.bytes": RECORD_BYTES_MAX,
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": QUEUE_BYTES_MAX // 1024,
        # Longer than any fault of a trial: a record given up early is an info that tells nothing.
        "message.timeout.ms": 120_000,
        # A request into a black hole is tried again on a new connection.
        "request.timeout.ms": 10_000,
        "socket.timeout.ms": 15_000,
        "topic.metadata.refresh.interval.ms": 5000,  # how soon partitions that were added get records
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
    }


def main(arguments: list[str] | None = None) -> int:
    """Runs the workload process; 0 after a `stop`, 1 when the client can send no more."""
    options = _options(arguments)
    topics, load = [one.topic for one in options.topic_load], options.topic_load[0].load
    fatal: list[str] = []
    client = Producer(
        client_settings(options.bootstrap, load),
        error_cb=lambda error: fatal.append(str(error)) if error.fatal() else None,
    )
    partitions = [one.later_partitions or _partitions(client, one.topic) for one in options.topic_load]
    log = (NoLog if options.unrecorded else SendLog)(options.history, topics)
    contents = contents_of(PayloadFiles.from_json(options.payload), options.topic_load, seed=options.seed)
    headers = _headers(contents)
    aborted_sends = _aborted_sends(options, topics, log, headers) if load.aborted_ratio else None
    sender = Sender(client, log, _values(contents), topics, aborted_sends, headers=headers)
    ops = _sized(contents, all_ops(options.topic_load, partitions=partitions, seed=options.seed))
    later = {
        one.topic: _sized(
            contents, topic_ops(options.topic_load, place, partitions=one.later_partitions, seed=options.seed)
        )
        for place, one in enumerate(options.topic_load)
        if one.later_partitions is not None
    }
    send_scheduler = SendScheduler(sender, ops, later=later, answer=_answer)
    _answer({"ready": True})
    send_scheduler.run(sys.stdin.fileno(), broken=lambda: fatal[0] if fatal else None)
    if fatal:
        print(f"the producer can send no more: {fatal[0]}", file=sys.stderr)
    return 1 if fatal else 0


def contents_of(payload: PayloadFiles, topic_loads: Sequence[TopicLoad], *, seed: int) -> list[RecordContents]:
    """Returns what the records of each topic hold; the names of further topics begin with the first one's."""
    first = f"{topic_loads[0].topic}-"
    return [RecordContents(payload.of_topic(one.topic.removeprefix(first)), one.load, seed=seed) for one in topic_loads]


def _values(contents: Sequence[RecordContents]) -> Callable[[Op], bytes]:
    """Returns the function that makes the value of a record by the load of its topic."""
    values = [one.value for one in contents]
    return values[0] if len(values) == 1 else lambda op: values[op.topic](op)


def _headers(contents: Sequence[RecordContents]) -> Callable[[Op], Headers]:
    """Returns the function that makes the headers of a record by the payload of its topic."""
    headers = [one.headers for one in contents]
    return headers[0] if len(headers) == 1 else lambda op: headers[op.topic](op)


def _sized(contents: Sequence[RecordContents], ops: Iterator[Op]) -> Iterator[Op]:
    return (contents[op.topic].sized(op) for op in ops)


def _aborted_sends(
    options: argparse.Namespace, topics: Sequence[str], log: SendLog, headers: Callable[[Op], Headers]
) -> AbortedSends:
    """Returns the second producer, whose transactions are aborted."""
    own = {"client.id": "kafka-trial-aborting", "transactional.id": f"kafka-trial-aborting-{topics[0]}"}
    limits = {"transaction.timeout.ms": 60_000, "message.timeout.ms": 60_000}
    client = Producer(client_settings(options.bootstrap, options.topic_load[0].load) | own | limits)
    return AbortedSends(client, log, topics, refusal=KafkaException, headers=headers)


def _partitions(client: Any, topic: str) -> int:
    found = client.list_topics(topic, timeout=METADATA_WITHIN_S).topics[topic]
    if found.error is not None:
        raise SystemExit(f"topic {topic!r}: {found.error}; the harness creates it before the workload starts")
    return len(found.partitions)


def _answer(body: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # the harness is gone; the history is closed all the same
        os.write(sys.stdout.fileno(), orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kafka_trial.workload.producer", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--bootstrap", required=True, help="addresses of the workload's lane")
    told = "workload.TopicLoad as JSON (repeatable)"
    parser.add_argument("--topic-load", required=True, action="append", type=topic_load_from_json, help=told)
    parser.add_argument("--history", required=True, type=Path, help="folder that gets workload.jsonl")
    parser.add_argument("--payload", default=OURS.to_json(), help="payload.PayloadFiles as JSON; ours without it")
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--unrecorded", action="store_true", help="for `bench`: send without writing events")
    return parser.parse_args(arguments)


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
        topics: Sequence[str],
        *,
        refusal: type[Exception],
        clock_s: Callable[[], float] = time.monotonic,
        headers: Callable[[Op], Headers] = own_headers,
    ) -> None:
        self._refusal = refusal
        self._client = client
        self._log = log
        self._topics = topics
        self._clock_s = clock_s
        self._headers = headers
        self._waiting: list[tuple[int, Op, bytes | None]] = []
        self._written: list[int] = []  # the sends of the transaction that is open
        self._reported = 0
        self._next_s = 0.0
        self._resuming = False  # an abort was cut off by its time limit, and is called again
        self._broken: str | None = None
        client.init_transactions(BEGUN_WITHIN_S)

    def take(self, send: int, op: Op, value: bytes | None) -> None:
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
            headers = self._headers(op)
            topic = self._topics[op.topic]
            self._client.produce(topic, value, key, partition, on_delivery=self._report, headers=headers)

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


if __name__ == "__main__":
    sys.exit(main())
