"""Resets forward, topics that were made again, and who did it: literal audits, each with one thing that matters.

Member a has read up to 5 of 12 records, and leaves; at 30 s the group has no members, and its position is moved to 9;
then a is back, and reads on. Records 5 to 8 were passed over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audited import Effect, Told, committed, group, verdict_on
from kafka_trial.audit.commits import Commit, commits_of, moved_forward
from kafka_trial.audit.readers import ranges_passed_over
from kafka_trial.check import verdict_to_table
from kafka_trial.history.event import Event
from kafka_trial.report.report_data import headline
from kafka_trial.verdict.decide import Verdict

S = 1_000_000_000
AT_LEAST_ONCE = {"delivery": "at-least-once"}
WORKED, EMPTY, BACK = (group(1, 1, "a"), committed(2, 0), committed(10, 5)), group(20, 2), group(40, 3, "a")
RESET = [*WORKED, EMPTY, committed(30, 9), BACK, committed(50, 12)]
BACKWARD = [*WORKED, EMPTY, committed(30, 2), BACK, committed(50, 12)]
GONE = "by somebody outside the group, whose last members (client a on host h) had left at 1970-01-01T00:00:20Z"
MOVED = "partition 0 from 5 to 9"
WHEN = "at 1970-01-01T00:00:30Z"


def handled(*but: int) -> list[Effect]:
    """Effects of all twelve records but some."""
    return [(1.0, f"r{offset}") for offset in range(12) if offset not in but]


def _told(verdict: Verdict) -> str:
    return "; ".join(verdict.reasons)


@pytest.mark.parametrize("claim", [None, AT_LEAST_ONCE], ids=["no claim", "claim"])
def test_a_reset_forward_is_told_with_place_time_and_who_was_last(claim: Any, tmp_path: Path) -> None:
    """First of all reasons, and in the first line of the report."""
    verdict = verdict_on(tmp_path, RESET, records=range(12), effects=handled(5, 6, 7, 8), claim=claim)
    told = f"{MOVED} (4 records passed over, none of them in the sink) {WHEN}, {GONE}"
    assert (verdict.verdict, verdict.reasons[0].startswith("skipped: 4 undecided: ")) == ("unknown", True)
    assert (told in verdict.reasons[0], told in headline(verdict_to_table(verdict), audit=True)) == (True, True)


def test_forward_and_backward_are_told_alike(tmp_path: Path) -> None:
    """The same word, the same reason, the same particulars; only the anomaly is another."""
    forward = verdict_on(tmp_path / "forward", RESET, records=range(12), resets=1)
    backward = verdict_on(tmp_path / "backward", BACKWARD)
    assert (forward.verdict, backward.verdict) == ("unknown", "unknown")
    because = "undecided: the group had no members then: it was reset, or by a consumer that is no member of it: "
    assert forward.reasons == (f"skipped: 4 {because}{MOVED} (4 records passed over, handled or not) {WHEN}, {GONE}",)
    assert backward.reasons == (f"commit-regression: 1 {because}partition 0 from 5 to 2 {WHEN}, {GONE}",)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"records": range(12), "effects": handled(7)}, "1 undecided: the group had no members"),
        ({"records": range(12), "effects": handled(7)}, "4 records passed over, 3 of them in the sink"),
        ({"records": range(12), "effects": handled()}, ""),
        ({"records": range(9, 12), "resets": 1}, ""),
        ({"records": (5, 9, 10, 11), "resets": 1}, "1 records passed over, handled or not"),
        ({}, "4 offsets passed over, whose records were not read"),
        ({"records": range(9, 12), "resets": 1, "starts": 9}, "4 of these offsets is not there any more"),
    ],
    ids=["some", "some in words", "all handled", "no record there", "one record there", "not read", "expired since"],
)
def test_what_was_passed_over_are_records_that_were_there_and_not_handled(
    more: dict[str, Any], told: str, tmp_path: Path
) -> None:
    """Compacted offsets and markers of transactions hold none; a record in the sink was handled before."""
    verdict = verdict_on(tmp_path, RESET, **more)
    assert (verdict.verdict, told in _told(verdict)) == ("unknown" if told else "pass", True)


ALONE = [committed(at_s, value) for at_s, value in ((30, 6), (31, 7), (32, 8), (33, 9))]


@pytest.mark.parametrize(
    "offsets",
    [
        [*WORKED, committed(30, 9), committed(50, 12)],
        [*WORKED, EMPTY, BACK, committed(45, 9), committed(50, 12)],
        [*WORKED, EMPTY, *ALONE, BACK, committed(50, 12)],
        [committed(2, 0), committed(30, 9), committed(50, 12)],
        [committed(2, 0), group(20, 0), committed(30, 9), group(40, 1, "a"), committed(50, 12)],
        [*WORKED, EMPTY, committed(30, 5), BACK, committed(50, 12)],
    ],
    ids=[
        "by a member",
        "after an interval",
        "a consumer alone",
        "never members",
        "begins at the end",
        "to where it was",
    ],
)
def test_what_is_no_reset_is_not_told_as_one(offsets: list[Told], tmp_path: Path) -> None:
    """Members commit as they go; so does a consumer without a group, step by step."""
    verdict = verdict_on(tmp_path, offsets, records=range(12), resets=0)
    assert (verdict.verdict, verdict.reasons) == ("pass", ())


def test_a_member_that_leaves_records_out_is_counted_in_the_first_line(tmp_path: Path) -> None:
    """Nothing was claimed, so it breaks nothing; a note says of what was skipped where, when and by whom."""
    verdict = verdict_on(tmp_path, [*WORKED, committed(50, 12)], records=range(12), effects=handled(5, 6, 7, 8))
    first = headline(verdict_to_table(verdict), audit=True)
    where = "partition 0 from 5 to 12 at 1970-01-01T00:00:50Z, while client a on host h (member a) owned it"
    assert (verdict.verdict, "skipped × 4" in first, where in " ".join(verdict.notes)) == ("pass", True, True)


def _request(at_s: float, client: str, value: int, **more: Any) -> dict[str, Any]:
    entries = [{"topic": "t", "partition": 0, "committed_offset": value, "error": 0}]
    connection = "10.0.0.1:9092-10.0.0.7:50123-3"
    return {
        "at_s": at_s,
        "api": "OFFSET_COMMIT",
        "group": "g",
        "client_id": client,
        "connection": connection,
        "entries": entries,
        **more,
    }


def test_a_request_log_says_who_reset_it(tmp_path: Path) -> None:
    """Client id and host of the tool, and that it was no member."""
    asked = [_request(30, "adminclient-1", 9, member_id="")]
    verdict = verdict_on(tmp_path, RESET, records=range(12), resets=1, requests=asked)
    assert f"{WHEN}, by client adminclient-1 on host 10.0.0.7 (no member of the group)" in _told(verdict)


@pytest.mark.parametrize(
    ("requests", "who"),
    [
        (None, "while client a on host h (member a) owned it"),
        ([_request(20, "a", 11, lane=0, member_id="a")], "by client a on host 10.0.0.7 (member a)"),
    ],
    ids=["offsets log", "request log"],
)
def test_a_finding_says_where_when_and_who(requests: Any, who: str, tmp_path: Path) -> None:
    """A fall by a member: the violation's sentence has all of it."""
    fell = [group(1, 1, "a"), committed(10, 12), committed(20, 11)]
    verdict = verdict_on(tmp_path, fell, requests=requests)
    (one,) = [violation for violation in verdict.violations if violation.anomaly == "commit-regression"]
    assert f"(partition 0 from 12 to 11 at 1970-01-01T00:00:20Z, {who})" in one.sentence


