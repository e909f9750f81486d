"""Calibration: the grid, the rows, and the page that is made of nothing else."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from kafka_trial import registry
from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.consumers.consumer import ConsumerSpec, spec_from_toml
from kafka_trial.errors import InputError
from kafka_trial.history.store import SUFFIX, unpack
from kafka_trial.report.explain import TABLE, calibrated
from kafka_trial.report.row_files import append_row
from lab.bench.figures import Figure
from lab.bench.figures import Row as BenchRow
from lab.calibration.__main__ import main
from lab.calibration.attempts import (
    NOT_BEGUN,
    ROWS_NAME,
    SILENT_SCENARIOS,
    Attempt,
    Row,
    ask,
    at_times_of,
    expected_of,
    grid,
    header_of,
    read_rows,
    shuffled,
)
from lab.calibration.campaign import PAGE, RUNS, STORED, calibrate, trial_digest
from lab.calibration.chosen_cuts import CUT_BY_ANOMALY, SINS_FOUND_BY_FEW_SUITES, SINS_FOUND_BY_LUCK
from lab.calibration.further_suites import FURTHER_SUITES, further_suite
from lab.calibration.page import page, upper_bound
from lab.calibration.source_digests import SAME, judging_digest, making_digest
from lab.calibration.suite_seconds import BESIDE, COLD, SECONDS_NAME, WARM, TimedTrial, add_seconds, read_seconds
from lab.calibration.table import calibration_table, committed_table, table_bytes
from lab.repository import commit_date, git_revision, reports_folder

pytestmark = pytest.mark.lengthy

LEAVING_OUT = registry.CHECKOUT / "fixtures" / "leaving_out.py"
SOUND = Row(Attempt("python-at-least-once", "control"), (), "pass", (), (), (), {"kafka": "4.3.1"}, "d", "t", "c")
SIN = replace(
    SOUND,
    attempt=Attempt("commits-backwards", "member-paused", sin=True),
    expected=("zombie-commit",),
    verdict="fail",
    violations=("zombie-commit",),
)

QUIET = replace(
    SOUND,
    attempt=Attempt("python-at-least-once/quiet", "control"),
    verdict="unknown",
    reasons=("claimed but not judged: illegal-redelivery, work-after-revoke: the consumer prints no events",),
    silent=True,
)


@pytest.fixture(autouse=True)
def _the_table_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration of a test writes its table beside its own rows, never the one that is committed."""
    monkeypatch.setattr("lab.calibration.campaign.TABLE", tmp_path / TABLE.name)


def test_the_committed_page_is_made_of_the_committed_rows() -> None:
    """Byte for byte."""
    rows = read_rows(reports_folder() / ROWS_NAME)
    assert rows, "no calibration has been committed"
    assert (reports_folder() / PAGE).read_text() == page(rows)


def test_the_committed_table_is_made_of_the_committed_rows() -> None:
    """Byte for byte, suites and seconds too; the day is that of the last row's commit, where this clone has it.

    Made again by `python -m lab.calibration --page`, also after `make bench`.
    """
    rows = read_rows(reports_folder() / ROWS_NAME)
    date = orjson.loads(TABLE.read_bytes())["date"]
    assert TABLE.read_bytes() == table_bytes(committed_table(reports_folder(), date=date))
    assert date == (commit_date(rows[-1].commit) or date)


