"""Setting up: opens everything one trial needs, writes down its spec, and closes in reverse order.

run.json says of a trial its host, versions, commits, seed, limits, and a digest of everything that was run. What the
brokers and Toxiproxy logged meanwhile is kept in the run folder (bounded).
"""

from __future__ import annotations

import hashlib
import os
import platform
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from kafka_trial import __version__, registry
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.cluster import Cluster, Lane
from kafka_trial.cluster.kafka_cut import cuts_on
from kafka_trial.cluster.postgres import PostgresServer, TableRead, postgres_server
from kafka_trial.cluster.toxiproxy import TOXIPROXY_VERSION, Toxiproxy
from kafka_trial.cluster.wiring import CONSUMER_SESSION_TIMEOUT_S, LOOPBACK
from kafka_trial.consumers.patched_consumer import build_consumer_folder, find_patch, merged_text
from kafka_trial.consumers.process import (
    LaunchContext,
    dead_letter_topics,
    intermediate_topics,
    process_group,
    sink_topic,
)
from kafka_trial.consumers.sink import Sink, start_sink
from kafka_trial.consumers.spec import ConsumerSpec
from kafka_trial.containers.network import require_image
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.history.record_ids import ID_FIELD, ID_HEADER
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RUN_SCHEMA, RunFolder
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, draw_group_name
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.schedule import plan_to_table
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.registry import plugin_names
from kafka_trial.scenario import Topic, scenario_to_table
from kafka_trial.trial.console import Console
from kafka_trial.trial.consumer_files import consumer_files
from kafka_trial.trial.environment import TrialEnvironment, shortage
from kafka_trial.trial.group_watch import GroupWatch
from kafka_trial.trial.progress import Progress
from kafka_trial.trial.provenance import provenance
from kafka_trial.trial.spec import TrialSpec
from kafka_trial.trial.topics import create_topic, create_topics, delete_topic, delete_topics_made
from kafka_trial.witness.samplers import sample_clock, sample_resources
from kafka_trial.witness.witness import IntermediateTopicsRead, SinkTableRead, SinkTopicRead
from kafka_trial.workload.payload import OURS, PayloadFiles, keep_payload

ASKED_AT = ("http", "postgres")  # sinks with a URL at which members may ask at crash points
SUCCESSOR_TOML = "successor-{number}.toml"
REACHED_WITHIN_S = 10.0


@contextmanager
def open_trial_environment(
    trial_spec: TrialSpec,
    cluster: Cluster,
    folder: RunFolder,
    console: Console,
    *,
    beside: TrialEnvironment | None = None,
) -> Iterator[TrialEnvironment]:
    """Opens everything a trial needs and closes it in reverse order; of a further group, `beside` the first one's.

    Raises:
        StartError: lanes, topic, processes or room on the disk are not to be had.
        InputError: the schedule to replay is wrong, or a patch of the consumer does not apply.
    """
    with ExitStack() as stack:
        try:
            environment = _opened(stack, trial_spec, cluster, folder, console, beside)
        except OSError as error:
            message = f"the history in {folder.path} cannot be begun: {error}; free space, or choose --out"
            raise StartError(message) from error
        yield environment


