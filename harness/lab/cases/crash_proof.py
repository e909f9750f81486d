"""Was the member killed exactly there? What stood at the kill, by the sink, the offsets log and its own last lines.

Pure: the events of a history go in. Of the partitions that the killed member had, it is looked up which records had an
effect without being committed past, and which were committed past without an effect. Where the position lies in a
table, the successor tells what stood there: it reads on from that position. What lay in the logs, uncommitted, of a
transaction of Kafka tells the abort by which the successor was let in: where nothing lay, it has written no marker. For
a second after the kill nobody else can have the partitions: what is seen in it was done before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from signal import SIGKILL

from kafka_trial.history.event import Event
from lab.cases.crash_matrix import (
    AFTER_COMMIT,
    AFTER_EFFECT,
    BEFORE_COMMIT,
    BEFORE_PROCESSING,
    FROZEN,
    LOGS_TELL,
    Place,
)

SEEN_WITHIN_NS = 1_000_000_000  # what was done before the kill is written down by then; others are not there yet
Partition = int
Position = tuple[Partition, int]


@dataclass(frozen=True)
class Proof:
    """What stood at the kill, counted in records, and the point that this is; `point` is empty where it is none.

    `open_commit`: whether the last commit that the member asked for and never heard of was in effect: "yes", "no", or
    empty where there was none, or nobody told. `of_one_key`: of the effects without a commit those whose key another of
    them has too. `rule`: of which version of this module it is.
    """

    point: str
    because: str
    killed: str = ""
    effects_without_commit: int = 0
    commits_without_effect: int = 0
    open_commit: str = ""
    of_one_key: int = 0
    rule: int = 1


@dataclass(frozen=True)
class LeftOpen:
    """What a killed process's transaction of Kafka had in the logs: records in so many partitions of topics, and these
    positions in the offsets log. Empty where there was no such transaction.
    """

    outputs: int = 0
    positions: Mapping[Partition, int] = field(default_factory=dict)


def prove(events: Iterable[Event], place: Place) -> Proof:
    """Returns what stood at the kill that a trial was about, and which of the place's points that is."""
    return replace(_proven(_History(list(events)), place), rule=LOGS_TELL)


def _proven(history: _History, place: Place) -> Proof:
    fault = next((event for event in history.of("evidence", "nemesis")), None)
    if fault is None or not fault.details.get("bit"):
        return Proof("", fault.details.get("message", "") if fault else "the fault was never played")
    if place.points == (FROZEN,):
        return _frozen(history, str(fault.member))
    victim = history.killed()
    if victim is None:
        return Proof("", "nobody ended by signal 9")
    return _judged(history, victim, place)


def effects_left(events: Iterable[Event]) -> tuple[int, int]:
    """Returns how many acknowledged records have no effect in the end, and how many have several; by the raw events."""
    history = _History(list(events))
    times = Counter(event.id for event in history.effects())
    places = history.places()
    return sum(record not in times for record in places), sum(times[record] > 1 for record in places)


