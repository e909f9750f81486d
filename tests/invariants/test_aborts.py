"""Attempts: a transaction, or a batch, that is given up ends in every partition that it had, and in no other one."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from group_lines import joined, synced
from histories import (
    Line,
    after,
    asked,
    assigned,
    commit,
    committed,
    delivered,
    effect,
    gave_up,
    history,
    judged,
    on,
    processed,
    revoked,
    with_settings,
)
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.trial_context import Settings
from lab.naive.checker import judge

Lines = list[Line | list[Line]]
OPEN = (-1, -1)
STEPS_BACK = ("nonmonotonic-poll", "redelivered")
RULES = ("nonmonotonic-poll", "redelivered", "illegal-redelivery", "reordered-key", "overlapping-handlers", "poll-skip")
IN_TRANSACTIONS = with_settings(progress="transaction", delivery="exactly-once", sink="topic")


def done(partition: int, *offsets: int, member: str = "m0") -> Lines:
    """These records of a partition are handled."""
    return [
        line
        for offset in offsets
        for line in (delivered(member, offset, partition=partition), processed(member, offset, partition=partition))
    ]


def handed_in(partition: int, value: int, *, producer: int = 7, by: str = "m0") -> Lines:
    """A transaction with the position of one partition is committed, by the brokers' logs."""
    return [on(partition, line) for line in committed(value, by=by, producer=producer)]


def back(*cases: tuple[int, int]) -> dict[str, list[tuple[int, int]]]:
    """Returns what is found where these records were begun again; of two of them the first came after the second."""
    return {name: [*cases] for name in STEPS_BACK} | ({"reordered-key": [cases[0]]} if len(cases) > 1 else {})


def found(lines: Lines, *, settings: Settings = IN_TRANSACTIONS) -> dict[str, list[tuple[int, int]]]:
    """Returns the partition and offset of what each rule convicts, OPEN for each case that is undecided, and sees that
    both judges say so."""
    events = history(lines, records=4, partitions=2)
    told, naive = judge_events(events, settings).findings, judge(events, asdict(settings))
    cases: dict[str, list[tuple[int, int]]] = {}
    for name in RULES:
        convicted = [(one.partition or 0, one.attributes["offset"]) for one in told[name].instances]
        cases[name] = convicted + [OPEN] * sum(told[name].undecided.values())
        assert sorted((one[1], one[2]) for one in naive.anomalies[name]) == convicted, name
        assert naive.undecided[name] == sum(told[name].undecided.values()), name
    return {name: some for name, some in cases.items() if some}


BOTH = [assigned("m0", 0, 1), *done(1, 0, 1), delivered("m0", 0), delivered("m0", 1)]
AGAIN = [*done(1, 0, 1), *done(0, 0, 1)]
TOGETHER = [*handed_in(0, 2), *handed_in(1, 2)]
APART = [*handed_in(0, 2), *handed_in(1, 2, producer=8), *handed_in(0, 2), *handed_in(1, 2, producer=8)]


def test_an_abort_that_names_no_partition_ends_the_attempt_in_all() -> None:
    """Partition 1 had been handled when a record of partition 0 failed: the transaction is all of it."""
    assert found([*BOTH, gave_up("m0"), *AGAIN]) == {}
    assert found([*BOTH, gave_up("m0"), *AGAIN, *TOGETHER]) == {}


def test_an_abort_that_names_the_failed_records_partition_ends_the_attempt_in_all() -> None:
    """One producer hands in both positions."""
    assert found([*BOTH, gave_up("m0", 0), *AGAIN, *TOGETHER]) == {}


def test_a_step_back_without_an_abort_is_none_of_an_attempt() -> None:
    """Its twin: nothing was given up."""
    assert found([*BOTH, *AGAIN, *TOGETHER])["nonmonotonic-poll"] == [(1, 0), (1, 1)]


def test_a_step_back_before_the_abort_is_none_of_the_next_attempt() -> None:
    """It came too early."""
    assert found([*BOTH, *AGAIN, gave_up("m0"), *TOGETHER])["nonmonotonic-poll"] == [(1, 0), (1, 1)]


