"""Several audits in one go: which pairs there are, what makes no sense, what becomes of each; brokers are literal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audited import committed, group, verdict_on
from kafka_trial.audit import several_audits
from kafka_trial.audit.export import AuditExport
from kafka_trial.audit.request import NS_PER_S, AuditRequest
from kafka_trial.audit.several_audits import (
    AuditPairs,
    SeveralAuditsRequest,
    audit_all,
    find_pairs,
    folder_name,
    is_several,
    lag_at_end,
    make_several_audits,
    pairs_of,
)
from kafka_trial.errors import FAIL, PASS, UNKNOWN, InputError, UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judgement import SERIES
from kafka_trial.kafka_protocol.cluster_queries import Partition, Topic
from kafka_trial.kafka_protocol.connection import NoAnswerError
from kafka_trial.kafka_protocol.group_requests import GroupState
from kafka_trial.report.audits_page import NOT_DONE, AuditOverview, AuditRow, row_in_words, write_overview
from kafka_trial.trial.console import Console
from kafka_trial.verdict.decide import Verdict

NOW_NS = 1_800_000_000 * NS_PER_S
WORDS: dict[str, Any] = {"bootstrap": "h:9092", "topic": ["t"], "group": ["g", "h"], "from": "12h", "until": "now"}
OFFSETS_LOG = Topic("__consumer_offsets", "id", (Partition(0, 1, 4, (1,), (1,)),))
SOUND = (group(1, 1, "a"), committed(100, 5), committed(900, 12))
FALLEN = (*SOUND, committed(910, 11))


@pytest.mark.parametrize(
    ("groups", "topics", "several_of_them"),
    [(["g"], ["t"], False), (["g"], [], True), (["g"], ["t", "u"], True), (["g", "h"], ["t"], True)],
)
def test_one_group_on_one_named_topic_is_the_plain_case(
    groups: list[str], topics: list[str], several_of_them: bool
) -> None:
    """A topic that has to be found is not: how many there are is not known before."""
    assert is_several({"group": groups, "topic": topics}) == several_of_them


def test_all_pairs_are_asked_the_same(tmp_path: Path) -> None:
    """The window is one moment's, and request logs, claim and limits are of all."""
    (tmp_path / "claim.toml").write_text('[claim]\ndelivery = "unclaimed"\n')
    more = {"claim": str(tmp_path / "claim.toml"), "max_mib": 2, "out": str(tmp_path / "out")}
    asked = make_several_audits(WORDS | more, now_ns=NOW_NS)
    base = asked.base
    assert (asked.groups, asked.topics, asked.out) == (["g", "h"], ["t"], tmp_path / "out")
    assert (base.until_ns, base.claim["claim"]["delivery"], base.limits.bytes_max) == (NOW_NS, "unclaimed", 2 << 20)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Names, sinks, files, the folder and the time together."""
    (tmp_path / "full").touch()
    wrong = {
        "group": ["g", "g"],
        "topic": ["t", "u", "t", ""],
        "sink_topic": ["t"],
        "sink_query": "select 1",
        "claim": str(tmp_path / "none.toml"),
        "command_config": str(tmp_path / "none.properties"),
        "out": str(tmp_path),
        "from": "yesterday",
    }
    with pytest.raises(InputError) as told:
        make_several_audits(WORDS | wrong, now_ns=NOW_NS)
    begins = (
        "--group g stands",
        "--topic '' is no",
        "--topic t stands",
        "--sink-topic, --sink-query: a sink shows what",
    )
    paths = (
        f"{wrong['claim']}: ",
        f"--command-config {wrong['command_config']}: ",
        f"{tmp_path}: exists",
        "--from 'yes",
    )
    assert [one.startswith(begin) for one, begin in zip(told.value.problems, (*begins, *paths), strict=True)] == [
        True
    ] * 8


@pytest.mark.parametrize(
    ("by_group", "topics", "known", "pairs", "without", "refused"),
    [
        ({"g": {"u", "t"}, "h": {"t"}}, [], {}, [("g", "t"), ("g", "u"), ("h", "t")], [], {}),
        ({"g": {"u", "t"}, "h": {"t"}}, ["u"], {"u": 1}, [("g", "u")], [("h", "u")], {}),
        ({"g": {"t"}}, ["t", "hidden"], {"t": 1}, [("g", "t"), ("g", "hidden")], [], {}),
        ({"g": set(), "h": {"t"}}, ["t"], {"t": 1}, [("g", "t"), ("h", "t")], [], {}),
        ({"g": "refused", "h": {"t"}}, [], {}, [("h", "t")], [], {"g": "refused"}),
        ({"g": "refused"}, ["t"], {"t": 1}, [("g", "t")], [], {}),
    ],
    ids=["all topics", "nothing there", "hidden topic", "nothing anywhere", "not told", "named"],
)
def test_pairs_follow_from_where_groups_have_committed(
    by_group: Mapping[str, set[str] | str],
    topics: list[str],
    known: Mapping[str, object],
    pairs: list[tuple[str, str]],
    without: list[tuple[str, str]],
    refused: Mapping[str, str],
) -> None:
    """A named topic is left out only where the group's offsets could be seen, and are elsewhere."""
    assert pairs_of(by_group, topics, known) == AuditPairs(pairs, without, refused)


