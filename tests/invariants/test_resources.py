"""Resources: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    exited,
    finding,
    judged,
    not_judged,
    oom_kills,
    sampled,
    started,
    undecided,
    with_settings,
)

LIMIT = with_settings(memory_max_bytes=100)


def test_memory_within_the_limit_holds() -> None:
    """Exactly the limit is within it."""
    assert judged("memory-over-limit", [sampled("m0", 99), sampled("m0", 100)], settings=LIMIT) == []


def test_memory_over_limit_is_broken() -> None:
    """One finding an incarnation, with the first sample above and the highest."""
    lines = [sampled("m0", 90), sampled("m0", 101), sampled("m0", 150), sampled("m0", 120), sampled("m1", 9)]
    found = finding("memory-over-limit", lines, settings=LIMIT)
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"member": "m0", "incarnation": 0, "rss_bytes": 150, "limit_bytes": 100}, ("run#5", "run#6"))
    ]


def test_memory_only_looks_over_limit_in_two_lives() -> None:
    """Sixty bytes in each of two incarnations are never a hundred and twenty."""
    lines = [sampled("m0", 60), exited("m0", code=0, asked="stop"), started("m0-1"), sampled("m0-1", 60)]
    assert judged("memory-over-limit", lines, settings=LIMIT) == []


def test_memory_of_one_that_was_never_sampled_is_undecided() -> None:
    """It lived for seven seconds; one that was gone sooner need not have been seen."""
    lines = [sampled("m1", 60), exited("m1", code=0, asked="stop"), started("m1-1"), after(4)]
    assert undecided("memory-over-limit", lines, settings=LIMIT) == 1


def test_memory_is_not_judged_without_samples_or_limit() -> None:
    """Nobody looked: the claim stays open. Nothing claimed: the rule is not about this consumer."""
    assert not_judged("memory-over-limit", [], settings=LIMIT) == "the members' memory was not sampled"
    missing = finding("memory-over-limit", [sampled("m0", 900)]).not_judged
    assert missing is not None
    assert (missing.because, missing.applies) == ("no limit of memory is claimed", False)


KILLED = exited("m0", signal=9, asked="no")


def test_nobody_was_killed_for_memory() -> None:
    """The counter rose, and all stopped when asked."""
    assert judged("oom-killed", [oom_kills(3), exited("m0", code=0, asked="stop"), oom_kills(4)]) == []


@pytest.mark.parametrize(("seen", "over"), [(50, False), (150, True)])
def test_oom_killed_is_broken(seen: int, *, over: bool) -> None:
    """Signal 9 from nobody of ours, and the kernel killed one just then; whether it was over its limit is told."""
    found = finding("oom-killed", [sampled("m0", seen), oom_kills(3), KILLED, oom_kills(4)], settings=LIMIT)
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"member": "m0", "incarnation": 0, "over_limit": over}, ("consumer-m0-0#1", "run#6"))
    ]


def test_oom_killed_only_looks_broken_where_the_harness_killed() -> None:
    """Our own kill -9, while the kernel killed somebody else."""
    assert judged("oom-killed", [oom_kills(3), exited("m0", signal=9, asked="kill"), oom_kills(4)]) == []


def test_oom_killed_only_looks_broken_at_another_time() -> None:
    """The kernel killed somebody long before; this signal 9 came from elsewhere."""
    assert judged("oom-killed", [oom_kills(3), oom_kills(4), after(6), oom_kills(4), KILLED, oom_kills(4)]) == []


def test_oom_killed_is_undecided_where_several_went() -> None:
    """Two went by signal 9, the kernel killed one: nobody knows which."""
    lines = [oom_kills(3), KILLED, exited("m1", signal=9, asked="no"), oom_kills(4)]
    assert undecided("oom-killed", lines) == 2


def test_oom_killed_does_not_apply_where_the_counter_cannot_be_read() -> None:
    """Nobody read the kernel's counter: not judged, and not missed."""
    missing = finding("oom-killed", [KILLED]).not_judged
    assert missing is not None
    assert (missing.because, missing.applies) == ("the kernel's out-of-memory killer was not counted", False)


def test_memory_over_limit_is_told_of_each_incarnation() -> None:
    """m0's first was within its limit and its second was not; m1 was over it from the beginning."""
    lines = [sampled("m1", 500), sampled("m0", 100), exited("m0", code=0, asked="stop"), started("m0-1")]
    found = finding("memory-over-limit", [*lines, sampled("m0-1", 101)], settings=LIMIT)
    assert [(one.attributes["member"], one.attributes["incarnation"], one.events) for one in found.instances] == [
        ("m1", 0, ("run#4",)),
        ("m0", 1, ("run#6",)),
    ]


@pytest.mark.parametrize(("wait_s", "cases"), [(2.95, 1), (2.94, 0)], ids=["five seconds", "a little less"])
def test_who_lived_for_five_seconds_must_have_been_sampled(wait_s: float, cases: int) -> None:
    """From the start of its process to its end; the other one was sampled."""
    lines = [sampled("m1", 9), after(wait_s), exited("m0", code=0, asked="stop"), after(9)]
    assert undecided("memory-over-limit", lines, settings=LIMIT) == cases


@pytest.mark.parametrize(("wait_s", "cases"), [(2.95, 1), (2.94, 0)], ids=["five seconds", "a little less"])
def test_who_lives_on_must_have_been_sampled_by_the_snapshot(wait_s: float, cases: int) -> None:
    """Five seconds after the start of its process."""
    assert undecided("memory-over-limit", [sampled("m1", 9), after(wait_s)], settings=LIMIT) == cases


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([KILLED, after(0.49), oom_kills(3), oom_kills(4)], 1),
        ([KILLED, after(0.5), oom_kills(3), oom_kills(4)], 0),
        ([oom_kills(3), oom_kills(4), after(1.99), KILLED], 1),
        ([oom_kills(3), oom_kills(4), after(2), KILLED], 0),
        ([oom_kills(3), after(60), KILLED, after(60), oom_kills(4)], 1),
        ([oom_kills(3), oom_kills(3), KILLED, oom_kills(3)], 0),
        ([oom_kills(3), exited("m0", signal=15, asked="no"), oom_kills(4)], 0),
        ([oom_kills(3), KILLED, exited("m1", signal=9, asked="no"), oom_kills(5)], 2),
    ],
    ids=[
        "as long before the first reading as sources differ",
        "longer before it",
        "two seconds after the last reading",
        "longer after it",
        "long between two readings",
        "nobody was killed",
        "by another signal",
        "two of two",
    ],
)
def test_oom_killed_falls_into_a_rise_of_the_counter(lines: list[Line], found: int) -> None:
    """A large process may be gone two seconds after it was killed."""
    assert finding("oom-killed", lines).count == found


def test_oom_killed_tells_of_the_limit_of_its_own_incarnation() -> None:
    """m0's first was over it, and its second is killed; exactly the limit is within it."""
    again = [sampled("m0", 500), exited("m0", code=0, asked="stop"), started("m0-1"), sampled("m0-1", 100)]
    killed = exited("m0-1", signal=9, asked="no")
    lines = [*again, oom_kills(0), killed, oom_kills(1)]
    assert [one["over_limit"] for one in judged("oom-killed", lines, settings=LIMIT)] == [False]
    assert [one["over_limit"] for one in judged("oom-killed", lines)] == [False]
