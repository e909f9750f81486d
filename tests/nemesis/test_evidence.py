"""Evidence of faults, of the network and of processes, groups and brokers, judged from literal samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.samples import (
    ANSWERS,
    REQUESTS,
    BrokerReads,
    FeatureAnswer,
    FeatureSnapshot,
    GroupSnapshot,
    Half,
    Leader,
    LinkSnapshot,
    LogSnapshot,
    LogSpan,
    PageCacheSnapshot,
    Probe,
    ProcessSnapshot,
    RemoteReads,
    TopicSnapshot,
    flow,
)

SECOND = 1_000_000_000


def look(
    seconds: float,
    *,
    from_broker: int,
    to_client: int,
    from_client: int,
    to_broker: int,
    port: int = 40001,
    client: str = "m0",
    queue: int = 0,
) -> LinkSnapshot:
    """One connection of m0 through its proxy to broker 1, as the proxy's two sockets count it."""
    near = Half(client, 1, "client", port, from_client, to_client)
    far = Half(client, 1, "broker", port + 1000, from_broker, to_broker + 1, receive_queue_bytes=queue)  # + its SYN
    return LinkSnapshot(int(seconds * SECOND), (near, far))


BEFORE = look(0, from_broker=500, to_client=500, from_client=100, to_broker=100)
FLOWING = [
    look(1, from_broker=600, to_client=600, from_client=120, to_broker=120),
    look(2, from_broker=900, to_client=900, from_client=150, to_broker=150),
]
BOTH_HELD = [
    look(1, from_broker=600, to_client=500, from_client=120, to_broker=100),
    look(2, from_broker=900, to_client=500, from_client=150, to_broker=100),
]
ANSWERS_HELD = [
    look(1, from_broker=600, to_client=500, from_client=120, to_broker=120),
    look(2, from_broker=900, to_client=500, from_client=150, to_broker=150),
]
REQUESTS_HELD = [
    look(1, from_broker=600, to_client=600, from_client=120, to_broker=100),
    look(2, from_broker=600, to_client=600, from_client=150, to_broker=100),
]
QUEUED = [replace(one, halves=(one.halves[0], replace(one.halves[1], receive_queue_bytes=70))) for one in ANSWERS_HELD]
IDLE = [replace(BEFORE, time_ns=SECOND), replace(BEFORE, time_ns=2 * SECOND)]
AROUND = LinkSnapshot(0, ())
NEW_PORT = [look(2, from_broker=9, to_client=9, from_client=9, to_broker=9, port=40002)]


def answered(milliseconds: float) -> list[Probe]:
    return [Probe("m0", 1, milliseconds)]


def refused() -> list[Probe]:
    return [Probe("m0", 1, None, "refused")]


def reset() -> list[Probe]:
    return [Probe("m0", 1, None, "connection reset by peer")]


def test_flow_says_what_was_offered_passed_and_held() -> None:
    """A flow counts what reached the proxy, what left it, and what it holds, without the SYN's byte."""
    assert flow(*ANSWERS_HELD, ("m0", 1), ANSWERS).held_bytes == 400
    assert flow(*ANSWERS_HELD, ("m0", 1), REQUESTS).held_bytes == 0


@pytest.mark.parametrize(
    ("inside", "bit"), [(BOTH_HELD, True), (FLOWING, False), (ANSWERS_HELD, False), (IDLE, False), (NEW_PORT, False)]
)
def test_stall(inside: list[LinkSnapshot], bit: bool) -> None:
    """A stall bit when bytes were held and none passed either way; idle or flowing connections show nothing."""
    assert evidence.stall(BEFORE, inside, clients=["m0"]).took_effect is bit


