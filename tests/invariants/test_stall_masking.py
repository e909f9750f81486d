"""Where the harness itself stood still, what it heard late may have been said before: that is left undecided."""

from __future__ import annotations

import numpy as np
import pytest

from group_lines import heartbeat
from histories import (
    Line,
    after,
    assigned,
    committed,
    delivered,
    fetched,
    finding,
    handled,
    owner,
    processed,
    revoked,
    stood_still,
)
from kafka_trial.model.clocks import earliest
from kafka_trial.model.kernels import NEVER, NONE, Ints
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.undecided import Undecided

SECOND_NS = 1_000_000_000
FETCHED = fetched("m0", 0, size_bytes=9)
FROZEN = [assigned("m0"), delivered("m0", 0), owner("m1"), assigned("m1"), after(1)]
HANDED_OVER = [assigned("m0"), handled("m0", 0, 1), revoked("m0"), committed(1), after(1), committed(2), after(1)]

BROKEN = {  # what is heard a second late shows an anomaly, where nothing kept the harness from hearing it in time
    "commit-ahead": ([assigned("m0"), delivered("m0", 0), committed(1), after(1)], [processed("m0", 0)]),
    "reordered-key": (
        [assigned("m0"), processed("m0", 1), revoked("m0"), assigned("m1"), after(1)],
        [processed("m1", 0)],
    ),
    "overlapping-handlers": (
        [assigned("m0"), delivered("m0", 0), assigned("m1"), delivered("m1", 0), after(1)],
        [processed("m0", 0), processed("m1", 0)],
    ),
    "zombie-work": (FROZEN, [processed("m0", 0)]),
    "split-ownership": (
        [FETCHED, *FROZEN, heartbeat("m0", error=25), after(1), fetched("m0", 1, size_bytes=9), after(1)],
        [delivered("m0", 1)],
    ),
    "illegal-redelivery": (HANDED_OVER, [assigned("m1"), delivered("m1", 1)]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_heard_late_for_no_reason_is_late(name: str) -> None:
    """Nothing kept the harness from hearing it; that it had stood still long before does not count."""
    before, late = BROKEN[name]
    assert _found(name, [*before, *late]) == 1
    assert _found(name, [stood_still(0.8), after(3), *before, *late]) == 1


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_heard_after_a_stall_may_have_been_said_before_it(name: str) -> None:
    """The machine stood still for two seconds, just until the lines were read."""
    before, late = BROKEN[name]
    assert _undecided(name, [*before, stood_still(2), *late]) == {Undecided.HARNESS_STALLED: 1}
    assert _undecided(name, [*before, *late]) == {}  # it is found, not undecided


def test_what_a_stall_is_not_near_is_found_beside_what_it_is_near() -> None:
    """One partition's anomaly is found; one more of the same sort, read after a stall, is undecided."""
    found_alone = [assigned("m0"), delivered("m0", 0), committed(1), after(1), processed("m0", 0)]
    heard_late = [delivered("m0", 1), committed(2), after(1), stood_still(2), processed("m0", 1)]
    both = finding("commit-ahead", [*found_alone, after(5), *heard_late], records=["a", "a"])
    assert (len(both.instances), dict(both.undecided)) == (1, {Undecided.HARNESS_STALLED: 1})


def test_a_fall_is_not_known_to_hold_the_start_that_was_heard_late() -> None:
    """Somebody may have started before the position fell."""
    fall = [owner("m0"), assigned("m0"), handled("m0", 0, 1), committed(2, by="m0"), after(1), committed(1, by="m0")]
    back = [assigned("m1"), after(1), committed(2)]
    inside = [
        [one.attributes["restart_inside"] for one in finding("commit-regression", [*fall, *still, *back]).instances]
        for still in ([], [stood_still(0.8)])
    ]
    assert inside == [[True], [False]]
    assert _undecided("commit-regression", [*fall, stood_still(0.8), *back]) == {Undecided.HARNESS_STALLED: 1}


def test_events_are_as_early_as_the_stalls_before_them_allow() -> None:
    """Half a second after one somebody may still be reading what had waited; what never was stays so."""
    about = TrialContext(harness_stalls=((10 * SECOND_NS, 12 * SECOND_NS), (20 * SECOND_NS, 21 * SECOND_NS)))
    heard, said = [9, 10, 11, 12.5, 12.6, 20.5, 30], [9, 10, 10, 10, 12.6, 20, 30]
    assert earliest(about, _ns(heard)).tolist() == _ns(said).tolist()
    assert earliest(about, np.array([NEVER, NONE])).tolist() == [NEVER, NONE]


def _ns(seconds: list[float]) -> Ints:
    return (np.array(seconds) * SECOND_NS).astype(np.int64)


def _undecided(name: str, lines: list[Line | list[Line]]) -> dict[str, int]:
    return dict(finding(name, lines, records=["a", "a"]).undecided)


def _found(name: str, lines: list[Line | list[Line]]) -> int:
    return len(finding(name, lines, records=["a", "a"]).instances)
