"""A lag that stands: partitions behind whose committed position records lie that had been there long before the end.

By commits and log ends alone. Whoever commits says that all before it is done (KafkaConsumer: "the last offset that has
been stored securely"), so records that had once been committed past, before the position fell, were handled by the
group's own word: their lag is a false one. Of others nobody knows whether they were handled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.audit.commits import Owners, together
from kafka_trial.audit.request import NS_PER_S, stamp
from kafka_trial.judge.judgement import Judgement
from kafka_trial.model.kernels import NEVER, NONE
from kafka_trial.model.liveness_bounds import stall_window_s, timing_in
from kafka_trial.verdict.messages import MOVED, WHEN_AND_WHO

EITHER = (
    "a partition stood still behind records that had long been there: stuck, or handled and not committed; what was "
    "handled nobody tells (name --sink-topic or --sink-db)"
)
EMPTY = "a partition stood still while the group had no members: nobody was there to be stuck"
NEVER_COMMITTED = "nothing was ever committed on a partition that got records in the window"


@dataclass(frozen=True)
class Standing:
    """Lags that are false for certain, and how many stand for a reason nobody knows."""

    false: tuple[Anomaly, ...]
    undecided: Mapping[str, int]


def standing_lag(judgement: Judgement, falls: Sequence[Anomaly], owners: Owners) -> Standing:
    """Returns the lags that stood still at the end of the window for longer than W; `falls` are the regressions."""
    slices, trial_context = judgement.slices, judgement.trial_context
    if slices is None:
        return Standing((), {})
    still_ns = (trial_context.snapshot_ns or NEVER) - int(stall_window_s(timing_in(trial_context)) * NS_PER_S)
    standing_falls = {one.partition: one for one in falls if not one.attributes.get("recovered")}
    empty = not has_members(judgement)
    false, undecided = [], dict[str, list[tuple[str, str]]]()
    for row in range(len(slices)):
        one = {name: int(slices[name][row]) for name in ("slice", "committed", "lag", "end", "moved_ns")}
        topic, partition = trial_context.slices[one["slice"]]
        fall = standing_falls.get(partition)
        if not one["lag"] or (one["committed"] != NONE and one["moved_ns"] >= still_ns):
            continue
        if one["committed"] == NONE:
            undecided.setdefault(NEVER_COMMITTED, []).append((f"partition {partition}, {one['lag']} records", ""))
        elif fall is not None and int(fall.attributes["from"]) >= one["end"]:
            false.append(_false_lag(topic, partition, one, fall))
        else:
            owner = owners.at(partition, one["moved_ns"])
            owned = f" while {owner} owned it" if owner else ""
            told = f"partition {partition} at {one['committed']} of {one['end']}"
            since = f"since {stamp(one['moved_ns'])}, when it moved last{owned}"
            undecided.setdefault(EMPTY if empty else EITHER, []).append((told, since))
    return Standing(tuple(false), {f"{why}: {together(told)}": len(told) for why, told in undecided.items()})


def _false_lag(topic: str, partition: int, one: Mapping[str, int], fall: Anomaly) -> Anomaly:
    attributes = {
        "records": one["lag"],
        "committed_offset": one["committed"],
        "log_end": one["end"],
        "told_by": "commits",
    }
    attributes |= {name: fall.attributes[name] for name in (MOVED, WHEN_AND_WHO) if name in fall.attributes}
    return Anomaly("false-lag", topic, partition, attributes, fall.events)


def has_members(judgement: Judgement) -> bool:
    """Tells whether the group had members at the end of what was read."""
    listed, present = 0, set[int]()
    for one in judgement.trial_context.memberships:
        if one.what in ("group", "group gone"):
            listed = one.members or 0
        else:
            present = present | {one.member_id} if one.what == "member" else present - {one.member_id}
    return listed + len(present) > 0


def standing_at(judgement: Judgement, partition: int) -> int:
    """Returns where the group stood on a partition at the end of the window."""
    slices, places = judgement.slices, judgement.trial_context.slices
    if slices is None:
        return NONE
    at = zip(slices["slice"].tolist(), slices["committed"].tolist(), strict=True)
    return next((committed for number, committed in at if places[number][1] == partition), NONE)


def members_at(judgement: Judgement, place: int) -> int | None:
    """Returns how many members the group had at a place of the offsets log; None where no record before it tells."""
    listed: int | None = None
    present: set[int] = set()
    for one in judgement.trial_context.memberships:
        if one.place > place:
            break
        if one.what == "group":
            listed = one.members
        elif one.what == "group gone":
            listed = 0
        else:
            present = present | {one.member_id} if one.what == "member" else present - {one.member_id}
            listed = listed or 0
    return None if listed is None else listed + len(present)
