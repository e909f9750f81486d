"""Losses that brokers know of, and those that are none: literal histories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from group_lines import beat, heartbeat, joined, left, synced
from histories import (
    Line,
    after,
    asked,
    assigned,
    batch_of,
    delivered,
    exited,
    fault,
    gone,
    healed,
    holds,
    judged,
    own_time,
    owner,
    processed,
    revoked,
    said,
    started,
    told,
    with_settings,
)
from kafka_trial.model.false_losses import false_losses
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.rows import Kind

Lines = list[Line | list[Line]]
LOST = said("m0", "lost", entries=[{"topic": "t", "partition": 0}])
HELD: Lines = [owner("m0"), synced("m0", 0), assigned("m0"), after(1), heartbeat("m0")]
REJOINS: Lines = [joined("m0", generation=2), synced("m0", generation=2)]  # and so it was not being closed


def how_many(*between: Line | list[Line], then: Lines = REJOINS, held: Lines = HELD, **frame: Any) -> int:
    """How many `lost` lines tell of no loss, of one after a second's ownership epoch."""
    return len(false_losses(batch_of([*held, *between, LOST, after(1), *then], **frame)))


def static(line: Line) -> Line:
    """The same of a member with an instance id."""
    return replace(line, fields=line.fields | {"instance_id": "one"})


# --- losses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [22, 25, 82, 110, 14, 15, 16, 81, 111])
@pytest.mark.parametrize(
    "answer",
    [heartbeat("m0"), beat("m0"), synced("m0"), joined("m0"), asked("OFFSET_COMMIT", "m0", 1)],
    ids=["Heartbeat", "ConsumerGroupHeartbeat", "SyncGroup", "JoinGroup", "commit"],
)
def test_a_member_that_a_broker_refused_may_have_lost_its_partitions(answer: Line, error: int) -> None:
    """By whatever request; of errors that are to be retried nobody knows when a client gives up."""
    refused = replace(answer, fields=answer.fields | {"error": error})
    assert how_many(refused) == 0


@pytest.mark.parametrize(
    "between",
    [
        [left("m0")],
        [beat("m0", epoch=-1)],
        [owner("m1")],
        [owner(idle=["m0"])],
        [owner("m1"), owner("m0")],
        [fault("pause", "m0"), after(0.2), healed()],
        [fault("stall", "m0")],
        [fault("latency", None), after(0.2), healed(), after(1), heartbeat("m0")],
        [fault("requests-held", "m0"), after(0.2), healed()],
    ],
    ids=[
        "it left: its poll interval ran out",
        "it left by a heartbeat",
        "the log gave the partition to others",
        "the log gave it to nobody",
        "and back to it",
        "it was paused",
        "its link stands still",
        "all links were slow",
        "its requests were held",
    ],
)
def test_what_may_have_cost_the_partition_makes_a_loss_of_it(between: Lines) -> None:
    """Seen by a broker, or done by a fault."""
    about = with_settings(protocol="consumer") if "epoch" in between[0].fields else with_settings()  # type: ignore[union-attr]
    assert how_many(*between, settings=about) == 0


def test_a_member_of_kip_848_that_is_gone_has_lost_its_partitions() -> None:
    """By the offsets log."""
    held: Lines = [holds("m0", 0), beat("m0", [0]), assigned("m0"), after(1), beat("m0")]
    back: Lines = [beat("m0", [], epoch=2)]
    assert how_many(gone("m0"), held=held, then=back) == 0
    assert how_many(held=held, then=back) == 1


@pytest.mark.parametrize("between", [[], [assigned("m0")]], ids=["assigned once", "its line was printed again"])
def test_a_refusal_counts_from_when_the_partition_was_assigned(between: Lines) -> None:
    """A line that no broker stands behind begins nothing anew."""
    assert how_many(heartbeat("m0", error=25), after(1), *between) == 0


@pytest.mark.parametrize(("rebalance_s", "found"), [(5, 1), (10, 0)])
def test_what_a_fault_kept_from_a_member_it_may_hear_with_its_next_poll(rebalance_s: int, found: int) -> None:
    """Nine seconds after it was paused; brokers were told how long a rebalance waits for its poll."""
    given: Lines = [joined("m0", session_timeout_ms=3000, rebalance_timeout_ms=rebalance_s * 1000), *HELD]
    alive = [line for _ in range(6) for line in (after(1.5), heartbeat("m0"))]
    assert how_many(fault("pause", "m0"), healed(), *alive, held=given) == found


def test_a_member_that_no_broker_had_answered_yet_may_have_lost_its_partitions() -> None:
    """The offsets log gave it the partition; its session is longer than the machine runs."""
    settings = with_settings(session_timeout_s=200)
    held: Lines = [started("m0"), owner("m0"), assigned("m0")]
    assert how_many(held=held, members=0, settings=settings) == 0
    assert how_many(held=[*held, heartbeat("m0")], members=0, settings=settings) == 1


def test_a_session_without_an_answer_is_a_loss() -> None:
    """Three seconds, less half a second, between two heartbeats; or until the line."""
    assert how_many(after(2.6), heartbeat("m0")) == 0
    assert how_many(after(2.6)) == 0
    assert how_many(after(1.5), heartbeat("m0"), after(1.5), heartbeat("m0")) == 1


def test_an_answer_with_an_error_is_no_sign_of_life_but_that_of_a_rebalance_is() -> None:
    """So clients count them."""
    assert how_many(after(1.4), heartbeat("m0", error=7), after(1.4)) == 0
    assert how_many(after(1.4), heartbeat("m0", error=27), after(1.4)) == 1


