"""The pytest plugin: items for consumers and versions, honest outcomes."""

from __future__ import annotations

import subprocess
import sys
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafka_trial import registry
from kafka_trial.errors import INTERRUPTED
from staged_trial import run_staged

OUTCOMES = """
import pytest
from kafka_trial.claim import Claim
from kafka_trial.history.store import RunFolder
from kafka_trial.pytest_plugin import Judged
from kafka_trial.trial.session import TrialOutcome
from kafka_trial.verdict.verdict_input import AnomalyResult, VerdictInput
from kafka_trial.verdict.decide import decide
from kafka_trial.anomalies.claim_rule import Anomaly


@pytest.mark.parametrize("word", ["pass", "fail", "unknown"])
def test_it(word, tmp_path):
    anomaly = Anomaly("skipped", "t", 0, {"offset": 7}, ("run#1",))
    core = ("skipped", "unseen", "commit-ahead", "illegal-redelivery")
    found = tuple(AnomalyResult(name, (anomaly,) if (name, word) == ("skipped", "fail") else ()) for name in core)
    ground = ("the harness was killed",) if word == "unknown" else ()
    verdict = decide(VerdictInput(found, ground=ground), Claim("at-least-once"))
    assert verdict.verdict == word
    Judged(TrialOutcome(RunFolder(tmp_path), verdict, f"{word.upper()}: told")).must_pass()
"""


