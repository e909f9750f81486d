"""The checkout that the laboratory works in: where its reports are kept, and which revision it is at."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from kafka_trial import registry
from kafka_trial.errors import INTERRUPTED, InputError, KafkaTrialError
from kafka_trial.report.explain import TABLE

MEASURED = ("reports", TABLE.relative_to(registry.CHECKOUT).as_posix())


def reports_folder() -> Path:
    """Returns the folder of rows and pages.

    Raises:
        InputError: this is no checkout.
    """
    folder = registry.CHECKOUT / "reports"
    if not folder.is_dir():
        raise InputError(str(registry.CHECKOUT), "is no checkout of Kafka Trial: clone it; the laboratory needs one")
    return folder


def git_revision() -> str:
    """Returns the short commit of the checkout, with + when its code was changed since; `-` outside a checkout.

    The reports are no code: they change while they are being made. So does the table that the wheel ships of them.
    """
    at = _git("describe", "--always", "--exclude=*")
    return (
        "-"
        if at is None
        else at + ("+" if _git("status", "--porcelain", "--", ".", *(f":!{path}" for path in MEASURED)) else "")
    )


def commit_date(commit: str) -> str:
    """Returns the day of a commit, of what was changed since too (+); nothing where git does not know it."""
    return _git("show", "--no-patch", "--format=%cs", commit.removesuffix("+"), "--") or ""


def exit_status(name: str, work: Callable[[], int]) -> int:
    """Does some work and returns its exit status; what ends it is told in one line, as `kafka-trial` does."""
    try:
        return work()
    except KafkaTrialError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print(f"{name}: interrupted; everything was healed and cleaned up", file=sys.stderr)
        return INTERRUPTED


def _git(*words: str) -> str | None:
    asked = ["git", "-C", str(registry.CHECKOUT), *words]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
