"""The textbook: anomalies, each as what Kafka's documentation says, of one world in which everything is exact.

Each function returns the keys of what it finds: a record's offset, a committed position, a place in the offsets log, or
one of these with what it needs beside it. Nothing here knows times, tolerances or faults: only what came before what.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

from lab.worlds.worlds import Instant, World

Keys = set[Hashable]


@dataclass(frozen=True)
class WorldEpoch:
    """One member's ownership epoch: from its `assigned` to what ended it, as places in the order of the world."""

    who: str
    opened: int
    closed: int
    closed_by: str


@dataclass(frozen=True)
class WorldHandler:
    """One time that a record was in a handler. `ended` None: it never ended. `epoch` None: its member had none."""

    who: str
    offset: int
    begun: int
    ended: int | None
    epoch: WorldEpoch | None


class Course:
    """What a world's order shows, as tables: epochs, handlers, commits, who had the partition by the log."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.at = world.instants
        self.records = range(len(world.keys))

    def of(self, *what: str) -> Iterator[tuple[int, Instant]]:
        """Yields the instants of these kinds, each with its place in the order."""
        return ((place, one) for place, one in enumerate(self.at) if one.what in what)

    @cached_property
    def epochs(self) -> list[WorldEpoch]:
        """All ownership epochs, by their beginning."""
        ends = ("assigned", "revoked", "lost", "exit")
        found = []
        for place, one in self.of("assigned"):
            end = next((at for at, other in self.of(*ends) if at > place and other.who == one.who), len(self.at))
            by = self.at[end].what if end < len(self.at) else ""
            found.append(WorldEpoch(one.who, place, end, by))
        return found

    def epoch_at(self, who: str, place: int) -> WorldEpoch | None:
        """The epoch in which a member is at a place of the order."""
        return next((one for one in self.epochs if one.who == who and one.opened < place < one.closed), None)

    @cached_property
    def handlers(self) -> list[WorldHandler]:
        """All handlers, by their beginning."""
        found = []
        for place, one in self.of("begin"):
            later = ((at, other) for at, other in self.of("begin", "end") if at > place and _same(one, other))
            at, other = next(later, (None, None))
            ended = at if other is not None and other.what == "end" else None
            found.append(WorldHandler(one.who, one.value, place, ended, self.epoch_at(one.who, place)))
        return found

    @cached_property
    def ends(self) -> list[tuple[int, WorldHandler]]:
        """Each completion with its handler, in order."""
        return sorted((one.ended, one) for one in self.handlers if one.ended is not None and one.begun < one.ended)

    @cached_property
    def first_ends(self) -> dict[int, tuple[int, WorldHandler]]:
        """The first completion of each record, by offset."""
        found: dict[int, tuple[int, WorldHandler]] = {}
        for place, handler in self.ends:
            found.setdefault(handler.offset, (place, handler))
        return found

    @cached_property
    def commits(self) -> list[tuple[int, Instant]]:
        """The commits that took effect, in the order of the log."""
        return [*self.of("commit")]

    def asked(self, commit: Instant, place: int) -> int:
        """Where a commit was asked for."""
        return next((at for at, one in self.of("ask") if one.pair == commit.rank), place)

    def committed_at(self, place: int) -> int:
        """The position that was committed by then; 0 where none was."""
        return next((one.value for at, one in reversed(self.commits) if at < place), 0)

    def owners(self, place: int) -> set[str]:
        """Who has the partition by the log at a place of the order: a classic group has one owner, until a record gives
        it to another; each member of KIP-848 has a record of its own, and the last one to let go stays the owner."""
        had: set[str] = set()
        for at, one in self.of("give", "hold"):
            if at >= place:
                break
            had = {one.who} if one.what == "give" else self.holding(at) or had
        return had

    def holding(self, place: int) -> set[str]:
        """Whose last record of KIP-848 up to there lists the partition."""
        last = {one.who: one.value for at, one in self.of("hold") if at <= place}
        return {who for who, has in last.items() if has}

    def lost_at(self, epoch: WorldEpoch, place: int) -> int | None:
        """Since when, at a place of the order, others have had the partition that a member still believes to hold;
        None: it has it."""
        given = [(at, one.who) for at, one in self.of("give", "hold") if epoch.opened < at < place and one.value]
        theirs = [at for at, who in given if who != epoch.who and epoch.who not in self.owners(at + 1)]
        return theirs[0] if theirs and epoch.who not in self.owners(place) else None

    def knew(self, handler: WorldHandler, lost: int) -> bool:
        """Whether a member had been told of a loss before it began a record that it fetched only afterwards: the first
        position that it asked for since lies at or below the record."""
        told = next((at for at, one in self.of("told") if one.who == handler.who and at > lost), handler.begun)
        asked = (one.value for at, one in self.of("fetch") if one.who == handler.who and told < at < handler.begun)
        return next(asked, handler.offset + 1) <= handler.offset

    def is_excused(self, handler: WorldHandler, place: int) -> bool:
        """Whether what a member does at a place of the order is the work of a zombie: it had lost the partition before
        its own callback returned, in a handler that began before that; and it had not been told, or had fetched the
        record before. A `lost` callback says that the partition was lost already."""
        epoch = handler.epoch
        lost = self.lost_at(epoch, place) if epoch is not None else None
        if epoch is None or lost is None or self.knew(handler, lost):
            return False
        return lost < epoch.closed or epoch.closed_by == "lost"


def _same(one: Instant, other: Instant) -> bool:
    return (one.who, one.value) == (other.who, other.value)


def skipped(course: Course) -> Keys:
    """A record was committed past, and never handled: it is lost. "At least once: messages are never lost" (Kafka,
    Message Delivery Semantics)."""
    committed = course.committed_at(len(course.at))
    return {offset for offset in course.records if offset < committed and offset not in course.first_ends}


def commit_ahead(course: Course) -> Keys:
    """A position was committed before every record between it and the position before was handled. "The consumer must
    process records before committing" (KafkaConsumer, Manual Offset Control)."""
    found: Keys = set()
    for place, commit in course.commits:
        asked = course.asked(commit, place)
        passed = range(course.committed_at(place), min(commit.value, len(course.records)))
        done = {offset for offset, (at, _) in course.first_ends.items() if at < asked}
        found |= {commit.value} if {*passed} - done else set()
    return found


