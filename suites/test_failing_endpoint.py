"""The service that handlers call refuses everything (503) for six seconds, then is well again.

Nothing is done meanwhile, and handlers are told so. Three quick tries are over long before that. Whoever claims that
records are handled must wait, or come back to them; a member that ends its process over it is not started again.
"""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Load, Scenario, Step

SCENARIO = Scenario(
    name="failing-endpoint",
    summary="every effect refused (503) for six seconds, then taken again",
    load=Load(rate_per_s=200),
    schedule=(Step("handler-failing", "all", at_s=1, for_s=6),),
    min_faults_s=9,
)


def test_failing_endpoint(trial: Trial) -> None:
    """Given three members at work, when the service that they call is not there for a while, then the claim holds."""
    trial(SCENARIO).must_pass()
