"""Assignments that brokers stand behind, and those that nobody gave: literal histories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from group_lines import beat, heartbeat, joined, left, synced
from histories import (
    EXAMPLE,
    Line,
    after,
    assigned,
    batch_of,
    delivered,
    effect,
    exited,
    fault,
    fetched,
    finding,
    generation,
    handled,
    history,
    holds,
    judged,
    judgement,
    lasting,
    on,
    owner,
    processed,
    revoked,
    said,
    started,
    told,
    with_settings,
)
from kafka_trial.history.event import to_line
from kafka_trial.judge.findings import batch_of as batch_made
from kafka_trial.judge.in_memory_history import rows_of_lines
from kafka_trial.model.false_assignments import uncorroborated
from kafka_trial.model.ownership_epochs import deliveries, ownership_epochs
from kafka_trial.verdict.messages import message

Lines = list[Line | list[Line]]
LOST = said("m0", "lost", entries=[{"topic": "t", "partition": 0}])
GIVEN: Lines = [owner("m0"), synced("m0", 0), assigned("m0")]  # the group gives partition 0 to m0
AGAIN: Lines = [owner("m0"), synced("m0", 0, generation=2), assigned("m0")]
IDLE = synced("m0")  # m0 is in the group, and is given nothing
M1_HAS: Lines = [owner("m1", idle=["m0"]), synced("m1", 0), assigned("m1"), after(1)]


def without_word(lines: Lines, **frame: Any) -> list[tuple[int, str]]:
    """The seq of each `assigned` line that no broker stands behind: it opens none ("forged"), or none anew."""
    found = uncorroborated(batch_of(lines, **frame))
    return [(seq, "repeated" if again else "forged") for seq, again in told(found, "seq", "repeated")]


def by(client: str, line: Line) -> Line:
    """The same of one of several clients in the member's process."""
    who = {"client_id": client, "member_id": f"id-{client}"}
    there = {"connection": f"to-{client}"} if line.source == "requests-b0" else {}
    return replace(line, fields=line.fields | who | there)


# --- sound consumers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        GIVEN,
        [*GIVEN, revoked("m0"), *AGAIN],
        [*GIVEN, revoked("m0"), owner("m1"), IDLE, after(1), *AGAIN],
        [*GIVEN, *AGAIN, *AGAIN],
        [*GIVEN, assigned("m0"), revoked("m0"), *AGAIN],
        [*GIVEN, synced("m0", 0, 1), on(1, owner("m0")), assigned("m0", 1)],
        [synced("m0", 0, 7), assigned("m0")],
        [*GIVEN, synced("m0", 0), synced("m0", 1), revoked("m0"), owner("m1"), after(1), *AGAIN],
        [*GIVEN, heartbeat("m0", error=25), LOST, joined("m0", generation=2), *AGAIN],
        [*GIVEN, left("m0"), revoked("m0"), joined("m0", generation=2), *AGAIN],
        [*GIVEN, exited("m0"), after(1), started("m0-1"), IDLE, synced("m0", 0), assigned("m0-1")],
        [synced("m0", 1), by("b", synced("m0", 0)), assigned("m0")],
        [by("a", joined("m0")), by("b", joined("m0")), *GIVEN, by("b", synced("m0", 1)), LOST, *AGAIN],
    ],
    ids=[
        "given by both logs",
        "eager: revoked, and given again",
        "eager: given to another one, and back",
        "a full assignment is printed after each rebalance",
        "its line is printed twice, and a rebalance follows at once",
        "cooperative: what it keeps is not printed",
        "given beside one of which nothing else was heard",
        "cooperative: kept, taken away, given back",
        "refused, lost, and given again",
        "left, and joined again",
        "its next process",
        "given under another member id",
        "another client of its process is given others",
    ],
)
def test_no_line_of_a_sound_classic_member_is_doubted(lines: Lines) -> None:
    """Each assignment is answered, whatever of it is printed."""
    assert without_word(lines, partitions=2) == []