STOOD = [group(1, 1, "a"), committed(2, 0), committed(600, 5)]


@pytest.mark.parametrize(
    ("offsets", "effects", "anomaly"),
    [
        (
            [group(1, 1, "a"), *(group(20 + n, 2 + n, "a") for n in range(7)), committed(600, 12)],
            None,
            "rebalance-storm",
        ),
        ([group(1, 1, "a", "b"), committed(10, 12), group(30, 2, "a")], None, "orphan-partition"),
        (STOOD, handled(5, 6, 7, 8, 9, 10, 11), "stuck-partition"),
        (STOOD, handled(5, 6, 7, 8, 9, 10, 11), "unseen"),
        (STOOD, handled(), "false-lag"),
        ([*STOOD, committed(700, 12)], handled(7), "skipped"),
        ([*STOOD, committed(700, 12)], [*handled(), (800.0, "r7")], "duplicate-effect"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_finding_of_an_audit_says_when_and_who(
    offsets: list[Told], effects: list[Effect] | None, anomaly: str, tmp_path: Path
) -> None:
    """A date and time with the zone, client id, host and member."""
    verdict = verdict_on(
        tmp_path,
        offsets,
        ends=(12, 0),
        records=range(12) if effects else (),
        effects=effects,
        claim={"delivery": "exactly-once"} if effects else None,
    )
    notes = [note for note in verdict.notes if note.startswith(anomaly)]
    (told,) = [one.sentence for one in verdict.violations if one.anomaly == anomaly] or notes
    assert ("Z, " in told, "client a on host h (member a)" in told) == (True, True), told


def test_a_lag_that_is_left_open_says_where_it_stands_since_when_and_whose_it_is(tmp_path: Path) -> None:
    """Without a sink it may be stuck or a false one."""
    verdict = verdict_on(tmp_path, [group(1, 1, "a"), committed(10, 5)], records=range(5, 12))
    since = "partition 0 at 5 of 12 since 1970-01-01T00:00:10Z, when it moved last while client a on host h (member a)"
    assert since in _told(verdict)


# The topic is T now; U was deleted.
def test_a_topic_that_was_made_again_is_told_by_its_id(tmp_path: Path) -> None:
    """From 12 in the one to 3 in the other nothing fell, however the offsets lie; it is a note."""
    again = [
        group(1, 1, "a"),
        committed(10, 12, topic_id="U"),
        committed(20, 3, topic_id="T"),
        committed(30, 12, topic_id="T"),
    ]
    verdict = verdict_on(tmp_path, again)
    note = "topic t was deleted and made again after 1970-01-01T00:00:10Z (its id is T now)"
    assert (verdict.verdict, verdict.counts["commit-regression"], note in " ".join(verdict.notes)) == ("pass", 0, True)


@pytest.mark.parametrize(
    ("topic_id", "fell", "word", "because"),
    [
        ("T", (12, 11), "fail", ""),
        ("T", (900, 11), "unknown", "the log was cut"),
        ("U", (12, 11), "unknown", "another topic of that name, which was deleted since"),
        (None, (900, 11), "unknown", "the topic was created again, or cut"),
    ],
    ids=["the same topic", "the same topic, cut", "both of the earlier one", "no ids"],
)
def test_the_id_and_not_the_offsets_say_whether_a_topic_was_made_again(
    topic_id: str | None, fell: tuple[int, int], word: str, because: str, tmp_path: Path
) -> None:
    """A fall within one topic is one; offsets are looked at only where brokers wrote no ids."""
    commits = [committed(10 * (n + 1), value, topic_id=topic_id) for n, value in enumerate(fell)]
    verdict = verdict_on(tmp_path, [group(1, 1, "a"), *commits], records=[11])
    assert (verdict.verdict, because in _told(verdict)) == (word, True)


def test_a_commit_on_the_earlier_topic_runs_ahead_of_no_record_of_the_new_one(tmp_path: Path) -> None:
    """Records of 500 s were handled at 550 s: the commit past them is 12 of T at 600 s, and not 900 of U."""
    earlier = [committed(5, 1, topic_id="U"), committed(10, 900, topic_id="U")]
    offsets = [group(1, 1, "a"), *earlier, committed(600, 12, topic_id="T")]
    effects = [(550.0, f"r{offset}") for offset in range(12)]
    verdict = verdict_on(tmp_path, offsets, records=range(12), effects=effects, claim=AT_LEAST_ONCE)
    assert [one.anomaly for one in verdict.violations] == []


@pytest.mark.parametrize("effects", [None, [(15.0, "r1")]], ids=["no sink", "sink"])
@pytest.mark.parametrize("claim", [None, AT_LEAST_ONCE], ids=["no claim", "claim"])
def test_an_audit_asks_for_nothing_that_only_a_trial_has(effects: Any, claim: Any, tmp_path: Path) -> None:
    """No schedule, no least number of records; a window that is too short says since when and until when to ask."""
    verdict = verdict_on(tmp_path, [*WORKED, committed(20, 12)], drain_s=0.0, effects=effects, claim=claim)
    told = _told(verdict)
    assert [word for word in ("schedule", "fewer than", "faults") if word in told] == []
    for part in (
        "a record counts once it was in the topic for 20 s",
        "those that came after 1970-01-01T00:00:00Z are too young",
        "Ask again with --until 1970-01-01T00:17:00Z or later",
    ):
        assert part in told


def _events(*told: Told) -> list[Event]:
    return [
        Event(
            "offsets",
            number,
            int(fields["at_s"] * S),
            kind,
            topic=fields.get("topic"),
            topic_id=fields.get("topic_id"),
            partition=fields.get("partition"),
            committed_offset=fields.get("committed_offset"),
            source_wall_ns=int(fields["at_s"] * S),
            details={name: value for name, value in fields.items() if name not in ("topic", "partition", "at_s")},
        )
        for number, (kind, fields) in enumerate(told)
    ]


def _commits(*told: Told) -> list[Commit]:
    return [one for _, one in commits_of(_events(*told), topic="t", topic_id="T")]


def test_members_of_the_new_protocol_come_and_go_one_by_one() -> None:
    """The last one's tombstone leaves the group empty; an assignment names the owner by the topic's id."""
    a = {"member_id": "a", "client_id": "a", "host": "/h", "log_offset": 1}
    owns = {"member_id": "a", "entries": [{"topic_id": "T", "partition": 0}], "log_offset": 2}
    gone = {"member_id": "a", "record_type": 5, "log_offset": 3}
    owned, moved = _commits(
        ("member", a | {"at_s": 1}),
        ("member_assignment", owns | {"at_s": 2}),
        committed(5, 5),
        ("group_tombstone", gone | {"at_s": 20}),
        committed(30, 9),
    )
    assert (owned.when_and_who, moved.members, moved.outside, moved_forward([owned, moved])) == (
        "at 1970-01-01T00:00:05Z, while client a on host h (member a) owned it",
        0,
        True,
        [moved],
    )


def test_a_group_of_the_new_protocol_that_was_empty_all_along_had_members_once() -> None:
    """Its epoch says so: of the time before the window compaction left that."""
    before, moved = _commits(
        ("group_epoch", {"epoch": 4, "log_offset": 1, "at_s": 1}), committed(2, 5), committed(30, 9)
    )
    assert ([one.members for one in (before, moved)], moved_forward([moved])) == ([0, 0], [moved])


def test_a_position_that_was_deleted_is_none_to_move_from() -> None:
    """After a tombstone a commit is the first."""
    tombstone = ("commit_tombstone", {"topic": "t", "partition": 0, "log_offset": 250, "at_s": 25})
    assert [one.before for one in _commits(*WORKED, EMPTY, tombstone, committed(30, 9))] == [None, 0, None]


@pytest.mark.parametrize(
    ("moves", "main", "wanted"),
    [
        ([(0, 5, 9)], {0: (20, 30)}, [{0: (5, 9)}]),
        ([(0, 5, 25)], {0: (20, 30)}, [{0: (5, 20)}]),
        ([(0, 25, 40)], {0: (20, 30)}, [{0: (30, 40)}]),
        ([(0, 22, 28)], {0: (20, 30)}, []),
        ([(0, 5, 9), (0, 7, 12), (1, 1, 2)], {0: (20, 30)}, [{0: (5, 9), 1: (1, 2)}, {0: (9, 12)}]),
        ([(0, 1, 9)], {0: (9, 9)}, [{0: (3, 9)}]),
    ],
    ids=["apart", "up to it", "beyond it", "within", "several", "from where it begins"],
)
def test_what_resets_passed_over_is_read_once(moves: Any, main: Any, wanted: Any) -> None:
    """Beside what is read anyway."""
    assert ranges_passed_over(moves, main, {0: 3}) == wanted
