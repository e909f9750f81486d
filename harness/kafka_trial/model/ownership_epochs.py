"""Ownership epochs: when a member held a partition, by its own word, else by the brokers'.

An ownership epoch opens when `assigned` lists the partition, and closes at the first of: `revoked` or `lost` listing
it, a further `assigned` listing it (which opens the next), `exited`. Who has said that it stops may still work off what
it has. Inside one file the order is exact, by seq. A line of a callback counts as far as brokers bear it out
(`false_losses.py`). Where a file has no `assigned` of a partition, or worked on it before the first, the request log
tells (`inferred_ownership_epochs.py`), and the order is one of times.

A library without callbacks delivers records in its hands once more when its group has rebalanced: its loop goes on with
them while the group rebalances; the partition stays its own, it asks for the
committed position, fetches the same records again and delivers them. The first delivery is of the ownership epoch
before. Where lines of the time cannot tell, it is taken to be so only if all that can be known speaks for it: the
partition was its own all the while, the epoch before had fetched the record, its deliveries go on to it without a gap,
it was completed before it came again (else it is a retry), and nothing was fetched a second time meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.aborts import aborted_attempts
from kafka_trial.model.batch import Batch, index
from kafka_trial.model.client_attribution import client_of_lines, group_members
from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.false_losses import corroborated
from kafka_trial.model.inferred_ownership_epochs import fetches, witnessed
from kafka_trial.model.instants import at_earliest, at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    first_of,
    joined,
    last_true,
    next_in,
    ordered,
    per_group,
    picked,
    running_max,
)
from kafka_trial.model.ownership_log import logged_assignments, owned_by
from kafka_trial.model.rows import CALLBACKS, Kind, Protocol
from kafka_trial.model.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

STILL_OPEN, BY_EXIT, BY_ANSWER = 0, 101, 102  # how an ownership epoch closed, beside the kinds of callback
SAID, STANDS_IN, ANSWERED = (
    0,
    1,
    2,
)  # who tells of a row of `member_lines`: a line; a completion, of its delivery; a broker
_BEFORE, _AFTER = -1, 1  # where a row that was made stands beside the line of the same seq


@index
def ownership_epochs(batch: Batch) -> Table:
    """Returns slice, source, client, member, incarnation, open_seq, open_ns, close_seq, close_ns, closed_by, before,
    proof_source, proof_seq, begun_ns, begun_at, taken.

    Sorted by (slice, source, client, open_seq); a row's number is the ownership epoch's number. `close_*` of one that
    was never closed is NEVER. `before` is the number of the same file's ownership epoch before it, or -1. `proof_*` is
    the event that opened it. Of one that the request log tells of, `begun_ns` and `begun_at` are when its member first
    fetched, and from which position; NEVER and NONE where it did not, and of those that members told of themselves.
    `taken`: nobody had given it.
    """
    own = member_lines(batch)
    opened = own.take(own["opens"])
    closes = _closes(batch)
    file = opened["file"]
    before = np.arange(len(opened)) - 1
    same = (before >= 0) & (file[before] == file) if len(file) else np.zeros(0, np.bool_)
    incarnation = incarnation_of(batch, opened["source"])
    return table(
        slice=opened["slice"],
        source=opened["source"],
        client=opened["client"],
        incarnation=incarnation,
        member=picked(batch.incarnations["member"], incarnation, -1),
        open_seq=opened["seq"],
        open_ns=opened["time_ns"],
        before=np.where(same, before, -1),
        proof_source=opened["proof_source"],
        proof_seq=opened["proof_seq"],
        begun_ns=opened["begun_ns"],
        begun_at=opened["begun_at"],
        taken=opened["taken"],
        **closes,
    )


@index
def member_lines(batch: Batch) -> Table:
    """Returns what members said themselves, sorted by (slice, source, client, seq), each with the ownership epoch it is
    in.

    Columns: slice, source, seq, kind, time_ns, `offset` (of a record; NONE: the line is about none), `committed_offset`
    (of a commit; NONE: it is none); `client` (which of several in the process says it, -1 where
    there is one), `file` (slice, source and client as one), `opens` (an `assigned`), `ownership_epoch` (its number, -1
    where none is open), `revoked` (the latest callback here was revoked or lost), `attempt` (how many its member had
    given up before) and `aborted_seq` (see `aborts.py`).

    `told_by`: SAID; STANDS_IN for the delivery before a completion, where the file tells of no delivery; ANSWERED for
    an assignment by the request log. What was made has the seq of the line beside it, `proof_*` is the event it is
    from, and `begun_*`, `ends_ns` are of assignments (see `ownership_epochs`; when brokers said that it was over).
    """
    own = _lines(batch)
    client = client_of_lines(batch, own)
    own = own.only("slice", "source", "seq", "kind", "time_ns", "offset", "committed_offset").having(client=client)
    printed, own = own, corroborated(batch, own)
    own = stacked(_said(own), _stand_ins(batch, own))
    answered = _answered(batch, own, printed)
    own = stacked(own.take(~_late_words(own, answered)), answered)
    own = own.take(ordered(own["slice"], own["source"], own["client"], own["seq"], own["beside"]))
    file = joined(own["slice"], own["source"], own["client"] + 1)
    callback = last_true(file, np.isin(own["kind"], CALLBACKS))
    said = picked(own["kind"], callback, 0)
    opens = own["kind"] == Kind.ASSIGNED
    number = np.cumsum(opens) - 1
    ended = own["seq"] > _exited_seq(batch, own["source"])
    own = own.having(file=file)
    return own.having(
        **aborted_attempts(batch, own),
        opens=opens,
        ownership_epoch=np.where((said == Kind.ASSIGNED) & ~ended, number, -1),
        revoked=np.isin(said, (Kind.REVOKED, Kind.LOST)),
    )


@index
def deliveries(batch: Batch) -> Table:
    """Returns the `delivered` rows of `member_lines`."""
    return member_lines(batch).take(member_lines(batch)["kind"] == Kind.DELIVERED)


@index
def epoch_owners(batch: Batch) -> Ints:
    """Returns the group member of each ownership epoch, see `client_attribution.group_members`."""
    return group_members(batch, ownership_epochs(batch))


def owned_by_other_member(batch: Batch, work: Table) -> Bools:
    """Returns whether the last record that gave the partition to anybody, before each line of work (slice,
    ownership_epoch, time_ns), gave it to others than its member."""
    assignment_records = (
        logged_assignments(batch)
        .take(logged_assignments(batch)["protocol"] != Protocol.CONSUMER_PENDING)
        .sorted_by("slice", "time_ns")
    )
    row = at_or_before(
        assignment_records["slice"], assignment_records["time_ns"], work["slice"], at_earliest(work["time_ns"])
    )
    owner = picked(epoch_owners(batch), work["ownership_epoch"], -1)
    member = np.where(owner >= 0, owner, picked(ownership_epochs(batch)["member"], work["ownership_epoch"], -1))
    given: Bools = row >= 0
    return given & ~owned_by(batch, work["slice"], member, picked(assignment_records["log_offset"], row, NONE))


def _lines(batch: Batch) -> Table:
    """Returns the lines of members: callbacks, work, commits."""
    said = batch.of(*CALLBACKS)
    work = batch.of(Kind.DELIVERED, Kind.PROCESSED, Kind.FAILED)
    commits = batch.of(Kind.COMMIT_INVOKE, Kind.COMMIT_OK, Kind.COMMIT_FAIL)
    said, commits = (rows.having(offset=np.full(len(rows), NONE)) for rows in (said, commits))
    said, work = (rows.having(committed_offset=np.full(len(rows), NONE)) for rows in (said, work))
    names = ("slice", "source", "seq", "kind", "time_ns", "own_client", "offset", "committed_offset")
    return stacked(*(rows.only(*names) for rows in (said, work, commits)))


def _said(own: Table, *, told_by: int = SAID, beside: int = 0) -> Table:
    """Returns rows with the columns that only made ones need."""
    return own.having(
        source=own["source"].astype(np.int64),
        kind=own["kind"].astype(np.int64),
        told_by=np.full(len(own), told_by),
        beside=np.full(len(own), beside),
        proof_source=own["source"].astype(np.int64),
        proof_seq=own["seq"],
        begun_ns=np.full(len(own), NEVER),
        begun_at=np.full(len(own), NONE),
        taken=np.zeros(len(own), np.bool_),
        ends_ns=np.full(len(own), NEVER),
    )


def _stand_ins(batch: Batch, own: Table) -> Table:
    """Returns a delivery for each completion of a file that tells of none: whoever handled a record was given it."""
    incarnation = incarnation_of(batch, own["source"])
    silent = (incarnation >= 0) & (picked(batch.incarnations["delivers"], incarnation, 1) == 0)
    done = own.take(silent & (own["kind"] == Kind.PROCESSED))
    return _said(done.having(kind=np.full(len(done), Kind.DELIVERED)), told_by=STANDS_IN, beside=_BEFORE)


def _answered(batch: Batch, own: Table, printed: Table) -> Table:
    """Returns an assignment for each ownership epoch that only the request log tells of, in the place of its time.

    `printed`: all lines of members, those included that brokers do not bear out: whoever says before its work that it
    was assigned the partition is not late to say so.
    """
    found = witnessed(batch)
    mine, theirs, said = _files(own, found, printed)
    tells = picked(batch.incarnations["assigns"], incarnation_of(batch, found["source"]), 1) == 1
    worked = np.isin(theirs, mine[np.isin(own["kind"], (Kind.DELIVERED, Kind.PROCESSED))])
    claims = printed["kind"] == Kind.ASSIGNED
    found = found.having(before_ns=_worked_before_ns(own, mine, theirs, (said[claims], printed["seq"][claims])))
    known = found["open_ns"] <= at_latest(found["before_ns"])
    found = found.take(known & (found["before_ns"] != NONE) & (~tells | worked))
    rows = table(
        slice=found["slice"],
        source=found["source"],
        seq=_seq_before(batch, own, found),
        kind=np.full(len(found), Kind.ASSIGNED),
        time_ns=found["open_ns"],
        offset=np.full(len(found), NONE),
        committed_offset=np.full(len(found), NONE),
        client=np.full(len(found), -1),
    )
    kept = ("proof_source", "proof_seq", "begun_ns", "begun_at", "taken", "ends_ns")
    return _said(rows, told_by=ANSWERED, beside=_AFTER).having(**{name: found[name] for name in kept})


def _worked_before_ns(own: Table, mine: Ints, theirs: Ints, claims: tuple[Ints, Ints]) -> Ints:
    """Returns until when the request log tells of each file in `theirs`: for ever (NEVER) where it has no `assigned`;
    to the first one where it worked before that, and had claimed nothing yet; else never (NONE). `claims`: the file and
    seq of each `assigned` that was printed, brokers bear it out or not."""
    size = max(int(files.max(initial=0)) for files in (mine, theirs, claims[0])) + 1
    said, works = np.isin(own["kind"], CALLBACKS), np.isin(own["kind"], (Kind.DELIVERED, Kind.PROCESSED))
    opens = own["kind"] == Kind.ASSIGNED
    callback, assigned, work = (
        per_group(mine[rows], own["seq"][rows], size, how="min", start=NEVER) for rows in (said, opens, works)
    )
    assigned_ns = per_group(mine[opens], own["time_ns"][opens], size, how="min", start=NEVER)
    named = per_group(mine, own["client"], size, how="max", start=-1) >= 0
    claimed = per_group(*claims, size, how="min", start=NEVER)
    early = (work < assigned) & (callback == assigned) & (claimed > work) & ~named
    until_ns = np.where(assigned == NEVER, NEVER, np.where(early, assigned_ns, NONE))
    return until_ns[theirs]


def _late_words(own: Table, answered: Table) -> Bools:
    """Returns which `assigned` lines are the first word of a file of what brokers had told before, and nothing has
    ended since: they open nothing."""
    mine, theirs = _files(own, answered)
    opens = np.flatnonzero(own["kind"] == Kind.ASSIGNED)
    opens = opens[ordered(mine[opens], own["seq"][opens])]
    first = opens[first_of(mine[opens])]
    order = ordered(theirs, answered["time_ns"])
    until_ns = at_latest(own["time_ns"][first])
    last = at_or_before(theirs[order], answered["time_ns"][order], mine[first], until_ns)
    row = picked(order, last, -1)
    given = (row >= 0) & (picked(answered["taken"].astype(np.int64), row, 1) == 0)
    late = np.zeros(len(own), np.bool_)
    late[first[given & (picked(answered["ends_ns"], row, NONE) > own["time_ns"][first])]] = True
    return late


def _files(*tables: Table) -> list[Ints]:
    """Returns the slice and file of each table's rows as one number."""
    whole = joined(*(np.concatenate([rows[name] for rows in tables]) for name in ("slice", "source")))
    return np.split(whole, np.cumsum([len(rows) for rows in tables])[:-1])


