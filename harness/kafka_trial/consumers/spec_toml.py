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
from dataclasses import dataclass, field, replace
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
    HOLDS,
    OF_ALL,
    OF_POSTGRES,
    OF_THIS_MACHINE,
    OUTCOMES,
    PLACEHOLDERS,
    PROGRESS_KINDS,
    PROTOCOLS,
    SINKS,
    STDOUTS,
    STOP_SIGNALS,
    ConsumerSpec,
    EvidenceGiven,
    Identity,
    ImageLimits,
    KafkaSettings,
    LoadGiven,
    Payload,
    ProgressPlace,
    Ready,
    SinkPostgres,
    SinkTopic,
    Stop,
    TopicPayload,
    is_written,
    payload_files,
    placeholder_problems,
    used_placeholders,
)
from kafka_trial.errors import InputError, none_of, shown, unknown_name
from kafka_trial.history.json_paths import json_path_problem
from kafka_trial.workload.payload_checks import payload_problems

MEMORY_MIN_BYTES = 6 * 1024 * 1024  # less the engine refuses
COMPLETED = tuple(outcome for outcome in OUTCOMES if outcome != "failed")


def spec_from_toml(path: Path, *, image: str | None = None, must_be_set: bool = True) -> ConsumerSpec:
    """Returns the consumer of a TOML file, with what it takes of the one that it extends.

    `image` stands for the image, or for the command, that the file names. `must_be_set`: whether what `pass_env` names
    has to be in the environment by now; a fixture of pytest may set it before the trial.

    Raises:
        InputError: every problem of the file at once, each with the valid choices.
    """
    table = _parsed(path)
    if image is not None:
        _name_image(table, image)
    problems = [f"{name} is missing" for name in ("name",) if name not in table]
    if "command" not in table and "image" not in table:
        problems.append("command is missing, or image where the consumer is a container")
    sections = _sections(table, problems)
    head = read_table(_Head, table, place="", problems=problems)
    problems += _head_problems(head, path.absolute().parent) + _writes_problems(head, path)
    problems += _pass_env_problems(head.pass_env) if must_be_set else []
    problems += _image_problems(head, sections["image_limits"], path.absolute().parent)
    for name, check in _CHECKS.items():
        problems += check(sections[name])
    problems += _payload_problems(sections["payload"], sections["identity"], path.absolute().parent)
    problems += _postgres_problems(head, sections, path.absolute().parent)
    if problems:
        raise InputError(str(path), problems)
    return ConsumerSpec(path=path.absolute(), **vars(head), **sections)


@dataclass(frozen=True)
class _Head:
    """The keys outside any section; the defaults of the required ones stand only where a problem has been told."""

    name: str = "nameless"
    command: tuple[str, ...] = ()
    image: str | None = None
    members: int = 3
    pass_env: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


_SECTIONS: dict[str, type[Any]] = {
    "kafka": KafkaSettings,
    "progress": ProgressPlace,
    "evidence": EvidenceGiven,
    "identity": Identity,
    "payload": Payload,
    "load": LoadGiven,
    "ready": Ready,
    "stop": Stop,
}


def _name_image(table: dict[str, Any], image: str) -> None:
    """Puts an image in the place of the file's own; the command of a process means nothing to it."""
    if "image" not in table:
        table.pop("command", None)
    table["image"] = {**table["image"], "name": image} if isinstance(table.get("image"), dict) else image


def _parsed(path: Path) -> dict[str, Any]:
    table = read_consumer_toml(path)
    schema = table.pop("schema", None)
    if schema is None:
        raise InputError(str(path), f"schema is missing; write schema = {CONSUMER_SCHEMA}")
    if schema != CONSUMER_SCHEMA:
        raise InputError(str(path), f"schema = {schema}, this version reads {CONSUMER_SCHEMA}; upgrade kafka-trial")
    return table


