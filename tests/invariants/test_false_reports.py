"""False reports: lines that the workload, the observer or the request log refute, and what follows from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from histories import (
    Line,
    after,
    assigned,
    at_once,
    committed,
    delivered,
    effect,
    exited,
    fault,
    fetched,
    handled,
    judged,
    judgement,
    lasting,
    log_end,
    processed,
    sent,
    started,
    stood_still,
    undecided,
    with_settings,
)


def by(name: str, *lines: Line | list[Line], **frame: Any) -> list[tuple[int, str]]:
    """What is refuted by that witness: offset and kind; nothing may be by another."""
    found = judged("false-report", [assigned("m0"), *lines], **frame)
    assert {one["by"] for one in found} <= {name}
    return [(one["offset"], one["what"]) for one in found]


def through(connection: str, line: Line) -> Line:
    """The same over another connection."""
    return replace(line, fields=line.fields | {"connection": connection})


BOTH = [(1, "delivered"), (1, "processed")]


def test_a_record_handled_before_it_was_sent_was_not() -> None:
    """The workload invoked its send a second later."""
    assert by("workload", sent(0), handled("m0", 0, 1), after(1), sent(1)) == BOTH


def test_a_record_handled_after_it_was_sent_may_have_been() -> None:
    """The acknowledgement may come later than the delivery."""
    assert by("workload", sent(0), sent(1)[:1], handled("m0", 0, 1), sent(1)[1:]) == []


def test_a_record_sent_within_the_tolerance_may_have_been_handled() -> None:
    """Two sources are compared with their tolerance."""
    assert by("workload", sent(0), handled("m0", 0, 1), after(0.4), sent(1)) == []


def test_a_record_beyond_the_end_of_the_log_was_not_handled() -> None:
    """The log end that was asked for afterwards lies at it."""
    assert by("observer", handled("m0", 0, 1), log_end(1)) == BOTH


def test_a_record_below_the_end_of_the_log_may_have_been_handled() -> None:
    """The log end that was asked for afterwards lies behind it."""
    assert by("observer", handled("m0", 0, 1), log_end(2)) == []


def test_a_log_end_that_was_asked_for_before_tells_nothing() -> None:
    """The record may have come since."""
    assert by("observer", log_end(1), handled("m0", 0, 1)) == []


def test_a_position_below_the_log_was_never_held() -> None:
    """No log begins below 0."""
    assert by("observer", handled("m0", 0, -5)) == [(-5, "delivered"), (-5, "processed")]


def test_a_record_that_was_not_fetched_was_not_handled() -> None:
    """The next position asked for is not beyond it."""
    fetches = [fetched("m0", 0, size_bytes=100), fetched("m0", 1)]
    assert by("request log", fetches, after(1), handled("m0", 0, 1)) == BOTH


def test_a_record_that_was_fetched_may_have_been_handled() -> None:
    """The next position asked for is beyond it."""
    assert by("request log", fetched("m0", 0, size_bytes=100), fetched("m0", 2), after(1), handled("m0", 0, 1)) == []


def test_what_the_last_answer_brought_nobody_knows() -> None:
    """Nothing was asked for after it: its member was killed with that in hand."""
    assert by("request log", fetched("m0", 0, size_bytes=100), handled("m0", 0, 1), exited("m0", signal=9)) == []


def test_an_answer_without_bytes_brought_nothing() -> None:
    """The position was asked for, and no record came."""
    fetches = [fetched("m0", 0, size_bytes=100), fetched("m0", 1), fetched("m0", 2)]
    assert by("request log", fetches, after(1), handled("m0", 0, 1)) == BOTH


def test_a_record_below_all_that_was_fetched_was_not_handled() -> None:
    """The member began behind it."""
    assert by("request log", fetched("m0", 2, size_bytes=100), handled("m0", 1), records=3) == BOTH


def test_a_record_fetched_only_later_was_not_handled_yet() -> None:
    """Its line was heard two seconds before the fetch began."""
    fetches = [fetched("m0", 0, size_bytes=100), fetched("m0", 1)]
    later = [fetched("m0", 1, size_bytes=100), fetched("m0", 2)]
    assert by("request log", fetches, after(1), handled("m0", 1), after(2), later, handled("m0", 1)) == BOTH


def test_whoever_seeks_back_had_the_records_it_comes_back_to() -> None:
    """The next position is lower than what it was given, and was asked for after that."""
    fetches = [fetched("m0", 0, size_bytes=100), delivered("m0", 0), delivered("m0", 1)]
    assert by("request log", fetches, after(1), fetched("m0", 0)) == []


def test_what_was_in_hand_when_it_seeks_back_it_had() -> None:
    """The answer lay in its queue for a second; the line comes just before the next fetch, lower down."""
    fetches = [fetched("m0", 1, size_bytes=100), after(1), delivered("m0", 1), delivered("m0", 2)]
    assert by("request log", fetches, fetched("m0", 0), records=3) == []


def test_what_another_member_had_in_hand_a_member_did_not() -> None:
    """m0 was given record 1 and m1 fetches other partitions only, and this one when it is too late."""
    fetches = [fetched("m0", 0, size_bytes=100), after(1), fetched("m1", None)]
    assert by("request log", fetches, handled("m1", 1), fetched("m1", 1)) == BOTH


def test_a_fetch_in_a_lane_of_nobody_may_have_been_the_members() -> None:
    """A process that never told its lane fetched the partition too."""
    fetches = [fetched("m0", 0, size_bytes=100), fetched("m0", 1), fetched("m7", 0, size_bytes=100)]
    assert by("request log", fetches, after(1), handled("m0", 0, 1)) == []


def test_a_record_that_was_held_once_may_be_completed_at_any_time() -> None:
    """A worker finishes it after its consumer went back for another one."""
    begun = [fetched("m0", 0, size_bytes=100), delivered("m0", 0), delivered("m0", 1)]
    assert by("request log", begun, after(1), fetched("m0", 0), after(1), processed("m0", 1)) == []


def test_a_member_that_fetches_other_partitions_only_handled_nothing_of_this_one() -> None:
    """Its lane was seen fetching, and never from here."""
    assert by("request log", fetched("m0", None, size_bytes=100), handled("m0", 1)) == BOTH


def test_of_a_lane_without_fetches_the_request_log_knows_nothing() -> None:
    """The member reads another way."""
    assert by("request log", fetched("m1", 0, size_bytes=100), handled("m0", 1)) == []


def test_the_fetches_of_a_process_are_not_those_of_the_one_after_it() -> None:
    """What the first incarnation was given died with it."""
    first = [fetched("m0", 0, size_bytes=100), fetched("m0", 2), exited("m0", signal=9), after(1)]
    second = [started("m0-1"), assigned("m0-1"), fetched("m0", 2), *handled("m0-1", 1)]
    assert by("request log", *first, *second) == BOTH


def test_a_log_that_was_not_read_to_its_end_refutes_nothing() -> None:
    """The fetch may stand in what is missing."""
    assert by("request log", fetched("m0", 0, size_bytes=100), fetched("m0", 1), handled("m0", 1), whole=False) == []


def test_an_answer_that_a_frozen_broker_logged_late_counts_from_its_request() -> None:
    """It had been sent before the broker froze; its line came twelve seconds later."""
    late = lasting(fetched("m0", 0, size_bytes=100), 12.1)
    assert by("request log", fetched("m0", None), handled("m0", 0, 1), after(12), late, fetched("m0", 2)) == []


def test_a_broker_that_was_killed_may_have_answered_without_a_line() -> None:
    """Its last lines are lost with it."""
    killed = [fault("broker-kill", None), fetched("m0", 2, size_bytes=100)]
    assert by("request log", killed, handled("m0", 0, 1), records=3) == []


def test_a_member_may_tell_what_its_own_store_says_is_done() -> None:
    """Its progress is there: it looks up how far the partition is, and says so; a delivery it must have fetched."""
    fetches = [fetched("m0", 2, size_bytes=100), fetched("m0", 3), processed("m0", 1)]
    in_sink = with_settings(progress="sink")
    assert by("request log", *fetches, settings=in_sink, records=3) == []
    assert by("request log", *fetches, delivered("m0", 1), settings=in_sink, records=3) == [(1, "delivered")]
    assert by("request log", *fetches, records=3) == [(1, "processed")]


def test_two_clients_that_fetch_one_partition_by_turns_are_not_told_apart() -> None:
    """The position that the one asks for is not the other's next."""
    one, other = fetched("m0", 0, size_bytes=100), through("b", fetched("m0", 0))
    assert by("request log", one, other, fetched("m0", 2), after(1), handled("m0", 0, 1)) == []


