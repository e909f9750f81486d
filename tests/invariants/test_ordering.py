"""Ordering: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from group_lines import heartbeat
from histories import (
    Line,
    after,
    assigned,
    at_once,
    delivered,
    exited,
    fetched,
    finding,
    handled,
    judged,
    later,
    not_judged,
    on,
    owner,
    processed,
    revoked,
    said,
    undecided,
)


def test_nonmonotonic_poll_holds() -> None:
    """Offsets only grow inside an ownership epoch."""
    assert judged("nonmonotonic-poll", [assigned("m0"), handled("m0", 0, 1)]) == []


def test_nonmonotonic_poll_is_broken() -> None:
    """Record 0 was delivered after record 1."""
    found = finding("nonmonotonic-poll", [assigned("m0"), delivered("m0", 1), delivered("m0", 0)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "previous_offset": 1}, ("consumer-m0-0#2", "consumer-m0-0#3"))
    ]


def test_nonmonotonic_poll_is_broken_by_the_same_record_again() -> None:
    """The same record twice in one ownership epoch is a step back too."""
    assert judged("nonmonotonic-poll", [assigned("m0"), handled("m0", 0), delivered("m0", 0)]) == [
        {"offset": 0, "previous_offset": 0}
    ]


def test_nonmonotonic_poll_only_looks_broken_across_possessions() -> None:
    """A new assignment starts from the committed offset, which may lie before what was delivered."""
    assert judged("nonmonotonic-poll", [assigned("m0"), delivered("m0", 1), assigned("m0"), delivered("m0", 0)]) == []


def test_nonmonotonic_poll_is_not_judged_without_own_word() -> None:
    """Nobody said what was delivered."""
    assert "reported no delivered record" in not_judged("nonmonotonic-poll", [owner("m0")])


def test_reordered_key_holds() -> None:
    """Records of a key were handled in their order."""
    assert judged("reordered-key", [assigned("m0"), handled("m0", 0, 1)], records=["a", "a"]) == []


def test_reordered_key_is_broken() -> None:
    """Record 0 was finished after record 1 of the same key."""
    lines = [assigned("m0"), processed("m0", 1), processed("m0", 0)]
    found = finding("reordered-key", lines, records=["a", "a"])
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"offset": 0, "later_offset": 1, "key": "a", "same_key": True},
            ("consumer-m0-0#2", "consumer-m0-0#3"),
        )
    ]


def test_reordered_key_tells_other_keys_apart() -> None:
    """Records of different keys changed places: order holds for each key, not for the partition."""
    lines = [assigned("m0"), processed("m0", 1), processed("m0", 0)]
    assert [one["same_key"] for one in judged("reordered-key", lines, records=["a", "b"])] == [False]


def test_reordered_key_is_broken_across_members() -> None:
    """Another member had finished record 1 a second before record 0 was finished for the first time."""
    lines = [assigned("m0"), processed("m0", 1), revoked("m0"), after(1), assigned("m1"), processed("m1", 0)]
    assert [one["offset"] for one in judged("reordered-key", lines, records=["a", "a"])] == [0]


def test_reordered_key_is_broken_inside_a_possession_by_what_had_been_done_before_it() -> None:
    """Another member had handled both in their order: that one handles them the other way round is no rewind."""
    before = [assigned("m1"), handled("m1", 0, 1), revoked("m1")]
    lines = [*before, assigned("m0"), handled("m0", 1, 0)]
    assert [one["offset"] for one in judged("reordered-key", lines, records=["a", "a"])] == [0]


def test_reordered_key_only_looks_broken_within_the_tolerance() -> None:
    """Between files, less than half a second is no order."""
    lines = [assigned("m0"), processed("m0", 1), revoked("m0"), assigned("m1"), processed("m1", 0)]
    assert judged("reordered-key", lines, records=["a", "a"]) == []


def test_reordered_key_only_looks_broken_after_a_rewind() -> None:
    """A new ownership epoch did both again: only first completions count across ownership epochs."""
    lines = [assigned("m0"), handled("m0", 0, 1), revoked("m0"), after(1), assigned("m1"), handled("m1", 0)]
    assert judged("reordered-key", lines, records=["a", "a"]) == []


def test_reordered_key_only_looks_broken_for_what_was_in_hand_when_its_partition_came_back() -> None:
    """It was delivered in the ownership epoch before, and is done in the next one, which begins again below it."""
    before = [assigned("m0"), handled("m0", 0), delivered("m0", 1), revoked("m0"), assigned("m0")]
    after_it = [processed("m0", 1), handled("m0", 0, 1)]
    assert judged("reordered-key", [*before, *after_it]) == []
    late = [*before, delivered("m0", 0), processed("m0", 1), processed("m0", 0)]
    assert judged("reordered-key", late) == []  # its first completion was in time


def test_reordered_key_only_looks_broken_where_several_partitions_came_back() -> None:
    """Handlers of one member end here and there, in any order."""
    held = [
        line
        for offset in (0, 1, 2)
        for partition in (2, 0, 1)
        for line in (
            delivered("m0", offset, partition=partition),
            *([processed("m0", offset, partition=partition)] if offset < 2 else ()),
        )
    ]
    back = [revoked("m0", 0, 1, 2), assigned("m0", 0, 1, 2)]
    done = [processed("m0", 2, partition=partition) for partition in (1, 2, 0)]
    again = [
        line
        for partition in (0, 2, 1)
        for line in (delivered("m0", 1, partition=partition), processed("m0", 1, partition=partition))
    ]
    assert judged("reordered-key", [assigned("m0", 0, 1, 2), *held, *back, *done, *again]) == []


def test_reordered_key_only_looks_broken_inside_an_untold_loss() -> None:
    """The group gave the partition to another member, and nobody told the one that finished late."""
    lines = [assigned("m0"), delivered("m0", 0), owner("m1"), assigned("m1"), processed("m1", 1), after(1)]
    assert judged("reordered-key", [*lines, processed("m0", 0)], records=["a", "a"]) == []


def test_reordered_key_is_not_judged_without_the_control_read() -> None:
    """Nobody knows which keys the records have."""
    lines = [assigned("m0"), processed("m0", 1), processed("m0", 0)]
    assert "control read" in not_judged("reordered-key", lines, whole=False)


def test_overlapping_handlers_holds() -> None:
    """One handler after the other."""
    assert judged("overlapping-handlers", [assigned("m0"), handled("m0", 0, 1)]) == []


OVERLAP = [assigned("m0"), delivered("m0", 0), delivered("m0", 1), processed("m0", 0), processed("m0", 1)]


def test_overlapping_handlers_is_broken() -> None:
    """Record 1 began before record 0 was done."""
    found = finding("overlapping-handlers", OVERLAP, records=["a", "a"])
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"offset": 1, "other_offset": 0, "same_key": True},
            tuple(f"consumer-m0-0#{seq}" for seq in (2, 3, 4, 5)),
        )
    ]


def test_overlapping_handlers_tells_other_keys_apart() -> None:
    """Records of different keys side by side."""
    assert [one["same_key"] for one in judged("overlapping-handlers", OVERLAP, records=["a", "b"])] == [False]


SLOW = [assigned("m0"), delivered("m0", 0), assigned("m1"), delivered("m1", 0), after(1)]


def test_overlapping_handlers_is_broken_across_members() -> None:
    """Two members held the record for a second at the same time."""
    found = judged("overlapping-handlers", [*SLOW, processed("m0", 0), processed("m1", 0)])
    assert [(one["offset"], one["other_offset"]) for one in found] == [(0, 0)]


def test_overlapping_handlers_only_looks_broken_where_one_was_given_up() -> None:
    """A handler that never ended, because its process died, is left out."""
    assert judged("overlapping-handlers", [*SLOW, exited("m0", signal=9), processed("m1", 0)]) == []


def test_overlapping_handlers_only_looks_broken_inside_an_untold_loss() -> None:
    """The first member was not told that the group had given its partition away."""
    lines = [assigned("m0"), delivered("m0", 0), owner("m1"), assigned("m1"), delivered("m1", 0), after(1)]
    assert judged("overlapping-handlers", [*lines, processed("m0", 0), processed("m1", 0)]) == []


def test_overlapping_handlers_only_looks_broken_where_a_record_came_again() -> None:
    """The first delivery was given up at the rebalance: the completion belongs to the second."""
    lines = [assigned("m0"), delivered("m0", 0), revoked("m0"), assigned("m0"), delivered("m0", 0), processed("m0", 0)]
    assert judged("overlapping-handlers", lines) == []


def test_overlapping_handlers_is_not_judged_without_own_word() -> None:
    """Nobody said when handlers began, or ended."""
    assert "handlers" in not_judged("overlapping-handlers", [owner("m0")])


def test_reordered_key_only_looks_broken_for_what_was_in_hand_when_told() -> None:
    """The callback came while the record was in hand: the member may finish it, late as it is."""
    lines = [assigned("m0"), delivered("m0", 0), owner("m1"), assigned("m1"), processed("m1", 1), after(1)]
    assert judged("reordered-key", [*lines, revoked("m0"), processed("m0", 0)], records=["a", "a"]) == []


def test_overlapping_handlers_only_looks_broken_by_the_completion_of_another_record() -> None:
    """Record 0 was given up; the completion of record 1 does not end its handler."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 2), processed("m0", 1), processed("m0", 2)]
    assert judged("overlapping-handlers", lines, records=3) == []


