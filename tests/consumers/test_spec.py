"""Placeholders: the closed list, braces that are meant, and what is refused."""

from __future__ import annotations

import pytest

from kafka_trial.consumers.spec import fill, placeholder_problems


def test_placeholders_are_filled_and_double_braces_are_braces() -> None:
    """`{{` and `}}` come out as single braces."""
    assert fill('{{"servers": "{bootstrap}"}}', {"bootstrap": "b:1"}) == '{"servers": "b:1"}'


@pytest.mark.parametrize(
    "text", ["{nobody}", "{", "}", "{bootstrap!r}", "{bootstrap:>9}", "{bootstrap.x}", "{0}", "{}"]
)
def test_anything_else_in_braces_is_a_problem(text: str) -> None:
    """Unknown names, stray braces, and Python's formatting extras are all refused."""
    assert len(placeholder_problems(text, place="env.X")) == 1
