"""The workload process against real brokers, through a lane: what it records is what happened."""

import json
import secrets
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster, Lane
from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.event import Event
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.scenario import SIZE_BYTES_LIMIT, Burst, Load
from kafka_trial.workload.handle import ProducerHandle, start_producer
from kafka_trial.workload.payload import EXAMPLE, OURS, PayloadFiles
from kafka_trial.workload.payload_checks import HEADERS_BYTES_MAX, VALUE_BYTES_MAX, payload_problems
from kafka_trial.workload.producer import ABORTED, contents_of
from kafka_trial.workload.workload import TopicLoad
from lab.bench.producer import bench_producer

pytestmark = pytest.mark.cluster
LOAD = Load(opening_burst=500, rate_per_s=2000, size_bytes_max=2048, bursts=(Burst(0.0, 100),))
Start = Callable[..., ProducerHandle]  # of a load and, if any, a payload


@dataclass(frozen=True)
class TrialEnvironment:
    """A lane, a fresh topic, a run folder, and a way to start producers on them."""

    cluster: Cluster
    lane: Lane
    topic: str
    folder: RunFolder
    start: Start

    def sends(self, outcome: str) -> dict[str, Event]:
        """Returns the sends with an outcome, by record id."""
        events = [event for event in self.folder.events() if event.kind == "send" and event.outcome == outcome]
        found = {event.id: event for event in events if event.id is not None}
        assert len(found) == len(events)
        return found

    def acknowledged(self) -> int:
        """Counts the acknowledgements in the file: parsing it takes longer the more the producer is ahead."""
        lines = (self.folder.history / "workload.jsonl").read_bytes()
        return lines.count(b'"outcome":"ok"')

    def records(self, *, isolation: str = "read_committed") -> list[Any]:
        """Reads the whole topic past the proxies."""
        return _read(self.cluster.observer_bootstrap, self.topic, isolation=isolation)


@pytest.fixture
def environment(cluster: Cluster, tmp_path: Path) -> Iterator[TrialEnvironment]:
    """A workload on a fresh topic of six partitions."""
    with _stage(cluster, tmp_path, configs={}) as made:
        yield made


def test_every_acknowledged_record_lies_where_the_history_says(environment: TrialEnvironment) -> None:
    """Opening burst, steady load and a burst: partition, offset, id, key, size and checksum agree with the topic."""
    producer = environment.start(LOAD)
    assert producer.opening_burst(within_s=30) == 500
    producer.steady()
    producer.burst(100)
    wait_until(lambda: len(environment.sends("ok")) > 1000, within_s=30, what="some steady load")
    counts = producer.stop(within_s=20)
    invoked, acknowledged = environment.sends("invoke"), environment.sends("ok")
    told = {
        (one.id, one.key, one.partition, one.offset, invoked[name].details["size_bytes"], _checksum(invoked[name]))
        for name, one in acknowledged.items()
    }
    assert (told, counts) == (
        {_told(record) for record in environment.records()},
        {"sent": len(invoked), "ok": len(invoked), "fail": 0, "info": 0},
    )


def test_the_same_seed_sends_the_same_bytes(cluster: Cluster, tmp_path: Path) -> None:
    """Ids, keys and checksums of two runs are equal."""
    seen = []
    for number in range(2):
        with _stage(cluster, tmp_path / str(number), configs={}) as environment:
            environment.start(LOAD).opening_burst(within_s=30)
            seen.append([(name, one.key, _checksum(one)) for name, one in environment.sends("invoke").items()])
    assert (seen[0] == seen[1], len(seen[0])) == (True, 500)


def test_what_a_stall_leaves_undecided_is_info(environment: TrialEnvironment) -> None:
    """Requests held in the network may arrive later: nobody knows, so never fail."""
    producer = environment.start(LOAD)
    producer.opening_burst(within_s=30)
    _stall(environment)
    producer.burst(100)
    counts = producer.stop(within_s=1)
    assert (
        counts,
        set(environment.sends("info")),
        _messages(environment, "info") <= {"_PURGE_INFLIGHT", "_PURGE_QUEUE"},
    ) == (
        {"sent": 600, "ok": 500, "fail": 0, "info": 100},
        set(environment.sends("invoke")) - set(environment.sends("ok")),
        True,
    )


def test_aborted_records_fail_and_no_committed_reader_finds_them(environment: TrialEnvironment) -> None:
    """They were written, in transactions that were taken back: `fail`, and everything else is in the topic."""
    producer = environment.start(replace(LOAD, aborted_ratio=0.2))
    producer.opening_burst(within_s=30)
    producer.steady()
    wait_until(lambda: len(environment.sends("fail")) > 100, within_s=30, what="some aborted records")
    counts = producer.stop(within_s=20)
    assert _messages(environment, "fail") == {ABORTED}
    assert (counts["fail"] > 100, counts["info"]) == (True, 0)
    assert {dict(record.headers())["kt-id"].decode() for record in environment.records()} == set(
        environment.sends("ok")
    )
    hidden = {dict(record.headers())["kt-id"].decode() for record in environment.records(isolation="read_uncommitted")}
    assert hidden == set(environment.sends("ok")) | set(environment.sends("fail"))


