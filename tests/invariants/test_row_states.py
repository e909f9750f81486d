"""States that end as of an older record: literal changes of a table, or effects of a key, and what is said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from histories import (
    TOPIC,
    WALL_NS,
    Line,
    committed,
    effect,
    finding,
    handed_on,
    history,
    judged,
    not_judged,
    on,
    sent,
    through,
    undecided,
    with_settings,
)
from kafka_trial.anomalies.invariant import find_invariant
from kafka_trial.claim import Claim
from kafka_trial.model.trial_context import Settings
from kafka_trial.model.undecided import Undecided
from lab.agreement.sayings import naive_says, vectorised_says
from lab.history_strategies import History
from lab.naive.checker import judge

STATES = with_settings(events="none", sink="postgres", effects="state")
KEYED = {"settings": STATES, "records": ["k", "k", "k"]}
STALE = {"offset": 1, "older_offset": 0, "older_partition": 0, "same_key": True}


def shows(record: int, *, row: int = 0, kind: str = "effect") -> Line:
    """A row shows the state of a record from here on."""
    return Line("sink", kind, effect(record).fields | {"row": row})


def stale(*lines: Line | list[Line], **frame: Any) -> list[dict[str, Any]]:
    _agreed(lines, **{**KEYED, **frame})
    return judged("stale-state", lines, **{**KEYED, **frame})


def _agreed(lines: Sequence[Line | list[Line]], *, settings: Settings, **frame: Any) -> None:
    """Both judges say the same."""
    told = {name: getattr(settings, name) for name in ("events", "sink", "effects", "progress", "delivery")}
    one = cast("History", SimpleNamespace(events=history(lines, **frame), settings=told))
    assert naive_says(one).get("stale-state", (Counter(), 0)) == vectorised_says(one)["stale-state"]


def unclear(*lines: Line | list[Line], **frame: Any) -> int:
    """How many cases both judges leave undecided; none is found."""
    frame = {**KEYED, **frame}
    _agreed(lines, **frame)
    return undecided("stale-state", lines, **frame)


def vacuous(*lines: Line | list[Line], **frame: Any) -> bool:
    """Neither judge had anything to compare."""
    frame = {**KEYED, **frame}
    told = {name: getattr(frame["settings"], name) for name in ("events", "sink", "effects", "progress", "delivery")}
    events = history(lines, **{name: value for name, value in frame.items() if name != "settings"})
    naive = "stale-state" in judge(events, told).not_judged
    assert naive == ("was written with two records" in not_judged("stale-state", lines, **frame))
    return naive


def test_rows_that_end_with_their_newest_record_hold() -> None:
    """One row of two records, another of one."""
    assert stale(shows(0), shows(1), shows(2, row=1), committed(3)) == []


def test_a_row_that_ends_with_an_older_record_is_stale() -> None:
    """It had shown record 1, and was written over with record 0."""
    assert stale(shows(1), shows(0), committed(3)) == [STALE]


def test_the_newest_record_that_it_had_shown_is_named() -> None:
    """However it got back there; each row once."""
    twice = shows(2), shows(1), shows(0), shows(1, row=1), shows(0, row=1), committed(3)
    assert stale(*twice) == [STALE, STALE | {"offset": 2}]


@pytest.mark.parametrize(
    "lines",
    [
        [shows(0), shows(1), shows(0), shows(1)],
        [shows(1), shows(0), shows(1, kind="row_rewritten")],
        [shows(1), shows(0), shows(0, kind="row_removed")],
    ],
    ids=["caught-up", "put-back", "removed"],
)
def test_a_row_that_only_looks_stale_is_none(lines: list[Line]) -> None:
    """Rolled back for a while; a row that is gone."""
    assert stale(*lines, committed(3)) == []


def test_where_no_state_was_written_twice_nothing_is_judged() -> None:
    """Each row shows one record; again the same one; a row of the whole partition promises nothing of its order."""
    assert vacuous(shows(0), committed(3))
    assert vacuous(shows(0), shows(0), committed(3))
    assert vacuous(shows(1), shows(0, row=1), committed(3))
    assert vacuous(shows(1), shows(0), committed(3), records=["k", "other", "k"])
    assert vacuous(shows(1), shows(0), committed(3), records=3)
    assert not vacuous(shows(0), shows(1), shows(2, row=1), committed(3))


def test_nothing_compared_leaves_its_claim_open() -> None:
    """It applies: a pass would prove nothing of what the claim promises."""
    found = finding("stale-state", [shows(0), *committed(3)], **KEYED)
    assert found.not_judged is not None
    assert found.not_judged.applies


def test_a_sum_that_counts_records_twice_is_a_duplicate_effect() -> None:
    """A row that adds up, and does so again for records that come again: the row ends with the newest, and is wrong."""
    added = shows(0), shows(1), shows(0), shows(1), committed(3)
    assert stale(*added) == []
    assert [one["offset"] for one in judged("duplicate-effect", added, **KEYED)] == [0, 1]


def test_a_record_that_is_in_the_log_twice_is_compared_by_both_places() -> None:
    """Both copies of record 1 are newer than record 0; of two around another one the last one is the log's newest."""
    behind, around = {2: {"id": "r1"}}, {2: {"id": "r0"}}
    assert stale(shows(1), shows(0), committed(3), control=behind) == [STALE | {"offset": 2}]
    assert stale(shows(0), shows(1), committed(3), control=behind) == []
    assert stale(shows(0), shows(1), shows(0), committed(3), control=around) == []
    assert unclear(shows(0), shows(1), committed(3), control=around) == 1


