"""Rolls: brokers of a running cluster of processes that are ended and started again with another version of Kafka.

In place, each on its own data, one at a time, the next one when every replica is in sync again ("wait for the broker to
rejoin the ISR", Kafka, Upgrading). A broker that does not come back ends the roll: nothing else is touched, and what it
wrote last is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.processes import Broker
from kafka_trial.errors import KafkaTrialError, UnjudgeableError
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from kafka_trial.cluster.booted import BootedCluster

EXIT_WITHIN_S = 30.0
BACK_WITHIN_S = 60.0


class BrokerLostError(KafkaTrialError):
    """A broker did not come back as the version that it was to become; with its last words."""


@dataclass(frozen=True)
class BrokerRestart:
    """One broker that was ended and came back: of which version it was, and is, and how long that took.

    `exit_s`: from SIGTERM to the end of its process; `registered_s` and `in_sync_s`: from SIGTERM until the controllers
    had it again, and until the ISR of every partition was whole. `controller` and `leads`: whether it was the active
    controller, and how many partitions of the offsets log it led, when it was ended.
    """

    broker: int
    before: str
    after: str
    exit_s: float
    registered_s: float
    in_sync_s: float
    controller: bool
    coordinates: int


def restart_as(cluster: BootedCluster, broker: Broker, version: str) -> BrokerRestart:
    """Ends a broker by SIGTERM, and starts it on its data as one of `version`; returns when all is in sync again.

    Raises:
        BrokerLostError: it did not end, did not register, or some replica is not in sync in time.
    """
    began_s, before = time.monotonic(), broker.version
    try:
        with Admin(cluster.observer_bootstrap) as admin:
            controller, coordinates = admin.controller() == broker.id, _coordinated_by(admin, broker.id)
        broker.terminate()
        wait_until(lambda: not broker.alive, within_s=EXIT_WITHIN_S, what=f"broker {broker.id} to end")
        exited_s = time.monotonic()
        broker.become(version)
        broker.start()
        with Admin(cluster.observer_bootstrap, answer_within_s=2) as admin:
            registered_s = _until(lambda: broker.id in admin.broker_ids(), broker, "to be registered")
            in_sync_s = _until(lambda: not admin.under_replicated(), broker, "to be in sync")
    except UnjudgeableError as error:
        raise BrokerLostError(
            f"broker {broker.id} did not come back from {before} as {version}: {error}; its last words: "
            f"{broker.last_words()}"
        ) from error
    return BrokerRestart(
        broker.id,
        before,
        version,
        exited_s - began_s,
        registered_s - began_s,
        in_sync_s - began_s,
        controller,
        coordinates,
    )


def _until(done: Callable[[], bool], broker: Broker, what: str) -> float:
    """Waits until it is so, as long as the broker runs; returns when that was."""

    def ended() -> str | None:
        return None if broker.alive else f"it ended with {broker.exit_code}"

    wait_until(
        lambda: _asked(done), within_s=BACK_WITHIN_S, what=f"broker {broker.id} {what}", alive=ended, every_s=0.1
    )
    return time.monotonic()


def _asked(done: Callable[[], bool]) -> bool:
    try:
        return done()
    except UnjudgeableError:  # whoever is asked may be the one that is away
        return False


def _coordinated_by(admin: Admin, broker: int) -> int:
    offsets = admin.describe(OFFSETS_TOPIC)
    return 0 if offsets is None else sum(part.leader == broker for part in offsets.partitions)