def test_one_abort_begins_one_attempt() -> None:
    """It steps back twice."""
    assert found([*BOTH, gave_up("m0"), *AGAIN, *done(1, 0), *TOGETHER])["nonmonotonic-poll"] == [(1, 0)]


def test_whoever_went_on_after_the_abort_steps_back_as_ever() -> None:
    """The next attempt began at record 2 of partition 1; it reads records 0 and 1 again only later."""
    told = found([*BOTH, gave_up("m0"), *done(1, 2), *done(1, 0, 1), *done(0, 0, 1), *TOGETHER])
    assert told["nonmonotonic-poll"] == [(1, 0), (1, 1)]


@pytest.mark.parametrize("named", [(), (0,), (1,), (0, 1)])
def test_what_was_committed_before_the_attempt_is_not_taken_back(named: tuple[int, ...]) -> None:
    """By its own word and by the log: record 0 of partition 1 was committed, record 1 was not."""
    told = [*handed_in(1, 1), on(1, commit("m0", 1, "ok"))]
    begun = [assigned("m0", 0, 1), *done(1, 0), *told, *done(1, 1), gave_up("m0", *named)]
    assert found([*begun, *done(1, 1), *TOGETHER]) == {}
    assert found([*begun, *done(1, 0, 1), *TOGETHER]) == back((1, 0))


def test_what_only_the_offsets_log_shows_as_committed_may_be_begun_again() -> None:
    """The answer to the commit was lost: its member gives up what stands, and cannot know it."""
    begun = [assigned("m0", 0, 1), *done(1, 0), *handed_in(1, 1), after(2), gave_up("m0", 0, 1)]
    assert found([*begun, *done(1, 0)]) == {}
    told = [*begun[:-2], on(1, commit("m0", 1, "ok")), *begun[-2:]]
    assert found([*told, *done(1, 0)]) == back((1, 0))


def test_what_its_member_alone_says_was_committed_may_be_begun_again() -> None:
    """It says so when its positions were accepted; then the transaction is aborted, and another one committed."""
    begun = [assigned("m0", 0, 1), *done(1, 0), on(1, commit("m0", 1, "ok")), after(2), gave_up("m0", 0, 1)]
    assert found([*begun, *done(1, 0), *handed_in(1, 1)]) == {}
    assert found([*begun[:3], *handed_in(1, 1), *begun[2:], *done(1, 0)])["nonmonotonic-poll"] == [(1, 0)]


def test_a_committed_record_comes_after_those_that_were_committed_with_it() -> None:
    """Records 0 and 1 of partition 1 were committed, record 2 was not; 0 is handled behind 1."""
    begun = [assigned("m0", 0, 1), *done(1, 0, 1), on(1, commit("m0", 2, "ok")), *done(1, 2), gave_up("m0")]
    assert found([*begun, *done(1, 0), *TOGETHER]) == back((1, 0)) | {"reordered-key": [(1, 0)]}
    assert found([*begun, *done(1, 1), *TOGETHER]) == back((1, 1))


def test_transactions_of_their_own_are_given_up_one_by_one() -> None:
    """One producer for each partition: that of partition 0 was aborted, and partition 1 steps back."""
    told = found([*BOTH, gave_up("m0", 0), *AGAIN, *APART])
    assert told == back((1, 0), (1, 1))
    assert found([*BOTH, gave_up("m0", 1), *AGAIN, *APART]) == {}


def test_of_several_transactions_an_abort_without_a_name_may_be_any() -> None:
    """It may be that of partition 1."""
    assert found([*BOTH, gave_up("m0"), *AGAIN, *APART]) == back(OPEN, OPEN)


def test_producers_one_after_the_other_share_what_one_of_them_has_handed_in() -> None:
    """A new producer took the place of one that was fenced, and each has both partitions."""
    one = [*TOGETHER, *handed_in(0, 2, producer=8), *handed_in(1, 2, producer=8)]
    assert found([*BOTH, gave_up("m0", 0), *AGAIN, *one]) == {}
    assert found([*BOTH, gave_up("m0", 0), *AGAIN, *one[: len(TOGETHER)], *handed_in(1, 2, producer=8)]) == {}


