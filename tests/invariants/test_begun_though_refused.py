"""What a member begins although a commit that covers it was refused: literal histories of at most eight lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from group_lines import heartbeat
from histories import (
    Line,
    after,
    asked,
    assigned,
    commit,
    committed,
    delivered,
    fault,
    fetched,
    finding,
    handled,
    healed,
    judged,
    measured,
    on,
    owner,
    processed,
    revoked,
    said,
    tombstone,
    undecided,
    with_settings,
)
from kafka_trial.model.trial_context import Settings

# m0 has fetched records 0 to 2, and works on the first one; then the log gives the partition to m1.
LOST = [fetched("m0", 0, size_bytes=99), assigned("m0"), delivered("m0", 0), owner("m1"), after(1)]
FENCED = asked("OFFSET_COMMIT", "m0", 2, error=25)
EXPELLED = heartbeat("m0", error=25)
ASKED_1, ASKED_2 = commit("m0", 1), commit("m0", 2)
REFUSED_1, REFUSED_2 = (commit("m0", value, "fail") for value in (1, 2))
REFUSED_SOMETHING = said("m0", "commit", outcome="fail", message="UNKNOWN_MEMBER_ID")
GOES_ON = [processed("m0", 0), after(1), delivered("m0", 1)]
AT_MOST_ONCE = with_settings(delivery="at-most-once")
FENCED_THERE = replace(FENCED, fields=FENCED.fields | {"connection": "m0"})
HELD = [fault("stall", "m0"), after(0.2), FENCED_THERE]


def split(*lines: Line | list[Line], lost: Sequence[Line | list[Line]] = LOST) -> list[object]:
    """The records of which split-ownership finds that they were begun by a member that knew."""
    return [one["offset"] for one in judged("split-ownership", [*lost, *lines], records=3, partitions=2)]


def test_who_commits_first_and_is_refused_must_not_begin() -> None:
    """It had fetched the record long before; told with its own line, and with that of its work."""
    found = finding("split-ownership", [*LOST, FENCED, REFUSED_2, *GOES_ON], records=3)
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 1, "by": "told"}, ("consumer-m0-0#3", "consumer-m0-0#5"))
    ]


def test_who_handles_first_may_finish_what_it_had_fetched() -> None:
    """A polled batch; the callback of a background commit says that what was done of it could not be committed."""
    assert split(asked("OFFSET_COMMIT", "m0", 1, error=25), REFUSED_1, *GOES_ON, *handled("m0", 2)) == []


def test_its_own_word_counts_of_what_it_fetched_after_it() -> None:
    """It handles first, and goes on fetching."""
    later = [processed("m0", 0), after(1), fetched("m0", 2, size_bytes=99), after(1), delivered("m0", 2)]
    assert split(FENCED, REFUSED_1, *later) == [2]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([REFUSED_2, FENCED, *GOES_ON], [1]),
        ([FENCED, REFUSED_2, delivered("m0", 1)], [1]),
        ([FENCED, REFUSED_2, delivered("m0", 1), processed("m0", 1), processed("m0", 0)], [1]),
        ([FENCED, REFUSED_2, processed("m0", 1)], [1]),
        ([FENCED, REFUSED_1, REFUSED_2, *GOES_ON], [1]),
        ([FENCED, REFUSED_2, REFUSED_1, *GOES_ON], [1]),
        ([FENCED, REFUSED_2, processed("m0", 0)], []),
        ([delivered("m0", 1), FENCED, REFUSED_2, processed("m0", 0), processed("m0", 1)], []),
        ([FENCED, *GOES_ON], []),
        ([FENCED, *GOES_ON, REFUSED_2], []),
        ([EXPELLED, REFUSED_2, *GOES_ON], []),
        ([FENCED, on(1, REFUSED_2), *GOES_ON], []),
        ([REFUSED_2, after(1), FENCED, *GOES_ON], []),
        ([FENCED, commit("m1", 2, "fail"), *GOES_ON], []),
        ([FENCED, REFUSED_2, owner("m0"), *GOES_ON], []),
    ],
    ids=[
        "its line comes first",
        "at once",
        "with another record in hand",
        "it tells of the completion only",
        "a later one covers it",
        "an earlier one covers it",
        "it finishes what it has in hand",
        "or two of them",
        "it says nothing: a background thread may have heard",
        "it says so afterwards",
        "it was told by its heartbeat, and its commit may have run out of time",
        "of another partition",
        "an earlier one ran out of time",
        "another member says so",
        "the partition was given back",
    ],
)
def test_what_it_begins_after_its_line_and_the_refused_commit_covers_convicts(
    lines: list[Line], found: list[int]
) -> None:
    """In one file the order is exact."""
    assert split(*lines) == found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([FENCED, REFUSED_SOMETHING], []),
        ([ASKED_2, FENCED, REFUSED_SOMETHING], [1]),
        ([ASKED_1, ASKED_2, FENCED, REFUSED_SOMETHING], [1]),
        ([ASKED_1, FENCED, REFUSED_SOMETHING, ASKED_2], []),
        ([ASKED_2, commit("m0", 2, "ok"), FENCED, REFUSED_SOMETHING], []),
        ([FENCED, REFUSED_SOMETHING, ASKED_2], []),
    ],
    ids=[
        "of no position",
        "of the one it had asked for",
        "of the last one",
        "of that before it",
        "that one was answered",
        "it asks afterwards",
    ],
)
def test_a_refusal_without_a_position_is_of_the_commit_that_was_asked_for(lines: list[Line], found: list[int]) -> None:
    """By the member's own word before it."""
    assert split(*lines, *GOES_ON) == found


