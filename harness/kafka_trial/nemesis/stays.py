"""How a member stays in its group and leaves it: by what the brokers' own request logs have of its lane.

A member that is later for its next poll than max.poll.interval.ms leaves its group: then "the consumer is considered
failed and the group will rebalance" (Kafka, Consumer Configs, max.poll.interval.ms). The client's own thread sends
LeaveGroup (classic) or a heartbeat with the epoch -1, of a static member -2 (KIP-848), while the process lives and its
heartbeats went on before. One that is late for a rebalance is removed by its coordinator instead, and only the offsets
log tells.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kafka_trial.nemesis.samples import MemberStay
from kafka_trial.witness.request_events import GROUP_READERS
from kafka_trial.witness.request_lines import LineError, parse_line

LEAVE, CONSUMER_HEARTBEAT = "LEAVE_GROUP", "CONSUMER_GROUP_HEARTBEAT"
REBALANCE_IN_PROGRESS: Final = 27  # as an answer to a heartbeat it keeps a session alive as well as any
_API_NAMES: Final = tuple(f'"requestApiKeyName":"{api}"'.encode() for api in GROUP_READERS)


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A request by which a member joins, keeps or leaves its group; `at_ns`: when it was answered (CLOCK_MONOTONIC).

    `epoch`: of a KIP-848 heartbeat; -1 in other requests. `error`: of the answer, by Kafka's numbers.
    """

    at_ns: int
    api: str
    member_id: str
    epoch: int
    error: int

    @property
    def leave_confirmed(self) -> bool:
        """Whether the coordinator confirmed that the member has left on its own request."""
        return self.error == 0 and (self.api == LEAVE or (self.api == CONSUMER_HEARTBEAT and self.epoch < 0))

    @property
    def membership_confirmed(self) -> bool:
        """Whether the coordinator confirmed that the member is in the group."""
        return not self.leave_confirmed and self.error in (0, REBALANCE_IN_PROGRESS)


def group_requests(log: Path, *, lane: int, group: str, from_byte: int = 0) -> Iterator[GroupRequest]:
    """Yields what a broker's request log has of a lane and a group, from `from_byte` on or its beginning."""
    own_lane = f'"listener":"LANE{lane}"'.encode()
    to_monotonic_ns = time.monotonic_ns() - time.time_ns()
    with log.open("rb") as file:
        file.seek(max(0, from_byte))
        read = file.read()
    for raw in read.splitlines():
        if own_lane not in raw or not any(name in raw for name in _API_NAMES):
            continue
        try:
            line = parse_line(raw)
        except LineError:  # the first line, cut, or the last one, still being written
            continue
        for told in GROUP_READERS[line.api](line.request, line.response):
            if told["group"] == group and told["member_id"]:
                at_ns, epoch = line.source_wall_ns + to_monotonic_ns, told.get("epoch")
                yield GroupRequest(at_ns, line.api, told["member_id"], -1 if epoch is None else epoch, told["error"])


def stay_by_logs(
    stay_so_far: MemberStay,
    requests: Iterable[GroupRequest],
    *,
    member_ids: Collection[str],
    removed_ns: Mapping[str, int],
    since_ns: int,
) -> MemberStay:
    """Returns `stay_so_far` with what brokers' logs tell: when the member left or was removed, from `since_ns` on, and
    when its membership was last confirmed before that, if need be before `since_ns`.

    `requests` are those of its lane, `member_ids` those in the group when the fault began, `removed_ns` the time of the
    last group metadata in the offsets log that left an id out. Of several ids the one that was out first counts.
    """
    by_id: dict[str, list[GroupRequest]] = {}
    for request in requests:
        if request.member_id in member_ids:
            by_id.setdefault(request.member_id, []).append(request)
    stays = [
        _stay(stay_so_far, own, removed_ns.get(member_id), since_ns=since_ns)
        for member_id, own in sorted(by_id.items())
    ]
    return min(stays, key=lambda stay: (stay.out_ns is None, stay.out_ns or 0), default=stay_so_far)


def _stay(
    stay_so_far: MemberStay, requests: Collection[GroupRequest], removed_ns: int | None, *, since_ns: int
) -> MemberStay:
    left_ns = min((one.at_ns for one in requests if one.leave_confirmed and one.at_ns >= since_ns), default=None)
    stay = replace(
        stay_so_far,
        left_ns=left_ns,
        removed_ns=removed_ns if removed_ns is not None and removed_ns >= since_ns else None,
    )
    kept_ns = [
        one.at_ns for one in requests if one.membership_confirmed and (stay.out_ns is None or one.at_ns < stay.out_ns)
    ]
    return replace(stay, kept_ns=max(kept_ns, default=None))
