"""One member's network stands still for longer than its session; connections stay, nothing moves, then all does.

The load has flowed for so long by then that who takes a while over a record has a batch in hand, and more to do.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step

SCENARIO = Scenario(
    name="stalled-network",
    summary="one member's network stalled past its session",
    load=Load(steady_s=5),
    schedule=(Step("stall", "member", at_s=1, for_s=12),),
)


def test_stalled_network(trial: Trial) -> None:
    """Given a group at work, when one member's network stands still past its session, then the claim holds."""
    trial(SCENARIO).must_pass()
