"""Steps: long work tells whoever shows it, and nobody where nobody does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka_trial.process.steps import Step, step, told_to


def test_a_step_is_told_to_the_last_who_came_and_to_nobody_without_one() -> None:
    """Also where the step fails."""
    told: list[str] = []

    @contextmanager
    def teller(begun: Step) -> Iterator[None]:
        told.append(f"begins {begun.what}")
        try:
            yield
        finally:
            told.append(f"ends {begun.what}")

    with step("nobody listens"):
        pass
    with told_to(teller), step("fetching"):
        told.append("works")
    with step("nobody listens any more"):
        pass
    assert told == ["begins fetching", "works", "ends fetching"]


def test_a_step_says_how_much_is_done_while_what_it_counts_comes_and_goes() -> None:
    """A folder that is renamed while it is counted spoils nothing."""

    def gone() -> str:
        raise FileNotFoundError(2, "No such file or directory", "there")

    assert [
        Step("x", done=lambda: "3 of 47 jars", began_s=10.0).so_far(22.4),
        Step("x", began_s=10.0).so_far(22.4),
        Step("x", done=gone, began_s=10.0).so_far(22.4),
    ] == ["3 of 47 jars, 12 s so far", "12 s so far", "(No such file or directory) 12 s so far"]
