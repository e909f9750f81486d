"""What the log holds, and what expired: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    assigned,
    at_once,
    committed,
    delivered,
    effect,
    exited,
    finding,
    handled,
    judged,
    later,
    log_start,
    not_judged,
    on,
    phase,
    processed,
    sent,
    undecided,
    with_settings,
)

GONE = {1: None}
SINK = with_settings(sink="http")


def test_lost_write_holds() -> None:
    """Both acknowledged sends are in the log."""
    assert judged("lost-write", [sent(0), sent(1)]) == []


def test_lost_write_is_broken() -> None:
    """Record 1 was acknowledged, and the control read does not hold it: the acknowledgement proves it."""
    found = finding("lost-write", [sent(0), sent(1)], control=GONE)
    assert [(one.attributes, one.partition, one.events) for one in found.instances] == [
        ({"offset": 1}, 0, ("workload#3",))
    ]


def test_lost_write_is_broken_where_another_record_stands_there() -> None:
    """The log was cut, and written anew: record r9 has the place of r1."""
    assert judged("lost-write", [sent(1), sent(9, outcome="info")], control={1: {"id": "r9"}}) == [{"offset": 1}]


def test_lost_write_only_looks_broken_below_the_log_start() -> None:
    """Record 0 expired."""
    assert judged("lost-write", [sent(0), sent(1), log_start(0), log_start(1)], control={0: None}) == []


def test_lost_write_only_looks_broken_under_compaction() -> None:
    """A later record has its key."""
    lines = [sent(0, key="k"), sent(1, key="k")]
    assert judged("lost-write", lines, records=["k", "k"], control={0: None}, policy="compact") == []


def test_lost_write_is_broken_under_compaction_where_nothing_has_its_key_any_more() -> None:
    """Compaction keeps the last record of each key: of the two that are gone, the later one is lost."""
    lines = [sent(0, key="k"), sent(1, key="k"), sent(2, key="other")]
    found = judged(
        "lost-write", lines, records=["k", "k", "other"], control={0: None, 1: None}, policy="compact,delete"
    )
    assert found == [{"offset": 1}]


def test_lost_write_only_looks_broken_where_the_fate_is_unknown() -> None:
    """Never acknowledged: Kafka promised nothing."""
    assert judged("lost-write", [sent(0), sent(1, outcome="info")], control=GONE) == []


def test_lost_write_only_looks_broken_where_the_acknowledgement_named_no_offset() -> None:
    """A duplicate's acknowledgement has no offset; the record is in the log."""
    assert judged("lost-write", [sent(0), sent(1, at=-1)]) == []


def test_lost_write_without_an_offset_is_undecided_where_records_expired() -> None:
    """Nobody knows whether it lay below the log start; in a log that lost nothing else it is lost."""
    assert undecided("lost-write", [sent(1, at=-1), log_start(1)], records=3, control=FIRST_TWO) == 1
    assert judged("lost-write", [sent(1, at=-1), log_start(0)], control=GONE) == [{}]


def test_lost_write_is_undecided_where_a_record_has_no_id() -> None:
    """What stands there may be the record, without its header."""
    assert undecided("lost-write", [sent(1)], control={1: {"id": None}}) == 1


def test_lost_write_is_undecided_after_the_snapshot_began() -> None:
    """The control read may have passed the place before the record came there."""
    assert undecided("lost-write", [phase("snapshot"), sent(1)], control=GONE, snapshot=False) == 1


def test_lost_write_is_not_judged_without_sends() -> None:
    """Nothing was sent."""
    assert "no send" in not_judged("lost-write", [assigned("m0")])


def test_lost_write_is_not_judged_where_the_control_read_is_not_complete() -> None:
    """What it did not read is not lost."""
    assert "not known to be complete" in not_judged("lost-write", [sent(0)], records=0, whole=False)


EXPIRED = [sent(0), sent(1), sent(2)]
FIRST_TWO = {0: None, 1: None}


def test_overtaken_holds() -> None:
    """Record 0 expired after it had been read."""
    assert judged("overtaken", [sent(0), sent(1), assigned("m0"), handled("m0", 0, 1), log_start(1)]) == []