def test_a_possession_lasts_when_the_member_says_that_it_stops() -> None:
    """What is said after `stopped` is work as well."""
    lines = [assigned("m0"), *handled("m0", 1), said("m0", "stopped"), delivered("m0", 0)]
    assert [one["offset"] for one in judged("nonmonotonic-poll", lines)] == [0]


def test_poll_skip_holds() -> None:
    """One record after the other."""
    assert judged("poll-skip", [assigned("m0"), handled("m0", 0, 1, 2)], records=3) == []


def test_poll_skip_is_broken() -> None:
    """Record 1 can be read, and was never delivered to whoever held the partition all the time."""
    found = finding("poll-skip", [assigned("m0"), delivered("m0", 0), delivered("m0", 2)], records=3)
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"offset": 1, "previous_offset": 0, "next_offset": 2},
            ("consumer-m0-0#2", "consumer-m0-0#3", "observer#2"),
        )
    ]


def test_poll_skip_only_looks_broken_by_what_cannot_be_read() -> None:
    """Offsets 2 to 4 are markers, aborted or compacted: the control read does not hold them."""
    assert judged("poll-skip", [assigned("m0"), handled("m0", 0, 1, 5)], records=2) == []


def test_poll_skip_only_looks_broken_where_it_is_a_reordering() -> None:
    """The record came later in the same ownership epoch: that is `nonmonotonic-poll`."""
    assert judged("poll-skip", [assigned("m0"), handled("m0", 0, 2, 1)], records=3) == []


