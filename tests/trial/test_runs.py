"""Several trials in turn: which seeds, where their folders go, and how the end of all of them is told."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from kafka_trial.claim import Claim
from kafka_trial.cli import _parser
from kafka_trial.errors import FAIL, InputError, Interrupted
from kafka_trial.history.store import RunFolder
from kafka_trial.trial import runs
from kafka_trial.trial.console import Console
from kafka_trial.trial.runs import (
    Demonstration,
    ask,
    ask_demonstration,
    consumer_in_words,
    demonstration_in_words,
    find_scenario,
    parse_seeds,
    run_all,
)
from kafka_trial.trial.session import Session, TrialOutcome
from kafka_trial.trial.spec import TrialSpec
from kafka_trial.verdict.decide import decide
from kafka_trial.verdict.verdict_input import VerdictInput, Violation

PASS = decide(VerdictInput(()), Claim("unclaimed"))
FAILED = decide(VerdictInput((), failures=(Violation("never-assigned", 1, "it never was", ()),)), Claim("unclaimed"))
UNKNOWN = decide(VerdictInput((), ground=("the harness stood still",)), Claim("unclaimed"))


def test_seeds_are_ranges_and_lists() -> None:
    """Both ends belong to a range."""
    assert [parse_seeds("1..3"), parse_seeds("7"), parse_seeds("3,7..8, 11")] == [[1, 2, 3], [7], [3, 7, 8, 11]]


@pytest.mark.parametrize(
    ("words", "seeds", "places"),
    [
        (["--seeds", "4..6", "--out", "d"], [4, 5, 6], ["d/1", "d/2", "d/3"]),
        (["--repeat", "2", "--seed", "9"], [9, 9], [None, None]),
        (["--seed", "9", "--out", "d"], [9], ["d"]),
    ],
)
def test_each_trial_has_its_seed_and_its_folder(words: list[str], seeds: list[int], places: list[str | None]) -> None:
    """One alone has the folder itself, as ever."""
    asked, _ = ask(_words(*words))
    assert [one.trial_spec.seed for one in asked] == seeds
    assert [str(one.out) if one.out else None for one in asked] == places


def test_repeats_without_a_seed_draw_one_each() -> None:
    """Two trials of one drawn seed would show the same twice."""
    asked, _ = ask(_words("--repeat", "3"))
    assert len({one.trial_spec.seed for one in asked}) == 3


class _Staged(Session):
    """A session that has its verdicts in its pocket."""

    def __init__(self, folder: Path, *left: TrialOutcome | Interrupted) -> None:
        self.console = Console(quiet=True)
        self._folder, self._left = folder, list(left)

    def try_spec(self, asked: TrialSpec, *, out: Path | None = None, retry_unknown: int = 0) -> TrialOutcome:
        outcome = self._left.pop(0)
        if isinstance(outcome, Interrupted):
            raise outcome
        return outcome


def test_the_worst_verdict_is_the_status_and_all_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each report, then a line a trial; the try that was unknown is counted too."""
    first, second = (TrialOutcome(RunFolder(tmp_path / name), UNKNOWN, "UNKNOWN: ground") for name in ("a", "b"))
    trials = [
        TrialOutcome(RunFolder(tmp_path / "c"), PASS, "PASS: told", (first,)),
        TrialOutcome(second.folder, FAILED, "FAIL"),
    ]
    asked, _ = ask(_words("--seeds", "1..2"))
    assert run_all(_Staged(tmp_path, *trials), asked) == FAIL
    told = capsys.readouterr().out.splitlines()
    assert told[-3:] == [
        f"seed 1: pass  {tmp_path / 'c'}  (unknown, tried again: pass (2 tries); unknown is {tmp_path / 'a'})",
        f"seed 2: fail  {tmp_path / 'b'}",
        "2 trials: 1 fail, 1 pass; 1 unknown before, tried again",
    ]