def test_overtaken_is_broken() -> None:
    """Records 0 and 1 expired unread: one finding, with the range."""
    found = finding(
        "overtaken", [*EXPIRED, assigned("m0"), log_start(2), handled("m0", 2)], records=3, control=FIRST_TWO
    )
    attributes = {"offset": 0, "last_offset": 1, "records": 2, "committed": False, "by_operator": False}
    attributes |= {"while_away": False}
    assert [(one.attributes, one.events) for one in found.instances] == [(attributes, ("workload#1", "workload#3"))]


def test_overtaken_is_told_in_ranges() -> None:
    """What was read in between parts them; what was committed past makes no difference but is said."""
    lines = [*EXPIRED, assigned("m0"), handled("m0", 1), committed(3), log_start(3)]
    found = judged("overtaken", lines, records=4, control={0: None, 1: None, 2: None})
    assert [(one["offset"], one["last_offset"], one["committed"]) for one in found] == [(0, 0, True), (2, 2, True)]


def test_overtaken_is_broken_where_what_was_delivered_was_committed_past_undone() -> None:
    """It was dropped, and the log cannot show it any more; while nobody has committed past it, it is still in hand."""
    lines = [*EXPIRED, assigned("m0"), handled("m0", 0), delivered("m0", 1), log_start(2)]
    assert judged("overtaken", lines, records=3, control=FIRST_TWO) == []
    found = judged("overtaken", [*lines, committed(2, by="m0")], records=3, control=FIRST_TWO)
    assert [(one["offset"], one["last_offset"], one["committed"]) for one in found] == [(1, 1, True)]


def test_overtaken_only_looks_broken_where_a_sink_saw_the_effect() -> None:
    """The record is gone from the log; its acknowledgement tells where its effect belongs."""
    lines = [*EXPIRED, assigned("m0"), effect(0), effect(1), log_start(2)]
    assert judged("overtaken", lines, records=3, control=FIRST_TWO, settings=SINK) == []


def test_overtaken_only_looks_broken_where_nothing_was_sent() -> None:
    """Offsets below the log start that hold no acknowledged record: markers, or records of aborted transactions."""
    assert judged("overtaken", [sent(2), log_start(2), assigned("m0"), handled("m0", 2)], records=3) == []


def test_overtaken_by_an_operators_commit_says_so() -> None:
    """The position was moved from outside the lanes."""
    lines = [*EXPIRED, assigned("m0"), committed(2, by="operator"), log_start(2)]
    assert [one["by_operator"] for one in judged("overtaken", lines, records=3, control=FIRST_TWO)] == [True]


def test_overtaken_is_judged_where_nothing_is_left_in_the_log() -> None:
    """Retention took all of it: the control read is complete, and holds no record."""
    found = judged("overtaken", [sent(0), assigned("m0"), log_start(1)], records=1, control={0: None})
    assert [(one["offset"], one["last_offset"]) for one in found] == [(0, 0)]


def test_overtaken_is_undecided_where_a_killed_member_could_not_speak() -> None:
    """It may have read them: committed past by it, or not committed past at all."""
    lines = [*EXPIRED, assigned("m0"), committed(1, by="m0"), exited("m0", signal=9), log_start(2)]
    assert undecided("overtaken", lines, records=3, control=FIRST_TWO) == 2


def test_overtaken_is_neither_skipped_nor_unseen() -> None:
    """The log does not hold it any more: only its own name fits."""
    lines = [*EXPIRED, assigned("m0"), log_start(2), processed("m0", 2), committed(3)]
    assert [judged(name, lines, records=3, control=FIRST_TWO) for name in ("skipped", "unseen")] == [[], []]


def test_overtaken_is_not_judged_without_sends() -> None:
    """Nobody knows what was there."""
    assert "no send" in not_judged("overtaken", [assigned("m0"), log_start(1)])


def test_corrupt_holds() -> None:
    """The control read found what was sent."""
    assert judged("corrupt", [sent(0), sent(1)], control={0: {"checksum": 0}, 1: {"checksum": 1}}) == []


def test_corrupt_in_the_log_is_the_clusters() -> None:
    """The control read itself finds another content: the record and its send prove it."""
    found = finding("corrupt", [sent(0), sent(1)], control={1: {"checksum": 7}})
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 1, "found_in": "control read"}, ("observer#2", "workload#2"))
    ]


VALUE = with_settings(sink="http", body="value")


