"""Two groups and two topics of a real cluster audited in one go: one group falls back on one, one never reads one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafka_trial.cli import main
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import FAIL, PASS, UNKNOWN, WRONG_INPUT
from kafka_trial.process.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

RECORDS, LEFT = 12, 3
CLAIM = '[claim]\ndelivery = "unclaimed"\norder = "none"\ncommits = "monotonic"\n'
NOTHING = ((["nobody", "no-one"], []), (["shipping"], ["refunds", "returns"]))
FALLS, RISES = (RECORDS, 5, RECORDS), (5, RECORDS)


@dataclass(frozen=True)
class Scene:
    """Topics and groups, each name with `prefix` before it; `until_s` is when the last commit had been made."""

    bootstrap: str
    prefix: str
    folder: Path
    until_s: float

    def audit(self, groups: Sequence[str], topics: Sequence[str], *more: str, out: str) -> int:
        """Audits, as the command line does, and returns the exit status."""
        ago_s = time.time() - self.until_s
        named = [*("--topic", *(f"{self.prefix}{topic}" for topic in topics))] if topics else []
        words = ["audit", "--bootstrap", self.bootstrap, "--group", *(f"{self.prefix}{group}" for group in groups)]
        words += ["--from", f"{ago_s + 3600:.3f}s", "--until", f"{ago_s:.3f}s", "--out", str(self.folder / out)]
        return main([*words, *named, "--claim", str(self.folder / "claim.toml"), *more])

    def overview(self, out: str) -> tuple[dict[tuple[str, str], Any], list[Any]]:
        """Returns the rows of an overview by group and topic, and what was not audited."""
        table = orjson.loads((self.folder / out / "audits.json").read_bytes())
        short = [{name: str(value).removeprefix(self.prefix) for name, value in one.items()} for one in table["audits"]]
        rows = {(one["group"], one["topic"]): row for one, row in zip(short, table["audits"], strict=True)}
        return rows, [
            tuple(name.removeprefix(self.prefix) for name in one.values()) for one in table["without_commits"]
        ]


@pytest.fixture(scope="module")
def scene(cluster_pool: ClusterPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Billing reads orders, where it falls back and recovers, and refunds; shipping reads orders alone."""
    folder = tmp_path_factory.mktemp("several")
    (folder / "claim.toml").write_text(CLAIM)
    prefix = f"{folder.name}-"
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster, cluster.lease_lanes(1) as lanes:
        orders, refunds = f"{prefix}orders", f"{prefix}refunds"
        with Admin(cluster.observer_bootstrap) as admin:
            for topic in (orders, refunds, f"{prefix}returns"):
                admin.create_topic(topic, partitions=1, replication_factor=3)
        _produce(lanes[0].bootstrap, [orders, refunds])
        _commit(lanes[0].bootstrap, f"{prefix}billing", {orders: FALLS, refunds: RISES})
        _commit(lanes[0].bootstrap, f"{prefix}shipping", {orders: RISES})
        yield Scene(lanes[0].bootstrap, prefix, folder, time.time())


def _produce(bootstrap: str, topics: Sequence[str]) -> None:
    """Sends records that had been there for half an hour, by their time."""
    producer = Producer({"bootstrap.servers": bootstrap})
    made_ms = int(time.time() * 1000) - 1_800_000
    for topic in topics:
        for number in range(RECORDS + LEFT):
            producer.produce(topic, b"{}", timestamp=made_ms + number)
    assert producer.flush(30) == 0


def _commit(bootstrap: str, group: str, positions: Mapping[str, Sequence[int]]) -> None:
    """Has the one member of a group commit these positions, topic by topic."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0}
    member = Consumer(settings | {"enable.auto.commit": False})
    member.subscribe(list(positions))
    wait_until(lambda: member.poll(0.1), within_s=30, what="the member's first record", every_s=0.0)
    for topic, values in positions.items():
        for value in values:
            member.commit(offsets=[TopicPartition(topic, 0, value)], asynchronous=False)
    member.close()


def test_each_group_is_judged_on_each_topic(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """The fall alone fails; a topic that is not there is unknown; where shipping never committed it is not judged."""
    status = scene.audit(["billing", "shipping"], ["orders", "refunds", "no-such"], out="named")
    rows, without = scene.overview("named")
    assert (status, without) == (FAIL, [("shipping", "refunds")])
    assert {pair: (row["verdict"], list(row["violations"]), row["lag"]) for pair, row in rows.items()} == {
        ("billing", "orders"): ("fail", ["commit-regression"], LEFT),
        ("billing", "refunds"): ("pass", [], LEFT),
        ("billing", "no-such"): ("unknown", [], None),
        ("shipping", "orders"): ("pass", [], LEFT),
        ("shipping", "no-such"): ("unknown", [], None),
    }
    judged = [row for row in rows.values() if row["report"]]
    assert [row["lag_age_s"] > 1700 for row in judged] == [True] * 3
    assert [(scene.folder / "named" / row["report"]).is_file() for row in judged] == [True] * 3
    assert "there is no such topic" in rows["billing", "no-such"]["reason"]
    _same_as_alone(scene, scene.folder / "named" / f"1-{scene.prefix}billing-on-{scene.prefix}orders")
    told = capsys.readouterr().out
    assert "\nFAIL: 5 audits: 1 fail, 2 unknown, 2 pass\nreport: " in told
    assert f"FAIL     {scene.prefix}billing on {scene.prefix}orders: commit-regression × 1; lag 3" in told


def _same_as_alone(scene: Scene, together: Path) -> None:
    """One run folder of several holds the files and the verdict of a plain audit of that pair."""
    assert scene.audit(["billing"], ["orders"], out="alone") == FAIL
    alone = scene.folder / "alone"
    verdicts = [orjson.loads((folder / "verdict.json").read_bytes()) for folder in (together, alone)]
    assert verdicts[0] == verdicts[1]
    assert sorted(path.name for path in together.iterdir()) == sorted(path.name for path in alone.iterdir())


def test_topics_are_found_by_what_groups_have_committed(scene: Scene) -> None:
    """No topic is named: each group is audited where it committed, and one that nobody knows is a row of its own."""
    status = scene.audit(["billing", "shipping", "nobody"], [], "--no-check", out="found")
    rows, _ = scene.overview("found")
    assert {pair: row["verdict"] for pair, row in rows.items()} == {
        ("billing", "orders"): "not judged",
        ("billing", "refunds"): "not judged",
        ("shipping", "orders"): "not judged",
        ("nobody", ""): "unknown",
    }
    assert (status, scene.audit(["shipping"], [], "--no-check", out="one")) == (UNKNOWN, PASS)


def test_no_pair_at_all_is_wrong_input(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Groups that nobody knows, a topic on which nobody committed: told at once, and nothing is written."""
    statuses = [scene.audit(groups, topics, out="none") for groups, topics in NOTHING]
    told = capsys.readouterr().err
    assert (statuses, told.count("there is no such group now")) == ([WRONG_INPUT] * 2, 2)
    assert f"{scene.prefix}shipping: has no committed offset on any of the topics" in told
    assert not (scene.folder / "none").exists()
