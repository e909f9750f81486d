"""Indeterminate commits: those that stood in the log, and of which their member cannot have known that they do.

By its own word the attempt failed, and no witness says that the answer was received; or the answer was held or cut off,
and the member never says that it had one. Nor was it received by a client that asks for the same place once more, on
another connection, and is then refused (librdkafka closes a connection on which another request timed out, and begins
its commit anew): soon, for clients wait for an answer only so long, and not in another process. That ends when the same
ownership epoch has a commit at the place, or behind it, accepted and the answer received: by its own word, or by the
request log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model import response_delivery
from kafka_trial.model.clients import incarnation_at, members_of
from kafka_trial.model.commits_log import AMBIGUOUS, UNKNOWN, commits_in_effect, requests_of
from kafka_trial.model.instants import at_earliest, at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    joined,
    last_true,
    min_after,
    ordered,
    picked,
)
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.request_logs import commit_requests
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import FILE, Table, last_until, stacked, table
from kafka_trial.model.zombies import REQUEST_TIMEOUT_S, SECOND_NS

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


def unknown_to_member(batch: Batch) -> Bools:
    """Returns for each commit whether its member cannot have known that it stands.

    A client that has given up waiting throws the answer away: it takes only what was sent before.
    """
    request, asked = requests_of(batch, commits_in_effect(batch))
    answers = response_delivery.answers_of(batch, asked)
    sure, maybe = (
        told(batch.trial_context, answers)
        for told in (response_delivery.surely_received, response_delivery.maybe_received)
    )
    failed = _failures(batch)
    sent_ns = picked(answers["sent_ns"], request, NEVER)
    in_time = sent_ns <= at_earliest(batch.earliest(failed["time_ns"]))
    asked_again = picked(_refused_elsewhere(batch, asked).astype(np.int64), request, 0) == 1
    surely = (picked(sure, request, 0) == 1) & in_time & ~asked_again
    never_received = picked(maybe, request, 1) == 0
    return ((failed["source"] >= 0) & ~surely) | never_received


def known_later(batch: Batch) -> Bools:
    """Returns for each commit whether its member was told, while it held the partition on, that one at its place or
    behind it was accepted: by its lines, or by the request log, which knows of the first attempt when it answered it.
    """
    log = commits_in_effect(batch)
    request, asked = requests_of(batch, log)
    sent_ns = response_delivery.answers_of(batch, asked)["sent_ns"]
    since_ns = at_earliest(log["effect_ns"])
    told = _received_since(batch, since_ns, _accepted_by_lines(batch))
    return told | _received_since(
        batch, np.where(request >= 0, picked(sent_ns, request, NONE), since_ns), _accepted_by_log(batch)
    )


def _received_since(batch: Batch, since_ns: Ints, accepted: Table) -> Bools:
    """Returns for each commit whether its member was told of one of the accepted, in the same ownership epoch, after
    it."""
    log = commits_in_effect(batch)
    own = picked(batch.incarnations["source"], log["incarnation"], -1)
    source = np.where(own >= 0, own, _failures(batch)["source"])
    wanted = table(
        slice=log["slice"],
        source=source,
        time_ns=since_ns,
        at_ns=log["effect_ns"],
        committed_offset=log["committed_offset"],
    ).having(number=np.arange(len(log)))
    both = stacked(wanted, accepted)
    ownership_epoch = last_until(ownership_epochs(batch), both, *FILE, by="open_ns", until=both["at_ns"])
    # Where nobody knows how long it held the partition, only the very same place counts.
    stretch = joined(
        both["slice"], both["source"], ownership_epoch, np.where(ownership_epoch < 0, both["committed_offset"], 0)
    )
    order = ordered(stretch, both["time_ns"], both["number"])  # what was received in the same instant stands before
    both, stretch = both.take(order), stretch[order]
    asked = both["number"] >= 0
    behind = np.where(asked, NEVER, -both["committed_offset"])
    furthest = picked(behind, min_after(stretch, behind), NEVER)
    known = np.zeros(len(log), np.bool_)
    known[both["number"][asked]] = furthest[asked] <= -both["committed_offset"][asked]
    return known


def accepted_by_own_line(batch: Batch) -> Bools:
    """Returns the commits of which a line of their own incarnation says that they were accepted; of several of the same
    position, the last one before that line."""
    log, heard = commits_in_effect(batch), np.zeros(len(commits_in_effect(batch)), np.bool_)
    own = log.having(source=picked(batch.incarnations["source"], log["incarnation"], -1))
    accepted = _accepted_by_lines(batch)
    until_ns = at_latest(accepted["time_ns"])
    rows = last_until(own, accepted, *FILE, "committed_offset", by="effect_ns", until=until_ns)
    heard[rows[rows >= 0]] = True
    return heard


def _accepted_by_lines(batch: Batch) -> Table:
    """Returns what members say was accepted: slice, source, time_ns, at_ns (the same), committed_offset,
    number -1."""
    own = member_lines(batch).take(member_lines(batch)["kind"] == Kind.COMMIT_OK)
    return _accepted(own["slice"], own["source"], own["time_ns"], own["committed_offset"])


def _accepted_by_log(batch: Batch) -> Table:
    """Returns what was accepted by the request log, and surely received; as `_accepted_by_lines`."""
    asked = commit_requests(batch)
    asked = asked.having(member=members_of(batch, asked["lane"], otherwise=-1))
    asked = asked.take((asked["error_code"] == 0) & (asked["answered_wall_ns"] != NONE) & (asked["member"] >= 0))
    sure = response_delivery.surely_received(batch.trial_context, response_delivery.answers_of(batch, asked))
    asked = asked.take(sure & ~_refused_elsewhere(batch, asked))
    at_ns = batch.monotonic(asked["answered_wall_ns"], asked["time_ns"])
    source = picked(batch.incarnations["source"], incarnation_at(batch, asked["member"], at_ns), -1)
    return _accepted(asked["slice"], source, at_ns, asked["committed_offset"])


def _refused_elsewhere(batch: Batch, accepted: Table) -> Bools:
    """Returns whether the process of each accepted request asked for the same place again, after the answer, on another
    connection, and was refused, in the time that clients wait for an answer; of several refused ones the last counts.
    """
    waits_s = batch.trial_context.settings.request_timeout_s
    waits_ns = int((REQUEST_TIMEOUT_S if waits_s is None else waits_s) * SECOND_NS)
    asked = commit_requests(batch)
    refused = asked.take((asked["error_code"] != 0) & (asked["answered_wall_ns"] != NONE))
    refused, accepted = (rows.having(process=_processes(batch, rows)) for rows in (refused, accepted))
    names = ("slice", "lane", "committed_offset", "process")
    code = joined(*(np.concatenate([refused[name], accepted[name]]) for name in names))
    mine, wanted = code[: len(refused)], code[len(refused) :]
    order = ordered(mine, refused["answered_wall_ns"])
    until_ns = accepted["answered_wall_ns"] + waits_ns
    last = at_or_before(mine[order], refused["answered_wall_ns"][order], wanted, until_ns)
    later = picked(refused["answered_wall_ns"][order], last, NONE) > accepted["answered_wall_ns"]
    other, own = picked(refused["connection"][order], last, NONE), accepted["connection"]
    elsewhere: Bools = (last >= 0) & later & (other >= 0) & (own >= 0) & (other != own)
    return elsewhere


def _processes(batch: Batch, asked: Table) -> Ints:
    """Returns the incarnation that made each commit request."""
    at_ns = batch.monotonic(asked["answered_wall_ns"], asked["time_ns"])
    return incarnation_at(batch, members_of(batch, asked["lane"], otherwise=-1), at_ns)


def _accepted(slices: Array, sources: Array, time_ns: Array, committed_offsets: Array) -> Table:
    return table(
        slice=slices,
        source=sources,
        time_ns=time_ns,
        at_ns=time_ns,
        committed_offset=committed_offsets,
        number=np.full(len(slices), -1),
    )


def _failures(batch: Batch) -> Table:
    """Returns `source` and `time_ns` of the word that each commit failed, by the last attempt that had begun by then.

    That of its own incarnation; where nobody knows the committer, of whoever failed at the place. Source -1 for none.
    """
    log, attempts = commits_in_effect(batch), _failed_attempts(batch)
    own = picked(batch.incarnations["source"], log["incarnation"], -1)
    nobody = np.isin(log["committer"], (UNKNOWN, AMBIGUOUS))
    by_own = _last_begun(attempts, log.having(source=own), "slice", "committed_offset", "source")
    by_any = _last_begun(attempts, log, "slice", "committed_offset")
    row = np.where(own >= 0, by_own, np.where(nobody, by_any, -1))
    return table(source=picked(attempts["source"], row, -1), time_ns=picked(attempts["time_ns"], row, NEVER))


def _failed_attempts(batch: Batch) -> Table:
    """Returns slice, source, committed_offset, time_ns and begun_ns (NONE: it was not told) of the failed attempts."""
    own = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.COMMIT_INVOKE, Kind.COMMIT_FAIL)))
    own = own.take(ordered(own["file"], own["committed_offset"]))
    invoked = last_true(joined(own["file"], own["committed_offset"]), own["kind"] == Kind.COMMIT_INVOKE)
    own = own.having(begun_ns=picked(own["time_ns"], invoked, NONE))
    failed = own.take(own["kind"] == Kind.COMMIT_FAIL)
    return failed.only("slice", "source", "committed_offset", "time_ns", "begun_ns")


def _last_begun(attempts: Table, commits: Table, *names: str) -> Ints:
    """Returns the last attempt that has the same columns as each commit, and had begun when it took effect; else -1."""
    code = joined(*(np.concatenate([attempts[name], commits[name]]) for name in names))
    order = ordered(code[: len(attempts)], attempts["begun_ns"])
    found = at_or_before(
        code[: len(attempts)][order],
        attempts["begun_ns"][order],
        code[len(attempts) :],
        at_latest(commits["effect_ns"]),
    )
    return picked(order, found, -1)
