"""The clients that train a class-data archive: a transaction, then a reader in each group protocol.

A process of its own (`python -m kafka_trial.cluster.archive_clients BOOTSTRAP PROTOCOL…`), as everything that holds a
librdkafka: it aborts its process when it breaks.
"""

from __future__ import annotations

import sys

from kafka_trial.process.waiting import wait_until

TOPIC = "training"


def main() -> None:
    """Writes to the topic that is there, then reads it in a group of each protocol named."""
    bootstrap, *protocols = sys.argv[1:]
    _produce(bootstrap)
    for protocol in protocols:
        _consume(bootstrap, protocol)


def _produce(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TOPIC, "linger.ms": 5, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(300):
        producer.produce(TOPIC, key=str(number % 7), value=b"x" * 1000)
    producer.commit_transaction(30)


def _consume(bootstrap: str, protocol: str) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{TOPIC}-{protocol}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    try:
        wait_until(lambda: consumer.consume(100, 0.5), within_s=30, what=f"a record through a {protocol} group")
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
