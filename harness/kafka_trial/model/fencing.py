"""What brokers told members of partitions that they had lost, and what the members fetched before and after it.

A member is told by a fencing error on any request of its group (22 ILLEGAL_GENERATION, 25 UNKNOWN_MEMBER_ID, 82
FENCED_INSTANCE_ID, 110 FENCED_MEMBER_EPOCH), or by its own rejoin: an assignment that lacks the partition. Other errors
(14, 15, 16, 27, 113) are to be retried and say nothing of ownership, and a client's time-out tells nothing. The answer
must have been received (`response_delivery.py`). What it does itself it need not be told: when it asks to leave its
group, it gives its partitions back. Of a member that asks nothing any more, see `zombies.py`. It often
reaches a background thread: what the member had fetched by then it may finish; a record fetched later it took though it
knew. The member's own word of a commit that was refused so may be a background thread's too: what it convicts of
besides is told in `work_after_failed_commit.py`.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import known_clients, members_at, members_of
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    between,
    first_of,
    in_ranges,
    joined,
    ordered,
    per_group,
    picked,
)
from kafka_trial.model.ownership_epochs import BY_ANSWER, epoch_owners, ownership_epochs
from kafka_trial.model.ownership_log import last_given, never_given
from kafka_trial.model.request_logs import (
    COMMITS,
    FENCING,
    ILLEGAL_GENERATION,
    UNKNOWN_MEMBER_ID,
    complete_until_ns,
    fetches_issued_ns,
    timed_fetches,
)
from kafka_trial.model.response_delivery import issued_at_earliest_ns, received_ns
from kafka_trial.model.table import Table, first_since, is_among, last_until, stacked, table
from kafka_trial.model.wall_clock import monotonic


def told_of_loss(batch: Batch, loss_ns: Ints) -> Table:
    """Returns for each ownership epoch the first answer after its loss that told its member: received_ns, source, seq.

    `received_ns` is NEVER, source and seq are -1 where there is none while the ownership epoch is open.
    """
    answers, before = _received(batch), _told_before(batch, loss_ns)
    fenced, assigned, left = (answers.take(answers[name]) for name in ("fences", "assigns", "leaves"))
    received, source, seq = (before[name] for name in ("received_ns", "source", "seq"))
    for rows, row in (
        (fenced, _first_fencing(batch, fenced, loss_ns)),
        (assigned, _first_assignment(batch, assigned, loss_ns)),
        (left, _first_leave(batch, left, loss_ns)),
    ):
        at_ns = picked(rows["received_ns"], row, NEVER)
        earlier = at_ns < received
        received = np.where(earlier, at_ns, received)
        source, seq = (
            np.where(earlier, picked(rows[name], row, -1), known) for name, known in (("source", source), ("seq", seq))
        )
    inside = received < _worked_until_ns(batch)
    return table(
        received_ns=np.where(inside, received, NEVER),
        source=np.where(inside, source, -1),
        seq=np.where(inside, seq, -1),
    )


def told_away_ns(batch: Batch, slices: Ints, members: Ints, at_ns: Ints) -> Ints:
    """Returns when each member was told, by then, that it has the partition no more: by the first such answer after it
    was given it last; a refusal must be to the member id that was, for the ids of before are none of its. NEVER where
    it has it, or may not have heard; NONE where nobody ever gave it, as far as the request logs tell of all. Of several
    group members in a process nobody can tell.
    """
    listing, words = _listing(batch), _words_of_loss(batch, slices)
    wanted = table(slice=slices, member=members)
    given = last_until(listing, wanted, "slice", "member", by="sent_ns", until=at_ns)
    given_ns = picked(listing["sent_ns"], given, NONE)
    since_ns, told_ns = np.maximum(given_ns, NONE + 1) + 1, np.full(len(slices), NEVER)
    for member_id in (np.full(len(slices), ANY_ID), picked(listing["member_id"], given, -1)):
        mine = wanted.having(member_id=member_id)
        row = first_since(words, mine, "slice", "member", "member_id", by="sent_ns", since=since_ns)
        heard = (row >= 0) & (picked(words["sent_ns"], row, NEVER) <= at_ns)
        told_ns = np.minimum(told_ns, np.where(heard, picked(words["received_ns"], row, NEVER), NEVER))
    complete = (at_ns < complete_until_ns(batch.trial_context)) | never_given(batch, slices, members)
    told_ns = np.where(given_ns == NONE, np.where(complete, NONE, NEVER), told_ns)
    several = [batch.trial_context.lanes[lane] for lane in known_clients(batch).lanes]
    return np.where((members < 0) | np.isin(members, several), NEVER, told_ns)


ANY_ID = -2  # of a word that is for its member under whatever id


def _words_of_loss(batch: Batch, slices: Ints) -> Table:
    """Returns what says of some slices that their member has them no more: slice, member, member_id, sent_ns,
    received_ns. An assignment that lacks the slice; a fencing error; its own leave. An error on a commit is such a word
    only where the member is unknown: else it may be of the generation before."""
    answers, here = _received(batch), np.unique(slices)
    answers = answers.take(
        answers["assigns"] | answers["leaves"] | answers["expels"] | (answers["fences"] & ~answers["commits"])
    )
    rows = answers.only("number", "member", "sent_ns", "received_ns").having(
        member_id=np.where(answers["assigns"], ANY_ID, answers["member_id"])
    )
    rows = rows.take(np.tile(np.arange(len(answers)), len(here))).having(slice=np.repeat(here, len(answers)))
    return rows.take(~is_among(rows, _listing(batch), "slice", "number"))


def revoke_confirmed_ns(batch: Batch, slices: Ints, members: Ints, at_ns: Ints) -> Ints:
    """Returns when, by then, each member showed its group that it had given the partition back: it asked for what a
    client asks only once the callback has returned. NONE: it never did, or was given it again since.

    It had been told to keep less, and then joined again (classic) or said that it owns less (KIP-848).
    """
    shown, listing = _given_back(batch), _listing(batch)
    wanted = table(slice=slices, member=members)
    row = last_until(shown, wanted, "slice", "member", by="begun_ns", until=at_ns)
    again = last_until(listing, wanted, "slice", "member", by="sent_ns", until=at_ns)
    again_ns = picked(listing["sent_ns"], again, NONE)
    return np.where(again_ns < picked(shown["lost_ns"], row, NONE), picked(shown["begun_ns"], row, NONE), NONE)


@index
def _given_back(batch: Batch) -> Table:
    """Returns slice, member, `lost_ns` (a broker had told it to keep less) and `begun_ns` of the next request of the
    same member id that shows that it had given the partition back."""
    listed, about = _lacking(batch, _received(batch)), batch.trial_context
    asks: dict[int, list[tuple[int, tuple[int, ...] | None]]] = defaultdict(list)  # by member id
    answers = _answers(batch)
    for number, begun_ns in zip(
        answers["number"].tolist(), issued_at_earliest_ns(about, answers).tolist(), strict=True
    ):
        one = about.group_answers[number]
        if one.api == "JOIN_GROUP" or one.owned is not None:
            asks[one.member_id].append((begun_ns, one.owned))
    begun_ns = [
        next((at_ns for at_ns, owned in asks[member_id] if at_ns > lost_ns and place not in (owned or ())), NEVER)
        for member_id, lost_ns, place in zip(
            listed["member_id"].tolist(),
            listed["sent_ns"].tolist(),
            batch.slices[listed["slice"]].tolist(),
            strict=True,
        )
    ]
    shown = listed.only("slice", "member").having(lost_ns=listed["sent_ns"], begun_ns=np.array(begun_ns, np.int64))
    return shown.take(shown["begun_ns"] != NEVER)


STALL_LOOKED_AT_NS = 2_000_000_000  # how long after an answer a member may still wait for a processor to read it


def surely_read_ns(batch: Batch, told_ns: Ints, *, stalls: bool = False) -> Ints:
    """Returns by when each member had surely read what it was told: a busy machine may keep it from it, and a stalled
    one (`stalls`; what lines say around those is masked in `invariant.judged`)."""
    about = batch.trial_context
    waits = [(one.time_ns - one.over_ns, one.time_ns, one.member_ns) for one in about.cpu_waits]
    waits += [(at_ns - delay_ns, at_ns, delay_ns) for at_ns, delay_ns in about.delays if stalls]
    later_ns, read_ns = np.minimum(told_ns, NEVER - STALL_LOOKED_AT_NS), at_latest(told_ns)
    for begin_ns, end_ns, waited_ns in waits:
        near = (end_ns > later_ns) & (begin_ns < later_ns + STALL_LOOKED_AT_NS) & (read_ns < NEVER - waited_ns)
        read_ns = np.where(near, read_ns + waited_ns, read_ns)
    return read_ns


def _listing(batch: Batch) -> Table:
    """Returns slice, member, member_id, sent_ns and the number of the answer for each partition (of this batch) that an
    answer gave its member."""
    answers = _answers(batch).take(_answers(batch)["assigns"])
    listed = [batch.trial_context.group_answers[number].assigned or () for number in answers["number"].tolist()]
    which, slices = batch.listed(listed)
    return answers.only("number", "member", "member_id", "sent_ns").take(which).having(slice=slices)


def commit_refused_ns(batch: Batch, loss_ns: Ints) -> Ints:
    """Returns when each ownership epoch's member was first told after its loss that a commit is fenced; else NEVER."""
    answers = _received(batch)
    refused = answers.take(answers["fences"] & answers["commits"])
    return picked(refused["received_ns"], _first_fencing(batch, refused, loss_ns), NEVER)


