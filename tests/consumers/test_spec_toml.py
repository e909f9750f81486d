"""consumer.toml: what a sound one becomes, and that every problem of a wrong one is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.claim import Claim
from kafka_trial.consumers.consumer import ConsumerSpec, spec_from_toml
from kafka_trial.consumers.spec import ImageLimits, SinkPostgres, SinkTopic, Stop
from kafka_trial.errors import InputError
from kafka_trial.workload.payload import OURS, PayloadFiles

LEAST = """
schema = 1
name = "orders"
command = ["{python}", "main.py"]
[claim]
delivery = "at-least-once"
"""


def read(folder: Path, text: str) -> ConsumerSpec:
    path = folder / "consumer.toml"
    path.write_text(text)
    return spec_from_toml(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    assert str(folder / "consumer.toml") in str(caught.value)
    return caught.value.problems


def test_the_least_file_has_the_defaults_of_the_contract(tmp_path: Path) -> None:
    """Name, command and delivery are enough; everything else is the contract's default."""
    spec = read(tmp_path, LEAST)
    assert spec == ConsumerSpec(
        path=tmp_path / "consumer.toml", name="orders", command=("{python}", "main.py"), claim=Claim("at-least-once")
    )


def test_every_section_is_read(tmp_path: Path) -> None:
    """What the sections say arrives in the spec."""
    text = LEAST + 'order = "key"\n[stop]\nsignal = "INT"\nwithin_s = 3\n[kafka]\nprotocol = "consumer"\n'
    spec = read(tmp_path, text)
    assert (spec.claim.order, spec.stop, spec.kafka.protocol) == ("key", Stop("INT", 3), "consumer")


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Wrong names, types, values and placeholders in many places: one error, a sentence for each."""
    text = """
schema = 1
nam = "orders"
command = ["no-such-program", "{bootstrp}"]
members = "3"
[env]
BROKERS = "{bootstrap"
[kafka]
protocol = "classc"
session_timeout_s = 0
request_timeout_s = 0
[evidence]
handler_max_s = -1
[stop]
signal = "TRM"
[load]
factor = 0
[foo]
[claim]
delivery = "at-lest-once"
"""
    told = "\n".join(problems(tmp_path, text))
    for part in (
        "name is missing",
        "unknown key 'nam'. Did you mean 'name'?",
        "'no-such-program' is not on PATH",
        "unknown placeholder 'bootstrp'. Did you mean 'bootstrap'?",
        "members = '3' must be a whole number",
        "[env] BROKERS",
        "protocol = 'classc' is none of: classic, consumer, none",
        "session_timeout_s = 0 must be above 0",
        "request_timeout_s = 0 must be above 0",
        "[evidence] handler_max_s = -1 must be above 0",
        "signal = 'TRM' is none of: TERM",
        "[load] factor = 0 must be above 0 and at most 1",
        "unknown section 'foo'",
        "delivery = 'at-lest-once' is none of: at-least-once",
    ):
        assert part in told


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("schema = 2", "schema = 2, this version reads 1; upgrade"),
        ("name = ", "is not TOML"),
    ],
)
def test_what_cannot_be_read_further_is_told_alone(tmp_path: Path, line: str, said: str) -> None:
    """A newer schema, broken TOML: the first sentence is the only one that helps."""
    key = line.partition(" ")[0]
    kept = [old for old in LEAST.splitlines() if not old.startswith(f"{key} =")]
    assert said in problems(tmp_path, "\n".join([line, *kept]))[0]


def test_a_missing_file_is_wrong_input(tmp_path: Path) -> None:
    """A path where nothing is says so, without a traceback."""
    with pytest.raises(InputError, match="cannot be read: No such file"):
        spec_from_toml(tmp_path / "consumer.toml")


def test_a_command_with_a_slash_is_looked_for_beside_the_file(tmp_path: Path) -> None:
    """`./run` is relative to the TOML's folder and must be executable."""
    text = LEAST.replace('"{python}"', '"./run"')
    assert "not there or not executable" in problems(tmp_path, text)[0]
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)
    assert read(tmp_path, text).command[0] == "./run"


