"""The catalogue of what a history may hold says the same as the one in words, and as the code that writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_trial.history import event
from kafka_trial.history.event import KINDS, REQUIRED, kinds_of, lacking
from kafka_trial.registry import PACKAGE

KINDS_COLUMN = 20


def test_the_kinds_are_those_of_the_catalogue_in_words() -> None:
    """Source by source, each kind that `event.py` tells of, and no other."""
    told: dict[str, set[str]] = {}
    source = ""
    for line in (event.__doc__ or "").split("```")[1].splitlines():
        source = line[:KINDS_COLUMN].strip() or source
        words = line[KINDS_COLUMN:]
        if words.strip() and words[0] != " " and not words.startswith("every line"):
            told.setdefault(source.split("-")[0], set()).update(words.split("  ")[0].split())
    assert told.pop("every witness") == {"witness"}
    assert {name: set(kinds) for name, kinds in KINDS.items()} == told


def test_nothing_is_written_that_is_not_in_it() -> None:
    """Every kind that an event writer is told by name."""
    pens = re.compile(r'\.record\(\s*"([a-z_]+)"')
    written = {kind for path in PACKAGE.rglob("*.py") for kind in pens.findall(Path(path).read_text())}
    assert written - {kind for kinds in KINDS.values() for kind in kinds} <= {"witness"}
    assert len(written) > 15


@pytest.mark.parametrize("source", ["run", "consumer-m0-12", "consumer-some-name-0", "requests-b2"])
def test_sources(source: str) -> None:
    """A source is known by its file's name."""
    assert "witness" in (kinds_of(source) or ())


@pytest.mark.parametrize("source", ["runs", "offsets (1)", "consumer-m0", "requests-2", ""])
def test_no_sources(source: str) -> None:
    """A copy, a typing error: nobody's."""
    assert kinds_of(source) is None


def test_what_is_required_can_be_told() -> None:
    """Nothing is asked of a kind that does not exist."""
    assert set(REQUIRED) <= {kind for kinds in KINDS.values() for kind in kinds} | {"witness"}


@pytest.mark.parametrize("value", [None, "5", True, 5.0, 2**63])
def test_what_lacks(value: object) -> None:
    """Absent, of another type, a truth value for a number, a number beyond 64 bits."""
    assert lacking("clock", {"wall_ns": value}) == ["wall_ns"]
    assert lacking("clock", {"wall_ns": 5}) == []


@pytest.mark.parametrize("value", [None, "5", True, 5.0, 2**63])
@pytest.mark.parametrize(
    ("kind", "must", "may"), [("clock", "wall_ns", "read_ns"), ("scheduling_delay", "delay_ns", "every_ns")]
)
def test_what_is_wrong_that_might_have_been_left_out(kind: str, must: str, may: str, value: object) -> None:
    """A time that may be told must be one where it is."""
    assert lacking(kind, {must: 5, may: value}) == [may]
    assert lacking(kind, {must: 5, may: 5}) == lacking(kind, {must: 5}) == []
