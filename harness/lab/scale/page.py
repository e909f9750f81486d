"""The scale campaign's part of the page of measurements: sizes, slopes, shapes, each beside what it ought to be.

What is compared was measured in the same round: a ratio is the median of the rounds' ratios, a slope that of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from lab.scale.cases import CHECK, DUCKDB, HUGE, OF_MESSAGES, SHAPES, SIZES, WARM
from lab.scale.samples import SAMPLES_NAME, Sample, newest

NONE = "–"
MILLION = 1_000_000
ALIKE = (0.75, 1.25)  # within a quarter
# The commit of a campaign → what was measured since, outside of it: told until the campaign has been run again.
SINCE: Mapping[str, Sequence[str]] = {
    "30a4aac": (
        "The judge reads and reports otherwise since. On 2026-11-25 10^6 messages cold and 10^5 events warm were",
        "measured again by themselves: see `engine.md`, not the figures here. The campaign was not: it wants a machine",
        "that is calm for hours, and this one was not (2026-11-26).",
    ),
}


@dataclass(frozen=True)
class Aim:
    """What ought to be, and what was measured; `unit` stands after both."""

    name: str
    at_most: float
    unit: str
    measured: float | None

    def line(self) -> str:
        """Returns it as a line of a table."""
        if self.measured is None:
            return f"| {self.name} | ≤ {self.at_most:g} {self.unit} | not measured | {NONE} |"
        reached = "yes" if self.measured <= self.at_most else "**no**"
        return f"| {self.name} | ≤ {self.at_most:g} {self.unit} | {self.measured:.2f} {self.unit} | {reached} |"


class Measured:
    """Samples by case and measurement; what was not measured is None."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self._values = {(sample.case, sample.of, sample.run): sample for sample in samples}

    def rounds(self, case: str, of: str) -> list[int]:
        """Returns the rounds in which that was measured."""
        return sorted(run for name, what, run in self._values if (name, what) == (case, of))

    def one(self, case: str, of: str) -> Sample | None:
        """Returns one sample of it."""
        return next((self._values[case, of, run] for run in self.rounds(case, of)), None)

    def median(self, case: str, of: str, name: str) -> float | None:
        """Returns the median of a value."""
        return self._over([(case, of)], lambda sample: sample.values[name])

    def ratio(self, case: tuple[str, str], to: tuple[str, str], name: str) -> float | None:
        """Returns the median of the rounds' ratios of two measurements."""
        return self._over([case, to], lambda one, other: one.values[name] / other.values[name])

    def slope(self, small: str, large: str, of: str, name: str) -> float | None:
        """Returns the median of what a million events more cost, between two sizes."""
        return self._over([(small, of), (large, of)], lambda one, other: _slope(one, other, name))

    def slopes_ratio(self, cases: Sequence[tuple[str, str]], name: str) -> float | None:
        """Returns the median ratio of two slopes: of the first two measurements to that of the other two."""
        return self._over(cases, lambda one, two, three, four: _slope(one, two, name) / _slope(three, four, name))

    def _over(self, wanted: Sequence[tuple[str, str]], value: Callable[..., float]) -> float | None:
        rounds = set.intersection(*(set(self.rounds(*one)) for one in wanted))
        found = [value(*(self._values[(*one, run)] for one in wanted)) for run in sorted(rounds)]
        return median(found) if found else None


def scale_lines(samples: Sequence[Sample]) -> list[str]:
    """Returns the lines of the page, none where nothing was measured."""
    if not samples:
        return []
    measured = Measured(newest(samples))
    commits = dict.fromkeys(sample.commit for sample in measured.samples)
    return [
        "",
        "## scale",
        "",
        f"Measured at {', '.join(commits)} on {_machines(measured.samples)}.",
        f"Medians of the rounds in `{SAMPLES_NAME}`; in each round everything was measured in turn. `check` is the",
        "command in a process of its own, without a cache; memory is the peak of its tree (Python, JVM, workers), what",
        "they share counted once. DuckDB computes ten of the judge's anomalies on the same files (`scale/duck.py` says",
        "which it does not).",
        *(line for commit in commits if commit in SINCE for line in ("", *SINCE[commit])),
        "",
        *_aims(measured),
        "",
        *_sizes(measured),
        "",
        *_slopes(measured),
        "",
        *_shapes(measured),
    ]


