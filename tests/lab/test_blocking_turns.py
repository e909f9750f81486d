"""Case 1: what is predicted of a cell, what is measured of a history, and what the page says of the rows."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial import registry
from kafka_trial.history.store import RunFolder
from lab.cases import blocking_turns_page, plots, timelines
from lab.cases.blocking_turns import (
    CASE,
    DRAWN,
    ROWS_NAME,
    BlockingTurnsCell,
    BlockingTurnsRow,
    cells,
    consumer_name,
    grid,
    prediction,
    read_rows,
)
from lab.cases.blocking_turns_figures import (
    Figures,
    Knobs,
    figures_of,
    predicted_drain_s,
    predicted_rate_per_s,
)
from lab.cases.blocking_turns_page import page
from lab.repository import reports_folder

SECOND = 1_000_000_000
SLOW = Knobs(records_per_fetch=1, timeout_s=1.0, empty_partitions=1, service_s=0.25)


def test_the_rate_is_what_a_fetch_holds_by_what_a_round_takes() -> None:
    """One record in 1 × 1 s + 0.25 s; five in 2 × 0.5 s + 5 × 0.25 s."""
    assert predicted_rate_per_s(SLOW) == pytest.approx(0.8)
    assert predicted_rate_per_s(Knobs(5, 0.5, 2, 0.25)) == pytest.approx(5 / 2.25)


def test_what_arrives_meanwhile_is_taken_off_the_rate() -> None:
    """12 records at 0.8 - 0.6 a second."""
    assert predicted_drain_s(replace(SLOW, arrivals_per_s=0.6), 12) == pytest.approx(60.0)


def test_every_cell_can_be_asked_for_and_is_as_it_is_called() -> None:
    """What the name of a consumer says is what the file sets; three settings have no prediction by the formula."""
    for cell in cells():
        assert cell.trial_spec().scenario.topic.partitions == cell.partitions
    for cell in grid():
        knobs = cell.knobs()
        assert cell.consumer_name == consumer_name(knobs.records_per_fetch, round(knobs.timeout_s * 1000))
        assert knobs.empty_partitions == cell.partitions // 2 - 1
    without = [cell.name for cell in cells() if prediction(cell) == (None, None)]
    assert [name.split("/", 1)[1] for name in without] == [
        *("one-poll/4-for-2", "one-poll/4-for-2", "one-poll/10-for-2"),
        "1-record-1000ms/3-for-6",
    ]


def test_arrivals_are_three_quarters_of_the_slow_rate() -> None:
    """The scenario's own figure is that of the formula, and the timeouts' ratio is within what the case told of."""
    slow, fast = (BlockingTurnsCell("arrivals", consumer_name(1, timeout)) for timeout in (1000, 100))
    assert slow.knobs().arrivals_per_s == pytest.approx(0.75 * prediction(slow)[0], rel=0.001)  # type: ignore[operator]
    rates = [predicted_rate_per_s(cell.knobs()) for cell in (slow, fast)]
    assert 5 < rates[1] / rates[0] < 10
    times = [prediction(cell)[1] or 0.0 for cell in (slow, fast)]
    assert times[0] / times[1] > 20


def line(source: str, at_s: float, kind: str, **fields: Any) -> dict[str, Any]:
    return {"schema": 1, "source": source, "seq": 0, "time_ns": round(at_s * SECOND), "kind": kind, **fields}


def sent(at_s: float, offset: int, *, key: str = "k0", took_s: float = 0.0) -> list[dict[str, Any]]:
    """A record of partition 0, acknowledged at an instant, and asked for so long before."""
    of = {"topic": "t", "id": f"r{offset}", "key": key, "size_bytes": 8, "checksum": 1}
    return [
        line("workload", at_s - took_s, "send", outcome="invoke", **of),
        line("workload", at_s, "send", outcome="ok", op=0, partition=0, offset=offset, **of),
    ]


def handled(at_s: float, offset: int, *, took_s: float = 0.1, partition: int = 0) -> list[dict[str, Any]]:
    place = {"member": "m0", "incarnation": 0, "topic": "t", "partition": partition, "offset": offset}
    return [
        line("consumer-m0-0", at_s, "delivered", **place),
        line("consumer-m0-0", at_s + took_s, "processed", outcome="done", **place),
    ]


def committed(at_s: float, offset: int) -> dict[str, Any]:
    return line("offsets", at_s, "committed", group="g", topic="t", partition=0, committed_offset=offset)


BURST = [line("workload", at_s, "load", name="burst", state=state) for at_s, state in ((1, "begins"), (2, "ends"))]
ASSIGNED = line(
    *("consumer-m0-0", 0, "assigned"),
    member="m0",
    incarnation=0,
    entries=[{"topic": "t", "partition": number} for number in (0, 1, 2)],
)


def run_folder(
    place: Path,
    workload: list[list[dict[str, Any]]],
    consumer: list[list[dict[str, Any]]],
    commits: list[dict[str, Any]],
) -> RunFolder:
    folder = RunFolder(place)
    folder.history.mkdir()
    files = {"workload": list(chain(*workload)), "consumer-m0-0": [ASSIGNED, *chain(*consumer)], "offsets": commits}
    for name, lines in files.items():
        (folder.history / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in lines))
    return folder


def test_the_rate_is_counted_over_whole_fetches_with_a_backlog(tmp_path: Path) -> None:
    """Two records in every two seconds from the second on. The first fetch found one alone, and the last but one was no
    whole fetch any more: neither says how fast a backlog is worked off."""
    written = [sent(1, 0), *(sent(2, offset) for offset in range(1, 10))]
    fetched = [handled(1.5, 0)]
    fetched += [handled(3 + 2 * turn + 0.1 * place, 1 + 2 * turn + place) for turn in range(4) for place in range(2)]
    fetched.append(handled(11, 9))
    commits = [committed(3.2 + 2 * turn, 3 + 2 * turn) for turn in range(4)]
    folder = run_folder(tmp_path, written, fetched, commits)
    found = figures_of(folder, 2)
    assert (found.rate_per_s, found.fetches) == (pytest.approx(1.0), 3)
    assert found.committed_per_s == pytest.approx(1.0)
    assert (found.empty_partitions, found.handled) == (2, 10)


def assigned(second: float, *partitions: int) -> dict[str, Any]:
    entries = [{"topic": "t", "partition": number} for number in partitions]
    return line("consumer-m0-0", second, "assigned", member="m0", incarnation=0, entries=entries)


@pytest.mark.parametrize(
    ("given", "empty"),
    [(assigned(30, 0, 1, 2, 3), 2), (assigned(5, 0, 1, 2, 3), None), (assigned(5, 0, 1, 2), 2)],
    ids=["when it was over", "meanwhile", "the same again"],
)
def test_what_else_its_member_had_is_counted_while_the_rate_was(
    given: dict[str, Any], empty: int | None, tmp_path: Path
) -> None:
    """Nine records, one a second; a member that stops leaves its partitions to the other."""
    lines = [handled(3 + number, number) for number in range(9)]
    written = [sent(1, number) for number in range(9)]
    assert figures_of(run_folder(tmp_path, written, [*lines, [given]], []), 1).empty_partitions == empty


@pytest.mark.parametrize("size", [1, 2])
def test_records_that_come_one_by_one_have_no_rate(size: int, tmp_path: Path) -> None:
    """Each was handed out as it came: how fast is said by who sent them."""
    written = [sent(number, number) for number in range(8)]
    lines = [handled(number + 0.1, number) for number in range(8)]
    found = figures_of(run_folder(tmp_path, written, lines, []), size)
    assert (found.rate_per_s, found.fetches, found.committed_per_s) == (None, 0, None)


def test_a_backlog_is_drained_when_nothing_written_is_undone(tmp_path: Path) -> None:
    """What arrives meanwhile belongs to it, and what is on its way; a lag of 0 amid the burst does not count."""
    written = [BURST, sent(1, 0), sent(1.5, 1), sent(2.9, 2, took_s=1.0), sent(4, 3), sent(30, 4)]
    ended = [handled(1.2, 0), handled(2.2, 1), handled(3.5, 2, took_s=1.0), handled(5, 3, took_s=1.0), handled(31, 4)]
    assert figures_of(run_folder(tmp_path, written, ended, []), 1).drain_s == pytest.approx(5.0)


def test_a_backlog_that_never_ends_has_no_time(tmp_path: Path) -> None:
    """Half of it was handled."""
    folder = run_folder(tmp_path, [BURST, sent(2, 0), sent(2, 1)], [handled(3, 0)], [])
    assert figures_of(folder, 1).drain_s is None


def test_each_hot_key_waits_for_what_lies_before_it(tmp_path: Path) -> None:
    """Two runs in one partition: records of the second wait for the first; a key with few records is not hot."""
    written = [sent(0, number, key="k0" if number < 100 else "k1") for number in range(200)] + [sent(0, 200, key="k2")]
    lines = [handled(number, number) for number in range(201)]
    waits = figures_of(run_folder(tmp_path, written, lines, []), 1).waited_s
    assert waits == {"k0": pytest.approx(49.6), "k1": pytest.approx(149.6)}


def row(cell: str, **fields: Any) -> BlockingTurnsRow:
    asked = {"seed": 1, "knobs": SLOW, "in_turns": True, "predicted_per_s": 0.8, "predicted_drain_s": None}
    told = {"verdict": "fail", "digest": "d", "commit": "abc1234", "kafka": "4.3.1"}
    return BlockingTurnsRow(cell=cell, **(asked | told | fields))


def measured(rate_per_s: float | None, *, empty: int = 1, **fields: Any) -> Figures:
    return Figures(rate_per_s=rate_per_s, fetches=9, empty_partitions=empty, **fields)


ROWS = [
    row("hot-run/1-record-1000ms/4-for-2", figures=measured(0.78), blocked=1, told="partition 1 lagged"),
    row(
        "hot-run/1-record-100ms/4-for-2",
        knobs=replace(SLOW, timeout_s=0.1),
        predicted_per_s=2.0,
        figures=measured(1.4),
    ),
    row("hot-run/one-poll/10-for-2", in_turns=False, predicted_per_s=None, verdict="pass", figures=measured(9.0)),
    row("arrivals/1-record-1000ms/4-for-2", figures=measured(0.8, drain_s=60.0), predicted_drain_s=61.8, blocked=1),
    row(
        "arrivals/1-record-100ms/4-for-2",
        knobs=replace(SLOW, timeout_s=0.1),
        figures=measured(7.0, drain_s=2.4),
        predicted_drain_s=2.2,
        verdict="pass",
    ),
]


def test_the_page_says_how_far_the_prediction_is_off_and_where() -> None:
    """The worst ratio, and each cell beyond a quarter."""
    said = page(ROWS)
    assert "| 1 | 1 | 1 | 0.80 | 0.78 | 0.97 | - | 9 | fail | 1 |" in said
    assert (
        "2 settings compared; the worst ratio of measured to predicted is 0.70 (`hot-run/1-record-100ms/4-for-2`)"
        in said
    )
    assert "Beyond 25%: `hot-run/1-record-100ms/4-for-2`." in said
    assert "one record a fetch: 1.8 times with 1 empty" in said
    assert "took longer than predicted by 0.12 s with 1 records of 0.8 MB a fetch (medians)" in said
    assert "None is beyond 25%." in page(ROWS[:1])


@pytest.mark.parametrize(
    ("rate_per_s", "said"),
    [
        (1.4, "timeout lowers it in 1 of 1 steps; empty partitions lowers it in 0 of 0 steps."),
        (0.7, "Not in: `hot-run/1-record-100ms/4-for-2` → `hot-run/1-record-1000ms/4-for-2`."),
    ],
)
def test_the_page_says_whether_each_knob_moves_the_rate_the_right_way(rate_per_s: float, said: str) -> None:
    """A tenth of the timeout must be faster; where it was not, the page names the pair."""
    assert said in page([ROWS[0], replace(ROWS[1], figures=measured(rate_per_s))])


def test_a_trial_with_another_assignment_is_not_compared() -> None:
    """The formula was given one empty partition, and its member had two."""
    said = page([replace(ROWS[0], figures=measured(0.78, empty=2))])
    assert "No cell could be compared with its prediction." in said


def test_the_page_tells_the_time_to_drain_and_where_blocking_was_found() -> None:
    """The cure is no trial in which it is to be found; one in which it was not is named."""
    said = page(ROWS)
    assert "With a tenth of the timeout it is drained 25 times sooner" in said
    assert (
        "was found in 2 of the 4 trials that ask in turn and have an empty partition, and in 0 of the 1 others" in said
    )
    assert "- `hot-run/1-record-100ms/4-for-2` (fail): its turns wait for 0.1 s, and only waits of 0.6 s count." in said
    assert "- `arrivals/1-record-100ms/4-for-2` (pass): drained in 2.4 s, and 15 s are claimed." in said
    assert "| one poll for all partitions, still one record a fetch | 9.00 | - | pass | 0 |" in said
    assert "5 trials on Kafka 4.3.1, measured at abc1234" in said
    assert "Not measured yet, `make cases` goes on with it: `arrivals/one-poll/4-for-2`, `real-time/" in said


def test_only_the_newest_row_of_a_cell_is_told(tmp_path: Path) -> None:
    """Rows of another harness, and those tried again since, are not on the page; a torn line is left out."""
    old = replace(ROWS[0], digest="old", cell="two-hot-keys/x")
    assert "1 trials on" in page([old, replace(ROWS[0], verdict="unknown"), ROWS[0]])
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"torn')
    assert read_rows(file) == []


def test_a_page_without_rows_claims_nothing() -> None:
    """It tells the story, and that there are no figures."""
    assert page([]).endswith(
        "$ kafka-trial run scenarios/hot-run.toml --consumer one-poll.toml\n```\n\nNothing was measured yet.\n"
    )


def test_the_page_is_written_with_a_plot_of_each_knob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the rows in the file; a rate that could not be compared is drawn by its prediction alone."""
    for module in (blocking_turns_page, plots, timelines):
        monkeypatch.setattr(module, "reports_folder", lambda: tmp_path / "reports")
    (tmp_path / "reports").mkdir()
    (tmp_path / "docs").mkdir()
    rows = [ROWS[0], replace(ROWS[1], figures=measured(None))]
    lines = [orjson.dumps(asdict(one), option=orjson.OPT_APPEND_NEWLINE) for one in rows]
    (tmp_path / "reports" / ROWS_NAME).write_bytes(b"".join(lines))
    blocking_turns_page.write_page()
    assert (tmp_path / "docs/cases/1.md").read_text() == page(rows)
    drawn = sorted(file.name for file in (tmp_path / "docs/cases/plots").iterdir())
    assert drawn == ["1-empty-partitions.svg", "1-records-per-fetch.svg", "1-timeout.svg"]


def test_the_page_is_that_of_the_stored_rows() -> None:
    """Nobody has written into it by hand, and no row came after it."""
    curves = [row for cell in DRAWN if (row := timelines.newest_timeline(CASE, cell)) is not None]
    written = registry.CHECKOUT / "docs" / "cases" / blocking_turns_page.PAGE_NAME
    assert written.read_text() == page(read_rows(reports_folder() / ROWS_NAME), curves)
