"""Records in hand: what a library without callbacks delivers once more when its group has rebalanced.

Its loop goes on with the records in its hands while the group rebalances; the partition stays its own, it asks for the
committed position, fetches the same records again and delivers them. The first delivery is of the ownership epoch
before. Where lines of the time cannot tell, it is taken to be so only if all that can be known speaks for it: the
partition was its own all the while, the epoch before had fetched the record, its deliveries go on to it without a gap,
it was completed before it came again (else it is a retry), and nothing was fetched a second time meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.inferred_ownership_epochs import fetches
from kafka_trial.model.kernels import NONE, Bools, Ints, joined, running_max
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


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
