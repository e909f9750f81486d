"""The hearing: everything a verdict rests on, gathered: the judge's findings, and what the run itself says.

Stands between the judge and the verdict. The judge looks for anomalies; from the small files of the harness's own
actors (`run`, `nemesis`) come the faults with their evidence and the consumer's plain failures; from the scenario, how
much had to be judged. Nothing is concluded here that an event does not say.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from kafka_trial.case import Case, Fault, Found, Violation
from kafka_trial.claim import Claim, claim_problems
from kafka_trial.errors import InputError
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judgement import Around
from kafka_trial.scenario import Limits, Topic
from kafka_trial.verdict import Verdict, decide
from kafka_trial.verdict_files import write_verdict

if TYPE_CHECKING:
    from kafka_trial.invariants.circumstances import Circumstances, Window
    from kafka_trial.judge.judge import Coverage, Finding, Judgement

# verdict.json holds no paths: of an absolute one only the last name is kept.
PATH = re.compile(r"(?:(?<=\s)|^|(?<=['\"(=]))/(?:[^\s/'\"()]+/)+([^\s/'\"()]*)")
MESSAGE_MAX = 400
SOURCES = ("run", "nemesis")
WITNESSES = ("offsets", "observer", "requests-")
WITNESS_STATES = {
    "ready": "never said that it had read to the end",
    "behind": "was behind at the snapshot",
    "dead": "died",
    "undecodable": "met a record it cannot decode",
}
FAILURES = {
    "never-assigned": "never got a partition",
    "exited": "exited by itself",
    "never-stopped": "did not stop when asked",
}
TOLD_BY = {"exited": "crash-loop", "never-stopped": "unbounded-close"}  # of the same member: nothing is told twice
Said = Mapping[str, Sequence[Event]]
LETS_PASS = frozenset({"latency", "slow-link"})  # faults under which traffic must go on


@dataclass(frozen=True)
class Scope:
    """What the scenario asked for, as far as the verdict needs it."""

    partitions: int | None = None
    records_judged_min: int = Limits().records_judged_min
    planned: tuple[Mapping[str, Any], ...] = ()


def conclude(folder: RunFolder, judgement: Judgement) -> Verdict:
    """Returns the verdict on a judged run folder, and writes verdict.json, anomalies.jsonl and series.parquet."""
    claim, doubts = claim_of(folder)
    case = gather(judgement, own_events(folder), scope_of(folder), doubts=doubts)
    verdict = decide(case, claim)
    pq.write_table(judgement.series, folder.path / "series.parquet")
    write_verdict(folder, verdict, case)
    return verdict


def gather(judgement: Judgement, events: Iterable[Event], scope: Scope, *, doubts: Sequence[str] = ()) -> Case:
    """Returns everything a verdict rests on; `events` are those of the sources `run` and `nemesis`."""
    said = _by_kind(events)
    failures, no_control = _failures(said, _told(judgement))
    faults = _faults(said, scope.planned)
    coverage = judgement.coverage
    return Case(
        found=tuple(_found(finding) for _, finding in sorted(judgement.findings.items())),
        faults=faults,
        ground=(*doubts, *_ground(judgement), *no_control),
        gaps=tuple(_vacuous(coverage, scope) + _untouched(coverage, judgement.circumstances)),
        failures=failures,
        counts=_counts(coverage),
    )


def claim_of(folder: RunFolder) -> tuple[Claim, list[str]]:
    """Returns the claim of the run folder's consumer.toml, and why it cannot be known, if so."""
    try:
        table = tomllib.loads((folder.path / "consumer.toml").read_text(encoding="utf-8")).get("claim", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Claim("unclaimed"), [
            f"nobody knows what was claimed: consumer.toml cannot be read ({type(error).__name__})"
        ]
    problems = claim_problems(table) if isinstance(table, dict) else ["[claim] is not a table"]
    if problems:
        return Claim("unclaimed"), [f"nobody knows what was claimed: {plain(problem)}" for problem in problems]
    return Claim(**table), []


def scope_of(folder: RunFolder) -> Scope:
    """Returns what the run folder's scenario and schedule asked for; defaults where they are cut off."""
    scenario, schedule = (_table(folder, name) for name in ("scenario.json", "schedule.json"))
    topic, limits = scenario.get("topic", {}), scenario.get("limits", {})
    return Scope(
        partitions=topic.get("partitions", Topic().partitions) if scenario else None,
        records_judged_min=limits.get("records_judged_min", Limits().records_judged_min),
        planned=tuple(schedule.get("faults", ())),
    )


def own_events(folder: RunFolder) -> Iterator[Event]:
    """Yields the events of the harness's own actors; damaged lines are the judge's to name."""
    for source in SOURCES:
        path = folder.history / f"{source}.jsonl"
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                yield from_line(line)
            except (ValueError, TypeError):
                continue


def _found(finding: Finding) -> Found:
    return Found(
        anomaly=finding.anomaly,
        instances=finding.instances,
        more=max(0, finding.count - len(finding.instances)),
        undecided=finding.undecided,
        not_judged=plain(finding.not_judged.because) if finding.not_judged else None,
        applies=finding.not_judged is None or finding.not_judged.applies,
    )


def _ground(judgement: Judgement) -> list[str]:
    """Returns what failed on the harness's or the cluster's side."""
    circumstances = judgement.circumstances
    told = [f"the environment failed: {plain(message)}" for message in circumstances.environment]
    if circumstances.ended is None:
        told.append("the history is truncated: it has no end")
    elif circumstances.ended != "ok" and not told:
        told.append("the trial ended early")
    told += _witnesses(circumstances)
    told += [f"the history is damaged: {plain(defect)}" for defect in judgement.defects]
    return told + [
        f"the judge broke in {name}: {plain(error)}"
        for name, error in sorted(judgement.crashed.items())
        if name not in judgement.findings
    ]


def _witnesses(circumstances: Circumstances) -> list[str]:
    """A witness must have said, last of all, that it read to the end."""
    states = {source: "" for source in circumstances.counts if source.startswith(WITNESSES)}
    states.update(circumstances.witnesses)
    return [
        f"the witness {source} {WITNESS_STATES.get(state, 'did not say that it saw all')}"
        for source, state in sorted(states.items())
        if state != "complete"
    ]


def _vacuous(coverage: Coverage, scope: Scope) -> list[str]:
    """Returns where too little was there to judge: nothing found there means nothing."""
    told = []
    if coverage.records < scope.records_judged_min:
        told.append(f"{coverage.records} records were judged, fewer than the {scope.records_judged_min} it takes")
    seen = {part.partition for part in coverage.partitions if part.records}
    missing = [str(partition) for partition in range(scope.partitions or 0) if partition not in seen]
    if coverage.records and missing:
        told.append(f"no record was judged on partition{'s' * (len(missing) > 1)} {', '.join(missing)}")
    return told


def _untouched(coverage: Coverage, circumstances: Circumstances) -> list[str]:
    """Returns the faults through whose target nothing went: they hit somebody who had nothing to do."""
    if not any(_worked(through) for through in coverage.members.values()):
        return []  # nothing tells who did what
    return [
        f"{idle}: fault {window.number} ({window.fault}) is vacuous"
        for window in circumstances.windows
        if (idle := _idle(coverage, window)) is not None
    ]


def _idle(coverage: Coverage, window: Window) -> str | None:
    """Returns how a fault hit somebody who had nothing to do; None where something went through or because of it.

    A fault that lets traffic pass must have had some pass through its target. One that stops it leaves nothing inside
    its window: then its target had partitions in hand when it was hit, and the work on them went on, by whomever.
    """
    hit = [through for name, through in coverage.members.items() if window.member in (None, name)]
    who = window.member or "any member"
    if not any(_worked(through) for through in hit):
        return f"nothing went through {who} in the whole trial"
    if window.fault in LETS_PASS:
        passed = any(any(through.inside.get(window.number, ())) for through in hit)
        return None if passed else f"nothing went through {who} while it was in force"
    around = coverage.around.get(window.number, Around(0, 0))
    if not around.held:
        return f"{who} had no partition in hand when it was hit"
    return None if around.after else f"nothing was done any more on the partitions {who} had in hand"


def _worked(through: Any) -> bool:
    return bool(through.delivered or through.processed or through.committed)


def _counts(coverage: Coverage) -> dict[str, int]:
    names = {"records": "records", "handled": "handled", "deliveries": "delivered", "completions": "processed"}
    names |= {"effects": "effects", "commits": "committed", "commits refused": "refused"}
    return {name: sum(getattr(part, field) for part in coverage.partitions) for name, field in names.items()}


def _by_kind(events: Iterable[Event]) -> dict[str, list[Event]]:
    said: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda event: (event.source, event.seq)):
        said.setdefault(event.kind, []).append(event)
    return said


