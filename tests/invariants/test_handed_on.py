"""Records that the group hands on through a topic of its own: literal histories, each of at most eight lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from group_lines import synced
from histories import (
    WAY,
    Line,
    after,
    answered,
    assigned,
    commit,
    committed,
    delivered,
    effect,
    fetched,
    finding,
    handed_on,
    history,
    judged,
    judgement,
    log_end,
    phase,
    processed,
    sent,
    there,
    through,
    with_settings,
)
from kafka_trial.model.trial_context import Settings
from kafka_trial.verdict.messages import message
from lab.agreement.sayings import naive_says, vectorised_says
from lab.history_strategies import History

Lines = list[Line | list[Line]]
SILENT = with_settings(events="none", sink="http")
DRAIN: Lines = [phase("drain"), after(13), log_end(2)]
GUILT = ("commit-ahead", "skipped", "unseen", "stuck-partition", "late-convergence", "false-lag", "illegal-redelivery")


def _guilty(lines: Lines, **frame: Any) -> dict[str, list[tuple[str | None, Any]]]:
    """Returns what is found, by name: the topics and the record or position that each instance names."""
    frame = {"settings": SILENT, "records": 1} | frame
    _agreed(lines, **frame)
    said = judgement(lines, **frame)
    assert said.crashed == {}
    assert said.defects == ()
    return {
        name: [(one.topic, one.attributes.get("offset", one.attributes.get("log_end"))) for one in found.instances]
        for name in GUILT
        if (found := said.findings[name]).instances
    }


def _agreed(lines: Lines, *, settings: Settings, **frame: Any) -> None:
    """Both judges say the same."""
    told = {name: getattr(settings, name) for name in ("events", "sink", "progress", "delivery")}
    told |= {"session_timeout_s": 3, "poll_interval_s": 5, "commit_interval_s": 1}
    one = cast("History", SimpleNamespace(events=history(lines, **frame), settings=told))
    naive, vectorised = naive_says(one), vectorised_says(one)
    assert {name: naive[name] for name in naive} == {name: vectorised[name] for name in naive}


def _undecided(lines: Lines, **frame: Any) -> dict[str, int]:
    found = judgement(lines, **({"settings": SILENT, "records": 1} | frame)).findings
    return {name: sum(found[name].undecided.values()) for name in GUILT if found[name].undecided}


ON, DONE = handed_on(0, 0), effect(0)
LATER = [after(1), effect(0)]


@pytest.mark.parametrize(
    ("lines", "guilty"),
    [
        ([through(), ON, committed(1), DONE, there(committed(1)), *DRAIN], {}),
        ([through(), ON, handed_on(0, 1), committed(1), DONE, DONE, there(committed(2)), *DRAIN], {}),
        ([through(), ON, committed(1), DONE, handed_on(0, 1), DONE, there(committed(2)), *DRAIN], {}),
        ([through(), DONE, ON, committed(1), there(committed(1)), *DRAIN], {}),
        ([committed(1), *LATER, *DRAIN], {"commit-ahead": [("t", 0)]}),
        ([through(), committed(1), ON, *LATER, there(committed(1)), *DRAIN], {"commit-ahead": [("t", 0)]}),
        (
            [through(), ON, committed(1), there(committed(1)), *LATER, *DRAIN],
            {"commit-ahead": [(WAY, 0)]},
        ),
        (
            [through(), ON, committed(1), there(committed(1)), *DRAIN],
            {"commit-ahead": [(WAY, 0)], "skipped": [(WAY, 0)]},
        ),
        (
            [through(), ON, committed(1), *DRAIN],
            {"unseen": [(WAY, 0)], "stuck-partition": [(WAY, 0)]},
        ),
        ([through(), ON, committed(1), DONE, *DRAIN], {"false-lag": [(WAY, 1)]}),
        ([through(), ON, *DRAIN], {"false-lag": [("t", 1)], "unseen": [(WAY, 0)], "stuck-partition": [(WAY, 0)]}),
        ([through(), committed(1), *DRAIN], {"commit-ahead": [("t", 0)], "skipped": [("t", 0)]}),
    ],
    ids=[
        "handed on, committed, handled",
        "appended twice, handled twice",
        "appended again after a crash, handled again",
        "handled before it was handed on",
        "a topic that it does not commit on is no way",
        "committed before it was appended",
        "committed there before it was handled",
        "committed there and lost",
        "never read there",
        "never committed there",
        "handed on, never committed, never read there",
        "never appended (or in a transaction that was aborted)",
    ],
)
def test_a_record_that_was_handed_on_is_judged_where_it_lies(
    lines: Lines, guilty: dict[str, list[tuple[str | None, Any]]]
) -> None:
    """Where it came from, its hand-on is enough for its commit."""
    assert _guilty(lines) == guilty


def test_a_record_is_handed_on_from_topic_to_topic() -> None:
    """In each it is done with once it lies in the next; in the last one it must be handled."""
    ways = [through(), through("g-later")]
    moved = [*ways, ON, committed(1), handed_on(0, 0, topic="g-later"), there(committed(1))]
    lost: Lines = [*moved, there(committed(1), topic="g-later"), *DRAIN]
    assert _guilty(lost) == {"commit-ahead": [("g-later", 0)], "skipped": [("g-later", 0)]}
    assert _guilty([*moved, DONE, there(committed(1), topic="g-later"), *DRAIN]) == {}


@pytest.mark.parametrize(
    ("nameless", "guilty", "undecided"),
    [
        ([handed_on(None, 0)], {}, {"commit-ahead": 1}),
        ([handed_on(7, 0)], {}, {"commit-ahead": 1}),
        ([], {"commit-ahead": [("t", 0)]}, {}),
        ([handed_on(None, 0, count=3)], {}, {"commit-ahead": 1}),
    ],
    ids=["without an id", "of an id that nobody sent", "an empty topic", "deleted before they were read"],
)
def test_a_record_without_an_id_may_have_been_handed_on(
    nameless: Lines, guilty: dict[str, Any], undecided: dict[str, int]
) -> None:
    """It may be any one's: then nothing is decided. An empty topic explains nothing."""
    lines = [through(), *nameless, committed(1), *LATER, *DRAIN]
    assert (_guilty(lines), _undecided(lines)) == (guilty, undecided)