def commit_regression(course: Course) -> Keys:
    """The committed offset fell, and did harm: it never rose again, another member than the owner made it fall, or a
    member started from below where it had been. "The committed position is the last offset that has been stored
    securely" (KafkaConsumer, Offsets and Consumer Position)."""
    found: Keys = set()
    peak, fallen = 0, False
    for place, commit in course.commits:
        fresh = commit.value < peak and not fallen
        fallen, peak = commit.value < peak, max(peak, commit.value)
        if fresh:
            back = next((at for at, one in course.commits if at > place and one.value >= peak), None)
            until = len(course.at) if back is None else back
            inside = [(at, one) for at, one in course.of("start") if place < at < until and one.value < peak]
            starts = any(one.who in course.owners(at) for at, one in inside)  # who does not have it only looks
            if back is None or commit.who not in course.owners(place) or starts:
                found.add(commit.rank)
    return found


def zombie_commit(course: Course) -> Keys:
    """A member committed for a partition that it did not own, and did harm: the committed offset fell, or a record was
    passed that nobody ever handled. "Only the current owner may commit" is what fencing is for (KIP-62, KIP-848)."""
    found: Keys = set()
    peak = 0
    for place, commit in course.commits:
        owners = course.owners(place)
        passed = {*range(peak, min(commit.value, len(course.records)))}
        harm = commit.value < peak or passed - course.first_ends.keys()
        peak = max(peak, commit.value)
        if owners and commit.who and commit.who not in owners and harm:
            found.add(commit.rank)
    return found


def floor_of(course: Course, epoch: WorldEpoch) -> int:
    """Where an epoch had to begin: at what its member was last answered before it began, if that was for this epoch;
    else at the committed offset. "The consumer starts at the committed position" (KafkaConsumer)."""
    begun = next((one.begun for one in course.handlers if one.epoch == epoch), epoch.closed)
    before = max(
        (one.closed for one in course.epochs if one.who == epoch.who and one.closed <= epoch.opened), default=-1
    )
    answers = [one.value for at, one in course.of("start") if one.who == epoch.who and before < at < begun]
    return max(answers[-1], 0) if answers else course.committed_at(epoch.opened)


