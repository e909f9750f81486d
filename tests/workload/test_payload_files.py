"""A team's own payload: its files are checked before anything starts, kept with the run, and sent from there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kafka_trial.errors import InputError
from kafka_trial.scenario import FurtherTopic, Load, Scenario
from kafka_trial.workload.payload import (
    OURS,
    PayloadFiles,
    RecordContents,
    keep_payload,
    kept_payload,
    payload_digest,
)
from kafka_trial.workload.payload_checks import (
    HEADERS_BYTES_MAX,
    SAMPLES_BYTES_MAX,
    VALUE_BYTES_MAX,
    load_problem,
    payload_problems,
)
from kafka_trial.workload.workload import LoadWorkload, Op

LOAD = Load(opening_burst=20, records_max=40)
LARGE = Load(opening_burst=60, size_bytes_min=100_000, size_bytes_max=5_000_000)


def plays(load: Load, *further: FurtherTopic) -> Scenario:
    return Scenario("plays", load=load, further_topics=further)


def ops(load: Load = LOAD) -> list[Op]:
    return list(LoadWorkload(load, partitions=6).ops(Random(1)))


def template(folder: Path, text: str | bytes, name: str = "order.json") -> PayloadFiles:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return PayloadFiles(template=file)


def samples(folder: Path, *values: bytes) -> PayloadFiles:
    place = folder / "samples"
    place.mkdir()
    for number, value in enumerate(values):
        (place / f"{number}.avro").write_bytes(value)
    return PayloadFiles(samples=place)


def sparse(folder: Path, size_bytes: int, files: int = 1) -> PayloadFiles:
    made = samples(folder, *[b""] * files)
    for number in range(files):
        os.truncate(folder / "samples" / f"{number}.avro", size_bytes)
    return made


def test_samples_are_sent_as_they_are_in_turn(tmp_path: Path) -> None:
    """Each as often as the others, whatever bytes; the seed decides the order; the size is that of the value."""
    files = samples(tmp_path, b"\0\xff", b"two", b"${id}")
    contents, other = (RecordContents(files, LOAD, seed=seed) for seed in (1, 3))
    values = [contents.value(op) for op in ops()]
    assert (set(values[:3]), values[3:6]) == ({b"\0\xff", b"two", b"${id}"}, values[:3])
    assert values != [other.value(op) for op in ops()]
    assert [contents.sized(op).size_bytes for op in ops()] == [len(value) for value in values]


def test_one_file_is_the_value_of_every_record(tmp_path: Path) -> None:
    """A single sample needs no folder."""
    (tmp_path / "order.bin").write_bytes(b"\1\2")
    contents = RecordContents(PayloadFiles(samples=tmp_path / "order.bin"), LOAD, seed=1)
    assert {contents.value(op) for op in ops()} == {b"\1\2"}


def test_a_template_is_padded_only_where_it_says_so(tmp_path: Path) -> None:
    """The load's sizes hold for those that have room for them; one newline at the very end is the editor's."""
    load = Load(opening_burst=5, records_max=5, size_bytes_min=200, size_bytes_max=900)
    plain, padded = (
        RecordContents(template(tmp_path, text, "order.csv"), load, seed=1)
        for text in ("${id};${key}\n", "${id};${padding}\n")
    )
    assert [plain.value(op) for op in ops(load)] == [f"{op.id};{op.key}".encode() for op in ops(load)]
    assert [len(padded.value(op)) for op in ops(load)] == [op.size_bytes for op in ops(load)]


def test_long_records_are_not_gathered_by_the_size_they_should_have(tmp_path: Path) -> None:
    """A template of a megabyte counts as one, though the load asks for 1 KB."""
    contents = RecordContents(template(tmp_path, "${id}" + "x" * 1_000_000, "order.txt"), LOAD, seed=1)
    assert min(contents.sized(op).size_bytes for op in ops()) > 1_000_000


def test_headers_stand_beside_ours(tmp_path: Path) -> None:
    """`kt-id` first, then the header that the team looks for the id in, then theirs."""
    headers = {"content-type": "application/json", "trace": "00-${random_hex:32}-${number}"}
    files = PayloadFiles(headers=headers, id_header="x-id")
    (first, second, third, (name, trace)) = RecordContents(files, LOAD, seed=1).headers(ops()[7])
    assert (first, second) == (("kt-id", b"r0000007"), ("x-id", b"r0000007"))
    assert (third, name, len(trace)) == (("content-type", b"application/json"), "trace", 3 + 32 + 2)
    assert RecordContents(OURS, LOAD, seed=1).headers(ops()[7]) == [("kt-id", b"r0000007")]


@pytest.mark.parametrize("kind", ["template", "samples", "headers", "topics"])
def test_what_a_run_keeps_makes_the_same_records(kind: str, tmp_path: Path) -> None:
    """The originals may change or go: from the folder of the run come the same values and headers."""
    files = {
        "template": lambda: template(tmp_path, '{"id": "${id}", "at": "${uuid}"}'),
        "samples": lambda: samples(tmp_path, b"one", b"two", b"three"),
        "headers": lambda: PayloadFiles(headers={"a": "${uuid}"}, id_header="x"),
        "topics": lambda: PayloadFiles(topics={"small": template(tmp_path, "${id}"), "large": samples(tmp_path, b"1")}),
    }[kind]()
    sent = _records(files)
    kept = keep_payload(files, tmp_path / "payload")
    for original in (tmp_path / "order.json", *tmp_path.glob("samples/*")):
        original.unlink(missing_ok=True)
    assert (kept_payload(tmp_path / "payload"), _records(kept)) == (kept, sent)
    assert PayloadFiles.from_json(kept.to_json()) == kept


def test_a_folder_that_keeps_no_payload_is_wrong_input(tmp_path: Path) -> None:
    """It says which folder of a run to name."""
    with pytest.raises(InputError, match=r"no payload that a trial has kept .*name RUN/payload"):
        kept_payload(tmp_path)
    (tmp_path / "payload.json").write_text('{"template": null, "samples": null, "topics": []}')
    with pytest.raises(InputError, match="no payload that a trial has kept"):
        kept_payload(tmp_path)


def test_the_digest_is_of_every_byte(tmp_path: Path) -> None:
    """Another value, another header: another digest; none where the records are ours."""
    files = samples(tmp_path, b"one", b"two")
    before = payload_digest(files)
    assert payload_digest(PayloadFiles(samples=files.samples, headers={"a": "b"})) != before
    (tmp_path / "samples" / "1.avro").write_bytes(b"twO")
    assert (payload_digest(OURS), before != payload_digest(files)) == ("", True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: PayloadFiles(template=folder / "no.json"), "no.json cannot be read: No such file"),
        (lambda folder: PayloadFiles(samples=folder / "no"), "no cannot be read: No such file"),
        (lambda folder: PayloadFiles(template=folder), "cannot be read: Is a directory"),
        (samples, "samples holds no file; put values into it"),
        (lambda folder: samples(folder, b""), "0.avro is empty, and no record is; take it out"),
        (lambda folder: template(folder, b"\xff"), "is not UTF-8 (invalid start byte at byte 0); bytes as they are go"),
        (lambda folder: template(folder, "\n"), "is empty; write what a record holds"),
        (lambda folder: template(folder, '{"a": "$"}'), "order.json, line 1: a $ stands alone"),
        (lambda folder: template(folder, '{"a": ${key}}'), "does not become JSON: unexpected character"),
        (lambda folder: sparse(folder, VALUE_BYTES_MAX + 1), f"a record at most {VALUE_BYTES_MAX}; take it out"),
        (
            lambda folder: sparse(folder, SAMPLES_BYTES_MAX // 5 + 1, files=5),
            f"has {SAMPLES_BYTES_MAX + 5} bytes in 5 files, at most {SAMPLES_BYTES_MAX} are kept",
        ),
        (lambda folder: template(folder, "x" * (VALUE_BYTES_MAX + 1), "t.txt"), f"a record at most {VALUE_BYTES_MAX}"),
        (
            lambda folder: template(folder, f"${{id}}{'x' * (VALUE_BYTES_MAX - 6)}", "t.txt"),
            f"makes a record of {VALUE_BYTES_MAX + 2} bytes",
        ),
        (lambda folder: PayloadFiles(headers={"kt-id": "x"}), "[payload.headers] kt-id is the header of the id"),
        (lambda folder: PayloadFiles(headers={"x": ""}, id_header="x"), "[payload.headers] x is the header of the id"),
        (lambda folder: PayloadFiles(headers={"": "x"}), "a header without a name"),
        (lambda folder: PayloadFiles(headers={"a": "${idd}"}), "[payload.headers] a, line 1: unknown placeholder"),
        (lambda folder: PayloadFiles(headers={"a": "x" * HEADERS_BYTES_MAX}), f"at most {HEADERS_BYTES_MAX} are sent"),
        (
            lambda folder: PayloadFiles(template=folder / "a", samples=folder / "b"),
            "both template and samples; a record is made of one of them: take one out",
        ),
    ],
)
def test_what_is_wrong_with_the_files_is_told(make: Callable[[Path], PayloadFiles], said: str, tmp_path: Path) -> None:
    """What, where, and what to do about it; one sentence."""
    (problem,) = payload_problems(make(tmp_path))
    assert said in problem


def test_a_folder_in_the_samples_is_named_and_hidden_files_are_none(tmp_path: Path) -> None:
    """Nothing is left out in silence but what an editor or Git has put there."""
    files = samples(tmp_path, b"one")
    (tmp_path / "samples" / ".gitkeep").touch()
    assert payload_problems(files) == []
    (tmp_path / "samples" / "more").mkdir()
    (problem,) = payload_problems(files)
    assert problem.endswith("samples holds the folder more; only files directly in it are sent: move it")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"order": {"id": "${id}"}}', None),
        ('{"order": {"id": "7"}}', "json_path = '$.order.id' finds '7' there, not the id, in"),
        ('{"id": "${id}"}', "json_path = '$.order.id' finds nothing there, not the id, in"),
    ],
)
def test_the_id_must_be_where_the_sink_looks_for_it(text: str, said: str | None, tmp_path: Path) -> None:
    """One record is rendered, and read by the path of [identity]."""
    problems = payload_problems(template(tmp_path, text), json_path="$.order.id")
    assert ([] if said is None else [True]) == [str(said) in problem for problem in problems]


def test_a_scenario_about_sizes_is_played_only_with_values_of_these_sizes(tmp_path: Path) -> None:
    """Padding makes any size; samples may have it; all others would pass without having been tried."""
    assert load_problem(OURS, plays(LARGE)) is None
    assert load_problem(template(tmp_path, "${id}", "t.txt"), plays(Load())) is None
    assert load_problem(template(tmp_path, "${id}${padding}", "t.txt"), plays(LARGE)) is None
    small = template(tmp_path, "${id}", "t.txt")
    said = "its load asks for values of 100000 to 5000000 bytes, and by [payload] template they have 8 to 8"
    assert str(load_problem(small, plays(LARGE))).startswith(said)
    assert load_problem(sparse(tmp_path, 200_000, files=2), plays(LARGE)) is None
    os.truncate(tmp_path / "samples" / "0.avro", 99_999)
    shorter = PayloadFiles(samples=tmp_path / "samples")
    assert "99999 to 200000; write a template" in str(load_problem(shorter, plays(LARGE)))
    long = template(tmp_path, "x" * 100_001 + "${padding}", "t.txt")
    assert "they have at least 100001" in str(load_problem(long, plays(LARGE)))


def test_an_opening_burst_of_gigabytes_is_refused(tmp_path: Path) -> None:
    """Two thousand records of a megabyte would not be drained in time: it says how many bytes, and how many may be."""
    problem = load_problem(sparse(tmp_path, 1_000_000), plays(Load()))
    assert "opening burst of 2000 records has 2000000000 bytes, at most 320000000 are sent" in str(problem)


def test_the_payload_of_a_further_topic_is_its_own(tmp_path: Path) -> None:
    """Its problems name it, its load is measured by it, and its bytes are in the digest."""
    small = FurtherTopic("small", size_bytes_min=100_000, size_bytes_max=200_000)
    of_topic = template(tmp_path, "${id}", "t.txt")
    files = PayloadFiles(topics={"small": of_topic})
    assert (files.of_topic(""), files.of_topic("small"), files.of_topic("x")) == (files, of_topic, files)
    assert "[payload] template" in str(load_problem(files, plays(LOAD, small)))
    assert load_problem(files, plays(LOAD, FurtherTopic("small"))) is None
    told = "its further topics other have no payload in [payload.topics], which has small"
    assert load_problem(files, plays(LOAD, FurtherTopic("other"))) == told
    assert load_problem(files, plays(LOAD, FurtherTopic("small"), FurtherTopic("other"))) is None
    both = PayloadFiles(topics={"small": of_topic, "smal": of_topic})
    assert "other have no payload" in str(load_problem(both, plays(LOAD, FurtherTopic("small"), FurtherTopic("other"))))
    assert load_problem(files, plays(LOAD)) is None  # of one topic
    assert len({payload_digest(one) for one in (OURS, files, of_topic)}) == 3
    wrong = PayloadFiles(topics={"small": PayloadFiles(template=tmp_path / "no", headers={"": "x"})})
    told_of = [problem.split("] ")[0] for problem in payload_problems(wrong)]
    assert told_of == ["[payload.topics.small.headers", "[payload.topics.small"]


def _records(files: PayloadFiles) -> list[tuple[bytes, list[tuple[str, bytes]]]]:
    own = [files, *(files.of_topic(name) for name in sorted(files.topics))]
    each = [RecordContents(one, LOAD, seed=7) for one in own]
    return [(contents.value(op), contents.headers(op)) for contents in each for op in ops()]
