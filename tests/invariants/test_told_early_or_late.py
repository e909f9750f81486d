"""Losses that are told before others are given the partition, and lines that brokers log after the fact."""

from __future__ import annotations

from typing import Any

import pytest

from group_lines import heartbeat, joined, left, synced
from histories import (
    Line,
    after,
    asked,
    assigned,
    committed,
    delivered,
    effect,
    exited,
    fault,
    fetched,
    finding,
    handled,
    healed,
    judged,
    measured,
    owner,
    processed,
    revoked,
    said,
    started,
    with_settings,
)

Lines = list[Line | list[Line]]
LOST = said("m0", "lost", entries=[{"topic": "t", "partition": 0}])
READ = measured("m0", 0.005)  # its lines are read within five milliseconds
HELD: Lines = [owner("m0"), synced("m0", 0), assigned("m0"), after(1), heartbeat("m0"), READ]
AT_MOST_ONCE = with_settings(delivery="at-most-once", sink="http")
ALIKE = ["a", "a", "a", "a"]


@pytest.mark.parametrize(
    "lines",
    [
        [
            heartbeat("m0", error=27),
            joined("m0", generation=2),
            delivered("m0", 0),
            LOST,
            READ,
            after(0.02),
            left("m0"),
        ],
        [delivered("m0", 0), LOST, READ, after(0.05), asked("OFFSET_COMMIT", "m0", 0, error=25)],
    ],
    ids=["closed in a rebalance", "refused"],
)
def test_a_loss_is_borne_out_by_what_is_logged_a_little_later(lines: Lines) -> None:
    """A broker stamps an answer when it has been sent; the member has printed its line by then."""
    assert judged("work-after-revoke", [*HELD, *lines, processed("m0", 0), READ, after(1), exited("m0")]) == []


@pytest.mark.parametrize(
    ("told", "given", "overlaps"),
    [([heartbeat("m0", error=25), LOST], [owner("m1")], 0), ([revoked("m0")], [owner("m1")], 1)],
    ids=["lost", "revoked"],
)
def test_whoever_is_told_before_others_are_given_it_finishes_beside_them(
    told: Lines, given: Lines, overlaps: int
) -> None:
    """Its record in hand was begun before it was frozen; whoever gave the partition back had to finish first."""
    lines = [owner("m0"), synced("m0", 0), assigned("m0"), fetched("m0", 0, size_bytes=9), delivered("m0", 0)]
    lines += [fault("pause", "m0"), after(3.5), healed(), *told, after(0.2), *given, synced("m1", 0), assigned("m1")]
    lines += [*handled("m1", 0), after(1), processed("m0", 0)]
    assert len(judged("overlapping-handlers", lines, records=ALIKE)) == overlaps


@pytest.mark.parametrize("late_s", [0.3, 0.8])
def test_what_a_crashed_process_had_fetched_may_be_logged_late(late_s: float) -> None:
    """It asked for nothing after its end: whatever comes is of its life."""
    lines = [fetched("m0", 0, size_bytes=9), assigned("m0"), delivered("m0", 0), effect(0, member="m0")]
    lines += [processed("m0", 0), fetched("m0", 1), after(1)]
    lines += [*committed(2, by="m0"), exited("m0", signal=9, asked="kill")]
    lines += [after(late_s), fetched("m0", 1, size_bytes=9), after(2), started("m0-1")]
    assert [one["in_flight_at_crash"] for one in judged("skipped", lines, settings=AT_MOST_ONCE)] == [True]


def test_a_client_that_follows_another_is_not_beside_it() -> None:
    """The goodbye of the first is logged when the next one has joined: there was one at a time."""
    second = {"member_id": "id-second", "client_id": "second"}
    join = joined("m0", generation=2)
    rejoined = Line(join.source, join.kind, join.fields | second)
    lines = [owner("m0"), joined("m0"), synced("m0", 0), assigned("m0"), rejoined, left("m0"), revoked("m0")]
    found = finding("work-after-revoke", [*lines, delivered("m0", 0)])
    assert (len(found.instances), found.undecided) == (1, {})


@pytest.mark.parametrize("end", [{"signal": 9, "asked": "kill"}, {}], ids=["killed", "ended"])
def test_a_frozen_member_excuses_no_output_that_it_cannot_have_written(end: dict[str, Any]) -> None:
    """It had fetched nothing of what another one wrote out of order, whatever became of it."""

    def output(record: int, place: int) -> Line:
        return effect(record, topic="out", partition=0, offset=place)

    lines = [owner("m0"), synced("m0", 0), assigned("m0"), fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
    lines += [output(0, 0), fetched("m0", 1), fault("pause", "m0"), after(3.5), owner("m1"), synced("m1", 0)]
    lines += [assigned("m1"), fetched("m1", 1, size_bytes=9), *handled("m1", 1, 2, 3)]
    lines += [output(3, 1), output(2, 2), output(1, 3), after(1), exited("m0", **end)]
    found = judged("reordered-key", lines, records=ALIKE, settings=with_settings(sink="topic"))
    assert [one["offset"] for one in found] == [1, 2]
