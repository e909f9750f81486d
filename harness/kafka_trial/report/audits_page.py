"""Several audits side by side: a row for each group and topic, as JSON, as lines for a terminal, and as a page.

Each row stands for a plain audit with a run folder of its own; here its verdict is told once more and its page linked.
The overview is written before the first audit and again after each, so that an interrupted command leaves what it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka_trial.errors import FAIL, PASS, UNKNOWN, worst
from kafka_trial.history.output_names import AUDITS, AUDITS_PAGE
from kafka_trial.report.certificate import duration_in_words
from kafka_trial.report.event_text import bounded
from kafka_trial.report.html import static_page
from kafka_trial.report.sealed_files import write_table, write_whole

AUDITS_SCHEMA: Final = 1
NOT_JUDGED: Final = "not judged"  # with --no-check
STATUSES: Final = {"fail": FAIL, "unknown": UNKNOWN, "pass": PASS, NOT_JUDGED: PASS}  # the worst first
NOT_DONE: Final = "not audited: the command ended before this audit was done"
REASON_MAX: Final = 400


@dataclass(frozen=True)
class AuditRow:
    """What came of the audit of one group on one topic; as long as it is not done, it is unknown.

    `topic` "": the group's topics could not be found. `reason`: why it is unknown, or the worst violation. `violations`
    are counts by name. `lag`: how many offsets the group was behind at the end of the window, on partitions that it had
    committed on; `lag_age_s`: how long the oldest record among them had been there. None: not known. `run` and `report`
    are places beside the overview, "" where there is none.
    """

    group: str
    topic: str
    verdict: str = "unknown"
    reason: str = NOT_DONE
    violations: Mapping[str, int] = field(default_factory=dict)
    lag: int | None = None
    lag_age_s: float | None = None
    run: str = ""
    report: str = ""

    @property
    def about(self) -> str:
        """The group and the topic, on one line whatever their names hold."""
        return pair_in_words(self.group, self.topic)

    @property
    def violations_in_words(self) -> str:
        """Each violation with its count."""
        return ", ".join(f"{name} × {count}" for name, count in self.violations.items())

    @property
    def age_in_words(self) -> str:
        """How old the lag is; "" where that is not known."""
        return "" if self.lag_age_s is None else duration_in_words(self.lag_age_s)

    @property
    def lag_in_words(self) -> str:
        """The lag at the end, with its age where that is known."""
        if self.lag is None:
            return "lag not known"
        return f"lag {self.lag}" + (f", the oldest for {self.age_in_words}" if self.age_in_words else "")


@dataclass(frozen=True)
class AuditOverview:
    """The rows in the order in which they are audited, over one window of one cluster; its times are in UTC.

    `without_commits`: pairs of group and topic that were not audited because the group has committed nothing there.
    """

    bootstrap: str
    begins: str
    ends: str
    rows: Sequence[AuditRow]
    without_commits: Sequence[tuple[str, str]] = ()

    @property
    def exit_status(self) -> int:
        """The worst of the rows: fail, then unknown, then pass."""
        return worst(STATUSES[row.verdict] for row in self.rows)

    @property
    def verdict(self) -> str:
        """The worst verdict of the rows."""
        return next(word for word in STATUSES if any(row.verdict == word for row in self.rows))

    @property
    def in_words(self) -> str:
        """The worst verdict, and the rows counted by verdict."""
        counts = {word: sum(row.verdict == word for row in self.rows) for word in STATUSES}
        counted = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        return f"{self.verdict.upper()}: {len(self.rows)} audit{'s' * (len(self.rows) != 1)}: {counted}"

    @property
    def without_commits_in_words(self) -> list[str]:
        """A sentence for each group that has committed nothing on some of the topics."""
        topics: dict[str, list[str]] = {}
        for group, topic in self.without_commits:
            topics.setdefault(group, []).append(bounded(topic))
        return [
            f"{bounded(group)} has no committed offset on {', '.join(names)}: not audited there"
            for group, names in topics.items()
        ]


def pair_in_words(group: str, topic: str) -> str:
    """Returns a group and a topic on one line; the topic may be unknown ("")."""
    return f"{bounded(group)} on {bounded(topic)}" if topic else f"{bounded(group)}, topics not known"


def row_in_words(row: AuditRow) -> str:
    """Returns a row as one line of a terminal."""
    told = [row.violations_in_words if row.verdict == "fail" else bounded(row.reason, most=REASON_MAX)]
    told += [row.lag_in_words] if row.run else []
    return f"{row.verdict.upper():8} {row.about}: {'; '.join(part for part in told if part)}"


def write_overview(overview: AuditOverview, folder: Path) -> None:
    """Writes audits.json and audits.html, each whole or not at all."""
    write_table(folder / AUDITS, overview_to_table(overview))
    shown = {"overview": overview, "shown": bounded, "reason_max": REASON_MAX, "name": AUDITS}
    page = static_page("audits.html.j2", css="audits.css", **shown)
    write_whole(folder / AUDITS_PAGE, page.encode())


def overview_to_table(overview: AuditOverview) -> dict[str, Any]:
    """Returns the overview as plain data, for audits.json."""
    return {
        "schema": AUDITS_SCHEMA,
        "bootstrap": overview.bootstrap,
        "from": overview.begins,
        "until": overview.ends,
        "verdict": overview.verdict,
        "exit": overview.exit_status,
        "audits": [asdict(row) for row in overview.rows],
        "without_commits": [{"group": group, "topic": topic} for group, topic in overview.without_commits],
    }