def _again(course: Course) -> Iterator[tuple[WorldHandler, bool]]:
    """Yields every further time that a record was begun in an epoch, but for retries, and whether it is below the floor
    of the epoch, where another epoch had begun it: a retry is one in the same epoch, where nothing from the record on
    had been completed. The floor says where an epoch starts; a step back inside it is a `nonmonotonic-poll`."""
    held = [one for one in course.handlers if one.epoch is not None]
    for number, one in enumerate(held):
        before = [other for other in held[:number] if other.offset == one.offset]
        elsewhere = any(other.epoch != one.epoch for other in before)
        same = any(other.epoch == one.epoch for other in before)
        if one.epoch is not None and (not _is_retry(course, one) if same else elsewhere):
            yield one, elsewhere and one.offset < floor_of(course, one.epoch)


def redelivered(course: Course) -> Keys:
    """A record was delivered again, and not below the floor of its ownership epoch. "Messages may be redelivered"
    (Kafka, Message Delivery Semantics): legal, unless at-most-once is claimed."""
    return {one.offset for one, below in _again(course) if not below}


def illegal_redelivery(course: Course) -> Keys:
    """A record of another ownership epoch was delivered again below the floor of its own. "The consumer starts at the
    committed position" (KafkaConsumer, Offsets and Consumer Position)."""
    return {one.offset for one, below in _again(course) if below}


def retried(course: Course) -> Keys:
    """A record was begun again in its ownership epoch, and nothing from there on had been completed. "The consumer can
    seek to a position" (KafkaConsumer, Controlling The Consumer's Position): legal."""
    begun = [one for one in course.handlers if one.epoch is not None]
    return {one.offset for one in begun if _is_retry(course, one)}


def _is_retry(course: Course, one: WorldHandler) -> bool:
    """Whether a record is begun again in its ownership epoch, and neither it nor a later one had been completed."""
    mine = [other for other in course.handlers if other.epoch == one.epoch and other.begun < one.begun]
    done = any(other.ended is not None and other.ended < one.begun and other.offset >= one.offset for other in mine)
    return any(other.offset == one.offset for other in mine) and not done


def nonmonotonic_poll(course: Course) -> Keys:
    """Inside an ownership epoch a delivery stepped back to a record, or to one before it, and it was no retry. "The
    position advances automatically every time the consumer receives messages" (KafkaConsumer, Offsets and Consumer
    Position)."""
    found: Keys = set()
    for one in course.handlers:
        mine = [other.offset for other in course.handlers if other.epoch == one.epoch and other.begun < one.begun]
        if one.epoch is not None and mine and one.offset <= max(mine) and not _is_retry(course, one):
            found.add(one.offset)
    return found


def poll_skip(course: Course) -> Keys:
    """Deliveries of an ownership epoch jumped over a record, and never came back to it. "The consumer position is one
    larger than the highest offset the consumer has seen" (KafkaConsumer, Offsets and Consumer Position)."""
    found: Keys = set()
    for epoch in course.epochs:
        begun = [one.offset for one in course.handlers if one.epoch == epoch]
        between = range(begun[0] + 1, max(begun)) if begun else ()
        found |= {*between} - {*begun}
    return found


def reordered_key(course: Course) -> Keys:
    """A record was completed after a later one: inside an epoch at every completion, across epochs at first ones, but
    for the work of zombies. "Kafka guarantees the order of records within a partition" (Kafka, Introduction)."""
    keys = course.world.keys
    firsts = [(at, one) for at, one in course.first_ends.values() if not course.is_excused(one, at)]
    pairs = [
        (one.offset, other.offset)
        for group in (firsts, *([pair for pair in course.ends if pair[1].epoch == epoch] for epoch in course.epochs))
        for at, one in group
        for earlier, other in group
        if earlier < at and other.offset > one.offset
    ]
    late = {offset for offset, _ in pairs}
    same = {offset for offset, other in pairs if keys[offset] == keys[other]}
    return {(offset, offset in same) for offset in late}


