"""A consumer that says nothing and posts each record to the sink: its effects are what it is judged by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.registry import find_scenario
from kafka_trial.scenario import Limits
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

TOML = """
schema = 1
name = "poster"
command = ["{python}", "main.py"]
members = 2
[env]
BOOTSTRAP = "{bootstrap}"
GROUP = "{group}"
TOPIC = "{topics}"
SINK = "{sink_url}"
[evidence]
events = "none"
sink = "http"
[claim]
delivery = "at-least-once"
"""
PROGRAM = """
import os, signal, sys, urllib.request
from confluent_kafka import Consumer, KafkaException

def post(path, body=b"", **headers):
    request = urllib.request.Request(os.environ["SINK"] + path, body, headers, method="POST")
    assert urllib.request.urlopen(request, timeout=10).status == 204

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
consumer = Consumer({"bootstrap.servers": os.environ["BOOTSTRAP"], "group.id": os.environ["GROUP"],
    "session.timeout.ms": 6000, "auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe([os.environ["TOPIC"]])
seen = uncommitted = 0
try:
    while True:
        record = consumer.poll(0.1)
        if record is not None and not record.error():
            seen, uncommitted = seen + 1, uncommitted + 1
            if seen < 200 or seen % FORGETS_EVERY:
                where = {"KT-Partition": str(record.partition()), "KT-Offset": str(record.offset())}
                post("/effect", record.value(), **{"KT-Id": dict(record.headers())["kt-id"].decode()}, **where)
        if uncommitted and (record is None or uncommitted >= 20):
            post("/crash-point/before-commit")
            uncommitted = 0
            try:
                consumer.commit(asynchronous=False)
            except KafkaException:
                pass  # the partitions are another's by now
finally:
    consumer.close()
"""
NEVER = 10**9
SCENARIO = """
name = "at-a-crash-point"
min_faults_s = 2.0
[load]
opening_burst = 300
rate_per_s = 100
steady_s = 1.0
[[schedule]]
fault = "crash-point"
target = "member"
at_s = 0.5
for_s = 1.0
[schedule.options]
point = "before-commit"
"""


@pytest.fixture(scope="module")
def tried(kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    """Tries one that posts everything, one that begins to forget records, and one killed at a crash point."""
    place = tmp_path_factory.mktemp("posters")
    (place / "at-a-crash-point.toml").write_text(SCENARIO)
    quick, crash = (str(file) for file in (Path(__file__).with_name("quick.toml"), place / "at-a-crash-point.toml"))
    asked = {}
    for name, scenario, every in (("whole", quick, NEVER), ("forgetful", quick, 50), ("crashing", crash, NEVER)):
        folder = place / name
        folder.mkdir()
        (folder / "consumer.toml").write_text(TOML)
        (folder / "main.py").write_text(PROGRAM.replace("FORGETS_EVERY", str(every)))
        short = replace(find_scenario(scenario), limits=Limits(drain_s=15))
        trial_spec = make_trial_spec(short, folder / "consumer.toml", seed=7)
        asked[TrialRequest(trial_spec, folder / "run")] = name
    outcomes = {asked[one]: outcome for one, outcome in kafka_trial_session.try_many(list(asked))}
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, TrialOutcome)}


def test_every_record_that_reached_the_sink_is_handled(tried: dict[str, TrialOutcome]) -> None:
    """Nothing is lost, and all that it claims is judged by its effects: it passes, though it prints nothing."""
    verdict = tried["whole"].verdict
    done = {line["id"] for line in _told(tried["whole"], "sink") if line["kind"] == "effect"}
    sent = {line["id"] for line in _told(tried["whole"], "workload") if line.get("outcome") == "ok"}
    assert (len(sent) > 300, sent - done, verdict.violations) == (True, set(), ()), tried["whole"].text
    assert {"skipped", "unseen", "commit-ahead"} <= set(verdict.judged)
    assert (verdict.verdict, verdict.reasons) == ("pass", ())


def test_a_record_never_posted_is_skipped(tried: dict[str, TrialOutcome]) -> None:
    """It was committed, and never reached the sink: fail. What it forgot and did after all, when its partition was
    handed over, came after later records: that may be told besides."""
    verdict = tried["forgetful"].verdict
    found = {violation.anomaly for violation in verdict.violations} - {"reordered-key"}
    assert (verdict.verdict, found) == ("fail", {"commit-ahead", "skipped"}), tried["forgetful"].text


def test_a_member_is_killed_exactly_at_its_crash_point(tried: dict[str, TrialOutcome]) -> None:
    """Between the effect and the commit: the effect comes a second time, from whoever has the partition then."""
    (fault,) = tried["crashing"].verdict.faults
    assert fault.bit, fault.evidence
    told = _told(tried["crashing"], "sink")
    (killed,) = [line for line in told if line["kind"] == "crash_point" and line["state"] == "killed"]
    own = [line for line in told if line["seq"] < killed["seq"] and line.get("member") == killed["member"]]
    last = [line["id"] for line in own if line["kind"] == "effect"][-1]
    assert [line["id"] for line in told if line["kind"] == "effect"].count(last) == 2


def _told(trial_outcome: TrialOutcome, source: str) -> list[dict[str, Any]]:
    lines = (trial_outcome.folder.history / f"{source}.jsonl").read_bytes().splitlines()
    return [orjson.loads(line) for line in lines]
