"""The verdicts of all stored histories, kept beside them: the judge may be rebuilt, what it says may not change.

    PYTHONPATH=tests .venv/bin/python -m stored_verdicts

writes them anew, after a change of the rules that is meant; whoever reviews that change reads what became other.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.check import check_run
from kafka_trial.history.store import SUFFIX, RunFolder, open_run_folder, unpack
from kafka_trial.registry import CHECKOUT

HISTORIES = CHECKOUT / "fixtures" / "histories"
KEPT = HISTORIES / "verdicts.jsonl"
LINE = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
SENTENCES = ("because", "evidence", "sentence")  # how it is told may change


def stored_histories() -> list[Path]:
    """Returns every stored history: packed, or as a run folder."""
    folders = [file.parent for file in HISTORIES.rglob("run.json")]
    return sorted([*HISTORIES.rglob(f"*{SUFFIX}"), *folders])


def name_of(history: Path) -> str:
    """Returns what the kept verdicts call a history: its place under `fixtures/histories`."""
    return str(history.relative_to(HISTORIES)).removesuffix(SUFFIX)


def working_copy(history: Path, into: Path) -> RunFolder:
    """Returns a copy of a stored history that may be judged."""
    if history.is_dir():
        return open_run_folder(shutil.copytree(history, into))
    return unpack(history, into)


def stored_verdict(history: Path) -> dict[str, Any]:
    """Returns the verdict that is kept of a history, without its sentences."""
    return _without_sentences(_all_stored()[name_of(history)])


def fresh_verdict(folder: RunFolder) -> dict[str, Any]:
    """Returns the verdict that the judge has just written into a run folder, without its sentences."""
    return _without_sentences(folder.read_json("verdict.json"))


@cache
def _all_stored() -> dict[str, dict[str, Any]]:
    lines = KEPT.read_bytes().splitlines() if KEPT.exists() else []
    return {row["history"]: row["verdict"] for row in map(orjson.loads, lines)}


def _without_sentences(verdict: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: value for name, value in verdict.items() if name not in ("schema", "notes", "printed")}
    told["reasons"] = len(verdict["reasons"])
    for name in ("violations", "tolerated", "not_judged", "faults"):
        told[name] = [{key: of for key, of in one.items() if key not in SENTENCES} for one in verdict[name]]
    return told


def main() -> None:
    """Judges every stored history and keeps what comes out."""
    lines = []
    with tempfile.TemporaryDirectory() as place:
        for number, history in enumerate(stored_histories()):
            into = Path(place) / str(number)
            folder = working_copy(history, into)
            check_run(folder)
            row = {"history": name_of(history), "verdict": folder.read_json("verdict.json")}
            lines.append(orjson.dumps(row, option=LINE))
    KEPT.write_bytes(b"".join(lines))


if __name__ == "__main__":
    main()