def test_the_table_counts_as_the_page_does() -> None:
    """The newest rows only, one judged again once; what was not found, or not begun, was to be found all the same. Sins
    switched off are sound, quiet ones that show nothing are neither."""
    elsewhere = replace(SIN, attempt=replace(SIN.attempt, scenario="control"), commit="c2")
    off, mute = (replace(SOUND, attempt=replace(SIN.attempt, sin=sin)) for sin in (False, True))
    missed = replace(elsewhere, verdict="fail", violations=("skipped",))
    before = replace(SOUND, verdict="fail", source_digest="old", commit="c0")
    again = replace(SOUND, verdict="fail", violations=("skipped",), rejudged=True, commit="c3")
    not_begun = replace(SIN, verdict=NOT_BEGUN, violations=())
    table = calibration_table(
        [before, SOUND, QUIET, off, mute, SIN, not_begun, elsewhere, missed, again], date="2026-11-24"
    )
    assert table == {
        "anomalies": {"zombie-commit": {"found": 2, "trials": 4, "suites": ["control", "member-paused"]}},
        "commits": ["c", "c2", "c3"],
        "date": "2026-11-24",
        "sound": {"pass": 1, "fail": 1, "unknown": 1},
        "suites": {},
        "timed": {"trials": 0, "date": "", "first_s": 0.0},
    }
    assert calibrated("zombie-commit", table) == (
        "calibrated: found in 2 of 4 trials of consumers that commit it (1 of 3 sound trials failed), "
        "measured at 3 commits, the last c3 of 2026-11-24"
    )


def test_the_table_says_what_a_suite_finds_and_how_long_it_takes() -> None:
    """The shares in the newest rows, without what was never found; the median, and what a history does not hold."""
    missed = replace(SIN, violations=("zombie-commit",), expected=("skipped", "zombie-commit"))
    trials = [
        TimedTrial("member-paused", "mine", "4.3.1", seed, f"2026-11-2{seed}T00:00:00+00:00", seconds, 2)
        for seed, seconds in ((1, 30.0), (2, 20.0), (3, 90.0))
    ]
    bench = [
        BenchRow("trial", Figure(name, "s", values), "2 cores", "c")
        for name, values in ((COLD, (9.0,)), (COLD, (28.0, 27.0, 35.0)), (WARM, (22.5,)), (BESIDE, (1.5,)))
    ]
    silent = replace(SIN, expected=("zombie-commit",), violations=(), attempt=replace(SIN.attempt, seed=2))
    table = calibration_table([SIN, missed, silent, SOUND], date="", trials=trials, bench=bench)
    assert table["suites"] == {"member-paused": {"seconds": 31.5, "finds": {"zombie-commit": 0.667}}}
    assert table["timed"] == {"trials": 3, "date": "2026-11-23", "first_s": 5.5}


def test_the_seconds_of_a_trial_are_those_of_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From its first phase to its end; the same trial is added once, and one that was cut short not at all."""
    monkeypatch.setattr("lab.calibration.suite_seconds.reports_folder", lambda: tmp_path)
    place = tmp_path / "trials" / "one"
    unpack(registry.CHECKOUT / STORED / f"commits-last-offset{SUFFIX}", place)
    assert [add_seconds([str(tmp_path / "trials")]) for _ in range(2)] == [0, 0]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["1", "0"]
    (trial,) = read_seconds(tmp_path / SECONDS_NAME)
    told = [orjson.loads(line) for line in (place / "history" / "run.jsonl").read_bytes().splitlines()]
    phases = [line["time_ns"] for line in told if line["kind"] == "phase"]
    assert (trial.consumer, trial.seconds) == ("commits-last-offset", round((told[-1]["time_ns"] - phases[0]) / 1e9, 2))
    (place / "history" / "run.jsonl").write_bytes(
        b"".join(orjson.dumps(line) + b"\n" for line in told if line["kind"] != "end")
    )
    (tmp_path / SECONDS_NAME).unlink()
    assert (add_seconds([str(tmp_path / "trials")]), read_seconds(tmp_path / SECONDS_NAME)) == (0, [])
    with pytest.raises(InputError, match="nowhere is no folder"):
        add_seconds(["nowhere"])


def test_a_trial_that_waited_for_metadata_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where partitions were added, only one whose clients ask often: of others `certify --budget` adds the wait."""
    monkeypatch.setattr("lab.calibration.suite_seconds.reports_folder", lambda: tmp_path)
    run = unpack(registry.CHECKOUT / STORED / f"commits-last-offset{SUFFIX}", tmp_path / "trials" / "one")
    run.write_json("scenario.json", {**run.read_json("scenario.json"), "name": "partitions-added"})
    consumer = run.path / "consumer.toml"
    for age, timed in (("", 0), ("metadata_age_s = 30", 0), ("metadata_age_s = 2", 1)):
        consumer.write_text(f'[kafka]\nprotocol = "classic"\n{age}\n')
        add_seconds([str(tmp_path / "trials")])
        assert len(read_seconds(tmp_path / SECONDS_NAME)) == timed