def test_a_refusal_without_a_position_is_of_the_ownership_epoch_that_was_open_then() -> None:
    """The second one of its file."""
    again: list[Line | list[Line]] = [assigned("m0"), revoked("m0"), *LOST]
    assert split(ASKED_2, FENCED, REFUSED_SOMETHING, *GOES_ON, lost=again) == [1]


@pytest.mark.parametrize(("record", "found"), [(1, []), (2, [2])], ids=["committed before", "not committed"])
def test_what_an_earlier_commit_covers_it_may_begin(record: int, found: list[int]) -> None:
    """It commits a batch ahead of its work: records 0 and 1 are its own alone, m1 begins behind them."""
    lost: list[Line | list[Line]] = [*LOST[:2], committed(2, by="m0"), *LOST[2:]]
    lines = [asked("OFFSET_COMMIT", "m0", 3, error=25), commit("m0", 3, "fail"), delivered("m0", record)]
    assert split(*lines, lost=lost) == found


def test_a_commit_of_the_new_owner_is_no_leave_to_begin() -> None:
    """m1 has handled the record, and committed it, when m0 is refused."""
    assert split(committed(2, by="m1"), FENCED, REFUSED_2, *GOES_ON) == [1]


def test_where_nobody_saw_what_it_fetched_only_the_covered_record_convicts() -> None:
    """The other one it may have fetched before its line, or after it."""
    unseen: list[Line | list[Line]] = [*LOST[1:], FENCED]
    assert undecided("split-ownership", [*unseen, REFUSED_1, *GOES_ON]) == 1
    assert len(judged("split-ownership", [*unseen, REFUSED_2, *GOES_ON])) == 1


def test_what_it_may_finish_is_zombie_work_and_what_it_may_not_is_none() -> None:
    """After its line, by what the refused commit covers."""
    work = [processed("m0", 0), *handled("m0", 1)]
    for refused, counted in ((REFUSED_1, [0, 1, 1]), (REFUSED_2, [0])):
        found = judged("zombie-work", [*LOST, FENCED, refused, *work])
        assert [one["offset"] for one in found] == counted


@pytest.mark.parametrize(("refused", "found"), [(REFUSED_1, 0), (REFUSED_2, 1)], ids=["not covered", "covered"])
def test_order_is_excused_for_what_it_may_finish_only(refused: Line, found: int) -> None:
    """m0 completes record 1 after m1 completed record 2."""
    others = [assigned("m1"), *handled("m1", 2)]
    lines = [*LOST, *others, FENCED, refused, after(1), *handled("m0", 1), revoked("m0")]
    keys = {"records": ["k", "k", "k"], "settings": with_settings()}
    assert len(judged("reordered-key", lines, **keys)) == found


# --- by the request log alone: whoever claims at most once waits for the answer before it begins -------------------


def split_by_log(
    *lines: Line | list[Line], lost: Sequence[Line | list[Line]] = LOST, settings: Settings = AT_MOST_ONCE
) -> list[object]:
    """As `split`, of a member that claims at most once."""
    found = judged("split-ownership", [*lost, *lines], records=4, partitions=2, settings=settings)
    return [one["offset"] for one in found]


