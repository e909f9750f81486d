"""The last stage of an upgrade that changes anything: the offsets log compacted, and every coordinator loaded again.

`CompactedGroups` is what a play does with it: groups of all kinds are made and the log is compacted before every broker
restarts; afterwards each group is asked for, the trials' own and the others. One that its coordinator does not serve,
or with another position than it has committed, is the cluster's loss.

The log is compacted at once, and proven to be: what a coordinator reads at its next load is a log without tombstones.
The cleaner takes closed segments alone, and a tombstone in two passes: the first one keeps it and notes from when on it
may go (here at once), the second one takes it. So the topic gets settings under which a segment is closed by the next
append and is clean enough never; a commit of a group of our own in each partition, again and again, is that append.
Nothing is inferred from time gone by: each replica is read from the beginning, since each broker cleans its own, and
any of them may coordinate after a restart.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.wiring import OFFSETS_PARTITIONS
from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.kafka_protocol.batches import Record, batches, fetch_replica, records
from kafka_trial.kafka_protocol.cluster_queries import all_topic_configs
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.group_membership import commit, committed
from kafka_trial.kafka_protocol.group_requests import GroupState, coordinator
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, draw_group_name, group_partition
from kafka_trial.kafka_protocol.primitives import DecodeError
from kafka_trial.process.waiting import wait_until
from kafka_trial.upgrade.cluster_state import CLUSTER, Loss, Positions
from kafka_trial.upgrade.side_groups import (
    CLIENT_ID,
    TOPIC,
    SideGroup,
    ask_coordinator,
    described,
    make_side_groups,
    offsets_log,
)

LOADED_WITHIN_S: Final = 30.0
Committed = Mapping[tuple[str, int], int]  # by topic and partition
SETTINGS: Final[Mapping[str, str]] = {
    "delete.retention.ms": "0",  # a tombstone may go at the pass after the one that met it
    "min.cleanable.dirty.ratio": "0",  # whatever was written since the last pass is reason for the next
    "segment.ms": "100",  # a segment is closed by the next append, and only closed ones are cleaned
}
OF_THE_TOPIC: Final = 1  # ConfigSource.DYNAMIC_TOPIC_CONFIG: set for the topic itself
COMPACTED_WITHIN_S: Final = 60.0
TOUCH_EVERY_S: Final = 0.5
Replica = tuple[int, int]  # a partition of the offsets log, and the broker that has it


@dataclass(frozen=True)
class Answer:
    """What a group's coordinator answers: its positions and state, or its refusal; and why it could not load the
    partition of the group, where its log says so."""

    broker: int
    positions: Committed
    state: GroupState | None = None
    refusal: str = ""
    log_line: str = ""


class CompactedGroups:
    """Groups of all kinds beside those on trial, in an offsets log that was compacted under them."""

    def __init__(self, cluster: BootedCluster, groups: Sequence[str], *, seed: int) -> None:
        """Makes the side groups where `groups`, those on trial, lie in the offsets log, and compacts it there.

        Raises:
            UnjudgeableError: a group could not be made, or the log was not compacted in time.
        """
        self._cluster = cluster
        partitions = sorted({group_partition(name, partitions=OFFSETS_PARTITIONS) for name in groups}) or [0]
        self.side_groups = make_side_groups(cluster, partitions, of=OFFSETS_PARTITIONS, seed=seed)
        self.compaction: Compaction = compact(cluster, partitions, seed=seed)
        self._log_sizes = {broker: _size(one.server_log) for broker, one in cluster.brokers.items()}

    def losses(self, written: Mapping[str, tuple[str, Positions]], *, within_s: float = LOADED_WITHIN_S) -> list[Loss]:
        """Returns what was lost since: of the groups on trial (`written`: by group its topic, and the positions that
        its offsets log holds), then of the side groups. To be asked when every broker serves again after its restart.

        Raises:
            UnjudgeableError: a coordinator gives no answer at all.
        """
        on_trial = {
            name: {(topic, partition): position for partition, position in positions.items()}
            for name, (topic, positions) in written.items()
        }
        questions: dict[str, SideGroup | None] = {group.name: group for group in self.side_groups}
        questions = dict.fromkeys(on_trial) | questions
        answers = {name: self._with_log_line(name, one) for name, one in self._ask(questions, within_s).items()}
        return [
            *(loss for name, positions in on_trial.items() for loss in of_trial(name, positions, answers[name])),
            *(loss for group in self.side_groups for loss in of_side_group(group, answers[group.name])),
        ]

    def _ask(self, groups: Mapping[str, SideGroup | None], within_s: float) -> Mapping[str, Answer]:
        """Returns what the coordinator of each group answers; a refusal, where it has not served it in time."""
        answers: dict[str, Answer] = {}
        silent: dict[str, str] = {}

        def all_served() -> bool:
            with suppress(NoAnswerError):
                offsets_log(brokers)  # a broker that was just restarted may have been missing
            for name, side_group in groups.items():
                if name not in answers or answers[name].refusal:
                    try:
                        answers[name] = _asked(brokers, name, side_group)
                        silent.pop(name, None)
                    except NoAnswerError as error:
                        silent[name] = str(error)
            return not silent and not any(answer.refusal for answer in answers.values())

        with Brokers(self._cluster.observer_bootstrap, client_id=CLIENT_ID) as brokers, suppress(WaitTimeout):
            wait_until(all_served, within_s=within_s, what="every group to be loaded", every_s=0.5)
        if silent:
            told = "; ".join(f"no coordinator of {name} answers: {why}" for name, why in silent.items())
            raise UnjudgeableError(told)
        return answers

    def _with_log_line(self, name: str, answer: Answer) -> Answer:
        log = self._cluster.brokers[answer.broker].server_log
        if not log.exists():
            return answer
        with log.open("rb") as file:
            file.seek(self._log_sizes[answer.broker])
            text = file.read().decode(errors="replace")
        return replace(answer, log_line=why_not_loaded(text, _log_partition(name)) or "")


def _asked(brokers: Brokers, name: str, side_group: SideGroup | None) -> Answer:
    """Returns what a group's coordinator answers, be it a refusal; of a side group its state too.

    Raises:
        NoAnswerError: it gives no answer at all, or nobody says who it is.
    """
    broker = brokers.anyone(lambda anyone: coordinator(anyone, name))

    def answered(at: Connection) -> tuple[Committed, GroupState | None]:
        return committed(at, name), described(at, side_group) if side_group else None

    try:
        positions, state = brokers.broker(broker, answered)
    except NoAnswerError as error:
        if error.code is None:
            raise
        return Answer(broker, {}, refusal=str(error))
    return Answer(broker, positions, state)


def why_not_loaded(server_log: str, partition: int) -> str | None:
    """Returns the last line of a broker's log that says why it could not load a partition of the offsets log."""
    place = re.compile(rf"\b(ERROR|WARN)\b.*\bload.*{re.escape(OFFSETS_TOPIC)}-{partition}(?!\d)")
    return next((line for line in reversed(server_log.splitlines()) if place.search(line)), None)


