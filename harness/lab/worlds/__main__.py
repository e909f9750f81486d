"""`python -m lab.worlds`: draws histories by seeds, and compares the judge with all worlds that each of them allows.

python -m lab.worlds --seeds 1-200            # 1 where they differ in a way that `KNOWN` does not explain
python -m lab.worlds --seeds 1-200 --shrink   # and prints the smallest history of each such difference
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lab.worlds.compare import BY_ORDER, Comparison, Disagreement, compare
from lab.worlds.draw import draw
from lab.worlds.known_disagreements import known_disagreement_of
from lab.worlds.shrink import shrunk_story
from lab.worlds.story import Story
from lab.worlds.textbook import TEXTBOOK
from lab.worlds.worlds import TooManyWorldsError

SHOWN = 8


@dataclass
class Tally:
    """What came out of many histories, by anomaly and kind of difference."""

    histories: int = 0
    refused: int = 0
    worlds: int = 0
    agreed: Counter[str] = field(default_factory=Counter)
    gap: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    by_order: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    unknown: dict[tuple[str, str], list[tuple[int, Disagreement]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, seed: int, story: Story, comparison: Comparison) -> None:
        """Adds what came out of one."""
        self.histories += 1
        self.worlds += comparison.worlds
        self.agreed += comparison.agreed
        self.gap += comparison.gap
        self.outcomes += comparison.outcomes
        for one in comparison.differences:
            name = known_disagreement_of(story, one)
            if name is not None:
                self.known[name] += 1
            elif one.kind == BY_ORDER:
                self.by_order[one.name] += 1
            else:
                self.unknown[one.name, one.kind].append((seed, one))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares, and prints what came out; 1 where something differs that is not known."""
    parser = argparse.ArgumentParser(prog="python -m lab.worlds", description="Is the judge right in every world?")
    parser.add_argument("--seeds", default="1-100", metavar="FIRST-LAST", help="the seeds to draw from (default 1-100)")
    parser.add_argument("--shrink", action="store_true", help="print the smallest history of each unknown difference")
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("-")
    if not (first.isdigit() and (last or first).isdigit()):
        parser.error(f"--seeds: expected two numbers, such as 1-100, found {options.seeds!r}")
    begun = time.monotonic()
    tally = tally_of(range(int(first), int(last or first) + 1))
    print("\n".join(lines_of(tally, seconds=time.monotonic() - begun)))
    if options.shrink:
        for different in tally.unknown.values():
            print("\n".join(_smallest(*min(different, key=lambda one: len(draw(one[0]).steps)))))
    return int(bool(tally.unknown))


def tally_of(seeds: Iterable[int]) -> Tally:
    """Returns what comes out of the histories of these seeds."""
    tally = Tally()
    for seed in seeds:
        story = draw(seed)
        try:
            tally.add(seed, story, compare(story))
        except TooManyWorldsError:
            tally.refused += 1
    return tally


def lines_of(tally: Tally, *, seconds: float) -> list[str]:
    """Returns what is printed of a tally."""
    each_s = seconds / max(tally.histories + tally.refused, 1)
    head = (
        f"{tally.histories} histories, {tally.worlds} worlds, {each_s:.2f} s each; {tally.refused} with too many worlds"
    )
    columns = ("must", "may", "not", "agreed", "gap", "order")
    rows = [f"{name:22}" + "".join(f"{count:7}" for count in _counts(tally, name)) for name in TEXTBOOK]
    known = [f"known: {name} × {count}" for name, count in sorted(tally.known.items())]
    unknown = [
        f"NOT KNOWN: {name}, {kind} × {len(different)}: seeds {sorted({seed for seed, _ in different})[:SHOWN]}"
        for (name, kind), different in sorted(tally.unknown.items())
    ]
    return [head, f"{'':22}" + "".join(f"{column:>7}" for column in columns), *rows, *known, *unknown]


def _counts(tally: Tally, name: str) -> list[int]:
    """Returns in how many histories an anomaly is in all worlds, only in some, in none; and how the judge compares."""
    outcomes = [tally.outcomes[name, outcome] for outcome in ("must", "may", "not")]
    return [*outcomes, tally.agreed[name], tally.gap[name], tally.by_order[name]]


def _smallest(seed: int, difference: Disagreement) -> list[str]:
    story = shrunk_story(draw(seed), difference)
    about = f"keys={story.keys}, measured={story.measured}, buffered={story.buffered}"
    return [
        f"{difference.name}, {difference.kind}, from seed {seed}: {about}",
        *(f"    {step}" for step in story.steps),
    ]


if __name__ == "__main__":
    sys.exit(main())
