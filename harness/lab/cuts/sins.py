"""What a cut finds every time, and an instant by luck or never: sins of the zoo, counted at their cuts and elsewhere.

Trials at cuts are rows of the calibration. Sins whose own suite is a cut, and those that few suites find, also run on
every other suite; the rows go to instants.jsonl, for no anomaly is promised there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kafka_trial import registry
from kafka_trial.cluster.wiring import LANES
from kafka_trial.nemesis.cut_scenarios import PREFIX
from kafka_trial.report.row_files import append_row
from kafka_trial.trial.console import Console
from kafka_trial.trial.session import Session
from lab.calibration.attempts import NOT_BEGUN, Attempt, Row, grid, header_of, read_rows, suites_that_apply
from lab.calibration.campaign import LANES_EACH, request_of, row_of, trial_digest
from lab.calibration.chosen_cuts import SINS_FOUND_BY_FEW_SUITES
from lab.calibration.source_digests import making_digest
from lab.repository import reports_folder

INSTANTS_NAME = "instants.jsonl"
SEED = 1


def sins_on_suites() -> list[Attempt]:
    """Returns the attempts: each sin that tells what it does, and whose own suite is a cut or that few suites find, on
    every other suite that its sink can serve."""
    return [
        Attempt(name, suite, seed=SEED, sin=True)
        for name in registry.consumers()
        if (header := header_of(name)) and not header.sound and registry.find_consumer(name).name == "consumer.toml"
        for suite in suites_that_apply(name)
        if suite != header.suite and (_is_cut(header.suite) or name in SINS_FOUND_BY_FEW_SUITES)
    ]


def try_suites(*, until_s: float | None, side_by_side: int | None, say: Callable[[str], object]) -> None:
    """Tries what is missing of these sins on every suite, and appends the rows."""
    file = reports_folder() / INSTANTS_NAME
    done = {(row.attempt, row.trial_digest) for row in read_rows(file) if row.making_digest == making_digest()}
    todo = [attempt for attempt in sins_on_suites() if (attempt, trial_digest(attempt)) not in done]
    if not todo:
        return
    asked = {request_of(attempt): attempt for attempt in todo}
    with Session(console=Console(quiet=True), lanes=max(LANES, LANES_EACH * (side_by_side or 1))) as session:
        tried = session.try_many(list(asked), side_by_side=side_by_side, until_s=until_s, retry_unknown=1)
        for ended, (one, outcome) in enumerate(tried, start=1):
            row = row_of(asked[one], outcome)
            if row.verdict != NOT_BEGUN:
                append_row(file, row)
            say(f"{ended}/{len(todo)} {asked[one]}: {', '.join([row.verdict, *row.violations])}")


def sins_section(calibrated: Sequence[Row], on_suites: Sequence[Row]) -> list[str]:
    """Returns the part of the page on these sins, as far as they are tried today: k of n trials in which each was
    found."""
    asked = {(one.consumer, one.scenario) for one in grid(times=1) if one.sin and _is_cut(one.scenario)}
    sinning = [row for row in calibrated if row.attempt.sin and row.verdict in ("pass", "fail")]
    at_cuts = [row for row in sinning if (row.attempt.consumer, row.attempt.scenario) in asked]
    names = sorted({(row.attempt.consumer, row.attempt.scenario) for row in at_cuts})
    if not names:
        return []
    elsewhere = [row for row in sinning if not _is_cut(row.attempt.scenario)]
    last = {row.attempt: row for row in on_suites if row.verdict in ("pass", "fail")}
    elsewhere += [replace(row, expected=()) for row in last.values()]
    lines = [
        "## Sins that an instant finds by luck, or never",
        "",
        "Found in k of n trials. At its cut: of calibration.jsonl, by the newest consumer. At instants: all trials",
        "that there were of the suite in its header; where that is a cut, or few suites find it, one of each other",
        "suite too (instants.jsonl).",
        "",
        "| sin | cut | found there | at instants |",
        "| --- | --- | --- | --- |",
    ]
    for consumer, cut in names:
        there = _newest(row for row in at_cuts if (row.attempt.consumer, row.attempt.scenario) == (consumer, cut))
        at_instants = [row for row in elsewhere if row.attempt.consumer == consumer]
        lines.append(f"| {consumer} | {cut} | {_found(there)} | {_found(at_instants) if at_instants else '-'} |")
    return [*lines, ""]


def _is_cut(scenario: str) -> bool:
    return scenario.startswith(f"{PREFIX}-")


def _newest(rows: Iterable[Row]) -> list[Row]:
    rows = list(rows)
    return [row for row in rows if (row.made_by, row.trial_digest) == (rows[-1].made_by, rows[-1].trial_digest)]


def _found(rows: Sequence[Row]) -> str:
    """Returns in how many of the rows the sin was found, by all that it must show there."""
    found = [row for row in rows if row.verdict == "fail" and set(row.expected) <= set(row.violations)]
    return f"{len(found)} of {len(rows)}"
