"""The pytest plugin: the face. A `trial` fixture, one item per scenario × consumer × Kafka version, honest outcomes.

`trial(SCENARIO).must_pass()` runs one trial and judges it. A verdict *fail* is a test failure; *unknown*, and a trial
that could not be run or judged, is a test error: all red, never skipped; what is skipped is a suite of ours that the
consumer's sink cannot serve. Clusters stay warm for the session and are rebuilt when a fault ruined them. Ctrl-C ends
the session, after the trial was healed and cleaned up.

Which consumers a test is for: the option, its marker, the project's setting, in this order. A project of one's own is
never given our reference consumers; our suites in our own checkout are.

pytest knows errors of set-up and tear-down only. So the report of an unknown trial stays one of the call, and its
status, and its element in the JUnit file, say *error*; a trial that took several tries is told as such.

What a CI shows of a trial (properties in the JUnit file, a job summary, Allure results) is written by `report/`.
"""

from __future__ import annotations

import os
import random
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_trial import plugins, registry
from kafka_trial.cluster.versions import DEFAULT_VERSION, find_version
from kafka_trial.errors import INTERRUPTED, InputError, Interrupted, KafkaTrialError, UnjudgeableError
from kafka_trial.history.store import check_out
from kafka_trial.option_checks import check_options
from kafka_trial.process.signals import sigterm_as_ctrl_c
from kafka_trial.scenario import Scenario, factor_problem

if TYPE_CHECKING:
    from kafka_trial.report.trial_result import TrialResult
    from kafka_trial.trial.session import Session, TrialOutcome

# What our clients' libraries warn of in threads of the harness is no news about the tests of a project.
LIBRARIES = ("kafka", "psutil", "pyarrow", "pyspark", "py4j")
WARNINGS = [
    f"ignore::{kind}:{library}(\\.|$)"
    for library in LIBRARIES
    for kind in ("DeprecationWarning", "ResourceWarning", "SyntaxWarning")
]
# Python's own second warning of what kafka-python asks of it; the first one names who asked, and stays for others.
WARNINGS.append(r"ignore:open_text is deprecated:DeprecationWarning:importlib\.resources\._legacy$")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("kafka-trial", "Kafka Trial: consumers on trial")
    group.addoption(
        "--consumer",
        action="append",
        metavar="FILE",
        help="consumer.toml, a folder with one, or a name of `kafka-trial list consumers` (repeatable)",
    )
    group.addoption("--plugin", action="append", metavar="FILE", help="also load this plug-in (repeatable)")
    group.addoption(
        "--consumer-image", metavar="IMAGE", help="the container image to try, in the place of what FILE names"
    )
    group.addoption(
        "--kafka", action="append", metavar="VERSION", help="Kafka version (repeatable, or comma separated)"
    )
    group.addoption("--trial-seed", type=int, metavar="N", help="seed of every trial (default: drawn, printed)")
    group.addoption(
        "--load",
        type=float,
        metavar="FACTOR",
        help="which part of a scenario's load to send, above 0 and at most 1 (default: [load] factor, or all of it)",
    )
    group.addoption("--trial-runs", metavar="DIR", help="where run folders go (default: pytest's temporary folder)")
    group.addoption(
        "--retry-unknown",
        type=int,
        default=0,
        metavar="N",
        help="try a trial up to N times more whose environment made it unknown (default: 0)",
    )
    parser.addini(SETTING, "consumer.toml of tests that name no other, relative to this file", type="args", default=[])


def pytest_report_header(config: pytest.Config) -> str | None:
    """Says what is on trial, and the seed that repeats it."""
    named = config.getoption("consumer") or config.getini(SETTING)
    if not named:
        return None
    load = f"; load {config.getoption('load'):g}" if config.getoption("load") is not None else ""
    return f"kafka-trial: consumers {', '.join(map(str, named))}; seed {_seed(config)}{load}"


def pytest_configure(config: pytest.Config) -> None:
    """Refuses what cannot be served, before anything starts."""
    config.addinivalue_line("markers", f"{MARKER}(path, …): the consumer.toml that a test with `trial` is for")
    for line in reversed(WARNINGS):  # those of the project's own come later, and win
        config.getini("filterwarnings").insert(0, line)
    config.pluginmanager.register(Outcomes(config), "kafka-trial-outcomes")
    try:
        _check_options(config)
        plugins.load(config.getoption("plugin") or ())
        for version in _versions(config):
            find_version(version)
            for name in config.getoption("consumer") or ():
                check(registry.find_consumer(name), version, image=config.getoption("consumer_image"))
    except (KafkaTrialError, OSError) as error:
        raise pytest.UsageError(str(error)) from error


