"""What became of some partitions: the tables that anomalies ask, and all that they ask.

A table is of one kind of thing that happened or lasted, a row each; it is made when it is first asked for, and so is
each of its columns. What witnesses saw, how far they are believed, and what a fault may explain is settled below, where
the columns are made. `slice` is the number of the partition among these; times are nanoseconds on the harness's
monotonic clock; NONE, NEVER and -1 (of rows, members and sources) say that there is none. `…_source` and `…_seq` name
the event that proves something.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kafka_trial.invariants.batch import Batch
from kafka_trial.model.commits import commits, falls

if TYPE_CHECKING:
    from kafka_trial.invariants.table import Table


class Partitions(Batch):
    """Whole partitions of a trial, and their tables."""

    @cached_property
    def commits(self) -> Table:
        """The commits that took effect, in the order of the offsets log.

        committed_offset, log_offset, effect_ns, commit_wall_ns, in_transaction, source, seq.
        `peak`, `peak_row`: the greatest position before it since the last tombstone, and the row of that.
        `committer`: the member whose it is (or UNKNOWN, OPERATOR, AMBIGUOUS, STRANGER), and `member_name`.
        `owned`: 1 where the committer had the partition at that place of the log, 0 where others had, -1 where nobody
        knows; `own`: the same as True, False, None, an operator's False; `ever_owned`: somebody had it at some time;
        `owner_source`, `owner_seq`: the assignment record that stood there.
        `request_source`, `request_seq`: the request that asked for it.
        `by_operator`, `by_stranger`: it came from outside the members; True where nobody can tell whether it did.
        `passes_unhandled`: between the peak and its position lies a record that was never handled.
        `log_end`, `end_source`, `end_seq`: the first log end that was read after it; `longest_end`: the longest there
        was; `cut_off`: True where the log had been as long as it says, and was cut off, else None.
        """
        return commits(self)

    @cached_property
    def falls(self) -> Table:
        """The episodes in which the committed offset stood below where it had been.

        slice; `first`: the commit that fell, `back`: the one that recovered (-1: none), as rows of `commits`;
        `restart_inside`: an ownership epoch opened, or a member started from a position below the peak, meanwhile.
        """
        return falls(self)
