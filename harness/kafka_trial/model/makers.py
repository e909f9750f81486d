"""Which function makes which table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_trial.model.commits import commits, falls
from kafka_trial.model.partition import Commits, Falls

if TYPE_CHECKING:
    from kafka_trial.model.partition import Makers

MAKERS: Final[Makers] = {Commits: commits, Falls: falls}
