"""Histories that look like real trials, for the test that two judges agree.

Hypothesis draws a `Plan` (members, partitions, protocol, handovers, at most one sin) and a seed for the jitter; `World`
plays it: members poll, handle and commit, witnesses write what brokers would have seen. A sin is one planted deviation;
without one, the history is that of a sound at-least-once consumer.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from kafka_trial.history.event import CORE_FIELDS, Event

MS = 1_000_000
SECOND = 1_000_000_000
WALL_OFFSET_NS = 1_750_000_000 * SECOND
GROUP, TOPIC, TOPIC_ID = "group-1", "orders", "topic-id-1"

MEMORY_MAX_BYTES = 1000

Slice = tuple[str, int]

SINS = (
    "retry",
    "twice",
    "swallow",
    "unknown-commit",
    "lost-in-hand",
    "skip",
    "skip-at-crash",
    "unseen",
    "below-floor",
    "rewind",
    "reorder",
    "overlap",
    "wobble",
    "regress",
    "zombie-low",
    "zombie-high",
    "ahead-by-word",
    "ahead-by-log",
    "past-end",
    "past-end-unread",
    "lost-commit",
    "false-report",
    "stale-epoch",
    "split-by-log",
    "split-told",
    "late-work",
    "zombie-work",
    "false-lag",
    "stuck",
    "late",
    "operator",
    "unassigned",
    "gap",
    "lost-write",
    "compacted",
    "expired",
    "corrupt",
    "misplaced",
    "phantom",
    "duplicate-effect",
    "crash-loop",
    "stays-away",
    "deaf",
    "fat",
    "oom",
    "storm",
    "lazy",
    "starve",
    "block",
    "rogue",
    "paused",
    "swallowed",
    "fallen",
    "dirty-read",
    "outside",
    "torn",
    "hanging",
    "leap",
    "invents",
    "unfetched",
    "garbled",
    "fetches-on",
    "forged",
    "repeats",
    "false-loss",
    "hushed",
    "late-output",
    "renamed",
    "nameless",
    "refused-behind",
    "inside",
    "crash-unfetched",
    "mute",
    "rolled-back",
    "moves",
)
IN_TRANSACTION = ("outside", "torn", "hanging")  # sins of consumers whose progress is in their transactions
FETCH_SINS = ("paused", "swallowed", "fallen", "unfetched")
FETCHES_KNOWN = (*FETCH_SINS, "crash-unfetched")  # all that members fetch stands in the request log
HANDOVERS = ("move", "kill", "freeze", "all")
SINS_WITH_HANDOVER = (
    "stays-away",
    "below-floor",
    "zombie-low",
    "zombie-high",
    "split-told",
    "late-work",
    "zombie-work",
    "leap",
    "fetches-on",
    "forged",
    "refused-behind",
    "inside",
    "mute",
)
WITH_SINK = ("hushed", "late-output", "crash-unfetched")


@dataclass(frozen=True)
class Plan:
    """What one history shall contain."""

    sin: str | None
    also: str | None  # a second deviation, a round later
    members: int
    partitions: int
    records: int
    protocol: str
    handovers: tuple[str, ...]
    first_offset: int
    gaps: bool
    keys: int
    commit_lines: str  # the commit events that members print: invoke (and ok), ok, none
    sink: bool
    clocks: bool
    drain_s: int
    delivery: str
    progress: str
    converge_within_s: int | None
    seed: int


@dataclass(frozen=True)
class History:
    """A generated trial: what a judge is given, and what was asked of the generator."""

    plan: Plan
    events: list[Event]
    settings: dict[str, Any]
    handovers: int


@st.composite
def plans(draw: st.DrawFn, *, sins: tuple[str | None, ...] = (None, None, None, *SINS)) -> Plan:
    """Draws what one history shall contain; a sin that needs a handover gets members for it."""
    sin = draw(st.sampled_from(sins))
    needs_two = sin in SINS_WITH_HANDOVER or sin == "rogue"
    starves = sin in ("starve", "block")  # one member with three partitions or four, and records enough to go round
    members = draw(st.integers(2 if needs_two else 1, 1 if starves else 3))
    handovers = draw(st.lists(st.sampled_from(HANDOVERS), max_size=0 if sin == "rogue" else 2)) if members > 1 else []
    second = sorted(set(COMMIT_SINS) - set(SINS_WITH_HANDOVER if members == 1 else ()))
    return Plan(
        sin=sin,
        also=draw(st.sampled_from([None, None, *second])) if sin is not None else None,
        members=members,
        partitions=draw(st.integers(3, 4) if starves else st.integers(2 if sin == "moves" else 1, 2)),
        records=draw(st.integers(14, 16) if starves else st.integers(5, 9)),
        protocol=draw(st.sampled_from(("classic", "consumer"))),
        handovers=tuple(handovers),
        first_offset=draw(st.sampled_from((0, 0, 7))),
        gaps=draw(st.booleans()),
        keys=draw(st.integers(1 if sin == "moves" else 0, 2)),
        commit_lines=draw(st.sampled_from(("invoke", "invoke", "ok", "none"))),
        sink=sin in WITH_SINK or draw(st.sampled_from((False, False, False, True))),
        clocks=starves or sin == "hanging" or draw(st.sampled_from((True, True, True, False))),
        drain_s=draw(st.sampled_from((25, 25, 14, 5))),
        delivery=draw(st.sampled_from(("at-least-once", "at-least-once", "at-most-once"))),
        progress="transaction" if sin in IN_TRANSACTION else draw(st.sampled_from(_progress(sin))),
        converge_within_s=draw(st.sampled_from((None, 10, 12))),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


def _progress(sin: str | None) -> list[str]:
    """Where the progress may be; a stale epoch is looked for outside of transactions only, a leap in its own store."""
    if sin == "leap":
        return ["kafka", "none", "none"]
    if sin in ("late-output", "crash-unfetched", "refused-behind"):
        return ["kafka"]
    return ["kafka"] * 15 + ["transaction"] * (0 if sin == "stale-epoch" else 3) + ["none"]


def histories(*, sins: tuple[str | None, ...] = (None, None, None, *SINS)) -> st.SearchStrategy[History]:
    """Histories of trials, one in eight without a sin unless `sins` says otherwise."""
    return plans(sins=sins).map(play)


def play(plan: Plan) -> History:
    """Plays one plan; the same plan gives the same history."""
    world = World(plan)
    world.prepare()
    for number in range(2 + len(plan.handovers)):
        if number == 1:
            world.phase("faults")
        for tp in world.slices:
            world.batch(tp, world.draw.randint(1, 2))
        if number == 1 and plan.sin is not None:
            (COMMIT_SINS | VITAL_SINS | TRANSACTION_SINS | WITNESSED_SINS | STATE_SINS).get(plan.sin, _nothing)(world)
            if plan.also is not None:
                world.sinned = world.draw.choice(world.slices)
                COMMIT_SINS[plan.also](world)
        if 0 < number <= len(plan.handovers):
            world.hand_over(plan.handovers[number - 1])
        world.disturb()
        world.observe()
    world.heal()
    world.drain()
    world.snapshot()
    return History(plan, world.events, world.settings(), world.handed_over)


@dataclass
class Member:
    """A member of the group under trial, with the incarnation that runs now."""

    index: int
    incarnation: int = 0
    held: list[Slice] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"m{self.index}"

    @property
    def source(self) -> str:
        return f"consumer-{self.name}-{self.incarnation}"

    @property
    def member_id(self) -> str:
        return f"id-{self.name}-{self.incarnation}"


class World:
    """A cluster, a group and the harness around them, as far as events show them."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.draw = plan, random.Random(repr(plan))
        self.events: list[Event] = []
        self._seqs: dict[str, int] = {}
        self.began = self.now = 100 * SECOND
        self._faults = 0
        self._next_tick = self.now
        self._log_offset = 0
        self._epoch = 0
        self._epochs: dict[str, int] = {}  # KIP-848: of each member id
        self._since: dict[tuple[str, Slice], int] = {}  # the epoch in which it was assigned the partition
        self._offsets_time = 0
        self._producer_epochs: dict[int, int] = {}
        self._output_offset = 0
        self._outputs: dict[str, list[tuple[Slice, int]]] = {}  # by file: written, and not yet committed
        self.handed_over = 0
        self.slices: list[Slice] = [(TOPIC, number) for number in range(plan.partitions)]
        self.members = [Member(index) for index in range(plan.members)]
        self.records = {tp: self._offsets() for tp in self.slices}
        self.position = dict.fromkeys(self.slices, plan.first_offset)
        self.done = dict.fromkeys(self.slices, plan.first_offset)
        self.committed: dict[Slice, int | None] = dict.fromkeys(self.slices)
        self.sinned: Slice = self.slices[self.draw.randrange(len(self.slices))]
        self.read_log_ends = True
        self.aside = random.Random(f"{plan.seed} aside")  # for what else is told: the load, ids, bodies
        self.tells_ids, self.claims_places, self.posts_values = (
            self.aside.random() < share for share in (0.6, 0.5, 0.7)
        )
        spec = random.Random(f"{plan.seed} spec")  # for what the consumer declares of its sink
        self.declared = {
            "sink": spec.choice(("http", None)),
            "no_effect": spec.choice((("discarded", "dead-lettered"), ("discarded",), ("done", "discarded"))),
            "effects": "state" if plan.sin == "rolled-back" else spec.choice(("record", "record", "state")),
            "body": spec.choice(("own", "value")),
        }
        # Session and rebalance timeout that members join with; None: the request log does not tell.
        self.told_ms = random.Random(f"{plan.seed} told").choice(((None, None), (3000, 5000), (4000, 300_000)))
        self.policy = self.aside.choice(("delete", "delete", "compact,delete"))
        self.reading = random.Random(f"{plan.seed} reading")  # for where members are seen to fetch, and to ask
        unread = (*FETCHES_KNOWN, *WITNESSED_SINS, "rogue", "starve", "block")
        self.reads_seen = plan.sin not in unread and self.reading.random() < 0.5
        self.witnessed = random.Random(f"{plan!r} witnessed")  # for what brokers tell of assignments, and of outputs
        maybe = plan.sin is None and not self.reads_seen and self.witnessed.random() < 0.5
        self.answers_assignments = plan.sin in WITNESSED_SINS or maybe
        self.tells_output_times = self.witnessed.random() < 0.6
        self.hushed = False  # members print nothing of their work any more
        self.refused_members: set[str] = set()  # whom their group does not let in
        self.names: dict[str, str] = {}  # by member: what its lines call the client, from now on
        self._sink_ns = 0  # when the last effect was written down, or read out of its topic
        # What the control read finds otherwise than it was sent: None, it does not find it.
        self.control: dict[tuple[Slice, int], dict[str, Any] | None] = {}

    def _offsets(self) -> list[int]:
        """The offsets that hold records: a marker or an aborted record leaves a gap."""
        span = range(self.plan.first_offset, self.plan.first_offset + self.plan.records)
        gap = self.draw.choice(span) if self.plan.gaps else None
        return [offset for offset in span if offset != gap]

    def settings(self) -> dict[str, Any]:
        return {
            "session_timeout_s": 3,
            "poll_interval_s": 5,
            "commit_interval_s": 1,
            "converge_within_s": self.plan.converge_within_s,
            "protocol": self.plan.protocol,
            "delivery": self.plan.delivery,
            "progress": self.plan.progress,
            "sink": "topic"
            if self.to_topic or self.plan.sin == "late-output"
            else self.declared["sink"]
            if self.plan.sink
            else None,
            **{name: self.declared[name] for name in ("no_effect", "effects", "body")},
            "handler": "batch" if self.plan.seed % 4 == 0 else "record",
            "metadata_age_s": 0.0,  # the naive checker knows of none
            "lag_age_max_s": 60.0 if self.plan.sin is None else (None, 0.2, 1.5)[self.plan.seed % 3],
            "reads_cold_bytes_max": (None, 1, 1, 200)[self.plan.seed % 4],
            "cold_after_s": 60.0 if self.plan.sin is None else 0.2,
            "memory_max_bytes": MEMORY_MAX_BYTES if self.plan.sin in ("fat", "oom") else None,
        }

    @property
    def to_topic(self) -> bool:
        """Whether members write what they did into a topic, in their transactions."""
        return self.plan.sink and self.plan.progress == "transaction"

    # --- time and lines --------------------------------------------------------------------------------------

    def wall(self, time_ns: int | None = None) -> int:
        return WALL_OFFSET_NS + (self.now if time_ns is None else time_ns)

    def pass_ms(self, least: int, most: int) -> None:
        """Lets time pass; the run writes its clocks while it does."""
        self.now += self.draw.randint(least * MS, most * MS) + 1
        while self._next_tick <= self.now:
            if self.plan.clocks:
                self._write("run", "clock", self._next_tick, wall_ns=self.wall(self._next_tick))
            self._next_tick += SECOND

    def work_time(self) -> None:
        slow = self.draw.random() < 0.05
        self.pass_ms(*((300, 900) if slow else (1, 60)))

    def emit(self, source: str, kind: str, **fields: Any) -> int:
        return self._write(source, kind, self.now, **fields)

    def _write(self, source: str, kind: str, time_ns: int, **fields: Any) -> int:
        if source == "sink":
            time_ns = self._sink_ns = max(self._sink_ns, time_ns)
        seq = self._seqs[source] = self._seqs.get(source, -1) + 1
        core = {name: fields.pop(name) for name in CORE_FIELDS if name in fields}
        self.events.append(Event(source, seq, time_ns, kind, **core, details=fields))
        return seq

    def say(self, member: Member, kind: str, **fields: Any) -> int:
        """A line of the member's own file."""
        self.pass_ms(0, 3)
        if self.hushed and kind in ("delivered", "processed"):
            return -1
        if member.name in self.names and kind not in ("started", "exited"):
            fields |= {"client_id": self.names[member.name]}
        return self.emit(member.source, kind, member=member.name, incarnation=member.incarnation, **fields)

    def phase(self, name: str) -> None:
        self.emit("run", "phase", phase=name)
        self.pass_ms(5, 20)

    def log(self, kind: str, **fields: Any) -> int:
        """A record of the offsets log, seen by the harness a little later."""
        self._log_offset += self.draw.randint(1, 3)
        self._offsets_time = max(self._offsets_time, self.now + self.draw.randint(1, 30) * MS)
        self._write(
            "offsets", kind, self._offsets_time, group=GROUP, log_partition=0, log_offset=self._log_offset, **fields
        )
        return self._log_offset

    def request(
        self, member: Member | None, api: str, entries: list[dict[str, Any]], *, error: int = 0, **fields: Any
    ) -> None:
        """A line of the request log; `member` None is somebody outside the lanes."""
        lane = {"lane": member.index, "member_id": member.member_id} if member else {}
        error = next((entry["error"] for entry in entries if entry.get("error")), error)
        line_ns = self.now + self.draw.randint(0, 3) * MS
        self._write(
            f"requests-b{self.draw.randrange(2)}",
            "request",
            line_ns + self.draw.randint(1, 20) * MS,
            source_wall_ns=self.wall(line_ns),
            api=api,
            listener=f"LANE{member.index}" if member else "OBSERVER",
            connection="127.0.0.1:40000",
            client_id=member.name if member else "admin",
            group=GROUP,
            error=error,
            duration_ms=float(self.draw.randint(4, 9)),
            entries=entries,
            **lane,
            **fields,
        )

    # --- what members do -------------------------------------------------------------------------------------

    def owner(self, tp: Slice) -> Member | None:
        return next((member for member in self.members if tp in member.held), None)

    def key(self, offset: int) -> str | None:
        return f"k{offset % self.plan.keys}" if self.plan.keys else None

    def left(self, tp: Slice) -> list[int]:
        return [offset for offset in self.records[tp] if offset >= self.position[tp]]

    def end(self, tp: Slice) -> int:
        return max(self.records[tp]) + 1

    def deliver(self, member: Member, tp: Slice, offset: int) -> None:
        self.say_delivered(member, tp, offset, record_id(tp, offset) if self.tells_ids else None)
        self.work_time()

    def say_delivered(self, member: Member, tp: Slice, offset: int, name: str | None) -> None:
        named = {} if name is None else {"id": name}
        self.say(member, "delivered", topic=tp[0], partition=tp[1], offset=offset, key=self.key(offset), **named)

    def process(self, member: Member, tp: Slice, offset: int) -> None:
        if self.to_topic:
            self._outputs.setdefault(member.source, []).append((tp, offset))
        elif self.plan.sink:
            self.effect(tp, offset)
        self.say_processed(member, tp, offset, "done")

    def say_processed(self, member: Member, tp: Slice, offset: int, outcome: str) -> None:
        self.say(
            member, "processed", topic=tp[0], partition=tp[1], offset=offset, key=self.key(offset), outcome=outcome
        )

    def effect(self, tp: Slice, record: int, **said: Any) -> None:
        """An effect, with what the consumer says of its place, and the checksum of its body."""
        place: dict[str, Any] = {"partition": tp[1], "offset": record} if self.claims_places else {}
        told: dict[str, Any] = {}
        if self.to_topic or self.plan.sin == "late-output":
            self._output_offset += 1
            place = {"topic": "out", "partition": 0, "offset": self._output_offset}
            told = {"source_wall_ns": self.wall()} if self.tells_output_times else {}
        body = {"checksum": checksum(record_id(tp, record))} if self.posts_values else {}
        read_ns = self.now + (self.witnessed.randint(0, 900) * MS if told else 0)
        about = {"id": record_id(tp, record), "outcome": "ok"} | place | body | told | said
        self._write("sink", "effect", read_ns, **about)

    def send(self, name: str, outcome: str, **fields: Any) -> None:
        """The workload sends a record; `outcome` is its fate."""
        entity = {"entity": f"e{checksum(name) % 2}"} if self.plan.sin == "rolled-back" else {}
        op = self.emit("workload", "send", topic=TOPIC, id=name, outcome="invoke", checksum=checksum(name), **entity)
        self.emit("workload", "send", topic=TOPIC, id=name, outcome=outcome, op=op, **fields)

    def load(self) -> None:
        """Every record is sent and acknowledged; some sends are not, and some acknowledgements name no offset."""
        for tp, offsets in self.records.items():
            for offset in offsets:
                place = {"partition": tp[1], "offset": offset if self.aside.random() < 0.97 else -1}
                self.send(record_id(tp, offset), "ok", key=self.key(offset), **place)
                self.now += (self.draw.randint(0, 1) if self.plan.sin == "moves" else 0) * MS
        self.send("never-acknowledged", "info", message="timed out")

    def handle(self, member: Member, tp: Slice, offset: int) -> None:
        self.deliver(member, tp, offset)
        self.process(member, tp, offset)
        self.position[tp] = self.done[tp] = offset + 1

    def batch(self, tp: Slice, count: int, *, commit: bool | None = None) -> None:
        """The owner handles the next records and, mostly, commits them."""
        member = self.owner(tp)
        if member is None:
            return
        if self.plan.progress == "transaction" and self.aside.random() < 0.15:
            left = len(self.left(tp))
            self.abort(member, tp, count)
            count += len(self.left(tp)) - left  # what was taken back with it
        for offset in self.left(tp)[:count]:
            self.handle(member, tp, offset)
        if commit or (commit is None and self.draw.random() < 0.7):
            self.commit(member, {tp: self.done[tp]})

    def commit(
        self,
        member: Member,
        positions: dict[Slice, int],
        *,
        answered: bool = True,
        stored: bool = True,
        epoch: int | None = None,
    ) -> None:
        """A commit that takes effect (unless not `stored`): own word, offsets log, request log, own word."""
        entries = _positions(positions)
        op = self._ask(member, entries)
        self.pass_ms(1, 15)
        if self.plan.progress == "transaction" and stored:
            self.transaction(member, positions)
        elif stored:
            self.take_effect(positions)
        if not (self.plan.progress == "transaction" and stored) and self.draw.random() < 0.95:
            with_epoch = self.epoch_of(member) if epoch is None else epoch
            self.request(member, "OFFSET_COMMIT", [{**entry, "error": 0} for entry in entries], epoch=with_epoch)
        self.pass_ms(1, 15)
        if answered and self.plan.commit_lines != "none":
            self.say(member, "commit", outcome="ok", entries=entries, **op)

    # --- transactions ----------------------------------------------------------------------------------------

    @property
    def own_epochs(self) -> bool:
        """Whether each transaction has an epoch of its own (KIP-890)."""
        return self.plan.seed % 4 > 0

    @property
    def own_producers(self) -> bool:
        """Whether each partition has a producer, and so transactions, of its own."""
        return self.plan.seed % 5 == 0 and self.plan.sin not in IN_TRANSACTION

    def producer(self, member: Member, tp: Slice) -> int:
        return 1000 + 10 * member.index + member.incarnation + (100 * tp[1] if self.own_producers else 0)

    def transaction(
        self, member: Member, positions: dict[Slice, int], *, state: str = "commit", other: str | None = None
    ) -> None:
        """A transaction with outputs in one log or two; `other`: how it ends in one of them, chosen at random."""
        producer, places = self.producer(member, next(iter(positions))), []
        for tp, position in positions.items():
            self.take_effect({tp: position}, producer_id=producer)
            places.append((tp, position, self._log_offset))
            if self.aside.random() < 0.95:
                entry = {"topic": tp[0], "partition": tp[1], "committed_offset": position, "error": 0}
                self.request(member, "TXN_OFFSET_COMMIT", [entry], producer_id=producer)
        epoch = self._producer_epochs[producer] = self._producer_epochs.get(producer, 0) + self.own_epochs
        self.pass_ms(1, 15)
        about = {"producer_id": producer, "producer_epoch": epoch}
        if self.aside.random() < 0.95:
            own = {"own_epoch": True} if self.own_epochs else {}
            self.request(member, "END_TXN", [], state=state, **about, **own)
        ends: dict[int | None, str] = dict.fromkeys(
            (None, *range(self.aside.randint(0 if other is None else 1, 2))), state
        )
        if other is not None:
            ends[self.aside.choice(list(ends))] = other
        for log, how in ends.items():
            self.pass_ms(0, 3)
            self._end(log, how, about)
        self._end_outputs(member, positions, taken=state == "commit")
        if ends[None] == "abort":
            for tp, position, place in places:
                self._aborted(tp, position, place)

    def _end_outputs(self, member: Member, positions: dict[Slice, int], *, taken: bool) -> None:
        """What was written for these partitions is committed, or taken back."""
        written = self._outputs.get(member.source, [])
        self._outputs[member.source] = [(tp, offset) for tp, offset in written if tp not in positions]
        for tp, offset in written if taken else ():
            if tp in positions:
                self.effect(tp, offset)

    def abort(self, member: Member, tp: Slice, count: int) -> None:
        """Records are handled in a transaction that fails, perhaps of two partitions, and the member begins anew where
        the last one ended. Its line names both partitions, one of them, or none."""
        told = random.Random(f"{self.plan.seed} abort {self.now}")
        others = [one for one in sorted(member.held) if one not in (tp, self.sinned) and self.left(one)]
        touched = [*others[: told.randint(0, 1 - self.own_producers)], tp]
        for one in touched:
            for offset in self.left(one)[:count]:
                self.handle(member, one, offset)
        positions, stood = {one: self.done[one] for one in touched}, dict(self.committed)
        op = self._ask(member, _positions(positions))
        self.transaction(member, positions, state="abort")
        self.committed = stood
        named = told.choice((touched, [tp], [tp] if self.own_producers else []))
        entries = _positions({one: positions[one] for one in named})
        self.say(
            member, "commit", outcome="fail", entries=entries, message="aborted", **(op if named == touched else {})
        )
        for one in touched:
            before = stood[one]
            self.position[one] = self.done[one] = self.plan.first_offset if before is None else before

    def _end(self, log: int | None, state: str, about: dict[str, int]) -> None:
        if log is None:
            self.log("transaction_marker", state=state, source_wall_ns=self.wall(), **about)
            return
        self._output_offset += self.aside.randint(2, 9)
        where = {"topic": "out", "partition": log, "offset": self._output_offset}
        self.emit("transactions", "transaction_marker", state=state, source_wall_ns=self.wall(), **where, **about)

    def _aborted(self, tp: Slice, position: int, place: int) -> None:
        fields = {"topic": tp[0], "partition": tp[1], "committed_offset": position, "log_partition": 0}
        self._write("offsets", "commit_aborted", self._offsets_time, group=GROUP, log_offset=place, **fields)

    def _ask(self, member: Member, entries: list[dict[str, Any]]) -> dict[str, int]:
        if self.plan.commit_lines != "invoke":
            return {}
        return {"op": self.say(member, "commit", outcome="invoke", entries=entries)}

    def take_effect(self, positions: dict[Slice, int], **said: int) -> None:
        for (topic, partition), position in positions.items():
            self.log(
                "committed",
                topic=topic,
                partition=partition,
                committed_offset=position,
                commit_time_ms=self.wall() // MS,
                **said,
            )
            self.committed[topic, partition] = position

    def refused(self, member: Member, tp: Slice, position: int) -> None:
        """A commit that the coordinator refuses, and the member learns it."""
        entries = [{"topic": tp[0], "partition": tp[1], "committed_offset": position}]
        op = self._ask(member, entries)
        self.pass_ms(1, 15)
        self.request(member, "OFFSET_COMMIT", [{**entry, "error": 22} for entry in entries])
        self.pass_ms(1, 15)
        self.say(member, "commit", outcome="fail", entries=entries, message="ILLEGAL_GENERATION", **op)

    # --- who owns what ---------------------------------------------------------------------------------------

    def write_ownership(self, members: Iterable[Member], *, pending: dict[str, list[Slice]] | None = None) -> None:
        """The coordinator's record of who holds what: one for the group, or one a member."""
        self._epoch += 1
        if self.plan.protocol == "classic":
            named = [
                {"topic": t, "partition": p, "member_id": member.member_id}
                for member in self.members
                for t, p in member.held
            ]
            let_in = [member for member in self.members if member.name not in self.refused_members]
            alive = [{"member_id": member.member_id, "client_id": member.name} for member in let_in]
            fields = {"protocol": "classic", "epoch": self._epoch, "state": "stable"}
            self.log("group", members=alive, entries=named, source_wall_ns=self.wall(), **fields)
            return
        for member in members:
            self._epochs[member.member_id] = self._epoch
            given_up = (pending or {}).get(member.name, [])
            listed = self._assigned_since(member, [*member.held, *given_up])
            self.log(
                "member_assignment",
                member_id=member.member_id,
                epoch=self._epoch,
                previous_epoch=self._epoch - 1,
                state="unrevoked" if given_up else "stable",
                entries=listed[: len(member.held)],
                pending=listed[len(member.held) :],
            )

    def epoch_of(self, member: Member) -> int:
        """The epoch (or generation) that the member knows; -1 before it was given one."""
        return self._epoch if self.plan.protocol == "classic" else self._epochs.get(member.member_id, -1)

    def _assigned_since(self, member: Member, tps: list[Slice]) -> list[dict[str, Any]]:
        """Entries of KIP-848; brokers from 4.3 on tell the epoch of each assignment."""
        mine = {key: epoch for key, epoch in self._since.items() if key[0] != member.member_id or key[1] in tps}
        self._since = {**{(member.member_id, tp): self._epoch for tp in tps}, **mine}
        told = self.plan.seed % 3 == 0
        return [
            entry | ({"assignment_epoch": self._since[member.member_id, tp]} if told else {})
            for tp, entry in zip(tps, _by_id(tps), strict=True)
        ]

    def join(self, member: Member) -> None:
        api = "JOIN_GROUP" if self.plan.protocol == "classic" else "CONSUMER_GROUP_HEARTBEAT"
        told: dict[str, Any] = {}
        if api == "JOIN_GROUP" and self.told_ms[0] is not None:
            told = {"session_timeout_ms": self.told_ms[0], "rebalance_timeout_ms": self.told_ms[1]}
        self.request(member, api, [], error=23 if member.name in self.refused_members else 0, **told)

    def admit(self, member: Member) -> None:
        """The record of a KIP-848 member that was let in again, and has nothing yet."""
        if self.plan.protocol == "classic" or member.name in self.refused_members:
            return
        self._log_offset, self._epochs[member.member_id] = self._log_offset + 1, self._epoch
        self._offsets_time = max(self._offsets_time, self.now)
        about = {"member_id": member.member_id, "epoch": self._epoch, "previous_epoch": -1, "state": "stable"}
        place = {"group": GROUP, "log_partition": 0, "log_offset": self._log_offset, "source_wall_ns": self.wall()}
        self._write("offsets", "member_assignment", self._offsets_time, **place, **about, entries=[], pending=[])

    def take_over(self, member: Member, tps: list[Slice], *, below: int = 0) -> None:
        """The member learns that it owns partitions, asks where to start, and starts there."""
        self.pass_ms(1, 20)
        if self.draw.random() < 0.9 and tps:
            answers = [self._answer(tp) for tp in tps]
            self.request(member, "OFFSET_FETCH", answers)
        if self.answers_assignments:
            self.answer_assignment(member, member.held)
        self.pass_ms(1, 20)
        self.say(member, "assigned", entries=_plain(tps))
        for tp in tps:
            floor = self.committed[tp]
            start = self.plan.first_offset if floor is None else floor
            self.position[tp] = self.done[tp] = max(self.plan.first_offset, start - below)
            self.read_on(member, tp)
        if self.plan.sin in FETCHES_KNOWN and tps:
            self.fetch(member, tps, size_bytes=900)

    def answer_assignment(self, member: Member, tps: list[Slice], *, member_id: str | None = None) -> None:
        """A broker tells a member what it has from now on."""
        classic = self.plan.protocol == "classic"
        listed = {"entries": _plain(tps)} if classic else {"entries": [], "assigned": _plain(tps)}
        self.group_answer(member, "SYNC_GROUP" if classic else "CONSUMER_GROUP_HEARTBEAT", member_id, **listed)

    def group_answer(self, member: Member, api: str, member_id: str | None = None, **fields: Any) -> None:
        """A broker answers a request of a member's group, of which only the witnessed deviations tell."""
        name = member.member_id if member_id is None else member_id
        about = {"error": 0, "entries": [], "duration_ms": 4.0, "epoch": self.epoch_of(member)} | fields
        client_id = member.name if name == member.member_id else name
        lane = {"lane": member.index, "member_id": name, "client_id": client_id, "connection": f"group-{name}"}
        self._write(
            "requests-b0", "request", self.now, source_wall_ns=self.wall(), api=api, group=GROUP, **lane, **about
        )

    def read_on(self, member: Member, tp: Slice) -> None:
        """The request log sees from where a member fetches, in some histories, and mostly."""
        if self.reads_seen and self.reading.random() < 0.8:
            self.now += self.reading.randint(1, 5) * MS
            self._fetched(member, [tp], complete=None, size_bytes=0)

    def gauge(self, member: Member, tp: Slice) -> None:
        """A member asks where the group stands, and goes on where it is; now and then it rewinds to there after all."""
        chance = self.reading.random()
        if chance < 0.4:
            return
        self.now += self.reading.randint(1, 30) * MS
        self.request(member, "OFFSET_FETCH", [self._answer(tp)])
        if chance < 0.5 and (position := self.committed[tp]) is not None:
            stood, self.position[tp] = self.position[tp], position
            self.read_on(member, tp)
            self.position[tp] = stood
        self.read_on(member, tp)

    def _answer(self, tp: Slice) -> dict[str, Any]:
        position = self.committed[tp]
        return {
            "topic": tp[0],
            "partition": tp[1],
            "committed_offset": -1 if position is None else position,
            "error": 0,
        }

    def move(self, tp: Slice, to: Member, *, below: int = 0) -> None:
        """A graceful handover: the owner finishes or gives up what it holds, commits perhaps, and lets go."""
        self.handed_over += 1
        before = self.owner(tp)
        if before is not None:
            self._let_go(before, tp)
        to.held.append(tp)
        self.write_ownership([to])
        self.take_over(to, [tp], below=below)

    def _let_go(self, member: Member, tp: Slice) -> None:
        if self.draw.random() < 0.3 and self.left(tp):
            self.deliver(member, tp, self.left(tp)[0])  # handed out, never finished: the next owner gets it again
        member.held.remove(tp)
        told_before = self.draw.random() < 0.5
        if told_before:
            self.write_ownership([member], pending={member.name: [tp]})
        if self.draw.random() < 0.7:
            self.commit(member, {tp: self.done[tp]})
        self.say(member, "revoked", entries=_plain([tp]))
        if not told_before or self.plan.protocol == "consumer":
            self.write_ownership([member])

    def other(self, member: Member | None) -> Member:
        let_in = [candidate for candidate in self.members if candidate.name not in self.refused_members]
        return self.draw.choice([candidate for candidate in let_in if candidate is not member] or self.members)

    def hand_over(self, how: str) -> None:
        tp = self.draw.choice(self.slices)
        member = self.owner(tp)
        if member is None:
            return
        if how == "move":
            self.move(tp, self.other(member))
        elif how == "all":
            self.deal_anew()
        elif how == "kill":
            self.kill(member)
        else:
            self.freeze(tp, self.draw.randint(50, 1500))

    def deal_anew(self) -> None:
        """An eager rebalance: everybody gives up everything, and it is dealt anew."""
        self.handed_over += 1
        for member in self.members:
            if member.held and self.draw.random() < 0.6:
                self.commit(member, {tp: self.done[tp] for tp in member.held})
            self.say(member, "revoked", entries=_plain(member.held))
            member.held.clear()
        if self.plan.protocol == "consumer":
            self.write_ownership(self.members)
        for tp in self.slices:
            self.draw.choice(self.members).held.append(tp)
        self.write_ownership(self.members)
        for member in self.members:
            self.take_over(member, list(member.held))

    def kill(self, member: Member, **how: Any) -> None:
        """kill -9 (or what else ends it); the others take over once its session expired; it comes back empty-handed."""
        self.handed_over += 1
        self.say(member, "exited", **(how or {"signal": 9, "asked": "kill"}))
        tps, member.held = member.held, []
        if self.plan.protocol == "consumer":
            self.log("group_tombstone", record_type=8, member_id=member.member_id)
        member.incarnation += 1
        self.pass_ms(1000, 3200)
        self.start(member)
        self.admit(member)
        heir = self.other(member) if len(self.members) > 1 else member
        heir.held += tps
        if self.plan.protocol == "classic" or tps:
            self.write_ownership([heir])
        self.take_over(heir, tps)

    def freeze(self, tp: Slice, frozen_ms: int, *, told_but_works: bool = False, fetches_on: bool = False) -> None:
        """The owner is frozen, loses the partition untold, wakes, works on, and is told at last."""
        self.handed_over += 1
        member = self.owner(tp)
        assert member is not None
        in_hand = self.left(tp)[:1] if self.draw.random() < 0.5 else []
        for offset in in_hand:
            self.deliver(member, tp, offset)
        heir = self.other(member)
        mine = [offset for offset in self.left(tp) if offset not in in_hand]
        position = self.done[tp]
        self.lose_untold(member, tp, heir)
        self.batch(tp, 1)
        self.pass_ms(frozen_ms, frozen_ms + 50)
        held = self.draw.random() < 0.3
        if held:
            self.fault(self.draw.choice(["stall", "latency", "requests-held"]), self.draw.choice([member.name, None]))
        self._wake(member, tp, in_hand, mine)
        if fetches_on or self.draw.random() < 0.3:
            self.expel(member, tp, 25 if fetches_on else self.draw.choice([22, 25, 27, 110]))
        if fetches_on:
            self.fetch_on(member, tp, mine)
        if told_but_works or self.draw.random() < 0.5:
            covered = mine[1:2] if told_but_works else []  # it committed first, and begins all the same
            self.refused(member, tp, covered[0] + 1 if covered else position)
        if told_but_works:
            self.pass_ms(520, 900)
            self._wake(member, tp, [], mine[1:])
        self.say(member, "lost", entries=_plain([tp]))
        if self.plan.protocol == "consumer":
            self.write_ownership([member])
        if held and self.draw.random() < 0.5:
            self.request(member, "HEARTBEAT", [])

    def expel(self, member: Member, tp: Slice, error: int) -> None:
        """A broker refuses a request of the member's group; a fault may hold the answer, for now or for good."""
        self.pass_ms(60, 120)
        if self.draw.random() < 0.7:
            self.request(member, "HEARTBEAT", [], error=error)
        else:
            self.request(member, "SYNC_GROUP", _plain([tp]) if error == 27 else [])
        self.pass_ms(60, 120)

    def fetch_on(self, member: Member, tp: Slice, mine: list[int]) -> None:
        """It fetches what it has not fetched yet, sometimes too soon to blame it, and works on that."""
        fetched = mine[1:2] or [self.end(tp)]
        for wait_ms in (0, self.draw.randint(300, 900)):
            self.pass_ms(wait_ms, wait_ms + 50)
            self.fetch_from(member, tp, fetched[0])
            if self.draw.random() < 0.5:
                self.request(member, "HEARTBEAT", [], error=self.draw.choice([25, 27]))
        self.pass_ms(520, 900)
        self._wake(member, tp, [], mine[1:])

    def fetch_from(self, member: Member, tp: Slice, position: int, *, size_bytes: int = 1) -> None:
        """It fetches from there, and goes on where it was."""
        before, self.position[tp] = self.position.get(tp, position), position
        self.fetch(member, [tp], size_bytes=size_bytes)
        self.position[tp] = before

    def lose_untold(self, member: Member, tp: Slice, heir: Member) -> None:
        """The session of a member that cannot know it expires; another one takes the partition over."""
        member.held.remove(tp)
        heir.held.append(tp)
        if self.plan.protocol == "consumer":
            self.log("group_tombstone", record_type=8, member_id=member.member_id)
        self.write_ownership([heir])
        self.take_over(heir, [tp])

    def _wake(self, member: Member, tp: Slice, in_hand: list[int], mine: list[int]) -> None:
        for offset in in_hand:
            self.process(member, tp, offset)
        for offset in mine[:1]:
            self.deliver(member, tp, offset)
            self.process(member, tp, offset)

    # --- the phases ------------------------------------------------------------------------------------------

    def start(self, member: Member) -> None:
        self.say(member, "started", pid=1000 + member.index, lane=member.index)
        self.say(member, "ready")
        if self.plan.sin != "fat" or self.draw.random() < 0.8:
            self.sample(member, 500)
        self.join(member)

    def sample(self, member: Member, rss_bytes: int) -> None:
        """The harness looks at a member's memory."""
        who = {"member": member.name, "incarnation": member.incarnation}
        self.emit("run", "resources", **who, cpu_s=0.1, rss_bytes=rss_bytes, processes=1)

    def next_fault(self) -> dict[str, int]:
        """The number of a further fault."""
        self._faults += 1
        return {"fault_no": self._faults - 1}

    def fault(self, name: str, member: str | None, *, heals: bool = True) -> None:
        """A fault is injected, and healed half a second later."""
        named = {"fault_no": self._faults, "fault": name, "target": f"role: {member}", "member": member}
        self._faults += 1
        self.emit("nemesis", "injected", **named)
        self.pass_ms(400, 600)
        if heals:
            self.emit("nemesis", "healed", **named)

    def prepare(self) -> None:
        self.pass_ms(1, 2)
        self.emit("run", "group_named", group=GROUP)
        self.emit("run", "topic_named", topic=TOPIC)
        self.emit("run", "oom_kills", count=3)
        self.phase("prepare")
        about = {"topic_id": TOPIC_ID, "partitions": self.plan.partitions, "cleanup_policy": self.policy}
        self.emit("observer", "topic", topic=TOPIC, **about)
        if self.plan.sin == "moves":  # a partition more: the keys of one are those of the other, and were sent there
            self.emit("observer", "topic", topic=TOPIC, **about | {"partitions": self.plan.partitions + 1})
        self.load()
        for topic, partition in self.slices:
            self.emit("observer", "log_start", topic=topic, partition=partition, offset=self.plan.first_offset)
        for member in self.members:
            self.start(member)
        for number, tp in enumerate(self.slices):
            self.members[number % len(self.members)].held.append(tp)
        self.write_ownership(self.members)
        for member in self.members:
            self.take_over(member, list(member.held))
        self.phase("steady")
        self.emit("run", "cpu_wait", member_ns=150 * MS, broker_ns=50 * MS, over_ns=1000 * MS)
        self.emit("run", "calibrated", count=2000, seconds=2.0, **self._burst())

    def _burst(self) -> dict[str, Any]:
        """Of every third history a rate at which its backlog matters; of every other one what each partition had."""
        shares = [{"partition": number, "count": 100 * number} for number in range(self.plan.partitions)]
        told = {"entries": shares} if self.plan.seed % 2 else {}
        return {"rate": 1000.0 if self.plan.seed % 3 else 2.0} | told

    def disturb(self) -> None:
        """What real logs hold besides: another group, a refused commit, an aborted one, a dead letter, an outcry."""
        tp = self.draw.choice(self.slices)
        member = self.owner(tp)
        kind = self.draw.randrange(8)
        if kind == 0:
            self._aborted_commit(tp)
        elif kind == 1 and member is not None:
            self.refused(member, tp, self.done[tp])
        elif kind == 2:
            name = f"appended-perhaps-{self._seqs.get('workload')}"
            self.send(name, "info")
            self.emit("sink", "effect", id=name, outcome="ok")
            self.emit("sink", "effect", id=record_id(tp, self.records[tp][-1]), outcome="fail")
        elif kind == 3 and member is not None and self.done[tp] == self.position[tp]:
            self.commit(member, {mine: self.done[mine] for mine in member.held})
        elif kind == 4:
            self.emit("run", "scheduling_delay", delay_ns=40 * MS)

    def _aborted_commit(self, tp: Slice) -> None:
        fields = {"topic": tp[0], "partition": tp[1], "committed_offset": self.end(tp) + 5}
        place = self.log("committed", **fields, commit_time_ms=self.wall() // MS, producer_id=7)
        self._write(
            "offsets", "commit_aborted", self._offsets_time, group=GROUP, log_partition=0, log_offset=place, **fields
        )

    def observe(self) -> None:
        """Reads the ends of the logs, unless the history shall lack a later one."""
        self.pass_ms(20, 60)
        for tp in self.slices if self.read_log_ends else []:
            self.emit("observer", "log_end", topic=tp[0], partition=tp[1], offset=self.end(tp))

    def heal(self) -> None:
        self.phase("heal")
        self.pass_ms(10, self.draw.choice((50, 3000)))

    def drain(self) -> None:
        """The members finish what is left, but for what the plan withholds."""
        self.phase("drain")
        began = self.now
        if self.plan.sin == "unassigned":
            self._unassign(self.sinned)
        if self.plan.sin == "late":
            self.pass_ms(9_500, 14_000)
            waited_ns = self.draw.choice((0, 200, 400, 700)) * MS * 10
            self.emit("run", "cpu_wait", member_ns=waited_ns, broker_ns=0, over_ns=10_000 * MS)
        for tp in self.slices:
            withheld = self.plan.sin if tp == self.sinned else None
            if withheld in FETCH_SINS:
                self.leave_unfetched(tp, str(withheld))
            elif withheld in ("stuck", "unseen", "gap"):
                self.leave_undone(tp)
            else:
                self.batch(tp, len(self.left(tp)), commit=False)
                if withheld != "false-lag":
                    self._finish(tp)
        pause_ms = max(300, self.plan.drain_s * 1000 - (self.now - began) // MS)
        self.pass_ms(pause_ms // 2, pause_ms // 2)
        if self.plan.sin == "gap":
            self.emit("run", "scheduling_delay", delay_ns=self.draw.choice((700, 800)) * MS)
        self.pass_ms(pause_ms // 2, pause_ms // 2 + 500)

    def _unassign(self, tp: Slice) -> None:
        """Nobody owns the partition any more, and nobody works on it."""
        member = self.owner(tp)
        if member is not None:
            member.held.remove(tp)
            self.say(member, "revoked", entries=_plain([tp]))
            self.write_ownership([member])

    def _finish(self, tp: Slice) -> None:
        member = self.owner(tp)
        uncommitted = self.plan.sin == "rolled-back" and self.plan.seed % 5 == 0
        if member is not None and not uncommitted:
            self.commit(member, {tp: self.done[tp]})

    def leave_unfetched(self, tp: Slice, how: str) -> None:
        """Nothing more is delivered: it is fetched no longer, or what was fetched is swallowed, or a commit fell."""
        member, left = self.owner(tp), self.left(tp)
        if member is None or not left:
            return
        if how == "fallen":
            self.commit(member, {tp: self.end(tp)})
            self.commit(member, {tp: left[0]})
            return
        if how == "paused" and self.draw.random() < 0.3:
            self.fetch(member, [other for other in self.slices if other != tp], complete=True)
            return
        self.fetch(member, self.slices, complete=True)
        if how == "unfetched":
            self.pass_ms(300, 1800)
            self.process(member, tp, left[0])
            return
        self.fetch(member, [tp], size_bytes=900)
        if how == "paused":
            self.fetch(member, [other for other in self.slices if other != tp], complete=self.draw.random() < 0.9)
        elif self.draw.random() < 0.85:
            self.position[tp] = self.end(tp)
            self.fetch(member, [tp])

    def fetch(
        self,
        member: Member,
        tps: list[Slice],
        *,
        complete: bool | None = None,
        size_bytes: int = 0,
        duration_ms: float = 5.0,
    ) -> None:
        """A fetch from where the members stand, on the first broker's one connection."""
        self.pass_ms(1, 20)
        self._fetched(member, tps, complete=complete, size_bytes=size_bytes, duration_ms=duration_ms)

    def _fetched(
        self,
        member: Member,
        tps: list[Slice],
        *,
        complete: bool | None,
        size_bytes: int,
        duration_ms: float = 5.0,
    ) -> None:
        lane = {"lane": member.index, "connection": f"c{member.index}", "group": None, "complete": complete}
        entries = [
            {"topic": t, "partition": p, "offset": self.position[t, p], "size_bytes": size_bytes, "error": 0}
            for t, p in tps
        ]
        fields = {name: value for name, value in lane.items() if value is not None}
        where = {"api": "FETCH", "source_wall_ns": self.wall(), "error": 0, "duration_ms": duration_ms}
        self.emit("requests-b0", "request", entries=entries, **where, **fields)

    def leave_undone(self, tp: Slice) -> None:
        """Some of what is left stays so; for `unseen` the partition moves until shortly before the snapshot."""
        member = self.owner(tp)
        if self.plan.sin == "unseen" and member is not None:
            pause_ms = max(1, (self.plan.drain_s - 3) * 1000)
            self.pass_ms(pause_ms, pause_ms)
            self.batch(tp, len(self.left(tp)) - 1)
        elif member is not None and self.left(tp) and self.draw.random() < 0.4:
            self.deliver(member, tp, self.left(tp)[0])

    def snapshot(self) -> None:
        self.phase("snapshot")
        self.observe()
        for tp, offsets in self.records.items():
            for offset in offsets:
                self._read(tp, offset)
        if self.plan.sin in FETCH_SINS:
            state = "complete" if self.draw.random() < 0.9 else "behind"
            for source in sorted({event.source for event in self.events if event.source.startswith("requests-")}):
                self.emit(source, "witness", state=state)
        elif self.answers_assignments and self.plan.sin != "refused-behind":
            sure = self.plan.sin == "renamed"  # else its lines are told apart by their names
            state = "complete" if sure or self.witnessed.random() < 0.95 else "behind"
            for source in sorted({event.source for event in self.events if event.source.startswith("requests-")}):
                self.emit(source, "witness", state=state)
        self.emit("observer", "control_read", topic=TOPIC, state="complete", count=0)
        self.phase("stop")
        for member in self.members:
            if member.held and self.draw.random() < 0.3:
                self.commit(member, {tp: self.done[tp] for tp in member.held})
            self.say(member, "revoked", entries=_plain(member.held))
            self.say(member, "stopped")
            self.say(member, "exited", code=0, asked="stop", asked_ns=self.now, within_s=15)
        self.emit("run", "end", outcome="ok")

    def _read(self, tp: Slice, offset: int) -> None:
        """The control read finds the record as it was sent, or as `control` has it."""
        told = self.control.get((tp, offset), {})
        if told is not None:
            name = record_id(tp, offset)
            about = {"key": self.key(offset), "checksum": checksum(name), "source_wall_ns": self.wall(self.began)}
            found = {"id": name} | about | told
            self.emit("observer", "record", topic=tp[0], partition=tp[1], offset=offset, **found)


def checksum(name: str) -> int:
    return zlib.crc32(name.encode())


def record_id(tp: Slice, offset: int) -> str:
    return f"r{tp[1]}-{offset}"


def _plain(tps: list[Slice]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": partition} for topic, partition in tps]


def _positions(positions: dict[Slice, int]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": place, "committed_offset": at} for (topic, place), at in positions.items()]


def _by_id(tps: list[Slice]) -> list[dict[str, Any]]:
    return [{"topic_id": TOPIC_ID, "partition": partition} for _, partition in tps]


# --- the sins --------------------------------------------------------------------------------------------------


def _nothing(world: World) -> None:
    """A sin of the drain, or none."""


def _sinner(world: World) -> tuple[Member, Slice]:
    tp = world.sinned
    member = world.owner(tp)
    assert member is not None
    return member, tp


def _retry(world: World) -> None:
    """Seeks back to a record whose handler failed; now and then over what it had completed, or it never comes back."""
    member, tp = _sinner(world)
    ahead = world.left(tp)[: world.draw.randint(1, 3)]
    for offset in ahead:
        world.deliver(member, tp, offset)
    done = [offset for offset in ahead[1:] if world.draw.random() < 0.3]
    for offset in done:
        world.process(member, tp, offset)
    if ahead and world.draw.random() < 0.6:
        world.say_processed(member, tp, ahead[0], "failed")
    if world.draw.random() < 0.3:
        world.pass_ms(600, 700)
    if ahead and world.draw.random() < 0.2:
        world.position[tp] = world.done[tp] = ahead[0] + 1


def _twice(world: World) -> None:
    """Prints the end of a record that was done twice; now and then with another outcome, or in another ownership
    epoch."""
    member, tp = _sinner(world)
    again = [offset for offset in world.records[tp] if offset < world.done[tp]]
    if not again:
        return
    offset = world.draw.choice(again)
    if len(world.members) > 1 and world.draw.random() < 0.4:
        world.commit(member, {tp: world.done[tp]})
        world.move(tp, world.other(member))
        member, tp = _sinner(world)
    world.say_processed(member, tp, offset, world.draw.choice(("done", "done", "discarded", "failed")))


def _swallow(world: World) -> None:
    """Says what became of records that its sink never heard of, or whose answer it never had."""
    member, tp = _sinner(world)
    for offset in world.left(tp)[:2]:
        world.deliver(member, tp, offset)
        outcome = world.draw.choice((None, None, "info", "fail"))
        if outcome is not None:
            world.effect(tp, offset, outcome=outcome)
        world.say_processed(member, tp, offset, world.draw.choice(("done", "done", "discarded", "dead-lettered")))
        world.position[tp] = world.done[tp] = offset + 1
    world.commit(member, {tp: world.done[tp]})


def _unknown_commit(world: World) -> None:
    """Commits what it has not done, in a fault or outside it, and is told that it failed, or nothing, or dies; now and
    then it tries again."""
    member, tp = _sinner(world)
    ahead = world.left(tp)[: world.draw.randint(1, 3)]
    if not ahead or world.plan.progress == "transaction":
        return
    name, number = world.draw.choice(("answers-held", "half-open", "requests-held", None)), world.next_fault()
    if name is not None:
        world.emit("nemesis", "injected", **number, fault=name, target=member.name, member=member.name)
        world.pass_ms(100, 300)
    position = {tp: ahead[-1] + 1}
    entries = [{"topic": tp[0], "partition": tp[1], "committed_offset": ahead[-1] + 1}]
    world.commit(member, position, answered=world.draw.random() < 0.2)
    if world.draw.random() < 0.6:
        world.pass_ms(10, 900)
        world.say(member, "commit", outcome="fail", entries=entries)
    if name is not None:
        world.pass_ms(100, 300)
        world.emit("nemesis", "healed", **number)
    end = world.draw.random()
    if end < 0.5:
        world.pass_ms(10, 900)
        world.commit(member, position, answered=world.draw.random() < 0.5)
    world.position[tp] = ahead[-1] + 1
    world.done[tp] = ahead[-1] + 1
    if end > 0.3:
        world.pass_ms(10, world.draw.choice((500, 7000)))
        how = world.draw.choice(({"code": 143, "asked": "stop"}, {"code": 1, "asked": "no"}, {"signal": 9}))
        world.kill(member, **how)


def _lost_in_hand(world: World) -> None:
    """Ends a handler after its partition was lost, or revoked; or begins one."""
    member, tp = _sinner(world)
    ahead = world.left(tp)[:2]
    for offset in ahead[:1]:
        world.deliver(member, tp, offset)
    world.say(member, world.draw.choice(("lost", "revoked")), entries=[{"topic": tp[0], "partition": tp[1]}])
    for offset in ahead[: world.draw.randint(1, 2)]:
        world.process(member, tp, offset)
        world.position[tp] = world.done[tp] = offset + 1


def _skip(world: World) -> None:
    """Passes a record over and commits past it."""
    member, tp = _sinner(world)
    for offset in world.left(tp)[:1]:
        world.position[tp] = world.done[tp] = offset + 1
    world.batch(tp, 1, commit=False)
    world.commit(member, {tp: world.done[tp]})


def _skip_at_crash(world: World) -> None:
    """Commits one more than it said it handled, and is killed with -9."""
    member, tp = _sinner(world)
    world.commit(member, {tp: world.done[tp] + 1}, answered=False)
    world.kill(member)


def _garbled(world: World) -> None:
    """Says with an outcome that nobody knows that a record is done, and commits past it."""
    member, tp = _sinner(world)
    for offset in world.left(tp)[:1]:
        world.deliver(member, tp, offset)
        where = {"topic": tp[0], "partition": tp[1], "offset": offset} if world.draw.random() < 0.6 else {}
        world.say(member, "bad_line", message="…", size_bytes=3, events=1, reason="outcome 'ok'", **where)
        world.position[tp] = world.done[tp] = offset + 1
        if world.draw.random() < 0.7:
            world.commit(member, {tp: world.done[tp]})


def _invents(world: World) -> None:
    """Says that it handled a record that the log does not hold."""
    member, tp = _sinner(world)
    offset = world.end(tp) + world.draw.randint(0, 2)
    world.say_delivered(member, tp, offset, None)
    world.say(member, "processed", topic=tp[0], partition=tp[1], offset=offset, outcome="done")


def _below_floor(world: World) -> None:
    """Starts a new ownership epoch lower than the broker told it to."""
    member, tp = _sinner(world)
    world.commit(member, {tp: world.done[tp]})
    world.move(tp, world.other(member), below=world.draw.randint(1, 3))
    world.batch(tp, 2)


def _rewind(world: World) -> None:
    """Delivers within one ownership epoch what it has delivered already."""
    member, tp = _sinner(world)
    again = [offset for offset in world.records[tp] if offset < world.done[tp]]
    if not again:
        return
    world.handle(member, tp, world.draw.choice(again))
    world.position[tp] = world.done[tp] = again[-1] + 1


def _reorder(world: World) -> None:
    """Two workers: the later record is done first."""
    member, tp = _sinner(world)
    pair = world.left(tp)[:2]
    for offset in pair:
        world.deliver(member, tp, offset)
    for offset in reversed(pair):
        world.process(member, tp, offset)
    world.position[tp] = world.done[tp] = max([world.done[tp], *(offset + 1 for offset in pair)])


def _overlap(world: World) -> None:
    """Two workers: the second record is begun before the first is done."""
    member, tp = _sinner(world)
    pair = world.left(tp)[:2]
    for offset in pair:
        world.deliver(member, tp, offset)
    third = world.left(tp)[2:3] if world.draw.random() < 0.5 else []
    for number, offset in enumerate(pair):
        world.process(member, tp, offset)
        for late in third[: number == 0]:
            world.deliver(member, tp, late)
    for late in third:
        world.process(member, tp, late)
    pair += third
    world.position[tp] = world.done[tp] = max([world.done[tp], *(offset + 1 for offset in pair)])


def _wobble(world: World) -> None:
    """The owner's own commit arrives after a later one; the next one makes it good."""
    member, tp = _sinner(world)
    world.batch(tp, 2, commit=True)
    world.commit(member, {tp: max(world.plan.first_offset, world.done[tp] - world.draw.randint(1, 2))})
    world.gauge(world.reading.choice(world.members), tp)
    if world.draw.random() < 0.8:
        world.pass_ms(1, 1200)
        world.commit(member, {tp: world.done[tp]})


def _regress(world: World) -> None:
    """A commit falls back, and somebody starts from it before it is made good."""
    member, tp = _sinner(world)
    world.batch(tp, 2, commit=True)
    world.commit(member, {tp: max(world.plan.first_offset, world.done[tp] - 2)})
    if len(world.members) > 1:
        world.move(tp, world.other(member))
        world.batch(tp, 3)


def _zombie_low(world: World) -> None:
    """A member that lost the partition commits what it knew, below the new owner's position."""
    member, tp = _sinner(world)
    old = world.done[tp]
    world.move(tp, world.other(member))
    world.batch(tp, 2, commit=True)
    world.commit(member, {tp: old - 1})


def _zombie_high(world: World) -> None:
    """A member that does not own the partition commits records that nobody has handled."""
    member, tp = _sinner(world)
    world.commit(world.other(member), {tp: min(world.end(tp), world.done[tp] + 1)})
    if world.draw.random() < 0.5:
        world.position[tp] = world.done[tp] = world.done[tp] + 1


def _ahead_by_word(world: World) -> None:
    """Commits a record while its handler runs."""
    member, tp = _sinner(world)
    for offset in world.left(tp)[:1]:
        world.deliver(member, tp, offset)
        world.commit(member, {tp: offset + 1})
        world.process(member, tp, offset)
        world.position[tp] = world.done[tp] = offset + 1


def _ahead_by_log(world: World) -> None:
    """Commits a record long before its handler begins, and tells of the answer at once, or when it is done; perhaps
    somebody had set the position beyond it and back before."""
    member, tp = _sinner(world)
    chance = world.reading.random()
    for offset in world.left(tp)[:1]:
        if chance < 0.3:
            world.take_effect({tp: world.end(tp)})
            world.pass_ms(60, 90)
            world.take_effect({tp: world.done[tp]})
        world.commit(member, {tp: offset + 1}, answered=chance < 0.6)
        world.pass_ms(450, 700)
        world.handle(member, tp, offset)
        if chance >= 0.6 and world.plan.commit_lines != "none":
            entry = {"topic": tp[0], "partition": tp[1], "committed_offset": offset + 1}
            world.say(member, "commit", outcome="ok", entries=[entry])


def _past_end(world: World) -> None:
    """Commits beyond the end of the log."""
    member, tp = _sinner(world)
    world.batch(tp, 9, commit=False)
    world.commit(member, {tp: world.end(tp) + world.draw.randint(1, 3)})


def _past_end_unread(world: World) -> None:
    """The same, and the log's end is never read again."""
    world.read_log_ends = False
    _past_end(world)


def _lost_commit(world: World) -> None:
    """The coordinator acknowledges a commit and forgets it; mostly the next one is of a later position."""
    member, tp = _sinner(world)
    world.batch(tp, 1, commit=False)
    world.commit(member, {tp: world.done[tp]}, stored=False)
    if world.draw.random() < 0.8:
        world.pass_ms(1, 900)
        world.batch(tp, 1, commit=True)


def _false_report(world: World) -> None:
    """Commits are refused, and reported as stored; now and then one is granted before, or after, or to somebody."""
    member, tp = _sinner(world)
    for offset in world.left(tp)[:2]:
        world.handle(member, tp, offset)
        entry = {"topic": tp[0], "partition": tp[1], "committed_offset": offset + 1}
        refused_of = world.reading.choice((member, member, member, member, Member(2)))
        world.request(refused_of, "OFFSET_COMMIT", [entry | {"error": world.reading.choice((16, 22, 25))}])
        for before in (True, False):
            if not before:
                world.say(member, "commit", outcome="ok", entries=[entry])
            world.pass_ms(*world.reading.choice(((1, 30), (510, 700))))
            if world.reading.random() < 0.3:
                position = offset + world.reading.choice((1, 1, 2))
                by = world.reading.choice((member, member, None, world.reading.choice(world.members)))
                world.take_effect({tp: position})
                if by is not None:
                    granted = entry | {"committed_offset": position, "error": 0}
                    world.request(by, "OFFSET_COMMIT", [granted], epoch=world.epoch_of(by))


def _stale_epoch(world: World) -> None:
    """A commit with the epoch before is accepted; from 4.3 on that may be right."""
    member, tp = _sinner(world)
    world.batch(tp, 1, commit=False)
    old = world.epoch_of(member)
    if world.draw.random() < 0.2:
        world.deal_anew()
    world.pass_ms(60, 300)
    world.write_ownership([member])
    world.pass_ms(60, 300)
    world.commit(member, {tp: world.done[tp]}, epoch=old)


def _operator(world: World) -> None:
    """Somebody outside the lanes sets the group's position, back or ahead."""
    tp = world.sinned
    position = world.draw.choice((world.plan.first_offset, min(world.end(tp), world.done[tp] + 1)))
    world.pass_ms(1, 30)
    world.take_effect({tp: position})
    entry = {"topic": tp[0], "partition": tp[1], "committed_offset": position, "error": 0}
    world.request(None, "OFFSET_COMMIT", [entry])


def _split_by_log(world: World) -> None:
    """The brokers' records name two owners at once."""
    member, tp = _sinner(world)
    second = Member(9)
    second.held.append(tp)
    world.join(second)
    world.members.append(second)
    world.write_ownership([second])
    world.pass_ms(1, 50)
    world.members.remove(second)
    second.held.clear()
    world.write_ownership([second, member])


def _split_told(world: World) -> None:
    """A member goes on although a refused commit told it that it lost the partition."""
    world.freeze(world.sinned, 300, told_but_works=True)


def _fetches_on(world: World) -> None:
    """A member fetches and works on although a broker told it that it is out of the group."""
    world.freeze(world.sinned, 300, fetches_on=True)


def _mute(world: World) -> None:
    """Its heartbeats stop, and it fetches on what it has lost; now and then it asks, or a fault explains it."""
    member, tp = _sinner(world)
    world.request(member, "HEARTBEAT", [])
    mine = world.left(tp)
    for offset in mine[:1]:
        world.deliver(member, tp, offset)
    world.lose_untold(member, tp, world.other(member))
    world.pass_ms(2800, 4500)
    world.fetch_from(member, tp, (mine[1:2] or [world.end(tp)])[0])
    disturbance = world.aside.choice((None, None, None, "asks", "stall", "broker-pause", "other"))
    world.pass_ms(200, 1500)
    if disturbance in ("asks", "other"):
        asking = member if disturbance == "asks" else world.other(member)
        world.request(asking, "HEARTBEAT", [], error=world.aside.choice((0, 27)))
    elif disturbance:
        world.fault(disturbance, member.name if disturbance == "stall" else None)
    world.pass_ms(1800, 4500)
    world.fetch_from(member, tp, (mine[1:2] or [world.end(tp)])[0])
    world.pass_ms(100, 900)
    world._wake(member, tp, mine[:1], mine[1:])
    if world.aside.random() < 0.5:
        world.say(member, "lost", entries=_plain([tp]))


def _late_work(world: World) -> None:
    """Begins or ends a record after its own revoked callback returned, slowly enough to overlap with the heir."""
    member, tp = _sinner(world)
    mine = world.left(tp)[:2]
    for offset in mine[:1]:
        world.deliver(member, tp, offset)
    world.move(tp, world.other(member))
    world.batch(tp, 1)
    world.pass_ms(1, 1200)
    for offset in mine[:1]:
        world.process(member, tp, offset)
    for offset in mine[1:]:
        world.deliver(member, tp, offset)


def _zombie_work(world: World) -> None:
    """Frozen for long, and works on when it wakes."""
    world.freeze(world.sinned, 700)


def _leap(world: World) -> None:
    """Frozen, and works on when it wakes; the heir goes on behind what it did, a record further, or before it did."""
    member, tp = _sinner(world)
    world.lose_untold(member, tp, world.other(member))
    world.batch(tp, 1, commit=False)
    by_the_zombie = world.left(tp)[:2]
    late = world.aside.random() < 0.2
    for offset in by_the_zombie:
        world.deliver(member, tp, offset)
        if not late:
            world.process(member, tp, offset)
    behind = world.left(tp)[len(by_the_zombie) + world.aside.choice((0, 0, 1)) :]
    if behind:
        world.position[tp] = world.done[tp] = behind[0]
        world.batch(tp, 1, commit=False)
    if late:
        world.pass_ms(300, 900)  # about the tolerance
        for offset in by_the_zombie:
            world.process(member, tp, offset)
    world.say(member, "lost", entries=_plain([tp]))


def _lost_write(world: World) -> None:
    """The cluster loses one or two acknowledged records: nothing stands there, another one, or one without an id."""
    for offset in world.aside.sample(world.records[world.sinned], 2)[: world.aside.randint(1, 2)]:
        instead = world.aside.choice((None, None, None, {"id": "never-acknowledged"}, {"id": None}))
        world.control[world.sinned, offset] = instead


def _compacted(world: World) -> None:
    """Records are gone that a later one of their key may have superseded."""
    for offset in world.aside.sample(world.records[world.sinned], 3):
        world.control[world.sinned, offset] = None


def _expired(world: World) -> None:
    """The log start passes the consumer, mostly, which goes on from there."""
    tp = world.sinned
    start = min(world.end(tp) - 1, world.position[tp] + world.aside.randint(-1, 3))
    world.emit("observer", "log_start", topic=tp[0], partition=tp[1], offset=start)
    for offset in [offset for offset in world.records[tp] if offset < start]:
        world.control[tp, offset] = None
    late = [offset for offset in world.records[tp] if world.position[tp] <= offset < start]
    if late and world.aside.random() < 0.3:
        world.effect(tp, world.aside.choice(late))
    owner = world.owner(tp)
    if late and owner is not None and world.aside.random() < 0.3:  # dropped, and mostly committed past later
        world.deliver(owner, tp, world.aside.choice(late))
    world.position[tp] = world.done[tp] = max(world.position[tp], start)


def _corrupt(world: World) -> None:
    """The log holds another content than was sent, or an effect carries it; or the body says nothing of that."""
    tp = world.sinned
    offset = world.aside.choice(world.records[tp])
    if world.aside.random() < 0.7:
        world.control[tp, offset] = {"checksum": 1}
    if world.aside.random() < 0.6:
        said = world.aside.choice(({}, {"json_checksum": 3}, {"json_checksum": 4}))
        world.effect(tp, world.aside.choice(world.records[tp]), checksum=2, **said)
    if world.aside.random() < 0.7:
        other = world.aside.choice(world.records[tp])
        world.control.setdefault((tp, other), {"json_checksum": 3})


def _misplaced(world: World) -> None:
    """A delivery or an effect says another place than its record has, or another record than its place holds."""
    member, tp = _sinner(world)
    offset, other = world.aside.sample(world.records[tp], 2)
    name = world.aside.choice((record_id(tp, other), record_id(tp, other), "never-acknowledged", "never-sent"))
    if world.aside.random() < 0.5:
        world.say_delivered(member, tp, offset, name)
    else:
        world.effect(tp, other, id=name, partition=tp[1], offset=offset)


def _phantom(world: World) -> None:
    """A delivery or an effect has an id that nobody sent, or that a stranger wrote into the topic."""
    member, tp = _sinner(world)
    offset = world.aside.choice(world.records[tp])
    name = world.aside.choice(("never-sent", "never-sent", "a-strangers"))
    if name == "a-strangers":
        world.control[tp, offset] = {"id": name}
    if world.aside.random() < 0.5:
        world.say_delivered(member, tp, offset, name)
    else:
        world.effect(tp, offset, id=name)


def _duplicate_effect(world: World) -> None:
    """An effect comes again; some of the records are not in the log any more, or never were."""
    tp = world.sinned
    offset = world.aside.choice(world.records[tp])
    if world.aside.random() < 0.3:
        world.control[tp, offset] = None
    name = world.aside.choice((record_id(tp, offset), record_id(tp, offset), "never-acknowledged"))
    for _ in range(world.aside.randint(2, 3)):
        world.effect(tp, offset, id=name)
        world.pass_ms(1, 30)


def _dirty_read(world: World) -> None:
    """Records were taken back that the consumer reads, or does not; of some the log has another, committed, copy."""
    tp = world.sinned
    for offset in world.aside.sample(world.records[tp], 2):
        chance = world.aside.random()
        place = offset if chance < 0.7 else world.end(tp) + 3 + offset
        if chance < 0.7:
            world.control[tp, offset] = None
        named = {"id": record_id(tp, offset)} if world.aside.random() < 0.8 else {}
        fields = {"topic": tp[0], "partition": tp[1], "offset": place, "producer_id": 7}
        world.emit("transactions", "record_aborted", **fields, **named)
        if chance < 0.2 or chance > 0.8:
            world.effect(tp, offset)


def _outside(world: World) -> None:
    """Commits a position outside of a transaction: a new one, or the one that stands; now and then nobody saw who."""
    member, tp = _sinner(world)
    stood = world.committed[tp]
    new = max(world.plan.first_offset, world.done[tp] - world.draw.randint(0, 2))
    position = world.draw.choice((new, new, new, world.plan.first_offset if stood is None else stood))
    world.pass_ms(60, 120)
    world.take_effect({tp: position})
    entry = {"topic": tp[0], "partition": tp[1], "committed_offset": position, "error": 0}
    for asker in world.draw.choice(((member,), (member,), (member,), (member, Member(2)), (None,), (), ())):
        world.request(asker, "OFFSET_COMMIT", [entry])


def _torn(world: World) -> None:
    """A transaction ends in one log otherwise than in the others; another one is aborted as a whole."""
    member, tp = _sinner(world)
    for _ in range(2):
        world.transaction(member, {tp: world.done[tp]}, state="abort")
        world.pass_ms(1, 200)
        state, other = world.draw.choice(
            (("commit", "abort"), ("commit", "abort"), ("abort", "commit"), ("commit", None))
        )
        world.transaction(member, {tp: world.done[tp]}, state=state, other=other)
        world.pass_ms(1, 200)


def _hanging(world: World) -> None:
    """Transactions are found open, some for long; now and then one ends after all, or something kept its end away."""
    chance, about = world.draw.random(), {"producer_id": 500, "producer_epoch": 3}
    timeout_ms = world.draw.choice((0, 1000, 3000))
    for asked_ms in (timeout_ms, timeout_ms - 500)[: world.draw.choice((0, 1, 2, 2, 2, 2))]:
        world.request(world.members[0], "INIT_PRODUCER_ID", [], timeout_ms=asked_ms, **about)
    if chance < 0.12:
        world.fault("broker-pause", None, heals=world.draw.random() < 0.6)
        world.pass_ms(*world.draw.choice(((1, 400), (8_000, 11_000))))
    if 0.12 < chance < 0.2:
        world.emit("run", "scheduling_delay", delay_ns=world.draw.choice((600, 900)) * MS)
    for log in (None, 0, 1):
        began = {"source_wall_ns": world.wall() - world.draw.choice((4, 10, 11, 13, 14, 30)) * SECOND}
        if log is None:
            world.log("transaction_open", **about, **began)
        else:
            where = {"topic": "out", "partition": log, "offset": world._output_offset}
            world.emit("transactions", "transaction_open", **where, **about, **began)
    if world.draw.random() < 0.3:
        world.pass_ms(1, 100)
        world._end(world.draw.choice((None, 0)), "abort", about | {"producer_epoch": 4})


COMMIT_SINS: dict[str, Callable[[World], None]] = {
    "retry": _retry,
    "twice": _twice,
    "swallow": _swallow,
    "unknown-commit": _unknown_commit,
    "lost-in-hand": _lost_in_hand,
    "skip": _skip,
    "skip-at-crash": _skip_at_crash,
    "below-floor": _below_floor,
    "rewind": _rewind,
    "reorder": _reorder,
    "overlap": _overlap,
    "wobble": _wobble,
    "regress": _regress,
    "zombie-low": _zombie_low,
    "zombie-high": _zombie_high,
    "ahead-by-word": _ahead_by_word,
    "ahead-by-log": _ahead_by_log,
    "past-end": _past_end,
    "past-end-unread": _past_end_unread,
    "lost-commit": _lost_commit,
    "false-report": _false_report,
    "stale-epoch": _stale_epoch,
    "operator": _operator,
    "split-by-log": _split_by_log,
    "split-told": _split_told,
    "late-work": _late_work,
    "zombie-work": _zombie_work,
    "fetches-on": _fetches_on,
    "leap": _leap,
    "invents": _invents,
    "garbled": _garbled,
    "lost-write": _lost_write,
    "compacted": _compacted,
    "expired": _expired,
    "corrupt": _corrupt,
    "misplaced": _misplaced,
    "phantom": _phantom,
    "duplicate-effect": _duplicate_effect,
}
TRANSACTION_SINS: dict[str, Callable[[World], None]] = {
    "dirty-read": _dirty_read,
    "outside": _outside,
    "torn": _torn,
    "hanging": _hanging,
}


def _forged(world: World) -> None:
    """Another member says that it has a partition that nobody gave it, mostly, and works on it beside the owner."""
    member, tp = _sinner(world)
    other, chance = world.other(member), world.witnessed.random()
    if chance < 0.2:
        world.write_ownership(world.members)
        world.answer_assignment(other, [*other.held, tp])
    if chance > 0.8:
        world.say(other, world.witnessed.choice(("revoked", "lost")), entries=_plain([tp]))
    world.pass_ms(*world.witnessed.choice(((1, 30), (520, 900))))
    mine = world.left(tp)[:2]
    world.say(other, "assigned", entries=_plain([tp]))
    for offset in mine[:1]:
        world.deliver(other, tp, offset)
        world.process(other, tp, offset)
    world.pass_ms(520, 900)
    for offset in mine:
        world.deliver(other, tp, offset)
        world.process(other, tp, offset)
    if world.witnessed.random() < 0.5:
        world.say(other, "revoked", entries=_plain([tp]))


def _repeats(world: World) -> None:
    """Says again that it has what it has, and goes back; now and then a broker had given it anew, or it had let go."""
    member, tp = _sinner(world)
    chance, again = world.witnessed.random(), [offset for offset in world.records[tp] if offset < world.done[tp]]
    world.pass_ms(*world.witnessed.choice(((1, 30), (520, 900))))
    if chance < 0.2:
        world.answer_assignment(member, member.held)
    if 0.2 < chance < 0.4:
        world.write_ownership([member])
    if chance > 0.8:
        world.say(member, world.witnessed.choice(("revoked", "lost")), entries=_plain([tp]))
        world.pass_ms(*world.witnessed.choice(((1, 30), (520, 900))))
    world.say(member, "assigned", entries=_plain([tp]))
    for offset in again[-2:]:
        world.handle(member, tp, offset)


def _false_loss(world: World) -> None:
    """Calls a clean revocation a loss, with a record in hand; now and then it had reason to."""
    member, tp = _sinner(world)
    in_hand, reason = world.left(tp)[:1], world.witnessed.choice(("none", "none", "beats", "beats", "fenced", "left"))
    if reason == "beats":
        for _ in range(world.witnessed.randint(1, 4)):
            world.pass_ms(700, 1600)
            world.group_answer(member, "HEARTBEAT", error=world.witnessed.choice((0, 0, 27)))
    for offset in in_hand:
        world.deliver(member, tp, offset)
    if reason == "fenced":
        world.group_answer(member, "HEARTBEAT", error=25)
    if reason == "left":
        world.group_answer(member, "LEAVE_GROUP")
    if world.witnessed.random() < 0.2:
        world.fault(world.witnessed.choice(("pause", "stall")), world.witnessed.choice(world.members).name)
    world.say(member, "lost", entries=_plain([tp]))
    for offset in in_hand:
        world.process(member, tp, offset)
    if world.witnessed.random() < 0.5 and len(world.members) > 1:
        world.pass_ms(*world.witnessed.choice(((1, 30), (520, 900), (520, 900))))
        member.held.remove(tp)
        heir = world.other(member)
        heir.held.append(tp)
        world.write_ownership([member, heir])
        world.take_over(heir, [tp])
    else:
        world.take_over(member, [tp])


def _hushed(world: World) -> None:
    """Prints one line and no more of what it does, does things out of turn and twice, and its sink hears of it all."""
    member, tp = _sinner(world)
    pair = world.left(tp)[:2]
    for offset in pair[:1]:
        world.deliver(member, tp, offset)
    world.hushed = True
    if len(world.members) > 1 and world.witnessed.random() < 0.4:
        world.commit(member, {tp: world.done[tp]})
        world.move(tp, world.other(member), below=world.witnessed.choice((0, 0, 1)))
        member, tp = _sinner(world)
        pair = world.left(tp)[:2]
        if world.witnessed.random() < 0.7:
            world.fetch_from(member, tp, world.position[tp])
    chance = world.witnessed.random()
    for offset in pair if chance < 0.5 else reversed(pair):
        world.process(member, tp, offset)
        world.pass_ms(1, 60)
    again = [offset for offset in world.records[tp] if offset < world.done[tp]]
    for offset in again[-1:] if world.witnessed.random() < 0.4 else []:
        world.process(member, tp, offset)
    world.position[tp] = world.done[tp] = max([world.done[tp], *(offset + 1 for offset in pair)])
    world.commit(member, {tp: world.done[tp]})
    world.hushed = world.witnessed.random() < 0.5


def _late_output(world: World) -> None:
    """Says that a record is done, and commits it, some time before its output is written."""
    member, tp = _sinner(world)
    for offset in world.left(tp)[:2]:
        world.deliver(member, tp, offset)
        world.say_processed(member, tp, offset, "done")
        world.commit(member, {tp: offset + 1})
        world.pass_ms(*world.witnessed.choice(((100, 420), (600, 900), (600, 900))))
        world.effect(tp, offset)
        world.position[tp] = world.done[tp] = offset + 1


def _renamed(world: World) -> None:
    """Its lines name now one client and now another, though one lives in it; it steps back, or works out of turn."""
    member, tp = _sinner(world)
    for number, sin in enumerate((_rewind, _reorder, _overlap)):
        world.names[member.name] = f"{member.name}-{number % 2}"
        if world.witnessed.random() < 0.6:
            sin(world)
        world.batch(tp, 1)


def _nameless(world: World) -> None:
    """Two members of the group live in its process, and no line says which of them speaks; or one after the other."""
    member, _ = _sinner(world)
    for _ in range(world.witnessed.choice((1, 2, 2, 2))):
        for name in (member.member_id, f"{member.member_id}-second"):
            world.pass_ms(1, 60)
            world.group_answer(member, "JOIN_GROUP", name)
    for sin in (_rewind, _reorder, _overlap):
        if world.witnessed.random() < 0.6:
            sin(world)


def _refused_behind(world: World) -> None:
    """A commit is refused in the background, after the partition was lost untold; the member does what it had fetched,
    or fetches more, or begins what the refused commit covered."""
    member, tp = _sinner(world)
    mine, position = world.left(tp), world.done[tp]
    if world.witnessed.random() < 0.8:
        world.fetch_from(member, tp, position)
    world.lose_untold(member, tp, world.other(member))
    world.batch(tp, 1)
    world.pass_ms(520, 900)
    for offset in mine[:1]:
        world.deliver(member, tp, offset)
    for _ in range(world.witnessed.choice((1, 1, 2))):
        world.refused(member, tp, position + world.witnessed.choice((0, 0, 1, 2)))
    for offset in mine[:1]:
        world.process(member, tp, offset)
    if world.witnessed.random() < 0.4:
        world.pass_ms(520, 900)
        world.fetch_from(member, tp, (mine[2:3] or [world.end(tp)])[0])
    for offset in mine[1:3]:
        world.pass_ms(*world.witnessed.choice(((1, 30), (520, 900))))
        world.deliver(member, tp, offset)
        world.process(member, tp, offset)
    world.say(member, "lost", entries=_plain([tp]))


def _inside(world: World) -> None:
    """Works on for long after it gave the partition up, and the heir's short handlers lie inside its long one."""
    member, tp = _sinner(world)
    mine = world.left(tp)[:1]
    for offset in mine:
        world.deliver(member, tp, offset)
    world.move(tp, world.other(member))
    world.pass_ms(*world.witnessed.choice(((300, 520), (600, 900))))
    world.batch(tp, 2)
    world.pass_ms(*world.witnessed.choice(((300, 520), (600, 900))))
    for offset in mine:
        world.process(member, tp, offset)


def _crash_unfetched(world: World) -> None:
    """Commits more than it has done, and is killed; what it had not fetched it cannot have had in hand."""
    member, tp = _sinner(world)
    ahead = world.left(tp)[:2]
    world.fetch(member, [tp], size_bytes=900)
    for offset in ahead[:1]:
        world.handle(member, tp, offset)
    if world.witnessed.random() < 0.7:
        world.pass_ms(1, 30)
        world.fetch(member, [tp], size_bytes=world.witnessed.choice((0, 0, 900)))
    world.pass_ms(*world.witnessed.choice(((1, 30), (520, 900))))
    for offset in ahead[1:]:
        world.commit(member, {tp: offset + 1}, answered=False)
        world.committed[tp] = offset + 1
    world.pass_ms(*world.witnessed.choice(((1, 30), (520, 900))))
    world.kill(member)


# What only witnesses can know: assignments are answered in the request log, which is read to its end.
WITNESSED_SINS: dict[str, Callable[[World], None]] = {
    "mute": _mute,
    "forged": _forged,
    "repeats": _repeats,
    "false-loss": _false_loss,
    "hushed": _hushed,
    "late-output": _late_output,
    "renamed": _renamed,
    "nameless": _nameless,
    "refused-behind": _refused_behind,
    "inside": _inside,
    "crash-unfetched": _crash_unfetched,
}


def _rolled_back(world: World) -> None:
    """Rows of a table are written over with other records, some of them older: of one key, or of an entity in several
    partitions; now and then a row is caught up, or gone, in the end."""
    places = [(tp, offset) for tp in world.slices for offset in world.records[tp]]
    draw, keyed = world.witnessed, world.witnessed.random() < 0.5
    for number, place in enumerate(places):
        stamp = world.wall(world.began) + draw.choice((number, number, -number, 0)) * MS
        unkeyed = {} if keyed else {"key": None}
        world.control[place] = unkeyed | {"source_wall_ns": stamp}
    for row in range(4):
        shown = draw.sample(places, min(len(places), draw.randint(2, 4)))
        for tp, offset in [*shown, *(shown[:1] if draw.random() < 0.3 else [])]:
            world.pass_ms(1, 30)
            world.effect(tp, offset, row=row)
        chance, (tp, offset) = draw.random(), shown[0]
        if chance < 0.3:
            kind = "row_removed" if chance < 0.15 else "row_rewritten"
            world.emit("sink", kind, id=record_id(tp, offset), row=row)


STATE_SINS: dict[str, Callable[[World], None]] = {"rolled-back": _rolled_back}


def _crash_loop(world: World) -> None:
    """A member's process goes by itself, and again; now and then the second time is the harness's doing."""
    member, _ = _sinner(world)
    world.kill(member, code=1, asked="no")
    world.kill(member, code=1, asked=world.draw.choice(("no", "no", "no", "no", "kill")))


def _stays_away(world: World) -> None:
    """A member that was killed is refused by its group for ever; now and then only for a while, or it was frozen and
    never asks, or it ends by itself, or the machine stands still or is busy."""
    member, tp = _sinner(world)
    chance = world.draw.random()
    if chance < 0.25:
        world.lose_untold(member, tp, world.other(member))
        member.held.clear()
        world.refused_members.add(member.name)
        world.fault(world.draw.choice(("pause", "stall", "latency")), member.name)
        world.write_ownership([])
    else:
        world.refused_members.add(member.name)
        world.kill(member)
    for _ in range(world.draw.randint(0, 4)):
        world.pass_ms(500, 2_000)
        world.request(member, "JOIN_GROUP", [], error=23)
    if 0.25 < chance < 0.35:
        world.refused_members.clear()
        world.join(member)
        world.admit(member)
        world.write_ownership([])
    if 0.35 < chance < 0.45:
        world.say(member, "exited", code=1, asked="no")
    if 0.45 < chance < 0.55:
        world.emit("run", "scheduling_delay", delay_ns=world.draw.choice((800, 18_000)) * MS)
    if 0.55 < chance < 0.65:
        world.emit("run", "cpu_wait", member_ns=20_000 * MS, broker_ns=0, over_ns=20_000 * MS)


def _deaf(world: World) -> None:
    """A member does not go when it is asked to; now and then its network is held, or the machine stands still."""
    member, _ = _sinner(world)
    asked_ns, chance = world.now, world.draw.random()
    world.fault("terminate", member.name)
    if chance < 0.2:
        world.fault("stall", world.draw.choice((member.name, None, "m9")), heals=world.draw.random() < 0.5)
    world.pass_ms(1000, 1400)
    if 0.2 < chance < 0.3:
        world.emit("run", "scheduling_delay", delay_ns=600 * MS)
    world.pass_ms(300, 400)
    world.kill(member, signal=9, asked="overdue", asked_ns=asked_ns, within_s=2)


def _fat(world: World) -> None:
    """Members take more memory than they claim, or just as much."""
    for member in world.members:
        for _ in range(world.draw.choice((2, 2, 0))):
            world.sample(member, world.draw.choice((MEMORY_MAX_BYTES, MEMORY_MAX_BYTES + 1, 4 * MEMORY_MAX_BYTES)))


def _oom(world: World) -> None:
    """The kernel kills a member; now and then two are gone, or it killed nobody, or the harness did."""
    member, _ = _sinner(world)
    world.sample(member, world.draw.choice((500, 4 * MEMORY_MAX_BYTES)))
    world.emit("run", "oom_kills", count=3)
    chance = world.draw.random()
    if chance < 0.2 and len(world.members) > 1:
        world.kill(world.other(member), signal=9, asked="no")
    world.pass_ms(1, 400)
    world.kill(member, signal=9, asked="kill" if chance > 0.9 else "no")
    world.emit("run", "oom_kills", count=3 if 0.8 < chance < 0.9 else 4)


def _storm(world: World) -> None:
    """Long after anything happened, generations or epochs rise again and again."""
    world.pass_ms(9_800, 13_000)
    for _ in range(world.draw.randint(5, 9)):
        if world.plan.protocol == "classic":
            world.write_ownership(world.members)
        else:
            world._epoch += 1
            world.log("group_epoch", epoch=world._epoch, source_wall_ns=world.wall())
        world.pass_ms(100, 600)


def _lazy(world: World) -> None:
    """Handles records and commits them only after long; now and then under a fault, or on a still machine."""
    _, tp = _sinner(world)
    world.batch(tp, 2, commit=False)
    chance = world.draw.random()
    if chance < 0.15:
        world.fault("stall", "m0")
    if 0.15 < chance < 0.25:
        world.emit("run", "scheduling_delay", delay_ns=800 * MS)
    world.pass_ms(9_900, 13_000)
    world.batch(tp, 1, commit=True)


def _starve(world: World) -> None:
    """Passes one partition over, while it does the others; now and then only one other, or a record is in hand."""
    member, tp = _sinner(world)
    others = [other for other in world.slices if other != tp][: world.draw.choice((2, 2, 2, 3, 3, 3, 3, 1))]
    chance, until = world.draw.random(), world.now + world.draw.randint(13_500, 20_000) * MS
    in_hand = world.left(tp)[:1] if chance < 0.06 else []
    for offset in in_hand:
        world.deliver(member, tp, offset)
    if 0.06 < chance < 0.12:
        world.fault("broker-kill", None)
    if 0.12 < chance < 0.18:
        world.emit("run", "scheduling_delay", delay_ns=800 * MS)
    while world.now < until:
        world.pass_ms(1_200, 2_400)
        for other in others:
            world.batch(other, 1)
    for offset in in_hand:
        world.process(member, tp, offset)
        world.position[tp] = world.done[tp] = offset + 1
    world.batch(tp, 1)


def _block(world: World) -> None:
    """Does one record at a time of a partition, each long after the one before, though it has nothing else to do; now
    and then it has, or a record in hand, or it waits for brokers or for a processor."""
    member, tp = _sinner(world)
    chance, broker_ms = world.draw.random(), world.draw.choice((5.0, 5.0, 5.0, 5.0, 900.0))
    for other in world.slices if chance > 0.08 else ():
        world.batch(other, len(world.left(other)) if other != tp else 0)
    world.observe()
    if 0.08 < chance < 0.14:
        world.fault("broker-kill", None)
    for _ in range(world.draw.randint(6, 8)):
        world.pass_ms(*world.draw.choice(((1_300, 2_600), (1_300, 2_600), (1_300, 2_600), (100, 900))))
        if 0.14 < chance < 0.2:
            world.emit("run", "scheduling_delay", delay_ns=800 * MS)
        if 0.2 < chance < 0.26:
            world.emit("run", "cpu_wait", member_ns=1_000 * MS, broker_ns=0, over_ns=2_000 * MS)
        if chance > 0.3 or world.draw.random() < 0.5:
            world.fetch(member, [tp], size_bytes=900, duration_ms=broker_ms)
        if 0.26 < chance < 0.3:
            for offset in world.left(tp)[:1]:
                world.deliver(member, tp, offset)
                world.pass_ms(1_300, 2_600)
        world.batch(tp, 1)


def _rogue(world: World) -> None:
    """Reads a partition that is another's, for longer than W or nearly; now and then it commits there, or is hit."""
    tp = world.sinned
    member = next((one for one in world.members if one is not world.owner(tp)), world.members[0])
    chance = world.draw.random()
    world.fetch(member, [tp], size_bytes=700)
    if chance < 0.06:
        world.commit(member, {tp: world.done[tp]})
    if 0.06 < chance < 0.12:
        world.fault("stall", world.draw.choice((None, member.name, "somebody else")))
    world.pass_ms(*world.draw.choice(((9_000, 11_000), (11_000, 16_000), (11_000, 16_000))))
    if 0.12 < chance < 0.16:
        world.emit("run", "scheduling_delay", delay_ns=800 * MS)
    world.fetch(member, [tp], size_bytes=world.draw.choice((700, 700, 0)))
    if chance > 0.1:  # from the beginning again
        world.pass_ms(2_000, 5_000)
        world.fetch_from(member, tp, world.plan.first_offset, size_bytes=300)


VITAL_SINS: dict[str, Callable[[World], None]] = {
    "crash-loop": _crash_loop,
    "stays-away": _stays_away,
    "deaf": _deaf,
    "fat": _fat,
    "oom": _oom,
    "storm": _storm,
    "lazy": _lazy,
    "starve": _starve,
    "block": _block,
    "rogue": _rogue,
}