def test_corrupt_is_broken_by_an_effect() -> None:
    """The consumer declares that it passes values on, and passed on another one."""
    lines = [sent(0), sent(1), effect(0, checksum=0), effect(1, checksum=7)]
    assert judged("corrupt", lines, settings=VALUE) == [{"offset": 1, "found_in": "effect"}]


def test_corrupt_is_broken_where_every_effect_is_another() -> None:
    """None of them need be right to see that all are wrong."""
    lines = [sent(0), sent(1), effect(0, checksum=5), effect(1, checksum=6)]
    assert [one["offset"] for one in judged("corrupt", lines, settings=VALUE)] == [0, 1]


def test_corrupt_only_looks_broken_where_the_consumer_posts_something_of_its_own() -> None:
    """Nothing declares that bodies are values."""
    assert judged("corrupt", [sent(0), sent(1), effect(0, checksum=0), effect(1, checksum=6)], settings=SINK) == []


@pytest.mark.parametrize(
    ("said", "read", "offsets"),
    [(5, 5, []), (6, 5, [0]), (None, 5, [0]), (5, None, []), (None, None, [0])],
    ids=["written anew", "says something else", "is no JSON any more", "nobody kept what it said", "never was JSON"],
)
def test_corrupt_is_what_json_says_and_not_how_it_is_written(
    said: int | None, read: int | None, offsets: list[int]
) -> None:
    """The bytes of the body are others than were sent."""
    written = {name: value for name, value in (("json_checksum", said),) if value is not None}
    lines = [sent(0), sent(1), effect(0, checksum=9, **written)]
    found = judged("corrupt", lines, settings=VALUE, control={0: {"checksum": 0, "json_checksum": read}})
    assert [one["offset"] for one in found] == offsets


@pytest.mark.parametrize(
    ("body", "lines", "part"),
    [
        ("own", [effect(0, checksum=0)], "nothing declares"),
        ("value", [effect(0, checksum=0)], None),
        ("value", [effect(0)], "no body of theirs could be compared"),
        ("own", [], None),
    ],
)
def test_corrupt_is_not_judged_of_effects_that_cannot_be_compared(
    body: str, lines: list[Line], part: str | None
) -> None:
    """By name; what the control read holds is judged all the same."""
    settings = with_settings(sink="http", body=body)
    found = finding("corrupt", [sent(0), sent(1), *lines], settings=settings, control={1: {"checksum": 7}})
    assert ([one.attributes["found_in"] for one in found.instances], found.not_judged) == (["control read"], None)
    assert (found.partly is None) if part is None else part in str(found.partly)


def test_corrupt_effects_of_a_corrupt_record_are_not_the_consumers() -> None:
    """The log held another content already."""
    lines = [sent(0), sent(1), effect(0, checksum=0), effect(1, checksum=7)]
    found = judged("corrupt", lines, settings=VALUE, control={1: {"checksum": 7}})
    assert found == [{"offset": 1, "found_in": "control read"}]


def test_corrupt_is_not_judged_without_records() -> None:
    """An empty topic shows nothing."""
    assert not_judged("corrupt", [sent(0)], records=0) == "there are no records"


def test_misplaced_holds() -> None:
    """The id is that of the record at this place."""
    assert judged("misplaced", [assigned("m0"), delivered("m0", 0, id="r0"), effect(1, partition=0, offset=1)]) == []


def test_misplaced_is_broken_by_a_delivery() -> None:
    """Offset 0 holds r0, and r1 was delivered as it."""
    found = finding("misplaced", [assigned("m0"), delivered("m0", 0, id="r1")])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "what": "delivered"}, ("consumer-m0-0#2", "observer#1"))
    ]


def test_misplaced_is_broken_by_an_effect() -> None:
    """The effect of r1 claims to come from offset 0."""
    assert judged("misplaced", [effect(1, partition=0, offset=0)]) == [{"offset": 0, "what": "effected"}]


def test_misplaced_only_looks_broken_where_the_log_holds_nothing() -> None:
    """No other id is there: the record expired, or has none; a partition without an offset is no place."""
    lines = [delivered("m0", 0, id="r0"), delivered("m0", 1, id="r1"), effect(1, partition=7), effect(1, partition=0)]
    assert judged("misplaced", [assigned("m0"), *lines], records=3, control={0: None, 1: {"id": None}}) == []


