"""A topic of a test's own on a cluster, and a record sent to it and read from it by librdkafka."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.wiring import RECORD_BYTES_MAX
from kafka_trial.process.waiting import wait_until


class topic_on:  # noqa: N801 - reads like the function it is
    """A fresh topic, deleted at the end of the `with`."""

    drawn = 0

    def __init__(self, cluster: BootedCluster, *, partitions: int = 1) -> None:
        type(self).drawn += 1
        self.name = f"processes-{self.drawn}"
        self.partitions = partitions
        self.admin = Admin(cluster.observer_bootstrap)

    def __enter__(self) -> str:
        configs = {"max.message.bytes": str(RECORD_BYTES_MAX)}
        self.admin.create_topic(self.name, partitions=self.partitions, replication_factor=3, configs=configs)
        return self.name

    def __exit__(self, *_: object) -> None:
        with self.admin:
            self.admin.delete_topic(self.name)


def send(bootstrap: str, topic: str, value: bytes) -> None:
    """Sends one record, and makes sure that it is acknowledged."""
    settings = {"bootstrap.servers": bootstrap, "message.max.bytes": RECORD_BYTES_MAX, "enable.idempotence": True}
    producer = Producer(settings)
    producer.produce(topic, value=value)
    assert producer.flush(30) == 0


def undelivered(bootstrap: str, topic: str) -> int:
    """Returns 1 where a record is not acknowledged within a second, else 0."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(topic, value=b"never")
    left = producer.flush(1)
    producer.purge()
    return left


def receive(bootstrap: str, topic: str, *, group: str, protocol: str) -> bytes | None:
    """Returns the first record of a topic, read and committed in a group of its own."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "fetch.message.max.bytes": RECORD_BYTES_MAX})
    consumer.subscribe([topic])
    try:
        message = wait_until(lambda: consumer.poll(0.5), within_s=30, what=f"a record of {topic}")
        assert message.error() is None
        consumer.commit(asynchronous=False)
        return bytes(message.value())
    finally:
        consumer.close()
