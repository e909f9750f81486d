"""The witness of the sink topic: what of the consumer's output is committed, as an undisturbed reader finds it.

A process of its own, for consumers whose output goes to a topic of the trial. It reads committed records only, live,
and writes each as an `effect` into `history/sink.jsonl`: what a transaction took back is no effect. At the snapshot it
reads to the log ends; what keeps it from there is named.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, Final

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, TopicPartition

from kafka_trial.history.json_paths import json_path
from kafka_trial.history.record_ids import ID_FIELD, ID_HEADER, checksums, record_id
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol import cluster_queries
from kafka_trial.kafka_protocol.cluster_queries import LATEST, Partition
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.process.waiting import pause
from kafka_trial.witness.control_read import reader_settings
from kafka_trial.witness.rpc_server import BEHIND, COMPLETE, UNDECODABLE, Answer, deadline_s, serve

SOURCE: Final = "sink"
BATCH_RECORDS: Final = 500
POLL_S: Final = 0.1
RETRY_S: Final = 0.2


class SinkTopic:
    """Reads every partition of one topic from its start."""

    def __init__(
        self,
        brokers: Brokers,
        recorder: Recorder,
        *,
        bootstrap: str,
        topic: str,
        partitions: int,
        header: str,
        field: str,
    ) -> None:
        self._brokers = brokers
        self._recorder = recorder
        self._topic = topic
        self._identity = {"header": header, "field": field}
        self._positions = dict.fromkeys(range(partitions), 0)
        self._nameless = 0
        self._error: str | None = None
        self._consumer = Consumer(reader_settings(bootstrap) | {"auto.offset.reset": "error"})
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in self._positions])

    def step(self) -> None:
        """Takes what has been committed since the last look."""
        for message in self._consumer.consume(BATCH_RECORDS, POLL_S):
            problem = message.error()
            partition, offset = int(message.partition() or 0), int(message.offset() or 0)
            if problem is None:
                self._take(message, partition, offset)
            elif problem.code() == KafkaError._PARTITION_EOF:
                self._positions[partition] = max(self._positions[partition], offset)
            else:
                self._error = str(problem)
        self._recorder.flush()

    def snapshot(self, *, within_s: float) -> Answer:
        """Reads to the log ends as of now; an open transaction hides what stands behind it, and is named."""
        until_s, ends, stable = deadline_s(within_s), self._ends(committed=False), self._ends(committed=True)
        while monotonic() < until_s and not _whole(self._positions, ends, stable):
            pause(RETRY_S)
            ends, stable = self._ends(committed=False), self._ends(committed=True)
        while monotonic() < until_s and self._behind(stable):
            self.step()
        return self._answer(ends, stable)

    def close(self) -> None:
        """Closes the reader."""
        self._consumer.close()

    def _take(self, message: Any, partition: int, offset: int) -> None:
        if offset < self._positions[partition]:
            return
        self._positions[partition] = offset + 1
        place: dict[str, Any] = {"topic": self._topic, "partition": partition, "offset": offset}
        name = record_id(message.headers() or (), message.value(), **self._identity)
        if name is None:
            self._nameless += 1
            self._recorder.record("undecodable", **place, message=f"it has no id: {self._where_ids_are()}")
            return
        kind, time_ms = message.timestamp()
        written_ns = time_ms * 1_000_000 if kind == TIMESTAMP_LOG_APPEND_TIME else None
        key = message.key()
        said = {"source_wall_ns": written_ns, "key": None if key is None else key.decode(errors="backslashreplace")}
        self._recorder.record("effect", id=name, outcome="ok", **place, **checksums(message.value()), **said)

    def _ends(self, *, committed: bool) -> dict[int, int]:
        """Returns the log end of each partition, or its last stable offset; those nobody answers for are missing."""
        try:
            found = self._brokers.anyone(lambda connection: cluster_queries.metadata(connection, [self._topic]))
            self._brokers.by_id = dict(found.brokers)
            topic = found.topics.get(self._topic)
            ends: dict[int, int] = {}
            for part in topic.partitions if topic else ():
                ends |= self._end(part, committed=committed)
        except NoAnswerError as error:
            self._error = str(error)
            self._brokers.ask_another()
            return {}
        return ends

    def _end(self, part: Partition, *, committed: bool) -> dict[int, int]:
        def ask(connection: Connection) -> dict[int, int]:
            return cluster_queries.list_offsets(
                connection, self._topic, [part.partition], which=LATEST, committed=committed
            )

        return self._brokers.broker(part.leader, ask)

    def _behind(self, stable: dict[int, int]) -> bool:
        return any(self._positions[partition] < end for partition, end in stable.items())

    def _answer(self, ends: dict[int, int], stable: dict[int, int]) -> Answer:
        position, end = sum(self._positions.values()), sum(ends.values())
        hidden = sorted(partition for partition in ends if stable.get(partition, 0) < ends[partition])
        if not ends.keys() == stable.keys() == self._positions.keys():
            return Answer(BEHIND, f"the log ends of {self._topic} were not all answered: {self._error}", position)
        if self._behind(stable):
            return Answer(BEHIND, f"not at the end of {self._topic}: {self._error or 'out of time'}", position, end)
        if hidden:
            message = f"open transactions hide records of {self._topic} from committed readers, on partitions {hidden}"
            return Answer(BEHIND, message, position, end)
        if self._nameless:
            message = f"{self._nameless} records of {self._topic} have no id: {self._where_ids_are()}"
            return Answer(UNDECODABLE, message, position, end)
        return Answer(COMPLETE, None, position, end)

    def _where_ids_are(self) -> str:
        return f"neither the header {self._identity['header']} nor {json_path(self._identity['field'])} of a JSON value"


def _whole(positions: dict[int, int], ends: dict[int, int], stable: dict[int, int]) -> bool:
    """Tells whether every partition's ends are known, and nothing is open behind a last stable offset."""
    return ends.keys() == stable.keys() == positions.keys() and all(stable[part] >= ends[part] for part in ends)


def main(arguments: Sequence[str] | None = None) -> int:
    """The process: reads the topic until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m kafka_trial.witness.sink_topic", description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="the OBSERVER listeners, host:port,…")
    parser.add_argument("--history", type=Path, required=True, help="the run folder's history")
    parser.add_argument("--topic", required=True, help="the topic that the consumer's output goes to")
    parser.add_argument("--partitions", required=True, type=int, help="how many partitions it has")
    parser.add_argument("--header", default=ID_HEADER, help="the header with a record's id")
    parser.add_argument("--field", default=ID_FIELD, help="the JSON path to it in a value, as in $.a[0].b")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder(options.history, SOURCE, buffer_events=BATCH_RECORDS))
        brokers = stack.enter_context(Brokers(options.bootstrap))
        names = ("bootstrap", "topic", "partitions", "header", "field")
        reader = SinkTopic(brokers, recorder, **{name: getattr(options, name) for name in names})
        stack.callback(reader.close)
        return serve(reader, [recorder])


if __name__ == "__main__":
    sys.exit(main())
