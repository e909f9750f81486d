"""Did the fault bite? Pure functions from samples to evidence; they never see the plan, a signal sent, or Toxiproxy.

Network faults first. A toxic that Toxiproxy reports as present proves nothing: it may have toxicity 0, sit on somebody
else's proxy, or the client may have gone around it. So each function asks what the kernel counted on the target's own
connections (S) and what an own round trip through the same proxies met (P). Each route (client, broker) is a *hit* (the
effect was there), a *miss* (traffic passed that should not have), or idle (nothing was offered, nothing can be said). A
fault took effect when there are hits, no misses, and, for each of the `clients` it had to reach, at least one hit.

Faults of processes and groups then. A signal that was sent proves nothing either (it may have gone to a bystander):
what counts is the target's own process group, its sockets, what the other brokers say of leaders, and what the offsets
log says of the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from signal import SIGKILL, SIGTERM
from typing import Any

from kafka_trial.nemesis.samples import (
    ANSWERS,
    REFUSED,
    REQUESTS,
    FeatureSnapshot,
    Flow,
    GroupSnapshot,
    LinkSnapshot,
    LogSnapshot,
    PageCacheSnapshot,
    Probe,
    ProcessSnapshot,
    RemoteReads,
    Route,
    TopicSnapshot,
    all_rates,
    figures,
    flows,
    kept_routes,
    rises,
    saturated_rates,
)

NO_CONNECTION = "the target had no live connection through its proxies: nothing that the fault could act on"


@dataclass(frozen=True)
class Evidence:
    """Whether a fault took effect, in a sentence, with the figures that show it."""

    took_effect: bool
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def with_details(self, **more: Any) -> Evidence:
        """Returns the same evidence with further figures."""
        return replace(self, details={**self.details, **more})


@dataclass(frozen=True)
class Hits:
    """What was found on the routes of a target; a route with a hit and a miss counts as a miss."""

    hits: frozenset[Route]
    misses: frozenset[Route]

    def evidence(self, *, clients: Sequence[str], hit: str, miss: str, idle: str, **details: object) -> Evidence:
        """Returns the evidence: `hit`, `miss` and `idle` are the sentences for each case."""
        hits = self.hits - self.misses
        unreached = sorted(set(clients) - {client for client, _ in hits})
        details = {"hits": _names(hits), "misses": _names(self.misses), "unreached": unreached, **details}
        if self.misses:
            return Evidence(False, f"{miss} ({', '.join(_names(self.misses))})", details)
        if not hits:
            return Evidence(False, idle, details)
        if unreached:
            return Evidence(False, f"no effect measured for {', '.join(unreached)}: {idle}", details)
        return Evidence(True, f"{hit} ({', '.join(_names(hits))})", details)


def latency(
    before: LinkSnapshot,
    inside: Sequence[LinkSnapshot],
    probes_before: Sequence[Probe],
    probes_inside: Sequence[Probe],
    *,
    rise_ms: float,
    clients: Sequence[str] = (),
) -> Evidence:
    """P rises by at least `rise_ms`; bytes still flow; the connections are kept."""
    risen = rises(probes_before, probes_inside)
    live = before.routes()
    if not live or not inside:
        return Evidence(False, NO_CONNECTION)
    kept = kept_routes(inside)
    found = Hits(
        hits=frozenset(r for r in live if r in risen and risen[r] >= rise_ms and r in kept),
        misses=frozenset(r for r in live if r in risen and risen[r] < rise_ms),
    )
    flowed = sum(f.passed_bytes for direction in (ANSWERS, REQUESTS) for f in flows(inside, direction))
    evidence = found.evidence(
        clients=clients,
        hit=f"round trips take at least {rise_ms:.0f} ms longer",
        miss=f"round trips did not take {rise_ms:.0f} ms longer",
        idle="no connection lived through it, or no probe was answered",
        rise_ms={_name(route): round(rise, 1) for route, rise in sorted(risen.items())},
        bytes=flowed,
    )
    if evidence.took_effect and flowed == 0:
        return Evidence(False, "no bytes flowed while round trips were slow: idle, or cut off", evidence.details)
    return evidence


def stall(before: LinkSnapshot, inside: Sequence[LinkSnapshot], *, clients: Sequence[str] = ()) -> Evidence:
    """Both ways: bytes were offered, none passed, what was offered is held."""
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    both = [*flows(inside, ANSWERS), *flows(inside, REQUESTS)]
    return _held_back(both).evidence(
        clients=clients,
        hit="no byte passed while bytes were held",
        miss="bytes passed",
        idle="no bytes were offered: nothing to hold",
        **figures(inside),
    )


def one_way(
    before: LinkSnapshot,
    inside: Sequence[LinkSnapshot],
    *,
    held: str,
    probe_passed: frozenset[Route] = frozenset(),
    clients: Sequence[str] = (),
) -> Evidence:
    """`held` (answers or requests) is held, the other direction passes: nothing is held there and bytes did pass.

    Passing answers are measured from just before the injection: they answer requests that were already under way.
    `probe_passed` are routes on which an own request was seen to reach the broker, for a client that waits for an
    answer before it asks again.
    """
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    other = REQUESTS if held == ANSWERS else ANSWERS
    found = _held_back(flows(inside, held))
    open_flows = flows([before, *inside] if other == ANSWERS else inside, other)
    blocked = frozenset(f.route for f in flows(inside, other) if f.held_bytes and f.passed_bytes == 0)
    passed = frozenset(f.route for f in open_flows if f.passed_bytes > 0) | probe_passed
    found = Hits(hits=(found.hits & passed) - blocked, misses=found.misses)
    return found.evidence(
        clients=clients,
        hit=f"{held} were held while the other direction passed",
        miss=f"{held} passed",
        idle=f"no {held} were offered, or the other direction did not pass either",
        blocked_both_ways=_names(blocked),
        **figures(inside),
    )


def dropped(
    before: LinkSnapshot,
    inside: Sequence[LinkSnapshot],
    *,
    lost: str,
    probe_passed: frozenset[Route] = frozenset(),
    clients: Sequence[str] = (),
) -> Evidence:
    """Half-open: `lost` reach the proxy and go nowhere, and nothing queues: they were dropped, not held."""
    evidence = one_way(before, inside, held=lost, probe_passed=probe_passed, clients=clients)
    queued = sum(f.queue_bytes for f in flows(inside, lost))
    if evidence.took_effect and queued:
        return Evidence(False, f"{queued} bytes wait in a queue: held, not dropped", evidence.details)
    message = evidence.message.replace(f"{lost} were held", f"{lost} were dropped")
    return Evidence(evidence.took_effect, message, {**evidence.details, "queue_bytes": queued})


def slow_link(
    before: LinkSnapshot,
    inside: Sequence[LinkSnapshot],
    *,
    rate_bytes_per_s: float,
    probes_inside: Sequence[Probe] = (),
    clients: Sequence[str] = (),
) -> Evidence:
    """Answers come at about `rate_bytes_per_s` a connection while more was offered all along; P is still answered."""
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    rates = saturated_rates(inside)
    fast = frozenset(route for route, rate in all_rates(inside).items() if rate > 1.6 * rate_bytes_per_s)
    near = frozenset(route for route, rate in rates.items() if 0.6 <= rate / rate_bytes_per_s <= 1.6) - fast
    evidence = Hits(hits=near, misses=fast).evidence(
        clients=clients,
        hit=f"answers came at about {rate_bytes_per_s:.0f} bytes/s a connection while more was offered",
        miss=f"answers came faster than {rate_bytes_per_s:.0f} bytes/s",
        idle="no more was offered than the link carries: nothing to slow",
        rates_bytes_per_s={_name(route): round(rate) for route, rate in rates.items()},
        **figures(inside),
    )
    unanswered = [probe for probe in probes_inside if probe.answer_ms is None]
    if evidence.took_effect and unanswered:
        return Evidence(False, f"a probe was not answered ({unanswered[0].error}): cut off, not slow", evidence.details)
    return evidence


def closed(
    before: LinkSnapshot, inside: Sequence[LinkSnapshot], probes_inside: Sequence[Probe], *, clients: Sequence[str] = ()
) -> Evidence:
    """No connection that carried bytes was kept, and new ones do not last either: no probe is answered.

    Connections that stayed idle (bootstrap) are counted and prove nothing.
    """
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    last = inside[-1] if inside else before
    gone = {port[:2] for port in before.ports() - last.ports()}
    carrying = frozenset(f.route for f in _flows_across(inside) if f.passed_bytes > 0)
    answered = frozenset((probe.client, probe.broker) for probe in probes_inside if probe.answer_ms is not None)
    return Hits(hits=frozenset(gone), misses=carrying | answered).evidence(
        clients=clients,
        hit=f"{len(before.ports() - last.ports())} connections were closed",
        miss="connections were kept and carried bytes, or a new one did",
        idle="every connection was kept, and idle",
        kept_idle=len(before.ports() & last.ports()),
    )


def refused(
    before: LinkSnapshot, inside: Sequence[LinkSnapshot], probes_inside: Sequence[Probe], *, clients: Sequence[str] = ()
) -> Evidence:
    """No connection was kept, and new ones are refused."""
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    kept = frozenset(port[:2] for snapshot in inside for port in snapshot.ports() & before.ports())
    answered = frozenset((p.client, p.broker) for p in probes_inside if p.error != REFUSED)
    probed = frozenset((p.client, p.broker) for p in probes_inside if p.error == REFUSED)
    return Hits(hits=frozenset(before.routes()) & probed, misses=kept | answered).evidence(
        clients=clients,
        hit="every connection was closed and new ones are refused",
        miss="connections were kept or accepted",
        idle="no new connection was tried",
    )


def connections_kept(before: LinkSnapshot, after: LinkSnapshot) -> bool:
    """Whether every connection that lived before still lives after."""
    return before.ports() <= after.ports()


def traffic_again(base: LinkSnapshot, now: LinkSnapshot, *, each: Iterable[str] = ()) -> bool:
    """Whether bytes moved both ways since `base`, on kept or new connections: for each client of `each`, else any."""
    moved = {client for client, broker in now.routes() if _moved(base, now, (client, broker))}
    return bool(moved) and set(each) <= moved


def _moved(base: LinkSnapshot, now: LinkSnapshot, route: Route) -> bool:
    old = base.side("client", route)
    ends = [(half, old.get(port)) for port, half in now.side("client", route).items()]
    received = sum(half.received_bytes - (start.received_bytes if start else 0) for half, start in ends)
    sent = sum(half.sent_bytes - (start.sent_bytes if start else 0) for half, start in ends)
    return received > 0 and sent > 0


def _held_back(pairs: Sequence[Flow]) -> Hits:
    return Hits(
        hits=frozenset(f.route for f in pairs if f.held),
        misses=frozenset(f.route for f in pairs if f.passed_bytes > 0),
    )


def _flows_across(snapshots: Sequence[LinkSnapshot]) -> list[Flow]:
    return [*flows(snapshots, ANSWERS), *flows(snapshots, REQUESTS)]


def _name(route: Route) -> str:
    return f"{route[0]}-b{route[1]}"


def _names(routes: Iterable[Route]) -> list[str]:
    return sorted(_name(route) for route in routes)


FROZEN = frozenset("F")  # with its container
STOPPED = frozenset("Tt") | FROZEN


def paused(before: ProcessSnapshot, inside: Sequence[ProcessSnapshot], links: Sequence[LinkSnapshot] = ()) -> Evidence:
    """Every process of the group is stopped, uses no CPU, and sends nothing."""
    if not before.states:
        return Evidence(False, "the process was not running: nothing to pause")
    states = sorted({state for snapshot in inside for state in snapshot.states})
    cpu_s = inside[-1].cpu_s - inside[0].cpu_s if inside else 0.0
    sent = sum(f.offered_bytes for f in flows(links, REQUESTS))
    details = {"states": states, "cpu_s": round(cpu_s, 3), "sent_bytes": sent, "pid": before.pid}
    if not states or not set(states) <= STOPPED:
        return Evidence(False, f"process {before.pid} was not stopped: state {'/'.join(states) or 'gone'}", details)
    if cpu_s > 0 or sent > 0:
        return Evidence(False, f"process {before.pid} used {cpu_s:.2f} s CPU or sent {sent} bytes meanwhile", details)
    silent = ", and sent nothing" if links else ""
    how = "frozen with its container" if set(states) == FROZEN else "stopped"
    return Evidence(True, f"process {before.pid} was {how}, used no CPU{silent}", details)


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


def moved_client(
    before: ProcessSnapshot, after: ProcessSnapshot, asked: Sequence[tuple[str, int]], *, consumer: str
) -> Evidence:
    """Another process was started where the old one stood, and its client asked its brokers to be in the group; or it
    ended by itself before that: what becomes of it is its own."""
    answers = {api: sorted({error for name, error in asked if name == api}) for api, _ in asked}
    details = {
        "pid_before": before.pid,
        "pid_after": after.pid,
        "consumer": consumer,
        "asked_to_join": answers,
        "exit_code": after.exit_code,
    }
    if before.pid == after.pid or not (after.states or after.exit_code is not None):
        return Evidence(False, f"process {before.pid} was not replaced by one of {consumer}", details)
    if not asked and after.exit_code is None:
        return Evidence(False, f"process {after.pid} of {consumer} runs, and no broker saw its client join", details)
    place = f"of {consumer} in the place of {before.pid}"
    if not asked:
        return Evidence(True, f"process {after.pid} {place} exited with {after.exit_code} before it joined", details)
    told = ", ".join(f"{api} answered {'/'.join(map(str, errors))}" for api, errors in answers.items())
    return Evidence(True, f"process {after.pid} {place} asked to join the group ({told})", details)


def rebalanced(before: GroupSnapshot, inside: Sequence[GroupSnapshot], *, members_change: int) -> Evidence:
    """The offsets log shows a later generation or epoch, with more (`members_change` > 0) or fewer member ids."""
    seen = [snapshot for snapshot in inside if snapshot.epoch is not None and snapshot.epoch != before.epoch]
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
    for snapshot in inside:
        moves |= _leaders_moved(before, snapshot, broker) | _roles_moved(before, snapshot, broker)
        if before.controller == broker and _without(before, snapshot, broker):
            moves.setdefault("controller", "→ another: leaders or in-sync replicas changed without it")
    return dict(sorted(moves.items()))


def _leaders_moved(before: TopicSnapshot, snapshot: TopicSnapshot, broker: int) -> dict[str, str]:
    led = {leader.partition: leader for leader in before.leaders if leader.broker == broker}
    return {
        f"partition {now.partition}": f"epoch {led[now.partition].epoch} → broker {now.broker} epoch {now.epoch}"
        for now in snapshot.leaders
        if now.partition in led and now.broker not in (broker, -1) and now.epoch > led[now.partition].epoch
    }


def _roles_moved(before: TopicSnapshot, snapshot: TopicSnapshot, broker: int) -> dict[str, str]:
    holders = {
        name: getattr(snapshot, name) for name in ("coordinator", "controller") if getattr(before, name) == broker
    }
    return {name: f"→ broker {holder}" for name, holder in holders.items() if holder not in (None, broker)}


def _without(before: TopicSnapshot, snapshot: TopicSnapshot, broker: int) -> list[int]:
    """The partitions that had `broker` in sync before and not now."""
    had = {leader.partition for leader in before.leaders if broker in leader.isr}
    return sorted(now.partition for now in snapshot.leaders if now.partition in had and broker not in now.isr)


def broker_down(
    process: Evidence, before: TopicSnapshot, inside: Sequence[TopicSnapshot], broker: int, *, role: str
) -> Evidence:
    """The process evidence holds, and `role` (`partition 3`, `coordinator`, `controller`) moved away."""
    moves = moved(before, inside, broker)
    left_isr = sorted({partition for snapshot in inside for partition in _without(before, snapshot, broker)})
    evidence = process.with_details(broker=broker, role=role, moved=moves, left_isr_of=left_isr)
    if not process.took_effect:
        return evidence
    if role not in moves:
        return Evidence(False, f"broker {broker}: {process.message}, but {role} did not move away", evidence.details)
    return Evidence(True, f"broker {broker}: {process.message}; {role} {moves[role]}", evidence.details)


def isr_whole(snapshot: TopicSnapshot, broker: int, before: TopicSnapshot) -> bool:
    """Whether `broker` is back in the ISR of every partition where it was before."""
    had = {leader.partition for leader in before.leaders if broker in leader.isr}
    return had <= {leader.partition for leader in snapshot.leaders if broker in leader.isr}


def leader_moved(before: TopicSnapshot, after: Sequence[TopicSnapshot], partition: int) -> Evidence:
    """The partition is led by another broker, in a later leader epoch."""
    was = next((leader for leader in before.leaders if leader.partition == partition), None)
    seen = [leader for snapshot in after for leader in snapshot.leaders if leader.partition == partition]
    details = {"partition": partition, "before": str(was), "after": str(seen[-1]) if seen else "none"}
    if was is None or not seen:
        return Evidence(False, f"partition {partition}: no leader could be read", details)
    if seen[-1].broker in (was.broker, -1) or seen[-1].epoch <= was.epoch:
        return Evidence(False, f"partition {partition} is still led by broker {was.broker}", details)
    move = f"broker {was.broker} epoch {was.epoch} → broker {seen[-1].broker} epoch {seen[-1].epoch}"
    return Evidence(True, f"partition {partition}: {move}", details)


def records_deleted(before: LogSnapshot, inside: Sequence[LogSnapshot], below: Mapping[int, int]) -> Evidence:
    """Every partition's log starts where it was to, or after it, and records lay before that."""
    last = inside[-1] if inside else before
    was, now = before.starts, last.starts
    gone = {part: now.get(part, at) - at for part, at in was.items() if part in below and now.get(part, at) > at}
    left = sorted(part for part, at in below.items() if now.get(part, -1) < at)
    details = {
        "log_starts": {str(part): [was.get(part), now.get(part)] for part in sorted(below)},
        "positions": sum(gone.values()),
    }
    if left:
        where = ", ".join(f"{part} at {now.get(part)}, not {below[part]}" for part in left)
        return Evidence(False, f"the log still starts before what was to go: partition {where}", details)
    if not gone:
        return Evidence(False, "no record lay before the positions up to which all was to go", details)
    moves = ", ".join(f"{part}: {was[part]} → {now[part]}" for part in sorted(gone))
    return Evidence(True, f"the log start moved, by partition, {moves}", details)


