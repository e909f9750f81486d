"""Strangers plug in: an anomaly, a fault, a suite and a consumer from one file each are listed, run and judged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_trial import plugins, registry
from kafka_trial.cli import main
from kafka_trial.errors import FAIL, WRONG_INPUT, InputError
from plugin_files import write_plugins

STORED = registry.CHECKOUT / "fixtures" / "histories" / "member-killed"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Path]]:
    """The four files; afterwards nothing of them is known any more."""
    monkeypatch.setenv(registry.PLUGINS, "")
    known = {kind: dict(names) for kind, names in plugins._registries().items()}
    yield write_plugins(tmp_path)
    plugins._LOADED.clear()
    for kind, names in plugins._registries().items():
        names.clear()
        names.update(known[kind])


@pytest.mark.parametrize(
    ("kind", "what", "name"),
    [
        ("anomaly", "invariants", "odd-record"),
        ("fault", "faults", "nap"),
        ("consumer", "consumers", "mine"),
    ],
)
def test_what_a_file_registers_is_listed(
    kind: str, what: str, name: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """By the verb that lists its kind; without the file it is not known."""
    assert main(["list", what, "--plugin", str(files[kind])]) == 0
    assert name in [line.split()[0] for line in capsys.readouterr().out.splitlines()]


def test_a_suite_needs_the_fault_that_it_names(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Loaded after it, it is a scenario like ours."""
    words = ["list", "scenarios", "--plugin", str(files["fault"]), "--plugin", str(files["suite"])]
    assert main(words) == 0
    assert "napping a small load, one member sleeps" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "registers nothing"),
        ("1 / 0", "cannot be executed: ZeroDivisionError"),
        ("def (", "cannot be executed: SyntaxError"),
        ("from kafka_trial.suites import nothing", "cannot be executed"),
        (
            "from kafka_trial.scenario import Scenario\nSCENARIO = Scenario('control', 'taken')",
            "'control' exists already",
        ),
    ],
)
def test_a_file_that_is_no_plug_in_is_refused(
    text: str, told: str, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its place, and nothing of it stays."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text)
    before = {kind: set(names) for kind, names in plugins._registries().items()}
    assert main(["list", "faults", "--plugin", str(wrong)]) == WRONG_INPUT
    said = capsys.readouterr().err
    assert (str(wrong) in said, told in said) == (True, True), said
    assert {kind: set(names) for kind, names in plugins._registries().items()} == before


def test_a_name_of_ours_is_not_taken(files: dict[str, Path], tmp_path: Path) -> None:
    """A second `kill` would be played in place of ours."""
    mine = tmp_path / "kill.py"
    mine.write_text(files["fault"].read_text().replace('"nap"', '"kill"'))
    with pytest.raises(InputError, match="the fault 'kill' exists already"):
        plugins.load([str(mine)])


def test_a_file_that_is_not_there_is_wrong_input(files: dict[str, Path]) -> None:
    """It is named."""
    with pytest.raises(InputError, match=r"nowhere\.py cannot be read \(FileNotFoundError\)"):
        plugins.load(["nowhere.py"])


def test_a_run_that_was_made_with_a_plug_in_is_not_judged_without_it(files: dict[str, Path], tmp_path: Path) -> None:
    """It is loaded again where it is what it was; else the run would be judged by less, and might pass."""
    digest = plugins._digest(files["anomaly"].read_text())
    plugins.require({str(files["anomaly"]): digest})
    assert [plugin.name for plugin in plugins.loaded()] == [str(files["anomaly"])]
    with pytest.raises(InputError, match="it is gone, or was changed: --plugin FILE"):
        plugins.require({str(tmp_path / "gone.py"): "0" * 16})


@pytest.mark.spark
def test_an_anomaly_is_judged_in_sparks_workers(files: dict[str, Path], tmp_path: Path) -> None:
    """`check` of a stored run with the file: its violations are told, and explained."""
    run = shutil.copytree(STORED, tmp_path / "run")
    words = ["check", str(run), "--plugin", str(files["anomaly"])]
    done = subprocess.run([sys.executable, "-m", "kafka_trial", *words], capture_output=True, text=True, check=False)
    assert done.returncode == FAIL, done.stderr
    assert done.stdout.splitlines()[0].startswith("FAIL: odd-record")
    assert "usually: Offsets are numbers." in done.stdout


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_all_four_take_part_in_a_trial(files: dict[str, Path], tmp_path: Path) -> None:
    """The fault had an effect, the anomaly was found by the judge of the trial, and the replay names the files."""
    named = [word for kind in ("fault", "suite", "consumer", "anomaly") for word in ("--plugin", str(files[kind]))]
    words = ["run", "napping", "--consumer", "mine", "--seed", "7", "--out", str(tmp_path / "run"), *named]
    done = subprocess.run([sys.executable, "-m", "kafka_trial", *words], capture_output=True, text=True, check=False)
    assert done.returncode == FAIL, done.stdout + done.stderr
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert [(fault["kind"], fault["bit"]) for fault in verdict["faults"]] == [("nap", True)]
    assert [one["anomaly"] for one in verdict["violations"]] == ["odd-record"]
    (replay,) = [line for line in done.stdout.splitlines() if line.startswith("replay: ")]
    assert [str(files[kind]) in replay for kind in files] == [True] * len(files)


JUDGED_UNDER_PYTEST = """
from pathlib import Path

from kafka_trial.history.store import RunFolder
from kafka_trial.process.children import ChildProcesses
from kafka_trial.pytest_plugin import Judged
from kafka_trial.report.text import text_report
from kafka_trial.trial.judge_process import JudgeProcess
from kafka_trial.trial.session import TrialOutcome


def test_stored(tmp_path):
    run = RunFolder(Path("run"))
    with ChildProcesses("judge") as child_processes:
        judge = JudgeProcess(child_processes, tmp_path)
        verdict = judge.check(run)
        judge.close()
    Judged(TrialOutcome(run, verdict, text_report(run))).must_pass()
"""


@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_an_anomaly_is_judged_under_pytest(files: dict[str, Path], tmp_path: Path) -> None:
    """Where the judge of a session's trials runs: a process of its own, which pytest tells of the file."""
    shutil.copytree(STORED, tmp_path / "run")
    (tmp_path / "test_stored.py").write_text(JUDGED_UNDER_PYTEST)
    asked = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", f"--rootdir={tmp_path}", "test_stored.py"]
    judged = subprocess.run(
        [*asked, f"--plugin={files['anomaly']}"],
        cwd=tmp_path,
        env={**os.environ, registry.PLUGINS: ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == pytest.ExitCode.TESTS_FAILED, judged.stdout + judged.stderr
    assert "FAIL: odd-record" in judged.stdout, judged.stdout + judged.stderr


def test_pytest_takes_them_too(files: dict[str, Path], tmp_path: Path) -> None:
    """A suite in a test file of the stranger's own, with the fault and the consumer that were plugged in."""
    (tmp_path / "test_napping.py").write_text(
        "from kafka_trial.registry import find_scenario\n\n\n"
        "def test_napping(trial):\n    trial(find_scenario('napping')).must_pass()\n"
    )
    named = [f"--plugin={files[kind]}" for kind in ("fault", "suite", "consumer")]
    asked = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--collect-only",
        "-q",
        *named,
        "--consumer=mine",
    ]
    listed = subprocess.run(
        [*asked, f"--rootdir={tmp_path}", "test_napping.py"],
        cwd=tmp_path,
        env={**os.environ, registry.PLUGINS: ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "test_napping.py::test_napping[mine-" in listed.stdout, listed.stdout + listed.stderr


@pytest.mark.spark
def test_an_installed_package_names_its_modules(files: dict[str, Path], tmp_path: Path) -> None:
    """By an entry point: its anomaly is judged in Spark's workers; without the package the run is not judged."""
    site, run = tmp_path / "site", shutil.copytree(STORED, tmp_path / "run")
    (site / "stranger-1.dist-info").mkdir(parents=True)
    (site / "stranger-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    (site / "stranger-1.dist-info" / "entry_points.txt").write_text(f"[{plugins.GROUP}]\nodd = stranger_odd\n")
    shutil.copy(files["anomaly"], site / "stranger_odd.py")
    metadata = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**metadata, "plugins": {"stranger_odd": ""}}))
    asked = [sys.executable, "-m", "kafka_trial", "check", str(run)]
    installed = {**os.environ, registry.PLUGINS: "", "PYTHONPATH": str(site)}
    judged = subprocess.run(asked, env=installed, capture_output=True, text=True, check=False)
    assert judged.stdout.startswith("FAIL: odd-record"), judged.stdout + judged.stderr
    without = subprocess.run(
        asked, env={**os.environ, registry.PLUGINS: ""}, capture_output=True, text=True, check=False
    )
    assert (without.returncode, "install the package it is of" in without.stderr) == (WRONG_INPUT, True), without.stderr
