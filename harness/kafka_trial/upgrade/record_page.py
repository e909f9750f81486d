"""The page of a rehearsed upgrade, for those who decide on it, and all files that the rehearsal leaves.

First the outcome, what came of each stage, what to change and what was not tried; below it when which broker was of
which version, when groups and partitions were unavailable, their lag, and the reports of every stage. The page loads
nothing and has no script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kafka_trial.cluster.cluster import node_name
from kafka_trial.history.output_names import UPGRADE, UPGRADE_PAGE
from kafka_trial.history.store import RunFolder
from kafka_trial.report.certificate import duration_in_words
from kafka_trial.report.html import static_page
from kafka_trial.report.lag_series import HEIGHT, WIDTH, Point, path_of, read_total_lag
from kafka_trial.report.run_metadata import clients_in_words, start_ns
from kafka_trial.report.sealed_files import write_whole
from kafka_trial.upgrade.availability import Stretch
from kafka_trial.upgrade.availability_words import group_cells, nodes_in_words, partition_cells, partition_in_words
from kafka_trial.upgrade.record import (
    BrokerRoll,
    RecordedStage,
    UpgradeRecord,
    client_in_words,
    counted,
    left_open,
    reason_in_words,
    subject_in_words,
)
from kafka_trial.upgrade.record_file import write_record
from kafka_trial.upgrade.record_results import ONLY_THESE, SHOWN, write_upgrade_junit

CLASSES: Final = {"go": "pass", "no-go": "fail", "unknown": "unknown"}  # of the reports' style
RESTARTED: Final = "restarts"
JOINS: Final = "joins, and its data comes"
AWAY: Final = "unavailable"
WATCHED: Final = "looked at"
FOLDED_FROM: Final = 7  # partitions of a consumer

Lag = tuple[Sequence[Point], Sequence[Point]]  # committed and handled, over seconds since the rehearsal began


@dataclass(frozen=True)
class Band:
    """A part of a broker's line: what it was (a version, or that it restarted), and from when to when, in percent of
    the whole and in words."""

    kind: str
    left: float
    width: float
    told: str


@dataclass(frozen=True)
class AvailabilityLine:
    """A line of a group or a partition: when it was looked at, and when it was unavailable; `told`: that in words."""

    name: str
    watched: Sequence[Band]
    unavailable: Sequence[Band]
    told: str


@dataclass(frozen=True)
class ConsumerLines:
    """The lines of a consumer: of its group, of each partition, and its lag (SVG paths, and the peak of both)."""

    group: AvailabilityLine
    partitions: Sequence[AvailabilityLine]
    committed: str = ""
    handled: str = ""
    peak: int = 0


def write_upgrade(record: UpgradeRecord, out: Path) -> None:
    """Writes upgrade.json, index.html and junit.xml into a folder, each whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    write_record(record, out)
    write_whole(out / UPGRADE_PAGE, page_of_upgrade(record, lag_of(record, out)).encode())
    write_upgrade_junit(record, out)


def page_of_upgrade(record: UpgradeRecord, lag: Mapping[str, Lag] = MappingProxyType({})) -> str:
    """Returns the page of a record; `lag`: of each consumer, all its partitions together."""
    return static_page(
        "upgrade.html.j2",
        css="upgrade.css",
        record=record,
        classes=CLASSES,
        words=SHOWN,
        told=reason_in_words,
        subject=subject_in_words,
        counted=counted,
        client=client_in_words,
        duration=duration_in_words,
        not_tried=list(left_open(record)),
        only_these=ONLY_THESE,
        clients={one.name: list(_clients(one.clients)) for one in record.consumers},
        lines={node_name(broker): list(bands(record, broker)) for broker in _brokers(record)},
        marks=list(_marks(record)),
        availability={one.name: drawn for one in record.consumers if (drawn := _lines(record, one.name, lag))},
        folded_from=FOLDED_FROM,
        group_cells=group_cells,
        partition_cells=partition_cells,
        partition_in_words=partition_in_words,
        nodes_in_words=nodes_in_words,
        lag_box=(WIDTH, HEIGHT),
        versions=[record.before, record.after],
        name=UPGRADE,
    )