class Coordinator:
    """A cluster of one broker, which coordinates all groups and answers OffsetFetch with these, one after the other."""

    def __init__(self, *answers: Mapping[tuple[str, int], int] | NoAnswerError) -> None:
        self.left = list(answers)

    def broker(self, node: int, question: Callable[[Any], Any]) -> Any:
        """Answers a question."""
        assert node == 1
        return question(self)

    def next(self, _: object, *, group: str) -> Mapping[tuple[str, int], int]:
        """Answers OffsetFetch."""
        answer = self.left.pop(0)
        if isinstance(answer, NoAnswerError):
            raise answer
        return answer

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AuditPairs]:
    """Returns how to find the pairs of a group without named topics, by literal answers."""

    def finds(*answers: Mapping[tuple[str, int], int] | NoAnswerError, state: str = "Empty") -> AuditPairs:
        coordinator = Coordinator(*answers)
        monkeypatch.setattr(several_audits, "connect", lambda _: coordinator)
        monkeypatch.setattr(several_audits, "readable_topic", lambda *_: OFFSETS_LOG)
        monkeypatch.setattr(several_audits.group_membership, "committed", coordinator.next)
        monkeypatch.setattr(
            several_audits.group_requests, "group_state", lambda *_, **__: GroupState(state, "classic", ())
        )
        asked = SeveralAuditsRequest(AuditRequest("h:1", "", "g", 0, 1), ["g"], [], Path("out"))
        return find_pairs(asked, Console(quiet=True))

    return finds


def test_topics_are_found_by_the_groups_committed_offsets(found: Callable[..., AuditPairs]) -> None:
    """Each once, however many partitions; a coordinator that loads the group is asked again."""
    loading = NoAnswerError("COORDINATOR_LOAD_IN_PROGRESS (14)", code=14)
    assert found(loading, {("u", 0): 3, ("t", 0): 1, ("t", 1): 0}).pairs == [("g", "t"), ("g", "u")]


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        ({}, "Dead", "--group g: there is no such group now"),
        ({}, "Stable", "--group g: the group has no committed offset on any topic"),
        (
            NoAnswerError("GROUP_AUTHORIZATION_FAILED (30)", code=30),
            "Stable",
            "our principal has no DESCRIBE on group g. Which topics it has committed on cannot be asked: name --topic",
        ),
    ],
)
def test_a_group_without_topics_is_told(found: Callable[..., AuditPairs], answer: Any, state: str, said: str) -> None:
    """Not known, nothing committed, no rights: each with what to do."""
    with pytest.raises(InputError) as told:
        found(answer, state=state)
    assert said in str(told.value)


def test_names_of_folders_are_safe_and_never_clash() -> None:
    """Letters that a file system may not take become dashes; the number tells apart what then reads alike."""
    groups = ["../../etc", ".", "a/b", "a:b", "A:B", "", "x" * 300, "\n\x00\x7f", "gr\u00fcn", "\N{GRINNING FACE}"]
    names = [folder_name(number, name, "t" * 249) for number, name in enumerate(groups, 1)]
    assert len({name.lower() for name in names}) == len(groups)
    assert [name for name in names if len(name.encode()) > 255 or not set(name) <= _SAFE or name[0] == "."] == []
    assert folder_name(3, "billing.eu", "orders_v2") == "3-billing.eu-on-orders_v2"


