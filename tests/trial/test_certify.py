"""Certificates: what is tried, how one that was stopped goes on, and when it no longer holds."""

from __future__ import annotations

import html
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import orjson
import pytest
from jsonschema import Draft202012Validator

from kafka_trial.check import check_run
from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS, UNKNOWN, InputError, StartError
from kafka_trial.history.output_names import CERTIFICATE
from kafka_trial.history.store import RunFolder, unpack
from kafka_trial.registry import CHECKOUT, PACKAGE, find_consumer, scenarios
from kafka_trial.report.certificate import (
    PAGE,
    Certificate,
    read_certificate,
    write_certificate,
)
from kafka_trial.report.html import write_reports
from kafka_trial.report.junit import NOT_TRIED
from kafka_trial.report.sealed_files import file_digests
from kafka_trial.trial.certificate_ledger import CertifyRequest
from kafka_trial.trial.certify import begin_baseline, begin_certificate, certify, lanes_of
from kafka_trial.trial.session import TrialOutcome, TrialRequest
from kafka_trial.trial.suite_budget import suite_seconds
from kafka_trial.trial.verify_certificate import judged_again, verify

pytestmark = pytest.mark.lengthy

CONSUMER = find_consumer("python-at-least-once")
STORED = CHECKOUT / "fixtures" / "histories" / "zoo" / "commits-last-offset.tar.xz"
SCHEMA = PACKAGE / "report" / "certificate.schema.json"
IMAGE_ID = "sha256:" + "a" * 64
SUITES = ["control", "member-killed", "stalled-network"]
NEED_A_SINK = {"failing-endpoint": "handler-failing", "slow-handlers": "handler-slow"}
BY_PATTERN = {  # the suites of those that subscribe by a pattern, and what others are told
    "topic-created": "a topic comes while its group is at work: subscribe by the regular expression {topic_pattern}, "
    "of the topics that are there and of those that come"
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A real trial, judged; its verdict is fail."""
    folder = unpack(STORED, tmp_path_factory.mktemp("stored") / "run")
    check_run(folder)
    return folder


@dataclass
class Sitting:
    """A session that runs nothing: every trial is the same stored one; those named in `words` end otherwise."""

    stored: RunFolder
    words: dict[str, str] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    most: int = 1000
    begin_by_s: dict[str, float] = field(default_factory=dict)

    def try_many(self, asked: Sequence[TrialRequest], **_: object) -> Iterator[tuple[TrialRequest, Any]]:
        self.begin_by_s = {one.trial_spec.scenario.name: one.begin_by_s for one in asked}
        for one in asked[: self.most]:
            spec, word = one.trial_spec, self.words.get(one.trial_spec.scenario.name, "pass")
            self.begun.append(f"{spec.scenario.name} {spec.seed}")
            if word == "not begun":
                yield one, StartError("no disk")
                continue
            assert one.out is not None
            folder = RunFolder(one.out.absolute())
            shutil.copytree(self.stored.path, folder.path)
            earlier: tuple[Any, ...] = ()
            if word == "again":
                first, word = (
                    SimpleNamespace(folder=folder, verdict=SimpleNamespace(reasons=("it stood still",))),
                    "pass",
                )
                earlier, folder = (first,), RunFolder(folder.path.with_name(f"{folder.path.name}-try2"))
                shutil.copytree(self.stored.path, folder.path)
            metadata = {"seed": spec.seed, "kafka": spec.kafka_version}
            folder.write_json("run.json", {**folder.read_json("run.json"), **metadata})
            folder.write_json("scenario.json", {**folder.read_json("scenario.json"), "name": spec.scenario.name})
            exit_status = {"pass": PASS, "fail": FAIL}.get(word, UNKNOWN)
            table = {**folder.read_json("verdict.json"), "verdict": word, "exit": exit_status}
            folder.write_json("verdict.json", table)
            write_reports(folder)
            verdict = SimpleNamespace(verdict=word, violations=())
            yield one, TrialOutcome(folder, verdict, "", earlier)  # type: ignore[arg-type]


def go(
    sitting: Sitting, out: Path, *, consumer: Path = CONSUMER, say: Callable[[str], object] = str, **words: Any
) -> Certificate:
    session: Any = sitting
    asked = CertifyRequest(consumer, out, **{"suites": SUITES, **words})
    begun = begin_certificate(asked)
    return certify(session, asked, begun, say=say, baseline=begin_baseline(asked, begun))


@pytest.fixture
def consumer(tmp_path: Path) -> Path:
    """A team's consumer.toml, in a folder of its own."""
    return shutil.copytree(CONSUMER.parent, tmp_path / "orders") / CONSUMER.name


def test_every_suite_is_tried_on_every_version_with_every_seed(judged: RunFolder, tmp_path: Path) -> None:
    """And the certificate reads as it was written, with a page beside it."""
    certificate = go(Sitting(judged), tmp_path, kafka_versions=["4.3.1", "3.9.2"], seeds=(1, 2))
    assert (len(certificate.trials), certificate.missing, certificate.exit) == (12, [], PASS)
    assert read_certificate(tmp_path / CERTIFICATE) == certificate
    trial = certificate.trials["control", "3.9.2", 2]
    assert (trial.run, (tmp_path / trial.run / "history").is_dir()) == ("runs/3.9.2/control/2", True)
    assert {"run.json", "history/run.jsonl", "report.html"} <= trial.files.keys()
    assert 'href="runs/3.9.2/control/2/report.html"' in (tmp_path / PAGE).read_text()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"control": "fail", "member-killed": "unknown"}, FAIL),
        ({"control": "unknown"}, UNKNOWN),
        ({"control": "not begun"}, UNKNOWN),
    ],
)
def test_the_worst_trial_decides_and_one_that_is_missing_leaves_it_open(
    words: dict[str, str], status: int, judged: RunFolder, tmp_path: Path
) -> None:
    """A suite that could not be begun was not passed."""
    assert go(Sitting(judged, words), tmp_path).exit == status


