"""The decoder against Kafka's own tools, on a log that real clients of every kind have written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_protocol.kafka_json import key_json, value_json
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.cluster.processes import process_cluster
from kafka_trial.kafka_protocol import cluster_queries, group_requests, offsets_records
from kafka_trial.kafka_protocol.batches import batches, fetch, records
from kafka_trial.kafka_protocol.connection import Brokers, Connection
from kafka_trial.kafka_protocol.group_requests import GroupState
from kafka_trial.kafka_protocol.offsets_decoder import decode_key, decode_value
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC
from kafka_trial.process.waiting import wait_until

pytestmark = pytest.mark.cluster
TOPIC, PARTITIONS = "orders", 4
Printed = tuple[dict[str, Any], dict[str, Any] | None]


@dataclass(frozen=True)
class Log:
    """A written offsets log: of which version, where its brokers listen, and where its files lie."""

    version: str
    bootstrap: str
    data: Path


@pytest.fixture(scope="module", params=["4.3.1", "3.9.2"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    """A cluster whose offsets log holds every kind of record that clients of this version can cause."""
    folder = tmp_path_factory.mktemp("cluster")
    with process_cluster(request.param, brokers=1, lanes=1, folder=folder) as cluster:
        bootstrap = cluster.observer_bootstrap
        with Admin(bootstrap) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=1)
        _classic(bootstrap)
        _transactions(bootstrap)
        _tombstones(bootstrap)
        if request.param >= "4":
            _consumer_protocol(bootstrap)
            _migration(bootstrap)
        _quiet(bootstrap)
        yield Log(request.param, bootstrap, folder / "b0" / "data")


def test_every_record_means_what_kafkas_log_dumper_prints(log: Log) -> None:
    """Offset by offset, our key and value are those of `DumpLogSegments --offsets-decoder`, in all they mean."""
    ours = {place: _ours(*raw, unfold=True) for place, raw in _records(log).items()}
    dumped = _dumped(log)  # afterwards: sessions still expire
    assert {place: dumped.get(place) for place in ours} == ours
    assert {key["type"] for key, _ in ours.values()} == _types_of(log.version)


@pytest.mark.parametrize("formatter", ["OffsetsMessageFormatter", "GroupMetadataMessageFormatter"])
def test_every_record_means_what_the_console_formatters_print(log: Log, formatter: str) -> None:
    """Commits and groups are those which the console consumer's formatters print, each as often."""
    types = {1} if formatter == "OffsetsMessageFormatter" else {2}
    before = _of_types(_counted(map(_entry, _records(log).values())), types)
    seen = _formatted(log, formatter, until=before)
    assert {json.loads(entry)["key"]["type"] for entry in seen} == types
    assert before <= seen <= _of_types(_counted(map(_entry, _records(log).values())), types)


def _entry(raw: tuple[bytes | None, bytes | None]) -> dict[str, Any]:
    key, value = _ours(*raw)
    return {"key": key, "value": value}


def _counted(entries: Iterable[dict[str, Any]]) -> Counter[str]:
    """How often each entry is there, the console consumer's own group left out."""
    kept = (entry for entry in entries if not _group(entry).startswith("console-consumer-"))
    return Counter(json.dumps(entry, sort_keys=True) for entry in kept)


def _group(entry: dict[str, Any]) -> str:
    data = entry["key"]["data"]
    return str(data.get("group") or data.get("groupId"))


def _of_types(entries: Counter[str], types: set[int]) -> Counter[str]:
    return Counter({entry: count for entry, count in entries.items() if json.loads(entry)["key"]["type"] in types})


def _types_of(version: str) -> set[int]:
    classic = {offsets_records.OFFSET_COMMIT, offsets_records.CLASSIC_GROUP}
    return classic | {3, 5, 6, 7, 8, 16} if version >= "4" else classic