@pytest.mark.parametrize(
    ("inside", "held", "bit"),
    [
        (ANSWERS_HELD, ANSWERS, True),
        (ANSWERS_HELD, REQUESTS, False),
        (REQUESTS_HELD, REQUESTS, True),
        (REQUESTS_HELD, ANSWERS, False),
        (BOTH_HELD, ANSWERS, False),
        (BOTH_HELD, REQUESTS, False),
        (FLOWING, ANSWERS, False),
        (FLOWING, REQUESTS, False),
        (IDLE, ANSWERS, False),
    ],
)
def test_one_way(inside: list[LinkSnapshot], held: str, bit: bool) -> None:
    """One direction is held only when the other is seen to pass."""
    assert evidence.one_way(BEFORE, inside, held=held, clients=["m0"]).took_effect is bit


def test_both_ways_held_is_not_one_way() -> None:
    """Answers that passed just before the injection do not show that they pass inside it."""
    earlier = look(-1, from_broker=400, to_client=400, from_client=90, to_broker=90)
    assert not evidence.one_way(earlier, [BEFORE, *BOTH_HELD], held=REQUESTS).took_effect


def test_one_way_with_a_probe_that_reached_the_broker() -> None:
    """A client that waits for its answer sends nothing more; an own request that passed shows the direction open."""
    waiting = [
        look(1, from_broker=600, to_client=500, from_client=120, to_broker=120),
        look(2, from_broker=900, to_client=500, from_client=120, to_broker=120),
    ]
    assert not evidence.one_way(BEFORE, waiting, held=ANSWERS).took_effect
    assert evidence.one_way(BEFORE, waiting, held=ANSWERS, probe_passed=frozenset({("m0", 1)})).took_effect


def test_half_open_drops_and_does_not_queue() -> None:
    """Half-open looks like held answers, with nothing waiting in any queue."""
    assert evidence.dropped(BEFORE, ANSWERS_HELD, lost=ANSWERS).took_effect
    assert not evidence.dropped(BEFORE, QUEUED, lost=ANSWERS).took_effect
    assert not evidence.dropped(BEFORE, FLOWING, lost=ANSWERS).took_effect


@pytest.mark.parametrize(
    ("probe_ms", "inside", "bit"),
    [(405, FLOWING, True), (12, FLOWING, False), (405, IDLE, False), (405, NEW_PORT, False)],
)
def test_latency(probe_ms: float, inside: list[LinkSnapshot], bit: bool) -> None:
    """Latency bit when the probe is slower, connections live and bytes flow."""
    seen = evidence.latency(BEFORE, inside, answered(5), answered(probe_ms), rise_ms=300, clients=["m0"])
    assert seen.took_effect is bit


SLOW = [
    look(1, from_broker=2000, to_client=600, from_client=120, to_broker=120),
    look(2, from_broker=2000, to_client=900, from_client=150, to_broker=150),
    look(3, from_broker=2000, to_client=1200, from_client=150, to_broker=150),
]


@pytest.mark.parametrize(("rate", "bit"), [(300, True), (480, True), (520, False), (160, False), (2000, False)])
def test_slow_link(rate: float, bit: bool) -> None:
    """A slow link shows its rate on a connection that had more to carry."""
    assert evidence.slow_link(BEFORE, SLOW, rate_bytes_per_s=rate, probes_inside=answered(9)).took_effect is bit


@pytest.mark.parametrize("under_way", [0, 1, 2])
def test_slow_link_was_full_all_along(under_way: int) -> None:
    """A look that met bytes under way, between others that met none, shows nothing, whatever the rate."""
    sent = [600, 900, 1200]
    looks = [
        look(1 + n, from_broker=2000 if n == under_way else sent[n], to_client=sent[n], from_client=9, to_broker=9)
        for n in range(3)
    ]
    seen = evidence.slow_link(BEFORE, looks, rate_bytes_per_s=300, probes_inside=answered(9))
    assert (seen.took_effect, seen.message) == (False, "no more was offered than the link carries: nothing to slow")


def test_slow_link_needs_more_offered_than_it_carries() -> None:
    """An unsaturated link was not slowed."""
    assert not evidence.slow_link(BEFORE, FLOWING, rate_bytes_per_s=300, probes_inside=answered(9)).took_effect


