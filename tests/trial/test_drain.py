"""The drain's bounds: those of the judge, by what is seen live; and when nothing more is waited for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from histories import (
    GROUP,
    TOPIC,
    Line,
    after,
    assigned,
    committed,
    delivered,
    effect,
    exited,
    fetched,
    handled,
    history,
    on,
    phase,
    processed,
    revoked,
    sent,
    with_settings,
)
from kafka_trial.claim import Claim
from kafka_trial.consumers.spec import ConsumerSpec, EvidenceGiven, KafkaSettings, ProgressPlace
from kafka_trial.history.event import Event, to_line
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.drain_backlog import slowest_backlog
from kafka_trial.model.liveness_bounds import drain_bound
from kafka_trial.trial.drain import DrainBounds
from kafka_trial.trial.group_watch import GroupWatch
from kafka_trial.trial.progress import Progress

Lines = list[Line | list[Line]]
ENDS = {(TOPIC, 0): 4}
MS = 1_000_000
BURST = {0: 7, 1: 1}
RATE = Line("run", "calibrated", {"rate": 4.0, "entries": [{"partition": p, "count": n} for p, n in BURST.items()]})
FIRST: Lines = [RATE, assigned("m0"), handled("m0", 0), committed(1)]
STANDS = {"protocol": "classic", "session_timeout_s": 3.0, "poll_interval_s": 60.0, "commit_interval_s": 1.0}
KAFKA = KafkaSettings(session_timeout_s=3.0, poll_interval_s=60.0)


def spec(sink: str = "none") -> ConsumerSpec:
    claim = Claim("at-least-once")
    place, evidence = ProgressPlace(interval_s=1.0), EvidenceGiven(sink=sink)
    return ConsumerSpec(Path("consumer.toml"), "c", ("true",), claim, kafka=KAFKA, progress=place, evidence=evidence)


def folder_of(tmp_path: Path, events: Sequence[Event]) -> RunFolder:
    """Returns a run folder with these events in it."""
    folder = create_run_folder(tmp_path / "run", "test", "test")
    for event in events:
        with (folder.history / f"{event.source}.jsonl").open("ab") as file:
            file.write(to_line(event))
    return folder


def bounds_of(tmp_path: Path, events: Sequence[Event], *, sink: str = "none") -> tuple[DrainBounds, RunFolder]:
    """Returns the bounds of a drain by what stands in a run folder, reckoned as the environment does."""
    folder = folder_of(tmp_path, events)
    progress = Progress(folder, (TOPIC,), GROUP, by_effects=sink != "none").update()
    watch = GroupWatch(folder.history, GROUP, spec(sink)).update()
    backlog = slowest_backlog(progress.backlog(ENDS).items(), 4.0, {(TOPIC, part): n for part, n in BURST.items()})
    (tmp_path / "written").mkdir()
    run = Recorder(tmp_path / "written", "run")
    return (
        DrainBounds(
            run,
            ENDS,
            progress,
            watch,
            lambda: watch.timing(backlog=backlog, movements=progress.moves.movements),
        ),
        folder,
    )


SINK = [line for offset in range(4) for line in sent(offset)]
SEEN: dict[str, tuple[Lines, str]] = {
    "one done": (FIRST, "none"),
    "nothing": ([RATE], "none"),
    "a pause": ([*FIRST, after(20), handled("m0", 1)], "none"),
    "two partitions": ([*FIRST, on(1, handled("m0", 0)[1]), after(20), handled("m0", 1)], "none"),
    "a slow handler": ([RATE, assigned("m0"), delivered("m0", 0), after(9), processed("m0", 0)], "none"),
    "committed and not handled": ([*FIRST, committed(3)], "none"),
    "handled and not committed": ([*FIRST, handled("m0", 1, 2)], "none"),
    "tried again": ([*FIRST, *[line for s in (1, 2, 4, 8) for line in (delivered("m0", 1), after(s))]], "none"),
    "tried again by another": (
        [*FIRST, delivered("m0", 1), after(9), revoked("m0"), assigned("m1"), delivered("m1", 1)],
        "none",
    ),
    "effects": ([RATE, *SINK, effect(0), after(12), effect(1), committed(1)], "http"),
    "refused": ([RATE, *SINK, effect(0), after(12), effect(1, outcome="fail"), committed(1)], "http"),
    "failed": ([*FIRST, delivered("m0", 1), after(12), processed("m0", 1, outcome="failed")], "none"),
}


@pytest.mark.parametrize("seen", SEEN)
def test_the_run_and_the_judge_reckon_the_same(seen: str, tmp_path: Path) -> None:
    """B and W, of the same history."""
    lines, sink = SEEN[seen]
    events = history([*lines, phase("drain")], records=4)
    bound = drain_bound(bounds_of(tmp_path, events, sink=sink)[0].timing())
    settings = with_settings(**STANDS, sink=None if sink == "none" else sink)
    reckoned = judge_events(events, settings, gated=False).bounds_s
    assert {"converge": bound.converge_s, "stuck": bound.stuck_s} == pytest.approx(reckoned, abs=0.05)


def test_the_bounds_are_written_down_and_again_where_they_change(tmp_path: Path) -> None:
    """With what they follow from; the judge reads the last ones."""
    bounds, folder = bounds_of(tmp_path, history(FIRST, records=4))
    bounds.reckon()
    bounds.reckon()
    with Recorder(folder.history, "consumer-m9-0") as member:
        for after_s in (0, 30):
            place = {"topic": TOPIC, "partition": 0, "offset": 1, "member": "m9", "incarnation": 0}
            member.record("delivered", time_ns=10**12 + after_s * 10**9, **place)
    bounds.progress.update()
    bounds.reckon()
    lines = [orjson.loads(line) for line in (tmp_path / "written" / "run.jsonl").read_bytes().splitlines()]
    told = [(one["stuck_s"], "W = " in one["message"]) for one in lines if one["kind"] == "drain_bound"]
    assert [stuck_s for stuck_s, _ in told][:1] == [10.0]
    assert (len(told), all(words for _, words in told)) == (2, True)


def ago(lines: Lines, seconds: float) -> list[Event]:
    """Returns a history whose last line was so long ago, by this machine's clock."""
    events = history(lines, records=4, snapshot=False)
    last_ns = max(event.time_ns for event in events)
    shift_ns = time.monotonic_ns() - round(seconds * 1e9) - last_ns
    return [moved(event, shift_ns) for event in events]


