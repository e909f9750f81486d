"""What reached the outside world, by record id: literal histories, each of at most eight lines."""

from __future__ import annotations

from typing import Any

import pytest

from histories import (
    assigned,
    delivered,
    effect,
    finding,
    handled,
    history,
    judged,
    judgement,
    not_judged,
    sent,
    undecided,
)
from histories import with_settings as settings_with
from lab.naive.checker import judge as naive_judge


def test_phantom_holds() -> None:
    """What was delivered and effected was sent."""
    assert judged("phantom", [sent(0), sent(1), assigned("m0"), delivered("m0", 0, id="r0"), effect(1)]) == []


def test_phantom_is_broken_by_an_effect() -> None:
    """Nobody sent r7; it belongs to no partition."""
    found = finding("phantom", [sent(0), sent(1), effect(7)])
    assert [(one.attributes, one.partition, one.events) for one in found.instances] == [
        ({"id": "r7", "what": "effected"}, None, ("sink#0",))
    ]


def test_phantom_is_broken_by_a_delivery() -> None:
    """The member says that it was delivered r7."""
    found = finding("phantom", [sent(0), sent(1), assigned("m0"), delivered("m0", 0, id="r7")])
    assert [(one.attributes, one.partition) for one in found.instances] == [
        ({"id": "r7", "offset": 0, "what": "delivered"}, 0)
    ]


@pytest.mark.parametrize("fate", ["info", "fail"])
def test_phantom_only_looks_broken_where_the_fate_is_unknown(fate: str) -> None:
    """The send was invoked: whatever its fate, it is no phantom."""
    assert judged("phantom", [sent(0), sent(7, outcome=fate), effect(7)]) == []


def test_phantom_only_looks_broken_where_the_sink_refused() -> None:
    """What was declared not done did not arrive."""
    assert judged("phantom", [sent(0), effect(0), effect(7, outcome="fail")]) == []


def test_phantom_is_undecided_where_the_log_holds_a_strangers_record() -> None:
    """r1 was never sent by the workload, and lies in the topic."""
    assert undecided("phantom", [sent(0), effect(1)]) == 1


def test_phantom_is_not_judged_without_sends() -> None:
    """Nobody knows what was sent."""
    assert "no send" in not_judged("phantom", [effect(0)])


def test_phantom_is_not_missed_where_no_ids_are_told() -> None:
    """A consumer that names no ids and has no sink: not judged, and not missed."""
    missing = finding("phantom", [sent(0), assigned("m0"), delivered("m0", 0)]).not_judged
    assert missing is not None
    assert not missing.applies


def test_an_effect_of_no_partition_is_in_no_count() -> None:
    """Coverage, series and summaries are of partitions only."""
    judged_ = judgement([sent(0), assigned("m0"), handled("m0", 0), effect(7)])
    assert [part.partition for part in judged_.coverage.partitions] == [0]
    assert judged_.crashed == {}


def test_duplicate_effect_holds() -> None:
    """Each record had one effect."""
    assert judged("duplicate-effect", [effect(0), effect(1)]) == []


def test_duplicate_effect_is_broken() -> None:
    """Record 0 had three: two too many, each proved by the first one and itself."""
    found = finding("duplicate-effect", [effect(0), effect(1), effect(0), effect(0)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "number": 2}, ("sink#0", "sink#2")),
        ({"offset": 0, "number": 3}, ("sink#0", "sink#3")),
    ]


def test_duplicate_effect_is_judged_by_id() -> None:
    """The record is not in the log any more, or never was known to be: the id is the same."""
    assert judged("duplicate-effect", [effect(7), effect(7)]) == [{"number": 2}]
    assert judged("duplicate-effect", [sent(7), effect(7), effect(7)]) == [{"offset": 7, "number": 2}]


@pytest.mark.parametrize(("effects", "numbers"), [(1, []), (2, []), (3, [3]), (4, [3, 4])])
def test_duplicate_effect_only_looks_broken_where_its_producer_sent_it_again(effects: int, numbers: list[int]) -> None:
    """The log holds r0 at 0 and at 2, and each of these records may have its effect; r1 lies there once."""
    twice: dict[str, Any] = {"records": 3, "control": {2: {"id": "r0"}}}
    found = judged("duplicate-effect", [*[effect(0)] * effects, effect(1)], **twice)
    assert [one["number"] for one in found] == numbers
    assert len(judged("duplicate-effect", [effect(0), effect(1), effect(1)], **twice)) == 1
    naive = naive_judge(history([*[effect(0)] * effects, effect(1)], **twice), {"sink": "http"})
    assert len(naive.anomalies["duplicate-effect"]) == len(numbers)


@pytest.mark.parametrize("outcome", ["fail", "info"])
def test_duplicate_effect_only_looks_broken_where_the_sink_did_not_acknowledge(outcome: str) -> None:
    """The consumer was refused, or heard nothing, and tried again."""
    assert judged("duplicate-effect", [effect(0, outcome=outcome), effect(0)]) == []


def test_duplicate_effect_only_looks_broken_where_it_was_delivered_twice() -> None:
    """Two deliveries, two completions, one effect."""
    lines = [assigned("m0"), handled("m0", 0), handled("m0", 0), effect(0)]
    assert judged("duplicate-effect", lines) == []


@pytest.mark.parametrize(("claim", "missed"), [("at-most-once", False), ("exactly-once", True)])
def test_duplicate_effect_is_missed_only_where_effects_are_claimed(claim: str, *, missed: bool) -> None:
    """Without a sink nobody sees effects: exactly-once is about them."""
    missing = finding("duplicate-effect", [assigned("m0")], settings=settings_with(delivery=claim)).not_judged
    assert missing is not None
    assert missing.applies is missed
