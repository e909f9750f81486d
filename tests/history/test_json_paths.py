"""JSON paths: what they lead to, and which cannot be read."""

from __future__ import annotations

import pytest

from kafka_trial.history.json_paths import json_path, json_path_problem, path_steps
from kafka_trial.history.record_ids import id_in_json

VALUE = b'{"id": "r1", "a": [{"b": "r2"}, 7], "a-b": {"c.d": "r3", "it\'s": 1.5}, "yes": true, "$oid": "r4"}'


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("id", "r1"),
        ("$.id", "r1"),
        ("$.a[0].b", "r2"),
        ("a[1]", "7"),
        ("$['a'][0]['b']", "r2"),
        ("$['a-b']['c.d']", "r3"),
        ('$["a-b"]["c.d"]', "r3"),
        ("['a-b']['c.d']", "r3"),
        ("$.a-b['it\\'s']", "1.5"),
        ("$.$oid", "r4"),
        ("$.a[2]", None),
        ("$.a.b", None),
        ("$.id[0]", None),
        ("$.id.b", None),
        ("$.a", None),
        ("$.yes", None),
    ],
)
def test_a_path_leads_to_one_place(path: str, found: str | None) -> None:
    """Names, quoted names, indexes, from the root or without it; a list, an object and a truth are no id."""
    assert id_in_json(VALUE, path) == found


def test_the_root_may_itself_be_the_id() -> None:
    """A value that is a string alone."""
    assert (path_steps("$"), id_in_json(b'"r1"', "$")) == ((), "r1")


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("", "'.'"),
        ("$.", "'.'"),
        ("$..id", "'..id'"),
        ("$.a[*].b", "'[*].b'"),
        ("$.*", "'.*'"),
        ("$.a[-1]", "'[-1]'"),
        ("$.a[01]", "'[01]'"),
        ("$.a[0", "'[0'"),
        ("$['a", '"[\'a"'),
        ("$.a b", "' b'"),
        ("$.a[?(@.b)]", "'[?(@.b)]'"),
    ],
)
def test_a_path_that_cannot_be_read_names_the_step(path: str, step: str) -> None:
    """What is wrong, and how a step is written."""
    problem = json_path_problem(path)
    assert problem == f"{step} is no step to one place: " + (
        "write .name, ['any name'] or [0] for each step, as in $.order.lines[0].id"
    )


@pytest.mark.parametrize("value", [b"[" * 100_000, b'{"id": ' + b"9" * 5000 + b"}", b"\xff", b"", b"null"])
def test_a_value_that_is_no_json_has_no_id(value: bytes) -> None:
    """Too deep, a number too long, no text, nothing."""
    assert id_in_json(value, "$.id") is None


def test_an_id_can_always_be_written_down() -> None:
    """Half a surrogate pair, which no file could take, is escaped."""
    assert id_in_json(b'{"id": "r\\ud800"}', "$.id") == "r\\ud800"


def test_a_path_is_shown_from_its_root() -> None:
    """However it was written."""
    assert [json_path(path) for path in ("id", "$.id", "['a b']", "$['a b']")] == ["$.id", "$.id", *["$['a b']"] * 2]
