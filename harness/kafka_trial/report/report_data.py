"""The report as plain data: what every page says, read from a judged run folder. Text, HTML and JSON only show it.

Stands after the verdict, before the pages. A folder whose run.json, history or series are cut off still gives a report:
what is missing is said, not guessed. What a consumer wrote is bounded here (`event_text.py`), escaped by the pages.
"""

from __future__ import annotations

import os
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.anomalies.claim_rule import ON_TOPIC
from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import line_index
from kafka_trial.report.event_text import TEXT_MAX, bounded
from kafka_trial.report.excerpts import Row, Wanted, excerpts
from kafka_trial.report.lag_series import Lag, read_lag
from kafka_trial.report.library_advice import LIBRARY_ADVICE
from kafka_trial.report.run_metadata import RunMetadata, read_run_metadata, start_ns
from kafka_trial.verdict.collect import own_events
from kafka_trial.verdict.decide import EVENTS_MAX, severity

REPORT_SCHEMA = 1
EXAMPLES_PER_ANOMALY = 2
EXCERPTS_MAX = 24
PATH_MAX = 4096  # of Linux: a path that was cut replays nothing
MISSING = "not recorded"
NOT_OURS = "of a cluster that is not ours"
LINES_MAX = 20
LINE_MAX = 400
TAIL_BYTES = 64 * 1024
FILES_MAX = 24
STREAMS = ("stderr", "stdout")


@dataclass(frozen=True)
class Excerpt:
    """One anomaly with the events around it."""

    anomaly: str
    sentence: str
    weight: str
    where: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Report:
    """One judged trial. `verdict` is verdict.json as it stands; `rebuilt` why the cluster is not the one before.

    All instants are seconds since what `metadata.base` says.
    """

    schema: int
    consumer: str
    scenario: str
    summary: str
    kafka_version: str
    seed: str
    rebuilt: str
    metadata: RunMetadata
    replay: str
    headline: str
    worst: str
    verdict: Mapping[str, Any]
    phases: tuple[tuple[str, float], ...]
    excerpts: tuple[Excerpt, ...]
    lag: tuple[Lag, ...]
    logs: tuple[MemberLog, ...]
    gaps: tuple[str, ...]
    printed: tuple[str, ...] = ()


def read_report(folder: RunFolder, *, with_history: bool = True) -> Report:
    """Returns the report of a judged run folder; without history: no phases, excerpts, lag and logs, and clients only
    where a violation's advice depends on them.

    Raises:
        InputError: the run has not been judged yet, or its verdict is of a newer schema.
    """
    gaps: list[str] = []
    verdict = _verdict(folder)
    run, scenario = (_optional(folder, name, gaps) for name in ("run.json", "scenario.json"))
    consumer = consumer_name(folder, gaps)
    return Report(
        schema=REPORT_SCHEMA,
        consumer=consumer or MISSING,
        scenario=_said(scenario, "name") or MISSING,
        summary=_said(scenario, "summary"),
        kafka_version=_said(run, "kafka") or (NOT_OURS if run.get("kind") == "audit" else MISSING),
        seed=_said(run, "seed") or ("none" if run.get("kind") == "audit" else MISSING),
        rebuilt=_said(run, "cluster_rebuilt_because"),
        metadata=read_run_metadata(folder, run, with_clients=with_history or _advice_depends(verdict)),
        replay=replay_command(folder, run, scenario=scenario, consumer=consumer),
        headline=headline(verdict, audit=run.get("kind") == "audit"),
        worst=worst(verdict),
        verdict=verdict,
        phases=_phases(folder) if with_history else (),
        excerpts=_excerpts(folder, verdict, gaps) if with_history else (),
        lag=read_lag(folder, gaps, start_ns=start_ns(folder)) if with_history else (),
        logs=_read_member_logs(folder, gaps) if with_history else (),
        gaps=tuple(gaps),
        printed=tuple(_printed(row) for row in verdict.get("printed", ())),
    )


