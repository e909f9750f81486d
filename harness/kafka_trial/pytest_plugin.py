"""The pytest plugin: the face. A `trial` fixture, one item per scenario × consumer × Kafka version, honest outcomes.

`trial(SCENARIO).must_pass()` runs one trial and judges it. A verdict *fail* is a test failure; *unknown* is a test
error: both red, never skipped. Clusters stay warm for the session and are rebuilt when a fault ruined them.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_trial import registry
from kafka_trial.cluster.versions import DEFAULT_VERSION, find_version
from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.scenario import Scenario

if TYPE_CHECKING:  # loaded with every pytest: Kafka clients and Spark are imported by the first trial only
    from kafka_trial.session import Session, Trialed


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("kafka-trial", "Kafka Trial: consumers on trial")
    group.addoption(
        "--consumer", action="append", metavar="FILE", help="consumer.toml, or a fixture's name (repeatable)"
    )
    group.addoption("--consumer-image", metavar="IMAGE", help="a container image (not in this version yet)")
    group.addoption(
        "--kafka", action="append", metavar="VERSION", help="Kafka version (repeatable, or comma separated)"
    )
    group.addoption("--trial-seed", type=int, metavar="N", help="seed of every trial (default: drawn, printed)")
    group.addoption("--trial-runs", metavar="DIR", help="where run folders go (default: pytest's temporary folder)")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Says what is on trial, and the seed that repeats it."""
    if not config.getoption("consumer"):
        return None
    return f"kafka-trial: consumers {', '.join(config.getoption('consumer'))}; seed {_seed(config)}"


def pytest_configure(config: pytest.Config) -> None:
    """Refuses what cannot be served, before anything starts."""
    if config.getoption("consumer_image"):
        raise pytest.UsageError("--consumer-image: containers are not in this version yet; use --consumer FILE")
    try:
        for version in _versions(config):
            find_version(version)
            for name in config.getoption("consumer") or ():
                _check(name, version)
    except InputError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports a verdict *unknown* as an error, not as a failure: nothing was found out about the consumer.

    pytest (its terminal and its JUnit file) calls an error what did not happen in the test's own phase.
    """
    report = yield
    if call.when == "call" and call.excinfo is not None and isinstance(call.excinfo.value, UnknownVerdictError):
        report.when = "setup"
        report.longrepr = str(call.excinfo.value)
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes one item per consumer and version for every test that asks for `trial`."""
    if "trial" not in metafunc.fixturenames:
        return
    versions = _versions(metafunc.config)
    given = metafunc.config.getoption("consumer")
    names = given or sorted(registry.speaking_references())
    pairs = [(name, version) for name in names for version in versions if given or _fits(name, version)]
    metafunc.parametrize(
        "trial",
        [(registry.find_consumer(name), version) for name, version in pairs],
        indirect=True,
        ids=[f"{name}-{version}" for name, version in pairs],
    )


@dataclass(frozen=True)
class Trial:
    """What a test calls: `trial(scenario)` runs one trial of the item's consumer and returns it judged."""

    session: Session
    consumer: Path
    kafka_version: str
    seed: int
    out: Path
    item: pytest.Item

    def __call__(self, scenario: Scenario) -> Judged:
        trialed = self.session.try_one(
            scenario, self.consumer, kafka_version=self.kafka_version, seed=self.seed, out=self.out / scenario.name
        )
        self.item.user_properties.extend(
            [("verdict", trialed.verdict.verdict), ("seed", str(self.seed)), ("run", str(trialed.folder.path))]
        )
        return Judged(trialed)


class UnknownVerdictError(UnjudgeableError):
    """A trial whose verdict is unknown, where a test asked it to pass."""


@dataclass(frozen=True)
class Judged:
    """A trial with its verdict."""

    trialed: Trialed

    def must_pass(self) -> None:
        """Returns on *pass*.

        Raises:
            pytest.fail.Exception: the verdict is *fail*.
            UnknownVerdictError: it is *unknown*: an error of the test, neither failed nor skipped.
        """
        if self.trialed.verdict.verdict == "fail":
            pytest.fail(self.trialed.text, pytrace=False)
        if self.trialed.verdict.verdict != "pass":
            raise UnknownVerdictError(self.trialed.text)


@pytest.fixture
def trial(request: pytest.FixtureRequest, kafka_trial_session: Session, tmp_path: Path) -> Trial:
    """Returns the callable that puts the item's consumer through a scenario."""
    consumer, version = request.param
    runs = request.config.getoption("trial_runs")
    out = Path(runs) / _folder_name(request.node.name) if runs else tmp_path
    return Trial(kafka_trial_session, consumer, version, _seed(request.config), out, request.node)


@pytest.fixture(scope="session")
def kafka_trial_session() -> Iterator[Session]:
    """Holds the warm clusters and the Spark session of this pytest session."""
    from kafka_trial.session import Session

    with Session() as session:
        yield session


def _fits(name: str, version: str) -> bool:
    """Tells whether a reference consumer speaks a protocol that brokers of this version speak."""
    try:
        _check(name, version)
    except InputError:
        return False
    return True


def _check(name: str, version: str) -> None:
    from kafka_trial.consumers.consumer import spec_from_toml
    from kafka_trial.question import check_protocol

    check_protocol(spec_from_toml(registry.find_consumer(name)), version)


def _versions(config: pytest.Config) -> list[str]:
    given = config.getoption("kafka") or [DEFAULT_VERSION]
    return [version.strip() for part in given for version in part.split(",")]


_drawn_seed = random.SystemRandom().randrange(2**31)


def _seed(config: pytest.Config) -> int:
    given: int | None = config.getoption("trial_seed")
    return _drawn_seed if given is None else given


def _folder_name(node: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in node)
