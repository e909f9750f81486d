"""The context: everything a fault may touch or ask in one trial, handed to the nemesis by the run.

Faults reach brokers, proxies and leaders through the Cluster protocol and members through the Group protocol; the
history is read back only for what witnesses of the brokers wrote into it (O and R).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event
from kafka_trial.history.store import Follower
from kafka_trial.nemesis.asking import ask
from kafka_trial.nemesis.samples import TopicSnapshot

if TYPE_CHECKING:
    from kafka_trial.cluster.admin import Admin
    from kafka_trial.cluster.cluster import Cluster, Lane
    from kafka_trial.consumers.consumer import Group, Member
    from kafka_trial.consumers.sink import Sink
    from kafka_trial.history.recorder import Recorder


WORKLOAD = "workload"  # the load as a client, beside the members m0, m1, …


@dataclass(frozen=True)
class FaultContext:
    """What the nemesis may touch: `cluster` and its proxies, the `group` under trial; what it may ask: `admin`.

    `admin` is the nemesis's own (a short answer time, and not shared with other threads); `recorder` is the one of the
    source "nemesis"; `history` the folder the witnesses write to; `workload_lane` the lane of the load, hit together
    with the members' when a broker is cut off from its clients; `sink` where members ask at crash points, if it is
    there.
    """

    cluster: Cluster
    group: Group
    admin: Admin
    recorder: Recorder
    topic: str
    group_name: str
    history: Path
    workload_lane: Lane | None = None
    sink: Sink | None = None
    _admin_turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def members(self) -> list[Member]:
        """Returns the members that run now, by index."""
        return sorted((member for member in self.group.members if member.alive), key=lambda member: member.index)

    def topic_snapshot(self, *, without: int | None = None) -> TopicSnapshot:
        """Asks every broker but `without` who leads and who coordinates; what nobody answers stays unknown."""
        addresses = dict(enumerate(self.cluster.observer_bootstrap.split(",")))
        return ask(
            [_address(text) for broker, text in addresses.items() if broker != without], self.topic, self.group_name
        )

    def move_leader(self, partition: int, broker: int) -> None:
        """Makes `broker` the leader of a partition of the topic."""
        with self._admin_turn:
            self.admin.move_leader(self.topic, partition, broker)

    def offsets_log(self) -> OffsetsLog:
        """Returns a reader of what the witness of the offsets log has written about this group."""
        return OffsetsLog(Follower(self.history, "offsets.jsonl"), self.group_name)

    def request_log(self) -> RequestLog:
        """Returns a reader of what the witness of the request log will write from now on."""
        return RequestLog(Follower(self.history, "requests-b*.jsonl"))


class OffsetsLog:
    """Events of one group in history/offsets.jsonl since the last look (O)."""

    def __init__(self, follower: Follower, group: str) -> None:
        self._follower = follower
        self._group = group

    def new_events(self) -> Iterator[Event]:
        """Yields what was appended about the group."""
        return (event for event in self._follower.new_events() if event.details.get("group") == self._group)


class RequestLog:
    """Requests that brokers answered, counted by API, as history/requests-b*.jsonl has them (R)."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.count(())

    def count(self, lanes: Collection[int]) -> dict[str, int]:
        """Returns how many requests of each API came over `lanes` since the last count."""
        details = (event.details for event in self._follower.new_events() if event.kind == "request")
        return dict(sorted(Counter(one["api"] for one in details if one.get("lane") in lanes).items()))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)
