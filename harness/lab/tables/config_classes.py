"""The public settings of one Kafka version, printed by a Java program that asks its configuration classes."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.user_cache import run_tool, tail
from kafka_trial.compatibility.tables import ROLES
from kafka_trial.errors import StartError
from lab.tables.lines import Row

PROGRAM: Final = Path(__file__).with_name("Defaults.java")
CHOICES: Final = re.compile(r"\[([^\[\]]*, [^\[\]]*)\]")


def config_rows(jars: Sequence[Path]) -> dict[str, dict[str, Row]]:
    """Returns the settings of each role by name: type, importance, default, valid values.

    Raises:
        StartError: there is no compiler, or the program failed.
    """
    java = find_java().resolve()
    compiler = java.with_name("javac")
    if not compiler.exists():
        raise StartError(f"there is no {compiler} to compile {PROGRAM.name} with; set JAVA_HOME to a JDK")
    paths = os.pathsep.join(map(str, jars))
    with tempfile.TemporaryDirectory() as classes:
        _run("javac", [compiler, "-nowarn", "-d", classes, "-cp", paths, PROGRAM])
        printed = _run("java", [java, "-cp", os.pathsep.join([classes, paths]), PROGRAM.stem])
    found: dict[str, dict[str, Row]] = {role: {} for role in ROLES}
    for line in printed.splitlines():
        words = line.split("\t")
        if len(words) == 6 and words[0] in found:
            role, name, *told, valid = words
            found[role][name] = [*told, CHOICES.sub(_sorted, valid)]
    return found


def _sorted(choices: re.Match[str]) -> str:
    """Returns the choices in order: Java prints those of a set in any."""
    return f"[{', '.join(sorted(choices[1].split(', ')))}]"


def _run(name: str, command: list[str | Path]) -> str:
    status, said = run_tool(name, command)
    if status != 0:
        raise StartError(f"{name} ended with {status}: {tail(said)}")
    return said
