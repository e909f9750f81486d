"""The committed sample of live trials: which consumers go through which suites on which Kafka in `make test`.

Pairwise: every reference in at least two suites, every suite with at least two references, three on 3.9.2; eight sins
in the suite their headers name, on and off. All take turns (`tiers.py`): `OFTEN` and the sins switched on every tenth
time. The whole zoo, on the whole grid, is `make calibrate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kafka_trial.errors import KafkaTrialError
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from lab.calibration import attempts as calibration
from lab.calibration.attempts import Attempt as Sampled
from lab.calibration.attempts import header_of

SEED = 20260101
SAMPLE_WITHIN_S = 45 * 60

OFTEN = (  # every tenth time: every suite; every client library with every protocol that it speaks; three on 3.9.2
    Sampled("python-at-least-once", "slow-network", "3.9.2"),
    Sampled("python-at-least-once/cooperative", "coordinator-lost"),
    Sampled("python-at-least-once/consumer-protocol", "rolling-restart"),
    Sampled("python-at-most-once", "member-paused", "3.9.2"),
    Sampled("python-at-most-once", "large-records"),
    Sampled("kafka-verifiable-consumer", "control", "3.9.2"),
    Sampled("kafka-python-at-least-once", "leader-lost"),
    Sampled("python-async-commit", "stalled-network"),
    Sampled("python-hand-off", "member-killed"),
    Sampled("aiokafka-long-orders", "rolling-deploy"),
    Sampled("python-batch-writers", "rebalance-storm"),
    Sampled("python-transactional", "aborted-records"),
    Sampled("python-known-invoices", "overtaken"),
    Sampled("aiokafka-long-orders", "hot-runs"),
    Sampled("kafka-verifiable-consumer/short-metadata", "partitions-added"),
    Sampled("python-upserts", "slow-handlers"),
    Sampled("python-retry-later/quiet", "failing-endpoint"),
    Sampled("python-dead-letters", "poison-record"),
    Sampled("kafka-python-whole-polls", "tombstones"),
    Sampled("aiokafka-long-orders", "down-too-long"),
    Sampled("python-batch-auto-commit/prompt", "cold-neighbour"),
    Sampled("python-joins-topics/prompt", "several-topics"),
    Sampled("python-async-commit/warm", "rogue-readers"),
    Sampled("python-at-least-once", "fail-over"),
    Sampled("python-at-least-once", "several-topics-killed"),
    Sampled("python-by-pattern/quiet", "topic-created"),
    Sampled("python-at-least-once", "remote-reads"),
    Sampled("kafka-python-at-least-once", "remote-reads-fail"),
    Sampled("kafka-verifiable-consumer/both-assignors", "member-killed"),
    Sampled("kafka-verifiable-consumer/cooperative", "rebalance-storm"),
)

BY_TURNS = (
    Sampled("python-at-most-once/consumer-protocol", "control"),
    Sampled("python-at-least-once/cooperative", "rebalance-storm"),
    Sampled("python-at-least-once/consumer-protocol", "member-paused"),
    Sampled("python-at-most-once", "leader-lost"),
    Sampled("python-at-most-once/cooperative", "stalled-network"),
    Sampled("python-at-most-once/cooperative", "control"),
    Sampled("python-at-most-once/consumer-protocol", "rebalance-storm"),
    Sampled("kafka-verifiable-consumer", "member-killed"),
    Sampled("kafka-python-at-least-once", "stalled-network"),
    Sampled("python-poll-and-work", "large-records"),
    Sampled("python-poll-and-work", "slow-network"),
    Sampled("python-poll-and-work/cooperative", "member-paused"),
    Sampled("python-poll-and-work/cooperative", "stalled-network"),
    Sampled("python-poll-and-work/consumer-protocol", "rebalance-storm"),
    Sampled("python-poll-and-work/consumer-protocol", "member-paused"),
    Sampled("python-worker-pool", "coordinator-lost"),
    Sampled("python-worker-pool", "rolling-restart"),
    Sampled("python-retry-later", "rolling-deploy"),
    Sampled("python-retry-later", "member-killed"),
    Sampled("kafka-python-whole-polls", "member-killed"),
    Sampled("kafka-python-whole-polls", "slow-network"),
    Sampled("python-async-commit/cooperative", "stalled-network"),
    Sampled("python-async-commit", "rebalance-storm"),
    Sampled("python-async-commit/cooperative", "member-paused"),
    Sampled("python-hand-off", "rebalance-storm"),
    Sampled("python-static-members", "rolling-deploy"),
    Sampled("python-static-members", "member-killed"),
    Sampled("python-warm-start", "control"),
    Sampled("python-warm-start", "member-paused"),
    Sampled("aiokafka-long-orders", "slow-network"),
    Sampled("python-batch-writers", "control"),
    Sampled("python-dead-letters", "control"),
    Sampled("python-dead-letters", "member-killed"),
    Sampled("python-eases-in", "overtaken"),
    Sampled("python-eases-in", "member-paused"),
    Sampled("python-fair-turns", "control"),
    Sampled("python-fair-turns", "slow-network"),
    Sampled("python-long-orders", "control"),
    Sampled("python-long-orders", "member-killed"),
    Sampled("python-renders-pages", "control"),
    Sampled("python-batch-auto-commit", "member-killed"),
    Sampled("python-batch-auto-commit/prompt", "control"),
    Sampled("python-forwards-topic", "several-topics"),
    Sampled("python-forwards-topic", "several-topics-killed"),
    Sampled("python-joins-topics/quiet", "several-topics-killed"),
    Sampled("python-joins-topics", "control"),
    Sampled("python-joins-topics", "member-killed"),
    Sampled("python-joins-topics/prompt", "control"),
    Sampled("python-at-least-once/cooperative", "several-topics-killed"),
    Sampled("python-at-least-once", "several-topics"),
    Sampled("python-batch-auto-commit", "rolling-deploy"),
    Sampled("python-by-pattern", "topic-created"),
    Sampled("python-by-pattern", "several-topics"),
    Sampled("python-by-pattern/quiet", "several-topics-killed"),
    Sampled("kafka-python-keeps-count", "rebalance-storm"),
    Sampled("kafka-python-keeps-count", "coordinator-lost"),
    Sampled("python-settles-commits", "member-paused"),
    Sampled("python-settles-commits", "coordinator-lost"),
    Sampled("python-asks-its-group", "rebalance-storm"),
    Sampled("python-asks-its-group", "coordinator-lost"),
    Sampled("python-transactional", "member-killed"),
    Sampled("python-transactional", "overtaken"),
    Sampled("kafka-python-at-least-once", "overtaken"),
    Sampled("python-known-invoices", "aborted-records"),
    Sampled("python-known-invoices", "stalled-network"),
    Sampled("python-upserts", "aborted-records"),
    Sampled("python-upserts", "rebalance-storm"),
    Sampled("python-postgres-upserts", "member-killed"),
    Sampled("python-postgres-upserts", "rebalance-storm"),
    Sampled("python-postgres-positions", "member-killed"),
    Sampled("python-postgres-positions/consumer-protocol", "member-paused"),
    Sampled("python-postgres-latest-orders", "member-paused"),
    Sampled("python-postgres-latest-orders/consumer-protocol", "rebalance-storm"),
    Sampled("python-postgres-newest-orders", "control"),
    Sampled("python-postgres-newest-orders", "member-paused"),
    Sampled("python-postgres-positions", "control"),
    Sampled("python-postgres-positions/consumer-protocol", "control"),
    Sampled("python-postgres-latest-orders", "control"),
    Sampled("python-postgres-latest-orders/consumer-protocol", "control"),
    Sampled("python-position-in-table", "aborted-records"),
    Sampled("python-position-in-table", "member-paused"),
    Sampled("python-position-in-table", "slow-handlers"),
    Sampled("python-upserts", "failing-endpoint"),
    Sampled("python-worker-pool", "poison-record"),
    Sampled("python-postgres-upserts", "tombstones"),
    Sampled("python-transactional", "down-too-long"),
    Sampled("kafka-python-at-least-once", "cold-neighbour"),
    Sampled("python-async-commit/cooperative", "rogue-readers"),
    Sampled("python-async-commit/warm", "cold-neighbour"),
    Sampled("kafka-verifiable-consumer", "fail-over"),
    Sampled("kafka-verifiable-consumer", "remote-reads"),
    Sampled("aiokafka-long-orders", "remote-reads-fail"),
    Sampled("python-renders-pages", "member-paused"),
    Sampled("python-at-least-once", "member-killed"),
    Sampled("python-at-least-once", "hot-runs"),
    Sampled("python-at-least-once/consumer-protocol", "partitions-added"),
    Sampled("kafka-verifiable-consumer/short-metadata", "control"),
    Sampled("kafka-verifiable-consumer/both-assignors", "control"),
    Sampled("kafka-verifiable-consumer/cooperative", "member-paused"),
    Sampled("python-static-members/consumer-protocol", "rolling-deploy"),
    Sampled("python-static-members/consumer-protocol", "control"),
)

SOUND = (*OFTEN, *BY_TURNS)


SINS = (
    "commits-backwards",
    "commits-before-processing",
    "commits-past-end",
    "drops-failed-record",
    "processes-after-revoke",
    "reorders-one-key",
    "skips-batch-on-rebalance",
    "stops-one-partition",
)


def sins(*, on: bool) -> list[Sampled]:
    """Returns the sampled sins in the suite their header names: switched on, or off."""
    headers = {name: header for name in SINS if (header := header_of(name)) is not None}
    return [Sampled(name, header.suite, sin=on) for name, header in headers.items()]


def asked(sampled: Sampled, folder: Path) -> TrialRequest:
    """Returns the trial to ask for, with the seed of the sample."""
    return calibration.ask(replace(sampled, seed=SEED), folder)


class Sample:
    """The sampled trials, begun in the background, and what became of each; `of` waits for one."""

    def __init__(
        self,
        thread_group: ThreadGroup,
        session: Session,
        questions: Mapping[TrialRequest, Sampled],
        *,
        retry_unknown: int = 0,
    ) -> None:
        self._crew = thread_group
        self._retry_unknown = retry_unknown
        self._session = session
        self._questions = questions
        self._done: dict[Sampled, TrialOutcome | KafkaTrialError] = {}
        thread_group.start("trials", self._run)

    def _run(self) -> None:
        for one, outcome in self._session.try_many(list(self._questions), retry_unknown=self._retry_unknown):
            self._done[self._questions[one]] = outcome

    def of(self, sampled: Sampled) -> TrialOutcome:
        """Returns one trial, judged; raises what kept it from being begun."""
        wait_until(
            lambda: sampled in self._done,
            within_s=SAMPLE_WITHIN_S,
            what=f"the trial {sampled}",
            every_s=0.2,
            alive=lambda: f"{self._crew.errors[0]}" if self._crew.errors else None,
        )
        outcome = self._done[sampled]
        if isinstance(outcome, KafkaTrialError):
            raise outcome
        return outcome
