"""Reading consumer.toml: every problem of the file at once, before anything starts.

A table becomes a frozen dataclass. A field's type says what may stand there; names, choices and bounds that a type
cannot say are checked section by section.
"""

from __future__ import annotations

import os
import re
import shutil
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kafka_trial.claim import Claim, claim_problems
from kafka_trial.consumers.patched_consumer import read_consumer_toml
from kafka_trial.consumers.spec import (
    BODIES,
    CONSUMER_SCHEMA,
    EFFECTS,
    EVENT_DIALECTS,
    HANDLERS,
    OF_ALL,
    OF_POSTGRES,
    OUTCOMES,
    PROGRESS_KINDS,
    PROTOCOLS,
    SINKS,
    STDOUTS,
    STOP_SIGNALS,
    ConsumerSpec,
    EvidenceGiven,
    Identity,
    KafkaSettings,
    Payload,
    ProgressPlace,
    Ready,
    SinkPostgres,
    SinkTopic,
    Stop,
    placeholder_problems,
    used_placeholders,
)
from kafka_trial.errors import InputError, none_of, unknown_name

COMPLETED = tuple(outcome for outcome in OUTCOMES if outcome != "failed")


def spec_from_toml(path: Path) -> ConsumerSpec:
    """Returns the consumer of a TOML file, with what it takes of the one that it extends.

    Raises:
        InputError: every problem of the file at once, each with the valid choices.
    """
    table = _parsed(path)
    problems = [f"{name} is missing" for name in ("name", "command") if name not in table]
    sections = _sections(table, problems)
    head = read_table(_Head, table, place="", problems=problems)
    problems += _head_problems(head, path.absolute().parent)
    for name, check in _CHECKS.items():
        problems += check(sections[name])
    problems += _postgres_problems(head, sections, path.absolute().parent)
    if problems:
        raise InputError(str(path), problems)
    return ConsumerSpec(path=path.absolute(), **vars(head), **sections)


@dataclass(frozen=True)
class _Head:
    """The keys outside any section; the defaults of the required ones stand only where a problem has been told."""

    name: str = "nameless"
    command: tuple[str, ...] = ("true",)
    members: int = 3
    pass_env: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


_SECTIONS: dict[str, type[Any]] = {
    "kafka": KafkaSettings,
    "progress": ProgressPlace,
    "evidence": EvidenceGiven,
    "identity": Identity,
    "payload": Payload,
    "ready": Ready,
    "stop": Stop,
}


def _parsed(path: Path) -> dict[str, Any]:
    table = read_consumer_toml(path)
    schema = table.pop("schema", None)
    if schema is None:
        raise InputError(str(path), f"schema is missing; write schema = {CONSUMER_SCHEMA}")
    if schema != CONSUMER_SCHEMA:
        raise InputError(str(path), f"schema = {schema}, this version reads {CONSUMER_SCHEMA}; upgrade kafka-trial")
    if "image" in table:
        raise InputError(str(path), "image: containers are not in this version yet; give a command")
    return table


