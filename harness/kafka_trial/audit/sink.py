"""The sink of an audit: what tells, by record id, which records were handled. Topics, or a statement to a database.

Here is what is asked of it, and what is wrong with that; `sink_topic.py` and `sink_table.py` read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

TOPIC, TABLE = "topic", "table"
POSTGRESQL, SQLITE = ("postgresql", "postgres"), ("sqlite",)
URLS = "postgresql://USER@HOST/DATABASE, or sqlite:///FILE"
NO_PASSWORD = (
    "--sink-db: a password stands in the URL, where every user of this machine can read it: "
    "leave it to PGPASSWORD or ~/.pgpass"
)


@dataclass(frozen=True)
class Identity:
    """Where a record's id is: in a header, else in a field of its JSON value (`a.b`: b of a)."""

    header: str = "kt-id"  # as in consumer.toml
    field: str = "id"

    def __str__(self) -> str:
        return f"neither the header {self.header} nor $.{self.field} of a JSON value"


@dataclass(frozen=True)
class Sink:
    """Topics with ids of what was handled, or a database and the statement that asks it for them."""

    topics: tuple[str, ...] = ()
    identity: Identity = Identity()
    url: str = ""
    query: str = ""

    @property
    def kind(self) -> str:
        return TOPIC if self.topics else TABLE

    @property
    def name(self) -> str:
        """What it is called in messages: no path of this machine, no name of a user."""
        return ", ".join(self.topics) or Path(urlsplit(self.url).path).name or "the database"


def identity_of(words: Mapping[str, Any], prefix: str = "", otherwise: Identity | None = None) -> Identity:
    """Returns where ids are, by `--<prefix>id-header` and `--<prefix>id-field`, a JSON path with or without `$.`."""
    header, field = (words.get(f"{prefix}id_{name}") for name in ("header", "field"))
    found = otherwise or Identity()
    found = replace(found, header=header) if header else found
    return replace(found, field=field.removeprefix("$.")) if field else found


def sink_of(words: Mapping[str, Any], problems: list[str]) -> Sink | None:
    """Returns the sink that the words of the command line name, None for none; what is wrong with them is added."""
    topics, url, query = (words.get(name) for name in ("sink_topic", "sink_db", "sink_query"))
    if topics and (url or query):
        problems.append("--sink-topic and --sink-db: name one of them, where every record must arrive")
    if words["topic"] in (topics or ()):
        problems.append(f"--sink-topic {words['topic']} is the audited topic itself")
    if bool(url) != bool(query):
        problems.append(
            "--sink-db and --sink-query belong together, as in --sink-query 'select order_id, written_at from done'"
        )
    if url:
        problems += _url_problems(url)
    elsewhere = [name for name in ("sink_id_header", "sink_id_field") if words.get(name) and not topics]
    problems += [
        f"--{name.replace('_', '-')} says where ids are in a --sink-topic: there is none" for name in elsewhere
    ]
    if not topics and not url:
        return None
    identity = identity_of(words, "sink_", identity_of(words))
    return Sink(tuple(dict.fromkeys(topics or ())), identity, url or "", query or "")


def sqlite_file(url: str) -> Path:
    """Returns the file of a `sqlite:///relative` or `sqlite:////absolute` URL."""
    return Path(urlsplit(url).path.removeprefix("/"))


def _url_problems(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        password = _password(parts)
    except ValueError as error:
        return [f"--sink-db is no URL ({error}): write {URLS}"]
    if password:
        return [NO_PASSWORD]
    if parts.scheme in POSTGRESQL:
        return []
    if parts.scheme not in SQLITE:
        return [f"--sink-db: {parts.scheme or 'it'!r} is no database that this version reads: write {URLS}"]
    return [] if sqlite_file(url).is_file() else [f"--sink-db: there is no file {sqlite_file(url)}"]


def _password(parts: SplitResult) -> bool:
    return parts.password is not None or any("password" in name for name, _ in parse_qsl(parts.query))
