"""The finished examples: a page prints each consumer.toml as it is, and what they are built from is pinned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_trial.registry import CHECKOUT

DOCS = CHECKOUT / "docs"
PAGE = DOCS / "examples.md"
EXAMPLES = sorted(file.parent for file in DOCS.glob("examples/*/consumer.toml"))
TEXT = PAGE.read_text(encoding="utf-8")


def test_there_are_examples() -> None:
    """Else the tests below would pass without one."""
    assert {"aiokafka", "franz-go", "kafkajs", "spring-kafka"} <= {folder.name for folder in EXAMPLES}


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_is_on_the_page(folder: Path) -> None:
    """Its consumer.toml whole, the commands that build it, and a link to its folder."""
    text = (folder / "consumer.toml").read_text(encoding="utf-8")
    assert re.search(r"^# Build: \S", text, re.MULTILINE)
    assert text in re.findall(r"^```toml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert f"(examples/{folder.name})" in TEXT


def test_what_the_page_of_examples_shows_stands_in_their_files() -> None:
    """Word for word: each of its blocks but those with commands, and no folder that is not there."""
    files = [file.read_text() for file in _files_of_examples()]
    blocks = [
        text
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
        if language not in ("sh", "console")
    ]
    assert [text for text in blocks if not any(text in file for file in files)] == []
    assert set(re.findall(r"\]\(examples/([\w-]+)\)", TEXT)) == {folder.name for folder in EXAMPLES}


@pytest.mark.parametrize("lock", sorted(DOCS.glob("examples/*/requirements.txt")), ids=lambda lock: lock.parent.name)
def test_python_packages_are_pinned_with_hashes(lock: Path) -> None:
    """Each of them, and no index is named."""
    text = lock.read_text(encoding="utf-8")
    packages = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    assert [one for one in packages if not re.match(r"[\w.-]+==\S+ \\\n    --hash=sha256:", one)] == []
    assert "://" not in text


@pytest.mark.parametrize("lock", sorted(DOCS.glob("examples/*/package-lock.json")), ids=lambda lock: lock.parent.name)
def test_npm_packages_are_pinned_with_hashes(lock: Path) -> None:
    """Each of them, and no address is kept, now or by the next install."""
    text = lock.read_text(encoding="utf-8")
    packages = {name: one for name, one in json.loads(text)["packages"].items() if name}
    assert [name for name, one in packages.items() if "integrity" not in one] == []
    assert "://" not in text
    assert "omit-lockfile-registry-resolved=true" in lock.with_name(".npmrc").read_text(encoding="utf-8")


@pytest.mark.parametrize("lock", sorted(DOCS.glob("examples/*/go.mod")), ids=lambda lock: lock.parent.name)
def test_go_modules_are_pinned_with_hashes(lock: Path) -> None:
    """Each that go.mod names has its line in go.sum."""
    sums = lock.with_name("go.sum").read_text(encoding="utf-8")
    modules = re.findall(r"^(?:require |\t)(\S+) (v\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    assert modules
    assert [module for module in modules if f"{module[0]} {module[1]} h1:" not in sums] == []


def _files_of_examples() -> Iterator[Path]:
    """Yields their files, but for what a build made."""
    made = {"target", "node_modules", "venv", ".venv"}
    for folder in EXAMPLES:
        yield from (
            file for file in folder.rglob("*.*") if file.is_file() and not made & {*file.relative_to(folder).parts}
        )