def _sections(table: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    """Takes every section out of `table`; what is left is the head."""
    claim = table.pop("claim", {})
    wrong = claim_problems(claim) if isinstance(claim, dict) else ["claim must be a table; write [claim]"]
    problems += wrong
    found: dict[str, Any] = {"claim": None if wrong else Claim(**claim)}
    found["sink_topic"], found["sink_postgres"] = _sinks(table, problems)
    found["image_limits"] = _image_limits(table, problems)
    for name, kind in _SECTIONS.items():
        section = table.pop(name, {})
        if not isinstance(section, dict):
            problems.append(f"{name} must be a table; write [{name}]")
            section = {}
        topics = _payload_topics(section, problems) if name == "payload" else {}
        found[name] = read_table(kind, section, place=f"[{name}] ", problems=problems)
        found[name] = replace(found[name], topics=topics) if topics else found[name]
    unknown = [name for name, value in table.items() if isinstance(value, dict) and name != "env"]
    for name in unknown:
        problems.append(unknown_name("section", name, [*_SECTIONS, "claim", "env", "image", *_SINK_SECTIONS]))
        del table[name]
    return found


def _payload_topics(payload: dict[str, Any], problems: list[str]) -> dict[str, TopicPayload]:
    """Takes [payload.topics.<name>] out of `payload`."""
    topics = payload.pop("topics", {})
    if not isinstance(topics, dict) or not all(isinstance(given, dict) for given in topics.values()):
        problems.append("[payload] topics must be a table of tables; write [payload.topics.<name of a further topic>]")
        return {}
    return {
        name: read_table(TopicPayload, given, place=f"[payload.topics.{name}] ", problems=problems)
        for name, given in topics.items()
    }


def _image_limits(table: dict[str, Any], problems: list[str]) -> ImageLimits:
    """Takes [image] out of `table`, and leaves the image's name in its place.

    The name of an image is a key of its own (image = "…") or, where there is a table of that name, its key `name`.
    """
    given = table.get("image")
    if not isinstance(given, dict):
        return ImageLimits()
    settings = dict(table.pop("image"))
    if (name := settings.pop("name", None)) is not None:
        table["image"] = name
    return read_table(ImageLimits, settings, place="[image] ", problems=problems)


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
    problems += _topic_problems("[sink.topic] name", topic.name)
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
    return problems if head.image is not None else problems + _command_problems(head.command, folder)


def _writes_problems(head: _Head, path: Path) -> list[str]:
    """Says what may not be left out of what the consumer is: its command, consumer.toml, or everything."""
    kept = (path.name, *(os.path.normpath(part) for part in head.command if (path.parent / part).is_file()))
    problems = [
        f"writes: {pattern!r} would leave out everything; name what the members write"
        for pattern in head.writes
        if not pattern.strip("/*.?")
    ]
    return problems + [
        f"writes: {pattern!r} takes in {name}, which belongs to the consumer; name only what its members write"
        for pattern in head.writes
        for name in kept
        if is_written(name, [pattern])
    ]


def _pass_env_problems(names: tuple[str, ...]) -> list[str]:
    return [
        f"pass_env: {name} is not set where kafka-trial was called; set it, or take it out of pass_env"
        for name in names
        if name not in os.environ
    ]


def _image_problems(head: _Head, limits: ImageLimits, folder: Path) -> list[str]:
    """What is wrong with a consumer that is an image; with [image] where there is none."""
    if head.image is None:
        return [] if limits == ImageLimits() else ["[image] is for containers; name the image: [image] name = …"]
    problems = [] if head.image and " " not in head.image else [f"image = {head.image!r} is no name of an image"]
    if limits.memory_bytes is not None and limits.memory_bytes < MEMORY_MIN_BYTES:
        problems.append(f"[image] memory_bytes = {limits.memory_bytes} must be at least {MEMORY_MIN_BYTES} (6 MiB)")
    if limits.cpus is not None and limits.cpus <= 0:
        problems.append(f"[image] cpus = {limits.cpus} must be above 0")
    for place, inside in limits.mounts.items():
        if not (folder / place).exists():
            problems.append(f"[image] mounts: {folder / place} is not there; relative to {folder}")
        if not inside.startswith("/"):
            problems.append(f"[image] mounts: {place} = {inside!r} must be a place inside, from /")
    texts = {**{f"command[{number}]": part for number, part in enumerate(head.command)}, **_of_env(head.env)}
    for where, text in texts.items():
        problems += [
            f"{where}: {{{name}}} is of this machine, and no container sees it; take it out"
            for name in _readable_placeholders(text)
            if name in OF_THIS_MACHINE
        ]
    return problems


def _of_env(env: Mapping[str, str]) -> dict[str, str]:
    return {f"[env] {name}": value for name, value in env.items()}


def _readable_placeholders(text: str) -> list[str]:
    try:
        return list(used_placeholders(text))
    except ValueError:  # told where placeholders are checked
        return []


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
    problems = choice_problem("[progress] kind", progress.kind, PROGRESS_KINDS) + _positive("progress", progress)
    for number, topic in enumerate(progress.through):
        problems += _topic_problems(f"[progress] through[{number}]", topic)
        if topic == "{topics}":
            problems.append(f"[progress] through[{number}] is the trial's own topic; name those of the consumer")
    return problems


def _topic_problems(place: str, topic: str) -> list[str]:
    problems = placeholder_problems(topic, place=place, known=OF_ALL)
    if not re.fullmatch(r"[A-Za-z0-9._{}-]{1,200}", topic):
        problems.append(f"{place} = {topic!r} must be letters, digits, dots, dashes and underscores")
    return problems


def _evidence_problems(evidence: EvidenceGiven) -> list[str]:
    problems = choice_problem("[evidence] events", evidence.events, EVENT_DIALECTS)
    problems += choice_problem("[evidence] sink", evidence.sink, SINKS) + _positive("evidence", evidence)
    problems += choice_problem("[evidence] handler", evidence.handler, HANDLERS)
    problems += choice_problem("[evidence] stdout", evidence.stdout, STDOUTS)
    if evidence.dead_letter_topic:
        problems += _topic_problems("[evidence] dead_letter_topic", evidence.dead_letter_topic)
    return problems + _effects_problems(evidence)


def _effects_problems(evidence: EvidenceGiven) -> list[str]:
    problems = choice_problem("[evidence] effects", evidence.effects, EFFECTS)
    problems += choice_problem("[evidence] body", evidence.body, BODIES)
    for number, outcome in enumerate(evidence.no_effect):
        problems += choice_problem(f"[evidence] no_effect[{number}]", outcome, COMPLETED)
    return problems


def _identity_problems(identity: Identity) -> list[str]:
    wrong = json_path_problem(identity.json_path) if identity.json_path is not None else None
    return [f"[identity] json_path = {identity.json_path!r}: {wrong}"] if wrong else []


def _payload_problems(payload: Payload, identity: Identity, folder: Path) -> list[str]:
    unread = bool(_identity_problems(identity))  # told by itself
    json_path = None if unread else identity.json_path
    problems = payload_problems(payload_files(payload, identity, folder), json_path=json_path)
    for number, name in enumerate(payload.holds):
        problems += choice_problem(f"[payload] holds[{number}]", name, HOLDS)
    return problems


def _ready_problems(ready: Ready) -> list[str]:
    problems = _positive("ready", ready)
    problems += placeholder_problems(ready.http or "", place="[ready] http", known=(*PLACEHOLDERS, "address"))
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


def _load_problems(load: LoadGiven) -> list[str]:
    return [] if 0 < load.factor <= 1 else [f"[load] factor = {load.factor} must be above 0 and at most 1"]


_CHECKS: dict[str, Any] = {
    "kafka": _kafka_problems,
    "progress": _progress_problems,
    "evidence": _evidence_problems,
    "identity": _identity_problems,
    "load": _load_problems,
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
        return [] if _fits(hint, value) else [f"{place} = {shown(value)} must be {_words(hint)}"]
    return [
        f"{name} = {shown(part)} must be a string; write it in quotes"
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
