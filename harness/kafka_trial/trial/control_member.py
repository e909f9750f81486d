"""The control member: when the consumer never got to work, can anybody join this cluster through a lane?

Runs as a process of its own (`python -m kafka_trial.trial.control_member`), with a group of its own. Exit 0: it was
given partitions. Only then a subject that never got any has failed by itself; else the environment is at fault.
"""

from __future__ import annotations

import sys
import time

from kafka_trial.errors import WaitTimeout
from kafka_trial.process.children import ChildProcesses


def control_member_joins(child_processes: ChildProcesses, bootstrap: str, *, topic: str, within_s: float) -> bool:
    """Starts a control member and tells whether it was given partitions within `within_s` seconds."""
    argv = [sys.executable, "-m", "kafka_trial.trial.control_member", bootstrap, topic, f"{within_s}"]
    member = child_processes.spawn("control member", argv)
    try:
        return member.wait(within_s=within_s + 10) == 0
    except WaitTimeout:
        member.kill()
        return False


def main() -> int:
    """Joins, and returns 0 once partitions were assigned, 1 when the time ran out."""
    from confluent_kafka import Consumer  # by this process alone: the one that starts it holds no librdkafka

    bootstrap, topic, within_s = sys.argv[1:]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-control", "enable.auto.commit": False})
    consumer.subscribe([topic])
    until_s = time.monotonic() + float(within_s)
    try:
        while time.monotonic() < until_s:
            consumer.poll(0.2)
            if consumer.assignment():
                return 0
        return 1
    finally:
        consumer.close()


if __name__ == "__main__":
    sys.exit(main())