@pytest.mark.parametrize(
    ("inside", "probes", "bit"),
    [
        ([AROUND], reset(), True),
        (NEW_PORT, reset(), True),
        (NEW_PORT, answered(5), False),
        (FLOWING, reset(), False),
        (IDLE, reset(), False),
    ],
)
def test_closed(inside: list[LinkSnapshot], probes: list[Probe], bit: bool) -> None:
    """Close bit when the connections are gone, and a new one does not last either."""
    assert evidence.closed(BEFORE, inside, probes, clients=["m0"]).took_effect is bit


def test_closing_one_connection_of_two_is_not_closing_all() -> None:
    """A connection that goes on carrying bytes shows that the closed one ended for a reason of its own."""
    two = LinkSnapshot(
        0, BEFORE.halves + look(0, from_broker=9, to_client=9, from_client=9, to_broker=9, port=40002).halves
    )
    assert not evidence.closed(two, FLOWING, reset()).took_effect


def test_refusing_on_one_route_of_two_is_not_refusing() -> None:
    """Every route that is probed has to refuse."""
    assert not evidence.refused(BEFORE, [AROUND], [*refused(), Probe("m0", 2, 5.0)]).took_effect


@pytest.mark.parametrize(
    ("inside", "probes", "bit"),
    [([AROUND], refused(), True), ([AROUND], answered(5), False), (IDLE, refused(), False), ([AROUND], [], False)],
)
def test_refused(inside: list[LinkSnapshot], probes: list[Probe], bit: bool) -> None:
    """Refused means: no connection kept and the probe is refused."""
    assert evidence.refused(BEFORE, inside, probes, clients=["m0"]).took_effect is bit


def test_a_client_around_its_proxy_leaves_nothing_to_bite() -> None:
    """A target without a live connection through its proxies is never bitten, whatever probes say."""
    found = [
        evidence.latency(AROUND, [AROUND, AROUND], answered(5), answered(900), rise_ms=300),
        evidence.stall(AROUND, [AROUND, AROUND]),
        evidence.one_way(AROUND, [AROUND, AROUND], held=ANSWERS, probe_passed=frozenset({("m0", 1)})),
        evidence.slow_link(AROUND, [AROUND, AROUND], rate_bytes_per_s=300),
        evidence.closed(AROUND, [AROUND], reset()),
        evidence.refused(AROUND, [AROUND], refused()),
    ]
    assert [(one.took_effect, one.message) for one in found] == [(False, evidence.NO_CONNECTION)] * len(found)


def test_every_client_named_must_be_reached() -> None:
    """A fault on all clients that reached only one of them is not proven, and says whom it missed."""
    seen = evidence.stall(BEFORE, BOTH_HELD, clients=["m0", "m1"])
    assert (seen.took_effect, seen.details["unreached"]) == (False, ["m1"])


def test_traffic_again_on_new_connections() -> None:
    """Traffic counts on kept and on new connections, and both ways."""
    assert evidence.traffic_again(BEFORE, NEW_PORT[0], each=["m0"])
    assert evidence.traffic_again(BEFORE, FLOWING[-1], each=["m0"])
    assert not evidence.traffic_again(BEFORE, IDLE[-1])
    assert not evidence.traffic_again(BEFORE, FLOWING[-1], each=["m0", "m1"])


RUNS = ProcessSnapshot(0, 77, states=("S",), cpu_s=1.0, sockets=3)
STOPPED = replace(RUNS, states=("T",))
GONE = ProcessSnapshot(0, 77, exit_code=-9)


@pytest.mark.parametrize(
    ("inside", "bit"),
    [
        ([STOPPED, STOPPED], True),
        ([RUNS, RUNS], False),
        ([STOPPED, replace(STOPPED, states=("T", "S"))], False),
        ([STOPPED, replace(STOPPED, cpu_s=1.2)], False),
        ([GONE, GONE], False),
    ],
)
def test_paused(inside: list[ProcessSnapshot], bit: bool) -> None:
    """A pause bit when every process of the group is stopped and its CPU time stands still."""
    assert evidence.paused(RUNS, inside).took_effect is bit


