"""Every command that a page shows in a console is executed: here, or by a test that is named; or it is an exception.

The exceptions and their reasons are printed by `python tests/test_page_commands.py`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docker import DockerClient

from kafka_trial.cli import main
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.errors import FAIL, PASS
from kafka_trial.registry import CHECKOUT, find_scenario
from lab.images import image_of_team

CASES = sorted((CHECKOUT / "docs" / "cases").glob("*.md"))
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md")), *CASES]
STORED = CHECKOUT / "fixtures" / "histories" / "member-killed"

OF_A_RUN = (  # executed on the stored run of a real trial
    "kafka-trial list suites",
    "kafka-trial check trial-runs/RUN",
    "kafka-trial report trial-runs/RUN",
    "kafka-trial show trial-runs/RUN offsets#31",
    "kafka-trial show trial-runs/RUN partition 0 record 44",
)
PREFLIGHTS = {  # executed as they stand, with the page's plan.toml: each with its status
    "kafka-trial preflight --record-max 300MB --partitions 360 --consumers 1": FAIL,
    "kafka-trial preflight --record-max 50MB --partitions-per-consumer 45 --consumers-per-process 8 "
    "--buffered-per-partition 1": FAIL,
    "kafka-trial preflight --record-max 800kB --partitions 12 --consumers 6 --backlog 4320 "
    "--blocking-timeout 10s": PASS,
    "kafka-trial preflight --config plan.toml": PASS,
    "kafka-trial preflight --record-max 1MB --partitions 3 --consumers 1 --brokers 3 --consumer-library librdkafka "
    "--memory-max 45MB": FAIL,
}
LIVE = "kafka-trial run member-killed --consumer consumer.toml"  # executed as it stands, with the README's consumer
TUTORIAL = (CHECKOUT / "docs" / "containers.md").read_text()
IN_CONTAINERS = {  # of the tutorial, executed as they stand: command → the teams whose images it needs, its status
    "kafka-trial run member-killed --consumer fixtures/images/python-orders": (["python-orders"], PASS),
    "kafka-trial run member-killed --consumer fixtures/images/python-orders/commits-before.toml": (
        ["python-orders"],
        FAIL,
    ),
    "kafka-trial run control --consumer fixtures/images/python-orders --consumer-image kafka-trial/go-orders:1": (
        ["go-orders"],
        PASS,
    ),
}
ELSEWHERE = {  # command → the file that executes it, and the words by which it does
    "make demo": ("tests/live/test_demo.py", "demonstrate("),
    "make test": (".ci/run", "exec make test"),
    "make setup": ("Makefile", "test: setup"),
    "make lint": ("Makefile", "test: setup lint"),
    "make dockerd": ("tests/containers/test_private_engine.py", 'private_engine.main(["start"])'),
    "make images": ("tests/containers/test_team_images.py", "image_of_team("),
    **{
        f"kafka-trial run member-killed --consumer fixtures/images/go-invoices{file}": (
            "tests/containers/test_image_outputs.py",
            words,
        )
        for file, words in (
            ("", 'Output("consumer", '),
            ("/table.toml", 'Output("table", "table-commits-before"'),
            ("/table-commits-before.toml", 'Output("table", "table-commits-before"'),
        )
    },
    "kafka-trial cuts --consumer consumer.toml --api OffsetCommit --out cuts": (
        "tests/live/test_cuts.py",
        '"cuts", "--consumer"',
    ),
    "kafka-trial certify --consumer consumer.toml --out certificate": ("tests/live/test_certify.py", '"certify"'),
    "kafka-trial certify --consumer consumer.toml --budget 10m --out certificate": (
        "tests/live/test_certify.py",
        '"--budget"',
    ),
    "kafka-trial verify certificate/certificate.json": ("tests/live/test_certify.py", '"verify"'),
    "kafka-trial run member-killed --consumer consumer.toml --seeds 1..5": (
        "tests/live/test_warm_cluster.py",
        "--seeds",
    ),
    # Of the cases, by the same two files: test_the_files_of_a_case_are_there reads them.
    "kafka-trial run provocations/frozen.toml --consumer none.toml --seed 1": (
        "tests/live/test_stuck_partition.py",
        'StuckPartitionCell("frozen", cure, SEED) for cure in ("none", ',
    ),
    "kafka-trial run scenarios/hot-run.toml --consumer 1-record-1000ms.toml": (
        "tests/live/test_blocking_turns.py",
        'BlockingTurnsCell(HOT_RUN, "1-record-1000ms")',
    ),
    "kafka-trial run scenarios/hot-run.toml --consumer one-poll.toml": (
        "tests/live/test_blocking_turns.py",
        "BlockingTurnsCell(HOT_RUN, CURE)",
    ),
    "kafka-trial run backlog.toml --consumer default-prefetch.toml": (
        "tests/live/test_large_records.py",
        '{"default-prefetch": {}, ',
    ),
    "kafka-trial run backlog.toml --consumer small-prefetch.toml": (
        "tests/live/test_large_records.py",
        '"small-prefetch": {"queued',
    ),
}
EXCEPTIONS = {
    "kafka-trial run cut-OffsetCommit-answered-kill --consumer consumer.toml": "a cell of `kafka-trial cuts`, which "
    "tests/live/test_cuts.py runs; by its name it is found in tests/nemesis/test_cut_scenarios.py",
    "kafka-trial preflight --bootstrap broker1:9092 --topic orders --group billing --consumer-library librdkafka "
    "--consumer-config consumer.properties": "needs a cluster that is not ours; "
    "tests/preflight/test_preflight_cluster.py asks one that is",
    "pytest --pyargs kafka_trial.suites --consumer consumer.toml": "the suites are in the wheel: test_pytest_plugin.py "
    "collects them from one, tests/cluster/test_wheel_alone.py tries and judges from one",
    "docker build -f ci/Dockerfile -t kafka-trial .": "needs a container engine; tests/test_ci_files.py builds it "
    "where one answers, and looks everywhere that what it copies is there and makes a whole wheel",
    "pytest --pyargs kafka_trial.suites --consumer consumer.toml --trial-runs runs --junitxml junit.xml "
    "--alluredir allure": "the same suites; test_pytest_plugin.py and tests/report/test_allure.py run literal "
    "trials with these options",
    "kafka-trial run references.toml --consumer claim-check.toml": "`make cases` measures it: a row of "
    "reports/large_record_cures.jsonl; test_the_files_of_a_case_are_there reads its files",
    "npx allure generate allure --output allure-report": "npx would fetch the newest Allure; "
    "tests/report/test_allure.py runs that of its lock file",
    ".venv/bin/python -m pytest tests/invariants/test_commits.py": "a part of what runs this",
    "docker save --output images.tar kafka-trial/kafka:4.3.1 team/orders:1.4": "Docker's own, with an image of yours",
    "docker load --input images.tar": "Docker's own, on another machine",
}
OTHER_PEOPLES = "needs a cluster that is not ours; tests/audit/test_audit_cluster.py audits one that is"


def commands() -> dict[str, str]:
    """Returns every command that stands behind a prompt in a console block, or begins a block, and its page."""
    found = {}
    for page in PAGES:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
        for block in (text for language, text in blocks if language in ("", "console", "sh")):
            for line in block.replace("\\\n", " ").splitlines():
                words = line.removeprefix("$ ").partition("   ")[0].strip()
                if line.startswith("$ cd "):
                    continue  # test_the_files_of_a_case_are_there goes there
                if line.startswith("$ ") or re.match(r"kafka-trial |make |pytest ", line):
                    found[re.sub(r"\s+#.*", "", words)] = page.name
    return found


def exceptions() -> dict[str, str]:
    """Returns the commands that nothing executes, each with the reason."""
    audits = {command: OTHER_PEOPLES for command in commands() if command.startswith("kafka-trial audit ")}
    return {**EXCEPTIONS, **audits}


def test_every_command_is_executed_or_an_exception() -> None:
    """A new one needs its place here; one that is gone leaves it."""
    known = {*OF_A_RUN, *PREFLIGHTS, LIVE, *IN_CONTAINERS, *ELSEWHERE, *exceptions()}
    assert (set(commands()) - known, known - set(commands())) == (set(), set())


def test_what_is_executed_elsewhere_is_executed_there() -> None:
    """The file says so still."""
    wrong = [command for command, (file, words) in ELSEWHERE.items() if words not in (CHECKOUT / file).read_text()]
    assert wrong == []


@pytest.mark.parametrize("page", CASES, ids=lambda page: page.stem)
def test_the_files_of_a_case_are_there(page: Path) -> None:
    """In the folder that its block goes to first: scenarios and consumers that can be read."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        goes, *rest = (line.removeprefix("$ ").split() for line in block.splitlines())
        assert goes[0] == "cd"
        for words in (words for words in rest if words[1] == "run"):
            assert find_scenario(str(CHECKOUT / goes[1] / words[2])).summary
            assert spec_from_toml(CHECKOUT / goes[1] / words[words.index("--consumer") + 1]).command


