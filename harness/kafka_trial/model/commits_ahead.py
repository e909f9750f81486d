"""How `CommitsAhead` is made; what its columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.commits import reporter_killed
from kafka_trial.model.commits_log import (
    UNKNOWN,
    commits_in_effect,
    first_covering,
    from_outside,
    requested,
    requested_at,
)
from kafka_trial.model.handlers import completions, first_done, first_handled_of_records
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    between,
    counts,
    exactly,
    first_of,
    greatest_in,
    joined,
    last_true,
    ordered,
    per_group,
    picked,
    previous_in,
    value_at,
)
from kafka_trial.model.ownership_epochs import SAID, deliveries, member_lines
from kafka_trial.model.partition import CommitsAhead
from kafka_trial.model.rows import IN_TRANSACTION, Kind
from kafka_trial.model.table import Table, is_among, stacked, table
from kafka_trial.model.truncations import overwritten
from kafka_trial.model.undecided import Undecided, is_certain, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.trial_context import TrialContext


READ_WITHIN_NS = 2_000_000_000  # a topic handed on through is read again, unless its brokers do not answer


@index
def commits_ahead(batch: Batch) -> CommitsAhead:
    """Returns the positions that were committed before every record below them had been handled."""
    rising = _rising(batch)
    both = stacked(_ahead_by_lines(batch), _ahead_by_log(batch, rising))
    both = both.take(ordered(both["slice"], both["committed_offset"], both["by_log"], both["commit_seq"]))
    ahead = both.take(first_of(both["slice"], both["committed_offset"]))
    doubtful = rising.take(~is_certain(rising["why"]))
    doubtful = doubtful.take(~is_among(doubtful, ahead, "slice", "committed_offset"))
    found = stacked(ahead, _passing(batch, doubtful))
    return CommitsAhead(found.columns).having_when_asked(
        shown_by=lambda: np.array(["own word", "offsets log"], dtype=object)[found["by_log"].astype(np.int64)]
    )


def _ahead_by_lines(batch: Batch) -> Table:
    """Returns the commits that a member asked for before it had completed what it was delivered below them.

    Looked at is what the same ownership epoch was delivered from its previous own commit on. A record that was
    completed in the same file before the commit is handled, though it may have been delivered again since; so is one
    whose effect the sink had seen by then, or that had been handed on.
    """
    commits = _own_commits(batch)
    previous = previous_in(commits["ownership_epoch"])
    low = picked(commits["committed_offset"], previous, NONE)
    delivered = _delivered_offsets(batch)
    first, end = between(
        delivered["ownership_epoch"], delivered["offset"], commits["ownership_epoch"], low, commits["committed_offset"]
    )
    known_seq = np.minimum(delivered["done_seq"], _effect_seq(batch, delivered))
    latest = greatest_in(known_seq, first, end)
    ahead = (latest >= 0) & (picked(known_seq, latest, NONE) > commits["seq"])
    commits, record = commits.take(ahead), delivered.take(latest[ahead])
    return table(
        slice=commits["slice"],
        committed_offset=commits["committed_offset"],
        offset=record["offset"],
        by_log=np.zeros(len(commits), np.bool_),
        **from_outside(np.full(len(commits), UNKNOWN)),
        commit_source=commits["source"].astype(np.int64),
        commit_seq=commits["seq"],
        record_source=record["source"].astype(np.int64),
        record_seq=record["seq"],
        done_source=np.where(record["done_seq"] == NEVER, -1, record["source"]).astype(np.int64),
        done_seq=record["done_seq"],
        why=np.full(len(commits), None, dtype=object),
    )


def _effect_seq(batch: Batch, delivered: Table) -> Ints:
    """Returns before which line of its file each delivered record had its first effect, or was handed on; NEVER:
    neither."""
    effects, handed_on = batch.of(Kind.EFFECT), batch.of(Kind.HANDED_ON)
    effects = stacked(
        effects.only("slice", "offset").having(written_ns=batch.written_ns(effects["source"], effects["time_ns"])),
        handed_on.only("slice", "offset").having(written_ns=handed_on["absent_ns"]),
    )
    effects = effects.take(ordered(effects["slice"], effects["offset"], effects["written_ns"]))
    effects = effects.take(first_of(effects["slice"], effects["offset"]))
    row = exactly(effects["slice"], effects["offset"], delivered["slice"], delivered["offset"])
    effect_ns = picked(effects["written_ns"], row, NEVER)
    lines = member_lines(batch).take(member_lines(batch)["told_by"] == SAID).sorted_by("file", "time_ns")
    following = at_or_after(lines["file"], lines["time_ns"], delivered["file"], effect_ns)
    return np.where(effect_ns == NEVER, NEVER, picked(lines["seq"], following, NEVER - 1))


def _own_commits(batch: Batch) -> Table:
    """Returns the commits that members asked for by their own word, by ownership epoch.

    An answer counts where no request of that position stands before it in the file: it was asked for earlier still.
    None at all where progress is in transactions, for positions may be handed in before the outputs.
    """
    own = member_lines(batch)
    commits = own.take(np.isin(own["kind"], (Kind.COMMIT_INVOKE, Kind.COMMIT_OK)))
    commits = commits.take(ordered(commits["file"], commits["committed_offset"], commits["seq"]))
    asked = commits["kind"] == Kind.COMMIT_INVOKE
    unasked = ~asked & (last_true(joined(commits["file"], commits["committed_offset"]), asked) < 0)
    inside = batch.trial_context.settings.progress == "transaction"
    commits = commits.take((asked | unasked) & (commits["ownership_epoch"] >= 0) & np.bool_(not inside))
    return commits.sorted_by("ownership_epoch", "seq")


def _delivered_offsets(batch: Batch) -> Table:
    """Returns ownership epoch, offset, source, seq (its first delivery) and done_seq (first completion in the file, or
    a bad line that names the record and may have been one)."""
    given = deliveries(batch)
    held = given.take((given["ownership_epoch"] >= 0) & (given["told_by"] == SAID))
    held = held.take(ordered(held["ownership_epoch"], held["offset"]))
    first = held.take(first_of(held["ownership_epoch"], held["offset"]))
    done = batch.of(Kind.PROCESSED, Kind.UNREADABLE)
    size = len(batch.trial_context.sources) + 1
    file, wanted = (rows["slice"] * size + rows["source"] for rows in (done, first))
    order = ordered(file, done["offset"], done["seq"])
    done, file = done.take(order), file[order]
    row = at_or_after(file, done["offset"], wanted, first["offset"])
    row = np.where(picked(done["offset"], row, NONE) == first["offset"], row, -1)
    return first.only("slice", "file", "ownership_epoch", "offset", "source", "seq").having(
        done_seq=picked(done["seq"], row, NEVER)
    )


def _ahead_by_log(batch: Batch, rising: Table) -> Table:
    """Returns the durable commits that passed a record which was handled later than they were asked for, or never."""
    return _passing(batch, rising.take(rising["ahead"]))


def _passing(batch: Batch, commits: Table) -> Table:
    """Returns rising commits, each with the record it passed that was handled last."""
    records, row = batch.records, commits["latest"]
    done = picked(first_handled_of_records(batch).row, row, -1)
    return table(
        slice=commits["slice"],
        committed_offset=commits["committed_offset"],
        offset=picked(records["offset"], row, NONE),
        by_log=np.ones(len(commits), np.bool_),
        **from_outside(commits["committer"]),
        commit_source=commits["source"].astype(np.int64),
        commit_seq=commits["seq"],
        record_source=picked(records["source"], row, -1),
        record_seq=picked(records["seq"], row, -1),
        done_source=picked(first_done(batch)["source"], done, -1),
        done_seq=picked(first_done(batch)["seq"], done, -1),
        why=commits["why"],
    )


def _rising(batch: Batch) -> Table:
    """Returns the commits that raised the position, each with the record it passed that was handled last.

    One that was handed on counts as handled. Columns besides: `latest` (the record, -1: none), `ahead` and `why`. With
    a commit in a transaction only what was never handled counts: outputs take effect with it, though one log may be
    told of that before another.
    """
    log = commits_in_effect(batch)
    before = picked(log["committed_offset"], previous_in(log["stretch"]), NONE)
    numbers = np.flatnonzero(log["committed_offset"] > before)
    rising = log.take(numbers).having(before=before[numbers])
    anew = overwritten(batch)
    by_word, by_log = (
        _passed_last(batch, rising, np.where(anew, NONE, times))
        for times in (_told_ns(batch), first_handled_of_records(batch).said_ns)
    )
    before_it, late_ns = requested(batch, rising)
    latest, handled_ns = (np.where(before_it, told, logged) for told, logged in zip(by_word, by_log, strict=True))
    asked_ns = requested_at(batch, rising)
    inside = rising["in_transaction"] == IN_TRANSACTION
    late = (latest >= 0) & (handled_ns != NEVER) & ~inside & (handled_ns > asked_ns)
    never = (latest >= 0) & (handled_ns == NEVER)
    uncertain = never & reporter_killed(batch)[numbers]
    read_late = late & (late_ns != NEVER) & (handled_ns <= late_ns)
    meanwhile = ~late & ~never & ~inside & (_handed_on_until_ns(batch, rising) > asked_ns + READ_WITHIN_NS)
    why = undecided_because(
        (Undecided.UNCERTAIN_AFTER_KILL, uncertain),
        (Undecided.READ_LATE, read_late),
        (Undecided.HANDED_ON_MEANWHILE, meanwhile),
    )
    return rising.having(latest=latest, ahead=(never & ~uncertain) | (late & ~read_late), why=why)


def _handed_on_until_ns(batch: Batch, rising: Table) -> Ints:
    """Returns by when all records that each commit passed had been handed on for certain; NONE where none was."""
    records = batch.records
    until_ns = picked(first_done(batch)["handed_on_by_ns"], first_handled_of_records(batch).row, NONE)
    passed = between(*_places(records), rising["slice"], rising["before"], rising["committed_offset"])
    return picked(until_ns, greatest_in(until_ns, *passed), NONE)


def nameless_hand_ons(trial_context: TrialContext) -> tuple[int, str]:
    """Returns how many records in the group's own topics bear no id of one of the trial's, and what that leaves open:
    each of them may be any record, but only one."""
    through = [one for one in trial_context.through if one.nameless]
    count = sum(one.nameless for one in through)
    return count, Undecided.HANDED_ON_NAMELESS.format(topics=", ".join(one.topic for one in through), count=count)


def records_ahead(batch: Batch) -> Table:
    """Returns how many records of each slice were committed past before they were handled, or handed on; in a
    transaction those that never were."""
    log, records = commits_in_effect(batch), batch.records
    covering = first_covering(batch, *_places(records))
    said_ns = first_handled_of_records(batch).said_ns
    inside = picked(log["in_transaction"], covering, 0) == IN_TRANSACTION
    asked_ns = picked(requested_at(batch, log), covering, NEVER)
    ahead = (covering >= 0) & ((said_ns == NEVER) | (~inside & (said_ns > asked_ns)))
    return table(slice=batch.slices, ahead=counts(records["slice"][ahead], batch.size))


def _passed_last(batch: Batch, rising: Table, handled_ns: Ints) -> tuple[Ints, Ints]:
    """Returns the record that was handled last of those each commit passed (-1: none), and when it was.

    Of what lies below an earlier position, records that a killed member may have handled unheard are not held against
    those who rise over them later.
    """
    records = batch.records
    covered_by = first_covering(batch, records["slice"], records["offset"])
    uncertain = (handled_ns == NEVER) & value_at(reporter_killed(batch), covered_by, False)
    low = np.minimum(rising["peak"], rising["committed_offset"])
    above = greatest_in(handled_ns, *between(*_places(records), rising["slice"], low, rising["committed_offset"]))
    excused_ns = np.where(uncertain, NONE, handled_ns)
    below = greatest_in(excused_ns, *between(*_places(records), rising["slice"], rising["before"], low))
    above_ns, below_ns = picked(handled_ns, above, NONE), picked(excused_ns, below, NONE)
    higher = above_ns >= below_ns
    return np.where(higher, above, below), np.where(higher, above_ns, below_ns)


def _places(records: Table) -> tuple[Ints, Ints]:
    return records["slice"], records["offset"]


def _told_ns(batch: Batch) -> Ints:
    """Returns when each record may have been handled first, or said to be where its output is read out of a topic: that
    may be read late, and its member has told before. Not so where its broker says when it appended the output, unless
    that is in a transaction. NEVER where it was never handled, whatever was said."""
    settings = batch.trial_context.settings
    if settings.has_sink and not settings.sink_is_read:
        return first_handled_of_records(batch).said_ns  # the sink writes down at once: no line stands for its effect
    first, records, done = first_handled_of_records(batch), batch.records, completions(batch)
    size = len(records)
    if settings.progress != "transaction":
        done = done.take(~_appended(batch, done))
    row = exactly(*_places(records), done["slice"], done["offset"])
    written_ns = batch.written_ns(done["source"], done["time_ns"])
    told = per_group(row[row >= 0], written_ns[row >= 0], size, how="min", start=NEVER)
    return np.where(first.said_ns == NEVER, NEVER, np.minimum(first.said_ns, told))


def _appended(batch: Batch, done: Table) -> Bools:
    """Returns of which rows the record has an output whose broker says when it appended it."""
    outputs = batch.of(Kind.EFFECT)
    dated = (outputs["append_wall_ns"] != NONE) & bool(batch.trial_context.clocks)  # else nobody knows when that was
    outputs = outputs.take(dated).sorted_by("slice", "offset")
    found: Bools = exactly(*_places(outputs), *_places(done)) >= 0
    return found
