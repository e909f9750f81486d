"""The request logs of a generated history: commits and offset fetches at the coordinator, fetches at the leaders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.scale.lines import Events, Source
from lab.scale.names import BROKERS, GROUP, TOPIC, TOPIC_ID, WALL_NS
from lab.scale.shapes import BATCH, Ints

COORDINATOR = 1
RECORD_BYTES = 1024
ANSWERED_NS = 1_000_000  # from the place in the log to the answer
BEFORE_DELIVERY_NS = 1_000_000
LIBRARY = "confluent-kafka-python 2.16.1-rdkafka-2.16.0"
HEAD = (
    f'"lane":%d,"listener":"LANE%d","connection":"127.0.0.1:2063%d-127.0.0.1:5208%d-0-1","client_id":"kt-m%d",'
    f'"duration_ms":2.5,"library":"{LIBRARY}","source_wall_ns":%d,"error":0'
)
COMMIT = (
    f'"api":"OFFSET_COMMIT",{HEAD},"group":"{GROUP}","member_id":"id-m%d","epoch":%d,'
    f'"entries":[{{"topic":"{TOPIC}","partition":%d,"committed_offset":%d,"error":0}}]'
)
FETCH = (
    f'"api":"FETCH",{HEAD},"entries":[{{"topic_id":"{TOPIC_ID}","partition":%d,"offset":%d,'
    f'"size_bytes":{BATCH * RECORD_BYTES},"error":0,"topic":"{TOPIC}"}}]'
)


class Requests:
    """The brokers' request logs; what is asked waits until `write`, for a log stands in the order of time."""

    def __init__(self, open_source: Callable[[str], Source]) -> None:
        self._brokers = [open_source(f"requests-b{broker}") for broker in range(BROKERS)]
        self._waiting: list[list[Events]] = [[] for _ in range(BROKERS)]

    def tell_state(self, at_ns: int, state: str) -> None:
        """Writes the state of these witnesses."""
        for broker in self._brokers:
            broker.tell("witness", at_ns, state=state)

    def tell_fetched_offsets(self, at_ns: int, member: int, entries: list[dict[str, Any]]) -> None:
        """Writes the answer to an OffsetFetch."""
        said = {"api": "OFFSET_FETCH", "lane": member, "group": GROUP, "member_id": f"id-m{member}", "duration_ms": 2.5}
        answers = [entry | {"error": 0} for entry in entries]
        wall = {"source_wall_ns": at_ns + WALL_NS, "error": 0}
        self._brokers[COORDINATOR].tell("request", at_ns, **said, **wall, entries=answers)

    def commit(self, generation: int, partition: Ints, value: Ints, log_ns: Ints, member: Ints) -> None:
        """Takes commits with the time of their places in the log."""
        at_ns = log_ns + ANSWERED_NS
        epoch = np.full(len(member), generation + 1)
        columns = (*_head(member, at_ns), member, epoch, partition, value)
        self._waiting[COORDINATOR].append(Events("request", at_ns, at_ns, COMMIT, columns))

    def fetch(self, partition: Ints, offset: Ints, delivered_ns: Ints, member: Ints) -> None:
        """Takes fetches of whole batches, which come before their first delivery."""
        at_ns = delivered_ns - BEFORE_DELIVERY_NS
        for broker, waiting in enumerate(self._waiting):
            led = partition % BROKERS == broker
            columns = (*_head(member[led], at_ns[led]), partition[led], offset[led])
            waiting.append(Events("request", at_ns[led], at_ns[led], FETCH, columns))

    def write(self) -> None:
        """Writes what waits."""
        for broker, waiting in zip(self._brokers, self._waiting, strict=True):
            broker.write(*waiting)
            waiting.clear()


def _head(member: Ints, at_ns: Ints) -> tuple[Ints, ...]:
    return (member, member, member, member, member, at_ns + WALL_NS)