def _opened(
    stack: ExitStack,
    trial_spec: TrialSpec,
    cluster: Cluster,
    folder: RunFolder,
    console: Console,
    beside: TrialEnvironment | None,
) -> TrialEnvironment:
    if short := shortage(folder.path):
        raise StartError(short)
    rng = random.Random(secrets.token_bytes(8))  # names must be fresh each time; nothing judged follows from them
    run = stack.enter_context(Recorder(folder.history, "run"))
    thread_group = stack.enter_context(ThreadGroup("run", real_time=True))
    child_processes = stack.enter_context(ChildProcesses("trial"))
    stack.enter_context(cluster_logs_kept(cluster, folder.logs))
    admin = stack.enter_context(Admin(cluster.observer_bootstrap))
    kept_in, trial_spec = trial_spec.consumer.folder, _with_consumer_built(trial_spec, folder)
    for image in (one.image for one in (trial_spec.consumer, *trial_spec.successors)):
        if image is not None and (network := cluster.container_network) is not None:
            network.images[image] = require_image(network.client, image)
    payload = trial_spec.payload if trial_spec.payload == OURS else keep_payload(trial_spec.payload, folder.payload)
    _write_trial_spec(trial_spec, cluster, folder, kept_in)
    lanes = stack.enter_context(cluster.lease_lanes(trial_spec.lanes))
    if trial_spec.plan.cuts:
        stack.enter_context(cuts_on(cluster.toxiproxy, lanes[:-1]))
    thread_group.start("clock", sample_clock, run, thread_group.stop)
    topics = (
        create_topics(stack, trial_spec.scenario, cluster, admin) if beside is None else _topics_of(trial_spec, beside)
    )
    later = [one for one, comes_later in zip(topics, trial_spec.scenario.later, strict=True) if comes_later]
    there = [one for one in topics if one not in later]
    topic = topics[0]
    before = frozenset(admin.topics())
    group_name = _group_name(rng, cluster, admin, lanes, apart=trial_spec.plan.breaks_brokers)
    ours = (group_name, topic) if beside is None else (group_name,)
    stack.callback(delete_topics_made, cluster, admin, ours, before)
    for name in there:
        run.record("topic_named", topic=name)
    run.record("group_named", group=group_name, consumer_session_timeout_ms=round(CONSUMER_SESSION_TIMEOUT_S * 1000))
    host = cluster.container_network.gateway if cluster.container_network else LOOPBACK
    nemesis = stack.enter_context(Recorder(folder.history, "nemesis"))
    if cluster.container_network is not None and trial_spec.consumer.evidence.sink in ASKED_AT:
        _require_way_back(cluster.toxiproxy, host)
    sink = _sink(stack, trial_spec, folder, host, nemesis, lambda name: group.kill_now(name))  # noqa: PLW0108 - it is made below
    postgres = _postgres(stack, trial_spec, folder, host)
    launch_context = LaunchContext(
        topic,
        group_name,
        trial_spec.seed,
        trial_spec.kafka_version,
        trial_spec.members,
        _sink_urls(sink),
        postgres.words if postgres else {},
        host,
        tuple(there[1:]),
        tuple(later),
    )
    output = (
        _sink_table(trial_spec, postgres)
        if postgres
        else _sink_topic(stack, trial_spec, cluster, admin, launch_context)
    )
    identity = trial_spec.consumer.identity
    through = IntermediateTopicsRead(
        intermediate_topics(trial_spec.consumer, launch_context),
        dead_letter_topics(trial_spec.consumer, launch_context),
        identity.header or ID_HEADER,
        identity.json_path or ID_FIELD,
    )
    group = stack.enter_context(
        process_group(
            trial_spec.consumer,
            launch_context,
            child_processes=child_processes,
            lanes=lanes[:-1],
            folder=folder,
            group_size=lambda: admin.stable_size(group_name),
            run=run,
            network=cluster.container_network,
            successors=trial_spec.successors,
        )
    )
    thread_group.start(
        "resource-sampler",
        lambda: sample_resources(run, lambda: group.members, thread_group.stop, brokers=cluster.broker_waits.share),
    )
    context = FaultContext(
        *(cluster, group, admin, nemesis, topic, group_name, folder.history, lanes[-1], sink),
        progress_in_kafka=trial_spec.consumer.progress.kind in ("kafka", "transaction"),
        due_s=lambda ends: environment.due_s(ends),  # noqa: PLW0108 - it is made below
        busier_s=lambda since_ns: environment.busier_s(since_ns),  # noqa: PLW0108 - as above
        later_topics={name.removeprefix(f"{topic}-"): name for name in later},
        create_later_topic=lambda name: environment.create_later_topic(name),  # noqa: PLW0108 - as above
    )
    environment = TrialEnvironment(
        trial_spec=trial_spec,
        cluster=cluster,
        folder=folder,
        console=console,
        run=run,
        child_processes=child_processes,
        admin=admin,
        topics=topics,
        absent={*later},
        group_name=group_name,
        lanes=lanes,
        group=group,
        context=context,
        progress=Progress(
            folder,
            topics,
            group_name,
            by_sends=trial_spec.scenario.load.aborted_ratio > 0,
            by_effects=trial_spec.consumer.evidence.sink != "none",
            no_effect=trial_spec.consumer.evidence.no_effect,
        ),
        watch=GroupWatch(folder.history, group_name, trial_spec.consumer, trial_spec.successors),
        stack=stack,
        payload=payload,
        output=output,
        through=through,
        postgres=postgres,
        beside=beside,
    )
    return environment


def _topics_of(trial_spec: TrialSpec, beside: TrialEnvironment) -> tuple[str, ...]:
    """Returns which of the topics of the trial beside it a further group reads."""
    return tuple(beside.topics[place] for place in trial_spec.reads)


def _require_way_back(toxiproxy: Toxiproxy, host: str) -> None:
    """Makes sure that containers reach this machine, where the sink listens: a member's effects would not arrive.

    Raises:
        StartError: they do not.
    """
    if not toxiproxy.reaches(host, within_s=REACHED_WITHIN_S):
        raise StartError(
            f"containers do not reach this machine at {host}, where the sink of a trial listens (no connection within "
            f"{REACHED_WITHIN_S:g} s): a firewall between? Let the networks of containers in (with ufw: `ufw allow "
            f'from {host.rpartition(".")[0]}.0/24`), or use sink = "topic"'
        )