def _check_options(config: pytest.Config) -> None:
    """Makes sure that numbers are within bounds, and that run folders can be written where they are to go."""
    given = {"seed": config.getoption("trial_seed"), "retry_unknown": config.getoption("retry_unknown")}
    check_options(Namespace(**given))
    load = config.getoption("load")
    if load is not None and (problem := factor_problem(load)):
        raise InputError("--load", problem)
    if runs := config.getoption("trial_runs"):
        check_out(Path(runs))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker of pytest-xdist, which has a cluster of its own, the seed that was printed."""
    node.workerinput[SEED] = _seed(node.config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes one item per consumer and version for every test that asks for `trial`."""
    if "trial" not in metafunc.fixturenames:
        return
    chosen = list(chosen_for(metafunc, _versions(metafunc.config)))
    ids = [f"{one.name}-{version}" if isinstance(one, Chosen) else "no-consumer" for one, version in chosen]
    metafunc.parametrize("trial", chosen, indirect=True, ids=ids)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuses tests whose consumer is not named or wrong, in one line, before anything starts."""
    trials = (getattr(item, "callspec", None) for item in session.items)
    params = (callspec.params.get("trial", ()) for callspec in trials if callspec is not None)
    refused = dict.fromkeys(
        part.because for param in params if isinstance(param, tuple) for part in param[:1] if isinstance(part, Refused)
    )
    if refused:
        first, more = next(iter(refused)), len(refused) - 1
        raise pytest.UsageError(first + (f" (and {more} more like it)" if more else ""))


RESULTS: pytest.StashKey[list[TrialResult]] = pytest.StashKey()  # of an item: its trials, until a report has them
BROKE: pytest.StashKey[Exception] = pytest.StashKey()  # of an item: what ended a trial of it without a verdict


@dataclass(frozen=True)
class Trial:
    """What a test calls: `trial(scenario)` runs one trial of the item's consumer and returns it judged."""

    session: Session
    consumer: Path
    kafka_version: str
    seed: int
    out: Path
    item: pytest.Item
    retry_unknown: int = 0
    image: str | None = None
    load: float | None = None

    def __call__(self, scenario: Scenario) -> Judged:
        if because := self._unserved(scenario):
            pytest.skip(f"{scenario.name} cannot be played: {because}")
        try:
            with sigterm_as_ctrl_c():
                trial_outcome = self.session.try_one(
                    scenario,
                    self.consumer,
                    kafka_version=self.kafka_version,
                    seed=self.seed,
                    out=self.out / scenario.name,
                    retry_unknown=self.retry_unknown,
                    image=self.image,
                    load=self.load,
                )
        except (Interrupted, KeyboardInterrupt) as interrupt:
            told = str(interrupt) or "interrupted while booting or judging; cleaned up"
            pytest.exit(f"kafka-trial: {told}", returncode=INTERRUPTED)
        except Exception as error:
            self.item.stash[BROKE] = error
            raise
        from kafka_trial.report.trial_result import trial_result

        result = trial_result(trial_outcome.folder)
        earlier = [f"{one.folder.path}: {'; '.join(one.verdict.reasons)}" for one in trial_outcome.earlier]
        self.item.stash.setdefault(RESULTS, []).append(replace(result, earlier=earlier))
        self.item.user_properties.extend(result.properties)
        if trial_outcome.tries:
            self.item.user_properties.append((TRIED_AGAIN, trial_outcome.tries))
        return Judged(trial_outcome)

    def _unserved(self, scenario: Scenario) -> str | None:
        """Returns why a suite of ours cannot be played with the consumer, or cannot be judged at so small a load; of a
        test of one's own that is an error."""
        if not registry.is_suite(self.item.path):
            return None
        from kafka_trial.consumers.consumer import spec_from_toml
        from kafka_trial.trial.spec import scenario_consumer_problem, scenario_load_problem

        spec = spec_from_toml(self.consumer, image=self.image, must_be_set=False)
        return scenario_consumer_problem(spec, scenario) or scenario_load_problem(spec, scenario, self.load)


