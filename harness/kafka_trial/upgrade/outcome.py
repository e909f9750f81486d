"""The outcome of an upgrade: go, no-go or unknown, for each consumer and for the cluster in each stage, and who is
accused.

A stage is judged by the history up to its snapshot. It answers for what was proven in it alone: a violation whose last
proof is of an earlier stage stood there. What the cluster lost is no consumer's: the stage is a no-go for the cluster,
and from then on no consumer is accused, because what it breaks may follow from that. A stage that is missing is
unknown, never a go; and so is one that changed a broker from which no member got a record.

Of members that brokers served no more when a stage ended it is told what their logs and the history say of the cause.
Told with an outcome that is no go, which rests on other proof. What counts is the time from the last restart or
replacement of a broker in the history, or from where the stage begins, if that is later:

- brokers refused a version of an API, and served the member none of that API since: it is too old, or too new, for
  these brokers, though others that are not changed yet may go on to serve it;
- no broker got any request of it, though they had before: it has given up, or knows no address of a broker. Where every
  broker that it was started with has been replaced, that is said.

A member whose process has ended is the judge's to tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.compatibility.clients import api_named
from kafka_trial.compatibility.tables import apis, versions
from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.history.event import Event, from_line
from kafka_trial.history.refused_requests import SOURCE, UNSUPPORTED, Refused, refusal_in_words, refused_requests
from kafka_trial.history.store import RunFolder, raw_lines
from kafka_trial.upgrade.broker_changes import BrokerChanges, broker_changes
from kafka_trial.upgrade.cluster_state import CLUSTER, Loss
from kafka_trial.upgrade.stage_history import OF_A_CONTROL_READ
from kafka_trial.upgrade.unfetched_brokers import unfetched_in_words
from kafka_trial.verdict.decide import Verdict

GO, NO_GO, NOT_KNOWN = "go", "no-go", "unknown"
CONSUMER = "consumer"
EXITS = {GO: PASS, NO_GO: FAIL, NOT_KNOWN: UNKNOWN}
VIOLATION, GROUND = "violation", "ground"  # weights in anomalies.jsonl
ANOMALIES: Final = "anomalies.jsonl"
LEFT: Final = frozenset(("unseen", "overtaken"))  # what is left undone by a group that does not get on
PLACES: Final = ("offset", "committed_offset", "log_offset", "member", "incarnation", "producer_id")
KINDS: Final = ("started", "exited", "request", "api_version", "request_refused")
READ: Final = tuple(f'"kind":"{kind}"'.encode() for kind in KINDS)
NAMED_MAX: Final = 3  # members of which more than the name is told
NS_PER_S: Final = 1e9


@dataclass(frozen=True)
class StageOutcome:
    """What came of one stage for one consumer, or for the cluster (`subject` empty): why, and by whose fault."""

    stage: str
    subject: str
    outcome: str
    accused: str = ""
    reason: str = ""


class StageVerdicts:
    """The verdicts on the stages of one consumer, in their order: each history begins where the first one did, so what
    was found in an earlier stage is found again."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer
        self._known: set[bytes] = set()
        self._counts: dict[str, int] = {}
        self._reasons: set[str] = set()
        self._begins_ns = -math.inf

    def outcome(
        self, stage: str, folder: RunFolder, verdict: Verdict, losses: Iterable[Loss], stranded: Sequence[Loss] = ()
    ) -> StageOutcome:
        """Returns what came of the next stage, whose history is in the folder and judged; `losses`: all up to its end.
        If no more is broken than that the group stands still, and members are `stranded`, it is by these.

        An anomaly is of the stage if one of the events that prove it is, if none proves it (what is left at the end of
        a drain), or if no earlier stage had it. So is a reason why something is unknown that no earlier stage had.
        """
        anomalies = [orjson.loads(line) for line in (folder.path / ANOMALIES).read_bytes().splitlines()]
        proofs = _events_since(folder, self._begins_ns, (event for one in anomalies for event in one["events"]))
        own = [one for one in anomalies if self._is_of_the_stage(one, proofs)]
        said = [(str(one["anomaly"]), str(one["sentence"])) for one in own if one["weight"] == VIOLATION]
        said += [  # a list of anomalies has an end
            (one.anomaly, one.sentence) for one in verdict.violations if one.count > self._counts.get(one.anomaly, 0)
        ]
        lost = [str(one["sentence"]) for one in own if one["weight"] == GROUND]
        reasons = [reason for reason in verdict.reasons if reason not in self._reasons]
        self._known |= {_identity(one) for one in anomalies}
        self._counts |= {one.anomaly: one.count for one in verdict.violations}
        self._reasons |= set(verdict.reasons)
        begins_ns, self._begins_ns = self._begins_ns, _ends_ns(folder)
        if lost:
            return StageOutcome(stage, self._consumer, NOT_KNOWN, CLUSTER, lost[0])
        if not (said or reasons):
            unfetched = unfetched_in_words(folder, begins_ns=begins_ns)
            return StageOutcome(stage, self._consumer, NOT_KNOWN if unfetched else GO, reason=unfetched)
        cause = cut_off_in_words(folder.history, begins_ns=begins_ns)
        if said and verdict.exit == FAIL and stranded and {anomaly for anomaly, _ in said} <= _of_standing_still():
            return StageOutcome(stage, self._consumer, NO_GO, stranded[0].accused, stranded[0].sentence)
        if said and verdict.exit == FAIL:
            broken = _with(": ".join(said[0]), cause)
            if before := next((loss.sentence for loss in losses if loss.accused == CLUSTER), None):
                reason = f"the cluster had lost something: {before}. What was broken may follow from it: {broken}"
                return StageOutcome(stage, self._consumer, NOT_KNOWN, CLUSTER, reason)
            return StageOutcome(stage, self._consumer, NO_GO, CONSUMER, broken)
        return StageOutcome(stage, self._consumer, NOT_KNOWN, "", _with((reasons or verdict.reasons)[0], cause))

    def _is_of_the_stage(self, anomaly: Mapping[str, Any], proofs: AbstractSet[str]) -> bool:
        proved = anomaly["events"]
        return not proved or not proofs.isdisjoint(proved) or _identity(anomaly) not in self._known