@pytest.mark.spark
@pytest.mark.parametrize("command", OF_A_RUN)
def test_a_command_on_a_stored_run_works(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends in status 0 and says something."""
    shutil.copytree(STORED, tmp_path / "trial-runs" / "RUN")
    monkeypatch.chdir(tmp_path)
    if " report " in command:
        assert main(["check", "trial-runs/RUN"]) == PASS
    assert main(shlex.split(command)[1:]) == PASS
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(("command", "status"), PREFLIGHTS.items())
def test_a_preflight_of_the_page_works(
    command: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the plan of the page; what does not fit is said to."""
    page = (CHECKOUT / "docs" / "preflight.md").read_text()
    (tmp_path / "plan.toml").write_text(re.findall(r"```toml\n(# plan\.toml.*?)```", page, re.DOTALL)[0])
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == status
    assert capsys.readouterr().out.startswith("YES: " if status == PASS else "NO: ")


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_a_command_that_runs_a_trial_works(tmp_path: Path) -> None:
    """With the consumer of the README's five minutes, as the page has it."""
    readme = (CHECKOUT / "README.md").read_text()
    (tmp_path / "consumer.toml").write_text(re.findall(r"```toml\n(schema = 1.*?)```", readme, re.DOTALL)[0])
    (tmp_path / "mine.py").write_text(re.findall(r"```python\n(# mine\.py.*?)```", readme, re.DOTALL)[0])
    asked = [sys.executable, "-m", "kafka_trial", *shlex.split(LIVE)[1:]]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == PASS, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_tutorial_shows_the_consumers_that_it_runs() -> None:
    """The whole file of the example team, but for its comment; of those with other outputs, what is not the same."""
    whole, *parts = re.findall(r"^```toml\n(.*?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE)
    files = ("python-orders/consumer.toml", "go-invoices/consumer.toml", "go-invoices/table.toml")
    first, *others = ((CHECKOUT / "fixtures" / "images" / file).read_text() for file in files)
    assert whole == re.sub(r"^#.*\n", "", first, flags=re.MULTILINE)
    for shown, text in zip(parts, others, strict=True):
        env, _, rest = shown.removeprefix("[env]\n").partition("\n\n")
        assert text.endswith(f"{env}\n\n{rest}")


def _first_line(text: str) -> tuple[str, set[str]]:
    """The verdict, and the anomalies of a fail: where a kill meets more in hand, it shows more than the page."""
    verdict, _, rest = text.splitlines()[0].partition(": ")
    return (verdict, set(rest.split(", "))) if verdict == "FAIL" else (text.splitlines()[0], set())


@pytest.mark.cluster
@pytest.mark.rotates
@pytest.mark.spark
@pytest.mark.parametrize("command", IN_CONTAINERS)
def test_a_command_of_the_tutorial_ends_as_it_shows(
    command: str, engine: DockerClient, engine_host: str, tmp_path: Path
) -> None:
    """With its status and first line, from a folder that has the example teams; its containers are gone afterwards."""
    teams, status = IN_CONTAINERS[command]
    for team in teams:
        image_of_team(engine, team)
    (tmp_path / "fixtures").symlink_to(CHECKOUT / "fixtures")
    asked = [sys.executable, "-m", "kafka_trial", *shlex.split(command)[1:]]
    environment = {**os.environ, "DOCKER_HOST": engine_host}
    with subprocess.Popen(
        asked, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            said, told = process.communicate(timeout=420)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == status, said[-3000:] + told[-3000:]
    (shown,) = re.findall(rf"^\$ {re.escape(command)}\n(.+)$", TUTORIAL, re.MULTILINE)
    (verdict, found), (told_verdict, told_found) = (_first_line(text) for text in (shown, said))
    assert (told_verdict, found - told_found) == (verdict, set())
    its_own = {"label": f"kafka-trial.pid={process.pid}"}
    assert (engine.containers.list(all=True, filters=its_own), engine.networks.list(filters=its_own)) == ([], [])


if __name__ == "__main__":
    for shown, reason in exceptions().items():
        print(f"{shown}: {reason}")
