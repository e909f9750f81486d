"""What to change with each client library, for anomalies where the library decides how: the one place of that advice.

Reports give the advice for the libraries that the brokers saw members use: by the name that a client sends with
ApiVersions (KIP-511), and for frameworks and for clients that send none by the client ids that they make up. What a
library is said to do was read in its documentation or source, which the comments name. `docs/anomalies.md` shows all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

JAVA, SPRING, CONNECT, STREAMS = "Java client", "Spring for Apache Kafka", "Kafka Connect", "Kafka Streams"
LIBRDKAFKA, FRANZ_GO, SARAMA = "librdkafka", "franz-go", "sarama"
KAFKAJS, AIOKAFKA, KAFKA_PYTHON = "kafkajs", "aiokafka", "kafka-python"

# Java client: the javadoc of KafkaConsumer ("Detecting Consumer Failures", "Manual Offset Control", "Multi-threaded
#   Processing", pause, close) and of ConsumerRebalanceListener, Kafka 4.3; ConsumerConfig, its assignors.
# Spring: its reference, "Message Listener Containers: Committing Offsets", "Manually Committing Offsets" (asyncAcks),
#   "Listener Container Properties", "Handling Exceptions" (DefaultErrorHandler), "Non-Blocking Retries: How the Pattern
#   Works", and the listing of ConsumerAwareRebalanceListener in "Rebalancing Listeners".
# Connect: the javadoc of SinkTask (put, preCommit, close); errors.tolerance in ConnectorConfig.
# Streams: "Developer Guide, DSL: Stateless transformations" (selectKey, groupBy: data re-partitioning); Kafka keeps
#   order within a partition only ("Introduction").
# librdkafka 2.16: INTRODUCTION.md "At-least-once processing", CONFIGURATION.md (max.poll.interval.ms,
#   partition.assignment.strategy, queued.min.messages, fetch.queue.backoff.ms), rdkafka.h (rd_kafka_offsets_store,
#   rd_kafka_assignment_lost, rebalance_cb).
# franz-go 1.22: pkg/kgo/config.go (BlockRebalanceOnPoll, AutoCommitMarks, GreedyAutoCommit, OnPartitionsRevoked,
#   OnPartitionsAssigned), consumer.go (AllowRebalance, PauseFetchPartitions), client.go (CloseAllowingRebalance).
# sarama 1.47: consumer_group.go (ConsumerGroup.Consume, Pause, ConsumerGroupSession, ConsumerGroupClaim), config.go.
# kafkajs 2.2.4: docs/Consuming.md (eachBatch, autoCommit, Pause & Resume), src/consumer/runner.js (heartbeat, stop).
# aiokafka 0.14: docs/consumer.rst ("Manual vs automatic committing", the warning on deadlocks), abc.py,
#   consumer/group_coordinator.py (no join while the member is idle for max_poll_interval_ms).
# kafka-python 3.0: consumer/group.py (commit, close), consumer/subscription_state.py (ConsumerRebalanceListener).

_COMMIT_AFTER_WORK: Final = {
    JAVA: "with `enable.auto.commit=true` (the default) finish all that `poll` returned before the next `poll` or "
    "`close`. If other threads do the work, set it to false, and call `commitSync(offsets)` with the offset after the "
    "last record that is done: without offsets it commits all that was returned.",
    SPRING: "the container commits when the listener returns (`AckMode.BATCH`, `RECORD`). A listener that hands work on"
    " needs `MANUAL` or `MANUAL_IMMEDIATE` with `asyncAcks=true`, and acknowledges each record when it is done.",
    CONNECT: "write in `put` or flush in `flush`; a task that buffers for longer overrides `preCommit` and returns only"
    " the offsets that are written: the default takes all that was put to be safe.",
    LIBRDKAFKA: "set `enable.auto.offset.store=false`, store the offset (`offsets_store()`, `store_offsets()`, "
    "`StoreOffset`) after the work, and leave `enable.auto.commit` on. By default the offset is stored when the record "
    "is handed to the application.",
    FRANZ_GO: "auto-commit covers what earlier polls returned. If goroutines still work on it at the next poll, use "
    "`AutoCommitMarks` and call `MarkCommitRecords` after the work, or `DisableAutoCommit` and `CommitRecords`. Do not "
    "use `GreedyAutoCommit`.",
    SARAMA: "call `MarkMessage` after the work. A mark covers all earlier records of the partition: if goroutines "
    "finish out of order, mark only up to the first record that is not done.",
    KAFKAJS: "in `eachBatch` set `eachBatchAutoResolve: false` and call `resolveOffset` after the work on each record; "
    "by default the whole batch is resolved when the function returns. In `eachMessage` await the work before "
    "returning.",
    AIOKAFKA: "auto-commit covers each record that the iterator or `getmany` returned, done or not. For batches and "
    "tasks set `enable_auto_commit=False` and call `commit({partition: offset + 1})` with what is done: without offsets"
    " it commits all that was returned.",
    KAFKA_PYTHON: "auto-commit covers what `poll` returned. If threads do the work, set `enable_auto_commit=False` and "
    "pass `commit()` the offsets of what is done.",
}
_GIVEN_BACK: Final = {
    JAVA: "finish or drop the work in `onPartitionsRevoked`, and commit there. In `onPartitionsLost`, which calls it by"
    " default, commit nothing: others may own the partitions.",
    SPRING: "work that was handed to other threads is awaited and acknowledged in "
    "`ConsumerAwareRebalanceListener.onPartitionsRevokedBeforeCommit`.",
    CONNECT: "in `close` finish or drop what was put for the partitions; nothing may write for them afterwards.",
    LIBRDKAFKA: "in the rebalance callback finish or drop the work and commit synchronously before (incremental) "
    "unassign. If `assignment_lost()` is true, do not commit. Storing an offset of a partition that is not assigned "
    "fails (`_STATE`): drop that record.",
    FRANZ_GO: "a rebalance may come at any time. With `BlockRebalanceOnPoll` it waits from a poll to `AllowRebalance`: "
    "commit, then allow. In `OnPartitionsLost` commit nothing.",
    SARAMA: "leave the loop of `ConsumeClaim` when `session.Context()` is done, and return only after its goroutines "
    "have ended. Do not mark through a session that has ended.",
    KAFKAJS: "await `heartbeat()` between the records of a batch, and let its error end the handler: it is thrown when "
    "the group rebalances.",
    AIOKAFKA: "finish or cancel the tasks of the partitions in `on_partitions_revoked`, and commit there: the member "
    "joins in the background, but waits for this callback.",
    KAFKA_PYTHON: "finish or drop the work in `on_partitions_revoked`, and commit there. In `on_partitions_lost` commit"
    " nothing.",
}
LIBRARY_ADVICE: Final[Mapping[str, Mapping[str, str]]] = {
    "skipped": _COMMIT_AFTER_WORK
    | {
        SPRING: "`DefaultErrorHandler` only logs a record that failed ten times, and goes on: give it a "
        "`DeadLetterPublishingRecoverer`. Besides, " + _COMMIT_AFTER_WORK[SPRING],
        CONNECT: "throw `RetriableException` from `put` to be given the records again; `errors.tolerance=all` skips "
        "records that fail. Besides, " + _COMMIT_AFTER_WORK[CONNECT],
        KAFKAJS: "let an error leave the handler: a record whose error was caught is resolved. Besides, "
        + _COMMIT_AFTER_WORK[KAFKAJS],
    },
    "commit-ahead": _COMMIT_AFTER_WORK,
    "zombie-commit": _GIVEN_BACK,
    "work-after-revoke": _GIVEN_BACK,
    "stuck-partition": {
        JAVA: "keep calling `poll` while partitions are paused, and `resume` them; a rebalance does not preserve what "
        "is paused.",
        SPRING: "with `asyncAcks=true` the container is paused until every record of the last poll is acknowledged: "
        "acknowledge failed ones too. It stops for good after authorization errors, unless `authExceptionRetryInterval`"
        " is set.",
        LIBRDKAFKA: "keep polling while partitions are paused: `max.poll.interval.ms` goes on counting. Store no "
        "offsets after a `seek`: it may interfere with resuming the partition.",
        FRANZ_GO: "partitions stay paused until they are resumed by the call that matches: `ResumeFetchTopics` does not"
        " undo `PauseFetchPartitions`. With `BlockRebalanceOnPoll` call `AllowRebalance` after every poll.",
        SARAMA: "partitions stay paused until `Resume` or `ResumeAll`. Where `Messages()` is not read for longer than "
        "`MaxProcessingTime`, the partition is not fetched until it is.",
        KAFKAJS: "call `resume` for what was paused, also when the handler throws.",
        AIOKAFKA: "hold no lock around `getmany` or `getone` that the rebalance listener waits for: they wait for the "
        "listener.",
    },
    "never-rejoined": {
        JAVA: "keep calling `poll`: the group is joined only inside it. To change to `CooperativeStickyAssignor` while "
        "members run, let every member list it beside the old assignor first, then remove the old one.",
        SPRING: "the container stops for good after authentication and authorization errors, unless "
        "`authExceptionRetryInterval` or `restartAfterAuthExceptions` is set.",
        LIBRDKAFKA: "do not mix eager and cooperative assignors in one group: stop all members to change from one to "
        "the other. Poll again after `_MAX_POLL_EXCEEDED`.",
        FRANZ_GO: "with `BlockRebalanceOnPoll` take few records with `PollRecords` and call `AllowRebalance` before the"
        " rebalance timeout. Do not call `Close` or `LeaveGroup` in an `OnPartitions…` callback: it waits for ever.",
        SARAMA: "call `Consume` in a loop: it returns at every rebalance.",
        KAFKAJS: "call `heartbeat()` in long handlers, and keep the event loop free.",
        AIOKAFKA: "a member that calls neither `getmany` nor `getone` for `max_poll_interval_ms` does not join again "
        "until it does.",
    },
    "reordered-key": {
        JAVA: "threads that take records from one queue finish in any order: give each key, or each partition, to one "
        "thread.",
        SPRING: "`@RetryableTopic` gives up the order: retry in place (`DefaultErrorHandler` with a back-off) where "
        "order matters.",
        STREAMS: "an operation that changes the key (`selectKey`, `map`, `groupBy`) sends records through a repartition"
        " topic. Order per new key holds only where its records came from one partition.",
        SARAMA: "`ConsumeClaim` runs once for each partition: goroutines that it starts finish in any order.",
        KAFKAJS: "await each record before the next; `partitionsConsumedConcurrently` keeps the order of a partition.",
    },
    "late-convergence": {
        LIBRDKAFKA: "with few `queued.min.messages` lower `fetch.queue.backoff.ms` too (1 s by default): a partition "
        "whose queue was full is not fetched for so long, and a backlog is worked off at about one queue a second.",
    },
    "unbounded-close": {
        JAVA: "end `poll` with `wakeup()`, then close; `close` waits 30 s by default, and can be given a shorter time.",
        SPRING: "set `stopImmediate=true` to stop after the current record; `shutdownTimeout` (10 s) bounds `stop()`, "
        "and under Spring Boot `spring.lifecycle.timeout-per-shutdown-phase` (30 s) does.",
        LIBRDKAFKA: "call `unsubscribe()` and poll until nothing is assigned, then `close()`.",
        FRANZ_GO: "with `BlockRebalanceOnPoll` use `CloseAllowingRebalance`: `Close` hangs after a poll that did not "
        "allow a rebalance. `LeaveGroupContext` with a canceled context leaves without waiting.",
        SARAMA: "cancel the context of `Consume`, and return from `ConsumeClaim` when `session.Context()` is done.",
        KAFKAJS: "`disconnect()` waits for the handler that runs: in `eachBatch` stop when `isRunning()` is false.",
        AIOKAFKA: "end your own tasks before `stop()`; `on_partitions_revoked` is not called before it, so commit "
        "first.",
        KAFKA_PYTHON: "give `close()` a `timeout_ms`; by default it is `request_timeout_ms`.",
    },
}

_FRAMEWORKS: Final = {  # of the Java client, by the client ids that Worker.java and StreamThread.java make up
    CONNECT: re.compile(r"connector-consumer-"),
    STREAMS: re.compile(r".*-StreamThread-\d+-"),
}
_NAMES: Final = {  # that clients give themselves; the languages' own start with confluent-kafka- or name rdkafka
    re.compile(r"confluent-kafka-|\S*rdkafka", re.IGNORECASE): LIBRDKAFKA,
    re.compile(r"kgo\b"): FRANZ_GO,
    re.compile(r"sarama\b", re.IGNORECASE): SARAMA,
    re.compile(r"kafka-python\b"): KAFKA_PYTHON,
}
_NAMELESS: Final = {  # the ids of clients that send no name, where the application does not set one
    re.compile(r"kafkajs"): KAFKAJS,
    re.compile(r"aiokafka"): AIOKAFKA,
}


def libraries_of(clients: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Returns the libraries that have advice among the clients: the names of software with their client ids.

    The name "" stands for clients that sent none. Spring cannot be told from the Java client that it uses.
    """
    found = [library for name, ids in sorted(clients.items()) for library in _recognised(name, ids)]
    return tuple(dict.fromkeys(found))


def library_advice(anomaly: str, libraries: Collection[str] | None = None) -> list[tuple[str, str]]:
    """Returns (library, what to change with it) for an anomaly: of these libraries, or of all that have advice."""
    known = LIBRARY_ADVICE.get(anomaly, {})
    return [(library, told) for library, told in known.items() if libraries is None or library in libraries]


def _recognised(name: str, client_ids: Collection[str]) -> list[str]:
    if name.startswith("apache-kafka-java"):
        framework = [library for library, made in _FRAMEWORKS.items() if any(map(made.match, client_ids))]
        return framework or [JAVA, SPRING]
    if name:
        return [library for pattern, library in _NAMES.items() if pattern.match(name)]
    return [library for pattern, library in _NAMELESS.items() if any(map(pattern.match, client_ids))]
