"""Brokers that a stage changed, and nobody read from since: from literal histories of a stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.upgrade.unfetched_brokers import followers_that_serve, unfetched_brokers, unfetched_in_words

S = 1_000_000_000
WALL_S = 1_800_000_000  # at second 1 of the monotonic clock
Told = tuple[str, float, dict[str, Any]]


def history(place: Path, *changes: Told, **logs: tuple[Told, ...]) -> RunFolder:
    """Writes the changes of brokers, the requests that each broker saw, and a member m0 on lane 7."""
    folder = create_run_folder(place / "run", "stage", "orders")
    start = {"member": "m0", "incarnation": 0, "pid": 1, "lane": 7}
    for source, events in [
        ("nemesis", changes),
        ("run", (("clock", 1, {"wall_ns": WALL_S * S}),)),
        ("consumer-m0-0", (("started", 1, start),)),
        *((f"requests-{name}", events) for name, events in logs.items()),
    ]:
        with Recorder(folder.history, source) as recorder:
            for kind, at_s, fields in events:
                recorder.record(kind, time_ns=int(at_s * S), **fields)
    return folder


def rolled(at_s: float, *nodes: int, version: str = "4.3.1") -> Told:
    turns = [{"broker": node, "version": version} for node in nodes]
    return "evidence", at_s, {"fault_no": 0, "fault": "version-roll", "bit": True, "details": {"brokers": turns}}


def replaced(at_s: float, old: int, new: int) -> Told:
    turns = [{"broker": old, "by": new, "version": "4.3.1"}]
    return "evidence", at_s, {"fault_no": 0, "fault": "broker-replace", "bit": True, "details": {"brokers": turns}}


def got(at_s: float, *, size_bytes: int = 100, lane: int = 7, api: str = "FETCH", partition: int = 0) -> Told:
    entries = [{"topic": "orders", "partition": partition, "offset": 5, "size_bytes": size_bytes, "error": 0}]
    return "request", at_s, {"api": api, "lane": lane, "entries": entries}


def read_late(told: Told, *, answered_s: float) -> Told:
    """Returns a request that the broker wrote down earlier than its witness read it."""
    kind, at_s, fields = told
    return kind, at_s, fields | {"source_wall_ns": int((WALL_S - 1 + answered_s) * S)}


@pytest.mark.parametrize(
    ("b0", "unfetched"),
    [
        ((got(45),), []),
        ((), ["b0"]),
        ((got(39),), ["b0"]),  # before it was as it is
        ((read_late(got(45), answered_s=39),), ["b0"]),
        ((read_late(got(45), answered_s=41),), []),
        ((got(45, size_bytes=0),), ["b0"]),  # it was asked, and gave nothing
        ((got(45, lane=8),), ["b0"]),  # to the observer, or to another group's member
        ((got(45, api="OFFSET_COMMIT"),), ["b0"]),
    ],
)
def test_a_broker_is_tried_by_who_got_a_record_of_it_since(
    tmp_path: Path, b0: tuple[Told, ...], unfetched: list[str]
) -> None:
    """The other brokers gave records all the time; who is as it was need not."""
    place = history(tmp_path, rolled(40, 0), b0=b0, b1=(got(45),))
    assert unfetched_brokers(place, begins_ns=30 * S) == unfetched


def test_what_an_earlier_stage_changed_is_its_own(tmp_path: Path) -> None:
    """Each stage answers for its brokers; the last change counts where there are two."""
    place = history(tmp_path, rolled(20, 1), rolled(40, 0), rolled(50, 0), b0=(got(45),))
    assert unfetched_brokers(place, begins_ns=30 * S) == ["b0"]
    assert unfetched_brokers(place, begins_ns=60 * S) == []


def test_nobody_reads_from_controllers_nor_from_who_is_gone(tmp_path: Path) -> None:
    """A broker that was replaced need give nothing, the one in its place must."""
    place = history(tmp_path, rolled(35, 0), replaced(40, 0, 3), rolled(45, 1000))
    assert unfetched_brokers(place, begins_ns=30 * S) == ["b3"]


def test_it_is_said_which_and_of_which_version(tmp_path: Path) -> None:
    """What a reader of the page needs to know."""
    place = history(tmp_path, rolled(40, 0, 1), b1=(got(45),))
    said = "no member was seen to get a record from b0 (4.3.1 now): the stage does not show that it can"
    assert unfetched_in_words(place, begins_ns=30 * S) == said
    assert unfetched_in_words(place, begins_ns=41 * S) == ""


@pytest.mark.parametrize(
    ("b1", "serving"),
    [
        ((got(45),), [1]),
        ((got(39),), []),  # it led then
        ((read_late(got(45), answered_s=39),), []),
        ((got(45, partition=1),), []),  # which it leads itself
        ((got(45, size_bytes=0),), []),
        ((got(45, lane=8),), []),
        ((), []),  # nobody gives it anything
    ],
)
def test_who_gets_records_from_a_follower_is_told_from_who_gets_none(
    tmp_path: Path, b1: tuple[Told, ...], serving: list[int]
) -> None:
    """b0 has led partition 0 again since second 40, and b1 goes on to answer for it."""
    place = history(tmp_path, rolled(35, 0), b1=b1, b2=(got(45, partition=2),))
    assert followers_that_serve(place, {0: 0, 1: 1, 2: 2}, ["b0"], since_ns=40 * S) == serving


def test_a_line_that_is_being_written_tells_nothing_yet(tmp_path: Path) -> None:
    """The trial goes on while it is looked at."""
    place = history(tmp_path, rolled(40, 0), b0=(got(45),))
    for name in ("requests-b0", "nemesis"):
        with (place.history / f"{name}.jsonl").open("ab") as file:
            file.write(b'{"kind":"evidence","api":"FETCH","time')
    assert unfetched_brokers(place, begins_ns=30 * S) == []
