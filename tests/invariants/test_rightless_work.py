"""Work of members that nobody had given the partition to, while the group had given it to others."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from group_lines import beat, heartbeat, left, synced
from histories import (
    Line,
    after,
    answered,
    asked,
    assigned,
    committed,
    delivered,
    effect,
    fault,
    fetched,
    finding,
    gone,
    group_epoch,
    handled,
    healed,
    holds,
    judged,
    log_end,
    owner,
    phase,
    processed,
    revoked,
    said,
    started,
    undecided,
    with_settings,
)

History = list[Line | list[Line]]
GIVEN: History = [owner("m0"), synced("m0", 0), synced("m1", 1)]
OWNED: History = [*GIVEN, assigned("m0"), answered("m0", 0), fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1)]
TAKEN: History = [fetched("m1", 0, size_bytes=9), *handled("m1", 0)]
AT_MOST_ONCE = with_settings(delivery="at-most-once")
STOPPED = said("m0", "stopped")


def by_another_client(line: Line) -> Line:
    """The same request, of a second client in the process."""
    return replace(line, fields=line.fields | {"connection": "other", "client_id": "other"})


WITHOUT_A_RIGHT = {
    "it says what else it was given": [assigned("m1", 1), *TAKEN],
    "it says nothing of partitions": TAKEN,
    "through a second client of its lane": [assigned("m1", 1), by_another_client(TAKEN[0]), *TAKEN[1:]],
    "it tells of completions alone": [TAKEN[0], processed("m1", 0)],
}


@pytest.mark.parametrize("work", WITHOUT_A_RIGHT.values(), ids=WITHOUT_A_RIGHT.keys())
def test_what_a_member_fetched_and_handled_without_a_right_is_a_split(work: History) -> None:
    """The owner is at work on it, and the record is handled twice: legal under at least once alone."""
    lines = [*OWNED, committed(2, by="m0"), *work]
    found = judged("split-ownership", lines)
    assert [(one["by"], one["offset"]) for one in found] == [("taken", 0)]
    assert [one["offset"] for one in judged("redelivered", lines, settings=AT_MOST_ONCE)] == [0]
    assert judged("illegal-redelivery", lines) == []  # nobody told it where to start


def test_who_took_it_before_the_group_gave_it_to_another_one_has_no_right() -> None:
    """It says that it was assigned it, before there was anybody else."""
    first: History = [assigned("m1"), fetched("m1", 0, size_bytes=9), *handled("m1", 0), after(1)]
    again: History = [fetched("m1", 1, size_bytes=9), after(1), *handled("m1", 1)]
    formed: History = [owner("m0"), synced("m0", 0), assigned("m0"), answered("m0", 0), after(3)]
    assert [one["offset"] for one in judged("split-ownership", [*first, *formed, *again])] == [1]


def test_by_kip_848_a_right_is_an_assignment_too() -> None:
    """m1 is in the group, and has another partition."""
    lines = [holds("m0", 0), holds("m1", 1), *OWNED[3:], *TAKEN]
    found = judged("split-ownership", lines, settings=with_settings(protocol="consumer"))
    assert [one["by"] for one in found] == ["taken"]


def test_an_incarnation_has_no_right_of_the_one_before_it() -> None:
    """m1 had the partition, ended, and came back to a group that had given it to m0."""
    before = [owner("m1"), synced("m1", 0), assigned("m1"), fetched("m1", 0, size_bytes=9), *handled("m1", 0)]
    moved = [left("m1"), said("m1", "exited", code=0), after(1), *GIVEN, *OWNED[3:], after(1), started("m1-1")]
    lines = [*before, *moved, after(1), fetched("m1", 0, size_bytes=9), *handled("m1-1", 0)]
    assert [one["by"] for one in judged("split-ownership", lines)] == ["taken"]


@pytest.mark.parametrize(
    "lines",
    [
        [*OWNED, *handled("m1", 1)],  # m0 may have handed it over
        [owner("m0"), *OWNED[3:], fetched("m1", 0, size_bytes=9)],  # it looks, and handles nothing
        [*OWNED[3:], *TAKEN],  # no record says who has the partition
        [owner("m1"), synced("m1", 0), *TAKEN],  # it was given it, and does not say so
        [owner("m0"), *OWNED[3:], owner(epoch=2), after(1), *TAKEN],  # the group is empty by then
    ],
    ids=["handed over", "looked at", "nobody's", "given", "empty"],
)
def test_without_an_owner_or_a_fetch_of_its_own_nobody_is_convicted(lines: History) -> None:
    """Only who takes a record from under its owner does."""
    assert finding("split-ownership", lines).instances == ()


def test_what_may_have_been_handed_over_is_undecided() -> None:
    """A broker was stopped: its last lines may be missing, and m1 may have fetched the record or not."""
    lines = [*OWNED, fault("broker-kill", None), healed(), after(2), *handled("m1", 1)]
    assert undecided("split-ownership", lines) == 1


def test_consumers_that_assign_partitions_to_themselves_need_no_right() -> None:
    """`protocol = "none"`: whatever some other group says."""
    assert judged("split-ownership", [*OWNED, *TAKEN], settings=with_settings(protocol="none")) == []


# --- epochs begin by the log's word, and end with the process ------------------------------------------------------


def test_work_before_a_late_assigned_line_is_of_the_epoch_that_the_log_tells_of() -> None:
    """Printed late: sound, and what was done twice meanwhile was done twice."""
    late = [*GIVEN, answered("m0", 0), fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
    assert judged("redelivered", [*late, assigned("m0"), *handled("m0", 1)]) == []
    twice = [*late, *handled("m0", 0), assigned("m0"), *handled("m0", 1)]
    assert [one["offset"] for one in judged("redelivered", twice, settings=AT_MOST_ONCE)] == [0]


def test_work_after_the_word_that_it_stops_counts() -> None:
    """A pool may work off what it has; what it does again is done again."""
    pool = [*GIVEN, assigned("m0"), answered("m0", 0), fetched("m0", 0, size_bytes=9), delivered("m0", 0), STOPPED]
    assert judged("redelivered", [*pool, processed("m0", 0), *handled("m0", 1)]) == []
    again = [*OWNED, STOPPED, fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
    assert [one["offset"] for one in judged("redelivered", again, settings=AT_MOST_ONCE)] == [0]


# --- its own leave ----------------------------------------------------------------------------------------------


GIVEN_AWAY: History = [owner("m1", epoch=2), synced("m1", 0, 1, generation=2), after(1)]


def test_what_a_member_fetches_after_it_left_its_group_is_not_its_own() -> None:
    """Nobody has to tell it."""
    lines = [*OWNED[:-2], left("m0"), *GIVEN_AWAY, fetched("m0", 1, size_bytes=9), after(1), *handled("m0", 1)]
    assert [(one["by"], one["offset"]) for one in judged("split-ownership", lines)] == [("told", 1)]


@pytest.mark.parametrize(
    "lines",
    [
        [*OWNED[:-2], left("m0"), *GIVEN_AWAY, *handled("m0", 1)],
        [*OWNED[:-2], fetched("m0", 1, size_bytes=9), left("m0"), *GIVEN_AWAY, *handled("m0", 1)],
        [*OWNED[:-2], left("m0"), after(1), owner("m0", epoch=2), after(1), fetched("m0", 1), *handled("m0", 1)],
        [*OWNED[:-2], left("m0"), *GIVEN_AWAY, owner("m0", epoch=3), fetched("m0", 1, size_bytes=9), *handled("m0", 1)],
    ],
    ids=["in hand", "on its way", "it came back", "it came back just now, and says so later"],
)
def test_what_a_member_had_when_it_left_it_may_finish(lines: History) -> None:
    """Left by max.poll.interval with records in hand; or left, and given the partition again."""
    assert judged("split-ownership", lines) == []


# --- by effects ------------------------------------------------------------------------------------------------


SILENT = with_settings(events="none", sink="http")


def by(member: str, record: int) -> Line:
    """An effect at the HTTP sink, which names its member."""
    return effect(record, member=member)


def renewed(line: Line) -> Line:
    """The same of m0's second member id, in the same process."""
    fields = orjson.loads(orjson.dumps(line.fields).replace(b'"id-m0"', b'"id-m0-again"'))
    return replace(line, fields=fields)


