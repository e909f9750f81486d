"""Events in words: one short line for each event a page shows. What strangers wrote is bounded here, escaped there.

Stands between the history and the pages; used by `excerpts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafka_trial.anomalies.invariant import find_invariant
from kafka_trial.history.event import Event

TEXT_MAX = 200
ENTRIES_MAX = 8
READING = ("lines read within ms, median", "lines read within ms, worst")  # of the counts


def bounded(value: object, *, most: int = TEXT_MAX) -> str:
    """Returns a stranger's text on one line, at most `most` characters, control characters shown as `·`."""
    text = str(value)
    cut = text[:most] + ("…" if len(text) > most else "")
    return cut if cut.isprintable() else "".join(letter if letter.isprintable() else "·" for letter in cut)


def in_words(event: Event, *, partition: int | None = None) -> str:
    """Returns what one event says, without its time and its source; of many partitions only `partition`, if given."""
    teller = TELLERS.get(event.kind, _plain)
    entries = event.details.get("entries")
    if partition is None or not isinstance(entries, list):
        return bounded(teller(event))
    here = [entry for entry in entries if isinstance(entry, dict) and entry.get("partition") == partition]
    count = len(entries) - len(here)
    others = f", and {count} other partition{'s' * (count > 1)}" if count else ""
    return bounded(teller(replace(event, details={**event.details, "entries": here}))) + others


def who(event: Event) -> str:
    """Returns who wrote an event: member and incarnation (`m1-0`), else the source."""
    if event.member is not None and event.incarnation is not None:
        return bounded(f"{event.member}-{event.incarnation}", most=40)
    return bounded(event.source, most=40)


def reading_in_words(counts: Mapping[str, Any]) -> str:
    """Returns how exactly lines of members can be placed in time, by the counts of a verdict; "" where it was not
    measured."""
    median, worst = (counts.get(name) for name in READING)
    if median is None or worst is None:
        return ""
    return f"lines were read within {worst} ms, half of them within {median} ms"


def count_in_words(anomaly: str, count: int, counts: Mapping[str, Any]) -> str:
    """Returns how often an anomaly was found, by the counts of a verdict: "585 of 12,459 records (4.7 %)".

    The whole is told where each finding is one of it (`share_of` of the invariant) and it was counted.
    """
    known = find_invariant(anomaly)
    wholes = ((name, counts.get(name)) for name in (known.share_of if known else ()))
    for name, whole in wholes:
        if isinstance(whole, int) and whole:
            return f"{count:,} of {whole:,} {name} ({_percent(count, whole)})" if count <= whole else f"{count:,}"
    return f"{count:,}"


def _percent(count: int, whole: int) -> str:
    tenths = round(count * 1000 / whole)
    if count and not tenths:
        return "less than 0.1 %"
    return f"{min(tenths, 999) / 10 if count < whole else 100:g} %"


def _record(event: Event) -> str:
    outcome = f": {event.outcome}" if event.outcome else ""
    key = f", key {bounded(event.key, most=40)}" if event.key is not None else ""
    return f"{event.kind} offset {event.offset}{key}{outcome}"


def _send(event: Event) -> str:
    said = {"invoke": "sends", "ok": "send acknowledged:", "fail": "send refused:", "info": "send without an answer:"}
    record = f"record {bounded(event.id, most=40)}" if event.id is not None else "a record"
    place = f" at offset {event.offset} of partition {event.partition}" if event.offset is not None else ""
    key = f", key {bounded(event.key, most=40)}" if event.key is not None else ""
    return f"{said.get(event.outcome or '', 'send of')} {record}{key}{place}{_message(event)}"


def _in_the_log(event: Event) -> str:
    return f"the log holds record {bounded(event.id, most=40)} at offset {event.offset}"


def _handed_on(event: Event) -> str:
    record = "a record without an id" if event.id is None else f"record {bounded(event.id, most=40)}"
    where = f"partition {event.partition} of {bounded(event.topic, most=80)}, at offset {event.offset}"
    return f"the group handed on {record} to {where}"


def _partitions(event: Event) -> str:
    return f"{event.kind} partitions {_listed(entry.get('partition') for entry in _entries(event))}"


def _commit(event: Event) -> str:
    said = {"invoke": "asks to commit", "ok": "commit acknowledged", "fail": "commit refused", "info": "commit unknown"}
    return f"{said.get(event.outcome or '', 'commit')}: {_positions(event)}{_message(event)}"


