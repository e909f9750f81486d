"""Consumers that misbehave before any fault: each ends in the status the contract names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.errors import FAIL
from kafka_trial.registry import find_scenario
from kafka_trial.scenario import Limits, Scenario
from kafka_trial.session import Session, Trialed

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

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
while True:
    r = c.poll(0.1)
    if r is None or r.error(): continue
    where = {"topic": r.topic(), "partition": r.partition(), "offset": r.offset()}
    say("record_delivered", **where); say("record_processed", outcome="done", **where)
    if r.offset() % 100 == 99: c.commit(r)
"""


def test_one_that_exits_at_once_fails_beside_a_control_member(kafka_trial_session: Session, tmp_path: Path) -> None:
    """Status 1 with its exit in the first lines, for a control member of ours could join."""
    trialed = _try(kafka_trial_session, tmp_path, "exits", "raise SystemExit(3)")
    assert (trialed.verdict.exit, "exited" in trialed.text, "status 3" in trialed.text) == (FAIL, True, True)


def test_one_that_never_joins_fails_beside_a_control_member(kafka_trial_session: Session, tmp_path: Path) -> None:
    """Status 1: it runs, but never got a partition, where a control member did."""
    trialed = _try(kafka_trial_session, tmp_path, "idles", "import time\nwhile True: time.sleep(1)")
    assert (trialed.verdict.exit, "never got a partition" in trialed.text) == (FAIL, True)


def test_one_that_never_stops_is_killed_and_fails(kafka_trial_session: Session, tmp_path: Path) -> None:
    """Status 1: it ignores its stop signal, is killed after its bound, and that is a violation."""
    trialed = _try(kafka_trial_session, tmp_path, "deaf", "DEAF = True\n" + WORKING.replace("EXTRA", ""))
    assert (trialed.verdict.exit, "did not stop" in trialed.text) == (FAIL, True)


def test_garbage_and_a_line_of_100_mb_become_events(kafka_trial_session: Session, tmp_path: Path) -> None:
    """Each bad line is an event that quotes at most 4 KB of it, and the trial goes on to its end."""
    noise = "sys.stdout.buffer.write(b'\\xff\\xfegarbage\\n' + b'x' * 100_000_000 + b'\\n'); sys.stdout.flush()"
    trialed = _try(kafka_trial_session, tmp_path, "noisy", "DEAF = False\n" + WORKING.replace("EXTRA", noise))
    bad = [event for event in trialed.folder.events() if event.kind == "bad_line"]
    sizes = [event.details["size_bytes"] for event in bad]
    quoted = max(len(event.details["message"].encode()) for event in bad)
    handled = sum(event.kind == "processed" for event in trialed.folder.events())
    assert (len(bad), max(sizes) >= 100_000_000, quoted <= 4096, handled > 0) == (2, True, True, True)


def _try(session: Session, tmp_path: Path, name: str, program: str) -> Trialed:
    consumer = tmp_path / name / "consumer.toml"
    consumer.parent.mkdir()
    consumer.write_text(TOML.format(name=name))
    (consumer.parent / "main.py").write_text(program)
    return session.try_one(_scenario(), consumer, seed=1, out=tmp_path / "run")


def _scenario() -> Scenario:
    quick = find_scenario(str(Path(__file__).with_name("quick.toml")))
    return replace(quick, schedule=(), limits=Limits(ready_s=12, drain_s=5))