def test_records_beyond_the_topics_limit_fail(cluster: Cluster, tmp_path: Path) -> None:
    """Too large is refused before it is appended: definitely not in the topic, and no opening to build on."""
    with _stage(cluster, tmp_path, configs={"max.message.bytes": "1000"}) as environment:
        producer = environment.start(Load(opening_burst=20, size_bytes_min=5000, size_bytes_max=5000))
        with pytest.raises(UnjudgeableError, match="0 acknowledged, 20 refused"):
            producer.opening_burst(within_s=30)
        counts = producer.stop(within_s=5)
        assert (counts["fail"], environment.records(), _messages(environment, "fail")) == (
            20,
            [],
            {"MSG_SIZE_TOO_LARGE"},
        )


def test_ten_megabytes_pass(environment: TrialEnvironment) -> None:
    """The largest records a scenario may ask for arrive whole."""
    size = SIZE_BYTES_LIMIT
    environment.start(Load(opening_burst=3, size_bytes_min=size, size_bytes_max=size)).opening_burst(within_s=60)
    assert [len(record.value()) for record in environment.records()] == [size] * 3


def test_a_teams_template_and_headers_are_what_is_sent(environment: TrialEnvironment, tmp_path: Path) -> None:
    """The same seed fills in the same; size and checksum in the history are of the bytes that lie in the topic, of
    aborted records too."""
    template = tmp_path / "order.json"
    template.write_text('{"order": {"id": "${id}", "of": "${key}", "at": "${uuid}"}, "pad": "${padding}"}\n')
    payload = PayloadFiles(template=template, headers={"trace": "${number}"}, id_header="x-id")
    producer = environment.start(replace(LOAD, aborted_ratio=0.2), payload)
    producer.opening_burst(within_s=30)
    producer.steady()
    wait_until(lambda: len(environment.sends("fail")) > 20, within_s=30, what="some aborted records")
    producer.stop(within_s=20)
    invoked, found = environment.sends("invoke"), environment.records(isolation="read_uncommitted")
    for record in found:
        body, headers = json.loads(record.value()), dict(record.headers())
        name = headers["kt-id"].decode()
        assert (body["order"]["id"], body["order"]["of"]) == (name, record.key().decode())
        assert (headers["x-id"].decode(), int(headers["trace"])) == (name, int(name.removeprefix("r")))
        assert invoked[name].details["size_bytes"] == len(record.value())
        assert _checksum(invoked[name]) == zlib.crc32(record.value())
    assert len({json.loads(record.value())["order"]["at"] for record in found}) == len(found) > 500
    assert {len(record.value()) for record in found} <= set(range(LOAD.size_bytes_min, LOAD.size_bytes_max + 1))