class _History:
    """The events of a trial by kind, and what follows from them at an instant."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._by_kind: dict[str, list[Event]] = {}
        for event in events:
            self._by_kind.setdefault(event.kind, []).append(event)

    def of(self, kind: str, source: str = "") -> list[Event]:
        """Returns the events of a kind, of sources that begin with this word."""
        return [event for event in self._by_kind.get(kind, []) if event.source.startswith(source)]

    def killed(self) -> Event | None:
        """Returns the end of the first process that was killed."""
        ends = [event for event in self.of("exited") if event.details.get("signal") == SIGKILL]
        return min(ends, key=lambda event: event.time_ns, default=None)

    def effects(self) -> list[Event]:
        return [event for event in self.of("effect", "sink") if event.outcome == "ok"]

    def sent(self) -> list[Event]:
        return [event for event in self.of("send", "workload") if event.outcome == "ok"]

    def places(self) -> dict[str, Position]:
        """Returns where each acknowledged record lies, by its id."""
        sent = self.sent()
        return {event.id: (event.partition, event.offset) for event in sent if event.id is not None}  # type: ignore[misc]

    def owned(self, source: str) -> set[Partition]:
        """Returns the partitions that a process had at its end, by its own lines."""
        owned: set[Partition] = set()
        lines = (event for kind in ("assigned", "revoked", "lost") for event in self.of(kind, source))
        for event in sorted(lines, key=lambda event: event.seq):
            named = {entry["partition"] for entry in event.details.get("entries", ())}
            owned = owned | named if event.kind == "assigned" else owned - named
        return owned

    def committed(self, until_ns: int) -> dict[Partition, int]:
        """Returns the committed position of each partition, as of an instant; of transactions those that were ended."""
        return self._offsets(until_ns)[0]

    def _offsets(self, until_ns: int) -> tuple[dict[Partition, int], dict[int, dict[Partition, int]]]:
        """Returns what the offsets log had at an instant: the committed positions, and those of each open producer."""
        positions: dict[Partition, int] = {}
        pending: dict[int, dict[Partition, int]] = {}
        lines = [*self.of("committed", "offsets"), *self.of("transaction_marker", "offsets")]
        for event in sorted(lines, key=lambda event: event.seq):
            if event.time_ns > until_ns:
                break
            producer = event.details.get("producer_id")
            if event.kind == "committed":
                into = positions if producer is None else pending.setdefault(producer, {})
                into[event.partition] = event.committed_offset  # type: ignore[index,assignment]
            elif producer is not None:
                ended = pending.pop(producer, {})
                positions |= ended if event.details.get("state") == "commit" else {}
        return positions, pending

    def left_open(self, victim: Event, until_ns: int) -> LeftOpen:
        """Returns what lay in the logs of the transaction that a killed process had open.

        Its successor has the same transactional id: before it is let in, the coordinator aborts what was open, with an
        epoch higher than the killed one's (Kafka, KIP-98: InitPidRequest).
        """
        own, successor = self._producers(victim)
        if own is None or successor is None:
            return LeftOpen()
        fencing = [event for event in self.of("transaction_marker") if _fences(event, own, successor)]
        outputs = {(event.topic, event.partition) for event in fencing if event.source == "transactions"}
        taken_back = any(event.source == "offsets" for event in fencing)
        pending = self._offsets(until_ns)[1].get(own.details["producer_id"], {})
        return LeftOpen(len(outputs), pending if taken_back else {})

    def _producers(self, victim: Event) -> tuple[Event | None, Event | None]:
        """Returns the answers by which the transactional producers of a killed process and of its successor began."""
        lanes = {event.details.get("lane") for event in self.of("started", victim.source)}
        begun = [
            event
            for event in sorted(self.of("request", "requests"), key=lambda event: event.time_ns)
            if event.details["api"] == "INIT_PRODUCER_ID"
            and event.details.get("lane") in lanes
            and event.details.get("error") == 0
        ]
        before = [event for event in begun if event.time_ns <= victim.time_ns]
        after = [event for event in begun if event.time_ns > victim.time_ns]
        return (before[-1] if before else None), (after[0] if after else None)

    def read_on(self, victim: Event, until_ns: int) -> dict[Partition, int]:
        """Returns where reading went on in each partition after a kill: what others were handed first."""
        handed = (event for event in self.of("delivered") if event.source != victim.source and event.time_ns > until_ns)
        positions: dict[Partition, int] = {}
        for event in sorted(handed, key=lambda event: event.time_ns):
            positions.setdefault(event.partition, event.offset)  # type: ignore[arg-type]
        return positions

    def open_commit(self, source: str) -> Mapping[Partition, int]:
        """Returns the positions that a process had asked to commit, and of which it never heard."""
        lines = sorted(self.of("commit", source), key=lambda event: event.seq)
        if not lines or lines[-1].outcome != "invoke":
            return {}
        return {entry["partition"]: entry["committed_offset"] for entry in lines[-1].details["entries"]}

    def last_delivered(self, source: str) -> Position | None:
        """Returns the record that a process had begun and not finished, by its own lines."""
        lines = [*self.of("delivered", source), *self.of("processed", source)]
        last = max(lines, key=lambda event: event.seq, default=None)
        return None if last is None or last.kind == "processed" else (last.partition, last.offset)  # type: ignore[return-value]


def _frozen(history: _History, member: str) -> Proof:
    """Returns whether a paused member had begun a record, by its lines, that others were handed before it woke."""
    (began_ns, woke_ns) = (history.of(kind, "nemesis")[0].time_ns for kind in ("injected", "healing"))
    own = f"consumer-{member}-"
    told = [event for kind in ("delivered", "processed") for event in history.of(kind) if event.time_ns < woke_ns]
    ours = [event for event in told if event.source.startswith(own)]
    others = [event for event in told if not event.source.startswith(own) and event.time_ns > began_ns]
    in_hand = _records(ours, "delivered") - _records(ours, "processed")
    count = len(in_hand & _records(others, "delivered"))
    if not count:
        return Proof("", "others were handed nothing that it had in hand when it was frozen")
    return Proof(FROZEN, f"{count} records were in its hand, and were handed to others before it woke", member)


def _records(events: Iterable[Event], kind: str) -> set[tuple[int | None, int | None]]:
    return {(event.partition, event.offset) for event in events if event.kind == kind}


def _fences(marker: Event, own: Event, successor: Event) -> bool:
    """Tells whether a marker aborts what a producer had open, for the sake of the one that came after it."""
    told = marker.details
    return (
        (told.get("producer_id"), told.get("state")) == (own.details["producer_id"], "abort")
        and told.get("producer_epoch", -1) > own.details["producer_epoch"]
        and (marker.source_wall_ns or 0) <= (successor.source_wall_ns or 0)
    )


@dataclass(frozen=True)
class _AtKill:
    """What is known of the killed member's partitions as of its death; positions by partition."""

    positions: Mapping[Partition, int]
    open_commit: Mapping[Partition, int]
    left_open: LeftOpen
    waiting: int  # records without effect and commit

    @property
    def in_words(self) -> str:
        there = all(self.positions.get(partition, 0) >= position for partition, position in self.open_commit.items())
        return "" if not self.open_commit else "yes" if there else "no"