MOVED: History = [owner("m1", idle=["m0"], epoch=2), synced("m0", generation=2), synced("m1", 0, 1, generation=2)]
BEGUN: History = [*GIVEN, answered("m0", 0), fetched("m0", 0, size_bytes=9), by("m0", 0)]


def test_effects_of_what_a_silent_member_fetched_though_told_are_a_split() -> None:
    """SyncGroup gave it nothing any more."""
    lines = [*BEGUN, *MOVED, after(1), fetched("m0", 1, size_bytes=9), after(1), by("m0", 1)]
    assert [(one["by"], one["offset"]) for one in judged("split-ownership", lines, settings=SILENT)] == [("taken", 1)]


ALONE: History = [owner("m1", epoch=2), synced("m1", 0, 1, generation=2)]
BY_KIP_848: History = [holds("m0", 0), beat("m0", [0]), holds("m1", 1), beat("m1", [1])]
ACKNOWLEDGED: History = [
    *(group_epoch(2), holds("m0", pending=[0]), beat("m0", [])),
    *(beat("m0", owned=[]), holds("m0", epoch=2), holds("m1", 0, 1, epoch=2), beat("m1", [0, 1], epoch=2)),
]
LOSSES = {
    "its own leave": [*BEGUN, left("m0"), *ALONE],
    "its id is not known any more": [*BEGUN, *ALONE, heartbeat("m0", error=25)],
    "nor at a commit": [*BEGUN, *ALONE, asked("OFFSET_COMMIT", "m0", 1, error=25)],
    "its id is not known any more, in whatever generation": [
        *(*BEGUN, synced("m0", 0, generation=2), *ALONE, heartbeat("m0", generation=1, error=25)),
    ],
    "its next id is given nothing": [
        *(*BEGUN, owner("m1", idle=["m0"], epoch=2), renewed(synced("m0", generation=2)), synced("m1", 0, 1)),
    ],
    "KIP-848, acknowledged": [*BY_KIP_848, *BEGUN[3:], *ACKNOWLEDGED],
    "KIP-848, its own leave": [*BY_KIP_848, *BEGUN[3:], beat("m0", epoch=-1), gone("m0"), holds("m1", 0, 1, epoch=2)],
}


