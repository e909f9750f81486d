"""Case 0 on real brokers: one provocation, met without a cure and with one, side by side."""

from __future__ import annotations

import pytest

from kafka_trial.trial.session import Session, Trialed, TrialRequest
from lab.cases.stuck_partition import StuckPartitionCell
from lab.cases.stuck_partition_figures import figures_of

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="cases")]

SEED = 1


@pytest.fixture(scope="module")
def tried(kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trialed]:
    """Tries the provocation without a cure, and with one."""
    place = tmp_path_factory.mktemp("stuck-partition")
    cells = [StuckPartitionCell("frozen", cure, SEED) for cure in ("none", "one-at-a-time")]
    asked = {TrialRequest(cell.trial_spec(), place / cell.cure): cell.cure for cell in cells}
    tried = {asked[one]: outcome for one, outcome in kafka_trial_session.try_many(list(asked), side_by_side=2)}
    assert all(isinstance(outcome, Trialed) for outcome in tried.values()), tried
    return {cure: outcome for cure, outcome in tried.items() if isinstance(outcome, Trialed)}


def test_without_a_cure_the_false_lag_stands(tried: dict[str, Trialed]) -> None:
    """Frozen with an order in hand, its late commit falls; the load has ended, so that the lag stays."""
    verdict = tried["none"].verdict
    assert verdict.verdict == "fail", verdict.reasons
    assert {"commit-regression", "false-lag"} <= {one.anomaly for one in verdict.violations}
    assert all(fault.bit for fault in verdict.faults), verdict.faults
    assert figures_of(tried["none"].folder).done_twice > 0


def test_one_order_at_a_time_has_no_late_commit(tried: dict[str, Trialed]) -> None:
    """The same freeze: the member that wakes is refused, and nothing falls."""
    verdict = tried["one-at-a-time"].verdict
    assert verdict.verdict == "pass", (verdict.violations, verdict.reasons)
    assert all(fault.bit for fault in verdict.faults), verdict.faults
