"""Progress: what the drain waits for, by the lines of a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.trial.progress import Progress

ENDS = {0: 4}
HERE = {"topic": "t", "partition": 0}


def written(tmp_path: Path, source: str, *lines: tuple[str, dict[str, Any]]) -> RunFolder:
    """Returns a run folder: the workload wrote r0 at 0, and took back what lies at 1 and 2; `source` says more."""
    folder = create_run_folder(tmp_path / "run", "test", "test")
    sent = ("send", HERE | {"id": "r0", "outcome": "ok", "offset": 0}), ("send", {"id": "r1", "outcome": "fail"})
    for name, told in (("workload", sent), (source, lines)):
        recorder = Recorder(folder.history, name)
        for kind, fields in told:
            recorder.record(kind, **fields)
        recorder.close()
    return folder


def test_where_records_are_taken_back_there_is_what_was_acknowledged(tmp_path: Path) -> None:
    """Behind the last of them lie aborted records and markers, which nobody has to commit past."""
    folder = written(tmp_path, "offsets", ("committed", HERE | {"committed_offset": 1}))
    progress = Progress(folder, "t", "g", by_sends=True).update()
    assert progress.ends(ENDS) == {0: 1}
    assert (progress.records(ENDS), progress.lag(progress.ends(ENDS))) == (1, 0)


def test_who_handles_what_was_taken_back_has_not_handled_the_rest(tmp_path: Path) -> None:
    """By its lines, and by its effects."""
    done = [("processed", HERE | {"offset": offset}) for offset in (1, 2)]
    folder = written(tmp_path, "consumer-m0-0", *done)
    assert Progress(folder, "t", "g", by_sends=True).update().handled_total() == 0
    assert Progress(folder, "t", "g").update().handled_total() == 2
    folder = written(tmp_path / "2", "sink", ("effect", {"id": "r1"}), ("effect", {"id": "r0"}))
    assert Progress(folder, "t", "g", by_sends=True, by_effects=True).update().handled_total() == 1


def test_elsewhere_the_log_says_how_much_there_is(tmp_path: Path) -> None:
    """Nobody reads the workload's lines there."""
    progress = Progress(written(tmp_path, "sink"), "t", "g").update()
    assert (progress.ends(ENDS), progress.records(ENDS), progress.acknowledged_ids) == (ENDS, 4, set())
