"""A consumer that is stored as a patch is, to a trial, an ordinary folder with an ordinary program."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.patched_consumer import (
    build_consumer_folder,
    find_patch,
    program_source,
    render_patched_files,
)
from kafka_trial.errors import InputError
from kafka_trial.trial.run_metadata import folder_digest
from kafka_trial.trial.spec import make_trial_spec

DIFF = "--- ../../reference/orders/main.py\n+++ main.py\n@@ -1,2 +1,2 @@\n import os\n-print(1)\n+print(2)\n"
PROGRAM = "import os\nprint(1)\n"
TOML = 'schema = 1\nname = "orders"\ncommand = ["{python}", "main.py"]\n[claim]\ndelivery = "at-least-once"\n'


@pytest.fixture
def sin(tmp_path: Path) -> Path:
    """The consumer.toml of a sin beside its reference, in two folders as ours are."""
    reference, faulty = tmp_path / "reference" / "orders", tmp_path / "faulty" / "prints-two"
    for folder in (reference, faulty):
        folder.mkdir(parents=True)
    (reference / "main.py").write_text(PROGRAM)
    (reference / "consumer.toml").write_text(TOML)
    (faulty / "sin.diff").write_text(DIFF)
    (faulty / "notes.txt").write_text("kept\n")
    (tmp_path / "start.py").write_text("pass\n")
    toml = faulty / "consumer.toml"
    toml.write_text('extends = "../../reference/orders/consumer.toml"\ncommand = ["{python}", "../../start.py"]\n')
    return toml


def test_it_is_made_an_ordinary_folder(sin: Path, tmp_path: Path) -> None:
    """The program, its TOML file merged, what lies beside it, what its command names; nothing of a patch."""
    made = build_consumer_folder(sin, tmp_path / "run")
    files = {file.relative_to(tmp_path / "run").as_posix() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    inside = "faulty/prints-two"
    assert files == {"start.py", f"{inside}/consumer.toml", f"{inside}/main.py", f"{inside}/notes.txt"}
    assert (made.parent / "main.py").read_text() == program_source(sin.parent) == "import os\nprint(2)\n"
    assert "extends" not in made.read_text()
    assert spec_from_toml(made).command == spec_from_toml(sin).command
    assert (find_patch(made.parent), render_patched_files(made.parent)) == (None, {})


def test_its_digest_is_that_of_the_folder_it_is_made(sin: Path, tmp_path: Path) -> None:
    """However it is stored; and a change of the reference is one of the sin."""
    digest = folder_digest(sin.parent)
    assert digest == folder_digest(build_consumer_folder(sin, tmp_path / "run").parent)
    reference = tmp_path / "reference" / "orders" / "main.py"
    reference.write_text(PROGRAM + "print(3)\n")
    assert folder_digest(sin.parent) != digest


def test_a_reference_that_has_changed_there_is_told_before_anything_starts(sin: Path, tmp_path: Path) -> None:
    """The file, the hunk, and what to do."""
    (tmp_path / "reference" / "orders" / "main.py").write_text("import sys\nprint(1)\n")
    with pytest.raises(
        InputError, match=r"prints-two/sin.diff, hunk 1: line 1 must be 'import os.n'.*make the diff again"
    ):
        make_trial_spec(registry.find_scenario("control"), sin)


def test_a_patch_stands_for_a_program_and_is_on_one(sin: Path, tmp_path: Path) -> None:
    """Two programs would be one too many; and a patch on nothing is none."""
    (sin.parent / "main.py").write_text("")
    with pytest.raises(InputError, match=r"sin.diff: is beside a main.py, which it stands for"):
        render_patched_files(sin.parent)
    (sin.parent / "main.py").unlink()
    (tmp_path / "reference" / "orders" / "main.py").unlink()
    with pytest.raises(InputError, match=r"is on ../../reference/orders/main.py, and there is no file"):
        program_source(sin.parent)


def test_an_ordinary_folder_is_as_it_is(tmp_path: Path) -> None:
    """Whatever else lies there."""
    (tmp_path / "main.py").write_text(PROGRAM)
    (tmp_path / "last-week.diff").write_text("no diff at all")
    assert (render_patched_files(tmp_path), program_source(tmp_path)) == ({}, PROGRAM)