def fetched_by(batch: Batch, told_ns: Ints) -> tuple[Ints, Ints, Bools]:
    """Returns for each ownership epoch up to which position its member had fetched by `told_ns`, when it began to fetch
    again afterwards (NEVER: not while it was open), and whether its fetches are known.

    A record at that position or above, delivered afterwards, was fetched afterwards. NEVER: nothing was fetched later.
    A fetch that was under way at `told_ns` counts as before it, and so does one that began within the tolerance, or may
    have been held since then.
    """
    held = ownership_epochs(batch)
    asked = fetches_by_member(batch)
    group, wanted = _by_member(batch, asked), _by_member(batch, held.having(member=epoch_owners(batch)))
    after_ns = np.minimum(surely_read_ns(batch, told_ns), NEVER - 1) + 1
    first, end = between(group, asked["begun_ns"], wanted, held["open_ns"], _worked_until_ns(batch))
    which, row = in_ranges(first, np.where(told_ns == NEVER, first, end))
    position, since = asked["fetch_position"][row], asked["issued_ns"][row] >= after_ns[which]
    highest = per_group(which[~since], position[~since], len(held), how="max", start=NONE)
    again, later = first_of(which[since]), np.full(len(held), -1)
    later[which[since][again]] = row[since][again]
    reached = np.maximum(picked(asked["fetch_position"], later, NEVER), highest)
    again_ns = picked(asked["begun_ns"], later, NEVER)
    return np.where(later >= 0, reached, NEVER), again_ns, np.isin(epoch_owners(batch), _fetching(batch))


