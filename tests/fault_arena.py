"""A group at work on a real cluster, for faults to be played on: under a small load, with bystanders beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster, Lane
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.process import LaunchContext, process_group
from kafka_trial.consumers.sink import start_sink
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import HistoryTail, RunFolder, create_run_folder
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.kafka_protocol.group_requests import group_state
from kafka_trial.nemesis import sampling
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.samples import ANSWERS, LinkSnapshot, flows
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause, wait_until
from kafka_trial.witness.witness import start_witness

CONSUMER = Path(__file__).parent / "nemesis" / "consumer" / "consumer.toml"
MEMBERS, SPARE = 3, 1
RECORDS_PER_S, RECORD_BYTES = 400, 2500  # so much that a link which nobody slows is seen to carry more than a slow one


@dataclass(frozen=True)
class Arena:
    """A group at work on a cluster, a second member that is connected around its proxies, and bystanders."""

    context: FaultContext
    around: FaultContext
    child_processes: ChildProcesses
    unused_lane: Lane


@contextmanager
def group_at_work(
    cluster: Cluster,
    admin: Admin,
    child_processes: ChildProcesses,
    place: Path,
    lanes: Sequence[Lane],
    load_lane: Lane,
    *,
    consumer: Path = CONSUMER,
) -> Iterator[FaultContext]:
    """Starts a group on as many lanes as there are but the spare one, its load and the witness of the offsets log."""
    topic = group_name = f"{cluster.name}-{place.name}"
    folder: RunFolder = create_run_folder(place, "bites", "nemesis-target")
    members = max(1, len(lanes) - SPARE)
    with ExitStack() as stack:
        told = stack.enter_context(Recorder(folder.history, "sink"))
        sink = stack.enter_context(start_sink(told, kill=lambda name: group.kill_now(name)))  # noqa: PLW0108 - made below
        launch_context = LaunchContext(topic, group_name, 1, DEFAULT_VERSION, members, sink.url)
        arguments = ["--bootstrap", cluster.observer_bootstrap, "--history", str(folder.history)]
        arguments += ["--group", group_name, "--topic", topic]
        witness = start_witness(child_processes, "offsets_log", arguments, folder=folder)
        stack.callback(witness.stop)
        witness.ready()
        group = stack.enter_context(
            process_group(
                spec_from_toml(consumer), launch_context, child_processes=child_processes, lanes=lanes, folder=folder
            )
        )
        thread_group = stack.enter_context(ThreadGroup(f"load of {topic}"))
        stack.callback(thread_group.stop.set)
        thread_group.start("load", produce, load_lane.bootstrap, topic, thread_group.stop)
        group.start()
        assert group.wait_ready(30) == []
        recorder = stack.enter_context(Recorder(folder.history, "nemesis"))
        yield FaultContext(cluster, group, admin, recorder, topic, group_name, folder.history, load_lane, sink)


def produce(bootstrap: str, topic: str, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
    while not pause(0.05, stop=stop):
        for _ in range(RECORDS_PER_S // 20):
            producer.produce(topic, bytes(RECORD_BYTES))
        producer.poll(0)


def settle(context: FaultContext) -> None:
    """Waits until every member fetches records, has a link to the coordinator, and no rebalance is under way or near.

    A member that fetches may not have been told of a rebalance yet, and a session may be about to end whose heartbeats
    an earlier fault has cut off: so each member must have committed from now on, which begins its session anew, and
    then the coordinator must call the group stable.
    """
    names = [member.name for member in context.members()]
    told, heard = HistoryTail(context.history, "consumer-*.jsonl"), set[str | None]()
    list(told.new_events())  # what was before is nothing to us
    routes = sampling.routes_of(context, [(name, broker) for name in names for broker in context.cluster.brokers])
    looks: list[LinkSnapshot] = []

    def settled() -> bool:
        looks.append(sampling.links(routes, {member.name: member.process_group for member in context.members()}))
        coordinator = context.topic_snapshot().coordinator
        known = {(name, coordinator) for name in names} <= set(looks[-1].routes())
        at_work = all(fetched_bytes(looks[-2:], name) > 0 for name in names)  # one that rebalances fetches nothing
        much = all(fetched_bytes(looks[-5:], name) > 10_000 for name in names)
        heard.update(event.member for event in told.new_events() if (event.kind, event.outcome) == ("commit", "ok"))
        return known and at_work and much and set(names) <= heard and is_stable(context)

    wait_until(
        settled,
        within_s=30,
        what="every member to be at work again",
        every_s=0.1,
        detail=lambda: (
            f"{context.topic_snapshot()} {looks[-1]}; since then heard of a commit: {sorted(map(str, heard))}"
        ),
    )


def is_stable(context: FaultContext) -> bool:
    """Asks whichever broker answers for the group: its coordinator, for the others refuse."""
    with closing(Brokers(context.cluster.observer_bootstrap)) as brokers:
        try:
            return brokers.anyone(lambda at: group_state(at, context.group_name)).state == "Stable"
        except NoAnswerError:  # it has just been restarted
            return False


def fetched_bytes(looks: Sequence[LinkSnapshot], client: str) -> int:
    return sum(one.passed_bytes for one in flows(looks, ANSWERS) if one.route[0] == client)


@dataclass(frozen=True)
class Blunt:
    """Stands before a tool and replaces some of its calls; everything else goes to the tool."""

    tool: Any
    calls: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.calls[name] if name in self.calls else getattr(self.tool, name)
