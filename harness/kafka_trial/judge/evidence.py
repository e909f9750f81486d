"""Evidence: what each invariant needs to have been seen, and why it is not judged where it was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafka_trial.invariants.circumstances import Circumstances
from kafka_trial.invariants.invariant import Invariant

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


def missing_evidence(invariant: Invariant, circumstances: Circumstances, seen: Seen) -> NotJudged | None:
    """Returns why an invariant cannot be judged; None where all it needs was seen."""
    progress = circumstances.settings.progress
    if invariant.outside_transactions and progress == "transaction":
        return NotJudged("its progress is in its transactions, whose epochs are not looked at", applies=False)
    if invariant.progress_in_kafka and not circumstances.settings.in_offsets_log:
        return NotJudged(f"its progress is not in Kafka (progress: {progress})", applies=False)
    if invariant.progress_in_transaction and progress != "transaction":
        return NotJudged(f"its progress is not in its transactions (progress: {progress})", applies=False)
    in_brokers = circumstances.settings.in_offsets_log
    if (instead := _judged_elsewhere(invariant.name, circumstances, seen)) is not None:
        return NotJudged(instead, applies=False)
    for need in sorted(invariant.needs):
        because = NEEDS[need](circumstances, seen)
        if because is not None and need in ("ids", "effects"):
            return NotJudged(because, applies=_claims_effects(circumstances))
        if because is not None and (in_brokers or need not in ("offsets log", "requests")):
            return NotJudged(because, applies=need not in MAY_LACK, partly=need in PARTLY)
    return None


def partly_missing(invariant: Invariant, circumstances: Circumstances) -> str | None:
    """Returns which part of what an invariant looks for cannot be judged, and why; None where all of it is."""
    if invariant.name != "corrupt" or not circumstances.sink_seen:
        return None
    if circumstances.settings.body != "value":
        return 'effects: nothing declares that their body is the record\'s value ([evidence] body = "value")'
    return None if circumstances.bodies_compared else "effects: no body of theirs could be compared with what was sent"


def _judged_elsewhere(name: str, circumstances: Circumstances, seen: Seen) -> str | None:
    """Returns why an anomaly cannot be seen of this consumer, and need not be: another one decides what is claimed."""
    if name not in ELSEWHERE or seen.delivered or seen.processed or not circumstances.lives:
        return None  # where no member was started here (an audit), nothing of theirs was heard
    by_commits = circumstances.settings.silent and circumstances.settings.in_offsets_log
    decided = by_commits and name in BY_COMMITS
    decided |= name != "false-lag" and _by_effects(circumstances, seen) is None
    return f"{NO_EVENTS}: {ELSEWHERE[name]}" if decided else None


def _records(circumstances: Circumstances, seen: Seen) -> str | None:
    if circumstances.control_read != "complete":
        return f"the control read of the topic is {circumstances.control_read or 'missing'}"
    return None if seen.records else "there are no records"


def _handled(circumstances: Circumstances, seen: Seen) -> str | None:
    settings = circumstances.settings
    if settings.sink_is_read and (unread := _witness(circumstances, "sink")):
        return unread
    declared = settings.events not in (None, "none") or settings.has_sink
    if not declared and settings.events is not None:
        return NO_SINK
    return None if declared or seen.processed or seen.effects else NOTHING_TELLS


def _claims_effects(circumstances: Circumstances) -> bool:
    """What reaches the outside world, and under which id, is missed only where a claim is about it."""
    return circumstances.settings.delivery == "exactly-once" or circumstances.settings.sink not in (None, "none")


def _sends(circumstances: Circumstances, seen: Seen) -> str | None:
    return None if circumstances.sends else "no send of the workload was recorded"


def _ids(circumstances: Circumstances, seen: Seen) -> str | None:
    told = circumstances.ids_told or circumstances.sink_seen
    return None if told else "the consumer names no record ids, and no effect of it was seen"


def _effects(circumstances: Circumstances, seen: Seen) -> str | None:
    if circumstances.settings.sink_is_read and (unread := _witness(circumstances, "sink")):
        return unread
    return None if circumstances.sink_seen else "no effect of the consumer was seen"


def _own_word(circumstances: Circumstances, seen: Seen) -> str | None:
    if circumstances.settings.events == "none":
        return NO_EVENTS
    return None if seen.delivered or seen.processed else "no record was delivered by the consumer's own word"


def _by_effects(circumstances: Circumstances, seen: Seen) -> str | None:
    """Why effects do not show the work; None where they do: the sink was read whole, and heard of something."""
    if not circumstances.lives:
        return NO_EVENTS
    if circumstances.settings.events not in (None, "none") and circumstances.settings.sink in (None, "none"):
        return "no record was delivered by the consumer's own word"
    if circumstances.settings.silent:
        return NO_SINK
    return _effects(circumstances, seen) or (None if seen.effects else "no effect was of a record of the control read")


def _work(circumstances: Circumstances, seen: Seen) -> str | None:
    """The members' lines, else the effects."""
    if seen.delivered or seen.processed:
        return None
    return _by_effects(circumstances, seen)


def _moves(circumstances: Circumstances, seen: Seen) -> str | None:
    """What was handled; of a consumer that shows nothing of it, its commits, which the offsets log tells."""
    if circumstances.lives and circumstances.settings.silent and circumstances.settings.in_offsets_log:
        return None
    return _handled(circumstances, seen)


