"""What a calibration is about, as values: the grid of attempts, and the rows that tell what came out.

`campaign.py` runs the grid. A row holds everything that the page (`page.py`) needs: it can be made again
from the rows alone, whatever became of the consumers since.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_trial import registry
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.patched_consumer import build_consumer_folder
from kafka_trial.errors import InputError, unknown_name
from kafka_trial.report.row_files import rows_in
from kafka_trial.trial.session import TrialRequest
from kafka_trial.trial.spec import make_trial_spec, scenario_consumer_problem
from lab.calibration.chosen_cuts import chosen_cut
from lab.calibration.fixture_header import FixtureHeader, fixture_header
from lab.calibration.further_suites import further_suite
from lab.calibration.silent_variants import for_silence_alone, levels_of, shown_at
from lab.calibration.source_digests import SAME

ROWS_NAME = "calibration.jsonl"
NOT_BEGUN = "not begun"  # stands for the verdict where there was no trial; tried again when calibrate goes on
# Enough to see a sound silent consumer accused.
SILENT_SCENARIOS = ("control", "member-killed", "rebalance-storm", "slow-handlers", "failing-endpoint", "poison-record")


@dataclass(frozen=True)
class Attempt:
    """One trial of the grid: what was asked. `sin`: None for a reference, else whether the sin is switched on."""

    consumer: str
    scenario: str
    kafka_version: str = DEFAULT_VERSION
    seed: int = 1
    sin: bool | None = None

    def __str__(self) -> str:
        switch = {None: "", True: "-sinning", False: "-sin-off"}[self.sin]
        return f"{self.consumer}{switch}-on-{self.scenario}-{self.kafka_version}".replace("/", "-")


@dataclass(frozen=True)
class Row:
    """One attempt with what came out; a line of the rows file.

    `expected` are the anomalies that must be found, none for a sound consumer, `at_times` those that may. `verdict` is
    pass, fail, unknown, or `not begun`. `faults_bit` has one entry for each planned fault. `source_digest` is the
    harness's, `making_digest` that of its part that makes histories, `judging_digest` of the part that judges them
    (rows of earlier versions lack both), `trial_digest` that of consumer and scenario. `rejudged`: the kept history of
    an earlier row, judged again by another judge. `silent`: the consumer says nothing of what it does, so that a sound
    one cannot pass: it is rightly *unknown* for its silence alone. `twin_of`: the sin that a sound one looks like.
    `stored`: the digest of the file that keeps its history, where one does.
    """

    attempt: Attempt
    expected: tuple[str, ...]
    verdict: str
    violations: tuple[str, ...]
    reasons: tuple[str, ...]
    faults_bit: tuple[bool, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    source_digest: str = ""
    trial_digest: str = ""
    commit: str = ""
    silent: bool = False
    twin_of: str = ""
    stored: str = ""
    making_digest: str = ""
    judging_digest: str = ""
    rejudged: bool = False
    at_times: tuple[str, ...] = ()

    @property
    def made_by(self) -> str:
        """The digest of what made its history; of a row by an earlier version that of the whole harness."""
        return self.making_digest or self.source_digest

    @property
    def answered(self) -> bool:
        """Whether the verdict is an answer: an unknown is none, unless it is the right one."""
        return self.verdict in ("pass", "fail") or self.as_expected

    @property
    def as_expected(self) -> bool:
        """Whether it shows what its consumer must: a sin its anomalies and no others, a sound one a pass."""
        if self.silent and not self.expected and self.verdict == "unknown":
            return not self.violations and for_silence_alone(self.reasons)
        right = set(self.expected) <= set(self.violations) <= {*self.expected, *self.at_times}
        return right and self.verdict == ("fail" if self.expected else "pass")


def grid(*, times: int, only: Sequence[str] | None = None, suites: Sequence[str] | None = None) -> Iterator[Attempt]:
    """Yields every attempt, or those with `only` these consumers and on these `suites`; see `_whole_grid`.

    Raises:
        InputError: `only` names a consumer that does not exist, `suites` a scenario.
    """
    for suite in suites or ():
        registry.find_scenario(suite)
    yield from (one for one in _whole_grid(times=times, only=only) if suites is None or one.scenario in suites)


def _whole_grid(*, times: int, only: Sequence[str] | None) -> Iterator[Attempt]:
    """Yields every attempt: references on every scenario that can be played with them; each sin, on and off, and
    each twin, on its header's suite; some sins on a further suite; a sin that an instant finds by luck at the cut of
    its anomaly besides.

    A reference that says nothing goes through a few scenarios only.

    Raises:
        InputError: `only` names a consumer that does not exist.
    """
    names = registry.consumers()
    for name in only or ():
        if name not in names:
            raise InputError("--only", unknown_name("consumer", name, names))
    for seed in range(1, times + 1):
        for name in only or names:
            header = header_of(name)
            if suites := registry.unusual_suites(name):
                yield from (Attempt(name, suite, seed=seed) for suite in suites)
            elif header is None:
                served = suites_that_apply(name)
                scenarios = [one for one in SILENT_SCENARIOS if one in served] if registry.is_silent(name) else served
                yield from (Attempt(name, scenario, seed=seed) for scenario in scenarios)
            elif header.sound:
                yield Attempt(name, header.suite, seed=seed)
            else:
                for scenario in (header.suite, *_further_suites(name), *_chosen_cut(name)[1:]):
                    yield from (Attempt(name, scenario, seed=seed, sin=sin) for sin in (True, False))


def suites_that_apply(consumer: str) -> list[str]:
    """Returns the suites that can be played with a consumer: with its sink, and with what it is ready for."""
    spec = spec_from_toml(registry.find_consumer(consumer))
    return [
        name for name, scenario in registry.scenarios().items() if scenario_consumer_problem(spec, scenario) is None
    ]


def shuffled(attempts: Iterable[Attempt], *, seed: int) -> list[Attempt]:
    """Returns the attempts in an order drawn from a seed: as many of them as there is time for are a fair sample."""
    order = list(attempts)
    random.Random(seed).shuffle(order)
    return order


def ask(attempt: Attempt, folder: Path) -> TrialRequest:
    """Returns the trial to ask for, its run folder inside `folder`.

    A sin is switched off in a folder that is made of it; nothing else is touched.
    """
    consumer = registry.find_consumer(attempt.consumer)
    if attempt.sin is False:
        consumer = build_consumer_folder(consumer, folder)
        text = consumer.read_text()
        if 'SIN = "1"' not in text:
            raise InputError(str(consumer), 'has no line SIN = "1" to switch the sin off')
        consumer.write_text(text.replace('SIN = "1"', 'SIN = "0"'))
    scenario = registry.find_scenario(attempt.scenario)
    trial_spec = make_trial_spec(scenario, consumer, kafka_version=attempt.kafka_version, seed=attempt.seed)
    return TrialRequest(trial_spec, folder / "run")


def expected_of(attempt: Attempt) -> tuple[str, ...]:
    """Returns the anomalies that an attempt must show: where the sin is on, those of its header, as far as they can be
    seen by the evidence that this variant of the consumer gives; on a further suite those of that one; at a cut the one
    for which it is chosen; else none."""
    if not attempt.sin:
        return ()
    further = further_suite(attempt.consumer)
    if further is not None and attempt.scenario == further.suite:
        return _shown(attempt.consumer, further.must)
    anomaly, cut = _chosen_cut(attempt.consumer) or ("", "")
    return (anomaly,) if attempt.scenario == cut else _promised(attempt.consumer)


def at_times_of(attempt: Attempt) -> tuple[str, ...]:
    """Returns the anomalies that an attempt may show besides, by its header; at a cut all others of it, on a further
    suite those of that one."""
    header, further = header_of(attempt.consumer), further_suite(attempt.consumer)
    if header is None or not attempt.sin:
        return ()
    if further is not None and attempt.scenario == further.suite:
        return _shown(attempt.consumer, further.may)
    must = expected_of(attempt)
    return tuple(name for name in (*_promised(attempt.consumer), *header.at_times) if name not in must)


def _promised(consumer: str) -> tuple[str, ...]:
    """Returns the anomalies of a fixture's header that can be seen by the evidence of this variant."""
    header = header_of(consumer)
    return () if header is None else shown_at(_levels(consumer), header)


