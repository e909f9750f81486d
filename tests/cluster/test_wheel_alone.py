"""The wheel in an environment of its own outside the checkout: it looks, lists, tries and judges.

The trial is that of the README's pytest line, of one suite.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from installs import README, Installed, install_wheel, write_readme_consumer
from kafka_trial.errors import PASS
from kafka_trial.registry import CHECKOUT

SAY_WHERE = "import importlib.util as u, kafka_trial, sys; print(kafka_trial.__file__, u.find_spec('lab'), *sys.path)"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The environment with the wheel in it."""
    return install_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_the_wheel_looks_lists_tries_and_judges(installed: Installed) -> None:
    """`doctor`, `list`, a trial by pytest and `check`, as a stranger installs and calls them; a second judgement gives
    the first one's bytes. Nothing of the checkout can be imported there."""
    place, lab, *path = installed.run("python", "-c", SAY_WHERE, within_s=300).stdout.split()
    assert (Path(place), lab) == (installed.packages / "kafka_trial" / "__init__.py", "None")
    assert [part for part in path if Path(part).is_relative_to(CHECKOUT)] == []
    looked = installed.run("kafka-trial", "doctor", "--json", within_s=300)
    assert looked.returncode == PASS, looked.stdout + looked.stderr
    (python,) = [part for part in json.loads(looked.stdout) if part["part"] == "Python"]
    assert python["where"] == str(installed.scripts / "python")
    for what, name in (("suites", "control"), ("consumers", "python-at-least-once"), ("faults", "kill")):
        listed = installed.run("kafka-trial", "list", what, within_s=300)
        assert name in [line.split()[0] for line in listed.stdout.splitlines()], listed.stdout + listed.stderr
    write_readme_consumer(installed.work)
    (line,) = re.findall(r"^\$ (pytest .*?)(?:\s+#.*)?$", README, re.MULTILINE)
    one = ["-k", "control", "--trial-seed=7", "--trial-runs=runs", "--retry-unknown=1"]
    tried = installed.run(*shlex.split(line), *one, within_s=900)
    assert (tried.returncode, "1 passed" in tried.stdout) == (PASS, True), (tried.stdout + tried.stderr)[-3000:]
    verdicts = (installed.work / "runs").rglob("verdict.json")
    (run,) = (place.parent for place in verdicts if json.loads(place.read_bytes())["verdict"] == "pass")
    first = {name: (run / name).read_bytes() for name in ("verdict.json", "anomalies.jsonl")}
    for name in first:
        (run / name).unlink()
    judged = installed.run("kafka-trial", "check", run, within_s=900)
    assert judged.returncode == PASS, (judged.stdout + judged.stderr)[-3000:]
    assert {name: (run / name).read_bytes() for name in first} == first