def test_producers_one_after_the_other_with_a_partition_each_have_transactions_of_their_own() -> None:
    """Their requests happen not to alternate: partition 0 was given up, and partition 1 steps back."""
    one = [*handed_in(0, 2), *handed_in(1, 2, producer=8)]
    assert found([*BOTH, gave_up("m0", 0), *AGAIN, *one]) == back((1, 0), (1, 1))
    assert found([*BOTH, gave_up("m0", 1), *AGAIN, *one]) == {}
    assert found([*BOTH, gave_up("m0"), *AGAIN, *one]) == {}


def test_producers_one_after_the_other_do_not_tell_of_what_none_handed_in() -> None:
    """Partition 1 never was, so that nobody knows with which producer it is."""
    one = [*handed_in(0, 2), *handed_in(0, 2, producer=8)]
    assert found([*BOTH, gave_up("m0", 0), *AGAIN, *one]) == back(OPEN, OPEN)


def both_handed_in(*, producer: int) -> Line:
    """One request with the positions of both partitions."""
    entries = [{"topic": "t", "partition": partition, "committed_offset": 2, "error": 0} for partition in (0, 1)]
    one = asked("TXN_OFFSET_COMMIT", "m0", 2, producer=producer)
    return replace(one, fields=one.fields | {"entries": entries})


def test_producers_at_once_whose_requests_hold_both_positions_share_their_transactions() -> None:
    """The later one hands in both positions."""
    one = [*handed_in(0, 2), both_handed_in(producer=8), *handed_in(0, 2)]
    assert found([*BOTH, gave_up("m0", 0), *AGAIN, *one]) == {}


def test_producers_of_a_pool_may_have_transactions_of_one_partition_each() -> None:
    """Both positions came from one producer, but never in one request."""
    one = [*handed_in(0, 2), *handed_in(0, 2, producer=8), *handed_in(1, 2, producer=8), *handed_in(0, 2)]
    assert found([*BOTH, gave_up("m0", 0), *AGAIN, *one]) == back(OPEN, OPEN)


def test_without_the_requests_of_its_producers_nothing_tells() -> None:
    """No position of partition 1 was ever handed in, as far as the request log shows."""
    lines = [*BOTH, gave_up("m0", 0), *AGAIN]
    assert found(lines) == back(OPEN, OPEN)
    others = [*handed_in(0, 2), *handed_in(0, 2, producer=8), *handed_in(0, 2)]
    assert found([*lines, *others]) == back(OPEN, OPEN)


def test_a_failed_record_ends_no_attempt() -> None:
    """It may be tried again inside its transaction: `offsets_committed` with `success` false says that it ended."""
    begun = [assigned("m0", 0, 1), *done(1, 0), delivered("m0", 0), processed("m0", 0, outcome="failed")]
    again = [*done(1, 0), *done(0, 0), *TOGETHER]
    assert found([*begun, *again]) == back((1, 0))
    assert found([*begun, gave_up("m0", 0), *again]) == {}


def test_a_failed_record_takes_back_nothing_that_was_done_before_it_in_its_partition() -> None:
    """Record 2 failed; the consumer goes back to the first one, and no transaction was aborted."""
    begun = [assigned("m0", 0, 1), *done(0, 0, 1), delivered("m0", 2), processed("m0", 2, outcome="failed")]
    lines = [*begun, *done(0, 0, 1, 2), *handed_in(0, 3), *handed_in(1, 0)]
    assert found(lines)["nonmonotonic-poll"] == [(0, 0), (0, 1)]
    assert found([*begun, *done(0, 2), *handed_in(0, 3)]) == {}


def test_a_failed_record_that_is_tried_again_is_a_retry() -> None:
    """Whether its transaction was aborted or not."""
    begun = [assigned("m0", 0, 1), delivered("m0", 0), processed("m0", 0, outcome="failed")]
    lines = [*begun, *done(0, 0), *TOGETHER]
    assert found(lines) == {}
    assert [one["offset"] for one in judged("retried", lines, partitions=2, settings=IN_TRANSACTIONS)] == [0]