def test_a_record_that_was_compacted_away_lies_where_it_was_acknowledged() -> None:
    """The log holds record 2 of the key alone."""
    frame = {"control": {0: None, 1: None}, "policy": "compact"}
    lies = [sent(one, key="k") for one in range(3)]
    assert stale(*lies, shows(2), shows(0), committed(3), **frame) == [STALE | {"offset": 2}]
    assert stale(*lies, shows(1), shows(0), committed(3), **frame) == [STALE]
    assert stale(*lies, shows(0), shows(1), shows(2), committed(3), **frame) == []
    assert stale(*lies, effect(2), effect(0), committed(3), **frame, settings=POSTED) == [STALE | {"offset": 2}]


def test_a_record_whose_place_nobody_knows_is_undecided_where_it_matters() -> None:
    """The send of record 0 was not answered, and the log does not hold it: with its newest record a row is right."""
    frame = {"control": {0: None}, "policy": "compact"}
    lies = [*sent(0, key="k", outcome="info"), *sent(1, key="k"), *sent(2, key="k")]
    for shown, settings in ((shows, STATES), (effect, POSTED)):
        told = {**frame, "settings": settings}
        assert unclear(*lies, shown(2), shown(0), committed(3), **told) == 1
        assert unclear(*lies, shown(0), shown(1), committed(3), **told) == 1
        assert stale(*lies, shown(0), shown(2), committed(3), **told) == []
        assert stale(*lies, shown(0), shown(2), shown(1), committed(3), **told) == [
            STALE | {"offset": 2, "older_offset": 1}
        ]
    few = [shows(2), shows(0), shows(1, row=1), shows(2, row=1)]
    assert unclear(*lies, *few, committed(3), **frame) == 1


def test_a_row_of_an_unknown_record_is_undecided_where_it_matters() -> None:
    """No log and no send has its id: it may be of any age, but for the newest one of the key."""
    stranger = Line("sink", "effect", {"id": "x", "outcome": "ok", "row": 0})
    assert unclear(shows(1), stranger, committed(3)) == 1
    assert unclear(stranger, shows(1), committed(3)) == 1
    assert stale(stranger, shows(1), shows(2), committed(3)) == []
    assert vacuous(stranger, shows(2), committed(3))


def test_what_may_come_again_is_undecided() -> None:
    """The position does not cover the newer record; where positions are elsewhere nobody can wait for that."""
    rolled_back = [shows(1), shows(0), *committed(1)]
    assert undecided("stale-state", rolled_back, **KEYED) == 1
    elsewhere = with_settings(events="none", sink="postgres", effects="state", progress="sink")
    assert stale(shows(1), shows(0), settings=elsewhere) == [STALE]


