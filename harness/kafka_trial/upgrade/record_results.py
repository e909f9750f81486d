"""The record of an upgrade on a terminal, as a JUnit file, and as a job summary in Markdown.

An outcome is a test case: a no-go is a failure, an unknown an error, also of a stage that was not played. Names and
reasons are strangers' and are bounded here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from kafka_trial.history.output_names import UPGRADE_PAGE
from kafka_trial.report.event_text import bounded
from kafka_trial.report.junit import write_suites
from kafka_trial.report.markdown import cut, section, text
from kafka_trial.upgrade.availability_words import long_times
from kafka_trial.upgrade.outcome import GO, NO_GO, NOT_KNOWN
from kafka_trial.upgrade.record import (
    NotTried,
    RecordedOutcome,
    UpgradeRecord,
    client_in_words,
    left_open,
    reason_in_words,
    subject_in_words,
)

LINE_MAX: Final = 1000
NAME_MAX: Final = 24  # of a consumer above its column
SHOWN: Final = {GO: "go", NO_GO: "NO-GO", NOT_KNOWN: "unknown"}
TAGS: Final = {NO_GO: "failure", NOT_KNOWN: "error"}
ONLY_THESE: Final = "Other clients, settings, loads and sizes than these were not tried."


def upgrade_text(record: UpgradeRecord) -> str:
    """Returns the record for a terminal: the outcome, stages by subjects, why, what to change, what was not tried."""
    lines = [f"{record.outcome.upper()}: {record.in_words}", f"path: {record.path_in_words}"]
    lines += [f"  {one}" for one in record.path.refusals]
    lines += [record.path.reversible_until, "", *_table(record)]
    lines += _titled("why", [f"{_place(one)}: {one.outcome}; {reason_in_words(one)}" for one in record.not_go])
    lines += _titled("clients, as brokers saw them", _of_clients(record))
    lines += _titled("change before the upgrade", record.to_change)
    lines += _titled(
        "unavailable for longer than 5 s", [f"{one.name}, {told}" for one in record.stages if (told := long_times(one))]
    )
    lines += _titled("not tried", [*_not_tried(left_open(record)), ONLY_THESE])
    return "\n".join(bounded(line, most=LINE_MAX).rstrip() for line in lines)


def _of_clients(record: UpgradeRecord) -> list[str]:
    """Returns each client, and under it what brokers make of what it sends; then what changes for each consumer."""
    lines = []
    for client in record.clients:
        lines += [client_in_words(client), *(f"  {one.weight}: {one.sentence}" for one in client.told)]
    return lines + [f"changes for {one.name}: {change}" for one in record.consumers for change in one.changes]


def _table(record: UpgradeRecord) -> Iterator[str]:
    heads = [bounded(subject_in_words(one), most=NAME_MAX) for one in record.subjects]
    widths = [max(len(head), len(SHOWN[NOT_KNOWN])) for head in heads]
    first = max((len(stage.name) for stage in record.stages), default=0)
    yield "  ".join([" " * first, *(f"{head:{width}}" for head, width in zip(heads, widths, strict=True))])
    for stage in record.stages:
        words = [SHOWN[record.outcome_of(stage, subject).outcome] for subject in record.subjects]
        cells = (f"{word:{width}}" for word, width in zip(words, widths, strict=True))
        yield "  ".join([f"{stage.name:{first}}", *cells])


def _titled(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []


def _not_tried(rows: Iterator[NotTried]) -> Iterator[str]:
    yield from (f"{one.what}: {one.because}" for one in rows)


def _place(told: RecordedOutcome) -> str:
    return f"{told.stage}, {subject_in_words(told.subject)}"


def write_upgrade_junit(record: UpgradeRecord, folder: Path) -> None:
    """Writes junit.xml: a test suite for the cluster and for each consumer, a test case for each stage."""
    root = ElementTree.Element("testsuites", name="kafka-trial")
    told = record.rows
    for subject in dict.fromkeys(one.subject for one in told):
        name = bounded(subject_in_words(subject))
        suite = ElementTree.SubElement(root, "testsuite", name=name)
        for one in (one for one in told if one.subject == subject):
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=bounded(one.stage))
            _tell(case, one, record, folder)
    write_suites(root, folder)


def _tell(case: ElementTree.Element, told: RecordedOutcome, record: UpgradeRecord, folder: Path) -> None:
    about = {"from": record.before, "to": record.after, "outcome": told.outcome, "accused": told.accused}
    about |= {"run": str(folder / told.run), "report": _report(told, folder)} if told.run else {}
    properties = ElementTree.SubElement(case, "properties")
    for name, value in about.items():
        ElementTree.SubElement(properties, "property", name=name, value=bounded(value, most=LINE_MAX))
    if told.outcome in TAGS:
        message = bounded(f"{told.outcome.upper()}: {reason_in_words(told)}", most=LINE_MAX)
        why = ElementTree.SubElement(case, TAGS[told.outcome], message=message)
        why.text = "\n".join([message, f"report: {_report(told, folder)}"] if told.run else [message])


def _report(told: RecordedOutcome, folder: Path) -> str:
    return bounded(folder / told.run / "report.html", most=LINE_MAX)


def upgrade_summary(record: UpgradeRecord, folder: Path) -> str:
    """Returns the record as a job summary in Markdown; `folder` is where it lies."""
    page = str(folder / UPGRADE_PAGE)
    lines = [f"## Kafka Trial, upgrade: {record.outcome.upper()}", "", text(record.in_words)]
    lines += ["", f"Path: {text(record.path_in_words)}. {text(record.path.reversible_until, most=LINE_MAX)}"]
    lines += ["", f"Page: {text(page, most=len(page))}", "", *_markdown_table(record)]
    lines += section("The path is refused", record.path.refusals, _item)
    lines += section("Why", record.not_go, _why)
    lines += section("Clients, as brokers saw them", _of_clients(record), _item)
    lines += section("Change before the upgrade", record.to_change, _item)
    lines += section("Not tried", [*_not_tried(left_open(record)), ONLY_THESE], _item)
    return cut(lines)


def _markdown_table(record: UpgradeRecord) -> Iterator[str]:
    heads = [text(subject_in_words(one)) for one in record.subjects]
    yield f"| stage | {' | '.join(heads)} |"
    yield f"| --- |{' --- |' * len(heads)}"
    for stage in record.stages:
        words = [text(SHOWN[record.outcome_of(stage, subject).outcome]) for subject in record.subjects]
        yield f"| {text(stage.name)} | {' | '.join(words)} |"


def _item(sentence: str) -> Iterator[str]:
    yield f"- {text(sentence, most=LINE_MAX)}"


def _why(told: RecordedOutcome) -> Iterator[str]:
    yield f"- {text(_place(told))}: {text(told.outcome)}; {text(reason_in_words(told), most=LINE_MAX)}"