def test_a_coordinator_that_moves_answers_in_another_log() -> None:
    """The heartbeats of both together leave no gap."""
    there = replace(heartbeat("m0"), source="requests-b1")
    whole = Line("requests-b1", "witness", {"state": "complete"})
    assert how_many(after(1.4), there, after(1.4), then=[*REJOINS, whole]) == 1


def test_a_silence_before_the_partition_was_assigned_costs_it_nothing() -> None:
    """It had been away, and came back."""
    back: Lines = [joined("m0"), owner("m0"), synced("m0", 0), after(0.6), *HELD[2:]]
    away: Lines = [joined("m0"), synced("m0"), after(4), *back]
    assert how_many(held=away) == 1


def test_a_member_with_an_instance_id_does_not_say_that_its_poll_interval_ran_out() -> None:
    """Static members do not leave."""
    assert how_many(held=[*map(static, HELD[:2]), *HELD[2:]]) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("between", "then", "found"),
    [
        ([heartbeat("m0", error=27)], [exited("m0")], 0),
        ([joined("m0", generation=2)], [exited("m0")], 0),
        ([heartbeat("m0", error=27)], REJOINS, 1),
        ([heartbeat("m0", error=27), *REJOINS], [exited("m0")], 1),
        ([], [exited("m0")], 1),
        ([heartbeat("m0", error=27)], [exited("m0"), started("m0-1"), *REJOINS], 0),
    ],
    ids=["refused", "joining", "it goes on", "it was over", "none", "its next process goes on"],
)
def test_a_client_that_is_closed_in_a_rebalance_calls_what_it_has_lost(between: Lines, then: Lines, found: int) -> None:
    """Java's does (onLeavePrepare)."""
    assert how_many(*between, then=then) == found


@pytest.mark.parametrize(
    ("lines", "frame"),
    [
        ([], {"whole": False}),
        ([fault("broker-kill", None), after(1)], {}),
        ([], {"settings": with_settings(protocol="none")}),
    ],
    ids=["the request log was not read to its end", "a broker was stopped", "by hand"],
)
def test_where_the_request_log_cannot_tell_a_loss_is_believed(lines: Lines, frame: dict[str, Any]) -> None:
    """As it was before."""
    assert how_many(*lines, **frame) == 0


def test_of_a_line_out_of_a_buffer_nobody_knows_when_it_was_said() -> None:
    """What was before the partition was assigned, by the time of its line, may have been after it."""
    refused: Lines = [joined("m0"), heartbeat("m0", error=25), after(1), *HELD]
    assert how_many(held=refused) == 1
    assert how_many(held=refused, settings=with_settings(stdout="buffered")) == 0


def test_of_several_members_in_a_process_the_log_does_not_say_whose_loss_it_is() -> None:
    """One of them may have been refused, or silent, and not the other."""
    other = [replace(line, fields=line.fields | {"member_id": "id-b"}) for line in (joined("m0"), synced("m0"))]
    mixed: Lines = [joined("m0"), other[0], heartbeat("m0"), other[1]]
    assert how_many(held=[*mixed, *HELD]) == 0


# --- what is none --------------------------------------------------------------------------------------------------


def test_a_loss_that_no_broker_knows_of_is_a_revocation() -> None:
    """The member was asked to rejoin, did, and was answered all the time."""
    assert how_many() == 1
    assert how_many(heartbeat("m0", error=27)) == 1
    held = ownership_epochs(batch_of([*HELD, LOST, after(1), *REJOINS]))
    assert told(held, "closed_by") == [(Kind.REVOKED,)]


@pytest.mark.parametrize(
    "between",
    [
        [left("m1")],
        [heartbeat("m1", error=25)],
        [fault("pause", "m1"), after(0.2), healed()],
        [fault("terminate", "m0")],
        [fault("join", None)],
        [asked("OFFSET_COMMIT", "m0", 1, error=27)],
    ],
    ids=["another one left", "another one was refused", "it was paused", "it is to stop", "a new one", "a rebalance"],
)
def test_what_cannot_have_cost_the_partition_makes_no_loss_of_it(between: Lines) -> None:
    """It is another member's, or ends no session."""
    assert how_many(*between) == 1


def test_what_had_cost_it_an_earlier_possession_does_not_count_again() -> None:
    """It was refused, lost the partition, and was given it again."""
    first: Lines = [*HELD, heartbeat("m0", error=25), LOST, after(1)]
    assert how_many(held=[*first, *HELD]) == 1


def test_others_are_given_the_partition_after_it_was_given_up() -> None:
    """As in every rebalance."""
    assert how_many(then=[owner("m1"), *REJOINS]) == 1


def test_what_ends_after_a_loss_that_is_none_is_work_after_revoke() -> None:
    """The record in hand is excused by a loss only."""
    lines: Lines = [*HELD, delivered("m0", 0), LOST, processed("m0", 0), after(1), *REJOINS]
    assert [one["what"] for one in judged("work-after-revoke", lines)] == ["processed"]
    assert judged("work-after-revoke", [*lines[:5], heartbeat("m0", error=25), *lines[5:]]) == []


def test_a_line_that_bears_its_own_time_is_compared_by_it() -> None:
    """It was read half a second late."""
    lines: Lines = [*HELD, own_time(LOST, 0.4), after(1), *REJOINS, revoked("m0")]
    assert len(false_losses(batch_of(lines))) == 1


def test_a_member_that_says_goodbye_by_a_heartbeat_in_a_group_of_both_protocols_may_lose_partitions() -> None:
    """While clients are moved from the classic protocol to KIP-848: the classic ones join as they did."""
    classic = joined("m1", session_timeout_ms=6000)
    assert how_many(classic, beat("m0", epoch=-1)) == 0
    assert how_many(classic) == 1
