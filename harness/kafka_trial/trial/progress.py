"""How far a trial has come, seen live from the history: what steady and drain wait for.

The judge never uses this; it only decides how long a trial goes on. Positions come from the offsets log, handled
records from the consumers' own lines and from the sink. `FreshRecords` tells whether every partition got records since
the group under trial last changed; `MovementWatch`, how long partitions paused so far, and what is in hand (the judge
finds the same in the whole history: `model/movements.py` says what counts). What the bounds of its convergence follow
from is in `group_watch.py`.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafka_trial.history.event import Event, Slice
from kafka_trial.history.store import HistoryTail, RunFolder
from kafka_trial.model.group_timeouts import TIMES_FURTHER, Movements
from kafka_trial.model.liveness_bounds import FRESH_MIN

NEVER = 2**63 - 1
RecordPlace = tuple[str, int, int]  # topic, partition, offset
Commit = tuple[int, Slice, int, int]  # when written, where, position, place in the offsets log
SECOND_NS = 1_000_000_000
READ_LATE_NS_MAX = 60 * SECOND_NS  # whoever reads a log is not further behind; what seems to be is of another clock


@dataclass
class Progress:
    """Committed positions and handled records by partition of `topics`, fed from a run folder's history."""

    folder: RunFolder
    topics: Sequence[str]
    group: str
    by_sends: bool = False  # the log holds what no committed reader finds: what was acknowledged is all there is
    by_effects: bool = False  # what members say they did is no output yet: only effects count as handled
    witnessed: Path | None = None  # where the witnesses of the cluster write; None: where all others do
    no_effect: tuple[str, ...] = ()  # outcomes after which there will be none: then these count too
    committed: dict[Slice, int] = field(default_factory=dict)
    handled: dict[Slice, set[int]] = field(default_factory=lambda: defaultdict(set))
    effects: set[str] = field(default_factory=set)
    acknowledged: dict[Slice, set[int]] = field(default_factory=lambda: defaultdict(set))
    acknowledged_ids: set[str] = field(default_factory=set)
    ids: dict[RecordPlace, str] = field(default_factory=dict)
    places: dict[str, RecordPlace] = field(default_factory=dict)
    without_effect: set[RecordPlace] = field(default_factory=set)
    handled_ns: dict[RecordPlace, int] = field(default_factory=dict)
    effect_ns: dict[str, int] = field(default_factory=dict)
    commits: list[tuple[int, Slice, int]] = field(default_factory=list)  # when written, where, position
    log_starts: list[tuple[int, Slice, int]] = field(default_factory=list)  # when seen, where, position
    started_ns: dict[str, int] = field(default_factory=dict)  # of each member that runs: its process
    handed_on: list[tuple[int, Slice, int]] = field(default_factory=list)  # when read, where, the position after it
    commits_through: list[tuple[int, Slice, int]] = field(default_factory=list)
    intermediate: set[str] = field(default_factory=set)  # the topics that the group commits on
    pending: dict[int, list[Commit]] = field(default_factory=lambda: defaultdict(list))  # of open transactions
    log_offsets: dict[Slice, int] = field(default_factory=dict)  # of the commits that stand

    def __post_init__(self) -> None:
        history = self.folder.history
        self.moves = MovementWatch(self.topics)
        sends = ("workload.jsonl",) if self.by_sends or self.by_effects else ()
        self._followers = [
            HistoryTail(self.witnessed or history, "observer.jsonl", "offsets.jsonl", "through.jsonl"),
            HistoryTail(history, "consumer-*.jsonl", "sink.jsonl", *sends),
        ]

    def update(self) -> Progress:
        """Reads what was appended since the last look."""
        for follower in self._followers:
            for event in follower.new_events():
                if not (event.kind == "effect" and event.outcome == "fail"):  # refused: it is as if it had never been
                    self._take(event)
                    self.moves.take(event)
        self.moves.settle(self.places)
        return self

    def anew(self) -> Progress:
        """Returns the progress of the same group, to be read from the beginning: a thread of its own may ask it."""
        return Progress(
            *(self.folder, self.topics, self.group),
            by_sends=self.by_sends,
            by_effects=self.by_effects,
            witnessed=self.witnessed,
            no_effect=self.no_effect,
        )

    def ends(self, log_ends: Mapping[Slice, int]) -> Mapping[Slice, int]:
        """Returns the position after the last record of each partition that there is to read."""
        if not self.by_sends:
            return log_ends
        last = {place: max(self.acknowledged[place], default=-1) for place in log_ends}
        return {place: min(end, last[place] + 1) for place, end in log_ends.items()}

    def expired(self) -> Mapping[Slice, int]:
        """Returns below which position of each partition records are gone for good, and nobody can have any in hand:
        retention had taken them before any of the processes that run was started.

        What expires while a member runs may be in its hands: that is waited for.
        """
        first_ns = min(self.started_ns.values(), default=NEVER)
        gone: dict[Slice, int] = defaultdict(int)
        for seen_ns, place, position in self.log_starts:
            if seen_ns < first_ns:
                gone[place] = max(gone[place], position)
        return gone

    def records(self, ends: Mapping[Slice, int]) -> int:
        """Returns how many records there are below `ends`, without those that expired before anybody handled them."""
        records, expired = len(self.acknowledged_ids) if self.by_sends else sum(ends.values()), self.expired()
        if not any(expired.values()):
            return records
        done = self.handled_offsets()
        return records - sum(len(self._offsets(place, 0, expired[place]) - done[place]) for place in ends)

    def lag(self, ends: Mapping[Slice, int]) -> int:
        """Returns how many positions the commits are behind `ends` (position after the last record), all partitions;
        those of the topics that the group hands records on through besides."""
        expired = self.expired()
        behind = sum(max(0, end - self._covered(place, expired)) for place, end in ends.items())
        return behind + self.lag_through()

    def _covered(self, place: Slice, expired: Mapping[Slice, int]) -> int:
        """Returns up to where a partition is committed, or gone."""
        return max(self.committed.get(place, 0), expired[place])

    def lag_through(self) -> int:
        """Returns how many positions the commits are behind the records that were handed on, in all their topics."""
        return sum(self.behind_through().values())

    def behind_through(self, at_ns: int = NEVER) -> dict[Slice, int]:
        """Returns how many positions the commits were behind the records that had been handed on by then."""
        committed = {place: position for told_ns, place, position in self.commits_through if told_ns <= at_ns}
        ends: dict[Slice, int] = {}
        for told_ns, place, end in self.handed_on:  # of transactions in the order in which they ended
            if told_ns <= at_ns and place[0] in self.intermediate:
                ends[place] = max(end, ends.get(place, 0))
        return {place: max(0, end - committed.get(place, 0)) for place, end in ends.items()}

    def undone(self, ends: Mapping[Slice, int]) -> Mapping[Slice, int]:
        """Returns how many offsets below `ends` are neither handled nor committed past, whichever are fewer, by
        partition; and how many records that were handed on are not committed past."""
        expired = self.expired()
        left = self.behind_through()
        for place, end in ends.items():
            behind = max(0, end - self._covered(place, expired))
            left[place] = min(behind, end - len(self.handled[place]))
        return left

    def backlog(
        self, ends: Mapping[Slice, int], *, at_ns: int = NEVER, by_commits: bool = True, by_handled: bool = True
    ) -> Mapping[Slice, int]:
        """Returns how many records below `ends` were left at an instant, by partition, as the bound of the drain counts
        them.

        Of each partition those that were not committed past, or not handled, whichever are more. One of both may tell
        nothing: where progress is not in Kafka, or nobody sees what is handled. What was read later of the time before
        counts too.
        """
        done, expired = self.handled_offsets(at_ns), self.expired()
        left = self.behind_through(at_ns) if by_commits else {}
        committed = {place: position for written_ns, place, position in self.commits if written_ns <= at_ns}
        for place, end in ends.items():
            first = expired[place]
            uncommitted = max(0, end - max(first, committed.get(place, 0))) if by_commits else 0
            unhandled = len(self._offsets(place, first, end) - done[place]) if by_handled else 0
            left[place] = max(uncommitted, unhandled)
        return left

    def is_left(self, ends: Mapping[Slice, int]) -> bool:
        """Whether any record below `ends` is neither handled nor committed past, there or where it was handed on."""
        done, expired = self.handled_offsets(), self.expired()
        return self.lag_through() > 0 or any(
            self._offsets(place, self._covered(place, expired), end) - done[place] for place, end in ends.items()
        )

    def handled_offsets(self, at_ns: int = NEVER) -> Mapping[Slice, set[int]]:
        """Returns the offsets that had been handled by then, by partition."""
        known = self.without_effect if self.by_effects else self.handled_ns.keys()
        places = [place for place in known if self.handled_ns[place] <= at_ns]
        if self.by_effects:
            ids = (id_ for id_, effect_ns in self.effect_ns.items() if effect_ns <= at_ns and id_ in self.places)
            places += [self.places[id_] for id_ in ids]
        found: dict[Slice, set[int]] = defaultdict(set)
        for topic, partition, offset in places:
            found[topic, partition].add(offset)
        return found

    def _offsets(self, place: Slice, first: int, end: int) -> set[int]:
        """Returns the offsets of records from `first` to below `end`."""
        if self.by_sends:
            return {offset for offset in self.acknowledged[place] if first <= offset < end}
        return set(range(first, end))

    def committed_by_partition(self, topic: str) -> dict[int, int]:
        """Returns the committed positions of one topic."""
        return {partition: position for (name, partition), position in self.committed.items() if name == topic}

    def handled_total(self) -> int:
        """Returns how many distinct records have been handled, by lines or by effects, whichever saw more.

        What was taken back is none of them, though there are readers that handle it.
        """
        handled: Mapping[Slice, set[int]] = self.handled
        effects = self.effects | {self.ids[place] for place in self.without_effect & self.ids.keys()}
        if self.by_sends:
            handled = {place: offsets & self.acknowledged[place] for place, offsets in handled.items()}
            effects = effects & self.acknowledged_ids
        return len(effects) if self.by_effects else max(sum(map(len, handled.values())), len(effects))

    def _take(self, event: Event) -> None:
        if event.kind == "effect" and event.id is not None:
            self.effects.add(event.id)
            self.effect_ns[event.id] = min(written_ns(event), self.effect_ns.get(event.id, NEVER))
        if event.kind == "transaction_marker":
            ended = self.pending.pop(event.details["producer_id"], [])
            for commit in ended if event.details["state"] == "commit" else ():
                self._put_in_effect(commit)
        if event.kind == "started" and event.member is not None:
            self.started_ns[event.member] = event.time_ns
        elif event.kind == "exited" and event.member is not None:
            self.started_ns.pop(event.member, None)
        if event.kind == "through":
            self.intermediate.add(str(event.topic))
        if event.topic is None or event.partition is None:
            return
        place = event.topic, event.partition
        if event.kind == "committed":
            self._take_commit(event, place)
        elif event.topic in self.topics:
            self._take_of_topics(event, place)
        elif event.kind == "handed_on" and event.offset is not None:
            self.handed_on.append((event.time_ns, place, event.offset + 1))

    def _take_of_topics(self, event: Event, place: Slice) -> None:
        if event.kind == "send" and event.outcome == "ok":
            self._take_acknowledged(event.id, place, event.offset)
        elif event.offset is None:
            return
        elif event.kind == "log_start":
            self.log_starts.append((event.time_ns, place, event.offset))
        elif event.kind == "processed":
            record = *place, event.offset
            self.handled[place].add(event.offset)
            self.handled_ns[record] = min(event.time_ns, self.handled_ns.get(record, NEVER))
            if self.by_effects and event.outcome in self.no_effect:
                self.without_effect.add(record)

    def _take_commit(self, event: Event, place: Slice) -> None:
        """Takes a commit. One in a transaction is pending until that has ended (KIP-98)."""
        if event.committed_offset is None:
            return
        producer = event.details.get("producer_id")
        commit = written_ns(event), place, event.committed_offset, event.details.get("log_offset", 0)
        if producer is None:
            self._put_in_effect(commit)
        else:
            self.pending[producer].append(commit)

    def _put_in_effect(self, commit: Commit) -> None:
        """One stands that lies behind all others of its partition in the offsets log, as coordinators have it."""
        at_ns, place, position, log_offset = commit
        if log_offset < self.log_offsets.get(place, 0):
            return
        self.log_offsets[place] = log_offset
        if place[0] in self.topics:
            self.committed[place] = position
            self.commits.append((at_ns, place, position))
        else:
            self.commits_through.append((at_ns, place, position))

    def _take_acknowledged(self, name: str | None, place: Slice, offset: int | None) -> None:
        if name is not None:
            self.acknowledged_ids.add(name)
        if offset is not None:
            self.acknowledged[place].add(offset)
        if name is not None and offset is not None:
            self.ids[*place, offset] = name
            self.places[name] = *place, offset