def test_poll_skip_only_looks_broken_across_possessions() -> None:
    """Another member handled record 1 in between: a new ownership epoch starts from the committed offset."""
    lines = [assigned("m0"), handled("m0", 0), revoked("m0"), assigned("m1"), handled("m1", 1), revoked("m1")]
    assert judged("poll-skip", [*lines, assigned("m0"), handled("m0", 2)], records=3) == []


def test_poll_skip_only_looks_broken_where_the_consumer_says_that_it_took_the_record() -> None:
    """It prints no delivery of what it filters, and says that it was discarded."""
    discarded = said("m0", "processed", topic="t", partition=0, offset=1, outcome="discarded")
    assert judged("poll-skip", [assigned("m0"), handled("m0", 0), discarded, handled("m0", 2)], records=3) == []


def test_poll_skip_only_looks_broken_after_a_step_back() -> None:
    """It went back to record 0 and on to 2: record 1 had been delivered before."""
    assert judged("poll-skip", [assigned("m0"), handled("m0", 0, 1, 0, 2)], records=3) == []


def test_poll_skip_only_looks_broken_by_what_was_deleted() -> None:
    """The log start is past the record: it may have been deleted before it was polled."""
    start = Line("observer", "log_start", {"topic": "t", "partition": 0, "offset": 2})
    assert judged("poll-skip", [assigned("m0"), delivered("m0", 0), start, delivered("m0", 2)], records=3) == []


def test_poll_skip_is_undecided_where_the_log_start_overtook_the_position() -> None:
    """The position was out of range: the reset policy may go on at the end, past record 2."""
    start = Line("observer", "log_start", {"topic": "t", "partition": 0, "offset": 2})
    assert undecided("poll-skip", [assigned("m0"), delivered("m0", 0), start, delivered("m0", 3)], records=4) == 1


def test_poll_skip_is_undecided_in_the_last_act_of_a_killed_member() -> None:
    """Record 1 may have been delivered after the last line that was received."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 2), exited("m0", signal=9)]
    assert undecided("poll-skip", lines, records=3) == 1


def test_poll_skip_is_broken_by_a_killed_member_that_had_gone_on_since() -> None:
    """A second after the jump it still spoke: record 1 was not among its last words."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 2), after(1), exited("m0", signal=9)]
    assert [one["next_offset"] for one in judged("poll-skip", lines, records=3)] == [2]