def test_a_failed_record_of_another_transaction_excuses_nothing() -> None:
    """Each partition has a producer of its own."""
    begun = [assigned("m0", 0, 1), *done(1, 0), delivered("m0", 0), processed("m0", 0, outcome="failed")]
    told = found([*begun, *done(1, 0), *done(0, 0), *APART])
    assert told == back((1, 0))


def test_the_abort_of_another_member_ends_nothing() -> None:
    """m1 gave up a transaction of its own."""
    told = found([*BOTH, gave_up("m1"), *AGAIN, *TOGETHER])
    assert told["nonmonotonic-poll"] == [(1, 0), (1, 1)]


def of(client: str, *lines: Line | list[Line]) -> Lines:
    """The same of a client in m0's process, which names itself."""
    who = {"client_id": client, "member_id": f"id-{client}"}
    return [
        replace(one, fields=one.fields | who) for line in lines for one in (line if isinstance(line, list) else [line])
    ]


def both_clients(*, last: tuple[int, ...]) -> Lines:
    """a and b join and are given a partition each; `last`: what b is given in the end."""
    given = [("a", (0,), 1), ("b", (1,), 1), ("a", (0,), 2), ("b", last, 3)]
    return [
        replace(line, fields=line.fields | {"connection": f"to-{client}"})
        for client, places, number in given
        for line in of(client, joined("m0", generation=number), synced("m0", *places))
    ]


@pytest.mark.parametrize("last", [(1,), (0, 1)], ids=["each its own", "one had both"])
def test_the_abort_of_another_client_of_the_process_ends_nothing(last: tuple[int, ...]) -> None:
    """b has partition 1, a has partition 0; each has transactions of its own."""
    begun = [*both_clients(last=last), *of("a", assigned("m0", 0)), *of("b", assigned("m0", 1), *done(1, 0))]
    begun += [*of("a", *done(0, 0)), *of("b", delivered("m0", 1, partition=1))]
    again = [*of("b", *done(1, 0, 1)), *of("a", *done(0, 1))]
    assert found([*begun, *of("a", gave_up("m0")), *again]) == back((1, 0))
    assert found([*begun, *of("b", gave_up("m0")), *again]) == {}
    assert found([*begun, gave_up("m0"), *again]) == back(OPEN)


def test_effects_that_everybody_saw_are_not_taken_back() -> None:
    """Exactly once, into a sink that takes part in no transaction: each attempt had its effect."""
    settings = with_settings(progress="transaction", delivery="exactly-once", sink="http")
    lines = [*BOTH[:3], effect(0), *done(0, 0), effect(0), gave_up("m0"), *done(0, 0), effect(0)]
    assert [one["number"] for one in judged("duplicate-effect", lines, settings=settings)] == [2, 3]


def test_outside_of_transactions_a_failed_commit_undoes_nothing() -> None:
    """Positions that were not stored take no work back."""
    told = found([*BOTH, gave_up("m0"), *AGAIN], settings=with_settings())
    assert told["nonmonotonic-poll"] == [(1, 0), (1, 1)]


def test_an_attempt_of_an_ownership_epoch_before_is_over() -> None:
    """What was given up then says nothing of this possession."""
    lines = [*BOTH, gave_up("m0"), revoked("m0", 0, 1), assigned("m0", 0, 1), *done(1, 0, 1), *done(1, 0)]
    assert found(lines)["nonmonotonic-poll"] == [(1, 0)]


def test_in_a_process_that_names_no_client_the_partition_tells_whose_abort_it_was() -> None:
    """a was given partition 0 alone, and b partition 1."""

    def nameless(*lines: Line | list[Line]) -> Lines:
        return [*both_clients(last=(1,)), assigned("m0", 0, 1), *lines]

    begun = [*done(0, 0), *done(1, 0)]
    assert found(nameless(*begun, gave_up("m0", 0), *done(1, 0))) == back((1, 0))
    assert found(nameless(*begun, gave_up("m0", 1), *done(1, 0))) == {}
    assert found(nameless(*begun, gave_up("m0"), *done(1, 0))) == back(OPEN)


