"""Each commit of an audit as a finding has to name it: when, on which partition, from where to where, and by whom.

Told by the offsets log in its own order, read once: it says what stood before a commit, who owned the partition there,
and who was in the group. Who *made* the commit only a request log says (`made_by`); without one the owner is named, and
for a group without members whoever was in it last.

A position that is moved while a group has no members was reset (kafka-consumer-groups --reset-offsets does just that),
or a consumer that is no member of the group did it (`assign`). Forward it passes over records, backward it has them
done again. A consumer without a group commits again and again: three steps forward in a row are its own progress.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_trial.audit.request import NS_PER_S, stamp
from kafka_trial.audit.request_log_files import address_of
from kafka_trial.history.event import Event

PROGRESS_MIN = 3  # steps forward on a partition while nobody is in the group, all of them commits of one consumer
REQUEST_TOLERANCE_NS = NS_PER_S  # between the clock of who wrote the commit and who logged the request
SHOWN_MAX, LISTED_MAX = 5, 10
NAME_MAX = 120


@dataclass(frozen=True)
class Client:
    """A client as its group's records or its requests name it; `member_id` "": it is no member, None: left out."""

    member_id: str | None
    client_id: str
    host: str

    def __str__(self) -> str:
        member = f" (member {_shown(self.member_id)})" if self.member_id else " (no member of the group)"
        name = f"client {_shown(self.client_id) or '?'} on host {_host(self.host)}"
        return name if self.member_id is None else name + member


@dataclass(frozen=True)
class Commit:
    """A commit: where and when it was written, and what the log says of the moment.

    `before` is the position that stood on its partition (None: none is known), `before_topic_id` of which topic that
    was. `members` counts who was in the group (None: not known), `owner` had the partition. `last` were in the group
    until `left_ns`, where it is empty; `stretch` numbers the times that it was. `requested_by` made it, says a request
    log.
    """

    wall_ns: int
    log_offset: int
    partition: int = 0
    before: int | None = None
    after: int = 0
    topic_id: str | None = None
    before_topic_id: str | None = None
    members: int | None = None
    owner: Client | None = None
    last: tuple[Client, ...] = ()
    left_ns: int | None = None
    stretch: int = 0
    requested_by: str | None = None

    @property
    def first(self) -> bool:
        """Whether no commit of its partition is known that stands before it."""
        return self.before is None

    @property
    def other_topic(self) -> bool:
        """Whether the position before it was of another topic of that name: the one was deleted, the other made."""
        return None not in (self.topic_id, self.before_topic_id) and self.topic_id != self.before_topic_id

    @property
    def outside(self) -> bool:
        """Whether it moved a position while the group, which had had members, had none."""
        return self.members == 0 and self.stretch > 0 and self.before not in (None, self.after) and not self.other_topic

    @property
    def moved(self) -> str:
        """Which position it moved, from where to where."""
        begun = "" if self.before is None else f"from {self.before} "
        return f"partition {self.partition} {begun}to {self.after}"

    @property
    def when_and_who(self) -> str:
        """When it was made, and who made it, or who is nearest to it."""
        return f"at {stamp(self.wall_ns)}, {self._who}"

    @property
    def _who(self) -> str:
        if self.requested_by:
            return f"by {self.requested_by}"
        if self.members == 0 and self.left_ns is not None:
            last = some([replace(one, member_id=None) for one in self.last])
            return f"by somebody outside the group, whose last members ({last}) had left at {stamp(self.left_ns)}"
        if self.members == 0:
            return "by somebody outside the group"
        return f"while {self.owner} owned it" if self.owner else "by whom is not known (a request log would tell)"


