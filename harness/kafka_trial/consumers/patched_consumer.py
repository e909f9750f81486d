"""A consumer that is stored as a patch on a reference, and the folder that a trial builds of it and starts.

A folder of ours may hold `sin.diff` or `twin.diff` in place of `main.py`: what differs from the `main.py` that its
first line names. Its TOML files extend those beside that one. Whoever reads files of a consumer reads them by
`render_patched_files`, or in a folder that `build_consumer_folder` has made; the consumer itself can see nothing of it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kafka_trial.consumers.extends import merged_text, read_consumer_toml
from kafka_trial.consumers.unified_diff import apply_diff, file_named
from kafka_trial.errors import InputError

PROGRAM = "main.py"
PATCHES = ("sin.diff", "twin.diff")


def find_patch(folder: Path) -> Path | None:
    """Returns the patch that is stored in place of a program; None for an ordinary folder."""
    return next((patch for name in PATCHES if (patch := folder / name).is_file()), None)


def patch_base(patch: Path) -> Path:
    """Returns the program that a patch is on, which is whole itself.

    Raises:
        InputError: it names none.
    """
    named = file_named(_text(patch), where=str(patch))
    file = patch.parent / named
    if not file.is_file():
        raise InputError(str(patch), f"is on {named}, and there is no file {file}; name the main.py of a reference")
    return file.resolve()


def render_patched_files(folder: Path) -> dict[str, bytes]:
    """Returns those files of a consumer's folder that a trial has otherwise than they are stored: name → content.

    They are `main.py` and the TOML files of one that is stored as a patch; none for an ordinary folder.

    Raises:
        InputError: its patch does not apply exactly, or a TOML file extends none.
    """
    patch = find_patch(folder)
    if patch is None:
        return {}
    if (folder / PROGRAM).exists():
        raise InputError(str(patch), f"is beside a {PROGRAM}, which it stands for; take one of them away")
    program = apply_diff(_text(patch), _text(patch_base(patch)), where=str(patch))
    tomls = {file.name: merged_text(file).encode() for file in sorted(folder.glob("*.toml"))}
    return {PROGRAM: program.encode(), **tomls}


def program_source(folder: Path) -> str:
    """Returns the text of a consumer's `main.py` as a trial has it.

    Raises:
        InputError: as `render_patched_files`.
    """
    made = render_patched_files(folder)
    return made[PROGRAM].decode() if made else _text(folder / PROGRAM)


def build_consumer_folder(toml: Path, into: Path) -> Path:
    """Makes the folder of a fixture inside `into`, as `<kind>/<name>`; returns its TOML file there.

    What the command names beside the folder comes along. The result is a folder as any other: it does not show that
    there was a patch.

    Raises:
        InputError: as `render_patched_files`.
    """
    stored = toml.absolute().parent
    made = render_patched_files(stored)
    folder = into / stored.parent.name / stored.name
    shutil.copytree(stored, folder, ignore=shutil.ignore_patterns(*PATCHES, "__pycache__"))
    for name, content in made.items():
        (folder / name).write_bytes(content)
    for part in read_consumer_toml(toml).get("command", []):
        if part.startswith("../../") and (stored / part).is_file():
            shutil.copy(stored / part, into / part.removeprefix("../../"))
    return folder / toml.name


def _text(file: Path) -> str:
    """Returns a file's text to the byte: its ends of lines are not changed."""
    return file.read_bytes().decode()
