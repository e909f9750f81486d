"""A story: what truly happened in a small trial, step by step, and the event files that its witnesses write of it.

A story has one partition, one group and a few members of one incarnation each. Its steps are exact and in their true
order; each witness tells its share of them with its own delay. `events_of` writes what the harness would have stored,
`true_world` keeps what only the story knows: a world that the evidence must allow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from kafka_trial.history.event import CORE_FIELDS, Event
from lab.worlds.worlds import Instant, World

MS: Final = 1_000_000
SECOND_NS: Final = 1000 * MS
WALL_NS: Final = 1_790_000_000 * SECOND_NS
BEGAN_NS: Final = 100 * SECOND_NS
FIRST_STEP_NS: Final = BEGAN_NS + 3 * SECOND_NS
TOPIC, TOPIC_ID, GROUP = "t", "T", "g"
LOG, REQUESTS = "offsets", "requests-b0"
MEASURED_MS: Final = 5  # what the reading of lines took at most, where a story's harness measures it
FLUSHED_LINES: Final = 3  # a member that buffers prints so many lines at once
UNKNOWN_MEMBER_ID: Final = 25
ILLEGAL_GENERATION: Final = 22
TAKES_NS: Final = 2 * MS  # from the arrival of a request to its effect, and from there to its answer


@dataclass(frozen=True)
class StoryStep:
    """One thing that happens, `gap_ms` after the step before.

    `what` and `value`: assigned, revoked, lost; begin, end (an offset); ask (a position: the member says that it asks
    for this commit); commit (a position that takes effect), refuse (one that does not), vanish (one that is
    acknowledged, and never gets into the log); give (the group's log gives the partition to `who`), hold (KIP-848: 1
    `who` has it, 0 no longer); start (the position that the OffsetFetch of `who` is answered); fetch (from a position);
    tell (the heartbeat of `who` is refused; value 0: the answer never arrives); cut, heal (a fault on `who` that may
    lose answers); unsaid (`who` ends the record, and is killed before it can say so), kill, exit; stall (the harness
    reads nothing for the `value` milliseconds that end here).
    `late_ms`: so long the line waits to be read.
    """

    what: str
    who: str = ""
    value: int = -1
    gap_ms: int = 1500
    late_ms: int = 3


@dataclass(frozen=True)
class Story:
    """Steps, and what else decides how a trial is told: the keys of its records, and how members print."""

    steps: tuple[StoryStep, ...]
    keys: tuple[str, ...]
    measured: bool = False
    buffered: bool = False

    @property
    def members(self) -> list[str]:
        """The members that act in it, by name."""
        return sorted({step.who for step in self.steps if step.who})

    @property
    def times_ns(self) -> list[int]:
        """When each step happens."""
        return [*accumulate((step.gap_ms * MS for step in self.steps), initial=FIRST_STEP_NS)][1:]

    def settings(self) -> dict[str, Any]:
        """What consumer.toml says, in the words of the judge's `Settings`."""
        return {
            "session_timeout_s": 3,
            "poll_interval_s": 5,
            "commit_interval_s": 1,
            "delivery": "at-least-once",
            "events": "jsonl",
            "sink": "none",
            "stdout": "buffered" if self.buffered else "lines",
        }


def events_of(story: Story) -> list[Event]:
    """Returns the event files of a story, as one list: the frame of a trial, and each step as its witnesses saw it."""
    writer = _Writer(story)
    writer.open_frame()
    times = story.times_ns
    for step, at_ns in zip(story.steps, times, strict=True):
        writer.write(step, at_ns)
    writer.close_frame((times or [FIRST_STEP_NS])[-1] + 2 * SECOND_NS)
    return writer.events