@pytest.mark.parametrize(
    "lines",
    [
        [beat("m0", [0]), assigned("m0")],
        [beat("m0", []), holds("m0", 0), assigned("m0")],
        [beat("m0", [0]), assigned("m0"), beat("m0", [0, 1]), assigned("m0", 1)],
        [beat("m0", [0]), beat("m0", [], epoch=2), after(2), assigned("m0"), revoked("m0")],
        [
            *(beat("m0", [0]), assigned("m0"), beat("m0", []), beat("m0", [0], epoch=2), after(2)),
            *(revoked("m0"), assigned("m0")),
        ],
        [beat("m0", [0]), assigned("m0"), beat("m0", error=110), LOST, beat("m0", [0], epoch=2), assigned("m0")],
    ],
    ids=[
        "given by a heartbeat",
        "the record alone tells",
        "the answer is whole, the line a delta",
        "its callback is slow, and the partition is to go again",
        "given the next one while the callback that lets go still runs",
        "fenced, lost, and given again",
    ],
)
def test_no_line_of_a_sound_member_of_kip_848_is_doubted(lines: Lines) -> None:
    """Answers come while callbacks run."""
    assert without_word(lines, partitions=2) == []


@pytest.mark.parametrize(
    "lines",
    [
        [IDLE, assigned("m0"), after(0.45), synced("m0", 0)],
        [IDLE, assigned("m0"), after(0.45), owner("m0")],
        [*GIVEN, assigned("m0"), after(0.45), synced("m0", 0)],
    ],
    ids=["the answer", "the group record", "the answer behind a further line"],
)
def test_a_word_of_a_broker_counts_though_it_comes_a_little_after_the_line(lines: Lines) -> None:
    """Two sources are compared with their tolerance."""
    assert without_word(lines) == []


FORGED: Lines = [IDLE, *M1_HAS, assigned("m0")]


@pytest.mark.parametrize(
    ("lines", "frame"),
    [
        ([IDLE, assigned("m0")], {"whole": False}),
        ([IDLE, fault("broker-pause", None), after(1), assigned("m0")], {}),
        ([assigned("m0")], {}),
        ([synced("m0", error=27), assigned("m0")], {}),
        ([joined("m0"), heartbeat("m0"), assigned("m0")], {}),
        ([IDLE, assigned("m0")], {"settings": with_settings(protocol="none")}),
        ([IDLE, said("m9", "assigned", entries=[{"topic": "t", "partition": 0}])], {}),
        ([IDLE, started("m0-1"), assigned("m0-1")], {}),
    ],
    ids=[
        "the request log was not read to its end",
        "a broker had been stopped",
        "it was answered nothing",
        "it was refused an assignment",
        "its assignment is not in the log",
        "it assigns partitions to itself",
        "a stranger",
        "two processes of one member at once",
    ],
)
def test_where_the_request_log_cannot_tell_every_line_counts(lines: Lines, frame: dict[str, Any]) -> None:
    """As it did before."""
    assert without_word(lines, **frame) == []


def test_an_assignment_by_a_topic_id_that_nobody_knows_may_list_the_partition() -> None:
    """The observer did not tell the topic's id."""
    about = {"epoch": 1, "answered_epoch": 1, "assigned": [{"topic_id": "T", "partition": 0}]}
    given = replace(beat("m0"), fields=beat("m0").fields | about)
    untold = [one for one in history([beat("m0", [1]), given, assigned("m0")], partitions=2) if one.kind != "topic"]
    rows, builder = rows_of_lines(map(to_line, untold))
    assert len(uncorroborated(batch_made(rows, builder.trial_context(EXAMPLE)))) == 1
    alone = [one for one in history([given, assigned("m0")]) if one.kind != "topic"]
    rows, builder = rows_of_lines(map(to_line, alone))
    assert len(uncorroborated(batch_made(rows, builder.trial_context(EXAMPLE)))) == 0


def test_a_history_without_the_file_of_the_run_is_judged_by_its_logs() -> None:
    """Only the files of members and of a broker are left."""
    left_over = [one for one in history([IDLE, assigned("m0")]) if one.source.startswith(("consumer", "requests"))]
    rows, builder = rows_of_lines(map(to_line, left_over))
    assert len(uncorroborated(batch_made(rows, builder.trial_context(EXAMPLE)))) == 1


def test_lines_out_of_a_buffer_are_in_the_order_of_no_log() -> None:
    """They were read when the member had been given the partition twice, and lost it again."""
    answers: Lines = [synced("m0", 0), IDLE, synced("m0", 0), IDLE]
    lines: Lines = [*answers, assigned("m0"), revoked("m0"), assigned("m0"), revoked("m0")]
    assert without_word(lines, settings=with_settings(stdout="buffered")) == []


