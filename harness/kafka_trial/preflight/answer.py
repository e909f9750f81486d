"""The answer to a preflight: does it fit, and every figure it rests on; as JSON, and in words with the arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kafka_trial.errors import FAIL, PASS
from kafka_trial.preflight.fetches import (
    Held,
    buffered_bytes,
    capped_bytes,
    demand_bytes,
    encodable,
    fetch_limits,
    largest_batch_bytes,
    largest_decompressed_bytes,
    memory_parts,
    process_bytes,
    records_per_fetch,
    response_overhead_bytes,
)
from kafka_trial.preflight.full_batches import full_batch, lowered, records_within
from kafka_trial.preflight.hops import STORES, STORES_FULL, Hop, binding_hop, hops_of, refusing_hop
from kafka_trial.preflight.plan import Plan
from kafka_trial.preflight.size_settings import JAVA, OTHER, Settings
from kafka_trial.preflight.sizes import counted, duration_text, size_text

SMALLER = (
    "or make it smaller: split the record, or keep its payload elsewhere (claim check). Compression counts at the "
    "brokers and at what is fetched, not at the producer's own limits, nor in memory"
)
BOMB_RATIO = 100  # from here on a batch is told as a bomb: small on the wire, large in memory
OTHER_TIMEOUTS_S = (10.0, 1.0, 0.1)


@dataclass(frozen=True)
class Answer:
    """All figures of one plan; sizes in bytes.

    `response_encodable` speaks of the uncapped demand: could one response carry it. `drain` is None without a backlog.
    """

    plan: Plan
    hops: tuple[Hop, ...]
    fetch_response_bytes: int
    fetch_response_capped_bytes: int
    response_encodable: bool
    heap_bytes: int
    process_bytes: int
    held: tuple[Held, ...]
    drain: Drain | None

    @property
    def binding(self) -> Hop:
        """The hop that allows the smallest record."""
        return binding_hop([*self.hops])

    @property
    def record_limit_bytes(self) -> int:
        """The largest record that passes every hop."""
        return self.binding.record_limit_bytes or 0

    @property
    def refused_by(self) -> Hop | None:
        """The first hop that refuses the planned record."""
        return refusing_hop([*self.hops])

    @property
    def capped_encodable(self) -> bool:
        """Whether the response that a broker really makes can be sent, with all that is in it beside records."""
        return encodable(self.fetch_response_capped_bytes + response_overhead_bytes(self.plan))

    @property
    def fits_memory(self) -> bool:
        """Whether what a process holds fits into its memory, where that is told."""
        limit = self.plan.memory_bytes_max
        return limit is None or max(self.process_bytes, self.heap_bytes) <= limit

    @property
    def drains(self) -> bool:
        """Whether the backlog ends, where one is planned."""
        return self.drain is None or self.drain.drain_s is not None

    @property
    def fits(self) -> bool:
        """Whether the record passes every hop, the response can be sent, memory suffices, and the backlog ends."""
        return self.refused_by is None and self.capped_encodable and self.fits_memory and self.drains


def answer(plan: Plan) -> Answer:
    """Returns the figures of a plan."""
    demand = demand_bytes(plan)
    return Answer(
        plan=plan,
        hops=tuple(hops_of(plan)),
        fetch_response_bytes=demand,
        fetch_response_capped_bytes=capped_bytes(plan),
        response_encodable=encodable(demand),
        heap_bytes=buffered_bytes(plan),
        process_bytes=process_bytes(plan),
        held=tuple(memory_parts(plan)),
        drain=drain(plan),
    )


def exit_status(answers: Sequence[Answer]) -> int:
    """Returns 0 where all fit, else 1."""
    return PASS if fit_together(answers) else FAIL


def fit_together(answers: Sequence[Answer]) -> bool:
    """Tells whether each topic fits, and what all of them hold fits into the memory of one process."""
    limits = [one.plan.memory_bytes_max for one in answers if one.plan.memory_bytes_max is not None]
    heap, process = (sum(getattr(one, name) for one in answers) for name in ("heap_bytes", "process_bytes"))
    return all(one.fits for one in answers) and max(heap, process) <= min(limits, default=max(heap, process))


def as_json(answers: Sequence[Answer]) -> dict[str, Any]:
    """Returns what `--json` prints: the figures; of several topics those of each, and their sums in one process."""
    if len(answers) == 1:
        return _one_as_json(answers[0])
    return {
        "fits": fit_together(answers),
        "heap_bytes": sum(one.heap_bytes for one in answers),
        "process_bytes": sum(one.process_bytes for one in answers),
        "topics": [{"name": one.plan.name, **_one_as_json(one)} for one in answers],
    }


def as_text(answers: Sequence[Answer]) -> str:
    """Returns the report in words."""
    texts = ["\n".join(_lines(one)) for one in answers]
    if len(answers) > 1:
        heap, process = (sum(getattr(one, name) for one in answers) for name in ("heap_bytes", "process_bytes"))
        fitting = sum(one.fits for one in answers)
        alone = fitting == len(answers)
        short = ", but not the memory of one process" if alone and not fit_together(answers) else ""
        head = f"{'YES' if fit_together(answers) else 'NO'}: {fitting} of {len(answers)} topics fit{short}"
        both = f"all topics in one process: buffers {size_text(heap)}, at worst {size_text(process)}"
        texts = [f"{head}\n{both}", *texts]
    return "\n\n".join(texts)


def _one_as_json(one: Answer) -> dict[str, Any]:
    refused = one.refused_by
    return {
        "fits": one.fits,
        "record_limit_bytes": one.record_limit_bytes,
        "binding_hop": name_of(one.binding),
        "refused_by": name_of(refused) if refused else None,
        "fetch_response_bytes": one.fetch_response_bytes,
        "fetch_response_capped_bytes": one.fetch_response_capped_bytes,
        "response_encodable": one.response_encodable,
        "response_capped_encodable": one.capped_encodable,
        "heap_bytes": one.heap_bytes,
        "process_bytes": one.process_bytes,
        "held": [asdict(part) for part in one.held],
        "hops": [{**asdict(hop), "hop": name_of(hop), "passes": hop.passes} for hop in one.hops],
        "drain_s": one.drain.drain_s if one.drain else None,
        "drains": one.drains if one.drain else None,
        "drain": [
            {"timeout_s": each.timeout_s, "drain_s": each.drain_s} for each in _drains_at_other_timeouts(one.plan)
        ],
        "notes": notes(one),
        "change": changes(one),
    }


def name_of(hop: Hop) -> str:
    """Returns a hop's name: where it is, and the setting."""
    return f"{hop.hop}: {hop.setting}"