def true_world(story: Story) -> World:
    """Returns what truly happened, as a world."""
    instants: list[Instant] = []
    said: dict[tuple[str, int], list[int]] = defaultdict(list)
    place = 0
    for step in story.steps:
        place += step.what in ("commit", "give", "hold")
        if step.what == "ask":
            said[step.who, step.value].append(len(instants))
        if step.what == "commit":
            waiting = said[step.who, step.value]
            if waiting:
                at = waiting.pop(0)
                instants[at] = Instant("ask", step.who, step.value, pair=place)
            else:
                instants.append(Instant("ask", step.who, step.value, pair=place))
        what = {"tell": "told", "unsaid": "end", "kill": "exit", "vanish": "acked"}.get(step.what, step.what)
        hidden = step.what in ("cut", "heal", "stall", "refuse") or (step.what == "tell" and step.value == 0)
        if not hidden:
            instants.append(Instant(what, step.who, step.value, rank=place))
    return World(tuple(instants), story.keys)


@dataclass
class _Writer:
    """Writes each step into the files of its witnesses, stamped as these would be."""

    story: Story
    events: list[Event] = field(default_factory=list)
    _seqs: dict[str, int] = field(default_factory=dict)
    _read_ns: dict[str, int] = field(default_factory=dict)
    _place: int = 0
    _faults: int = 0
    _connections: Counter[str] = field(default_factory=Counter)
    _printed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        timed = [*zip(self.story.steps, self.story.times_ns, strict=True)]
        self._stalls = [(at_ns - step.value * MS, at_ns) for step, at_ns in timed if step.what == "stall"]
        told = ("assigned", "revoked", "lost", "begin", "end", "ask", "refuse")
        by_member: dict[str, list[int]] = defaultdict(list)
        for step, at_ns in timed:
            if step.what in told:
                by_member[step.who] += [at_ns + step.late_ms * MS] * (2 if step.what == "refuse" else 1)
        self._line_times = by_member

    def put(self, source: str, kind: str, time_ns: int, **fields: Any) -> None:
        """Adds one event at the time at which it is read."""
        seq = self._seqs[source] = self._seqs.get(source, -1) + 1
        core = {name: fields.pop(name) for name in CORE_FIELDS if name in fields}
        self.events.append(Event(source, seq, time_ns, kind, **core, details=fields))

    def read(self, source: str, kind: str, at_ns: int, late_ms: int, **fields: Any) -> None:
        """Adds what a witness wrote at `at_ns`, read so late, after all that it wrote before."""
        awake_ns = max((end for begin, end in self._stalls if begin <= at_ns <= end), default=at_ns)
        time_ns = max(awake_ns + late_ms * MS, self._read_ns.get(source, 0))
        self._read_ns[source] = time_ns
        self.put(source, kind, time_ns, **fields)

    def line(self, step: StoryStep, kind: str, at_ns: int, **fields: Any) -> None:
        """Adds a line that a member prints; one that buffers prints several at once."""
        number = self._printed[step.who] = self._printed.get(step.who, -1) + 1
        if self.story.buffered:
            times = self._line_times[step.who]
            last = min(number - number % FLUSHED_LINES + FLUSHED_LINES, len(times)) - 1
            at_ns = max(at_ns, times[last])
        who = {"member": step.who, "incarnation": 0}
        self.read(f"consumer-{step.who}-0", kind, at_ns, step.late_ms, **who, **fields)

    def log(self, step: StoryStep, kind: str, at_ns: int, **fields: Any) -> None:
        """Adds a record of the offsets log."""
        self._place += 1
        place = {"group": GROUP, "log_partition": 0, "log_offset": self._place}
        self.read(LOG, kind, at_ns, step.late_ms, **place, **fields)

    def request(self, step: StoryStep, api: str, at_ns: int, *, took_ns: int = 2 * TAKES_NS, **fields: Any) -> None:
        """Adds a line of the request log: it is stamped when the answer was sent."""
        lane = {"lane": int(step.who[1:]), "member_id": f"id-{step.who}"}
        lane["connection"] = f"{step.who}-{self._connections[step.who]}"
        about = {"group": GROUP, "duration_ms": took_ns / MS, "source_wall_ns": WALL_NS + at_ns}
        self.read(REQUESTS, "request", at_ns, step.late_ms, api=api, **lane, **about, **fields)

    def write(self, step: StoryStep, at_ns: int) -> None:
        """Adds what is told of a step."""
        getattr(self, f"_{step.what}")(step, at_ns)

    def _callback(self, step: StoryStep, at_ns: int) -> None:
        self.line(step, step.what, at_ns, entries=[{"topic": TOPIC, "partition": 0}])

    _assigned = _revoked = _lost = _callback

    def _begin(self, step: StoryStep, at_ns: int) -> None:
        self.line(step, "delivered", at_ns, topic=TOPIC, partition=0, offset=step.value)

    def _end(self, step: StoryStep, at_ns: int) -> None:
        self.line(step, "processed", at_ns, topic=TOPIC, partition=0, offset=step.value, outcome="done")

    def _unsaid(self, step: StoryStep, at_ns: int) -> None:
        """Nobody tells of it."""

    def _ask(self, step: StoryStep, at_ns: int) -> None:
        self.line(step, "commit", at_ns, outcome="invoke", entries=[_position(step.value)])

    def _commit(self, step: StoryStep, at_ns: int) -> None:
        place = {"topic": TOPIC, "partition": 0, "committed_offset": step.value}
        self.log(step, "committed", at_ns, commit_time_ms=(WALL_NS + at_ns) // MS, **place)
        entries = [_position(step.value) | {"error": 0}]
        self.request(step, "OFFSET_COMMIT", at_ns + TAKES_NS, entries=entries, error=0)

    def _vanish(self, step: StoryStep, at_ns: int) -> None:
        entries = [_position(step.value) | {"error": 0}]
        self.request(step, "OFFSET_COMMIT", at_ns + TAKES_NS, entries=entries, error=0)

    def _refuse(self, step: StoryStep, at_ns: int) -> None:
        self._ask(step, at_ns)
        entries = [_position(step.value) | {"error": ILLEGAL_GENERATION}]
        self.request(step, "OFFSET_COMMIT", at_ns + 2 * TAKES_NS, entries=entries, error=ILLEGAL_GENERATION)
        self.line(step, "commit", at_ns + 3 * TAKES_NS, outcome="fail", entries=[_position(step.value)])

    def _give(self, step: StoryStep, at_ns: int) -> None:
        listed = [{"member_id": f"id-{member}"} for member in self.story.members]
        given = [{"topic": TOPIC, "partition": 0, "member_id": f"id-{step.who}"}]
        about = {"protocol": "classic", "epoch": self._place + 1, "members": listed, "entries": given}
        self.log(step, "group", at_ns, source_wall_ns=WALL_NS + at_ns, **about)

    def _hold(self, step: StoryStep, at_ns: int) -> None:
        has = [{"topic_id": TOPIC_ID, "partition": 0}] if step.value else []
        about = {"member_id": f"id-{step.who}", "epoch": self._place + 1, "entries": has, "pending": []}
        self.log(step, "member_assignment", at_ns, source_wall_ns=WALL_NS + at_ns, **about)

    def _start(self, step: StoryStep, at_ns: int) -> None:
        self.request(step, "OFFSET_FETCH", at_ns, entries=[_position(step.value) | {"error": 0}], error=0)

    def _fetch(self, step: StoryStep, at_ns: int) -> None:
        entry = {"topic": TOPIC, "partition": 0, "offset": step.value, "size_bytes": 99, "error": 0}
        self.request(step, "FETCH", at_ns + 2 * TAKES_NS, entries=[entry], error=0)

    def _tell(self, step: StoryStep, at_ns: int) -> None:
        self.request(step, "HEARTBEAT", at_ns, epoch=1, error=UNKNOWN_MEMBER_ID)
        self._connections[step.who] += not step.value  # what it was never answered ended with the connection

    def _cut(self, step: StoryStep, at_ns: int) -> None:
        self._faults += 1
        about = {"fault_no": self._faults, "fault": "half-open", "target": f"role: {step.who}", "member": step.who}
        self.put("nemesis", "injected", at_ns, consequences=["cuts-off", "loses-answers"], **about)

    def _heal(self, step: StoryStep, at_ns: int) -> None:
        self.put("nemesis", "healed", at_ns, fault_no=self._faults)

    def _kill(self, step: StoryStep, at_ns: int) -> None:
        self._faults += 1
        about = {"fault_no": self._faults, "fault": "kill", "target": f"role: {step.who}", "member": step.who}
        self.put("nemesis", "injected", at_ns, consequences=["kills", "loses-answers"], **about)
        self._gone(step, at_ns, signal=9, asked="kill")

    def _exit(self, step: StoryStep, at_ns: int) -> None:
        self._gone(step, at_ns, code=0, asked="stop")

    def _gone(self, step: StoryStep, at_ns: int, **how: Any) -> None:
        self.read(f"consumer-{step.who}-0", "exited", at_ns, step.late_ms, member=step.who, incarnation=0, **how)

    def _stall(self, step: StoryStep, at_ns: int) -> None:
        self.put("run", "scheduling_delay", at_ns, delay_ns=step.value * MS, every_ns=0)

    def open_frame(self) -> None:
        """Adds what stands before the first step: names, the clock, the topic, and that each member joined."""
        self.put("run", "topic_named", BEGAN_NS, topic=TOPIC)
        self.put("run", "group_named", BEGAN_NS, group=GROUP)
        self.put("run", "clock", BEGAN_NS, wall_ns=WALL_NS + BEGAN_NS)
        self.put("run", "phase", BEGAN_NS, phase="prepare")
        about = {"topic": TOPIC, "topic_id": TOPIC_ID, "partitions": 1, "cleanup_policy": "delete"}
        self.put("observer", "topic", BEGAN_NS, **about)
        for member in self.story.members:
            who = {"member": member, "incarnation": 0}
            self.put(f"consumer-{member}-0", "started", BEGAN_NS + SECOND_NS, pid=1, lane=int(member[1:]), **who)
            self.request(StoryStep("join", member), "JOIN_GROUP", BEGAN_NS + 2 * SECOND_NS, epoch=1, error=0)

    def close_frame(self, at_ns: int) -> None:
        """Adds what stands behind the last step: the snapshot, the control read, and that all witnesses read on."""
        if self.story.measured:
            self._measure(at_ns)
        self.put("run", "phase", at_ns, phase="snapshot")
        for offset, key in enumerate(self.story.keys):
            place = {"topic": TOPIC, "partition": 0, "offset": offset, "id": f"r{offset}", "key": key}
            self.put("observer", "record", at_ns, source_wall_ns=WALL_NS + BEGAN_NS, **place)
        end = {"topic": TOPIC, "partition": 0, "offset": len(self.story.keys)}
        self.put("observer", "log_end", at_ns, asked_ns=at_ns, **end)
        self.put("observer", "control_read", at_ns, topic=TOPIC, state="complete", count=len(self.story.keys))
        for witness in (LOG, REQUESTS, "observer"):
            self.put(witness, "witness", at_ns + SECOND_NS, state="complete")
        self.put("run", "end", at_ns + SECOND_NS, outcome="ok")

    def _measure(self, until_ns: int) -> None:
        for member in self.story.members:
            for time_ns in range(BEGAN_NS + SECOND_NS, until_ns, SECOND_NS):
                about = {"reader": f"consumer-{member}-0", "delay_ns": MEASURED_MS * MS}
                self.put("run", "reading_delay", time_ns, **about)
        run = sorted((event for event in self.events if event.source == "run"), key=lambda event: event.time_ns)
        others = [event for event in self.events if event.source != "run"]
        self._seqs["run"] = -1
        self.events = others
        for event in run:
            self.put("run", event.kind, event.time_ns, **{**_core(event), **event.details})


def _core(event: Event) -> dict[str, Any]:
    return {name: value for name in CORE_FIELDS if (value := getattr(event, name)) is not None}


def _position(value: int) -> dict[str, Any]:
    return {"topic": TOPIC, "partition": 0, "committed_offset": value}
