"""A member that was told that its transaction is committed gives nothing of it up, whatever it says."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from group_lines import joined, synced
from histories import (
    Line,
    after,
    assigned,
    commit,
    committed,
    delivered,
    end_asked,
    ended,
    exited,
    fault,
    gave_up,
    healed,
    history,
    lasting,
    measured,
    on,
    own_time,
    processed,
    revoked,
    started,
    with_settings,
)
from kafka_trial.judge.judge import judge_events
from lab.naive.checker import judge

Lines = list[Line | list[Line]]
RULES = ("nonmonotonic-poll", "redelivered", "illegal-redelivery", "reordered-key", "overlapping-handlers", "poll-skip")
IN_TRANSACTIONS = with_settings(progress="transaction", delivery="exactly-once", sink="topic")


def found(lines: Lines, **settings: str) -> dict[str, list[int]]:
    """Returns the offset of what each rule convicts, -1 for each case that is undecided, and sees that both judges say
    so."""
    events, about = history(lines, records=4), with_settings(**asdict(IN_TRANSACTIONS) | settings)
    told, naive = judge_events(events, about).findings, judge(events, asdict(about))
    cases: dict[str, list[int]] = {}
    for name in RULES:
        convicted = [one.attributes["offset"] for one in told[name].instances]
        cases[name] = convicted + [-1] * sum(told[name].undecided.values())
        assert sorted(one[2] for one in naive.anomalies[name]) == convicted, name
        assert naive.undecided[name] == sum(told[name].undecided.values()), name
    return {name: some for name, some in cases.items() if some}


def done(*offsets: int) -> Lines:
    return [line for offset in offsets for line in (delivered("m0", offset), processed("m0", offset))]


def handed_in(value: int, *, by: str = "m0", producer: int = 7) -> Lines:
    return [committed(value, by=by, producer=producer, pending=True)]


def taken(value: int, *, epoch: int = 1, own: bool = True) -> Lines:
    """A transaction with this position is committed, and its producer is answered."""
    return [*handed_in(value), end_asked("commit", epoch=epoch, own=own), ended("commit", None, epoch=epoch)]


def back(*offsets: int) -> dict[str, list[int]]:
    cases: dict[str, list[int]] = {name: [*offsets] for name in ("nonmonotonic-poll", "redelivered")}
    return cases | ({"reordered-key": [*offsets[:-1]]} if len(offsets) > 1 else {})


BEGUN = [assigned("m0"), *done(0, 1)]
GIVEN_UP = [after(2), gave_up("m0")]
UNTOLD = [*handed_in(2), ended("commit", None)]


def test_what_its_producer_was_answered_is_committed_is_not_given_up() -> None:
    """A handler fails behind a successful commit, and whoever catches that goes back to the old position."""
    assert found([*BEGUN, *taken(2), *GIVEN_UP, *done(0, 1)]) == back(0, 1)
    assert found([*BEGUN, *taken(2), *GIVEN_UP, *done(2)]) == {}


@pytest.mark.parametrize("named", [(), (0,)])
def test_an_abort_of_the_next_transaction_gives_nothing_of_the_one_before_up(named: tuple[int, ...]) -> None:
    """Records 0 and 1 were committed; 2 was not, and is begun again."""
    lines = [*BEGUN, *taken(2), *done(2), after(2), gave_up("m0", *named)]
    assert found([*lines, *done(2, 3)]) == {}
    assert found([*lines, *done(1, 2)]) == back(1)


@pytest.mark.parametrize("own", [False, True], ids=["an epoch for the producer", "an epoch for each transaction"])
def test_each_answer_is_of_its_own_transaction(*, own: bool) -> None:
    """The answer about the second one is missing."""
    first, second = taken(1, own=own), taken(2, own=own, epoch=1 + own)
    begun = [assigned("m0"), *done(0), *first, after(2), *done(1)]
    assert found([*begun, *second, *GIVEN_UP, *done(1)]) == back(1)
    assert found([*begun, second[0], second[-1], *GIVEN_UP, *done(1)]) == {}
    assert found([*begun, second[0], second[-1], *GIVEN_UP, *done(0)]) == back(0)


@pytest.mark.parametrize(
    "told",
    [
        [],
        [end_asked("abort")],
        [end_asked("commit", error=51)],
        [end_asked("commit", epoch=2)],
        [end_asked("commit", producer=8)],
        [end_asked("commit", by="m1")],
        [after(2), end_asked("commit")],
        [lasting(end_asked("commit"), 2)],
    ],
    ids=["no request", "abort", "refused", "another epoch", "another producer", "another member", "late", "slow"],
)
def test_without_a_prompt_answer_to_its_own_request_an_abort_is_believed(told: Lines) -> None:
    """Its client may have given up before."""
    assert found([*BEGUN, *handed_in(2), *told, ended("commit", None), *GIVEN_UP, *done(0, 1)]) == {}


@pytest.mark.parametrize("does", ["loses-answers", "delays-answers", "freezes"])
def test_an_answer_that_a_fault_may_have_kept_from_it_told_it_nothing(does: str) -> None:
    """The same fault on another member keeps nothing from it."""
    for member, expected in (("m0", {}), ("m1", back(0, 1))):
        lines = [*BEGUN, fault("pause", member, does=[does]), *taken(2), after(2), healed()]
        assert found([*lines, *GIVEN_UP, *done(0, 1)]) == expected


def test_an_answer_behind_the_abort_comes_too_late() -> None:
    """It gave up before it knew, or may have: its line may have waited to be read."""
    assert found([*BEGUN, *handed_in(2), gave_up("m0"), *taken(2)[1:], after(2), *done(0, 1)]) == {}
    assert found([*BEGUN, *taken(2), gave_up("m0"), *done(0, 1)]) == {}
    quick = [measured("m0", 0.0), *BEGUN, *taken(2), after(0.1), gave_up("m0"), *done(0, 1)]
    assert found([*quick, after(0.5), measured("m0", 0.0)]) == back(0, 1)
    late = [*BEGUN, *taken(2), after(0.1), gave_up("m0"), *done(0, 1), after(0.5), measured("m0", 0.3)]
    assert found(late) == {}


def test_a_time_of_its_own_says_when_it_gave_up() -> None:
    """The line bears the time at which it was printed."""
    timed = [own_time(one, 0.0) for one in (*BEGUN, gave_up("m0"), *done(0, 1)) if isinstance(one, Line)]
    between = [*taken(2), after(0.1)]
    lines = [measured("m0", 0.0), *timed[:5], *between, *timed[5:], after(0.5), measured("m0", 0.0)]
    assert found(lines) == back(0, 1)
    early = [measured("m0", 0.4), *timed[:5], *between, own_time(gave_up("m0"), 0.2), *timed[6:], after(0.5)]
    assert found([*early, measured("m0", 0.4)]) == {}


def test_lines_out_of_a_buffer_may_have_been_printed_at_any_time_before() -> None:
    """Nobody knows when it gave up."""
    assert found([*BEGUN, *taken(2), *GIVEN_UP, *done(0, 1)], stdout="buffered") == {}


def test_a_transaction_whose_end_is_not_in_the_log_yet_may_not_be_seen_either() -> None:
    """ "The markers are written asynchronously" (KIP-447): who asks for its position meanwhile is told the old one."""
    told = [*handed_in(2), end_asked("commit"), *GIVEN_UP, ended("commit", None)]
    assert found([*BEGUN, *told, *done(0, 1)]) == {}


def test_what_was_committed_in_another_ownership_epoch_says_nothing_of_this_one() -> None:
    """An operator may have set the position back between them."""
    again = [revoked("m0"), after(2), assigned("m0"), *done(0)]
    told = found([*BEGUN, *taken(2), *again, *GIVEN_UP, *done(0)])
    assert "nonmonotonic-poll" not in told


def test_the_answer_to_another_member_tells_this_one_nothing() -> None:
    """m1 took the position over and committed it in its own transaction."""
    told = [*handed_in(2, by="m1", producer=8), end_asked("commit", by="m1", producer=8)]
    assert found([*BEGUN, *told, ended("commit", None, producer=8), *GIVEN_UP, *done(0, 1)]) == {}


def test_what_one_of_several_clients_in_its_process_was_answered_need_not_be_its_own() -> None:
    """Two members of the group live in m0's process; both may have had the partition."""
    given = [("a", 1), ("b", 2), ("a", 3), ("b", 4)]
    both: Lines = [
        replace(line, fields=line.fields | {"connection": f"to-{client}", "client_id": client, "member_id": client})
        for client, number in given
        for line in (joined("m0", generation=number), synced("m0", 0))
    ]
    assert found([*both, *BEGUN, *taken(2), *GIVEN_UP, *done(0, 1)]) == {}