def notes(one: Answer) -> list[str]:
    """Returns what an engineer should know beside the figures."""
    return [*one.plan.notes, *_notes(one)]


def changes(one: Answer) -> list[str]:
    """Returns what to change, all of it: each hop that refuses, then memory, responses and drain."""
    refusing = [hop for hop in one.hops if not hop.passes]
    told = [hop.change for hop in refusing]
    if any(hop.record_limit_bytes is not None for hop in refusing):
        told.append(SMALLER)
    if not one.capped_encodable:
        told.append("lower fetch.max.bytes of broker or consumer: a response may come to more than 2147483647 bytes")
    if not one.fits_memory:
        told.append(
            "hold less: fewer partitions per consumer or consumers per process, a smaller max.partition.fetch.bytes, "
            "queued.max.messages.kbytes or max.poll.records; or split large records into a topic of their own, or keep "
            "payloads elsewhere (claim check)"
        )
    if not one.drains:
        told.append("fetch more at once, block shorter, or give a consumer fewer partitions: it never catches up")
    return told


def _notes(one: Answer) -> Iterator[str]:
    plan = one.plan
    if not one.response_encodable:
        yield (
            "without a cap the response could not even be encoded: its size is a 32-bit number (KAFKA-1196). Brokers "
            "and clients since 0.10.1 cap it"
        )
    decompressed, stored = largest_decompressed_bytes(plan), largest_batch_bytes(plan)
    if decompressed >= BOMB_RATIO * stored:
        yield (
            f"a compressed bomb: a batch of {stored} bytes passes the brokers, and is {decompressed} bytes after it is "
            "decompressed"
        )
    if plan.ratio > 1 and not plan.compressed:
        yield "the topic's compression.type is uncompressed: brokers store and send all of it, uncompressed"
    limits = fetch_limits(plan)
    if stored > min(limits.of_partition, limits.of_response):
        yield (
            "a batch is larger than the fetch limits: a response brings one such batch, and of other partitions only "
            "smaller ones"
        )
    yield from _batching(plan.producer, one)


