"""Why a verdict is unknown whatever was seen, or for want of something: reasons that judge nothing of the consumer.

The environment failed: on the harness's or the cluster's side, and nothing can be concluded about the consumer then. Or
too little was there to judge, and a pass would prove nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

from kafka_trial.history.consequences import Consequence
from kafka_trial.judge.judgement import FaultCoverage
from kafka_trial.model.absences import hits_nobody
from kafka_trial.model.trial_context import HARNESS_STALL_NS, TOLERANCE_NS
from kafka_trial.verdict.messages import plain
from kafka_trial.witness.samplers import WALL_JUMP_NS

if TYPE_CHECKING:
    from kafka_trial.history.event import Event
    from kafka_trial.judge.judge import Coverage, Judgement, SliceCoverage
    from kafka_trial.model.trial_context import TrialContext, Window
    from kafka_trial.verdict.verdict_input import Scope

HARNESS_STALLED_SHARE = 0.25  # of the trial; beyond that, what different sources said has hardly any order
READ_MEDIAN, READ_WORST = "lines read within ms, median", "lines read within ms, worst"
MS = 1_000_000
MEMBERS_MAX = 5  # whose processor is told, those with the least
SAMPLED_MIN_S = 5.0  # who lived for less has no share to speak of
WITNESSES = ("offsets", "observer", "requests-", "transactions")
WITNESS_STATES = {
    "ready": "never said that it had read to the end",
    "behind": "was behind at the snapshot",
    "dead": "died",
    "undecodable": "met a record it cannot decode",
}


def environment_failures(judgement: Judgement) -> list[str]:
    """Returns what failed on the harness's or the cluster's side."""
    trial_context = judgement.trial_context
    told = [f"the environment failed: {plain(message)}" for message in trial_context.environment]
    if trial_context.ended is None:
        told.append("the history is truncated: it has no end")
    elif trial_context.ended != "ok" and not told:
        told.append("the trial ended early")
    told += _witnesses(trial_context)
    told += _clock_jumps(trial_context)
    told += _harness_stalls(trial_context)
    return told + [f"the history is damaged: {plain(defect)}" for defect in judgement.defects]


def judge_failures(judgement: Judgement) -> list[str]:
    """Returns where the judge broke: it would do so again on the same history, and on the next one."""
    return [
        f"the judge broke in {name}: {plain(error)}"
        for name, error in sorted(judgement.crashed.items())
        if name not in judgement.findings
    ]


def _clock_jumps(trial_context: TrialContext) -> list[str]:
    """Brokers tell times by the wall clock: once it jumped, nobody knows when that was by the harness's."""
    jumps = [jump_ns for jump_ns in _wall_jumps_ns(trial_context) if jump_ns > TOLERANCE_NS]
    if not jumps:
        return []
    times = f"{len(jumps)} time{'s' * (len(jumps) > 1)}"
    return [f"the wall clock jumped {times}, by up to {max(jumps) / 1e9:.1f} s: the brokers' times cannot be compared"]


def _harness_stalls(trial_context: TrialContext) -> list[str]:
    """Nothing is concluded from the order in which things were read around a harness stall: there must not be many."""
    read_ns = [read_ns for _, read_ns in trial_context.clocks]
    stood_ns = sum(end_ns - begin_ns for begin_ns, end_ns in trial_context.harness_stalls)
    whole_ns = max(read_ns, default=0) - min(read_ns, default=0)
    if stood_ns <= whole_ns * HARNESS_STALLED_SHARE or len(read_ns) < 2:
        return []
    return [
        f"the harness stood still for {stood_ns / 1e9:.1f} s of {whole_ns / 1e9:.1f} s: "
        "the order of events then is not known; try again on a machine with less to do"
    ]


def withheld_in_words(samples: Sequence[Event], trial_context: TrialContext) -> tuple[str, ...]:
    """Returns what the machine kept from brokers and members, by its own samples; empty where it took none.

    `samples`: the events `resources`. The processor that a member had is that of all its incarnations.
    """
    told = []
    if over_ns := sum(one.over_ns for one in trial_context.cpu_waits):
        members_s, brokers_s = (
            sum(getattr(one, name) for one in trial_context.cpu_waits) / 1e9 for name in ("member_ns", "broker_ns")
        )
        told.append(
            f"in {over_ns / 1e9:.0f} s, members were ready to run and had no processor for up to {members_s:.1f} s, "
            f"brokers for up to {brokers_s:.1f} s"
        )
    had = [(cpu_s, over_s, member) for member, (cpu_s, over_s) in _processor_had(samples).items()]
    least = sorted(had, key=lambda one: (one[0] / one[1], one[2]))[:MEMBERS_MAX]
    shares = [f"{member} had {cpu_s:.1f} s of processor in {over_s:.0f} s" for cpu_s, over_s, member in least]
    told += [", ".join(shares)] if shares else []
    late_ns = max((delay_ns for _, delay_ns in trial_context.delays), default=0)
    told += [f"the harness itself came up to {late_ns / 1e9:.1f} s late"] if late_ns > HARNESS_STALL_NS else []
    return tuple(told)


