"""Audits of a real cluster on which the stuck partition that is not stuck (case 0) was staged, beside sound groups."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.cli import main
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.pool import ClusterPool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import FAIL, PASS, UNKNOWN, WRONG_INPUT
from kafka_trial.kafka_protocol.connection import Connection
from kafka_trial.process.waiting import wait_until
from staged_incident import PROTOCOLS, RECORDS, STANDS_S, Staged, staged

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

# Fetch, ListOffsets, Metadata; DescribeGroups, DescribeConfigs, ConsumerGroupDescribe (which the log leaves out)
READS = {1, 2, 3, 15, 32, 69}
LOGGED_READS = {"METADATA", "LIST_OFFSETS", "FETCH"}
API = re.compile(rb'"requestApiKeyName":"([A-Z_]+)"')


@dataclass(frozen=True)
class Audited:
    """The run folders of the audits, and what the cluster said of them: requests, and its state before and after.

    `apis` are those that the brokers logged, `sent` the keys of all that our connections sent.
    """

    folder: Path
    statuses: Mapping[str, int]
    apis: set[str]
    sent: set[int]
    before: Any
    after: Any

    def judged(self, name: str) -> tuple[int, list[str], dict[str, Any]]:
        """Judges an export and returns the exit status, the names of the violations, and the verdict."""
        status = main(["check", str(self.folder / name)])
        verdict = orjson.loads((self.folder / name / "verdict.json").read_bytes())
        return status, [one["anomaly"] for one in verdict["violations"]], verdict


@pytest.fixture(scope="module")
def audited(cluster_pool: ClusterPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """Stages the incident once, and exports every audit that the tests judge."""
    folder = tmp_path_factory.mktemp("audit")
    with cluster_pool.cluster_for(DEFAULT_VERSION) as cluster, staged(cluster, folder, replicas=3) as scene:
        yield exported(cluster, scene, folder)


@contextmanager
def _listening() -> Iterator[set[int]]:
    """Yields the keys of all requests that our connections send meanwhile."""
    sent: set[int] = set()
    ask = Connection.ask

    def listening(self: Connection, api: tuple[int, int], *given: Any, **options: Any) -> Any:
        sent.add(api[0])
        return ask(self, api, *given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "ask", listening)
        yield sent


def exported(cluster: BootedCluster, scene: Staged, folder: Path) -> Audited:
    """Exports all audits of the scene, and looks at the cluster before and after."""
    before = _state(cluster, scene)
    begun = {log: log.stat().st_size for log in scene.request_logs}
    with _listening() as sent:
        statuses = _exports(scene, folder)
    lines = wait_until(lambda: _audits_lines(scene, begun), within_s=10, what="the audits' requests in request logs")
    apis = {api.decode() for line in lines for api in API.findall(line)}
    return Audited(folder, statuses, apis, sent, before, _state(cluster, scene))


def _exports(scene: Staged, folder: Path) -> dict[str, int]:
    logs = ["--request-log", *map(str, scene.request_logs)]
    sink = ["--sink-topic", f"{scene.topic}-sink"]
    table, gap = (_table(folder / f"{name}.db", scene, without) for name, without in (("all", None), ("gap", "r1-7")))
    statuses = {}
    for protocol in PROTOCOLS:
        for name, more in (("plain", []), ("logs", logs), ("sink", [*sink, *logs]), ("table", [*table, *logs])):
            for kind in ("incident", "sound"):
                out = f"{kind}-{protocol}-{name}"
                statuses[out] = main([*scene.words(f"{kind}-{protocol}", out=folder / out), *more])
    sound = "sound-classic"
    statuses["little"] = main([*scene.words(sound, out=folder / "little"), "--max-records", "1"])
    statuses["gap"] = main([*scene.words(sound, out=folder / "gap"), *gap])
    statuses["no group"] = main(scene.words("nobody", out=folder / "none"))
    statuses["no topic"] = main(scene.words(sound, out=folder / "none", topic="no-such-topic"))
    return statuses


def _table(file: Path, scene: Staged, without: str | None) -> list[str]:
    """Makes a table of what was handled, but for one record, and returns the words that name it."""
    ids = [f"r{partition}-{number}" for partition in (0, 1) for number in range(RECORDS)]
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("create table done (id text primary key, written_at real)")
        rows = [(name, scene.until_s - 3 * STANDS_S) for name in ids if name != without]
        database.executemany("insert into done values (?, ?)", rows)
    return ["--sink-db", f"sqlite:///{file}", "--sink-query", "select id, written_at from done"]


def _audits_lines(scene: Staged, begun: Mapping[Path, int]) -> list[bytes]:
    """Returns all that came in since, where nobody but the audits was; earlier trials of a warm cluster were."""
    lines = [line for log, size in begun.items() for line in log.read_bytes()[size:].splitlines()]
    return [line for line in lines if f'"listener":"{scene.listener}"'.encode() in line]


def _state(cluster: BootedCluster, scene: Staged) -> Any:
    """Returns what an audit could have changed: topics, the groups' members, and all that the offsets log holds."""
    with Admin(cluster.observer_bootstrap) as admin:
        groups = {name: admin.describe_group(f"{scene.topic}-{name}") for name in ("incident-classic", "sound-classic")}
        topics = [admin.describe(name) for name in (scene.topic, "no-such-topic")]
        return topics, admin.log_ends("__consumer_offsets"), groups


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_offsets_log_alone_shows_the_fall_and_the_lag_that_is_none(audited: Audited, protocol: str) -> None:
    """Who did it cannot be said without the request logs, and is not."""
    status, violations, verdict = audited.judged(f"incident-{protocol}-plain")
    unjudged = {one["anomaly"] for one in verdict["not_judged"]}
    assert (status, violations, "zombie-commit" in unjudged) == (FAIL, ["commit-regression", "false-lag"], True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_request_logs_show_who_committed_what_it_did_not_own(audited: Audited, protocol: str) -> None:
    """One root cause, and what follows from it beneath."""
    status, violations, verdict = audited.judged(f"incident-{protocol}-logs")
    assert (status, violations) == (FAIL, ["zombie-commit", "commit-regression", "false-lag"])
    assert [one.get("follows") for one in verdict["violations"]] == [None, "zombie-commit", "commit-regression"]


@pytest.mark.parametrize("sink", ["sink", "table"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_sink_shows_that_all_was_handled(audited: Audited, protocol: str, sink: str) -> None:
    """The same lag, now false by what reached the sink, be it a topic or a table."""
    status, violations, verdict = audited.judged(f"incident-{protocol}-{sink}")
    lag = next(one["sentence"] for one in verdict["violations"] if one["anomaly"] == "false-lag")
    assert (status, "false-lag" in violations, "though all was processed" in lag) == (FAIL, True, True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_sound_group_passes(audited: Audited, protocol: str) -> None:
    """By the offsets log and the log ends."""
    status, violations, verdict = audited.judged(f"sound-{protocol}-plain")
    assert (status, violations, verdict["reasons"]) == (PASS, [], [])


@pytest.mark.parametrize("evidence", ["logs", "sink", "table"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_more_evidence_against_a_sound_group_convicts_it_of_nothing(
    audited: Audited, protocol: str, evidence: str
) -> None:
    """Unknown only because the request logs begin after the window does, and for no other reason."""
    status, violations, verdict = audited.judged(f"sound-{protocol}-{evidence}")
    others = [reason for reason in verdict["reasons"] if "not read: request log" not in reason]
    assert (status, violations, others) == (UNKNOWN, [], [])


def test_a_record_that_a_sound_looking_group_left_out_is_counted(audited: Audited) -> None:
    """The table lacks one of them; nothing is claimed that excludes it, but it is said."""
    status, violations, verdict = audited.judged("gap")
    assert (status, violations, verdict["counts"]["skipped"]) == (PASS, [], 1)


def test_an_export_is_parquet_too(audited: Audited) -> None:
    """Made of the history as `check` makes it, so that it can be judged elsewhere at once."""
    rows = {name: (audited.folder / name / "cache" / "rows.parquet").exists() for name in audited.statuses}
    assert {name for name, there in rows.items() if not there} == {"no group", "no topic"}


def test_what_a_limit_left_unread_is_unknown(audited: Audited) -> None:
    """It says which limit, and how to raise it."""
    status, violations, verdict = audited.judged("little")
    assert (status, violations, "raise --max-records" in verdict["reasons"][0]) == (UNKNOWN, [], True)


def test_what_is_not_there_is_wrong_input(audited: Audited) -> None:
    """No such group, no such topic; every other export went through."""
    wrong = {name: status for name, status in audited.statuses.items() if status}
    assert wrong == {"no group": WRONG_INPUT, "no topic": WRONG_INPUT}


def test_an_audit_only_reads(audited: Audited) -> None:
    """Its requests ask and fetch; no topic, group or commit is other than it was."""
    assert (audited.apis, audited.sent - READS, {1, 15} <= audited.sent) == (LOGGED_READS, set(), True)
    assert audited.before == audited.after