@dataclass(frozen=True)
class Judged:
    """A trial with its verdict."""

    trial_outcome: TrialOutcome

    def must_pass(self) -> None:
        """Returns on *pass*.

        Raises:
            pytest.fail.Exception: the verdict is *fail*.
            UnknownVerdictError: it is *unknown*: an error of the test, neither failed nor skipped.
        """
        place = f"report: {self.trial_outcome.folder.path / 'report.html'}"
        told = "\n".join(filter(None, [self.trial_outcome.text, self.trial_outcome.tries, place]))
        if self.trial_outcome.verdict.verdict == "fail":
            pytest.fail(told, pytrace=False)
        if self.trial_outcome.verdict.verdict != "pass":
            raise UnknownVerdictError(told)


@pytest.fixture
def trial(request: pytest.FixtureRequest, kafka_trial_session: Session, tmp_path: Path) -> Trial:
    """Returns the callable that puts the item's consumer through a scenario."""
    chosen, version = request.param
    config = request.config
    runs = config.getoption("trial_runs")
    out = Path(runs) / _folder_name(request.node.name) if runs else tmp_path
    retries = config.getoption("retry_unknown")
    image = config.getoption("consumer_image")
    session, load = kafka_trial_session, config.getoption("load")
    return Trial(session, chosen.file, version, _seed(config), out, request.node, retries, image, load)


@pytest.fixture(scope="session")
def kafka_trial_session(pytestconfig: pytest.Config) -> Iterator[Session]:
    """Holds the warm clusters and the Spark session of this pytest session; what takes long is told."""
    from kafka_trial.trial.console import Console
    from kafka_trial.trial.session import Session

    write = _terminal_lines(pytestconfig)
    with Console(quiet=write is None, terse=True, write=write) as console, Session(console=console) as session:
        console.rest()  # until the first trial
        yield session


