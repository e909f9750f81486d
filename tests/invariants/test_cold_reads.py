"""Reads of cold data: literal histories.

Claimed are a hundred bytes, and that data is cold after five seconds; a commit interval is one more. W is 10 s.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from histories import (
    BEGUN_NS,
    SECOND_NS,
    WALL_NS,
    Line,
    after,
    assigned,
    committed,
    fault,
    fetched,
    finding,
    healed,
    judged,
    log_end,
    not_judged,
    on,
    phase,
    processed,
    rated,
    stood_still,
    waited,
    with_settings,
)
from kafka_trial.claim import Claim
from kafka_trial.model.undecided import Undecided
from kafka_trial.verdict.decide import weigh

NAME = "cold-read"
CLAIM = Claim("at-least-once", reads_cold_bytes_max=100, cold_after_s=5)
SETTINGS = with_settings(reads_cold_bytes_max=100, cold_after_s=5)
BEGUN = [rated(10.0)]
BY_FAULT = "fault 0 (stall on m0)"


def appended(*seconds: float, **changes: Any) -> dict[str, Any]:
    """Records that came so many seconds after the first line of the history."""
    walls = [WALL_NS + BEGUN_NS + round(at * SECOND_NS) for at in seconds]
    control = {offset: {"source_wall_ns": wall_ns} for offset, wall_ns in enumerate(walls)}
    return {"records": len(walls), "control": control, "settings": replace(SETTINGS, **changes)}


def sent(member: str, size_bytes: int, *, position: int = 0, up_to: int = 1) -> list[Line]:
    """A member is sent the records of partition 0 between two positions, and asks for the next."""
    return [fetched(member, position, size_bytes=size_bytes), fetched(member, up_to)]


def as_client(name: str, lines: list[Line]) -> list[Line]:
    """The same over a connection of its own, under that client id."""
    return [replace(line, fields=line.fields | {"client_id": name, "connection": name}) for line in lines]


def readers(*lines: Line | list[Line], **frame: Any) -> list[tuple[str, int, str | None]]:
    """Returns member, bytes and excuse of each finding."""
    found = judged(NAME, [*BEGUN, *lines], **(appended(1) | frame))
    return [(one["member"], one["read_bytes"], one.get("excused_by")) for one in found]


def why_undecided(*lines: Line | list[Line], **frame: Any) -> list[str]:
    """Returns the reasons for which nothing was decided."""
    found = finding(NAME, [*BEGUN, *lines], **(appended(1) | frame))
    assert found.instances == ()
    return [*found.undecided]


def test_a_cold_read() -> None:
    """Eight seconds after the append of the record: with who read, how much, from when to when, and the events."""
    lines = [*BEGUN, after(8), *as_client("billing", [*sent("m0", 60), after(2), *sent("m0", 50)])]
    found = finding(NAME, lines, **appended(1))
    who = {"member": "m0", "client": "billing", "read_bytes": 110, "partitions": 1, "since_s": 8.0, "until_s": 10.0}
    assert [(one.attributes, one.events) for one in found.instances] == [
        (who | {"all_bytes": 110, "limit_bytes": 100}, ("requests-b0#2", "requests-b0#4"))
    ]


def test_exactly_the_limit_is_allowed() -> None:
    """A hundred bytes."""
    assert readers(after(9), *sent("m0", 100)) == []


def test_warm_data_is_no_cold_read() -> None:
    """Six seconds after its append at the latest, with half a second between the clocks, whatever its size."""
    assert readers(after(6), *sent("m0", 10**9), after(9)) == []


def test_an_append_that_was_late_leaves_it_open() -> None:
    """Its producer dates it so early; the observer sees the log end behind it seven seconds later."""
    lines = [log_end(0), after(7), log_end(1), after(2), *sent("m0", 101)]
    assert why_undecided(*lines) == [Undecided.COLD_WHEN]
    assert readers(log_end(0), after(1), log_end(1), after(9), *sent("m0", 101)) == [("m0", 101, None)]


def test_the_limit_is_the_groups() -> None:
    """Two members read sixty bytes each, of different partitions; none of them alone too much."""
    there = [on(1, line) for line in sent("m1", 60)]
    frame = {"records": 1, "partitions": 2, "control": {}, "old": True}
    assert readers(after(9), *sent("m0", 60), *there, **frame) == [("m0", 60, None), ("m1", 60, None)]
    assert readers(after(9), *sent("m0", 60), **frame) == []


def test_what_lay_there_before_the_burst_was_done_counts_from_then() -> None:
    """The burst itself is read when it is sent."""
    early = [after(9), *BEGUN, after(5), *sent("m0", 101), after(9)]
    late = [after(9), *BEGUN, after(7), *sent("m0", 101)]
    assert [len(judged(NAME, lines, **appended(1))) for lines in (early, late)] == [0, 1]


@pytest.mark.parametrize(("wait_s", "excuse"), [(9.0, BY_FAULT), (33.0, None)])
def test_a_fault_explains_what_is_read_late(wait_s: float, excuse: str | None) -> None:
    """In force for four seconds and lived down in ten, and then once more as long; no longer than that."""
    lines = [after(2), fault("stall", "m0"), after(4), healed(), after(wait_s), *sent("m0", 101), after(30)]
    assert readers(*lines) == [("m0", 101, excuse)]


def test_what_a_fault_explains_is_tolerated() -> None:
    """And what none explains is a violation, where a limit is claimed."""
    assert weigh(CLAIM, NAME, {"excused_by": BY_FAULT}) == (
        "tolerated",
        f"it would not have been cold without {BY_FAULT}",
    )
    assert weigh(CLAIM, NAME, {}) == ("violation", "")
    assert weigh(Claim("at-least-once"), NAME, {})[0] == "tolerated"


def test_no_fault_explains_what_had_been_cold_before() -> None:
    """Under a fault it reads again what lay there for eight seconds by then."""
    assert readers(after(8.5), fault("stall", "m0"), after(1), *sent("m0", 101)) == [("m0", 101, None)]


def test_a_neighbour_explains_no_cold_read() -> None:
    """Others read from the same brokers."""
    lines = [after(2), fault("cold-reads", None), after(4), healed(), after(3), *sent("m0", 101)]
    assert readers(*lines) == [("m0", 101, None)]


def test_an_answer_counts_by_its_first_record() -> None:
    """One that begins with a cold record counts as a whole; one that begins with a newer one does not."""
    assert readers(after(9), *sent("m0", 101, up_to=2), **appended(1, 8)) == [("m0", 101, None)]
    assert readers(after(9), *sent("m0", 101, position=1, up_to=2), **appended(1, 8)) == []


def test_of_a_record_that_is_gone_the_next_one_tells() -> None:
    """Of the two only the newer one is left."""
    gone = appended(1, 8)
    gone["control"][0] = None
    assert readers(after(9), *sent("m0", 101), **gone) == []


def test_uncertain_bytes_matter_only_if_the_limit_lies_among_them() -> None:
    """Ten that became cold about when they were read; beside ninety all is allowed, beside a hundred and one not."""
    unsure, frame = sent("m0", 10, position=1, up_to=2), appended(1, 3.2)
    assert readers(after(9), *sent("m0", 90), *unsure, **frame) == []
    assert readers(after(9), *sent("m0", 101), *unsure, **frame) == [("m0", 101, None)]
    assert why_undecided(after(9), *sent("m0", 91), *unsure, **frame) == [Undecided.COLD_WHEN]


def test_a_reader_beside_the_consumer_in_its_process_is_told_apart() -> None:
    """One client reads the end of the log and another its beginning, by turns, over connections of their own."""
    end, start = (sent("m0", 60, position=at, up_to=at + 1) for at in (1, 0))
    lines = [*as_client("main", end[:1]), *as_client("side", start), *as_client("main", end[1:])] * 2
    found = judged(NAME, [*BEGUN, after(9), *lines], **appended(1, 9))
    assert [(one["client"], one["read_bytes"]) for one in found] == [("side", 120)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [(stood_still(4), Undecided.DELAYED), (waited(4.0, 5.0), Undecided.NO_PROCESSOR)],
    ids=["stood still", "had no processor"],
)
def test_a_machine_that_had_no_time_decides_nothing(line: Line, reason: Undecided) -> None:
    """It would have been read in time without that; and what is read much later would not."""
    assert why_undecided(after(6), line, after(3), *sent("m0", 101)) == [reason]
    assert readers(after(20), line, after(3), *sent("m0", 101)) == [("m0", 101, None)]


def test_nobody_is_late_with_what_is_committed_past() -> None:
    """Reading it again has nothing to do with the machine; unless the commit comes about then."""
    again = [stood_still(4), after(3), *sent("m0", 101)]
    assert readers(after(6), committed(1), *again) == [("m0", 101, None)]
    assert why_undecided(after(6), stood_still(4), after(2.7), committed(1), after(0.3), *sent("m0", 101)) == [
        Undecided.DELAYED
    ]


def test_what_comes_faster_than_the_group_works_decides_nothing() -> None:
    """Twenty a second, and it does ten: it falls behind, whatever it does."""
    arrivals = [1 + number / 20 for number in range(300)]
    lines: list[Line] = [assigned("m0"), after(1)]
    for offset in range(150):
        lines += [after(0.09), processed("m0", offset)]
    late = [*lines, *sent("m0", 101, position=40, up_to=41)]
    assert why_undecided(*late, **appended(*arrivals)) == [Undecided.LOAD_TOO_FAST]


def test_a_broker_that_was_stopped_may_not_have_written_its_last_requests() -> None:
    """A member was reading cold data just then: there may have been more; long before, it may not."""
    stop = [fault("broker-kill", None), after(4), healed()]
    assert why_undecided(after(9), *sent("m0", 50), after(0.5), *stop) == [Undecided.READS_CUT_OFF]
    assert readers(after(9), *sent("m0", 50), after(1.5), *stop) == []
    assert readers(after(9), *sent("m0", 101), after(0.5), *stop) == [("m0", 101, None)]


@pytest.mark.parametrize(
    "answer",
    [fetched("m0", 0, size_bytes=0), fetched("m0", 0, size_bytes=101, error=6), fetched("m7", 0, size_bytes=101)],
    ids=["empty", "refused", "a stranger's"],
)
def test_what_brings_no_member_any_records_is_no_read(answer: Line) -> None:
    """An answer without records, one that is an error, and one on a lane of nobody's."""
    assert readers(fetched("m0", 0), after(9), answer, fetched("m0", 1)) == []