@dataclass
class Group:
    """Who is in the group, and who owns what, at a place of its offsets log; takes its events in order."""

    topic: str
    topic_id: str | None = None
    known: bool = False
    stretch: int = 0
    left_ns: int | None = None
    clients: dict[str, Client] = field(default_factory=dict)
    last: tuple[Client, ...] = ()
    _owners: dict[int, str] = field(default_factory=dict)
    _met: dict[str, Client] = field(default_factory=dict)
    _had_members: bool = False

    def take(self, event: Event) -> None:
        """Takes an event of the group into account."""
        before = tuple(self.clients.values())
        self._take(event)
        self._had_members |= bool(before or self.clients) or _epoch(event) > 0
        if self._had_members and self.known and not self.clients and (before or not self.stretch):
            self.stretch += 1
            self.last, self.left_ns = before or self.last, event.source_wall_ns if before else self.left_ns

    def owner(self, partition: int) -> Client | None:
        """Returns who owns a partition, by the last assignment that names it."""
        return self._met.get(self._owners.get(partition, ""))

    def _take(self, event: Event) -> None:
        details, member_id = event.details, str(event.details.get("member_id") or "")
        if event.kind == "group":
            self.known = True
            self.clients = {client.member_id or "": client for client in map(client_of, details.get("members") or ())}
            self._met |= self.clients
            self._owners = {at: entry["member_id"] for entry, at in self._ours(details.get("entries"))}
        elif event.kind == "member" and member_id:
            self.known = True
            self.clients[member_id] = self._met[member_id] = client_of(details)
        elif event.kind == "member_assignment" and member_id:
            kept = {at: owner for at, owner in self._owners.items() if owner != member_id}
            self._owners = kept | {at: member_id for _, at in self._ours(details.get("entries"))}
        elif event.kind == "group_tombstone" and not member_id and details.get("record_type") in (2, 3):
            self.known, self.clients = True, {}
        elif event.kind == "group_epoch":
            self.known = True  # of KIP-848: whose members have records of their own, which compaction keeps
        elif event.kind == "group_tombstone" and details.get("record_type") == 5:
            self.known = True
            self.clients.pop(member_id, None)

    def _ours(self, entries: object) -> Iterator[tuple[Mapping[str, str], int]]:
        for entry in entries if isinstance(entries, Sequence) else ():
            name, topic_id = entry.get("topic"), entry.get("topic_id")
            if name == self.topic or (name is None and self.topic_id in (None, topic_id)):
                yield entry, int(entry["partition"])


def commits_of(
    events: Iterable[Event], *, topic: str, topic_id: str | None, aborted: Collection[object] = ()
) -> Iterator[tuple[str, Commit]]:
    """Yields the commits on a topic by their events' names, in the order of the log.

    `events` are those of one group: its records, commits and tombstones. What was written at the places `aborted` never
    stood.
    """
    group, standing = Group(topic, topic_id), dict[int, tuple[int, str | None]]()
    for event in events:
        place, partition = event.details.get("log_offset"), event.partition or 0
        if event.kind == "commit_tombstone":
            standing.pop(partition, None)
        elif event.kind != "committed":
            group.take(event)
        elif isinstance(place, int) and place not in aborted and event.committed_offset is not None:
            before, before_topic_id = standing.get(partition, (None, None))
            standing[partition] = event.committed_offset, event.topic_id
            yield (
                event.name,
                Commit(
                    wall_ns=event.source_wall_ns or event.time_ns,
                    log_offset=place,
                    partition=partition,
                    before=before,
                    after=event.committed_offset,
                    topic_id=event.topic_id,
                    before_topic_id=before_topic_id,
                    members=len(group.clients) if group.known else None,
                    owner=group.owner(partition),
                    last=group.last,
                    left_ns=group.left_ns,
                    stretch=group.stretch,
                ),
            )