def test_page_and_table_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where git does not know the commit, without the day."""
    monkeypatch.setattr("lab.calibration.campaign.reports_folder", lambda: tmp_path)
    append_row(tmp_path / ROWS_NAME, SIN)
    assert main(["--page"]) == 0
    assert (tmp_path / PAGE).read_text() == page([SIN])
    table = orjson.loads((tmp_path / TABLE.name).read_bytes())
    assert calibrated("zombie-commit", table).endswith("(sound ones were not tried since), measured at c")


NEED_A_SINK = ("slow-handlers", "failing-endpoint")


def test_a_part_of_the_grid_is_asked_for_by_suite() -> None:
    """What belongs to a new suite can be tried alone; one that does not exist is told."""
    part = list(grid(times=1, only=["python-upserts", "passes-over-tombstones"], suites=["tombstones"]))
    assert [(one.consumer, one.sin) for one in part] == [
        ("python-upserts", None),
        ("passes-over-tombstones", True),
        ("passes-over-tombstones", False),
    ]
    with pytest.raises(InputError, match="tombstone"):
        list(grid(times=1, suites=["tombstone"]))


def _may_fail_over(spec: ConsumerSpec) -> bool:
    """What a mirror translates is a position in Kafka, and leads back; it has the topics of the trial alone."""
    in_kafka = spec.progress.kind == "kafka" and not spec.progress.through
    return in_kafka and spec.evidence.sink != "topic" and spec.claim.delivery != "at-most-once"


def test_the_grid_is_whole() -> None:
    """Every reference on every suite that its sink serves and that it is ready for, if it is quiet on six at most;
    every sin and twin on its own, sins on and off; each time with another seed."""
    attempts = list(grid(times=2))
    assert len(set(attempts)) == len(attempts)
    tries = Counter((one.consumer, one.scenario) for one in attempts if one.sin is None)
    references = {name for name, file in registry.consumers().items() if registry.reference_folder() in file.parents}
    quiet = references - set(registry.speaking_references())
    twins = {name: header.suite for name in registry.consumers() if (header := header_of(name)) and header.sound}
    pairs = {(name, scenario) for name in references - quiet for scenario in registry.scenarios()}
    pairs |= {(name, scenario) for name in quiet for scenario in SILENT_SCENARIOS}
    posting = {name for name in references if spec_from_toml(registry.find_consumer(name)).evidence.sink == "http"}
    assert {"python-upserts", "python-hand-off/quiet"} < posting < references
    for suite, holds in (("tombstones", {"null-values", "null-keys"}), ("poison-record", {"unreadable-values"})):
        ready = {
            name for name in references if holds <= set(spec_from_toml(registry.find_consumer(name)).payload.holds)
        }
        assert {"python-dead-letters", "python-upserts"} < ready < references
        pairs -= {(name, suite) for name in references - ready}
    one_topic = {name for name in references if not spec_from_toml(registry.find_consumer(name)).kafka.several_topics}
    assert {"python-fair-turns"} < one_topic < references
    pairs -= {(name, suite) for name in one_topic for suite in ("several-topics", "several-topics-killed")}
    by_pattern = {name for name in references if name.startswith("python-by-pattern")}
    pairs -= {(name, "topic-created") for name in references - by_pattern}
    moves = {name for name in references if _may_fail_over(spec_from_toml(registry.find_consumer(name)))}
    assert {"python-at-least-once", "aiokafka-long-orders"} < moves < references
    pairs -= {(name, "fail-over") for name in references - moves}
    everywhere = {pair: 2 for pair in pairs if pair[1] not in NEED_A_SINK or pair[0] in posting}
    unusual = {name: suites for name in registry.consumers() if (suites := registry.unusual_suites(name))}
    everywhere |= {(name, suite): 2 for name, suites in unusual.items() for suite in suites}
    assert tries == everywhere | dict.fromkeys(twins.items(), 2)
    sins = Counter((one.consumer, one.sin) for one in attempts if one.sin is not None)
    sound = references | twins.keys() | unusual.keys()
    at_cuts = {*SINS_FOUND_BY_LUCK, *SINS_FOUND_BY_FEW_SUITES}
    sinning = registry.consumers().keys() - sound
    times = {name: 2 * (1 + (name in at_cuts) + (further_suite(name) is not None)) for name in sinning}
    assert sins == {(name, sin): count for name, count in times.items() for sin in (True, False)}
    assert at_cuts <= times.keys()


NO_SIN = ("coordinator-lost", "large-records", "leader-lost", "rolling-restart")


def test_suites_have_a_sin_that_they_must_find() -> None:
    """Loud and quiet, on its own suite or on a further one; all but four of the oldest suites, whose faults a sin does
    not need."""
    tried = [attempt for attempt in grid(times=1) if attempt.sin and attempt.scenario in registry.scenarios()]
    assert {attempt.scenario for attempt in tried} == registry.scenarios().keys() - set(NO_SIN)
    further = [one for one in tried if (suite := further_suite(one.consumer)) and one.scenario == suite.suite]
    assert {one.consumer for one in further if expected_of(one)} == {
        name for sin in FURTHER_SUITES for name in (sin, f"{sin}/quiet")
    }


def test_on_a_further_suite_a_sin_must_show_what_is_promised_there() -> None:
    """As far as its variant lets it be seen; on its own suite what its header promises."""
    there = Attempt("sheds-lag", "remote-reads", sin=True)
    assert expected_of(there) == FURTHER_SUITES["sheds-lag"].must
    quiet = replace(there, consumer="sheds-lag/quiet")
    assert (expected_of(quiet), at_times_of(quiet)) == (("commit-ahead", "skipped"), ("stuck-partition", "unseen"))
    assert (expected_of(replace(there, sin=False)), at_times_of(replace(there, sin=False))) == ((), ())
    assert expected_of(replace(there, scenario="control")) == ("commit-ahead", "poll-skip", "skipped")
    again = Attempt("reads-its-topic-again", "cold-neighbour", sin=True)
    assert (expected_of(again), at_times_of(again)) == (("cold-read",), ("rogue-reader",))


def test_at_a_cut_a_sin_must_show_the_anomaly_for_which_it_was_chosen() -> None:
    """And may show the others of its header; switched off none, and on its own suite all."""
    cut = Attempt("commits-before-processing", CUT_BY_ANOMALY["commit-ahead"], sin=True)
    assert (expected_of(cut), at_times_of(cut)) == (("commit-ahead",), ("skipped",))
    assert (expected_of(replace(cut, sin=False)), at_times_of(replace(cut, sin=False))) == ((), ())
    suite = replace(cut, scenario="member-killed")
    assert (expected_of(suite), at_times_of(suite)) == (("commit-ahead", "skipped"), ())
    quiet = Attempt("works-though-commit-failed/quiet", CUT_BY_ANOMALY["redelivered"], sin=True)
    assert (expected_of(quiet), at_times_of(quiet)) == (("redelivered",), ("duplicate-effect",))


def test_the_cut_of_an_anomaly_is_a_scenario() -> None:
    """Of an anomaly that a sin may promise."""
    assert all(registry.find_scenario(cut).schedule for cut in CUT_BY_ANOMALY.values())
    assert CUT_BY_ANOMALY.keys() <= {one.name for one in list_invariants()}


def test_a_consumer_that_does_not_exist_is_refused() -> None:
    """With the names there are."""
    with pytest.raises(InputError, match="commits-backwards"):
        list(grid(times=1, only=["commits-backward"]))


def test_a_sin_is_expected_only_where_it_is_on(tmp_path: Path) -> None:
    """Switched off in a copy; what was written by its author stays as it is."""
    off = Attempt("commits-backwards", "member-paused", sin=False)
    asked = ask(off, tmp_path)
    assert 'SIN = "0"' in asked.trial_spec.consumer.path.read_text()
    assert 'SIN = "1"' in registry.find_consumer("commits-backwards").read_text()
    assert (expected_of(off), bool(expected_of(replace(off, sin=True)))) == ((), True)


@pytest.mark.parametrize(
    ("consumer", "expected"),
    [
        ("seeks-to-beginning", ("commit-regression", "illegal-redelivery")),
        ("sheds-lag", ("commit-ahead", "poll-skip", "skipped")),
        ("sheds-lag/quiet", ("commit-ahead", "skipped")),
        ("assigns-itself-everything/quiet", ("commit-regression", "zombie-commit")),
        ("exits-on-poison/quiet", ("exited", "stuck-partition", "unseen")),
        ("restarts-into-poison", ("late-convergence", "unseen")),
        ("restarts-into-poison/quiet", ("stuck-partition", "unseen")),
        ("works-though-commit-failed/quiet", ("duplicate-effect", "redelivered")),
        ("seeks-to-where-it-is/quiet", ()),
        ("python-at-least-once/quiet", ()),
    ],
)
def test_a_quiet_variant_must_show_what_can_be_seen_of_it(consumer: str, expected: tuple[str, ...]) -> None:
    """Of its header's anomalies those of its level, a plain failure included, or those of the header's own line."""
    assert expected_of(Attempt(consumer, "control", sin=True)) == expected
    assert expected_of(Attempt(consumer, "control", sin=False)) == ()


def test_a_sin_that_tells_less_is_switched_off_with_what_starts_it(tmp_path: Path) -> None:
    """The program named in its command lies where the copy looks for it."""
    asked = ask(Attempt("commits-backwards/no-commits", "member-paused", sin=False), tmp_path)
    consumer = asked.trial_spec.consumer
    assert (consumer.path.parent / consumer.command[1]).resolve().read_text() == LEAVING_OUT.read_text()


def test_a_quiet_sin_is_switched_off_in_its_own_file(tmp_path: Path) -> None:
    """The copy that is asked about is the quiet one."""
    asked = ask(Attempt("commits-backwards/quiet", "member-paused", sin=False), tmp_path)
    assert asked.trial_spec.consumer.name == "commits-backwards-quiet"
    assert (asked.trial_spec.consumer.env["SIN"], asked.trial_spec.consumer.evidence.events) == ("0", "none")


@pytest.mark.parametrize(
    ("row", "right"),
    [
        (SOUND, True),
        (QUIET, True),
        (replace(QUIET, verdict="pass", reasons=()), True),
        (replace(QUIET, reasons=(*QUIET.reasons, "fault 0 (kill on m0) had no measurable effect")), False),
        (replace(QUIET, verdict="fail", violations=("zombie-commit",)), False),
        (replace(QUIET, silent=False), False),
        (replace(QUIET, attempt=SIN.attempt, expected=SIN.expected), False),
        (replace(QUIET, attempt=SIN.attempt, expected=SIN.expected, verdict="fail", violations=SIN.violations), True),
        (replace(SOUND, verdict="unknown"), False),
        (replace(SOUND, verdict="fail", violations=("skipped",)), False),
        (SIN, True),
        (replace(SIN, violations=("zombie-commit", "skipped")), False),
        (replace(SIN, violations=("zombie-commit", "skipped"), at_times=("skipped",)), True),
        (replace(SIN, violations=("skipped",), at_times=("skipped",)), False),
        (replace(SIN, at_times=("skipped",)), True),
        (replace(SIN, verdict="pass", violations=()), False),
        (replace(SIN, verdict="unknown"), False),
    ],
)
def test_only_exactly_the_promised_anomalies_are_right(row: Row, right: bool) -> None:
    """One more, one less, or unknown is not as it must be; a sound quiet one passes, or is left open for its silence
    alone."""
    assert row.as_expected is right


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    """A line that a killed calibration tore is left out; any other damage is named."""
    file = tmp_path / "rows.jsonl"
    for row in (SOUND, SIN, QUIET):
        append_row(file, row)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"attempt": {"cons')
    assert read_rows(file) == [SOUND, SIN, QUIET]
    file.write_bytes(b"{}\n" + whole)
    with pytest.raises(InputError, match="expected one of the rows"):
        read_rows(file)


def test_the_page_tells_what_is_not_as_it_must_be() -> None:
    """Sums first, then each pair with its reasons; a bar in a reason does not break the table."""
    text = page([SOUND, replace(SOUND, verdict="unknown", reasons=("no | bite",)), SIN])
    assert "| sound consumers | 2 | 0 | 1 | 0 | 1 | 1/2 |" in text
    assert "| sins switched on | 1 | 0 | 0 | 1 | 0 | 1/1 |" in text
    assert "| python-at-least-once | control | pass | 1 | 0 | 1 | 1/2 |  | no / bite (1) |" in text
    assert "| commits-backwards (sin on) | member-paused | fail: zombie-commit | 0 | 1 | 0 | 1/1 |" in text


def test_the_page_tells_quiet_trials_apart() -> None:
    """In sums of their own; a sound one that is left open for its silence is an answer, and needs no reason told."""
    text = page([SOUND, QUIET, replace(QUIET, verdict="fail", violations=("skipped",))])
    assert "| sound consumers | 1 | 0 | 1 | 0 | 0 | 1/1 | 95.0% |" in text
    assert "| sound consumers, quiet | 2 | 0 | 0 | 1 | 1 | 1/2 | 97.5% |" in text
    must = "unknown for its silence alone"
    assert f"| python-at-least-once/quiet | control | {must} | 0 | 1 | 1 | 1/2 | skipped 1 |  |" in text


def test_the_page_tells_how_often_each_sin_was_found_and_how() -> None:
    """With and without its own word, by which anomalies; switched off, and its twin, acquitted; one line a sin."""
    quiet = replace(SIN, attempt=replace(SIN.attempt, consumer="commits-backwards/quiet"), silent=True)
    missed = replace(quiet, verdict="unknown", violations=())
    off = replace(SOUND, attempt=replace(SIN.attempt, sin=False))
    twin = replace(SOUND, attempt=Attempt("commits-late", "member-paused"), twin_of="commits-backwards")
    cells = "1/1: zombie-commit 1 | 1/2: zombie-commit 1 | 1/1 | 1/1 |"
    assert f"| commits-backwards | member-paused | {cells}" in page([SIN, quiet, missed, off, twin, SOUND])
    assert "## Sins" not in page([SOUND])


def test_a_source_before_is_kept_and_not_mixed_with_the_newest() -> None:
    """What it got wrong stays told; the sums are the newest's."""
    before = replace(SOUND, verdict="fail", violations=("skipped",), source_digest="old", commit="c0")
    text = page([before, replace(before, verdict="pass", violations=()), SOUND])
    assert "1 trials of source d, measured at c." in text
    assert "| sound consumers | 1 | 0 | 1 | 0 | 0 | 1/1 | 95.0% |" in text
    assert "| old | measured at c0 | 1/2 | python-at-least-once-on-control-4.3.1 seed 1: fail, skipped |" in text


