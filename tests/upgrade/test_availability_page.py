"""What a stage cost in availability on the page of an upgrade: lines over time, lag, and a table for each stage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browser import Tab, axe_source, browser
from kafka_trial.history.output_names import UPGRADE_PAGE
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import create_run_folder
from kafka_trial.upgrade.availability import GroupAvailability, PartitionAvailability
from kafka_trial.upgrade.record import UpgradeRecord
from kafka_trial.upgrade.record_page import FOLDED_FROM, lag_of, page_of_upgrade, write_upgrade
from literal_run import NASTY
from upgrade_records import ALL_GO, COST, STAGES, WITH_COST

LAG = {"orders": (((0.0, 0), (60.0, 120), (180.0, 2)), ((0.0, 0), (60.0, 100), (180.0, 0)))}
SECOND = 10**9


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Returns a page of a browser that all tests of this file use."""
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def seen(record: UpgradeRecord) -> str:
    """Returns what a reader of the page sees, without markup, in one line."""
    body = page_of_upgrade(record, LAG).partition("<body>")[2]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


def labels(record: UpgradeRecord) -> list[str]:
    """Returns what a screen reader says of each picture below the versions."""
    page = page_of_upgrade(record, LAG).partition('class="availability"')[2]
    return [unescape(label) for label in re.findall(r'role="img" aria-label="([^"]*)"', page)]


def test_a_group_and_each_partition_have_a_line() -> None:
    """With when each was unavailable; where nothing is recorded it says so, and the lag has its peak."""
    assert labels(WITH_COST) == [
        "group: unavailable, 66.0 to 74.6 s",
        "partition 0: unavailable, 65.2 to 73.9 s; unavailable, 80.0 to 81.5 s",
        "partition 1: unavailable, 66.0 to 71.2 s",
        "partition 2: not recorded",
        "lag of orders over time, at most 120 records",
    ]
    calm = replace(COST, group=GroupAvailability("g", 0.3), partitions=[PartitionAvailability(0, unavailable_s=0.2)])
    told = labels(replace(ALL_GO, stages=[STAGES[0], replace(STAGES[1], availability=[calm]), STAGES[2]]))
    assert told[:2] == ["group: never unavailable for 1 s", "partition 0: never unavailable for 1 s"]


def test_each_stage_has_its_figures() -> None:
    """Those of a stage without any are not recorded."""
    page = seen(WITH_COST)
    row = (
        "orders 8.6 s (answers are 0.3 s apart) 0.0 s b0, then b2 b2 took 3.28 s 8.7 s, partition 0, of 1 not recorded"
    )
    assert row in page
    assert "asked for leader and coordinator at least every 3.3 s" in page
    assert page.count("What it cost in availability is not recorded.") == 2
    assert "partition 2: not recorded" in page
    assert "Availability over time" not in seen(ALL_GO)


def test_many_partitions_are_folded() -> None:
    """Their group stays in sight."""
    many = replace(COST, partitions=[PartitionAvailability(number) for number in range(FOLDED_FROM)])
    record = replace(ALL_GO, stages=[replace(STAGES[0], availability=[many]), *STAGES[1:]])
    assert f"<summary>{FOLDED_FROM} partitions</summary>" in page_of_upgrade(record)
    assert "partitions</summary>" not in page_of_upgrade(WITH_COST)


def test_the_lag_is_that_of_the_last_run_folder(tmp_path: Path) -> None:
    """Of each consumer that has one, over the seconds since the rehearsal began."""
    for stage, last in (("before", 9), ("rolled", 5)):
        folder = create_run_folder(tmp_path / "stages" / stage / "orders", stage, "orders")
        with Recorder(folder.history, "run") as run:
            run.record("phase", time_ns=100 * SECOND, phase="prepare")
        rows = [
            {"topic": "t", "partition": 0, "time_ns": (100 + at) * SECOND, "committed_lag": lag, "handled_lag": lag}
            for at, lag in ((1, 7), (2, last))
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder.path / "series.parquet")
    points = ((1.0, 7), (2.0, 5))
    assert lag_of(ALL_GO, tmp_path) == {"orders": (points, points), "billing": ((), ())}
    assert lag_of(replace(ALL_GO, outcomes=[]), tmp_path) == {}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light")])
def test_the_lines_are_plain_in_a_browser(tab: Tab, tmp_path: Path, width: int, scheme: str) -> None:
    """Nothing sideways, nothing that axe finds, lines under those of the versions; names are text."""
    tab.media(prefers_color_scheme=scheme)
    name = "</script><img src=x onerror=alert(1)>" + NASTY
    many = [replace(COST.partitions[0], partition=number) for number in range(FOLDED_FROM)]
    cost = replace(COST, consumer=name, partitions=many)
    consumers = [replace(ALL_GO.consumers[0], name=name)]
    write_upgrade(
        replace(WITH_COST, consumers=consumers, stages=[STAGES[0], replace(STAGES[1], availability=[cost])]), tmp_path
    )
    tab.open(tmp_path / UPGRADE_PAGE, width=width)
    tab.js("document.querySelectorAll('details').forEach(one => { one.open = true; }); 0")
    assert (tab.complaints(), tab.js("document.querySelectorAll('img, script').length")) == ([], 0)
    inner, wide = tab.js("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
    lefts = tab.js(
        "[...new Set([...document.querySelectorAll('.line svg')].map(one => one.getBoundingClientRect().left))]"
    )
    tab.js(axe_source() + "; 0")
    found = tab.js("axe.run().then(found => found.violations.map(one => [one.id, one.nodes.map(node => node.html)]))")
    assert (wide <= inner, len(lefts), found) == (True, 1, [])
