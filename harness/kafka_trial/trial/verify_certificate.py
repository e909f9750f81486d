"""Verifying a certificate: no file has changed, it says what its run folders say, and all is judged so again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from kafka_trial.check import check_run
from kafka_trial.comparison.explain import ConsumerKind
from kafka_trial.errors import FAIL, PASS
from kafka_trial.history.output_names import CERTIFICATE
from kafka_trial.history.store import GROUPS, RunFolder, open_run_folder
from kafka_trial.report.certificate import (
    BASELINE,
    SINCE_SCHEMA_3,
    Certificate,
    CertifiedTrial,
    certified,
    read_certificate,
)
from kafka_trial.report.sealed_files import REMADE, changed_files
from kafka_trial.trial.compare_certificates import compare_certificate
from kafka_trial.verdict.decide import Verdict

JUDGED = ("verdict.json", "anomalies.jsonl", "series.parquet", "report.txt", "report.html", "report.json")


def verify(file: Path, *, say: Callable[[str], object], label: str = "") -> int:
    """Tells whether a certificate holds: every file is as it was, says what it says, and is judged so again.

    Judged in a copy, so that nothing of the certificate's folder changes. The certificate of a baseline is verified
    too. Returns 0 where it holds, whatever its verdict; 1 where it does not. `label` stands before each line.

    Raises:
        InputError: it is no certificate.
    """
    certificate, root = read_certificate(file), file.absolute().parent
    broken = 0
    for trial in certificate.trials.values():
        problems = changed_files(root, trial.run, trial.files) or _said_otherwise(certificate, root, trial)
        problems = problems or _of_another_image(certificate, root, trial) or _judged_otherwise(root, trial)
        broken += bool(problems)
        say(f"{label}{' '.join(map(str, trial.cell))}: {trial.verdict}, {'; '.join(problems) or 'holds'}")
    baseline = root / BASELINE / CERTIFICATE if certificate.client else None
    if baseline:
        broken += verify(baseline, say=say, label="baseline ")
    if certificate.comparison is not None:
        problem = "" if broken else _compared_otherwise(certificate, root, baseline)
        broken += bool(problem)
        say(f"{label}what differs: {problem or ('not looked at' if broken else 'holds')}")
    return FAIL if broken else PASS


def _compared_otherwise(certificate: Certificate, root: Path, baseline: Path | None) -> str:
    """Returns what a certificate says differs and its trials do not."""
    told = dict(certificate.comparison or {})
    kind = ConsumerKind(**told["consumer"])
    old = None if baseline is None else read_certificate(baseline)
    said = compare_certificate(certificate, root, kind, baseline=old)
    return "; ".join(
        f"{name} is not what its trials say" for name in sorted({*told, *said}) if told.get(name) != said.get(name)
    )


def _said_otherwise(certificate: Certificate, root: Path, trial: CertifiedTrial) -> list[str]:
    """Returns what the certificate says of a trial that its run folder does not; of an earlier one what it says."""
    folder = RunFolder(root / trial.run)
    metadata, scenario = folder.read_json("run.json"), folder.read_json("scenario.json")
    try:
        cell = (scenario["name"], metadata["kafka"], metadata["seed"])
        said = asdict(certified(folder, cell=cell, run=trial.run, replay=trial.replay, earlier=trial.earlier))
    except (KeyError, TypeError) as error:
        return [f"{trial.run} is no run folder of ours ({type(error).__name__}: {error})"]
    told = {
        name: value for name, value in asdict(trial).items() if certificate.schema > 2 or name not in SINCE_SCHEMA_3
    }
    return [f"{trial.run} says otherwise: {name}" for name, value in told.items() if said[name] != value]


def _of_another_image(certificate: Certificate, root: Path, trial: CertifiedTrial) -> list[str]:
    """Returns that a trial was one of another image, which had been given the name while others were tried."""
    image, metadata = certificate.consumer.get("image"), RunFolder(root / trial.run).read_json("run.json")
    tried = metadata.get("images", {}).get(metadata.get("consumer_image"))
    if image is None or tried == image["id"]:
        return []
    return [f"{trial.run} is a trial of another image: {image['name']} was {tried} there, is {image['id']} here"]


def _judged_otherwise(root: Path, trial: CertifiedTrial) -> list[str]:
    with judged_again(root / trial.run) as (_, verdict, same):
        pass
    because = ", for other reasons" if verdict.verdict == trial.verdict else ""
    return [] if same else [f"is now judged {verdict.verdict}{because}: by another version of kafka-trial?"]


@contextmanager
def judged_again(place: Path) -> Iterator[tuple[RunFolder, Verdict, bool]]:
    """Yields a copy of a run folder, judged again, its verdict, and whether verdict.json is as before, byte for byte.

    The copy consists of links to what the folder and those of its further groups hold, without what the judge writes.

    Raises:
        InputError: there is no run folder there.
    """
    folder = open_run_folder(place)
    with tempfile.TemporaryDirectory(prefix="kafka-trial-verify-") as scratch:
        copy = RunFolder(Path(scratch))
        _link(folder, copy)
        verdict = check_run(copy)
        written = [(one.path / "verdict.json").read_bytes() for one in (folder, copy)]
        yield copy, verdict, written[0] == written[1]


def _link(folder: RunFolder, copy: RunFolder) -> None:
    for kept in folder.path.iterdir():
        if kept.name not in (*JUDGED, REMADE, GROUPS):
            (copy.path / kept.name).symlink_to(kept)
    for name, group in folder.groups.items():
        place = copy.path / GROUPS / name
        place.mkdir(parents=True)
        _link(group, RunFolder(place))