@pytest.mark.parametrize(
    ("before", "after", "bit"),
    [
        (RUNS, GONE, True),
        (RUNS, RUNS, False),
        (RUNS, replace(GONE, exit_code=1), False),
        (RUNS, replace(GONE, sockets=2), False),
        (GONE, GONE, False),
    ],
)
def test_killed(before: ProcessSnapshot, after: ProcessSnapshot, bit: bool) -> None:
    """A kill bit when the target itself ended by signal 9 and its sockets are gone."""
    assert evidence.killed(before, after).took_effect is bit


@pytest.mark.parametrize(("exit_code", "bit"), [(0, True), (143, True), (-15, True), (-9, False), (None, False)])
def test_terminated(exit_code: int | None, bit: bool) -> None:
    """A termination is an exit that no signal 9 caused."""
    assert evidence.terminated(RUNS, replace(GONE, exit_code=exit_code)).took_effect is bit


def test_replaced() -> None:
    """A restart shows as another process that runs."""
    assert evidence.replaced(RUNS, replace(RUNS, pid=78)).took_effect
    assert not evidence.replaced(RUNS, RUNS).took_effect


G1 = GroupSnapshot(0, 4, frozenset({"a", "b"}), 2)


@pytest.mark.parametrize(
    ("after", "change", "bit"),
    [
        (GroupSnapshot(1, 5, frozenset({"a", "b", "c"})), 1, True),
        (GroupSnapshot(1, 5, frozenset({"a"})), -1, True),
        (GroupSnapshot(1, 5, frozenset({"a"})), 1, False),
        (GroupSnapshot(1, 5, frozenset({"a", "b", "c"})), -1, False),
        (G1, 1, False),
    ],
)
def test_rebalanced(after: GroupSnapshot, change: int, bit: bool) -> None:
    """A forced rebalance shows in the offsets log: a later epoch, and the members it was about."""
    assert evidence.rebalanced(G1, [after], members_change=change).took_effect is bit


LED_BY_1 = TopicSnapshot(0, (Leader(0, 1, 3, (1, 2, 3)), Leader(1, 2, 3, (1, 2, 3))), coordinator=2, controller=3)
LED_BY_2 = TopicSnapshot(0, (Leader(0, 2, 4, (2, 3)), Leader(1, 2, 3, (2, 3))), coordinator=2, controller=3)
DOWN = Evidence(True, "process 9 ended by signal 9")


@pytest.mark.parametrize(
    ("role", "bit"), [("partition 0", True), ("partition 1", False), ("coordinator", False), ("controller", False)]
)
def test_broker_down_moves_its_role(role: str, bit: bool) -> None:
    """A broker's loss is shown by its process and by its role moving away; other roles prove nothing."""
    assert evidence.broker_down(DOWN, LED_BY_1, [LED_BY_1, LED_BY_2], 1, role=role).took_effect is bit


def test_broker_down_by_a_bystander() -> None:
    """Nothing moved, or the process lives: not bitten."""
    assert not evidence.broker_down(DOWN, LED_BY_1, [LED_BY_1], 1, role="partition 0").took_effect
    alive = Evidence(False, "it still runs")
    assert not evidence.broker_down(alive, LED_BY_1, [LED_BY_2], 1, role="partition 0").took_effect


def test_moved_names_what_the_broker_lost() -> None:
    """Leaders that moved before an epoch rose, or to nobody, are no move."""
    nobody = replace(LED_BY_2, leaders=(Leader(0, -1, 4, ()),), coordinator=None)
    assert evidence.moved(LED_BY_1, [LED_BY_2], 1) == {"partition 0": "epoch 3 → broker 2 epoch 4"}
    stale = replace(LED_BY_1, leaders=(Leader(0, 2, 3, (2, 3)),))
    assert evidence.moved(LED_BY_1, [nobody, stale], 1) == {}
    assert evidence.moved(LED_BY_1, [replace(LED_BY_1, coordinator=3)], 2) == {"coordinator": "→ broker 3"}