def of_trial(name: str, written: Committed, answer: Answer) -> Iterator[Loss]:
    """Yields what a group on trial has lost: its coordinator, or a position below the one that was written."""
    if answer.refusal:
        yield _not_loaded(name, answer)
        return
    for (topic, partition), position in sorted(written.items()):
        answered = answer.positions.get((topic, partition))
        if answered is None or answered < position:
            yield _loss(_gone(name, f"{topic}-{partition}", position, answered), answer)


def of_side_group(group: SideGroup, answer: Answer) -> Iterator[Loss]:
    """Yields what a side group has lost: its coordinator, its position, its state or its kind; nothing moved it."""
    called = f"{group.name} ({group.kind})"
    if answer.refusal:
        yield _not_loaded(called, answer)
        return
    for topic, partition in sorted({*group.committed, *answer.positions}):
        position = group.committed.get((topic, partition))
        answered = answer.positions.get((topic, partition))
        if position is None:
            sentence = f"the group {called} has a committed offset on {topic}-{partition} again: {answered}"
            yield _loss(sentence, answer)
        elif answered != position:
            yield _loss(_gone(called, f"{topic}-{partition}", position, answered), answer)
    if answer.state is not None and not group.is_in(answer.state):
        was = f"Empty, {group.protocol}" if group.protocol else "Dead"
        now = f"{answer.state.state}, {answer.state.protocol}"
        yield _loss(f"the group {called} was {was}, and its coordinator loaded it as {now}", answer)


def _not_loaded(called: str, answer: Answer) -> Loss:
    place = f"{OFFSETS_TOPIC}-{_log_partition(called.partition(' ')[0])}"
    sentence = f"the group {called} is not served: broker {answer.broker} did not load {place} ({answer.refusal})"
    return _loss(sentence, answer)


def _gone(called: str, place: str, position: int, answered: int | None) -> str:
    return (
        f"the committed offset of {called} on {place} is gone: the offsets log had {position}, its coordinator "
        f"loaded {'none' if answered is None else answered}"
    )


def _loss(sentence: str, answer: Answer) -> Loss:
    why = f"its server.log: {answer.log_line}" if answer.log_line else "its server.log does not say why"
    return Loss(CLUSTER, f"{sentence}; {why}")


def _log_partition(group: str) -> int:
    return group_partition(group, partitions=OFFSETS_PARTITIONS)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


@dataclass(frozen=True)
class Compaction:
    """What was compacted: every replica that was read to prove it, and how many tombstones each partition had had."""

    replicas: tuple[Replica, ...]
    tombstones: Mapping[int, int]