def test_fail_is_a_failure_and_unknown_an_error(pytester: pytest.Pytester) -> None:
    """In the terminal's counts, in the exit status, and in the JUnit file."""
    pytester.makepyfile(OUTCOMES)
    result = pytester.runpytest_subprocess("--junitxml=junit.xml", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert ("ERROR at call of" in result.stdout.str(), "at setup" in result.stdout.str()) == (True, False)
    cases = ElementTree.parse(pytester.path / "junit.xml").getroot().iter("testcase")
    told = {str(case.get("name")): [(part.tag, "".join(part.itertext())) for part in case] for case in cases}
    suite = ElementTree.parse(pytester.path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert {name: [(tag, text.splitlines()[0]) for tag, text in parts] for name, parts in told.items()} == {
        "test_it[pass]": [],
        "test_it[fail]": [("failure", "FAIL: told")],
        "test_it[unknown]": [("error", "UNKNOWN: told")],
    }


IMAGE = """
import pytest
from kafka_trial.scenario import Scenario
from staged_trial import StagedSession


class Noting(StagedSession):
    def try_one(self, scenario, consumer, *, image, **words):
        self.image = image
        return super().try_one(scenario, consumer, **words)


@pytest.fixture(scope="session")
def kafka_trial_session():
    return Noting()


def test_it(trial):
    trial(Scenario("pass")).must_pass()
    assert trial.session.image == "team/orders:1.4"
"""


def test_the_image_of_the_command_line_is_the_one_that_is_tried(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the place of what the consumer's file names; it need not name any."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    pytester.makepyfile(IMAGE)
    for named in ('[image]\nname = "team/orders:1.3"\n', ""):
        text = MINE.format(name="mine").replace("command", "# command")
        (pytester.path / "consumer.toml").write_text(text + named)
        words = ("--consumer=consumer.toml", "--consumer-image=team/orders:1.4", "-p", "no:cacheprovider")
        pytester.runpytest_subprocess(*words).assert_outcomes(passed=1)


FIXTURE = """
import os
import pytest
from kafka_trial.errors import InputError
from kafka_trial.registry import find_scenario
from kafka_trial.trial.spec import make_trial_spec


@pytest.fixture
def warehouse():
    os.environ["KT_TEST_WAREHOUSE"] = "http://127.0.0.1:1"


def begun(trial):
    return make_trial_spec(find_scenario("control"), trial.consumer).consumer.pass_env


def test_too_early(trial):
    with pytest.raises(InputError, match="KT_TEST_WAREHOUSE is not set"):
        begun(trial)


def test_it(trial, warehouse):
    assert begun(trial) == ("KT_TEST_WAREHOUSE",)
"""


def test_a_fixture_may_set_what_is_passed_on(pytester: pytest.Pytester) -> None:
    """The address of a container that it has started, say: it is looked for when the trial begins."""
    pytester.makepyfile(FIXTURE)
    text = MINE.format(name="mine").replace("[claim]", 'pass_env = ["KT_TEST_WAREHOUSE"]\n[claim]')
    (pytester.path / "consumer.toml").write_text(text)
    pytester.runpytest_subprocess("--consumer=consumer.toml", "-p", "no:cacheprovider").assert_outcomes(passed=2)


TOLD_MEANWHILE = """
from pathlib import Path
from kafka_trial.process.steps import step
from kafka_trial.process.waiting import wait_until


def test_it(kafka_trial_session):
    with step("fetching the jars"):
        wait_until(Path("heard").exists, within_s=20, what="the reader of the pipe")
"""


def test_a_step_is_told_through_a_pipe_while_it_lasts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CI reads pytest through one: lines that wait for the end of the buffer would be minutes of silence."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    file = pytester.makepyfile(TOLD_MEANWHILE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", file.name]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as pytest_run:
        assert pytest_run.stdout is not None
        told = next((line for line in pytest_run.stdout if line.endswith("fetching the jars\n")), "")
        (pytester.path / "heard").touch()  # only now can the step end
        last = pytest_run.stdout.read()
    assert told.startswith("[")
    assert "fetching the jars: done in" in last
    assert pytest_run.returncode == 0


def test_the_junit_file_says_what_was_tried_and_how_to_replay_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each trial's element has its properties; a failure has the worst sentence before all others, its page last."""
    run_staged(pytester, monkeypatch, "--junitxml=junit.xml", "--basetemp=tmp")
    cases = ElementTree.parse(pytester.path / "junit.xml").getroot().findall("testsuite/testcase")
    told = [{part.get("name"): part.get("value") for part in case.iter("property")} for case in cases]
    for word, properties in zip(("pass", "fail", "unknown"), told, strict=True):
        run = str(pytester.path / "tmp" / f"test_it_{word}_0" / word)
        replay = (
            f"kafka-trial run member-paused --consumer orders --kafka 4.3.1 --seed 7 --schedule {run}/schedule.json"
        )
        about = {"consumer": "orders", "scenario": "member-paused", "kafka": "4.3.1", "seed": "7", "verdict": word}
        assert properties == about | {"run": run, "report": f"{run}/report.html", "replay": replay}
    lines = cases[1].findtext("failure", "").splitlines()
    assert lines[0] == "FAIL: commit-regression, skipped"
    assert lines[1].startswith('worst: skipped: skipped </td><script>alert("·[31m")</script>')
    assert lines[-1] == f"report: {told[1]['report']}"


def test_a_session_of_trials_leaves_a_summary(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all its trials, in the file that GitHub names; a session without trials leaves none."""
    file = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    run_staged(pytester, monkeypatch, "--basetemp=runs")
    told = unescape(file.read_text())
    counted = f"1 of {len(registry.scenarios())} suites, 3 trials: 1 pass, 1 fail, 1 unknown"
    assert told.startswith(f"\n## Kafka Trial: FAIL\n\n{counted}\n")
    assert f"\nReports: {pytester.path / 'runs'}\n" in told
    assert "pass × 1, fail × 1, unknown × 1" in told
    file.unlink()
    pytester.makepyfile("def test_plain(): ...")
    pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert not file.exists()


def test_an_item_for_each_consumer_and_version(pytester: pytest.Pytester) -> None:
    """Consumers repeat, versions repeat or come with commas."""
    pytester.makepyfile("def test_mine(trial): ...")
    given = ["--consumer=python-at-least-once", "--consumer=python-at-most-once", "--kafka=3.9.2,4.3.1"]
    listed = pytester.runpytest_subprocess("--collect-only", "-q", *given)
    listed.stdout.fnmatch_lines_random(
        [
            "*test_mine?python-at-least-once-3.9.2?",
            "*test_mine?python-at-least-once-4.3.1?",
            "*test_mine?python-at-most-once-3.9.2?",
            "*test_mine?python-at-most-once-4.3.1?",
        ]
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["--consumer=python-at-lest-once"],
            "*no consumer of ours*'python-at-lest-once'*python-at-least-once*",
        ),
        (["--consumer=python-at-least-once", "--kafka=4.3.1,9.9"], "*unknown Kafka version '9.9'*3.9.2*"),
        (["--consumer=python-at-least-once/consumer-protocol", "--kafka=3.9.2"], "*KIP-848*Kafka 4.0 or newer*"),
        (["--consumer=python-at-least-once", "--load=2"], "*--load*2 must be above 0 and at most 1*"),
        (["--consumer-image=team/orders:1"], "*--consumer FILE*"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_starts(
    pytester: pytest.Pytester, given: list[str], told: str
) -> None:
    """A wrong name, version or protocol: pytest's usage error, with the valid choices."""
    pytester.makepyfile("def test_mine(trial): ...")
    refused = pytester.runpytest_subprocess(*given)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines([told])


MINE = """
schema = 1
name = "{name}"
command = ["true"]
[claim]
delivery = "at-least-once"
"""


def test_without_a_consumer_a_project_of_ones_own_is_refused_in_one_line(pytester: pytest.Pytester) -> None:
    """A usage error that names the test and the three ways to name a consumer; never our references."""
    pytester.makepyfile("def test_mine(trial): ...\ndef test_other(trial): ...\ndef test_plain(): ...")
    refused = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    told = [line for line in refused.errlines if line]
    assert len(told) == 1
    assert all(word in told[0] for word in ("test_mine", "--consumer", "kafka_trial_consumer", "pytest.mark.consumer"))
    assert pytester.runpytest_subprocess("-k", "plain", "-p", "no:cacheprovider").ret == pytest.ExitCode.OK


def test_the_projects_setting_and_a_marker_name_the_consumer(pytester: pytest.Pytester) -> None:
    """Paths are relative to the settings' folder, and to the test's; the marker outweighs the setting."""
    for name in ("whole", "special"):
        place = pytester.mkdir(name) / "consumer.toml"
        place.write_text(MINE.format(name=name))
    pytester.makeini("[pytest]\nkafka_trial_consumer = whole/consumer.toml\n")
    marked = (
        "import pytest\n@pytest.mark.consumer('special')\ndef test_marked(trial): ...\ndef test_plain(trial): ...\n"
    )
    pytester.makepyfile(marked)
    strict = ["--strict-markers", "--collect-only", "-q", "--kafka=4.3.1"]
    items = [line for line in pytester.runpytest_subprocess(*strict).outlines if "::" in line]
    assert [item.partition("::")[2] for item in items] == [
        "test_marked[special-4.3.1]",
        "test_plain[whole/consumer.toml-4.3.1]",
    ]
    given = pytester.runpytest_subprocess(*strict, "--consumer=python-at-most-once")
    given.stdout.fnmatch_lines(["*test_marked?python-at-most-once-4.3.1?"])


def test_a_setting_that_names_nothing_is_a_usage_error(pytester: pytest.Pytester) -> None:
    """As with the option: before anything starts."""
    pytester.makeini("[pytest]\nkafka_trial_consumer = nowhere.toml\n")
    pytester.makepyfile("def test_mine(trial): ...")
    refused = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert (refused.ret, "nowhere.toml" in refused.stderr.str()) == (pytest.ExitCode.USAGE_ERROR, True)


def test_our_own_suites_try_the_references_that_fit() -> None:
    """All that tell what they do, on a version that speaks both protocols; without those of KIP-848 on one that does
    not."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--kafka=3.9.2,4.3.1"]
    listed = subprocess.run(
        [*command, "suites/test_control.py"], cwd=registry.CHECKOUT, capture_output=True, text=True, check=False
    )
    items = {line.partition("[")[2].rstrip("]") for line in listed.stdout.splitlines() if "::" in line}
    references = set(registry.speaking_references())
    new = {name for name in references if name.endswith("/consumer-protocol")}
    assert new
    assert items == {f"{name}-4.3.1" for name in references} | {f"{name}-3.9.2" for name in references - new}


OF_ONES_OWN = """
from kafka_trial.registry import scenarios


def test_mine(trial):
    trial(scenarios()["slow-handlers"]).must_pass()
"""


def test_a_suite_that_a_sink_cannot_serve_is_skipped_and_a_test_of_ones_own_is_not(pytester: pytest.Pytester) -> None:
    """With the sentence by which a trial is refused; neither starts anything."""
    words = ("--consumer=python-at-least-once", "-p", "no:cacheprovider")
    because = 'the fault handler-slow needs [evidence] sink = "http": it is played there'
    suite = registry.suites()["slow-handlers"]
    skipped = pytester.runpytest_subprocess(str(suite), *words, "-rs")
    skipped.assert_outcomes(skipped=1)
    assert f"slow-handlers cannot be played: {because}" in skipped.stdout.str()
    pytester.makepyfile(OF_ONES_OWN)
    refused = pytester.runpytest_subprocess(*words)
    refused.assert_outcomes(errors=1)
    assert because in refused.stdout.str()


STAGED = """
import pytest
from kafka_trial.claim import Claim
from kafka_trial.errors import Interrupted
from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario
from kafka_trial.trial.session import Session, TrialOutcome
from kafka_trial.verdict.verdict_input import Fault, VerdictInput
from kafka_trial.verdict.decide import decide
from literal_run import make_folder


class Staged(Session):
    def __init__(self, folder):
        self.folder = make_folder(folder)

    def try_one(self, scenario, consumer, **words):
        {body}


@pytest.fixture
def staged(request, tmp_path):
    option = request.config.getoption("retry_unknown")
    return Trial(Staged(tmp_path), tmp_path, "4.3.1", 7, tmp_path, request.node, option)


def test_first(staged):
    staged(Scenario("control")).must_pass()


def test_second(staged):
    staged(Scenario("control")).must_pass()
"""


@pytest.mark.parametrize(
    "interrupt",
    [
        "raise Interrupted('healed and cleaned up: run')",
        "raise KeyboardInterrupt",
        "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    ],
    ids=["in a trial", "while booting", "SIGTERM"],
)
def test_ctrl_c_ends_the_session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, interrupt: str) -> None:
    """Neither is the trial marked failed nor the next one begun: status 130, and what became of the trial is told."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    pytester.makepyfile(STAGED.format(body=interrupt))
    ended = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-v")
    assert ended.ret == INTERRUPTED
    ended.assert_outcomes()
    assert ("test_second" in ended.stdout.str(), "cleaned up" in ended.stdout.str()) == (False, True)


TRIED_TWICE = """
        unsound = decide(VerdictInput((), ground=("stood still",)), Claim("unclaimed"))
        first = TrialOutcome(self.folder, unsound, "UNKNOWN: ground")
        verdict = decide(VerdictInput(()), Claim("unclaimed"))
        return TrialOutcome(self.folder, verdict, "told", earlier=(first,) * words["retry_unknown"])
"""


def test_a_trial_that_was_tried_again_is_told(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the terminal, with the folder of the try that was unknown, and among the item's properties."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    pytester.makepyfile(STAGED.format(body=TRIED_TWICE.strip()))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    tried = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--retry-unknown=1", "-k", "first", "--junitxml=x")
    tried.stdout.fnmatch_lines(
        ["*unknown, tried again*", "*test_first: unknown, tried again: *(2 tries)*unknown is /*"]
    )
    assert "tried again" in (pytester.path / "x").read_text()
    assert "in 2 tries; the machine made unknown" in unescape((pytester.path / "summary.md").read_text())


def test_warnings_of_our_clients_libraries_stay_out_of_the_summary(pytester: pytest.Pytester) -> None:
    """What kafka-python or pyspark is warned of in their own modules; a project's own warnings stay, and so do its
    filters."""
    text = "import warnings\ndef test_it():\n" + "".join(
        f"    warnings.warn_explicit('of {module}', DeprecationWarning, '{module}.py', 1, module='{module}')\n"
        for module in ("kafka.admin.client", "pyspark.sql", "kafkaesque", "mine")
    )
    text += "    from kafka.protocol.consumer import FetchRequest\n"  # reads its schemas in a way that is deprecated
    pytester.makepyfile(text)
    told = pytester.runpytest_subprocess("-p", "no:cacheprovider").stdout.str()
    seen = [name for name in ("kafka.admin.client", "pyspark.sql", "kafkaesque", "mine") if f"of {name}" in told]
    assert (seen, "open_text" in told, "2 warnings" in told) == (["kafkaesque", "mine"], False, True)