@pytest.mark.parametrize(
    ("wrong", "trials", "rate"),
    [(0, 0, 1.0), (0, 1, 0.95), (0, 59, 0.0495), (0, 200, 0.0149), (1, 20, 0.2161), (3, 3, 1)],
)
def test_the_bound_is_that_of_clopper_and_pearson(wrong: int, trials: int, rate: float) -> None:
    """None wrong of 59 is the old rule of three: below one in twenty. Other figures by the beta distribution."""
    assert upper_bound(wrong, trials) == pytest.approx(rate, abs=1e-4)


def test_an_order_is_drawn_from_a_seed() -> None:
    """The same attempts, each once; the same seed draws the same order, another one another."""
    attempts = list(grid(times=5, only=["commits-past-end"]))
    one, again, other = (shuffled(attempts, seed=seed) for seed in (7, 7, 8))
    assert one == again
    assert one != other
    assert sorted(map(repr, other)) == sorted(map(repr, attempts))


def test_a_calibration_without_time_begins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It says how much is left; what this source has tried already is not asked again, and what is kept stays."""
    monkeypatch.chdir(tmp_path)
    kept = [tmp_path / RUNS / f"{attempt}-seed-2" / "run" for attempt in grid(times=1, only=["commits-past-end"])]
    for folder in kept:
        folder.mkdir(parents=True)
    monkeypatch.setattr("lab.calibration.campaign.reports_folder", lambda: tmp_path)
    for attempt in grid(times=1, only=["commits-past-end"]):
        append_row(tmp_path / ROWS_NAME, _of_now(attempt))
    calibrate(times=2, minutes=0, only=["commits-past-end"])
    assert "2 of 2 trials still to run" in capfd.readouterr().err
    assert len(read_rows(tmp_path / ROWS_NAME)) == 2
    assert [folder.is_dir() for folder in kept] == [True, True]


def test_what_a_changed_consumer_or_harness_did_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only a row of the same harness, consumer and scenario counts as tried."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lab.calibration.campaign.reports_folder", lambda: tmp_path)
    on, off = grid(times=1, only=["commits-past-end"])
    append_row(tmp_path / ROWS_NAME, replace(_of_now(on), trial_digest="another consumer"))
    append_row(tmp_path / ROWS_NAME, replace(_of_now(off), making_digest="another harness"))
    calibrate(times=1, minutes=0, only=["commits-past-end"])
    assert "2 of 2 trials still to run" in capfd.readouterr().err


def test_a_trial_is_of_its_consumers_files_and_of_its_scenario(tmp_path: Path) -> None:
    """Whatever lies beside consumer.toml, and what the scenario asks for; not where either lies, nor their comments."""

    def digest_of(name: str, *, program: str = "", drain_s: int = 8, comment: str = "") -> str:
        consumer = shutil.copytree(registry.find_consumer("python-at-least-once").parent, tmp_path / name)
        with (consumer / "main.py").open("a") as file:
            file.write(program)
        suite = tmp_path / f"{name}.toml"
        suite.write_text(f'{comment}name = "one"\n[limits]\ndrain_s = {drain_s}\n')
        return trial_digest(Attempt(str(consumer / "consumer.toml"), str(suite)))

    same = digest_of("a")
    assert digest_of("b", comment="# of a suite\n") == same
    assert len({same, digest_of("c", program="# changed\n"), digest_of("d", drain_s=7)}) == 3


def test_rows_of_a_consumer_that_has_changed_since_are_set_aside_and_told() -> None:
    """Its latest trials are in the sums; what it did before it was changed stays told, with the reason."""
    before = replace(SOUND, verdict="fail", violations=("skipped",), trial_digest="before", commit="c0")
    text = page([before, SOUND, SIN])
    assert "| sound consumers | 1 | 0 | 1 | 0 | 0 | 1/1 | 95.0% |" in text
    because = "its consumer or scenario was changed since"
    told = f"| 1 | 0/1 | {because} | python-at-least-once-on-control-4.3.1 seed 1: fail, skipped |"
    assert f"| python-at-least-once | control {told}" in text


def test_a_row_that_was_judged_again_stands_for_its_trial() -> None:
    """The verdict of the newer judge counts, once; what an older judge said of a history that is gone is told."""
    old = replace(SOUND, verdict="fail", violations=("skipped",), judging_digest="j1")
    again = replace(old, verdict="pass", violations=(), judging_digest="j2", rejudged=True)
    text = page([old, replace(SIN, judging_digest="j1"), again])
    assert "| sound consumers | 1 | 0 | 1 | 0 | 0 | 1/1 | 95.0% |" in text
    assert "1 of them were judged again, by a newer judge." in text
    assert "1 of them were judged by an older judge; their histories are not kept." in text


def test_a_changed_judge_judges_what_is_kept_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No trial is run for it; a history that is gone is left as it was judged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lab.calibration.campaign.reports_folder", lambda: tmp_path)
    kept, gone = grid(times=1, only=["commits-past-end"])
    for attempt in (kept, gone):
        append_row(tmp_path / ROWS_NAME, replace(_of_now(attempt), judging_digest="an older judge"))
    (tmp_path / RUNS / f"{kept}-seed-1" / "run" / "history").mkdir(parents=True)
    acquitted = SimpleNamespace(verdict="pass", violations=(), reasons=())
    monkeypatch.setattr("kafka_trial.check.check_run", lambda folder: acquitted)
    calibrate(times=1, minutes=0, only=["commits-past-end"])
    rows = read_rows(tmp_path / ROWS_NAME)
    assert [(row.attempt, row.verdict, row.rejudged) for row in rows[2:]] == [(kept, "pass", True)]
    assert rows[2].judging_digest == judging_digest()


def test_a_trial_that_could_not_be_begun_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its row stays, and counts among those not as they must be; going on, calibrate tries it again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lab.calibration.campaign.reports_folder", lambda: tmp_path)
    on, off = grid(times=1, only=["commits-past-end"])
    append_row(tmp_path / ROWS_NAME, _of_now(on))
    append_row(tmp_path / ROWS_NAME, replace(_of_now(off), verdict=NOT_BEGUN))
    assert calibrate(times=1, minutes=0, only=["commits-past-end"]) == 1
    assert "1 of 1 trials still to run" in capfd.readouterr().err


def test_a_commit_is_marked_where_code_was_changed_and_not_where_reports_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows say at which commit they were measured; the rows themselves change meanwhile. No checkout: a dash."""

    def git(*words: str) -> None:
        name = ["-c", "user.name=t", "-c", "user.email=t@t"]
        subprocess.run(["git", "-C", str(tmp_path), *name, *words], check=True, capture_output=True)

    monkeypatch.setattr("kafka_trial.registry.CHECKOUT", tmp_path)
    told = [git_revision()]
    git("init")
    table = tmp_path / "harness" / "kafka_trial" / "report" / "calibration.json"
    for file in (tmp_path / "code" / "file", tmp_path / "reports" / "file", table):
        file.parent.mkdir(parents=True)
        file.write_text("1")
    git("add", ".")
    git("commit", "-m", "first")
    told.append(git_revision())
    (tmp_path / "reports" / "file").write_text("2")
    table.write_text("2")
    told.append(git_revision())
    (tmp_path / "code" / "file").write_text("2")
    told.append(git_revision())
    assert told == ["-", told[1], told[1], f"{told[1]}+"]
    assert len(told[1]) >= 7


def test_rows_of_an_earlier_digest_of_the_same_code_are_of_it(tmp_path: Path) -> None:
    """A digest was made in another way then: of files, and not of what runs."""
    (before, now), *_ = SAME.items()
    append_row(tmp_path / ROWS_NAME, replace(SOUND, making_digest=before))
    append_row(tmp_path / ROWS_NAME, replace(SOUND, making_digest="others"))
    assert [row.making_digest for row in read_rows(tmp_path / ROWS_NAME)] == [now, "others"]


def _of_now(attempt: Attempt) -> Row:
    """Returns a row as this very source would have written it."""
    return replace(SIN, attempt=attempt, making_digest=making_digest(), trial_digest=trial_digest(attempt))
