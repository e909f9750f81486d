"""The timestamp guards of case 2: what was in two hands at once, what rows are kept, and what the page says of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.history.event import Event
from kafka_trial.history.store import HistoryTail
from kafka_trial.report.row_files import append_row
from kafka_trial.workload.send_log import SendLog
from kafka_trial.workload.workload import Op
from lab.cases.crash_page import page_of
from lab.cases.timestamp_guards import GUARDS, GuardRow, at_once, read_rows, request_of, standing

ROW = GuardRow("guard-racy", 5, 9, 3, "fail", ("stale-state",), "", "d0", {"kafka": "4.3.1"}, "abc1234")


def handled(history: Path, *spans: tuple[str, int, int, int]) -> list[Event]:
    """Three records, of partition 0 to 2, as the workload writes them down: the first two of entity a.

    Handlers: member, partition, from and until."""
    log = SendLog(history, ["orders"])
    for number, entity in enumerate("aab"):
        op = Op(f"r{number}", number, None, number, 20, 0.0, "opening_burst", entity=entity)
        send = log.invoke(op, size_bytes=20, checksum=0)
        log.acknowledged(send, number, 0)
    log.write()
    events = list(HistoryTail(history, log.path.name).new_events())
    log.close()
    for member, partition, began_ns, ended_ns in spans:
        for kind, time_ns in (("delivered", began_ns), ("processed", ended_ns)):
            events.append(Event(f"consumer-{member}-0", len(events), time_ns, kind, partition=partition, offset=0))
    return events


@pytest.mark.parametrize(
    ("spans", "pairs"),
    [
        ([("m0", 0, 1, 5), ("m1", 1, 4, 8)], 1),
        ([("m0", 0, 1, 4), ("m1", 1, 4, 8)], 0),  # one after the other
        ([("m0", 0, 1, 5), ("m0", 1, 4, 8)], 0),  # of one member
        ([("m0", 0, 1, 5), ("m1", 2, 4, 8)], 0),  # of two entities
    ],
)
def test_pairs_in_two_hands_are_counted(spans: list[tuple[str, int, int, int]], pairs: int, tmp_path: Path) -> None:
    """Records of one entity, two members, at one time."""
    assert at_once(handled(tmp_path, *spans)) == pairs


def test_rows_are_kept_and_the_last_that_proves_something_stands(tmp_path: Path) -> None:
    """What was appended is read back; a row with nothing to guard against hides none; what is no row is refused."""
    file = tmp_path / "rows.jsonl"
    nothing = replace(ROW, at_once=0)
    for row in (ROW, nothing):
        append_row(file, row)
    assert read_rows(file) == [ROW, nothing]
    assert standing(read_rows(file)) == {"guard-racy": ROW}
    with file.open("a") as out:
        out.write("{}\n")
    with pytest.raises(InputError, match=r"rows\.jsonl:3"):
        read_rows(file)


def test_each_guard_is_a_trial_that_can_be_asked_for(tmp_path: Path) -> None:
    """They differ in the guard alone: work, load and claim are the same."""
    specs = [request_of(guard, tmp_path).trial_spec for guard in GUARDS]
    own = {name: {spec.consumer.env[name] for spec in specs} for name in ("WORK_MS", "LONG_WORK_MS")}
    assert own == {"WORK_MS": {"2"}, "LONG_WORK_MS": {"1000"}}
    assert len({spec.consumer.claim for spec in specs}) == 1


def test_the_page_tells_both_guards() -> None:
    """By their rows; one that proves nothing says so, and without rows there is no word of it."""
    page = page_of([], [ROW, replace(ROW, guard="guard-atomic", stale=0, verdict="pass", at_once=0)])
    assert "(../../fixtures/faulty/checks-before-it-writes/consumer.toml) | fail | 3 | 9 | 5 | abc1234 |" in page
    assert "| pass, proves nothing | 0 | 0 | 5 | abc1234 |" in page
    assert "the newest is to stand" not in page_of([])