def _possessions(circumstances: Circumstances, seen: Seen) -> str | None:
    """Members that worked had their partitions by their own word, or by the request log."""
    by_answers = {one.member for one in circumstances.group_answers if one.assigned}
    by_fetches = {circumstances.lanes[lane] for lane in circumstances.fetching if lane in circumstances.lanes}
    known = by_answers | by_fetches if _requests(circumstances, seen) is None else set()
    unknown = {life.member for life in circumstances.lives if life.works and not life.assigns} - known
    if not unknown:
        return None
    names = ", ".join(sorted(circumstances.members[member] for member in unknown))
    return f"nobody knows which partitions {names} had: no assigned line, and no assignment in the request log"


def _handler_starts(circumstances: Circumstances, seen: Seen) -> str | None:
    """Every member that says when a handler ended says when one began, and some handlers ended."""
    ends_only = {life.member for life in circumstances.lives if life.completes and not life.delivers}
    if ends_only:
        names = ", ".join(sorted(circumstances.members[member] for member in ends_only))
        return f"nobody knows when handlers of {names} began: no delivered line"
    if circumstances.lives and not any(life.completes for life in circumstances.lives):
        return "nobody knows when handlers ended: no processed line"
    return None


def _commit_times(circumstances: Circumstances, seen: Seen) -> str | None:
    """What was handled before it was committed past can be told: by lines that say when they were written, or in which
    order with the requests for commits; by a sink; or it takes effect with the commit, in a transaction."""
    settings = circumstances.settings
    if settings.stdout != "buffered" or settings.has_sink or settings.progress != "kafka" or not seen.committed:
        return None
    untimed = {life.member for life in circumstances.lives if life.works and life.source not in circumstances.timed}
    untimed -= {life.member for life in circumstances.lives if life.invokes}
    vague = {circumstances.members[member] for member in untimed}
    vague &= seen.committing or vague  # where nobody knows who commits, any of them may
    if not vague:
        return None
    names = ", ".join(sorted(vague))
    return f"nobody knows when {names} handled what was committed: buffered lines without time_ms or commit_requested"


def _callbacks(circumstances: Circumstances, seen: Seen) -> str | None:
    workers = [life for life in circumstances.lives if life.works]
    told = not workers or any(life.assigns for life in workers)
    return None if told else "no member tells of rebalance callbacks"


def _offsets_log(circumstances: Circumstances, seen: Seen) -> str | None:
    return _witness(circumstances, "offsets")


def _requests(circumstances: Circumstances, seen: Seen) -> str | None:
    brokers = [name for name in circumstances.counts if name.startswith("requests-")]
    if not brokers:
        return "there is no request log"
    return next((because for name in brokers if (because := _witness(circumstances, name))), None)


def _log_ends(circumstances: Circumstances, seen: Seen) -> str | None:
    return _witness(circumstances, "observer")


def _snapshot(circumstances: Circumstances, seen: Seen) -> str | None:
    return None if circumstances.snapshot_ns is not None else "the trial did not reach its snapshot"


def _processes(circumstances: Circumstances, seen: Seen) -> str | None:
    return None if circumstances.lives else "no member's process was started"


def _exits(circumstances: Circumstances, seen: Seen) -> str | None:
    exits = [life for life in circumstances.lives if life.exited_seq is not None]
    told = all(life.asked is not None for life in exits)
    return None if told else "an exit does not say whether the harness had asked for it: by an earlier version"


def _memory_limit(circumstances: Circumstances, seen: Seen) -> str | None:
    return "no limit of memory is claimed" if circumstances.settings.memory_max_bytes is None else None


def _samples(circumstances: Circumstances, seen: Seen) -> str | None:
    return None if circumstances.peaks else "nobody sampled the members' memory"


def _oom_counter(circumstances: Circumstances, seen: Seen) -> str | None:
    return None if circumstances.oom_read else "the kernel's out-of-memory killer was not counted"


def _group_log(circumstances: Circumstances, seen: Seen) -> str | None:
    none = None if circumstances.epochs else "the offsets log holds no generation or epoch of the group"
    return _witness(circumstances, "offsets") or none


def _aborted_records(circumstances: Circumstances, seen: Seen) -> str | None:
    none = "no record of the topic was taken back: nobody wrote to it in transactions and aborted one"
    return None if circumstances.aborted_records else none


def _outputs(circumstances: Circumstances, seen: Seen) -> str | None:
    none = (
        None if circumstances.outputs_ended else "no transaction was seen to end in a topic that the consumer writes to"
    )
    return none or _witness(circumstances, "transactions")


def _witness(circumstances: Circumstances, name: str) -> str | None:
    state = circumstances.witnesses.get(name)
    if name not in circumstances.counts:
        return f"the witness {name} wrote nothing"
    return None if state == "complete" else f"the witness {name} is {state or 'not known to be complete'}"


NEEDS: Mapping[str, Callable[[Circumstances, Seen], str | None]] = {
    "records": _records,
    "handled": _handled,
    "own word": _own_word,
    "work": _work,
    "moves": _moves,
    "possessions": _possessions,
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
PARTLY = ("possessions", "handler starts", "commit times")  # what of them is there convicts, and cannot acquit
