"""The stage in which features are finalised: by name, one after the other, each until all brokers answer its level.

A transaction is open across the change of transaction.version: it was begun by the old rules, and is committed by the
new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kafka_trial.cluster.versions import Release
from kafka_trial.compatibility.finalising import TRANSACTIONS, Raise, levels_to_raise
from kafka_trial.kafka_protocol.broker_features import BrokerFeatures
from kafka_trial.scenario import Step
from kafka_trial.upgrade.writers import WritersHandle

FAULT: Final = "finalise-feature"
HOLDS_S: Final = 2.0  # time for members and writers to meet the new level before the next one comes


def finalise_features(
    after: Release, features: Mapping[int, BrokerFeatures], play: Callable[[Step], None], writers: WritersHandle
) -> tuple[Raise, ...]:
    """Raises what brokers of a release finalise; returns what was raised, in its order.

    `features`: what each broker answers, by its id. `play` plays a step once, for the whole cluster, and raises where
    the step has no effect.

    Raises:
        UnjudgeableError: a broker is still of the version before, a level has no effect, or the writers cannot go on.
    """
    supported = {broker: told.supported for broker, told in features.items()}
    newest = max(features.values(), key=lambda told: told.epoch)
    raised = levels_to_raise(after, newest.finalized, supported)
    for one in raised:
        if one.feature == TRANSACTIONS:
            writers.open_transaction()
        play(Step(FAULT, "all", for_s=HOLDS_S, options={"feature": one.feature, "level": one.level}))
        if one.feature == TRANSACTIONS:
            writers.end_transaction()
    return raised
