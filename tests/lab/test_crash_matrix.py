"""The crash matrix: its cells, what rows say of a guarantee, and the page that is made of them alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from chosen_crashes import CHOSEN
from kafka_trial import registry
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.patched_consumer import render_patched_files
from kafka_trial.errors import InputError, StartError
from kafka_trial.report.row_files import append_row
from kafka_trial.trial.spec import make_trial_spec
from lab.cases.__main__ import main
from lab.cases.crash_campaign import missing, row_of
from lab.cases.crash_matrix import (
    AFTER_EFFECT,
    BEFORE_COMMIT,
    BEFORE_PROCESSING,
    PATTERNS,
    POINTS,
    PROTOCOLS,
    Cell,
    cells,
)
from lab.cases.crash_page import PAGE, newest, page_of, stored_rows
from lab.cases.crash_proof import Proof
from lab.cases.crash_rows import CrashRow, delivered, read_rows, weakest

EVERY = list(cells())


def row(cell: str = "late/classic/commit-leaves", **instead: object) -> CrashRow:
    """A row of a cell in which an effect was doubled, as at-least-once allows."""
    found = CrashRow(
        *(cell, 1, 3, "at-least-once", Proof(AFTER_EFFECT, "2 records had their effect", "m1-0", 2, 0, "no")),
        *("pass", {"duplicate-effect": 2, "redelivered": 2}, (), (0, 2), "cut", "4.3.1", "c0", "s0", "d0"),
        commit="abc1234",
    )
    return replace(found, **instead)  # type: ignore[arg-type]


@pytest.mark.parametrize("cell", EVERY, ids=lambda cell: cell.name)
def test_every_cell_is_a_trial_that_can_be_asked_for(cell: Cell) -> None:
    """Its consumer reads, its patch applies, its protocol is the cell's, and its n is drawn and never the first."""
    file = registry.CHECKOUT / cell.consumer
    render_patched_files(file.parent)
    spec = make_trial_spec(cell.scenario(5), file, seed=5)
    assert spec.consumer.kafka.protocol == cell.protocol
    assert spec.plan.faults[0].options["nth"] == cell.nth(5) in (2, 3, 4)


def test_the_matrix_has_every_way_every_point_and_both_protocols() -> None:
    """Each way is tried at each point that its program can be at, and at those that it never is."""
    reachable = {(cell.pattern.name, cell.protocol, point) for cell in EVERY for point in cell.place.points}
    asked = {
        (pattern.name, way, point)
        for pattern, way, point in product(PATTERNS, PROTOCOLS, POINTS)
        if point not in pattern.never
    }
    assert (len(PATTERNS), asked - reachable) == (8, set())
    assert {cell.nth(seed) for cell in EVERY for seed in range(9)} == {2, 3, 4}


def test_the_twelve_of_every_day_have_as_many_pairs_as_twelve_can() -> None:
    """All of point and protocol; each cell is a new pair of way and protocol, and of way and point."""
    chosen = {(cell.pattern.name, CHOSEN[cell.name][0], cell.protocol) for cell in EVERY if cell.name in CHOSEN}
    whole = {
        (cell.pattern.name, point, cell.protocol)
        for cell in EVERY
        for point in cell.place.points
        if point in POINTS and point not in cell.pattern.never
    }
    assert (len(CHOSEN), len(chosen), chosen <= whole) == (12, 12, True)
    for kind, every in (((1, 2), 8), ((0, 2), 16), ((0, 1), 22)):
        pairs = [{tuple(one[part] for part in kind) for one in cells} for cells in (chosen, whole)]
        assert (len(pairs[0]), len(pairs[1])) == (min(12, every), every), kind


def test_ways_claim_the_strongest_that_is_true() -> None:
    """By their consumer.toml; the sin claims what its reference claims."""
    claims = {
        pattern.name: {spec_from_toml(registry.CHECKOUT / file).claim.delivery for file in pattern.consumers.values()}
        for pattern in PATTERNS
    }
    least, once = {"at-least-once"}, {"exactly-once"}
    ways = ("early", "late", "auto-commit", "position-in-database", "without-the-condition")
    assert [claims[name] for name in ways] == [{"at-most-once"}, least, least, once, once]
    assert [claims[name] for name in ("upsert-by-id", "upsert-by-key", "transactional")] == [once, least, once]