def _of_standing_still() -> set[str]:
    """Returns the anomalies of a group that does not get on: with its work, or with its members."""
    return {one.name for one in list_invariants() if one.family == "liveness"} | LEFT


def _with(reason: str, told: str) -> str:
    """Returns a reason with what was told of members that were cut off: the cause, where it is that nothing went on."""
    word = "Cause" if reason.partition(": ")[0] in _of_standing_still() else "Besides"
    return f"{reason}. {word}: {told}" if told else reason


def _identity(anomaly: Mapping[str, Any]) -> bytes:
    """Returns what an anomaly is known by in the stages after its own: its place, not how long it has lasted."""
    attributes = {name: anomaly["attributes"].get(name) for name in PLACES}
    place = [anomaly["anomaly"], anomaly["topic"], anomaly["partition"], attributes]
    return orjson.dumps(place, option=orjson.OPT_SORT_KEYS)


def _events_since(folder: RunFolder, begins_ns: float, named: Iterable[str]) -> set[str]:
    """Returns those of some events (`source#seq`) that came after an instant. What the topic held is read anew at the
    end of each stage, and tells of no stage."""
    asked = {*named}
    sources = {one.partition("#")[0] for one in asked}
    events = (event for file in folder.history_files() if file.stem in sources for event in raw_lines(file))
    later = (one for one in events if one["time_ns"] > begins_ns and one["kind"] not in OF_A_CONTROL_READ)
    return asked.intersection(f"{one['source']}#{one['seq']}" for one in later)


def _ends_ns(folder: RunFolder) -> int:
    """Returns when the stage ended."""
    return max(int(line["time_ns"]) for line in raw_lines(folder.history / "run.jsonl") if line["kind"] == "end")


def of_cluster(stage: str, losses: Sequence[Loss], not_known: str = "") -> StageOutcome:
    """Returns what came of a stage for the cluster; `not_known`: why something of it could not be looked at."""
    if losses:
        return StageOutcome(stage, "", NO_GO, losses[0].accused, losses[0].sentence)
    if not_known:
        return StageOutcome(stage, "", NOT_KNOWN, reason=not_known)
    return StageOutcome(stage, "", GO)