def _clients(clients: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield from clients_in_words({library: set(ids) for library, ids in clients.items()})


def _brokers(record: UpgradeRecord) -> list[int]:
    """Returns the ids of the brokers whose line can be drawn: none where nothing says how long it all took."""
    rolls = [roll for stage in record.stages for roll in stage.rolls]
    rolled = (broker for roll in rolls for broker in (roll.broker, roll.instead_of) if broker is not None)
    return sorted({*record.brokers, *rolled}) if record.lasted_s else []


def bands(record: UpgradeRecord, broker: int) -> Iterator[Band]:
    """Yields the line of a node: its versions, and its restarts between them. A new broker's begins where it joins, and
    an old one's ends where it is gone."""
    assert record.lasted_s
    version, since_s = record.before, 0.0
    for stage, roll in _rolls(record, broker):
        back_s = _back_s(roll, stage, record.lasted_s)
        if roll.instead_of is None:
            yield _band(record, version, since_s, roll.at_s)
        yield _band(record, RESTARTED if roll.instead_of is None else JOINS, roll.at_s, back_s)
        version, since_s = roll.version, back_s
    yield _band(record, version, since_s, _gone_s(record, broker) or record.lasted_s)


def _gone_s(record: UpgradeRecord, broker: int) -> float | None:
    """Returns when a broker was gone in whose place another one had come; None where it stays."""
    rolls = (roll for stage in record.stages for roll in stage.rolls)
    return next((one.at_s + (one.exit_s or 0.0) for one in rolls if one.instead_of == broker), None)


def lag_of(record: UpgradeRecord, out: Path) -> dict[str, Lag]:
    """Returns the lag of each consumer over the rehearsal, by its last run folder; without those that have none."""
    runs = {one.subject: RunFolder(out / one.run) for one in record.outcomes if one.run}
    if not runs:
        return {}
    base_ns = start_ns(next(iter(runs.values())))
    return {name: read_total_lag(folder, start_ns=base_ns) for name, folder in runs.items()}


def _lines(record: UpgradeRecord, consumer: str, lag: Mapping[str, Lag]) -> ConsumerLines | None:
    """Returns the lines of a consumer; None where nothing is recorded of it."""
    costs = [cost for stage in record.stages for cost in stage.availability if cost.consumer == consumer]
    if not costs or not record.lasted_s:
        return None
    watched = [(cost.from_s, cost.until_s) for cost in costs if cost.group.unanswered_s is not None]
    group = [one for cost in costs for one in cost.group.stretches]
    partitions = []
    for number in sorted({one.partition for cost in costs for one in cost.partitions}):
        own = [(cost, one) for cost in costs for one in cost.partitions if one.partition == number]
        known = [(cost.from_s, cost.until_s) for cost, one in own if one.unavailable_s is not None]
        stretches = [stretch for _, one in own for stretch in one.stretches]
        partitions.append(_line(record, f"partition {number}", known, stretches))
    points = lag.get(consumer, ((), ()))
    peak = max((value for curve in points for _, value in curve), default=0)
    committed, handled = (path_of(curve, length_s=record.lasted_s, peak=peak) for curve in points)
    return ConsumerLines(_line(record, "group", watched, group), partitions, committed, handled, peak)


def _line(
    record: UpgradeRecord, name: str, watched: Sequence[Stretch], unavailable: Sequence[Stretch]
) -> AvailabilityLine:
    drawn = [_band(record, AWAY, *one) for one in unavailable]
    told = "; ".join(one.told for one in drawn) or ("never unavailable for 1 s" if watched else "not recorded")
    return AvailabilityLine(name, [_band(record, WATCHED, *one) for one in watched], drawn, told)


def _rolls(record: UpgradeRecord, broker: int) -> list[tuple[RecordedStage, BrokerRoll]]:
    found = [(stage, roll) for stage in record.stages for roll in stage.rolls if roll.broker == broker]
    return sorted(found, key=lambda pair: pair[1].at_s)


def _back_s(roll: BrokerRoll, stage: RecordedStage, lasted_s: float) -> float:
    """Returns when a broker was back in every ISR; not within its time: the end of the stage, where that is known."""
    if roll.in_sync_s is not None:
        return roll.at_s + roll.in_sync_s
    if stage.began_s is None or stage.lasted_s is None:
        return lasted_s
    return max(roll.at_s, stage.began_s + stage.lasted_s)


def _band(record: UpgradeRecord, what: str, begin_s: float, end_s: float) -> Band:
    assert record.lasted_s
    begin_s, end_s = (min(max(at_s, 0.0), record.lasted_s) for at_s in (begin_s, end_s))
    kinds = {
        RESTARTED: "restart",
        JOINS: "restart",
        AWAY: "away",
        WATCHED: "watched",
        record.before: "before",
        record.after: "after",
    }
    told = f"{what}, {begin_s:.1f} to {end_s:.1f} s" if what == AWAY else f"{what}, {begin_s:.0f} to {end_s:.0f} s"
    return Band(kinds.get(what, "other"), _percent(begin_s, record), _percent(max(0.0, end_s - begin_s), record), told)


def _marks(record: UpgradeRecord) -> Iterator[tuple[int, RecordedStage, float]]:
    """Yields each stage whose beginning is known: its number, and where that is."""
    for number, stage in enumerate(record.stages, 1):
        if stage.began_s is not None and record.lasted_s:
            yield number, stage, _percent(min(stage.began_s, record.lasted_s), record)


def _percent(seconds: float, record: UpgradeRecord) -> float:
    assert record.lasted_s
    return round(100 * seconds / record.lasted_s, 3)
