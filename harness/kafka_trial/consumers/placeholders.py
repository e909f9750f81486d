"""Placeholders of consumer.toml: words in braces that the harness fills in for each member ({{ is a brace).

The list is closed: what is not in it is wrong input, found before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import Formatter

from kafka_trial.errors import unknown_name

PLACEHOLDERS = (
    "bootstrap",
    "group",
    "topics",
    "member",
    "incarnation",
    "members",
    "client_id",
    "sink_url",
    "seed",
    "protocol",
    "session_timeout_ms",
    "poll_interval_ms",
    "kafka_version",
    "kafka_classpath",
    "java",
    "python",
    "run_dir",
)
# Those that say the same to every member.
OF_ALL = ("group", "topics", "members", "seed", "protocol", "session_timeout_ms", "poll_interval_ms", "kafka_version")


def placeholder_problems(text: str, *, place: str, known: Sequence[str] = PLACEHOLDERS) -> list[str]:
    """Returns a sentence for each stray brace in `text`, and each placeholder that is none of those `known`."""
    try:
        names = list(used_placeholders(text))
    except ValueError as error:
        return [f"{place} = {text!r}: {error}; write {{{{ and }}}} for braces that are meant"]
    return [f"{place}: {unknown_name('placeholder', name, known)}" for name in names if name not in known]


def used_placeholders(text: str) -> Iterator[str]:
    """Yields the name of each placeholder in `text`, as written.

    Raises:
        ValueError: a brace stands alone.
    """
    for _, name, spec, conversion in Formatter().parse(text):
        if name is not None:
            yield name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Returns `text` with every placeholder replaced; `text` has been checked by `placeholder_problems`."""
    return "".join(
        literal + (values[name] if name is not None else "") for literal, name, _, _ in Formatter().parse(text)
    )
