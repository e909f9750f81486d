"""Evidence: what each invariant needs to have been seen, and why it is not judged where it was not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from kafka_trial.anomalies.invariant import Invariant
from kafka_trial.judge.not_judged import NotJudged, NotJudgedReason, PartlyNotJudged
from kafka_trial.model.cold_reads import cold_age_ns
from kafka_trial.model.excused_time import time_that_counts_ns
from kafka_trial.model.kernels import NEVER
from kafka_trial.model.trial_context import Incarnation, TrialContext

# What a sink cannot show of a consumer that prints nothing, and what decides that property of its claim instead.
ELSEWHERE = {
    "nonmonotonic-poll": NotJudgedReason.ORDER_BY_EFFECTS,
    "poll-skip": NotJudgedReason.SKIPS_BY_EFFECTS,
    "overlapping-handlers": NotJudgedReason.NO_HANDLER_STARTS,
    "head-of-line-blocking": NotJudgedReason.BLOCKING_AS_LATE,
    "false-lag": NotJudgedReason.LAG_BY_COMMITS,
    "work-after-revoke": NotJudgedReason.CALLBACKS_BY_COMMITS,
}
# Of a consumer that prints nothing, and writes to a table, what was done again is seen only where it changed a row:
# whether a claim about it stays undecided.
ABSORBED = {"redelivered": True, "illegal-redelivery": False}
SECOND_NS = 1_000_000_000
BY_COMMITS = ("false-lag", "work-after-revoke", "head-of-line-blocking")


@dataclass(frozen=True)
class Seen:
    """How many rows of each sort of evidence the slices hold, all together; the members known to commit; and those
    that say of work nobody else was given when it ended, and never when it began; and those of which some work stands
    in no ownership epoch."""

    records: int = 0
    delivered: int = 0
    processed: int = 0
    effects: int = 0
    committed: int = 0
    committing: frozenset[str] = frozenset()
    never_beginning: frozenset[str] = frozenset()
    unowned: frozenset[str] = frozenset()


def missing_evidence(invariant: Invariant, trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Returns why an invariant cannot be judged; None where all it needs was seen."""
    progress = trial_context.settings.progress
    if invariant.outside_transactions and progress == "transaction":
        return NotJudged(NotJudgedReason.IN_TRANSACTIONS, applies=False)
    if invariant.progress_in_kafka and not trial_context.settings.in_offsets_log:
        return NotJudged(NotJudgedReason.NOT_IN_KAFKA, {"progress": progress}, applies=False)
    if invariant.progress_in_transaction and progress != "transaction":
        return NotJudged(NotJudgedReason.NOT_IN_TRANSACTIONS, {"progress": progress}, applies=False)
    in_brokers = trial_context.settings.in_offsets_log
    if (instead := _judged_elsewhere(invariant.name, trial_context, seen)) is not None:
        return NotJudged(instead, applies=False)
    if invariant.name in ABSORBED and _absorbed(trial_context, seen):
        return NotJudged(NotJudgedReason.IN_A_TABLE, applies=ABSORBED[invariant.name], partly=True)
    for need in sorted(invariant.needs):
        missing = NEEDS[need](trial_context, seen)
        if missing is not None and need in ("ids", "effects"):
            return replace(missing, applies=_claims_effects(trial_context))
        if missing is not None and (in_brokers or need not in ("offsets log", "requests")):
            untold = missing.reason == NotJudgedReason.REVOCATIONS_UNTOLD  # it could be told, and is left out
            return replace(missing, applies=untold or need not in MAY_LACK, partly=untold or need in PARTLY)
    return None


def partly_missing(invariant: Invariant, trial_context: TrialContext) -> PartlyNotJudged | None:
    """Returns which part of what an invariant looks for cannot be judged, and why; None where all of it is."""
    if invariant.name != "corrupt" or not trial_context.sink_seen:
        return None
    if trial_context.settings.body != "value":
        return PartlyNotJudged.BODIES_UNDECLARED
    return None if trial_context.bodies_compared else PartlyNotJudged.BODIES_NOT_COMPARED