def partitions_added(before: TopicSnapshot, inside: Sequence[TopicSnapshot], served: LogSnapshot) -> Evidence:
    """The topic has partitions that it had not, each with a leader that answers for its log."""
    had = {leader.partition for leader in before.leaders}
    now = {leader.partition for leader in inside[-1].leaders if leader.broker >= 0} if inside else set()
    new, silent = sorted(now - had), sorted(now - had - served.ends.keys())
    details = {"partitions_before": len(had), "partitions_after": len(now), "added": new}
    if not had:
        return Evidence(False, "no broker said which partitions the topic had", details)
    if not new:
        return Evidence(False, f"the topic still has {len(had)} partitions", details)
    if silent:
        return Evidence(False, f"nobody answers yet for the new partitions {', '.join(map(str, silent))}", details)
    return Evidence(True, f"the topic has {len(now)} partitions where it had {len(had)}", details)


def topic_created(before: TopicSnapshot, inside: Sequence[TopicSnapshot], served: LogSnapshot) -> Evidence:
    """The topic was not there, and now each of its partitions has a leader that answers for its log, with records."""
    now = {leader.partition for leader in inside[-1].leaders if leader.broker >= 0} if inside else set()
    written = {partition for partition, end in served.ends.items() if end > 0}
    details = {"partitions": len(now), "records": sum(served.ends.values())}
    if before.leaders:
        return Evidence(False, "the topic was there already", details)
    if not now:
        return Evidence(False, "no broker leads a partition of it yet", details)
    if idle := sorted(now - written):
        return Evidence(False, f"no record has come to its partitions {', '.join(map(str, idle))}", details)
    return Evidence(True, f"the topic has {len(now)} partitions, and records in each", details)


