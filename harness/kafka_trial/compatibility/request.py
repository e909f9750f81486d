"""The words of `preflight --to`: which of them make sense together, and which versions there are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kafka_trial.compatibility.tables import versions
from kafka_trial.errors import unknown_name

ADDRESS: Final = re.compile(r"\[?[^\s,\]]+\]?:\d{1,5}")
OF_UPGRADE: Final = ("to", "from_version", "request_log", "consumer")
LOOKED_AT: Final = ("bootstrap", "request_log", "consumer")
COMMON: Final = ("bootstrap", "command_config", "json", "debug", "plugin", "verb", "verb_function")


def is_upgrade(options: Mapping[str, Any]) -> bool:
    """Tells whether the words ask about an upgrade, be they whole or not."""
    return any(options.get(name) for name in OF_UPGRADE)


def upgrade_problems(options: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong with the words, each as a sentence."""
    if not options.get("to"):
        given = ", ".join(_option(name) for name in OF_UPGRADE if options.get(name))
        return [f"an upgrade to which version? Say --to beside {given}"]
    others = [_option(name) for name, value in options.items() if value and name not in (*OF_UPGRADE, *COMMON)]
    problems = _version_problems(to=options["to"], now=options.get("from_version"))
    if others:
        problems.append(f"it asks about an upgrade, not about records: leave out {', '.join(others)}")
    if not any(options.get(name) for name in LOOKED_AT):
        problems.append("what is to be looked at? Say --bootstrap, --request-log or --consumer")
    if options.get("consumer") and not options.get("bootstrap") and not options.get("from_version"):
        problems.append("which version have the brokers now? Say --from, or --bootstrap")
    problems += [
        f"--bootstrap: {part!r} is no host:port"
        for part in (options.get("bootstrap") or "").split(",")
        if options.get("bootstrap") and not ADDRESS.fullmatch(part)
    ]
    if options.get("command_config") and not options.get("bootstrap"):
        problems.append("--command-config asks a cluster: which one? Say --bootstrap")
    return problems


def _version_problems(*, to: str, now: str | None) -> list[str]:
    """Returns what is wrong with the two versions: that the tables do not know one, or that it is one."""
    given = {"--to": to} | ({} if now is None else {"--from": now})
    problems = [
        f"{option}: {unknown_name('Kafka version', number, versions())}"
        for option, number in given.items()
        if number not in versions()
    ]
    return problems + ([f"--from and --to are both {to}: nothing changes"] if to == now else [])


def _option(name: str) -> str:
    return "--from" if name == "from_version" else f"--{name.replace('_', '-')}"
