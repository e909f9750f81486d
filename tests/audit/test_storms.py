"""Storms by the offsets log alone: the generation rises, and the same members are there, or others."""

from __future__ import annotations

from kafka_trial.audit.storms import flapping, rises_of, storm_at_rest
from kafka_trial.history.event import Event

S = 1_000_000_000


def _records(*told: tuple[int, int, str]) -> list[Event]:
    """Group records as (time in s, generation, members); a member m' is client m come back."""
    return [
        Event(
            "offsets",
            number,
            at_s * S,
            "group",
            source_wall_ns=at_s * S,
            details={
                "group": "g",
                "epoch": epoch,
                "members": [{"member_id": name, "client_id": name.strip("'"), "host": "h"} for name in names.split()],
            },
        )
        for number, (at_s, epoch, names) in enumerate(told)
    ]


def _found(*told: tuple[int, int, str]) -> tuple[int, int]:
    """Returns how many rises the storm has, and how many clients came back again and again; W is 10 s."""
    rises = rises_of(_records(*told), group="g", from_ns=0, until_ns=1000 * S)
    storm = storm_at_rest(rises, window_ns=10 * S)
    return (int(storm[0].attributes["bumps"]) if storm else 0), flapping(rises)


def test_a_generation_that_rises_among_the_very_same_members_is_a_storm() -> None:
    """Nobody was started, nobody stopped."""
    assert _found((1, 1, "a b"), *((20 + n, 2 + n, "a b") for n in range(6))) == (6, 0)


def test_four_rises_are_no_storm() -> None:
    """One mishap costs so many."""
    assert _found((1, 1, "a b"), *((20 + n, 2 + n, "a b") for n in range(4))) == (0, 0)


def test_rises_shortly_after_somebody_came_are_explained_by_that() -> None:
    """Cooperative rebalances follow one another."""
    assert _found((1, 1, "a"), (20, 2, "a b"), *((21 + n, 3 + n, "a b") for n in range(6))) == (0, 0)


def test_a_deployment_is_no_storm() -> None:
    """Each client goes and comes back once."""
    assert _found((1, 1, "a b"), (20, 2, "b"), (21, 3, "b a'"), (22, 4, "a'"), (23, 5, "a' b'")) == (0, 0)


def test_a_client_that_comes_back_again_and_again_is_counted() -> None:
    """Restarted, or thrown out: nobody tells, so it is left open."""
    back = [(20 + 2 * n, 2 + 2 * n, "b") for n in range(4)] + [
        (21 + 2 * n, 3 + 2 * n, "b a" + "'" * (n + 1)) for n in range(4)
    ]
    assert _found((1, 1, "a b"), *sorted(back)) == (0, 1)