def test_who_claims_at_most_once_must_not_begin_what_a_refused_commit_covers() -> None:
    """It says nothing of its commits; told with the broker's refusal, and with the line of its work."""
    found = finding("split-ownership", [*LOST, FENCED, *GOES_ON], records=3, settings=AT_MOST_ONCE)
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 1, "by": "told"}, ("requests-b0#3", "consumer-m0-0#4"))
    ]


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once", "unclaimed"])
def test_another_claim_leaves_commits_to_a_background_thread(delivery: str) -> None:
    """Its answer reaches nobody who handles records."""
    assert split_by_log(FENCED, *GOES_ON, settings=with_settings(delivery=delivery)) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([FENCED, after(1), delivered("m0", 1)], [1]),
        ([FENCED, after(1), processed("m0", 1)], [1]),
        ([FENCED, asked("OFFSET_COMMIT", "m0", 1, error=22), *GOES_ON], [1]),
        ([asked("OFFSET_COMMIT", "m0", 1, error=22), FENCED, *GOES_ON], [1]),
        ([asked("OFFSET_COMMIT", "m0", 3, error=22), *GOES_ON, *handled("m0", 2)], [1, 2]),
        ([asked("TXN_OFFSET_COMMIT", "m0", 2, error=22), *GOES_ON], [1]),
        ([asked("OFFSET_COMMIT", "m0", 1, error=25), *GOES_ON], []),
        ([asked("OFFSET_COMMIT", "m0", 2, error=27), *GOES_ON], []),
        ([asked("OFFSET_COMMIT", "m0", 2), *GOES_ON], []),
        ([FENCED, after(1), processed("m0", 0)], []),
        ([delivered("m0", 1), FENCED, after(1), processed("m0", 1)], []),
        ([*GOES_ON, FENCED], []),
        ([EXPELLED, *GOES_ON], []),
        ([on(1, FENCED), *GOES_ON], []),
        ([asked("OFFSET_COMMIT", "m1", 2, error=25), *GOES_ON], []),
        ([FENCED, owner("m0"), *GOES_ON], []),
        ([FENCED, revoked("m0"), owner("m0"), assigned("m0"), after(1), delivered("m0", 1)], []),
    ],
    ids=[
        "at once, with another record in hand",
        "it tells of the completion only",
        "a lower one is refused later",
        "a higher one is refused later",
        "it covers two",
        "in a transaction",
        "it does not cover the record",
        "the group was rebalancing: to be asked again",
        "it was granted",
        "it finishes what it has in hand",
        "or two of them",
        "it had begun before",
        "only its heartbeat was refused",
        "of another partition",
        "another member's",
        "the partition was given back",
        "and taken anew",
    ],
)
def test_a_refusal_that_it_heard_convicts_of_what_it_begins_after_it(lines: list[Line], found: list[int]) -> None:
    """Where the request log shows it."""
    assert split_by_log(*lines) == found


@pytest.mark.parametrize("said_so", [[], [REFUSED_2]], ids=["by the request log", "by its own line"])
def test_whoever_is_expelled_is_refused_before_others_are_given_the_partition(said_so: list[Line]) -> None:
    """What it begins afterwards others have."""
    lines = [*LOST[:3], FENCED, *said_so, *LOST[3:], *GOES_ON]
    assert split_by_log(*lines, lost=[]) == [1]


def test_a_refusal_of_an_earlier_ownership_epoch_is_forgotten() -> None:
    """It has been given the partition anew since."""
    again = [revoked("m0"), after(1), assigned("m0"), delivered("m0", 0), owner("m1"), after(1)]
    assert split_by_log(*LOST[:3], FENCED, *again, *GOES_ON, lost=[]) == []


@pytest.mark.parametrize("outcome", ["failed", "discarded"])
def test_what_it_gives_up_it_has_not_worked_on(outcome: str) -> None:
    """An attempt that commits first and is refused, and is tried once more; or a queue that is emptied."""
    attempt = [delivered("m0", 1), processed("m0", 1, outcome=outcome)]
    assert split_by_log(FENCED, after(1), *attempt) == []
    assert split_by_log(FENCED, after(1), *attempt, *attempt) == []
    assert split_by_log(FENCED, after(1), *attempt, *handled("m0", 1)) == [1]
    assert split(FENCED, REFUSED_2, *attempt) == []
    assert split(FENCED, REFUSED_2, processed("m0", 1, outcome=outcome)) == []


def test_a_dead_letter_is_work() -> None:
    """Whoever sends it twice has done so twice."""
    assert split_by_log(FENCED, after(1), delivered("m0", 1), processed("m0", 1, outcome="dead-lettered")) == [1]