def _seq_at(own: Table, rows: Table, time_ns: Array) -> Ints:
    """Returns the seq of the last line of each row's file and slice that was read by some time; 0 before the first.

    A line was read after those before it, although work out of a buffer may have been done before they were read.
    """
    lines = own.sorted_by("slice", "source", "seq")
    file, wanted = _files(lines, rows)
    read_ns = lines["time_ns"][running_max(file, lines["time_ns"])]
    last = at_or_before(file, read_ns, wanted, time_ns)
    return picked(lines["seq"], last, 0)


def _seq_before(batch: Batch, own: Table, found: Table) -> Ints:
    """Returns behind which line of its file each ownership epoch of the request log opens."""
    place, first = _seq_at(own, found, found["place_ns"]), _before_first(own, found)
    return opens_behind(batch, own, found, np.minimum(place, first))


def _before_first(own: Table, found: Table) -> Ints:
    """Returns the seq before the line of the first record that each ownership epoch fetched, where that was read
    before the answer to the fetch was logged; NEVER where it was not.

    Of several such lines the last one counts: those before it are of the ownership epoch before.
    """
    given = own.take(own["kind"] == Kind.DELIVERED)
    both = joined(*(np.concatenate([given[name], found[name]]) for name in ("slice", "source")))
    offsets = np.concatenate([given["offset"], found["records_at"]])
    record = joined(both, offsets)
    given = given.having(record=record[: len(given)]).sorted_by("record", "time_ns")
    last = at_or_before(given["record"], given["time_ns"], record[len(given) :], found["place_ns"])
    early = picked(given["time_ns"], last, NONE) >= found["asked_ns"]
    return np.where(early, picked(given["seq"], last, 0) - 1, NEVER)


