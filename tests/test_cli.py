"""The command: every verb explains itself, wrong input ends in status 2 before anything starts, and the exit status
tells a verdict, whether or not somebody reads the words.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.cli import EXAMPLES, _parser, main, unbroken
from kafka_trial.errors import FAIL, INTERRUPTED, NOT_BEGUN, PASS, UNKNOWN, WRONG_INPUT, worst
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import create_run_folder
from kafka_trial.trial.console import Console
from kafka_trial.verbs import LISTS, status_without_check

SOUND_TOML = """
schema = 1
name = "orders"
command = ["{command}"]
[claim]
delivery = "at-least-once"
"""


@pytest.mark.parametrize("verb", sorted(EXAMPLES))
def test_every_verb_explains_itself_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` of a verb ends in an example that can be copied."""
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert (ended.value.code, EXAMPLES[verb] in capsys.readouterr().out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "membr-killed", "--consumer", "python-at-least-once"], "Did you mean 'member-killed'"),
        (["run", "nope.toml", "--consumer", "python-at-least-once"], "no such file: nope.toml"),
        (["run", "control", "--consumer", "nobody"], "no consumer of ours is called 'nobody'"),
        (["run", "control", "--consumer", "./mine.toml"], "no such file: ./mine.toml"),
        (["run", "control", "--consumer", "python-at-least-once", "--kafka", "9.9.9"], "Valid: 3.7.2"),
        (["run", "control", "--consumer", "python-at-least-once", "--exact"], "needs --schedule"),
        (["run", "control", "--consumer", "python-at-least-once", "--seeds", "5..1"], "must rise"),
        (["run", "control", "--consumer", "python-at-least-once", "--seeds", "a"], "write 1..5, or 3,7,11"),
        (["run", "control", "--consumer", "python-at-least-once", "--seeds", "1..2", "--seed", "1"], "exclude"),
        (["run", "control", "--consumer", "python-at-least-once", "--repeat", "0"], "between 1 and"),
        (["run", "control", "--consumer", "python-at-least-once", "--retry-unknown", "-1"], "between 0 and"),
        (["run", "control", "--consumer", "python-at-least-once", "--cluster", "none-such"], "cluster"),
        (["check", "no-such-folder"], "not a run folder"),
        (["audit", "--bootstrap", "h", "--topic", "t", "--group", "g", "--from", "1h"], "'h' is no host:port"),
    ],
)
def test_wrong_input_ends_in_status_2_and_says_what_is_valid(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, the place and the valid choices on stderr, nothing started."""
    assert (main(arguments), said in capsys.readouterr().err) == (WRONG_INPUT, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema = 1\nname = \n", "line 2"),
        (SOUND_TOML + 'ordre = "key"\n', "ordre"),
        (SOUND_TOML.replace("{command}", "no-such-command-anywhere"), "no-such-command-anywhere"),
        (SOUND_TOML.replace("{command}", "{{bootstrapp}}"), "bootstrapp"),
        (SOUND_TOML.replace("schema = 1", "schema = 9").replace("{command}", "true"), "schema"),
    ],
    ids=["broken", "unknown key", "command not found", "unknown placeholder", "newer schema"],
)
def test_a_wrong_consumer_toml_is_told_before_anything_starts(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each problem names the file and the place."""
    file = tmp_path / "consumer.toml"
    file.write_text(text.replace("{command}", "true").replace("{{", "{").replace("}}", "}"))
    assert main(["run", "control", "--consumer", str(file)]) == WRONG_INPUT
    told = capsys.readouterr().err
    assert (str(file) in told, said in told) == (True, True)


def test_an_unknown_fault_lists_the_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A scenario file with a fault that does not exist ends in status 2 with the valid names."""
    file = tmp_path / "mine.toml"
    file.write_text('[[schedule]]\nfault = "earthquake"\ntarget = "member"\n')
    assert main(["run", str(file), "--consumer", "python-at-least-once"]) == WRONG_INPUT
    told = capsys.readouterr().err
    assert ("earthquake" in told, "stall" in told) == (True, True)


def test_the_worst_status_of_many_wins() -> None:
    """Fail before unknown before not begun before pass; interrupted before all."""
    assert [
        worst([PASS, NOT_BEGUN, UNKNOWN, FAIL]),
        worst([PASS, NOT_BEGUN, UNKNOWN]),
        worst([NOT_BEGUN, PASS]),
        worst([PASS, PASS]),
        worst([FAIL, INTERRUPTED]),
    ] == [FAIL, UNKNOWN, NOT_BEGUN, PASS, INTERRUPTED]


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ({"outcome": "ok"}, 0, ""),
        ({"outcome": "info", "message": "StartError: no lanes"}, 4, "StartError: no lanes"),
        (None, 4, "its end is not told"),
    ],
)
def test_a_trial_that_is_not_judged_now_says_whether_it_can_be(
    end: dict[str, str] | None, status: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`run --no-check`: 0 for a whole history, 4 for one that was cut short, and why."""
    folder = create_run_folder(tmp_path / "run", "control", "somebody")
    with Recorder(folder.history, "run") as run:
        run.record("phase", phase="prepare")
        if end is not None:
            run.record("end", **end)
    with Console() as console:
        assert status_without_check(folder, console) == status
    assert said in capfd.readouterr().err


def test_consumers_that_are_not_built_are_listed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh clone has the Go, Java and JavaScript ones as sources only."""
    (tmp_path / "consumer.toml").write_text(
        'schema = 1\nname = "unbuilt"\ncommand = ["./not-built"]\n[claim]\ndelivery = "at-most-once"\n'
    )
    monkeypatch.setitem(registry.consumers(), "unbuilt", tmp_path / "consumer.toml")
    (row,) = [row for row in LISTS["consumers"]() if row["name"] == "unbuilt"]
    assert row["claims"] == "at-most-once, order per partition"


FAILS = """
from kafka_trial import cli, verbs

def told(options):
    for _ in range(10_000):
        print("a line that nobody reads")
    return %d

verbs.list_things = told
sys.argv = ["kafka-trial", "list", "invariants"]
sys.exit(cli.main())
"""


@pytest.mark.parametrize("both", [False, True], ids=["stdout", "stdout and stderr"])
def test_a_reader_that_has_gone_does_not_change_the_exit_status(both: bool) -> None:
    """As with `| head`: nobody holds the other end of the pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        argv = [sys.executable, "-c", "import sys" + FAILS % FAIL]
        done = subprocess.run(argv, stdout=writing, stderr=writing if both else subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert done.returncode == FAIL
    assert both or done.stderr == b""


def test_what_is_read_arrives_as_it_was_printed() -> None:
    """To the last line, in the encoding of the stream."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        print("über", file=unbroken(stream), flush=True)
    with os.fdopen(reading, encoding="utf-8") as file:
        assert file.read() == "über\n"


def test_a_stream_without_a_file_descriptor_stays_what_it_is() -> None:
    """As those that pytest puts in the place of ours."""
    stream = io.StringIO()
    assert unbroken(stream) is stream


def test_an_option_of_several_names_may_be_given_again() -> None:
    """Else the last one would silently take the place of those before: a certificate of one suite, not of two."""
    words = ["--suite", "control", "--suite", "hot-runs", "large-records", "--kafka", "3.9.2", "--kafka", "4.3.1"]
    options = _parser().parse_args(["certify", "--consumer", "mine.toml", "--out", "there", *words])
    assert (options.suite, options.kafka) == (["control", "hot-runs", "large-records"], ["3.9.2", "4.3.1"])
    options = _parser().parse_args(["cuts", "--consumer", "mine.toml", "--api", "Fetch", "--api", "JoinGroup"])
    assert options.api == ["Fetch", "JoinGroup"]


def test_no_option_of_several_names_drops_any() -> None:
    """Of whatever verb."""
    dropping = [
        f"{verb} {'/'.join(action.option_strings)}"
        for verb, parser in _verbs(_parser()).items()
        for action in parser._actions
        if action.option_strings and action.nargs in ("+", "*") and not isinstance(action, argparse._ExtendAction)
    ]
    assert dropping == []


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["chek", "x"], "check"),
        (["list", "suits"], "suites"),
        (["list", "suites", "--jsn"], "--json"),
        (["cluster", "upp"], "up"),
        (["run", "control", "--consumer", "x", "--sed", "7"], "--seed"),
        (["run", "membr-killed", "--consumer", "python-at-least-once"], "member-killed"),
        (["run", "control", "--consumer", "python-at-least-oce"], "python-at-least-once"),
        (["explain", "commit-ahed"], "commit-ahead"),
        (["certify", "--consumer", "python-at-least-once", "--suite", "controll"], "control"),
        (["cuts", "--consumer", "python-at-least-once", "--api", "Fech"], "Fetch"),
        (["doctor", "--fetch", "4.3.2"], "4.3.1"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_an_unknown_name_is_told_with_the_nearest(
    words: list[str], nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it names: a verb, an option, a choice, a scenario, a consumer, an anomaly, a suite, a version."""
    try:
        status: int | str | None = main(words)
    except SystemExit as ended:
        status = ended.code
    assert (status, f"Did you mean {nearest!r}" in capsys.readouterr().err) == (WRONG_INPUT, True)


@pytest.mark.parametrize("what", sorted(LISTS))
def test_whatever_is_listed_says_in_one_line_what_it_is(what: str) -> None:
    """No summary is empty, a number of lines, or a page."""
    rows = LISTS[what]()
    assert [row["name"] for row in rows if not 3 < len(row["summary"]) < 160 or "\n" in row["summary"]] == []


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (verbs,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return dict(verbs.choices)