STILL_S = 5.0  # at rest, and without a record anywhere: the load has come to its own end
LONG_S = 10.0


@dataclass
class FreshRecords:
    """Where the partitions ended when the group had just come to rest, and whether anything is being written at all."""

    base: Mapping[Slice, int] | None = None
    changes: int | None = None
    began_s: float = field(default_factory=time.monotonic)
    moved_s: float = field(default_factory=time.monotonic)
    _total: int = -1

    def look(self, ends: Mapping[Slice, int], changes: int | None) -> bool:
        """Returns whether every partition got enough; `changes`: how often the group has changed, None while it is not
        at rest."""
        if sum(ends.values()) != self._total or changes is None:
            self._total, self.moved_s = sum(ends.values()), time.monotonic()
        if changes is None or changes != self.changes or self.base is None:
            self.base, self.changes = (None if changes is None else dict(ends)), changes
            return False
        return all(end - self.base.get(place, 0) >= FRESH_MIN for place, end in ends.items())

    def waits_long(self) -> bool:
        """Tells whether the group has been waited for so long that the load may be held."""
        return time.monotonic() - self.began_s > LONG_S

    def given_up(self) -> str | None:
        """Returns why nothing more will come; None while something does."""
        return "the load has ended" if time.monotonic() - self.moved_s > STILL_S else None