def _with_consumer_built(trial_spec: TrialSpec, folder: RunFolder) -> TrialSpec:
    """Returns a spec whose consumer, where it is stored as a patch, lies in the run folder as any other would."""
    built = dict[Path, Path]()  # variants of one consumer lie in one folder

    def in_run_folder(consumer: ConsumerSpec) -> ConsumerSpec:
        if find_patch(consumer.folder) is None:
            return consumer
        if consumer.folder not in built:
            built[consumer.folder] = build_consumer_folder(consumer.path, folder.consumer).parent
        return replace(consumer, path=built[consumer.folder] / consumer.path.name)

    if all(find_patch(one.folder) is None for one in (trial_spec.consumer, *trial_spec.successors)):
        return trial_spec
    consumer, *successors = map(in_run_folder, (trial_spec.consumer, *trial_spec.successors))
    return replace(trial_spec, consumer=consumer, successors=tuple(successors))


def _write_trial_spec(trial_spec: TrialSpec, cluster: Cluster, folder: RunFolder, kept_in: Path) -> None:
    """Writes what was asked and what it runs on; `kept_in` is where the consumer's team keeps its files."""
    metadata = provenance(kept_in, run=folder.path) | run_metadata(
        seed=trial_spec.seed,
        kafka_version=trial_spec.kafka_version,
        consumer_file=trial_spec.consumer.path,
        payload=trial_spec.payload,
        scenario_file=_scenario_file(trial_spec),
        rebuilt_because=cluster.rebuilt_because,
    )
    if trial_spec.consumer.image is not None and cluster.container_network is not None:
        metadata |= {"consumer_image": trial_spec.consumer.image, "images": cluster.container_network.images}
    if trial_spec.successors:
        metadata["successors"] = [
            {"file": str(one.path.absolute()), "digest": consumer_files(one.path, trial_spec.payload).digest}
            for one in trial_spec.successors
        ]
    folder.write_json("run.json", metadata)
    folder.write_json("scenario.json", scenario_to_table(trial_spec.scenario))
    folder.write_json("schedule.json", plan_to_table(trial_spec.plan))
    for number, one in enumerate((trial_spec.consumer, *trial_spec.successors)):
        name = SUCCESSOR_TOML.format(number=number) if number else "consumer.toml"
        (folder.path / name).write_text(merged_text(one.path), encoding="utf-8")


def _scenario_file(trial_spec: TrialSpec) -> str | None:
    """Returns the file that holds the scenario; that of the run folder for a value that is registered nowhere."""
    if trial_spec.scenario_file is not None:
        return str(trial_spec.scenario_file)
    known = registry.named_scenario(trial_spec.scenario.name) == trial_spec.scenario
    return None if known else "scenario.json"


def _sink_topic(
    stack: ExitStack, trial_spec: TrialSpec, cluster: Cluster, admin: Admin, launch_context: LaunchContext
) -> SinkTopicRead | None:
    """Creates the topic that the consumer's output goes to, if there is one; the trial's end deletes it.

    Its times are the broker's: when an output was written is not to be the word of whoever wrote it.
    """
    name, consumer, scenario = sink_topic(trial_spec.consumer, launch_context), trial_spec.consumer, trial_spec.scenario
    if name is None:
        return None
    partitions = consumer.sink_topic.partitions or scenario.topic.partitions
    output = Topic(partitions=partitions, configs={"message.timestamp.type": "LogAppendTime"})
    create_topic(output, cluster, admin, name)
    stack.callback(delete_topic, cluster, admin, name)
    identity = consumer.identity
    return SinkTopicRead(name, partitions, identity.header or ID_HEADER, identity.json_path or ID_FIELD)


def _postgres(stack: ExitStack, trial_spec: TrialSpec, folder: RunFolder, host: str) -> PostgresServer | None:
    """Boots the PostgreSQL that the consumer's output goes to, if it goes to one; the trial's end ends it."""
    if trial_spec.consumer.evidence.sink != "postgres":
        return None
    return stack.enter_context(postgres_server(log=folder.logs / "postgres.log", host=host))


def _sink_table(trial_spec: TrialSpec, postgres: PostgresServer) -> SinkTableRead:
    """Creates the table that the consumer's output goes to, by the team's schema."""
    consumer, sink = trial_spec.consumer, trial_spec.consumer.sink_postgres
    read = TableRead(
        table=sink.table,
        id_column=consumer.identity.column or ID_FIELD,
        schema_file=consumer.folder / sink.schema_file,
        value_column=sink.value_column,
        content=sink.content,
    )
    postgres.prepare(read)
    return SinkTableRead(
        address=postgres.own_address,
        table=read.table,
        id_column=read.id_column,
        value_column=read.value_column,
        content=read.content,
        effects=consumer.evidence.effects,
    )


