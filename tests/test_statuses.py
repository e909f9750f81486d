"""Exit status 1 is a verdict's alone: wrong input ends in 2 before anything starts, what nobody expected in 3."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_trial import verbs
from kafka_trial.cli import main
from kafka_trial.errors import NOT_BEGUN, UNKNOWN, WRONG_INPUT, StartError, UnjudgeableError
from kafka_trial.trial import session

CONSUMER = "--consumer=python-at-least-once"
RUN, CERTIFY, CUTS = ["run", "control", CONSUMER], ["certify", CONSUMER], ["cuts", CONSUMER]
AUDIT = ["audit", "--bootstrap=127.0.0.1:1", "--topic=t", "--group=g", "--from=1h"]
PREFLIGHT = ["preflight", "--record-max=1MB"]
MOVE = ["upgrade", "--from=3.9.2", "--to=4.3.1"]
UPGRADE = [*MOVE, CONSUMER]
ROOM = "x" * 300  # longer than a file system takes

# Options that name a file to be read, and those that name a folder to be written; of every verb that has one.
READ = [
    *([*RUN, option] for option in ("--schedule", "--payload", "--plugin")),
    *(["demo", option] for option in ("--sound", "--faulty", "--scenario", "--plugin")),
    *([*verb, "--consumer"] for verb in (["run", "control"], ["cuts"], ["certify"], MOVE)),
    *([*AUDIT, option] for option in ("--command-config", "--claim", "--request-log", "--plugin")),
    *([*PREFLIGHT, option] for option in ("--config", "--producer-config", "--consumer-config", "--plugin")),
    *(["check"], ["report"], ["verify"]),
]
WRITTEN = [[*words, "--out"] for words in (RUN, CERTIFY, CUTS, AUDIT, UPGRADE)]
NUMBERS = [
    *([*RUN, option] for option in ("--seed", "--seeds", "--repeat", "--retry-unknown")),
    ["demo", "--seed"],
    *([*CERTIFY, option] for option in ("--repeat", "--minutes", "--side-by-side", "--retry-unknown")),
    *([*CUTS, option] for option in ("--seed", "--minutes", "--side-by-side", "--retry-unknown")),
    *([*UPGRADE, option] for option in ("--seed", "--side-by-side", "--add-partitions")),
    *([*AUDIT, option] for option in ("--max-mib", "--max-records", "--max-minutes", "--readers")),
    ["check", "nowhere", "--partitions"],
    ["show", "nowhere", "run#1", "--around"],
    ["cluster", "up", "--brokers"],
]


class BegunError(BaseException):
    """A session was begun although the words of a verb are wrong."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of hostile files to work in; no session begins."""

    def begin(*_: object, **__: object) -> None:
        raise BegunError

    monkeypatch.setattr(session, "Session", begin)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("[[[ no TOML, no JSON")
    (tmp_path / "latin").write_bytes(b'name = "\xff"\n{"\xff"')
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "list.json").write_text("[1, 2]")
    return tmp_path


def ends(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int | str | None, str]:
    """Returns the status that a command ends in, and what it says then on stderr."""
    try:
        status: int | str | None = main(words)
    except SystemExit as ended:  # the parser's own
        status = ended.code
    return status, capsys.readouterr().err


def is_told_well(told: str) -> bool:
    """Tells whether an error is one for a user: no traceback, no value of Python, the verb once."""
    return not re.search(r"Traceback|\bNone\b|PosixPath|\bError\(|kafka-trial (\w+): \1:|\[Errno", told)


def in_any_encoding(option: str) -> bool:
    """Tells whether the files of an option, properties and logs, may be in any encoding."""
    return option.endswith(("-config", "-log")) and option != "--config"


UNREADABLE = [
    (words, given)
    for words in READ
    for given in ("folder", "file/below", "latin", "loop", ROOM, "no-such-file", "\udcff")
    if not (given == "latin" and in_any_encoding(words[-1]))
]


