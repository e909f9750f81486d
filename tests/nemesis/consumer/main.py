"""A consumer for faults to bite: it polls, has an effect, asks at a crash point and commits twice a second, says what
it has. An effect that is refused is tried again at the next turn, before any other.
"""

import json
import os
import signal
import time
import urllib.error
import urllib.request

from confluent_kafka import Consumer, KafkaException


def say(name, consumer, partitions):
    entries = [{"topic": part.topic, "partition": part.partition} for part in partitions]
    print(json.dumps({"name": name, "partitions": entries}), flush=True)


stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
consumer = Consumer(
    {
        "bootstrap.servers": os.environ["BOOTSTRAP"],
        "group.id": os.environ["GROUP"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 1000,
        "reconnect.backoff.max.ms": 1000,
    }
)
consumer.subscribe(
    [os.environ["TOPIC"]],
    on_assign=lambda *args: say("partitions_assigned", *args),
    on_revoke=lambda *args: say("partitions_revoked", *args),
)
handled, due_s, effect = 0, time.monotonic(), None
while not stopping:
    handled += sum(message.error() is None for message in consumer.consume(200, 0.1))
    if handled and time.monotonic() >= due_s:
        due_s = time.monotonic() + 0.5
        effect = effect or f"{os.environ['MEMBER']}-{handled}"
        try:
            urllib.request.urlopen(f"{os.environ['SINK_URL']}/effect", json.dumps({"id": effect}).encode())
            effect = None
        except urllib.error.HTTPError as refusal:
            print(json.dumps({"name": "error", "message": str(refusal)}), flush=True)
        urllib.request.urlopen(f"{os.environ['SINK_URL']}/crash-point/before-commit", data=b"")
        try:
            taken = consumer.commit(asynchronous=False)
        except KafkaException as error:
            print(json.dumps({"name": "error", "message": str(error)}), flush=True)
        else:
            offsets = [{"topic": part.topic, "partition": part.partition, "offset": part.offset} for part in taken]
            success = all(part.error is None for part in taken)
            print(json.dumps({"name": "offsets_committed", "offsets": offsets, "success": success}), flush=True)
consumer.close()