@pytest.mark.parametrize("lost", LOSSES.values(), ids=LOSSES.keys())
def test_a_silent_member_hears_of_its_loss_in_any_way(lost: History) -> None:
    """Before the offsets log gives the partition to another one, or after it."""
    again: History = [after(1), fetched("m0", 1, size_bytes=9), after(1), by("m0", 1)]
    back: History = [after(1), fetched("m0", 0, size_bytes=9), *again]
    for fetches in (again, back):
        found = judged("split-ownership", [*lost, *fetches], settings=SILENT)
        assert [(one["by"], one["offset"]) for one in found] == [("taken", 1)]
    assert judged("split-ownership", [*lost, after(2), by("m0", 1)], settings=SILENT) == []  # it had it in hand


def test_what_a_silent_member_asked_of_a_broker_that_stood_still_it_may_have_asked_before() -> None:
    """The broker reads it, and dates it, when it continues."""
    fetches: History = [replace(fetched("m0", 1, size_bytes=9), source="requests-b1"), after(1), by("m0", 1)]
    line = fault("broker-pause", None)
    for broker, offsets in (("b1", []), ("b2", [1])):
        frozen = replace(line, fields=line.fields | {"target": f"leader: {broker}"})
        lines = [*BEGUN, frozen, after(1), *MOVED, after(9), healed(), *fetches]
        found = judged("split-ownership", lines, settings=SILENT)
        assert [one["offset"] for one in found] == offsets


