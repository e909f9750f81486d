"""Draws small stories by seeds: two members, a partition of two to four records, at most one handover, and on most of
them something that a sound consumer would not do.

Steps stand far apart but for a few, whose order the evidence leaves open.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Final

from lab.worlds.story import MEASURED_MS, Story, StoryStep

FAR_MS: Final = 1500
NEAR_MS: Final = (5, 20, 45, 120, 300, 450)
NEAR_MEASURED_MS: Final = (5, 10, 20, 35, 60)
LATE_MS: Final = (80, 200, 450)
DEVIATES: Final = 0.3  # how likely it is that a member does something wrong where it can
KEYS: Final = ("a", "b")


def draw(seed: int) -> Story:
    """Returns the story of a seed."""
    rng = random.Random(seed)
    size = rng.randint(2, 4)
    drawn = _Drawn(rng, size, says_asks=rng.random() < 0.6, kip_848=rng.random() < 0.2, fetches_seen=rng.random() < 0.6)
    drawn.take_over("m0")
    drawn.work("m0", rng.randint(1, 3))
    if rng.random() < 0.85:
        drawn.hand_over()
        drawn.work("m1", rng.randint(1, 3))
        drawn.give_back()
    kills = any(step.what == "kill" for step in drawn.steps)
    keys = tuple(rng.choice(KEYS) for _ in range(size))
    story = Story(tuple(drawn.steps), keys, rng.random() < 0.5, not kills and rng.random() < 0.15)
    return _timed(story, rng)


def _timed(story: Story, rng: random.Random) -> Story:
    """Moves some steps near those before them, and has some lines read late, or by a harness that stood still."""
    near = NEAR_MEASURED_MS if story.measured else NEAR_MS
    limit = MEASURED_MS if story.measured else max(LATE_MS)
    places = {*rng.sample(range(1, len(story.steps)), min(rng.choice((0, 2, 3, 4)), len(story.steps) - 1))}
    steps = []
    for number, step in enumerate(story.steps):
        late_ms = rng.choice(LATE_MS) if rng.random() < 0.1 else 3
        fixed = step.gap_ms != FAR_MS
        gap_ms = rng.choice(near) if number in places and not fixed else step.gap_ms
        steps.append(replace(step, gap_ms=gap_ms, late_ms=min(late_ms, limit)))
    if rng.random() < 0.12:
        place = rng.randint(2, len(steps))
        steps.insert(place, StoryStep("stall", value=rng.choice((600, 2000)), gap_ms=rng.choice((5, 400))))
    return replace(story, steps=tuple(steps))


@dataclass
class _Drawn:
    """A group as its steps are drawn: what each member holds, has done, and what is committed."""

    rng: random.Random
    size: int
    says_asks: bool
    kip_848: bool
    fetches_seen: bool
    steps: list[StoryStep] = field(default_factory=list)
    next: dict[str, int] = field(default_factory=dict)  # what each member would handle next
    fetched: dict[str, int] = field(default_factory=dict)  # from where each member fetched last
    committed: int = 0

    def add(self, what: str, who: str, value: int = -1, gap_ms: int = FAR_MS) -> None:
        self.steps.append(StoryStep(what, who, value, gap_ms))

    def deviates(self) -> bool:
        return self.rng.random() < DEVIATES

    def give(self, who: str) -> None:
        """The log gives the partition to a member; of KIP-848 the other one lets go before, or does not."""
        other = {"m0": "m1", "m1": "m0"}[who]
        if self.kip_848 and other in self.next and not self.deviates():
            self.add("hold", other, 0)
        self.add("hold" if self.kip_848 else "give", who, 1 if self.kip_848 else -1)

    def take_over(self, who: str) -> None:
        """A member is given the partition, asks where to start, and starts there or elsewhere."""
        self.give(who)
        late = self.rng.random() < 0.3  # some clients ask for their position once the callback has returned
        for what, value in (("assigned", -1), ("start", self.committed or -1))[:: 1 if late else -1]:
            self.add(what, who, value)
        self.fetched.pop(who, None)
        aside = self.rng.choice((-1, -1, 1)) if self.deviates() else 0
        self.next[who] = min(max(self.committed + aside, 0), self.size)

    def begin(self, who: str, offset: int) -> None:
        """A member begins a record, of which it asks a broker before, if it was not among what it was sent."""
        if self.fetches_seen and offset < self.fetched.get(who, self.size):
            self.fetch(who, offset)
        self.add("begin", who, offset)

    def fetch(self, who: str, position: int) -> None:
        self.add("fetch", who, position)
        self.fetched[who] = position

    def work(self, who: str, rounds: int) -> None:
        """A member handles records and commits."""
        for _ in range(rounds):
            act = self.rng.choice(WRONG) if self.deviates() else self.rng.choice(RIGHT)
            getattr(self, f"_{act}")(who)

    def _handle(self, who: str) -> None:
        self._handle_at(who, self.next[who])

    def _handle_at(self, who: str, offset: int) -> None:
        if 0 <= offset < self.size:
            self.begin(who, offset)
            self.add("end", who, offset)
            self.next[who] = max(self.next[who], offset + 1)

    def _commit(self, who: str) -> None:
        self._commit_at(who, self.next[who])

    def _commit_at(self, who: str, position: int) -> None:
        if 0 < position <= self.size:
            self._stored(who, position)

    def _stored(self, who: str, position: int) -> None:
        if self.says_asks:
            self.add("ask", who, position, 5)
        self.add("commit", who, position, 8 if self.says_asks else FAR_MS)
        self.committed = position

    def _retry(self, who: str) -> None:
        if self.next[who] < self.size:
            self.begin(who, self.next[who])
        self._handle(who)

    def _ahead(self, who: str) -> None:
        """Commits a record while it is in its handler, or before."""
        offset = self.next[who]
        if offset < self.size:
            early = self.rng.random() < 0.5
            if early:
                self._commit_at(who, offset + 1)
            self.begin(who, offset)
            if not early:
                self._commit_at(who, offset + 1)
            if self.rng.random() < 0.8:
                self.add("end", who, offset)
            self.next[who] = offset + 1

    def _stray(self, who: str) -> None:
        """Commits any position, such as one that another member has passed."""
        self._commit_at(who, self.rng.randint(1, self.size))

    def _twin(self, who: str) -> None:
        """Both members commit one position, about at once."""
        for member in ("m0", "m1") if "m1" in self.next else ("m0",):
            self.add("commit", member, max(self.next[who], 1), NEAR_MEASURED_MS[0])
        self.committed = max(self.next[who], 1)

    def _past(self, who: str) -> None:
        """Commits one more than there is."""
        self._stored(who, self.size + 1)

    def _vanish(self, who: str) -> None:
        self.add("vanish", who, max(self.next[who], 1))

    def _leap(self, who: str) -> None:
        """Handles a record, and goes on behind the one that follows."""
        self._handle(who)
        self.next[who] = min(self.next[who] + 1, self.size)
        self._handle(who)

    def _back(self, who: str) -> None:
        self._commit_at(who, self.committed - 1)

    def _skip(self, who: str) -> None:
        self.next[who] = min(self.next[who] + 1, self.size)
        self._commit(who)

    def _rewind(self, who: str) -> None:
        self._handle_at(who, self.rng.randrange(max(self.next[who], 1)))

    def _overlap(self, who: str) -> None:
        offset = self.next[who]
        if offset + 1 < self.size:
            ends = [offset, offset + 1]
            self.rng.shuffle(ends)
            self.begin(who, offset)
            self.begin(who, offset + 1)
            for one in ends:
                self.add("end", who, one)
            self.next[who] = offset + 2

    def _reorder(self, who: str) -> None:
        offset = self.next[who]
        if offset + 1 < self.size:
            self._handle_at(who, offset + 1)
            self._handle_at(who, offset)

    def _refuse(self, who: str) -> None:
        if self.next[who] < self.size:
            self.begin(who, self.next[who])
            self.add("refuse", who, self.next[who] + 1)
            self.add("end", who, self.next[who])
            self.next[who] += 1

    def hand_over(self) -> None:
        """The partition goes from m0 to m1, in one of several ways."""
        getattr(self, f"_{self.rng.choice(('move', 'move', 'kill', 'lose', 'lose'))}")()

    def give_back(self) -> None:
        """Perhaps m0 is given the partition again, after the callback of m1."""
        killed = any(step.what == "kill" for step in self.steps)
        if not killed and self.rng.random() < 0.25:
            if self.rng.random() < 0.7:
                self.add("revoked", "m1")
            self.take_over("m0")
            self.work("m0", self.rng.randint(1, 2))

    def _move(self) -> None:
        """With a callback; a member that deviates works on after it."""
        in_hand = self.next["m0"] < self.size and self.deviates()
        if in_hand:
            self.begin("m0", self.next["m0"])
        self.add("revoked", "m0")
        if self.deviates():
            self._commit_at("m0", self.next["m0"])
        self.take_over("m1")
        if in_hand:
            self.work("m1", self.rng.randint(0, 1))
            self.add("end", "m0", self.next["m0"])
            self.next["m0"] += 1
        if self.deviates():
            self.rng.choice((self._commit, self._stray))("m0")

    def _kill(self) -> None:
        """By signal 9, perhaps with a record in hand, which it may have ended unsaid, and may have committed."""
        offset = self.next["m0"]
        if offset < self.size and self.rng.random() < 0.7:
            self.begin("m0", offset)
            if self.deviates():
                self._commit_at("m0", offset + 1)
            if self.rng.random() < 0.5:
                self.add("unsaid", "m0", offset, 5)
        self.add("kill", "m0", gap_ms=20)
        self.take_over("m1")

    def _lose(self) -> None:
        """Without being told: it was cut off, works on beside the new owner, and is told, or its answer is lost."""
        cut = self.rng.random() < 0.5
        in_hand = self.next["m0"] < self.size and self.rng.random() < 0.6
        if in_hand:
            self.begin("m0", self.next["m0"])
        if cut:
            self.add("cut", "m0")
        self.take_over("m1")
        self.work("m1", self.rng.randint(0, 2))
        told = self.rng.random() < 0.5
        if told:
            self.add("tell", "m0", int(not cut or self.rng.random() < 0.5))
        if cut:
            self.add("heal", "m0")
        if in_hand:
            self.add("end", "m0", self.next["m0"])
            self.next["m0"] += 1
        if told and self.fetches_seen and self.next["m0"] < self.size and self.deviates():
            self.fetch("m0", self.next["m0"])
        if self.deviates():
            self._handle("m0")
        if self.deviates():
            self.rng.choice((self._commit, self._stray, self._twin))("m0")
        if self.rng.random() < 0.6:
            self.add("lost", "m0")
            if self.deviates():
                self._handle("m0")


RIGHT: Final = ("handle", "handle", "handle", "commit", "commit", "retry")
WRONG: Final = (
    "ahead",
    "ahead",
    "back",
    "skip",
    "rewind",
    "overlap",
    "reorder",
    "refuse",
    "stray",
    "past",
    "vanish",
    "leap",
)