@dataclass
class DrainWatch:
    """Since when a draining group has been as far behind as it is.

    Records that were committed past and not handled were skipped, for all that is known, once none has come for
    `stalled_s`: no bound of the judge's counts with them (`model/summaries.py`). None: positions cannot be seen.
    """

    settle_s: float
    stalled_s: float | None
    _behind: tuple[int, int] | None = None
    _since_s: float = 0.0

    def over(self, lag: int, unhandled: int, *, now_s: float) -> bool:
        """Tells whether all was committed for long enough, and all was handled, or nothing more will be."""
        if (lag, unhandled) != self._behind:
            self._behind, self._since_s = (lag, unhandled), now_s
        enough_s = self.stalled_s if unhandled else self.settle_s
        return not lag and enough_s is not None and now_s - self._since_s >= enough_s


@dataclass
class MovementWatch:
    """What moved on the partitions of some topics, and, by commits alone, on those of their intermediate topics."""

    topics: Sequence[str]
    progressed_ns: int = 0  # when any of them got further last
    _gap_ns: int | None = None
    _moved_ns: dict[Slice, int] = field(default_factory=dict)
    _peaks: dict[Slice, int] = field(default_factory=dict)
    _intermediate: set[str] = field(default_factory=set)
    _commits: list[tuple[Slice, int, int]] = field(default_factory=list)  # where, the offset, when
    _epochs: Counter[tuple[str, Slice]] = field(default_factory=Counter)
    _given: Counter[tuple[str, int, RecordPlace]] = field(default_factory=Counter)
    _times: Counter[tuple[str, RecordPlace]] = field(default_factory=Counter)
    _in_hand: dict[RecordPlace, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    _unplaced: list[Event] = field(default_factory=list)
    _new: list[tuple[int, Slice]] = field(default_factory=list)  # when, where

    def take(self, event: Event) -> None:
        """Takes one event into account; `settle` is called after the last of those that were read together."""
        if event.kind == "effect":
            self._unplaced.append(event)
        elif event.kind in ("assigned", "revoked", "lost", "stopped", "exited"):
            self._take_callback(event)
        elif event.kind == "through":
            self._intermediate.add(str(event.topic))
        elif event.topic is None or event.partition is None:
            return
        elif event.kind == "committed" and event.committed_offset is not None:
            self._commits.append(((event.topic, event.partition), event.committed_offset, written_ns(event)))
        elif event.kind in ("delivered", "processed") and event.topic in self.topics and event.offset is not None:
            self._take_work(event, (event.topic, event.partition, event.offset))

    def settle(self, places: Mapping[str, RecordPlace]) -> None:
        """Counts what was read since the last time, in its order; `places` are those of the ids that effects bear."""
        waiting, self._unplaced = self._unplaced, []
        for event in waiting:
            if (place := places.get(str(event.id))) is not None:
                self._take_effect(event, place)
            else:
                self._unplaced.append(event)  # its send was not read yet, or it is of no record
        commits, self._commits = self._commits, []
        for where, committed_offset, time_ns in commits:
            if where[0] in self.topics or where[0] in self._intermediate:
                self._take_commit(where, committed_offset, time_ns)
            else:
                self._commits.append((where, committed_offset, time_ns))  # no record of that topic was read yet
        for time_ns, where in sorted(self._new):
            before_ns = self._moved_ns.get(where, time_ns)
            self._gap_ns = max(self._gap_ns or 0, time_ns - before_ns)
            self._moved_ns[where] = max(before_ns, time_ns)
        self._new.clear()

    @property
    def movements(self) -> Movements:
        """What partitions have shown of their pauses."""
        return Movements(None if self._gap_ns is None else self._gap_ns / SECOND_NS)

    def in_hand_since_ns(self) -> int | None:
        """Returns when the latest record that some member has in hand was delivered to it; None where none is."""
        few = (held for place, held in self._in_hand.items() if self._times["delivered", place] <= TIMES_FURTHER)
        return max((at_ns for held in few for at_ns in held.values()), default=None)

    def _take_callback(self, event: Event) -> None:
        """Who gets partitions begins anew with them; who loses some, or ends, has nothing of them in hand."""
        entries = event.details.get("entries", ())
        named = {(entry.get("topic", self.topics[0]), entry.get("partition")) for entry in entries}
        if event.kind == "assigned":
            self._epochs.update((event.source, where) for where in named)
            return
        for place, held in self._in_hand.items():
            if event.kind in ("stopped", "exited") or place[:2] in named:
                held.pop(event.source, None)

    def _take_commit(self, where: Slice, committed_offset: int, time_ns: int) -> None:
        if committed_offset > self._peaks.get(where, -1):
            self._peaks[where] = committed_offset
            self._new.append((time_ns, where))
            self.progressed_ns = max(self.progressed_ns, time_ns)

    def _take_work(self, event: Event, place: RecordPlace) -> None:
        if event.kind == "delivered":
            given = event.source, self._epochs[event.source, place[:2]], place
            self._given[given] += 1
            self._in_hand[place][event.source] = event.time_ns
            if self._given[given] > TIMES_FURTHER:
                self._count(event.kind, place, event.time_ns)
                return
        else:
            self._put_down(place, event.source)
            if event.outcome == "failed":  # it will be tried again
                return
        self._move(place[:2], event.time_ns)
        self._count(event.kind, place, event.time_ns)

    def _take_effect(self, event: Event, place: RecordPlace) -> None:
        held = self._in_hand.get(place, {})
        time_ns = written_ns(event)
        for source in [source for source, since_ns in held.items() if since_ns <= time_ns]:
            self._put_down(place, source)
        self._move(place[:2], time_ns)
        self._count("effect", place, time_ns)

    def _put_down(self, place: RecordPlace, source: str) -> None:
        held = self._in_hand.get(place)
        if held is not None:
            held.pop(source, None)
            if not held:
                del self._in_hand[place]

    def _count(self, kind: str, place: RecordPlace, time_ns: int) -> None:
        self._times[kind, place] += 1
        if self._times[kind, place] <= TIMES_FURTHER:
            self.progressed_ns = max(self.progressed_ns, time_ns)

    def _move(self, where: Slice, time_ns: int) -> None:
        self._new.append((time_ns, where))


def written_ns(event: Event) -> int:
    """Returns when what a witness read had been written, by the broker's clock where it says so: a witness may read it
    seconds later, on a busy machine."""
    taken_ms = event.details.get("commit_time_ms")  # the coordinator took it then, and wrote it later
    wall_ns = event.source_wall_ns if taken_ms is None else int(taken_ms) * 1_000_000
    if wall_ns is None:
        return event.time_ns
    at_ns = wall_ns + time.monotonic_ns() - time.time_ns()
    return at_ns if 0 <= event.time_ns - at_ns <= READ_LATE_NS_MAX else event.time_ns