UNTOLD = {
    "nobody told it": [*BEGUN, *ALONE],
    "a commit of the generation before": [*BEGUN, *ALONE, asked("OFFSET_COMMIT", "m0", 1, error=22)],
    "a heartbeat of the generation before": [
        *(*BEGUN, synced("m0", 0, generation=2), heartbeat("m0", error=22), answered("m0", 1), *ALONE),
    ],
    "its id of before left": [*BEGUN, renewed(owner("m0", epoch=2)), renewed(synced("m0", 0)), left("m0"), *ALONE],
}


@pytest.mark.parametrize("lines", UNTOLD.values(), ids=UNTOLD.keys())
def test_a_silent_member_that_nobody_told_does_not_know(lines: History) -> None:
    """It goes on with what it was given."""
    again: History = [after(1), fetched("m0", 1, size_bytes=9), after(1), by("m0", 1)]
    assert judged("split-ownership", [*lines, *again], settings=SILENT) == []


def test_effects_of_what_a_silent_member_was_never_given_are_a_split() -> None:
    """It reads what m0 has."""
    lines = [*BEGUN, after(1), fetched("m1", 0, size_bytes=9), after(1), by("m1", 1)]
    assert [one["offset"] for one in judged("split-ownership", lines, settings=SILENT)] == [1]


@pytest.mark.parametrize(
    "lines",
    [
        [*BEGUN, *MOVED, after(2), by("m0", 1)],
        [*BEGUN, fetched("m0", 1, size_bytes=9), *MOVED, after(2), by("m0", 1)],
        [*BEGUN[:-1], *MOVED, after(1), fetched("m0", 0, size_bytes=9), after(1), by("m0", 0)],
        [*BEGUN, *MOVED, after(1), fetched("m0", 1, size_bytes=9), after(1), by("m0", 0)],
        [*BEGUN, *MOVED, after(1), owner("m0", epoch=3), synced("m0", 0), fetched("m0", 1, size_bytes=9), by("m0", 1)],
    ],
    ids=["in hand", "on its way", "asked for twice", "a retry", "given back"],
)
def test_effects_of_what_a_member_had_fetched_by_right_are_none(lines: History) -> None:
    """What it had it may finish; a further effect may be a retry, whose first answer was lost."""
    assert judged("split-ownership", lines, settings=SILENT) == []


CALLBACKS: History = [*GIVEN, assigned("m0"), answered("m0", 0), fetched("m0", 0, size_bytes=9), by("m0", 0)]
GIVES_BACK: History = [revoked("m0"), *MOVED, after(2)]


def test_effects_beside_callbacks_are_work_though_no_line_tells_of_a_record() -> None:
    """The file holds callbacks only, and the sink names the member: it worked after its own `revoked`, or did not."""
    told = with_settings(sink="http")
    late = judged("work-after-revoke", [*CALLBACKS, *GIVES_BACK, by("m0", 1)], settings=told)
    assert [(one["offset"], one["what"]) for one in late] == [(1, "effected")]
    assert judged("work-after-revoke", [*CALLBACKS, *GIVES_BACK, by("m1", 1)], settings=told) == []
    back = [owner("m0", epoch=3), synced("m0", 0, generation=3), assigned("m0"), by("m0", 1)]
    assert judged("work-after-revoke", [*CALLBACKS, *GIVES_BACK, *back], settings=told) == []


def test_effects_beside_callbacks_acquit_only_where_revocations_are_told() -> None:
    """Its `revoked` named partition 0; when brokers took partition 1 away, no line said so."""
    told = with_settings(sink="http")
    taken = [synced("m0"), after(30), by("m1", 1)]
    again = [synced("m0", 0, 1), assigned("m0", 1), synced("m0", 0)]
    missing = finding("work-after-revoke", [*CALLBACKS, *GIVES_BACK, *again, *taken], settings=told).not_judged
    assert missing is not None
    assert missing.applies
    assert "told what was assigned and not all that was revoked" in missing.because


def test_effects_that_name_no_member_are_no_work_beside_callbacks() -> None:
    """Of an output nobody knows who made it; and where no callback is told, nothing says when a member gave it back."""
    for lines, sink in (([*CALLBACKS, *GIVES_BACK], "topic"), ([*GIVEN, assigned("m0"), by("m0", 0)], "http")):
        missing = finding("work-after-revoke", lines, settings=with_settings(sink=sink)).not_judged
        assert missing is not None
        assert not missing.applies