def test_poll_skip_is_not_judged_without_the_control_read() -> None:
    """Nobody knows which records could be read."""
    assert "control read" in not_judged("poll-skip", [assigned("m0"), handled("m0", 0, 2)], whole=False)


def test_nonmonotonic_poll_is_told_of_every_step_back() -> None:
    """Against the highest before it: in one partition twice, in the other from its very first record on."""
    there = [on(1, line) for line in (*handled("m0", 0), delivered("m0", 0))]
    here = [delivered("m0", 0), *handled("m0", 2), *(delivered("m0", offset) for offset in (1, 2, 3))]
    lines = [assigned("m0", 0, 1), *here, *there]
    found = finding("nonmonotonic-poll", lines, partitions=2, records=4)
    assert [(one.partition, one.attributes["previous_offset"], one.events) for one in found.instances] == [
        (0, 2, ("consumer-m0-0#3", "consumer-m0-0#5")),
        (0, 2, ("consumer-m0-0#3", "consumer-m0-0#6")),
        (1, 0, ("consumer-m0-0#8", "consumer-m0-0#10")),
    ]


def test_nonmonotonic_poll_only_looks_broken_without_a_possession() -> None:
    """Nobody says since when the member has this one: it may have been given back in between."""
    found = finding("nonmonotonic-poll", [assigned("m0", 1), delivered("m0", 1), delivered("m0", 0)])
    assert found.not_judged is not None
    assert found.not_judged.because.startswith("m0 handled records of partitions of which nothing says")


def test_reordered_key_is_not_of_a_key_where_records_have_none() -> None:
    """Two records without a key share none."""
    lines = [assigned("m0"), processed("m0", 1), processed("m0", 0)]
    assert judged("reordered-key", lines) == [{"offset": 0, "later_offset": 1, "same_key": False}]


@pytest.mark.parametrize(
    ("keys", "done", "told"),
    [
        (["a", "b", "a"], [1, 2, 0], [(0, 2, True)]),
        (["a", "b", "b"], [2, 0, 1], [(0, 2, False), (1, 2, True)]),
        (["b", "a", "b"], [2, 1, 0], [(0, 2, True), (1, 2, False)]),
        (["a", "a", "a"], [1, 2, 0], [(0, 2, True)]),
        (["a", "b", "c"], [0, 2, 1], [(1, 2, False)]),
        (["a", "b", "c"], [0, 1, 2], []),
    ],
)
def test_reordered_key_names_the_record_that_it_came_after(
    keys: list[str], done: list[int], told: list[tuple[int, int, bool]]
) -> None:
    """Of its own key, if there is one: of several the highest that was done before it in its ownership epoch."""
    lines = [assigned("m0"), *(processed("m0", offset) for offset in done)]
    found = judged("reordered-key", lines, records=keys)
    assert [(one["offset"], one["later_offset"], one["same_key"]) for one in found] == told


@pytest.mark.parametrize("keys", [["a", "a"], ["a", "b"], [None, None]])
@pytest.mark.parametrize(("wait_s", "found"), [(0.48, 0), (0.481, 1)], ids=["as long as sources differ", "longer"])
def test_reordered_key_across_members_is_told_from_half_a_second_on(
    keys: list[str | None], wait_s: float, found: int
) -> None:
    """Exactly half a second between the two completions is no order."""
    lines = [assigned("m0"), assigned("m1"), processed("m0", 1), after(wait_s + 0.01), processed("m1", 0)]
    told = judged("reordered-key", lines, records=keys)
    assert [one["same_key"] for one in told] == [keys == ["a", "a"]] * found


def test_reordered_key_is_broken_in_one_file_across_its_possessions() -> None:
    """In one file the order is exact, however close: the partition came back in between."""
    lines = [assigned("m0"), processed("m0", 1), revoked("m0"), assigned("m0"), processed("m0", 0)]
    found = finding("reordered-key", lines, records=["a", "a"])
    assert [(one.attributes["later_offset"], one.events) for one in found.instances] == [
        (1, ("consumer-m0-0#2", "consumer-m0-0#5"))
    ]


def test_reordered_key_across_members_names_the_first_that_overtook_it() -> None:
    """m0 had done 2 and then 1 of three of a key; two seconds later m1 does 0 for the first time."""
    m0 = [assigned("m0"), processed("m0", 2), after(1), processed("m0", 1), revoked("m0"), after(1)]
    found = finding("reordered-key", [*m0, assigned("m1"), processed("m1", 0)], records=["a", "a", "a"])
    assert [(one.attributes["offset"], one.attributes["later_offset"], one.events) for one in found.instances] == [
        (0, 2, ("consumer-m0-0#2", "consumer-m1-0#2")),
        (1, 2, ("consumer-m0-0#2", "consumer-m0-0#3")),
    ]


