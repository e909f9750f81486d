"""Which function makes which table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_trial.model.commits import commits, falls
from kafka_trial.model.partition import Commits, Falls, Redeliveries, Unhandled
from kafka_trial.model.redeliveries import redeliveries
from kafka_trial.model.unhandled import unhandled

if TYPE_CHECKING:
    from kafka_trial.model.partition import Makers

MAKERS: Final[Makers] = {Commits: commits, Falls: falls, Redeliveries: redeliveries, Unhandled: unhandled}
