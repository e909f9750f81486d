"""`upgrade.json`: the record of an upgrade as a file, written whole and read back; its JSON Schema lies beside this."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kafka_trial.errors import InputError
from kafka_trial.history.output_names import UPGRADE
from kafka_trial.report.sealed_files import read_table, write_table
from kafka_trial.upgrade.availability import Availability, GroupAvailability, PartitionAvailability
from kafka_trial.upgrade.cluster_state import Loss
from kafka_trial.upgrade.coordinator_loads import CoordinatorLoad
from kafka_trial.upgrade.record import (
    BrokerRoll,
    NotTried,
    RecordedClient,
    RecordedConsumer,
    RecordedOutcome,
    RecordedPath,
    RecordedStage,
    ToldOfClient,
    UpgradeRecord,
    left_open,
)

UPGRADE_SCHEMA: Final = 1


def write_record(record: UpgradeRecord, folder: Path) -> None:
    """Writes upgrade.json, whole or not at all."""
    write_table(folder / UPGRADE, as_table(record))


def as_table(record: UpgradeRecord) -> dict[str, Any]:
    """Returns the record as plain data: every row has its outcome."""
    table = asdict(record)
    version = {"from": table.pop("before"), "to": table.pop("after")}
    rows = {"outcomes": [asdict(one) for one in record.rows], "not_tried": [asdict(one) for one in left_open(record)]}
    said = {"schema": UPGRADE_SCHEMA, "outcome": record.outcome, "exit": record.exit}
    return {**table, **version, **rows, **said}


def read_record(file: Path) -> UpgradeRecord:
    """Returns a record as it was written.

    Raises:
        InputError: there is no such file, or it is no record, or a newer one, or says of the whole what its rows do
            not.
    """
    table = read_table(file, name=UPGRADE, schema=UPGRADE_SCHEMA)
    try:
        said = {name: table.pop(name) for name in ("schema", "outcome", "exit")}
        record = _from_table(table)
        holds = (said["outcome"], said["exit"]) == (record.outcome, record.exit)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(str(file), f"is no record of an upgrade ({type(error).__name__}: {error})") from error
    if not holds:
        raise InputError(str(file), f"says {said['outcome']!r}, and its rows say {record.outcome!r}: edited")
    return record


def _from_table(table: dict[str, Any]) -> UpgradeRecord:
    before, after = table.pop("from"), table.pop("to")
    stages = [
        RecordedStage(
            **{
                **stage,
                "rolls": [BrokerRoll(**roll) for roll in stage["rolls"]],
                "losses": [Loss(**loss) for loss in stage["losses"]],
                "availability": [_availability(one) for one in stage.get("availability", ())],
            }
        )
        for stage in table.pop("stages")
    ]
    clients = [
        RecordedClient(**{**one, "told": [ToldOfClient(**told) for told in one["told"]]})
        for one in table.pop("clients", ())  # earlier records have none
    ]
    return UpgradeRecord(
        before=before,
        after=after,
        consumers=[RecordedConsumer(**one) for one in table.pop("consumers")],
        stages=stages,
        clients=clients,
        path=RecordedPath(**table.pop("path")),
        outcomes=[RecordedOutcome(**one) for one in table.pop("outcomes")],
        not_tried=[NotTried(**one) for one in table.pop("not_tried")],
        **table,
    )


def _availability(table: dict[str, Any]) -> Availability:
    loads = table["group"]["loads"]
    known = None if loads is None else [CoordinatorLoad(**load) for load in loads]
    group = GroupAvailability(**{**table["group"], "loads": known})
    partitions = [PartitionAvailability(**one) for one in table["partitions"]]
    return Availability(**{**table, "group": group, "partitions": partitions})