def _group_name(rng: random.Random, cluster: Cluster, admin: Admin, lanes: Sequence[Lane], *, apart: bool) -> str:
    """Draws a group name on a partition of the offsets log of its own; `apart`: not led by the controller's broker.

    Only what has the cluster to itself may move leaders: beside others it would move their coordinators.
    """
    offsets = admin.restore_leaders(OFFSETS_TOPIC) if apart else admin.describe(OFFSETS_TOPIC)
    if offsets is None:
        raise UnjudgeableError(f"{OFFSETS_TOPIC} is not there although the cluster was booted with it")
    controller = admin.controller() if apart else None
    good = [part.partition for part in offsets.partitions if part.leader != controller]
    if not good:
        raise UnjudgeableError(f"every partition of {OFFSETS_TOPIC} is led by the controller's broker, {controller}")
    return draw_group_name(
        rng, "kt-group-", partition=good[lanes[0].index % len(good)], partitions=len(offsets.partitions)
    )


def _sink(
    stack: ExitStack,
    trial_spec: TrialSpec,
    folder: RunFolder,
    host: str,
    nemesis: Recorder,
    kill: Callable[[str], None],
) -> Sink | None:
    """Starts the HTTP sink; where the effects go to a table it is there for crash points only, and the nemesis writes
    down who asked."""
    if trial_spec.consumer.evidence.sink not in ASKED_AT:
        return None
    if trial_spec.consumer.evidence.sink == "postgres":
        return stack.enter_context(start_sink(nemesis, host=host, kill=kill, takes_effects=False))
    recorder = stack.enter_context(Recorder(folder.history, "sink"))
    identity = trial_spec.consumer.identity
    return stack.enter_context(
        start_sink(recorder, host=host, header=identity.header, json_path=identity.json_path, kill=kill)
    )


def _sink_urls(sink: Sink | None) -> Callable[[str], str]:
    return sink.url if sink else lambda member: ""


KEPT_BYTES_MAX = 5_000_000


@contextmanager
def cluster_logs_kept(cluster: Cluster, logs: Path) -> Iterator[None]:
    """Copies what each log of the cluster grew by while the body ran into `logs`; of much, the end."""
    begins = {name: _size(path) for name, path in _logs_of(cluster).items()}
    try:
        yield
    finally:
        for name, path in _logs_of(cluster).items():  # brokers may have come meanwhile
            with suppress(OSError):  # a log that cannot be kept spoils no trial
                (logs / name).write_bytes(_grown(path, begins.get(name, 0)))


def _logs_of(cluster: Cluster) -> dict[str, Path]:
    """Returns where the logs of a cluster are, by the names that they get in a run folder."""
    logs = {f"{name}-server.log": log for name, log in cluster.server_logs.items()}
    return logs | {"toxiproxy.log": cluster.folder / "toxiproxy.log"}


def _grown(path: Path, begin: int) -> bytes:
    with path.open("rb") as log:
        log.seek(max(begin, _size(path) - KEPT_BYTES_MAX))
        return log.read(KEPT_BYTES_MAX)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


LIBRARIES = ("aiokafka", "confluent-kafka", "kafka-python", "numpy", "pyarrow", "pyspark")


def run_metadata(
    *,
    seed: int,
    kafka_version: str,
    consumer_file: Path,
    payload: PayloadFiles = OURS,
    scenario_file: str | None = None,
    rebuilt_because: str | None = None,
) -> dict[str, Any]:
    """Returns the facts of run.json that stand before the trial begins; no environment values, no secrets.

    `scenario_file` says what runs this scenario again, where it has no registered name; relative to the run folder.
    `rebuilt_because`: the warm cluster of the trials before was not used again, for this reason.
    """
    return {
        "schema": RUN_SCHEMA,
        "kafka_trial": __version__,
        "seed": seed,
        "kafka": kafka_version,
        "toxiproxy": TOXIPROXY_VERSION,
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "machine": {
            "system": platform.system(),
            "kernel": platform.release(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
        },
        "consumer_file": str(consumer_file.absolute()),
        "consumer_digest": consumer_files(consumer_file, payload).digest,
        "scenario_file": scenario_file,
        "cluster_rebuilt_because": rebuilt_because,
        **({"plugins": known} if (known := {name: plugin_digest(name) for name in plugin_names()}) else {}),
    }


def plugin_digest(name: str) -> str:
    """Returns a digest of what a plug-in's file holds; empty for an installed module."""
    file = Path(name)
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.is_absolute() else ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