@dataclass
class Owners:
    """Who owned which partition when, by the group's records; takes them in order."""

    topic: str
    topic_id: str | None = None
    _changes: dict[int, list[tuple[int, Client | None]]] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event], *, topic: str, topic_id: str | None, partitions: Iterable[int]) -> Owners:
        """Returns the owners of some partitions."""
        owners, group, partitions = cls(topic, topic_id), Group(topic, topic_id), list(partitions)
        for event in events:
            group.take(event)
            for partition in partitions:
                changes, owner = owners._changes.setdefault(partition, []), group.owner(partition)
                if not changes or changes[-1][1] != owner:
                    changes.append((event.source_wall_ns or event.time_ns, owner))
        return owners

    def at(self, partition: int | None, wall_ns: int) -> Client | None:
        """Returns who owned a partition at a time, by the coordinator's clock."""
        before = [owner for since_ns, owner in self._changes.get(partition or 0, ()) if since_ns <= wall_ns]
        return before[-1] if partition is not None and before else None


def moved_forward(commits: Iterable[Commit]) -> list[Commit]:
    """Returns the commits that moved a position forward while the group had no members.

    What a consumer that is no member commits as it goes is none of these: several steps on a partition, one after the
    other, while the group stays empty.
    """
    steps: dict[tuple[int, int], list[Commit]] = {}
    for one in commits:
        if one.outside and one.after > (one.before or 0):
            steps.setdefault((one.stretch, one.partition), []).append(one)
    return [one for some_steps in steps.values() if len(some_steps) < PROGRESS_MIN for one in some_steps]


def with_requesters(commits: Mapping[str, Commit], requests: Iterable[Event]) -> dict[str, Commit]:
    """Returns the commits with who asked for each, by the brokers' request logs."""
    asked: dict[tuple[int, int], list[Event]] = {}
    for event in requests:
        for entry in event.details.get("entries") or ():
            if entry.get("error") == 0 and "committed_offset" in entry:
                asked.setdefault((entry.get("partition"), entry["committed_offset"]), []).append(event)
    return {name: replace(one, requested_by=_requester(one, asked)) for name, one in commits.items()}


def _requester(one: Commit, asked: Mapping[tuple[int, int], Sequence[Event]]) -> str | None:
    """Returns who asked for a commit: it was written while the request was handled."""
    for event in asked.get((one.partition, one.after), ()):
        answered_ns = event.source_wall_ns or event.time_ns
        begun_ns = answered_ns - int(float(event.details.get("duration_ms") or 0) * 1e6)
        if begun_ns - REQUEST_TOLERANCE_NS <= one.wall_ns <= answered_ns + REQUEST_TOLERANCE_NS:
            return str(client_of(event.details))
    return None


def together(told: Iterable[tuple[str, str]]) -> str:
    """Returns pairs of what was moved, and when and by whom, in words: the latter once for all that it is true of."""
    by_time: dict[str, list[str]] = {}
    for moved, when_and_who in dict.fromkeys(told):
        by_time.setdefault(when_and_who, []).append(moved)
    return "; ".join(
        " ".join(filter(None, (_listed([one for one in moved if one]), when))) for when, moved in by_time.items()
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED_MAX} more" if len(names) > LISTED_MAX else ""
    return ", ".join(names[:LISTED_MAX]) + more


def some(clients: Collection[Client]) -> str:
    """Returns the first few clients in words."""
    more = f" and {len(clients) - SHOWN_MAX} more" if len(clients) > SHOWN_MAX else ""
    return ", ".join(str(one) for one in list(clients)[:SHOWN_MAX]) + more


def client_of(told: Mapping[str, Any]) -> Client:
    """Returns the client that a member's record or a request names."""
    host = told["host"] if "host" in told else address_of(told)[0]
    return Client(str(told.get("member_id") or ""), str(told.get("client_id") or ""), str(host))


def _epoch(event: Event) -> int:
    value = event.details.get("epoch") if event.kind in ("group", "group_epoch") else None
    return value if isinstance(value, int) else 0


def _host(host: str) -> str:
    """Returns a host as people write it: Kafka's brokers put a slash before an address."""
    return _shown(host.removeprefix("/")) or "?"


def _shown(name: object) -> str:
    """Returns a name that a stranger chose, on one line and bounded; a slash would look like a path."""
    return "".join(letter if letter.isprintable() else "·" for letter in str(name))[:NAME_MAX]