def _absorbed(trial_context: TrialContext, seen: Seen) -> bool:
    """Whether a table alone tells of the work, which may take what is done again without a trace."""
    return trial_context.settings.sink == "postgres" and not (seen.delivered or seen.processed)


def _judged_elsewhere(name: str, trial_context: TrialContext, seen: Seen) -> NotJudgedReason | None:
    """Returns why an anomaly cannot be seen of this consumer, and need not be: another one decides what is claimed."""
    if name not in ELSEWHERE or seen.delivered or seen.processed or not trial_context.incarnations:
        return None  # where no member was started here (an audit), nothing of theirs was heard
    if name == "work-after-revoke" and _effects_beside_callbacks(trial_context, seen):
        return None
    by_commits = trial_context.settings.silent and trial_context.settings.in_offsets_log
    decided = by_commits and name in BY_COMMITS
    decided |= name != "false-lag" and _by_effects(trial_context, seen) is None
    return ELSEWHERE[name] if decided else None


def _records(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    if trial_context.control_read != "complete":
        return NotJudged(NotJudgedReason.CONTROL_READ, {"state": trial_context.control_read or "missing"})
    return None if seen.records else NotJudged(NotJudgedReason.NO_RECORDS)


def _records_ever(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Those of the control read; or what was sent, of which retention may have left nothing."""
    missing = _records(trial_context, seen)
    gone = missing is not None and missing.reason == NotJudgedReason.NO_RECORDS and trial_context.sends
    return None if gone else missing


def _handled(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    settings = trial_context.settings
    if settings.sink_is_read and (unread := _witness(trial_context, "sink")):
        return unread
    declared = settings.events not in (None, "none") or settings.has_sink
    if not declared and settings.events is not None:
        return NotJudged(NotJudgedReason.NO_SINK)
    return None if declared or seen.processed or seen.effects else NotJudged(NotJudgedReason.NOTHING_TELLS)


def _claims_effects(trial_context: TrialContext) -> bool:
    """What reaches the outside world, and under which id, is missed only where a claim is about it."""
    return trial_context.settings.delivery == "exactly-once" or trial_context.settings.sink not in (None, "none")


def _sends(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return None if trial_context.sends else NotJudged(NotJudgedReason.NO_SENDS)


def _ids(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    told = trial_context.ids_told or trial_context.sink_seen
    return None if told else NotJudged(NotJudgedReason.NO_IDS)


def _effects(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    if trial_context.settings.sink_is_read and (unread := _witness(trial_context, "sink")):
        return unread
    return None if trial_context.sink_seen else NotJudged(NotJudgedReason.NO_EFFECT)


def _row_states(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    if trial_context.settings.effects != "state":
        return NotJudged(NotJudgedReason.NO_STATES)
    by_key = trial_context.settings.sink in ("http", "topic")
    return None if by_key or trial_context.rows_told else NotJudged(NotJudgedReason.ROWS_UNKNOWN)


def _states_compared(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Only a state that two records of its key wrote can end as that of the older one."""
    vacuous = _row_states(trial_context, seen) is None and not trial_context.states_compared
    return NotJudged(NotJudgedReason.NO_STATES_COMPARED) if vacuous else None


def _member_lines(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    if trial_context.settings.events == "none":
        return NotJudged(NotJudgedReason.NO_EVENTS)
    return None if seen.delivered or seen.processed else NotJudged(NotJudgedReason.NONE_DELIVERED)


def _by_effects(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Why effects do not show the work; None where they do: the sink was read whole, and heard of something."""
    if not trial_context.incarnations:
        return NotJudged(NotJudgedReason.NO_EVENTS)
    if trial_context.settings.events not in (None, "none") and trial_context.settings.sink in (None, "none"):
        return NotJudged(NotJudgedReason.NONE_DELIVERED)
    if trial_context.settings.silent:
        return NotJudged(NotJudgedReason.NO_SINK)
    return _effects(trial_context, seen) or (None if seen.effects else NotJudged(NotJudgedReason.NO_EFFECT_OF_RECORDS))


def _work(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """The members' lines, else the effects."""
    if seen.delivered or seen.processed:
        return None
    return _by_effects(trial_context, seen)


def _effects_beside_callbacks(trial_context: TrialContext, seen: Seen) -> bool:
    """Whether members that print no work say when they gave partitions back, and effects that name their member show
    when they worked."""
    tells = any(one.given_back for one in trial_context.incarnations)
    return tells and trial_context.settings.sink == "http" and _by_effects(trial_context, seen) is None


def _work_of_members(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """The members' lines; or their effects, beside their callbacks."""
    return None if _effects_beside_callbacks(trial_context, seen) else _member_lines(trial_context, seen)


def _moves(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """What was handled; of a consumer that shows nothing of it, its commits, which the offsets log tells."""
    if trial_context.incarnations and trial_context.settings.silent and trial_context.settings.in_offsets_log:
        return None
    return _handled(trial_context, seen)


def _ownership_epochs(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Members that worked had their partitions by their own word, or by the request log."""
    by_answers = {one.member for one in trial_context.group_answers if one.assigned}
    by_fetches = {trial_context.lanes[lane] for lane in trial_context.fetching if lane in trial_context.lanes}
    known = by_answers | by_fetches if _requests(trial_context, seen) is None else set()
    unknown = {
        incarnation.member
        for incarnation in trial_context.incarnations
        if incarnation.works and not incarnation.assigns
    } - known
    if unknown:
        names = ", ".join(sorted(trial_context.members[member] for member in unknown))
        return NotJudged(NotJudgedReason.PARTITIONS_UNKNOWN, {"names": names})
    names = ", ".join(sorted(seen.unowned))
    return NotJudged(NotJudgedReason.WORK_WITHOUT_PARTITION, {"names": names}) if names else None


def _handler_starts(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Every member that says when a handler ended says when one began, and some handlers ended."""
    if seen.never_beginning:
        return NotJudged(NotJudgedReason.BEGINNINGS_UNKNOWN, {"names": ", ".join(sorted(seen.never_beginning))})
    if trial_context.incarnations and not any(incarnation.completes for incarnation in trial_context.incarnations):
        return NotJudged(NotJudgedReason.ENDS_UNKNOWN)
    return None


def _commit_times(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """What was handled before it was committed past can be told: by lines that say when they were written, or in which
    order with the requests for commits; by a sink; or it takes effect with the commit, in a transaction."""
    settings = trial_context.settings
    if settings.stdout != "buffered" or settings.has_sink or settings.progress != "kafka" or not seen.committed:
        return None
    untimed = {
        incarnation.member
        for incarnation in trial_context.incarnations
        if incarnation.works and incarnation.source not in trial_context.timed
    }
    untimed -= {incarnation.member for incarnation in trial_context.incarnations if incarnation.invokes}
    vague = {trial_context.members[member] for member in untimed}
    vague &= seen.committing or vague  # where nobody knows who commits, any of them may
    if not vague:
        return None
    names = ", ".join(sorted(vague))
    return NotJudged(NotJudgedReason.COMMIT_TIMES_UNKNOWN, {"names": names})


def _turns(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Since when a record could be read, when its member asked for it, and when it had nothing else in hand."""
    if trial_context.settings.progress == "transaction":
        return NotJudged(NotJudgedReason.IN_HAND_IN_TRANSACTION)
    if trial_context.aborted_records:
        return NotJudged(NotJudgedReason.READABLE_UNKNOWN)
    unseen = _log_ends(trial_context, seen) or _requests(trial_context, seen) or _handler_starts(trial_context, seen)
    return unseen or (None if trial_context.fetching else NotJudged(NotJudgedReason.NO_FETCHES))


def _partitions_added(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return None if trial_context.partitions_added else NotJudged(NotJudgedReason.NO_PARTITIONS_ADDED)


def _moved_keys(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Where partitions were added a key must have moved: without that nothing was tried."""
    unmoved = trial_context.partitions_added and trial_context.sends and not trial_context.moved_sends
    return NotJudged(NotJudgedReason.NO_KEY_MOVED) if unmoved else None


def _callbacks(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    by_effects = _effects_beside_callbacks(trial_context, seen)
    workers = [one for one in trial_context.incarnations if one.works or (by_effects and one.assigns)]
    if workers and not any(incarnation.assigns for incarnation in workers):
        return NotJudged(NotJudgedReason.NO_CALLBACKS)
    untold = sorted({trial_context.members[one.member] for one in workers if _gives_back_untold(trial_context, one)})
    return NotJudged(NotJudgedReason.REVOCATIONS_UNTOLD, {"names": ", ".join(untold)}) if untold else None


def _gives_back_untold(trial_context: TrialContext, incarnation: Incarnation) -> bool:
    """Tells whether it says what it is given and, of some partition, never that it gave it back, though it had to long
    before it ended: brokers told it to keep less, or told them itself that it does (KIP-848, where a partition that is
    assigned again meanwhile stays where it is). What was taken away before the client had handed it out (the next
    rebalance came first: no line says that it was assigned, and none is of a record there) need not be given back."""
    if not incarnation.assigns:
        return False
    until_ns = incarnation.asked_ns or incarnation.exited_ns or NEVER
    until_ns -= int((trial_context.session_timeout_s + trial_context.settings.poll_interval_s) * SECOND_NS)
    kept: dict[int, list[set[int]]] = defaultdict(list)
    for one in sorted(trial_context.group_answers, key=lambda answer: answer.time_ns):
        inside = one.member == incarnation.member and incarnation.started_ns <= one.time_ns < until_ns
        told = one.owned if one.api == "CONSUMER_GROUP_HEARTBEAT" else one.assigned
        if inside and told is not None:
            kept[one.member_id].append(set(told))
    taken = (before - after for answers in kept.values() for before, after in pairwise(answers))
    untold = (slices - {*incarnation.given_back} for slices in taken)
    return any(slices & {*incarnation.held} if incarnation.works else slices for slices in untold)


def _offsets_log(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return _witness(trial_context, "offsets")


def _requests(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    brokers = [name for name in trial_context.counts if name.startswith("requests-")]
    if not brokers:
        return NotJudged(NotJudgedReason.NO_REQUEST_LOG)
    return next((missing for name in brokers if (missing := _witness(trial_context, name))), None)


def _log_ends(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return _witness(trial_context, "observer")


def _snapshot(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return None if trial_context.snapshot_ns is not None else NotJudged(NotJudgedReason.NO_SNAPSHOT)


def _processes(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return None if trial_context.incarnations else NotJudged(NotJudgedReason.NO_PROCESS)


def _exits(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    exits = [incarnation for incarnation in trial_context.incarnations if incarnation.exited_seq is not None]
    told = all(incarnation.asked is not None for incarnation in exits)
    return None if told else NotJudged(NotJudgedReason.EXITS_UNKNOWN)


def _memory_limit(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return NotJudged(NotJudgedReason.NO_MEMORY_LIMIT) if trial_context.settings.memory_max_bytes is None else None


def _ends_of_waits(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """From when a record could be read, and when it was handled, or, in transactions and audits, committed past."""
    audited = not trial_context.incarnations
    if audited and not trial_context.dated_by_brokers:
        return NotJudged(NotJudgedReason.APPENDS_UNKNOWN)
    if trial_context.aborted_records:
        return NotJudged(NotJudgedReason.READABLE_UNKNOWN)
    if trial_context.through:
        return NotJudged(NotJudgedReason.WAITS_ELSEWHERE)
    by_commits = audited or trial_context.settings.progress == "transaction"
    return (_offsets_log if by_commits else _moves)(trial_context, seen)


def _age_limit(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return NotJudged(NotJudgedReason.NO_AGE_LIMIT) if trial_context.settings.lag_age_max_s is None else None


def _pace(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """How fast the group works, without which nobody knows what a fault's backlog explains; an audit asks nobody to
    excuse one."""
    measured = trial_context.calibrated_rate and trial_context.calibrated_ns is not None
    return None if measured or not trial_context.incarnations else NotJudged(NotJudgedReason.NO_PACE)


def _time_to_be_late(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Longer than a record may wait by the claim; else a pass would prove nothing."""
    limit_s = trial_context.settings.lag_age_max_s
    short = limit_s is not None and time_that_counts_ns(trial_context) <= limit_s * 1e9
    return NotJudged(NotJudgedReason.NO_TIME) if short else None


def _cold_limit(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    none = trial_context.settings.reads_cold_bytes_max is None
    return NotJudged(NotJudgedReason.NO_COLD_LIMIT) if none else None


def _fetches_of_members(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """What each member was sent, by request logs that were read to their ends, also of one with its progress elsewhere;
    an audit knows of no fault that explains it."""
    missing = _processes(trial_context, seen) or _requests(trial_context, seen)
    fetching = any(lane in trial_context.lanes for lane in trial_context.fetching)
    return missing or (None if fetching else NotJudged(NotJudgedReason.NO_FETCHES))


def _cold_records(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Records can have become cold in the trial; else a pass would prove nothing."""
    short = time_that_counts_ns(trial_context) <= cold_age_ns(trial_context.settings)
    return NotJudged(NotJudgedReason.NOTHING_COLD) if short else None


def _samples(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return None if trial_context.peaks else NotJudged(NotJudgedReason.NO_SAMPLES)


def _oom_counter(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    return None if trial_context.oom_read else NotJudged(NotJudgedReason.OOM_NOT_COUNTED)


def _group_log(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    none = None if trial_context.epochs else NotJudged(NotJudgedReason.NO_EPOCHS)
    return _witness(trial_context, "offsets") or none


def _group_presence(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Who is in the group: by its records in the offsets log, and by the lanes of the request log."""
    if trial_context.settings.protocol == "none":
        return NotJudged(NotJudgedReason.NO_GROUP)
    needs = (_processes, _snapshot, _group_log, _requests)
    return next((missing for need in needs if (missing := need(trial_context, seen))), None)


def _aborted_records(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    none = NotJudged(NotJudgedReason.NONE_ABORTED)
    return None if trial_context.aborted_records else none


def _outputs(trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    none = None if trial_context.outputs_ended else NotJudged(NotJudgedReason.NO_OUTPUTS)
    return none or _witness(trial_context, "transactions")


def _witness(trial_context: TrialContext, name: str) -> NotJudged | None:
    state = trial_context.witnesses.get(name)
    if name not in trial_context.counts:
        return NotJudged(NotJudgedReason.WITNESS_EMPTY, {"witness": name})
    if state == "complete":
        return None
    return NotJudged(
        NotJudgedReason.WITNESS_INCOMPLETE, {"witness": name, "state": state or "not known to be complete"}
    )


NEEDS: Mapping[str, Callable[[TrialContext, Seen], NotJudged | None]] = {
    "records": _records,
    "records ever": _records_ever,
    "handled": _handled,
    "own word": _member_lines,
    "work": _work,
    "work of members": _work_of_members,
    "moves": _moves,
    "ownership epochs": _ownership_epochs,
    "handler starts": _handler_starts,
    "commit times": _commit_times,
    "callbacks": _callbacks,
    "turns": _turns,
    "sends": _sends,
    "partitions added": _partitions_added,
    "moved keys": _moved_keys,
    "ids": _ids,
    "effects": _effects,
    "row states": _row_states,
    "states compared": _states_compared,
    "offsets log": _offsets_log,
    "requests": _requests,
    "log ends": _log_ends,
    "snapshot": _snapshot,
    "processes": _processes,
    "exits": _exits,
    "memory limit": _memory_limit,
    "ends of waits": _ends_of_waits,
    "age limit": _age_limit,
    "pace": _pace,
    "time to be late": _time_to_be_late,
    "cold limit": _cold_limit,
    "fetches of members": _fetches_of_members,
    "cold records": _cold_records,
    "samples": _samples,
    "oom counter": _oom_counter,
    "group log": _group_log,
    "group presence": _group_presence,
    "aborted records": _aborted_records,
    "outputs": _outputs,
}
MAY_LACK = (
    "callbacks",
    "turns",
    "row states",
    "partitions added",
    "memory limit",
    "age limit",
    "cold limit",
    "exits",
    "oom counter",
    "group presence",
    "aborted records",
)  # where these are not there, no claim stays undecided for it
PARTLY = ("ownership epochs", "handler starts", "commit times")  # what of them is there convicts, and cannot acquit
