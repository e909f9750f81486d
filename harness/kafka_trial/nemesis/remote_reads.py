"""Reads from the second tier of a tiered topic (KIP-405): the group has fallen so far behind that brokers have the next
records there alone. Judged from where the leaders say that their own logs begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

from kafka_trial.cluster.tiered_storage import hidden_segments
from kafka_trial.errors import WaitTimeout
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import LogSnapshot
from kafka_trial.process.waiting import wait_until

LEFT_WITHIN_S: Final = 60.0  # a segment must roll, be copied, and leave the disks
READ, FAILED = "Finished reading records from remote storage for", "Error occurred while reading the remote data for"


@fault(
    "remote-reads",
    targets=("all",),
    scope="members",
    heals=True,
    consequences=[Consequence.STOPS],
    complete=lambda injection, seen: seen.with_details(**injection.group_since()),
)
def remote_reads(injection: Injection, *, fails: bool = False) -> Iterator[Evidence]:
    """Stops all members until what they have to read next is in the second tier alone, then starts them again.

    They read on from there and cross to what brokers have on their own disks. With `fails`, brokers cannot read the
    second tier while the step lasts: a fetch from there is answered with an error.
    """
    context = injection.context
    logs_before = {name: _size(log) for name, log in context.cluster.server_logs.items()}
    injection.injected()
    context.group.leave_all()
    try:
        stopped = injection.log("before")
        left = _await_left(injection, stopped)
        sight = hidden_segments(context.cluster.folder, context.topic) if fails else nullcontext(0)
        with sight as hidden:
            _start_all(injection)
            injection.hold(lambda: injection.log("inside"))
        reads = _reads_since(context.cluster.server_logs, logs_before, context.topic)
        yield evidence.remote_reads(stopped, left, reads, hidden=hidden if fails else None)
    finally:
        _start_all(injection)


def _await_left(injection: Injection, stopped: LogSnapshot) -> LogSnapshot:
    """Waits until records that came since the members stopped have left the disks, of half the partitions at least;
    returns what is on the disks then."""
    looks = [injection.keep("inside", injection.context.local_log_snapshot())]

    def left() -> bool:
        looks.append(injection.context.local_log_snapshot())
        return injection.stop.is_set() or 2 * len(evidence.remote_only(stopped, looks[-1])) >= len(stopped.spans)

    with suppress(WaitTimeout):  # the evidence says of how many it is so
        wait_until(left, within_s=LEFT_WITHIN_S, what="records to leave the disks of their brokers", every_s=0.2)
    return injection.keep("inside", looks[-1])


def _start_all(injection: Injection) -> None:
    group = injection.context.group
    for member in [one for one in group.members if not one.alive]:
        group.restart(member)


def _reads_since(logs: Mapping[str, Path], before: Mapping[str, int], topic: str) -> dict[str, int]:
    """Returns how many reads of the second tier brokers have told of since: those of the topic that were done, and
    those that failed."""
    found = {"read": 0, "failed": 0}
    for name, log in logs.items():
        with log.open("rb") as file:
            file.seek(before.get(name, 0))
            told = file.read().decode(errors="replace").splitlines()
        found["read"] += sum(READ in line and f"{topic}-" in line for line in told)
        found["failed"] += sum(FAILED in line and f"{topic}-" in line for line in told)
    return found


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0
