"""Whether a new client is worse than the old one: both tried on the same suites, Kafka versions and seeds.

Suite by suite and version by version, over all seeds, so that a flaw that shows only now and then is not taken for a
new one where it showed with another seed:

- worse: the new client breaks in a way (a kind of anomaly that its claim forbids) that the old one did not, or it fails
  in five pairs or more that the old one passed, and in next to none the other way round;
- unknown: the old client was judged and the new one was not, as a whole or for a kind of anomaly; or only the new one
  was judged, and it broke something;
- what both break is named, and is no reason for either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_trial.comparison.interval import one_sided
from kafka_trial.comparison.pairs import ComparedTrial, client_pairs
from kafka_trial.errors import FAIL, PASS, UNKNOWN

WORSE, NOT_WORSE, CANNOT_TELL = "worse", "not worse", "unknown"
STATUS: Final = {WORSE: FAIL, NOT_WORSE: PASS, CANNOT_TELL: UNKNOWN}
Cell = tuple[str, str, int]


@dataclass(frozen=True)
class ClientVerdict:
    """The verdict on a new client against an old one, with a sentence for each reason; `alike`: what both break;
    `better`: what only the old one broke; `not_compared`: where neither was judged, or the old one was not and the new
    one passed."""

    worse: tuple[str, ...]
    unknown: tuple[str, ...]
    alike: tuple[str, ...]
    better: tuple[str, ...]
    not_compared: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """worse, not worse or unknown."""
        return WORSE if self.worse else CANNOT_TELL if self.unknown else NOT_WORSE

    @property
    def exit(self) -> int:
        """1 worse, 0 not worse, 4 unknown."""
        return STATUS[self.verdict]


@dataclass(frozen=True)
class _Unit:
    """All trials of one suite on one version, of both clients."""

    scenario: str
    kafka: str
    seeds: tuple[int, ...]
    before: tuple[ComparedTrial, ...]
    after: tuple[ComparedTrial, ...]

    @property
    def place(self) -> str:
        return f"{self.scenario} on Kafka {self.kafka}"


def judge_client(
    before: Sequence[ComparedTrial], after: Sequence[ComparedTrial], cells: Sequence[Cell]
) -> ClientVerdict:
    """Returns the verdict on the new client (`after`); `cells`: all that was to be tried with both."""
    units = list(_units(before, after, cells))
    compared = [unit for unit in units if _decided(unit.before) and _decided(unit.after)]
    nothing = () if compared else ("no suite was judged with both clients",)
    return ClientVerdict(
        worse=tuple(told for unit in compared for told in (*_new_kinds(unit), *_more_often(unit))),
        unknown=(*nothing, *(told for unit in units for told in (*_untold(unit), *_no_longer_judged(unit)))),
        alike=tuple(f"{unit.place}: {_words(kinds)}" for unit in compared if (kinds := _both(unit))),
        better=tuple(f"{unit.place}: {_words(kinds)}" for unit in compared if (kinds := _gone(unit))),
        not_compared=tuple(unit.place for unit in units if not _decided(unit.before) and not _kinds(unit.after)),
    )


def _units(before: Sequence[ComparedTrial], after: Sequence[ComparedTrial], cells: Sequence[Cell]) -> Iterator[_Unit]:
    for scenario, kafka in dict.fromkeys((scenario, kafka) for scenario, kafka, _ in cells):
        seeds = tuple(seed for *place, seed in cells if place == [scenario, kafka])
        sides = (
            tuple(one for one in side if (one.scenario, one.kafka) == (scenario, kafka) and one.seed in seeds)
            for side in (before, after)
        )
        yield _Unit(scenario, kafka, seeds, *sides)


def _new_kinds(unit: _Unit) -> Iterator[str]:
    if kinds := _kinds(unit.after) - _kinds(unit.before):
        yield f"{unit.place}: {_words(kinds)}, which the baseline did not show"


def _more_often(unit: _Unit) -> Iterator[str]:
    pairs = client_pairs(unit.before, unit.after)
    worse = sum(pair.after.verdict == "fail" and pair.before.verdict == "pass" for pair in pairs)
    better = sum(pair.before.verdict == "fail" and pair.after.verdict == "pass" for pair in pairs)
    if worse > better and one_sided(worse, better):
        yield f"{unit.place}: fails in {worse} of {len(pairs)} pairs that the baseline passed, {better} the other way"


def _untold(unit: _Unit) -> Iterator[str]:
    """Yields where only one of the two was judged, and that matters."""
    judged = {one.seed for one in _decided(unit.after)}
    missing = [str(one.seed) for one in _decided(unit.before) if one.seed not in judged]
    if missing:
        yield f"{unit.place}: not judged with seed {', '.join(missing)}, and the baseline was"
    if not _decided(unit.before) and (kinds := _kinds(unit.after)):
        yield f"{unit.place}: {_words(kinds)}, and the baseline was not judged"


def _no_longer_judged(unit: _Unit) -> Iterator[str]:
    """Yields the kinds of anomalies for which the baseline was judged in all trials, and the new client in none."""
    before, after = _decided(unit.before), _decided(unit.after)
    if not before or not after:
        return
    known = {name for one in before for name in one.not_judged}
    lost = set.intersection(*({*one.not_judged} for one in after)) - known
    reasons: dict[str, set[str]] = {}
    for name in lost:
        reasons.setdefault(after[0].not_judged[name], set()).add(name)
    for because, names in sorted(reasons.items()):
        yield f"{unit.place}: not judged any more for {_words(names)}: {because}"


def _both(unit: _Unit) -> frozenset[str]:
    return _kinds(unit.before) & _kinds(unit.after)


def _gone(unit: _Unit) -> frozenset[str]:
    return _kinds(unit.before) - _kinds(unit.after)


def _decided(trials: Iterable[ComparedTrial]) -> list[ComparedTrial]:
    return [one for one in trials if one.decided]


def _kinds(trials: Iterable[ComparedTrial]) -> frozenset[str]:
    return frozenset(kind for one in _decided(trials) for kind in one.kinds)


def _words(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
