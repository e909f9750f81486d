"""When a member counts as started, and the sentences about those that never did."""

from __future__ import annotations

from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from kafka_trial.consumers.consumer import MemberFailure
from kafka_trial.consumers.member import ProcessMember
from kafka_trial.consumers.spec import Ready

TAIL_BYTES = 4096
LAST_LINES = 3
LAST_CHARACTERS = 300


def is_ready(member: ProcessMember, ready: Ready, *, url: str, by_hand: bool = False) -> bool:
    """Tells whether a member is ready: by its log, its URL, else by its own word that it was assigned.

    One that assigns partitions to itself (`by_hand`) is told of no assignment: any word of its own will do.
    """
    if not member.alive:
        return False
    if member.log_match is not None:
        return member.log_match.seen
    if ready.http:
        return _answers(url)
    return member.assigned or (by_hand and member.spoke)


def never_assigned(member: ProcessMember, within_s: float) -> MemberFailure:
    """Returns the failure of a member that runs and was not ready in time."""
    message = f"was not ready within {within_s:g} s; {_last_words(member)}"
    return MemberFailure(member.name, member.incarnation, "never-assigned", message)


def exited(member: ProcessMember) -> MemberFailure:
    """Returns the failure of a member that ended without being asked to."""
    return MemberFailure(member.name, member.incarnation, "exited", _ending(member))


def _ending(member: ProcessMember) -> str:
    code = member.exit_code
    words = f"by signal {-code}" if code is not None and code < 0 else f"with status {code}"
    return f"{words}; {_last_words(member)}"


def _last_words(member: ProcessMember) -> str:
    """Quotes the last lines that a member wrote to stderr, and says where the rest is."""
    place = f"logs/{member.stderr_file.name}"
    lines = [line.strip() for line in _tail(member.stderr_file).splitlines() if line.strip()]
    said = " / ".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:]
    return f"its last words in {place}: {said}" if said else f"it wrote nothing to {place}"


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as log:
            log.seek(max(0, file.stat().st_size - TAIL_BYTES))
            return log.read().decode(errors="replace")
    except OSError:
        return ""


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1.0):  # raises for every status but 2xx
            return True
    except (URLError, OSError, ValueError):
        return False