def test_what_was_heard_late_may_have_been_said_before_the_next_fetch() -> None:
    """The harness stood still between the line and the seek back."""
    fetches = [fetched("m0", 0, size_bytes=100), after(1), fetched("m0", 0), after(3), stood_still(3.5)]
    assert undecided("false-report", [assigned("m0"), *fetches, delivered("m0", 1)]) == 1


def test_a_refuted_completion_acquits_nobody() -> None:
    """The record that it names was committed past: it is lost."""
    fetches = [fetched("m0", 0, size_bytes=100), fetched("m0", 1)]
    lines = [assigned("m0"), fetches, after(1), handled("m0", 0, 1), committed(2)]
    assert [one["offset"] for one in judged("skipped", lines)] == [1]


def test_an_effect_acquits_whatever_the_line_says() -> None:
    """The sink saw the record's effect: it was handled."""
    fetches = [fetched("m0", 0, size_bytes=100), fetched("m0", 1)]
    lines = [assigned("m0"), fetches, after(1), handled("m0", 0, 1), effect(1), committed(2)]
    assert judged("skipped", lines) == []


def test_a_refuted_line_is_counted_and_breaks_no_claim_by_itself() -> None:
    """Nothing is lost by it where the record was handled after all."""
    early = [*handled("m0", 0), after(1), sent(0), *handled("m0", 0), sent(1), *handled("m0", 1), committed(2)]
    findings = {name: one.count for name, one in judgement([assigned("m0"), *early]).findings.items() if one.count}
    assert findings == {"false-report": 2, "nonmonotonic-poll": 1, "redelivered": 1}


