"""The report as text."""

from __future__ import annotations

from kafka_trial.history.store import RunFolder
from kafka_trial.report.html import html_of
from kafka_trial.report.report_data import read_report
from kafka_trial.report.text import text_report
from literal_run import verdict


def test_verdict_worst_violation_replay(folder: RunFolder) -> None:
    """The first three lines are the verdict, the worst violation, and the command that replays it."""
    assert text_report(folder).splitlines()[:3] == [
        "FAIL: commit-regression",
        "worst: commit-regression: the committed offset of partition 1 fell from 12 to 11 and stood there at the end",
        "replay: kafka-trial run member-paused --consumer orders --kafka 4.3.1 --seed 7"
        f" --schedule {folder.path}/schedule.json",
    ]


def test_unknown_names_its_reason_in_the_first_line(folder: RunFolder) -> None:
    """The reason comes with the word; what was seen is not held against the consumer."""
    folder.write_json("verdict.json", verdict("unknown", reasons=["the offsets witness died", "no end"]))
    assert text_report(folder).splitlines()[:2] == [
        "UNKNOWN: the offsets witness died (and 1 more)",
        "worst: commit-regression: the committed offset of partition 1 fell from 12 to 11 and stood there at the end"
        " (seen, but not held against the consumer)",
    ]


def test_pass_says_how_much_was_judged(folder: RunFolder) -> None:
    """Nothing seen is told with the number of records it rests on."""
    folder.write_json("verdict.json", verdict("pass", violations=[]))
    assert text_report(folder).splitlines()[:2] == [
        "PASS: every property claimed was judged, and holds",
        "worst: no violation in 120 records judged",
    ]


def test_a_stranger_cannot_write_to_the_terminal(folder: RunFolder) -> None:
    """Escape sequences and line breaks from a key or a message do not reach the screen."""
    folder.write_json("verdict.json", verdict("unknown", reasons=["key \x1b[2J\nFAKE: pass"]))
    assert text_report(folder).splitlines()[0] == "UNKNOWN: key ·[2J·FAKE: pass"


def test_a_folder_that_was_cut_off_is_still_told(folder: RunFolder) -> None:
    """Without run.json, scenario, schedule and consumer the report says what is missing."""
    for name in ("run.json", "scenario.json", "schedule.json", "consumer.toml"):
        (folder.path / name).unlink()
    text = text_report(folder)
    assert "replay: kafka-trial run SCENARIO --consumer FILE" in text.splitlines()
    assert text.count("does not exist. Check the path") == 2


def test_a_fault_has_its_effect_in_plain_words(folder: RunFolder) -> None:
    """In the text and on the page: it took effect, or no effect was measured."""
    fault = {"kind": "pause", "target": "m0", "role": "member", "evidence": "it stood still"}
    faults = [fault | {"bit": True}, fault | {"bit": False, "target": "m1"}]
    folder.write_json("verdict.json", verdict("pass", violations=[], faults=faults))
    told = text_report(folder).splitlines()
    assert "  pause on m0  took effect         it stood still" in told
    assert "  pause on m1  no effect measured  it stood still" in told
    page = html_of(read_report(folder))
    assert (">took effect<" in page, ">no effect measured<" in page, ">bit<" in page) == (True, True, False)


def test_how_late_lines_were_read_is_told(folder: RunFolder) -> None:
    """In the text and on the page, where it was measured."""
    measured = {"lines read within ms, median": 31, "lines read within ms, worst": 64}
    told = "lines were read within 64 ms, half of them within 31 ms"
    assert told not in text_report(folder)
    folder.write_json("verdict.json", verdict("pass", violations=[], counts=measured))
    assert told in text_report(folder).splitlines()
    assert told in html_of(read_report(folder))


def test_what_members_printed_besides_is_counted_and_quoted(folder: RunFolder) -> None:
    """In the text and on the page, also of a pass: lines that are no events, and errors."""
    printed = [
        {"member": "m0", "sort": "text", "count": 2, "first": "INFO <b>no</b>\x1b[2J error"},
        {"member": "m1", "sort": "error", "count": 1, "first": "no broker"},
        {"member": "m1", "sort": "lost event", "count": 1, "first": '{"name":"rec'},
    ]
    folder.write_json("verdict.json", verdict("pass", violations=[], printed=printed))
    text, page = text_report(folder).splitlines(), html_of(read_report(folder))
    told = [
        "m1: 1 line of errors, first: no broker",
        'm1: 1 line of events that could not be read, first: {"name":"rec',
    ]
    assert [f"  {line}" in text for line in ["m0: 2 lines of text, first: INFO <b>no</b>·[2J error", *told]] == [
        True
    ] * 3
    assert (told[0] in page, "INFO &lt;b&gt;no" in page, "<b>no" in page) == (True, True, False)
