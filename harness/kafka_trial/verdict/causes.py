"""Causes that the history tells: what had become of the records that were skipped, which commits came with a
rebalance, and which records lost their order because they got another key. Notes of a verdict: they decide nothing.

Read from the events themselves once the judge has found something: the sink's of refused effects, which no rule needs
else, the members' lines, and the brokers' request logs. Where these do not tell, nothing is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from kafka_trial.anomalies.claim_rule import CONTROL_READ, Anomaly
from kafka_trial.history.store import RunFolder

if TYPE_CHECKING:
    from kafka_trial.judge.judgement import Finding

REBALANCE_IN_PROGRESS = 27  # Kafka's error code: a member that is answered so gives its partitions back and joins again
FAILED, KILLED, REVOKED, HELD = "failed", "killed", "revoked", "held"  # the surest word of a record first
BECAME = {
    FAILED: "had been refused by the sink, or had failed, and were not tried again",
    KILLED: "were in hand when their member was killed",
    REVOKED: "were in hand when their partition was taken away, and were not finished",
    HELD: "were taken in hand and never finished",
    "unknown": "were in flight when their member crashed, or lost the answer to its commit",
    "never": "were never delivered to a handler, by the members' lines",
    "unsent": "never reached the sink",
}
Place = tuple[str, int, int]  # topic, partition, offset


def causes_of(folder: RunFolder, findings: Mapping[str, Finding]) -> tuple[str, ...]:
    """Returns a sentence for each of these anomalies of which the history tells more than the judge says."""
    told = {"skipped": _skipped, "commit-ahead": _commit_ahead, "reordered-key": _reordered}
    found = [(cause, findings[name]) for name, cause in told.items() if name in findings and findings[name].instances]
    return tuple(sentence for cause, finding in found if (sentence := cause(folder, finding)))


def _skipped(folder: RunFolder, finding: Finding) -> str:
    lost = {place: one for one in finding.instances if (place := _at(one, "offset"))}
    refused, sink_told = _refused(folder, lost)
    became, deliveries_told = _became(folder, lost.keys())
    otherwise = "never" if deliveries_told else "unsent" if sink_told else ""
    counts = Counter(
        FAILED
        if place in refused
        else became.get(place) or ("unknown" if one.attributes.get("in_flight_at_crash") else otherwise)
        for place, one in lost.items()
    )
    parts = [_told(counts[state], words) for state, words in BECAME.items() if counts[state]]
    return f"of {_so_many(finding, 'record', 'skipped')}, {'; '.join(parts)}" if parts else ""


def _commit_ahead(folder: RunFolder, finding: Finding) -> str:
    asked = _commits_in_rebalance(folder)
    answers = [asked[place] for one in finding.instances if (place := _at(one, "committed_offset")) in asked]
    if not answers:
        return ""
    many = _so_many(finding, "position", "committed ahead")
    if not any(answers):
        return f"of {many}, none is known to have come with a rebalance" if len(answers) == finding.count else ""
    return (
        f"of {many}, {sum(answers)} came with a rebalance: they were committed after their member had been told of it, "
        "and before it had joined again"
    )


def _reordered(folder: RunFolder, finding: Finding) -> str:
    """Tells of those that were handed on to another partition than the later record that was handled before them."""
    went = _handed_on(folder)
    pairs = [(_at(one, "offset"), _at(one, "later_offset")) for one in finding.instances] if went else []
    ids = _ids(folder, {place for pair in pairs for place in pair if place}) if pairs else {}
    ways = [tuple(went.get(ids.get(place, "")) for place in pair if place) for pair in pairs]
    parted = [pair for pair in ways if len({*pair} - {None}) == 2]
    if not parted:
        return ""
    topics = ", ".join(sorted({place[0] for pair in parted for place in pair if place}))
    many = _so_many(finding, "record", "handled after a later one")
    return (
        f"of {many}, {_told(len(parted), f'were handed on to another partition of {topics} than that one')}: re-keying "
        "separates records of one key or partition, and Kafka keeps order only within a partition"
    )


def _handed_on(folder: RunFolder) -> dict[str, tuple[str, int]]:
    """Returns to which topic and partition each id was handed on first."""
    went: dict[str, tuple[str, int]] = {}
    for event in map(_read, _lines(folder.history / "through.jsonl")):
        if event.get("kind") == "handed_on" and (place := _partition(event)):
            went.setdefault(str(event.get("id")), place)
    return went


def _ids(folder: RunFolder, wanted: Collection[Place]) -> dict[Place, str]:
    """Returns the ids of records, by the control read."""
    told = map(_read, _lines(folder.history / "observer.jsonl"))
    records = ((_place(event, "offset"), event) for event in told if event.get("kind") == "record")
    return {place: str(event.get("id")) for place, event in records if place is not None and place in wanted}


def _told(count: int, words: str) -> str:
    return f"{count} {words.replace('were', 'was') if count == 1 else words}"


def _so_many(finding: Finding, noun: str, which: str) -> str:
    what = f"{finding.count} {noun}{'s' * (finding.count != 1)} {which}"
    kept = len(finding.instances)
    return what if kept == finding.count else f"the {kept} looked at, out of {what}"


def _at(one: Anomaly, attribute: str) -> Place | None:
    return _place({"topic": one.topic, "partition": one.partition, attribute: one.attributes.get(attribute)}, attribute)


def _place(told: object, attribute: str) -> Place | None:
    """Returns the place that a part of an event names; None where it does not: it may be a consumer's own word."""
    if not isinstance(told, Mapping):
        return None
    topic, partition, at = told.get("topic"), told.get("partition"), told.get(attribute)
    if isinstance(topic, str) and isinstance(partition, int) and isinstance(at, int):
        return topic, partition, at
    return None


