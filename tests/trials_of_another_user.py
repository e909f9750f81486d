"""What `test_without_root.py` runs as another user.

trials_of_another_user.py try OUT     tries an example team's image on each suite, as it is and with injections that do
                                      nothing, and prints what came out
trials_of_another_user.py boot        boots a cluster of containers, prints a line, and keeps it until stdin ends
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kafka_trial import registry
from kafka_trial.cluster.containers import container_cluster
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.containers.container import Container
from kafka_trial.scenario import Scenario, Step
from kafka_trial.trial.session import Session, TrialOutcome
from kafka_trial.trial.spec import make_trial_spec

SUITES = tuple(registry.find_scenario(name) for name in ("member-paused", "member-killed", "stalled-network"))
AT_ONCE = Scenario(  # the faults of the suites, each on a member of its own: what does nothing needs no turns
    "at-once",
    schedule=(
        Step("pause", "member:0", at_s=1, for_s=3),
        Step("kill", "member:1", at_s=1, for_s=3),
        Step("stall", "member:2", at_s=1, for_s=3),
    ),
)
CONSUMER = registry.CHECKOUT / "fixtures" / "images" / "python-orders" / "consumer.toml"


def main(then: str, *arguments: str) -> None:
    """Does what the arguments say."""
    if then == "boot":
        with container_cluster(DEFAULT_VERSION) as cluster:
            print(json.dumps({"folder": str(cluster.folder), "health": cluster.health()}), flush=True)
            sys.stdin.read()
        return
    out = Path(arguments[0])
    with Session() as session:
        as_it_is = tried(session, SUITES, out / "as-it-is", retry_unknown=1)
        with without_injections():
            sabotaged = tried(session, [AT_ONCE], out / "sabotaged", retry_unknown=0)
    print(json.dumps({"user": os.getuid(), "rights": _rights(), "as it is": as_it_is, "sabotaged": sabotaged}))


def tried(session: Session, scenarios: Sequence[Scenario], out: Path, *, retry_unknown: int) -> dict[str, Any]:
    """Returns what came out of a trial of each scenario, one after the other on one cluster."""
    specs = {scenario.name: make_trial_spec(scenario, CONSUMER, seed=1) for scenario in scenarios}
    return {
        name: _table(session.try_spec(spec, out=out / name, retry_unknown=retry_unknown))
        for name, spec in specs.items()
    }


def _table(trial_outcome: TrialOutcome) -> dict[str, Any]:
    verdict = trial_outcome.verdict
    faults = [[fault.kind, fault.bit, fault.evidence] for fault in verdict.faults]
    return {
        "verdict": verdict.verdict,
        "reasons": verdict.reasons,
        "faults": faults,
        "folder": str(trial_outcome.folder.path),
    }


@contextmanager
def without_injections() -> Iterator[None]:
    """Has pauses, kills and toxics do nothing, and say that they did."""
    injections = ((Container, "_freeze"), (Container, "kill"), (Toxiproxy, "add_toxic"))
    patches = [patch.object(owner, name, lambda *_, **__: None) for owner, name in injections]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def _rights() -> str:
    """Returns the capabilities of this process, as the kernel writes them."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in status if line.startswith("CapEff:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