def test_misplaced_is_undecided_where_the_cluster_may_have_replaced_the_record() -> None:
    """What was delivered was sent, and is not in the log; another record has its place."""
    lines = [sent(1, outcome="info"), assigned("m0"), delivered("m0", 1, id="r1")]
    assert undecided("misplaced", lines, control={1: {"id": "r9"}}) == 1


def test_misplaced_is_not_missed_where_no_ids_are_told() -> None:
    """A consumer that names no ids and has no sink: not judged, and not missed."""
    missing = finding("misplaced", [assigned("m0"), delivered("m0", 0)]).not_judged
    assert missing is not None
    assert not missing.applies


AT_THE_END = phase("snapshot")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([sent(1), at_once(AT_THE_END)], 0),
        ([sent(1), later(AT_THE_END, 1)], 1),
        ([sent(1), AT_THE_END], 1),
    ],
    ids=["in that instant", "just before", "before"],
)
def test_lost_write_is_undecided_from_the_snapshot_on(lines: list[Line | list[Line]], found: int) -> None:
    """When the control read begins."""
    told = finding("lost-write", lines, control=GONE, snapshot=False)
    assert (len(told.instances), sum(told.undecided.values())) == (found, 1 - found)


@pytest.mark.parametrize(
    ("starts", "lost"), [([], [0, 1]), ([1], [1]), ([2], []), ([1, 0], [1]), ([0, 1], [1])], ids=str
)
def test_lost_write_is_of_what_lies_at_the_log_start_or_above(starts: list[int], lost: list[int]) -> None:
    """The highest that was read: a log start never falls."""
    lines = [sent(0), sent(1), *(log_start(start) for start in starts)]
    assert [one["offset"] for one in judged("lost-write", lines, records=3, control=FIRST_TWO)] == lost


def test_lost_write_is_told_of_each_partition() -> None:
    """The log start of one says nothing of the other; what is in one is not in the other."""
    there = [on(1, line) for line in sent(7, at=5)]
    lines = [sent(0), sent(1), there, log_start(1)]
    found = finding("lost-write", lines, records=2, partitions=2, control={0: None})
    assert [(one.partition, one.attributes["offset"]) for one in found.instances] == [(1, 5)]


@pytest.mark.parametrize(
    ("keys", "lost"),
    [
        (["k", "k", "o"], []),
        (["k", "o", "o"], [0]),
        ([None, None, None], [0]),
        (["k", "o", "k"], []),
    ],
    ids=["by the next", "by none", "without a key", "by a later one"],
)
def test_compaction_takes_what_a_later_record_of_its_key_replaces(keys: list[str | None], lost: list[int]) -> None:
    """Not what has no key, nor what has another."""
    lines = [sent(offset, key=key) for offset, key in enumerate(keys)]
    found = judged("lost-write", lines, records=keys, control={0: None}, policy="compact")
    assert [one["offset"] for one in found] == lost


def test_compaction_takes_nothing_by_an_earlier_record_or_one_of_another_partition() -> None:
    """The last of a key stays."""
    there = [on(1, line) for line in sent(7, key="k", at=0)]
    lines = [sent(0, key="k"), sent(1, key="k"), there]
    found = finding("lost-write", lines, records=["k", "k"], control={1: None}, policy="compact", partitions=2)
    assert [(one.partition, one.attributes["offset"]) for one in found.instances] == [(0, 1)]


def test_lost_write_without_an_offset_is_undecided_in_a_compacted_log() -> None:
    """Its place is not known, nor whether it was replaced there."""
    lines = [sent(1, at=-1)]
    assert undecided("lost-write", lines, control=GONE, policy="compact") == 1
    assert judged("lost-write", lines, control=GONE) == [{}]


