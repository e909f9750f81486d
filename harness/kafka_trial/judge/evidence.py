"""Evidence: what each invariant needs to have been seen, and why it is not judged where it was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafka_trial.invariants.invariant import Invariant
from kafka_trial.invariants.trial_context import TrialContext

NO_EVENTS = "the consumer prints no events"
NOTHING_TELLS = "nothing tells what was handled"
CURE = 'sink = "http" under [evidence] and SINK_URL = "{sink_url}" under [env] would let it be judged'
NO_SINK = f"{NOTHING_TELLS}: {NO_EVENTS} and has no sink ({CURE})"
# What a sink cannot show of a consumer that prints nothing, and what decides that property of its claim instead.
ELSEWHERE = {
    "nonmonotonic-poll": "its order is judged by its first effects, what it did again by the further ones",
    "poll-skip": "its order is judged by its first effects, what it left out as skipped or unseen",
    "overlapping-handlers": "when its handlers began nobody can see, and its order is judged by its first effects",
    "false-lag": "what it has left at the end is judged by its commits, as stuck or late",
    "work-after-revoke": "it tells of no callback, and what it did to others' partitions is judged by commits",
}
# Of a consumer that prints nothing, and writes to a table, what was done again is seen only where it changed a row:
# whether a claim about it stays open.
ABSORBED = {"redelivered": True, "illegal-redelivery": False}
IN_A_TABLE = f"{NO_EVENTS}, and what it does again may leave its table as it was: only what changes a row is seen"


BY_COMMITS = ("false-lag", "work-after-revoke")


@dataclass(frozen=True)
class Seen:
    """How many rows of each sort of evidence the slices hold, all together; and the members known to commit."""

    records: int = 0
    delivered: int = 0
    processed: int = 0
    effects: int = 0
    committed: int = 0
    committing: frozenset[str] = frozenset()


@dataclass(frozen=True)
class NotJudged:
    """Why an invariant was not judged; `applies` is False where its rule is not about this consumer.

    `partly`: some of what it looks at was there; what it found of that stands.
    """

    because: str
    applies: bool = True
    partly: bool = False


def missing_evidence(invariant: Invariant, trial_context: TrialContext, seen: Seen) -> NotJudged | None:
    """Returns why an invariant cannot be judged; None where all it needs was seen."""
    progress = trial_context.settings.progress
    if invariant.outside_transactions and progress == "transaction":
        return NotJudged("its progress is in its transactions, whose epochs are not looked at", applies=False)
    if invariant.progress_in_kafka and not trial_context.settings.in_offsets_log:
        return NotJudged(f"its progress is not in Kafka (progress: {progress})", applies=False)
    if invariant.progress_in_transaction and progress != "transaction":
        return NotJudged(f"its progress is not in its transactions (progress: {progress})", applies=False)
    in_brokers = trial_context.settings.in_offsets_log
    if (instead := _judged_elsewhere(invariant.name, trial_context, seen)) is not None:
        return NotJudged(instead, applies=False)
    if invariant.name in ABSORBED and _absorbed(trial_context, seen):
        return NotJudged(IN_A_TABLE, applies=ABSORBED[invariant.name], partly=True)
    for need in sorted(invariant.needs):
        because = NEEDS[need](trial_context, seen)
        if because is not None and need in ("ids", "effects"):
            return NotJudged(because, applies=_claims_effects(trial_context))
        if because is not None and (in_brokers or need not in ("offsets log", "requests")):
            return NotJudged(because, applies=need not in MAY_LACK, partly=need in PARTLY)
    return None


def partly_missing(invariant: Invariant, trial_context: TrialContext) -> str | None:
    """Returns which part of what an invariant looks for cannot be judged, and why; None where all of it is."""
    if invariant.name != "corrupt" or not trial_context.sink_seen:
        return None
    if trial_context.settings.body != "value":
        return 'effects: nothing declares that their body is the record\'s value ([evidence] body = "value")'
    return None if trial_context.bodies_compared else "effects: no body of theirs could be compared with what was sent"


def _absorbed(trial_context: TrialContext, seen: Seen) -> bool:
    """Whether a table alone tells of the work, which may take what is done again without a trace."""
    return trial_context.settings.sink == "postgres" and not (seen.delivered or seen.processed)


def _judged_elsewhere(name: str, trial_context: TrialContext, seen: Seen) -> str | None:
    """Returns why an anomaly cannot be seen of this consumer, and need not be: another one decides what is claimed."""
    if name not in ELSEWHERE or seen.delivered or seen.processed or not trial_context.incarnations:
        return None  # where no member was started here (an audit), nothing of theirs was heard
    by_commits = trial_context.settings.silent and trial_context.settings.in_offsets_log
    decided = by_commits and name in BY_COMMITS
    decided |= name != "false-lag" and _by_effects(trial_context, seen) is None
    return f"{NO_EVENTS}: {ELSEWHERE[name]}" if decided else None


def _records(trial_context: TrialContext, seen: Seen) -> str | None:
    if trial_context.control_read != "complete":
        return f"the control read of the topic is {trial_context.control_read or 'missing'}"
    return None if seen.records else "there are no records"


def _handled(trial_context: TrialContext, seen: Seen) -> str | None:
    settings = trial_context.settings
    if settings.sink_is_read and (unread := _witness(trial_context, "sink")):
        return unread
    declared = settings.events not in (None, "none") or settings.has_sink
    if not declared and settings.events is not None:
        return NO_SINK
    return None if declared or seen.processed or seen.effects else NOTHING_TELLS


def _claims_effects(trial_context: TrialContext) -> bool:
    """What reaches the outside world, and under which id, is missed only where a claim is about it."""
    return trial_context.settings.delivery == "exactly-once" or trial_context.settings.sink not in (None, "none")


def _sends(trial_context: TrialContext, seen: Seen) -> str | None:
    return None if trial_context.sends else "no send of the workload was recorded"


def _ids(trial_context: TrialContext, seen: Seen) -> str | None:
    told = trial_context.ids_told or trial_context.sink_seen
    return None if told else "the consumer names no record ids, and no effect of it was seen"


def _effects(trial_context: TrialContext, seen: Seen) -> str | None:
    if trial_context.settings.sink_is_read and (unread := _witness(trial_context, "sink")):
        return unread
    return None if trial_context.sink_seen else "no effect of the consumer was seen"


def _own_word(trial_context: TrialContext, seen: Seen) -> str | None:
    if trial_context.settings.events == "none":
        return NO_EVENTS
    return None if seen.delivered or seen.processed else "no record was delivered by the consumer's own word"


def _by_effects(trial_context: TrialContext, seen: Seen) -> str | None:
    """Why effects do not show the work; None where they do: the sink was read whole, and heard of something."""
    if not trial_context.incarnations:
        return NO_EVENTS
    if trial_context.settings.events not in (None, "none") and trial_context.settings.sink in (None, "none"):
        return "no record was delivered by the consumer's own word"
    if trial_context.settings.silent:
        return NO_SINK
    return _effects(trial_context, seen) or (None if seen.effects else "no effect was of a record of the control read")


def _work(trial_context: TrialContext, seen: Seen) -> str | None:
    """The members' lines, else the effects."""
    if seen.delivered or seen.processed:
        return None
    return _by_effects(trial_context, seen)


