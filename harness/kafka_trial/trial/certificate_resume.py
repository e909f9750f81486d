"""Which trials of a certificate that is there count in the one to go on with, and why others do not."""

from __future__ import annotations

from pathlib import Path

from kafka_trial.errors import UNKNOWN, InputError
from kafka_trial.history.output_names import CERTIFICATE
from kafka_trial.report.certificate import Certificate, CertifiedTrial, read_certificate
from kafka_trial.report.sealed_files import changed_files
from kafka_trial.trial.consumer_files import IF_WRITTEN, ConsumerFiles, changes_in_words

BEGIN_AGAIN = "Name another --out, or take this one away to begin again"
CHANGES_TOLD = 3  # of a run folder


def gone_on_with(out: Path, new: Certificate, files: ConsumerFiles) -> dict[tuple[str, str, int], CertifiedTrial]:
    """Returns the trials of the certificate in `out` that count in a new one; `files`: those of the consumer now.

    Raises:
        InputError: what is there is another's certificate.
    """
    file = out / CERTIFICATE
    if not file.exists():
        return {}
    old = read_certificate(file)
    if problem := _other(old, new, files):
        raise InputError(str(file), problem)
    return {cell: trial for cell, trial in old.trials.items() if not _left(out, new, trial)}


def trials_left(out: Path, begun: Certificate) -> list[str]:
    """Returns which trials of the certificate that is there do not count in the one to go on with, and why."""
    file = out / CERTIFICATE
    if not file.exists():
        return []
    trials = read_certificate(file).trials.values()
    told = {trial.cell: because for trial in trials if (because := _left(out, begun, trial))}
    return [f"{' '.join(map(str, cell))} {because}" for cell, because in told.items()]


def _left(out: Path, new: Certificate, trial: CertifiedTrial) -> str:
    """Returns why a trial of an earlier sitting does not count; "" where it does."""
    if trial.cell not in new.cells:
        return "is not asked for any more, and is left out"
    if trial.exit == UNKNOWN:
        return "was unknown: it is tried again"
    changed = changed_files(out, trial.run, trial.files)
    return f"is tried again: {'; '.join(changed[:CHANGES_TOLD])}" if changed else ""


def _other(old: Certificate, new: Certificate, files: ConsumerFiles) -> str:
    """Returns why a certificate cannot be gone on with, by what differs, and what to do; "" where all that it rests on
    is the same."""
    if old.consumer["name"] != new.consumer["name"]:
        return f"is of another consumer ({old.consumer['name']}; asked for: {new.consumer['name']}). {BEGIN_AGAIN}"
    if old.harness_digest != new.harness_digest:
        states = [f"{one.kafka_trial}, state {one.harness_digest}" for one in (old, new)]
        return f"was made by another kafka-trial ({states[0]}; this is {states[1]}). {BEGIN_AGAIN}"
    if old.load != new.load:
        return f"is of trials at a load of {old.load:g} (asked for: {new.load:g}). {BEGIN_AGAIN}"
    if old.consumer.get("image") != new.consumer.get("image"):
        return f"is of another {_images_in_words(new, old)}. {BEGIN_AGAIN}"
    if "files" not in old.consumer:
        return f"was made by an earlier kafka-trial, which did not store what files the consumer has. {BEGIN_AGAIN}"
    changes = files.changes_since(old.consumer["files"])
    told = f"is of an earlier state of the consumer: {changes_in_words(changes)}"
    return f"{told}. {BEGIN_AGAIN}. {IF_WRITTEN}" if changes else ""


def _images_in_words(new: Certificate, old: Certificate) -> str:
    """Returns the word "image" with that of an old certificate and the one that is asked for now."""
    return f"image ({_image_of(old)}; now asked for: {_image_of(new)})"


def _image_of(certificate: Certificate) -> str:
    image = certificate.consumer.get("image")
    return f"{image['name']}, {image['id']}" if image else "none"
