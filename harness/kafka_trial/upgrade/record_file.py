"""`upgrade.json`: the record of an upgrade as a file, written whole, read back and verified.

Its JSON Schema lies beside this. It holds where no file has changed, every history gets its verdict again, and the
outcomes follow from those verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kafka_trial.errors import FAIL, PASS, InputError
from kafka_trial.history.output_names import UPGRADE
from kafka_trial.history.store import RunFolder
from kafka_trial.report.sealed_files import changed_files, read_table, write_table
from kafka_trial.trial.verify_certificate import judged_again
from kafka_trial.upgrade.availability import Availability, GroupAvailability, PartitionAvailability
from kafka_trial.upgrade.cluster_state import SETTING, Loss
from kafka_trial.upgrade.coordinator_loads import CoordinatorLoad
from kafka_trial.upgrade.outcome import StageOutcome, StageVerdicts
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
    subject_in_words,
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


def verify(file: Path, *, say: Callable[[str], object]) -> int:
    """Tells whether the record of an upgrade holds, row by row.

    Judged in copies, so that nothing beside the record changes. Returns 0 where it holds, whatever its outcome; 1 where
    it does not. What the cluster lost was asked of brokers that are gone: those rows rest on the record alone.

    Raises:
        InputError: it is no record of an upgrade.
    """
    record, root, broken = read_record(file), file.absolute().parent, 0
    verdicts: dict[str, StageVerdicts] = {}
    for refusal in record.path.refusals:
        say(f"the path is refused, nothing was played: {refusal}")
    for told in record.rows:
        if not told.run:
            say(f"{_place(told)}: {told.outcome}, no run folder shows it")
            continue
        before = verdicts.setdefault(told.subject, StageVerdicts(told.subject))
        problems = changed_files(root, told.run, told.files) or _said_otherwise(root, told, record)
        problems = problems or _judged_otherwise(root, told, before, _lost(record, told.stage))
        broken += bool(problems)
        say(f"{_place(told)}: {told.outcome}, {'; '.join(problems) or 'holds'}")
    return FAIL if broken else PASS


def _said_otherwise(root: Path, told: RecordedOutcome, record: UpgradeRecord) -> list[str]:
    """Returns what the record says of a run folder, and the folder does not."""
    folder = RunFolder(root / told.run)
    run, verdict = folder.read_json("run.json"), folder.read_json("verdict.json")
    claims = {one.name: (one.digest, one.claim) for one in record.consumers}
    digest, claim = claims.get(told.subject, ("", {}))
    said = {"seed": record.seed, "kafka": record.before, "consumer_digest": digest, "claim": claim}
    found = {**run, "claim": verdict.get("claim")}
    return [f"{told.run} says otherwise: {name}" for name, value in said.items() if found.get(name) != value]


def _lost(record: UpgradeRecord, stage: str) -> list[Loss]:
    """Returns what the cluster had lost by the end of a stage."""
    names = [one.name for one in record.stages]
    until = names.index(stage) + 1 if stage in names else 0
    return [loss for one in record.stages[:until] for loss in one.losses]


def _judged_otherwise(root: Path, told: RecordedOutcome, verdicts: StageVerdicts, losses: Sequence[Loss]) -> list[str]:
    """Returns what is otherwise now: the verdict on a history, or the outcome that follows from it and those before."""
    stranded = [Loss(SETTING, told.reason)] if told.accused == SETTING else []  # seen in the rehearsal alone
    with judged_again(root / told.run) as (copy, verdict, same):
        follows = verdicts.outcome(told.stage, copy, verdict, losses, stranded)
    if not same:
        return [f"{told.run} is now judged {verdict.verdict}, or otherwise: by another version of kafka-trial?"]
    said = StageOutcome(told.stage, told.subject, told.outcome, told.accused, told.reason)
    return [] if follows == said else [f"its verdicts say {follows.outcome}: {follows.reason or 'no reason'}"]


def _place(told: RecordedOutcome) -> str:
    return f"{told.stage}, {subject_in_words(told.subject)}"
