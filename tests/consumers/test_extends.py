"""A consumer.toml that extends another: what is merged, how the text looks, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.extends import merged_text
from kafka_trial.errors import InputError

WHOLE = """# Orders.
schema = 1
name = "orders"
command = [
  "{python}", # ours
  "main.py",
]

[env]
TOPIC = "{topics}" # any

[claim]
delivery = "at-least-once"
"""
VARIANT = """# Orders, quiet.
extends = "consumer.toml"
name = "orders-quiet"
members = 2
[env]
TOPIC = "{group}"
MORE = '''a
b'''
[evidence]
events = "none"
sink = "none"
"""
MERGED = """# Orders, quiet.
schema = 1
name = "orders-quiet"
command = [
  "{python}", # ours
  "main.py",
]
members = 2

[env]
TOPIC = "{group}"
MORE = '''a
b'''

[claim]
delivery = "at-least-once"

[evidence]
events = "none"
sink = "none"
"""


def variant(folder: Path, text: str = VARIANT, *, whole: str = WHOLE) -> Path:
    """Writes both files; returns the one that extends the other."""
    (folder / "consumer.toml").write_text(whole)
    file = folder / "quiet.toml"
    file.write_text(text)
    return file


def test_the_merged_file_has_the_text_of_both(tmp_path: Path) -> None:
    """Each key in its place, new ones after the others of their table, with their comments; the opening comment too."""
    assert merged_text(variant(tmp_path)) == MERGED


def test_a_variant_is_read_as_the_merged_file(tmp_path: Path) -> None:
    """Its working folder is its own; what it does not say is as in the file that it extends."""
    spec = spec_from_toml(variant(tmp_path))
    assert (spec.path, spec.name, spec.members) == (tmp_path / "quiet.toml", "orders-quiet", 2)
    assert (spec.command, dict(spec.env)) == (("{python}", "main.py"), {"TOPIC": "{group}", "MORE": "a\nb"})
    assert (spec.evidence.events, spec.claim.delivery) == ("none", "at-least-once")


def test_what_extends_nothing_is_read_as_it_is(tmp_path: Path) -> None:
    """To the byte."""
    variant(tmp_path)
    assert merged_text(tmp_path / "consumer.toml") == WHOLE


def test_another_folder_can_be_named(tmp_path: Path) -> None:
    """Relative to the file's own; without a comment of its own it keeps the other's."""
    (tmp_path / "mine").mkdir()
    file = variant(tmp_path).rename(tmp_path / "mine" / "consumer.toml")
    file.write_text('extends = "../consumer.toml"\nname = "mine"')
    assert merged_text(file) == WHOLE.replace('"orders"', '"mine"')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('extends = "consumer.tml"', r"quiet.toml: extends = 'consumer.tml': there is no file .*consumer.tml"),
        ('extends = "quiet.toml"', r"quiet.toml: extends = 'quiet.toml' is this file itself; name the one that"),
        ("extends = 1", r"extends = 1 must be a path relative to this file, as in \"consumer.toml\""),
        ('extends = "/etc/consumer.toml"', "must be a path relative to this file"),
        ('extends = "consumer.toml"\nname = ', r"quiet.toml: is not TOML"),
        ('extends = "consumer.toml"\nenv.TOPIC = "t"', r"cannot be merged key by key; write its keys under the same"),
    ],
)
def test_what_cannot_be_extended_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """With what to write instead."""
    with pytest.raises(InputError, match=said):
        spec_from_toml(variant(tmp_path, text))


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        ('extends = "quiet.toml"\n', r"consumer.toml extends a file itself \('quiet.toml'\); only one level is read"),
        ('extends = "third.toml"\n', r"consumer.toml extends a file itself \('third.toml'\); only one level is read"),
        ("schema = \n", r"consumer.toml: is not TOML"),
    ],
)
def test_only_a_whole_file_is_extended(whole: str, said: str, tmp_path: Path) -> None:
    """Neither in a circle, nor on; and one that is wrong is named."""
    with pytest.raises(InputError, match=said):
        spec_from_toml(variant(tmp_path, whole=whole))