def test_leader_moved() -> None:
    """A leader move shows as another broker in a later epoch."""
    assert evidence.leader_moved(LED_BY_1, [LED_BY_2], 0).took_effect
    assert not evidence.leader_moved(LED_BY_1, [LED_BY_1], 0).took_effect
    assert not evidence.leader_moved(LED_BY_1, [], 0).took_effect


def test_isr_whole_again() -> None:
    """The ISR is whole when the broker is back wherever it was before."""
    assert evidence.isr_whole(LED_BY_1, 1, LED_BY_1)
    assert not evidence.isr_whole(LED_BY_2, 1, LED_BY_1)


def logs(*starts: int) -> LogSnapshot:
    return LogSnapshot(0, tuple(LogSpan(partition, start, 9) for partition, start in enumerate(starts)))


@pytest.mark.parametrize(
    ("before", "inside", "bit"),
    [
        (logs(0, 2), [logs(0, 2), logs(5, 5)], True),
        (logs(0, 5), [logs(5, 5)], True),  # of the other partition nothing was left to delete
        (logs(0, 2), [logs(6, 5)], True),  # somebody else deletes too
        (logs(0, 2), [logs(5, 2)], False),  # one partition kept its records
        (logs(0, 2), [logs(5, 5), logs(0, 5)], False),  # it came back
        (logs(5, 5), [logs(5, 5)], False),  # there was nothing to delete
        (logs(0, 2), [logs(5)], False),  # its leader did not answer
        (logs(0, 2), [], False),
    ],
)
def test_records_deleted(before: LogSnapshot, inside: list[LogSnapshot], bit: bool) -> None:
    """Deleted are records where every log starts as far on as it was to, and one at least had started before."""
    assert evidence.records_deleted(before, inside, {0: 5, 1: 5}).took_effect is bit


def cached(*cached_bytes: int, read: int = 0, size_bytes: int = 20_000_000, error: str = "") -> PageCacheSnapshot:
    """How much of their rolled segments brokers have in memory, and have read from disks."""
    brokers = (BrokerReads(broker, 20, size_bytes, held, read) for broker, held in enumerate(cached_bytes))
    return PageCacheSnapshot(0, tuple(brokers), {"b2": error} if error else {})


@pytest.mark.parametrize(
    ("cold", "inside", "consumed_bytes", "message"),
    [
        (cached(0, 0), [cached(2_000_000, 0, read=1_500_000)], 9, "a neighbour consumed 9 bytes"),
        (cached(0, 0, error="EPERM"), [], 9, "cannot be seen here (b2: EPERM)"),
        (
            cached(0, 0),
            [cached(2_000_000, 0, read=9_000_000, error="ENOSYS")],
            9,
            "cannot be seen here (b2: ENOSYS)",
        ),
        (cached(0, 0, size_bytes=0), [], 9, "no partition has a rolled segment"),
        (cached(9_000_000, 0), [], 9, "stayed in memory, 9000000 of 40000000 bytes"),
        (cached(0, 0), [cached(2_000_000, 0, read=1_500_000)], 0, "the neighbour consumed no record"),
        (cached(0, 0), [cached(0, 0, read=9_000_000)], 9, "nobody read them"),
        (cached(0, 0), [], 9, "nobody read them"),
        (
            cached(0, 0),
            [cached(2_000_000, 0, read=499_999)],
            9,
            "next to nothing from a disk (999998 bytes",
        ),
        (cached(0, 0), [cached(9_000_000, 0, read=2_000_000)], 9, "next to nothing from a disk"),
    ],
)
def test_cold_reads(
    cold: PageCacheSnapshot, inside: list[PageCacheSnapshot], consumed_bytes: int, message: str
) -> None:
    """Rolled segments were out of memory, and came back from a disk while somebody read."""
    found = evidence.cold_reads(cold, inside, consumed_bytes=consumed_bytes)
    assert (found.took_effect, message in found.message) == (message.startswith("a neighbour"), True), found