def remote_only_records(stopped: LogSnapshot, local: LogSnapshot, whole: LogSnapshot) -> dict[int, int]:
    """Returns how many records of each partition came after `stopped`, and are in the remote tier alone: below where
    its local log begins by `local`, and still in its log by `whole`."""
    begins, starts = local.starts, whole.starts
    counts = {part: begins.get(part, 0) - max(end, starts.get(part, 0)) for part, end in stopped.ends.items()}
    return {part: count for part, count in counts.items() if count > 0}


def remote_reads(
    remote: Mapping[int, int], reads: RemoteReads, *, stayed_away: bool, hidden: int | None = None, slow: bool = False
) -> Evidence:
    """Records that came while the members were stopped, `remote` of each partition, were in the remote tier alone, and
    brokers read there; or failed to, where `hidden` segments were out of their sight (None: none was to be); or had to
    wait between two reads, where they were to be `slow`. `stayed_away`: no member was there meanwhile."""
    details: dict[str, Any] = {"remote_only": {str(part): count for part, count in sorted(remote.items())}}
    details |= {"reads": asdict(reads)} | ({} if hidden is None else {"hidden_segments": hidden})
    if not stayed_away:
        return Evidence(False, "a member was there before its records had left the local logs", details)
    if not remote:
        told = "what came while the members were stopped is still in the local logs of the brokers"
        return Evidence(False, told, details)
    told = f"{sum(remote.values())} records were in the remote tier alone when the members came back"
    if hidden is not None:
        said = f"{told}; {reads.failed} reads of it failed" if reads.failed else f"{told}, and no read of it failed"
        return Evidence(reads.failed > 0, said, details)
    if not reads.read:
        return Evidence(False, f"{told}, and no broker tells of a read there", details)
    if not slow:
        return Evidence(True, told, details)
    waited = reads.longest_wait_s >= SLOW_READS_MIN_S
    said = f"a broker waited {reads.longest_wait_s:.1f} s between two of its {reads.read} reads there"
    return Evidence(waited, f"{told}; {said}" if waited else f"{told}; at most {said}", details)