def test_a_first_effect_after_its_own_revoked_is_work_after_it() -> None:
    """Its lines say nothing of it, or that it was done before."""
    told = with_settings(sink="http")
    held = [*GIVEN, assigned("m0"), answered("m0", 0), fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
    gone = [revoked("m0"), *MOVED, after(2)]
    found = judged("work-after-revoke", [*held, by("m0", 0), *gone, by("m0", 1)], settings=told)
    assert [(one["offset"], one["what"]) for one in found] == [(1, "effected")]
    assert len(judged("work-after-revoke", [*held, *gone, by("m0", 0)], settings=told)) == 1
    assert judged("work-after-revoke", [*held, by("m0", 0), *gone, by("m0", 0)], settings=told) == []
    back = [*held, by("m0", 0), *gone, owner("m0", epoch=3), assigned("m0"), by("m0", 1)]
    assert judged("work-after-revoke", back, settings=told) == []
    both = [*held, by("m0", 0), *gone, *handled("m0", 1), by("m0", 1)]
    assert [one["what"] for one in judged("work-after-revoke", both, settings=told)] == ["delivered", "processed"]


# --- what is not printed, and what logs contradict ---------------------------------------------------------------


def test_who_never_says_that_it_gave_back_is_not_judged_by_its_callbacks() -> None:
    """Brokers took the partition from it, and it prints what it is given alone, or another one that was revoked."""
    lines = [*OWNED, committed(2, by="m0"), *MOVED, assigned("m1", 0, 1)]
    for told in (lines, [*OWNED, revoked("m0", 1), *MOVED]):
        missing = finding("work-after-revoke", told, partitions=2).not_judged
        assert missing is not None
        assert missing.applies
        assert missing.because.startswith("m0 told what was assigned and not all that was revoked")
    assert finding("work-after-revoke", [*OWNED, revoked("m0"), *MOVED]).not_judged is None
    assert finding("work-after-revoke", OWNED).not_judged is None


@pytest.mark.parametrize(
    ("lines", "is_judged"),
    [([], True), ([assigned("m0", 1)], False), ([processed("m0", 0, partition=1)], False)],
    ids=["never had it", "says it was assigned", "worked there"],
)
def test_what_was_taken_away_before_it_was_handed_out_is_not_given_back(lines: list[Line], is_judged: bool) -> None:
    """The next rebalance came first; whoever says that it had the partition, or shows it, must say when it went."""
    first = [synced("m0", 0, 1), synced("m0", 0, generation=3), assigned("m0"), *lines, *handled("m0", 0), after(30)]
    missing = finding("work-after-revoke", first, partitions=2).not_judged
    assert (missing is None) is is_judged


def test_what_a_member_of_kip_848_gave_back_it_says_itself() -> None:
    """Its coordinator may take a partition away and assign it again before the member has come to it."""
    begun = [holds("m0", 0), beat("m0", [0]), assigned("m0"), beat("m0", owned=[0]), *handled("m0", 0)]
    taken = [group_epoch(2), holds("m0", pending=[0]), beat("m0", [])]
    again = [group_epoch(3), holds("m0", 0, epoch=3), beat("m0", [0], epoch=3), *handled("m0", 1)]
    assert finding("work-after-revoke", [*begun, *taken, *again]).not_judged is None
    missing = finding("work-after-revoke", [*begun, *taken, beat("m0", owned=[]), *again]).not_judged
    assert missing is not None
    assert missing.applies


def test_a_member_that_never_fetched_has_handled_nothing() -> None:
    """Others did, on lanes of their own: the logs would show it."""
    drained = [committed(2, by="m0"), log_end(2), phase("drain"), after(15)]
    begun = [*GIVEN, assigned("m0"), answered("m0", 0), *handled("m0", 0, 1)]
    assert [one["offset"] for one in judged("skipped", [*begun, fetched("m1", None), *drained])] == [0, 1]
    assert judged("skipped", [*begun, *drained]) == []  # of nobody a fetch was logged
