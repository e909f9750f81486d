"""What a consumer is: which files count, how a change is named, and how many digests are stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from kafka_trial.history.store import create_run_folder
from kafka_trial.registry import find_consumer
from kafka_trial.trial.consumer_files import FILES_MAX, ChangeWatch, ConsumerFiles, consumer_files, folder_digest
from kafka_trial.workload.payload import OURS

TOML = 'schema = 1\nname = "orders"\ncommand = ["{python}", "main.py"]\n'
EVENT = '{"schema":1,"source":"run","seq":1,"time_ns":1,"kind":"phase","phase":"prepare"}\n'


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """The consumer.toml of a team, with a program, a jar of more than a megabyte, and a configuration."""
    folder = tmp_path / "orders"
    (folder / "conf").mkdir(parents=True)
    (folder / "consumer.toml").write_text(TOML)
    (folder / "main.py").write_text("poll()")
    (folder / "app.jar").write_bytes(b"\0" * 3_000_000)
    (folder / "conf" / "log.xml").write_text("<log/>")
    return folder / "consumer.toml"


def write(place: Path, text: str = "x") -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def rebuild(folder: Path) -> None:
    (folder / "app.jar").write_bytes(b"\0" * 2_999_999 + b"\1")


CHANGES: dict[str, Callable[[Path], object]] = {
    "main.py was changed": lambda folder: write(folder / "main.py", "commit()"),
    "app.jar was changed": rebuild,
    "app.jar went": lambda folder: (folder / "app.jar").unlink(),
    "lib/client.so came": lambda folder: write(folder / "lib" / "client.so"),
    "conf/log.xml was changed": lambda folder: write(folder / "conf" / "log.xml", "<other/>"),
    "consumer.toml was changed": lambda folder: write(folder / "consumer.toml", TOML + "members = 2\n"),
    "state/3.sst came": lambda folder: write(folder / "state" / "3.sst"),
    ".venv/lib/client.py came": lambda folder: write(folder / ".venv" / "lib" / "client.py"),
    # Names that Kafka Trial uses too, with what it never writes.
    "certificate/key.pem came": lambda folder: write(folder / "certificate" / "key.pem"),
    "certificate.json came": lambda folder: write(folder / "certificate.json", "{}"),
    "runs/plan.csv came": lambda folder: write(folder / "runs" / "plan.csv"),
    "trial/run.json came": lambda folder: write(folder / "trial" / "run.json", '{"schema": 1}'),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_file_of_a_consumer_counts_and_is_named(change: str, toml: Path) -> None:
    """Binaries of any size too; a rebuilt one is another consumer."""
    before = consumer_files(toml)
    CHANGES[change](toml.parent)
    after = consumer_files(toml)
    assert (after.changes_since(before.stored()), after.digest != before.digest) == ([change], True)


def run_folder(place: Path) -> None:
    folder = create_run_folder(place, "control", "orders")
    folder.write_json("run.json", {"schema": 1, "kafka_trial": "0.1.0"})
    folder.write_json("scenario.json", {})
    write(folder.consumer / "main.py")


def begun_run(place: Path, *, event: str = EVENT) -> None:
    folder = create_run_folder(place, "control", "orders")
    write(folder.history / "run.jsonl", event)
    write(folder.consumer / "main.py")


def certificate_in(place: Path) -> None:
    run_folder(place / "runs" / "4.3.1" / "control" / "1")
    write(place / "certificate.json", orjson.dumps({"harness_digest": "a", "not_tried": []}).decode())
    write(place / "index.html", "<!doctype html>\n<title>certificate of orders</title>")
    write(place / "junit.xml", '<testsuites name="kafka-trial"/>')


def cuts_in(place: Path) -> None:
    run_folder(place / "runs" / "orders-4.3.1-seed-1" / "cut-Fetch-after-kill")
    write(place / "cuts.jsonl", '{"consumer_digest":"a","source_digest":"b"}\n')
    write(place / "cuts.html", "<title>cuts of orders</title>")
    write(place / "cuts.txt", "orders on Kafka 4.3.1: 1 cuts: 1 pass")
    write(place / "cuts-consumers.json", '{"a": {"files": {}}}')


LEFT_OUT: dict[str, Callable[[Path], object]] = {
    "nothing": lambda folder: None,
    "a run": lambda folder: run_folder(folder / "trial-runs" / "20261127T050000Z-control-orders-abcd"),
    "a run that was killed as it began": lambda folder: begun_run(folder / "of-ours"),
    "a run that begins": lambda folder: begun_run(folder / "of-ours", event=""),
    "a certificate": lambda folder: certificate_in(folder / "proof"),
    "a certificate in the very folder": certificate_in,
    "cuts": lambda folder: cuts_in(folder / "matrix"),
    "the --out of the command": lambda folder: write(folder / "out" / "anything"),
    "version control": lambda folder: write(folder / ".git" / "index"),
    "compiled Python": lambda folder: write(folder / "__pycache__" / "main.cpython-311.pyc"),
    "a log": lambda folder: write(folder / "logs" / "orders.log"),
    "a log of yesterday": lambda folder: write(folder / "logs" / "orders.log.2026-11-26"),
    "what it says it writes": lambda folder: write(folder / "positions" / "3.db"),
    "its checkpoint": lambda folder: write(folder / "at" / "m1.json"),
}


@pytest.mark.parametrize("made", LEFT_OUT)
def test_what_trials_and_tools_write_makes_no_other_consumer(made: str, toml: Path) -> None:
    """Whatever its name; nor what the consumer itself writes, by its own word."""
    toml.write_text(f'{TOML}writes = ["positions/"]\n[progress]\nkind = "checkpoint"\npath = "at/{{member}}.json"\n')
    out = toml.parent / "out"
    before = consumer_files(toml, out=out)
    LEFT_OUT[made](toml.parent)
    after = consumer_files(toml, out=out)
    assert (after.changes_since(before.stored()), after.digest) == ([], before.digest)


def test_a_consumer_that_says_now_what_it_writes_is_the_same(toml: Path) -> None:
    """What is refused for its state goes on once `writes` names it; the program still counts."""
    write(toml.parent / "state" / "1.db")
    before = consumer_files(toml).stored()
    write(toml.parent / "state" / "1.db", "further on")
    assert consumer_files(toml).changes_since(before) == ["state/1.db was changed"]
    toml.write_text(f'writes = ["state"] # RocksDB\n{TOML}')
    assert consumer_files(toml).changes_since(before) == []
    write(toml.parent / "main.py", "commit()")
    assert consumer_files(toml).changes_since(before) == ["main.py was changed"]


@pytest.mark.parametrize(
    ("keys", "change", "told"),
    [
        ('command = ["java", "-cp", "lib/*:../build/app.jar", "Main"]', "build/app.jar", "../build/app.jar"),
        ('command = ["{python}", "../src/main.py"]', "src/main.py", "../src/main.py"),
        (
            'command = ["{python}", "-m", "orders"]\nenv = { PYTHONPATH = "../src" }',
            "src/orders.py",
            "../src/orders.py",
        ),
        ('command = ["go", "run", ".."]', "src/orders.py", None),
        ('writes = ["../src/*.db"]\ncommand = ["x", "--positions=../src/a.db"]', "src/a.db", None),
    ],
    ids=["class path", "program", "PYTHONPATH", "folder around it", "what it writes"],
)
def test_what_the_command_names_counts_wherever_it_lies(keys: str, change: str, told: str | None, toml: Path) -> None:
    """A jar of the build beside the folder; but not everything around it."""
    toml.write_text(f'schema = 1\nname = "orders"\n{keys}\n')
    write(toml.parent.parent / change)
    before = consumer_files(toml)
    write(toml.parent.parent / change, "otherwise")
    after = consumer_files(toml)
    assert after.changes_since(before.stored()) == ([f"{told} was changed"] if told else [])
    assert (after.digest != before.digest) is (told is not None)


def test_a_rebuilt_image_is_another_consumer(toml: Path) -> None:
    """Under the same name."""
    before, after = (consumer_files(toml, images={"team/orders:1": f"sha256:{of * 64}"}) for of in "ab")
    assert after.changes_since(before.stored()) == ["image team/orders:1 was changed"]
    assert after.digest != before.digest


def test_a_link_counts_by_where_it_leads(toml: Path, tmp_path: Path) -> None:
    """And with what lies there, where that is outside; a link in a circle ends."""
    write(tmp_path / "common" / "decode.py")
    (toml.parent / "common").symlink_to(tmp_path / "common")
    (toml.parent / "conf" / "again").symlink_to(toml.parent)
    before = consumer_files(toml).stored()
    write(tmp_path / "common" / "decode.py", "otherwise")
    (toml.parent / "conf" / "again").unlink()
    (toml.parent / "conf" / "again").symlink_to(toml.parent / "conf")
    assert consumer_files(toml).changes_since(before) == ["common/decode.py was changed", "conf/again was changed"]


def test_of_very_many_files_the_largest_folders_are_one_digest() -> None:
    """So that a certificate stays small; what is beside them is still named."""
    many = {f"node_modules/{number // 100}/{number}.js": "a" for number in range(20_000)}
    files = ConsumerFiles("", many | {"src/main.js": "a", "src/lib/decode.js": "b"})
    stored = files.stored()
    assert (list(stored), len(stored) <= FILES_MAX) == (["src/main.js", "src/lib/decode.js", "node_modules/"], True)
    assert files.changes_since(stored) == []
    other = ConsumerFiles("", {**files.files, "node_modules/7/700.js": "b", "src/main.js": "b"})
    assert other.changes_since(stored) == ["node_modules/ was changed", "src/main.js was changed"]
    flat = ConsumerFiles("", {f"{number}.js": "a" for number in range(20_000)})
    assert (len(flat.stored()), flat.changes_since(flat.stored())) == (1, [])


def test_a_change_is_told_once_as_trials_go_on(toml: Path) -> None:
    """With what to do where the consumer wrote it itself."""
    watch = ChangeWatch(toml, OURS, toml.parent / "out", consumer_files(toml).stored())
    assert watch.new_changes() == ""
    write(toml.parent / "state" / "1.db")
    assert "state/1.db came" in (told := watch.new_changes())
    assert 'writes = ["state/", "*.db"]' in told
    assert watch.new_changes() == ""


@pytest.mark.parametrize("name", ["python-at-least-once", "kafka-verifiable-consumer", "commits-backwards"])
def test_a_plain_folder_has_the_digest_it_always_had(name: str) -> None:
    """Rows of campaigns name it: those of the same consumer go on to count."""
    toml = find_consumer(name)
    assert consumer_files(toml).digest == folder_digest(toml.parent)
