"""The words of the command line as those of a plan, over those of a TOML file, over those of a cluster.

A client's own properties file has settings that limit no size: they are named, and left out. What is written on the
command line or in a plan's file must be known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from kafka_trial.errors import InputError
from kafka_trial.preflight.knobs import CONSUMER, JAVA, KNOBS, LIBRARIES, PRODUCER, dotted, known_names
from kafka_trial.preflight.plan import ROLES, WORDS

ADDRESS: Final = re.compile(r"\[?[^\s,\]]+\]?:\d{1,5}")


def words_of(
    options: Mapping[str, Any], *, plan: Mapping[str, Any], client_configs: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Returns the words of the options over those of a plan's file; `client_configs` are properties files by role.

    Raises:
        InputError: a setting is not written as NAME=VALUE, or is misspelt in a client's file.
    """
    words = {**plan, **{name: options[name] for name in WORDS if options.get(name) is not None}}
    for role in ROLES:
        own = _assignments(f"--{role}-setting", options.get(f"{role}_setting") or ())
        library = str(words.get(f"{role}_library") or JAVA)
        given = client_configs.get(role, {})
        known = known_names(role, library) if library in LIBRARIES and (role, library) in KNOBS else set()
        if problems := [told for name in given if (told := _misspelt(name, known))]:
            raise InputError(f"--{role}-config", problems)
        of_file = {name: value for name, value in given.items() if dotted(name) in known}
        in_plan = words.get(role) or {}
        if isinstance(in_plan, Mapping):
            words[role] = {**of_file, **in_plan, **own}
    return words


def unused_settings(words: Mapping[str, Any], client_configs: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Returns the names in each client's properties file that limit no size, by role."""
    unused = {}
    for role in (PRODUCER, CONSUMER):
        library = str(words.get(f"{role}_library") or JAVA)
        if library in LIBRARIES and role in client_configs:
            known = known_names(role, library)
            unused[role] = sorted(name for name in client_configs[role] if dotted(name) not in known)
    return unused


def over_cluster(words: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the words over those that a cluster told: what is given beside it asks what would be."""
    together = {**found, **words}
    for role in ROLES:
        if isinstance(words.get(role), Mapping):
            together[role] = {**found.get(role, {}), **words[role]}
    return together


def bootstrap_problems(options: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong with the words that name a cluster."""
    bootstrap = options.get("bootstrap")
    beside = [name for name in ("topic", "group", "command_config") if options.get(name)]
    if not bootstrap:
        return [f"--{name.replace('_', '-')} asks a cluster: which one? Say --bootstrap" for name in beside]
    problems = [
        f"--bootstrap: {part!r} is no host:port" for part in bootstrap.split(",") if not ADDRESS.fullmatch(part)
    ]
    if not options.get("topic"):
        problems.append("--bootstrap: which topic there? Say --topic")
    if options.get("group") and (options.get("consumers") or options.get("partitions_per_consumer")):
        problems.append("--group counts the consumers: leave --consumers and --partitions-per-consumer out, or --group")
    return problems


def _misspelt(name: str, known: Collection[str]) -> str | None:
    """Returns the sentence for a name that is nearly a known one; Kafka's other names are not that near."""
    near = get_close_matches(dotted(name), known, n=1, cutoff=0.93)
    return f"unknown setting {name!r}. Did you mean {near[0]!r}?" if near and near[0] != dotted(name) else None


def _assignments(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    problems = [f"{''.join(pair)!r} is not written as NAME=VALUE" for pair in pairs if not pair[0] or not pair[1]]
    found: dict[str, str] = {}
    for name, _, value in pairs:
        if found.setdefault(name.strip(), value.strip()) != value.strip():
            problems.append(f"{name.strip()} is given as {found[name.strip()]} and as {value.strip()}: leave one out")
    if problems:
        raise InputError(option, problems)
    return found