@pytest.mark.parametrize(("progress", "found"), [("kafka", [1]), ("sink", []), ("checkpoint", []), ("none", [])])
def test_where_progress_is_elsewhere_a_refused_commit_means_nothing(progress: str, found: list[int]) -> None:
    """It is committed for those who watch the lag."""
    settings = with_settings(delivery="at-most-once", progress=progress)
    assert split_by_log(FENCED, *GOES_ON, settings=settings) == found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([committed(2, by="m0"), *LOST[2:], asked("OFFSET_COMMIT", "m0", 3, error=25), *GOES_ON], []),
        ([*LOST[2:], asked("OFFSET_COMMIT", "m0", 3, error=25), *GOES_ON], [1]),
        ([*LOST[2:], FENCED, committed(2, by="m0"), *GOES_ON], []),
        ([*LOST[2:], FENCED, committed(2, by="m1"), *GOES_ON], [1]),
        ([*LOST[2:], FENCED, committed(2), *GOES_ON], []),
        ([committed(2, by="m0"), committed(1, by="operator"), *LOST[2:], FENCED, *GOES_ON], []),
        ([committed(2, by="m0"), tombstone(), *LOST[2:], FENCED, *GOES_ON], []),
        ([*LOST[2:], FENCED, *GOES_ON, after(1), committed(2, by="m0")], [1]),
    ],
    ids=[
        "a batch ahead of its work",
        "nothing",
        "asked for again, and granted",
        "the new owner's",
        "nobody knows whose",
        "moved back since",
        "expired since",
        "too late",
    ],
)
def test_a_commit_of_its_own_that_was_granted_is_leave_to_begin(lines: list[Line], found: list[int]) -> None:
    """Whatever became of another one."""
    assert split_by_log(*lines, lost=LOST[:2]) == found


def test_what_was_granted_while_it_had_the_partition_again_counts() -> None:
    """One ownership epoch by its lines; by the log it lost the partition twice."""
    first = [*handled("m0", 0), owner("m1", epoch=2), after(1), asked("OFFSET_COMMIT", "m0", 3, error=22)]
    again = [owner("m0", epoch=3), after(0.6), committed(3, by="m0", epoch=3), *handled("m0", 1)]
    assert split_by_log(*first, *again, owner("m1", epoch=4), after(2), *handled("m0", 2), lost=LOST[:2]) == []


@pytest.mark.parametrize(("waits_s", "split_at", "zombie"), [(0.1, [], [0, 1, 1]), (1.0, [1], [0])])
def test_what_is_no_split_is_zombie_work(waits_s: float, split_at: list[int], zombie: list[int]) -> None:
    """Soon after the loss nobody can tell whether the record of it had been written."""
    lines = [*LOST[:-1], after(0.05), FENCED, after(waits_s), processed("m0", 0), *handled("m0", 1), measured("m0", 0)]
    assert split_by_log(*lines, lost=[]) == split_at
    found = judged("zombie-work", lines, records=4, partitions=2, settings=AT_MOST_ONCE)
    assert [one["offset"] for one in found] == zombie


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([*HELD, after(0.2), healed(), after(0.2), fetched("m0", 3), *GOES_ON], [1]),
        ([*HELD, *GOES_ON, after(0.2), healed(), after(0.2), fetched("m0", 3)], []),
        ([*HELD, after(0.2), healed(), after(0.2), *GOES_ON], []),
    ],
    ids=["the connection went on", "it began while the answer was held", "the connection ended"],
)
def test_an_answer_that_was_held_must_have_been_heard(lines: list[Line], found: list[int]) -> None:
    """A member that cannot have read it does not know."""
    assert split_by_log(*lines) == found


@pytest.mark.parametrize(("late_s", "found"), [(0.0, [1]), (0.3, [])], ids=["read at once", "read late"])
def test_a_line_that_waited_may_be_of_before_the_answer(late_s: float, found: list[int]) -> None:
    """It lay in the pipe; who printed it then knew nothing."""
    assert split_by_log(FENCED, after(0.1), delivered("m0", 1), measured("m0", late_s)) == found


def test_the_record_that_it_may_not_begin_is_no_zombie_work_and_excuses_no_order() -> None:
    """m0 completes record 1 after m1 completed record 2."""
    lines = [*LOST, assigned("m1"), *handled("m1", 2), FENCED, after(1), *handled("m0", 1), revoked("m0")]
    keys = {"records": ["k", "k", "k"], "settings": AT_MOST_ONCE}
    assert judged("zombie-work", lines, **keys) == []
    assert len(judged("reordered-key", lines, **keys)) == 1


def test_a_completion_tells_of_the_end_only_where_no_delivery_is_told() -> None:
    """Its handler may have begun before the answer came."""
    lines = [LOST[0], assigned("m0"), *LOST[3:], FENCED, after(1), processed("m0", 1)]
    assert judged("split-ownership", lines, records=3, partitions=2, settings=AT_MOST_ONCE) == []