def _shown(consumer: str, anomalies: tuple[str, ...]) -> tuple[str, ...]:
    """Returns those of some anomalies that can be seen by the evidence of this variant."""
    return shown_at(_levels(consumer), FixtureHeader("", "", anomalies))


def _levels(consumer: str) -> tuple[str, ...]:
    return levels_of(spec_from_toml(registry.find_consumer(consumer)).evidence)


def _further_suites(consumer: str) -> tuple[str, ...]:
    further = further_suite(consumer)
    return () if further is None else (further.suite,)


def _chosen_cut(consumer: str) -> tuple[str, ...]:
    """Returns the anomaly and the cut that is chosen for it; empty where there is none."""
    return chosen_cut(consumer, _promised(consumer)) or ()


def newest(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of what was calibrated last: what has made their histories, consumer and scenario included, is
    the newest there is; where one was judged again, that row stands for it."""
    same = [row for row in rows if row.made_by == rows[-1].made_by]
    last = {(row.attempt.consumer, row.attempt.scenario): row.trial_digest for row in same}
    standing: dict[tuple[Attempt, int], Row] = {}
    for number, row in enumerate(same):
        if row.trial_digest == last[row.attempt.consumer, row.attempt.scenario]:
            at = next((key for key in reversed(standing) if key[0] == row.attempt), None) if row.rejudged else None
            standing[at or (row.attempt, number)] = row
    return list(standing.values())


def set_aside(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of the newest harness that do not count: their consumer or scenario was changed since."""
    same = [row for row in rows if row.made_by == rows[-1].made_by]
    last = {(row.attempt.consumer, row.attempt.scenario): row.trial_digest for row in same}
    return [row for row in same if row.trial_digest != last[row.attempt.consumer, row.attempt.scenario]]


def read_rows(path: Path) -> list[Row]:
    """Returns every row of a rows file, oldest first; none when there is no file. A torn last line is left out.

    Raises:
        InputError: a line is no row.
    """
    return rows_in(path, _row)


def header_of(consumer: str) -> FixtureHeader | None:
    """Returns what a fixture's header promises; None for a reference."""
    file = registry.find_consumer(consumer)
    return fixture_header(file.parent) if set(registry.zoo_folders()) & set(file.parents) else None


def _row(table: dict[str, Any]) -> Row:
    digests = {name: table.get(name, "") for name in ("making_digest", "trial_digest")}
    table |= {name: SAME.get(digest, digest) for name, digest in digests.items()}
    table |= {"at_times": (), **table}  # rows of earlier versions promise nothing besides
    lists = {name: tuple(table[name]) for name in ("expected", "violations", "reasons", "faults_bit", "at_times")}
    return Row(**(table | lists | {"attempt": Attempt(**table["attempt"])}))
