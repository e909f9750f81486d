"""The pytest plugin: the face. A `trial` fixture, one item per scenario × consumer × Kafka version, honest outcomes.

`trial(SCENARIO).must_pass()` runs one trial and judges it. A verdict *fail* is a test failure; *unknown* is a test
error: both red, never skipped. Clusters stay warm for the session and are rebuilt when a fault ruined them. Ctrl-C
ends the session, after the trial was healed and cleaned up. Which consumers a test is for is in `pytest_consumers.py`,
how outcomes are told in `pytest_outcomes.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_trial import plugins, registry
from kafka_trial.cluster.versions import DEFAULT_VERSION, find_version
from kafka_trial.errors import INTERRUPTED, InputError, Interrupted
from kafka_trial.pytest_consumers import MARKER, SETTING, Chosen, Refused, check, chosen_for
from kafka_trial.pytest_outcomes import TRIED_AGAIN, Outcomes, UnknownVerdictError
from kafka_trial.scenario import Scenario

if TYPE_CHECKING:  # loaded with every pytest: Kafka clients and Spark are imported by the first trial only
    from kafka_trial.trial.session import Session, Trialed

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
    group.addoption("--plugin", action="append", metavar="FILE", help="also know what this file registers (repeatable)")
    group.addoption("--consumer-image", metavar="IMAGE", help="a container image (not in this version yet)")
    group.addoption(
        "--kafka", action="append", metavar="VERSION", help="Kafka version (repeatable, or comma separated)"
    )
    group.addoption("--trial-seed", type=int, metavar="N", help="seed of every trial (default: drawn, printed)")
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
    return f"kafka-trial: consumers {', '.join(map(str, named))}; seed {_seed(config)}"


def pytest_configure(config: pytest.Config) -> None:
    """Refuses what cannot be served, before anything starts."""
    config.addinivalue_line("markers", f"{MARKER}(path, …): the consumer.toml that a test with `trial` is for")
    for line in reversed(WARNINGS):  # those of the project's own come later, and win
        config.getini("filterwarnings").insert(0, line)
    config.pluginmanager.register(Outcomes(config), "kafka-trial-outcomes")
    if config.getoption("consumer_image"):
        raise pytest.UsageError("--consumer-image: containers are not in this version yet; use --consumer FILE")
    try:
        plugins.load(config.getoption("plugin") or ())
        for version in _versions(config):
            find_version(version)
            for name in config.getoption("consumer") or ():
                check(registry.find_consumer(name), version)
    except InputError as error:
        raise pytest.UsageError(str(error)) from error


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

    def __call__(self, scenario: Scenario) -> Judged:
        try:
            trialed = self.session.try_one(
                scenario,
                self.consumer,
                kafka_version=self.kafka_version,
                seed=self.seed,
                out=self.out / scenario.name,
                retry_unknown=self.retry_unknown,
            )
        except (Interrupted, KeyboardInterrupt) as interrupt:
            told = str(interrupt) or "interrupted while booting or judging; cleaned up"
            pytest.exit(f"kafka-trial: {told}", returncode=INTERRUPTED)
        self.item.user_properties.extend(
            [("verdict", trialed.verdict.verdict), ("seed", str(self.seed)), ("run", str(trialed.folder.path))]
        )
        if trialed.tries:
            self.item.user_properties.append((TRIED_AGAIN, trialed.tries))
        return Judged(trialed)


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
        told = "\n".join(filter(None, [self.trialed.text, self.trialed.tries]))
        if self.trialed.verdict.verdict == "fail":
            pytest.fail(told, pytrace=False)
        if self.trialed.verdict.verdict != "pass":
            raise UnknownVerdictError(told)


@pytest.fixture
def trial(request: pytest.FixtureRequest, kafka_trial_session: Session, tmp_path: Path) -> Trial:
    """Returns the callable that puts the item's consumer through a scenario."""
    chosen, version = request.param
    config = request.config
    runs = config.getoption("trial_runs")
    out = Path(runs) / _folder_name(request.node.name) if runs else tmp_path
    retries = config.getoption("retry_unknown")
    return Trial(kafka_trial_session, chosen.file, version, _seed(config), out, request.node, retries)


@pytest.fixture(scope="session")
def kafka_trial_session() -> Iterator[Session]:
    """Holds the warm clusters and the Spark session of this pytest session."""
    from kafka_trial.trial.session import Session

    with Session() as session:
        yield session


def _versions(config: pytest.Config) -> list[str]:
    given = config.getoption("kafka") or [DEFAULT_VERSION]
    return [version.strip() for part in given for version in part.split(",")]


_drawn_seed = random.SystemRandom().randrange(2**31)


def _seed(config: pytest.Config) -> int:
    given: int | None = config.getoption("trial_seed")
    return _drawn_seed if given is None else given


def _folder_name(node: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in node)
