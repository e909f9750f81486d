"""Where the fixtures lie, and which belong together: a sin and its reference, a twin and its sin.

A fixture stands for itself by its consumer.toml; its program is that of `patched_consumer.program_source`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from kafka_trial import registry
from kafka_trial.consumers.patched_consumer import PATCHES, find_patch, merged_text, patch_base, program_source
from kafka_trial.judge.consumer_settings import settings_of
from kafka_trial.model.trial_context import Settings

FIXTURES = registry.CHECKOUT / "fixtures"
REFERENCES = sorted(FIXTURES.glob("reference/*/*.toml"))
SINS = sorted(FIXTURES.glob("faulty/*/consumer.toml"))
TWINS = sorted(FIXTURES.glob("twins/*/consumer.toml"))
PROGRAMS = sorted({main.parent for name in ("main.py", *PATCHES) for main in FIXTURES.glob(f"*/*/{name}")})


def names(path: Path) -> str:
    """Returns the name of a fixture, of one of its variants where it is not its consumer.toml."""
    if path.is_dir():
        return path.name
    return path.parent.name if path.name == "consumer.toml" else f"{path.parent.name}-{path.stem}"


def reference_of(fixture: Path) -> Path:
    """Returns the consumer.toml of the reference that the diff of a sin or a twin is on."""
    patch = find_patch(fixture.parent)
    assert patch, f"{fixture} is stored as no patch"
    return patch_base(patch).with_name("consumer.toml")


def sin_of(twin: Path) -> Path:
    """Returns the consumer.toml of the sin that a twin's docstring names."""
    text = ast.get_docstring(ast.parse(program_source(twin.parent))) or ""
    found = re.search(r"^Twin of: (\S+)$", text, re.MULTILINE)
    assert found, f"{twin} does not name its sin"
    return FIXTURES / "faulty" / found[1] / "consumer.toml"


def declared(toml: Path) -> Settings:
    """Returns what a fixture declares, read as from its run folder: there the file is merged."""
    with TemporaryDirectory() as folder:
        merged = Path(folder) / "consumer.toml"
        merged.write_text(merged_text(toml))
        return settings_of(merged)
