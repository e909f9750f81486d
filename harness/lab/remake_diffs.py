"""`python -m lab.remake_diffs`: makes the diffs of sins and twins again after a reference has changed.

A diff applies exactly or not at all, so a change of a reference's `main.py` leaves the diffs on it behind. Each is
carried over by a three-way merge: what the reference was when the diff applied last, what it is in the work tree, and
what the diff made of the former. Where both changed the same lines a human must decide: that diff stays as it is.
A merge without a conflict knows nothing of what a program means: read what has changed (`git diff fixtures`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from pathlib import Path

from kafka_trial import registry
from kafka_trial.consumers.patched_consumer import (
    NO_NEWLINE,
    PROGRAM,
    apply_diff,
    file_named,
    find_patch,
    patch_base,
    split_lines,
)
from kafka_trial.errors import FAIL, PASS, InputError
from lab.repository import exit_status

CONTEXT_LINES = 1  # each is compared, at its very number: more of them would find no more
BY_HAND = "make it again by hand: CONTRIBUTING.md, Add a consumer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries every diff over to its reference of now; 1 where one could not be, or `--check` found one to make."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.remake_diffs", description="Makes the diffs of sins and twins again on changed references."
    )
    parser.add_argument("--base", default="HEAD", metavar="REV", help="a commit where they applied (default HEAD)")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where one would be made again")
    options = parser.parse_args(arguments)
    return exit_status("remake_diffs", lambda: remake_all(base=options.base, check=options.check))


def remake_all(*, base: str = "HEAD", check: bool = False) -> int:
    """Makes each diff again that its reference's change asks for, and tells which; goes on after one that it cannot.

    Raises:
        InputError: `base` is no commit.
    """
    if _git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}") is None:
        raise InputError("--base", f"{base!r} is no commit of {registry.CHECKOUT}: name one where the diffs applied")
    patches, remade, problems = list(stored_patches()), 0, 0
    for patch in patches:
        try:
            diff = remake_diff(patch, base=base)
        except InputError as error:
            problems += 1
            print(f"left as it is: {error}", file=sys.stderr)
            continue
        if diff != _text(patch):
            remade += 1
            print(f"{'to be made again' if check else 'made again'}: {patch.relative_to(registry.CHECKOUT)}")
            if not check:
                patch.write_bytes(diff.encode())
    print(f"{len(patches)} diffs: {remade} {'to make' if check else 'made'} again, {problems} left to you")
    return FAIL if problems or (check and remade) else PASS


def stored_patches() -> Iterator[Path]:
    """Yields the diffs of all sins and twins."""
    for folder in (folder for root in registry.zoo_folders() for folder in sorted(root.iterdir())):
        if (patch := find_patch(folder)) is not None:
            yield patch


def remake_diff(patch: Path, *, base: str) -> str:
    """Returns the text of a diff on its reference as it is in the work tree; the same where that applies as it stands.

    Raises:
        InputError: it is no diff, applied to no version of its reference up to `base`, conflicts with what has changed
            since, or has nothing left to change.
    """
    diff, program = _text(patch), patch_base(patch)
    now, versions = _text(program), _versions(program, base)
    made_now = _applied(diff, now)
    # One that applies as it stands may only have come to mean something else by the very last change.
    older = versions if made_now is None else islice(versions, 1)
    applied = ((text, made) for text in older if (made := _applied(diff, text)) is not None)
    then, made_then = next(applied, (now, made_now))
    if made_then is None:
        said = f"applies to no version of {program.parent.name} up to {base}, nor to that of the work tree"
        raise InputError(str(patch), f"{said}; {BY_HAND}, or name a --base")
    merged = made_then if then == now else _merge(made_then, then, now, patch=patch)
    if merged == made_now:
        return diff
    if merged == now:
        raise InputError(str(patch), f"{program} says by itself now what it was to change; {BY_HAND}")
    return make_diff(now, merged, on=file_named(diff, where=str(patch)))


def make_diff(old: str, new: str, *, on: str) -> str:
    """Returns the unified diff from the program named `on` to a consumer's own, which `apply_diff` takes."""
    lines = unified_diff(split_lines(old), split_lines(new), on, PROGRAM, n=CONTEXT_LINES)
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in lines)


def _versions(program: Path, base: str) -> Iterator[str]:
    """Yields what a file was in each commit up to `base` that changed it, the latest first."""
    path = program.relative_to(registry.CHECKOUT.resolve())
    for commit in (_git("log", "--format=%H", base, "--", str(path)) or b"").decode().split():
        if (text := _git("show", f"{commit}:./{path}")) is not None:
            yield text.decode()


def _applied(diff: str, text: str) -> str | None:
    try:
        return apply_diff(diff, text, where="diff")
    except InputError:
        return None


def _merge(made_then: str, then: str, now: str, *, patch: Path) -> str:
    """Merges what has changed from `then` to `now` into what the diff made of `then`.

    Raises:
        InputError: both changed the same lines.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("reference", "before", "consumer")]
        for file, text in zip(files, (now, then, made_then), strict=True):
            file.write_bytes(text.encode())
        words = ["git", "merge-file", "-p", "--diff3", *map(str, files)]
        done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
    merged = done.stdout.decode()
    if done.returncode == 0:
        return merged
    if done.returncode > 127:
        raise InputError(str(patch), f"git merge-file failed: {done.stderr.decode().strip()}")
    places = f"{done.returncode} place{'s' * (done.returncode != 1)}"
    first = merged.partition("<<<<<<< ")[2].splitlines()[1]
    said = f"conflicts with its reference in {places}, the first where that has {first!r}"
    raise InputError(str(patch), f"{said}; {BY_HAND}")


def _git(*words: str) -> bytes | None:
    done = subprocess.run(["git", "-C", str(registry.CHECKOUT), *words], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def _text(file: Path) -> str:
    """Returns a file's text to the byte: its ends of lines are not changed."""
    return file.read_bytes().decode()


if __name__ == "__main__":
    sys.exit(main())
