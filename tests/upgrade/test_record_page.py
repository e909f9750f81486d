"""The page of an upgrade: what a change board reads, when which broker was of which version; in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from browser import Tab, axe_source, browser
from kafka_trial.history.output_names import JUNIT, UPGRADE, UPGRADE_PAGE
from kafka_trial.trial.consumer_files import counted
from kafka_trial.upgrade.record import BrokerRoll, NotTried, RecordedPath, UpgradeRecord
from kafka_trial.upgrade.record_page import bands, page_of_upgrade, write_upgrade
from literal_run import NASTY
from upgrade_records import (
    ALL_GO,
    CHANGED,
    ENDED_EARLY,
    NO_GO_RECORD,
    ORDERS,
    SKIPPED,
    STAGES,
    TOO_OLD,
    WITH_CLIENTS,
    go,
)

HOSTILE = "</script><!--<script><img src=x onerror=alert(1)>\u2028" + NASTY


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Returns a page of a browser that all tests of this file use."""
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def seen(record: UpgradeRecord) -> str:
    """Returns what a reader of the page sees, without markup, in one line."""
    body = page_of_upgrade(record).partition("<body>")[2]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


@pytest.mark.parametrize(
    "said",
    [
        "NO-GO: Kafka 3.9.2 to 4.3.1",
        "path allowed by 2 rules way back Reversible until metadata.version 4.0-IV1 or higher is finalised.",
        "when 2026-11-27 23:58 to 2026-11-28 00:01 UTC, 3 min, on builder-3",
        "stage before mixed-1 rolled the cluster go go go orders go NO-GO go billing go go go",
        f"NO-GO mixed-1, orders: accused: the consumer; {SKIPPED}",
        "What to change before the upgrade orders: commit only what has been handled (skipped)",
        "What was not tried finalised: this rehearsal finalises no feature Other clients, settings",
        "2. mixed-1 1 of 3 brokers are 4.3.1. It took 60 s, from 60 s on.",
        "0 Kafka 4.3.1 65.0 s 0.8 s 4.5 s",
        "2 Kafka 4.3.1 131.0 s 3.1 s not within its time",
        "claims delivery at-least-once, order partition",
        "librdkafka 2.16.1 (orders-m0)",
        "finalised before metadata.version 21 finalised after not asked",
        "kafka-trial 0.1.0 (state h1 ), commit " + "a" * 40,
    ],
)
def test_the_page_has_what_is_decided_by(said: str) -> None:
    """Each in its words."""
    assert said in seen(NO_GO_RECORD)


def test_the_page_has_what_clients_send() -> None:
    """Each with what the brokers of either version make of it, and what changes for a consumer."""
    page = seen(WITH_CLIENTS)
    assert f"orders: sarama 1.38.1 in m0, m1 rejected {TOO_OLD.told[0].sentence}" in page
    answered = "in m0 : brokers of both versions answer all that it was seen to send"
    assert (answered in page, f"changes for orders: {CHANGED}" in page) == (True, True)
    assert "What their clients send not recorded" in seen(ALL_GO)


def test_what_was_not_tried_is_never_told_as_nothing() -> None:
    """Of a record that ended early, and of one that lacks nearly everything."""
    early = seen(replace(ENDED_EARLY, not_tried=[]))
    assert "rolled: it was not played to its end" in early
    assert "UNKNOWN: Kafka" in early
    assert "no change is recorded: the reasons stand above" in early
    bare = seen(UpgradeRecord("3.9.2", "4.3.1", 1, [], [], RecordedPath([], "")))
    assert ("nothing" in bare, "UNKNOWN: Kafka 3.9.2 to 4.3.1" in bare) == (False, True)
    assert "path not checked way back not known when not recorded" in bare


def test_a_brokers_line_has_its_versions_and_restarts() -> None:
    """In percent of the whole; one that was not back in time restarts until the end of its stage."""
    lines = {broker: [(one.kind, one.left, one.width) for one in bands(ALL_GO, broker)] for broker in (0, 2)}
    assert lines == {
        0: [("before", 0.0, 36.111), ("restart", 36.111, 2.5), ("after", 38.611, 61.389)],
        2: [("before", 0.0, 72.778), ("restart", 72.778, 21.667), ("after", 94.444, 5.556)],
    }


def test_new_brokers_have_lines_of_their_own() -> None:
    """One begins where it joins; that of the old broker ends where it is gone."""
    replaced = replace(STAGES[1], rolls=[BrokerRoll(3, "4.3.1", 60.0, 9.0, 6.0, instead_of=0)])
    record = replace(ALL_GO, stages=[STAGES[0], replaced, replace(STAGES[2], rolls=[])], shape="replaced")
    assert [one.told for one in bands(record, 0)] == ["3.9.2, 0 to 69 s"]
    assert [one.told for one in bands(record, 3)] == ["joins, and its data comes, 60 to 66 s", "4.3.1, 66 to 180 s"]
    assert "b3, in the place of b0 Kafka 4.3.1 60.0 s 9.0 s 6.0 s" in seen(record)


