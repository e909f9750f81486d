"""One file each for an anomaly, a fault, a suite and a consumer of a stranger's; and what they are called."""

from __future__ import annotations

from pathlib import Path

from kafka_trial.registry import CHECKOUT

ODD_RECORD = '''
from kafka_trial.anomalies.claim_rule import VIOLATION, Rule, on_the_partition, order_claimed
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.model.handlers import completions
from kafka_trial.model.table import table


def _small(claim, attributes):
    return ("tolerated", "a small one") if attributes["offset"] < 2 else VIOLATION


@invariant(
    "odd-record",
    family="ordering",
    needs=("work",),
    level="events",
    severity=1,
    rule=Rule(order_claimed, _small),
    message="record {offset} of {place} is odd",
    follows={"skipped": on_the_partition},
)
def odd_record(batch):
    """A record with an odd offset was handled. Nobody can help it.

    Smallest history: `processed` 1.

    Usual cause: Offsets are numbers.

    Remedy: Do not count.
    """
    rows = completions(batch)
    odd = rows.take(rows["offset"] % 2 == 1)
    found = table(slice=odd["slice"], order=odd["offset"], offset=odd["offset"])
    return Findings(found, [(odd["source"], odd["seq"])])
'''

NAP = '''
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.fault import fault


@fault("nap", targets=("member",), scope="members", heals=True, consequences=["freezes"])
def nap(injection):
    """A member sleeps a little."""
    before = injection.process("before")
    member = injection.member()
    try:
        injection.context.group.pause(member)
        yield evidence.paused(before, injection.hold(lambda: injection.process("inside")), [])
    finally:
        injection.context.group.resume(member)
'''

NAPPING = """
from kafka_trial.scenario import Load, Scenario, Step, Topic

SCENARIO = Scenario(
    name="napping",
    summary="a small load, one member sleeps",
    min_faults_s=2.0,
    brokers=1,
    topic=Topic(replication_factor=1, min_insync_replicas=1),
    load=Load(opening_burst=300, rate_per_s=100, steady_s=1.0),
    schedule=(Step("nap", "member", at_s=0.5, for_s=1.0),),
)
"""

MINE = CHECKOUT / "fixtures" / "reference" / "python-at-least-once"


def write_plugins(folder: Path) -> dict[str, Path]:
    """Writes the four files and returns them by what they hold."""
    files = {name: folder / f"{name}.py" for name in ("anomaly", "fault", "suite")}
    for file, text in zip(files.values(), (ODD_RECORD, NAP, NAPPING), strict=True):
        file.write_text(text)
    files["consumer"] = folder / "mine.toml"
    text = (MINE / "consumer.toml").read_text().replace('name = "python-at-least-once"', 'name = "mine"')
    files["consumer"].write_text(text.replace('"main.py"', f'"{MINE / "main.py"}"'))
    return files