def _batching(producer: Settings, one: Answer) -> Iterator[str]:
    limit = next(hop.limit_bytes for hop in one.hops if hop.hop == STORES)
    full = full_batch(one.plan)
    if full is None and not one.plan.batch_bytes_max:
        unlimited = "nothing says how large its batches are" if producer.library == OTHER else "it limits no batch"
        yield (
            f"the producer's library is {producer.library}, and {unlimited}: one of more than "
            f"{counted(records_within(one.plan, limit), 'of the largest record')} is refused whole. If you know your "
            "largest batch, say --batch-max"
        )
    if full is not None and full.splits and full.wire_bytes > limit:
        yield (
            f"the producer's batches, of up to {full.wire_bytes} bytes, are above the limit of {limit}: full ones are "
            f"refused, and sent again in parts: lower {lowered(one.plan, limit)}"
        )
        if producer.library == JAVA:
            yield "Java's producer of 4.0 and 4.1 does not come to an end with that (KAFKA-8350): for it, it is a must"
    request = producer.size_bytes("max.request.size")
    socket = one.plan.broker.size_bytes("socket.request.max.bytes") or 0
    if producer.library.startswith(JAVA) and request is not None and request > socket:
        yield (
            f"the producer may fill a request up to max.request.size = {request}, above socket.request.max.bytes = "
            f"{socket}: brokers hang up on such requests, though each record of them would pass"
        )


def _lines(one: Answer) -> Iterator[str]:
    plan, refused = one.plan, one.refused_by
    yield f"{'YES' if one.fits else 'NO'}: {_verdict(one)}"
    if refused:
        what = "a full batch" if refused.hop == STORES_FULL else "this record"
        counts = f"{refused.needed_bytes} ({refused.counts})"
        yield f"refused first by {name_of(refused)} = {refused.limit_bytes} ({refused.origin}): {what} needs {counts}"
    yield f"largest record that passes every hop: {size_text(one.record_limit_bytes)}, bound by {name_of(one.binding)}"
    yield from _hop_lines(one)
    yield from _fetch_lines(one)
    yield from _memory_lines(one)
    yield from _drain_lines(plan)
    for title, told in (("notes", notes(one)), ("change", changes(one))):
        if told:
            yield f"\n{title}"
            yield from (f"  {line}" for line in told)


def _verdict(one: Answer) -> str:
    what = f"{one.plan.name} with records of {size_text(one.plan.record_bytes_max)}"
    if one.fits:
        return f"{what} fits"
    full_only = one.refused_by is not None and one.refused_by.hop == STORES_FULL
    refused = "full batches of them are refused whole" if full_only else "a hop refuses it"
    reasons = {
        refused: one.refused_by is None,
        "a response cannot be encoded": one.capped_encodable,
        "memory does not suffice": one.fits_memory,
        "the backlog never ends": one.drains,
    }
    return f"{what} does not fit: {', '.join(reason for reason, fine in reasons.items() if not fine)}"


def _hop_lines(one: Answer) -> Iterator[str]:
    yield "\nhops, in the order of the way"
    width = max(len(name_of(hop)) for hop in one.hops)
    for hop in one.hops:
        if not hop.refuses:
            over = "; this batch is larger, and is returned whole" if hop.needed_bytes > hop.limit_bytes else ""
            told = f"refuses nothing{over}"
        else:
            most = "" if hop.record_limit_bytes is None else f"; a record up to {hop.record_limit_bytes}"
            told = f"needs {hop.needed_bytes} ({hop.counts}){most}"
        mark = "ok     " if hop.passes else "REFUSES"
        yield f"  {mark} {name_of(hop):{width}} = {hop.limit_bytes} ({hop.origin}): {told}"


