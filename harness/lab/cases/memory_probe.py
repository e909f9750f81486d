"""A consumer on librdkafka that says how much memory it took: idle first, then with all that it fetches ahead.

Run in a process of its own, with one argument of JSON: `bootstrap`, the topics `empty` and `full`, `partitions`,
`records` (how many are in `full`) and `settings` of the consumer. It prints one line of JSON.
"""

import json
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

IDLE_S = 3.0
STILL_S = 1.5  # so long the peak must stand before its queue counts as full
WITHIN_S = 120.0
KIB = 1024


def resident_bytes(name: str) -> int:
    """Returns VmRSS or VmHWM of this process, in bytes (proc(5))."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * KIB for line in status if line.startswith(name + ":"))


def fill() -> None:
    """Waits, and takes nothing, until the peak stands still: librdkafka fetches in its own threads."""
    peak, since = resident_bytes("VmHWM"), time.monotonic()
    began = since
    while time.monotonic() - since < STILL_S and time.monotonic() - began < WITHIN_S:
        time.sleep(0.05)
        if resident_bytes("VmHWM") > peak:
            peak, since = resident_bytes("VmHWM"), time.monotonic()


def drain(consumer: Consumer, records: int) -> int:
    """Takes all records, one at a time, and returns how many came within the time."""
    taken, until = 0, time.monotonic() + WITHIN_S
    while taken < records and time.monotonic() < until:
        message = consumer.poll(0.5)
        if message is not None:
            if message.error():
                raise SystemExit(str(message.error()))
            taken += 1
    return taken


def main() -> None:
    asked = json.loads(sys.argv[1])
    own = {"bootstrap.servers": asked["bootstrap"], "group.id": "memory-probe", "enable.auto.commit": False}
    consumer = Consumer(own | asked["settings"])
    consumer.assign([TopicPartition(asked["empty"], number, OFFSET_BEGINNING) for number in range(asked["partitions"])])
    until = time.monotonic() + IDLE_S
    while time.monotonic() < until:
        consumer.poll(0.1)
    base = resident_bytes("VmHWM")
    consumer.assign([TopicPartition(asked["full"], number, OFFSET_BEGINNING) for number in range(asked["partitions"])])
    fill()
    taken = drain(consumer, asked["records"])
    peak = resident_bytes("VmHWM")
    print(json.dumps({"base_bytes": base, "peak_bytes": peak, "resident_bytes": peak, "taken": taken}))
    consumer.close()


if __name__ == "__main__":
    main()