def test_what_is_read_after_the_snapshot_does_not_count() -> None:
    """The trial was over by then."""
    lines = [*BEGUN, fetched("m0", 0), after(9), phase("snapshot"), *sent("m0", 101)]
    assert judged(NAME, lines, snapshot=False, **appended(1)) == []


@pytest.mark.parametrize(
    ("lines", "frame", "reason"),
    [
        ([*BEGUN, after(9), *sent("m0", 101)], {"settings": with_settings()}, "no limit to the reading of cold data"),
        ([*BEGUN, after(9), *sent("m0", 101)], {"whole": False}, "requests-b0 is not known to be complete"),
        ([*BEGUN, after(4), *sent("m0", 101)], {}, "no record could become cold"),
        ([*BEGUN, after(2), fault("stall", "m0"), after(9), *sent("m0", 101)], {}, "no record could become cold"),
        ([*BEGUN, after(9)], {}, "no member was seen to fetch"),
        ([after(9), *sent("m0", 101)], {}, "the opening burst was not done"),
        ([*BEGUN, after(9), *sent("m0", 101)], {"members": 0}, "no member's process was started"),
    ],
    ids=["no claim", "torn", "short", "a fault all the time", "no fetches", "no burst", "audit"],
)
def test_it_is_not_judged(lines: list[Line], frame: dict[str, Any], reason: str) -> None:
    """Without a claim or evidence, and where nothing could become cold: a pass would prove nothing."""
    assert reason in not_judged(NAME, lines, **(appended(1) | frame))


def test_progress_elsewhere_is_judged_too_by_request_logs() -> None:
    """What brokers were asked does not depend on where positions are kept."""
    outside = appended(1, progress="sink")
    assert readers(after(9), *sent("m0", 101), **outside) == [("m0", 101, None)]


def test_by_default_brokers_keep_half_a_minute() -> None:
    """Thirty seconds, and a commit interval."""
    settings = {"settings": with_settings(reads_cold_bytes_max=100)}
    assert readers(after(31), *sent("m0", 101), after(9), **settings) == []
    assert readers(after(34), *sent("m0", 101), **settings) == [("m0", 101, None)]