def test_a_line_ends_with_the_rehearsal() -> None:
    """A restart in a stage that was not played to its end lasts until then; nothing is drawn where no time is known."""
    torn = replace(ALL_GO, stages=[*STAGES[:2], replace(STAGES[2], lasted_s=None)])
    assert [one.told for one in bands(torn, 2)] == [
        "3.9.2, 0 to 131 s",
        "restarts, 131 to 180 s",
        "4.3.1, 180 to 180 s",
    ]
    assert "When the brokers were restarted is not recorded." in seen(replace(ALL_GO, lasted_s=None))


def test_what_is_written_is_no_file_of_a_consumer_beside_it(tmp_path: Path) -> None:
    """A rehearsal beside consumer.toml does not make it another consumer; a page of its own counts."""
    write_upgrade(ALL_GO, tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted((JUNIT, UPGRADE, UPGRADE_PAGE))
    assert list(counted(tmp_path, follow=True)) == []
    (tmp_path / UPGRADE_PAGE).write_text("<title>orders</title>")
    (tmp_path / UPGRADE).write_text("{}")
    assert sorted(name for name, _ in counted(tmp_path, follow=True)) == sorted((UPGRADE_PAGE, UPGRADE))


def hostile() -> UpgradeRecord:
    """Returns a record with all three outcomes, many stages and a loss; names, reasons and notes are hostile."""
    stages = [replace(stage, name=f"{stage.name}-{number}") for number in range(4) for stage in STAGES]
    outcomes = [go(stage.name, subject) for stage in stages[:-1] for subject in ("", HOSTILE)]
    convicted = go(stages[1].name, HOSTILE, outcome="no-go", accused="consumer", reason=HOSTILE, run="javascript:a#?")
    return replace(
        ALL_GO,
        consumers=[replace(ORDERS, name=HOSTILE, claim={"order": HOSTILE}, clients={HOSTILE: [HOSTILE]})],
        stages=stages,
        outcomes=[*outcomes, convicted],
        not_tried=[NotTried(HOSTILE, HOSTILE)],
        to_change=[HOSTILE],
        host=HOSTILE,
        path=RecordedPath(["avoid"], HOSTILE, notes=[HOSTILE]),
    )


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light")])
def test_the_page_is_plain_in_a_browser(tab: Tab, tmp_path: Path, width: int, scheme: str) -> None:
    """Nothing refused or loaded, nothing sideways, nothing that axe finds; what was written is text, links lead only to
    folders beside it."""
    tab.media(prefers_color_scheme=scheme)
    write_upgrade(hostile(), tmp_path)
    tab.open(tmp_path / UPGRADE_PAGE, width=width)
    assert (tab.complaints(), tab.js("document.querySelectorAll('img, script').length")) == ([], 0)
    assert "<img src=x onerror=alert(1)>" in tab.js("document.body.innerText")
    assert tab.js("[...new Set([...document.links].map(one => one.protocol))]") == ["file:"]
    inner, wide = tab.js("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
    tab.js(axe_source() + "; 0")
    found = tab.js("axe.run().then(found => found.violations.map(one => [one.id, one.nodes.map(node => node.html)]))")
    assert (wide <= inner, found) == (True, [])


def test_the_first_screen_has_all_that_is_decided_by(tab: Tab, tmp_path: Path) -> None:
    """On a common window, without scrolling: the outcome, the table, what to change and what was not tried."""
    write_upgrade(NO_GO_RECORD, tmp_path)
    tab.open(tmp_path / UPGRADE_PAGE)
    bottoms = tab.js(
        "[...document.querySelectorAll('h1, h2, table.stages')].map(one => one.getBoundingClientRect().bottom)"
    )
    heads = tab.js("[...document.querySelectorAll('h2')].map(one => one.textContent)")
    assert heads[:3] == ["What came of each stage", "What to change before the upgrade", "What was not tried"]
    assert max(bottoms[:5]) < 900


def test_the_lines_are_drawn_over_the_whole_width(tab: Tab, tmp_path: Path) -> None:
    """Each broker's from end to end, whatever the width of the window."""
    write_upgrade(ALL_GO, tmp_path)
    for width in (360, 1280):
        tab.open(tmp_path / UPGRADE_PAGE, width=width)
        drawn = tab.js(
            "[...document.querySelectorAll('.line svg')].slice(1).map(svg => [svg.getBoundingClientRect().width,"
            " [...svg.querySelectorAll('rect')].reduce((sum, one) => sum + one.getBoundingClientRect().width, 0)])"
        )
        assert len(drawn) == 3
        assert all(abs(whole - parts) < 1 and whole > 200 for whole, parts in drawn)