def _ours(
    raw_key: bytes | None, raw_value: bytes | None, *, unfold: bool = False
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    key = decode_key(raw_key)
    printed_key = {"type": key.record_type, "data": key_json(key)}
    if raw_value is None:
        return printed_key, None
    value = decode_value(key, raw_value)
    assert value is not None
    return printed_key, {"version": int.from_bytes(raw_value[:2]), "data": value_json(value, unfold=unfold)}


def _records(log: Log) -> dict[tuple[int, int], tuple[bytes | None, bytes | None]]:
    """Key and value of every record in the offsets log now, by partition and offset."""
    found: dict[tuple[int, int], tuple[bytes | None, bytes | None]] = {}
    with Brokers(log.bootstrap) as brokers:
        topic = brokers.anyone(lambda connection: cluster_queries.metadata(connection, [OFFSETS_TOPIC])).topics[
            OFFSETS_TOPIC
        ]
        for partition in range(len(topic.partitions)):
            position, end = 0, 1
            while position < end:
                ask = partial(fetch, topic=OFFSETS_TOPIC, partition=partition, position=position, wait_ms=0)
                fetched = brokers.anyone(ask)
                end = fetched.high_watermark
                for batch in batches(fetched.data):
                    position = batch.next_offset
                    if not batch.control:
                        found |= {(partition, one.offset): (one.key, one.value) for one in records(batch)}
    return found


def _dumped(log: Log) -> dict[tuple[int, int], Printed]:
    """What DumpLogSegments prints of every segment, by partition and offset."""
    segments = sorted(log.data.glob(f"{OFFSETS_TOPIC}-*/*.log"))
    main = "org.apache.kafka.tools.DumpLogSegments" if log.version >= "4" else "kafka.tools.DumpLogSegments"
    text = _java(log, main, "--offsets-decoder", "--files", ",".join(map(str, segments)))
    found: dict[tuple[int, int], Printed] = {}
    partition = -1
    for line in text.splitlines():
        if line.startswith("Dumping "):
            partition = int(re.findall(OFFSETS_TOPIC + r"-(\d+)/", line)[0])
        entry = re.match(r"\| offset: (\d+) .*? key: (.*?) payload: ?(.*)$", line)
        if entry and "endTxnMarker" not in line:
            key, value = json.loads(entry[2]), json.loads(entry[3]) if entry[3] not in ("", "<DELETE>") else None
            found[partition, int(entry[1])] = _numbered(key, "type"), value and _numbered(value, "version")
    return found


def _numbered(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return entry | {name: int(entry[name])}


def _formatted(log: Log, formatter: str, *, until: Counter[str]) -> Counter[str]:
    """What the console consumer has printed once all of `until` is among it."""
    main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    options = ["--bootstrap-server", log.bootstrap, "--topic", OFFSETS_TOPIC, "--from-beginning"]
    command = _java_command(log, main, *options, "--formatter", f"org.apache.kafka.tools.consumer.{formatter}")
    with tempfile.TemporaryFile() as out, subprocess.Popen(command, stdout=out) as tool:

        def printed() -> Counter[str]:
            text = os.pread(out.fileno(), os.fstat(out.fileno()).st_size, 0)
            return _counted(_entries(text.decode(errors="replace")))

        def ended() -> str | None:
            return None if tool.poll() is None else f"it ended with {tool.returncode}"

        try:
            what = f"{until.total()} entries of {formatter}"
            wait_until(lambda: until <= printed(), within_s=60, what=what, every_s=0.5, alive=ended)
            return printed()
        finally:
            tool.kill()


def _entries(text: str) -> Iterator[dict[str, Any]]:
    """What was printed in full: JSON objects, one after the other without newlines."""
    decoder, place = json.JSONDecoder(), 0
    while text.startswith("{", place):
        try:
            entry, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            return
        record_type = entry["key"].get("type", entry["key"].get("version"))  # 3.9 calls the type a version
        yield {"key": {"type": record_type, "data": entry["key"]["data"]}, "value": entry["value"]}


def _java(log: Log, main: str, *arguments: str) -> str:
    done = subprocess.run(_java_command(log, main, *arguments), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _java_command(log: Log, main: str, *arguments: str) -> list[str]:
    return [str(find_java()), "-Xmx256m", "-cp", class_path(log.version), main, *arguments]


def _settings(bootstrap: str, group: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    } | {name.replace("_", "."): value for name, value in more.items()}


def _assigned(*consumers: Consumer) -> None:
    def spread() -> bool:
        for consumer in consumers:
            consumer.poll(0.05)
        owned = [len(consumer.assignment()) for consumer in consumers]
        return min(owned) > 0 and sum(owned) == PARTITIONS

    wait_until(spread, within_s=30, what="the members to own all partitions", every_s=0.01)


def _commit(consumer: Consumer, committed_offset: int, *, metadata: str = "") -> None:
    places = [TopicPartition(TOPIC, part.partition, committed_offset, metadata) for part in consumer.assignment()]
    consumer.commit(offsets=places, asynchronous=False)


def _classic(bootstrap: str) -> None:
    """Two members of a classic group, one of them static, commits with metadata, a leave."""
    first = Consumer(_settings(bootstrap, "classic", group_instance_id="one", session_timeout_ms=1500))
    second = Consumer(_settings(bootstrap, "classic", client_id="zwei-Ω", session_timeout_ms=1500))
    for consumer in (first, second):
        consumer.subscribe([TOPIC])
    _assigned(first, second)
    _commit(first, 7)
    _commit(second, 8, metadata="why-Ω")
    _commit(second, 3)
    second.close()
    first.close()


def _transactions(bootstrap: str) -> None:
    """One transaction with offsets that commits, one that aborts, one that stays open."""
    for number, end in enumerate(("commit", "abort", "open")):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"t{number}", "log_level": 0})
        consumer = Consumer(_settings(bootstrap, f"transactional-{end}"))
        consumer.subscribe([TOPIC])
        _assigned(consumer)
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(TOPIC, b"x", partition=0)
        places = [TopicPartition(TOPIC, 0, 100 + number)]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 30)
        if end == "commit":
            producer.commit_transaction(30)
        elif end == "abort":
            producer.abort_transaction(30)
        consumer.close()


