"""When a member counts as started, and the sentences about those that never did."""

from __future__ import annotations

from urllib.error import URLError
from urllib.request import urlopen

from kafka_trial.consumers.consumer import MemberFailure
from kafka_trial.consumers.member import ProcessMember
from kafka_trial.consumers.spec import Ready


def is_ready(member: ProcessMember, ready: Ready, *, url: str) -> bool:
    """Tells whether a member is ready: by its log, its URL, else by its own word that it was assigned."""
    if not member.alive:
        return False
    if member.log_match is not None:
        return member.log_match.seen
    return _answers(url) if ready.http else member.assigned


def never_assigned(member: ProcessMember, within_s: float) -> MemberFailure:
    """Returns the failure of a member that runs and was not ready in time."""
    message = (
        f"was not ready within {within_s:g} s; its own words are in logs/{member.name}-{member.incarnation}.stderr"
    )
    return MemberFailure(member.name, member.incarnation, "never-assigned", message)


def exited(member: ProcessMember) -> MemberFailure:
    """Returns the failure of a member that ended without being asked to."""
    return MemberFailure(member.name, member.incarnation, "exited", f"exited by itself, {_ending(member)}")


def _ending(member: ProcessMember) -> str:
    code = member.exit_code
    words = f"by signal {-code}" if code is not None and code < 0 else f"with status {code}"
    return f"{words}; its own words are in logs/{member.name}-{member.incarnation}.stderr"


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1.0):  # raises for every status but 2xx
            return True
    except (URLError, OSError, ValueError):
        return False