def test_what_pass_env_names_must_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that the caller has not set is found before anything starts."""
    text = LEAST.replace("[claim]", 'pass_env = ["KT_TEST_SECRET"]\n[claim]')
    monkeypatch.delenv("KT_TEST_SECRET", raising=False)
    assert "KT_TEST_SECRET is not set" in problems(tmp_path, text)[0]
    monkeypatch.setenv("KT_TEST_SECRET", "x")
    assert read(tmp_path, text).pass_env == ("KT_TEST_SECRET",)


TO_POSTGRES = LEAST + '[evidence]\nsink = "postgres"\n'


def test_a_table_in_postgres_is_named_with_what_creates_it(tmp_path: Path) -> None:
    """Its schema beside the file; the columns that matter, if any are named."""
    (tmp_path / "schema.sql").write_text("create table effects (id text)")
    table = '[sink.postgres]\nschema_file = "schema.sql"\n'
    assert read(tmp_path, TO_POSTGRES + table).sink_postgres == SinkPostgres("effects", "schema.sql", None, ())
    more = table + 'table = "bills"\nvalue_column = "body"\ncontent = ["sum"]\n'
    assert read(tmp_path, TO_POSTGRES + more).sink_postgres == SinkPostgres("bills", "schema.sql", "body", ("sum",))


def test_every_problem_of_a_table_in_postgres_is_told(tmp_path: Path) -> None:
    """No schema, or one that is not there; no table, no column with the value; an unknown key."""
    assert problems(tmp_path, TO_POSTGRES) == [
        '[sink.postgres] schema_file is missing; write schema_file = "schema.sql": the SQL that creates the table'
    ]
    text = TO_POSTGRES + 'body = "value"\n[sink.postgres]\nschema_file = "other.sql"\ntable = ""\nrows = 1\n'
    told = problems(tmp_path, text)
    assert [said.partition(" =")[0].partition(":")[0] for said in told] == [
        "[sink.postgres] unknown key 'rows'. Valid",
        "[sink.postgres] schema_file",
        "[sink.postgres] table is empty; name the table with the effects",
        "[evidence] body",
    ]


def test_an_address_of_postgres_is_filled_in_only_where_the_output_goes_there(tmp_path: Path) -> None:
    """Elsewhere nobody boots one: each place that names it is told, and so is its table."""
    text = LEAST.replace("[claim]", '[env]\nDATABASE = "{postgres_url}"\n[claim]')
    text += '[ready]\nhttp = "http://{postgres_host}"\n'
    told = problems(tmp_path, text + '[sink.postgres]\nschema_file = "schema.sql"\n')
    assert told == [
        '[sink.postgres] says where the output goes; write sink = "postgres" under [evidence] too',
        '[env] DATABASE: {postgres_url} is filled in only with sink = "postgres" under [evidence]',
        '[ready] http: {postgres_host} is filled in only with sink = "postgres" under [evidence]',
    ]


def test_a_handler_takes_records_or_batches(tmp_path: Path) -> None:
    """Single records unless it says so; anything else is told with the choices."""
    assert read(tmp_path, LEAST).evidence.handler == "record"
    assert read(tmp_path, LEAST + '[evidence]\nhandler = "batch"\n').evidence.handler == "batch"
    assert "[evidence] handler" in problems(tmp_path, LEAST + '[evidence]\nhandler = "list"\n')[0]


def test_how_lines_are_flushed_is_one_of_two(tmp_path: Path) -> None:
    """One by one, or when a buffer is full."""
    assert read(tmp_path, LEAST).evidence.stdout == "lines"
    assert read(tmp_path, LEAST + '[evidence]\nstdout = "buffered"\n').evidence.stdout == "buffered"
    assert "stdout" in problems(tmp_path, LEAST + '[evidence]\nstdout = "pipe"\n')[0]


def test_a_sink_topic_is_named_for_all_members(tmp_path: Path) -> None:
    """Its name and partitions are read; without the table it is the group's, with as many partitions as the trial's."""
    given = LEAST + '[evidence]\nsink = "topic"\n'
    own = given + '[sink.topic]\nname = "out-{group}"\npartitions = 2\n'
    assert read(tmp_path, given).sink_topic == SinkTopic("{group}-out", None)
    assert read(tmp_path, own).sink_topic == SinkTopic("out-{group}", 2)


def test_every_problem_of_a_sink_topic_is_told(tmp_path: Path) -> None:
    """A member's own placeholder, an impossible name, no partitions, an unknown sink, and a table nobody asked for."""
    text = LEAST + '[sink.topic]\nname = "{client_id} out"\npartitions = 0\n[sink.file]\npath = "x"\n'
    told = problems(tmp_path, text)
    assert [said.partition(" =")[0].partition(":")[0] for said in told] == [
        "unknown section 'sink.file'. Did you mean 'sink.topic'? Valid",
        "[sink.topic] says where the output goes; write sink",
        "[sink.topic] name",
        "[sink.topic] name",
        "[sink.topic] partitions",
    ]


