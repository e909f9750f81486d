"""Clients and incarnations: which group members live in one process, and which process of a member a file is of.

Two members of a process are two where they were in the group at once, by what brokers granted them (`MemberSpan`): a
process that starts again with another client id, or rejoins under another member id, is one after the other. They are
told apart by client id; where they share one, by the connections on which their member ids were seen, for a connection
is one client's. A lane alone cannot tell them apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.kernels import NONE, Array, Ints, at_or_before, exactly, picked
from kafka_trial.model.trial_context import GroupAnswer, TrialContext

Span = tuple[int, int]  # from when to when
Name = tuple[int, str, int]  # lane, client id, and the first of its member ids where others have the same client id


@dataclass(frozen=True)
class Clients:
    """The client behind each connection and each member id, by number; -1 where it is not told, or alone in its lane.

    `lanes` are those in which several group members live; a number is greater than those of all members, so that a
    member and a client are never the same owner.
    """

    of_connection: Ints
    of_member_id: Ints
    lanes: frozenset[int]
    named: Mapping[tuple[int, str], int]  # by lane and client id, where one client has it
    size: int  # a number above all those of members and clients


def members_at(batch: Batch, lanes: Array, connections: Array, member_ids: Array) -> Ints:
    """Returns the group member behind each request: of several in a lane by member id (a number), else by connection;
    else who runs in the lane. -1 where nothing tells."""
    known, about = known_clients(batch), batch.trial_context
    listed = np.array(sorted(about.lanes), np.int64)
    members = np.array([about.lanes[lane] for lane in listed.tolist()], np.int64)
    row = exactly(np.zeros(len(listed), np.int64), listed, np.zeros(len(lanes), np.int64), lanes)
    by_id = known.of_member_id[member_ids]
    client = np.where(by_id >= 0, by_id, known.of_connection[connections])
    return np.where(np.isin(lanes, sorted(known.lanes)), client, picked(members, row, -1))


def client_of_connection(about: TrialContext) -> Ints:
    """Returns of each connection the first one of its lane with the same client id; -1 at the end, for an unknown
    one."""
    first: dict[tuple[int, str | None], int] = {}
    found = [first.setdefault((one.lane, one.client_id), at) for at, one in enumerate(about.connections)]
    return np.array([*found, -1], np.int64)


def named_in_log(batch: Batch) -> Ints:
    """Returns the client of the request log that each own client is, by the name in its lines, where several live in
    its process; -1 where there is none, and at the end."""
    about = batch.trial_context
    numbers = {name: number for number, name in enumerate(about.member_ids)}
    shared = {about.lanes[lane]: lane for lane in sorted(known_clients(batch).lanes)}
    member_of = {incarnation.source: incarnation.member for incarnation in about.incarnations}
    found = np.full(len(about.own_clients) + 1, -1, np.int64)
    for number, own in enumerate(about.own_clients):
        lane = shared.get(member_of.get(own.source, -1), -1)
        by_id = int(known_clients(batch).of_member_id[numbers.get(own.text, -1)])
        found[number] = known_clients(batch).named.get((lane, own.text), -1) if own.name == "client_id" else by_id
    return found


@index
def known_clients(batch: Batch) -> Clients:
    """Returns the clients of lanes that hold several group members."""
    trial_context = batch.trial_context
    by_lane: dict[int, list[GroupAnswer]] = defaultdict(list)
    for answer in trial_context.group_answers:
        if answer.lane in trial_context.lanes and answer.member_id >= 0:
            by_lane[answer.lane].append(answer)
    spans = _spans_by_lane(batch)
    shared = {lane: by_lane[lane] for lane, own in sorted(spans.items()) if _interleave(own.values())}
    of_id = {number: name for lane, answers in shared.items() for number, name in _names(answers, spans[lane])}
    numbers = {name: len(trial_context.members) + at for at, name in enumerate(sorted(set(of_id.values())))}
    by_connection = {
        (one.source, one.lane, one.connection): of_id[one.member_id] for answers in shared.values() for one in answers
    }
    alone = {name[:2]: name for name in numbers if sum(other[:2] == name[:2] for other in numbers) == 1}
    found = (
        by_connection.get((one.source, one.lane, one.name), alone.get((one.lane, one.client_id or "")))
        for one in trial_context.connections
    )
    ids = (of_id.get(number) for number in range(len(trial_context.member_ids)))
    return Clients(
        _numbered(found, numbers),
        _numbered(ids, numbers),
        frozenset(shared),
        {place: numbers[name] for place, name in alone.items()},
        len(trial_context.members) + len(numbers) + 1,
    )


def _numbered(names: Iterable[Name | None], numbers: dict[Name, int]) -> Ints:
    """Returns the numbers of some names, and -1 at the end for what has none."""
    return np.array([*(-1 if name is None else numbers[name] for name in names), -1], np.int64)


def _spans_by_lane(batch: Batch) -> dict[int, dict[int, Span]]:
    """Returns from when to when each member id was seen in the group, by lane. By when its requests were begun: a join
    may be answered when its process has long gone."""
    about = batch.trial_context
    ours = [one for one in about.member_spans if one.lane in about.lanes]
    walls = [NONE if at is None else at for one in ours for at in (one.first_wall_ns, one.last_wall_ns)]
    times = [at for one in ours for at in (one.first_time_ns, one.last_time_ns)]
    at_ns = batch.monotonic(np.array(walls, np.int64), np.array(times, np.int64)).reshape(-1, 2).tolist()
    found: dict[int, dict[int, Span]] = defaultdict(dict)
    for one, (first_ns, last_ns) in zip(ours, at_ns, strict=True):
        found[one.lane][one.member_id] = first_ns, last_ns
    return found


def _interleave(spans: Iterable[Span]) -> bool:
    """Tells whether two member ids were in the group at once: one was let in before another asked for the last time."""
    return any(later[0] < earlier[1] for earlier, later in pairwise(sorted(spans)))


def _names(answers: Sequence[GroupAnswer], spans: Mapping[int, Span]) -> Iterator[tuple[int, Name]]:
    """Yields each member id of a lane with the name of its client."""
    by_client: dict[str, list[GroupAnswer]] = defaultdict(list)
    for answer in answers:
        by_client[answer.client_id or ""].append(answer)
    for client, own in by_client.items():
        seen = {answer.member_id: spans[answer.member_id] for answer in own if answer.member_id in spans}
        together = _joined_by_connection(own) if _interleave(seen.values()) else {}
        for answer in own:
            yield answer.member_id, (answer.lane, client, together.get(answer.member_id, -1))


def _joined_by_connection(answers: Sequence[GroupAnswer]) -> dict[int, int]:
    """Returns the first of the member ids that were seen on the same connections as each one, one after the other."""
    first: dict[int, int] = {}
    for one in sorted(answers, key=lambda answer: answer.time_ns):
        first.setdefault(one.member_id, one.member_id)
    on: dict[tuple[int, str], int] = {}
    for one in answers:
        if one.connection is not None:
            other = on.setdefault((one.source, one.connection), one.member_id)
            low, high = sorted((first[other], first[one.member_id]))
            first = {number: low if root == high else root for number, root in first.items()}
    return first


def incarnation_of(batch: Batch, sources: Array) -> Ints:
    """Returns the place of each source's incarnation in `batch.incarnations`, -1 where a source is no member's."""
    places = np.full(len(batch.trial_context.sources) + 1, -1, np.int64)
    places[batch.incarnations["source"]] = np.arange(len(batch.incarnations))
    return places[sources]


def incarnation_at(batch: Batch, members: Array, time_ns: Array) -> Ints:
    """Returns the incarnation of each member that had begun last at that time, -1 where there is none."""
    return at_or_before(batch.incarnations["member"], batch.incarnations["started_ns"], members, time_ns)


def file_of(batch: Batch, members: Array, at_ns: Array) -> Ints:
    """Returns the file of the incarnation that each member was by then, -1 where it was none."""
    incarnations = batch.incarnations  # sorted by (member, start)
    row = at_or_before(incarnations["member"], incarnations["started_ns"], members, at_ns)
    return np.where(members >= 0, picked(incarnations["source"], row, -1), -1)


def members_of(batch: Batch, lanes: Array, *, otherwise: int) -> Ints:
    """Returns the member that runs in each lane."""
    lanes_known = np.array(sorted(batch.trial_context.lanes), np.int64)
    members = np.array([batch.trial_context.lanes[lane] for lane in lanes_known.tolist()], np.int64)
    one = np.zeros(len(lanes_known), np.int64)
    return picked(members, exactly(one, lanes_known, np.zeros(len(lanes), np.int64), lanes), otherwise)