_SAFE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def test_the_lag_is_that_of_the_end_of_the_window() -> None:
    """What came later is not counted; a partition that the group never committed on has no lag."""
    assert lag_at_end({0: 5, 1: 9, 2: 4}, {0: 20, 1: 9, 2: 4, 3: 50}, {0: 12, 1: -1, 2: 3}) == {0: 7, 1: 0, 2: 0}


@pytest.fixture
def audits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AuditOverview]:
    """Returns how to audit pairs whose exports are literal: by topic a history, or what is raised."""

    def runs(exports: Mapping[str, Any], *, refused: Mapping[str, str] | None = None) -> AuditOverview:
        verdicts = dict[Path, Verdict]()

        def export(request: AuditRequest, *, out: Path, console: Console) -> AuditExport:
            history = exports[request.topic]
            if isinstance(history, BaseException):
                raise history
            folder = RunFolder(out / "run")
            verdicts[folder.path] = verdict_on(out, history)
            return AuditExport(folder, {0: 11})

        monkeypatch.setattr(several_audits, "export", export)
        monkeypatch.setattr(several_audits, "_lag", lambda *_: {0: 1})
        monkeypatch.setattr(several_audits, "read_last_ages_ms", lambda *_, **__: {0: 90_000, 1: 900_000})
        pairs = [("<g>", topic) for topic in exports]
        asked = SeveralAuditsRequest(
            AuditRequest("h:1", "", "<g>", 0, NOW_NS), ["<g>"], list(exports), tmp_path / "out"
        )
        found_pairs = AuditPairs(pairs, [("<g>", "quiet")], refused or {})
        return audit_all(asked, found_pairs, judge=lambda at: verdicts[at.path], console=Console(quiet=True))

    return runs