def _closes(batch: Batch) -> dict[str, Array]:
    own = member_lines(batch)
    callbacks = own.take(np.isin(own["kind"], CALLBACKS))
    following = next_in(callbacks["file"])
    seq, time = (picked(callbacks[name], following, NEVER) for name in ("seq", "time_ns"))
    kind = picked(callbacks["kind"], following, STILL_OPEN)
    opened = callbacks["opens"]
    closes = _at_answers(own, callbacks.take(opened), {"seq": seq[opened], "ns": time[opened], "by": kind[opened]})
    incarnation = incarnation_of(batch, callbacks["source"][opened])
    end_seq = _exited_seq(batch, callbacks["source"][opened])
    end_ns = np.where(end_seq == NEVER, NEVER, picked(batch.incarnations["exited_ns"], incarnation, NEVER))
    ended = (end_seq < closes["seq"]) | ((closes["by"] == BY_ANSWER) & (end_ns < closes["ns"]))
    return {
        "close_seq": np.where(ended, end_seq, closes["seq"]),
        "close_ns": np.where(ended, end_ns, closes["ns"]),
        "closed_by": np.where(ended, BY_EXIT, closes["by"]),
    }


def _at_answers(own: Table, opened: Table, closes: dict[str, Array]) -> dict[str, Array]:
    """Returns how ownership epochs closed, those that a broker's answer ended before included."""
    by_answer: Bools = opened["ends_ns"] < closes["ns"]
    lines = own.take(own["told_by"] == SAID)
    seq = _seq_at(lines, opened, opened["ends_ns"])
    return {
        "seq": np.where(by_answer, seq, closes["seq"]),
        "ns": np.where(by_answer, opened["ends_ns"], closes["ns"]),
        "by": np.where(by_answer, BY_ANSWER, closes["by"]),
    }


