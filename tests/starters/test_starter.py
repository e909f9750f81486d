"""Starters: what `init` writes can be read, built and put on trial; what is there already stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.cli import main
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.errors import InputError
from kafka_trial.starters.starter import LANGUAGES, SINKS, write_starter

EVERY_ONE = [(language, sink) for language in LANGUAGES for sink in SINKS]


@pytest.mark.parametrize(("language", "sink"), EVERY_ONE)
def test_what_is_written_is_a_whole_consumer(language: str, sink: str, tmp_path: Path) -> None:
    """Its consumer.toml reads, its claim is made, its evidence is the sink's, or its lines where there is none."""
    files = write_starter(tmp_path / "orders", name="orders", language=language, sink=sink)
    program = next(file for file in files if file.stem in ("main", "Main"))
    pretend_it_was_built(tmp_path / "orders", language)
    spec = spec_from_toml(tmp_path / "orders" / "consumer.toml")
    assert (spec.name, spec.claim.delivery, spec.evidence.sink) == ("orders", "at-least-once", sink)
    assert spec.evidence.events == ("jsonl" if sink == "none" else "none")
    assert ("record_processed" in program.read_text(encoding="utf-8")) == (sink == "none")
    assert not [file for file in files if "{%" in file.read_text(encoding="utf-8")]


def pretend_it_was_built(folder: Path, language: str) -> None:
    """Puts a file in the place of the program that is started: whether it is there is looked at by the reader."""
    command = LANGUAGES[language].command
    if command and "/" in command[0]:
        (folder / command[0]).parent.mkdir(parents=True, exist_ok=True)
        (folder / command[0]).touch(mode=0o755)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """Given one of its files in the folder, then it is named, and nothing is written."""
    (tmp_path / "main.py").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"main\.py is there already: name another folder"):
        write_starter(tmp_path, name="orders", language="python", sink="http")
    assert [file.name for file in tmp_path.iterdir()] == ["main.py"]
    assert (tmp_path / "main.py").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["Orders", "0rders", "or ders", "-orders", "", "o" * 64])
def test_a_name_that_some_tool_refuses_is_refused(name: str, tmp_path: Path) -> None:
    """Of Go, npm, Maven and images: what all of them take."""
    with pytest.raises(InputError, match="--name"):
        write_starter(tmp_path, name=name, language="go", sink="none")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in its place, say."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        write_starter(tmp_path / "file" / "orders", name="orders", language="go", sink="none")


def test_init_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files it wrote, then the commands that build the consumer and put it on trial."""
    assert main(["init", str(tmp_path / "orders"), "--language", "go", "--sink", "http"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told == [
        *(f"wrote {tmp_path}/orders/{name}" for name in ("consumer.toml", "go.mod", "main.go")),
        "",
        "now:",
        f"  cd {tmp_path}/orders",
        "  go mod tidy",
        "  go build -o consumer .",
        "  kafka-trial run member-killed --consumer consumer.toml",
    ]