def test_a_broker_that_was_started_anew_counts_from_there() -> None:
    """What its process had read before is gone with it."""
    assert cached(0, 0, read=700).disk_read_since(cached(0, 0, read=900)) == 1400


def test_remote_only_records_are_below_the_local_log_and_above_the_start_of_the_whole() -> None:
    """What was deleted meanwhile is in no tier; what came before the members stopped does not count."""
    ends = LogSnapshot(0, (LogSpan(0, 0, 5), LogSpan(1, 0, 8), LogSpan(2, 0, 3)))
    assert evidence.remote_only_records(ends, logs(7, 8, 9), logs(0, 0, 6)) == {0: 2, 2: 3}
    assert evidence.remote_only_records(ends, logs(7, 8, 9), logs(7, 8, 9)) == {}


@pytest.mark.parametrize(
    ("remote", "read", "failed", "told", "message"),
    [
        ({0: 2}, 3, 0, {}, "2 records were in the remote tier alone when the members came back"),
        ({0: 2}, 0, 0, {}, "and no broker tells of a read there"),
        ({0: 2}, 3, 4, {"hidden": 9}, "4 reads of it failed"),
        ({0: 2}, 3, 0, {"hidden": 9}, "and no read of it failed"),
        ({0: 2}, 3, 0, {"stayed_away": False}, "a member was there before its records had left"),
        ({}, 0, 0, {}, "still in the local logs of the brokers"),
        ({0: 2}, 3, 0, {"slow": True, "waited_s": 2.5}, "; a broker waited 2.5 s between two of its 3 reads there"),
        ({0: 2}, 3, 0, {"slow": True, "waited_s": 1.5}, "; at most a broker waited 1.5 s"),
    ],
    ids=["read", "nobody read", "failed", "none failed", "a member was there", "nothing left", "slow", "not slow"],
)
def test_remote_reads(remote: dict[int, int], read: int, failed: int, told: dict[str, Any], message: str) -> None:
    """Brokers say in their logs that they read there, or failed to."""
    told = {"stayed_away": True} | told
    reads = RemoteReads(read, failed, longest_wait_s=told.pop("waited_s", 0.0))
    found = evidence.remote_reads(remote, reads, **told)
    sound = message.startswith(("2 records", "4 reads", "; a broker waited"))
    assert (found.took_effect, message in found.message) == (sound, True), found


def test_partitions_added() -> None:
    """The topic has more of them, and the leader of each answers."""
    more = replace(LED_BY_1, leaders=(*LED_BY_1.leaders, Leader(2, 3, 0, (1, 2, 3))))
    leaderless = replace(LED_BY_1, leaders=(*LED_BY_1.leaders, Leader(2, -1, 0, ())))
    assert evidence.partitions_added(LED_BY_1, [LED_BY_1, more], logs(0, 0, 0)).took_effect
    assert not evidence.partitions_added(LED_BY_1, [more], logs(0, 0)).took_effect
    assert not evidence.partitions_added(LED_BY_1, [leaderless], logs(0, 0, 0)).took_effect
    assert not evidence.partitions_added(LED_BY_1, [LED_BY_1], logs(0, 0)).took_effect
    assert not evidence.partitions_added(TopicSnapshot(0), [more], logs(0, 0, 0)).took_effect
    assert not evidence.partitions_added(LED_BY_1, [], logs(0, 0)).took_effect


def test_topic_created() -> None:
    """It was not there, and now has records in every partition that a broker leads."""
    before, empty = TopicSnapshot(0), LogSnapshot(0, (LogSpan(0, 0, 9), LogSpan(1, 0, 0)))
    assert evidence.topic_created(before, [before, LED_BY_1], logs(0, 0)).took_effect
    assert not evidence.topic_created(LED_BY_1, [LED_BY_1], logs(0, 0)).took_effect
    assert not evidence.topic_created(before, [before], logs()).took_effect
    assert not evidence.topic_created(before, [], logs()).took_effect
    assert not evidence.topic_created(before, [LED_BY_1], empty).took_effect