def test_what_was_committed_before_comes_too_late_after_what_the_attempt_has_done() -> None:
    """The attempt after the abort does record 1, and then record 0 once more, which was committed long before."""
    begun = [assigned("m0", 0, 1), *done(0, 0), committed(1, by="m0", producer=7), commit("m0", 1, "ok")]
    again = [*begun, after(2), delivered("m0", 1), gave_up("m0", 0), *done(0, 1), *done(0, 0)]
    assert found(again) == back((0, 0)) | {"reordered-key": [(0, 0)]}


# --- batches -----------------------------------------------------------------------------------------------------

BATCHES = with_settings(handler="batch", delivery="at-least-once")


def batch(*places: tuple[int, int], failed: tuple[int, int] | None = None) -> Lines:
    """A batch of records (partition, offset); those behind the one that failed are not handled."""
    ended = places[: places.index(failed)] if failed else places
    last = [processed("m0", failed[1], partition=failed[0], outcome="failed")] if failed else []
    return [
        *(delivered("m0", offset, partition=partition) for partition, offset in places),
        *(processed("m0", offset, partition=partition) for partition, offset in ended),
        *last,
    ]


WHOLE = ((1, 0), (1, 1), (0, 0))


def test_a_batch_in_which_a_record_failed_is_handed_out_again_in_all_its_partitions() -> None:
    """The records of partition 1 were done when one of partition 0 failed."""
    lines = [assigned("m0", 0, 1), *batch(*WHOLE, failed=(0, 0)), *batch(*WHOLE)]
    assert found(lines, settings=BATCHES) == {}
    assert [one["offset"] for one in judged("retried", lines, partitions=2, settings=BATCHES)] == [0, 0, 1]


def test_a_batch_that_ended_well_is_not_handed_out_again() -> None:
    """Its twins: nothing failed, and what failed was of the next batch, or of the one before."""
    well = back((1, 0), (1, 1))
    assert found([assigned("m0", 0, 1), *batch(*WHOLE), *batch(*WHOLE[:2])], settings=BATCHES) == well
    alone = batch((0, 0), failed=(0, 0))
    assert found([assigned("m0", 0, 1), *batch(*WHOLE[:2]), *alone, *batch(*WHOLE)], settings=BATCHES) == well
    assert found([assigned("m0", 0, 1), *alone, *batch(*WHOLE[:2]), *batch(*WHOLE)], settings=BATCHES) == well


def test_a_batch_is_not_handed_out_again_from_below_what_was_committed() -> None:
    """Record 0 of partition 1 had been committed."""
    lines = [assigned("m0", 0, 1), *batch(*WHOLE, failed=(0, 0)), *[on(1, one) for one in committed(1)], after(2)]
    assert found([*lines, *batch(*WHOLE)], settings=BATCHES) == back((1, 0), (1, 1))
    assert found([*lines, *batch(*WHOLE[1:])], settings=BATCHES) == {}


def test_a_handler_of_single_records_has_no_batches() -> None:
    """The record that failed was in hand by itself."""
    told = found([assigned("m0", 0, 1), *batch(*WHOLE, failed=(0, 0)), *batch(*WHOLE)], settings=with_settings())
    assert told["nonmonotonic-poll"] == [(1, 0), (1, 1)]


def test_the_failed_record_of_another_client_is_of_another_batch() -> None:
    """b has partition 1, a has partition 0: each is handed batches of its own."""
    begun = [*both_clients(last=(1,)), *of("a", assigned("m0", 0)), *of("b", assigned("m0", 1))]
    first = [*of("b", *batch(*WHOLE[:2])), *of("a", *batch((0, 0), failed=(0, 0)))]
    assert found([*begun, *first, *of("b", *batch(*WHOLE[:2]))], settings=BATCHES) == back((1, 0), (1, 1))
    between = [
        *of("b", *batch(*WHOLE[:2])[:3]),
        *of("a", *batch((0, 0), failed=(0, 0))),
        *of("b", batch(*WHOLE[:2])[3]),
    ]
    assert found([*begun, *between, *of("b", *batch(*WHOLE[:2]))], settings=BATCHES) == back((1, 0), (1, 1))