def moved(event: Event, by_ns: int) -> Event:
    fields: dict[str, Any] = {name: getattr(event, name) for name in event.__slots__}
    return Event(**fields | {"time_ns": event.time_ns + by_ns})


STILL: dict[str, tuple[Lines, float, bool]] = {
    "long enough": (FIRST, 13, True),
    "not yet": (FIRST, 9, False),
    "in hand": ([*FIRST, delivered("m0", 1)], 13, False),
    "in hand for too long": ([*FIRST, delivered("m0", 1)], 62, True),
    "of one that ended": ([*FIRST, delivered("m0", 1), exited("m0", code=1)], 13, True),
    "given back": ([*FIRST, delivered("m0", 1), revoked("m0")], 13, True),
    "tried again and again": ([*FIRST, *[delivered("m0", 1)] * 5], 13, True),
    "all done": ([*FIRST, handled("m0", 1, 2, 3), committed(4)], 13, False),
    "done and not committed": ([*FIRST, handled("m0", 1, 2, 3)], 13, False),
    "fetched further": ([*FIRST, after(20), fetched("m0", 3)], 5, False),
}


@pytest.mark.parametrize("seen", STILL)
def test_a_drain_ends_when_nothing_can_change_the_verdict(seen: str, tmp_path: Path) -> None:
    """W is 10 s, and two more are waited."""
    lines, since_s, over = STILL[seen]
    bounds, _ = bounds_of(tmp_path, ago(lines, since_s))
    bounds.began_ns = time.monotonic_ns() - 300 * 10**9
    assert bounds.makes_no_progress() is over


def test_a_drain_that_has_just_begun_does_not_end(tmp_path: Path) -> None:
    """Whatever stood still before."""
    bounds, _ = bounds_of(tmp_path, ago(FIRST, 100))
    assert not bounds.makes_no_progress()


def test_a_machine_that_stood_still_is_waited_for(tmp_path: Path) -> None:
    """The judge would blame nobody for that time."""
    delay = Line("run", "scheduling_delay", {"delay_ns": 800 * MS})
    bounds, _ = bounds_of(tmp_path, ago([*FIRST, after(20), delay], 5))
    bounds.began_ns = time.monotonic_ns() - 300 * 10**9
    assert not bounds.makes_no_progress()


def test_an_effect_that_was_refused_is_none(tmp_path: Path) -> None:
    """Three of four are done for the sink, and four for those who only count what came."""
    told: Lines = [*SINK, *(effect(offset) for offset in range(3)), effect(3, outcome="fail"), committed(4)]
    folder = folder_of(tmp_path, history(told, records=4))
    progress = Progress(folder, (TOPIC,), GROUP, by_effects=True).update()
    assert (progress.handled_total(), sum(progress.backlog(ENDS).values())) == (3, 1)


@pytest.mark.parametrize(
    ("lines", "seen", "left"),
    [
        ([handled("m0", 0, 1, 2), committed(1)], {}, 3),
        ([handled("m0", 0), committed(3)], {}, 3),
        ([handled("m0", 0), committed(3)], {"by_handled": False}, 1),
        ([handled("m0", 0, 1), committed(1)], {"by_commits": False}, 2),
    ],
    ids=["less is committed", "less is handled", "nobody sees what is handled", "progress is elsewhere"],
)
def test_what_is_left_counts_as_the_judge_counts_it(
    lines: Lines, seen: dict[str, bool], left: int, tmp_path: Path
) -> None:
    """Of four records."""
    folder = folder_of(tmp_path, history(lines, records=4))
    assert sum(Progress(folder, (TOPIC,), GROUP).update().backlog(ENDS, **seen).values()) == left


def test_what_was_left_is_what_was_left_then(tmp_path: Path) -> None:
    """One was handled and committed before, three since, though all lines are read by now."""
    lines: Lines = [handled("m0", 0), committed(1), phase("drain"), after(1), handled("m0", 1, 2, 3), committed(4)]
    events = history(lines, records=4)
    began_ns = next(event.time_ns for event in events if event.details.get("phase") == "drain")
    progress = Progress(folder_of(tmp_path, events), (TOPIC,), GROUP).update()
    assert (sum(progress.backlog(ENDS, at_ns=began_ns).values()), sum(progress.backlog(ENDS).values())) == (3, 0)