SLOW_READS_MIN_S = 2.0  # between two reads of the remote tier; where it is not limited they follow each other at once
COLD_AT_MOST = 0.1  # of what rolled segments hold, in memory still when nobody reads them
DISK_READ_MIN_BYTES = 1_000_000  # some segments; less a broker reads of other files, as it goes on


def cold_reads(cold: PageCacheSnapshot, inside: Sequence[PageCacheSnapshot], *, consumed_bytes: int) -> Evidence:
    """Rolled segments were out of memory, then a neighbour consumed, and brokers read them from their disks.

    `cold`: before anybody read; `inside`: each before they were made cold once more. `consumed_bytes`: by the
    neighbour.
    """
    last = inside[-1] if inside else cold
    disk_read = last.disk_read_since(cold)
    came = sum(max(0, one.cached_bytes - cold.cached_bytes) for one in inside)
    details = {
        "rolled_segments": {f"b{one.broker}": one.segments for one in cold.brokers},
        "rolled_bytes": cold.size_bytes,
        "in_memory_bytes": cold.cached_bytes,
        "came_into_memory_bytes": came,
        "disk_read_bytes": disk_read,
        "consumed_bytes": consumed_bytes,
    }
    problem = _warm(cold, last)
    if not problem and not consumed_bytes:
        problem = "the neighbour consumed no record"
    if not problem and not came:
        problem = "nothing of the rolled segments came back into memory: nobody read them"
    if not problem and disk_read < max(DISK_READ_MIN_BYTES, came // 2):
        problem = (
            f"brokers read next to nothing from a disk ({disk_read} bytes, where {came} came into memory): read_bytes "
            "of /proc/<pid>/io counts no file that lies in memory"
        )
    bit = f"a neighbour consumed {consumed_bytes} bytes, and brokers read {disk_read} bytes from their disks meanwhile"
    return Evidence(not problem, problem or bit, details)


def _warm(cold: PageCacheSnapshot, last: PageCacheSnapshot) -> str:
    """Returns why rolled segments were not out of memory, or why nobody knows; empty where they were."""
    if errors := {**cold.errors, **last.errors}:
        why = "; ".join(f"{broker}: {error}" for broker, error in sorted(errors.items()))
        return f"what brokers have in memory cannot be seen here ({why})"
    if not cold.size_bytes:
        return "no partition has a rolled segment: give the topic a smaller segment.bytes, or the load more records"
    if cold.cached_bytes > COLD_AT_MOST * cold.size_bytes:
        left = f"{cold.cached_bytes} of {cold.size_bytes} bytes"
        return f"rolled segments stayed in memory, {left}: the kernel drops no file that is mapped, or on tmpfs"
    return ""


def feature_finalised(
    before: FeatureSnapshot, inside: Sequence[FeatureSnapshot], level: int, *, brokers: Iterable[int]
) -> Evidence:
    """Every broker answers the level by now, and one at least answered another one before."""
    was, now = before.levels, inside[-1].levels if inside else {}
    levels = {str(broker): [was.get(broker), now.get(broker)] for broker in sorted(brokers)}
    epochs = {str(answer.broker): answer.epoch for answer in inside[-1].answers} if inside else {}
    details = {"feature": before.feature, "level": level, "levels": levels, "epochs": epochs}
    late = [name for name, (_, answered) in levels.items() if answered != level]
    if late:
        told = ", ".join(f"{name} {_level_told(levels[name][1])}" for name in late)
        return Evidence(False, f"{before.feature} {level} is not what all brokers answer: broker {told}", details)
    if not was or set(was.values()) == {level}:
        return Evidence(False, f"{before.feature} was at {level} before, as far as brokers answered", details)
    old = ", ".join(map(str, sorted(set(was.values()) - {level})))
    return Evidence(True, f"all brokers answer {before.feature} {level}, which was at {old}", details)


def _level_told(level: int | None) -> str:
    return "does not answer" if level is None else f"answers {level}"
