"""Packed run folders: the spec and the history come back, what can be made again does not; damage is named."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.history import store
from kafka_trial.history.store import (
    ASKED,
    RUN_METADATA,
    RunFolder,
    create_run_folder,
    first_raw_line,
    lines_newest_first,
    pack,
    unpack,
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Returns a run folder with a spec, two sources, and what a judgement left there."""
    run = create_run_folder(tmp_path / "run", "control", "one")
    for name in ASKED:
        (run.path / name).write_text(f"{name} of the trial\n")
    run.write_json("run.json", {"seed": 7, "host": "builder", "consumer_file": "/home/somebody/orders/consumer.toml"})
    (run.history / "run.jsonl").write_text('{"kind":"end"}\n')
    (run.history / "sink.jsonl").write_text("")
    (run.path / "verdict.json").write_text("{}")
    (run.logs / "b0-server.log").write_text("a broker's words\n")
    return run


def test_question_and_history_come_back(folder: RunFolder, tmp_path: Path) -> None:
    """Byte for byte, an empty source too; neither verdict nor logs, nor whose machine it was."""
    pack(folder, tmp_path / "packed" / "one.tar.xz")
    back = unpack(tmp_path / "packed" / "one.tar.xz", tmp_path / "back")
    there = {str(place.relative_to(back.path)) for place in back.path.rglob("*") if place.is_file()}
    assert there == {*ASKED, RUN_METADATA, "history/run.jsonl", "history/sink.jsonl"}
    same = there - {RUN_METADATA}
    assert all((back.path / name).read_bytes() == (folder.path / name).read_bytes() for name in same)
    assert back.read_json(RUN_METADATA) == {"seed": 7, "consumer_file": "orders/consumer.toml"}


def test_the_same_history_packs_to_the_same_bytes(folder: RunFolder, tmp_path: Path) -> None:
    """Whenever, and whoever owns the files."""
    pack(folder, tmp_path / "first")
    for place in folder.path.rglob("*"):
        place.chmod(0o700)
    (folder.history / "run.jsonl").touch()
    pack(folder, tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize("cut", [0, 10, 100, -20])
def test_a_damaged_file_is_named(folder: RunFolder, tmp_path: Path, cut: int) -> None:
    """Empty, cut short at its head or at its tail."""
    file = tmp_path / "one.tar.xz"
    pack(folder, file)
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"one\.tar\.xz"):
        unpack(file, tmp_path / "back")


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", "history/../../elsewhere", "link"])
def test_what_would_lie_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    """A path that leads out of the folder, or a link."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = (tarfile.SYMTYPE, "/etc/passwd") if name == "link" else (tarfile.REGTYPE, "")
    with tarfile.open(tmp_path / "one.tar.xz", "w:xz") as archive:
        archive.addfile(member)
    with pytest.raises(InputError, match="no file below it"):
        unpack(tmp_path / "one.tar.xz", tmp_path / "back")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"", []),
        (b"torn", []),
        (b"a\n", [b"a"]),
        (b"a\nto", [b"a"]),
        (b"first\n\nthird\n", [b"third", b"", b"first"]),
        (b"first\nsecond\ntorn", [b"second", b"first"]),
    ],
)
def test_lines_are_read_from_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, lines: list[bytes], block_bytes: int
) -> None:
    """However they lie in the blocks that are read; what follows the last end is left out."""
    monkeypatch.setattr(store, "BLOCK_BYTES", block_bytes)
    (tmp_path / "a.jsonl").write_bytes(text)
    assert list(lines_newest_first(tmp_path / "a.jsonl")) == lines
    assert list(lines_newest_first(tmp_path / "none.jsonl")) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [(b'{"a":1}\n{"b', {"a": 1}), (b'{"a":1}', None), (b"", None), (b"garbage\n", None), (b"[1]\n", None)],
)
def test_a_first_line_is_whole_or_none(tmp_path: Path, text: bytes, line: dict[str, int] | None) -> None:
    """Its writer may have been killed in mid-write."""
    (tmp_path / "a.jsonl").write_bytes(text)
    assert first_raw_line(tmp_path / "a.jsonl") == line
    assert first_raw_line(tmp_path / "none.jsonl") is None