def test_so_many_records_without_an_id_explain_so_many() -> None:
    """Two were ahead in one commit, and one has no id: one is ahead for certain."""
    lines = [through(), handed_on(None, 0), committed(2), *LATER, effect(1), *DRAIN]
    assert _guilty(lines, records=2) == {"commit-ahead": [("t", 1)]}
    assert _guilty([*lines[:2], handed_on(None, 1), *lines[2:]], records=2) == {}


def test_what_could_not_be_read_meanwhile_is_undecided() -> None:
    """It was appended some time within seconds, and committed past within these; or nobody had asked before it."""
    late = [through(), committed(1), after(3), handed_on(0, 0, asked_s=4), *LATER, there(committed(1)), *DRAIN]
    assert (_guilty(late), _undecided(late)) == ({}, {"commit-ahead": 1})
    first = [through(), committed(1), handed_on(0, 0, asked_s=None), *LATER, there(committed(1)), *DRAIN]
    assert (_guilty(first), _undecided(first)) == ({}, {})


def test_a_member_that_hands_on_by_its_own_word() -> None:
    """It prints what it was delivered, hands it on and asks for the commit: the record is on its way."""
    told = [assigned("m0"), delivered("m0", 0), ON, commit("m0", 1), *committed(1, by="m0"), *LATER]
    assert judged("commit-ahead", [through(), *told], records=1) == []
    _agreed([through(), *told, *DRAIN], settings=with_settings(), records=1)
    early = [assigned("m0"), delivered("m0", 0), commit("m0", 1), ON, *committed(1, by="m0"), *LATER]
    assert [one["offset"] for one in judged("commit-ahead", [through(), *early], records=1)] == [0]
    _agreed([through(), *early, *DRAIN], settings=with_settings(), records=1)


