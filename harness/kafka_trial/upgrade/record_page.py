"""The page of a rehearsed upgrade, for those who decide on it, and all files that the rehearsal leaves.

First the outcome, what came of each stage, what to change and what was not tried; below it when which broker was of
which version, and the reports of every stage. The page loads nothing and has no script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_trial.history.output_names import UPGRADE, UPGRADE_PAGE
from kafka_trial.report.certificate import duration_in_words
from kafka_trial.report.html import static_page
from kafka_trial.report.run_metadata import clients_in_words
from kafka_trial.report.sealed_files import write_whole
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


@dataclass(frozen=True)
class Band:
    """A part of a broker's line: what it was (a version, or that it restarted), and from when to when, in percent of
    the whole and in words."""

    kind: str
    left: float
    width: float
    told: str


def write_upgrade(record: UpgradeRecord, out: Path) -> None:
    """Writes upgrade.json, index.html and junit.xml, each whole or not at all."""
    write_record(record, out)
    write_whole(out / UPGRADE_PAGE, page_of_upgrade(record).encode())
    write_upgrade_junit(record, out)


def page_of_upgrade(record: UpgradeRecord) -> str:
    """Returns the page of a record."""
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
        lines={broker: list(bands(record, broker)) for broker in _brokers(record)},
        marks=list(_marks(record)),
        versions=[record.before, record.after],
        name=UPGRADE,
    )


def _clients(clients: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield from clients_in_words({library: set(ids) for library, ids in clients.items()})


def _brokers(record: UpgradeRecord) -> list[int]:
    """Returns the ids of the brokers whose line can be drawn: none where nothing says how long it all took."""
    rolled = (roll.broker for stage in record.stages for roll in stage.rolls)
    return sorted({*record.brokers, *rolled}) if record.lasted_s else []


def bands(record: UpgradeRecord, broker: int) -> Iterator[Band]:
    """Yields the line of a broker: its versions, and its restarts between them."""
    assert record.lasted_s
    version, since_s = record.before, 0.0
    for stage, roll in _rolls(record, broker):
        back_s = _back_s(roll, stage, record.lasted_s)
        yield _band(record, version, since_s, roll.at_s)
        yield _band(record, RESTARTED, roll.at_s, back_s)
        version, since_s = roll.version, back_s
    yield _band(record, version, since_s, record.lasted_s)


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
    kinds = {RESTARTED: "restart", record.before: "before", record.after: "after"}
    told = f"{what}, {begin_s:.0f} to {end_s:.0f} s"
    return Band(kinds.get(what, "other"), _percent(begin_s, record), _percent(max(0.0, end_s - begin_s), record), told)


def _marks(record: UpgradeRecord) -> Iterator[tuple[int, RecordedStage, float]]:
    """Yields each stage whose beginning is known: its number, and where that is."""
    for number, stage in enumerate(record.stages, 1):
        if stage.began_s is not None and record.lasted_s:
            yield number, stage, _percent(min(stage.began_s, record.lasted_s), record)


def _percent(seconds: float, record: UpgradeRecord) -> float:
    assert record.lasted_s
    return round(100 * seconds / record.lasted_s, 3)