@pytest.mark.parametrize(
    ("anomalies", "guarantee"),
    [
        ({}, "exactly-once"),
        ({"redelivered": 9, "commit-ahead": 3}, "exactly-once"),  # of the effect
        ({"duplicate-effect": 1}, "at-least-once"),
        ({"skipped": 1}, "at-most-once"),
        ({"unseen": 1, "duplicate-effect": 1}, "none"),
    ],
)
def test_what_was_found_is_a_guarantee(anomalies: dict[str, int], guarantee: str) -> None:
    """By effects that were lost and effects that were doubled."""
    assert delivered(anomalies) == guarantee


def test_the_weakest_is_what_all_include() -> None:
    """At most once and at least once have nothing in common but exactly once."""
    given = (["exactly-once"], ["exactly-once", "at-least-once"], ["at-most-once", "at-least-once"])
    assert [weakest(names) for names in given] == ["exactly-once", "at-least-once", "none"]


@pytest.mark.parametrize(
    ("instead", "words"),
    [
        ({}, []),
        ({"verdict": "fail"}, ["fail, and it delivered at-least-once"]),
        ({"claim": "exactly-once"}, ["pass, and it delivered at-least-once of the exactly-once claimed"]),
        ({"claim": "exactly-once", "verdict": "fail"}, []),
        ({"raw": (0, 0)}, ["0 records have no effect and 0 several"]),
        ({"raw": (1, 2)}, ["1 records have no effect"]),
    ],
)
def test_a_row_tells_what_does_not_agree(instead: dict[str, object], words: list[str]) -> None:
    """The verdict with claim and delivery, and the judge's counts with the raw events."""
    found = row(**instead).contradictions
    assert [word in told for word, told in zip(words, found, strict=True)] == [True] * len(words)


def test_rows_are_kept_and_others_cases_left_alone(tmp_path: Path) -> None:
    """What was appended is read back; a row of another case is none of ours; what is no row is refused by its line."""
    file = tmp_path / "cases.jsonl"
    append_row(file, row())
    with file.open("a") as out:
        out.write('{"case":0}\n')
    assert read_rows(file) == [row()]
    with file.open("a") as out:
        out.write('{"case":2}\n')
    with pytest.raises(InputError, match=r"cases\.jsonl:3"):
        read_rows(file)


def test_only_a_crash_at_its_point_fills_a_cell() -> None:
    """Reached: in the matrix. At no point, or undecided: a stroke, and in the list why. Never is what was tried."""
    assert "| classic | at-least-once | never | - | - | at-least-once | - (1 of 2 cells) |" in page_of([row()])
    elsewhere = row(proof=Proof("", "both the effects and their commit were there"))
    for other in (elsewhere, row(verdict="unknown")):
        assert "| classic | at-least-once | never | - | - | - | - (0 of 2 cells) |" in page_of([other])
    assert "not reached: both the effects and their commit were there" in page_of([elsewhere])


def test_what_was_not_at_stake_at_the_kill_is_told_apart() -> None:
    """Two records had their effect and no commit when it died; of five that were doubled three were others."""
    assert "at-least-once (3 doubled elsewhere)" in page_of([row(raw=(0, 5))])
    assert "elsewhere)" not in page_of([row(raw=(0, 2))])
    assert row(raw=(1, 2)).elsewhere == (1, 0)


def test_a_proof_of_an_older_rule_stands_nowhere() -> None:
    """Of a transaction's places, where a kill alone once was proof enough; a commit's are as they were."""
    old = row("transactional/classic/end-leaves", proof=Proof(BEFORE_COMMIT, ""))
    new = replace(old, proof=Proof(BEFORE_COMMIT, "", rule=2))
    assert (newest([old, row()]), newest([new, old])) == ([row()], [new])