@dataclass
class _Seen:
    """What was seen of one lane: the last request before the time that counts (None: none), and since then which
    brokers served which APIs."""

    before_ns: int | None = None
    since: set[tuple[str, str]] = field(default_factory=set)

    def served(self, refused: Refused) -> bool:
        """Tells whether any of the brokers that refused a request served another one of its API since."""
        return any((broker, refused.api) in self.since for broker in refused.brokers)


def cut_off(history: Path, *, begins_ns: float) -> list[str]:
    """Returns a sentence for each member that was cut off in the stage that begins at an instant (monotonic clock)."""
    brokers = broker_changes(history)
    since_ns = int(max(begins_ns, brokers.last_ns))
    events = list(_events(history))
    members = {event.member: event for event in events if event.kind == "started" and event.member}
    ended = {(event.member, event.incarnation) for event in events if event.kind == "exited"}
    lanes = _lanes(events, since_ns)
    refused = _refused_since(events, since_ns)
    told = []
    for name, started in sorted(members.items()):
        if (name, started.incarnation) in ended:
            continue
        seen = lanes.get(started.details.get("lane"), _Seen())
        own = [one for one in refused if one.member == name]
        told += [f"{name} {what}" for what in _of_member(started, seen, own, brokers, since_ns)]
    return told


def cut_off_in_words(history: Path, *, begins_ns: float) -> str:
    """Returns the sentences of `cut_off` as one; "" where no member was."""
    told = cut_off(history, begins_ns=begins_ns)
    more = [f"{len(told) - NAMED_MAX} more members alike"] if len(told) > NAMED_MAX else []
    return "; ".join([*told[:NAMED_MAX], *more])


def _of_member(
    started: Event, seen: _Seen, refused: Sequence[Refused], brokers: BrokerChanges, since_ns: int
) -> Iterator[str]:
    never = [one for one in refused if one.api and one.reason == UNSUPPORTED and not seen.served(one)]
    if never:
        yield f"is {_fit(never, brokers)} for these brokers: {refusal_in_words(never)}"
    elif not seen.since and not refused and seen.before_ns is not None and since_ns > seen.before_ns:
        quiet_s = (since_ns - seen.before_ns) / NS_PER_S
        given = {broker for broker in started.details.get("started_with") or () if isinstance(broker, int)}
        why = ""
        if given and given <= brokers.gone:
            named = ", ".join(f"b{broker}" for broker in sorted(given))
            why = f"; every broker that it was started with ({named}) has been replaced: its addresses are gone"
        yield f"sent no request to these brokers, its last one came {quiet_s:.1f} s before they were as they are{why}"


def _fit(never: Sequence[Refused], brokers: BrokerChanges) -> str:
    """Returns whether versions that brokers refused are too old or too new for them; where the tables do not say, that
    they do not fit."""
    words = {_word(one, brokers.versions.get(broker, "")) for one in never for broker in one.brokers}
    return words.pop() if len(words) == 1 else "not fit"


def _word(one: Refused, version: str) -> str:
    if version not in versions() or one.version is None:
        return "not fit"
    served = apis(version).get(one.api)
    if served is None or one.version < served.lowest:
        return "too old"
    return "too new" if one.version > served.highest else "not fit"


def _refused_since(events: Sequence[Event], since_ns: int) -> list[Refused]:
    told = [one for one in events if one.kind == "started"]
    told += [one for one in events if one.kind == "request_refused" and one.details.get("last_ns", 0) >= since_ns]
    return refused_requests(told)


def _lanes(events: Sequence[Event], since_ns: int) -> dict[object, _Seen]:
    lanes: dict[object, _Seen] = {}
    for event in events:
        if event.kind in ("request", "api_version") and isinstance(lane := event.details.get("lane"), int):
            seen = lanes.setdefault(lane, _Seen())
            if event.time_ns >= since_ns:
                seen.since.add((event.source.removeprefix(SOURCE), api_named(-1, str(event.details.get("api")))))
            else:
                seen.before_ns = max(event.time_ns, seen.before_ns or event.time_ns)
    return lanes


def _events(history: Path) -> Iterator[Event]:
    """Yields the events that tell of clients, in the order of their files."""
    for file in (*sorted(history.glob("consumer-*.jsonl")), *sorted(history.glob("requests-*.jsonl"))):
        yield from (from_line(raw) for raw in _lines(file) if any(kind in raw for kind in READ))


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines() if file.exists() else []