def _exited_seq(batch: Batch, sources: Array) -> Ints:
    """Returns the seq at which each source's member exited; NEVER where it did not."""
    exited = picked(batch.incarnations["exited_seq"], incarnation_of(batch, sources), NONE)
    return np.where(exited == NONE, NEVER, exited)


def opens_behind(batch: Batch, own: Table, found: Table, seqs: Ints) -> Ints:
    """Returns behind which line of its file each ownership epoch opens: as was given (`seqs`), or before the second
    delivery of the first record that it fetched. `found` as `witnessed` has it; a handful of rows a slice.
    """
    given = own.take(own["kind"] == Kind.DELIVERED).sorted_by("slice", "source", "seq")
    written_ns = batch.written_ns(given["source"], given["time_ns"])
    surely = written_ns[running_max(joined(given["slice"], given["source"]), written_ns)]
    given = given.having(surely_ns=surely)
    done, fetched = own.take(own["kind"] == Kind.PROCESSED), fetches(batch)
    opened = seqs.copy()
    for row in np.flatnonzero(found["held_on"] & (found["records_at"] != NONE)).tolist():
        lines, ends, asked = (of.take(_of_file(of, found, row)) for of in (given, done, fetched))
        until = seqs[row + 1] if _follows(found, row + 1) else lines["seq"].max(initial=0)
        lines = lines.take((lines["seq"] > seqs[row - 1]) & (lines["seq"] <= until))
        again = _delivered_again(batch, lines, ends, asked, found, row)
        opened[row] = seqs[row] if again < 0 else again - 1
    return opened


