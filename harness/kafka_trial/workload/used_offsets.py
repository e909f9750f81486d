"""Uses up the first offsets of a topic: whoever mirrors into it has its records at other offsets than they had.

A process of its own (`python -m kafka_trial.workload.used_offsets BOOTSTRAP TOPIC PARTITIONS COUNT`), as all that
holds a librdkafka. What it writes is to be deleted: a reader never sees it.
"""

from __future__ import annotations

import sys

WRITTEN_WITHIN_S = 30.0


def main() -> int:
    """Writes so many records to each partition; returns 1 where they were not acknowledged in time."""
    from confluent_kafka import Producer

    bootstrap, topic, partitions, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    for partition in range(partitions):
        for _ in range(count):
            producer.produce(topic, value=b"", partition=partition)
    return 1 if producer.flush(WRITTEN_WITHIN_S) else 0


if __name__ == "__main__":
    sys.exit(main())
