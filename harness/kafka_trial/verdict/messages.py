"""Each anomaly in one sentence that a stranger understands: record, partition, members, positions.

Written into the verdict and into anomalies.jsonl. The judge's attributes may come from a consumer's own output: they
are cut and made printable here. So are other words of others in a verdict: on one line, bounded, without paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_trial.anomalies.claim_rule import ON_TOPIC, Anomaly
from kafka_trial.anomalies.invariant import find_invariant
from kafka_trial.kafka_protocol.primitives import error_name

# verdict.json holds no paths: of an absolute one only the last name is kept.
PATH = re.compile(r"(?:(?<=\s)|^|(?<=['\"(=]))/(?:[^\s/'\"()]+/)+([^\s/'\"()]*)")
MESSAGE_MAX = 400


def plain(message: object) -> str:
    """Returns a message on one line, bounded, without paths."""
    text = PATH.sub(r"\1", str(message)[: 4 * MESSAGE_MAX])
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MESSAGE_MAX]


VALUE_MAX = 80
# Attributes `by` of the judge: how two owners were shown, and where an acknowledgement was seen.
SPLIT_BY = {
    "log": "the offsets log assigns it to both",
    "told": "one worked on after the group had told it that it was no longer the owner",
    "taken": "one fetched and handled records of it without ever having been given it",
}
ACKNOWLEDGED = {"own word": "by a line that its member printed", "request log": "by the request log"}
MOVED, WHEN_AND_WHO = "moved", "when_and_who"  # attributes that audits add


def message(anomaly: str, instance: Anomaly) -> str:
    """Returns one instance in a sentence: record, partition, members, positions; of an audit also when and by whom."""
    attributes = instance.attributes
    place = "the group" if instance.partition is None else f"partition {instance.partition}"
    place += f" of {plain(attributes[ON_TOPIC])}" if ON_TOPIC in attributes else ""
    told = _Told({name: _printable(value) for name, value in attributes.items()}, place=place)
    told |= _phrases(attributes)
    known = find_invariant(anomaly)
    template = known.message if known else anomaly.replace("-", " ") + " on {place}"
    of_audit = " ".join(plain(attributes[name]) for name in (MOVED, WHEN_AND_WHO) if name in attributes)
    return template.format_map(told) + (f" ({of_audit})" if of_audit else "")


def _phrases(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Returns the parts of sentences that depend on whether something is known, or so."""
    key, after_s = attributes.get("key"), attributes.get("converged_after_s")
    lasted_ms = attributes.get("lasted_ms")
    harm = {"and the committed offset went back": "fell", "and a record was skipped": "skipped_record"}
    return {
        "done": "was processed" if attributes.get("told_by") is None else "had been committed past before",
        "before": "" if lasted_ms is None else f" {lasted_ms / 1000:.1f} s before",
        "within": str(attributes.get("within", "the time it may take")),  # the judge's own words, however long
        "found": "in its effect" if attributes.get("found_in") == "effect" else "in the cluster's log",
        "of_record": "" if (offset := attributes.get("offset")) is None else f"record {_printable(offset)} of ",
        "by_client": "" if (client := attributes.get("client")) is None else f" (client {_printable(client)})",
        "of_key": "" if key is None else f" of key {_printable(key)}",
        "split_by": SPLIT_BY.get(str(attributes.get("by")), "?"),
        "acknowledged": ACKNOWLEDGED.get(str(attributes.get("by")), "?"),
        "recovery": _recovery(attributes),
        "whose": "" if WHEN_AND_WHO in attributes else f"; {_printable(attributes.get('member', 'nobody'))} had it",
        "instead": _instead(attributes.get("refused_with")),
        "harm": "".join(f", {phrase}" for phrase, name in harm.items() if attributes.get(name)),
        "last_fetch": _last_fetch(attributes),
        "answers": _answers(attributes.get("answers")),
        "convergence": "and never did" if after_s is None else f"only after {after_s} s",
    }


def _recovery(attributes: Mapping[str, Any]) -> str:
    if attributes.get("recovered"):
        return "recovered later"
    return "stood there until it was deleted" if attributes.get("deleted") else "stood there at the end"


def _last_fetch(attributes: Mapping[str, Any]) -> str:
    """Returns when the owner last fetched, and how that was refused, where the class is of its fetches."""
    error, before_s = attributes.get("fetch_error"), attributes.get("fetched_before_s")
    if before_s is None or not str(attributes.get("class")).startswith("fetch"):
        return ""
    answered = f" was answered {error_name(error)}" if error else ""
    return f": its owner's last fetch{answered}, {before_s} s before the end"


def _instead(refused_with: int | None) -> str:
    """Returns what became of a commit that was said to be stored."""
    if refused_with is None:
        return "it is not in the offsets log"
    return f"the broker had refused it, with {error_name(refused_with)}"


def _answers(counted: Sequence[tuple[str, int, int]] | None) -> str:
    """Returns what a member asked of its group, how often, and what was answered: (API, error code, how often)."""
    if not counted:
        return "none of its requests to join was answered, if it made any"
    told = (f"{count} {api} with {error_name(error) if error else 'no error'}" for api, error, count in counted)
    return f"brokers answered {', '.join(told)}"


class _Told(dict[str, Any]):
    """Attributes for a sentence; one that the judge did not give is a question mark, never an error."""

    def __missing__(self, name: str) -> str:
        return "?"


def _printable(value: Any) -> str:
    """Returns a value that a stranger may have written, on one line and bounded."""
    text = str(value)[:VALUE_MAX]
    return "".join(letter if letter.isprintable() else "·" for letter in text)