def test_reordered_key_across_members_is_told_though_a_later_record_is_done_after_it() -> None:
    """m1 had done 1 a second before m0 does 0, and does 2 after that."""
    lines = [assigned("m0"), assigned("m1"), processed("m1", 1), after(1), processed("m0", 0), processed("m1", 2)]
    found = judged("reordered-key", lines, records=["a", "a", "a"])
    assert [(one["offset"], one["later_offset"]) for one in found] == [(0, 1)]


def test_reordered_key_is_told_of_each_partition() -> None:
    """The same offsets and keys in two of them: in order in the first, and not in the second."""
    here, there = ([on(number, processed("m0", offset)) for offset in (number, 1 - number)] for number in (0, 1))
    found = finding("reordered-key", [assigned("m0", 0, 1), *here, *there], records=["a", "a"], partitions=2)
    assert [(one.partition, one.attributes["key"]) for one in found.instances] == [(1, "a")]


@pytest.mark.parametrize(
    ("keys", "steps", "told"),
    [
        ("aa", "+0 +1 -1 -0", [(1, 0, True)]),
        ("aa", "+0 -0 +1 -1", []),
        ("aba", "+0 +1 -1 +2 -2 -0", [(1, 0, False), (2, 0, True)]),
        ("abb", "+0 +1 -0 +2 -1 -2", [(1, 0, False), (2, 1, True)]),
        ("aaa", "+0 +1 -0 +2 -1 -2", [(1, 0, True), (2, 1, True)]),
        ("aab", "+0 +1 +2 -1 -2 -0", [(1, 0, True), (2, 0, False)]),
    ],
)
def test_overlapping_handlers_names_the_one_that_was_at_work(
    keys: str, steps: str, told: list[tuple[int, int, bool]]
) -> None:
    """Begun (+) and ended (-): of its own key, if there is one; of several the one that ends last."""
    verbs = {"+": delivered, "-": processed}
    lines = [assigned("m0"), *(verbs[step[0]]("m0", int(step[1])) for step in steps.split())]
    found = judged("overlapping-handlers", lines, records=list(keys))
    assert [(one["offset"], one["other_offset"], one["same_key"]) for one in found] == told


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([delivered("m0", 0), delivered("m1", 1), after(0.49), processed("m0", 0), processed("m1", 1)], []),
        ([delivered("m0", 0), delivered("m1", 1), after(0.491), processed("m0", 0), processed("m1", 1)], [1]),
        ([delivered("m0", 0), after(1), delivered("m1", 1), after(0.49), processed("m0", 0), processed("m1", 1)], []),
        ([delivered("m0", 0), after(1), delivered("m1", 1), after(0.491), processed("m0", 0), processed("m1", 1)], [1]),
        ([delivered("m0", 0), delivered("m1", 1), after(0.48), processed("m1", 1), after(1), processed("m0", 0)], []),
        ([delivered("m0", 0), delivered("m1", 1), after(0.481), processed("m1", 1), after(1), processed("m0", 0)], [1]),
        ([delivered("m0", 0), after(0.5), *handled("m1", 1), after(1), processed("m0", 0)], [1]),
        ([delivered("m0", 0), after(0.48), *handled("m1", 1), after(1), processed("m0", 0)], []),
        ([delivered("m0", 0), after(1), *handled("m1", 1), after(0.47), processed("m0", 0)], []),
        ([delivered("m0", 0), after(1), *handled("m1", 1), after(0.491), processed("m0", 0)], [1]),
        ([*handled("m0", 0), *handled("m1", 1)], []),
        ([delivered("m1", 1), delivered("m0", 0), after(0.491), processed("m0", 0), processed("m1", 1)], [0]),
        ([delivered("m0", 0), at_once(delivered("m1", 1)), after(0.5), processed("m0", 0), processed("m1", 1)], [0, 1]),
        ([delivered("m0", 0), after(1), processed("m0", 0), delivered("m1", 1), after(1), processed("m1", 1)], []),
        (
            [
                *[on(1, assigned("m1")), delivered("m0", 0), on(1, delivered("m1", 1)), after(1), processed("m0", 0)],
                on(1, processed("m1", 1)),
            ],
            [],
        ),
    ],
    ids=[
        "for as long as sources differ",
        "for longer",
        "long before, for as long as sources differ",
        "long before, for longer",
        "begun in it, and over as soon as sources differ",
        "begun in it, and over later",
        "short, inside it",
        "short, and over as soon as it can have begun",
        "short, and begun as late as it can have ended",
        "short, and begun before it can have ended",
        "short, one after the other",
        "the other way round",
        "begun in the same instant",
        "one after the other",
        "in two partitions",
    ],
)
@pytest.mark.parametrize("keys", [["a", "a"], ["a", "b"], [None, None]])
def test_overlapping_handlers_across_members_run_side_by_side_for_half_a_second(
    lines: list[Line], found: list[int], keys: list[str | None]
) -> None:
    """Told is the one that began while the other was at work."""
    told = judged("overlapping-handlers", [assigned("m0"), assigned("m1"), *lines], records=keys, partitions=2)
    assert [(one["offset"], one["same_key"]) for one in told] == [(offset, keys == ["a", "a"]) for offset in found]


