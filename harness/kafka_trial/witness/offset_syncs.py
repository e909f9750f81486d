"""Reads the offset syncs that MirrorMaker wrote down, from which it translates the positions of groups.

A process of its own (`python -m kafka_trial.witness.offset_syncs BOOTSTRAP FILE`), as all that holds a librdkafka.
It writes a line for each, in their order: when it was written (ms, by MirrorMaker's clock), topic and partition of
the source, the offset there, and that of the same record on the mirror. Layout of the records: OffsetSync, KIP-382 (in
the key topic and partition, in the value both offsets; strings have a length of two bytes).
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

TOPIC: Final = "mm2-offset-syncs.source.internal"
READ_WITHIN_S: Final = 30.0
POLL_S: Final = 0.2


def decoded(key: bytes, value: bytes) -> Mapping[str, Any]:
    """Returns what a record of the topic says.

    Raises:
        ValueError: it is none.
    """
    try:
        (size,) = struct.unpack_from(">h", key)
        topic, (partition,) = key[2 : 2 + size].decode(), struct.unpack_from(">i", key, 2 + size)
        upstream, downstream = struct.unpack_from(">qq", value)
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"no offset sync: {key!r} {value!r}") from error
    return {"topic": topic, "partition": partition, "upstream": upstream, "downstream": downstream}


def main() -> int:
    """Reads the topic to its end; returns 1 where that takes too long."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    from kafka_trial.witness.control_read import reader_settings

    bootstrap, file = sys.argv[1], Path(sys.argv[2])
    part = file.with_name(f".{file.name}.part")
    consumer = Consumer(reader_settings(bootstrap))
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    until_s = time.monotonic() + READ_WITHIN_S
    with part.open("wb") as lines:
        while time.monotonic() < until_s:
            for message in consumer.consume(500, POLL_S):
                problem = message.error()
                if problem is not None and problem.code() == KafkaError._PARTITION_EOF:
                    consumer.close()
                    lines.close()
                    part.rename(file)  # a part of them would lead elsewhere
                    return 0
                if problem is None:
                    told = {"time_ms": message.timestamp()[1], **decoded(message.key() or b"", message.value() or b"")}
                    lines.write(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE))
    return 1


if __name__ == "__main__":
    sys.exit(main())