def _aims(measured: Measured) -> Iterator[str]:
    small, middle, large = (case.name for case in SIZES)
    margins = [(middle, CHECK), (large, CHECK), (middle, DUCKDB), (large, DUCKDB)]
    bends = [(middle, CHECK), (large, CHECK), (small, CHECK), (middle, CHECK)]
    yield from ("| aim | ought to be | is | reached |", "| --- | --- | --- | --- |")
    yield Aim(f"{small}, warm", 0.3, "s", measured.median(small, WARM, "anew_s")).line()
    yield Aim(f"{small}, warm, from the cache", 0.3, "s", measured.median(small, WARM, "cached_s")).line()
    yield Aim(f"{OF_MESSAGES.name}, cold", 20, "s", measured.median(OF_MESSAGES.name, CHECK, "wall_s")).line()
    for case, limit_gb in ((OF_MESSAGES.name, 3.0), (HUGE.name, 4.0)):
        peak = measured.median(case, CHECK, "peak_bytes")
        yield Aim(f"{case}, memory", limit_gb, "GB", None if peak is None else peak / 1e9).line()
    yield Aim("processor time ÷ DuckDB's, from 10^6 to 10^7", 2, "×", measured.slopes_ratio(margins, "cpu_s")).line()
    for name, told in (("wall_s", "seconds"), ("cpu_s", "processor seconds")):
        bend = measured.slopes_ratio(bends, name)
        yield Aim(f"linear: {told} per event from 10^6 on ÷ before", ALIKE[1], "×", bend).line()


def _sizes(measured: Measured) -> Iterator[str]:
    costs = "check | CPU | memory | warm | CPU | DuckDB | CPU | memory"
    yield f"| history | events | MB | {costs} | CPU ÷ DuckDB's | rounds |"
    yield "|" + " --- |" * 13
    for case in (*SIZES, OF_MESSAGES, HUGE):
        one = measured.one(case.name, CHECK)
        if one is None:
            continue
        cells = [case.name, f"{one.events}", f"{one.size_bytes / 1e6:.0f}", *_cost(measured, case.name, CHECK)]
        cells += [_told(measured.median(case.name, WARM, name), "s") for name in ("anew_s", "anew_cpu_s")]
        cells += _cost(measured, case.name, DUCKDB)
        cells += [_told(measured.ratio((case.name, CHECK), (case.name, DUCKDB), "cpu_s"), "×")]
        yield f"| {' | '.join([*cells, str(len(measured.rounds(case.name, CHECK)))])} |"


def _slopes(measured: Measured) -> Iterator[str]:
    yield "| a million events more | check | CPU | DuckDB | CPU | CPU ÷ DuckDB's |"
    yield "|" + " --- |" * 6
    for small, large in pairwise(SIZES):
        pair = (small.name, large.name)
        cells = [_told(measured.slope(*pair, of, name), "s") for of in (CHECK, DUCKDB) for name in ("wall_s", "cpu_s")]
        margins = [(name, of) for of in (CHECK, DUCKDB) for name in pair]
        cells.append(_told(measured.slopes_ratio(margins, "cpu_s"), "×"))
        yield f"| from {small.name} to {large.name} | {' | '.join(cells)} |"


def _shapes(measured: Measured) -> Iterator[str]:
    yield f"| 10^6 events | against | seconds | CPU | memory | ought to be {ALIKE[0]} to {ALIKE[1]} |"
    yield "|" + " --- |" * 6
    for case in SHAPES:
        to = (case.against or "", CHECK)
        ratios = [measured.ratio((case.name, CHECK), to, name) for name in ("wall_s", "cpu_s", "peak_bytes")]
        known = [ratio for ratio in ratios if ratio is not None]
        reached = "yes" if all(ALIKE[0] <= ratio <= ALIKE[1] for ratio in known) else "**no**"
        cells = [case.name, case.against or NONE, *(_told(ratio, "×") for ratio in ratios)]
        yield f"| {' | '.join([*cells, reached if known else NONE])} |"


def _cost(measured: Measured, case: str, of: str) -> Iterator[str]:
    yield from (_told(measured.median(case, of, name), "s") for name in ("wall_s", "cpu_s"))
    peak = measured.median(case, of, "peak_bytes")
    yield NONE if peak is None else f"{peak / 1e6:.0f} MB"


def _slope(small: Sample, large: Sample, name: str) -> float:
    return (large.values[name] - small.values[name]) / (large.events - small.events) * MILLION


def _told(value: float | None, unit: str) -> str:
    return NONE if value is None else f"{value:.2f} {unit}"


def _machines(samples: Sequence[Sample]) -> str:
    """Returns the machines, each with its least and greatest load at the end of a measurement."""
    told = []
    parts = [sample.machine.rpartition(", load ") for sample in samples]
    for machine in dict.fromkeys(part[0] for part in parts):
        loads = [float(part[2]) for part in parts if part[0] == machine]
        told.append(f"{machine}, load {min(loads):.1f} to {max(loads):.1f}")
    return "; ".join(told)
