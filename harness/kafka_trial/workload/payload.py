"""The team's own payload: what the records of a trial hold in place of ours, and which headers they have beside ours.

consumer.toml names the files (`[payload]`), which are checked before anything starts. A trial copies them into its run
folder and sends what lies there: what was sent can be read there afterwards, and sent again.

A template is text that is filled in for each record (`template.py`). Samples are whole values as they are, taken in
turn in an order drawn from the seed. Either has its id in the header `kt-id`, and in the one that [identity] names.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import orjson

from kafka_trial.errors import InputError, reason
from kafka_trial.scenario import Load
from kafka_trial.workload.template import Template
from kafka_trial.workload.workload import STEADY, Headers, Op, own_headers, padding_pool, payload_for

EXAMPLE: Final = Op("r0000042", 42, "k7", None, 64, 0.0, STEADY)
DESCRIPTION: Final = "payload.json"
TOPICS: Final = "topics"  # the folder in which a kept payload has those of further topics


@dataclass(frozen=True)
class PayloadFiles:
    """What records are made of: a template, or samples (a file, or a folder of files), or neither: ours.

    `headers`: templates by the name of the header. `id_header`: a header that holds the id beside `kt-id`. `topics`:
    what the records of a further topic are made of instead, by its name in the scenario.
    """

    template: Path | None = None
    samples: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    id_header: str | None = None
    topics: Mapping[str, PayloadFiles] = field(default_factory=dict)

    def of_topic(self, name: str) -> PayloadFiles:
        """Returns what the records of a further topic are made of, or of the first one (empty)."""
        return self.topics.get(name, self)

    def to_json(self) -> str:
        """Returns it as an argument of the workload process."""
        return orjson.dumps(dataclasses.asdict(self), default=str).decode()

    @staticmethod
    def from_json(text: str | bytes) -> PayloadFiles:
        """Returns what `to_json` wrote."""
        return _payload_of_table(orjson.loads(text))


def _payload_of_table(table: Mapping[str, Any]) -> PayloadFiles:
    places = {name: None if table[name] is None else Path(table[name]) for name in ("template", "samples")}
    topics = {name: _payload_of_table(one) for name, one in table.get("topics", {}).items()}
    return PayloadFiles(**{**table, **places, "topics": topics})


OURS: Final = PayloadFiles()


def keep_payload(files: PayloadFiles, into: Path) -> PayloadFiles:
    """Copies the files of a payload into a new folder, with a description; returns what is then to be sent.

    Raises:
        OSError: they cannot be read or written.
    """
    into.mkdir(parents=True)
    template = samples = None
    if files.template is not None:
        template = Path(f"template{files.template.suffix}")
        shutil.copy(files.template, into / template)
    if files.samples is not None:
        samples = Path("samples")
        (into / samples).mkdir()
        for file in sample_files(files.samples):
            shutil.copy(file, into / samples)
    for name, of_topic in files.topics.items():
        keep_payload(of_topic, into / TOPICS / name)
    described = dataclasses.replace(files, template=template, samples=samples, topics={})
    (into / DESCRIPTION).write_text(described.to_json() + "\n")
    return kept_payload(into)


def kept_payload(folder: Path) -> PayloadFiles:
    """Returns the payload that a trial has kept in its run folder.

    Raises:
        InputError: there is none, or it was changed.
    """
    try:
        files = PayloadFiles.from_json((folder / DESCRIPTION).read_bytes())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"is no payload that a trial has kept ({reason(error)}); name RUN/payload"
        raise InputError(str(folder), problem) from error
    template, samples = (None if place is None else folder / place for place in (files.template, files.samples))
    kept = sorted((folder / TOPICS).iterdir()) if (folder / TOPICS).is_dir() else []
    topics = {of_topic.name: kept_payload(of_topic) for of_topic in kept}
    return dataclasses.replace(files, template=template, samples=samples, topics=topics)


def payload_digest(files: PayloadFiles) -> str:
    """Returns a digest of the bytes that records are made of; empty where they are ours."""
    if files == OURS:
        return ""
    digest = hashlib.sha256(orjson.dumps([sorted(files.headers.items()), files.id_header]))
    for file in (files.template,) if files.template else sample_files(files.samples) if files.samples else ():
        digest.update(b"\0" + file.name.encode() + b"\0" + file.read_bytes())
    for name, of_topic in sorted(files.topics.items()):
        digest.update(b"\0" + name.encode() + b"\0" + payload_digest(of_topic).encode())
    return digest.hexdigest()[:16]


class RecordContents:
    """The values and headers of a trial's records, by their operations."""

    def __init__(self, files: PayloadFiles, load: Load, *, seed: int) -> None:
        self._headers = {name: Template(text, seed=f"header {name} {seed}") for name, text in files.headers.items()}
        self._id_header = files.id_header
        self._samples = _in_turn(files.samples, seed) if files.samples is not None else []
        self._least_bytes = 0
        self.value: Callable[[Op], bytes] = self._sample
        self.headers: Callable[[Op], Headers] = self._all_headers
        if files.template is not None:
            text, pool = template_text(files.template), padding_pool(load, seed=seed)
            template = Template(text, seed=f"template {seed}", as_json=is_json(files.template), pool=pool)
            self.value, self._least_bytes = template.render, len(template.render(EXAMPLE))
        elif files.samples is None:
            self.value = payload_for(load, seed=seed)
        if not self._headers and self._id_header is None:
            self.headers = own_headers

    def sized(self, op: Op) -> Op:
        """Returns an operation with the size that its value has: as many as fit into memory are sent together."""
        if self._samples:
            return op._replace(size_bytes=len(self._sample(op)))
        return op if op.size_bytes >= self._least_bytes else op._replace(size_bytes=self._least_bytes)

    def _sample(self, op: Op) -> bytes:
        return self._samples[op.n % len(self._samples)]

    def _all_headers(self, op: Op) -> Headers:
        named = [] if self._id_header is None else [(self._id_header, op.id.encode())]
        return [*own_headers(op), *named, *((name, text.render(op)) for name, text in self._headers.items())]


def _in_turn(place: Path, seed: int) -> list[bytes]:
    samples = [file.read_bytes() for file in sample_files(place)]
    Random(f"samples {seed}").shuffle(samples)
    return samples


def template_text(file: Path) -> str:
    """Returns the text of a template without the newline that editors put at the very end."""
    return file.read_bytes().decode().removesuffix("\n")


def is_json(file: Path) -> bool:
    """Tells whether a template is of JSON, by the ending of its name."""
    return file.suffix.lower() == ".json"


def sample_files(place: Path) -> list[Path]:
    """Returns the files that are sent, by name."""
    return [one for one in listed_files(place) if not one.is_dir()]


def listed_files(place: Path) -> list[Path]:
    """Returns a file, or what is in a folder, by name; what begins with a dot is left out."""
    return sorted(one for one in place.iterdir() if not one.name.startswith(".")) if place.is_dir() else [place]
