"""The observer: where the logs of the topics begin and end, who leads, who coordinates, what state the group is in.

A process of its own. It asks gently, twice a second, over the OBSERVER listener and with requests of its own, each
within a short bound: a dead or frozen broker is an `unanswered` event, never a reason to stop. Ends are written at
each look, everything else when it changed. At the snapshot it reads the topics to their ends (`control_read.py`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from kafka_trial.history.event import Slice
from kafka_trial.history.recorder import Recorder
from kafka_trial.kafka_protocol import cluster_queries, group_requests
from kafka_trial.kafka_protocol.cluster_queries import EARLIEST, LATEST, Topic
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.kafka_protocol.group_requests import GroupState
from kafka_trial.process.waiting import pause
from kafka_trial.witness.control_read import control_read
from kafka_trial.witness.rpc_server import BEHIND, COMPLETE, Answer, deadline_s, serve

T = TypeVar("T")
SOURCE: Final = "observer"
EVERY_S: Final = 0.5
PARTITIONS_PER_S: Final = 500  # more partitions are looked at less often
STEP_S: Final = 0.05
RETRY_S: Final = 0.2
ANSWER_WITHIN_S: Final = 1.0
CONFIGS: Final = ("cleanup.policy", "retention.ms")
BUFFER_EVENTS: Final = 500


class Observer:
    """Looks at some topics and the group that reads them; with `reads_anew`, each of several snapshots reads the topics
    from their start: what was there before may be lost. `later`: which of the topics need not be there."""

    def __init__(
        self,
        brokers: Brokers,
        recorder: Recorder,
        *,
        bootstrap: str,
        topics: Sequence[str],
        group: str,
        reads_anew: bool = False,
        later: Collection[str] = (),
    ) -> None:
        self._brokers = brokers
        self._recorder = recorder
        self._bootstrap = bootstrap
        self._names = topics
        self._group = group
        self._topics: dict[str, Topic] = {}
        self._told: dict[tuple[Any, ...], Any] = {}
        self._next_s = time.monotonic()
        self._read_to: dict[Slice, int] = {}
        self._reads_anew = reads_anew
        self._later = later

    def step(self) -> None:
        """Looks when it is time to; else lets a little time pass."""
        left_s = self._next_s - time.monotonic()
        if left_s > 0:
            pause(min(left_s, STEP_S))
            return
        self.look()
        partitions = len(self._places())
        self._next_s = time.monotonic() + max(EVERY_S, partitions / PARTITIONS_PER_S)

    def look(self) -> None:
        """Asks everything once and records what is new, and every log end."""
        self._look_at_topics()
        self.log_ends()
        self._look_at_group()
        self._look_at_controller()
        self._recorder.flush()

    def snapshot(self, *, within_s: float) -> Answer:
        """Reads all ends once more, then every record up to them."""
        until_s = deadline_s(within_s)
        ends: Mapping[Slice, int] = {}
        stable: Mapping[Slice, int] = {}
        starts: Mapping[Slice, int] = {}
        while time.monotonic() < until_s:
            self.look()
            starts, ends, stable = self.log_ends()
            found = all(name in self._topics for name in self._names if name not in self._later)
            if found and ends.keys() == stable.keys() == starts.keys() == self._places():
                return self._control_read(starts, ends, stable, until_s=until_s)
            pause(RETRY_S)
        message = f"the log ends of {', '.join(self._names)} were not all answered within {within_s:g} s"
        for name in self._names:
            self._recorder.record("control_read", topic=name, state="incomplete", count=0, message=message)
        return Answer(BEHIND, message)

    def log_ends(self) -> tuple[dict[Slice, int], dict[Slice, int], dict[Slice, int]]:
        """Asks each leader for the log starts, ends and last stable offsets of its partitions, and records them."""
        by_leader = self._by_leader()
        starts: dict[Slice, int] = {}
        ends: dict[Slice, int] = {}
        stable: dict[Slice, int] = {}
        asked_ns = time.monotonic_ns()
        for leader, places in by_leader.items():
            starts |= self._offsets(leader, places, which=EARLIEST)
            # The last stable offset is asked first, so that it is never above the end beside it.
            stable |= self._offsets(leader, places, which=LATEST, committed=True)
            ends |= self._offsets(leader, places, which=LATEST)
        self._tell_offsets("log_start", starts, always=False)
        self._tell_offsets("last_stable", stable, always=False)
        self._tell_offsets("log_end", ends, always=True, asked_ns=asked_ns)
        return starts, ends, stable

    def _places(self) -> set[Slice]:
        return {(name, part.partition) for name, topic in self._topics.items() for part in topic.partitions}

    def _by_leader(self) -> dict[int, list[Slice]]:
        by_leader: dict[int, list[Slice]] = defaultdict(list)
        for name, topic in self._topics.items():
            for part in topic.partitions:
                by_leader[part.leader].append((name, part.partition))
        return by_leader

    def _log_starts_again(self) -> None:
        """What expired while the control read went on is not lost: the log starts at its end are recorded."""
        for leader, places in self._by_leader().items():
            self._tell_offsets("log_start", self._offsets(leader, places, which=EARLIEST), always=False)

    def _control_read(
        self, starts: Mapping[Slice, int], ends: Mapping[Slice, int], stable: Mapping[Slice, int], *, until_s: float
    ) -> Answer:
        read_to = {} if self._reads_anew else self._read_to
        begin = {place: max(start, read_to.get(place, 0)) for place, start in starts.items()}
        read = control_read(self._bootstrap, begin, stable, self._recorder, until_s=until_s)
        self._log_starts_again()
        self._read_to = {place: min(position, stable[place]) for place, position in read.positions.items()}
        held = {place for place, end in ends.items() if stable[place] < end}
        problems = {name: _problem(read.complete, read.error, _partitions(held, name)) for name in self._topics}
        for name, problem in problems.items():
            self._recorder.record(
                "control_read",
                topic=name,
                topic_id=self._topics[name].topic_id,
                state="incomplete" if problem else "complete",
                count=read.counts.get(name, 0),
                message=problem,
            )
        position, end = sum(self._read_to.values()), sum(ends.values())
        problem = next(filter(None, problems.values()), None)
        return Answer(BEHIND if problem else COMPLETE, problem, position, end)

    def _look_at_topics(self) -> None:
        found = self._asked(
            "metadata",
            lambda: self._brokers.anyone(lambda connection: cluster_queries.metadata(connection, self._names)),
        )
        if found is None:
            return
        self._brokers.by_id = dict(found.brokers)
        for name in self._names:
            topic = found.topics.get(name)
            if topic is None:
                if name not in self._later:
                    self._unanswered("metadata", f"topic {name} does not exist")
                continue
            self._topics[name] = topic
            self._tell_topic(topic)
            for part in topic.partitions:
                self._tell(
                    ("leader", name, part.partition),
                    "leader",
                    topic=topic.name,
                    topic_id=topic.topic_id,
                    partition=part.partition,
                    leader=part.leader,
                    epoch=part.epoch,
                    replicas=list(part.replicas),
                    isr=list(part.isr),
                )

    def _tell_topic(self, topic: Topic) -> None:
        about = topic.topic_id, len(topic.partitions)
        if self._told.get(("topic about", topic.name)) == about:
            return
        configs = self._asked(
            "configs",
            lambda: self._brokers.anyone(
                lambda connection: cluster_queries.topic_configs(connection, topic.name, CONFIGS)
            ),
        )
        if configs is None:
            return  # asked again at the next look
        self._told["topic about", topic.name] = about
        retention_ms = configs.get("retention.ms")
        self._recorder.record(
            "topic",
            topic=topic.name,
            topic_id=topic.topic_id,
            partitions=len(topic.partitions),
            cleanup_policy=configs.get("cleanup.policy"),
            retention_ms=int(retention_ms) if retention_ms else None,
        )

    def _look_at_group(self) -> None:
        node = self._asked(
            "coordinator",
            lambda: self._brokers.anyone(lambda connection: group_requests.coordinator(connection, self._group)),
        )
        if node is None:
            return
        self._tell(("coordinator",), "coordinator", group=self._group, leader=node)
        state = self._asked(
            "group",
            lambda: self._brokers.broker(node, lambda at: group_requests.group_state(at, self._group)),
            broker=node,
        )
        if state is not None:
            self._tell(("group_state",), "group_state", group=self._group, **_group_fields(state))

    def _look_at_controller(self) -> None:
        found = self._asked("controller", lambda: self._brokers.anyone(cluster_queries.quorum))
        if found is not None and found.leader >= 0:
            self._tell(("controller",), "controller", leader=found.leader, epoch=found.epoch)

    def _offsets(
        self, leader: int, places: Sequence[Slice], *, which: int, committed: bool = False
    ) -> dict[Slice, int]:
        found: dict[Slice, int] = {}
        for name in self._names:
            if partitions := _partitions(places, name):
                ask = partial(
                    cluster_queries.list_offsets, topic=name, partitions=partitions, which=which, committed=committed
                )
                told = self._asked("offsets", partial(self._brokers.broker, leader, ask), broker=leader) or {}
                found |= {(name, partition): offset for partition, offset in told.items()}
        return found

    def _tell_offsets(
        self, kind: str, offsets: Mapping[Slice, int], *, always: bool, asked_ns: int | None = None
    ) -> None:
        for (name, partition), offset in sorted(offsets.items()):
            fields: dict[str, Any] = {
                "topic": name,
                "topic_id": self._topics[name].topic_id,
                "partition": partition,
                "offset": offset,
            }
            if always:
                self._recorder.record(kind, **fields, asked_ns=asked_ns)
            else:
                self._tell((kind, name, partition), kind, **fields)

    def _tell(self, about: tuple[Any, ...], kind: str, **fields: Any) -> None:
        """Records an event when it says something else than the last one about the same."""
        if self._told.get(about) != fields:
            self._told[about] = fields
            self._recorder.record(kind, **fields)

    def _asked(self, name: str, question: Callable[[], T], *, broker: int | None = None) -> T | None:
        """Asks; no answer is an event (once, until it changes), and the next look asks again, another broker first."""
        try:
            answer = question()
        except NoAnswerError as error:
            self._unanswered(name, str(error), broker=broker)
            if name == "metadata" or broker is not None:
                self._brokers.ask_another()
            return None
        self._told.pop(("unanswered", name, broker), None)
        return answer

    def _unanswered(self, name: str, message: str, *, broker: int | None = None) -> None:
        self._tell(("unanswered", name, broker), "unanswered", name=name, broker=broker, message=message)


def _partitions(places: Iterable[Slice], topic: str) -> list[int]:
    return sorted(partition for name, partition in places if name == topic)


def _problem(complete: bool, error: str | None, held: Sequence[int]) -> str | None:
    if not complete:
        return f"the control read did not reach the end in time{': ' + error if error else ''}"
    if held:
        return f"open transactions hide records from committed readers, on partitions {held}"
    return None


def _group_fields(state: GroupState) -> dict[str, Any]:
    members = [
        {"member_id": member.member_id, "client_id": member.client_id, "host": member.host}
        | ({"instance_id": member.instance_id} if member.instance_id else {})
        for member in state.members
    ]
    fields = {"state": state.state, "protocol": state.protocol, "epoch": state.epoch, "members": members}
    return {name: value for name, value in fields.items() if value is not None}


def main(arguments: Sequence[str] | None = None) -> int:
    """The process: looks until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m kafka_trial.witness.observe", description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="the OBSERVER listeners, host:port,…")
    parser.add_argument("--history", type=Path, required=True, help="the run folder's history")
    parser.add_argument("--topic", action="append", required=True, help="a topic of the trial (repeatable)")
    parser.add_argument("--group", required=True, help="the group of the trial")
    parser.add_argument("--later", action="append", default=[], help="one of them that need not be there (repeatable)")
    parser.add_argument("--reads-anew", action="store_true", help="at each snapshot, and not what is new alone")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder(options.history, SOURCE, buffer_events=BUFFER_EVENTS))
        brokers = stack.enter_context(Brokers(options.bootstrap, answer_within_s=ANSWER_WITHIN_S))
        observer = Observer(
            brokers,
            recorder,
            bootstrap=options.bootstrap,
            topics=options.topic,
            group=options.group,
            reads_anew=options.reads_anew,
            later=options.later,
        )
        observer.look()
        return serve(observer, [recorder])


if __name__ == "__main__":
    sys.exit(main())