def _judged(history: _History, victim: Event, place: Place) -> Proof:
    until_ns = victim.time_ns + SEEN_WITHIN_NS
    asked = place.fault == "crash-point"
    owned = history.owned(victim.source)
    positions = history.read_on(victim, until_ns) if asked else history.committed(until_ns)
    if asked and (missing := owned - positions.keys()):
        return Proof("", f"nobody read on in partitions {sorted(missing)}, so that their position is not known")
    places = history.places()
    done = {places[event.id] for event in history.effects() if event.time_ns <= until_ns and event.id in places}
    sent = {(event.partition, event.offset): event for event in history.sent() if event.partition in owned}
    past = {at for at in sent if at[1] < positions.get(at[0], 0)}  # type: ignore[operator]
    left = (done & sent.keys()) - past
    waiting = [at for at, event in sent.items() if at not in done | past and event.time_ns <= until_ns]
    keys = Counter(sent[at].key for at in left)
    at_kill = _AtKill(positions, history.open_commit(victim.source), history.left_open(victim, until_ns), len(waiting))
    proof = Proof(
        *("", "", victim.source.removeprefix("consumer-"), len(left), len(past - done), at_kill.in_words),
        of_one_key=sum(count for count in keys.values() if count > 1),
    )
    began = history.last_delivered(victim.source) if asked else None
    point, because = _at_crash_point(place, proof, began, positions) if asked else _at_cut(place, proof, at_kill)
    return replace(proof, point=point, because=because)


def _at_crash_point(
    place: Place, proof: Proof, began: Position | None, positions: Mapping[Partition, int]
) -> tuple[str, str]:
    """At a crash point the place is known by the question; outside the transaction neither half may be seen."""
    if proof.effects_without_commit or proof.commits_without_effect:
        return "", "one half of the transaction was seen without the other"
    if began is None or positions.get(began[0]) != began[1]:
        return "", f"the record in hand ({began}) was not the next one by the table"
    return place.points[0], "asked there with the record in hand; neither its effect nor its position was in the table"


def _at_cut(place: Place, proof: Proof, at_kill: _AtKill) -> tuple[str, str]:
    left, lost, told = proof.effects_without_commit, proof.commits_without_effect, proof.open_commit
    if left and lost:
        return "", "some records had an effect and no commit, others a commit and no effect"
    if place.inside and (left or lost):
        return "", "one half of the transaction was seen without the other"
    if lost:
        return _if_in(place, AFTER_COMMIT, f"{lost} records were committed past, and had no effect")
    if left:
        return _with_effects(place, proof)
    if told == "yes":
        return "", "both the effects and their commit were there"
    if place.inside:
        return _in_transaction(place, at_kill)
    if place.points == (BEFORE_PROCESSING,):
        return _in_hand(at_kill)
    if told == "no":
        because = "a commit had been asked for; neither it nor an effect of what it covers was there"
        return _if_in(place, BEFORE_COMMIT, because)
    return "", "nothing was open"


def _with_effects(place: Place, proof: Proof) -> tuple[str, str]:
    because = f"{proof.effects_without_commit} records had their effect, and were not committed past"
    if not place.of_one_key or AFTER_EFFECT not in place.points:
        return _if_in(place, AFTER_EFFECT, because)
    if not proof.of_one_key:
        return "", f"{because}, but no two of one key"
    return AFTER_EFFECT, f"{because}; {proof.of_one_key} of them share their key with another"


def _in_hand(at_kill: _AtKill) -> tuple[str, str]:
    """Records had arrived, by the cut: nothing may have been begun with them."""
    if at_kill.left_open.outputs or at_kill.left_open.positions:
        return "", "something of an open transaction was in the logs"
    if not at_kill.waiting:
        return "", "no record waited in its partitions"
    waiting = f"{at_kill.waiting} records waited in its partitions"
    return BEFORE_PROCESSING, f"{waiting}; neither an effect nor a commit of what was in hand was there"


def _in_transaction(place: Place, at_kill: _AtKill) -> tuple[str, str]:
    """Inside a transaction of Kafka the effect is a record in a log, and the commit are positions in the offsets log:
    both uncommitted until the coordinator is asked to end it."""
    asked, left = at_kill.open_commit, at_kill.left_open
    if not asked:
        return "", "no positions of an open transaction were to be handed in"
    if not left.outputs:
        return "", "no record of an open transaction was in a log: nothing was taken back from one"
    where = f"uncommitted, records of its transaction in {left.outputs} partitions of the output"
    if not left.positions:
        return _if_in(place, AFTER_EFFECT, f"{where}, its positions nowhere; its successor had it aborted")
    if left.positions != dict(asked):
        return "", f"{where}, but in the offsets log not the positions that it was handing in"
    return _if_in(place, BEFORE_COMMIT, f"{where}, its positions in the offsets log; its successor had both aborted")


def _if_in(place: Place, point: str, because: str) -> tuple[str, str]:
    return (point if point in place.points else ""), because