@pytest.mark.parametrize(
    ("lines", "ranges"),
    [
        ([log_start(3)], [(0, 2, 3, False)]),
        ([log_start(2)], [(0, 1, 2, False)]),
        ([log_start(3), delivered("m0", 1)], [(0, 0, 1, False), (2, 2, 1, False)]),
        ([log_start(3), processed("m0", 0)], [(1, 2, 2, False)]),
        ([log_start(3), delivered("m0", 1), committed(2)], [(0, 1, 2, True), (2, 2, 1, False)]),
        ([log_start(3), committed(1)], [(0, 0, 1, True), (1, 2, 2, False)]),
        ([log_start(3), committed(1, by="m0"), committed(3, by="operator")], [(0, 0, 1, True), (1, 2, 2, True)]),
        ([log_start(3), on(1, processed("m0", 0))], [(0, 2, 3, False)]),
    ],
    ids=[
        "all of them",
        "up to the log start",
        "but for one that was delivered",
        "but for one that was done",
        "with one that was delivered and committed past",
        "in part committed past",
        "in part by an operator",
        "one of another partition was done",
    ],
)
def test_overtaken_is_one_finding_a_range(
    lines: list[Line | list[Line]], ranges: list[tuple[int, int, int, bool]]
) -> None:
    """Parted where they were read, or committed past by somebody else."""
    gone = dict.fromkeys(range(3))
    told = judged("overtaken", [*EXPIRED, assigned("m0"), *lines], records=4, control=gone, partitions=2)
    assert [(one["offset"], one["last_offset"], one["records"], one["committed"]) for one in told] == ranges


def test_overtaken_is_told_of_each_partition_with_its_own_log_start() -> None:
    """The second lost one record, the first two; the same ids' effects are of the first."""
    there = [on(1, line) for offset in (0, 1) for line in sent(7 + offset, at=offset)]
    lines = [sent(0), sent(1), there, assigned("m0"), log_start(2), on(1, log_start(1))]
    found = finding("overtaken", lines, records=4, partitions=2, control=FIRST_TWO)
    assert [(one.partition, one.attributes["offset"], one.events) for one in found.instances] == [
        (0, 0, ("workload#1", "workload#3")),
        (1, 0, ("workload#5",)),
    ]


KILLED = exited("m0", signal=9)


@pytest.mark.parametrize(
    ("lines", "sink", "reasons"),
    [
        ([KILLED], "none", [2]),
        ([KILLED], "http", []),
        ([exited("m0", code=1)], "none", []),
        ([delivered("m0", 0), KILLED], "none", [2]),
        ([committed(2, by="m0"), KILLED], "none", [2]),
        ([committed(1, by="m0"), KILLED], "none", [1, 1]),
        ([committed(1, by="m0"), KILLED], "http", []),
    ],
    ids=[
        "killed",
        "killed with a sink",
        "not killed",
        "killed with one in hand",
        "committed past by it",
        "one committed past by it",
        "committed past with a sink",
    ],
)
def test_overtaken_is_undecided_where_a_killed_member_may_have_read_it(
    lines: list[Line | list[Line]], sink: str, reasons: list[int]
) -> None:
    """One case a record, whether or not it was committed past."""
    told = finding(
        "overtaken",
        [*EXPIRED, assigned("m0"), *lines, log_start(2)],
        records=3,
        control=FIRST_TWO,
        settings=with_settings(sink=sink),
    )
    assert sorted(told.undecided.values()) == reasons
    assert bool(told.instances) == (sum(reasons) == 0)


def test_corrupt_is_told_of_each_partition() -> None:
    """Of three effects the first carries its record's value, the others something else, in two partitions."""
    there = [on(1, line) for line in sent(7, at=2)]
    effects = [effect(0, checksum=0), effect(1, checksum=9), effect(7, checksum=8)]
    found = finding("corrupt", [sent(0), sent(1), there, *effects], settings=VALUE, partitions=2)
    assert [(one.partition, one.attributes["offset"], one.events) for one in found.instances] == [
        (0, 1, ("sink#1",)),
        (1, 2, ("sink#2",)),
    ]


def test_misplaced_is_told_of_each_place() -> None:
    """A delivery and an effect, each beside one that is in its place."""
    lines = [assigned("m0"), delivered("m0", 0, id="r0"), delivered("m0", 1, id="r0"), effect(0, partition=0, offset=0)]
    found = finding("misplaced", [*lines, effect(1, partition=0, offset=0)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "what": "effected"}, ("sink#1", "observer#1")),
        ({"offset": 1, "what": "delivered"}, ("consumer-m0-0#3", "observer#2")),
    ]


def test_misplaced_is_broken_by_an_id_that_was_never_sent() -> None:
    """Whoever made it up, it is not the record that lies there."""
    lines = [sent(0), assigned("m0"), delivered("m0", 0, id="r9")]
    assert judged("misplaced", lines) == [{"offset": 0, "what": "delivered"}]