@pytest.mark.parametrize(("ns", "found"), [(0, []), (1, [0])], ids=["in the same instant", "a nanosecond later"])
def test_overlapping_handlers_across_members_count_from_when_a_short_one_can_have_ended(
    ns: int, found: list[int]
) -> None:
    """It was read to have ended half a second after the other one began: by then it may have been over."""
    begun = [delivered("m1", 1), after(0.3), delivered("m0", 0), after(0.19)]
    lines = [assigned("m0"), assigned("m1"), *begun, later(processed("m0", 0), ns), after(1), processed("m1", 1)]
    assert [one["offset"] for one in judged("overlapping-handlers", lines)] == found


def test_overlapping_handlers_across_members_are_proved_by_both() -> None:
    """Where three are at work it is the one that ends last that is named."""
    begun = [delivered("m0", 0), delivered("m0", 2), after(1), delivered("m1", 1), after(1)]
    ended = [processed("m0", 0), processed("m0", 2), processed("m1", 1)]
    found = finding("overlapping-handlers", [assigned("m0"), assigned("m1"), *begun, *ended], records=3)
    assert [(one.attributes["offset"], one.attributes["other_offset"], one.events) for one in found.instances] == [
        (1, 2, ("consumer-m0-0#3", "consumer-m1-0#2", "consumer-m0-0#5", "consumer-m1-0#3")),
        (2, 0, ("consumer-m0-0#2", "consumer-m0-0#3", "consumer-m0-0#4", "consumer-m0-0#5")),
    ]


def test_overlapping_handlers_only_looks_broken_in_an_untold_loss_of_either() -> None:
    """The member that was not told began first, or last: its handler is excused, whoever it is beside."""
    m0 = [assigned("m0"), delivered("m0", 0), owner("m1"), assigned("m1"), delivered("m1", 1), after(1)]
    assert judged("overlapping-handlers", [*m0, processed("m1", 1), processed("m0", 0)]) == []
    late = [assigned("m0"), owner("m1"), assigned("m1"), delivered("m1", 1), delivered("m0", 0), after(1)]
    assert judged("overlapping-handlers", [*late, processed("m1", 1), processed("m0", 0)]) == []


@pytest.mark.parametrize(("wait_s", "found"), [(0.48, 0), (0.481, 1), (3, 1)])
def test_overlapping_handlers_before_the_loss_is_not_excused(wait_s: float, found: int) -> None:
    """m0 lost the partition when its handler had been over for half a second, or for longer."""
    held = [assigned("m0"), assigned("m1"), delivered("m1", 1), delivered("m0", 0), after(1)]
    over = [processed("m0", 0), processed("m1", 1), after(wait_s), owner("m1")]
    assert len(judged("overlapping-handlers", [*held, *over])) == found


def test_overlapping_handlers_is_broken_by_what_is_begun_once_it_was_told() -> None:
    """Its heartbeat was refused, so m0 knew that it had lost the partition, and fetches another record all the same."""
    lost = [assigned("m0"), owner("m1"), assigned("m1"), after(1)]
    fetches = [after(1), fetched("m0", 1, size_bytes=99), after(1), delivered("m0", 1)]
    both = [delivered("m1", 0), after(1), processed("m0", 1), processed("m1", 0)]
    assert judged("overlapping-handlers", [*lost, heartbeat("m0"), *fetches, *both]) == []
    found = judged("overlapping-handlers", [*lost, heartbeat("m0", error=25), *fetches, *both])
    assert [one["offset"] for one in found] == [0]
