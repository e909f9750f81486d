"""What brokers answered to members: which answers are kept, and what of them."""

from __future__ import annotations

import orjson
import pytest

from group_lines import beat, heartbeat, joined, left, synced
from histories import Line, asked, history
from kafka_trial.history.event import to_line
from kafka_trial.judge.cache import from_plain, to_plain
from kafka_trial.judge.in_memory_history import rows_of_lines
from kafka_trial.model.trial_context import GroupAnswer, Settings, TrialContext


def trial_context(*lines: Line) -> TrialContext:
    """Returns the trial context of a history; every member's first join stands before the lines."""
    _, builder = rows_of_lines(map(to_line, history(lines)))
    return builder.trial_context(Settings())


def answers(*lines: Line) -> tuple[GroupAnswer, ...]:
    """Returns the answers that are kept of these lines."""
    return trial_context(*lines).group_answers[2:]


def test_a_join_tells_generation_and_timeouts() -> None:
    """And of whom, by lane, connection and ids."""
    (one,) = answers(joined("m1", generation=7, session_timeout_ms=45_000, rebalance_timeout_ms=300_000))
    assert (one.api, one.error, one.member, one.lane, one.connection, one.client_id) == (
        *("JOIN_GROUP", 0, 1, 1, "m1", "m1"),
    )
    assert (one.epoch, one.answered_epoch, one.session_timeout_ms, one.rebalance_timeout_ms) == (
        *(None, 7, 45_000, 300_000),
    )


def test_a_sync_tells_what_was_assigned() -> None:
    """As numbers of slices; an empty assignment is one too, and a refused one is none."""
    whole = trial_context(synced("m0", 0, 3), synced("m0"), synced("m0", 0, error=27))
    number = {place: number for number, place in enumerate(whole.slices)}
    both = tuple(sorted((number["t", 0], number["t", 3])))
    assert [one.assigned for one in whole.group_answers[2:]] == [both, (), None]


def test_a_heartbeat_that_says_nothing_new_is_left_out() -> None:
    """One that assigns, or tells what the member owns, or that is refused, is kept."""
    lines = [beat("m0"), beat("m0", [0]), beat("m0", owned=[]), heartbeat("m0"), heartbeat("m0", error=27)]
    assert [(one.api, one.error, one.assigned, one.owned) for one in answers(*lines)] == [
        ("CONSUMER_GROUP_HEARTBEAT", 0, (0,), None),
        ("CONSUMER_GROUP_HEARTBEAT", 0, None, ()),
        ("HEARTBEAT", 27, None, None),
    ]


@pytest.mark.parametrize("api", ["OFFSET_COMMIT", "TXN_OFFSET_COMMIT"])
def test_of_commits_only_refusals_are_kept(api: str) -> None:
    """With the epoch they asked for."""
    found = answers(asked(api, "m0", 5), asked(api, "m0", 5, error=22, epoch=3))
    assert [(one.api, one.error, one.epoch, one.duration_ns) for one in found] == [(api, 22, 3, 25_000_000)]


def test_every_leave_is_kept() -> None:
    """A member that left is told so."""
    assert [(one.api, one.error) for one in answers(left("m0"), left("m0", error=25))] == [
        ("LEAVE_GROUP", 0),
        ("LEAVE_GROUP", 25),
    ]


def test_other_groups_are_left_out() -> None:
    """A lane may serve a second group."""
    assert answers(Line("requests-b0", "request", joined("m0").fields | {"group": "another"})) == ()


def test_a_field_of_the_wrong_type_is_as_good_as_absent() -> None:
    """A damaged history breaks no judge."""
    wrong = {"epoch": "seven", "entries": [7, {"partition": -1}], "member_id": 7, "duration_ms": None}
    (one,) = answers(Line("requests-b0", "request", synced("m0", 0).fields | wrong))
    assert (one.epoch, one.assigned, one.member_id, one.duration_ns) == (None, (), -1, 0)


def test_answers_survive_the_cache() -> None:
    """The trial context are written as plain data, and read back the same."""
    whole = trial_context(joined("m0"), synced("m0", 0), beat("m1", [1], owned=[]))
    assert from_plain(orjson.loads(orjson.dumps(to_plain(whole)))) == whole
