"""The record of an upgrade on a terminal, in a JUnit file and in a job summary."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafka_trial.history.output_names import JUNIT
from kafka_trial.upgrade.record import RecordedPath, UpgradeRecord
from kafka_trial.upgrade.record_results import upgrade_summary, upgrade_text, write_upgrade_junit
from staged_trial import HOSTILE
from upgrade_records import (
    ALL_GO,
    CHANGED,
    CONVICTED,
    ENDED_EARLY,
    NO_GO_RECORD,
    ORDERS,
    SKIPPED,
    TOO_OLD,
    WITH_CLIENTS,
    go,
    with_outcome,
)

REFUSED = replace(ENDED_EARLY, path=RecordedPath(["avoid"], "", ["4.2.0 is to be avoided (avoid)"]))


def test_a_terminal_shows_stages_by_subjects_and_why() -> None:
    """First what came of it; last what it says nothing of."""
    assert upgrade_text(NO_GO_RECORD).splitlines() == [
        "NO-GO: Kafka 3.9.2 to 4.3.1, in place, 2 consumers, 3 of 3 stages played: 8 go, 1 no-go",
        "path: allowed by 2 rules",
        "Reversible until metadata.version 4.0-IV1 or higher is finalised.",
        "",
        "         the cluster  orders   billing",
        "before   go           go       go",
        "mixed-1  go           NO-GO    go",
        "rolled   go           go       go",
        "",
        "why:",
        f"  mixed-1, orders: no-go; accused: the consumer; {SKIPPED}",
        "",
        "change before the upgrade:",
        "  orders: commit only what has been handled (skipped)",
        "",
        "not tried:",
        "  finalised: this rehearsal finalises no feature",
        "  Other clients, settings, loads and sizes than these were not tried.",
    ]


@pytest.mark.parametrize("record", [replace(ALL_GO, not_tried=[]), replace(ENDED_EARLY, not_tried=[])])
def test_what_was_not_tried_is_never_nothing(record: UpgradeRecord, tmp_path: Path) -> None:
    """Though every stage was played; a stage that was not is named, here and in the summary."""
    for told in (upgrade_text(record), unescape(upgrade_summary(record, tmp_path))):
        assert "Other clients, settings, loads and sizes than these were not tried." in told
        assert ("rolled: it was not played to its end" in told) == bool(record.missing)
        assert "nothing" not in told


def test_clients_are_told_with_what_they_send(tmp_path: Path) -> None:
    """By consumer and library, with the members; then what changes for a consumer."""
    lines = upgrade_text(WITH_CLIENTS).splitlines()
    begin = lines.index("clients, as brokers saw them:")
    assert lines[begin + 1 : begin + 5] == [
        "  orders: sarama 1.38.1 in m0, m1",
        f"    rejected: {TOO_OLD.told[0].sentence}",
        "  billing: a library that does not name itself in m0",
        f"  changes for orders: {CHANGED}",
    ]
    assert "### Clients, as brokers saw them" in upgrade_summary(WITH_CLIENTS, tmp_path)


def test_a_path_that_is_refused_is_told_first(tmp_path: Path) -> None:
    """By its rule."""
    assert upgrade_text(REFUSED).splitlines()[:3] == [
        f"NO-GO: {REFUSED.in_words}",
        "path: refused by 1 rule",
        "  4.2.0 is to be avoided (avoid)",
    ]
    assert "### The path is refused\n\n- 4.2.0 is to be avoided (avoid)" in unescape(upgrade_summary(REFUSED, tmp_path))


def cases(record: UpgradeRecord, folder: Path) -> dict[tuple[str, str], list[tuple[str, str | None]]]:
    write_upgrade_junit(record, folder)
    found = ElementTree.parse(folder / JUNIT).getroot().iter("testcase")
    return {
        (str(case.get("classname")), str(case.get("name"))): [
            (part.tag, part.get("message")) for part in case if part.tag != "properties"
        ]
        for case in found
    }


def test_a_junit_file_has_a_case_for_each_stage_and_subject(tmp_path: Path) -> None:
    """A no-go is a failure; a stage that was not played an error, and never skipped, which a CI would pass."""
    told = cases(with_outcome(ENDED_EARLY, CONVICTED), tmp_path)
    assert list(told)[:3] == [("the cluster", "before"), ("the cluster", "mixed-1"), ("the cluster", "rolled")]
    assert (len(told), told["billing", "before"]) == (9, [])
    assert told["orders", "mixed-1"] == [("failure", f"NO-GO: accused: the consumer; {SKIPPED}")]
    assert [told[who, "rolled"] for who in ("the cluster", "orders", "billing")] == [
        [("error", "UNKNOWN: not played")]
    ] * 3
    root = ElementTree.parse(tmp_path / JUNIT).getroot()
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["9", "1", "3", "0"]
    (why,) = root.iter("failure")
    assert str(why.text).endswith(f"report: {tmp_path}/stages/mixed-1/orders/report.html")


def test_a_summary_is_markdown_of_the_same(tmp_path: Path) -> None:
    """Outcome, table, why, what to change, what was not tried, and where the page is."""
    told = unescape(upgrade_summary(NO_GO_RECORD, tmp_path))
    assert told.startswith(f"## Kafka Trial, upgrade: NO-GO\n\n{NO_GO_RECORD.in_words}\n")
    assert "| stage | the cluster | orders | billing |\n| --- | --- | --- | --- |\n" in told
    assert "| mixed-1 | go | NO-GO | go |" in told
    assert f"Page: {tmp_path}/index.html" in told
    heads = [line for line in told.splitlines() if line.startswith("### ")]
    assert heads == ["### Why", "### Change before the upgrade", "### Not tried"]


def test_whatever_a_consumer_wrote_stays_text(tmp_path: Path) -> None:
    """Well-formed XML, one line each on a terminal, no markup in Markdown."""
    everything = HOSTILE + "".join(map(chr, range(0x20))) + "\ufffe\uffff\x85\ud800"
    stranger = replace(ORDERS, name=everything)
    convicted = go("mixed-1", everything, outcome="no-go", accused="consumer", reason=everything)
    record = replace(ALL_GO, consumers=[stranger], outcomes=[convicted])
    assert [tags[0][0] for tags in cases(record, tmp_path).values()].count("failure") == 1
    assert all(line.isprintable() for line in upgrade_text(record).splitlines())
    assert "<script>" not in upgrade_summary(record, tmp_path)
