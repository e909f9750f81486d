"""Brokers that ended by themselves: which, and why by their own logs. A full disk is the usual cause."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from signal import SIGTERM

from kafka_trial.cluster.cluster import BrokerHandle, node_in_words

AT_SIGTERM = 128 + SIGTERM  # the status of a Java that was asked to end
TAIL_BYTES = 1 << 18
NO_ROOM = "No space left on device"


def ended_by_themselves(brokers: Iterable[BrokerHandle]) -> str | None:
    """Returns which brokers have ended though nobody ended them, each with its last error; None where none has.

    A fault ends a broker by a signal: its exit code is negative then, or that of a Java at SIGTERM.
    """
    ended = [one for one in brokers if not one.alive and one.exit_code is not None and one.exit_code >= 0]
    told = [
        f"{node_in_words(one.id)} ended by itself (exit {one.exit_code}){last_error(one.server_log)}"
        for one in ended
        if one.exit_code != AT_SIGTERM
    ]
    return "; ".join(told) or None


def last_error(log: Path) -> str:
    """Returns the last error of a broker's log behind a colon, and that there was no room where it says so; else
    nothing."""
    text = ""
    with suppress(OSError), log.open("rb") as lines:
        lines.seek(max(0, log.stat().st_size - TAIL_BYTES))
        text = lines.read().decode(errors="replace")
    errors = re.findall(r"^\[[^]]+\] (?:ERROR|FATAL) (.+?)(?: \([\w.$]+\))?$", text, re.MULTILINE)
    told = [*errors[-1:], *([NO_ROOM] if NO_ROOM in text else [])]
    return "".join(f": {part}" for part in told)
