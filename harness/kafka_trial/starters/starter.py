"""`init`: writes a consumer.toml, and the smallest honest consumer that it describes, in a language and with a sink.

The files are templates beside this module: `consumer.toml.j2` for all, and a folder for each language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2

from kafka_trial.errors import InputError

TEMPLATES = Path(__file__).parent
SUFFIX = ".j2"
SINKS: Mapping[str, str] = {
    "none": "prints what it does",
    "http": "posts each one to a sink",
    "topic": "writes each one to another topic",
    "postgres": "writes a row for each one",
}
NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")  # what consumer.toml, Go modules, npm, Maven and image names all allow


@dataclass(frozen=True)
class Language:
    """How a starter of one language is built and begun: `command` as in consumer.toml (None: an image), `build` the
    shell lines that make it, `also` a further folder of templates that belongs to it."""

    command: tuple[str, ...] | None
    build: tuple[str, ...]
    also: str | None = None
    stop_within_s: int | None = None


LANGUAGES: Mapping[str, Language] = {
    "python": Language(
        ("venv/bin/python", "main.py"), ("python3 -m venv venv", "venv/bin/pip install -r requirements.txt")
    ),
    "java": Language(("{java}", "-Xmx128m", "-cp", "target/classes:target/lib/*", "Main"), ("mvn --quiet package",)),
    "go": Language(("./consumer",), ("go mod tidy", "go build -o consumer .")),
    "node": Language(("node", "main.js"), ("npm install",), stop_within_s=60),
    "rust": Language(("target/release/consumer",), ("cargo build --release",)),
    "image": Language(None, ("docker build --tag {name}:dev .",), also="python"),
}


def write_starter(folder: Path, *, name: str, language: str, sink: str) -> list[Path]:
    """Writes the files of a starter into a folder, which is made where it is missing; returns them.

    Raises:
        InputError: a name that cannot be, a folder that cannot be written, or a file that is there already: nothing is
            written then.
    """
    if not NAME.fullmatch(name):
        allowed = "1 to 63 lower-case letters, digits and dashes, beginning with a letter"
        raise InputError("--name", f"{name!r} is not allowed: write {allowed}")
    texts = {folder / place: text for place, text in _rendered(name, language, sink).items()}
    if there := [str(file) for file in texts if file.exists()]:
        raise InputError(str(folder), [f"{file} is there already: name another folder" for file in there])
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(str(error.filename), f"cannot be written: {error.strerror}") from error
    return list(texts)


def build_lines(name: str, language: str) -> list[str]:
    """Returns the shell lines that build a starter, to be run in its folder."""
    return [line.format(name=name) for line in LANGUAGES[language].build]


def _rendered(name: str, language: str, sink: str) -> Mapping[Path, str]:
    """Returns the text of each file of a starter, by its place in the folder."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # source files, of names that were checked
    )
    way = LANGUAGES[language]
    values = {
        "name": name,
        "sink": sink,
        "does": SINKS[sink],
        "image": way.command is None,
        "command": json.dumps(way.command),
        "build": build_lines(name, language),
        "stop_within_s": way.stop_within_s,
    }
    return {
        place: environment.get_template(template).render(values) for place, template in _places(way, language, sink)
    }


def _places(way: Language, language: str, sink: str) -> list[tuple[Path, str]]:
    """Returns where each file of a starter goes, and its template."""
    found = [(Path("consumer.toml"), f"consumer.toml{SUFFIX}")]
    if sink == "postgres":
        found.append((Path("schema.sql"), f"schema.sql{SUFFIX}"))
    for folder in filter(None, (language, way.also)):
        for file in sorted((TEMPLATES / folder).rglob(f"*{SUFFIX}")):
            place = file.relative_to(TEMPLATES / folder)
            found.append((place.with_name(place.name.removesuffix(SUFFIX)), str(file.relative_to(TEMPLATES))))
    return found
