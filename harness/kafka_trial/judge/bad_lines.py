"""Bad lines: how many events of members could not be read, and what was found only because a line is missing there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.model.trial_context import LostEvents, PrintedLines, TrialContext


@dataclass
class BadLines:
    """What has been gathered so far: by source the bad lines that were events, by member all lines that are quoted."""

    _lines: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)
    _printed: dict[tuple[str, str], PrintedLines] = field(default_factory=dict)

    def take(self, source: int, body: Mapping[str, Any]) -> None:
        """Takes a bad line into account."""
        lost = isinstance(body.get("events"), int) and body["events"] > 0
        if lost:
            self._lines.setdefault(source, []).append(body)
        self.count(body, "lost event" if lost else "text")

    def count(self, body: Mapping[str, Any], sort: str) -> None:
        """Counts a line (or several: `count`) that the report quotes."""
        member, lines = str(body.get("member")), body.get("count")
        before = self._printed.get((member, sort), PrintedLines(member, sort, 0, one_line(body.get("message"))))
        more = lines if isinstance(lines, int) and 0 < lines < COUNT_MAX else 1
        self._printed[member, sort] = replace(before, count=before.count + more)

    def printed(self) -> tuple[PrintedLines, ...]:
        """Returns what is quoted, by member."""
        return tuple(one for _, one in sorted(self._printed.items()))

    def take_exit(self, source: int, body: Mapping[str, Any]) -> None:
        """A member that is killed may be so in the middle of its last line: what that was nobody expects to know."""
        lines = self._lines.get(source, [])
        if body.get("signal") == 9 and lines and lines[-1]["seq"] == body["seq"] - 1 and "offset" not in lines[-1]:
            lines.pop()

    def lost_events(self) -> tuple[LostEvents, ...]:
        """Returns what was lost of each incarnation, in the order of sources."""
        return tuple(_lost(source, lines) for source, lines in sorted(self._lines.items()) if lines)


def _lost(source: int, lines: list[Mapping[str, Any]]) -> LostEvents:
    first = lines[0]
    return LostEvents(
        source=source,
        member=str(first.get("member")),
        count=sum(line["events"] for line in lines),
        nameless=sum(line["events"] for line in lines if line.get("offset") is None),
        first=str(first.get("message")),
        reason=str(first.get("reason", "")),
    )


COUNT_MAX = 2**53
RECORDS = ("skipped", "unseen", "poll-skip")  # each instance is about a record that has no line
COMMIT_AHEAD = "commit-ahead"  # some of these are about a record that has no line at all
PARTITIONS = ("stuck-partition", "false-lag", "late-convergence")  # not all records of the partition have their line
QUOTE_MAX = 200


def why_undecided(
    found: Mapping[str, Sequence[Anomaly]], counts: Mapping[str, int], trial_context: TrialContext
) -> str:
    """Returns why what was found for want of a line is undecided; nothing where it is not.

    A line that does not name its record may have been any one's, but only one's: where more records lack their line
    than there are such lines, the rest is lost for certain.
    """
    nameless = sum(one.nameless for one in trial_context.lost_events)
    kept = all(counts.get(name, 0) == len(found.get(name, ())) for name in RECORDS)
    if not nameless or not kept or len(without_line(found)) > nameless:
        return ""
    return "; ".join(lost_events_in_words(one) for one in trial_context.lost_events if one.nameless)


def without_line(found: Mapping[str, Sequence[Anomaly]]) -> set[tuple[object, ...]]:
    """Returns the records of which some line is missing."""
    return {_record(one) for one in _all(found[name] for name in RECORDS if name in found)}


def unexplained_by_bad_lines(
    found: Mapping[str, Sequence[Anomaly]], counts: Mapping[str, int], trial_context: TrialContext
) -> dict[str, list[Anomaly]]:
    """Returns, by name, what remains of all that was found for want of a line, where `why_undecided` gives a reason.

    Bad lines explain every record and partition: there are enough of them. A commit ahead of its record remains where
    the record was completed later: that may have been its second completion, and a bad line the first, but only as
    often as there are bad lines left over. Where there are fewer, all such commits remain: some are certain. So they do
    where a sink writes down itself what is done, for no line can stand for an effect.
    """
    missing, settings = without_line(found), trial_context.settings
    ahead = [one for one in found.get(COMMIT_AHEAD, ()) if _record(one) not in missing]
    left_over = sum(one.nameless for one in trial_context.lost_events) - len(missing)
    all_kept = counts.get(COMMIT_AHEAD, 0) == len(found.get(COMMIT_AHEAD, ()))
    told_by_lines = settings.sink_is_read or not settings.has_sink
    if told_by_lines and all_kept and len(ahead) <= left_over:
        ahead = []
    return {name: [] for name in (*RECORDS, *PARTITIONS)} | {COMMIT_AHEAD: ahead}


def lost_events_in_words(one: LostEvents) -> str:
    """Returns the lines of an incarnation that were events and could not be read, as a sentence."""
    lines = "a line" if one.count == 1 else f"{one.count} lines"
    reason = f" ({one.reason})" if one.reason else ""
    return f"{one.member} printed {lines} that could not be read, first: {one_line(one.first)}{reason}"


def one_line(text: object) -> str:
    """Returns the beginning of what a member printed, on one line."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)[:QUOTE_MAX])


def _record(one: Anomaly) -> tuple[object, ...]:
    return one.topic, one.partition, one.attributes.get("offset")


def _all(parts: Iterable[Sequence[Anomaly]]) -> list[Anomaly]:
    return [one for part in parts for one in part]
