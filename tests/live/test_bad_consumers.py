"""Consumers that misbehave before any fault: each ends in the status the contract names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.errors import FAIL
from kafka_trial.registry import find_scenario
from kafka_trial.scenario import Limits
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

TOML = """
schema = 1
name = "{name}"
command = ["{{python}}", "main.py"]
members = 1
[env]
BOOTSTRAP = "{{bootstrap}}"
GROUP = "{{group}}"
TOPIC = "{{topics}}"
[stop]
within_s = 2
[claim]
delivery = "at-least-once"
"""
WORKING = """
import json, os, signal, sys
from confluent_kafka import Consumer
def say(name, **fields): print(json.dumps({"name": name, **fields}), flush=True)
def parts(ps): return [{"topic": p.topic, "partition": p.partition} for p in ps]
signal.signal(signal.SIGTERM, lambda *_: None if DEAF else sys.exit(0))
c = Consumer({"bootstrap.servers": os.environ["BOOTSTRAP"], "group.id": os.environ["GROUP"],
              "auto.offset.reset": "earliest", "enable.auto.commit": False})
c.subscribe([os.environ["TOPIC"]], on_assign=lambda _, ps: say("partitions_assigned", partitions=parts(ps)))
say("startup_complete")
EXTRA
uncommitted = None
while True:
    r = c.poll(0.1)
    if r is None and uncommitted: c.commit(asynchronous=False); uncommitted = None
    if r is None or r.error(): continue
    uncommitted = r
    where = {"topic": r.topic(), "partition": r.partition(), "offset": r.offset()}
    say("record_delivered", **where); say("record_processed", outcome="done", **where)
"""
NOISE = "sys.stdout.buffer.write(b'\\xff\\xfegarbage\\n' + b'x' * 100_000_000 + b'\\n'); sys.stdout.flush()"
PROGRAMS = {
    "exits": "raise SystemExit(3)",
    "idles": "import time\nwhile True: time.sleep(1)",
    "deaf": "DEAF = True\n" + WORKING.replace("EXTRA", ""),
    "noisy": "DEAF = False\n" + WORKING.replace("EXTRA", NOISE),
}


@pytest.fixture(scope="module")
def tried(kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    """Tries every one of them, side by side; by name."""
    quick = find_scenario(str(Path(__file__).with_name("quick.toml")))
    scenario = replace(quick, schedule=(), limits=Limits(ready_s=12, drain_s=5))
    asked = {}
    for name, program in PROGRAMS.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "consumer.toml").write_text(TOML.format(name=name))
        (folder / "main.py").write_text(program)
        asked[TrialRequest(make_trial_spec(scenario, folder / "consumer.toml", seed=1), folder / "run")] = name
    outcomes = {asked[one]: outcome for one, outcome in kafka_trial_session.try_many(list(asked))}
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, TrialOutcome)}


def test_one_that_exits_at_once_fails_beside_a_control_member(tried: dict[str, TrialOutcome]) -> None:
    """Status 1 with its exit in the first lines, for a control member of ours could join."""
    one = tried["exits"]
    assert (one.verdict.exit, "exited" in one.text, "status 3" in one.text) == (FAIL, True, True)


def test_one_that_never_joins_fails_beside_a_control_member(tried: dict[str, TrialOutcome]) -> None:
    """Status 1: it runs, but never got a partition, where a control member did."""
    one = tried["idles"]
    assert (one.verdict.exit, "never got a partition" in one.text) == (FAIL, True)


def test_one_that_never_stops_is_killed_and_fails(tried: dict[str, TrialOutcome]) -> None:
    """Status 1: it ignores its stop signal, is killed after its bound, and that is its only violation."""
    one = tried["deaf"]
    assert (one.verdict.exit, [violation.anomaly for violation in one.verdict.violations]) == (
        FAIL,
        ["unbounded-close"],
    )


def test_garbage_and_a_line_of_100_mb_become_events(tried: dict[str, TrialOutcome]) -> None:
    """Each bad line is an event that quotes at most 4 KB of it, and the trial goes on to its end."""
    events = list(tried["noisy"].folder.events())
    bad = [event for event in events if event.kind == "bad_line"]
    sizes = [event.details["size_bytes"] for event in bad]
    quoted = max(len(event.details["message"].encode()) for event in bad)
    handled = sum(event.kind == "processed" for event in events)
    assert (len(bad), max(sizes) >= 100_000_000, quoted <= 4096, handled > 0) == (2, True, True, True)
