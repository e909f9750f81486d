"""How a member stayed in its group, from lines of a broker's request log and what the offsets log was last without."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.nemesis.injection import GroupRequest, group_requests, stay_by_logs
from kafka_trial.nemesis.samples import MemberStay

S = 1_000_000_000
WAITING = MemberStay("m0", waits_since_ns=100 * S)


def line(api: str, key: int, request: dict[str, Any], *, lane: int = 1, error: int = 0) -> bytes:
    header = {"requestApiKey": key, "requestApiVersion": 4, "correlationId": 1, "clientId": "c"}
    logged = {
        "requestHeader": header | {"requestApiKeyName": api},
        "request": {"groupId": "g", "generationId": 3, "memberId": "a", "groupInstanceId": None} | request,
        "response": {"errorCode": error, "memberEpoch": 0},
        "connection": "c1",
        "totalTimeMs": 1.0,
        "listener": f"LANE{lane}",
    }
    return orjson.dumps({"ts": time.time(), "r": logged}) + b"\n"


def test_the_requests_of_a_lane_about_its_group_are_read(tmp_path: Path) -> None:
    """Others' lanes, other groups, other APIs and a line that is cut are left out; an epoch of -1 leaves."""
    log = tmp_path / "requests.log"
    lines = [
        line("HEARTBEAT", 12, {}),
        line("HEARTBEAT", 12, {}, lane=2),
        line("HEARTBEAT", 12, {"groupId": "other"}),
        line("OFFSET_COMMIT", 8, {}),
        line("HEARTBEAT", 12, {}, error=25),
        line("LEAVE_GROUP", 13, {"members": [{"memberId": "a", "groupInstanceId": None}]}),
        line("CONSUMER_GROUP_HEARTBEAT", 68, {"memberEpoch": 4, "instanceId": None, "topicPartitions": None}),
        line("CONSUMER_GROUP_HEARTBEAT", 68, {"memberEpoch": -1, "instanceId": None, "topicPartitions": None}),
        line("HEARTBEAT", 12, {})[:-9],
    ]
    log.write_bytes(b"".join(lines))
    found = list(group_requests(log, lane=1, group="g"))
    assert [(one.api, one.member_id, one.membership_confirmed, one.leave_confirmed) for one in found] == [
        ("HEARTBEAT", "a", True, False),
        ("HEARTBEAT", "a", False, False),
        ("LEAVE_GROUP", "a", False, True),
        ("CONSUMER_GROUP_HEARTBEAT", "a", True, False),
        ("CONSUMER_GROUP_HEARTBEAT", "a", False, True),
    ]
    assert abs(found[0].at_ns - time.monotonic_ns()) < S
    assert list(group_requests(log, lane=1, group="g", from_byte=log.stat().st_size - len(lines[-1]))) == []


def heartbeat(at_s: float, *, member_id: str = "a", error: int = 0) -> GroupRequest:
    return GroupRequest(round(at_s * S), "HEARTBEAT", member_id, 3, error)


def leave(at_s: float, *, member_id: str = "a", error: int = 0) -> GroupRequest:
    return GroupRequest(round(at_s * S), "LEAVE_GROUP", member_id, -1, error)


def stay(*requests: GroupRequest, removed_s: float | None = None) -> MemberStay:
    removed_ns = {} if removed_s is None else {"a": round(removed_s * S)}
    return stay_by_logs(WAITING, requests, member_ids={"a", "z"}, removed_ns=removed_ns, since_ns=99 * S)


def test_who_leaves_by_itself_is_out_when_it_was_answered() -> None:
    """The last heartbeat before that keeps it; one that comes after it belongs to nobody."""
    found = stay(heartbeat(107), heartbeat(109), leave(110), heartbeat(111, error=25), removed_s=112)
    assert (found.kept_ns, found.left_ns, found.removed_ns, found.out_ns) == (109 * S, 110 * S, 112 * S, 110 * S)


def test_who_is_removed_is_out_by_the_offsets_log() -> None:
    """It had not asked to leave; what it is answered later is of another life under its id."""
    found = stay(heartbeat(108, error=27), heartbeat(112), removed_s=111)
    assert (found.kept_ns, found.left_ns, found.out_ns) == (108 * S, None, 111 * S)


def test_who_stays_is_not_out() -> None:
    """Neither an earlier life under the same id, nor a refused wish to leave, nor somebody else's, counts."""
    assert stay(leave(98), heartbeat(109), leave(110, error=16), removed_s=98.5).out_ns is None
    assert stay(heartbeat(109), leave(110, member_id="b")).out_ns is None
    assert stay().out_ns is None
    assert stay_by_logs(WAITING, [leave(110)], member_ids={"b"}, removed_ns={}, since_ns=99 * S) == WAITING


def test_of_several_clients_of_a_member_the_first_that_is_out_counts() -> None:
    """The other one stays."""
    assert stay(heartbeat(109, member_id="z"), heartbeat(109), leave(110)).left_ns == 110 * S