def test_the_largest_samples_and_headers_that_are_let_through_arrive(
    environment: TrialEnvironment, tmp_path: Path
) -> None:
    """As they are: bytes that are no text, of the largest size that is not refused before anything starts."""
    value = b"\0\xff" * (VALUE_BYTES_MAX // 2)
    (tmp_path / "order.avro").write_bytes(value)
    payload = PayloadFiles(samples=tmp_path / "order.avro", headers={"h": "x" * (HEADERS_BYTES_MAX - 1)})
    assert payload_problems(payload) == []
    environment.start(Load(opening_burst=2, records_max=2, keyed=False), payload).opening_burst(within_s=60)
    found = environment.records()
    assert [record.value() == value for record in found] == [True, True]
    assert [len(dict(record.headers())["h"]) for record in found] == [HEADERS_BYTES_MAX - 1] * 2


def test_samples_take_turns(environment: TrialEnvironment, tmp_path: Path) -> None:
    """Each is sent as often as the others."""
    samples = tmp_path / "samples"
    samples.mkdir()
    for number in range(4):
        (samples / f"{number}.bin").write_bytes(bytes([number, 0, 255]))
    environment.start(LOAD, PayloadFiles(samples=samples)).opening_burst(within_s=30)
    counts = Counter(record.value() for record in environment.records())
    assert counts == {bytes([number, 0, 255]): 125 for number in range(4)}


def test_no_record_is_in_kafka_without_an_invoke(environment: TrialEnvironment) -> None:
    """Killed with -9 at full speed: every record that got through has its invoke in the file."""
    producer = environment.start(
        Load(opening_burst=1_000_000, records_max=1_000_000, size_bytes_min=100, size_bytes_max=100)
    )
    producer._rpc.tell("open")
    wait_until(lambda: environment.acknowledged() > 1000, within_s=30, what="a thousand acknowledgements")
    producer.child.kill()
    producer.child.wait(within_s=10)
    arrived = {_told(record)[0] for record in environment.records()}
    assert (len(arrived) > 1000, arrived - set(environment.sends("invoke"))) == (True, set())


def test_a_dead_producer_is_told(environment: TrialEnvironment) -> None:
    """Its history is incomplete, so the trial cannot be judged; the error says how it ended."""
    producer = environment.start(LOAD)
    producer.child.kill()
    producer.child.wait(within_s=10)
    with pytest.raises(UnjudgeableError, match=r"exited with -9|Broken pipe"):
        producer.stop(within_s=1)


def test_a_closed_pipe_is_a_stop(environment: TrialEnvironment) -> None:
    """A harness that goes leaves a whole file behind, with the fate of every send."""
    producer = environment.start(LOAD)
    producer.opening_burst(within_s=30)
    producer.close()
    assert (producer.child.wait(within_s=20), len(environment.sends("ok"))) == (0, 500)


def test_a_missing_topic_is_named(cluster: Cluster, tmp_path: Path) -> None:
    """The process ends at once and its complaint is in the error."""
    with _stage(cluster, tmp_path, configs={}) as environment, ChildProcesses("test") as child_processes:
        options = {"bootstrap": environment.lane.bootstrap, "folder": create_run_folder(tmp_path / "other", "s", "c")}
        with pytest.raises(UnjudgeableError, match="'nowhere'"):
            start_producer(child_processes, topic_loads=[TopicLoad("nowhere", LOAD)], seed=1, **options)  # type: ignore[arg-type]


def test_the_bench_measures_both_ways(environment: TrialEnvironment, tmp_path: Path) -> None:
    """Each round sends every record once with recording and once without; only the former leaves events."""
    bursts, ratio = bench_producer(
        bootstrap=environment.lane.bootstrap, topic=environment.topic, folder=tmp_path, records=2000, rounds=1
    )
    lines = [len(path.read_bytes().splitlines()) for path in sorted(tmp_path.glob("0-*/history/workload.jsonl"))]
    assert ([one.records for one in bursts], ratio > 0, lines) == ([2000, 2000], True, [4002, 2])


@contextmanager
def _stage(cluster: Cluster, folder: Path, *, configs: dict[str, str]) -> Iterator[TrialEnvironment]:
    topic = f"t-{secrets.token_hex(4)}"
    with (
        cluster.lease_lanes(1) as (lane,),
        Admin(cluster.observer_bootstrap) as admin,
        ChildProcesses("test") as child_processes,
    ):
        admin.create_topic(topic, partitions=6, replication_factor=3, configs=configs)
        run = create_run_folder(folder / "run", "s", "c")

        def start(load: Load, payload: PayloadFiles = OURS) -> ProducerHandle:
            topic_loads = [TopicLoad(topic, load)]
            return start_producer(
                child_processes, bootstrap=lane.bootstrap, topic_loads=topic_loads, folder=run, seed=7, payload=payload
            )

        yield TrialEnvironment(cluster, lane, topic, run, start)


def _stall(environment: TrialEnvironment) -> None:
    for proxy in environment.lane.proxies.values():
        for stream in ("upstream", "downstream"):
            environment.cluster.toxiproxy.add_toxic(proxy, f"stall-{stream}", "bandwidth", stream, {"rate": 0})


def _read(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> list[Any]:
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.message.max.bytes": 2 * SIZE_BYTES_LIMIT,
        }
    )
    partitions = reader.list_topics(topic, timeout=20).topics[topic].partitions
    reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    records: list[Any] = []
    ended: set[int | None] = set()

    def read() -> bool:
        for message in reader.consume(1000, 1):
            if message.error():
                ended.add(message.partition())
            else:
                records.append(message)
        return len(ended) == len(partitions)

    wait_until(read, within_s=60, what=f"the end of {topic}", every_s=0)
    reader.close()
    return records


def _told(record: Any) -> tuple[str, str, int, int, int, int]:
    """What a record says of itself: id, key, partition, offset, size and checksum."""
    value = record.value()
    return (
        dict(record.headers())["kt-id"].decode(),
        record.key().decode(),
        record.partition(),
        record.offset(),
        len(value),
        zlib.crc32(value),
    )


def _checksum(invoke: Event) -> int:
    return int(invoke.details["checksum"])


def _messages(environment: TrialEnvironment, outcome: str) -> set[str]:
    return {event.details["message"].partition(":")[0] for event in environment.sends(outcome).values()}


def test_each_topic_has_the_payload_of_its_name(tmp_path: Path) -> None:
    """The name that it has in the scenario, behind that of the first one; another one's is that of all."""
    for name in ("all", "small"):
        (tmp_path / name).write_text(f"{name} ${{id}}")
    payload = PayloadFiles(template=tmp_path / "all", topics={"small": PayloadFiles(template=tmp_path / "small")})
    loads = [TopicLoad(topic, LOAD) for topic in ("kt-1", "kt-1-small", "kt-1-other")]
    values = [one.value(EXAMPLE) for one in contents_of(payload, loads, seed=1)]
    assert values == [b"all r0000042", b"small r0000042", b"all r0000042"]
