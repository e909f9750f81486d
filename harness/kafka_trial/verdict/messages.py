"""Each anomaly in one sentence that a stranger understands: record, partition, members, positions.

Written into the verdict and into anomalies.jsonl. The judge's attributes may come from a consumer's own output: they
are cut and made printable here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka_trial.invariants.invariant import Anomaly

VALUE_MAX = 80

# How brokers refuse commits; any other error is told by its number.
REFUSALS = {
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    22: "ILLEGAL_GENERATION",
    25: "UNKNOWN_MEMBER_ID",
    27: "REBALANCE_IN_PROGRESS",
    82: "FENCED_INSTANCE_ID",
    110: "FENCED_MEMBER_EPOCH",
    113: "STALE_MEMBER_EPOCH",
}

# One message an anomaly, a sentence; names in braces are the judge's attributes.
MESSAGES = {
    "skipped": "record {offset} of {place} was committed past and never processed",
    "overtaken": "records {offset} to {last_offset} of {place} expired before they were read ({records} of them)",
    "unseen": "record {offset} of {place} was never processed, although the drain was over",
    "duplicate-effect": "record {offset} of {place} had its effect again, for the {number}. time",
    "lost-write": "the cluster lost record {offset} of {place}, which it had acknowledged",
    "torn-transaction": (
        "a transaction of producer {producer_id} was committed in {committed_in} and aborted in {aborted_in}"
    ),
    "aborted-read": "record {offset} of {place} was {what} although its transaction was aborted",
    "offset-outside-transaction": "{committed_offset} was committed on {place} outside of a transaction, from {stood}",
    "hanging-transaction": (
        "a transaction of producer {producer_id} was open in {log} for {open_ms} ms, with a timeout of {timeout_ms} ms"
    ),
    "corrupt": "record {offset} of {place} had another content {found} than was sent",
    "phantom": "a record with the id {id}, which nobody sent, was {what} ({place})",
    "misplaced": "what was {what} as record {offset} of {place} is another record by the control read",
    "false-report": "{of_record}{place} was said to be {what}, and the {by} knows that it cannot have been",
    "redelivered": "record {offset} of {place} was delivered again",
    "illegal-redelivery": "record {offset} of {place} was delivered again, below {floor}, where its possession began",
    "nonmonotonic-poll": "{place} stepped back from record {previous_offset} to {offset} inside one possession",
    "poll-skip": "record {offset} of {place} was jumped over, from {previous_offset} to {next_offset}, while held",
    "reordered-key": "record {offset} of {place} was processed after the later record {later_offset}{of_key}",
    "overlapping-handlers": "records {offset} and {other_offset} of {place} were in two handlers at once",
    "commit-regression": "the committed offset of {place} fell from {from} to {to} and {recovery}",
    "zombie-commit": "member {member} committed {committed_offset} on {place}, which it did not own there{harm}",
    "commit-ahead": "{committed_offset} was committed on {place} before record {offset} was processed",
    "commit-lost": "{committed_offset} was acknowledged on {place}, by {by}, and {instead}",
    "commit-past-end": "{committed_offset} was committed on {place}, past the log end {log_end}",
    "split-ownership": "{place} was owned by two members at once, by {by}",
    "stale-generation": "{committed_offset} was committed on {place} with epoch {epoch}, when it was {current_epoch}",
    "orphan-partition": "{place} belonged to nobody, though the group had members and was at rest",
    "work-after-revoke": "record {offset} of {place} was {what} after the partition had been revoked from its member",
    "zombie-work": "record {offset} of {place} was {what} after its partition was lost untold",
    "false-lag": (
        "{place} ends with a lag of {records} ({committed_offset} of {log_end}), though all {done} and {within} had "
        "passed"
    ),
    "stuck-partition": (
        "{place} stood still at record {offset} for {within} or longer, with {records} unprocessed ({class})"
    ),
    "late-convergence": "{place} had not converged within {within}, {convergence}",
    "crash-loop": "member {member} exited by itself {exits} times, at last {ending}",
    "unbounded-close": "member {member} was asked to stop and had not within {within_s} s: it was killed",
    "starved-partition": "record {offset} of {place} waited {lasted_ms} ms while {member} did those of its others",
    "rebalance-storm": "the group rebalanced {bumps} times, from {from} to {to}, though nothing had happened",
    "retried": "record {offset} of {place} was tried again, and nothing from there on had been completed",
    "uncommitted-progress": "{place} had record {offset} processed {lasted_ms} ms before a commit covered it",
    "memory-over-limit": "member {member} took {rss_bytes} bytes of memory, over the {limit_bytes} claimed",
    "rogue-reader": "member {member} was sent {fetched_bytes} bytes of {place}, for {lasted_ms} ms, without a commit",
    "oom-killed": "member {member} was killed by the kernel, which had run out of memory",
}


def message(anomaly: str, instance: Anomaly) -> str:
    """Returns one instance in a sentence: record, partition, members, positions; no wall-clock times."""
    attributes = instance.attributes
    place = "the group" if instance.partition is None else f"partition {instance.partition}"
    told = _Told({name: _printable(value) for name, value in attributes.items()}, place=place)
    told |= _phrases(attributes)
    return MESSAGES.get(anomaly, anomaly.replace("-", " ") + " on {place}").format_map(told)


def _phrases(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Returns the parts of sentences that depend on whether something is known, or so."""
    key, after_s = attributes.get("key"), attributes.get("converged_after_s")
    harm = {"and the committed offset fell": "fell", "and a record was skipped by it": "skipped_record"}
    return {
        "done": "was processed" if attributes.get("told_by") is None else "had been committed past before",
        "within": str(attributes.get("within", "the time it may take")),  # the judge's own words, however long
        "found": "in its effect" if attributes.get("found_in") == "effect" else "in the cluster's log",
        "of_record": "" if (offset := attributes.get("offset")) is None else f"record {_printable(offset)} of ",
        "of_key": "" if key is None else f" of key {_printable(key)}",
        "recovery": "recovered later" if attributes.get("recovered") else "stood there at the end",
        "instead": _instead(attributes.get("refused_with")),
        "harm": "".join(f", {phrase}" for phrase, name in harm.items() if attributes.get(name)),
        "convergence": "and never did" if after_s is None else f"only after {after_s} s",
    }


def _instead(refused_with: int | None) -> str:
    """Returns what became of a commit that was said to be stored."""
    if refused_with is None:
        return "is not in the offsets log"
    return f"the broker had refused it, with {REFUSALS.get(refused_with, 'the error')} ({refused_with})"


class _Told(dict[str, Any]):
    """Attributes for a sentence; one that the judge did not give is a question mark, never an error."""

    def __missing__(self, name: str) -> str:
        return "?"


def _printable(value: Any) -> str:
    """Returns a value that a stranger may have written, on one line and bounded."""
    text = str(value)[:VALUE_MAX]
    return "".join(letter if letter.isprintable() else "·" for letter in text)