def test_ctrl_c_tells_what_was_done_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of three: the interrupt goes on to whoever ends the command."""
    trial = TrialOutcome(RunFolder(tmp_path), PASS, "PASS: told")
    asked, _ = ask(_words("--seeds", "1..3"))
    with pytest.raises(Interrupted):
        run_all(_Staged(tmp_path, trial, trial, Interrupted("by Ctrl-C")), asked)
    assert capsys.readouterr().out.splitlines()[-1] == "2 trials: 2 pass; 1 not done"


def test_a_cluster_that_stays_up_takes_what_leaves_its_brokers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is told at once, all of it."""
    monkeypatch.setattr(runs, "attach", lambda name: _Cluster())
    with pytest.raises(runs.InputError) as refused:
        ask(_words("--cluster", "warm", "--kafka", "3.9.2", scenario="leader-lost"))
    told = str(refused.value)
    assert all(word in told for word in ("breaks brokers", "Kafka 4.3.1, not 3.9.2", "1 brokers")), told


def test_a_scenario_file_that_is_not_there_is_called_that(tmp_path: Path) -> None:
    """With the scenarios there are, the nearest first; a folder is none. What is there is read."""
    with pytest.raises(
        runs.InputError, match=r"no such file: nope.toml. Give the path of a file, or one of: .*control"
    ):
        find_scenario("nope.toml")
    with pytest.raises(runs.InputError, match=r"no such file: membr-killed.toml. Did you mean 'member-killed'\?"):
        find_scenario("membr-killed.toml")
    with pytest.raises(runs.InputError, match="is a folder: name a TOML file in it"):
        find_scenario(str(tmp_path))
    (tmp_path / "mine.toml").write_text("members = 2\n")
    assert (find_scenario(str(tmp_path / "mine.toml")).members, find_scenario("control").name) == (2, "control")


def test_a_folder_is_told_which_file_was_taken(tmp_path: Path) -> None:
    """`--consumer .` is the consumer.toml there; a file or a name needs no such line."""
    (tmp_path / "consumer.toml").write_text("")
    assert consumer_in_words(str(tmp_path)) == f"consumer {tmp_path / 'consumer.toml'} (of the folder {tmp_path})"
    assert consumer_in_words(str(tmp_path / "consumer.toml")) is None
    assert consumer_in_words("python-at-least-once") is None


class _Cluster:
    kafka_version = "4.3.1"
    brokers = (0,)
    state = Namespace(name="warm")


def _words(*words: str, scenario: str = "control") -> Namespace:
    return _parser().parse_args(["run", scenario, "--consumer", "python-at-least-once", *words])


def test_the_demonstration_says_where_its_pages_are(tmp_path: Path) -> None:
    """Its last lines are the paths of both."""
    trials = [TrialOutcome(RunFolder(tmp_path / name), verdict, name) for name, verdict in (("a", PASS), ("b", FAILED))]
    assert demonstration_in_words(Demonstration(*trials)).splitlines()[-3:] == [
        "demo: sound: pass, faulty: fail — as it must be",
        f"page of the sound one: {tmp_path}/a/report.html",
        f"page of the faulty one: {tmp_path}/b/report.html",
    ]


def test_a_demonstration_in_which_one_trial_is_unknown_shows_nothing(tmp_path: Path) -> None:
    """Neither that all is as it must be, nor that it is not."""
    passed, failed, unknown = (
        TrialOutcome(RunFolder(tmp_path), verdict, "told") for verdict in (PASS, FAILED, UNKNOWN)
    )
    assert [
        Demonstration(passed, failed).exit_status,
        Demonstration(failed, passed).exit_status,
        Demonstration(passed, passed).exit_status,
        Demonstration(passed, unknown).exit_status,
        Demonstration(unknown, failed).exit_status,
    ] == [0, 1, 1, 4, 4]


def test_a_demonstration_is_checked_before_it_begins() -> None:
    """Also its second consumer, which else were found wrong after the first one's trial."""
    with pytest.raises(InputError, match="no consumer of ours is called 'nobody'"):
        ask_demonstration(scenario="control", sound="python-at-least-once", faulty="nobody", kafka_version=None, seed=1)
