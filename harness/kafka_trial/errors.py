"""The exception tree: every failure of the harness, with the exit status it ends in.

```
KafkaTrialError
 ├─ InputError            2  wrong input, found before anything starts
 ├─ StartError            3  no history could be begun: port, disk, jars, boot, bootstrap, no Java
 ├─ UnjudgeableError      4  a history exists and cannot be judged
 │   └─ WaitTimeout       4  a bounded wait ran out (harness side)
 └─ Interrupted         130  Ctrl-C or SIGTERM, after healing and cleaning up
```
Messages say what was expected, what was seen, the likely cause and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

PASS, FAIL, WRONG_INPUT, NOT_BEGUN, UNKNOWN, INTERRUPTED = 0, 1, 2, 3, 4, 130


class KafkaTrialError(Exception):
    """Root of all errors the harness raises on purpose."""

    exit_status: int = UNKNOWN


class InputError(KafkaTrialError):
    """Something the user wrote is wrong; all problems of one input are reported together."""

    exit_status = WRONG_INPUT

    def __init__(self, where: str, problems: str | Sequence[str]) -> None:
        self.where = where
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"{where}:\n{lines}" if len(self.problems) > 1 else f"{where}: {self.problems[0]}")


class StartError(KafkaTrialError):
    """A trial's history could not be begun."""

    exit_status = NOT_BEGUN


class UnjudgeableError(KafkaTrialError):
    """A history exists, but no honest verdict can be drawn from it."""

    exit_status = UNKNOWN


class WaitTimeout(UnjudgeableError):  # noqa: N818 - a time-out is an outcome, the field's word
    """A bounded wait ran out; carries what was awaited and for how long."""


class Interrupted(KafkaTrialError):  # noqa: N818 - Ctrl-C is not an error of anybody's
    """The user pressed Ctrl-C; everything was healed and cleaned up before this left the run."""

    exit_status = INTERRUPTED


def unknown_name(what: str, given: str, valid: Iterable[str]) -> str:
    """Returns the sentence for a name that does not exist: the nearest one first, then all valid choices."""
    choices = sorted(valid)
    near = get_close_matches(given, choices, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {given!r}.{hint} Valid: {', '.join(choices) or '(none)'}"


def none_of(place: str, given: object, choices: Sequence[str]) -> str:
    """Returns the sentence for a value that is none of the choices: all of them, then the nearest."""
    near = get_close_matches(str(given), choices, n=1, cutoff=0.7)
    hint = f". Did you mean {near[0]!r}?" if near else ""
    return f"{place} = {given!r} is none of: {', '.join(choices)}{hint}"


def worst(statuses: Iterable[int]) -> int:
    """Returns the worst of several exit statuses: interrupted, fail, unknown, not begun, pass."""
    order = (INTERRUPTED, FAIL, UNKNOWN, NOT_BEGUN)
    seen = set(statuses)
    return next((status for status in order if status in seen), PASS)
