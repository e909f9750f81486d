"""Every command that a page shows in a block is executed: here, or by a test that is named; or it is an exception.

They are executed as a new user would: by the scripts of the editable install that `make setup` makes, in a folder of
their own. Whatever is ours is also parsed, in the text of the pages too, and the files that it names are looked for.
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

from installs import write_readme_consumer
from kafka_trial.cli import _parser
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.errors import FAIL, PASS
from kafka_trial.registry import CHECKOUT, find_scenario, suites
from lab.images import image_of_team
from pages import CASES, Command, block_commands, files_of, folders_of, text_commands
from tiers import in_turn

STORED = CHECKOUT / "fixtures" / "histories" / "member-killed"

OF_A_RUN = (  # executed on the stored run of a real trial, in this order
    "kafka-trial check trial-runs/RUN",
    "kafka-trial report trial-runs/RUN",
    "kafka-trial show trial-runs/RUN offsets#31",
    "kafka-trial show trial-runs/RUN partition 0 record 44",
)
QUICK = (  # executed as they stand, of the blocks and of the text
    "kafka-trial list scenarios|suites|faults|invariants|consumers",
    "kafka-trial list suites",
    "kafka-trial list scenarios",
    "kafka-trial list consumers",
    "kafka-trial list invariants --markdown",
    "kafka-trial explain --all",
    "kafka-trial explain commit-ahead",
    "kafka-trial init orders --language go --sink http",
    "kafka-trial preflight --help",
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
    "kafka-trial preflight --record-max 20kB --partitions 1 --consumers 1 --producer-library librdkafka "
    "--topic-setting max.message.bytes=32768": FAIL,
    "kafka-trial preflight --record-max 20kB --partitions 1 --consumers 1 --producer-library other "
    "--producer-setting batch.size=30000 max.request.size=1MB --consumer-library other "
    "--consumer-setting receive.message.max.bytes=50MB": PASS,
}
LIVE = (  # executed with the README's consumer, one each time
    "kafka-trial run member-killed --consumer consumer.toml",
    "kafka-trial run cut-OffsetCommit-answered-kill --consumer consumer.toml",
    "pytest --pyargs kafka_trial.suites --consumer consumer.toml",  # of one suite
)
COLLECTED = {  # executed as they stand, but that nothing is run: what is collected
    "pytest --pyargs kafka_trial.suites --consumer consumer.toml": len(suites()),
    "pytest --pyargs kafka_trial.suites --consumer consumer.toml --trial-runs runs --junitxml junit.xml "
    "--alluredir allure": len(suites()),
}
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
    "kafka-trial certify --kafka 3.9.2,4.1.2,4.4.0 --repeat 5 --consumer consumer.toml --out certificate": (
        "tests/live/test_compare.py",  # of two versions and one suite, with one seed
        '"--kafka", "3.9.2,4.3.1"',
    ),
    "kafka-trial certify --baseline old.toml --consumer consumer.toml --out certificate": (
        "tests/live/test_compare.py",
        '"--baseline", "old.toml", "--consumer", "consumer.toml", "--out", "certificate"',
    ),
    "kafka-trial verify certificate/certificate.json": ("tests/live/test_certify.py", '"verify"'),
    "kafka-trial run member-killed --consumer consumer.toml --seeds 1..5": (
        "tests/live/test_warm_cluster.py",
        "--seeds",
    ),
    # Of the cases, by the same two files: test_the_files_of_a_case_are_there reads them.
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
    "kafka-trial preflight --bootstrap broker1:9092 --topic orders --group billing --consumer-library librdkafka "
    "--consumer-config consumer.properties": (
        "tests/preflight/test_preflight_cluster.py",
        '["preflight", "--bootstrap"',
    ),
    "kafka-trial preflight --to 4.4.0 --bootstrap broker1:9092 --request-log broker-logs --consumer consumer.toml": (
        "tests/compatibility/test_outlook_cluster.py",
        '"--to", "4.4.0"',
    ),
    "kafka-trial upgrade --from 3.9.2 --to 4.3.1 --consumer consumer.toml --out upgrade": (
        "tests/live/test_upgrade_command.py",
        '["upgrade", "--from", "3.9.2", "--to", "4.3.1", "--consumer", "consumer.toml", "--out", "upgrade"]',
    ),
    "kafka-trial audit --bootstrap broker1:9092 --topic orders --group billing --from 12h --until now": (
        "tests/audit/test_audit_cluster.py",
        "main([*scene.words(",
    ),
    "kafka-trial audit --bootstrap broker1:9092 --group billing shipping --from 12h --out audits": (
        "tests/audit/test_several_cluster.py",
        'scene.audit(["billing", "shipping", "nobody"], []',
    ),
    "kafka-trial audit … --sink-db postgresql://reader@db/billing --sink-query "
    '"select order_id, written_at from bills where written_at between :from and :until"': (
        "tests/audit/test_sink_table.py",
        "postgresql://",
    ),
    "docker build -f ci/Dockerfile -t kafka-trial .": ("tests/test_ci_files.py", '{"dockerfile": "ci/Dockerfile", '),
    ".venv/bin/python -m pytest tests/invariants/test_commits.py": (".ci/run", "exec make test"),
}
EXCEPTIONS = {
    "kafka-trial run provocations/frozen.toml --consumer none.toml --seed 1": "what it shows is luck in one trial: "
    "`make cases` measures how often; test_the_files_of_a_case_are_there reads its files",
    "kafka-trial run references.toml --consumer claim-check.toml": "`make cases` measures it: a row of "
    "reports/large_record_cures.jsonl; test_the_files_of_a_case_are_there reads its files",
    "npx allure generate allure --output allure-report": "npx would fetch the newest Allure; "
    "tests/report/test_allure.py runs that of its lock file",
    "docker save --output images.tar kafka-trial/kafka:4.3.1 team/orders:1.4": "Docker's own, with an image of yours",
    "docker load --input images.tar": "Docker's own, on another machine",
}
READERS_OWN = {"mine.toml", "old.toml", "consumer.properties"}  # a scenario, an older client, a client's settings


def as_installed(command: str, *more: str, cwd: Path, within_s: float = 900) -> subprocess.CompletedProcess[str]:
    """Runs a command of a page with more words behind it, as whoever has activated the environment does."""
    bin_folder = Path(sys.executable).parent
    hidden = ("PYTHONPATH", "PYTEST_ADDOPTS")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [*shlex.split(command), *more],
        cwd=cwd,
        env=environment | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=within_s,
    )


def test_every_command_is_executed_or_an_exception() -> None:
    """A new one needs its place here; one that is gone leaves it."""
    shown = {command.text for command in block_commands()}
    known = {*OF_A_RUN, *PREFLIGHTS, *LIVE, *COLLECTED, *IN_CONTAINERS, *ELSEWHERE, *EXCEPTIONS}
    in_text = {command.text for command in text_commands()}
    assert (shown - {*known, *QUICK}, known - shown, {*QUICK} - {*shown, *in_text}) == (set(), set(), set())


def test_what_is_executed_elsewhere_is_executed_there() -> None:
    """The file says so still."""
    wrong = [command for command, (file, words) in ELSEWHERE.items() if words not in (CHECKOUT / file).read_text()]
    assert wrong == []


OURS = {
    (command.page, command.text): command
    for command in (*block_commands(), *text_commands())
    if command.text.startswith("kafka-trial ")
}


@pytest.mark.parametrize("command", OURS.values(), ids=lambda command: f"{command.page.name}: {command.text}")
def test_a_command_of_ours_is_one(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """All its words are taken, and the files that it names are the README's, the page's, or made by another command."""
    for words in command.words():
        assert not _refused(words), capsys.readouterr().err
        assert [word for word in words if _is_a_file(word) and not _is_there(word, command)] == []


def _refused(words: list[str]) -> bool:
    try:
        _parser().parse_args(words[1:])
    except SystemExit as end:  # --help ends with 0
        return end.code != 0
    return False


def _is_a_file(word: str) -> bool:
    return word.endswith((".toml", ".json", ".properties")) or word.startswith("fixtures/")


def _is_there(word: str, command: Command) -> bool:
    known = {"consumer.toml", *files_of(command.page), *READERS_OWN}
    made = folders_of(command.page)
    return word in known or word.split("/")[0] in made or ((command.folder or CHECKOUT) / word).exists()


@pytest.mark.parametrize("command", QUICK)
def test_a_quick_command_works(command: str, tmp_path: Path) -> None:
    """It ends in status 0 and says something."""
    for words in Command(command, tmp_path).words():
        done = as_installed(shlex.join(words), cwd=tmp_path)
        assert (done.returncode, done.stdout.strip() != "") == (PASS, True), done.stdout + done.stderr


@pytest.mark.parametrize(("command", "tests"), COLLECTED.items())
def test_the_suites_that_a_command_runs_are_found(command: str, tests: int, tmp_path: Path) -> None:
    """All of them, for the consumer of the README; `test_installs.py` looks in every kind of install."""
    write_readme_consumer(tmp_path)
    done = as_installed(command, "--collect-only", "-q", cwd=tmp_path)
    assert (done.returncode, f"{tests} tests collected" in done.stdout) == (0, True), done.stdout + done.stderr


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
def test_the_commands_on_a_stored_run_work(tmp_path: Path) -> None:
    """One after the other; each ends in status 0 and says something."""
    shutil.copytree(STORED, tmp_path / "trial-runs" / "RUN")
    for command in OF_A_RUN:
        done = as_installed(command, cwd=tmp_path)
        assert (done.returncode, done.stdout.strip() != "") == (PASS, True), done.stdout + done.stderr


@pytest.mark.parametrize(("command", "status"), PREFLIGHTS.items())
def test_a_preflight_of_the_page_works(command: str, status: int, tmp_path: Path) -> None:
    """With the plan of the page; what does not fit is said to."""
    page = (CHECKOUT / "docs" / "preflight.md").read_text()
    (tmp_path / "plan.toml").write_text(re.findall(r"```toml\n(# plan\.toml.*?)```", page, re.DOTALL)[0])
    done = as_installed(command, cwd=tmp_path)
    assert (done.returncode, done.stdout[:4]) == (status, "YES:" if status == PASS else "NO: "), done.stderr


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_a_command_that_runs_a_trial_works(tmp_path: Path) -> None:
    """With the consumer of the README's five minutes, as the page has it; of all suites the quickest."""
    write_readme_consumer(tmp_path)
    command = in_turn(LIVE)
    more = ["-k", "control"] if command.startswith("pytest") else []
    done = as_installed(command, *more, "--retry-unknown=1", cwd=tmp_path)
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
    for shown, reason in EXCEPTIONS.items():
        print(f"{shown}: {reason}")