def _faults(said: Said, planned: Sequence[Mapping[str, Any]]) -> tuple[Fault, ...]:
    evidence = {event.details.get("fault_no"): event for event in said.get("evidence", ())}
    shown = [_fault(event, number) for number, event in sorted(evidence.items(), key=lambda item: str(item[0]))]
    missing = [_unshown(plan, number) for number, plan in enumerate(planned) if plan.get("no", number) not in evidence]
    return tuple(fault for _, fault in sorted([*shown, *missing], key=lambda pair: pair[0]))


def _fault(event: Event, number: Any) -> tuple[int, Fault]:
    details = event.details
    role, _, name = str(details.get("target", "")).partition(": ")
    return int(number or 0), Fault(
        kind=str(details.get("fault", "?")),
        target=name or role,
        role=role,
        bit=details.get("bit") is True,
        evidence=plain(details.get("message") or "no evidence was given"),
        healed=not (details.get("heals") is True and details.get("healed_traffic") is False),
    )


def _unshown(plan: Mapping[str, Any], number: int) -> tuple[int, Fault]:
    role = str(plan.get("target", "?"))
    told = "the history holds no evidence of it: it was never injected, or the run ended first"
    return number, Fault(str(plan.get("fault", "?")), str(plan.get("resolved") or role), role, bit=False, evidence=told)


