"""Evidence: what each invariant needs to have been seen, and why it is not judged where it was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafka_trial.invariants.circumstances import Circumstances
from kafka_trial.invariants.invariant import Invariant

NO_EVENTS = "the consumer prints no events"
NOTHING_TELLS = "nothing tells what was handled"


@dataclass(frozen=True)
class Seen:
    """How many rows of each sort of evidence the slices hold, all together."""

    records: int = 0
    delivered: int = 0
    processed: int = 0
    effects: int = 0
    committed: int = 0


@dataclass(frozen=True)
class NotJudged:
    """Why an invariant was not judged; `applies` is False where its rule is not about this consumer."""

    because: str
    applies: bool = True


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
    for need in sorted(invariant.needs):
        because = NEEDS[need](circumstances, seen)
        if because is not None and need in ("ids", "effects"):
            return NotJudged(because, applies=_claims_effects(circumstances))
        if because is not None and (in_brokers or need not in ("offsets log", "requests")):
            return NotJudged(because, applies=need not in MAY_LACK)
    return None


def partly_missing(invariant: Invariant, circumstances: Circumstances) -> str | None:
    """Returns which part of what an invariant looks for cannot be judged, and why; None where all of it is."""
    if invariant.name != "corrupt" or not circumstances.sink_seen:
        return None
    if circumstances.settings.body != "value":
        return 'effects: nothing declares that their body is the record\'s value ([evidence] body = "value")'
    return None if circumstances.bodies_compared else "effects: no body of theirs could be compared with what was sent"


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
        return f"{NOTHING_TELLS}: {NO_EVENTS} and has no sink"
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
    "memory limit",
    "exits",
    "oom counter",
    "aborted records",
)  # where these are not there, no claim stays open for it