# --- what nobody gave ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        [IDLE, assigned("m0")],
        [synced("m0", 1), assigned("m0")],
        [beat("m0", []), assigned("m0")],
        [IDLE, holds("m0", pending=[0]), assigned("m0")],
        [IDLE, assigned("m0"), after(0.6), synced("m0", 0)],
        [IDLE, *M1_HAS, assigned("m0")],
    ],
    ids=["nothing", "another one", "KIP-848", "it is to let go", "later", "another member has it"],
)
def test_a_partition_that_nobody_gave_is_not_assigned(lines: Lines) -> None:
    """The line stands alone against both logs."""
    assert [how for _, how in without_word(lines, partitions=2)] == ["forged"]


@pytest.mark.parametrize(
    "lines",
    [
        [*GIVEN, revoked("m0"), IDLE, owner("m1"), after(1), assigned("m0")],
        [*GIVEN, revoked("m0"), assigned("m0")],
        [*GIVEN, LOST, assigned("m0")],
        [*GIVEN, synced("m0", 0), owner("m0"), IDLE, owner("m1"), revoked("m0"), after(1), assigned("m0")],
        [*GIVEN, *AGAIN, after(1), revoked("m0"), assigned("m0")],
        [*GIVEN, synced("m0", 0), left("m0"), revoked("m0"), assigned("m0")],
        [
            *(beat("m0", [0]), assigned("m0"), beat("m0", [0]), beat("m0", epoch=-1, owned=[])),
            *(revoked("m0"), assigned("m0")),
        ],
        [*GIVEN[1:], synced("m0", 0), IDLE, synced("m0", 0), *[revoked("m0"), assigned("m0")] * 2],
        [*GIVEN, exited("m0"), after(1), started("m0-1"), IDLE, assigned("m0-1")],
    ],
    ids=[
        "to another one",
        "revoked, and no rebalance",
        "lost, and no rebalance",
        "cooperative",
        "kept in a rebalance before",
        "kept in a rebalance before, and left",
        "KIP-848: told twice, and left",
        "given back once, and revoked twice",
        "by its process before",
    ],
)
def test_what_was_given_before_it_was_taken_away_gives_nothing_afterwards(lines: Lines) -> None:
    """Each line needs a word of its own, later than the one behind the line before."""
    assert [how for _, how in without_word(lines)] == ["forged"]


def test_a_forged_line_opens_no_possession() -> None:
    """What is printed after it belongs to none."""
    batch = batch_of([*FORGED, delivered("m0", 0)])
    assert told(ownership_epochs(batch), "member") == [(1,)]
    assert told(deliveries(batch), "ownership_epoch") == [(-1,)]


def test_work_under_a_forged_line_is_not_that_of_an_assignment_that_came_later() -> None:
    """Its first word was before its work, and false; the true one is not late."""
    others = [owner("m1"), synced("m0"), synced("m1", 0), assigned("m0"), after(0.6), *handled("m0", 1)]
    given = [owner("m0", epoch=2), synced("m0", 0, generation=2), assigned("m0"), *handled("m0", 0)]
    assert judged("nonmonotonic-poll", [*others, *given]) == []


def test_a_member_of_a_group_does_not_take_by_hand_what_it_says_it_was_assigned() -> None:
    """It is idle, and fetches; without the line it would be taken for one that assigns partitions to itself."""
    fetches = fetched("m0", 0, size_bytes=99)
    assert told(ownership_epochs(batch_of([IDLE, fetches, delivered("m0", 0)])), "member") == [(0,)]
    assert told(ownership_epochs(batch_of([IDLE, assigned("m0"), fetches, delivered("m0", 0)])), "member") == []


def test_a_forged_line_is_a_false_report() -> None:
    """By the request log, and told in a sentence without a record."""
    found = finding("false-report", [*FORGED, *handled("m0", 0)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"what": "assigned", "by": "request log"}, ("consumer-m0-0#1",))
    ]
    assert message("false-report", found.instances[0]) == (
        "the consumer reported partition 0 as assigned, but the request log shows otherwise"
    )