def test_it_is_judged_of_states_alone() -> None:
    """Where each record has an effect of its own there is none; without rows nobody can tell."""
    own = {**KEYED, "settings": with_settings(events="none", sink="postgres")}
    assert "effects = " in not_judged("stale-state", [shows(1), shows(0)], **own)
    assert "no change was seen of a row" in not_judged("stale-state", [effect(1), effect(0)], **KEYED)


# --- states without rows: those of a key at the HTTP sink, or in an output topic ------------------------------------

POSTED = with_settings(events="none", sink="http", effects="state")
WRITTEN = with_settings(events="none", sink="topic", effects="state")


def output(record: int, at: int, *, partition: int = 0, key: str | None = None) -> Line:
    """The state of a record lies there in the output topic, under that key."""
    place = {"topic": "out", "partition": partition, "offset": at} | ({} if key is None else {"key": key})
    return Line("sink", "effect", effect(record).fields | place)


def outputs(*partitions: list[int], **frame: Any) -> tuple[list[dict[str, Any]], int]:
    """What is said of states in an output topic, and what is undecided: the records in each of its partitions."""
    lines = [output(one, at, partition=n) for n, there in enumerate(partitions) for at, one in enumerate(there)]
    frame = {**KEYED, "settings": WRITTEN, **frame}
    _agreed([*lines, *committed(3)], **frame)
    found = finding("stale-state", [*lines, *committed(3)], **frame)
    return [dict(one.attributes) for one in found.instances], sum(found.undecided.values())


@pytest.mark.parametrize(("settings", "told"), [(POSTED, effect), (WRITTEN, None)], ids=["http", "topic"])
def test_a_key_whose_last_effect_is_of_an_older_record_is_stale(settings: Settings, told: Any) -> None:
    """A late writer posts record 0 after another one has posted record 1; nothing mends it."""
    lines = [effect(1), effect(0)] if told else [output(1, 0), output(0, 1)]
    assert stale(*lines, committed(3), settings=settings) == [STALE]


def test_the_order_of_an_output_topic_is_that_of_its_offsets() -> None:
    """Not that in which it was read."""
    assert stale(output(0, 1), output(1, 0), committed(3), settings=WRITTEN) == [STALE]


@pytest.mark.parametrize(
    ("lines", "records"),
    [
        ([effect(0), effect(1), effect(0), effect(1)], ["k", "k"]),
        ([effect(1), effect(0), effect(2)], ["k", "k", "k"]),
        ([effect(0), effect(1), effect(0, outcome="fail")], ["k", "k"]),
        ([effect(1, partition=0, offset=1), effect(0, partition=0, offset=0), effect(1)], ["k", "k"]),
    ],
    ids=["came-again", "mended", "refused", "says-its-place"],
)
def test_a_key_that_only_looks_stale_is_none(lines: list[Line], records: Any) -> None:
    """The newest state is the last; the sink refused the older one."""
    assert stale(*lines, committed(3), settings=POSTED, records=records) == []


@pytest.mark.parametrize(
    ("lines", "records"),
    [
        ([effect(1), effect(0, outcome="fail")], ["k", "k"]),
        ([effect(0)], ["k", "k"]),
        ([effect(1), effect(0)], 2),
        ([effect(1), effect(0)], ["k", "other"]),
    ],
    ids=["refused", "never-written", "without-a-key", "two-keys"],
)
def test_where_no_key_was_written_twice_nothing_is_judged(lines: list[Line], records: Any) -> None:
    """One state each; records without a key are of no state."""
    assert vacuous(*lines, committed(3), settings=POSTED, records=records)


def test_what_may_come_again_at_a_sink_is_undecided_too() -> None:
    """The position does not cover the newer record."""
    rolled_back = [effect(1), effect(0), *committed(1)]
    assert undecided("stale-state", rolled_back, **{**KEYED, "settings": POSTED}) == 1


