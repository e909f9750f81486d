"""False assignments: which `assigned` lines a broker stands behind, and which nobody does.

A consumer that subscribes is given its partitions: an answer lists them (SyncGroup, ConsumerGroupHeartbeat), and a
group record of the offsets log does. Each `assigned` line needs such a word of its own, of its incarnation and later
than the word behind the line before it. Where both logs are silent, a line of a partition that the member has already
is *repeated*: the ownership epoch goes on. Any other is *false*: it opens none. One word is enough, and what may be
late or may be another's is taken for the line: a wrong conviction would take an ownership epoch away.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.client_attribution import callbacks
from kafka_trial.model.clients import file_of, incarnation_of, known_clients
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import (
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    exactly,
    number_in,
    ordered,
    picked,
    previous_in,
    starts_of,
)
from kafka_trial.model.ownership_log import logged_assignments
from kafka_trial.model.request_logs import COMMITS, FENCING, complete_until_ns, overlapping
from kafka_trial.model.rows import Kind, Protocol
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import GroupAnswer


@index
def uncorroborated(batch: Batch) -> Table:
    """Returns the `assigned` lines that no broker stands behind: slice, source, client, seq, time_ns, `repeated`.

    Sorted by (slice, source, seq). Not `repeated`: false. `repeated`: the member had the partition, and has it still.
    """
    lines = callbacks(batch)
    asks = lines["kind"] == Kind.ASSIGNED
    judged = asks & evidence_complete(batch, lines["source"], lines["time_ns"])
    if not judged.any():
        return _told(lines.take(judged), np.zeros(0, np.bool_))
    words = [_by_answers(batch, lines), _by_records(batch, lines)]
    without, held = _in_turn(lines, judged, words)
    return _told(lines.take(without), held[without])


def is_uncorroborated(batch: Batch, rows: Table) -> Bools:
    """Returns which rows (slice, source, seq, kind) are `assigned` lines that no broker stands behind."""
    found, size = uncorroborated(batch), len(batch.trial_context.sources) + 1
    files, of_files = (one["slice"] * size + one["source"] for one in (found, rows))
    there: Bools = exactly(files, found["seq"], of_files, rows["seq"]) >= 0
    return there & (rows["kind"] == Kind.ASSIGNED)


def false_assigned(batch: Batch) -> Table:
    """Returns the `uncorroborated` lines that open no ownership epoch, and claim one."""
    return uncorroborated(batch).take(~uncorroborated(batch)["repeated"])


def evidence_complete(batch: Batch, sources: Ints, time_ns: Ints) -> Bools:
    """Returns of which lines the request log knows all that their member had been given.

    All request logs were read to the end and no broker had been stopped (see `request_logs.py`); the
    incarnation was alone on a lane of its own and was answered an assignment there at some time, be it an empty one.
    Whoever assigns partitions to itself is given none.
    """
    about, incarnation = batch.trial_context, incarnation_of(batch, sources)
    if "none" in (about.protocol, about.settings.protocol):
        return np.zeros(len(sources), np.bool_)
    alone = np.append(~overlapping(batch), False)[incarnation]
    answers = _settled(batch)
    answered = np.isin(sources, answers["source"][answers["assigns"]])
    known: Bools = alone & answered & (time_ns < complete_until_ns(about))
    return known


def _told(lines: Table, repeated: Bools) -> Table:
    found = lines.only("slice", "source", "client", "seq", "time_ns").having(repeated=repeated)
    return found.sorted_by("slice", "source", "seq")


def _in_turn(lines: Table, judged: Bools, words: list[Table]) -> tuple[Bools, Bools]:
    """Returns which judged lines are without a word of their own, and where the partition was held; all files step by
    step, each a callback at a time.

    Of each sort of words a line has: `by_then`, how many of its file and slice there were, `before`: how many of them
    surely were before the line was written, and so stand behind earlier ones; `void`: how many are out of force.
    """
    file = lines["file"]
    number = np.cumsum(starts_of(file)) - 1
    turn = number_in(file)
    # By file: how many words stand behind its lines so far; and how many did when its latest ownership epoch began.
    used, first = (np.zeros((len(words), len(file)), np.int64) for _ in range(2))
    holds, without, held = (np.zeros(len(file), np.bool_) for _ in range(3))
    opens = lines["kind"] == Kind.ASSIGNED
    for step in range(int(turn.max(initial=-1)) + 1):  # callbacks of one file about one partition: some dozens at most
        here = np.flatnonzero(turn == step)
        at, opening = number[here], opens[here]
        by_then, before, void = (np.array([word[name][here] for word in words]) for name in _COUNTS)
        spent, begun = used[:, at], first[:, at]
        # What came after an ownership epoch was given up stands behind the next one, though a further line was taken
        # for it.
        spent = np.where(opening, spent, np.maximum(begun, np.minimum(spent, before)))
        spent = np.maximum(spent, void)
        believed = opening & ((by_then > spent).any(axis=0) | ~judged[here])
        after = np.maximum(np.maximum(spent, before), np.minimum(spent + 1, by_then))
        spent = np.where(believed, after, spent)
        used[:, at], first[:, at] = spent, np.where(believed & ~holds[at], spent, begun)
        without[here], held[here] = opening & ~believed, holds[at]
        holds[at] = opening & (holds[at] | believed)
    return without, held


_COUNTS = ("by_then", "before", "void")


# --- by answers ----------------------------------------------------------------------------------------------------


def _by_answers(batch: Batch, lines: Table) -> Table:
    """Returns the words of the request log for each line (see `_in_turn`): answers that list the partition.

    When a partition was revoked or lost, those before the last answer without it are out of force. An answer that gives
    the next one may come while the callback that lets go still runs, so those after it are not.
    """
    settled, listed = _settled(batch), _listing(batch)
    file, wanted = _files(batch, listed), _files(batch, lines)
    found = _counted(batch, file, listed["at_ns"], wanted, lines)
    # Of a line out of a buffer nobody knows what came before it.
    then_ns = np.where(batch.untimed(lines["source"]), NONE, batch.earliest(lines["time_ns"]))
    last = at_or_before(file, listed["at_ns"], wanted, then_ns)
    newest = at_or_before(settled["source"], settled["at_ns"], lines["source"], then_ns)
    lasts = picked(listed["answer"], last, NONE) == newest
    void = np.where(lasts, picked(listed["first"], last, 0), _upto(file, last))
    several = np.isin(
        batch.incarnations["member"], [batch.trial_context.lanes[lane] for lane in known_clients(batch).lanes]
    )
    apart = ~np.append(several, True)[incarnation_of(batch, lines["source"])]
    ends = lines["kind"] != Kind.ASSIGNED
    return found.having(void=np.where(ends & apart, void, 0))


def _settled(batch: Batch) -> Table:
    """Returns the answers after which a member has an assignment, or none any more: source (its file), at_ns, number
    (of the answer), `assigns`; sorted by the first two."""
    answers = batch.trial_context.group_answers
    ends = [one.member >= 0 and (one.assigned is not None or _expels(one)) for one in answers]
    chosen = [number for number, settles in enumerate(ends) if settles]
    wall_ns = np.array([NONE if (wall := answers[number].wall_ns) is None else wall for number in chosen], np.int64)
    at_ns = batch.monotonic(wall_ns, np.array([answers[number].time_ns for number in chosen], np.int64))
    found = table(
        source=file_of(batch, np.array([answers[number].member for number in chosen], np.int64), at_ns),
        at_ns=at_ns,
        number=np.array(chosen, np.int64),
        assigns=np.array([answers[number].assigned is not None for number in chosen], np.bool_),
    )
    return found.take(found["source"] >= 0).sorted_by("source", "at_ns", "number")


def _expels(answer: GroupAnswer) -> bool:
    """Tells whether an answer leaves its member without partitions: it left, or a request but a commit was fenced."""
    return answer.leaves or (answer.error in FENCING and answer.api not in COMMITS)


def _listing(batch: Batch) -> Table:
    """Returns each (answer, slice of this batch) that was given: slice, source, at_ns, answer (its place among the
    settled ones), `first`: how many of the same file and slice there were before its unbroken run; sorted."""
    settled, answers = _settled(batch), batch.trial_context.group_answers
    lists = [answers[number].assigned or () for number in settled["number"].tolist()]
    answer, place = batch.listed(lists)
    pairs = table(slice=place, source=settled["source"][answer], at_ns=settled["at_ns"][answer], answer=answer)
    pairs = pairs.take(ordered(_files(batch, pairs), pairs["answer"]))
    file = _files(batch, pairs)
    before = previous_in(file)
    fresh = (before < 0) | (picked(pairs["answer"], before, NONE) != pairs["answer"] - 1)
    begun = np.maximum.accumulate(np.where(fresh, np.arange(len(pairs)), 0)) if len(pairs) else before
    return pairs.having(first=number_in(file)[begun])


# --- by group records ----------------------------------------------------------------------------------------------


def _by_records(batch: Batch, lines: Table) -> Table:
    """Returns the words of the offsets log for each line (see `_in_turn`): records that give the member the partition.

    Those before the last record that gave it to others are out of force, where that surely came before the line.
    """
    assignment_records = logged_assignments(batch).take(
        logged_assignments(batch)["protocol"] != Protocol.CONSUMER_PENDING
    )
    assignment_records = assignment_records.having(
        at_ns=assignment_records["time_ns"],
        source=file_of(batch, assignment_records["member"], assignment_records["time_ns"]),
    )
    by_time = assignment_records.sorted_by("slice", "at_ns", "log_offset")
    own = assignment_records.take(assignment_records["source"] >= 0)
    own = own.take(ordered(_files(batch, own), own["at_ns"], own["log_offset"]))
    file, wanted = _files(batch, own), _files(batch, lines)
    found = _counted(batch, file, own["at_ns"], wanted, lines)
    written_ns = batch.written_ns(lines["source"], lines["time_ns"])
    last = at_or_before(by_time["slice"], by_time["at_ns"], lines["slice"], written_ns)
    others = (last >= 0) & (picked(by_time["source"], last, -1) != lines["source"])
    return found.having(void=np.where(others, found["before"], 0))


# --- of both -------------------------------------------------------------------------------------------------------


def _counted(batch: Batch, file: Ints, at_ns: Ints, wanted: Ints, lines: Table) -> Table:
    """Returns `by_then` and `before` of each line."""
    written_ns = batch.written_ns(lines["source"], lines["time_ns"])
    by_then = at_or_before(file, at_ns, wanted, at_latest(lines["time_ns"]))
    before = at_or_before(file, at_ns, wanted, written_ns)
    return table(by_then=_upto(file, by_then), before=_upto(file, before))


def _upto(file: Ints, row: Array) -> Ints:
    """Returns how many rows of its file there are up to and with each row; 0 for -1."""
    return picked(number_in(file) + 1, row, 0)


def _files(batch: Batch, rows: Table) -> Ints:
    return rows["slice"] * (len(batch.trial_context.sources) + 1) + rows["source"].astype(np.int64)
