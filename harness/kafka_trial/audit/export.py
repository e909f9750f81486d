"""The export, told as a story: from a cluster that is not ours to a run folder that `check` and `report` understand.

Look whether all is there, read the group's offsets log, then the topic's ends and what the group had left to read,
then the sink and the request logs where they are given. Readers are bounded and run side by side; each source has a
file of its own in `history/`, from which the judge makes its Parquet. Strictly read-only: Metadata, DescribeGroups,
DescribeConfigs, ListOffsets and Fetch are all that is ever sent.

An audit's time is wall time: `time_ns` is nanoseconds since 1970, by the clock of whoever wrote the record (for what
is asked now, this machine's). What could not be read is an `unread` event with its reason.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kafka_trial import __version__
from kafka_trial.audit.asked import NS_PER_S, Asked, stamp
from kafka_trial.audit.ground import Ground, look
from kafka_trial.audit.offsets import OffsetsRead, read_offsets
from kafka_trial.audit.reading import Budget, Log, connect
from kafka_trial.audit.requests import read_request_logs
from kafka_trial.audit.settings import consumer_toml, settings_of, settle_ns
from kafka_trial.audit.topic import Found, ranges_of, read_records, tell_topic
from kafka_trial.cluster.admin import OFFSETS_TOPIC
from kafka_trial.errors import InputError
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RUN_SCHEMA, RunFolder, create_run_folder
from kafka_trial.narrator import Narrator
from kafka_trial.witness import group_questions, questions
from kafka_trial.witness.connection import Brokers, NoAnswerError

KIND = "audit"
CONFIGS = ("cleanup.policy", "retention.ms")
BUFFER_EVENTS = 500
SETTLES = 2  # what was there two windows W before the end should have been handled by the end


@dataclass
class Export:
    """What the steps of an export share, and what they could not read, by the evidence that is missing."""

    asked: Asked
    folder: RunFolder
    brokers: Brokers
    ground: Ground
    narrator: Narrator
    until_s: float
    unread: list[tuple[str, str]] = field(default_factory=list)

    def budget(self) -> Budget:
        return Budget(self.asked.limits, until_s=self.until_s)

    def missing(self, evidence: str, sentences: Sequence[str]) -> None:
        self.unread += [(evidence, sentence) for sentence in sentences]


def export(asked: Asked, *, out: Path | None, narrator: Narrator) -> RunFolder:
    """Exports what an audit needs into a new run folder and returns it.

    Raises:
        InputError: there is no such topic or group, or we may not read it.
        StartError: nobody answers at the bootstrap addresses.
        UnjudgeableError: brokers went away while they were read.
    """
    with ExitStack() as stack:
        brokers = stack.enter_context(connect(asked.bootstrap))
        narrator.phase("look", f"for topic {asked.topic} and group {asked.group} at {asked.bootstrap}")
        ground = look(brokers, asked)
        refuse_unknown_group(brokers, asked, ground)
        folder = create_run_folder(out, KIND, _file_name(asked.group))
        until_s = time.monotonic() + asked.limits.minutes_max * 60
        this = Export(asked, folder, brokers, ground, narrator, until_s)
        _write_run_json(this)
        read = _offsets(this)
        settings = settings_of(asked, read.told)
        (folder.path / "consumer.toml").write_text(consumer_toml(asked, settings), encoding="utf-8")
        drain_ns = asked.until_ns - SETTLES * settle_ns(settings)
        _topic(this, read, drain_ns=max(drain_ns, asked.from_ns))
        _sink(this)
        _requests(this)
        _run(this, read, drain_ns=drain_ns, settle=settle_ns(settings))
    return folder


def refuse_unknown_group(brokers: Brokers, asked: Asked, ground: Ground) -> None:
    """Asks the group's coordinator, which is who leads its partition of the offsets log, whether there is such a group.

    Raises:
        InputError: there is none. Who may not describe groups is not refused: the offsets log will tell.
    """
    log = Log.of(brokers, OFFSETS_TOPIC)
    with suppress(NoAnswerError):
        state = brokers.broker(
            log.leaders[ground.log_partition], lambda connection: group_questions.group_state(connection, asked.group)
        )
        if state.state == group_questions.DEAD:
            raise InputError(
                f"--group {asked.group}",
                "there is no such group now: it never was, its offsets have expired, or it was deleted. Check the name",
            )


def _offsets(this: Export) -> OffsetsRead:
    asked, settle = this.asked, settle_ns(settings_of(this.asked))
    this.narrator.phase("offsets", f"reading partition {this.ground.log_partition} of {OFFSETS_TOPIC}")
    with Recorder(this.folder.history, "offsets", buffer_events=BUFFER_EVENTS) as recorder:
        log, budget = Log.of(this.brokers, OFFSETS_TOPIC), this.budget()
        read = read_offsets(
            log, this.ground.log_partition, asked, recorder, budget, settle_ns=settle, now_ns=time.time_ns()
        )
        recorder.record("witness", time_ns=asked.until_ns, state="complete")
    this.missing("offsets log", read.unread)
    return read


def _topic(this: Export, read: OffsetsRead, *, drain_ns: int) -> None:
    asked, topic = this.asked, this.ground.topic
    this.narrator.phase("topic", f"reading what {asked.group} had left to read of {asked.topic}")
    with Recorder(this.folder.history, "observer", buffer_events=BUFFER_EVENTS) as recorder:
        log, budget = Log.of(this.brokers, asked.topic), this.budget()
        tell_topic(log, topic, _configs(this), recorder)

        def take(found: Found) -> None:
            recorder.record(
                "record",
                time_ns=found.time_ns,
                topic=asked.topic,
                partition=found.partition,
                offset=found.offset,
                id=found.id,
                key=None if found.key is None else found.key.decode(errors="backslashreplace"),
                size_bytes=found.size_bytes,
                source_wall_ns=found.time_ns,
            )

        ranges = ranges_of(log, read.committed, asked, drain_ns=drain_ns)
        reading = read_records(asked, asked.topic, ranges, budget, take)
        state = "incomplete" if reading.unread else "complete"
        recorder.record("control_read", time_ns=asked.until_ns, topic=asked.topic, state=state, count=reading.count)
        recorder.record("witness", time_ns=asked.until_ns, state="complete")
    this.missing("records", reading.unread)


def _configs(this: Export) -> dict[str, str | None]:
    """Returns some configs of the topic; none where we may not describe them."""
    try:
        return this.brokers.anyone(lambda connection: questions.topic_configs(connection, this.asked.topic, CONFIGS))
    except NoAnswerError:
        return {}


def _sink(this: Export) -> None:
    asked = this.asked
    if asked.sink_topic is None or this.ground.sink is None:
        return
    this.narrator.phase("sink", f"reading the ids in {asked.sink_topic}")
    with Recorder(this.folder.history, "sink", buffer_events=BUFFER_EVENTS) as recorder:
        log, budget = Log.of(this.brokers, asked.sink_topic), this.budget()
        starts, ends, first = log.starts(), log.ends(), log.at(asked.from_ns)
        ranges = {
            partition: (max(starts[partition], first[partition][0] if first[partition][0] >= 0 else end), end)
            for partition, end in ends.items()
        }
        nameless: list[int] = []

        def take(found: Found) -> None:
            if found.id is None:
                nameless.append(found.offset)
            elif found.time_ns <= asked.until_ns:
                recorder.record("effect", time_ns=found.time_ns, id=found.id, outcome="ok")

        reading = read_records(asked, asked.sink_topic, ranges, budget, take)
    this.missing("handled", reading.unread)
    if nameless:
        this.missing("handled", [f"the ids of {len(nameless)} records of {asked.sink_topic}: they have none there"])


def _requests(this: Export) -> None:
    if this.asked.request_logs:
        this.narrator.phase("requests", f"reading {len(this.asked.request_logs)} request logs")
        this.missing("requests", read_request_logs(this.asked, this.folder.history))


def _run(this: Export, read: OffsetsRead, *, drain_ns: int, settle: int) -> None:
    """Records what was asked, the phases that stand for it, and what was not read; then the history is whole."""
    asked = this.asked
    until_ns = min(asked.until_ns, read.read_to_ns)
    with Recorder(this.folder.history, "run") as recorder:
        recorder.record("clock", time_ns=asked.from_ns, wall_ns=asked.from_ns)  # this history's clock is the wall's
        recorder.record("topic_named", time_ns=asked.from_ns, topic=asked.topic)
        recorder.record("group_named", time_ns=asked.from_ns, group=asked.group)
        recorder.record(
            "audit",
            time_ns=asked.from_ns,
            from_ns=asked.from_ns,
            until_ns=until_ns,
            drain_ns=drain_ns,
            settle_ns=settle,
            read_to_ns=read.read_to_ns,
            commits=read.inside,
        )
        seconds = (until_ns - asked.from_ns) / NS_PER_S
        if read.advanced:  # at least so fast the group is
            rate = read.advanced / seconds
            recorder.record("calibrated", time_ns=asked.from_ns, count=read.advanced, seconds=seconds, rate=rate)
        for evidence, message in this.unread:
            recorder.record("unread", time_ns=asked.from_ns, name=evidence, message=message)
        for name, at_ns in (("steady", asked.from_ns), ("drain", drain_ns), ("snapshot", until_ns)):
            if name != "drain" or drain_ns > asked.from_ns:
                recorder.record("phase", time_ns=at_ns, phase=name)
        recorder.record("end", time_ns=until_ns, outcome="ok")


def _write_run_json(this: Export) -> None:
    asked = this.asked
    facts = asdict(asked) | {"request_logs": [path.name for path in asked.request_logs], "claim": dict(asked.claim)}
    this.folder.write_json(
        "run.json",
        {
            "schema": RUN_SCHEMA,
            "kind": KIND,
            "kafka_trial": __version__,
            "python": platform.python_version(),
            "audit": facts,
            "exported_at": stamp(time.time_ns()),
        },
    )
    summary = f"group {asked.group} on topic {asked.topic}, {asked.window}"
    this.folder.write_json(
        "scenario.json",
        {
            "schema": RUN_SCHEMA,
            "name": KIND,
            "summary": summary,
            "topic": {"partitions": 0},
        },  # none of them must have had work
    )


def _file_name(group: str) -> str:
    """Returns a group's name as a part of a folder's: what is unusual there becomes a dash."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in group)[:80]
