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

import errno
import json
import sys
import traceback
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

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


# What the operating system says of a path that a user names wrongly; of a full disk it says something else.
WRONG_PATH = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTEMPTY),
}


def end_in_status(command: str, error: BaseException, *, debug: bool = False, named: Iterable[str] = ()) -> int:
    """Prints on stderr in one sentence how a command ended, and returns its exit status; never 1, which is a verdict.

    An error of ours has its own status. A path among those that the user has `named`, or below one, which cannot be
    read or written is wrong input. All else is unexpected: nothing was found out about a consumer. `debug` adds the
    traceback.
    """
    if debug:
        traceback.print_exception(error)
    if isinstance(error, KafkaTrialError):
        print(told_by(command, str(error)), file=sys.stderr)
        return error.exit_status
    if isinstance(error, OSError) and (path := _named_path(error, named)):
        print(f"{command}: {path}: {error.strerror}. Check the path and the rights on it", file=sys.stderr)
        return WRONG_INPUT
    print(f"{command}: {unexpected(error)}", file=sys.stderr)
    return NOT_BEGUN


def unexpected(error: BaseException) -> str:
    """Returns the sentence for an error that no part of the harness expected."""
    said = " ".join(str(error).split()) or "without a message"
    return (
        f"unexpected error, {type(error).__name__}: {said}. It is no verdict on a consumer. "
        "`kafka-trial --debug` before the same words shows where it happened"
    )


def told_by(command: str, message: str) -> str:
    """Returns a message with the command before it; one that begins with the verb does not name it twice."""
    verb = command.rpartition(" ")[2]
    rest = message.removeprefix(f"{verb}:")
    return f"{command}: {message}" if rest == message else f"{command}:{rest}"


def _named_path(error: OSError, named: Iterable[str]) -> str | None:
    """Returns the path that an error is about where the user named it, or a folder that it is in."""
    path = error.filename
    if error.errno not in WRONG_PATH or not isinstance(path, str):
        return None
    absolute = Path(path).absolute()
    known = [Path(one).absolute() for one in named if one]
    return path if any(one == absolute or one in absolute.parents for one in known) else None


def reason(error: Exception) -> str:
    """Returns what an error says, without the number that Python puts before the words of the operating system."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def shown(value: object) -> str:
    """Returns a value as its TOML or JSON file has it (true, ["a"]); a text in quotes."""
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def unknown_name(what: str, given: str, valid: Iterable[str]) -> str:
    """Returns the sentence for a name that does not exist: the nearest one first, then all valid choices."""
    choices = sorted(valid)
    return f"unknown {what} {given!r}.{did_you_mean(given, choices)} Valid: {', '.join(choices) or '(none)'}"


def did_you_mean(given: str, choices: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> str:
    """Returns " Did you mean 'this'?" with the nearest names, for the end of a sentence; empty where none is near."""
    near = get_close_matches(given, list(choices), n=most, cutoff=cutoff)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def none_of(place: str, given: object, choices: Sequence[str]) -> str:
    """Returns the sentence for a value that is none of the choices: all of them, then the nearest."""
    near = did_you_mean(str(given), choices, cutoff=0.7)
    hint = f".{near}" if near else ""
    return f"{place} = {shown(given)} is none of: {', '.join(choices)}{hint}"


def worst(statuses: Iterable[int]) -> int:
    """Returns the worst of several exit statuses: interrupted, fail, unknown, not begun, pass."""
    order = (INTERRUPTED, FAIL, UNKNOWN, NOT_BEGUN)
    seen = set(statuses)
    return next((status for status in order if status in seen), PASS)