def _moves(trial_context: TrialContext, seen: Seen) -> str | None:
    """What was handled; of a consumer that shows nothing of it, its commits, which the offsets log tells."""
    if trial_context.incarnations and trial_context.settings.silent and trial_context.settings.in_offsets_log:
        return None
    return _handled(trial_context, seen)


def _ownership_epochs(trial_context: TrialContext, seen: Seen) -> str | None:
    """Members that worked had their partitions by their own word, or by the request log."""
    by_answers = {one.member for one in trial_context.group_answers if one.assigned}
    by_fetches = {trial_context.lanes[lane] for lane in trial_context.fetching if lane in trial_context.lanes}
    known = by_answers | by_fetches if _requests(trial_context, seen) is None else set()
    unknown = {
        incarnation.member
        for incarnation in trial_context.incarnations
        if incarnation.works and not incarnation.assigns
    } - known
    if not unknown:
        return None
    names = ", ".join(sorted(trial_context.members[member] for member in unknown))
    return f"nobody knows which partitions {names} had: no assigned line, and no assignment in the request log"


def _handler_starts(trial_context: TrialContext, seen: Seen) -> str | None:
    """Every member that says when a handler ended says when one began, and some handlers ended."""
    ends_only = {
        incarnation.member
        for incarnation in trial_context.incarnations
        if incarnation.completes and not incarnation.delivers
    }
    if ends_only:
        names = ", ".join(sorted(trial_context.members[member] for member in ends_only))
        return f"nobody knows when handlers of {names} began: no delivered line"
    if trial_context.incarnations and not any(incarnation.completes for incarnation in trial_context.incarnations):
        return "nobody knows when handlers ended: no processed line"
    return None