def test_of_an_unanswered_effect_it_is_not_known_whether_it_was_written() -> None:
    """The sink closed its connection: the state may have stayed what it was."""
    frame = {**KEYED, "settings": POSTED}
    cut = {number: effect(number, outcome="info") for number in (0, 1)}
    cuts = [effect(1), cut[0]], [cut[1], effect(0)], [effect(1), effect(0), cut[1]], [effect(1), cut[0], cut[1]]
    for lines in cuts:
        assert undecided("stale-state", [*lines, *committed(3)], **frame) == 1
        _agreed([*lines, *committed(3)], **frame)
    for lines in ([effect(1), cut[0], effect(1)], [effect(0), cut[1]], [cut[0], cut[1], effect(1)]):
        assert stale(*lines, committed(3), settings=POSTED) == []
    assert stale(effect(1), effect(0), cut[0], committed(3), settings=POSTED) == [STALE]


def test_states_of_one_key_in_two_partitions_of_the_output_are_undecided() -> None:
    """Kafka promises no order between them; where each ends with an older record than the newest one, none is right."""
    assert outputs([1], [0]) == ([], 1)
    assert outputs([1, 0], [0]) == ([STALE], 0)
    assert outputs([0, 1], [1]) == ([], 0)
    assert outputs([0, 1], [2], records=["k", "k", "other"]) == ([], 0)
    assert outputs([1, 0], [2], records=["k", "k", "other"]) == ([STALE], 0)


def test_the_key_of_an_output_says_whose_state_it_is() -> None:
    """Records of one customer, whose states are those of two orders; then those of one."""
    two = output(1, 0, key="order-1"), output(0, 1, key="order-0"), committed(3)
    assert vacuous(*two, settings=WRITTEN)
    one = output(1, 0, key="order"), output(0, 1, key="order"), committed(3)
    assert stale(*one, settings=WRITTEN) == [STALE]


def test_a_key_that_moved_to_another_partition_is_mended_there() -> None:
    """Of three records of a key the last lies in partition 1: it is the newest by its send and by its timestamp."""
    there = {"topic": TOPIC, "partition": 1, "offset": 0, "id": "r1-0", "key": "k", **_at(200_000)}
    lines = [*sent(0, key="k"), *sent(1, key="k"), invoked("r1-0", None), Line("observer", "record", there)]
    posted = [Line("sink", "effect", {"id": name, "outcome": "ok"}) for name in ("r1", "r0", "r1-0")]
    frame = {"records": ["k", "k"], "settings": POSTED, "partitions": 2}
    commits = [*committed(2), *(on(1, line) for line in committed(1))]
    assert [one for one in stale(*lines, *posted, *commits, **frame) if one["older_partition"] == 1] == []


def test_of_a_key_that_moved_only_an_entitys_claim_promises_the_newest_state() -> None:
    """Partitions were added: its records lie in two, which two members may work on in any order."""
    places = (("r0", 0, 0), ("r1-0", 1, 5_000))
    sends = [invoked(name, None) for name, _, _ in places]
    read = [
        Line("observer", "record", {"topic": TOPIC, "partition": at, "offset": 0, "id": name, "key": "k"} | _at(ms))
        for name, at, ms in places
    ]
    posted = [Line("sink", "effect", {"id": name, "outcome": "ok"}) for name in ("r1-0", "r0")]
    done = [*committed(1), *(on(1, line) for line in committed(1))]
    (found,) = stale(*sends, *read, *posted, *done, settings=POSTED, records=0, partitions=2)
    assert (found["same_key"], found["older_partition"]) == (False, 0)


def test_what_was_handed_on_may_come_again_from_there() -> None:
    """Committed past where it came from: its position is that of the topic on the way."""
    lines = [effect(1), effect(0), *committed(3)]
    assert undecided("stale-state", [through(), handed_on(1, 0), *lines], **(KEYED | {"settings": POSTED})) == 1
    assert stale(*lines, settings=POSTED) == [STALE]


def test_an_entity_is_compared_at_a_sink_too() -> None:
    """It was posted as of the later one, and ended with the earlier one."""
    assert of_entity(settings=POSTED) == [{"offset": 0, "older_offset": 0, "older_partition": 0, "same_key": False}]
    lines, frame = entity_story(settings=POSTED, entities=(None, None))
    assert vacuous(*lines, **frame)


# --- entities: records without a key, over two partitions ----------------------------------------------------------


def invoked(name: str, entity: str | None) -> Line:
    about = {"topic": TOPIC, "id": name, "outcome": "invoke"} | ({} if entity is None else {"entity": entity})
    return Line("workload", "send", about)