@pytest.mark.parametrize(("words", "given"), UNREADABLE)
def test_a_file_that_cannot_be_read_is_wrong_input(
    words: list[str], given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder, below a file, not UTF-8, a link to itself, a name too long, nothing there."""
    status, told = ends([*words, given], capsys)
    assert (status, is_told_well(told)) == (WRONG_INPUT, True), told


@pytest.mark.parametrize("given", ["file", "file/below", "loop", ROOM, "/proc/nothing/below", "\udcff"])
@pytest.mark.parametrize("words", WRITTEN, ids=" ".join)
def test_a_folder_that_cannot_be_written_is_wrong_input(
    words: list[str], given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file, below one, a link to itself, a name too long, a place where nobody may write."""
    status, told = ends([*words, given], capsys)
    assert (status, is_told_well(told)) == (WRONG_INPUT, True), told


@pytest.mark.parametrize("given", ["99999999999999999999999", "-99999999999999999999999", "nan", "1e400", "x", ""])
@pytest.mark.parametrize("words", NUMBERS, ids=" ".join)
def test_a_number_out_of_bounds_is_wrong_input(
    words: list[str], given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beyond 64 bits, no number at all, infinite."""
    status, told = ends([*words[:-1], f"{words[-1]}={given}"], capsys)
    assert (status, is_told_well(told)) == (WRONG_INPUT, True), told


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[1]", b"3", b"null", b'{"schema":', b'{"schema": "x"}', b"{}"])
@pytest.mark.parametrize("name", ["scenario.json", "schedule.json", "verdict.json", "run.json"])
def test_a_damaged_run_folder_is_wrong_input(
    name: str, content: bytes, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever verb reads it."""
    (folder / "run" / "history").mkdir(parents=True)
    (folder / "run" / name).write_bytes(content)
    readers = {
        "scenario.json": ["run", f"run/{name}", CONSUMER],
        "schedule.json": [*RUN, "--schedule", f"run/{name}"],
        "verdict.json": ["report", "run"],
        "run.json": ["report", "run"],
    }
    if (name, content) in (("scenario.json", b"{}"), ("schedule.json", b'{"schema": "x"}')):
        content = b""
    status, told = ends(readers[name], capsys)
    assert (status, is_told_well(told)) == (WRONG_INPUT, True), told


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the verb `list` end in an error."""

    def broken(_: object) -> int:
        raise error

    monkeypatch.setattr(verbs, "list_things", broken)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("no such thing"), NOT_BEGUN),
        (OSError(errno.ENOSPC, "No space left on device", "there"), NOT_BEGUN),
        (PermissionError(errno.EACCES, "Permission denied", "/of/another"), NOT_BEGUN),
        (MemoryError(), NOT_BEGUN),
        (SystemExit(1), NOT_BEGUN),
        (RecursionError("too deep"), NOT_BEGUN),
        (StartError("no port is free"), NOT_BEGUN),
        (UnjudgeableError("the judge died"), UNKNOWN),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_error_ends_in_the_status_of_a_verdict(
    error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, which names the exception where it is not one of ours; with --debug the traceback is before it."""
    raising(error, monkeypatch)
    ended, told = ends(["list", "suites"], capsys)
    assert (ended, len(told.splitlines()), "Traceback" in told) == (status, 1, False)
    assert isinstance(error, StartError | UnjudgeableError) or type(error).__name__ in told
    for words in (["--debug", "list", "suites"], ["list", "suites", "--debug"]):
        ended, more = ends(words, capsys)
        assert (ended, more.endswith(told), "in broken" in more) == (status, True, True)


def test_a_folder_of_another_user_is_wrong_input_and_a_full_disk_below_it_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below a path that the user named, the operating system tells which it is."""
    for number, status in ((errno.EACCES, WRONG_INPUT), (errno.EROFS, WRONG_INPUT), (errno.ENOSPC, NOT_BEGUN)):
        error = OSError(number, os.strerror(number), "theirs/verdict.json")

        def broken(_: object, error: OSError = error) -> int:
            raise error

        monkeypatch.setattr(verbs, "report", broken)
        ended, told = ends(["report", "theirs"], capsys)
        assert (ended, os.strerror(number) in told) == (status, True)


def test_a_verb_is_named_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Though the sentence begins with it too."""
    raising(StartError("list: nothing is there"), monkeypatch)
    assert ends(["list", "suites"], capsys)[1] == "kafka-trial list: nothing is there\n"


def test_a_full_disk_under_stdout_is_no_verdict() -> None:
    """What is printed last is written while the error can still be told."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kafka_trial", "list", "suites"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, "No space left on device" in done.stderr, "Traceback" in done.stderr) == (3, True, False)


BROKEN_TRIALS = """
import pytest
from kafka_trial.errors import StartError
from kafka_trial.scenario import Scenario


class Broken:
    def try_one(self, scenario, consumer, **_):
        raise {"expected": StartError("no port is free"), "unexpected": ZeroDivisionError("of ours")}[scenario.name]


@pytest.fixture(scope="session")
def kafka_trial_session():
    return Broken()


@pytest.mark.parametrize("word", ["expected", "unexpected"])
def test_it(trial, word):
    trial(Scenario(word)).must_pass()
"""


def test_a_trial_that_breaks_is_an_error_of_its_test(pytester: pytest.Pytester) -> None:
    """Not a failure, which would be the consumer's; pytest's own options say how much of a traceback is shown."""
    pytester.makepyfile(BROKEN_TRIALS)
    words = [CONSUMER, "-p", "no:cacheprovider"]
    result = pytester.runpytest_subprocess(*words)
    result.assert_outcomes(errors=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["no port is free", "*ZeroDivisionError: of ours"], consecutive=False)
    assert "in try_one" not in pytester.runpytest_subprocess(*words, "--tb=line").stdout.str()


@pytest.mark.parametrize(
    "given",
    ["--trial-seed=99999999999999999999999", "--retry-unknown=-1", "--trial-runs=/proc/nothing", f"--consumer={ROOM}"],
)
def test_wrong_options_of_pytest_are_a_usage_error(pytester: pytest.Pytester, given: str) -> None:
    """Before anything starts, without a traceback."""
    refused = pytester.runpytest_subprocess(given)
    assert (refused.ret, "Traceback" in refused.stderr.str()) == (pytest.ExitCode.USAGE_ERROR, False)
