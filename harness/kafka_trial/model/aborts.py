"""Attempts, which may span partitions: what is done in one transaction.

"Atomic writes across multiple partitions" (KIP-98): a transaction that is aborted takes back what it did in each of
them. So the line with which a member gives it up ends the attempt of that client in every partition that belongs to
the transaction, whichever the line names, and the client begins each of them anew where it was committed. A process may
have one producer for each partition (the way before KIP-447), or take them from a pool: these are transactions of their
own. The request log tells which producer handed in which positions. Where it does not, it is not certain that the
attempt ended. A record that failed may be tried again inside its transaction: its line ends no attempt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.client_attribution import certainly_of_client
from kafka_trial.model.kernels import NONE, Array, first_of

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.table import Table
    from kafka_trial.model.trial_context import AbortLine, PositionProducer, TrialContext


def aborted_attempts(batch: Batch, own: Table) -> dict[str, Array]:
    """Returns for each line (slice, source, client, file, seq; sorted by the last two) `attempt`, how many of its
    file's had been given up by then, and `aborted_seq`, of the line that gave the last one up; NONE where none had
    been."""
    found = {"attempt": np.zeros(len(own), np.int64), "aborted_seq": np.full(len(own), NONE, np.int64)}
    for file, told in aborts_by_file(batch, own):
        lines = [one for one, certain in told if certain or not batch.trial_context.only_certain_aborts]
        number = np.searchsorted([one.seq for one in lines], own["seq"][file], side="right")
        found["attempt"][file] = number
        found["aborted_seq"][file] = np.array([NONE, *(one.seq for one in lines)], np.int64)[number]
    return found


def aborts_by_file(batch: Batch, own: Table) -> Iterator[tuple[slice, list[tuple[AbortLine, bool]]]]:
    """Yields the rows of each file of `own` in which an attempt ended, or may have, and the lines with which each did;
    and of each line whether that is certain. Nothing where progress is not in transactions."""
    about = batch.trial_context
    if about.settings.progress != "transaction" or not about.aborts:
        return
    producers, by_source = _producers(about), defaultdict(list)
    for line in about.aborts:
        by_source[line.source].append(line)
    for begin, end in pairwise([*first_of(own["file"]).tolist(), len(own)]):
        source, place = int(own["source"][begin]), int(batch.slices[own["slice"][begin]])
        if not (lines := by_source.get(source)):
            continue
        of_client = certainly_of_client(batch, own.take(np.arange(begin, begin + 1)), lines)
        of_transaction = [_is_of_transaction(producers.get(source, ()), line, place) for line in lines]
        told = [
            (line, {True} == {*both})
            for line, *both in zip(lines, of_client, of_transaction, strict=True)
            if False not in both
        ]
        if told:
            yield slice(begin, end), told


def _is_of_transaction(producers: Sequence[PositionProducer], line: AbortLine, place: int) -> bool | None:
    """Tells whether a slice was in the transaction that a line gives up; None: nothing shows it.

    `producers`: those of its process.
    """
    return place in line.slices or _is_shared(producers, line, place)


def _is_shared(producers: Sequence[PositionProducer], line: AbortLine, place: int) -> bool | None:
    """Tells whether a slice is handed in together with those that a line names; None: nothing shows it.

    One producer at a time has one transaction at a time: the only one all that its process does, and of those that
    follow one another each what it handed in. Of several at once only positions in one request are surely in one
    transaction. Those of different producers are surely in two. A line that names nothing means all that its process
    does.
    """
    by_time = sorted(producers, key=lambda one: (one.first_ns, -one.last_ns))
    at_once = any(later.first_ns < max_ns for later, max_ns in zip(by_time[1:], _last_so_far(by_time), strict=False))
    if not at_once and (len(producers) == 1 or not line.slices):
        return True
    groups = [group for one in producers for group in (one.together if at_once else (one.hands_in,))]
    if any(place in group and {*group} & {*line.slices} for group in groups):
        return True
    own, named = ({one.producer_id for one in producers if one.hands_in & of} for of in ({place}, {*line.slices}))
    return False if own and named and not own & named else None


def _last_so_far(producers: Sequence[PositionProducer]) -> list[int]:
    return np.maximum.accumulate([one.last_ns for one in producers]).tolist() if producers else []


def _producers(about: TrialContext) -> dict[int, list[PositionProducer]]:
    """Returns the producers in the lane of each member's file, by its source."""
    by_member: dict[int, list[PositionProducer]] = defaultdict(list)
    for one in about.position_producers:
        if one.lane in about.lanes:
            by_member[about.lanes[one.lane]].append(one)
    return {incarnation.source: by_member[incarnation.member] for incarnation in about.incarnations}