def overlapping_handlers(course: Course) -> Keys:
    """Two records were in handlers at once, but for those of a zombie beside the owner. "Each partition is consumed by
    exactly one consumer in the group" (Kafka, Design, The Consumer)."""
    found: Keys = set()
    done = [one for one in course.handlers if one.ended is not None]
    for one in done:
        for other in done:
            assert one.ended is not None
            assert other.ended is not None
            beside = one.begun < other.begun < one.ended
            legal = course.is_excused(one, one.ended) or course.is_excused(other, other.ended)
            if beside and (one.who == other.who or not legal):
                found |= {one.offset, other.offset}
    return found


def split_ownership(course: Course) -> Keys:
    """Two members owned the partition at once: by the log, or because one fetched and worked on after it had been told
    that it had lost it. "Each partition is assigned to exactly one consumer in the group" (KafkaConsumer)."""
    found: Keys = set()
    split = False
    for place, one in course.of("hold"):
        two = len(course.holding(place)) > 1
        found |= {("log", one.rank)} if two and not split else set()
        split = two
    for handler in course.handlers:
        lost = course.lost_at(handler.epoch, handler.begun) if handler.epoch is not None else None
        found |= {("told", handler.offset)} if lost is not None and course.knew(handler, lost) else set()
    return found


def work_after_revoke(course: Course) -> Keys:
    """A member was delivered or completed a record after its own callback had returned; the record in hand at `lost` it
    may complete. "Once the callback returns, the partition may be given to another consumer" (Kafka,
    ConsumerRebalanceListener)."""
    found: Keys = set()
    in_hand = {one.ended: one for one in course.handlers if one.ended is not None}
    for place, one in course.of("begin", "end"):
        last = next((at for at in range(place, -1, -1) if _is_callback(course.at[at], one.who)), None)
        if last is None or course.at[last].what == "assigned":
            continue
        handler = in_hand.get(place)
        lost = course.at[last].what == "lost" and handler is not None and handler.begun < last
        found |= set() if lost else {(one.value, "delivered" if one.what == "begin" else "processed")}
    return found


def zombie_work(course: Course) -> Keys:
    """A member worked on what others had been given, before it was told, or on records that it had fetched before: a
    member that is cut off cannot know. "The consumer will be considered dead" (KafkaConsumer, Detecting Consumer
    Failures) by the group first."""
    found: Keys = set()
    for handler in course.handlers:
        for place, what in ((handler.begun, "delivered"), (handler.ended, "processed")):
            epoch = course.epoch_at(handler.who, place) if place is not None else None
            lost = course.lost_at(epoch, place) if epoch is not None and place is not None else None
            found |= {(handler.offset, what)} if lost is not None and not course.knew(handler, lost) else set()
    return found


def commit_past_end(course: Course) -> Keys:
    """A position beyond the end of the log was committed. "The committed offset is the next record that will be read"
    (KafkaConsumer, Offsets and Consumer Position)."""
    return {commit.rank for _, commit in course.commits if commit.value > len(course.records)}


def commit_lost(course: Course) -> Keys:
    """A commit was acknowledged, and its position is nowhere in the offsets log. "The broker sends a successful offset
    commit response only after all the replicas of the offsets topic receive the offsets" (Kafka, Consumer Offset
    Tracking)."""
    stored = {commit.value for _, commit in course.commits}
    return {one.value for _, one in course.of("acked") if one.value not in stored}


def _is_callback(one: Instant, who: str) -> bool:
    return one.who == who and one.what in ("assigned", "revoked", "lost")


TEXTBOOK: dict[str, Callable[[Course], Keys]] = {
    "skipped": skipped,
    "commit-ahead": commit_ahead,
    "commit-regression": commit_regression,
    "commit-past-end": commit_past_end,
    "commit-lost": commit_lost,
    "zombie-commit": zombie_commit,
    "redelivered": redelivered,
    "illegal-redelivery": illegal_redelivery,
    "retried": retried,
    "nonmonotonic-poll": nonmonotonic_poll,
    "poll-skip": poll_skip,
    "reordered-key": reordered_key,
    "overlapping-handlers": overlapping_handlers,
    "split-ownership": split_ownership,
    "work-after-revoke": work_after_revoke,
    "zombie-work": zombie_work,
}


def keys_in(world: World) -> dict[str, frozenset[Hashable]]:
    """Returns what each anomaly finds in a world."""
    course = Course(world)
    return {name: frozenset(finds(course)) for name, finds in TEXTBOOK.items()}