def _worked_until_ns(batch: Batch) -> Ints:
    """Returns until when what each ownership epoch's member does counts as done in it: where a broker's answer alone
    ended it, to the next one of its file."""
    held = ownership_epochs(batch)
    following_ns = np.full(len(held), NEVER)
    later = np.flatnonzero(held["before"] >= 0)
    following_ns[held["before"][later]] = held["open_ns"][later]
    return np.where(held["closed_by"] == BY_ANSWER, following_ns, held["close_ns"])


def fetches_of(batch: Batch) -> tuple[Ints, Ints, Ints]:
    """Returns when fetches of members began, and for each ownership epoch the range [first, end) of those of its member
    from its partition, while it was open."""
    held, asked = ownership_epochs(batch), fetches_by_member(batch)
    wanted = _by_member(batch, held.having(member=epoch_owners(batch)))
    first, end = between(_by_member(batch, asked), asked["begun_ns"], wanted, held["open_ns"], held["close_ns"])
    return asked["begun_ns"], first, end


def _fetching(batch: Batch) -> list[int]:
    """Returns the group members of which the request log holds fetches, of whatever partition."""
    about, clients = batch.trial_context, known_clients(batch)
    alone = [about.lanes[lane] for lane in about.fetching if lane in about.lanes and lane not in clients.lanes]
    fetches = [number for number, one in enumerate(about.connections) if one.fetches]
    return [*alone, *(client for client in clients.of_connection[fetches].tolist() if client >= 0)]


def fetched_since_reassigned(batch: Batch, work: Table, since_ns: Ints) -> Bools:
    """Returns of which work (slice, member, offset, time_ns) the record was fetched after the group had given the
    partition to the member, later than a time."""
    given_ns, _ = last_given(batch, work["slice"], work["member"], work["time_ns"])
    asked = fetches_by_member(batch).take(fetches_by_member(batch)["answered_bytes"] > 0)
    both = joined(*(np.concatenate([asked[name], work[name]]) for name in ("slice", "member")))
    order = ordered(both[: len(asked)], asked["begun_ns"])
    asked, group = asked.take(order), both[: len(asked)][order]
    which, row = in_ranges(*between(group, asked["begun_ns"], both[len(asked) :], given_ns, work["time_ns"]))
    reaches = asked["fetch_position"][row] <= work["offset"][which]
    fetched: Bools = (given_ns > since_ns) & np.isin(np.arange(len(work)), which[reaches])
    return fetched