def test_each_pair_has_its_row_and_the_worst_wins(
    audits: Callable[..., AuditOverview], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fall, a sound group, a topic that is not there, brokers that went away: one line, one row and one link each."""
    exports = {
        "orders": FALLEN,
        "bills": SOUND,
        "absent": InputError("audit", ["no such topic", "no such sink"]),
        "gone": UnjudgeableError("no leader answered"),
    }
    overview = audits(exports, refused={"who": "there is no such group now"})
    told = [(row.topic, row.verdict, dict(row.violations), row.lag, row.lag_age_s, row.report) for row in overview.rows]
    assert told == [
        ("orders", "fail", {"commit-regression": 1}, 1, 90.0, "1--g--on-orders/report.html"),
        ("bills", "pass", {}, 1, 90.0, "2--g--on-bills/report.html"),
        ("absent", "unknown", {}, None, None, ""),
        ("gone", "unknown", {}, None, None, ""),
        ("", "unknown", {}, None, None, ""),
    ]
    assert overview.rows[0].reason.startswith("commit-regression: the committed offset of partition 0 fell")
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == [
        "FAIL     <g> on orders",
        "PASS     <g> on bills",
        "UNKNOWN  <g> on absent",
        "UNKNOWN  <g> on gone",
        "UNKNOWN  who, topics not known",
    ]
    assert said[0].endswith(": commit-regression × 1; lag 1, the oldest for 90 s")
    assert said[2].endswith("<g> on absent: no such topic; no such sink")
    assert (overview.exit_status, overview.in_words) == (FAIL, "FAIL: 5 audits: 1 fail, 3 unknown, 1 pass")


def test_the_overview_is_json_and_a_page(audits: Callable[..., AuditOverview], tmp_path: Path) -> None:
    """The same rows; names are escaped, and what was not audited is said."""
    audits({"bills": SOUND, "gone": UnjudgeableError("no leader answered")})
    table = orjson.loads((tmp_path / "out" / "audits.json").read_bytes())
    assert (table["schema"], table["verdict"], table["exit"]) == (1, "unknown", UNKNOWN)
    assert (table["bootstrap"], table["from"], table["until"]) == (
        "h:1",
        "1970-01-01T00:00:00Z",
        "2027-01-15T08:00:00Z",
    )
    assert table["without_commits"] == [{"group": "<g>", "topic": "quiet"}]
    assert [(row["group"], row["topic"], row["verdict"], row["reason"]) for row in table["audits"]] == [
        ("<g>", "bills", "pass", ""),
        ("<g>", "gone", "unknown", "no leader answered"),
    ]
    page = (tmp_path / "out" / "audits.html").read_text()
    wanted = ("&lt;g&gt;", 'href="1--g--on-bills/report.html"', "no leader answered", "on quiet: not audited there")
    assert ([part for part in wanted if part not in page], "<g>" in page) == ([], False)


def test_an_interrupt_keeps_what_was_done(audits: Callable[..., AuditOverview], tmp_path: Path) -> None:
    """What was not done is unknown, and says so."""
    with pytest.raises(KeyboardInterrupt):
        audits({"bills": SOUND, "orders": KeyboardInterrupt(), "later": SOUND})
    rows = orjson.loads((tmp_path / "out" / "audits.json").read_bytes())["audits"]
    assert [(row["verdict"], row["reason"]) for row in rows] == [("pass", ""), *[("unknown", NOT_DONE)] * 2]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["pass", "unknown", "fail"], FAIL, "FAIL: 3 audits: 1 fail, 1 unknown, 1 pass"),
        (["pass", "unknown"], UNKNOWN, "UNKNOWN: 2 audits: 1 unknown, 1 pass"),
        (["pass"], PASS, "PASS: 1 audit: 1 pass"),
        (["not judged", "unknown"], UNKNOWN, "UNKNOWN: 2 audits: 1 unknown, 1 not judged"),
        (["not judged"], PASS, "NOT JUDGED: 1 audit: 1 not judged"),
    ],
)
def test_the_worst_row_is_the_exit_status(words: list[str], status: int, told: str) -> None:
    """Fail over unknown over pass; an export that was not to be judged is no failure."""
    overview = AuditOverview("h:1", "", "", [AuditRow("g", "t", word) for word in words])
    assert (overview.exit_status, overview.in_words) == (status, told)


def test_an_unknown_row_says_why_on_the_terminal() -> None:
    """What was seen without being held against the group stands in its report, and is no verdict."""
    row = AuditRow("g", "t", reason="compaction", violations={"false-lag": 1}, run="1-g-on-t")
    assert row_in_words(row) == "UNKNOWN  g on t: compaction; lag not known"


def test_no_name_breaks_a_line() -> None:
    """A group's name may hold any letter."""
    assert row_in_words(AuditRow("g\n\x1b[31m", "t", reason="a\nb")) == "UNKNOWN  g··[31m on t: a·b"


@pytest.mark.parametrize(
    ("unread", "until_s", "lag", "age_s"),
    [
        (frozenset(), 100, {0: 3, 1: 0}, 7.0),
        (frozenset(), 100, {1: 0}, None),
        (frozenset({"records"}), 100, {0: 3}, None),
        (frozenset(), 101, {0: 3}, None),
    ],
    ids=["known", "no lag there", "not all was read", "series ended before"],
)
def test_the_age_of_the_lag_is_told_where_it_is_known(
    tmp_path: Path, unread: frozenset[str], until_s: int, lag: Mapping[int, int], age_s: float | None
) -> None:
    """By the series, where it reaches the end of the window and all records were read."""
    rows = [("t", 0, 50, 9, 0, 99_000, 0), ("t", 0, 100, 3, 0, 7_000, 0), ("t", 1, 100, 5, 0, 88_000, 0)]
    columns = zip(*((*row[:2], row[2] * NS_PER_S, *row[3:]) for row in rows), strict=True)
    table = pa.table(dict(zip(SERIES.names, map(list, columns), strict=True)), schema=SERIES)
    pq.write_table(table, tmp_path / "series.parquet")
    request = AuditRequest("h:1", "t", "g", 0, until_s * NS_PER_S)
    assert several_audits._lag_age_s(request, AuditExport(RunFolder(tmp_path), {}, unread), lag) == age_s


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    """No half of a file is left beside it."""
    write_overview(AuditOverview("h:1", "", "", [AuditRow("g", "t")]), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audits.html", "audits.json"]