@pytest.mark.parametrize(
    ("after", "asked", "bit", "said"),
    [
        (ProcessSnapshot(2, 8, ("S",)), [("JOIN_GROUP", 0)], True, "asked to join the group (JOIN_GROUP answered 0)"),
        (
            ProcessSnapshot(2, 8, ("S",)),
            [("JOIN_GROUP", 79), ("JOIN_GROUP", 23), ("JOIN_GROUP", 23)],
            True,
            "asked to join the group (JOIN_GROUP answered 23/79)",
        ),
        (ProcessSnapshot(2, 8, (), exit_code=1), [("JOIN_GROUP", 23)], True, "asked to join the group"),
        (ProcessSnapshot(2, 8, (), exit_code=1), [], True, "exited with 1 before it joined"),
        (ProcessSnapshot(2, 8, ("S",)), [], False, "runs, and no broker saw its client join"),
        (ProcessSnapshot(2, 7, ("S",)), [("HEARTBEAT", 0)], False, "was not replaced by one of new"),
        (ProcessSnapshot(2, 8), [], False, "was not replaced by one of new"),
    ],
    ids=["joined", "refused", "refused, and ended", "ended", "never asked", "the old one", "nobody"],
)
def test_a_client_was_moved_when_brokers_heard_of_it(
    after: ProcessSnapshot, asked: list[tuple[str, int]], bit: bool, said: str
) -> None:
    """Another process, and its join, whatever the answer was; one that ends by itself shows what it is worth."""
    found = evidence.moved_client(ProcessSnapshot(1, 7, ("S",)), after, asked, consumer="new")
    assert (found.took_effect, said in found.message) == (bit, True), found.message


def levels(*told: int | None) -> FeatureSnapshot:
    """What brokers 0, 1, … answer for a feature; None: no answer."""
    answers = [FeatureAnswer(broker, level, 7) for broker, level in enumerate(told) if level is not None]
    return FeatureSnapshot(0, "group.version", tuple(answers))


@pytest.mark.parametrize(
    ("before", "inside", "bit", "message"),
    [
        (levels(0, 0), [levels(0, 1), levels(1, 1)], True, "all brokers answer group.version 1, which was at 0"),
        (levels(2, 2), [levels(1, 1)], True, "all brokers answer group.version 1, which was at 2"),
        (levels(0, None), [levels(1, 1)], True, "all brokers answer group.version 1, which was at 0"),
        (
            levels(0, 0),
            [levels(1, 0)],
            False,
            "group.version 1 is not what all brokers answer: broker 1 answers 0",
        ),
        (
            levels(0, 0),
            [levels(1, 1), levels(None, 0)],
            False,
            "group.version 1 is not what all brokers answer: broker 0 does not answer, 1 answers 0",
        ),
        (
            levels(0, 0),
            [],
            False,
            "group.version 1 is not what all brokers answer: broker 0 does not answer, 1 does not answer",
        ),
        (levels(1, 1), [levels(1, 1)], False, "group.version was at 1 before, as far as brokers answered"),
        (levels(None, None), [levels(1, 1)], False, "group.version was at 1 before, as far as brokers answered"),
    ],
    ids=["raised", "lowered", "one was silent", "one is late", "one fell", "no look", "it was so", "nobody said"],
)
def test_feature_finalised(before: FeatureSnapshot, inside: list[FeatureSnapshot], bit: bool, message: str) -> None:
    """Finalised is a level that every broker answers, and that one of them did not answer before."""
    seen = evidence.feature_finalised(before, inside, 1, brokers=[0, 1])
    assert (seen.took_effect, seen.message) == (bit, message)