@dataclass
class _Cleaning:
    """Partitions that are being cleaned: `ends`, by partition, is where each log ended when it began."""

    brokers: Brokers
    ends: Mapping[int, int]
    touch_groups: Sequence[str]
    left: dict[Replica, str] = field(default_factory=dict)  # why a replica is not clean yet

    def step(self) -> bool:
        """Touches each partition and reads again what was not clean; True once all is."""
        for group in self.touch_groups:
            with suppress(NoAnswerError):  # it is asked again: without it the log stays as it is, and is read so
                ask_coordinator(self.brokers, group, partial(commit, group=group, topic=TOPIC, positions={0: 0}))
        for partition, broker in list(self.left):
            try:
                found = not_clean(replica_records(self.brokers, partition, broker, end=self.ends[partition]))
            except (NoAnswerError, DecodeError) as error:
                found = str(error)
            if found is None:
                del self.left[partition, broker]
            else:
                self.left[partition, broker] = found
        return not self.left

    def told(self) -> str:
        """Returns what is not clean, as a sentence."""
        return "; ".join(
            f"{OFFSETS_TOPIC}-{partition} on broker {broker}: {why}" for (partition, broker), why in self.left.items()
        )


def compact(
    cluster: BootedCluster, partitions: Sequence[int], *, seed: int, within_s: float = COMPACTED_WITHIN_S
) -> Compaction:
    """Has these partitions of the offsets log compacted as far as they were written, on every broker that has one.

    The side groups' topic is there (`side_groups.py`). The settings of the offsets log are as before afterwards,
    whatever happened. A tombstone that the cleaner has met before stays for as long as the settings said then, by
    default a day: a second attempt after one that was given up does not come to an end.

    Raises:
        UnjudgeableError: a partition had no tombstone, so that nothing would be proven; or no broker answers.
        WaitTimeout: a replica was not clean in time: which one, and what is left in it.
    """
    with (
        Brokers(cluster.observer_bootstrap, client_id=CLIENT_ID) as brokers,
        Admin(cluster.observer_bootstrap) as admin,
    ):
        described = offsets_log(brokers).partitions
        whole = {part.partition: part for part in described if part.partition in partitions}
        ends = {partition: end for partition, end in admin.log_ends(OFFSETS_TOPIC).items() if partition in whole}
        tombstones = {
            partition: count_tombstones(replica_records(brokers, partition, part.leader, end=ends[partition]))
            for partition, part in whole.items()
        }
        if without := sorted(partition for partition, count in tombstones.items() if not count):
            raise UnjudgeableError(
                f"no tombstone lies in the partitions {without} of {OFFSETS_TOPIC}: nothing to prove"
            )
        replicas = tuple((partition, broker) for partition, part in whole.items() for broker in part.replicas)
        rng = random.Random(seed)
        touched = [
            draw_group_name(rng, "kt-touch-", partition=partition, partitions=len(described)) for partition in whole
        ]
        cleaning = _Cleaning(brokers, ends, touched, dict.fromkeys(replicas, "not read yet"))
        with _settings(admin, brokers):
            wait_until(
                cleaning.step,
                within_s=within_s,
                what=f"two cleaning passes over {OFFSETS_TOPIC}",
                every_s=TOUCH_EVERY_S,
                detail=cleaning.told,
            )
        return Compaction(replicas, tombstones)


def not_clean(written: Iterable[Record]) -> str | None:
    """Returns why records were not cleaned in two passes: a tombstone, or a key that is there again; None: they were.

    One pass takes all records of a key but the last. A second one takes the tombstones too.
    """
    known: dict[bytes | None, int] = {}
    for record in written:
        if record.value is None:
            return f"a tombstone at offset {record.offset}"
        if record.key in known:
            return f"one key at the offsets {known[record.key]} and {record.offset}"
        known[record.key] = record.offset
    return None


def count_tombstones(written: Iterable[Record]) -> int:
    """Returns how many records are tombstones."""
    return sum(record.value is None for record in written)


def replica_records(brokers: Brokers, partition: int, broker: int, *, end: int) -> Iterator[Record]:
    """Yields what a broker's own replica of a partition holds below `end`, from the beginning; no control records.

    Raises:
        NoAnswerError: it does not answer, or does not have all of it yet.
        DecodeError: it cannot be read.
    """
    position = 0
    while position < end:
        fetched = brokers.broker(
            broker, partial(fetch_replica, topic=OFFSETS_TOPIC, partition=partition, position=position)
        )
        before = position
        for batch in batches(fetched.data):
            position = max(position, batch.next_offset)
            if not batch.control:
                yield from (record for record in records(batch) if before <= record.offset < end)
        if position == before:
            raise NoAnswerError(f"it has nothing from offset {position} on, of {end}")


@contextmanager
def _settings(admin: Admin, brokers: Brokers) -> Iterator[None]:
    """Gives the offsets log the settings for as long as the `with` lasts."""

    def asked(at: Connection) -> dict[str, str | None]:
        configs = all_topic_configs(at, OFFSETS_TOPIC)
        return {config.name: config.value for config in configs if config.source == OF_THE_TOPIC}

    own = brokers.anyone(asked)
    try:
        admin.set_topic_configs(OFFSETS_TOPIC, SETTINGS)
        yield
    finally:
        admin.set_topic_configs(OFFSETS_TOPIC, {name: own.get(name) for name in SETTINGS})
