"""Group answers: what brokers answered to the members of the group, by the request log.

Every join, assignment, leave and refusal becomes a `GroupAnswer` of the trial context; heartbeats that say nothing new
and accepted commits do not. So it grows with rebalances and refusals, not with the load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.history_names import HistoryNames
from kafka_trial.judge.lines import Block
from kafka_trial.model.kernels import NONE, Array
from kafka_trial.model.trial_context import GroupAnswer

Answer = dict[str, Any]  # the fields of a GroupAnswer, but for its member
Body = Mapping[str, Any]

TELLING = {"JOINGROUP": 1, "SYNCGROUP": 1, "LEAVEGROUP": 1}  # whatever was answered
OTHERS = {"HEARTBEAT": 1, "CONSUMERGROUPHEARTBEAT": 2, "OFFSETCOMMIT": 1, "TXNOFFSETCOMMIT": 1}  # where refused
CONSUMER_HEARTBEAT = 2  # also where it assigns
APIS = {
    name.replace("_", ""): name
    for name in (
        *("JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP", "HEARTBEAT", "CONSUMER_GROUP_HEARTBEAT"),
        *("OFFSET_COMMIT", "TXN_OFFSET_COMMIT"),
    )
}


def take_group_answers(names: HistoryNames, answers: list[Answer], source: int, block: Block, columns: Columns) -> None:
    """Notes what the brokers answered to members in a block of a request log."""
    for body in block.bodies(np.flatnonzero(telling(columns) & names.of_group(columns))):
        answer = _answer(names, source, body)
        lists = answer["assigned"] is not None or answer["owned"] is not None
        if answer["error"] or lists or _tells(answer["api"]) or (answer["epoch"] or 0) < 0:
            answers.append(answer)


def answered(answers: Iterable[Answer], lanes: Mapping[int, int]) -> tuple[GroupAnswer, ...]:
    """Returns the answers in the order of the logs, each with the member in its lane."""
    found = (GroupAnswer(**answer, member=lanes.get(answer["lane"], -1)) for answer in answers)
    return tuple(sorted(found, key=lambda one: (one.source, one.seq)))


def telling(columns: Columns) -> Array:
    """Returns which rows of a block may say something new to a member of their group."""
    telling, others = columns.codes("api", TELLING, fold=True), columns.codes("api", OTHERS, fold=True)
    if not (telling.any() or others.any()):
        return np.zeros(len(columns), np.bool_)
    refused = (columns["error"] != NONE) & (columns["error"] != 0)
    found: Array = (telling > 0) | (others == CONSUMER_HEARTBEAT) | ((others > 0) & refused)
    return found & columns.is_kind("request")


def _answer(names: HistoryNames, source: int, body: Body) -> Answer:
    api = APIS[str(body["api"]).upper().replace("_", "")]
    error, epoch, member_id = _number(body, "error") or 0, _number(body, "epoch"), _text(body, "member_id")
    heartbeat, join = api == "CONSUMER_GROUP_HEARTBEAT", api == "JOIN_GROUP"
    told = {"SYNC_GROUP": "entries", "CONSUMER_GROUP_HEARTBEAT": "assigned"}.get(api)
    return {
        "source": source,
        "seq": body["seq"],
        "time_ns": body["time_ns"],
        "wall_ns": _number(body, "source_wall_ns"),
        "duration_ns": _duration_ns(body),
        "api": api,
        "error": error,
        "lane": -1 if (lane := _number(body, "lane")) is None else lane,
        "member_id": -1 if member_id is None else names.member_id(member_id),
        "connection": _text(body, "connection"),
        "client_id": _text(body, "client_id"),
        "instance_id": _text(body, "instance_id"),
        "epoch": None if join else epoch,
        "answered_epoch": epoch if join else _number(body, "answered_epoch"),
        "session_timeout_ms": _number(body, "session_timeout_ms"),
        "rebalance_timeout_ms": _number(body, "rebalance_timeout_ms"),
        "assigned": None
        if told is None or error or _nameless(names, body.get(told))
        else _listed(names, body.get(told)),
        "owned": _listed(names, body.get("entries")) if heartbeat else None,
    }


def _tells(api: str) -> bool:
    return api.replace("_", "") in TELLING


def _listed(names: HistoryNames, entries: Any) -> tuple[int, ...] | None:
    """Returns the slices of a list of partitions; None where there is no list. Other topics are none of ours."""
    if not isinstance(entries, list):
        return None
    places = (_place(names, entry) for entry in entries if isinstance(entry, dict))
    ours = {place for place in places if place is not None and names.is_trial_topic(place[0])}
    return tuple(sorted(names.slice_of(*place) for place in sorted(ours)))


def _nameless(names: HistoryNames, entries: Any) -> bool:
    """Tells whether a list may hold partitions of ours by an id of the topic that nobody has told the name of."""
    if names.topics and {*names.topics} <= {*names.topics_by_id.values()}:
        return False
    entries = entries if isinstance(entries, list) else []
    ids = [_text(entry, "topic_id") for entry in entries if isinstance(entry, dict) and not _text(entry, "topic")]
    return any(topic_id is not None and topic_id not in names.topics_by_id for topic_id in ids)


def _place(names: HistoryNames, entry: Body) -> tuple[str, int] | None:
    topic_id, partition = _text(entry, "topic_id"), _number(entry, "partition")
    topic = _text(entry, "topic") or (names.topics_by_id.get(topic_id) if topic_id else None)
    return None if topic is None or partition is None or not 0 <= partition < 2**31 else (topic, partition)


def _duration_ns(body: Body) -> int:
    value = body.get("duration_ms")
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return int(value * 1_000_000) if usable and value is not None else 0


def _number(body: Body, name: str) -> int | None:
    value = body.get(name)
    usable = isinstance(value, int) and not isinstance(value, bool) and -(2**62) < value < 2**62
    return value if usable else None


def _text(body: Body, name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None