def entity_story(
    *,
    times: tuple[int, int] = (0, 5),
    entities: tuple[str | None, str | None] = ("e", "e"),
    reverse: bool = False,
    again: bool = False,
    settings: Settings = STATES,
) -> tuple[list[Line], dict[str, Any]]:
    """r0 is sent to partition 0, then r1-0 to partition 1 (`again`: once more); the row shows r1-0 and ends with r0."""
    sent = [invoked("r0", entities[0]), invoked("r1-0", entities[1])]
    sent = [*(sent[::-1] if reverse else sent), *([sent[1]] if again else [])]
    row = {"row": 0} if settings is STATES else {}
    shown = [Line("sink", "effect", {"id": name, "outcome": "ok", **row}) for name in ("r1-0", "r0")]
    commits = [*committed(1), *(on(1, line) for line in committed(1))]
    stamped = [
        Line("observer", "record", {"topic": TOPIC, "partition": partition, "offset": 0, "id": name, **_at(ms)})
        for partition, name, ms in ((0, "r0", times[0]), (1, "r1-0", times[1]))
    ]
    return [*sent, *stamped, *shown, *commits], {"records": 0, "partitions": 2, "settings": settings}


def of_entity(**how: Any) -> list[dict[str, Any]]:
    lines, frame = entity_story(**how)
    return stale(*lines, **frame)


def _at(milliseconds: int) -> dict[str, int]:
    return {"source_wall_ns": WALL_NS + milliseconds * 1_000_000}


def test_an_entity_over_two_partitions_is_compared_by_its_sends() -> None:
    """It was shown as of the later one, and ended with the earlier one."""
    assert of_entity() == [{"offset": 0, "older_offset": 0, "older_partition": 0, "same_key": False}]


@pytest.mark.parametrize(
    "how",
    [{"times": (5, 0)}, {"reverse": True}, {"again": True}],
    ids=["stamped-otherwise", "sent-otherwise", "sent-twice"],
)
def test_what_timestamps_and_sends_do_not_order_is_undecided(how: dict[str, Any]) -> None:
    """They say otherwise; or an id was sent twice, and its send is unknown."""
    lines, frame = entity_story(**how)
    assert unclear(*lines, **frame) == 1


def test_records_of_one_timestamp_have_no_order() -> None:
    """Whoever reads both cannot tell which is older: either may stand in the end."""
    assert of_entity(times=(5, 5)) == []


@pytest.mark.parametrize("entities", [("e", "f"), (None, None)], ids=["of-two", "of-none"])
def test_records_of_no_common_entity_are_not_compared(entities: tuple[str | None, str | None]) -> None:
    """Two entities; none."""
    lines, frame = entity_story(entities=entities)
    assert vacuous(*lines, **frame)


def test_an_order_that_only_an_entitys_claim_promises_is_moot_under_that_of_a_key() -> None:
    """Of an entity, or of two partitions."""
    moot = find_invariant("stale-state").rule.never_for
    assert (Undecided.UNORDERED in moot["key"], moot.get("entity")) == (True, None)
    found = finding("stale-state", entity_story(reverse=True)[0], **entity_story(reverse=True)[1])
    assert dict(found.undecided) == {Undecided.UNORDERED: 1}


@pytest.mark.parametrize(
    ("claim", "same_key", "weight"),
    [
        (Claim("at-least-once"), True, "violation"),
        (Claim("exactly-once", order="none"), True, "violation"),
        (Claim("at-least-once"), False, "tolerated"),
        (Claim("at-least-once", state="entity"), False, "violation"),
    ],
)
def test_the_claim_says_whose_state_counts(claim: Claim, same_key: bool, weight: str) -> None:
    """That of a key, unless it promises that of an entity."""
    rule = find_invariant("stale-state").rule
    assert (rule.claimed(claim), rule.excuse(claim, {"same_key": same_key})[0]) == (True, weight)


def test_some_claims_promise_no_state() -> None:
    """Who may lose records, and who says so."""
    rule = find_invariant("stale-state").rule
    none = Claim("at-most-once"), Claim("unclaimed"), Claim("at-least-once", state="none")
    assert [rule.claimed(claim) for claim in none] == [False, False, False]
