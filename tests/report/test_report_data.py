"""The report as plain data."""

from __future__ import annotations

import shlex

import orjson
import pytest

from kafka_trial.cli import _parser
from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder
from kafka_trial.report.report_data import read_report
from literal_run import anomaly, verdict


def test_the_events_that_prove_an_anomaly_are_marked(folder: RunFolder) -> None:
    """The excerpt shows both commits, marked, among the deliveries of their partition."""
    (excerpt,) = read_report(folder).excerpts
    assert [row.name for row in excerpt.rows if row.marked] == ["offsets#0", "offsets#1"]
    assert all("offset 900" not in row.text for row in excerpt.rows)


def test_the_excerpts_open_with_what_the_headline_tells(folder: RunFolder) -> None:
    """The worst violation first, of it the instance that the verdict tells, though others stand before it; where the
    cluster is to blame and the verdict is unknown, that comes first."""
    rows = [
        anomaly() | {"anomaly": "unseen", "events": ["consumer-m1-0#2"]},
        anomaly() | {"events": ["offsets#0"]},
        anomaly() | {"anomaly": "lost-write", "weight": "ground", "events": ["consumer-m1-0#1"]},
        anomaly(),
    ]
    (folder.path / "anomalies.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    told = [("commit-regression", 2), ("commit-regression", 1), ("unseen", 1), ("lost-write", 1)]
    assert _told(folder) == told
    folder.write_json("verdict.json", verdict("unknown", reasons=["the cluster lost record 3"]))
    assert _told(folder) == [told[3], *told[:3]]


def _told(folder: RunFolder) -> list[tuple[str, int]]:
    """Returns the excerpts in order: what each is of, and how many of its rows are marked."""
    return [(one.anomaly, sum(row.marked for row in one.rows)) for one in read_report(folder).excerpts]


def test_phases_begin_where_the_run_says(folder: RunFolder) -> None:
    """Seconds after the first phase."""
    assert read_report(folder).phases == (("prepare", 0.0), ("steady", 2.0))


def test_a_damaged_history_is_read_as_far_as_it_goes(folder: RunFolder) -> None:
    """A torn line is counted and said; the other events are shown."""
    with (folder.history / "consumer-m1-0.jsonl").open("ab") as file:
        file.write(b'{"schema":1,"source":"cons')
    report = read_report(folder)
    assert (report.gaps, len(report.excerpts[0].rows) > 2) == (("consumer-m1-0.jsonl: 1 line could not be read",), True)


def test_a_run_that_was_not_judged_says_what_to_do(folder: RunFolder) -> None:
    """There is no report without a verdict."""
    (folder.path / "verdict.json").unlink()
    with pytest.raises(InputError, match="kafka-trial check"):
        read_report(folder)


def test_a_verdict_that_was_edited_is_refused(folder: RunFolder) -> None:
    """A verdict.json that lacks its parts is named, not guessed."""
    folder.write_json("verdict.json", {"schema": 1, "verdict": "pass"})
    with pytest.raises(InputError, match="lacks violations"):
        read_report(folder)


@pytest.mark.parametrize(
    ("file", "word"),
    [
        ("/home/me/it's mine/" + 30 * "deep folder/" + "mine.toml", None),
        ("scenario.json", "{folder}/scenario.json"),
        (None, "member-paused"),
    ],
    ids=["a TOML file", "a value of Python", "a registered name"],
)
def test_the_replay_of_a_scenario_can_be_pasted(folder: RunFolder, file: str | None, word: str | None) -> None:
    """A shell splits it into the words that were meant; a scenario without a name of ours is named by its file."""
    folder.write_json("run.json", folder.read_json("run.json") | {"scenario_file": file})
    words = shlex.split(read_report(folder, with_history=False).replay)
    assert words[:3] == ["kafka-trial", "run", (word or str(file)).format(folder=folder.path)]
    assert _parser().parse_args(words[1:]).scenario == words[2]


def test_the_replay_names_the_load(folder: RunFolder) -> None:
    """A suite's name alone would be replayed with all of it."""
    assert "--load" not in read_report(folder, with_history=False).replay
    folder.write_json("scenario.json", folder.read_json("scenario.json") | {"load": {"factor": 0.1}})
    words = shlex.split(read_report(folder, with_history=False).replay)
    assert _parser().parse_args(words[1:]).load == 0.1