def fetches_by_member(batch: Batch) -> Table:
    """Returns the fetches of members, and when they sent them at the earliest (issued_ns), sorted by (slice, member,
    begun_ns)."""
    asked = timed_fetches(batch)
    member = members_at(batch, asked["lane"], asked["connection"], np.full(len(asked), -1))
    asked = asked.having(member=member, issued_ns=fetches_issued_ns(batch)).take(member >= 0)
    return asked.take(ordered(_by_member(batch, asked), asked["begun_ns"], asked["source"], asked["seq"]))


def _by_member(batch: Batch, rows: Table) -> Ints:
    return rows["slice"] * (known_clients(batch).size + 1) + rows["member"] + 1


def _first_fencing(batch: Batch, fenced: Table, loss_ns: Ints) -> Ints:
    """Returns the first fencing error that was answered to each ownership epoch's member after its loss."""
    after = np.minimum(loss_ns, NEVER - 1) + 1
    return at_or_after(fenced["member"], fenced["sent_ns"], epoch_owners(batch), after)


def _first_assignment(batch: Batch, assigned: Table, loss_ns: Ints) -> Ints:
    """Returns the first assignment answered to each ownership epoch's member after its loss that lacks the
    partition."""
    held = ownership_epochs(batch)
    after = np.minimum(loss_ns, NEVER - 1) + 1
    first, end = between(assigned["member"], assigned["sent_ns"], epoch_owners(batch), after, np.full(len(held), NEVER))
    which, rows = in_ranges(first, np.where(loss_ns == NEVER, first, end))
    listed = batch.trial_context.group_answers
    numbers = enumerate(assigned["number"].tolist())
    given = [(row, place) for row, number in numbers for place in listed[number].assigned or ()]
    pairs = np.array(given, np.int64).reshape(-1, 2)
    both = joined(
        np.concatenate([pairs[:, 0], rows]), np.concatenate([pairs[:, 1], batch.slices[held["slice"][which]]])
    )
    lacking = ~np.isin(both[len(pairs) :], both[: len(pairs)])
    which, rows = which[lacking], rows[lacking]
    found = np.full(len(held), -1, np.int64)
    one = first_of(which)
    found[which[one]] = rows[one]
    return found


def _first_leave(batch: Batch, left: Table, loss_ns: Ints) -> Ints:
    """Returns the first request by which each ownership epoch's member left its group after the loss."""
    _, member_id = last_given(batch, ownership_epochs(batch)["slice"], epoch_owners(batch), loss_ns - 1)
    wanted, after_ns = table(member=epoch_owners(batch), member_id=member_id), np.minimum(loss_ns, NEVER - 1)
    row = first_since(left, wanted, "member", "member_id", by="received_ns", since=after_ns)
    return np.where(loss_ns == NEVER, -1, row)


def _told_before(batch: Batch, loss_ns: Ints) -> Table:
    """Returns received_ns, source and seq of the last word before each loss that told the member that it has the
    partition no more, if it was not given it again until then (NEVER, -1: there is none): it left its group, it was
    unknown there, or it was given an assignment without the partition. To the member id that had had it."""
    held, owner, answers = ownership_epochs(batch), epoch_owners(batch), _received(batch)
    lacking = _lacking(batch, answers)
    words = stacked(*(answers.take(answers[name]) for name in ("leaves", "expels")))
    words = words.having(slice=np.full(len(words), NO_SLICE))
    words = stacked(words.only(*_WORD), lacking.only(*_WORD))
    given_ns, member_id = last_given(batch, held["slice"], owner, loss_ns - 1)
    found = {"received_ns": np.full(len(held), NEVER), "source": np.full(len(held), -1), "seq": np.full(len(held), -1)}
    since_ns = np.maximum(held["open_ns"], given_ns)
    for slices in (np.full(len(held), NO_SLICE), held["slice"]):
        wanted = table(slice=slices, member=owner, member_id=member_id)
        row = last_until(words, wanted, "slice", "member", "member_id", by="received_ns", until=loss_ns - 1)
        told_ns = picked(words["received_ns"], row, NONE)
        fits = (loss_ns != NEVER) & (member_id >= 0) & (row >= 0) & (told_ns >= since_ns)
        fits &= told_ns < found["received_ns"]
        for name in found:
            found[name] = np.where(fits, picked(words[name], row, -1), found[name])
    return table(**found)


