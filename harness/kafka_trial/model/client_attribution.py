"""Client attribution: for which of several clients in its process each line of a member speaks, if anybody can tell.

A line may name its client; what it says is believed where the request log does not know better. Names that the log
shows to be of one group member after another are one client's. Of several at once only one may ever have been given
the partition: then it speaks for that one, whatever it says. Else the name must be one that the log knows: a line with
another, or with none, may be anybody's.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.clients import incarnation_at, incarnation_of, known_clients, named_in_log
from kafka_trial.model.kernels import NEVER, Array, Bools, Ints, exactly, joined, picked
from kafka_trial.model.request_logs import complete_until_ns, read_to_end
from kafka_trial.model.rows import CALLBACKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_trial.model.batch import Batch
    from kafka_trial.model.table import Table
    from kafka_trial.model.trial_context import AbortLine


def client_of_lines(batch: Batch, own: Table) -> Ints:
    """Returns the own client that each line (slice, source, own_client) speaks for; -1 where it is the only one that
    can, or nobody knows."""
    client = _canonical_clients(batch)[own["own_client"]]
    return np.where(_sole_clients(batch, own["slice"], own["source"]) >= 0, -1, client)


def callbacks(batch: Batch) -> Table:
    """Returns the lines of callbacks as they were printed: slice, source, seq, kind, time_ns, client and file, sorted
    by the last, and seq."""
    lines = batch.of(*CALLBACKS)
    client = client_of_lines(batch, lines)
    lines = lines.only("slice", "source", "seq", "kind", "time_ns").having(client=client)
    lines = lines.having(file=joined(lines["slice"], lines["source"], client + 1))
    return lines.sorted_by("file", "seq")


def group_members(batch: Batch, lines: Table) -> Ints:
    """Returns the group member that each line (slice, source, client), or ownership epoch, is of: the process, or its
    client where several live in it; -1 where nobody knows which of them."""
    named = named_in_log(batch)[lines["client"]]
    client = np.where(named >= 0, named, _sole_clients(batch, lines["slice"], lines["source"]))
    process = picked(batch.incarnations["member"], incarnation_of(batch, lines["source"]), -1)
    return np.where(_among_others(batch, lines["source"]), client, process)


def certainly_of_client(batch: Batch, file: Table, lines: Sequence[AbortLine]) -> list[bool | None]:
    """Returns for lines of a process whether each speaks for the client of one of its files (slice, source, client: one
    row); None where nothing tells. Of a partition its only client speaks, whatever the line says."""
    canonical, named = _canonical_clients(batch), named_in_log(batch)
    mine, sole = int(file["client"][0]), int(_sole_clients(batch, file["slice"], file["source"])[0])
    among = bool(_among_others(batch, file["source"])[0])
    found: list[bool | None] = []
    for line in lines:
        client = int(canonical[line.own_client])
        if mine < 0 <= sole:
            places = np.array(line.slices, np.int64)
            speakers = {
                int(named[client]),
                *_sole_clients_at(batch, places, np.full(len(places), line.source)).tolist(),
            }
            found.append(True if sole in speakers else None if speakers == {-1} else False)
        else:
            found.append(True if client == mine else None if among and client < 0 else False)
    return found


def alone(batch: Batch, lines: Table) -> Bools:
    """Returns which lines (source, client) are of a process with no other client."""
    return (lines["client"] < 0) & ~_among_others(batch, lines["source"])


def _canonical_clients(batch: Batch) -> Ints:
    """Returns for each own client its number, or that of the first one of its file that is the same; -1 where its name
    tells nothing: it is alone in its process, or unknown to the request log; and -1 at the end."""
    about = batch.trial_context
    numbers = _by_lines(batch)
    if not read_to_end(about):
        return numbers
    shared, alone = _processes(batch)
    member_of = {incarnation.source: incarnation.member for incarnation in about.incarnations}
    known, first = named_in_log(batch).tolist(), dict[tuple[int, int], int]()
    for number, own in enumerate(about.own_clients):
        member = member_of.get(own.source, -1)
        if member in alone:
            numbers[number] = -1
        elif member in shared:
            same = first.setdefault((own.source, known[number]), number)
            numbers[number] = same if known[number] >= 0 else -1
    return numbers


def unattributed(batch: Batch, lines: Table) -> Bools:
    """Returns which lines (slice, source, client) may be of any of several group members in their process."""
    nameless: Bools = (lines["client"] < 0) & _among_others(batch, lines["source"])
    return nameless & (_sole_clients(batch, lines["slice"], lines["source"]) < 0)


def of_another_client(batch: Batch, lines: Table, places: Ints) -> Bools:
    """Returns which lines (slice, source) are for certain of another client of their process than its lines about the
    slices `places`, as the trial context numbers them (-1: not known)."""
    here, there = (
        _sole_clients(batch, lines["slice"], lines["source"]),
        _sole_clients_at(batch, places, lines["source"]),
    )
    another: Bools = (here >= 0) & (there >= 0) & (here != there)
    return another


def _among_others(batch: Batch, sources: Array) -> Bools:
    """Returns which lines are of a process in which several group members lived at once."""
    shared, _ = _processes(batch)
    among: Bools = np.isin(picked(batch.incarnations["member"], incarnation_of(batch, sources), -1), sorted(shared))
    return among


def _by_lines(batch: Batch) -> Ints:
    """Returns the number of each own client in a file in which the lines of several come by turns, else -1.

    Names that come one after the other are one client's, which rejoined or began anew.
    """
    named = batch.trial_context.own_clients
    several = np.full(len(named) + 1, -1, np.int64)
    order = sorted(range(len(named)), key=lambda number: (named[number].source, named[number].first_seq))
    for one, other in pairwise(order):
        if named[one].source == named[other].source and named[other].first_seq < named[one].last_seq:
            of_file = [number for number in order if named[number].source == named[one].source]
            several[of_file] = of_file
    return several


def _processes(batch: Batch) -> tuple[set[int], set[int]]:
    """Returns the members in whose process the request log shows several group members at once, and those in which it
    shows one at a time."""
    about = batch.trial_context
    shared = {about.lanes[lane] for lane in known_clients(batch).lanes}
    granted = {span.lane for span in about.member_spans}
    seen = {member for lane, member in about.lanes.items() if lane in granted}
    return shared, seen - shared


def _sole_clients(batch: Batch, slices: Array, sources: Array) -> Ints:
    """Returns the client of the request log that alone in its process, and incarnation, was ever given the partition;
    -1 where none was, or several, or an answer may be missing."""
    return _sole_clients_at(batch, batch.slices[slices], sources)


def _sole_clients_at(batch: Batch, places: Ints, sources: Array) -> Ints:
    """Returns the same of slices as the trial context numbers them."""
    about = batch.trial_context
    if complete_until_ns(about) != NEVER or not known_clients(batch).lanes:
        return np.full(len(places), -1, np.int64)
    size = len(batch.incarnations) + 1
    given = np.unique(np.array([*_assignments(batch)], np.int64).reshape(-1, 3), axis=0)
    known, first, number = np.unique(given[:, 0] * size + given[:, 1], return_index=True, return_counts=True)
    wanted = places * size + incarnation_of(batch, sources)
    row = exactly(np.zeros_like(known), known, np.zeros_like(wanted), wanted)
    return picked(np.where(number == 1, given[first, 2], -1), row, -1)


def _assignments(batch: Batch) -> Iterator[tuple[int, int, int]]:
    """Yields (slice as in the trial context, incarnation, client) for each partition of each assignment."""
    about = batch.trial_context
    listed = [one for one in about.group_answers if one.assigned and one.member >= 0 and one.member_id >= 0]
    begun_ns = np.array([one.time_ns - one.duration_ns for one in listed], np.int64)
    incarnations = incarnation_at(batch, np.array([one.member for one in listed], np.int64), begun_ns).tolist()
    for one, incarnation in zip(listed, incarnations, strict=True):
        client = int(known_clients(batch).of_member_id[one.member_id])
        yield from ((place, incarnation, client) for place in one.assigned or () if incarnation >= 0)