def _delivered_again(batch: Batch, given: Table, done: Table, fetched: Table, found: Table, row: int) -> int:
    """Returns the seq of the second delivery of an epoch's first record, -1 where not all speaks for one.

    `given` are the deliveries from the opening of the epoch before to that of the next.
    """
    open_ns, place_ns = found["open_ns"][row], found["place_ns"][row]
    record = _readable_from(batch, int(found["slice"][row]), int(found["records_at"][row]))
    places = np.flatnonzero((given["offset"] == record) & (given["time_ns"] >= found["asked_ns"][row]))
    if len(places) < 2:
        return -1
    highest = int(given["offset"][: places[0]].max(initial=NONE))
    goes_on = highest == NONE or (
        highest < record and _readable_from(batch, int(found["slice"][row]), highest + 1) == record
    )
    earlier = fetched.take((fetched["at_ns"] >= found["open_ns"][row - 1]) & (fetched["at_ns"] < open_ns))
    if not goes_on or not _brought(earlier, record):
        return -1
    first_seq = given["seq"][places[0]]
    for place in places[1:].tolist():
        seq = int(given["seq"][place])
        between = (done["seq"] > first_seq) & (done["seq"] < seq)
        completed = bool((done["offset"][between] >= record).any())
        since = (fetched["at_ns"] >= open_ns) & (fetched["at_ns"] <= given["time_ns"][place])
        brought = int(((fetched["answered_bytes"] > 0) & (fetched["fetch_position"] <= record) & since).sum())
        if given["surely_ns"][place - 1] > place_ns or brought > 1:
            return -1
        if completed:
            return seq
    return -1


def _brought(fetched: Table, record: int) -> bool:
    """Returns whether some fetches may have brought a record: one asked for what lies beyond it, or the last one
    brought something from there or before."""
    if not len(fetched):
        return False
    beyond = bool((fetched["fetch_position"] > record).any())
    return beyond or bool(fetched["answered_bytes"][-1] > 0 and fetched["fetch_position"][-1] <= record)


def _readable_from(batch: Batch, slice_: int, offset: int) -> int:
    """Returns the first offset from there on that holds a record; the offset itself where none is known."""
    records = batch.records
    of_slice = records["offset"][records["slice"] == slice_]
    place = int(np.searchsorted(of_slice, offset))
    return int(of_slice[place]) if place < len(of_slice) else offset


def _of_file(of: Table, found: Table, row: int) -> Bools:
    return (of["slice"] == found["slice"][row]) & (of["source"] == found["source"][row])


def _follows(found: Table, row: int) -> bool:
    """Returns whether an epoch is of the file of the one before it."""
    return row < len(found) and bool(_of_file(found, found, row - 1)[row])