NO_SLICE = -1  # of a word that is about all partitions
_WORD = ("slice", "member", "member_id", "received_ns", "source", "seq")


def _lacking(batch: Batch, answers: Table) -> Table:
    """Returns the assignments that lack a partition which the one before them, of the same member id, had; by slice."""
    assigned = answers.take(answers["assigns"])
    listed = batch.trial_context.group_answers
    places = {int(number): place for place, number in enumerate(batch.slices.tolist())}
    before: dict[tuple[int, int], set[int]] = {}
    rows, slices = [], []
    keys = zip(assigned["member"].tolist(), assigned["member_id"].tolist(), assigned["number"].tolist(), strict=True)
    for row, (member, member_id, number) in enumerate(keys):
        has = {places[one] for one in listed[number].assigned or () if one in places}
        gone = before.get((member, member_id), set()) - has
        rows += [row] * len(gone)
        slices += sorted(gone)
        before[member, member_id] = has
    return assigned.take(np.array(rows, np.int64)).having(slice=np.array(slices, np.int64))


def _received(batch: Batch) -> Table:
    return _answers(batch).take(_answers(batch)["received_ns"] != NEVER)


@index
def _answers(batch: Batch) -> Table:
    """Returns the answers to group members: number, member, sent_ns, received_ns (NEVER: not for certain), source, seq,
    and whether each `fences`, `assigns` or answers `commits`. Sorted by (member, sent).

    A request by which a member `leaves` its group itself counts as received when it was asked.
    """
    trial_context = batch.trial_context
    listed = trial_context.group_answers
    known = {(one.source, one.lane, one.name): number for number, one in enumerate(trial_context.connections)}
    connections = [known.get((one.source, one.lane, one.connection or ""), -1) for one in listed]
    columns = {
        "number": range(len(listed)),
        "connection": connections,
        "wall_ns": [NONE if one.wall_ns is None else one.wall_ns for one in listed],
        **{name: [getattr(one, name) for one in listed] for name in ("member_id", "source", "seq", "lane", "time_ns")},
        **{name: [getattr(one, name) for one in listed] for name in ("duration_ns", "error")},
        "lists": [one.assigned is not None for one in listed],
        "epoch": [NONE if one.epoch is None else one.epoch for one in listed],
    }
    rows = Table({name: np.array(values, np.int64) for name, values in columns.items()})
    sent_ns = monotonic(trial_context, rows["wall_ns"], rows["time_ns"])
    rows = rows.having(sent_ns=sent_ns, begun_ns=sent_ns - rows["duration_ns"])
    member = members_at(batch, rows["lane"], rows["connection"], rows["member_id"])
    owner = np.array([*trial_context.owners, -1], np.int64)[rows["member_id"]]
    own = (owner >= 0) & (owner == members_of(batch, rows["lane"], otherwise=-1))  # else it has another one removed
    leaves = np.array([one.leaves for one in listed], np.bool_) & own & (rows["error"] == 0)
    rows = rows.having(
        member=member,
        leaves=leaves,
        received_ns=np.where(leaves, rows["begun_ns"], received_ns(trial_context, rows)),
        fences=np.isin(rows["error"], FENCING),
        expels=rows["error"] == UNKNOWN_MEMBER_ID,
        commits=np.array([one.api in COMMITS for one in listed], np.bool_),
        assigns=(rows["error"] == 0) & (rows["lists"] == 1),
    )
    rows = rows.take(rows["member"] >= 0)
    rows = rows.take(ordered(rows["member"], rows["sent_ns"], rows["source"], rows["seq"]))
    return rows.having(fences=rows["fences"] & ~_of_an_older_generation(rows))


def _of_an_older_generation(answers: Table) -> Bools:
    """Returns which answers refuse the generation of a request that lies before that of the last assignment of the same
    member id: that was over then. (Who is unknown, or fenced by another instance, is so in every generation.)"""
    given = answers.take(answers["assigns"])
    row = last_until(given, answers, "member", "member_id", by="sent_ns", until=answers["sent_ns"])
    older: Bools = (answers["error"] == ILLEGAL_GENERATION) & (answers["epoch"] != NONE)
    return older & (answers["epoch"] < picked(given["epoch"], row, NONE))
