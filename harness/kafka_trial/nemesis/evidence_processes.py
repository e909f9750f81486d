"""Did the fault of a process or a group bite? Pure functions from samples to evidence, as in `evidence.py`.

A signal that was sent proves nothing (it may have gone to a bystander): what counts is the target's own process
group, its sockets, what the other brokers say of leaders, and what the offsets log says of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from signal import SIGKILL, SIGTERM

from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.samples import REQUESTS, GroupSnapshot, LinkSnapshot, ProcessSnapshot, TopicSnapshot, flows

STOPPED = frozenset("Tt")


def paused(before: ProcessSnapshot, inside: Sequence[ProcessSnapshot], links: Sequence[LinkSnapshot] = ()) -> Evidence:
    """Every process of the group is stopped, uses no CPU, and sends nothing."""
    if not before.states:
        return Evidence(False, "the process was not running: nothing to pause")
    states = sorted({state for look in inside for state in look.states})
    cpu_s = inside[-1].cpu_s - inside[0].cpu_s if inside else 0.0
    sent = sum(f.offered_bytes for f in flows(links, REQUESTS))
    details = {"states": states, "cpu_s": round(cpu_s, 3), "sent_bytes": sent, "pid": before.pid}
    if not states or not set(states) <= STOPPED:
        return Evidence(False, f"process {before.pid} was not stopped: state {'/'.join(states) or 'gone'}", details)
    if cpu_s > 0 or sent > 0:
        return Evidence(False, f"process {before.pid} used {cpu_s:.2f} s CPU or sent {sent} bytes meanwhile", details)
    silent = ", and sent nothing" if links else ""
    return Evidence(True, f"process {before.pid} was stopped, used no CPU{silent}", details)


def killed(before: ProcessSnapshot, after: ProcessSnapshot) -> Evidence:
    """The process ended by signal 9 and its sockets are gone."""
    details = {"pid": before.pid, "exit_code": after.exit_code, "sockets": after.sockets}
    if not before.states:
        return Evidence(False, "the process was not running: nothing to kill", details)
    if after.exit_code != -SIGKILL:
        seen = "still runs" if after.exit_code is None else f"exited with {after.exit_code}"
        return Evidence(False, f"process {before.pid} was not killed: it {seen}", details)
    if after.states or after.sockets:
        left = f"{len(after.states)} processes, {after.sockets} connections"
        return Evidence(False, f"process {before.pid} was killed, but part of its group lives on: {left}", details)
    return Evidence(True, f"process {before.pid} ended by signal 9, its sockets are gone", details)


def terminated(before: ProcessSnapshot, after: ProcessSnapshot) -> Evidence:
    """The process ended after SIGTERM, by the signal or by its own exit; a -9 by somebody else is not that."""
    details = {"pid": before.pid, "exit_code": after.exit_code, "sockets": after.sockets}
    if not before.states:
        return Evidence(False, "the process was not running: nothing to terminate", details)
    if after.exit_code is None:
        return Evidence(False, f"process {before.pid} still runs", details)
    if after.exit_code == -SIGKILL:
        return Evidence(False, f"process {before.pid} ended by signal 9, not by signal {int(SIGTERM)}", details)
    return Evidence(True, f"process {before.pid} ended with status {after.exit_code}", details)


def replaced(before: ProcessSnapshot, after: ProcessSnapshot) -> Evidence:
    """Another process stands where the old one stood, and runs."""
    details = {"pid_before": before.pid, "pid_after": after.pid, "sockets": after.sockets}
    if before.pid == after.pid or not after.states:
        return Evidence(False, f"process {before.pid} was not replaced by a running one", details)
    return Evidence(True, f"process {after.pid} runs in the place of {before.pid}", details)


def rebalanced(before: GroupSnapshot, inside: Sequence[GroupSnapshot], *, members_change: int) -> Evidence:
    """The offsets log shows a later generation or epoch, with more (`members_change` > 0) or fewer member ids."""
    seen = [look for look in inside if look.epoch is not None and look.epoch != before.epoch]
    last = inside[-1] if inside else before
    joined, left = sorted(last.member_ids - before.member_ids), sorted(before.member_ids - last.member_ids)
    details = {"epoch_before": before.epoch, "epoch_after": last.epoch, "joined": joined, "left": left}
    if not seen:
        return Evidence(False, f"no rebalance in the offsets log: epoch stayed {before.epoch}", details)
    if members_change > 0 and not joined:
        return Evidence(False, "the group was rebalanced, but nobody joined", details)
    if members_change < 0 and not left:
        return Evidence(False, "the group was rebalanced, but nobody left", details)
    return Evidence(True, f"the group moved from epoch {before.epoch} to {last.epoch}", details)


def moved(before: TopicSnapshot, inside: Sequence[TopicSnapshot], broker: int) -> dict[str, str]:
    """Returns what `broker` had before and others have now, each with a sentence: `partition 3`, `coordinator`, …

    Only the active controller changes leaders and in-sync replicas. So where the controller was down and they changed,
    another one decides, whether or not a broker that still waits for the old one's answer can name it yet.
    """
    moves: dict[str, str] = {}
    for look in inside:
        moves |= _leaders_moved(before, look, broker) | _roles_moved(before, look, broker)
        if before.controller == broker and _without(before, look, broker):
            moves.setdefault("controller", "→ another: leaders or in-sync replicas changed without it")
    return dict(sorted(moves.items()))


def _leaders_moved(before: TopicSnapshot, look: TopicSnapshot, broker: int) -> dict[str, str]:
    led = {leader.partition: leader for leader in before.leaders if leader.broker == broker}
    return {
        f"partition {now.partition}": f"epoch {led[now.partition].epoch} → broker {now.broker} epoch {now.epoch}"
        for now in look.leaders
        if now.partition in led and now.broker not in (broker, -1) and now.epoch > led[now.partition].epoch
    }


def _roles_moved(before: TopicSnapshot, look: TopicSnapshot, broker: int) -> dict[str, str]:
    holders = {name: getattr(look, name) for name in ("coordinator", "controller") if getattr(before, name) == broker}
    return {name: f"→ broker {holder}" for name, holder in holders.items() if holder not in (None, broker)}


def _without(before: TopicSnapshot, look: TopicSnapshot, broker: int) -> list[int]:
    """The partitions that had `broker` in sync before and not now."""
    had = {leader.partition for leader in before.leaders if broker in leader.isr}
    return sorted(now.partition for now in look.leaders if now.partition in had and broker not in now.isr)


def broker_down(
    process: Evidence, before: TopicSnapshot, inside: Sequence[TopicSnapshot], broker: int, *, role: str
) -> Evidence:
    """The process evidence holds, and `role` (`partition 3`, `coordinator`, `controller`) moved away."""
    moves = moved(before, inside, broker)
    left_isr = sorted({partition for look in inside for partition in _without(before, look, broker)})
    evidence = process.with_details(broker=broker, role=role, moved=moves, left_isr_of=left_isr)
    if not process.bit:
        return evidence
    if role not in moves:
        return Evidence(False, f"broker {broker}: {process.message}, but {role} did not move away", evidence.details)
    return Evidence(True, f"broker {broker}: {process.message}; {role} {moves[role]}", evidence.details)


def isr_whole(look: TopicSnapshot, broker: int, before: TopicSnapshot) -> bool:
    """Whether `broker` is back in the ISR of every partition where it was before."""
    had = {leader.partition for leader in before.leaders if broker in leader.isr}
    return had <= {leader.partition for leader in look.leaders if broker in leader.isr}


def leader_moved(before: TopicSnapshot, after: Sequence[TopicSnapshot], partition: int) -> Evidence:
    """The partition is led by another broker, in a later leader epoch."""
    was = next((leader for leader in before.leaders if leader.partition == partition), None)
    seen = [leader for look in after for leader in look.leaders if leader.partition == partition]
    details = {"partition": partition, "before": str(was), "after": str(seen[-1]) if seen else "none"}
    if was is None or not seen:
        return Evidence(False, f"partition {partition}: no leader could be read", details)
    if seen[-1].broker in (was.broker, -1) or seen[-1].epoch <= was.epoch:
        return Evidence(False, f"partition {partition} is still led by broker {was.broker}", details)
    move = f"broker {was.broker} epoch {was.epoch} → broker {seen[-1].broker} epoch {seen[-1].epoch}"
    return Evidence(True, f"partition {partition}: {move}", details)