def _sections(table: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    """Takes every section out of `table`; what is left is the head."""
    claim = table.pop("claim", {})
    wrong = claim_problems(claim) if isinstance(claim, dict) else ["claim must be a table; write [claim]"]
    problems += wrong
    found: dict[str, Any] = {"claim": None if wrong else Claim(**claim)}
    found["sink_topic"], found["sink_postgres"] = _sinks(table, problems)
    for name, kind in _SECTIONS.items():
        section = table.pop(name, {})
        if not isinstance(section, dict):
            problems.append(f"{name} must be a table; write [{name}]")
            section = {}
        found[name] = read_table(kind, section, place=f"[{name}] ", problems=problems)
    unknown = [name for name, value in table.items() if isinstance(value, dict) and name != "env"]
    for name in unknown:
        problems.append(unknown_name("section", name, [*_SECTIONS, "claim", "env", *_SINK_SECTIONS]))
        del table[name]
    return found


def _sinks(table: dict[str, Any], problems: list[str]) -> tuple[SinkTopic, SinkPostgres]:
    """Takes [sink.topic] and [sink.postgres] out of `table`."""
    sinks = table.pop("sink", {})
    if not isinstance(sinks, dict) or not all(isinstance(sinks.get(name, {}), dict) for name in _SINK_TABLES):
        problems.append(f"sink must be a table of tables; write {' or '.join(f'[{name}]' for name in _SINK_SECTIONS)}")
        return SinkTopic(), SinkPostgres()
    problems += [unknown_name("section", f"sink.{name}", _SINK_SECTIONS) for name in sinks if name not in _SINK_TABLES]
    evidence = table.get("evidence")
    given = evidence.get("sink") if isinstance(evidence, dict) else None
    problems += [
        f'[sink.{name}] says where the output goes; write sink = "{name}" under [evidence] too'
        for name in _SINK_TABLES
        if name in sinks and given != name
    ]
    postgres = read_table(SinkPostgres, sinks.get("postgres", {}), place="[sink.postgres] ", problems=problems)
    return _sink_topic(sinks.get("topic", {}), problems), postgres


_SINK_TABLES = ("topic", "postgres")
_SINK_SECTIONS = tuple(f"sink.{name}" for name in _SINK_TABLES)


def _sink_topic(table: dict[str, Any], problems: list[str]) -> SinkTopic:
    topic = read_table(SinkTopic, table, place="[sink.topic] ", problems=problems)
    problems += placeholder_problems(topic.name, place="[sink.topic] name", known=OF_ALL)
    if not re.fullmatch(r"[A-Za-z0-9._{}-]{1,200}", topic.name):
        problems.append(f"[sink.topic] name = {topic.name!r} must be letters, digits, dots, dashes and underscores")
    if topic.partitions is not None and topic.partitions < 1:
        problems.append(f"[sink.topic] partitions = {topic.partitions} must be at least 1")
    return topic


def _postgres_problems(head: _Head, sections: Mapping[str, Any], folder: Path) -> list[str]:
    """Returns what is wrong with sink = "postgres", or with its placeholders where the output goes elsewhere."""
    postgres, evidence = sections["sink_postgres"], sections["evidence"]
    if evidence.sink != "postgres":
        texts = {f"command[{number}]": part for number, part in enumerate(head.command)}
        texts |= {f"[env] {name}": value for name, value in head.env.items()}
        texts["[ready] http"] = sections["ready"].http or ""
        return [
            f'{place}: {{{name}}} is filled in only with sink = "postgres" under [evidence]'
            for place, text in texts.items()
            if not placeholder_problems(text, place=place)
            for name in used_placeholders(text)
            if name in OF_POSTGRES
        ]
    problems = _schema_problems(postgres.schema_file, folder)
    if not postgres.table:
        problems.append("[sink.postgres] table is empty; name the table with the effects")
    if evidence.body == "value" and postgres.value_column is None:
        problems.append('[evidence] body = "value" needs value_column under [sink.postgres]: the column with the value')
    return problems


def _schema_problems(schema_file: str, folder: Path) -> list[str]:
    place, what = "[sink.postgres] schema_file", "the SQL that creates the table"
    if not schema_file:
        return [f'{place} is missing; write schema_file = "schema.sql": {what}']
    file = folder / schema_file
    return [] if file.is_file() else [f"{place}: there is no file {file}; it must hold {what}, relative to {folder}"]


def _head_problems(head: _Head, folder: Path) -> list[str]:
    problems = [] if head.members >= 1 else [f"members = {head.members} must be at least 1"]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", head.name):
        problems.append(f"name = {head.name!r} must be 1 to 64 letters, digits, dots, dashes or underscores")
    for number, part in enumerate(head.command):
        problems += placeholder_problems(part, place=f"command[{number}]")
    for name, value in head.env.items():
        problems += placeholder_problems(value, place=f"[env] {name}")
    problems += [
        f"pass_env: {name} is not set where kafka-trial was called; set it, or take it out of pass_env"
        for name in head.pass_env
        if name not in os.environ
    ]
    return problems + _command_problems(head.command, folder)


def _command_problems(command: tuple[str, ...], folder: Path) -> list[str]:
    if not command or not command[0]:
        return ["command is empty; write the program and its arguments as a list"]
    program = command[0]
    if program.startswith("{"):
        return []  # {python} and {java} are the harness's own
    if "/" in program:
        place = folder / program
        found = place.is_file() and os.access(place, os.X_OK)
        return [] if found else [f"command: {place} is not there or not executable; relative to {folder}"]
    return (
        [] if shutil.which(program) else [f"command: {program!r} is not on PATH; write a path, or {{python}}, {{java}}"]
    )


def _kafka_problems(kafka: KafkaSettings) -> list[str]:
    return choice_problem("[kafka] protocol", kafka.protocol, PROTOCOLS) + _positive("kafka", kafka)


def _progress_problems(progress: ProgressPlace) -> list[str]:
    return choice_problem("[progress] kind", progress.kind, PROGRESS_KINDS) + _positive("progress", progress)


def _evidence_problems(evidence: EvidenceGiven) -> list[str]:
    problems = choice_problem("[evidence] events", evidence.events, EVENT_DIALECTS)
    problems += choice_problem("[evidence] sink", evidence.sink, SINKS) + _positive("evidence", evidence)
    problems += choice_problem("[evidence] handler", evidence.handler, HANDLERS)
    problems += choice_problem("[evidence] stdout", evidence.stdout, STDOUTS)
    return problems + _effects_problems(evidence)


def _effects_problems(evidence: EvidenceGiven) -> list[str]:
    problems = choice_problem("[evidence] effects", evidence.effects, EFFECTS)
    problems += choice_problem("[evidence] body", evidence.body, BODIES)
    for number, outcome in enumerate(evidence.no_effect):
        problems += choice_problem(f"[evidence] no_effect[{number}]", outcome, COMPLETED)
    return problems


def _payload_problems(payload: Payload) -> list[str]:
    given = [name for name, value in vars(payload).items() if value is not None]
    return [f"[payload] {name} is not in this version yet; records hold JSON with the id inside" for name in given]


def _ready_problems(ready: Ready) -> list[str]:
    problems = _positive("ready", ready) + placeholder_problems(ready.http or "", place="[ready] http")
    try:
        re.compile(ready.log or "")
    except re.error as error:
        problems.append(f"[ready] log = {ready.log!r} is no regular expression: {error}")
    return problems


def _stop_problems(stop: Stop) -> list[str]:
    return choice_problem("[stop] signal", stop.signal, STOP_SIGNALS) + _positive("stop", stop)


def _positive(place: str, section: Any) -> list[str]:
    return [
        f"[{place}] {name} = {value} must be above 0"
        for name, value in vars(section).items()
        if name.endswith("_s") and value is not None and value <= 0
    ]


_CHECKS: dict[str, Any] = {
    "kafka": _kafka_problems,
    "progress": _progress_problems,
    "evidence": _evidence_problems,
    "payload": _payload_problems,
    "ready": _ready_problems,
    "stop": _stop_problems,
}


T = TypeVar("T")


def read_table(kind: type[T], table: Mapping[str, Any], *, place: str, problems: list[str]) -> T:
    """Returns `table` as a `kind` (all fields have defaults); appends a sentence to `problems` for each wrong entry.

    A wrong entry keeps its default, so that the caller can go on and look for further problems.
    """
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in hints:
            problems.append(f"{place}{unknown_name('key', key, hints)}")
            continue
        wrong = _wrong(hints[key], value, place=f"{place}{key}")
        problems += wrong
        if not wrong:
            values[key] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def choice_problem(place: str, given: object, choices: tuple[str, ...]) -> list[str]:
    """Returns the sentence for a value that is none of the choices; nothing when it is one."""
    return [] if given in choices else [none_of(place, given, choices)]


def _wrong(hint: Any, value: Any, *, place: str) -> list[str]:
    """Returns what is wrong with a value of that type, as sentences."""
    if typing.get_origin(hint) is types.UnionType:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        parts = {f"{place}[{number}]": part for number, part in enumerate(value)}
    elif typing.get_origin(hint) is not None and isinstance(value, dict):
        parts = {f"{place}.{name}": part for name, part in value.items()}
    else:
        return [] if _fits(hint, value) else [f"{place} = {value!r} must be {_words(hint)}"]
    return [
        f"{name} = {part!r} must be a string; write it in quotes"
        for name, part in parts.items()
        if not isinstance(part, str)
    ]


def _words(hint: Any) -> str:
    if typing.get_origin(hint) is not None:
        return "a list of strings" if typing.get_origin(hint) is tuple else "a table of strings"
    return {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}[hint]


def _fits(hint: Any, value: Any) -> bool:
    if typing.get_origin(hint) is not None:
        return False
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