def _partition(entry: object) -> tuple[str, int] | None:
    place = _place(entry, "partition")
    return place[:2] if place else None


def _entries(event: Mapping[str, Any]) -> Sequence[object]:
    entries = event.get("entries")
    return entries if isinstance(entries, list) else ()


def _refused(folder: RunFolder, lost: Mapping[Place, Anomaly]) -> tuple[set[Place], bool]:
    """Returns which of these records the sink refused at least once, and whether there are effects of a sink at all."""
    places, refused, told = _by_id(folder, lost), set(), False
    for line in _lines(folder.history / "sink.jsonl"):
        event = _read(line)
        told |= event.get("kind") == "effect"
        if event.get("outcome") == "fail" and (place := places.get(str(event.get("id")))):
            refused.add(place)
    return refused, told


def _by_id(folder: RunFolder, lost: Mapping[Place, Anomaly]) -> dict[str, Place]:
    """Returns the records by the ids that the control read has: the first event that proves a skip is its record."""
    events = {one.events[0]: place for place, one in lost.items() if one.events}
    found = {}
    for number, line in enumerate(_lines(folder.history / "observer.jsonl")):
        if place := events.get(f"{CONTROL_READ}{number}"):
            found[str(_read(line).get("id"))] = place
    return found


def _became(folder: RunFolder, wanted: Collection[Place]) -> tuple[dict[Place, str], bool]:
    """Returns the surest word that members' lines have of each record, and whether they tell of deliveries at all."""
    became: dict[Place, str] = {}
    delivering = []
    for file in sorted(folder.history.glob("consumer-*.jsonl")):
        state, kinds = _became_in(file, wanted)
        delivering += [("delivered" in kinds)] if kinds & {"delivered", "processed"} else []
        for place, word in state.items():
            became[place] = min(word, became.get(place, HELD), key=list(BECAME).index)
    return became, bool(delivering) and all(delivering)


def _became_in(file: Path, wanted: Collection[Place]) -> tuple[dict[Place, str], set[str]]:
    """Returns the last word of one member's file on each record, and the kinds of lines in it.

    Held at a revocation or a kill is what was delivered, while no later record of its partition had been completed:
    else it may have been given up long before, and HELD is all that is said.
    """
    state: dict[Place, str] = {}
    kinds, highest = set(), dict[tuple[str, int], int]()
    for event in map(_read, _lines(file)):
        kind, place = str(event.get("kind")), _place(event, "offset")
        kinds.add(kind)
        if kind == "delivered" and place and place in wanted:
            state[place] = HELD
        elif kind == "processed" and place and event.get("outcome") != "failed":
            highest[place[:2]] = max(place[2], highest.get(place[:2], -1))
        elif kind == "processed" and place and place in wanted:
            state[place] = FAILED
        elif kind in ("revoked", "lost"):
            listed = [_partition(entry) for entry in _entries(event)]
            state |= {one: REVOKED for one in _in_hand(state, highest) if one[:2] in listed}
        elif kind == "exited" and _was_killed(event):
            state |= dict.fromkeys(_in_hand(state, highest), KILLED)
    return state, kinds


def _in_hand(state: Mapping[Place, str], highest: Mapping[tuple[str, int], int]) -> list[Place]:
    return [one for one, word in state.items() if word == HELD and one[2] > highest.get(one[:2], -1)]


def _was_killed(exited: Mapping[str, Any]) -> bool:
    asked = exited.get("asked")
    return asked in ("kill", "overdue") or (asked != "stop" and bool(exited.get("signal")))


def _commits_in_rebalance(folder: RunFolder) -> dict[Place, bool]:
    """Returns of each position that a member of the classic protocol committed first whether that was in a rebalance:
    its member had been answered REBALANCE_IN_PROGRESS and had not joined again."""
    found: dict[Place, tuple[int, bool]] = {}
    for file in sorted(folder.history.glob("requests-b*.jsonl")):
        told: dict[int, bool] = {}
        for event in map(_read, _lines(file)):
            lane, api = event.get("lane"), event.get("api")
            if not isinstance(lane, int):
                continue
            if api == "JOIN_GROUP":
                told[lane] = False
            elif api == "HEARTBEAT" and event.get("error") == REBALANCE_IN_PROGRESS:
                told[lane] = True
            elif api == "OFFSET_COMMIT" and lane in told:
                at = int(event.get("source_wall_ns") or 0)
                for entry in _entries(event):
                    place = _place(entry, "committed_offset")
                    if place and isinstance(entry, Mapping) and not entry.get("error"):
                        found[place] = min(found.get(place, (at, told[lane])), (at, told[lane]))
    return {place: inside for place, (_, inside) in found.items()}


def _lines(file: Path) -> Iterator[bytes]:
    if file.exists():
        with file.open("rb") as lines:
            yield from lines


def _read(line: bytes) -> Mapping[str, Any]:
    """Returns an event as its line has it; nothing of a damaged line, which the judge names."""
    try:
        told = orjson.loads(line)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