def test_lines_out_of_a_buffer_are_refuted_by_no_time() -> None:
    """They were read when the buffer was full: the log and the next fetch had gone on since, or not yet come so far."""
    fetches = [fetched("m0", 0, size_bytes=100), after(1), fetched("m0", 2, size_bytes=100)]
    lines = [assigned("m0"), *fetches, after(1), *handled("m0", 0, 1), after(1), log_end(2)]
    assert judged("false-report", lines, settings=with_settings(stdout="buffered"), records=2) == []


def test_what_was_never_fetched_is_refuted_whenever_it_was_said() -> None:
    """The process fetched from 5 on: record 0 it cannot have had."""
    lines = [assigned("m0"), fetched("m0", 5, size_bytes=100), after(1), *handled("m0", 0)]
    found = judged("false-report", lines, settings=with_settings(stdout="buffered"), records=6)
    assert [one["offset"] for one in found] == [0, 0]


@pytest.mark.parametrize("name", ["broker-kill", "broker-restart", "broker-pause", "rolling-restart"])
def test_after_a_broker_was_stopped_no_missing_fetch_refutes(name: str) -> None:
    """The lines of what it answered last may be missing in its request log."""
    fetches = [fetched("m0", 0, size_bytes=100), fetched("m0", 1), after(1)]
    lines = [assigned("m0"), *fetches, fault(name, None), after(1), *handled("m0", 0, 1)]
    assert judged("false-report", lines, records=2) == []


# A broker stamps whole milliseconds and knows durations more exactly: the second one seems to begin 0.3 ms earlier.
ONE_AFTER_THE_OTHER = [lasting(fetched("m0", 0, size_bytes=100), 0.0001), at_once(lasting(fetched("m0", 2), 0.0004))]


def test_fetches_of_one_connection_began_in_the_order_of_their_lines() -> None:
    """The first one brought records 0 and 1; then its member sought back to 1."""
    lines = [*ONE_AFTER_THE_OTHER, after(1), fetched("m0", 1), after(1), *handled("m0", 0, 1)]
    assert by("request log", *lines) == []
    assert judged("skipped", [assigned("m0"), *lines, committed(2)]) == []


def test_fetches_of_two_connections_began_when_their_durations_say() -> None:
    """Two connections are read side by side: what the second one asked for came before the first one's answer."""
    one, other = ONE_AFTER_THE_OTHER
    lines = [one, through("b", other), after(1), through("b", fetched("m0", 1)), after(1), *handled("m0", 0, 1)]
    assert by("request log", *lines) == BOTH
