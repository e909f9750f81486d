"""Trials as a summary in Markdown, and its place: the file that GITHUB_STEP_SUMMARY names, which a CI job shows.

What a consumer wrote stays text: every character that Markdown or HTML could take for markup is written as a numeric
entity, and a line is bounded before. GitHub refuses a step's summary of more than 1 MiB; this one is far below.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from kafka_trial.cluster.versions import oldest_first
from kafka_trial.comparison.summary import Part
from kafka_trial.report.certificate import Cell, Certificate, not_judged_by_reason
from kafka_trial.report.event_text import bounded
from kafka_trial.report.trial_result import TrialResult, certificate_results

SUMMARY_FILE = "GITHUB_STEP_SUMMARY"
SUMMARY_MAX_BYTES = 64 * 1024
LISTED_MAX = 20  # trials, and reasons why something was not judged
FINDINGS_MAX = 5  # of a trial
TEXT_MAX = 400
NOT_TRIED = "not tried"
MARKUP = re.compile(r"[!-'*+.:-@\[-`{-~]")  # ASCII's punctuation but for ( ) , - /

Row = TypeVar("Row")


def certificate_summary(certificate: Certificate, folder: Path, *, page: str) -> str:
    """Returns the summary of a certificate; `page` is the name of its page in `folder`."""
    results = list(certificate_results(certificate, folder).values())
    name = bounded(certificate.consumer["name"])
    not_tried = [(name, cell) for cell in certificate.missing]
    differs = list(chain.from_iterable(map(_part, certificate.differs)))
    return summary(
        results, not_tried=not_tried, page=str(folder / page), suites=certificate.suites_tried, differs=differs
    )


def _part(part: Part) -> Iterator[str]:
    """Yields what differs between two sides, under its title."""
    yield from ("", f"### {text(part.title)}", "")
    yield from (f"- {text(line)}" for line in part.lines[:LISTED_MAX])
    yield from (f"- and {len(part.lines) - LISTED_MAX} more" for _ in part.lines[LISTED_MAX : LISTED_MAX + 1])


def summary(
    results: Sequence[TrialResult],
    *,
    not_tried: Sequence[tuple[str, Cell]] = (),
    page: str = "",
    suites: str = "",
    differs: Sequence[str] = (),
) -> str:
    """Returns a summary of trials: the verdict of all, suites by versions, why it is no pass, what was not judged.

    `not_tried`: those that are missing, each with its consumer. `page`: where their reports are. `suites`: how many of
    all suites were tried, in words. `differs`: lines on what differs between versions, or from a baseline.
    """
    words = Counter([*(one.verdict for one in results), *([NOT_TRIED] * len(not_tried))])
    verdict = next(word for word in ("fail", "unknown", NOT_TRIED, "pass") if word in words)
    told = ", ".join(f"{count} {text(word)}" for word, count in words.items())
    lines = [
        f"## Kafka Trial: {'UNKNOWN' if verdict == NOT_TRIED else verdict.upper()}",
        "",
        f"{f'{suites}, ' if suites else ''}{words.total()} trial{'s' * (words.total() > 1)}: {told}",
    ]
    lines += ["", f"Reports: {text(page, most=len(page))}"] if page else []
    lines += differs
    lines += _tables(results, not_tried)
    worst_first = sorted(results, key=lambda one: one.severity)
    for word, title in (("fail", "Violations"), ("unknown", "Why unknown")):
        lines += section(title, [one for one in worst_first if one.verdict == word], _findings)
    lines += section("Tried again", [one for one in worst_first if one.earlier], _earlier)
    lines += section("Not judged", not_judged_by_reason(row for one in results for row in one.not_judged), _not_judged)
    return cut(lines)


def text(stranger: object, *, most: int = TEXT_MAX) -> str:
    """Returns a stranger's text for a place inside a line of Markdown, where it is nothing but text."""
    return MARKUP.sub(lambda found: f"&#{ord(found[0])};", bounded(stranger, most=most))


def append_summary(content: str) -> str:
    """Appends to the file that the environment names, where it names one; says what went wrong, else nothing."""
    place = os.environ.get(SUMMARY_FILE)
    if not place:
        return ""
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"\n{content}")
    except OSError as error:
        return f"no summary was written, {SUMMARY_FILE} is {place}: {error.strerror}"
    return ""


def _tables(results: Sequence[TrialResult], not_tried: Sequence[tuple[str, Cell]]) -> Iterator[str]:
    """Yields a table for each consumer: its suites by Kafka versions, each field with the verdicts of all seeds."""
    fields: dict[str, dict[tuple[str, str], list[str]]] = {}
    for one in results:
        fields.setdefault(one.consumer, {}).setdefault((one.scenario, one.kafka), []).append(one.verdict)
    for consumer, (scenario, kafka, _) in not_tried:
        fields.setdefault(consumer, {}).setdefault((scenario, kafka), []).append(NOT_TRIED)
    for consumer, of_consumer in fields.items():
        versions = oldest_first({kafka for _, kafka in of_consumer})
        yield from ("", f"| {text(consumer)} |{''.join(f' {text(version)} |' for version in versions)}")
        yield f"| --- |{' --- |' * len(versions)}"
        for scenario in dict.fromkeys(scenario for scenario, _ in of_consumer):
            verdicts = (_verdicts(of_consumer.get((scenario, version), ())) for version in versions)
            yield f"| {text(scenario)} |{''.join(f' {told} |' for told in verdicts)}"


def _verdicts(words: Sequence[str]) -> str:
    counts = Counter(words)
    return ", ".join(f"{text(word)} × {count}" if len(words) > 1 else text(word) for word, count in counts.items())


def _findings(result: TrialResult) -> Iterator[str]:
    findings = result.findings or [result.headline]
    yield f"- {_who(result)}: {text(findings[0])}"
    yield from (f"  - also {text(finding)}" for finding in findings[1:FINDINGS_MAX])
    if findings[FINDINGS_MAX:]:
        yield f"  - and {len(findings) - FINDINGS_MAX} more"
    yield f"  - replay: {text(result.replay, most=len(result.replay))}"
    yield f"  - report: {text(result.report, most=len(result.report))}"


def _who(result: TrialResult) -> str:
    return f"{text(result.consumer)} on {text(result.scenario)}, Kafka {text(result.kafka)}, seed {text(result.seed)}"


def _earlier(result: TrialResult) -> Iterator[str]:
    yield f"- {_who(result)}: {text(result.verdict)} in {len(result.earlier) + 1} tries; the machine made unknown:"
    yield from (f"  - {text(one, most=len(one))}" for one in result.earlier)


def _not_judged(row: tuple[str, list[str]]) -> Iterator[str]:
    because, anomalies = row
    yield f"- {text(because)}: {', '.join(map(text, anomalies))}"


def section(title: str, rows: Sequence[Row], tell: Callable[[Row], Iterator[str]]) -> list[str]:
    """Returns the lines of the first rows, under a title, and how many there are more; nothing without rows."""
    more = [f"- and {len(rows) - LISTED_MAX} more"] if rows[LISTED_MAX:] else []
    return ["", f"### {title}", "", *chain.from_iterable(map(tell, rows[:LISTED_MAX])), *more] if rows else []


def cut(lines: Iterable[str]) -> str:
    """Returns the lines that fit, each whole."""
    kept: list[str] = []
    size_bytes = 0
    for line in lines:
        size_bytes += len(line.encode()) + 1
        if size_bytes > SUMMARY_MAX_BYTES:
            return "\n".join([*kept, "", "The rest is left out: it is too long.", ""])
        kept.append(line)
    return "\n".join([*kept, ""])
