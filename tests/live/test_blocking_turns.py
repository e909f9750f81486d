"""Case 1 on real brokers: a run of large records behind blocking turns, and with one poll for all, side by side."""

from __future__ import annotations

import pytest

from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from lab.cases.blocking_turns import BLOCKED, CURE, HOT_RUN, BlockingTurnsCell, prediction, row_of

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

SLOW = BlockingTurnsCell(HOT_RUN, "1-record-1000ms")
CURED = BlockingTurnsCell(HOT_RUN, CURE)


@pytest.fixture(scope="module")
def tried(
    kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory
) -> dict[BlockingTurnsCell, TrialOutcome]:
    """Tries both."""
    place = tmp_path_factory.mktemp("blocking-turns")
    asked = {TrialRequest(cell.trial_spec(), place / cell.consumer_name): cell for cell in (SLOW, CURED)}
    tried = {asked[one]: outcome for one, outcome in kafka_trial_session.try_many(list(asked), side_by_side=2)}
    assert all(isinstance(outcome, TrialOutcome) for outcome in tried.values()), tried
    return {cell: outcome for cell, outcome in tried.items() if isinstance(outcome, TrialOutcome)}


def test_a_hot_partition_gets_one_record_a_turn(tried: dict[BlockingTurnsCell, TrialOutcome]) -> None:
    """As fast as the formula says, whatever it could do; the verdict says behind what its records wait."""
    row = row_of(SLOW, prediction(SLOW), tried[SLOW])
    assert row.verdict == "fail", row.reasons
    assert BLOCKED in row.violations
    assert row.ratio == pytest.approx(1.0, abs=0.25)


def test_one_poll_for_all_is_not_blocked(tried: dict[BlockingTurnsCell, TrialOutcome]) -> None:
    """The same run, and one record a fetch still: it is done as it comes."""
    row = row_of(CURED, prediction(CURED), tried[CURED])
    assert (row.verdict, row.blocked) == ("pass", 0), (row.violations, row.reasons)
    assert row.figures.drain_s is not None