def test_what_a_sink_hears_of_is_declared(tmp_path: Path) -> None:
    """Which outcomes leave no effect, whether effects are states of a table, and what their bodies are."""
    given = read(tmp_path, LEAST + '[evidence]\nno_effect = ["done"]\neffects = "state"\nbody = "value"\n').evidence
    assert (given.no_effect, given.effects, given.body) == (("done",), "state", "value")
    least = read(tmp_path, LEAST).evidence
    assert (least.no_effect, least.effects, least.body) == (("discarded", "dead-lettered"), "record", "own")


def test_every_problem_of_what_a_sink_hears_of_is_told(tmp_path: Path) -> None:
    """`failed` is no outcome that could leave an effect: it will be tried again."""
    text = LEAST + '[evidence]\nno_effect = ["done", "failed"]\neffects = "table"\nbody = "json"\n'
    assert problems(tmp_path, text) == [
        "[evidence] effects = 'table' is none of: record, state",
        "[evidence] body = 'json' is none of: own, value",
        "[evidence] no_effect[1] = 'failed' is none of: done, discarded, dead-lettered",
    ]


IMAGE = """
schema = 1
name = "orders"
[image]
name = "team/orders:1.4"
memory_bytes = 64_000_000
cpus = 0.5
[image.mounts]
"rules.json" = "/etc/orders/rules.json"
[env]
BROKERS = "{bootstrap}"
[claim]
delivery = "at-least-once"
[ready]
http = "http://{address}:8080/ready"
"""


def test_an_image_stands_for_a_command(tmp_path: Path) -> None:
    """With its limits in a table, or named by itself; its own command stays where none is given."""
    (tmp_path / "rules.json").touch()
    spec = read(tmp_path, IMAGE)
    assert (spec.image, spec.command) == ("team/orders:1.4", ())
    assert spec.image_limits == ImageLimits(64_000_000, 0.5, mounts={"rules.json": "/etc/orders/rules.json"})
    short = LEAST.replace('command = ["{python}", "main.py"]', 'image = "orders:2"\ncommand = ["serve"]')
    assert (read(tmp_path, short).image, read(tmp_path, short).command) == ("orders:2", ("serve",))


def test_another_image_takes_the_place_of_what_the_file_names(tmp_path: Path) -> None:
    """Its limits stay; a command for a process on this machine goes, one for the image stays."""
    (tmp_path / "rules.json").touch()
    path = tmp_path / "consumer.toml"
    for text, left in (
        (IMAGE, ()),
        (LEAST, ()),
        (IMAGE.replace("[image]", 'command = ["serve"]\n[image]'), ("serve",)),
    ):
        path.write_text(text)
        spec = spec_from_toml(path, image="orders:9")
        assert (spec.image, spec.command) == ("orders:9", left)
    assert spec.image_limits.memory_bytes == 64_000_000


def test_what_no_image_can_have_is_told(tmp_path: Path) -> None:
    """Too little memory, mounts that are not there, places of this machine; limits without an image."""
    wrong = IMAGE.replace("64_000_000", "1000").replace("0.5", "0").replace('"/etc', '"etc') + "[env]\n"
    told = problems(tmp_path, wrong.removesuffix("[env]\n").replace("{bootstrap}", "{run_dir}"))
    for said in (
        "memory_bytes = 1000",
        "cpus = 0",
        "rules.json is not there",
        "a place inside",
        "{run_dir} is of this",
    ):
        assert [one for one in told if said in one], (said, told)
    assert "[image] is for containers" in problems(tmp_path, LEAST + "[image]\ncpus = 1.0\n")[0]
    assert "command is missing, or image" in problems(tmp_path, LEAST.replace("command", "#"))[0]


def test_a_json_path_is_read_before_anything_starts(tmp_path: Path) -> None:
    """Indexes and quoted names are taken; a path that names many places is told, with an example."""
    good = LEAST + "[identity]\njson_path = \"$.lines[0]['order-id']\"\n"
    assert read(tmp_path, good).identity.json_path == "$.lines[0]['order-id']"
    (told,) = problems(tmp_path, LEAST + '[identity]\njson_path = "$.lines[*].id"\n')
    assert told.startswith("[identity] json_path = '$.lines[*].id': '[*].id' is no step to one place: write .name")


