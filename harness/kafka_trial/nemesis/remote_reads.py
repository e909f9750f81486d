"""Reads from the remote tier of a tiered topic (KIP-405): the group has fallen so far behind that its next records are
there alone. Judged by where the leaders' local logs begin (ListOffsets, EARLIEST_LOCAL)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_trial.cluster.tiered_storage import hidden_segments, remote_read_quota
from kafka_trial.errors import WaitTimeout
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import LogSnapshot, RemoteReads
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from kafka_trial.consumers.consumer import Member

LEFT_WITHIN_S: Final = 60.0  # a segment must roll, be copied, and leave the local log
READ_WITHIN_S: Final = 30.0  # a JVM takes its time until it fetches
# What RemoteLogReader logs of a read (DEBUG, see `cluster/wiring.py`), and the name of the partition behind it.
TELLS: Final = {
    "read": "Finished reading records from remote storage for topic partition",
    "failed": "Error occurred while reading the remote data for",
}


@fault(
    "remote-reads",
    targets=("all",),
    scope="members",
    heals=True,
    consequences=[Consequence.STOPS],
    complete=lambda injection, seen: seen.with_details(**injection.group_since()),
)
def remote_reads(injection: Injection, *, fails: bool = False, bytes_per_s: int = 0) -> Iterator[Evidence]:
    """Stops all members until what they have to read next is in the remote tier alone, then starts them again.

    They read on from there and cross to the local logs. With `fails`, brokers cannot read the remote tier from just
    before the members start, for as long as the step lasts and until a read has failed: a fetch from there is answered
    with an error. With `bytes_per_s`, each broker reads at most so much of it, likewise, until one has had to wait.

    Raises:
        UnjudgeableError: nobody answers for the log of the topic, or a broker refuses the limit.
    """
    context = injection.context
    stopped = context.members()
    injection.injected()
    context.group.leave_all()
    try:
        ends = injection.log("before")
        remote, stayed_away = _await_left(injection, ends)
        hiding = hidden_segments(context.cluster.folder, context.topic) if fails else nullcontext(0)
        with remote_read_quota(context.admin, context.cluster.brokers, bytes_per_s), hiding as hidden:
            sizes = {name: _size(log) for name, log in context.cluster.server_logs.items()}
            _start_again(injection, stopped)

            def told(looks: list[RemoteReads]) -> bool:
                waited = looks[-1].longest_wait_s >= evidence.SLOW_READS_MIN_S
                return looks[-1].failed > 0 if fails else looks[-1].read > 0 and (waited or not bytes_per_s)

            looks = injection.hold_until(
                lambda: _reads_since(context.cluster.server_logs, sizes, context.topic), told, within_s=READ_WITHIN_S
            )
        yield evidence.remote_reads(
            remote,
            looks[-1],
            stayed_away=stayed_away,
            hidden=hidden if fails else None,
            slow=bytes_per_s > 0,
        )
    finally:
        _start_again(injection, stopped)


def _await_left(injection: Injection, ends: LogSnapshot) -> tuple[dict[int, int], bool]:
    """Waits until records that came since the members stopped have left the local logs of half the partitions: those
    with few records take long. Returns how many have left each of them by then, or by LEFT_WITHIN_S, and whether no
    member was there meanwhile."""
    context, remote = injection.context, dict[int, int]()

    def enough_left() -> bool:
        remote.update(evidence.remote_only_records(ends, context.log_snapshot(local=True), context.log_snapshot()))
        return injection.stop.is_set() or bool(context.members()) or 2 * len(remote) >= len(ends.spans)

    with suppress(WaitTimeout):  # the evidence says of how many it is so
        wait_until(enough_left, within_s=LEFT_WITHIN_S, what="records to leave the local logs", every_s=0.2)
    injection.keep("inside", context.log_snapshot(local=True))
    return remote, not context.members()


def _start_again(injection: Injection, stopped: Sequence[Member]) -> None:
    """Starts those again that were stopped, unless they run."""
    names, group = {member.name for member in stopped}, injection.context.group
    for member in [one for one in group.members if one.name in names and not one.alive]:
        group.restart(member)


def _reads_since(logs: Mapping[str, Path], before: Mapping[str, int], topic: str) -> RemoteReads:
    """Returns what brokers have told since of reads of the topic's remote segments, in the words of TELLS."""
    of_topic = re.compile(rf"\b{re.escape(topic)}-\d+(?![\w-])")
    read, failed, longest_s = 0, 0, 0.0
    for name, log in logs.items():
        if not log.exists():  # of a broker that may come
            continue
        with log.open("rb") as file:
            file.seek(before.get(name, 0))
            lines = [line for line in file.read().decode(errors="replace").splitlines() if of_topic.search(line)]
        times = [_logged_at(line) for line in lines if TELLS["read"] in line]
        read, failed = read + len(times), failed + sum(TELLS["failed"] in line for line in lines)
        longest_s = max([longest_s, *((then - first).total_seconds() for first, then in pairwise(times))])
    return RemoteReads(read, failed, longest_s)


def _logged_at(line: str) -> datetime:
    """Returns when a broker wrote a line of its log: `[2026-11-27 20:12:01,042] DEBUG …`."""
    return datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").astimezone()


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0
