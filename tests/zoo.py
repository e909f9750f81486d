"""Where the fixtures lie, and which belong together: a sin and its reference, a twin and its sin."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from kafka_trial import registry

FIXTURES = registry.CHECKOUT / "fixtures"
REFERENCES = sorted(FIXTURES.glob("reference/*/*.toml"))
SINS = sorted(FIXTURES.glob("faulty/*/main.py"))
TWINS = sorted(FIXTURES.glob("twins/*/main.py"))


def names(path: Path) -> str:
    """Returns the name of a fixture, of one of its variants where it is not its consumer.toml."""
    return path.parent.name if path.name in ("main.py", "consumer.toml") else f"{path.parent.name}-{path.stem}"


def reference_of(main: Path) -> Path:
    """Returns the reference's main.py that the first line of a sin's docstring names."""
    first = (ast.get_docstring(ast.parse(main.read_text())) or "").splitlines()[0]
    found = re.search(r"reference (\S+) with one line", first)
    assert found, f"{main} does not name its reference"
    return FIXTURES / "reference" / found[1] / "main.py"


def sin_of(twin: Path) -> Path:
    """Returns the main.py of the sin that a twin's docstring names."""
    found = re.search(r"^Twin of: (\S+)$", ast.get_docstring(ast.parse(twin.read_text())) or "", re.MULTILINE)
    assert found, f"{twin} does not name its sin"
    return FIXTURES / "faulty" / found[1] / "main.py"
