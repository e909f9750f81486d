"""Verifying the record of an upgrade: no file has changed, every history gets its verdict again, and the outcomes
follow from those verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kafka_trial.errors import FAIL, PASS
from kafka_trial.history.store import RunFolder
from kafka_trial.report.sealed_files import changed_files
from kafka_trial.trial.verify_certificate import judged_again
from kafka_trial.upgrade.cluster_state import SETTING, Loss
from kafka_trial.upgrade.outcome import StageOutcome, StageVerdicts
from kafka_trial.upgrade.record import RecordedOutcome, UpgradeRecord, subject_in_words
from kafka_trial.upgrade.record_file import read_record


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