def test_a_commit_of_another_partition_says_nothing_of_this_one() -> None:
    """Its producer hands in one position at a time."""
    there = [on(1, line) for line in committed(2, by="m0", producer=7, pending=True)]
    assert found([*BEGUN, there, *taken(2)[1:], *GIVEN_UP, *done(0, 1)]) == {}


def test_what_the_process_before_was_answered_says_nothing_of_this_one() -> None:
    """m0 died when its transaction was committed; the next one reads record 0 twice, and gives up between."""
    again = [exited("m0", signal=9), started("m0-1"), assigned("m0-1"), delivered("m0-1", 0), processed("m0-1", 0)]
    lines = [*BEGUN, *taken(2), *again, after(2), gave_up("m0-1"), delivered("m0-1", 0), processed("m0-1", 0)]
    assert "nonmonotonic-poll" not in found(lines)


def test_a_member_that_says_nothing_of_its_commit_and_one_that_does_are_judged_alike() -> None:
    """Its own word confirms what it was told."""
    assert found([*BEGUN, *taken(2), commit("m0", 2, "ok"), *GIVEN_UP, *done(0, 1)]) == back(0, 1)
    assert found([*BEGUN, *UNTOLD, commit("m0", 2, "ok"), *GIVEN_UP, *done(0, 1)]) == back(0, 1)
    assert found([*BEGUN, *UNTOLD, *GIVEN_UP, *done(0, 1)]) == {}