def test_work_on_a_partition_that_nobody_gave_is_a_split_where_others_have_it() -> None:
    """The log gives it to m1; m0 says that it was assigned it, and works on it."""
    found = finding("split-ownership", [*FORGED, *handled("m0", 0)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "by": "told"}, ("consumer-m0-0#1", "consumer-m0-0#2"))
    ]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([*FORGED, processed("m0", 0)], 1),
        ([*FORGED, *handled("m0", 0, 1)], 2),
        ([*FORGED, after(1), owner("m0"), *handled("m0", 0)], 0),
        ([*FORGED, revoked("m0"), *handled("m0", 0)], 0),
        ([*FORGED, delivered("m0", 0, partition=1)], 0),
        ([*FORGED, *handled("m1", 0)], 0),
        ([IDLE, assigned("m0"), *handled("m0", 0)], 0),
        ([IDLE, assigned("m0"), *handled("m0", 0), after(0.1), owner("m1")], 0),
    ],
    ids=[
        "a completion alone is work",
        "each record",
        "it was given it after all",
        "it says that it was revoked: that is work-after-revoke",
        "of another partition",
        "its owner's",
        "nobody has it",
        "others get it only then",
    ],
)
def test_a_split_by_a_forged_line_needs_work_under_it_and_another_owner(lines: Lines, found: int) -> None:
    """Of its file and partition."""
    assert len(judged("split-ownership", lines, partitions=2)) == found


def test_a_forged_line_after_a_revocation_excuses_no_work() -> None:
    """As if it had not been printed."""
    lines: Lines = [*GIVEN, revoked("m0"), assigned("m0"), *handled("m0", 0)]
    assert [one["what"] for one in judged("work-after-revoke", lines)] == ["delivered", "processed"]


# --- what is said again --------------------------------------------------------------------------------------------

REWOUND: Lines = [*handled("m0", 0, 1), assigned("m0"), *handled("m0", 0)]


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ([], 1),
        ([synced("m0", 0)], 0),
        ([owner("m0")], 0),
        ([synced("m0", 1)], 1),
        ([owner("m1")], 1),
        ([beat("m0")], 1),
    ],
    ids=["nothing", "an answer", "a group record", "an answer without it", "to another one", "a heartbeat as before"],
)
def test_a_rewind_behind_a_further_assigned_line_is_one_where_no_broker_assigned_anything(
    between: Lines, found: int
) -> None:
    """The ownership epoch goes on: inside it records go forward."""
    lines = [*GIVEN, *handled("m0", 0, 1), *between, assigned("m0"), *handled("m0", 0)]
    assert len(judged("nonmonotonic-poll", lines, partitions=2)) == found


def test_one_word_of_a_broker_stands_behind_one_line() -> None:
    """The second of two further lines is repeated; the ownership epoch stays open."""
    lines: Lines = [*GIVEN, *AGAIN, assigned("m0")]
    batch = batch_of(lines)
    assert without_word(lines) == [(3, "repeated")]
    assert told(ownership_epochs(batch), "open_seq", "close_seq") == [(1, 2), (2, "never")]


def test_words_from_before_the_first_line_stand_behind_no_further_one() -> None:
    """It was given the partition by two rebalances in a row, and printed it once."""
    lines: Lines = [synced("m0", 0), after(1), synced("m0", 0, generation=2), after(1), assigned("m0"), after(1)]
    assert without_word([*lines, assigned("m0")]) == [(2, "repeated")]


def test_a_rewind_behind_a_repeated_line_is_found_where_the_request_log_can_tell_only() -> None:
    """Else the line opens an ownership epoch, as it says."""
    assert len(judged("nonmonotonic-poll", [*GIVEN, *REWOUND])) == 1
    assert judged("nonmonotonic-poll", [*GIVEN[2:], *REWOUND]) == []


def test_each_client_of_a_process_is_taken_at_its_own_word() -> None:
    """a has the partition by its line; b is given it later, and says so."""
    names = [by("a", said("m0", "ready")), by("b", said("m0", "ready")), by("a", said("m0", "ready"))]
    lines: Lines = [*names, by("a", synced("m0", 0)), by("a", assigned("m0")), by("b", synced("m0", 0))]
    assert without_word([*lines, by("b", assigned("m0"))]) == []


def test_effects_count_whatever_was_forged() -> None:
    """The sink saw what was done: no record is lost by a line that does not count."""
    lines: Lines = [*FORGED, *handled("m0", 0), effect(0), *handled("m1", 1), effect(1), generation(2)]
    assert {name: one.count for name, one in judgement(lines).findings.items() if one.count} == {
        "false-report": 1,
        "split-ownership": 1,
    }


def test_a_frozen_broker_logs_an_answer_late_and_is_believed() -> None:
    """Its line came when it ran again; it had answered before, and written the record."""
    lines: Lines = [IDLE, fault("broker-pause", None), owner("m0"), assigned("m0"), after(3)]
    assert without_word([*lines, lasting(synced("m0", 0), 3)]) == []
