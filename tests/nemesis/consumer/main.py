"""A consumer for faults to bite: it polls, has an effect, asks at a crash point and commits twice a second, says what
it has. An effect that is refused is tried again at the next turn, before any other. With TRANSACTIONAL_ID it commits
in transactions; with WORKS_APART its effects have a thread of their own, while it polls on.
"""

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request

from confluent_kafka import Consumer, KafkaException, Producer

TURN_S = 0.5
WITHIN_S = 10.0  # of one wait for a transaction's request
STUCK_S = 25.0  # of all waits for it


def tell(name, **fields):
    print(json.dumps({"name": name, **fields}), flush=True)


def insist(call):
    """Calls again while brokers have not answered: librdkafka goes on with the request, and takes no other before."""
    until_s = time.monotonic() + STUCK_S
    while True:
        try:
            return call()
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > until_s:
                raise


def listed(partitions):
    return [{"topic": part.topic, "partition": part.partition} for part in partitions]


class Target:
    def __init__(self):
        self.stopping = False
        self.handled, self.due_s, self.effect = 0, time.monotonic(), None
        self.apart = None  # the thread that works, until what it did is committed
        self.consumer = Consumer(settings())
        self.producer = producer()

    def run(self):
        self.consumer.subscribe(
            [os.environ["TOPIC"]],
            on_assign=lambda _, parts: tell("partitions_assigned", partitions=listed(parts)),
            on_revoke=lambda _, parts: tell("partitions_revoked", partitions=listed(parts)),
        )
        while not self.stopping:
            self.handled += sum(message.error() is None for message in self.consumer.consume(200, 0.1))
            if self.apart is not None:
                if not self.apart.is_alive():
                    self.apart = None
                    self.commit_and_tell()
            elif self.handled and time.monotonic() >= self.due_s:
                self.due_s = time.monotonic() + TURN_S
                if "WORKS_APART" in os.environ:
                    self.apart = threading.Thread(target=self.work, daemon=True)
                    self.apart.start()
                else:
                    self.work()
                    self.commit_and_tell()
        self.consumer.close()

    def work(self):
        """Has an effect, and asks at the crash point."""
        self.effect = self.effect or f"{os.environ['MEMBER']}-{self.handled}"
        try:
            urllib.request.urlopen(f"{os.environ['SINK_URL']}/effect", json.dumps({"id": self.effect}).encode())
            self.effect = None
        except urllib.error.HTTPError as refusal:
            tell("error", message=str(refusal))
        urllib.request.urlopen(f"{os.environ['SINK_URL']}/crash-point/before-commit", data=b"")

    def commit_and_tell(self):
        try:
            taken = self.commit()
        except KafkaException as error:
            tell("error", message=str(error))
        else:
            offsets = [{"topic": part.topic, "partition": part.partition, "offset": part.offset} for part in taken]
            tell("offsets_committed", offsets=offsets, success=all(part.error is None for part in taken))

    def commit(self):
        if self.producer is None:
            return self.consumer.commit(asynchronous=False)
        positions = [part for part in self.consumer.position(self.consumer.assignment()) if part.offset >= 0]
        metadata = self.consumer.consumer_group_metadata()
        try:
            self.producer.begin_transaction()
            insist(lambda: self.producer.send_offsets_to_transaction(positions, metadata, WITHIN_S))
            insist(lambda: self.producer.commit_transaction(WITHIN_S))
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                insist(lambda: self.producer.abort_transaction(WITHIN_S))
            else:  # fenced, or stuck: a new one ends what it left open
                self.producer = producer()
            raise
        return positions


def settings():
    common = {
        "bootstrap.servers": os.environ["BOOTSTRAP"],
        "group.id": os.environ["GROUP"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "reconnect.backoff.max.ms": 1000,
    }
    if "POLL_INTERVAL_MS" in os.environ:
        common["max.poll.interval.ms"] = int(os.environ["POLL_INTERVAL_MS"])
    if os.environ.get("PROTOCOL") == "consumer":  # KIP-848: the session is the broker's
        return common | {"group.protocol": "consumer"}
    return common | {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}


def producer():
    """Returns a producer for transactions that hold nothing but positions; None where it commits without."""
    if "TRANSACTIONAL_ID" not in os.environ:
        return None
    own = {
        "bootstrap.servers": os.environ["BOOTSTRAP"],
        "transactional.id": os.environ["TRANSACTIONAL_ID"],
        "reconnect.backoff.max.ms": 1000,
    }
    made = Producer(own)
    made.init_transactions(3 * WITHIN_S)
    return made


if __name__ == "__main__":
    target = Target()
    signal.signal(signal.SIGTERM, lambda *_: setattr(target, "stopping", True))
    target.run()