def test_the_page_says_at_which_commits_it_was_measured() -> None:
    """How many rows of each, and of every trial its own."""
    page = page_of([row(), row("early/classic/commit-leaves", commit="def5678+")])
    assert "measured at abc1234 (1), def5678+ (1); a + says" in page
    assert page.count("| abc1234 |") == page.count("| def5678+ |") == 1


def test_a_contradiction_stands_out() -> None:
    """A verdict that does not agree is told in its cell, and a guarantee weaker than claimed in its row."""
    in_hand = row("late/classic/records-in-hand", proof=Proof(BEFORE_PROCESSING, ""), claim="exactly-once")
    page = page_of([row(claim="exactly-once"), in_hand])
    assert "**at-least-once, and pass**" in page
    assert "| **at-least-once** |" in page
    assert page_of([row(), replace(in_hand, claim="at-least-once")]).count("| at-least-once | at-least-once |") == 1


def test_of_several_rows_the_newest_that_was_reached_stands() -> None:
    """Another harness's, and another consumer's, are left out; one that landed elsewhere does not hide one that did."""
    old, changed = row(source_digest="before"), row(consumer_digest="before")
    reached, later = row(seed=2), row(seed=3, proof=Proof("", "nothing was open"))
    assert newest([old, changed, reached, later]) == [reached]
    assert newest([reached, row(seed=3, proof=Proof(BEFORE_COMMIT, ""))])[0].seed == 3
    assert newest([old, row("early/classic/commit-leaves")])[0] == old  # another cell's harness is its own


def test_the_page_is_that_of_the_stored_rows() -> None:
    """Nobody has written into it by hand, and no row came after it."""
    assert (registry.CHECKOUT / PAGE).read_text() == page_of(*stored_rows())


def test_an_unknown_cell_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, and what was meant."""
    assert main(["--again", "late/classic/commit-leave"]) == 2
    assert "late/classic/commit-leaves" in capsys.readouterr().err


def counting(cell: Cell, seed: int, **instead: object) -> CrashRow:
    """A row of a cell that counts for the harness, the consumer and the scenario of today."""
    not_begun = row_of(cell, seed, StartError("no disk"))
    return replace(not_begun, **{"verdict": "pass", **instead})  # type: ignore[arg-type]


def test_a_cell_is_tried_until_its_crash_has_landed() -> None:
    """With the next seed where it landed elsewhere or was unknown; not where it landed, but for another harness."""
    cell = next(cell for cell in EVERY if cell.name == "late/classic/commit-leaves")
    landed, elsewhere = Proof(AFTER_EFFECT, ""), Proof("", "nothing was open")
    nowhere = [counting(cell, 1, proof=elsewhere)]
    assert (missing([cell], [], 1), missing([cell], nowhere, 1), missing([cell], nowhere, 2)) == ([cell], [], [cell])
    assert missing([cell], [counting(cell, 1, proof=landed, verdict="unknown")], 2) == [cell]
    assert missing([cell], [counting(cell, 1, proof=landed)], 2) == []
    assert missing([cell], [counting(cell, 1, proof=landed, source_digest="another")], 1) == [cell]
    assert missing([cell], [counting(cell, 1, proof=landed, consumer_digest="another")], 1) == [cell]


def test_a_point_that_a_program_cannot_be_at_is_tried_once() -> None:
    """A late consumer killed when its commit is taken: the first seed shows it."""
    cell = next(cell for cell in EVERY if cell.name == "late/classic/commit-taken")
    row = counting(cell, 1, proof=Proof("", "both the effects and their commit were there"))
    assert (missing([cell], [], 1), missing([cell], [row], 2)) == ([cell], [])


def test_a_trial_that_was_not_begun_proves_nothing() -> None:
    """It fills no cell, and says why."""
    found = row_of(EVERY[0], 1, StartError("no disk"))
    assert (found.verdict, found.reached, found.proof.because) == ("not begun", False, "no disk")