def _commit_times(trial_context: TrialContext, seen: Seen) -> str | None:
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
    return f"nobody knows when {names} handled what was committed: buffered lines without time_ms or commit_requested"


def _callbacks(trial_context: TrialContext, seen: Seen) -> str | None:
    workers = [incarnation for incarnation in trial_context.incarnations if incarnation.works]
    told = not workers or any(incarnation.assigns for incarnation in workers)
    return None if told else "no member tells of rebalance callbacks"


def _offsets_log(trial_context: TrialContext, seen: Seen) -> str | None:
    return _witness(trial_context, "offsets")


def _requests(trial_context: TrialContext, seen: Seen) -> str | None:
    brokers = [name for name in trial_context.counts if name.startswith("requests-")]
    if not brokers:
        return "there is no request log"
    return next((because for name in brokers if (because := _witness(trial_context, name))), None)


def _log_ends(trial_context: TrialContext, seen: Seen) -> str | None:
    return _witness(trial_context, "observer")


def _snapshot(trial_context: TrialContext, seen: Seen) -> str | None:
    return None if trial_context.snapshot_ns is not None else "the trial did not reach its snapshot"


def _processes(trial_context: TrialContext, seen: Seen) -> str | None:
    return None if trial_context.incarnations else "no member's process was started"


def _exits(trial_context: TrialContext, seen: Seen) -> str | None:
    exits = [incarnation for incarnation in trial_context.incarnations if incarnation.exited_seq is not None]
    told = all(incarnation.asked is not None for incarnation in exits)
    return None if told else "an exit does not say whether the harness had asked for it: by an earlier version"


def _memory_limit(trial_context: TrialContext, seen: Seen) -> str | None:
    return "no limit of memory is claimed" if trial_context.settings.memory_max_bytes is None else None


def _samples(trial_context: TrialContext, seen: Seen) -> str | None:
    return None if trial_context.peaks else "nobody sampled the members' memory"


def _oom_counter(trial_context: TrialContext, seen: Seen) -> str | None:
    return None if trial_context.oom_read else "the kernel's out-of-memory killer was not counted"


def _group_log(trial_context: TrialContext, seen: Seen) -> str | None:
    none = None if trial_context.epochs else "the offsets log holds no generation or epoch of the group"
    return _witness(trial_context, "offsets") or none


def _aborted_records(trial_context: TrialContext, seen: Seen) -> str | None:
    none = "no record of the topic was taken back: nobody wrote to it in transactions and aborted one"
    return None if trial_context.aborted_records else none


def _outputs(trial_context: TrialContext, seen: Seen) -> str | None:
    none = (
        None if trial_context.outputs_ended else "no transaction was seen to end in a topic that the consumer writes to"
    )
    return none or _witness(trial_context, "transactions")


def _witness(trial_context: TrialContext, name: str) -> str | None:
    state = trial_context.witnesses.get(name)
    if name not in trial_context.counts:
        return f"the witness {name} wrote nothing"
    return None if state == "complete" else f"the witness {name} is {state or 'not known to be complete'}"


NEEDS: Mapping[str, Callable[[TrialContext, Seen], str | None]] = {
    "records": _records,
    "handled": _handled,
    "own word": _own_word,
    "work": _work,
    "moves": _moves,
    "ownership epochs": _ownership_epochs,
    "handler starts": _handler_starts,
    "commit times": _commit_times,
    "callbacks": _callbacks,
    "sends": _sends,
    "ids": _ids,
    "effects": _effects,
    "offsets log": _offsets_log,
    "requests": _requests,
    "log ends": _log_ends,
    "snapshot": _snapshot,
    "processes": _processes,
    "exits": _exits,
    "memory limit": _memory_limit,
    "samples": _samples,
    "oom counter": _oom_counter,
    "group log": _group_log,
    "aborted records": _aborted_records,
    "outputs": _outputs,
}
MAY_LACK = (
    "callbacks",
    "memory limit",
    "exits",
    "oom counter",
    "aborted records",
)  # where these are not there, no claim stays open for it
PARTLY = ("ownership epochs", "handler starts", "commit times")  # what of them is there convicts, and cannot acquit