def _told(judgement: Judgement) -> set[tuple[str, str]]:
    """Returns the plain failures (name, member) that an anomaly of the judge's tells with more proof."""
    found = {failure: judgement.findings.get(anomaly) for failure, anomaly in TOLD_BY.items()}
    return {
        (failure, str(one.attributes.get("member")))
        for failure, finding in found.items()
        if finding is not None and finding.not_judged is None
        for one in finding.instances
    }


def _failures(said: Said, told: Collection[tuple[str, str]] = ()) -> tuple[tuple[Violation, ...], list[str]]:
    """Returns the consumer's plain failures; where not even a control member could join, the ground is at fault."""
    failed = said.get("consumer_failure", [])
    controls = said.get("control_member", [])
    if failed and any(event.details.get("state") == "failed" for event in controls):
        return (), ["the cluster let not even a control member of the harness join"]
    by_name: dict[str, list[Event]] = {}
    for event in failed:
        name = str(event.details.get("name", "failed"))
        if (name, event.member) not in told:
            by_name.setdefault(name, []).append(event)
    return tuple(_failure(name, events, controls) for name, events in sorted(by_name.items())), []


def _failure(name: str, events: Sequence[Event], controls: Sequence[Event]) -> Violation:
    members = sorted({event.member or "?" for event in events})
    beside = ", where a control member of the harness got its own" if controls else ""
    told = f"{', '.join(members)} {FAILURES.get(name, 'failed')}{beside}: {_message(events[0])}"
    return Violation(name, len(members), told, tuple(event.name for event in events))


def plain(message: object) -> str:
    """Returns a message on one line, bounded, without paths."""
    text = PATH.sub(r"\1", str(message)[: 4 * MESSAGE_MAX])
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MESSAGE_MAX]


def _message(event: Event) -> str:
    return plain(event.details.get("message") or "no message")


def _table(folder: RunFolder, name: str) -> Mapping[str, Any]:
    try:
        value = folder.read_json(name)
    except InputError:
        return {}
    return value if isinstance(value, Mapping) else {}