def test_in_a_transaction_it_is_handed_on_with_its_commit() -> None:
    """The witness tells of it once the transaction is committed, be it after the commit's marker was read."""
    settings = with_settings(events="none", sink="http", progress="transaction")
    lines = [through(), *committed(1, producer=7), handed_on(0, 0, asked_s=0.001), DONE, there(committed(1))]
    assert finding("commit-ahead", lines, settings=settings, records=1).instances == ()


def test_what_was_sent_is_what_the_trials_topic_holds() -> None:
    """A copy that was written anew is no corrupt record, and none that somebody else wrote."""
    lines = [*sent(0), through(), ON, committed(1), DONE, there(committed(1))]
    assert judged("corrupt", lines, records=1) == []
    assert judged("phantom", lines, records=1) == []
    assert judged("lost-write", lines, records=1) == []


def test_what_a_line_completes_where_it_came_from_is_done_in_its_intermediate_topic_too() -> None:
    """A dead letter that the group reads itself, and a member that names the record by its place in the trial's topic;
    where a sink is declared, the word that it was done is not enough."""
    begun = [through(), assigned("m0"), delivered("m0", 0), ON, *committed(1, by="m0")]
    for settings, outcome, guilty in (
        (with_settings(sink="http"), "dead-lettered", {}),
        (with_settings(sink="none"), "done", {}),
        (with_settings(sink="http"), "done", {"commit-ahead": [(WAY, 0)], "skipped": [(WAY, 0)]}),
        (with_settings(sink="none"), "failed", {"commit-ahead": [(WAY, 0)], "skipped": [(WAY, 0)]}),
    ):
        told = [*begun, processed("m0", 0, outcome=outcome), there(committed(1)), *DRAIN]
        assert _guilty(told, settings=settings) == guilty


M0: Lines = [answered("m0", 0), fetched("m0", 0, size_bytes=9), synced("m0", 0)]


def test_who_reads_below_its_floor_and_hands_on_again_is_found() -> None:
    """m1 was answered 1, and asked for records from 0 on; what it hands on itself comes again by its own doing."""
    lines = [through(), *M0, ON, effect(0), synced("m0"), synced("m1", 0), answered("m1", 1)]
    rewound = [*lines, fetched("m1", 0, size_bytes=9), handed_on(0, 1), effect(0)]
    assert [one["offset"] for one in judged("illegal-redelivery", rewound, settings=SILENT, records=1)] == [0]
    sound = [*lines, fetched("m1", 1, size_bytes=9), effect(0)]
    assert judged("illegal-redelivery", sound, settings=SILENT, records=1) == []


def test_who_got_its_first_partition_may_handle_what_others_handed_on() -> None:
    """m1 never had the partition before, and no fetch of it is known: record 0 came to it through the other topic."""
    lines = [through(), *M0, ON, effect(0), *committed(1, by="m0"), assigned("m1"), answered("m1", 1)]
    told = {"records": 1, "settings": with_settings(sink="http")}
    assert judged("illegal-redelivery", [*lines, effect(0, member="m1")], **told) == []
    without = [line for line in lines if line is not ON]
    assert [one["offset"] for one in judged("illegal-redelivery", [*without, effect(0, member="m1")], **told)] == [0]


def test_order_is_that_of_the_trials_topic_alone() -> None:
    """Handled as sent, though they were handed on the other way round; and the other way round is told once."""
    lines = [through(), *M0, handed_on(1, 0), handed_on(0, 1)]
    assert judged("reordered-key", [*lines, effect(0), effect(1)], settings=SILENT) == []
    assert [one["offset"] for one in judged("reordered-key", [*lines, effect(1), effect(0)], settings=SILENT)] == [0]


def test_what_is_lost_in_an_intermediate_topic_is_told_with_its_topic() -> None:
    """And with how far the group has committed there; of the trial's own topic its name is not said."""
    on_way = finding("skipped", [through(), ON, committed(1), there(committed(1))], settings=SILENT, records=1)
    here = finding("skipped", [committed(1)], settings=SILENT, records=1)
    assert [message("skipped", one) for found in (on_way, here) for one in found.instances] == [
        "record 0 of partition 0 of g-way was committed past and never processed",
        "record 0 of partition 0 was committed past and never processed",
    ]
    assert [one.attributes["committed_offset"] for one in on_way.instances] == [1]