def _quiet(bootstrap: str) -> None:
    """Waits until the sessions of static members that went away have expired: from then on the log does not grow."""
    with Brokers(bootstrap) as brokers:
        for group in ("classic", "kip848"):
            ask = partial(group_requests.group_state, group=group)
            wait_until(partial(_empty, brokers, ask), within_s=30, what=f"group {group} to be empty", every_s=0.2)


def _empty(brokers: Brokers, ask: Callable[[Connection], GroupState]) -> bool:
    return not brokers.anyone(ask).members


def _tombstones(bootstrap: str) -> None:
    """A group that is deleted, its commits with it."""
    consumer = Consumer(_settings(bootstrap, "deleted"))
    consumer.subscribe([TOPIC])
    _assigned(consumer)
    _commit(consumer, 5)
    consumer.close()
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for deletion in admin.delete_consumer_groups(["deleted"]).values():
        deletion.result(30)


def _consumer_protocol(bootstrap: str) -> None:
    """Two members of a KIP-848 group, one by regular expression, commits, a leave."""
    first = Consumer(_settings(bootstrap, "kip848", group_protocol="consumer", group_instance_id="one"))
    second = Consumer(_settings(bootstrap, "kip848", group_protocol="consumer", client_id="zwei"))
    first.subscribe([TOPIC])
    second.subscribe(["^ord.*"])
    _assigned(first, second)
    _commit(first, 11)
    _commit(second, 12, metadata="m")
    second.close()
    first.close()


def _migration(bootstrap: str) -> None:
    """A group that goes from the classic to the consumer protocol, member by member."""
    old = Consumer(_settings(bootstrap, "migrating", session_timeout_ms=6000))
    old.subscribe([TOPIC])
    _assigned(old)
    new = Consumer(_settings(bootstrap, "migrating", group_protocol="consumer"))
    new.subscribe([TOPIC])
    _assigned(old, new)
    _commit(new, 21)
    old.close()
    new.close()
