"""Known differences of upgrades: which plays they are, when one is found, and the page of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest

from kafka_trial import registry
from kafka_trial.consumers.patched_consumer import read_consumer_toml, render_patched_files
from kafka_trial.report.row_files import append_row
from kafka_trial.upgrade.successors import parse_chain
from lab.upgrades.known import (
    FOLDER,
    KNOWN,
    NO_LONGER_SERVED,
    TIMES,
    TO_4,
    KnownRow,
    consumers_of,
    is_answered,
    known_plays,
    known_row,
    row_without_record,
    said_instead,
)
from lab.upgrades.known_campaign import missing_known, read_known, said_of
from lab.upgrades.known_page import known_lines

BY_NAME = {one.name: one for one in KNOWN}
SARAMA = BY_NAME[f"{NO_LONGER_SERVED}, sarama"]
STATIC = BY_NAME["a static member replaced across protocols"]
ADDRESSES = BY_NAME["every first address of a client is gone"]
FENCED = BY_NAME["commits of a member epoch that has passed are fenced before 4.3"]
STOOD_STILL = "stuck-partition: partition 0 stood still for 40 s"
STUCK = f"{STOOD_STILL}. Cause: m0 is too old for these brokers: b0 refused Fetch v3"
DIGEST = "m1-j1-f1"


def record_of(*outcomes: tuple[str, str, str, str, str], refusals: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """Returns the part of a record that is read: outcomes as (stage, subject, outcome, accused, reason)."""
    words = ("stage", "subject", "outcome", "accused", "reason")
    told = [dict(zip(words, one, strict=True)) for one in outcomes]
    return {"outcomes": told, "path": {"refusals": list(refusals)}}


def of_sarama(stage: str, outcome: str, accused: str = "", reason: str = "") -> tuple[str, str, str, str, str]:
    return stage, SARAMA.subject, outcome, accused, reason


SUBJECTS = [TO_4.control, *(one.subject for one in KNOWN if one.path == TO_4)]
BEGUN = [("before", subject, "go", "", "") for subject in SUBJECTS]
FOUND = record_of(*BEGUN, of_sarama("mixed-1", "no-go", "consumer", STUCK), ("mixed-1", TO_4.control, "go", "", ""))


def row(record: Mapping[str, Any]) -> KnownRow:
    play = next(play for path, play in known_plays() if path == TO_4)
    return known_row(TO_4, play, record, seconds=170.04, digest=DIGEST, commit="abc")


def test_a_difference_is_found_in_its_stage_alone() -> None:
    """Go before it, then no-go, the accused and the reason; what comes later is of no account."""
    assert said_instead(SARAMA, FOUND) == ""
    later = record_of(
        of_sarama("mixed-1", "no-go", "consumer", STUCK), of_sarama("rolled", "no-go", "consumer", "lost: a record")
    )
    assert said_instead(SARAMA, later) == ""


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ([of_sarama("mixed-1", "go")], "go"),
        ([of_sarama("before", "no-go", "consumer", STUCK)], f"before: no-go, accused: consumer; {STUCK}"),
        ([of_sarama("mixed-1", "no-go", "setting", STUCK)], f"mixed-1: no-go, accused: setting; {STUCK}"),
        ([of_sarama("mixed-1", "no-go", "consumer", "skipped: 5")], "mixed-1: no-go, accused: consumer; skipped: 5"),
        (
            [of_sarama("mixed-1", "no-go", "consumer", STOOD_STILL)],
            f"mixed-1: no-go, accused: consumer; {STOOD_STILL}",
        ),
        ([of_sarama("mixed-1", "unknown", "", "a witness ended")], "mixed-1: unknown; a witness ended"),
        ([("mixed-1", "other", "no-go", "consumer", STUCK)], "no record: unknown; refused by nothing"),
        ([], "no record: unknown; refused by nothing"),
    ],
    ids=["go", "earlier", "another accused", "another reason", "no cause", "unknown", "another consumer", "empty"],
)
def test_what_is_not_found_is_told(outcomes: list[tuple[str, str, str, str, str]], said: str) -> None:
    """An accusation by luck finds nothing."""
    assert said_instead(SARAMA, record_of(*outcomes)) == said


def test_what_the_new_version_mends_must_be_a_go_there() -> None:
    """In the stages between it may be either; what lasts to the end is another difference."""
    skipped = "skipped: record 5 was left out"
    begun = [("before", FENCED.subject, "no-go", "consumer", skipped)]
    between, mended = (
        ("mixed-1", FENCED.subject, "no-go", "consumer", skipped),
        ("finalised", FENCED.subject, "go", "", ""),
    )
    assert said_instead(FENCED, record_of(*begun, between, mended)) == ""
    assert said_instead(FENCED, record_of(*begun, between)) == "finalised: no outcome"
    lasting = record_of(*begun, ("finalised", FENCED.subject, "no-go", "consumer", skipped))
    assert said_instead(FENCED, lasting) == f"finalised: no-go, accused: consumer; {skipped}"


def test_a_refusal_is_found_by_its_issue() -> None:
    """Another rule that refuses the path has not found it; one that lets it pass neither."""
    assert said_instead(STATIC, record_of(refusals=("4.0.1 is to be avoided: … (KAFKA-19546)",))) == ""
    assert said_instead(STATIC, record_of(refusals=("KAFKA-19444",))) == "refused by ['KAFKA-19444']"
    assert said_instead(STATIC, record_of()) == "refused by nothing"


def test_the_control_must_be_a_go() -> None:
    """It is told where it is not, and the play is not counted as one without a fault."""
    wrong = record_of(*BEGUN, ("mixed-1", TO_4.control, "no-go", "consumer", STUCK))
    assert row(FOUND).control == ""
    assert row(wrong).control == f"mixed-1: no-go, accused: consumer; {STUCK}"
    assert "and the control: mixed-1: no-go" in said_of(row(wrong))


def test_what_comes_after_the_last_difference_is_not_played() -> None:
    """The control must be a go up to there, and that stage must be among those that were judged."""
    ended = record_of(*_told(FOUND), ("mixed-2", TO_4.control, "unknown", "", "not played"))
    assert row(ended).control == ""
    assert row(record_of(*BEGUN)).control == "mixed-1: unknown; not played"
    for path in {one.path for one in KNOWN}:
        found_in = {stage for one in KNOWN if one.path == path for stage in (one.stage, one.mended)}
        assert path.until in found_in


def test_what_is_unknown_is_played_once_more() -> None:
    """An answer is not, be it that it was not found; another code is another play."""
    unknown = row(record_of(*BEGUN, of_sarama("mixed-1", "unknown", "", "a witness ended")))
    answered = row(FOUND)
    plays = Counter(play for _, play in missing_known([], DIGEST))
    assert set(plays.values()) == {1}
    assert len(plays) == TIMES * len({one.path for one in KNOWN})
    assert not is_answered(unknown)
    assert not is_answered(row(record_of(refusals=("a rule that is new",))))
    assert not is_answered(row_without_record(TO_4, unknown.play, "no stage was played", digest=DIGEST, commit="abc"))
    assert answered.play not in {play for _, play in missing_known([answered], DIGEST)}
    assert missing_known([answered], "m2-j1-f1")[-1][1] == answered.play  # those that no code has answered come first
    wrong = row(record_of(*BEGUN, of_sarama("mixed-1", "go"), ("mixed-1", TO_4.control, "go", "", "")))
    all_right = [replace(answered, play=play) for _, play in known_plays()]
    assert missing_known([*all_right, wrong], "m2-j1-f1")[0][1] == wrong.play  # then those whose newest answer is wrong
    assert missing_known([wrong, *all_right], "m2-j1-f1")[0][1] == all_right[0].play
    assert unknown.play in {play for _, play in missing_known([unknown], DIGEST)}
    assert unknown.play not in {play for _, play in missing_known([unknown, unknown], DIGEST)}


def test_the_page_counts_what_was_found() -> None:
    """Of the newest row of each play; what was not found is told with what was said instead."""
    lines = list(known_lines([row(FOUND)]))
    assert any(line.startswith(f"| {SARAMA.name} |") and line.endswith("| 1 of 1 (planned 5) |") for line in lines)
    kafka_python = f"| {NO_LONGER_SERVED}, kafka-python |"
    assert any(line.startswith(kafka_python) and "0 of 1" in line for line in lines)
    assert any(line.startswith(f"| {ADDRESSES.name} |") and "0 of 0" in line for line in lines)
    assert any("a silent consumer: go" in line for line in lines)


def test_every_consumer_is_there() -> None:
    """Each of the fixtures is played, applies to its reference, and has the name by which the record knows it."""
    folder = registry.CHECKOUT / FOLDER
    named = {(registry.CHECKOUT / one.consumer) for one in KNOWN if one.consumer.startswith(FOLDER)}
    assert {one if one.is_dir() else one.parent for one in named} == {one for one in folder.iterdir() if one.is_dir()}
    in_go = {"sarama-old-version", "assumes-transaction-version-2"}
    assert {one.parent.name for one in folder.glob("*/main.go")} == in_go
    for one in KNOWN:
        file = parse_chain(one.consumer, registry.find_consumer).consumer
        assert read_consumer_toml(file)["name"] == one.subject
        if file.is_relative_to(folder) and not (file.parent / "main.go").exists():
            assert render_patched_files(file.parent)["main.py"]
    for path in {one.path for one in KNOWN}:
        files = [parse_chain(one, registry.find_consumer).consumer for one in consumers_of(path)]
        names = [read_consumer_toml(file)["name"] for file in files]
        assert len(set(names)) == len(names)
        assert not path.control or names[0] == path.control


def _told(record: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    return [tuple(one.values()) for one in record["outcomes"]]


def test_rows_are_read_as_they_were_written(tmp_path: File) -> None:
    """Also without any."""
    file = tmp_path / "rows.jsonl"
    assert read_known(file) == []
    append_row(file, row(FOUND))
    assert read_known(file) == [row(FOUND)]
