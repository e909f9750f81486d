"""What differs between two sides: verdicts and anomalies, counted by pairs, and figures, with their intervals.

It becomes plain data, which certificate.json holds under `comparison`. All of it follows from the trials, so that
`verify` can make it again and find an edit.

Whether a new client is worse than the old one, both tried on the same trials, is judged suite by suite and version by
version, over all seeds, so that a flaw that shows only now and then is not taken for a new one where it showed with
another seed:

- worse: the new client breaks in a way (a kind of anomaly that its claim forbids) that the old one did not, or it fails
  in five pairs or more that the old one passed, and in next to none the other way round;
- unknown: the old client was judged and the new one was not, as a whole or for a kind of anomaly; or only the new one
  was judged, and it broke something;
- what both break is named, and is no reason for either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

import orjson

from kafka_trial.cluster.versions import oldest_first
from kafka_trial.comparison.explain import UNEXPLAINED, ConsumerKind, known_changes
from kafka_trial.comparison.figures import FIGURES, Figure
from kafka_trial.comparison.interval import DIFFERS, NOT_SHOWN, PAIRS_MIN, TOO_FEW, one_sided, paired_interval
from kafka_trial.comparison.pairs import ComparedTrial, Pair, client_pairs, version_pairs
from kafka_trial.errors import FAIL, PASS, UNKNOWN

Table = dict[str, Any]
FAILED: Final = "fail"
WORSE, NOT_WORSE, CANNOT_TELL = "worse", "not worse", "unknown"
STATUS: Final = {WORSE: FAIL, NOT_WORSE: PASS, CANNOT_TELL: UNKNOWN}
Cell = tuple[str, str, int]


@dataclass(frozen=True)
class Baseline:
    """The old client: its name, its trials, and `notes` on what else than the client is not the same."""

    name: str
    trials: Sequence[ComparedTrial]
    notes: Sequence[str] = ()


def compare_trials(
    trials: Sequence[ComparedTrial],
    *,
    name: str,
    cells: Sequence[Cell],
    consumer: ConsumerKind,
    baseline: Baseline | None = None,
) -> Table:
    """Returns what differs between the Kafka versions of a consumer's trials, and from those of a baseline.

    `name`: the consumer's. `cells`: all that was to be tried (suite, version, seed). Of three versions or more each is
    compared with the one before it, and the newest with the oldest.
    """
    all_sides = _version_sides(trials, [kafka for _, kafka, _ in cells])
    all_sides += [] if baseline is None else [_client_sides(baseline, trials, name)]
    table = {
        "consumer": asdict(consumer),
        "between": [asdict(one) for one in compare(all_sides, consumer)],
        "figures": [
            *_figure_rows("consumer", trials),
            *_figure_rows("baseline", () if baseline is None else baseline.trials),
        ],
        "client": None if baseline is None else _client(baseline, trials, cells),
    }
    return dict(orjson.loads(orjson.dumps(table)))  # as it is read: tuples are lists


def _version_sides(trials: Sequence[ComparedTrial], versions: Sequence[str]) -> list[Sides]:
    ordered = oldest_first(set(versions))
    steps = list(pairwise(ordered)) + ([(ordered[0], ordered[-1])] if ordered[2:] else [])
    sides = []
    for before, after in steps:
        pairs = version_pairs(trials, before, after)
        tried = sum(one.kafka in (before, after) for one in trials)
        sides.append(Sides(before, after, True, pairs, not_paired=tried - 2 * len(pairs)))
    return sides


def _client_sides(baseline: Baseline, trials: Sequence[ComparedTrial], name: str) -> Sides:
    pairs = client_pairs(baseline.trials, trials)
    not_paired = len(baseline.trials) + len(trials) - 2 * len(pairs)
    return Sides(f"{baseline.name} (baseline)", name, False, pairs, not_paired=not_paired)


def _client(baseline: Baseline, trials: Sequence[ComparedTrial], cells: Sequence[Cell]) -> Table:
    judged = judge_client(baseline.trials, trials, cells)
    about = {"baseline": baseline.name, "notes": list(baseline.notes)}
    return about | asdict(judged) | {"verdict": judged.verdict, "exit": judged.exit}


def _figure_rows(of: str, trials: Sequence[ComparedTrial]) -> list[Mapping[str, Any]]:
    return [
        {"of": of, "scenario": one.scenario, "kafka": one.kafka, "seed": one.seed, "values": dict(one.figures)}
        for one in trials
    ]


@dataclass(frozen=True)
class Sides:
    """Two sides with their pairs, by name. `versions`: whether they are two Kafka versions, or else two clients.

    `not_paired`: how many trials of either side have no decided trial on the other one.
    """

    before: str
    after: str
    versions: bool
    pairs: Sequence[Pair]
    not_paired: int = 0


@dataclass(frozen=True)
class FindingDifference:
    """A verdict ("fail") or an anomaly that was found on one side and not on the other, in at least one pair: in how
    many of the pairs on each, and in which suites the sides disagree."""

    name: str
    suites: tuple[str, ...]
    before: int
    after: int
    pairs: int
    outcome: str
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureDifference:
    """A figure on both sides: its medians over the pairs that have it, the median ratio with its interval (None: too
    few pairs), and `missing`, how many pairs lack it."""

    name: str
    unit: str
    pairs: int
    missing: int
    before: float | None
    after: float | None
    ratio: float | None
    low: float | None
    high: float | None
    outcome: str
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """All that was compared between two sides."""

    before: str
    after: str
    versions: bool
    pairs: int
    not_paired: int
    findings: tuple[FindingDifference, ...]
    figures: tuple[FigureDifference, ...]


def compare(all_sides: Sequence[Sides], consumer: ConsumerKind) -> list[Difference]:
    """Returns what differs between each two sides; the intervals of all figures hold together."""
    comparisons = sum(len(_with(figure, sides.pairs)) >= PAIRS_MIN for sides in all_sides for figure in FIGURES)
    return [
        Difference(
            before=sides.before,
            after=sides.after,
            versions=sides.versions,
            pairs=len(sides.pairs),
            not_paired=sides.not_paired,
            findings=tuple(_findings(sides, consumer)),
            figures=tuple(_figure(sides, figure, comparisons, consumer) for figure in FIGURES),
        )
        for sides in all_sides
    ]


def _findings(sides: Sides, consumer: ConsumerKind) -> list[FindingDifference]:
    """Returns the verdicts and anomalies in which any pair disagrees: "fail" first, then by name."""
    kinds = {kind for pair in sides.pairs for kind in pair.before.kinds ^ pair.after.kinds} - {FAILED}
    rows = [_finding(sides, kind, consumer) for kind in (FAILED, *sorted(kinds))]
    return [row for row in rows if row.suites]


def _finding(sides: Sides, kind: str, consumer: ConsumerKind) -> FindingDifference:
    came = [pair for pair in sides.pairs if _has(pair.after, kind) and not _has(pair.before, kind)]
    went = [pair for pair in sides.pairs if _has(pair.before, kind) and not _has(pair.after, kind)]
    shown = one_sided(max(len(came), len(went)), min(len(came), len(went)))
    few = TOO_FEW if len(sides.pairs) < PAIRS_MIN else NOT_SHOWN
    return FindingDifference(
        name=kind,
        suites=tuple(dict.fromkeys(pair.before.scenario for pair in (*came, *went))),
        before=sum(_has(pair.before, kind) for pair in sides.pairs),
        after=sum(_has(pair.after, kind) for pair in sides.pairs),
        pairs=len(sides.pairs),
        outcome=DIFFERS if shown else few,
        because=_because(sides, kind, rises=len(came) >= len(went), consumer=consumer),
    )


def _has(trial: ComparedTrial, kind: str) -> bool:
    return trial.verdict == FAILED if kind == FAILED else kind in trial.kinds


def _figure(sides: Sides, figure: Figure, comparisons: int, consumer: ConsumerKind) -> FigureDifference:
    values = _with(figure, sides.pairs)
    changes = [math.log((after + figure.plus) / (before + figure.plus)) for before, after in values]
    interval = paired_interval(changes, comparisons=comparisons)
    outcome = TOO_FEW if interval is None else interval.outcome
    rises = interval is not None and interval.ratio > 1
    return FigureDifference(
        name=figure.name,
        unit=figure.unit,
        pairs=len(values),
        missing=len(sides.pairs) - len(values),
        before=round(median(before for before, _ in values), 3) if values else None,
        after=round(median(after for _, after in values), 3) if values else None,
        ratio=None if interval is None else round(interval.ratio, 4),
        low=None if interval is None else round(interval.low, 4),
        high=None if interval is None else round(interval.high, 4),
        outcome=outcome,
        because=_because(sides, figure.name, rises=rises, consumer=consumer) if outcome == DIFFERS else (),
    )


def _with(figure: Figure, pairs: Sequence[Pair]) -> list[tuple[float, float]]:
    """Returns the values of a figure on both sides of each pair that has it; what cannot be divided is left out."""
    found = [(pair.before.figures.get(figure.name), pair.after.figures.get(figure.name)) for pair in pairs]
    return [
        (before, after)
        for before, after in found
        if before is not None and after is not None and min(before, after) + figure.plus > 0
    ]


def _because(sides: Sides, name: str, *, rises: bool, consumer: ConsumerKind) -> tuple[str, ...]:
    """Returns what may explain a difference between versions, with its source; of two clients nothing is known."""
    if not sides.versions:
        return ()
    known = known_changes(name, rises=rises, before=sides.before, after=sides.after, consumer=consumer)
    return tuple(f"{one.source} (from {one.since.line} on): {one.means}" for one in known) or (UNEXPLAINED,)


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
