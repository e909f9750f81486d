"""The README's commands work as they stand, in every kind of install: editable, from the wheel, and in the checkout."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import orjson
import pytest

from installs import (
    README,
    Installed,
    build_wheel,
    copy_checkout,
    install_checkout,
    install_wheel,
    write_readme_consumer,
)
from kafka_trial import registry
from kafka_trial.report.explain import TABLE, calibrated

(LINE,) = re.findall(r"^\$ (pytest .*?)(?:\s+#.*)?$", README, re.MULTILINE)
SUITES = {file.stem for file in registry.suites().values()}
LINKS = {name: registry.PACKAGE / name for name in ("suites", "reference", "faulty")}


@pytest.fixture(scope="module")
def from_wheel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """What `pip install` makes of the wheel."""
    return install_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """What `make setup` makes in a clone."""
    return install_checkout(tmp_path_factory.mktemp("editable"))


def pytest_line(installed: Installed, folder: Path, *more: str) -> str:
    """Runs the README's line with more words behind it where a new user has put the README's consumer; returns what it
    prints."""
    write_readme_consumer(folder)
    command, *words = shlex.split(LINE)
    done = installed.run(command, *words, *more, "-p", "no:cacheprovider", cwd=folder, within_s=300)
    return done.stdout + done.stderr


def collected(said: str) -> list[str]:
    """Returns the names of the tests that `--collect-only -q` printed."""
    return sorted(re.findall(r"\.py::(\w+)\[consumer\.toml-", said))


@pytest.mark.parametrize("place", ["work", "clone", "clone/mine"])
def test_the_line_finds_every_suite_after_make_setup(place: str, editable: Installed) -> None:
    """From a folder of one's own, from the root of the checkout, and from another folder in it."""
    folder = editable.work.parent / place
    folder.mkdir(exist_ok=True)
    said = pytest_line(editable, folder, "--collect-only", "-q")
    assert collected(said) == sorted(SUITES), said


def test_the_line_finds_every_suite_of_the_wheel(from_wheel: Installed) -> None:
    """Those that are installed, and no others."""
    said = pytest_line(from_wheel, from_wheel.work, "--collect-only", "-q")
    assert collected(said) == sorted(SUITES), said


def test_a_consumer_elsewhere_is_found_from_the_checkout(editable: Installed) -> None:
    """Pytest then takes its settings from the consumer's folder, and still reads tests/conftest.py."""
    write_readme_consumer(editable.work)
    line = LINE.replace("consumer.toml", str(editable.work / "consumer.toml"))
    clone = editable.work.parent / "clone"
    command, *words = shlex.split(line)
    done = editable.run(command, *words, "--collect-only", "-q", cwd=clone, within_s=300)
    assert (done.returncode, f"{len(SUITES)} tests collected" in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_line_runs_in_workers(editable: Installed) -> None:
    """Of pytest-xdist, in the checkout: a suite that the consumer cannot be given is skipped, with the reason."""
    said = pytest_line(editable, editable.work.parent / "clone", "-n", "1", "-k", "slow_handlers", "-rs")
    assert "1 skipped" in said, said
    assert 'slow-handlers cannot be played: the fault handler-slow needs [evidence] sink = "http"' in said


def test_the_wheel_has_what_the_checkout_has(from_wheel: Installed) -> None:
    """The consumers of the demonstration, and the table of the calibration, which `explain` reads."""
    listed = from_wheel.run("kafka-trial", "list", "consumers", within_s=300)
    assert {"python-poll-and-work", "commits-backwards"} <= {line.split()[0] for line in listed.stdout.splitlines()}
    anomaly = next(iter(orjson.loads(TABLE.read_bytes())["anomalies"]))
    explained = from_wheel.run("kafka-trial", "explain", anomaly, within_s=300)
    assert (from_wheel.packages / "kafka_trial" / "report" / TABLE.name).read_bytes() == TABLE.read_bytes()
    assert explained.stdout.splitlines()[-1] == calibrated(anomaly)


def test_the_links_lead_from_the_package_into_the_checkout() -> None:
    """Each is relative, and tracked as a link: whoever clones has them."""
    assert {
        name: link.is_symlink() and not link.readlink().is_absolute() for name, link in LINKS.items()
    } == dict.fromkeys(LINKS, True)
    for link in LINKS.values():
        assert registry.CHECKOUT in link.resolve(strict=True).parents


def test_the_source_archive_and_the_checkout_make_the_same_wheel(tmp_path: Path) -> None:
    """File by file; of the faulty consumers both have the one that `demo` convicts."""
    source = copy_checkout(tmp_path / "clone")
    build = [sys.executable, "-m", "hatchling", "build", "-d", tmp_path / "dist"]
    subprocess.run(build, cwd=source, check=True, capture_output=True, timeout=300)
    (archive,), (wheel,) = ((tmp_path / "dist").glob(kind) for kind in ("*.tar.gz", "*.whl"))
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path / "unpacked"], check=True)
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    again = build_wheel(tmp_path / "again", unpacked)
    first, second = (set(ZipFile(file).namelist()) for file in (wheel, again))
    assert first == second
    assert {name.split("/")[2] for name in first if name.startswith("kafka_trial/faulty/")} == {"commits-backwards"}
    assert {Path(name).stem for name in first if name.startswith("kafka_trial/suites/test_")} == SUITES
