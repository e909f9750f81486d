"""History defects: what is wrong with a history beyond its lines: unknown kinds, missing fields, clocks, missing files.

Stands beside `lines.py`, which names what is no event. Everything found is a sentence with its count and its first
case; each keeps the history from carrying a verdict, and none keeps the rest from being read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from kafka_trial.history.event import REQUIRED, kinds_of, lacking
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.columns import Columns
from kafka_trial.model.trial_context import TOLERANCE_NS, TrialContext

NAMED_MAX = 3
SHOWN_MAX = 40
# Kinds whose fields are columns of every event; of the others the bodies are read anyway.
BY_COLUMN = ("send", "assigned", "revoked", "lost", "processed", "commit", "effect", "request")


class HistoryDefects:
    """Gathers what is wrong with the events of one file; called once for each block, in order."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._known = kinds_of(source)
        self._unknown: Counter[str] = Counter()
        self._first_of: dict[str, int] = {}
        self._lacking: Counter[str] = Counter()
        self._backwards: list[tuple[int, int]] = []
        self._latest_ns: int | None = None

    def take(self, columns: Columns) -> None:
        """Looks at the kinds, the fields and the times of a block."""
        self._take_kinds(columns)
        self._take_times(columns)
        for kind in BY_COLUMN:
            if self._known is not None and kind not in self._known:
                continue
            rows = columns.rows_of(kind)
            for name in REQUIRED[kind] if len(rows) else ():
                for row in rows[columns.absent(name)[rows]].tolist():
                    self._lack(kind, name, int(columns["seq"][row]))

    def take_body(self, body: Mapping[str, Any]) -> bool:
        """Looks at the fields of an event that was read whole; tells whether it can be used."""
        wrong = lacking(str(body["kind"]), body)
        for name in wrong:
            self._lack(str(body["kind"]), name, body["seq"])
        return not wrong

    def defects(self, *, one_clock: bool = True) -> list[str]:
        """Returns the sentences; `one_clock`: one wrote its times, one after the other (an audit's are of many)."""
        return [f"{self._source}: {told}" for told in self._told(one_clock)]

    def _told(self, one_clock: bool) -> Iterator[str]:
        if self._unknown:
            kinds = [f"{_quoted(kind)} (first: #{self._first_of[kind]})" for kind in sorted(self._unknown)]
            count = self._unknown.total()
            yield f"{count} event{'s are' if count > 1 else ' is'} of an unknown kind: {_some(kinds)}"
        if self._lacking:
            fields = [f"{name} (first: #{self._first_of[name]})" for name in sorted(self._lacking)]
            yield f"what their kinds must say is missing {_times(self._lacking.total())}: {_some(fields)}"
        if self._backwards and one_clock:
            seq, by_ns = self._backwards[0]
            yield f"its clock runs backwards {_times(len(self._backwards))} (first: #{seq}, by {by_ns / 1e9:.1f} s)"

    def _take_kinds(self, columns: Columns) -> None:
        for kind in pc.unique(columns.text("kind")).to_pylist() if self._known is not None else ():
            if kind not in (self._known or ()):
                rows = columns.rows_of(kind)
                self._unknown[kind] += len(rows)
                self._first_of.setdefault(kind, int(columns["seq"][rows[0]]))

    def _take_times(self, columns: Columns) -> None:
        times = columns["time_ns"]
        before = np.concatenate([[times[0] if self._latest_ns is None else self._latest_ns], times[:-1]])
        for row in np.flatnonzero(before - times > TOLERANCE_NS).tolist():
            self._backwards.append((int(columns["seq"][row]), int(before[row] - times[row])))
        self._latest_ns = int(times[-1])

    def _lack(self, kind: str, name: str, seq: int) -> None:
        self._lacking[f"{kind} lacks {name}"] += 1
        self._first_of.setdefault(f"{kind} lacks {name}", seq)


def missing_files(trial_context: TrialContext, brokers: Collection[int]) -> list[str]:
    """Returns which files must have been there, by what the others tell: `brokers` are those that held partitions."""
    return [*_members_missing(trial_context), *_brokers_missing(trial_context, brokers)]


def sink_missing(trial_context: TrialContext) -> list[str]:
    """Returns that the sink's file is missing, where consumer.toml declares one: an idle sink has an empty file."""
    declared = (
        trial_context.settings.sink in ("http", "topic", "table", "postgres") and "sink" not in trial_context.sources
    )
    return ["sink: is missing, although the consumer has a sink"] if declared else []


def strangers(folder: RunFolder) -> Iterator[str]:
    """Yields what lies in a history folder and is none of its files."""
    for path in sorted(folder.history.iterdir()):
        if path.suffix != ".jsonl" or not path.is_file():
            yield f"history/ holds {_quoted(path.name)}, which is no file of events"
        elif kinds_of(path.stem) is None:
            yield f"history/ holds {_quoted(path.name)}, and there is no such source"


def _members_missing(trial_context: TrialContext) -> Iterator[str]:
    begun = {trial_context.sources[incarnation.source] for incarnation in trial_context.incarnations}
    for source in trial_context.sources:
        if source.startswith("consumer-") and source not in begun:
            yield f"{source}: does not tell that its process was started"
    seen = {(peak.member, peak.incarnation) for peak in trial_context.peaks}
    seen |= {
        (trial_context.members[incarnation.member], earlier)
        for incarnation in trial_context.incarnations
        for earlier in range(min(incarnation.number, 1000))
    }
    for member, number in sorted(seen):
        if f"consumer-{member}-{number}" not in trial_context.sources:
            yield f"consumer-{member}-{number}: is missing, although that process ran"


def _brokers_missing(trial_context: TrialContext, brokers: Collection[int]) -> Iterator[str]:
    heard = [source for source in trial_context.sources if source.startswith("requests-")]
    for broker in sorted(brokers) if heard else ():
        if f"requests-b{broker}" not in heard:
            yield f"requests-b{broker}: is missing, although that broker held partitions"


def _times(count: int) -> str:
    return f"{count} time{'s' * (count > 1)}"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…")


def _some(told: list[str]) -> str:
    more = f"; and {len(told) - NAMED_MAX} more" if len(told) > NAMED_MAX else ""
    return "; ".join(told[:NAMED_MAX]) + more
