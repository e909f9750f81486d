"""Both judges on answers of slow brokers: literal histories of a member that works on after it lost its partition."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from group_lines import beat, heartbeat
from histories import (
    EXAMPLE,
    Line,
    after,
    assigned,
    delivered,
    fault,
    fetched,
    healed,
    history,
    lasting,
    lost,
    owner,
    processed,
)
from lab.agreement.sayings import naive_says, vectorised_says

Lines = list[Line | list[Line]]
SETTINGS = ("session_timeout_s", "poll_interval_s", "commit_interval_s", "delivery", "events", "sink")
ASKED = ("split-ownership", "zombie-work", "work-after-revoke", "skipped", "redelivered", "commit-lost")


def over(connection: str, line: Line) -> Line:
    """A request over that connection."""
    return replace(line, fields=line.fields | {"connection": connection})


# m0 has fetched records 0 and 1, and works on the first one; then the log gives the partition to m1.
LOST: Lines = [
    over("c1", beat("m0", error=0)),
    fetched("m0", 0, size_bytes=99),
    assigned("m0"),
    delivered("m0", 0),
    owner("m1"),
    after(1),
]
FENCED = over("c1", beat("m0", error=25))
WORKS_ON: Lines = [after(1), fetched("m0", 2, size_bytes=99), after(1), delivered("m0", 2), processed("m0", 2)]
REPLACED = over("c2", beat("m0", error=0))
# Told while another one stood still, which answers a fetch when it continues: that may have been sent before.
TOLD = [after(4), FENCED, after(5), healed()]


def frozen(broker: str, number: int = 0) -> Line:
    """That broker stands still."""
    return _on(broker, fault("broker-pause", None, number=number))


def held(broker: str) -> Line:
    """Requests to that broker are held on their way."""
    return _on(broker, fault("requests-held", None))


def _on(broker: str, line: Line) -> Line:
    return replace(line, fields=line.fields | {"target": f"leader: {broker}"})


def fetched_there(offset: int) -> Line:
    """From the other broker, by its one connection."""
    return over("f1", replace(fetched("m0", offset, size_bytes=99), source="requests-b1"))


FROZE = [frozen("b0"), after(9), healed(), after(0.2)]
HELD = [held("b0"), after(3), healed(), after(0.2)]
WAITED = [*TOLD, fetched_there(2), after(1), delivered("m0", 2), processed("m0", 2)]
LOWER_NUMBER = [after(2), FENCED, after(1), frozen("b1"), after(9), healed(), *WAITED[-4:]]
GIVEN_BACK = [
    *(after(1), delivered("m0", 1), processed("m0", 0), processed("m0", 1), after(1), lost("m0"), after(1)),
    *(owner("m0"), over("c1", beat("m0", error=0)), assigned("m0"), after(5), healed(), after(0.1)),
    *(fetched_there(1), after(1), delivered("m0", 1), processed("m0", 1)),
]
FETCHED_ON = [
    *(frozen("b1"), after(9), healed(), after(1), FENCED, after(1)),
    *(fetched_there(1), after(0.6), delivered("m0", 1), processed("m0", 1)),
    *(fetched_there(2), after(0.6), delivered("m0", 2), processed("m0", 2)),
]
CASES: dict[str, tuple[Lines, bool]] = {
    "prompt": ([FENCED, *WORKS_ON, REPLACED], True),
    "slow, and its connection was replaced": ([lasting(FENCED, 0.6), *WORKS_ON, REPLACED], False),
    "slow, and no other connection came": ([lasting(FENCED, 0.6), *WORKS_ON], True),
    "slow, and the connection went on": ([lasting(FENCED, 0.6), *WORKS_ON, after(5), FENCED, REPLACED], True),
    "its broker stood still, and the connection was used no more": ([*FROZE, FENCED, *WORKS_ON], False),
    "its broker stood still, and the connection went on": ([*FROZE, FENCED, after(5), *WORKS_ON, FENCED], True),
    "its broker stood still, and so may the fetch have waited": ([*FROZE, FENCED, *WORKS_ON, after(5), FENCED], False),
    "another broker stood still": ([frozen("b1"), after(9), healed(), FENCED, *WORKS_ON], True),
    "another broker stood still, and the fetch may have waited there": ([frozen("b1"), *WAITED], False),
    "another broker stood still, and the fetch was asked of a third one": ([frozen("b2"), *WAITED], True),
    "requests to another broker were held, and the fetch may have been one": ([held("b1"), *WAITED], False),
    "requests were held, and another connection was opened": ([*HELD, FENCED, *WORKS_ON, REPLACED], False),
    "requests were held, and no other connection came": ([*HELD, FENCED, *WORKS_ON], True),
    "what was fetched again since it was given back": ([FENCED, after(1), frozen("b1"), *GIVEN_BACK], False),
    "a fetch that follows one that was answered when a broker went on": ([*FETCHED_ON], True),
    "two pauses, the later of the lower number": ([frozen("b1", 1), after(9), healed(1), *LOWER_NUMBER], True),
    "behind a slow one of another member": ([lasting(heartbeat("m1"), 0.6), FENCED, *WORKS_ON, REPLACED], False),
}


@pytest.mark.parametrize("name", CASES)
def test_both_judges_say_the_same_of_answers_of_slow_brokers(name: str) -> None:
    """And convict whoever surely heard that it had lost its partition, and nobody else."""
    lines, convicted = CASES[name]
    settings = {one: getattr(EXAMPLE, one) for one in SETTINGS}
    trial = SimpleNamespace(events=history([*LOST, *lines], records=3, partitions=2), settings=settings)
    ours, theirs = vectorised_says(trial), naive_says(trial)  # type: ignore[arg-type]
    assert {one: ours[one] for one in ASKED} == {one: theirs.get(one) for one in ASKED}
    assert bool(ours["split-ownership"][0]) is convicted
