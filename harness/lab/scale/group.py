"""The group of a generated history: what its members did and said, and what the offsets log holds of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.scale.lines import Events, Source
from lab.scale.names import DRAIN_NS, GROUP, TOPIC, TOPIC_ID, WALL_NS, entries, who
from lab.scale.planted import FELL_BY, MIDST, Planted, places
from lab.scale.requests import Requests
from lab.scale.shapes import BATCH, BEGIN_NS, SECOND_NS, Ints, World, ranges

HANDLED_NS = 20_000
COMMITTED_NS = 1_000_000  # from asking for a commit to its place in the log
TENTH_NS = SECOND_NS // 10
RECORD = f'"topic":"{TOPIC}","partition":%d,"offset":%d'
POSITION = f'"entries":[{{"topic":"{TOPIC}","partition":%d,"committed_offset":%d}}]'
COMMITTED = (
    f'"group":"{GROUP}","topic":"{TOPIC}","topic_id":"{TOPIC_ID}","partition":%d,"committed_offset":%d,'
    '"commit_time_ms":%d,"log_partition":0,"log_offset":%d,"source_wall_ns":%d'
)
# The turns of one record in its member's file; `EARLY`: a commit that does not wait for the handler.
DELIVERED, EARLY, EARLY_OK, PROCESSED, COMMIT, COMMIT_OK, TURNS = range(7)


class Group:
    """Tells of the group from its first assignment to its end; `open_source` opens the file of a source."""

    def __init__(self, world: World, planted: Planted, open_source: Callable[[str], Source]) -> None:
        self._world, self._planted = world, planted
        self._members = [open_source(f"consumer-m{member}-0") for member in range(world.shape.members)]
        self._offsets = open_source("offsets")
        self._requests = Requests(open_source)
        self._log_offset = 0
        self._ends = np.array([*world.taken_over[:-1], planted.handled])

    def begin(self) -> None:
        """Starts witnesses and members."""
        self._offsets.tell("witness", SECOND_NS, state="ready")
        self._requests.tell_state(SECOND_NS, "ready")
        for number, member in enumerate(self._members):
            member.tell("started", SECOND_NS, **who(number), pid=1000 + number, lane=number)
            member.tell("ready", 2 * SECOND_NS, **who(number))

    def take_over(self, generation: int) -> None:
        """Takes the partitions from their owners and gives them to the next, who begin at what was committed."""
        world = self._world
        at_ns = world.handover_ns(generation) if generation else BEGIN_NS - SECOND_NS
        owners, before = world.owners(generation), world.owners(generation - 1)
        for number, member in enumerate(self._members if generation else ()):
            member.tell("revoked", at_ns, **who(number), entries=entries(np.flatnonzero(before == number)))
        self._tell_generation(generation, at_ns + TENTH_NS, owners)
        committed = world.committed_at[generation]
        for number, member in enumerate(self._members):
            own = np.flatnonzero(owners == number)
            answers = np.where(committed[own] > 0, committed[own] + world.shape.first_offset, -1)
            self._requests.tell_fetched_offsets(at_ns + 3 * TENTH_NS // 2, number, entries(own, answers))
            member.tell("assigned", at_ns + 2 * TENTH_NS, **who(number), entries=entries(own))
        if generation:
            partition, index = ranges(committed, world.taken_over[generation])
            times = at_ns + 3 * TENTH_NS + np.arange(len(index)) * 1000
            self._fetch(generation, partition, index, times, index == committed[partition])
            self._handle(generation, partition, index, times, np.zeros(len(index), np.bool_), index)

    def work(self, generation: int, partition: Ints, turn: Ints) -> None:
        """Has what its turn is in each partition delivered, handled, and committed at the end of a batch."""
        there, index = self._planted.delivered(partition, turn)
        partition, turn, index = partition[there], turn[there], index[there]
        times = self._world.delivered_ns(partition, turn)
        order = np.argsort(times, kind="stable")
        partition, turn, index, times = partition[order], turn[order], index[order], times[order]
        made = self._world.commits_on_revoke[generation + 1][partition]
        last = (turn + 1 == self._ends[generation + 1][partition]) & made
        fallen = np.isin(places(partition, turn), self._planted.fallen)
        value = np.where(fallen, turn - MIDST - FELL_BY, turn + 1)
        if generation == self._world.shape.handovers:
            value = np.where(last, self._planted.last_value(partition), value)
        begins = (turn % BATCH == 0) | (turn == self._world.taken_over[generation][partition])
        self._fetch(generation, partition, turn, times, begins)
        self._handle(generation, partition, index, times, ((turn + 1) % BATCH == 0) | last | fallen, value)
        self._requests.write()

    def end(self) -> None:
        """Stops members and witnesses."""
        at_ns = self._world.end_ns + DRAIN_NS + 3 * SECOND_NS
        owners = self._world.owners(self._world.shape.handovers)
        for number, member in enumerate(self._members):
            member.tell("revoked", at_ns, **who(number), entries=entries(np.flatnonzero(owners == number)))
            member.tell("stopped", at_ns + 1, **who(number))
            asked = {"asked": "stop", "asked_ns": at_ns - TENTH_NS, "within_s": 15}
            member.tell("exited", at_ns + 2, **who(number), code=0, **asked)
        self._offsets.tell("witness", at_ns, state="complete")
        self._requests.tell_state(at_ns, "complete")

    def _tell_generation(self, generation: int, at_ns: int, owners: Ints) -> None:
        assigned = [
            {"topic": TOPIC, "partition": partition, "member_id": f"id-m{owner}"}
            for partition, owner in enumerate(owners.tolist())
        ]
        members = [{"member_id": f"id-m{number}", "client_id": "", "host": ""} for number in range(len(self._members))]
        log = {"log_partition": 0, "log_offset": self._log_offset, "source_wall_ns": at_ns + WALL_NS}
        said = {"group": GROUP, "protocol": "classic", "epoch": generation + 1, "state": "stable", **log}
        self._offsets.tell("group", at_ns, **said, members=members, entries=assigned)
        self._log_offset += 1

    def _fetch(self, generation: int, partition: Ints, turn: Ints, times: Ints, begins: Any) -> None:
        """Has the owners ask for what they are delivered from each turn that begins a fetch."""
        partition, offset = partition[begins], turn[begins] + self._world.shape.first_offset
        self._requests.fetch(partition, offset, times[begins], self._world.owners(generation)[partition])

    def _handle(self, generation: int, partition: Ints, index: Ints, times: Ints, commits: Any, value: Ints) -> None:
        """Tells of records in the order of their delivery, and of the commits (`value`) that follow some of them."""
        owner = self._world.owners(generation)[partition]
        offset, value = index + self._world.shape.first_offset, value + self._world.shape.first_offset
        early = commits & np.isin(places(partition, index), self._planted.early)
        for number, member in enumerate(self._members):
            own = owner == number
            of = [column[own] for column in (partition, index, offset, times, commits, early, value)]
            _tell_work(member, number, *of)
        log_ns = times[commits] + COMMITTED_NS
        partition, value, order = partition[commits], value[commits], np.arange(len(log_ns))
        wall_ns = log_ns + WALL_NS
        columns = (partition, value, wall_ns // 1_000_000, order + self._log_offset, wall_ns)
        self._offsets.write(Events("committed", order, log_ns, COMMITTED, columns))
        self._log_offset += len(order)
        self._requests.commit(generation, partition, value, log_ns, owner[commits])


def _tell_work(
    member: Source,
    number: int,
    partition: Ints,
    index: Ints,
    offset: Ints,
    times: Ints,
    commits: Any,
    early: Any,
    value: Ints,
) -> None:
    """Writes what one member says of its records: each is handled before the next one is delivered."""
    turn = np.arange(len(offset)) * TURNS
    done_ns = times.copy()
    done_ns[:-1] = np.minimum(times[:-1] + HANDLED_NS, times[1:])
    said = f'"member":"m{number}","incarnation":0'
    asked, asked_ns = (partition[commits], value[commits]), done_ns[commits]
    invoked, granted = (
        turn[commits] + np.where(early[commits], before, after)
        for before, after in ((EARLY, COMMIT), (EARLY_OK, COMMIT_OK))
    )
    named = f'{said},{RECORD},"id":"%d-%d"'
    member.write(
        Events("delivered", turn + DELIVERED, times, named, (partition, offset, partition, index)),
        Events("processed", turn + PROCESSED, done_ns, f'{said},"outcome":"done",{RECORD}', (partition, offset)),
        Events("commit", invoked, asked_ns, f'{said},"outcome":"invoke",{POSITION}', asked),
        Events("commit", granted, asked_ns, f'{said},"outcome":"ok",{POSITION},"op":%d', asked, completes=2),
    )