def test_a_payload_is_files_beside_the_toml(tmp_path: Path) -> None:
    """Paths are relative to it; headers may hold placeholders; another header of the id is sent beside ours."""
    (tmp_path / "order.json").write_text('{"of": {"id": "${id}"}}')
    text = LEAST + '[payload]\ntemplate = "order.json"\n[payload.headers]\nn = "${number}"\n'
    read_so = read(tmp_path, text + '[identity]\nheader = "x-id"\njson_path = "$.of.id"\n')
    headers = {"n": "${number}"}
    assert read_so.payload_files == PayloadFiles(tmp_path / "order.json", headers=headers, id_header="x-id")
    assert read(tmp_path, LEAST).payload_files == OURS


def test_a_further_topic_may_have_a_payload_of_its_own(tmp_path: Path) -> None:
    """By its name in the scenario; the id's header is that of all."""
    (tmp_path / "payment.json").write_text('{"id": "${id}"}')
    text = '[payload.topics.payments]\ntemplate = "payment.json"\n[identity]\nheader = "x-id"\n'
    payments = PayloadFiles(tmp_path / "payment.json", id_header="x-id")
    assert read(tmp_path, LEAST + text).payload_files == PayloadFiles(id_header="x-id", topics={"payments": payments})
    assert problems(tmp_path, LEAST + '[payload.topics.payments]\ntemplat = "x"\n')[0].startswith(
        "[payload.topics.payments] unknown key 'templat'. Did you mean 'template'?"
    )
    for name in ('"../out"', '""', "X", '"a/b"'):
        (told,) = problems(tmp_path, LEAST + f"[payload.topics.{name}]\nheaders = {{}}\n")
        assert "is no name of a topic: it has 1 to 40 of a-z, 0-9 and -" in told
    assert (
        "write [payload.topics.<name of a further topic>]" in problems(tmp_path, LEAST + "[payload]\ntopics = 3\n")[0]
    )


def test_what_is_wrong_with_a_payload_is_told_with_all_the_rest(tmp_path: Path) -> None:
    """Files, headers, the path of the id: a sentence each, in the same error as those of other sections."""
    (tmp_path / "order.json").write_text('{"id": "${key}"}')
    text = '[payload]\ntemplate = "order.json"\nheaders = { n = "$" }\n[identity]\njson_path = "$.id"\n'
    told = problems(tmp_path, LEAST + text + "[stop]\nwithin_s = 0\n")
    assert [problem.partition(":")[0].partition(" =")[0] for problem in told] == [
        "[stop] within_s",
        "[payload.headers] n, line 1",
        "[identity] json_path",
    ]
    told = problems(
        tmp_path, LEAST + '[payload]\ntemplates = "x"\nsamples = 3\nholds = ["null-values", "tombstones"]\n'
    )
    assert told[0].startswith("[payload] unknown key 'templates'. Did you mean 'template'? Valid: headers, holds, ")
    assert told[1:] == [
        "[payload] samples = 3 must be a string",
        "[payload] holds[1] = 'tombstones' is none of: null-values, null-keys, unreadable-values",
    ]


def test_intermediate_topics_are_named_by_what_is_known_before_the_trial(tmp_path: Path) -> None:
    """Names of topics, with the words that are the same for all members; the trial's own is none of them."""
    text = LEAST + '[progress]\nthrough = ["{topics}-retry-0", "{group}-later"]\n'
    assert read(tmp_path, text).progress.through == ("{topics}-retry-0", "{group}-later")
    told = "\n".join(problems(tmp_path, LEAST + '[progress]\nthrough = ["{topics}", "{member}-retry", "a b", 1]\n'))
    assert "through[3] = 1 must be a string" in told
    told = "\n".join(problems(tmp_path, LEAST + '[progress]\nthrough = ["{topics}", "{member}-retry", "a b"]\n'))
    for part in (
        "[progress] through[0] is the trial's own topic; name those of the consumer",
        "[progress] through[1]: unknown placeholder 'member'",
        "[progress] through[2] = 'a b' must be letters, digits, dots, dashes and underscores",
    ):
        assert part in told
