"""Several audits in one go: which pairs of group and topic there are, and each audited in turn.

Each pair is a plain audit (`export.py`) with a run folder of its own, over the same window and within the same limits;
its verdict becomes a row of the overview. What is wrong with the words is told at once. What is wrong with one pair
makes its row unknown and leaves the others alone.

Brokers are asked for one thing more than in a plain audit: OffsetFetch, for where a group has a committed offset now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from kafka_trial.audit.bounded_reading import Log, connect
from kafka_trial.audit.command_config import read_command_config
from kafka_trial.audit.export import GROUP_REFUSED, NO_SUCH_GROUP, AuditExport, export, missing_acl, readable_topic
from kafka_trial.audit.request import NS_PER_MS, AuditRequest, make_audit_request, stamp
from kafka_trial.audit.settings import read_claim
from kafka_trial.errors import InputError, KafkaTrialError, UnjudgeableError
from kafka_trial.history.output_names import AUDITS_PAGE
from kafka_trial.history.store import RunFolder, check_out, new_place
from kafka_trial.kafka_protocol import cluster_queries, group_membership, group_requests
from kafka_trial.kafka_protocol.connection import Brokers, NoAnswerError
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.process.waiting import wait_until
from kafka_trial.report.audits_page import (
    NOT_JUDGED,
    AuditOverview,
    AuditRow,
    pair_in_words,
    row_in_words,
    write_overview,
)
from kafka_trial.report.event_text import bounded
from kafka_trial.report.lag_series import read_last_ages_ms
from kafka_trial.report.report_data import worst
from kafka_trial.trial.console import Console
from kafka_trial.verdict.decide import Verdict

T = TypeVar("T")
Pair = tuple[str, str]
Judge = Callable[[RunFolder], Verdict | None]
OF_ONE_PAIR: Final = ("sink_topic", "sink_db", "sink_query", "sink_id_header", "sink_id_field")
SAYS_OF_ONE: Final = (
    "a sink shows what one group did with one topic: with several, ids of one look like duplicates of another. "
    "Audit that group on that topic alone"
)
NAME_MAX: Final = 80  # letters of a group and of a topic in the name of a folder
NOT_READY: Final = (14, 15, 16)  # the coordinator is loading, not there, or has moved
TOLD_WITHIN_S: Final = 10.0
NO_OFFSETS: Final = (
    "the group has no committed offset on any topic that we may DESCRIBE. Name --topic, or check the name"
)
NO_PAIR: Final = "has no committed offset on any of the topics"


@dataclass(frozen=True)
class SeveralAuditsRequest:
    """What is asked of all pairs; `base` is asked of each, with its group and topic in place of the first ones.

    No `topics`: all on which a group has a committed offset. `unused`: names of the client properties file.
    """

    base: AuditRequest
    groups: Sequence[str]
    topics: Sequence[str]
    out: Path
    unused: Sequence[str] = ()


def is_several(words: Mapping[str, Any]) -> bool:
    """Tells whether the words of the command line ask for anything but one group on one named topic."""
    return len(words["group"]) != 1 or len(words["topic"]) != 1


def make_several_audits(words: Mapping[str, Any], *, now_ns: int) -> SeveralAuditsRequest:
    """Returns what the words of the command line ask; the files that they name are read.

    Raises:
        InputError: some of them make no sense; all of these are told.
    """
    groups, topics = words["group"], words["topic"]
    problems = [*_name_problems("--group", groups), *_name_problems("--topic", topics)]
    refused = [f"--{name.replace('_', '-')}" for name in OF_ONE_PAIR if words.get(name)]
    problems += [f"{', '.join(refused)}: {SAYS_OF_ONE}"] if refused else []
    claim = _told(problems, read_claim, words.get("claim"))
    security, unused = _told(problems, read_command_config, words.get("command_config")) or (None, ())
    out = Path(words["out"]) if words.get("out") else new_place("audits", _readable(groups[0]))
    _told(problems, partial(check_out, empty=True), words.get("out"))
    first = {"group": groups[0], "topic": (topics or [""])[0], "claim": claim, "security": security}
    of_all = {name: value for name, value in words.items() if name not in OF_ONE_PAIR}
    try:
        base = make_audit_request(of_all | first | {"request_logs": words.get("request_log")}, now_ns=now_ns)
    except InputError as error:
        raise InputError("audit", [*problems, *error.problems]) from error
    if problems:
        raise InputError("audit", problems)
    return SeveralAuditsRequest(base, groups, topics, out, tuple(unused))


def _name_problems(option: str, names: Sequence[str]) -> list[str]:
    missing = [f"{option} '' is no name"] if "" in names else []
    counts = Counter(names)
    return missing + [f"{option} {name} stands there {count} times" for name, count in counts.items() if count > 1]


def _told(problems: list[str], read: Callable[[Path], T], path: str | None) -> T | None:
    """Returns what is read from a path, None where none is given or it is wrong, which is added to the problems."""
    try:
        return read(Path(path)) if path else None
    except InputError as error:
        problems += [f"{error.where}: {problem}" for problem in error.problems]
        return None


@dataclass(frozen=True)
class AuditPairs:
    """The pairs to audit in turn; `without_commits` are not audited, because the group has committed nothing there;
    `refused`: groups whose topics could not be found, and why."""

    pairs: Sequence[Pair]
    without_commits: Sequence[Pair] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def find_pairs(asked: SeveralAuditsRequest, console: Console) -> AuditPairs:
    """Returns which groups are to be audited on which topics, by where they have committed offsets now.

    Raises:
        InputError: there is not a single pair; or there is no offsets log, or it may not be read.
        StartError: nobody answers at the bootstrap addresses.
    """
    console.phase("look", f"for committed offsets of {bounded(', '.join(asked.groups))} at {asked.base.bootstrap}")
    with connect(asked.base) as brokers:
        log = readable_topic(brokers, asked.base, OFFSETS_TOPIC)
        if isinstance(log, str):
            raise InputError("audit", log)
        leaders = {part.partition: part.leader for part in log.partitions}
        coordinators = {group: leaders[group_partition(group, partitions=len(leaders))] for group in asked.groups}
        by_group = {
            group: _committed_topics(brokers, replace(asked.base, group=group), node)
            for group, node in coordinators.items()
        }
        known = brokers.anyone(partial(cluster_queries.metadata, topics=asked.topics)).topics if asked.topics else {}
    found = pairs_of(by_group, asked.topics, known)
    if not found.pairs:
        told = found.refused or {group: f"{NO_PAIR}: {', '.join(asked.topics)}" for group in asked.groups}
        raise InputError("audit", [f"--group {group}: {why}" for group, why in told.items()])
    return found


def pairs_of(by_group: Mapping[str, set[str] | str], topics: Sequence[str], known: Mapping[str, object]) -> AuditPairs:
    """Returns the pairs of groups and topics; without topics those of each group.

    `by_group`: where a group has committed offsets, or why that is not known; `known` topics are those that we may
    describe: of the others a group's offsets are hidden from us. A group that has committed nothing anywhere is
    audited: that is its verdict.
    """
    pairs, without, refused = list[Pair](), list[Pair](), dict[str, str]()
    for group, there in by_group.items():
        if isinstance(there, str):
            refused[group] = there
        for topic in topics or ([] if isinstance(there, str) else sorted(there)):
            nothing = not isinstance(there, str) and there and topic not in there and topic in known
            (without if nothing else pairs).append((group, topic))
    return AuditPairs(pairs, without, {} if topics else refused)


def _committed_topics(brokers: Brokers, request: AuditRequest, coordinator: int) -> set[str] | str:
    """Returns the topics on which a group has committed offsets, else why there is none; its coordinator is who leads
    its partition of the offsets log."""
    ask = partial(_asked_again, brokers, coordinator)
    try:
        topics = {topic for topic, _ in ask(partial(group_membership.committed, group=request.group))}
        state = ask(partial(group_requests.group_state, group=request.group)) if not topics else None
    except NoAnswerError as error:
        acl = missing_acl(error, request, operation="DESCRIBE") if error.code == GROUP_REFUSED else None
        return f"{acl or error}. Which topics it has committed on cannot be asked: name --topic"
    except UnjudgeableError as error:
        return f"{error}: audit again"
    if state is None:
        return topics
    return NO_SUCH_GROUP if state.state == group_requests.DEAD else NO_OFFSETS


def _asked_again(brokers: Brokers, node: int, question: Callable[..., T]) -> T:
    """Returns the answer of a coordinator, which may have to load the group first.

    Raises:
        NoAnswerError: no answer, or a refusal.
        WaitTimeout: it does not coordinate the group for long.
    """

    def ask() -> tuple[T] | None:
        try:
            return (brokers.broker(node, question),)
        except NoAnswerError as error:
            if error.code not in NOT_READY:
                raise
            return None

    return wait_until(ask, within_s=TOLD_WITHIN_S, what=f"broker {node} to coordinate the group", every_s=0.5)[0]


def audit_all(asked: SeveralAuditsRequest, found: AuditPairs, *, judge: Judge, console: Console) -> AuditOverview:
    """Audits the pairs one after the other and returns the overview, which is on disk after each.

    `judge` reaches the verdict on a run folder, None where it is not to be judged.
    """
    refused = [AuditRow(group, "", reason=why) for group, why in found.refused.items()]
    rows = [*(AuditRow(group, topic) for group, topic in found.pairs), *refused]
    begins, ends = (stamp(time_ns) for time_ns in (asked.base.from_ns, asked.base.until_ns))
    overview = AuditOverview(asked.base.bootstrap, begins, ends, tuple(rows), found.without_commits)
    asked.out.mkdir(parents=True, exist_ok=True)
    write_overview(overview, asked.out)
    try:
        for number, (group, topic) in enumerate(found.pairs):
            console.phase(f"audit {number + 1} of {len(found.pairs)}", pair_in_words(group, topic))
            place = folder_name(number + 1, group, topic)
            rows[number] = _audited(replace(asked.base, group=group, topic=topic), asked.out, place, judge, console)
            overview = replace(overview, rows=tuple(rows))
            write_overview(overview, asked.out)
            _show(rows[number], console)
    except KeyboardInterrupt:
        console.say(f"interrupted: what was audited until then is in {asked.out / AUDITS_PAGE}")
        raise
    for row in refused:
        _show(row, console)
    return overview


def _show(row: AuditRow, console: Console) -> None:
    with console.paused():
        print(row_in_words(row), flush=True)


def _audited(request: AuditRequest, out: Path, place: str, judge: Judge, console: Console) -> AuditRow:
    """Audits one pair and returns its row; whatever keeps it from being read or judged makes it unknown."""
    row = AuditRow(request.group, request.topic)
    try:
        exported = export(request, out=out / place, console=console)
        lag = _lag(request, exported)
        row = replace(row, run=place, lag=None if lag is None else sum(lag.values()))
        verdict = judge(exported.folder)
        return with_verdict(row, verdict, exported.folder, age_s=_lag_age_s(request, exported, lag or {}))
    except InputError as error:
        return replace(row, reason="; ".join(error.problems))
    except KafkaTrialError as error:
        return replace(row, reason=str(error), run=place if (out / place).is_dir() else "")


def with_verdict(row: AuditRow, verdict: Verdict | None, folder: RunFolder, *, age_s: float | None) -> AuditRow:
    """Returns the row of a pair with its verdict, whose report lies in its run folder, and the age of its lag."""
    if verdict is None:
        return replace(row, verdict=NOT_JUDGED, reason="")
    table = folder.read_json("verdict.json")
    told = {"fail": worst(table), "unknown": next(iter(table["reasons"]), "")}
    return replace(
        row,
        verdict=verdict.verdict,
        reason=told.get(verdict.verdict, ""),
        violations={str(one["anomaly"]): int(one["count"]) for one in table["violations"]},
        lag_age_s=0.0 if row.lag == 0 else age_s,
        report=f"{row.run}/report.html",
    )


def _lag(request: AuditRequest, exported: AuditExport) -> dict[int, int] | None:
    """Returns by how many offsets the group was behind at the end of the window; None where that is not known."""
    if "offsets log" in exported.unread or not exported.committed:
        return None
    try:
        with connect(request) as brokers:
            log = Log.of(brokers, request.topic)
            ends, later = log.log_ends(), log.at(request.until_ns + NS_PER_MS)
    except KafkaTrialError:
        return None
    return lag_at_end(exported.committed, ends, {partition: offset for partition, (offset, _) in later.items()})


def lag_at_end(committed: Mapping[int, int], ends: Mapping[int, int], later: Mapping[int, int]) -> dict[int, int]:
    """Returns the lag of each partition that was committed on; `later`: its first record after the window, -1: none."""
    until = {partition: later[partition] if later.get(partition, -1) >= 0 else end for partition, end in ends.items()}
    return {partition: max(0, until[partition] - at) for partition, at in committed.items() if partition in until}


def _lag_age_s(request: AuditRequest, exported: AuditExport, lag: Mapping[int, int]) -> float | None:
    """Returns how long the oldest record of the lag had been there at the end of the window; None where it was not
    read: it is too young to count, or a limit was reached."""
    ages_ms = read_last_ages_ms(exported.folder, since_ns=request.until_ns - NS_PER_MS)
    oldest_ms = max((age for partition, age in ages_ms.items() if lag.get(partition)), default=0)
    return oldest_ms / 1000 if oldest_ms and "records" not in exported.unread else None


def folder_name(number: int, group: str, topic: str) -> str:
    """Returns the name of a pair's folder: the number tells apart what reads alike."""
    return f"{number}-{_readable(group)}-on-{_readable(topic)}"


def _readable(name: str) -> str:
    """Returns a name with a dash for every letter that is not safe in the name of a folder on every system."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name)[
        :NAME_MAX
    ]