def _advice_depends(verdict: Mapping[str, Any]) -> bool:
    """Returns whether what to change about a violation depends on the library that members use."""
    return any(str(row["anomaly"]) in LIBRARY_ADVICE for row in verdict["violations"])


SORTS = {"text": "{} of text", "lost event": "{} of events that could not be read", "error": "{} of errors"}


def _printed(row: Mapping[str, Any]) -> str:
    """Returns one sort of a member's lines that are no events, or errors, counted and quoted."""
    lines = SORTS.get(str(row["sort"]), "{}").format(f"{row['count']} line{'s' * (row['count'] != 1)}")
    return f"{bounded(row['member'])}: {lines}, first: {bounded(row['first'], most=200)}"


def not_judged_by_reason(verdict: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Returns what could not be judged: each reason with its anomalies, the reason of most of them first."""
    by_reason: dict[str, list[str]] = {}
    for row in verdict["not_judged"]:
        by_reason.setdefault(str(row["because"]), []).append(str(row["anomaly"]))
    return sorted(by_reason.items(), key=lambda pair: (-len(pair[1]), pair[1]))


def headline(verdict: Mapping[str, Any], *, audit: bool = False) -> str:
    """Returns the first line of every report: the verdict, and for unknown its first reason."""
    word = str(verdict["verdict"])
    if word == "unknown":
        reasons = list(verdict["reasons"]) or [MISSING]
        more = f" (and {len(reasons) - 1} more)" if reasons[1:] else ""
        return f"UNKNOWN: {reasons[0]}{more}"
    if word == "fail":
        names = ", ".join(str(violation["anomaly"]) for violation in verdict["violations"])
        return f"FAIL: {names}"
    if audit and verdict["claim"].get("delivery") == "unclaimed":
        return _audit_passed(verdict)
    return "PASS: every property claimed was judged, and holds"


def _audit_passed(verdict: Mapping[str, Any]) -> str:
    """Nothing was claimed: says from how much it was judged, how many anomalies could not be, and what was counted."""
    commits = verdict["counts"].get("commits in the window", 0)
    counted = ", ".join(f"{row['anomaly']} × {row['count']}" for row in verdict["tolerated"])
    found = f"no violation in {commits} commits" + (f", but seen: {counted}" if counted else "")
    judged, not_judged = len(verdict["judged"]), len(verdict["not_judged"])
    return f"PASS: {found}; {judged} anomalies could be judged from what was read, {not_judged} could not"


def worst(verdict: Mapping[str, Any]) -> str:
    """Returns the worst violation in one sentence; it need not be the first, which may be the cause of it."""
    violations: Sequence[Mapping[str, Any]] = verdict["violations"]
    if violations:
        held = " (seen, but not held against the consumer)" if verdict["verdict"] == "unknown" else ""
        one = min(violations, key=lambda violation: severity(str(violation["anomaly"])))
        return f"{one['anomaly']}: {one['sentence']}{held}"
    if "commits in the window" in verdict["counts"]:
        return f"no violation in {verdict['counts']['commits in the window']} commits judged"
    return f"no violation in {verdict['counts'].get('records', 0)} records judged"


def replay_command(folder: RunFolder, run: Mapping[str, Any], *, scenario: Mapping[str, Any], consumer: str) -> str:
    """Returns the command that runs this trial again, from what the run folder knows; capitals stand for the rest."""
    if run.get("kind") == "audit":
        return shlex.join(["kafka-trial", "check", str(folder.path)])  # the cluster has gone on: this is what remains
    file = _said(run, "scenario_file", most=PATH_MAX)
    words = ["kafka-trial", "run", str(folder.path / file) if file else _said(scenario, "name") or "SCENARIO"]
    words += ["--consumer", _said(run, "consumer_file", most=PATH_MAX) or consumer or "FILE"]
    words += ["--consumer-image", image] if (image := _said(run, "consumer_image", most=PATH_MAX)) else []
    words += ["--kafka", _said(run, "kafka")] if run.get("kafka") else []
    named = [str(plugin)[:PATH_MAX] for plugin in run.get("plugins") or ()]
    words += [word for file in named if Path(file).is_absolute() for word in ("--plugin", file)]
    words += ["--seed", _said(run, "seed")] if run.get("seed") is not None else []
    load = scenario.get("load")
    words += ["--load", factor] if isinstance(load, Mapping) and (factor := _said(load, "factor")) else []
    if (folder.path / "schedule.json").exists():
        words += ["--schedule", str(folder.path / "schedule.json")]
    words += ["--payload", str(folder.payload)] if folder.payload.exists() else []
    return shlex.join(words)


def _verdict(folder: RunFolder) -> Mapping[str, Any]:
    if not (folder.path / "verdict.json").exists():
        raise InputError(str(folder.path), "has not been judged yet: there is no verdict.json. Run: kafka-trial check")
    verdict = folder.read_json("verdict.json")
    wanted = ("verdict", "violations", "tolerated", "reasons", "faults", "counts", "judged", "not_judged", "claim")
    missing = [name for name in wanted if name not in verdict]
    if missing:
        raise InputError(
            str(folder.path / "verdict.json"), f"lacks {', '.join(missing)}: it was edited. Run: kafka-trial check"
        )
    return dict(verdict)


WEIGHTS = ("violation", "ground", "undecided", "tolerated")


def in_order(rows: Sequence[Mapping[str, Any]], verdict: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns anomalies as they are told: the worst violation first, of each name the one that the verdict tells.

    `rows` are lines of anomalies.jsonl. Where the cluster is to blame, and the verdict is unknown, that comes first.
    """
    violations: Sequence[Mapping[str, Any]] = verdict["violations"]
    by_severity = sorted(violations, key=lambda one: severity(str(one["anomaly"])))
    names = {str(one["anomaly"]): number for number, one in enumerate([*by_severity[:1], *violations][::-1])}
    told = {(str(one["anomaly"]), *one["events"]) for one in violations}
    weights = ("ground", *WEIGHTS) if verdict["verdict"] == "unknown" else WEIGHTS

    def place(row: Mapping[str, Any]) -> tuple[int, int, bool]:
        name, weight = str(row.get("anomaly")), row.get("weight")
        events = row.get("events")
        told_of = (name, *map(str, events[:EVENTS_MAX])) if isinstance(events, list) else (name,)
        return weights.index(weight) if weight in weights else len(weights), -names.get(name, -1), told_of not in told

    return sorted(rows, key=place)


def _excerpts(folder: RunFolder, verdict: Mapping[str, Any], gaps: list[str]) -> tuple[Excerpt, ...]:
    shown = _shown(folder, verdict, gaps)
    if not shown:
        return ()
    lines = line_index(folder)
    found = excerpts(lines, [_wanted(row) for row in shown], start_ns=start_ns(folder))
    gaps += [f"{name}: {count} line{'s' * (count > 1)} could not be read" for name, count in lines.damaged.items()]
    return tuple(
        Excerpt(
            anomaly=bounded(row.get("anomaly")),
            sentence=bounded(row.get("sentence", ""), most=600),
            weight=bounded(row.get("weight", "")),
            where=_where(row),
            rows=tuple(rows),
        )
        for row, rows in zip(shown, found, strict=True)
    )


def _shown(folder: RunFolder, verdict: Mapping[str, Any], gaps: list[str]) -> list[Mapping[str, Any]]:
    """Returns the anomalies whose surroundings a page shows: violations first, a few of each name."""
    path = folder.path / "anomalies.jsonl"
    if not path.exists():
        gaps.append("anomalies.jsonl is missing: no events are shown")
        return []
    with path.open("rb") as file:
        lines = in_order([row for row in map(orjson.loads, file) if row.get("events")], verdict)
    chosen, taken = [], Counter[tuple[str, str]]()
    for line in lines:
        kind = str(line.get("weight")), str(line.get("anomaly"))
        taken[kind] += 1
        if taken[kind] <= (EXAMPLES_PER_ANOMALY if kind[0] == "violation" else 1):
            chosen.append(line)
    return chosen[:EXCERPTS_MAX]


def _wanted(line: Mapping[str, Any]) -> Wanted:
    topic, partition = line.get("topic"), line.get("partition")
    place = (topic, partition) if isinstance(topic, str) and isinstance(partition, int) else None
    return Wanted(place, tuple(str(name) for name in line["events"]))


def _where(line: Mapping[str, Any]) -> str:
    if line.get("partition") is None:
        return "the group"
    intermediate = ON_TOPIC in (line.get("attributes") or ())
    return f"partition {line['partition']}" + (f" of {bounded(line.get('topic'))}" if intermediate else "")


def _phases(folder: RunFolder) -> tuple[tuple[str, float], ...]:
    phases = [event for event in own_events(folder) if event.kind == "phase"]
    return tuple((bounded(event.details.get("phase")), (event.time_ns - start_ns(folder)) / 1e9) for event in phases)


def _optional(folder: RunFolder, name: str, gaps: list[str]) -> Mapping[str, Any]:
    try:
        value = folder.read_json(name)
    except InputError as error:
        gaps.append(f"{name} {error.problems[0]}")
        return {}
    return value if isinstance(value, Mapping) else {}


def consumer_name(folder: RunFolder, gaps: list[str] | None = None) -> str:
    """Returns the name that a run folder's consumer.toml gives; empty where it cannot be read, which `gaps` then
    says."""
    try:
        return _said(tomllib.loads((folder.path / "consumer.toml").read_text(encoding="utf-8")), "name")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        if gaps is not None:
            gaps.append(f"consumer.toml cannot be read: {type(error).__name__}")
        return ""


def _said(table: Mapping[str, Any], name: str, *, most: int = TEXT_MAX) -> str:
    value = table.get(name)
    return "" if value is None else bounded(value, most=most)


@dataclass(frozen=True)
class MemberLog:
    """The end of one file: its name in the run folder, its size, and its last lines; `cut`: there are more before."""

    file: str
    size_bytes: int
    lines: tuple[str, ...]
    cut: bool


def _read_member_logs(folder: RunFolder, gaps: list[str]) -> tuple[MemberLog, ...]:
    """Returns the ends of the members' logs, by member and incarnation; says in `gaps` what is left out."""
    files = list(_files(folder))
    written = [file for file in files if file.stat().st_size]
    if written[FILES_MAX:]:
        gaps.append(f"{FILES_MAX} of {len(written)} logs of members are shown; the others are in logs/")
    shown = set(written[:FILES_MAX])
    return tuple(_end_of(file) for file in files if file in shown or file not in written)


def _files(folder: RunFolder) -> Iterator[Path]:
    """Yields the logs of every incarnation that the history knows."""
    names = [path.stem.removeprefix("consumer-") for path in folder.history.glob("consumer-*.jsonl")]
    for name in sorted(names, key=_in_turn):
        places = (folder.logs / f"{name}.{stream}" for stream in STREAMS)
        yield from (place for place in places if place.is_file())


def _in_turn(name: str) -> tuple[str, int, str]:
    member, _, number = name.rpartition("-")
    return member, int(number) if number.isdecimal() else 0, name


def _end_of(file: Path) -> MemberLog:
    size = file.stat().st_size
    with file.open("rb") as log:
        log.seek(max(0, size - TAIL_BYTES), os.SEEK_SET)
        lines = log.read(TAIL_BYTES).decode(errors="replace").splitlines()
    cut = size > TAIL_BYTES or len(lines) > LINES_MAX
    told = tuple(bounded(line.expandtabs(4), most=LINE_MAX) for line in lines[-LINES_MAX:])
    return MemberLog(f"logs/{file.name}", size, told, cut)