def _committed(event: Event) -> str:
    return f"committed offset {event.committed_offset} took effect{_place(event)}"


def _tombstone(event: Event) -> str:
    return f"committed offset removed{_place(event)}"


def _aborted(event: Event) -> str:
    return f"commit of {event.committed_offset} was aborted{_place(event)}"


def _request(event: Event) -> str:
    details = event.details
    error = f", error {bounded(details['error'], most=40)}" if details.get("error") not in (None, 0, "NONE") else ""
    lane = f" on lane {details['lane']}" if details.get("lane") is not None else ""
    positions = f": {_positions(event)}" if _entries(event) else ""
    return f"{bounded(details.get('api', 'request'), most=40)}{lane}{error}{positions}"


def _ownership(event: Event) -> str:
    """Who owns what by the offsets log; members by client id where the record has it, for member ids are long."""
    details = event.details
    members = details.get("members")
    clients = {
        member.get("member_id"): member.get("client_id")
        for member in (members if isinstance(members, list) else ())
        if isinstance(member, Mapping) and isinstance(member.get("member_id"), str)
    }
    owned = _listed(_owned(entry, clients) for entry in _entries(event))
    whose = f" of {bounded(details['member_id'], most=40)}" if "member_id" in details else ""
    return f"{event.kind.replace('_', ' ')}{whose}, epoch {details.get('epoch', '?')}, owns {owned or 'nothing here'}"


def _owned(entry: Mapping[str, Any], clients: Mapping[Any, Any]) -> str:
    owner = entry.get("member_id")
    if not isinstance(owner, str):
        return f"{entry.get('partition')}"
    return f"{entry.get('partition')} → {bounded(clients.get(owner) or owner, most=24)} ({bounded(owner[-6:])})"


def _fault(event: Event) -> str:
    return f"{event.kind} {event.details.get('fault', '?')} on {event.details.get('target', '?')}"


def _phase(event: Event) -> str:
    return f"phase {event.details.get('phase', '?')} begins{_message(event)}"


def _exited(event: Event) -> str:
    signal, code = event.details.get("signal"), event.details.get("code")
    if not signal and code is None:
        return f"it is not known how the process ended{_message(event)}"
    memory = ": it wanted more memory than its limit" if event.details.get("oom_killed") else ""
    return (f"process ended by signal {signal}" if signal else f"process ended with status {code}") + memory


def _plain(event: Event) -> str:
    return f"{event.kind}{f' offset {event.offset}' if event.offset is not None else ''}{_message(event)}"


def _positions(event: Event) -> str:
    return _listed(
        f"{entry.get('partition')}{_at(entry)}"
        + (f" ({bounded(entry['error'], most=24)})" if entry.get("error") else "")
        for entry in _entries(event)
    )


def _at(entry: Mapping[str, Any]) -> str:
    """Returns the position of an entry; an assignment has none."""
    position = entry.get("committed_offset", entry.get("offset"))
    return "" if position is None else f" at {position}"


def _listed(parts: Iterable[object]) -> str:
    words = [str(part) for part in parts]
    return ", ".join(words[:ENTRIES_MAX]) + (f", and {len(words) - ENTRIES_MAX} more" if words[ENTRIES_MAX:] else "")


def _entries(event: Event) -> list[Mapping[str, Any]]:
    entries = event.details.get("entries")
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _place(event: Event) -> str:
    place = event.details.get("log_offset")
    return f" (offsets log {place})" if place is not None else ""


def _message(event: Event) -> str:
    message = event.details.get("message")
    return f": {bounded(message)}" if message else ""


TELLERS: dict[str, Callable[[Event], str]] = {
    "send": _send,
    "record": _in_the_log,
    "delivered": _record,
    "processed": _record,
    "effect": _record,
    "handed_on": _handed_on,
    "assigned": _partitions,
    "revoked": _partitions,
    "lost": _partitions,
    "commit": _commit,
    "committed": _committed,
    "commit_tombstone": _tombstone,
    "commit_aborted": _aborted,
    "request": _request,
    "group": _ownership,
    "member_assignment": _ownership,
    "armed": _fault,
    "injecting": _fault,
    "injected": _fault,
    "healing": _fault,
    "healed": _fault,
    "phase": _phase,
    "exited": _exited,
}
