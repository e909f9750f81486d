"""What ends the excuse of a member that lost a partition untold: literal histories, each of at most eight lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from group_lines import beat, heartbeat, joined, left, synced
from histories import (
    EXAMPLE,
    Line,
    after,
    asked,
    assigned,
    at_once,
    batch_of,
    commit,
    delivered,
    exited,
    fault,
    fetched,
    finding,
    handled,
    healed,
    history,
    holds,
    judged,
    lasting,
    on,
    owner,
    processed,
    revoked,
    said,
    started,
    stood_still,
    told,
    undecided,
    with_settings,
)
from kafka_trial.claim import Claim
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.zombies import zombie_windows
from kafka_trial.verdict.collect import collect
from kafka_trial.verdict.decide import decide
from kafka_trial.verdict.verdict_input import Scope

# m0 has fetched records 0 and 1, and works on the first one; then the log gives the partition to m1.
LOST = [fetched("m0", 0, size_bytes=99), assigned("m0"), delivered("m0", 0), owner("m1"), after(1)]
EXPELLED = heartbeat("m0", error=25)
LATER = [after(1), fetched("m0", 2, size_bytes=99), after(1)]  # it goes on where it had fetched to
SPLIT = [{"offset": 2, "by": "told"}]


def split(*lines: Line | list[Line], **frame: object) -> list[dict[str, object]]:
    """What split-ownership finds when m0 has lost the partition."""
    return judged("split-ownership", [*LOST, *lines], records=3, partitions=2, **frame)


def test_a_record_fetched_after_the_member_was_told_is_a_split() -> None:
    """Its heartbeat was refused, it fetched on, and it was delivered the next record."""
    found = finding("split-ownership", [*LOST, EXPELLED, *LATER, delivered("m0", 2)], records=3)
    assert [(one.attributes, one.events) for one in found.instances] == [
        (SPLIT[0], ("requests-b0#3", "consumer-m0-0#3"))
    ]


@pytest.mark.parametrize("error", [22, 25, 82, 110])
@pytest.mark.parametrize(
    "answer",
    [
        heartbeat("m0"),
        beat("m0"),
        synced("m0"),
        joined("m0"),
        asked("OFFSET_COMMIT", "m0", 1, error=1),
        asked("TXN_OFFSET_COMMIT", "m0", 1, error=1),
        on(1, asked("OFFSET_COMMIT", "m0", 1, error=1)),
    ],
    ids=["Heartbeat", "ConsumerGroupHeartbeat", "SyncGroup", "JoinGroup", "commit", "in a transaction", "elsewhere"],
)
def test_a_fencing_error_on_any_request_of_the_group_tells(answer: Line, error: int) -> None:
    """Whatever it was asked for; the library may swallow it."""
    assert split(refused(answer, error), *LATER, delivered("m0", 2)) == SPLIT


@pytest.mark.parametrize("error", [0, 14, 15, 16, 27, 113])
def test_other_errors_say_nothing_of_ownership(error: int) -> None:
    """They are to be retried: that is zombie work, which no plain consumer can prevent."""
    lines = [refused(heartbeat("m0"), error), *LATER, delivered("m0", 2)]
    assert split(*lines) == []
    assert len(judged("zombie-work", [*LOST, *lines], records=3)) == 1


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (synced("m0", generation=2), SPLIT),
        (synced("m0", 1, generation=2), SPLIT),
        (synced("m0", 0, generation=2), []),
        (synced("m0", generation=2, error=27), []),
        (beat("m0", [1], epoch=2), SPLIT),
        (beat("m0", [0, 1], epoch=2), []),
        (beat("m0", epoch=2), []),
        (joined("m0", generation=2), []),
        (left("m0"), []),
        (synced("m1", generation=2), []),
        (heartbeat("m1", error=25), []),
    ],
    ids=[
        "it is given nothing",
        "it is given another one",
        "it is given this one",
        "the group is still rebalancing",
        "KIP-848: it is given another one",
        "KIP-848: it is given this one as well",
        "KIP-848: as before",
        "joining alone says nothing of partitions",
        "nor does leaving",
        "another member's assignment",
        "another member's refusal",
    ],
)
def test_its_own_rejoin_tells_by_what_it_is_given(answer: Line, found: list[dict[str, object]]) -> None:
    """An assignment without the partition."""
    assert split(answer, *LATER, delivered("m0", 2)) == found


def test_a_time_out_tells_nothing() -> None:
    """The member says that its commit failed; no broker refused it."""
    assert split(commit("m0", 1, "fail"), *LATER, delivered("m0", 2)) == []
    assert split(said("m0", "commit", outcome="fail"), *LATER, delivered("m0", 2)) == []


def test_a_refusal_before_the_loss_tells_nothing_of_it() -> None:
    """Nor one in the very instant of the loss."""
    lines = [fetched("m0", 0, size_bytes=99), assigned("m0"), EXPELLED, owner("m1"), at_once(lasting(EXPELLED, 0))]
    assert judged("split-ownership", [*lines, *LATER, delivered("m0", 2)], records=3) == []


def test_what_it_had_fetched_before_it_may_finish() -> None:
    """It has two records in its buffer when its heartbeat thread hears, and takes ten seconds for each."""
    lines = [EXPELLED, after(10), processed("m0", 0), delivered("m0", 1), after(10), processed("m0", 1)]
    assert split(*lines) == []
    assert split(*lines, *LATER) == []


def test_what_was_on_its_way_when_it_was_told_counts_as_fetched_before() -> None:
    """The fetch began before the answer; clocks and threads are allowed half a second besides."""
    next_one = [EXPELLED, after(0.9), lasting(fetched("m0", 2, size_bytes=99), 0.5), after(1)]
    assert split(*next_one, delivered("m0", 2)) == []
    begun_later = [EXPELLED, after(1.1), lasting(fetched("m0", 2, size_bytes=99), 0.5), after(1)]
    assert split(*begun_later, delivered("m0", 2)) == SPLIT


@pytest.mark.parametrize(
    ("fetches", "found"),
    [
        ([fetched("m1", 2, size_bytes=99)], []),
        ([on(1, fetched("m0", 2, size_bytes=99))], []),
        ([fetched("m0", 3, size_bytes=99)], []),
        ([], []),
        ([fetched("m0", 1, size_bytes=99)], SPLIT),
        ([fetched("m0", 2), fetched("m0", 3)], SPLIT),
    ],
    ids=["another member's", "another partition's", "of later records", "none", "of an earlier one", "two fetches"],
)
def test_only_its_own_later_fetches_of_the_record_convict(fetches: list[Line], found: list[dict[str, object]]) -> None:
    """From a position at or below it."""
    assert split(EXPELLED, after(1), *fetches, after(1), delivered("m0", 2)) == found


def test_where_nobody_saw_what_it_fetched_the_case_is_undecided() -> None:
    """Told by a broker, or by its own word; without either it is plain zombie work."""
    unseen = [*LOST[1:], after(1)]
    assert undecided("split-ownership", [*unseen, EXPELLED, after(1), delivered("m0", 2)], records=3) == 1
    assert (
        undecided("split-ownership", [*unseen, commit("m0", 1, "fail"), after(1), delivered("m0", 2)], records=3) == 1
    )
    assert undecided("split-ownership", [*unseen, delivered("m0", 2)], records=3) == 0


def test_an_answer_that_was_not_heard_tells_nothing() -> None:
    """It was held, and its connection ended with the fault."""
    on_its_own = replace(EXPELLED, fields=EXPELLED.fields | {"connection": "to the coordinator"})
    cut = [fault("stall", "m0"), after(0.2), on_its_own, after(0.2), healed()]
    assert split(*cut, *LATER, delivered("m0", 2)) == []


def test_an_answer_that_was_held_tells_when_the_fault_is_over() -> None:
    """Its connection went on: what it fetched meanwhile it may finish, what it fetched then it may not."""
    held = [fault("stall", "m0"), after(0.2), EXPELLED, fetched("m0", 2, size_bytes=99), after(2), healed(), after(0.2)]
    assert split(*held, heartbeat("m0"), after(1), delivered("m0", 2)) == []
    on_it = [heartbeat("m0", error=27), *LATER[:1], fetched("m0", 3, size_bytes=99), after(1)]
    assert split(*held, *on_it, delivered("m0", 2), delivered("m0", 3)) == [{"offset": 3, "by": "told"}]


def test_a_member_that_was_stopped_is_told_when_it_runs_again() -> None:
    """It wakes with what it had fetched, hears that it was expelled, finishes its handler and loses the partition."""
    stopped = [fault("pause", "m0"), after(6), EXPELLED, healed(), processed("m0", 0), delivered("m0", 1)]
    assert split(*stopped, processed("m0", 1), EXPELLED, revoked("m0")) == []


def test_work_between_loss_and_answer_stays_excused() -> None:
    """A record fetched after the loss and handled before the answer; then it is told, and lets go."""
    assert split(*LATER, handled("m0", 2), EXPELLED, after(1), revoked("m0")) == []


def test_a_partition_given_back_is_its_own_again() -> None:
    """It was told, rejoined, and the log gives it the partition again."""
    assert split(EXPELLED, owner("m0"), *LATER, delivered("m0", 2)) == []


def test_the_end_of_the_possession_tells_first() -> None:
    """Its lost callback returned before the answer: from there on its work is work-after-revoke."""
    lines = [revoked("m0"), EXPELLED, *LATER, delivered("m0", 2)]
    assert split(*lines) == []
    assert len(judged("work-after-revoke", [*LOST, *lines], records=3)) == 1


def test_under_kip_848_a_fenced_epoch_tells() -> None:
    """It was fenced while m1 got the partition, and goes on fetching."""
    lost = [holds("m0", 0), assigned("m0"), holds("m0"), holds("m1", 0), after(1)]
    lines = [refused(beat("m0"), 110), *LATER, delivered("m0", 2)]
    assert judged("split-ownership", [*lost, *lines], records=3) == SPLIT


def test_zombie_work_counts_what_is_excused_only() -> None:
    """Before it was told and what it had fetched by then; not what it fetched later."""
    lines = [processed("m0", 0), EXPELLED, after(1), handled("m0", 1), *LATER, handled("m0", 2)]
    found = judged("zombie-work", [*LOST, *lines], records=3)
    assert [(one["offset"], one["what"]) for one in found] == [(0, "processed"), (1, "delivered"), (1, "processed")]


def test_order_is_not_excused_for_a_record_fetched_after_the_member_was_told() -> None:
    """m0 completes record 2 after m1 completed record 3: excused as long as m0 did not know."""
    others = [assigned("m1"), handled("m1", 3)]
    keys = {"records": ["k", "k", "k", "k"], "settings": with_settings()}
    late = [*LATER, *others, after(1), delivered("m0", 2), processed("m0", 2)]
    assert judged("reordered-key", [*LOST, *late], **keys) == []
    assert len(judged("reordered-key", [*LOST, EXPELLED, *late], **keys)) == 1


def test_the_window_names_the_answer_and_what_had_been_fetched() -> None:
    """By the number of its line, and the position from which on records were fetched later."""
    lines = [*LOST, EXPELLED, *LATER]
    windows = zombie_windows(batch_of(lines, records=3))
    assert told(windows, "loss", "told_source", "told_seq", "fetched", "fetches_known") == [
        (0, windows["told_source"][0], 3, 2, True)
    ]


def test_it_fails_though_the_defect_took_the_evidence_of_the_fault_away() -> None:
    """A member that was stopped past its session should have left; one that swallows its expulsion does not."""
    about = {"fault_no": 0, "fault": "pause", "target": "member: m0", "member": "m0"}
    none = {"bit": False, "heals": True, "healed_traffic": True, "message": "the group was rebalanced, but nobody left"}
    stopped = [fault("pause", "m0"), after(6), healed(), Line("nemesis", "evidence", about | none), EXPELLED]
    events = history([*LOST, *stopped, *LATER, delivered("m0", 2), processed("m0", 2)], records=3)
    case = collect(judge_events(events, EXAMPLE), [one for one in events if one.source == "nemesis"], Scope(1))
    verdict = decide(case, Claim("unclaimed", order="none"))
    assert (verdict.verdict, [one.anomaly for one in verdict.violations]) == ("fail", ["split-ownership"])
    assert any("nobody left" in reason for reason in verdict.reasons)


def refused(answer: Line, error: int) -> Line:
    """The same answer with that error, on it as a whole and on each of its entries."""
    entries = [entry | {"error": error} for entry in answer.fields.get("entries") or ()]
    return replace(answer, fields=answer.fields | {"error": error} | ({"entries": entries} if entries else {}))


def test_a_completion_alone_is_work_of_a_member_that_was_told() -> None:
    """It leaves the delivery out: what it completes it had in hand all the same."""
    assert split(EXPELLED, *LATER, processed("m0", 2)) == SPLIT


# --- told by its own clock -------------------------------------------------------------------------------------------

SESSION_S = 3.0
FETCHES = [fetched("m0", 1), fetched("m0", 2, size_bytes=99)]


def goes_on(*lines: Line | list[Line]) -> list[Line | list[Line]]:
    """m0 fetches a session and more after it asked its group last, then these lines, then it fetches and works on."""
    return [heartbeat("m0"), *LOST, after(4), FETCHES[0], *lines, FETCHES[1], after(1), delivered("m0", 2)]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([after(3.6)], SPLIT),
        ([after(2.9)], []),
        ([after(1), heartbeat("m0", error=27), after(2.6)], []),
        ([after(1), heartbeat("m1", error=27), after(2.6)], SPLIT),
        ([after(2.6), joined("m0", took_ms=2_000), after(1)], []),
        ([after(1), fault("stall", "m0"), healed(), after(2.6)], []),
        ([after(1), fault("broker-kill", None), after(2.6)], []),
        ([after(1), fault("stall", "m1"), healed(), after(2.6)], SPLIT),
        ([after(1), fault("leader-move", None), after(2.6)], SPLIT),
        ([after(1), stood_still(0.7), after(2.6)], SPLIT),
        ([after(1), stood_still(0.8), after(2.6)], []),
    ],
    ids=[
        "for two sessions",
        "for less",
        "it asked",
        "another asked",
        "its join was under way",
        "its network was held",
        "a broker was down",
        "another's network was held",
        "a leader moved",
        "the machine stood still for a moment",
        "the machine stood still",
    ],
)
def test_a_member_that_asks_its_group_nothing_more_is_told_by_its_own_clock(
    lines: list[Line | list[Line]], found: list[dict[str, object]]
) -> None:
    """Its heartbeats have stopped, and it goes on fetching: nobody else could tell it."""
    assert judged("split-ownership", goes_on(*lines), records=3) == found


def test_a_member_that_was_still_is_not_told_by_its_own_clock() -> None:
    """It hung for five sessions, and asks its group something as soon as it fetches."""
    hung = [heartbeat("m0"), *LOST, after(15), FETCHES[0], after(0.5), heartbeat("m0", error=27)]
    assert judged("split-ownership", [*hung, FETCHES[1], after(1), delivered("m0", 2)], records=3) == []


def test_a_member_that_asks_again_later_had_not_stopped_to_ask() -> None:
    """What it asked may have been held up: an answer that took eight seconds, a coordinator that was not found."""
    lines = goes_on(after(3.6))
    assert judged("split-ownership", [*lines, after(1), heartbeat("m0", error=27)], records=3) == []
    again = [after(1), exited("m0", signal=9), started("m0-1"), joined("m0")]
    assert judged("split-ownership", [*lines, *again], records=3) == SPLIT


def test_a_request_may_go_unanswered_for_as_long_as_clients_wait() -> None:
    """Its network had been held a while ago: declared, or as long as libraries wait."""
    held = [heartbeat("m0"), *LOST, fault("stall", "m0"), healed(), after(4), FETCHES[0], after(3.6)]
    lines = [*held, FETCHES[1], after(1), delivered("m0", 2)]
    assert judged("split-ownership", lines, records=3) == []
    assert judged("split-ownership", lines, records=3, settings=with_settings(request_timeout_s=40.0)) == []
    assert judged("split-ownership", lines, records=3, settings=with_settings(request_timeout_s=0.4)) == SPLIT


def test_what_a_silent_clock_proves_is_the_assignment_of_others() -> None:
    """There is no answer to point at; and where a request log was not read to its end, nobody can tell."""
    lines = goes_on(after(3.6))
    found = finding("split-ownership", lines, records=3)
    assert [one.events for one in found.instances] == [("offsets#0", "consumer-m0-0#3")]
    assert finding("split-ownership", lines, records=3, whole=False).instances == ()


def test_what_it_had_fetched_by_then_it_may_finish() -> None:
    """Record 1, though it begins it late."""
    begins = [heartbeat("m0"), *LOST, after(4), FETCHES[0], after(3.6), delivered("m0", 1)]
    assert judged("split-ownership", begins, records=3) == []