def test_a_ci_gets_a_junit_file_and_a_summary(
    judged: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all trials, also of one that could not be begun and one whose turn did not come."""
    sitting = Sitting(judged, {"stalled-network": "fail", "member-killed": "not begun"}, most=2)
    monkeypatch.setattr("kafka_trial.trial.session.Session", lambda **_: nullcontext(sitting))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    out = tmp_path / "certificate"
    assert main(["certify", "--consumer", str(CONSUMER), "--out", str(out), "--suite", *SUITES]) == FAIL
    cases = ElementTree.parse(out / "junit.xml").getroot().iter("testcase")
    told = {str(case.get("name")): [(part.tag, part.get("message")) for part in case] for case in cases}
    assert [part[0][:1] for part in told.values()] == [("skipped",), ("skipped",), ("properties",)]
    assert told["member-killed[seed 1]"] == [("skipped", "not begun: no disk")]
    assert (told["stalled-network[seed 1]"][1][0], told["control[seed 1]"]) == ("failure", [("skipped", NOT_TRIED)])
    summary = (tmp_path / "summary.md").read_text()
    counted = f"1 of {len(scenarios())} suites, 3 trials: 1 fail, 2 not tried"
    assert f"## Kafka Trial: FAIL\n\n{counted}\n" in summary
    assert "index&#46;html" in summary


def test_a_stopped_certificate_goes_on_where_it_stopped(judged: RunFolder, tmp_path: Path) -> None:
    """What was unknown is tried again, and so is a trial whose files have changed."""
    stopped = Sitting(judged, {"stalled-network": "unknown"}, most=2)
    assert go(stopped, tmp_path).missing == [("control", "4.3.1", 1)]
    (tmp_path / "runs/4.3.1/member-killed/1/history/run.jsonl").write_text("")
    again = Sitting(judged)
    assert go(again, tmp_path).exit == PASS
    assert again.begun == ["member-killed 1", "stalled-network 1", "control 1"]
    assert go(Sitting(judged, most=0), tmp_path).missing == []


@pytest.mark.parametrize(
    ("words", "begun"),
    [
        ({}, ["partitions-added", "large-records", "member-killed", "control"]),
        ({"budget_s": 3600}, ["partitions-added", "control", "member-killed", "large-records"]),
        ({"minutes": 60}, ["control", "large-records", "member-killed", "partitions-added"]),
    ],
)
def test_the_longest_trial_begins_first(
    words: dict[str, Any], begun: list[str], judged: RunFolder, tmp_path: Path
) -> None:
    """Or it would go on alone at the end; with a budget the others follow by their worth."""
    sitting = Sitting(judged)
    go(sitting, tmp_path, suites=sorted(begun), **words)
    assert sitting.begun == [f"{name} 1" for name in begun]


def test_a_trial_that_is_tried_again_takes_nothing_of_others(judged: RunFolder, tmp_path: Path) -> None:
    """Seed 1 is no beginning of seed 10."""
    words = {"suites": ["control"], "seeds": (1, 10)}
    go(Sitting(judged), tmp_path, **words)
    (tmp_path / "runs/4.3.1/control/1/history/run.jsonl").write_text("")
    again = Sitting(judged)
    go(again, tmp_path, **words)
    assert (again.begun, (tmp_path / "runs/4.3.1/control/10/history").is_dir()) == (["control 1"], True)


def test_what_lies_beside_the_consumer_does_not_make_it_another_one(judged: RunFolder, consumer: Path) -> None:
    """The certificate itself, runs, cuts: it goes on where it stopped, in the layout that the pages show."""
    out = consumer.parent / "certificate"
    go(Sitting(judged, most=1), out, consumer=consumer)
    shutil.copytree(judged.path, consumer.parent / "trial-runs" / "20261127T050000Z-control")
    (consumer.parent / "cuts").mkdir()
    (consumer.parent / "cuts" / "cuts.jsonl").write_text('{"consumer_digest":"a","source_digest":"b"}\n')
    go(went_on := Sitting(judged), out, consumer=consumer)
    assert went_on.begun == ["stalled-network 1", "control 1"]


def test_what_was_tried_again_is_counted_in_the_certificate(judged: RunFolder, tmp_path: Path) -> None:
    """With the run folder of each try, and why it was unknown."""
    said: list[str] = []
    certificate = go(Sitting(judged, {"control": "again"}), tmp_path, suites=["control"], say=said.append)
    (trial,) = certificate.trials.values()
    assert (trial.verdict, trial.run) == ("pass", "runs/4.3.1/control/1-try2")
    assert trial.earlier == [{"run": "runs/4.3.1/control/1", "reasons": ["it stood still"]}]
    assert certificate.in_words.endswith("1 trials: 1 pass, 1 tried again")
    assert said == ["1/1 control 4.3.1 1: pass, tried 2 times: the machine had made it unknown"]
    assert read_certificate(tmp_path / CERTIFICATE) == certificate


def test_what_does_not_count_any_more_is_told(judged: RunFolder, tmp_path: Path) -> None:
    """A trial that was unknown, one whose files changed, and one that nobody asks for now."""
    go(Sitting(judged, {"stalled-network": "unknown"}), tmp_path)
    (tmp_path / "runs/4.3.1/member-killed/1/history/run.jsonl").write_text("")
    said: list[str] = []
    go(Sitting(judged), tmp_path, suites=SUITES[1:], say=said.append)
    assert said[:3] == [
        "control 4.3.1 1 is not asked for any more, and is left out",
        "member-killed 4.3.1 1 is tried again: runs/4.3.1/member-killed/1/history/run.jsonl was changed",
        "stalled-network 4.3.1 1 was unknown: it is tried again",
    ]


def edited(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    table = orjson.loads(file.read_bytes())
    change(table)
    file.write_bytes(orjson.dumps(table))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda consumer, file: (consumer.parent / "main.py").write_text("pass"),
            "is of an earlier state of the consumer: main.py was changed. Name another --out, or take this one away to "
            "begin again. What the consumer itself writes as it works does not count where consumer.toml names it",
        ),
        (
            lambda consumer, file: (consumer.parent / "app.jar").write_bytes(b"\1" * 2_000_000),
            "is of an earlier state of the consumer: app.jar came.",
        ),
        (
            lambda consumer, file: edited(file, lambda table: table.update(harness_digest="other")),
            "was made by another kafka-trial",
        ),
        (
            lambda consumer, file: edited(file, lambda table: table["consumer"].pop("files")),
            "was made by an earlier kafka-trial, which did not store what files the consumer has. Name another --out",
        ),
    ],
    ids=["program", "jar", "harness", "earlier format"],
)
def test_a_certificate_that_does_not_go_on_says_why(
    change: Callable[[Path, Path], object], said: str, judged: RunFolder, consumer: Path
) -> None:
    """By the name of the file that changed, and with what to do."""
    out = consumer.parent / "certificate"
    go(Sitting(judged), out, consumer=consumer, suites=["control"])
    change(consumer, out / CERTIFICATE)
    with pytest.raises(InputError, match=re.escape(said)):
        begin_certificate(CertifyRequest(consumer, out, suites=["control"]))


def test_another_consumer_does_not_go_on_there(judged: RunFolder, tmp_path: Path) -> None:
    """Nor is one mixed with what an earlier state of it did."""
    go(Sitting(judged), tmp_path)
    other = CertifyRequest(find_consumer("python-at-most-once"), tmp_path, suites=SUITES)
    with pytest.raises(InputError, match="another consumer"):
        begin_certificate(other)


def test_a_budget_tries_some_suites_and_says_which_it_left_out(judged: RunFolder, tmp_path: Path) -> None:
    """A pass is one of these suites only; none may begin when it cannot end in time; the same command goes on."""
    sitting = Sitting(judged)
    began_s = time.monotonic()
    certificate = go(
        sitting, tmp_path, suites=["large-records", "control", "aborted-records"], budget_s=60, side_by_side=1
    )
    assert (certificate.suites, certificate.exit, certificate.missing) == (["control", "aborted-records"], PASS, [])
    assert certificate.in_words == "python-at-least-once on Kafka 4.3.1, only 2 of 28 suites, 2 trials: 2 pass"
    assert certificate.covers.startswith(
        "covers control, aborted-records; left out: large-records (no room in a budget of 60 s); cold-neighbour, "
    )
    assert read_certificate(tmp_path / CERTIFICATE) == certificate
    page = html.unescape((tmp_path / PAGE).read_text())
    left_out = "<li>large-records: no room in a budget of 60 s</li>"
    assert (certificate.in_words in page, left_out in page) == (True, True)
    latest_s = {name: began_s + 60 - suite_seconds()[name] for name in certificate.suites}
    assert sitting.begin_by_s == pytest.approx(latest_s, abs=5)
    named = go(again := Sitting(judged), tmp_path, suites=certificate.suites, budget_s=60, side_by_side=1)
    others = certificate.left_out.keys() - {*NEED_A_SINK, *BY_PATTERN}
    not_named = dict.fromkeys(others, "not named by --suite")
    assert named == replace(certificate, left_out=certificate.left_out | not_named)
    assert again.begun == []


@pytest.mark.rotates(every=4)
def test_a_certificate_of_all_suites_leaves_one_out(judged: RunFolder, tmp_path: Path) -> None:
    """That of consumers which subscribe by a pattern: this one does not."""
    asked = CertifyRequest(find_consumer("python-at-least-once/quiet"), tmp_path)
    certificate = certify(Sitting(judged), asked, begin_certificate(asked), say=lambda _: None)  # type: ignore[arg-type]
    words = ["only 27 of 28 suites", "27 trials: 27 pass"]
    assert (certificate.left_out, certificate.in_words.split(", ")[1:]) == (BY_PATTERN, words)


@pytest.mark.rotates(every=4)
def test_suites_that_a_sink_cannot_serve_are_left_out_by_name(judged: RunFolder, tmp_path: Path) -> None:
    """What nobody slowed has not passed; who asks for it is told; and a budget makes no room for it."""
    certificate = go(Sitting(judged), tmp_path, suites=())
    because = {
        name: f'the fault {fault} needs [evidence] sink = "http": it is played there'
        for name, fault in NEED_A_SINK.items()
    } | BY_PATTERN
    assert certificate.left_out == because
    assert certificate.in_words.endswith("only 25 of 28 suites, 25 trials: 25 pass")
    told = "; ".join(f"{name} ({why})" for name, why in because.items())
    assert certificate.covers.endswith(f"; left out: {told}")
    assert lanes_of(CertifyRequest(CONSUMER, tmp_path)) >= 6
    with_budget = begin_certificate(CertifyRequest(CONSUMER, tmp_path / "other", budget_s=36_000))
    assert (len(with_budget.suites), with_budget.left_out) == (25, certificate.left_out)
    with pytest.raises(
        InputError, match=f"--suite: slow-handlers cannot be played: {re.escape(because['slow-handlers'])}"
    ):
        begin_certificate(CertifyRequest(CONSUMER, tmp_path, suites=["slow-handlers", "control"]))


def test_suites_that_a_payload_cannot_play_are_left_out_by_name(judged: RunFolder, tmp_path: Path) -> None:
    """Of samples that are small the certificate says nothing of large records, and says so; who asks for it is told."""
    forwards = find_consumer("forwards-avro-bytes")
    begun = begin_certificate(CertifyRequest(forwards, tmp_path))
    assert (len(begun.suites), list(begun.left_out)) == (
        18,
        [
            *("cold-neighbour", "hot-runs", "large-records", "poison-record", "remote-reads", "remote-reads-fail"),
            *("several-topics", "several-topics-killed", "tombstones", "topic-created"),
        ],
    )
    assert begun.left_out["poison-record"].startswith('it sends "unreadable-values": if its topic may hold them, write')
    assert begun.left_out["large-records"].startswith("its load asks for values of 100000 to 5000000 bytes, and by")
    assert lanes_of(CertifyRequest(forwards, tmp_path)) >= 6
    with pytest.raises(InputError, match="--suite: large-records cannot be played: its load asks for"):
        begin_certificate(CertifyRequest(forwards, tmp_path, suites=["large-records", "control"]))


def test_a_trial_of_several_groups_is_judged_again_in_a_copy(judged: RunFolder, tmp_path: Path) -> None:
    """What is verified is not written to, nor is what can be made again sealed."""
    folder = RunFolder(tmp_path / "run")
    for place in (folder.path, folder.path / "groups" / "audit"):
        shutil.copytree(judged.path, place)
    check_run(folder)
    written = folder.groups["audit"].path / "verdict.json"
    before_ns = written.stat().st_mtime_ns
    with judged_again(folder.path) as (_, verdict, same):
        assert (same, [one.verdict for one in verdict.groups]) == (True, ["fail", "fail"])
    assert written.stat().st_mtime_ns == before_ns
    sealed = file_digests(folder.path)
    assert ("groups/audit/verdict.json" in sealed, [place for place in sealed if "cache" in place]) == (True, [])


def test_a_group_whose_folder_is_gone_is_not_known_to_have_passed(judged: RunFolder, tmp_path: Path) -> None:
    """The scenario asked for it."""
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(judged.path, folder.path)
    scenario = folder.read_json("scenario.json")
    folder.write_json("scenario.json", scenario | {"further_groups": [{"name": "audit", "consumer": "x"}]})
    reason = "nothing is known of group audit: groups/audit is missing from the run folder"
    assert reason in check_run(folder).reasons


def test_the_published_schema_describes_what_is_written(judged: RunFolder, tmp_path: Path) -> None:
    """Passed, failed, unknown, with a suite that was not tried; and it refuses what is no certificate."""
    schema = Draft202012Validator(orjson.loads(SCHEMA.read_bytes()))
    schema.check_schema(schema.schema)
    words = {"control": "fail", "member-killed": "unknown", "stalled-network": "not begun"}
    go(Sitting(judged, words), tmp_path, kafka_versions=["4.3.1", "3.9.2"], seeds=(1, 2))
    table = orjson.loads((tmp_path / CERTIFICATE).read_bytes())
    assert [len(table[name]) for name in ("trials", "not_tried", "left_out")] == [8, 4, 25]
    assert list(schema.iter_errors(table)) == []
    table["trials"][0] |= {"verdict": "innocent", "stranger": 1}
    table["trials"][0]["files"] |= {"run.json": "abc"}
    del table["left_out"]
    wrong = {"/".join(map(str, error.absolute_path)) for error in schema.iter_errors(table)}
    assert wrong == {"", "trials/0", "trials/0/verdict", "trials/0/files/run.json"}


def test_a_certificate_of_an_image_names_it(judged: RunFolder, tmp_path: Path) -> None:
    """By name and digest, in the file and on the page; and its own command need not be known."""
    schema = Draft202012Validator(orjson.loads(SCHEMA.read_bytes()))
    certificate = go(Sitting(judged), tmp_path, suites=["control"])
    process = {"command": []}
    image = {"command": [], "image": {"name": "team/orders:1.4", "id": IMAGE_ID}}
    wrong = {"image": {"name": "team/orders:1.4", "id": "latest"}}
    found = []
    for words in (image, process, wrong):
        write_certificate(replace(certificate, consumer={**certificate.consumer, **words}), tmp_path)
        table = orjson.loads((tmp_path / CERTIFICATE).read_bytes())
        found.append(["/".join(map(str, error.absolute_path)) for error in schema.iter_errors(table)])
        assert (f"<code>team/orders:1.4</code>, <code>{IMAGE_ID}</code>" in (tmp_path / PAGE).read_text()) is (
            words == image
        )
    assert found == [[], ["consumer"], ["consumer/image/id"]]


@pytest.mark.spark
def test_a_trial_of_another_image_does_not_verify(judged: RunFolder, tmp_path: Path) -> None:
    """Somebody gave its name to another one while the suites ran."""
    name, other = "team/orders:1.4", "sha256:" + "b" * 64
    verdicts = []
    for place, tried in (("same", IMAGE_ID), ("other", other)):
        stored = RunFolder(tmp_path / "stored" / place)
        shutil.copytree(judged.path, stored.path)
        stored.write_json("run.json", {**stored.read_json("run.json"), "consumer_image": name, "images": {name: tried}})
        certificate = go(Sitting(stored, {"control": "fail"}), tmp_path / place, suites=["control"])
        image = {"image": {"name": name, "id": IMAGE_ID}}
        write_certificate(replace(certificate, consumer={**certificate.consumer, **image}), tmp_path / place)
        verdicts.append(told(tmp_path / place / CERTIFICATE))
    (same, other_status) = verdicts
    assert same == (PASS, "control 4.3.1 1: fail, holds")
    assert other_status[0] == FAIL
    assert f"is a trial of another image: {name} was {other} there, is {IMAGE_ID} here" in other_status[1]


def test_a_certificate_from_before_suites_were_left_out_is_read(judged: RunFolder, tmp_path: Path) -> None:
    """Of schema 1."""
    file = failing(judged, tmp_path)
    table = orjson.loads(file.read_bytes())
    file.write_bytes(orjson.dumps({**table, "schema": 1, "left_out": [], "budget_s": None}))
    whole = read_certificate(file)
    del table["left_out"], table["budget_s"]
    file.write_bytes(orjson.dumps(table | {"schema": 1}))
    assert read_certificate(file) == whole


def failing(judged: RunFolder, tmp_path: Path) -> Path:
    """Returns the certificate of one trial, as it really was judged."""
    go(Sitting(judged, {"control": "fail"}), tmp_path, suites=["control"])
    return tmp_path / CERTIFICATE


def told(file: Path) -> tuple[int, str]:
    said: list[object] = []
    return verify(file, say=said.append), "\n".join(map(str, said))


@pytest.mark.spark
def test_a_certificate_holds_until_a_byte_of_a_run_folder_changes(judged: RunFolder, tmp_path: Path) -> None:
    """Of any file but those that can be made again; and judging it again changes nothing."""
    file = failing(judged, tmp_path)
    run = tmp_path / "runs/4.3.1/control/1"
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    assert told(file) == (PASS, "control 4.3.1 1: fail, holds")
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()} == before
    (run / "cache" / "anything").write_text("made again")
    assert told(file)[0] == PASS
    history = run / "history" / "offsets.jsonl"
    history.write_bytes(history.read_bytes().replace(b"1", b"2", 1))
    assert told(file) == (FAIL, "control 4.3.1 1: fail, runs/4.3.1/control/1/history/offsets.jsonl was changed")


@pytest.mark.spark
def test_what_a_certificate_says_is_what_its_run_folders_say(judged: RunFolder, tmp_path: Path) -> None:
    """An edited verdict does not verify, in the certificate and in the run folder."""
    file = failing(judged, tmp_path)
    table = orjson.loads(file.read_bytes())
    table["trials"][0] |= {"verdict": "pass", "exit": PASS, "violations": []}
    file.write_bytes(orjson.dumps(table | {"verdict": "pass", "exit": PASS}))
    status, said = told(file)
    assert (status, "says otherwise: verdict" in said, "says otherwise: violations" in said) == (FAIL, True, True)
    go(Sitting(judged, {"control": "pass"}), tmp_path / "edited", suites=["control"])  # its history says fail
    status, said = told(tmp_path / "edited" / CERTIFICATE)
    assert (status, "is now judged fail" in said) == (FAIL, True)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda table: table.update(schema=4), "reads up to 3"),
        (lambda table: table.update(left_out=["control"]), "is no certificate"),
        (lambda table: table.pop("suites"), "is no certificate"),
        (lambda table: table.update(verdict="pass"), "edited"),
        (lambda table: table["trials"][0].update(stranger=1), "is no certificate"),
    ],
)
def test_what_is_no_certificate_is_refused(
    change: Any, problem: str, judged: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what is wrong with it."""
    file = failing(judged, tmp_path)
    table = orjson.loads(file.read_bytes())
    change(table)
    file.write_bytes(orjson.dumps(table))
    assert main(["verify", str(file)]) == 2
    assert problem in capsys.readouterr().err


def test_a_run_folder_that_lacks_its_facts_is_told(judged: RunFolder, tmp_path: Path) -> None:
    """Though its checksums are those of the certificate."""
    file = failing(judged, tmp_path)
    run = tmp_path / "runs/4.3.1/control/1"
    (run / "run.json").write_text("{}")
    table = orjson.loads(file.read_bytes())
    table["trials"][0]["files"] = file_digests(run)
    file.write_bytes(orjson.dumps(table))
    status, said = told(file)
    assert (status, "is no run folder of ours (KeyError: 'kafka')" in said) == (FAIL, True)


def test_run_folders_elsewhere_are_none_of_it(judged: RunFolder, tmp_path: Path) -> None:
    """A certificate from a stranger reads nothing of ours."""
    file = failing(judged, tmp_path)
    table = orjson.loads(file.read_bytes())
    table["trials"][0]["run"] = "../elsewhere"
    file.write_bytes(orjson.dumps(table))
    assert told(file) == (FAIL, "control 4.3.1 1: fail, ../elsewhere is no place beside the file that names it")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["certify", "--suite", "member-kiled"], "member-killed"),
        (["certify", "--repeat", "0"], "0 must be between 1 and 10000"),
        (["certify", "--side-by-side", "0"], "0 must be between 1 and 256"),
        (["certify", "--kafka", "2.0"], "2.0"),
        (["certify", "--kafka", "4.3.1,4.4.0,2.0"], "unknown Kafka version '2.0'"),
        (["certify", "--baseline", "python-at-lest-once"], "python-at-least-once"),
        (["certify", "--budget", "soon"], "--budget: 'soon' is no length of time: give 90s"),
        (["certify", "--budget", "3s"], "the shortest, control, takes"),
        (["certify", "--budget", "30s", "--suite", "large-records"], "the shortest, large-records, takes"),
    ],
)
def test_bad_words_are_told_before_anything_starts(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what there is."""
    out = tmp_path / "certificate"
    assert main([*words, "--consumer", "python-at-least-once", "--out", str(out)]) == 2
    assert (said in capsys.readouterr().err, out.exists()) == (True, False)


def test_a_certificate_is_of_one_load(tmp_path: Path) -> None:
    """It names it, leaves out what would be too little with the reason, and is not gone on with at another one."""
    begun = begin_certificate(CertifyRequest(CONSUMER, tmp_path, load=0.1))
    assert "at a load of 0.1, " in begun.in_words
    assert "give at least" in begun.left_out["hot-runs"]
    write_certificate(begun, tmp_path)
    assert read_certificate(tmp_path / CERTIFICATE).load == 0.1
    Draft202012Validator(orjson.loads(SCHEMA.read_bytes())).validate(
        orjson.loads((tmp_path / CERTIFICATE).read_bytes())
    )
    with pytest.raises(InputError, match=r"is of trials at a load of 0\.1 \(asked for: 1\)"):
        begin_certificate(CertifyRequest(CONSUMER, tmp_path))
    with pytest.raises(InputError, match=r"hot-runs cannot be played: at a load of 0\.1"):
        begin_certificate(CertifyRequest(CONSUMER, tmp_path / "other", suites=["hot-runs"], load=0.1))
    with pytest.raises(InputError, match="--load: 0 must be above 0"):
        begin_certificate(CertifyRequest(CONSUMER, tmp_path / "other", load=0))


def test_several_versions_are_compared_and_tried_side_by_side(judged: RunFolder, tmp_path: Path) -> None:
    """Trials that make a pair follow each other, in the opposite order with every other seed; one version is not
    compared with anything; what is written reads back and follows the schema."""
    sitting = Sitting(judged)
    certificate = go(sitting, tmp_path, suites=["control"], kafka_versions=["3.9.2", "4.3.1"], seeds=(1, 2))
    assert sitting.begun == ["control 1", "control 1", "control 2", "control 2"]
    (between,) = (certificate.comparison or {})["between"]
    assert [between[name] for name in ("before", "after", "pairs")] == ["3.9.2", "4.3.1", 2]
    figures = {row["name"]: (row["pairs"], row["outcome"]) for row in between["figures"]}
    assert figures["convergence"] == (2, "too few pairs to say")
    table = orjson.loads((tmp_path / CERTIFICATE).read_bytes())
    Draft202012Validator(orjson.loads(SCHEMA.read_bytes())).validate(table)
    assert read_certificate(tmp_path / CERTIFICATE) == certificate
    again = go(nothing := Sitting(judged), tmp_path, suites=["control"], kafka_versions=["4.3.1"], seeds=(1, 2))
    assert (again.comparison, nothing.begun) == (None, [])


@pytest.mark.rotates(every=4)
def test_a_baseline_is_tried_on_the_same_and_has_its_own_certificate(judged: RunFolder, tmp_path: Path) -> None:
    """Beside that of the new client; its suites are those that both can play, and the same command goes on."""
    old = find_consumer("forwards-avro-bytes")
    asked = CertifyRequest(find_consumer("python-upserts"), tmp_path / "other", baseline=old)
    left_out = begin_certificate(asked).left_out
    assert left_out["poison-record"].startswith('the baseline cannot play it: it sends "unreadable-values"')
    said: list[str] = []
    words = {"suites": SUITES[:2], "baseline": find_consumer("python-at-most-once")}
    certificate = go(sitting := Sitting(judged, {"control": "fail"}), tmp_path / "out", say=said.append, **words)
    assert sorted(sitting.begun) == ["control 1"] * 2 + ["member-killed 1"] * 2
    assert [line for line in said if "baseline control" in line] == ["4/4 baseline control 4.3.1 1: fail"]
    assert certificate.client is not None
    assert (certificate.exit, certificate.status, certificate.client["verdict"]) == (FAIL, PASS, "not worse")
    notes = "each is judged by its own claim, and they differ: delivery at-most-once → at-least-once"
    assert certificate.client["notes"][0].startswith(notes)
    baseline = read_certificate(tmp_path / "out" / "baseline" / CERTIFICATE)
    assert (baseline.consumer["name"], baseline.suites, baseline.comparison) == (
        "python-at-most-once",
        SUITES[:2],
        None,
    )
    table = orjson.loads((tmp_path / "out" / CERTIFICATE).read_bytes())
    Draft202012Validator(orjson.loads(SCHEMA.read_bytes())).validate(table)
    go(nothing := Sitting(judged), tmp_path / "out", **words)
    assert nothing.begun == []


@pytest.mark.spark
@pytest.mark.rotates(every=4)
def test_what_a_certificate_says_differs_is_verified(judged: RunFolder, tmp_path: Path) -> None:
    """With the trials of the baseline; an edited figure, or an edited verdict on the client, does not hold."""
    words = {"control": "fail"}  # as it really was judged
    baseline = find_consumer("python-at-most-once")
    go(Sitting(judged, words), tmp_path, suites=["control"], baseline=baseline)
    file = tmp_path / CERTIFICATE
    assert told(file) == (
        PASS,
        "control 4.3.1 1: fail, holds\nbaseline control 4.3.1 1: fail, holds\nwhat differs: holds",
    )
    edited(file, lambda table: table["comparison"]["figures"][0]["values"].update(memory=1.0))
    edited(file, lambda table: table["comparison"]["client"].update(verdict="worse", exit=FAIL))
    status, said = told(file)
    last = "what differs: client is not what its trials say; figures is not what its trials say"
    assert (status, said.splitlines()[-1]) == (FAIL, last)
