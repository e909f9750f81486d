"""Records of upgrades for tests, of literals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafka_trial.upgrade.availability import Availability, GroupAvailability, PartitionAvailability
from kafka_trial.upgrade.cluster_state import Loss
from kafka_trial.upgrade.coordinator_loads import CoordinatorLoad
from kafka_trial.upgrade.outcome import GO, NO_GO
from kafka_trial.upgrade.record import (
    BrokerRoll,
    NotTried,
    RecordedClient,
    RecordedConsumer,
    RecordedOutcome,
    RecordedPath,
    RecordedStage,
    ToldOfClient,
    UpgradeRecord,
)

FILES = {"verdict.json": "0" * 64}
CLAIM = {"delivery": "at-least-once", "order": "partition", "fenced": False}
ORDERS = RecordedConsumer("orders", "d1", CLAIM, ["python", "main.py"], {"librdkafka 2.16.1": ["orders-m0"]})
BILLING = RecordedConsumer("billing", "d2", CLAIM, ["java", "-jar", "billing.jar"])
SKIPPED = "skipped: record 5 of partition 0 was left out"
STAGES = [
    RecordedStage("before", "Kafka 3.9.2, a member killed", "3.9.2", 20.0, 40.0),
    RecordedStage("mixed-1", "1 of 3 brokers are 4.3.1", "4.3.1", 60.0, 60.0, [BrokerRoll(0, "4.3.1", 65.0, 0.8, 4.5)]),
    RecordedStage(
        *("rolled", "all brokers are 4.3.1, nothing is finalised", "4.3.1", 120.0, 50.0),
        rolls=[BrokerRoll(1, "4.3.1", 125.0, 1.0, 5.0), BrokerRoll(2, "4.3.1", 131.0, 3.1, None)],
    ),
]


def go(stage: str, subject: str, **changes: Any) -> RecordedOutcome:
    """Returns a go, of a consumer with the run folder that shows it."""
    shown = {"run": f"stages/{stage}/{subject}", "files": FILES} if subject else {}
    return RecordedOutcome(**{"stage": stage, "subject": subject, "outcome": GO, **shown, **changes})


ALL_GO = UpgradeRecord(
    before="3.9.2",
    after="4.3.1",
    seed=7,
    consumers=[ORDERS, BILLING],
    stages=STAGES,
    path=RecordedPath(
        ["kraft-3.3", "avoid"],
        "Reversible until metadata.version 4.0-IV1 or higher is finalised.",
        notes=["KAFKA-21117: …"],
    ),
    outcomes=[go(stage.name, subject) for stage in STAGES for subject in ("", "orders", "billing")],
    not_tried=[NotTried("finalised", "this rehearsal finalises no feature")],
    brokers=[0, 1, 2],
    began="2026-11-27T23:58:00Z",
    lasted_s=180.0,
    finalised_before={"metadata.version": 21},
    host="builder-3",
    kafka_trial="0.1.0",
    harness_digest="h1",
    commit={"commit": "a" * 40, "changed": 0, "untracked": 0},
)
TOO_OLD = RecordedClient(
    *("orders", "sarama 1.38.1", ["m0", "m1"]),
    told=[ToldOfClient("4.3.1", "rejected", "m0, m1 (sarama 1.38.1) each sends OffsetCommit v1, which 4.0 removed")],
)
CHANGED = "classic groups: a member rejoins (since 4.0; KIP-1)"
WITH_CLIENTS = replace(
    ALL_GO,
    clients=[TOO_OLD, RecordedClient("billing", "", ["m0"])],
    consumers=[replace(ORDERS, changes=[CHANGED]), BILLING],
)
CONVICTED = go("mixed-1", "orders", outcome=NO_GO, accused="consumer", reason=SKIPPED)


def with_outcome(record: UpgradeRecord, told: RecordedOutcome) -> UpgradeRecord:
    """Returns a record in which a stage came out otherwise."""
    place = (told.stage, told.subject)
    return replace(record, outcomes=[*(one for one in record.outcomes if (one.stage, one.subject) != place), told])


NO_GO_RECORD = replace(
    with_outcome(ALL_GO, CONVICTED), to_change=["orders: commit only what has been handled (skipped)"]
)
LOST = Loss("setting", "min.insync.replicas of t fell from 2 to 1")
ENDED_EARLY = replace(
    ALL_GO,
    stages=[*STAGES[:2], replace(STAGES[2], began_s=None, lasted_s=None, rolls=[])],
    outcomes=[one for one in ALL_GO.outcomes if one.stage != "rolled"],
)
COST = Availability(
    *("orders", 60.0, 100.0),
    group=GroupAvailability(
        "kt-group", 8.58, 0.26, 0.0, [0, 2], [CoordinatorLoad(2, 77.2, 3.279)], stretches=[(66.0, 74.6)]
    ),
    partitions=[
        PartitionAvailability(0, 9.1, 0.8, 8.7, 0.0, stretches=[(65.2, 73.9), (80.0, 81.5)]),
        PartitionAvailability(1, 5.4, 0.9, 5.2, 0.0, stretches=[(66.0, 71.2)]),
        PartitionAvailability(2),
    ],
    observed_every_s=3.32,
    controllers=[2, 1],
)
WITH_COST = replace(ALL_GO, stages=[STAGES[0], replace(STAGES[1], availability=[COST]), STAGES[2]])