def _processor_had(samples: Sequence[Event]) -> dict[str, tuple[float, float]]:
    """Returns by member how many seconds of processor it had, and in how many seconds, from first to last sample."""
    ends: dict[tuple[str, object], list[Event]] = {}
    for event in samples:
        if event.member and isinstance(event.details.get("cpu_s"), int | float):
            ends.setdefault((event.member, event.details.get("incarnation")), []).append(event)
    had: dict[str, tuple[float, float]] = {}
    for (member, _), events in ends.items():
        cpu_s, over_s = had.get(member, (0.0, 0.0))
        cpu_s += events[-1].details["cpu_s"] - events[0].details["cpu_s"]
        had[member] = cpu_s, over_s + (events[-1].time_ns - events[0].time_ns) / 1e9
    return {member: (cpu_s, over_s) for member, (cpu_s, over_s) in had.items() if over_s >= SAMPLED_MIN_S}


def disturbances_counted(trial_context: TrialContext) -> dict[str, int]:
    """Returns how often the wall clock jumped and the harness stood still, where they did."""
    counts = {
        "wall clock jumps": len(_wall_jumps_ns(trial_context)),
        "harness stood still": len(trial_context.harness_stalls),
    }
    return {name: count for name, count in counts.items() if count}


def readings_counted(trial_context: TrialContext) -> dict[str, int]:
    """Returns how long lines of members waited at most until they were read, in milliseconds, where that was measured:
    in the median second of a reader, and in the worst."""
    delays_ns = sorted(delay_ns for _, _, delay_ns in trial_context.readings)
    if not delays_ns:
        return {}
    return {READ_MEDIAN: delays_ns[len(delays_ns) // 2] // MS, READ_WORST: delays_ns[-1] // MS}


def _wall_jumps_ns(trial_context: TrialContext) -> list[int]:
    """Returns how far the wall clock went apart from the monotonic one between two readings, where that is a jump."""
    apart = [wall_ns - time_ns for time_ns, wall_ns in sorted((time, wall) for wall, time in trial_context.clocks)]
    return [abs(later - before) for before, later in pairwise(apart) if abs(later - before) > WALL_JUMP_NS]


def _witnesses(trial_context: TrialContext) -> list[str]:
    """A witness must have said, last of all, that it read to the end."""
    states = {source: "" for source in trial_context.counts if source.startswith(WITNESSES)}
    if trial_context.settings.sink_is_read:
        states["sink"] = ""
    states.update(trial_context.witnesses)
    return [
        f"the witness {source} {WITNESS_STATES.get(state, 'did not say that it saw all')}"
        for source, state in sorted(states.items())
        if state != "complete"
    ]


PROVES_NOTHING = "proves nothing about the consumer"


# What to look at where no effect of any record came to a sink.
NO_EFFECTS = {
    "http": "no effect came to the sink: members are to post to `{sink_url}/effect`",
    "topic": "no effect came to the sink: members are to write to the topic that [sink.topic] names, and to no other",
    "postgres": "no effect came to the sink: members are to write to `{postgres_url}`, which has no TLS, and is not at "
    "localhost where they are containers",
}


def coverage_gaps(
    coverage: Coverage,
    scope: Scope,
    *,
    silent: bool = False,
    sink: str | None = None,
    last_words: str | None = None,
    found_idle: Collection[tuple[str | None, int]] = (),
    topics: Sequence[str] = (),
) -> list[str]:
    """Returns where too little was there to judge: no anomaly there proves nothing. Of several `topics` each must
    have given enough.

    What counts are the records that were handled; of a consumer without lines and sink (`silent`), for which nobody
    can say that, those that were there. Where these are too few, what a member wrote last may say why.
    That nothing was handled on the partitions `found_idle` is a finding, and no gap.
    """
    told, words = list(scope.unknowns), [NO_EFFECTS.get(sink or ""), last_words]
    if not scope.further_topic_partitions:
        parts = coverage.partitions
        return told + _too_little_in(parts, scope.partitions, scope, silent=silent, words=words, found_idle=found_idle)
    names = [*topics, *repeat("a topic that no event names", 1 + len(scope.further_topic_partitions) - len(topics))]
    for topic, partitions in zip(names, (scope.partitions, *scope.further_topic_partitions), strict=False):
        parts = tuple(part for part in coverage.partitions if part.topic == topic)
        gaps = _too_little_in(parts, partitions, scope, silent=silent, words=words, found_idle=found_idle)
        told += [f"{gap} (topic {plain(topic)})" for gap in gaps]
    return told


def _too_little_in(
    parts: Sequence[SliceCoverage],
    partitions: int | None,
    scope: Scope,
    *,
    silent: bool,
    words: Sequence[str | None],
    found_idle: Collection[tuple[str | None, int]],
) -> list[str]:
    """Returns where the partitions of one topic gave too little; `words`: what is added if nothing
    was handled, and what always."""
    told = list[str]()
    least, handled, records = scope.records_judged_min, sum(map(_handled, parts)), sum(part.records for part in parts)
    if records < least:
        told.append(f"{records} records were judged, fewer than the {least} needed")
    elif handled < least and not silent:
        few = f"{handled} of {records} records were handled, fewer than the {least} needed"
        told.append("; ".join([few, *filter(None, words[handled > 0 :])]))
    seen = {part.partition for part in parts if part.records}
    if records:
        missing = [partition for partition in range(partitions or 0) if partition not in seen]
        told += _named("no record was judged", missing)
    if handled and not silent and not any(part.done for part in parts):
        told.append(f"all {handled} records that were handled were discarded or set aside, by the members' word alone")
    if handled and not silent:
        idle = [part for part in parts if part.records and not part.handled]
        told += _named(
            "no record was handled",
            sorted(one.partition for one in idle if (one.topic, one.partition) not in found_idle),
        )
    return told


def _handled(part: SliceCoverage) -> int:
    return min(part.handled, part.records)


def _named(what: str, partitions: Sequence[int]) -> list[str]:
    numbers = ", ".join(map(str, partitions))
    return [f"{what} on partition{'s' * (len(partitions) > 1)} {numbers}"] if partitions else []


def faults_without_traffic(coverage: Coverage, trial_context: TrialContext) -> list[str]:
    """Returns the faults whose target did no work: they hit somebody who had nothing to do.

    Of a fault of the topic that was played while the trial let nobody run, only that somebody worked at all is asked.
    """
    spoken = any(member.delivered or member.processed for member in coverage.members.values())
    if not spoken and not any(member.moved for member in coverage.members.values()):
        return []  # nothing tells who did what
    return [
        f"fault {window.number} ({window.fault}) {PROVES_NOTHING}: {idle}"
        for window in trial_context.windows
        if (idle := _idle(coverage, window, spoken=spoken, nobody=hits_nobody(trial_context, window))) is not None
    ]


def _idle(coverage: Coverage, window: Window, *, spoken: bool, nobody: bool) -> str | None:
    """Returns how a fault hit somebody who had nothing to do; None where something went through or because of it.

    A fault that lets traffic pass must have had some pass through its target. One that stops it leaves nothing inside
    its window: then its target had partitions in hand when it was hit, and the work on them went on, by whomever.
    Work is what members were delivered or processed; where none says anything (not `spoken`), what brokers see move.
    """
    hit = [member for name, member in coverage.members.items() if window.member in (None, name)]
    who = window.member or "the members"
    if not any(_worked((member.delivered, member.processed, 0, member.moved), spoken=spoken) for member in hit):
        return f"{who} did no work in the whole trial"
    if nobody:
        return None
    if window.does(Consequence.DELAYS_ANSWERS):
        passed = any(_worked(member.inside.get(window.number, ()), spoken=spoken) for member in hit)
        return None if passed else f"{who} did no work while it was in force"
    faults = coverage.faults.get(window.number, FaultCoverage(0, 0))
    if not faults.held:
        return f"{who} had no partition in hand when it was hit"
    after = faults.after if spoken else faults.moved_after
    return None if after else f"nothing was done any more on the partitions {who} had in hand"


def _worked(numbers: Sequence[int], *, spoken: bool) -> bool:
    """Tells whether there is work among delivered, processed, committed, moved, never begun: commits alone are none."""
    return any(numbers[:2]) if spoken else any(numbers[3:4])