def _fetch_lines(one: Answer) -> Iterator[str]:
    plan, limits = one.plan, fetch_limits(one.plan)
    record = one.fetch_response_bytes // plan.partitions_per_fetch
    yield "\none fetch of one broker"
    partitions = counted(plan.partitions_per_fetch, "partition")
    yield (
        f"  without a cap {size_text(one.fetch_response_bytes)} = {record} × {partitions} "
        f"({plan.partitions_per_consumer} per consumer, led by {counted(plan.leading_brokers, 'broker')})"
    )
    yield (
        f"  at most       {size_text(one.fetch_response_capped_bytes)}: the first batch whole "
        f"({largest_batch_bytes(plan)}), else {limits.of_partition} a partition and {limits.of_response} in all"
    )


def _memory_lines(one: Answer) -> Iterator[str]:
    plan = one.plan
    yield "\nmemory"
    buffered, partitions = plan.buffered_per_partition or 1, plan.partitions_per_consumer
    each = f"{counted(partitions, 'partition')} × {counted(buffered, 'record')} × {plan.kafka_bytes_max}"
    yield f"  buffers  {size_text(one.heap_bytes)} = {counted(plan.consumers_per_process, 'consumer')} × {each}"
    for part in one.held:
        yield f"  a client of {plan.consumer.library}, {part.part}: {size_text(part.size_bytes)} = {part.formula}"
    limit = "" if plan.memory_bytes_max is None else f", of {size_text(plan.memory_bytes_max)} that there are"
    held = counted(plan.consumers_per_process, "client") + (" + buffers" if plan.buffered_per_partition else "")
    yield f"  a process at worst {size_text(one.process_bytes)} = {held}{limit}"


def _drain_lines(plan: Plan) -> Iterator[str]:
    planned = drain(plan)
    if planned is None or plan.backlog is None:
        return
    yield f"\ndrain of {counted(plan.backlog.records, 'record')} of one partition"
    for each in _drains_at_other_timeouts(plan):
        ends = "never" if each.drain_s is None else duration_text(each.drain_s)
        here = " (planned)" if each.timeout_s == planned.timeout_s else ""
        yield f"  {ends} at a blocking timeout of {duration_text(each.timeout_s)}{here}: {each.formula}"


@dataclass(frozen=True)
class Drain:
    """A drain in seconds; None where arrivals keep up with it, and it never ends."""

    timeout_s: float
    drain_s: float | None
    formula: str


def drain(plan: Plan) -> Drain | None:
    """Returns how long the backlog takes; None where none is planned.

    rate = records per fetch ÷ (empty partitions × blocking timeout + records per fetch × service time);
    time = backlog ÷ (rate - arrivals).
    """
    backlog = plan.backlog
    if backlog is None:
        return None
    records = backlog.records_per_fetch or records_per_fetch(plan)
    round_s = backlog.empty_partitions * backlog.blocking_timeout_s + records * backlog.service_s
    told = (
        f"{counted(records, 'record')} a round of {duration_text(round_s)} "
        f"({counted(backlog.empty_partitions, 'empty partition')} × {duration_text(backlog.blocking_timeout_s)} + "
        f"{records} × {duration_text(backlog.service_s)})"
    )
    if not round_s:
        return Drain(backlog.blocking_timeout_s, 0.0, told)
    rate = records / round_s
    if rate <= backlog.arrivals_per_s:
        return Drain(
            backlog.blocking_timeout_s, None, f"{told}: no more than the {backlog.arrivals_per_s:g}/s that arrive"
        )
    return Drain(backlog.blocking_timeout_s, backlog.records / (rate - backlog.arrivals_per_s), told)


def _drains_at_other_timeouts(plan: Plan) -> list[Drain]:
    """Returns the same backlog at the planned timeout, and at 10, 1 and 0.1 seconds."""
    if plan.backlog is None:
        return []
    timeouts = sorted({plan.backlog.blocking_timeout_s, *OTHER_TIMEOUTS_S}, reverse=True)
    others = [replace(plan, backlog=replace(plan.backlog, blocking_timeout_s=timeout)) for timeout in timeouts]
    return [found for other in others if (found := drain(other))]