def _terminal_lines(config: pytest.Config) -> Callable[[str], None] | None:
    """Returns what writes a line to the terminal although pytest captures; None in a worker, which has no terminal."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or capture is None:
        return None

    def write(text: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(text)
            reporter.flush()  # it may be a pipe

    return write


def _versions(config: pytest.Config) -> list[str]:
    given = config.getoption("kafka") or [DEFAULT_VERSION]
    return [version.strip() for part in given for version in part.split(",")]


SEED = "kafka_trial_seed"
_drawn_seed = random.SystemRandom().randrange(2**31)


def _seed(config: pytest.Config) -> int:
    given: int | None = config.getoption("trial_seed")
    told = getattr(config, "workerinput", {})
    return told.get(SEED, _drawn_seed) if given is None else given


def _folder_name(node: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in node)


SETTING = "kafka_trial_consumer"
MARKER = "consumer"
NOT_NAMED = (
    "{node}: no consumer is named: give --consumer FILE, or kafka_trial_consumer = path/to/consumer.toml "
    'in the pytest settings, or @pytest.mark.consumer("path/to/consumer.toml")'
)


@dataclass(frozen=True)
class Refused:
    """Stands where a consumer should: why the test cannot be run. Told in one line once all tests are collected."""

    because: str


@dataclass(frozen=True)
class Chosen:
    """One consumer for a test: what it is called there, and its consumer.toml."""

    name: str
    file: Path


def chosen_for(metafunc: pytest.Metafunc, versions: list[str]) -> Iterator[tuple[Chosen | Refused, str]]:
    """Yields the consumer and version of each item of a test that asks for `trial`."""
    config, here = metafunc.config, Path(metafunc.module.__file__ or ".")
    named = config.getoption("consumer")
    marks = [str(name) for mark in metafunc.definition.iter_markers(MARKER) for name in mark.args]
    setting = [str(name) for name in config.getini(SETTING)]
    root = config.inipath.parent if config.inipath else config.rootpath
    if named or marks or setting:
        names = named or marks or setting
        folders = [] if named else [here.parent, root] if marks else [root]
        image = config.getoption("consumer_image")
        yield from ((_found(name, folders, version, image), version) for name in names for version in versions)
    elif _is_ours(config, here):
        for name in sorted(registry.speaking_references()):
            yield from (
                (Chosen(name, registry.find_consumer(name)), version) for version in versions if fits(name, version)
            )
    else:
        yield Refused(NOT_NAMED.format(node=metafunc.definition.nodeid)), versions[0]


def check(file: Path, version: str, *, image: str | None = None) -> None:
    """Makes sure that the file can be read and that brokers of a version speak its protocol; `image` stands for what it
    names. What `pass_env` names is looked for when the trial begins: a fixture may set it.

    Raises:
        InputError: not so.
    """
    from kafka_trial.consumers.consumer import spec_from_toml
    from kafka_trial.trial.spec import check_protocol

    check_protocol(spec_from_toml(file, image=image, must_be_set=False), version)


def fits(name: str, version: str) -> bool:
    """Tells whether a reference consumer speaks a protocol that brokers of this version speak."""
    try:
        check(registry.find_consumer(name), version)
    except InputError:
        return False
    return True


def _found(name: str, folders: list[Path], version: str, image: str | None) -> Chosen | Refused:
    """Returns the consumer of a path, relative to the first of the folders where there is one, or of a fixture."""
    there = next((str(folder / name) for folder in folders if (folder / name).exists()), name)
    try:
        file = registry.find_consumer(there)
        check(file, version, image=image)
    except InputError as error:
        return Refused(str(error))
    return Chosen(name, file)


def _is_ours(config: pytest.Config, module: Path) -> bool:
    """Tells whether a test is one of our suites in our own checkout."""
    return config.rootpath == registry.CHECKOUT and registry.is_suite(module)


TRIED_AGAIN = "tried again"


class UnknownVerdictError(UnjudgeableError):
    """A trial whose verdict is unknown, where a test asked it to pass."""


class Outcomes:
    """The hooks of one pytest session that tell verdicts."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Marks the report of a trial that is unknown, or that ended without a verdict: nothing was found out about the
        consumer. Hands on what was tried."""
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, UnknownVerdictError) or (error is not None and error is item.stash.get(BROKE, None)):
            report.unknown = True  # type: ignore[attr-defined]
            if isinstance(error, KafkaTrialError):  # it says all; where something else broke, pytest's traceback does
                report.longrepr = str(error)
        if results := item.stash.get(RESULTS, []):
            report.trials = [asdict(result) for result in results]  # type: ignore[attr-defined]
            self._add_to_allure(results, report)
            results.clear()
        return report

    def _add_to_allure(self, results: list[TrialResult], report: pytest.TestReport) -> None:
        """Where allure-pytest writes results: adds the trials to that of this test, before pytest may remove them."""
        listener = self._config.pluginmanager.get_plugin("allure_listener")
        if listener is None:
            return
        from kafka_trial.report.allure import add_trial, tell_verdict

        test = listener.allure_logger.get_test(None)
        for result in results:
            add_trial(listener.allure_logger, test, result)
        if report.longreprtext.endswith(f"report: {results[-1].report}"):
            tell_verdict(test, results[-1], told=report.longreprtext)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Counts an unknown trial among the errors."""
        return ("error", "E", "ERROR") if getattr(report, "unknown", False) else None

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Makes an error of what the JUnit file, written before, calls a failure."""
        junit = _junit(self._config) if getattr(report, "unknown", False) else None
        if junit is not None:
            for node in junit.node_reporter(report).nodes:
                if node.tag == "failure":
                    node.tag = "error"
                    junit.stats["failure"] -= 1
                    junit.stats["error"] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Names the trials that were tried again because their environment had made them unknown; tells a CI of all."""
        reports = [report for reports in terminalreporter.stats.values() for report in reports]
        if trials := [trial for report in reports for trial in getattr(report, "trials", ())]:
            self._tell_ci(trials, terminalreporter)
        told = [
            (report.nodeid, text)
            for report in reports
            if getattr(report, "when", None) == "call"
            for name, text in report.user_properties
            if name == TRIED_AGAIN
        ]
        if told:
            terminalreporter.section("kafka-trial: unknown, tried again")
            for node, text in told:
                terminalreporter.line(f"{node}: {text}")

    def _tell_ci(self, trials: list[dict[str, Any]], terminalreporter: Any) -> None:
        from kafka_trial.report.markdown import append_summary, summary
        from kafka_trial.report.trial_result import TrialResult

        results = [TrialResult(**trial) for trial in trials]
        page = os.path.commonpath([result.report for result in results])
        all_suites = registry.scenarios().keys()
        tried = {result.scenario for result in results} & all_suites
        suites = f"{len(tried)} of {len(all_suites)} suites" if tried else ""
        if problem := append_summary(summary(results, page=page, suites=suites)):
            terminalreporter.line(problem)
        if self._config.pluginmanager.has_plugin("allure_listener"):
            from kafka_trial.report.allure import write_directory

            write_directory(Path(self._config.getoption("allure_report_dir")), results)


def _junit(config: pytest.Config) -> Any:
    """Returns what writes the JUnit file; None where nobody asked for one."""
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if type(plugin).__name__ == "LogXML"), None)
