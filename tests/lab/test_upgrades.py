"""The matrix of upgrades: which plays there are, what is missing of them, and the page of their rows."""

from __future__ import annotations

from dataclasses import replace

from kafka_trial.cluster.versions import NUMBERS
from kafka_trial.upgrade.record_file import as_table
from lab.repository import reports_folder
from lab.upgrades.campaign import missing, whole_page
from lab.upgrades.known_campaign import read_known
from lab.upgrades.known_page import KNOWN_ROWS_NAME
from lab.upgrades.page import PAGE_NAME, page_of
from lab.upgrades.plays import OFTEN, ROWS_NAME, Play, plays, read_rows, row_of, row_without_record
from upgrade_records import NO_GO_RECORD

DIGEST = "m1-j1"
PLAY = next(plays())
ROW = row_of(PLAY, as_table(NO_GO_RECORD), seconds=170.04, digest=DIGEST, commit="abc")
GONE = replace(ROW, outcome="go", not_go=[])


def test_the_page_is_what_its_rows_make() -> None:
    """Whoever adds a row writes it again: `python -m lab.upgrades --page`."""
    folder = reports_folder()
    rows, known = read_rows(folder / ROWS_NAME), read_known(folder / KNOWN_ROWS_NAME)
    assert (folder / PAGE_NAME).read_text() == whole_page(rows, known)


def test_every_version_is_left_and_come_to() -> None:
    """In both shapes; the two that most teams have five times; a client of every library is at work in each play."""
    played = list(plays())
    assert len(set(played)) == len(played)
    assert {play.before for play in played} == set(NUMBERS[:-1])
    assert {play.after for play in played} == set(NUMBERS[1:])
    often = [play for play in played if play.before in OFTEN and play.after == NUMBERS[-1]]
    assert len(often) == 5 * len(OFTEN) * 2
    assert {len(play.consumers) for play in played if play.before >= "4"} == {5}
    assert {len(play.consumers) for play in played if play.before < "4"} == {4}


def test_all_are_on_one_cluster_when_a_pair_is_played_first() -> None:
    """Later in batches."""
    assert {play.side_by_side == len(play.consumers) for play in plays() if play.seed == 1} == {True}
    assert {play.side_by_side for play in plays() if play.seed > 1} == {3}


def test_what_is_answered_is_not_played_again() -> None:
    """Unknown is tried once more; another code, another seed or another shape is another play."""
    unknown = replace(ROW, outcome="unknown")
    assert PLAY not in missing([GONE], DIGEST)
    assert PLAY in missing([unknown], DIGEST)
    assert PLAY not in missing([unknown, unknown], DIGEST)
    assert PLAY in missing([GONE], "m2-j1")
    assert len(missing([GONE], DIGEST)) == len(list(plays())) - 1
    assert missing([GONE], "m2-j1")[-1] == PLAY  # those that no code has answered come first
    assert missing([unknown], "m2-j1")[0] == PLAY
    assert missing([GONE, ROW], "m2-j1")[0] == PLAY  # the consumers are sound: a no-go is to be looked at
    seeds = [play.seed for play in missing([], DIGEST)]
    assert seeds == sorted(seeds)  # each pair once before one is played again


def test_a_play_without_a_record_is_unknown() -> None:
    """The campaign goes on; the page has its last words."""
    row = row_without_record(PLAY, "status 3: no port is free", digest=DIGEST, commit="abc")
    assert PLAY in missing([row], DIGEST)
    assert PLAY not in missing([row, row], DIGEST)
    assert f"- {PLAY}, before anything, the cluster: unknown; no record: status 3: no port is free" in page_of([row])


def test_a_row_says_what_was_no_go() -> None:
    """By stage and subject, with the reason; how long stages and restarts took."""
    assert ROW.outcome == "no-go"
    assert [tuple(one[:4]) for one in ROW.not_go] == [
        (one.stage, one.subject, one.outcome, one.accused) for one in NO_GO_RECORD.rows if one.outcome != "go"
    ]
    assert sum(sum(counts.values()) for counts in ROW.outcomes.values()) == len(NO_GO_RECORD.rows)
    text = page_of([ROW, replace(GONE, play=Play("4.3.1", "4.4.0", "replace", (), 1))])
    assert f"| {PLAY.before} | {PLAY.after} | {PLAY.shape} | 1 | 0 | 1 | 0 | 170 |" in text
    assert "| 4.3.1 | 4.4.0 | replace | 1 | 1 | 0 | 0 | 170 |" in text
    assert f"- {PLAY}, mixed-1, orders: no-go, accused: consumer; skipped" in text
    assert page_of([ROW, GONE]).count("no-go, accused") == 0  # the newest row of a play counts
