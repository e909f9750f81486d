"""Case 4, two cures: what a written history says of a backlog, and what the page makes of it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.store import RunFolder
from lab.cases.large_record_cures import CELLS, CureCell, CureRow, Drained, drained_of
from lab.cases.large_records_page import page

SECOND_NS = 1_000_000_000
TWO = CureCell("two", "mixed", "default-prefetch", records=2)
SENT = [("r0", 1000, 0), ("r1", 1_000_000, 1), ("r2", 1000, 2)]  # the third came later: it is none of the backlog


def history(folder: Path, *, done: dict[int, float], peaks: tuple[int, ...] = (7, 9, 8)) -> RunFolder:
    """A run of three records, handed out from second 1 on, each done after so many seconds."""
    lines: dict[str, list[dict[str, object]]] = {
        "workload": [
            {"kind": "send", "id": name, "time_ns": 0} | body
            for name, size_bytes, offset in SENT
            for body in (
                {"outcome": "invoke", "size_bytes": size_bytes},
                {"outcome": "ok", "partition": 0, "offset": offset},
            )
        ],
        "consumer-m0-0": [
            {"kind": kind, "partition": 0, "offset": offset, "time_ns": int(at_s * SECOND_NS)}
            for kind, times in (("delivered", {0: 1.0}), ("processed", done))
            for offset, at_s in times.items()
        ],
        "run": [{"kind": "resources", "time_ns": 0, "rss_bytes": peak} for peak in peaks],
    }
    (folder / "history").mkdir(parents=True)
    for source, bodies in lines.items():
        text = b"".join(
            orjson.dumps({"schema": 1, "source": source, "seq": number} | body, option=orjson.OPT_APPEND_NEWLINE)
            for number, body in enumerate(bodies, start=1)
        )
        (folder / "history" / f"{source}.jsonl").write_bytes(text)
    return RunFolder(folder)


def test_a_backlog_is_drained_when_the_last_of_it_is_done(tmp_path: Path) -> None:
    """From the first that was handed out; what is sent later does not count, nor what is done a second time."""
    told = drained_of(history(tmp_path, done={0: 3.5, 1: 6.0, 2: 60.0}), TWO)
    assert told == Drained(peak_bytes=9, drain_s=5.0, small_s=2.5, records=2, small=1)


def test_what_is_undone_has_no_time(tmp_path: Path) -> None:
    """The large one was never done: there is no time for all of them, but there is for the small one."""
    told = drained_of(history(tmp_path, done={0: 3.5}), TWO)
    assert (told.drain_s, told.small_s) == (None, 2.5)


def test_who_was_not_sampled_has_no_peak(tmp_path: Path) -> None:
    """A peak of nothing would be a cure."""
    with pytest.raises(UnjudgeableError, match="no memory was sampled"):
        drained_of(history(tmp_path, done={0: 1.0}, peaks=()), TWO)


def test_both_sides_have_the_same_orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many references as payloads; in two topics as many large and small records as in one."""
    monkeypatch.chdir(tmp_path)  # samples are written beside the runs
    named = {cell.name: cell for cell in CELLS}
    asked = {name: cell.request().trial_spec.scenario.load.opening_burst for name, cell in named.items()}
    assert asked["claim-check"] == asked["payload-in-kafka"]
    assert asked["small-topic"] + asked["large-topic"] == asked["one-topic"]
    assert asked["small-topic"] == 4 * asked["large-topic"]


def test_the_page_tells_verdict_memory_and_times() -> None:
    """A trial that was not begun has no figures."""
    rows = [
        CureRow("one-topic", 1, "fail", ("memory-over-limit",), (), Drained(130_000_000, 9.04, None, 600, 480)),
        CureRow("claim-check", 1, "not begun", (), ("no brokers",)),
    ]
    made = page([], [], rows, [])
    assert "| one-topic | fail | memory-over-limit | 600 | 130 | 9.0 | - |" in made
    assert "| claim-check | not begun | no brokers | - | - | - | - |" in made
